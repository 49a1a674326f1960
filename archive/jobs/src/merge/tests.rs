//! Tests of the merge against a model, and of every violation of the protocol.

use archive_model::{FailureKind, FileFailure, NamePattern, Root, VolumeId};
use tools_testing::Random;

use super::*;

fn name(name: &str) -> FileName {
    FileName::new(name).unwrap()
}

fn node(index: usize) -> NodeId {
    NodeId::new(&format!("n{index}")).unwrap()
}

/// Returns the selection of every file.
fn all_files() -> FileSelection {
    FileSelection::default()
}

fn silent() -> JobGap {
    JobGap::node_gap(&node(9), "silent".to_owned())
}

fn done(index: usize, file: &str, output: u64, failures: usize) -> Box<BatchFileOutcome> {
    let failure = FileFailure {
        kind: FailureKind::Unread,
        offset: None,
        reason: "x".to_owned(),
    };
    Box::new(BatchFileOutcome {
        name: name(file),
        node: node(index),
        volume: VolumeId::new("v1").unwrap(),
        root: Root::from_bytes([1; 32]),
        size: 7,
        records: 0,
        output,
        failures: vec![failure; failures],
        more_failures: 0,
    })
}

/// A message of a node.
#[derive(Clone, Debug)]
enum NodeMessage {
    Begin(&'static str),
    Output(Vec<u8>),
    Done(&'static str, u64, usize),
    End(u64),
    Fail,
}

fn feed(merge: &mut Merge<&'static str>, index: usize, say: NodeMessage) {
    match say {
        NodeMessage::Begin(file) => merge.begin_file(index, name(file)),
        NodeMessage::Output(bytes) => merge.push_output(index, bytes.into()),
        NodeMessage::Done(file, output, failures) => {
            merge.end_file(index, done(index, file, output, failures));
        }
        NodeMessage::End(files) => merge.end_replica(index, files, Vec::new()),
        NodeMessage::Fail => merge.fail_replica(index, "cut"),
    }
}

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// The copy of one file on one node.
#[derive(Clone, Debug)]
struct FileScript {
    pieces: Vec<Vec<u8>>,
    failures: usize,
    is_gone: bool,
}

/// Returns the messages of a node that has these files.
fn script(files: &[(usize, FileScript)]) -> Vec<NodeMessage> {
    let mut says = Vec::new();
    let mut count = 0;
    for (file, has) in files {
        says.push(NodeMessage::Begin(NAMES[*file]));
        if has.is_gone {
            continue;
        }
        count += 1;
        let bytes: usize = has.pieces.iter().map(Vec::len).sum();
        says.extend(has.pieces.iter().cloned().map(NodeMessage::Output));
        says.push(NodeMessage::Done(
            NAMES[*file],
            u64::try_from(bytes).unwrap(),
            has.failures,
        ));
    }
    says.push(NodeMessage::End(count));
    says
}

fn copies(dice: &mut Random) -> Vec<Vec<(usize, FileScript)>> {
    let nodes = 1 + dice.index(3);
    let mut copies = vec![Vec::new(); nodes];
    for (index, files) in copies.iter_mut().enumerate() {
        for (file, name) in NAMES.iter().enumerate() {
            if dice.index(3) == 0 {
                continue;
            }
            let pieces = (0..dice.index(3))
                .map(|piece| format!("{name}{index}{piece};").into_bytes())
                .collect();
            files.push((
                file,
                FileScript {
                    pieces,
                    failures: usize::from(dice.index(3) == 0),
                    is_gone: dice.index(6) == 0,
                },
            ));
        }
    }
    copies
}

/// Returns the node from which each file is taken, and its output.
fn expected(copies: &[Vec<(usize, FileScript)>]) -> Vec<(&'static str, usize, Vec<u8>)> {
    let mut all = Vec::new();
    for (file, name) in NAMES.iter().enumerate() {
        let having: Vec<(usize, &FileScript)> = copies
            .iter()
            .enumerate()
            .filter_map(|(index, files)| {
                let has = files.iter().find(|(other, _)| *other == file);
                has.map(|(_, has)| (index, has))
            })
            .filter(|(_, has)| !has.is_gone)
            .collect();
        let good = having
            .iter()
            .find(|(_, has)| !has.pieces.is_empty() || has.failures == 0);
        if let Some((index, has)) = good.or(having.first()) {
            all.push((*name, *index, has.pieces.concat()));
        }
    }
    all
}

/// The merged output: the files, and the output so far of the file that is not ended.
#[derive(Default)]
struct MergeOutput {
    files: Vec<(String, NodeId, Vec<u8>)>,
    half: Vec<u8>,
    broken: Option<(NodeId, SourceError<&'static str>)>,
}

impl MergeOutput {
    fn take(&mut self, merge: &mut Merge<&'static str>) {
        while self.broken.is_none()
            && let Some(out) = merge.pull_item()
        {
            match out {
                MergeItem::Output(bytes) => self.half.extend_from_slice(&bytes),
                MergeItem::Done(done) => {
                    let output = std::mem::take(&mut self.half);
                    assert_eq!(done.output, output.len() as u64);
                    self.files.push((done.name.to_string(), done.node, output));
                }
                MergeItem::Broken(node, why) => self.broken = Some((node, why)),
            }
        }
    }
}

fn files(expected: &[(&'static str, usize, Vec<u8>)]) -> Vec<(String, NodeId, Vec<u8>)> {
    let one = |(name, index, output): &(&str, usize, Vec<u8>)| {
        ((*name).to_owned(), node(*index), output.clone())
    };
    expected.iter().map(one).collect()
}

fn run(
    merge: &mut Merge<&'static str>,
    mut scripts: Vec<std::collections::VecDeque<NodeMessage>>,
    dice: &mut Random,
) -> MergeOutput {
    let mut taken = MergeOutput::default();
    loop {
        taken.take(merge);
        let hungry: Vec<usize> = merge.hungry_replicas().collect();
        if taken.broken.is_some() || hungry.is_empty() {
            return taken;
        }
        let index = hungry[dice.index(hungry.len())];
        match scripts[index].pop_front() {
            Some(say) => feed(merge, index, say),
            None => merge.fail_replica(index, "cut"),
        }
    }
}

/// Fails if the order in which messages arrive changes the output.
#[test]
fn files_come_once_and_in_order() {
    for seed in 0..20_000 {
        let mut dice = Random::new(seed);
        let copies = copies(&mut dice);
        let scripts = copies.iter().map(|files| script(files).into()).collect();
        let mut merge = Merge::new((0..copies.len()).map(node), None, all_files(), Vec::new());
        let taken = run(&mut merge, scripts, &mut dice);
        let expected = files(&expected(&copies));
        assert_eq!(taken.files, expected, "seed {seed}: {copies:?}");
        assert!(merge.is_finished() && taken.half.is_empty(), "seed {seed}");
        assert!(merge.gaps().is_empty() && taken.broken.is_none());
    }
}

/// Fails if files before the failure are lost, or files after it come out without those of the failed node.
#[test]
fn failed_node_ends_merge_at_its_file() {
    let mut halves = 0;
    for seed in 0..20_000 {
        let mut dice = Random::new(seed);
        let copies = copies(&mut dice);
        let mut scripts: Vec<std::collections::VecDeque<NodeMessage>> =
            copies.iter().map(|files| script(files).into()).collect();
        let broken = dice.index(copies.len());
        let at = dice.index(scripts[broken].len());
        let sent: Vec<NodeMessage> = scripts[broken].iter().take(at).cloned().collect();
        scripts[broken].truncate(at);
        scripts[broken].push_back(NodeMessage::Fail);
        let mut merge = Merge::new((0..copies.len()).map(node), None, all_files(), Vec::new());
        let taken = run(&mut merge, scripts, &mut dice);
        let all = files(&expected(&copies));
        let count = taken.files.len();
        assert_eq!(taken.files, all[..count], "seed {seed}: {copies:?}");
        if !taken.half.is_empty() {
            halves += 1;
            let next = &all[count];
            assert_eq!(next.1, node(broken), "seed {seed}");
            assert!(next.2.starts_with(&taken.half), "seed {seed}");
        }
        assert_eq!(
            taken.broken,
            Some((node(broken), SourceError::Failed("cut")))
        );
        // All files before the one that the node had begun are out.
        let begun = sent.iter().rev().find_map(|say| match say {
            NodeMessage::Begin(begun) => Some(*begun),
            _ => None,
        });
        if let (Some(begun), Some(NodeMessage::Begin(_) | NodeMessage::Output(_))) =
            (begun, sent.last())
        {
            let before = all.iter().filter(|(name, _, _)| **name < *begun).count();
            assert!(count >= before, "seed {seed}: {copies:?}");
        }
    }
    assert!(halves > 100, "{halves}");
}

/// Runs a merge of two nodes: the first sends `says`, the second is correct.
fn two(after: Option<&str>, says: Vec<NodeMessage>) -> (Merge<&'static str>, MergeOutput) {
    let good = vec![
        NodeMessage::Begin("c"),
        NodeMessage::Output(b"c".to_vec()),
        NodeMessage::Done("c", 1, 0),
        NodeMessage::End(1),
    ];
    let mut merge = Merge::new([node(0), node(1)], after.map(name), all_files(), Vec::new());
    let taken = run(
        &mut merge,
        vec![says.into(), good.into()],
        &mut Random::new(7),
    );
    (merge, taken)
}

/// Fails if a message that violates the protocol gets into the output, or ends the job though nothing of it was
/// emitted.
#[test]
fn protocol_violation_is_a_gap() {
    let big = vec![0; LARGEST_OUTPUT + 1];
    for (says, reason) in [
        (vec![NodeMessage::Output(b"x".to_vec())], "did not begin"),
        (vec![NodeMessage::Done("a", 0, 0)], "did not begin"),
        (
            vec![NodeMessage::Begin("a"), NodeMessage::Done("b", 0, 0)],
            "did not begin",
        ),
        (
            vec![NodeMessage::Begin("a"), NodeMessage::Done("a", 1, 0)],
            "reports 1",
        ),
        (
            vec![NodeMessage::Begin("a"), NodeMessage::Output(Vec::new())],
            "0 bytes",
        ),
        (
            vec![NodeMessage::Begin("a"), NodeMessage::Output(big)],
            "1048577 bytes",
        ),
        (
            vec![NodeMessage::Begin("b"), NodeMessage::Begin("a")],
            "out of order at a",
        ),
        (
            vec![NodeMessage::Begin("b"), NodeMessage::Begin("b")],
            "out of order at b",
        ),
        (vec![NodeMessage::End(1)], "reports 1"),
    ] {
        let (merge, taken) = two(None, says.clone());
        assert!(taken.broken.is_none() && merge.is_finished(), "{says:?}");
        assert_eq!(files(&[("c", 1, b"c".to_vec())]), taken.files, "{says:?}");
        let [gap] = merge.gaps() else {
            panic!("{:?}", merge.gaps())
        };
        assert_eq!(gap.node, node(0).as_str());
        assert!(gap.reason.contains(reason), "{gap:?} {reason}");
    }
    let (merge, taken) = two(Some("a"), vec![NodeMessage::Begin("a")]);
    assert!(taken.broken.is_none() && merge.gaps()[0].reason.contains("out of order"));

    let ended = vec![
        NodeMessage::Begin("a"),
        NodeMessage::Done("a", 0, 0),
        NodeMessage::Begin("a"),
    ];
    let (merge, taken) = two(None, ended);
    assert_eq!(taken.files.len(), 2);
    assert!(merge.gaps()[0].reason.contains("before a were read"));
}

/// Fails if files that the job is not about get into its output, as of a node that reads every file.
#[test]
fn node_that_reads_other_files_is_a_gap() {
    let selection = FileSelection::Pattern(NamePattern::parse("[bc]").unwrap());
    let mut merge: Merge<&str> = Merge::new([node(0)], None, selection, Vec::new());
    let says = vec![
        NodeMessage::Begin("b"),
        NodeMessage::Done("b", 0, 0),
        NodeMessage::Begin("d"),
        NodeMessage::Output(b"d".to_vec()),
    ];
    let taken = run(&mut merge, vec![says.into()], &mut Random::new(7));
    assert_eq!(taken.files, files(&[("b", 0, Vec::new())]));
    assert!(taken.broken.is_none() && merge.is_finished());
    let said = &merge.gaps()[0].reason;
    assert!(said.contains("d, which the job has not selected"), "{said}");
}

/// Fails if half a file passes for a whole one.
#[test]
fn protocol_violation_within_file_ends_merge() {
    let half = || vec![NodeMessage::Begin("a"), NodeMessage::Output(b"xx".to_vec())];
    for (say, reason) in [
        (NodeMessage::Begin("b"), "before it ended"),
        (NodeMessage::Done("a", 1, 0), "sent 2 bytes and reports 1"),
        (NodeMessage::End(0), "in the middle"),
        (NodeMessage::Output(Vec::new()), "0 bytes"),
    ] {
        let (_, taken) = two(None, half().into_iter().chain([say]).collect());
        let Some((liar, SourceError::Lied(why))) = taken.broken else {
            panic!("{:?}", taken.broken)
        };
        assert_eq!(liar, node(0));
        assert!(why.contains(reason), "{why}");
        assert!(taken.files.is_empty(), "nothing of it counts");
    }
}

/// Fails if a node reports for another one, or fills the memory with gaps.
#[test]
fn foreign_outcome_or_endless_gaps_are_violations() {
    let mut merge: Merge<&str> = Merge::new([node(0)], None, all_files(), Vec::new());
    merge.begin_file(0, name("a"));
    merge.end_file(0, done(1, "a", 0, 0));
    assert!(merge.pull_item().is_none() && merge.is_finished());
    assert!(merge.gaps()[0].reason.contains("reports for node n1"));

    let mut merge: Merge<&str> = Merge::new([node(0)], None, all_files(), vec![silent()]);
    merge.end_replica(0, 0, vec![JobGap::node_gap(&node(0), "x".to_owned()); 257]);
    assert_eq!(merge.gaps().len(), 2);
    assert!(merge.gaps()[1].reason.contains("257 gaps"));
}

/// Fails if memory grows with the output of nodes that wait for their turn.
#[test]
fn waiting_node_has_one_message_held() {
    let mut merge: Merge<&str> = Merge::new([node(0), node(1)], None, all_files(), Vec::new());
    merge.begin_file(0, name("a"));
    merge.begin_file(1, name("b"));
    merge.push_output(1, Bytes::from_static(b"x"));
    assert_eq!(merge.hungry_replicas().collect::<Vec<_>>(), [0]);
    assert!(merge.pull_item().is_none());
    merge.end_file(0, done(0, "a", 0, 0));
    assert!(matches!(merge.pull_item(), Some(MergeItem::Done(_))));
    assert!(merge.pull_item().is_none(), "its next may come before b");
    assert_eq!(merge.hungry_replicas().collect::<Vec<_>>(), [0]);
    merge.begin_file(0, name("c"));
    assert_eq!(
        merge.pull_item(),
        Some(MergeItem::Output(Bytes::from_static(b"x")))
    );
    assert_eq!(merge.hungry_replicas().collect::<Vec<_>>(), [0, 1]);
}

/// Fails if a job over a replica without nodes hangs, or forgets its gaps.
#[test]
fn merge_without_nodes_is_finished() {
    let merge: Merge<&str> = Merge::new([], None, all_files(), vec![silent()]);
    assert!(merge.is_finished() && merge.gaps().len() == 1);
}
