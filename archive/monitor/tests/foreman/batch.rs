//! One batch job over many nodes, good and bad.

mod caller;

use archive_model::NodeId;
use archive_rpc::Kind;
use proto_archive::batch_broken::broken_node;
use proto_archive::wire::batch_run_response::{Done, End, Progress, Step};
use proto_archive::wire::{BatchRunRequest, BatchRunResponse, BatchSpec, Gap, batch_run_request};
use testing::in_time;
use tokio::sync::mpsc;
use tonic::{Status, Streaming};

use crate::batch_node::{Act, BatchNode, begin, done, end, output, progress, whole};
use crate::world::{Caller, World, gaps};

pub(crate) fn spec() -> BatchSpec {
    BatchSpec {
        job: "file-list".to_owned(),
        replica: "one".to_owned(),
        time_ms: 60_000,
        file_time_ms: 60_000,
        memory: 1 << 20,
        output: 1 << 30,
        ..BatchSpec::default()
    }
}

fn component(bytes: &[u8]) -> BatchSpec {
    BatchSpec {
        job: String::new(),
        component: blake3::hash(bytes).as_bytes().to_vec().into(),
        component_size: u64::try_from(bytes.len()).expect("small"),
        ..spec()
    }
}

fn open(spec: BatchSpec) -> batch_run_request::Open {
    batch_run_request::Open {
        id: "j1".to_owned(),
        spec: Some(spec),
        after: String::new(),
        left_ms: 60_000,
        without: Vec::new(),
        present: Vec::new(),
        of_index: false,
    }
}

/// A job under way, and the hand that says more.
struct Run {
    says: mpsc::Sender<BatchRunRequest>,
    answers: Streaming<BatchRunResponse>,
}

/// What came of a job.
#[derive(Debug, Default)]
struct Ran {
    files: Vec<Done>,
    output: Vec<u8>,
    progress: Vec<Progress>,
    end: Option<End>,
}

impl Ran {
    /// `name@node`, in the order in which they came.
    fn names(&self) -> Vec<String> {
        let name = |done: &Done| format!("{}@{}", done.name, done.node);
        self.files.iter().map(name).collect()
    }

    fn gaps(&self) -> Vec<String> {
        gaps(&self.end.as_ref().expect("an end").gaps)
    }
}

impl Run {
    async fn begin(caller: &mut Caller, open: batch_run_request::Open) -> Self {
        let (says, said) = mpsc::channel(4);
        let requests = futures_util::stream::unfold(said, async |mut said| {
            let next = mpsc::Receiver::<BatchRunRequest>::recv(&mut said).await?;
            Some((next, said))
        });
        let run = Self::say(&says, batch_run_request::Step::Open(open));
        let (answers, ()) = tokio::join!(in_time(caller.client().run_batch(requests)), run);
        let answers = answers.expect("answers").into_inner();
        Self { says, answers }
    }

    async fn say(says: &mpsc::Sender<BatchRunRequest>, step: batch_run_request::Step) {
        let request = BatchRunRequest { step: Some(step) };
        says.send(request).await.expect("listened to");
    }

    async fn next(&mut self) -> Result<Step, Status> {
        let message = in_time(self.answers.message()).await?;
        Ok(message.expect("more").step.expect("a step"))
    }

    /// What comes to the end, or to the error.
    async fn rest(&mut self, ran: &mut Ran) -> Result<(), Status> {
        loop {
            match self.next().await? {
                Step::Output(bytes) => ran.output.extend_from_slice(&bytes),
                Step::Done(done) => ran.files.push(done),
                Step::Progress(progress) => ran.progress.push(progress),
                Step::End(end) => {
                    ran.end = Some(end);
                    let after = in_time(self.answers.message()).await;
                    assert_eq!(after.expect("no error"), None, "nothing after the end");
                    return Ok(());
                }
                Step::Want(_) => panic!("nobody wants a component"),
                Step::Begin(_) => panic!("a monitor does not say what is next"),
            }
        }
    }
}

async fn ran(caller: &mut Caller, open: batch_run_request::Open) -> (Ran, Result<(), Status>) {
    let mut ran = Ran::default();
    let mut run = Run::begin(caller, open).await;
    let ended = run.rest(&mut ran).await;
    (ran, ended)
}

fn acts<const N: usize>(parts: [Vec<Act>; N]) -> Vec<Act> {
    parts.into_iter().flatten().collect()
}

#[tokio::test]
async fn many_nodes_are_one_and_who_is_silent_is_a_gap() {
    let world = World::new();
    let monitor = world.monitor().await;
    let mut repository = world.repository(&monitor).await;
    let (empty, ended) = ran(&mut repository, open(spec())).await;
    ended.unwrap();
    assert!(empty.files.is_empty() && empty.gaps().is_empty());

    repository.state(&["a", "b", "c"]).await;
    let offline = Gap {
        volume: "v9".to_owned(),
        reason: "not mounted".to_owned(),
        ..Gap::default()
    };
    let a = acts([
        vec![progress("a", 0)],
        whole("a", "k1"),
        whole("a", "k4"),
        vec![end(2, vec![offline])],
    ]);
    let b = acts([
        whole("b", "k2"),
        whole("b", "k3"),
        whole("b", "k4"),
        vec![end(3, vec![])],
    ]);
    let a = BatchNode::start(&world, &monitor, "a", a).await;
    let _b = BatchNode::start(&world, &monitor, "b", b).await;
    let mut opened = open(spec());
    opened.after = "k".to_owned();
    let (ran_, ended) = ran(&mut repository, opened.clone()).await;
    ended.unwrap();
    assert_eq!(ran_.names(), ["k1@a", "k2@b", "k3@b", "k4@a"]);
    assert_eq!(ran_.output, b"k1k2k3k4");
    assert_eq!(ran_.progress.len(), 1);
    assert_eq!(ran_.end.as_ref().unwrap().files, 4);
    assert_eq!(
        ran_.gaps(),
        [
            "c/: not heard of since the monitor started",
            "a/v9: not mounted"
        ]
    );
    assert_eq!(
        *a.seen.open.lock().unwrap(),
        [opened],
        "not a field is lost"
    );
    let page = monitor.daemon.metrics.page().unwrap();
    assert!(
        page.contains("monitor_batch_files_total{replica=\"one\"} 4\n"),
        "{page}"
    );
    assert!(
        page.contains("monitor_batch_jobs{replica=\"one\"} 0\n"),
        "{page}"
    );
    monitor.stop().await;
}

#[tokio::test]
async fn what_comes_before_does_not_wait_for_what_is_computed() {
    let world = World::new();
    let monitor = world.monitor().await;
    let mut repository = world.repository(&monitor).await;
    let slow = vec![begin("m"), Act::Compute];
    let _slow = BatchNode::start(&world, &monitor, "a", slow).await;
    let quick = acts([whole("b", "f"), whole("b", "g"), whole("b", "x")]);
    let _quick = BatchNode::start(&world, &monitor, "b", quick).await;
    let mut run = Run::begin(&mut repository, open(spec())).await;
    let (mut names, mut far) = (Vec::new(), 0);
    while names.len() < 2 || far < 2 {
        match run.next().await.unwrap() {
            Step::Done(done) => names.push(done.name),
            Step::Progress(_) => far += 1,
            Step::Output(_) => {}
            other @ (Step::Want(_) | Step::End(_) | Step::Begin(_)) => panic!("{other:?}"),
        }
    }
    assert_eq!(names, ["f", "g"], "and not x");
}

#[tokio::test]
async fn whoever_breaks_off_is_named_after_all_that_lies_before() {
    let world = World::new();
    for (last, kind, says) in [
        (None, Kind::Unavailable, "broke off"),
        (Some(Act::Fail(Status::aborted("busy"))), Kind::Busy, "busy"),
        (
            Some(Act::Fail(Kind::TimedOut.status("too late"))),
            Kind::TimedOut,
            "too late",
        ),
        (
            Some(Act::Fail(Kind::NoSpace.status("too much"))),
            Kind::NoSpace,
            "too much",
        ),
        (
            Some(Act::Fail(Status::unknown("h2"))),
            Kind::Unavailable,
            "h2",
        ),
        (
            Some(Act::Fail(Status::unimplemented("what?"))),
            Kind::Mismatch,
            "what?",
        ),
        (
            Some(done("b", "q", 1)),
            Kind::Internal,
            "does not keep to the protocol",
        ),
    ] {
        let monitor = world.monitor().await;
        let mut repository = world.repository(&monitor).await;
        let a = acts([whole("a", "k1"), whole("a", "z"), vec![end(2, vec![])]]);
        let _a = BatchNode::start(&world, &monitor, "a", a).await;
        let b = acts([
            whole("b", "k2"),
            vec![begin("k3"), output(b"half")],
            last.into_iter().collect(),
        ]);
        let _b = BatchNode::start(&world, &monitor, "b", b).await;
        let (ran, ended) = ran(&mut repository, open(spec())).await;
        let status = ended.unwrap_err();
        assert_eq!(Kind::of(&status), kind, "{status}");
        assert!(status.message().starts_with("node b: "), "{status}");
        let named = broken_node(&status);
        assert_eq!(named.as_ref().map(NodeId::as_str), Some("b"));
        assert!(status.message().contains(says), "{status}");
        assert_eq!(ran.names(), ["k1@a", "k2@b"]);
        monitor.stop().await;
    }
}

#[tokio::test]
async fn who_cannot_be_called_is_named_and_left_out_when_that_is_asked() {
    let world = World::new();
    let monitor = world.monitor().await;
    let mut repository = world.repository(&monitor).await;
    repository.state(&["a", "b"]).await;
    let good = acts([whole("a", "k"), vec![end(1, vec![])]]);
    let good = BatchNode::start(&world, &monitor, "a", good).await;
    // Its heartbeat was there a moment ago, and nobody listens where it said.
    let dead = BatchNode::start(&world, &monitor, "b", Vec::new()).await;
    dead.kill().await;
    let (_, ended) = ran(&mut repository, open(spec())).await;
    let status = ended.unwrap_err();
    assert_eq!(
        broken_node(&status).as_ref().map(NodeId::as_str),
        Some("b"),
        "{status}"
    );
    let mut without = open(spec());
    without.without = vec!["b".to_owned(), "x".to_owned()];
    let (ran_, ended) = ran(&mut repository, without.clone()).await;
    ended.unwrap();
    assert_eq!(ran_.names(), ["k@a"]);
    assert_eq!(ran_.gaps(), ["b/: left out, as the repository asked"]);
    // It is between the repository and the monitor.
    let last = good.seen.open.lock().unwrap().pop().unwrap();
    assert!(last.without.is_empty());
    without.without = vec!["../x".to_owned()];
    let (_, ended) = ran(&mut repository, without).await;
    let status = ended.unwrap_err();
    assert_eq!(Kind::of(&status), Kind::Invalid, "{status}");
    assert!(status.message().contains("without"), "{status}");
    monitor.stop().await;
}

#[tokio::test]
async fn no_run_is_begun_without_a_node_that_was_alive_a_moment_ago() {
    let world = World::new();
    let monitor = world.monitor().await;
    let mut repository = world.repository(&monitor).await;
    repository.state(&["a", "b"]).await;
    let there = acts([whole("a", "k"), vec![end(1, vec![])]]);
    let there = BatchNode::start(&world, &monitor, "a", there).await;
    let mut of_both = open(spec());
    of_both.present = vec!["a".to_owned(), "b".to_owned()];
    let (nothing, ended) = ran(&mut repository, of_both.clone()).await;
    let status = ended.unwrap_err();
    assert_eq!(Kind::of(&status), Kind::Unavailable, "{status}");
    assert!(status.message().starts_with("node b was alive"), "{status}");
    assert_eq!(broken_node(&status), None, "it did not break");
    assert!(nothing.names().is_empty());
    assert!(there.seen.open.lock().unwrap().is_empty());

    // Who does not ask for it gets the gap, and once it is heard nothing is missing.
    let (some, ended) = ran(&mut repository, open(spec())).await;
    ended.unwrap();
    assert_eq!((some.names(), some.gaps().len()), (vec!["k@a".into()], 1));
    let late = acts([whole("b", "l"), vec![end(1, vec![])]]);
    let _late = BatchNode::start(&world, &monitor, "b", late).await;
    let (all, ended) = ran(&mut repository, of_both.clone()).await;
    ended.unwrap();
    assert_eq!(all.names(), ["k@a", "l@b"]);
    assert!(all.gaps().is_empty());
    // It is between the repository and the monitor.
    let last = there.seen.open.lock().unwrap().pop().unwrap();
    assert!(last.present.is_empty());
    of_both.present = vec!["../x".to_owned()];
    let (_, ended) = ran(&mut repository, of_both).await;
    let status = ended.unwrap_err();
    assert_eq!(Kind::of(&status), Kind::Invalid, "{status}");
    assert!(status.message().contains("present"), "{status}");
    monitor.stop().await;
}

#[tokio::test]
async fn a_node_that_is_killed_or_silent_is_unavailable() {
    let world = World::new();
    let monitor = world.impatient_monitor().await;
    let mut repository = world.repository(&monitor).await;
    let dies = acts([whole("a", "k"), vec![begin("l"), Act::Compute]]);
    let node = BatchNode::start(&world, &monitor, "a", dies).await;
    let mut run = Run::begin(&mut repository, open(spec())).await;
    while !matches!(run.next().await.unwrap(), Step::Done(_)) {}
    node.kill().await;
    let status = run.rest(&mut Ran::default()).await.unwrap_err();
    assert_eq!(Kind::of(&status), Kind::Unavailable, "{status}");
    assert!(status.message().starts_with("node a: "), "{status}");

    let stalls = acts([whole("a", "k"), vec![begin("l"), Act::Stall]]);
    let _node = BatchNode::start(&world, &monitor, "a", stalls).await;
    let (ran, ended) = ran(&mut repository, open(spec())).await;
    let status = ended.unwrap_err();
    assert_eq!(Kind::of(&status), Kind::Unavailable, "{status}");
    assert!(status.message().contains("said nothing for 2s"), "{status}");
    assert_eq!(ran.names(), ["k@a"]);
    monitor.stop().await;
}

#[tokio::test]
async fn a_liar_is_a_gap() {
    let world = World::new();
    let monitor = world.monitor().await;
    let mut repository = world.repository(&monitor).await;
    let good = acts([whole("a", "k"), vec![end(1, vec![])]]);
    let _good = BatchNode::start(&world, &monitor, "a", good).await;
    for (lies, reason) in [
        (vec![progress("x", 1)], "speaks for another node"),
        (vec![begin("../x")], "name"),
        (vec![Act::Want(0)], "component that there is not"),
        (vec![begin("m"), done("a", "m", 0)], "speaks for node a"),
        (whole("b", "z").split_off(1), "did not begin"),
        (vec![Act::Send(Step::Done(Done::default()))], "name"),
        (vec![end(3, vec![])], "says 3"),
    ] {
        let liar = BatchNode::start(&world, &monitor, "b", lies).await;
        let (ran, ended) = ran(&mut repository, open(spec())).await;
        ended.unwrap();
        assert_eq!((ran.names(), ran.gaps().len()), (vec!["k@a".to_owned()], 1));
        assert!(ran.gaps()[0].contains(reason), "{:?} {reason}", ran.gaps());
        liar.kill().await;
    }
    monitor.stop().await;
}
