//! Every short listing of two nodes and many of three, in every way to go wrong.

use archive_model::VolumeName;

use super::*;

type Entry = (usize, &'static str);

fn node(index: usize) -> NodeId {
    NodeId::new(["x", "y", "z"][index]).unwrap()
}

fn volume(name: &str) -> VolumeId {
    VolumeId::new(name).unwrap()
}

fn listed(index: usize, name: &'static str, on: &str) -> ListedFile<Entry> {
    ListedFile {
        name: FileName::new(name).unwrap(),
        volume: volume(on),
        entry: (index, name),
    }
}

/// The course of a node's listing.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Ends,
    EndsWithGap,
    Miscounts,
    BreaksOff,
    Repeats,
    SendsNothing,
    SendsGarbage,
}

const FATES: [Fate; 7] = [
    Fate::Ends,
    Fate::EndsWithGap,
    Fate::Miscounts,
    Fate::BreaksOff,
    Fate::Repeats,
    Fate::SendsNothing,
    Fate::SendsGarbage,
];

/// A node: its names, how many it sends in a message, how it continues after them.
#[derive(Clone, Debug)]
struct Script {
    names: Vec<&'static str>,
    size: usize,
    fate: Fate,
    sent: usize,
}

impl Script {
    /// Does the next thing, as the door would when this node is hungry.
    fn step(&mut self, merge: &mut Merge<Entry>, index: usize) {
        let next: Vec<Result<ListedFile<Entry>, &str>> = self
            .names
            .iter()
            .skip(self.sent)
            .take(self.size)
            .map(|name| Ok(listed(index, name, "v1")))
            .collect();
        if !next.is_empty() {
            self.sent += next.len();
            return merge.feed_entries(index, next);
        }
        let count = u64::try_from(self.names.len()).unwrap();
        match self.fate {
            Fate::Ends => merge.end_node(index, count, vec![]),
            Fate::EndsWithGap => merge.end_node(
                index,
                count,
                vec![ReplicaGap::volume_gap(
                    &node(index),
                    VolumeName::new("v9"),
                    &"gone",
                )],
            ),
            Fate::Miscounts => merge.end_node(index, count + 1, vec![]),
            Fate::BreaksOff => merge.fail_node(index, &"connection reset"),
            Fate::Repeats => {
                let again = self.names.first().copied().unwrap_or("a");
                let message = [
                    Ok::<_, &str>(listed(index, again, "v1")),
                    Ok(listed(index, again, "v1")),
                ];
                merge.feed_entries(index, message);
            }
            Fate::SendsNothing => {
                merge.feed_entries(index, [] as [Result<ListedFile<Entry>, &str>; 0]);
            }
            Fate::SendsGarbage => merge.feed_entries(index, [Err("field `name` is missing")]),
        }
    }
}

fn scripts() -> Vec<Script> {
    let mut scripts = Vec::new();
    for bits in 0..8 {
        let names: Vec<&str> = ["a", "b", "c"]
            .into_iter()
            .enumerate()
            .filter(|(i, _)| bits & (1 << i) != 0)
            .map(|(_, n)| n)
            .collect();
        for size in 1..=names.len().max(1) {
            for fate in FATES {
                scripts.push(Script {
                    names: names.clone(),
                    size,
                    fate,
                    sent: 0,
                });
            }
        }
    }
    scripts
}

/// Runs the merge as the door does. `last_first` feeds the hungry ones in the other order.
fn run(mut scripts: Vec<Script>, last_first: bool) -> (Vec<Entry>, Vec<ReplicaGap>) {
    let mut merge = Merge::new((0..scripts.len()).map(node), None, vec![]);
    let mut out = Vec::new();
    for _ in 0..100 {
        while let Some(entry) = merge.pull_entry() {
            out.push(entry);
        }
        let hungry = merge.hungry_nodes();
        let next = if last_first {
            hungry.last()
        } else {
            hungry.first()
        };
        let Some(&index) = next else {
            assert!(merge.is_finished());
            assert_eq!(merge.count_entries(), u64::try_from(out.len()).unwrap());
            return (out, merge.gaps().to_vec());
        };
        assert!(!merge.is_finished());
        scripts[index].step(&mut merge, index);
    }
    panic!("it does not end: {scripts:?}");
}

fn expect(scripts: &[Script], out: &[Entry], gaps: &[ReplicaGap]) {
    let mut sent: Vec<Entry> = Vec::new();
    for (index, script) in scripts.iter().enumerate() {
        sent.extend(script.names.iter().map(|name| (index, *name)));
        if script.fate == Fate::Repeats && script.names.is_empty() {
            sent.push((index, "a"));
        }
        let theirs: Vec<&ReplicaGap> = gaps
            .iter()
            .filter(|gap| gap.node == Some(node(index)))
            .collect();
        match script.fate {
            Fate::Ends => assert!(theirs.is_empty(), "{scripts:?}"),
            Fate::EndsWithGap => {
                assert_eq!(
                    theirs[0].volume,
                    Some(VolumeName::Id(volume("v9"))),
                    "{scripts:?}"
                );
            }
            Fate::Miscounts
            | Fate::BreaksOff
            | Fate::Repeats
            | Fate::SendsNothing
            | Fate::SendsGarbage => {
                assert_eq!((theirs.len(), &theirs[0].volume), (1, &None), "{scripts:?}");
            }
        }
    }
    sent.sort_by_key(|(index, name)| (*name, *index));
    assert_eq!(out, sent, "{scripts:?}");
}

/// Fails if an entry that was sent in order is lost, doubled or out of order, or a node that errs is no gap. Tries
/// every pair of nodes with up to three files, every size of message and every way to go wrong.
#[test]
fn two_nodes_in_every_way() {
    let all = scripts();
    for x in &all {
        for y in &all {
            let pair = vec![x.clone(), y.clone()];
            for last_first in [false, true] {
                let (out, gaps) = run(pair.clone(), last_first);
                expect(&pair, &out, &gaps);
            }
        }
    }
}

/// Fails if merging is right for two nodes only: of three, one is skipped, or its end or failure disturbs the two that
/// still send.
#[test]
fn three_nodes_in_many_ways() {
    let all: Vec<Script> = scripts()
        .into_iter()
        .filter(|script| script.names.len() != 1)
        .collect();
    for x in all.iter().step_by(2) {
        for y in all.iter().step_by(3) {
            for z in all.iter().step_by(5) {
                let three = vec![x.clone(), y.clone(), z.clone()];
                let (out, gaps) = run(three.clone(), false);
                expect(&three, &out, &gaps);
            }
        }
    }
}

fn fed(entries: Vec<ListedFile<Entry>>, after: Option<&str>) -> (usize, Vec<String>) {
    let after = after.map(|name| FileName::new(name).unwrap());
    let mut merge = Merge::new([node(0)], after, vec![]);
    let count = u64::try_from(entries.len()).unwrap();
    merge.feed_entries(0, entries.into_iter().map(Ok::<_, &str>));
    merge.end_node(0, count, vec![]);
    let out = std::iter::from_fn(|| merge.pull_entry()).count();
    (
        out,
        merge.gaps().iter().map(ReplicaGap::to_string).collect(),
    )
}

/// Fails if two copies on volumes of one node count as disorder, or an entry that comes twice, out of order or from
/// before the beginning of the listing is passed on.
#[test]
fn order_is_by_name_then_volume_each_once() {
    let good = vec![
        listed(0, "B", "v1"),
        listed(0, "a", "v1"),
        listed(0, "a", "v2"),
        listed(0, "ä", "v1"),
    ];
    assert_eq!(fed(good, None), (4, vec![]));
    let swapped = vec![listed(0, "a", "v2"), listed(0, "a", "v1")];
    assert_eq!(
        fed(swapped, None),
        (
            1,
            vec!["node x: its listing is out of order at a (it listed up to a)".to_owned()]
        )
    );
    assert_eq!(
        fed(vec![listed(0, "a", "v1"), listed(0, "a", "v1")], None).0,
        1,
        "twice the same"
    );
    assert_eq!(
        fed(
            vec![
                listed(0, "b", "v1"),
                listed(0, "a", "v1"),
                listed(0, "c", "v1")
            ],
            None
        )
        .0,
        1
    );
    assert_eq!(fed(vec![listed(0, "b", "v1")], Some("a")), (1, vec![]));
    assert_eq!(
        fed(vec![listed(0, "b", "v1")], Some("b")),
        (
            0,
            vec!["node x: its listing is out of order at b".to_owned()]
        )
    );
}

/// Fails if a node adds entries or gaps after its end or failure, or a message from a node that does not exist panics.
#[test]
fn messages_after_the_end_are_ignored() {
    let mut merge = Merge::new([node(0), node(1)], None, vec![ReplicaGap::unknown_nodes()]);
    merge.end_node(0, 0, vec![]);
    merge.feed_entries(0, [Ok::<_, &str>(listed(0, "a", "v1"))]);
    merge.end_node(0, 7, vec![]);
    merge.fail_node(0, &"late");
    merge.feed_entries(5, [Err("no such node")]);
    merge.fail_node(1, &"broken");
    merge.feed_entries(1, [Ok::<_, &str>(listed(1, "a", "v1"))]);
    assert!(merge.pull_entry().is_none() && merge.is_finished());
    assert_eq!(
        merge.gaps(),
        [
            ReplicaGap::unknown_nodes(),
            ReplicaGap::node_gap(&node(1), &"broken")
        ]
    );
}

/// Fails if a node can fill the answer, and the memory of the monitor, with gaps of volumes.
#[test]
fn node_with_too_many_gaps_is_one_gap() {
    let gap = ReplicaGap::volume_gap(&node(0), VolumeName::new("v1"), &"gone");
    let mut merge: Merge<Entry> = Merge::new([node(0)], None, vec![]);
    merge.end_node(0, 0, vec![gap; MOST_GAPS + 1]);
    assert_eq!(
        merge.gaps(),
        [ReplicaGap::node_gap(
            &node(0),
            &"257 of its volumes could not be asked"
        )]
    );
}

/// Fails if the listing of a replica without nodes waits for a message, or has a gap.
#[test]
fn listing_without_nodes_is_at_its_end() {
    let mut merge: Merge<Entry> = Merge::new([], None, vec![]);
    assert!(merge.pull_entry().is_none() && merge.is_finished() && merge.gaps().is_empty());
}
