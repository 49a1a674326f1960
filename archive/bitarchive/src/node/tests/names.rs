//! Files whose names or upload ids could collide in `incoming/`.

use archive_durable::{JournalWriter, JournaledGroups};
use archive_proof::TreeBuilder;

use super::broken::{SIZE, on, order, segments, set, verify};
use super::disks::id;
use super::*;
use crate::layout::MendPaths;

/// Fails if a mend of one file uses a path of another one with a similar name.
#[test]
fn similar_names_never_share_a_mend_path() {
    for role in ["outboard", "journal", "groups", "pos", "copy"] {
        let machine = NodeMachine::new();
        let node = machine.with_file("a");
        let other = format!("a.{role}");
        let content = bytes(SIZE);
        machine.store(&node, &other, &content).unwrap();
        machine.flip(&other, &[3]);
        verify(&node, &other);
        let mut begun = node
            .files
            .begin_mend(order(&other, &content, set(&[3])), now())
            .unwrap();
        // Its outboard is made anew, and what is left of its mends is cleared away.
        std::fs::remove_file(machine.target("a").outboard).unwrap();
        assert_eq!(verify(&node, "a").row.condition, Condition::Present);
        drop(
            node.files
                .begin_mend(order("a", &content, set(&[0])), now())
                .unwrap(),
        );
        for (offset, length, encoded) in segments(&content, &set(&[3])) {
            begun
                .write_segment(offset, length, &encoded, &mut on)
                .unwrap();
        }
        begun.close_mend(now(), &mut on).unwrap();
        assert_eq!(machine.content(&other), content, "{role}");
        assert_eq!(verify(&node, &other).row.condition, Condition::Present);
        assert_eq!(machine.incoming(), 0);
    }
}

fn journal(machine: &NodeMachine, file: &str, change: &JournaledGroups, bytes: &[u8]) -> PathBuf {
    let layout = Layout::new(&machine.path("disk"));
    let path = MendPaths::new(&layout, &name(file)).journal;
    let mut writer = JournalWriter::create(&path, change).unwrap();
    writer.append(bytes).unwrap();
    writer.finish().unwrap().unwrap();
    path
}

/// Fails if a journal of a replacement is applied to a file of another name, size or root, or is deleted while it is
/// unknown what the file should be.
#[test]
fn a_journal_of_another_file_is_not_applied() {
    let machine = NodeMachine::new();
    let content = bytes(SIZE);
    let own = JournaledGroups {
        name: name("a"),
        size: SIZE as u64,
        root: Root::from_bytes(*blake3::hash(&content).as_bytes()),
        groups: set(&[2]),
    };
    let wrong = [
        JournaledGroups {
            name: name("b"),
            ..own.clone()
        },
        JournaledGroups {
            size: own.size - 1,
            ..own.clone()
        },
        JournaledGroups {
            root: Root::from_bytes([1; 32]),
            ..own.clone()
        },
    ];
    drop(machine.with_file("a"));
    for change in wrong {
        let path = journal(&machine, "a", &change, &[7; 16_384]);
        let (node, _) = machine.start();
        assert_eq!(machine.content("a"), content, "{change:?}");
        assert!(!path.try_exists().unwrap(), "{change:?}");
        assert_eq!(verify(&node, "a").row.condition, Condition::Present);
    }
    // Nobody knows what the file should be: the journal waits until somebody does.
    let sidecar = std::fs::read(machine.target("a").sidecar).unwrap();
    std::fs::remove_file(machine.target("a").sidecar).unwrap();
    std::fs::remove_dir_all(machine.path("data/catalog")).unwrap();
    let path = journal(&machine, "a", &own, &content[2 * 16_384..3 * 16_384]);
    machine.flip("a", &[2]);
    let spoilt = machine.content("a");
    drop(machine.start());
    assert_eq!(machine.content("a"), spoilt);
    assert!(path.try_exists().unwrap());
    std::fs::write(machine.target("a").sidecar, sidecar).unwrap();
    drop(machine.start());
    assert_eq!(machine.content("a"), content);
    assert!(!path.try_exists().unwrap());
}

/// Fails if two files are written under one upload id.
#[test]
fn upload_id_receives_one_file_at_once() {
    let machine = NodeMachine::new();
    let (node, _) = machine.start();
    let upload = UploadId::new("u1").unwrap();
    let mut first = node.files.begin_upload(&upload, &name("a"), 3).unwrap();
    first.write_all(b"one").unwrap();
    for refused in [
        node.files.begin_upload(&upload, &name("b"), 3).map(drop),
        node.files
            .begin_upload_anew(&upload, &name("b"), 3)
            .map(drop),
    ] {
        assert!(
            matches!(&refused, Err(NodeError::Busy { name: by, .. }) if *by == name("a")),
            "{refused:?}"
        );
    }
    let signed = sign(&admission("a", b"one", "u1"));
    first.commit_upload(&signed, now()).unwrap();
    drop(
        node.files
            .begin_upload_anew(&upload, &name("b"), 3)
            .unwrap(),
    );
}

/// Fails if files that are adopted at once share a temporary file, so that one gets the outboard of another.
#[test]
fn files_are_adopted_side_by_side() {
    let machine = NodeMachine::new();
    let files: Vec<(String, Vec<u8>)> = (0..8_usize)
        .map(|number| {
            let mut content = bytes(2_000_000 + number * 50_000);
            content[0] = u8::try_from(number).unwrap();
            (format!("f{number}"), content)
        })
        .collect();
    for (file, content) in &files {
        std::fs::write(machine.target(file).file, content).unwrap();
    }
    let (node, _) = machine.start();
    std::thread::scope(|scope| {
        for (file, content) in &files {
            let node = &node;
            scope.spawn(move || {
                let signed = sign(&admission(file, content, "u1"));
                node.files
                    .adopt_file(&name(file), &id("v1"), &signed, now())
                    .unwrap();
            });
        }
    });
    for (file, content) in &files {
        let mut builder = TreeBuilder::new(Vec::new());
        builder.update(content).unwrap();
        let expected = builder.finish().unwrap().sink;
        let found = std::fs::read(machine.target(file).outboard).unwrap();
        assert!(found == expected, "{file} has the outboard of another");
    }
    assert_eq!(machine.incoming(), 0);
}

/// Fails if an admission of the largest permitted length fits into a commit, but not into a sidecar that a new catalog
/// can be built from.
#[test]
fn the_longest_envelope_is_kept_and_read_again() {
    let machine = NodeMachine::new();
    let (node, _) = machine.start();
    let signed = sign(&admission("a", b"one", "u1"));
    let room = archive_proof::envelope::MAX_LENGTH - signed.as_str().len();
    let padded = signed
        .as_str()
        .replacen('{', &format!("{{{}", " ".repeat(room)), 1);
    let padded = Envelope::parse(padded.as_bytes()).unwrap();
    let mut receiving = node
        .files
        .begin_upload(&UploadId::new("u1").unwrap(), &name("a"), 3)
        .unwrap();
    receiving.write_all(b"one").unwrap();
    receiving.commit_upload(&padded, now()).unwrap();
    drop(node);
    std::fs::remove_dir_all(machine.path("data/catalog")).unwrap();
    let (node, found) = machine.start();
    assert_eq!(found.added, 1);
    let entry = node.files.find_copies(&name("a")).unwrap().remove(0);
    assert_eq!(node.files.read_admission(&entry).unwrap(), padded.as_str());
}
