//! Files that were renamed, moved or linked behind the node's back.

use super::attic::removal;
use super::broken::verify;
use super::*;

fn directory_of(machine: &NodeMachine, file: &str) -> PathBuf {
    machine.target(file).file.parent().unwrap().to_owned()
}

/// Returns the condition of each name in a word: `present`, `missing` or another.
fn conditions(node: &Node) -> Vec<(String, &'static str)> {
    let word = |condition: &Condition| match condition {
        Condition::Present => "present",
        Condition::Missing { .. } => "missing",
        Condition::Damaged { .. } => "damaged",
        Condition::Unexpected { .. } => "unexpected",
    };
    let entries = listing(node);
    let said = entries
        .iter()
        .map(|entry| (entry.name.to_string(), word(&entry.row.condition)));
    said.collect()
}

fn is(expected: &[(&str, &'static str)]) -> Vec<(String, &'static str)> {
    let expected = expected.iter();
    expected
        .map(|(name, word)| ((*name).to_owned(), *word))
        .collect()
}

/// Fails if what lies in the wrong directory is served from there, replaces what has its place, or is not reported.
#[test]
fn misplaced_file_goes_to_its_place() {
    for is_anew in [false, true] {
        let machine = NodeMachine::new();
        let (node, _) = machine.start();
        for file in ["moved", "linked", "other"] {
            machine.store(&node, file, &bytes(20_000)).unwrap();
        }
        drop(node);
        let wrong = directory_of(&machine, "other");
        for file in ["moved", "linked", "stranger"] {
            assert_ne!(wrong, directory_of(&machine, file));
        }
        std::fs::rename(machine.target("moved").file, wrong.join("moved")).unwrap();
        std::fs::hard_link(machine.target("linked").file, wrong.join("linked")).unwrap();
        std::fs::copy(machine.target("other").file, wrong.join("stranger")).unwrap();
        std::fs::create_dir(wrong.join("directory")).unwrap();
        let sidecar = machine.target("moved").sidecar;
        let meta = machine.target("other").sidecar;
        std::fs::copy(&sidecar, meta.parent().unwrap().join("moved.json")).unwrap();
        // With the catalog as it was, and with one that is built again.
        if is_anew {
            std::fs::remove_dir_all(machine.path("data/catalog")).unwrap();
        }
        let (node, found) = machine.start();
        let counts = (found.missing, found.foreign, found.unexpected);
        assert_eq!(counts, (0, 2, 1), "{found:?}");
        let expected = is(&[
            ("linked", "present"),
            ("moved", "present"),
            ("other", "present"),
            ("stranger", "unexpected"),
        ]);
        assert_eq!(conditions(&node), expected);
        assert_eq!(verify(&node, "moved").row.condition, Condition::Present);
        let left = std::fs::read(wrong.join("linked")).unwrap();
        assert_eq!(left, bytes(20_000), "its place is taken");
        for list in ["other", "stranger"] {
            assert!(!machine.manifest(list).contains("moved"));
            assert!(!machine.manifest(list).contains("stranger"));
        }
        drop(node);
    }
}

/// Fails if a hard link under another name takes over the admission of the first.
#[test]
fn second_name_of_a_file_is_unexpected() {
    let machine = NodeMachine::new();
    let (node, _) = machine.start();
    for file in ["renamed", "linked"] {
        machine.store(&node, file, &bytes(20_000)).unwrap();
    }
    drop(node);
    std::fs::rename(
        machine.target("renamed").file,
        machine.target("newname").file,
    )
    .unwrap();
    std::fs::hard_link(machine.target("linked").file, machine.target("second").file).unwrap();
    let (node, found) = machine.start();
    assert_eq!(
        (found.missing, found.unexpected, found.unchanged),
        (1, 2, 1),
        "{found:?}"
    );
    let expected = is(&[
        ("linked", "present"),
        ("newname", "unexpected"),
        ("renamed", "missing"),
        ("second", "unexpected"),
    ]);
    assert_eq!(conditions(&node), expected);
    // The stranger goes aside by its own checksum, and takes nothing with it.
    verify(&node, "second");
    let root = Root::from_bytes(*blake3::hash(&bytes(20_000)).as_bytes());
    let volume = VolumeId::new("v1").unwrap();
    node.attic
        .put_copy_aside(&removal("second", volume, root), now())
        .unwrap();
    assert_eq!(verify(&node, "linked").row.condition, Condition::Present);
    assert_eq!(machine.content("linked"), bytes(20_000));
}
