//! The power goes while a node mends, puts aside, takes back and adopts: afterwards a file is whole on one side, what
//! was done is done, and what was not can be done again.

use archive_bitarchive::attic::{self, AtticId, AtticItemKind, LocalAtticItem};
use archive_bitarchive::{Condition, Layout, Node};
use archive_model::{Cause, FileName};
use conformance::machine::acts::{self, MENDED, MOVED};
use conformance::machine::{self, CrashMachine};
use jiff::Timestamp;

use super::super::child::Child;
use super::super::kill::chance;
use super::super::{BEFORE, expected_root, name};
use super::{FLUSHED, Image, UNFLUSHED, has_own_mounts, machine_with_data_elsewhere};

/// Returns the last of these acts that the child was doing, or did.
fn last<'a>(said: &'a [String], acts: &[&str]) -> &'a str {
    let of = |line: &&String| {
        let act = line.split(' ').nth(1).unwrap();
        acts.contains(&act)
    };
    said.iter().rev().find(of).map_or("", |line| line.as_str())
}

/// Fails if a power cut during a mend, a removal, a restore or an adoption leaves a file that is whole nowhere, or an
/// act that can be neither finished nor repeated.
#[test]
fn power_cuts_leave_every_act_done_or_repeatable() {
    if !has_own_mounts("acts::power_cuts_leave_every_act_done_or_repeatable") {
        return;
    }
    for in_place in [false, true] {
        let mut image = Image::new("256M", &[]);
        let machine = machine_with_data_elsewhere(&mut image);
        let node = machine.start(BEFORE).unwrap();
        for file in [MENDED, MOVED] {
            machine::store(&node, &name(file), BEFORE).unwrap().unwrap();
        }
        drop(node);
        let mut done = 0;
        for round in 0..12 {
            let how = if round % 2 == 0 { UNFLUSHED } else { FLUSHED };
            let now = BEFORE + 10 + round * 10;
            let child = Child::at(&machine, now).acts(&format!("s{round}"));
            let child = if in_place { child.in_place() } else { child };
            let mut child = child.spawn();
            let acts = usize::try_from(chance(round, 30)).unwrap();
            assert!(
                child.heard("did", acts),
                "round {round}: {:?}",
                child.wait()
            );
            image.cut_power(how);
            child.kill();
            let said = child.wait().acts;
            done += said.iter().filter(|line| line.starts_with("did")).count();
            image.unmount();
            image.mount();
            let what = format!("cut {round} ({how}), in place: {in_place}");
            check(&machine, now + 5, &said, &what);
        }
        println!("in place: {in_place}: 12 power cuts, {done} acts");
        assert!(done > 60, "only {done} acts");
    }
}

fn check(machine: &CrashMachine, now: i64, said: &[String], what: &str) {
    let node = machine.start(now).unwrap();
    let clear = |node: &Node| {
        node.disks.clear_volume(
            &machine::volume().unwrap(),
            Timestamp::from_second(now).unwrap(),
        )
    };
    clear(&node).unwrap();
    let volumes = node.disks.volumes.list_volumes();
    assert!(
        volumes.iter().all(|volume| volume.problem.is_none()),
        "{what}: {volumes:?}"
    );
    mended(machine, &node, now, last(said, &["damage", "mend"]), what);
    moved(machine, &node, now, last(said, &["aside", "back"]), what);
    adopted(&node, now, said, what);
    node.files.reap_uploads(i64::MAX).unwrap();
    assert_eq!(machine.incoming().unwrap(), [""; 0], "{what}");
    drop(node);
    // All is well at the next start, with what is known and with nothing known.
    for is_anew in [false, true] {
        if is_anew {
            std::fs::remove_dir_all(machine.data().join("catalog")).unwrap();
        }
        let node = machine.start(now).unwrap();
        for entry in node.files.list_entries(None).unwrap() {
            let entry = entry.unwrap();
            assert_eq!(entry.row.condition, Condition::Present, "{what}: {entry:?}");
            let reading = node.files.open_file(&entry.name).unwrap();
            assert_eq!(
                reading.data.root().unwrap(),
                expected_root(&entry.name),
                "{what}"
            );
        }
    }
}

/// Each damaged group is wholly as it was or wholly mended; what was acknowledged is mended.
fn mended(machine: &CrashMachine, node: &Node, now: i64, last: &str, what: &str) {
    let file = name(MENDED);
    let good = machine::content(&file).unwrap();
    let damaged = acts::damaged_content().unwrap();
    let target = Layout::new(&machine.disk()).target_paths(&file);
    let found = std::fs::read(&target.file).unwrap();
    assert_eq!(found.len(), good.len(), "{what}");
    let mut as_if_good = found.clone();
    for range in acts::byte_ranges() {
        let group = &found[range.clone()];
        let is_good = group == &good[range.clone()];
        let is_damaged = group == &damaged[range.clone()];
        // The damage itself may be torn.
        assert!(
            is_good || is_damaged || last == "doing damage",
            "{what}: {last}: a group is neither"
        );
        assert!(is_good || last != "did mend", "{what}: it was mended");
        as_if_good[range.clone()].copy_from_slice(&good[range]);
    }
    assert!(as_if_good == good, "{what}: other groups were touched");
    if found != good {
        acts::mend(node, now).unwrap();
    }
    assert!(std::fs::read(&target.file).unwrap() == good, "{what}");
    assert_eq!(
        node.files.find_copies(&file).unwrap()[0].row.root,
        Some(expected_root(&file))
    );
    let verified = node.files.verify_copy(
        &file,
        None,
        Timestamp::from_second(now).unwrap(),
        &mut |_| std::ops::ControlFlow::Continue(()),
    );
    assert_eq!(
        verified.unwrap().row.condition,
        Condition::Present,
        "{what}"
    );
}

fn whole_files_aside(node: &Node) -> Vec<LocalAtticItem> {
    let online = node.disks.volumes.online_layouts();
    let items = online.iter().flat_map(|(volume, layout)| {
        let listed = attic::list_items(layout, volume).unwrap();
        listed.into_iter().map(|one| attic::read_item(layout, &one))
    });
    items
        .filter(|item| item.kind == AtticItemKind::File)
        .collect()
}

/// The file lies whole on one side, and where the last act that was done has put it.
fn moved(machine: &CrashMachine, node: &Node, now: i64, last: &str, what: &str) {
    let file = name(MOVED);
    let target = Layout::new(&machine.disk()).target_paths(&file);
    let is_back = target.file.try_exists().unwrap();
    let aside = whole_files_aside(node);
    assert_eq!(
        aside.len(),
        usize::from(!is_back),
        "{what}: {last}: {aside:?}"
    );
    assert!(is_back || last != "did back", "{what}");
    assert!(!is_back || last != "did aside", "{what}");
    for path in [&target.sidecar, &target.outboard] {
        assert_eq!(path.try_exists().unwrap(), is_back, "{what}: {last}");
    }
    if let Some(item) = aside.first() {
        assert_eq!(item.damaged, None, "{what}");
        let cause = Cause::new("officer/o", "a test").unwrap();
        node.attic
            .restore_item(
                &item.volume,
                &AtticId::new(&item.id).unwrap(),
                &cause,
                Timestamp::from_second(now).unwrap(),
            )
            .unwrap();
    }
    assert!(std::fs::read(&target.file).unwrap() == machine::content(&file).unwrap());
}

/// Asserts that each adopted file is there, and that each file that was not adopted can be.
fn adopted(node: &Node, now: i64, said: &[String], what: &str) {
    let names = |beginning: &str| -> Vec<FileName> {
        said.iter()
            .filter_map(|line| line.strip_prefix(beginning))
            .map(name)
            .collect()
    };
    for file in names("did adopt ") {
        let entry = &node.files.find_copies(&file).unwrap()[0];
        assert_eq!(entry.row.condition, Condition::Present, "{what}: {file}");
        assert_eq!(entry.row.root, Some(expected_root(&file)), "{what}");
    }
    let strangers: Vec<FileName> = node
        .files
        .list_entries(None)
        .unwrap()
        .map(|entry| entry.unwrap().name)
        .filter(|file| file.as_str().starts_with('s'))
        .collect();
    for file in names("doing adopt ") {
        assert!(strangers.contains(&file), "{what}: {file} was there");
    }
    for file in strangers {
        let root = acts::adopt(node, &file, now).unwrap();
        assert_eq!(root, Some(expected_root(&file)), "{what}: {file}");
    }
}
