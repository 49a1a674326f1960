//! Batch jobs on a real node: their output, and that nothing of them is left.
#![expect(clippy::disallowed_methods, reason = "tests make and damage files")]

use std::num::NonZeroU16;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use archive_batch::{BatchJobError, File, Job, Plan, Reads, Reduce, Sink, Stop, StopControl};
use archive_bitarchive::Condition;
use archive_bitarchive::settings::NodeBatchSettings;
use archive_daemon::ByteSize;
use archive_model::{FileName, JobId, Mode, Program, Root};
use archive_rpc::CallErrorKind;
use proto_archive::convert as fields;
use proto_archive::wire::batch_run_request;
use proto_archive::wire::batch_run_response::{Done, End, Step};
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tools_testing::{PATIENCE, eventually, in_time};

use super::*;
use crate::early_end::EarlyEnd;
use crate::node_jobs::NodeJobsParts;
use crate::running::{RunOrder, RunStep, RunningJob};
use test_node::TestNode;

mod engine;
mod hostile;
mod reduce;
mod test_node;
mod unclean;

fn root(bytes: &[u8]) -> Root {
    Root::from_bytes(*blake3::hash(bytes).as_bytes())
}

fn field(status: &Status) -> String {
    assert_eq!(
        CallErrorKind::from_status(status),
        CallErrorKind::Invalid,
        "{status:?}"
    );
    status.message().split('`').nth(1).unwrap().to_owned()
}

/// A caller of a job, with both sides of its stream.
struct Caller {
    says: mpsc::Sender<Result<wire::BatchRunRequest, Status>>,
    answers: AnswerStream<wire::BatchRunResponse>,
}

impl Caller {
    fn new(node_jobs: &Arc<NodeJobs>) -> Self {
        Self::waited_for(node_jobs, Duration::from_mins(1))
    }

    /// Makes a caller that may be silent for `idle` while it owes a message.
    fn waited_for(node_jobs: &Arc<NodeJobs>, idle: Duration) -> Self {
        let (says, said) = mpsc::channel(4);
        let answers = run::run_files(node_jobs, idle, ReceiverStream::new(said));
        Self {
            says,
            answers: answers.into_inner(),
        }
    }

    async fn say(&self, step: batch_run_request::Step) {
        let request = wire::BatchRunRequest { step: Some(step) };
        self.says.send(Ok(request)).await.unwrap();
    }

    async fn next(&mut self) -> Result<Step, Status> {
        let answer = in_time(self.answers.next()).await.expect("an answer")?;
        Ok(answer.step.unwrap())
    }

    /// Collects all answers to the end or the error, and checks that each file is announced before its output.
    async fn rest(&mut self) -> (JobAnswers, Result<(), Status>) {
        let mut heard = JobAnswers::default();
        let mut begun = None;
        loop {
            match self.next().await {
                Ok(Step::Begin(next)) => {
                    assert!(heard.half.is_empty());
                    assert!(Some(&next.name) > begun.as_ref(), "in order");
                    begun = Some(next.name);
                }
                Ok(Step::Output(bytes)) => {
                    assert!(begun.is_some() && !bytes.is_empty() && bytes.len() <= 1 << 20);
                    heard.half.extend_from_slice(&bytes);
                }
                Ok(Step::Done(done)) => {
                    assert_eq!(Some(&done.name), begun.as_ref());
                    let output = std::mem::take(&mut heard.half);
                    assert_eq!(done.output, output.len() as u64);
                    heard.files.push((done, output));
                }
                Ok(Step::Progress(progress)) => {
                    assert_eq!(progress.node, "n1");
                    heard.progress += 1;
                }
                Ok(Step::End(end)) => {
                    assert_eq!(end.files, heard.files.len() as u64);
                    heard.end = Some(end);
                    assert!(in_time(self.answers.next()).await.is_none());
                    return (heard, Ok(()));
                }
                Ok(Step::Want(_)) => panic!("it wants no component"),
                Err(status) => return (heard, Err(status)),
            }
        }
    }
}

#[derive(Debug, Default)]
struct JobAnswers {
    files: Vec<(Done, Vec<u8>)>,
    half: Vec<u8>,
    progress: usize,
    end: Option<End>,
}

impl JobAnswers {
    fn names(&self) -> Vec<&str> {
        self.files.iter().map(|(done, _)| &*done.name).collect()
    }

    /// Returns name, kind and offset of the first failure of each file that has one.
    fn failures(&self) -> Vec<(&str, &str, Option<u64>)> {
        let failed = |(done, _): &'_ (Done, Vec<u8>)| !done.failures.is_empty();
        self.files
            .iter()
            .filter(|file| failed(file))
            .map(|(done, _)| {
                let failure = &done.failures[0];
                let kind = fields::failure_kind("kind", failure.kind).unwrap();
                (&*done.name, kind.as_str(), failure.offset)
            })
            .collect()
    }

    fn gaps(&self) -> &[wire::Gap] {
        &self.end.as_ref().unwrap().gaps
    }
}

fn open() -> batch_run_request::Open {
    batch_run_request::Open {
        id: "j1".to_owned(),
        spec: Some(wire::BatchSpec {
            job: "file-list".to_owned(),
            replica: "one".to_owned(),
            time_ms: 60_000,
            file_time_ms: 60_000,
            memory: 1 << 20,
            output: 1 << 30,
            ..wire::BatchSpec::default()
        }),
        left_ms: 60_000,
        ..batch_run_request::Open::default()
    }
}

async fn run_to_end(
    fixture: &TestNode,
    open: batch_run_request::Open,
) -> (JobAnswers, Result<(), Status>) {
    let mut caller = Caller::new(&fixture.node_jobs);
    caller.say(batch_run_request::Step::Open(open)).await;
    caller.rest().await
}

/// Fails if a file of the selection is left out, comes twice or out of order, or an absent volume is passed over.
#[tokio::test(flavor = "multi_thread")]
async fn files_come_in_order_with_gaps_and_losses() {
    let fixture = TestNode::new();
    for number in 0..40 {
        // Half of them on each volume.
        if number % 20 == 0 {
            let [opens, closes] = if number == 0 {
                ["v1", "v2"]
            } else {
                ["v2", "v1"]
            };
            fixture.set_mode(opens, Mode::ReadWrite);
            fixture.set_mode(closes, Mode::ReadOnly);
        }
        fixture.store(&format!("f{number:02}"), &[7; 100]);
    }
    fixture.store("other", b"x");
    let (all, ended) = run_to_end(&fixture, open()).await;
    ended.unwrap();
    let names: Vec<String> = (0..40).map(|number| format!("f{number:02}")).collect();
    let mut expected: Vec<&str> = names.iter().map(String::as_str).collect();
    expected.push("other");
    assert_eq!(all.names(), expected);
    assert!(all.files.iter().all(|(done, output)| {
        *output == format!("{}\n", done.name).into_bytes()
            && done.node == "n1"
            && (done.size == 100 || done.name == "other")
            && done.failures.is_empty()
    }));
    assert!(all.gaps().is_empty() && all.progress > 0);

    let mut some = open();
    some.after = "f05".to_owned();
    some.spec.as_mut().unwrap().files = "f.[5-6]|f39".to_owned();
    let (some, ended) = run_to_end(&fixture, some).await;
    ended.unwrap();
    assert_eq!(
        some.names(),
        ["f06", "f15", "f16", "f25", "f26", "f35", "f36", "f39"]
    );
    // Files that are listed by name: those that are here are read, and the others are not mentioned.
    let mut listed = open();
    listed.after = "f05".to_owned();
    let list = ["a", "f05", "f06", "f07x", "f39", "other", "zzz"];
    listed.spec.as_mut().unwrap().names = list.map(str::to_owned).to_vec();
    let (listed, ended) = run_to_end(&fixture, listed).await;
    ended.unwrap();
    assert_eq!(listed.names(), ["f06", "f39", "other"]);
    assert!(listed.gaps().is_empty());
    let none = batch_run_request::Open {
        after: "z".to_owned(),
        ..open()
    };
    let (none, ended) = run_to_end(&fixture, none).await;
    ended.unwrap();
    assert!(none.names().is_empty());

    // One volume is away: its files are left out, and the volume is named.
    let on = |volume: &str| -> Vec<String> {
        let on_it = |name: &&String| {
            let name = FileName::new(name).unwrap();
            fixture.node.files.find_copies(&name).unwrap()[0]
                .volume
                .as_str()
                == volume
        };
        names.iter().filter(on_it).cloned().collect()
    };
    let stays = on("v1");
    let goes = on("v2");
    assert!(!stays.is_empty() && !goes.is_empty());
    std::fs::rename(fixture.path("two"), fixture.path("away")).unwrap();
    fixture
        .node
        .disks
        .refresh_volumes(fixture.clock.now())
        .unwrap();
    let only_f = || {
        let mut only = open();
        only.spec.as_mut().unwrap().files = "f..".to_owned();
        only
    };
    let (half, ended) = run_to_end(&fixture, only_f()).await;
    ended.unwrap();
    assert_eq!(
        half.names(),
        stays.iter().map(String::as_str).collect::<Vec<_>>()
    );
    assert_eq!(half.gaps().len(), 1);
    assert_eq!(
        (&*half.gaps()[0].volume, &*half.gaps()[0].node),
        ("v2", "n1")
    );

    // Out of service for good: they are missing, and said to be.
    fixture.retire("v2");
    let (all, ended) = run_to_end(&fixture, only_f()).await;
    ended.unwrap();
    assert_eq!(all.names(), expected[..40]);
    let missing: Vec<&str> = all.failures().iter().map(|(name, _, _)| *name).collect();
    assert_eq!(missing, goes.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(all.failures().iter().all(|(_, kind, _)| *kind == "unread"));
    assert!(all.gaps().is_empty());
}
