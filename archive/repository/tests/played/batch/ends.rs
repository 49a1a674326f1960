//! Tests of the ends of jobs: partial, cancelled, refused, and without a node that violates the protocol.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use archive_daemon::{ByteSize, Period};
use proto_archive::wire::batch_output_request::What;
use proto_archive::wire::batch_run_response::{End, Step, Want};
use proto_archive::wire::batch_status::State;
use proto_archive::wire::{BatchListRequest, BatchSpec, BatchStatus};
use tonic::Code;
use tools_testing::{PATIENCE, eventually};

use super::fixture::{BatchFixture, Caller, file_list, state};
use super::replica::{Lie, PlayedReplica, RunEnd};

pub(super) fn fill(replica: &PlayedReplica, names: &[&str]) {
    let mut script = replica.script();
    for name in names {
        let line = format!("{name}\n");
        script.files.insert((*name).to_owned(), line.into());
    }
}

pub(super) async fn list(caller: &mut Caller, own: bool, open: bool) -> Vec<String> {
    let asked = caller.0.batch_list(BatchListRequest { own, open }).await;
    let mut stream = asked.unwrap().into_inner();
    let mut ids = Vec::new();
    while let Some(BatchStatus { id, .. }) = stream.message().await.unwrap() {
        ids.push(id);
    }
    ids
}

/// Fails if a job hides files that no node has read, or its result lacks those of the others.
#[tokio::test(flavor = "multi_thread")]
async fn unread_files_are_named_with_the_result() {
    let fixture = BatchFixture::new().await;
    fill(&fixture.replica, &["b.warc", "d.warc"]);
    fixture.store(&["a.warc", "b.warc", "c.txt", "d.warc", "e.warc"]);
    let running = fixture.start().await;
    let mut anna = fixture.caller(&running, "researcher/anna");
    let spec = BatchSpec {
        files: r".*\.warc".to_owned(),
        ..file_list()
    };
    anna.submit("unread", spec.clone()).await.unwrap();
    let status = anna.ended("unread").await;
    assert_eq!((state(&status), status.unread), (State::Partial, 2));
    assert_eq!(
        anna.output("unread", What::Result).await,
        b"b.warc\nd.warc\n"
    );
    let errors = String::from_utf8(anna.output("unread", What::Errors).await).unwrap();
    let expected = |name: &str| {
        format!(
            "{{\"file\":\"{name}\",\"node\":\"n-2\",\"offset\":null,\"kind\":\"unread\",\"reason\":\"the replica is known \
             to have it, and no node has read it\"}}\n"
        )
    };
    assert_eq!(errors, expected("a.warc") + &expected("e.warc"));
    fixture.change(|script| script.has_silent_node = true);
    let only = BatchSpec {
        files: "b.warc|d.warc".to_owned(),
        ..file_list()
    };
    anna.submit("gap", only).await.unwrap();
    let status = anna.ended("gap").await;
    assert_eq!((state(&status), status.unread), (State::Partial, 0));
    assert_eq!(status.gaps.len(), 1);
    assert_eq!(status.gaps[0].node, "n-2");
    fixture.end(running).await;
}

/// Fails if a file that its node cannot read counts as read, leaves output, or is named twice.
#[tokio::test(flavor = "multi_thread")]
async fn unreadable_file_is_unread_and_named_once() {
    let fixture = BatchFixture::new().await;
    fill(&fixture.replica, &["a", "b", "c", "not-known"]);
    let unread = ["b", "not-known"].map(ToOwned::to_owned);
    fixture.replica.script().unread.extend(unread);
    fixture.store(&["a", "b", "c", "d"]);
    let running = fixture.start().await;
    let mut anna = fixture.caller(&running, "researcher/anna");
    anna.submit("unread", file_list()).await.unwrap();
    let status = anna.ended("unread").await;
    assert_eq!(state(&status), State::Partial);
    let counted = (status.files, status.failed, status.unread);
    assert_eq!(counted, (2, 0, 3), "{status:?}");
    assert_eq!((status.records, status.bytes), (4, 200));
    assert_eq!(anna.output("unread", What::Result).await, b"a\nc\n");
    let manifest = anna.manifest("unread").await;
    let read: Vec<&str> = manifest.split("\"file\":").skip(1).collect();
    assert_eq!(read.len(), 2, "{manifest}");
    assert!(read[0].starts_with("\"a\"") && read[1].starts_with("\"c\""));
    let errors = String::from_utf8(anna.output("unread", What::Errors).await).unwrap();
    let told = |name: &str, node: &str, reason: &str| {
        format!(
            "{{\"file\":\"{name}\",\"node\":\"{node}\",\"offset\":null,\"kind\":\"unread\",\"reason\":\"{reason}\"}}\n"
        )
    };
    let went = "its volume went away while it was read";
    let nobody = "the replica is known to have it, and no node has read it";
    let expected = [
        told("b", "n-1", went),
        told("not-known", "n-1", went),
        told("d", "n-2", nobody),
    ];
    assert_eq!(errors, expected.concat());
    fixture.end(running).await;
}

/// Fails if output of other bytes than the archive has passes for that of the file.
#[tokio::test(flavor = "multi_thread")]
async fn output_of_other_bytes_is_named() {
    let fixture = BatchFixture::new().await;
    fill(&fixture.replica, &["a", "b", "c"]);
    fixture.replica.script().failing.insert("c".to_owned());
    fixture.replica.script().lie = Some(|mut steps| {
        for step in &mut steps {
            if let Step::Done(done) = step
                && done.name != "a"
            {
                done.root = vec![9; 32].into();
            }
        }
        steps
    });
    fixture.store(&["a", "b", "c"]);
    let running = fixture.start().await;
    let mut anna = fixture.caller(&running, "researcher/anna");
    anna.submit("other", file_list()).await.unwrap();
    let status = anna.ended("other").await;
    assert_eq!(state(&status), State::Done, "{status:?}");
    let counted = (status.files, status.failed, status.unread);
    assert_eq!(counted, (3, 2, 0), "{status:?}");
    let errors = String::from_utf8(anna.output("other", What::Errors).await).unwrap();
    let lines: Vec<&str> = errors.lines().collect();
    assert_eq!(
        lines.len(),
        3,
        "one of the run, two of the archive: {errors}"
    );
    for (line, name) in [(lines[1], "b"), (lines[2], "c")] {
        let told =
            format!("{{\"file\":\"{name}\",\"node\":\"n-1\",\"offset\":null,\"kind\":\"damaged\"");
        assert!(line.starts_with(&told), "{line}");
        for said in ["09".repeat(32), "07".repeat(32)] {
            assert!(line.contains(&said), "{line}");
        }
        assert!(line.contains("holdfast check"), "{line}");
    }
    fixture.end(running).await;
}

/// Fails if a cancelled job runs on, or somebody cancels the job of another person.
#[tokio::test(flavor = "multi_thread")]
async fn owner_and_operators_cancel_job_at_once() {
    let mut fixture = BatchFixture::new().await;
    fixture.settings.running = 1;
    fill(&fixture.replica, &["a", "b", "c"]);
    for id in ["one", "two"] {
        let cuts = VecDeque::from([RunEnd::Hangs(4)]);
        fixture.replica.script().cuts.insert(id.to_owned(), cuts);
    }
    let running = fixture.start().await;
    let mut anna = fixture.caller(&running, "researcher/anna");
    let mut bo = fixture.caller(&running, "researcher/bo");
    let mut olga = fixture.caller(&running, "operator/olga");
    for id in ["one", "two", "three"] {
        anna.submit(id, file_list()).await.unwrap();
    }
    anna.until("one", |status| !status.nodes.is_empty()).await;
    assert_eq!(
        bo.cancel("one").await.unwrap_err().code(),
        Code::PermissionDenied
    );
    assert_eq!(bo.cancel("none").await.unwrap_err().code(), Code::NotFound);
    assert_eq!(
        anna.output_from("one", What::Result, 0)
            .await
            .unwrap_err()
            .code(),
        Code::Unavailable
    );
    let waiting = anna.cancel("three").await.unwrap();
    assert_eq!(state(&waiting), State::Cancelled);
    let begun = Instant::now();
    anna.cancel("one").await.unwrap();
    let cancelled = anna.ended("one").await;
    eventually("the next job runs", PATIENCE, async || {
        let runs = fixture.replica.script().runs.clone();
        if runs.iter().any(|run| run.0 == "two") {
            Ok(())
        } else {
            Err(runs)
        }
    })
    .await;
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(state(&cancelled), State::Cancelled);
    assert_eq!(cancelled.reason, "cancelled by researcher/anna");
    assert_eq!(anna.cancel("one").await.unwrap().ended, cancelled.ended);
    anna.until("two", |status| !status.nodes.is_empty()).await;
    olga.cancel("two").await.unwrap();
    let cancelled = olga.ended("two").await;
    assert_eq!(cancelled.reason, "cancelled by operator/olga");
    eventually("nothing runs", PATIENCE, async || {
        match fixture.replica.script().running {
            0 => Ok(()),
            running => Err(running),
        }
    })
    .await;
    assert!(
        begun.elapsed() < Duration::from_secs(40),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(list(&mut olga, false, false).await, ["three", "two", "one"]);
    assert_eq!(list(&mut olga, false, true).await, Vec::<String>::new());
    assert_eq!(list(&mut bo, true, false).await, Vec::<String>::new());
    let ids = olga.output_from("two", What::Result, 0).await;
    assert_eq!(ids.unwrap_err().code(), Code::PermissionDenied);
    fixture.end(running).await;
}

/// Fails if messages that violate the protocol get into the output, or their node is not named as a gap.
#[tokio::test(flavor = "multi_thread")]
async fn node_that_lies_is_a_gap() {
    let fixture = BatchFixture::new().await;
    fill(&fixture.replica, &["a", "b"]);
    let running = fixture.start().await;
    let mut anna = fixture.caller(&running, "researcher/anna");
    let lies: [(&str, Lie, &str, &[u8]); 6] = [
        (
            "order",
            |steps| [&steps[4..8], &steps[..4], &steps[8..]].concat(),
            "out of order at a",
            b"b\n",
        ),
        (
            "twice",
            |steps| [&steps[..4], &steps[..4]].concat(),
            "out of order at a",
            b"a\n",
        ),
        (
            "count",
            |mut steps| {
                if let Some(Step::End(end)) = steps.last_mut() {
                    end.files += 1;
                }
                steps
            },
            "ended 2 files and reports 3",
            b"a\nb\n",
        ),
        (
            "oversized",
            |mut steps| {
                steps[1] = Step::Output(vec![0; (1 << 20) + 1].into());
                steps
            },
            "1048577 bytes",
            b"",
        ),
        (
            "name",
            |mut steps| {
                if let Some(Step::Begin(begin)) = steps.get_mut(4) {
                    begin.name = "../x".to_owned();
                }
                steps
            },
            "name",
            b"a\n",
        ),
        ("want", |_steps| vec![Step::Want(Want {})], "component", b""),
    ];
    for (id, lie, said, output) in lies {
        fixture.replica.script().lie = Some(lie);
        anna.submit(id, file_list()).await.unwrap();
        let status = anna.ended(id).await;
        assert_eq!(state(&status), State::Partial, "{id}: {status:?}");
        let [gap] = &status.gaps[..] else {
            panic!("{id}: {:?}", status.gaps)
        };
        assert_eq!(gap.node, "n-1", "{id}");
        let is_told = gap.reason.contains("violates the protocol");
        assert!(is_told && gap.reason.contains(said), "{id}: {}", gap.reason);
        // Earlier messages count.
        assert_eq!(anna.output(id, What::Result).await, output, "{id}");
        assert_eq!(anna.manifest_or_nothing(id).await, output.len() / 2, "{id}");
    }
    fixture.end(running).await;
}

/// Fails if half a file of a node that violates the protocol stays in the output, or if the job does not resume behind
/// the last whole file.
#[tokio::test(flavor = "multi_thread")]
async fn lie_within_a_file_ends_the_run() {
    let fixture = BatchFixture::new().await;
    fill(&fixture.replica, &["a", "b"]);
    let running = fixture.start().await;
    let mut anna = fixture.caller(&running, "researcher/anna");
    let lies: [(&str, Lie, &str); 3] = [
        (
            "length",
            |mut steps| {
                for step in &mut steps {
                    if let Step::Done(done) = step
                        && done.name == "b"
                    {
                        done.output += 1;
                    }
                }
                steps
            },
            "sent 2 bytes and reports 3",
        ),
        (
            "other",
            |mut steps| {
                for step in &mut steps {
                    if let Step::Done(done) = step
                        && done.name == "b"
                    {
                        done.name = "c".to_owned();
                    }
                }
                steps
            },
            "which it did not begin",
        ),
        (
            "middle",
            |mut steps| {
                let begun = |step: &Step| matches!(step, Step::Begin(begin) if begin.name == "b");
                if let Some(at) = steps.iter().position(begun) {
                    steps.truncate(at + 2);
                    steps.push(Step::End(End::default()));
                }
                steps
            },
            "in the middle of a file",
        ),
    ];
    for (id, lie, said) in lies {
        fixture.replica.script().lie = Some(lie);
        anna.submit(id, file_list()).await.unwrap();
        let waits = anna.until(id, |status| status.reason.contains(said)).await;
        assert!(waits.reason.contains("node n-1"), "{id}: {}", waits.reason);
        fixture.replica.script().lie = None;
        let status = anna.ended_after_pauses(&fixture, id).await;
        assert_eq!(state(&status), State::Done, "{id}: {status:?}");
        assert!(status.restarts >= 1, "{id}: {status:?}");
        assert_eq!(anna.output(id, What::Result).await, b"a\nb\n", "{id}");
        assert_eq!(anna.manifest_or_nothing(id).await, 2, "{id}");
    }
    fixture.end(running).await;
}

/// Fails if a job exceeds one of its limits, or does not say which one ended it.
#[tokio::test(flavor = "multi_thread")]
async fn limits_end_a_job_with_the_reason() {
    let mut fixture = BatchFixture::new().await;
    fixture.settings.output = ByteSize::from_bytes(100);
    fixture.settings.space = Some(ByteSize::from_bytes(100_000));
    fill(&fixture.replica, &["a", "b"]);
    fixture
        .replica
        .script()
        .files
        .insert("c".to_owned(), vec![b'x'; 200]);
    fixture
        .replica
        .script()
        .cuts
        .insert("slow".to_owned(), VecDeque::from([RunEnd::Hangs(4)]));
    let running = fixture.start().await;
    let mut anna = fixture.caller(&running, "researcher/anna");
    anna.submit("much", file_list()).await.unwrap();
    let status = anna.ended("much").await;
    assert_eq!(state(&status), State::Failed);
    assert!(status.reason.contains("100 bytes"), "{}", status.reason);
    assert_eq!(anna.output("much", What::Result).await, b"a\nb\n");
    let more = BatchSpec {
        output: 101,
        ..file_list()
    };
    assert_eq!(
        anna.submit("more", more).await.unwrap_err().code(),
        Code::InvalidArgument
    );
    let slow = BatchSpec {
        time_ms: 5000,
        ..file_list()
    };
    anna.submit("slow", slow).await.unwrap();
    let status = anna.ended("slow").await;
    assert_eq!(state(&status), State::Failed);
    assert!(status.reason.contains("time limit"), "{}", status.reason);
    assert_eq!(anna.output("slow", What::Result).await, b"a\n");
    drop(anna);
    running.stop().await;
    // The limit of all jobs together, and how long they are kept.
    fixture.settings.output = ByteSize::from_bytes(1 << 30);
    fixture.settings.keep = Period::from_secs(0);
    fixture
        .replica
        .script()
        .files
        .insert("d".to_owned(), vec![b'x'; 200_000]);
    let running = fixture.start().await;
    let mut anna = fixture.caller(&running, "researcher/anna");
    anna.submit("all", file_list()).await.unwrap();
    let status = anna.ended("all").await;
    assert!(status.reason.contains("batch.space"), "{}", status.reason);
    drop(anna);
    running.stop().await;
    let running = fixture.start().await;
    eventually("its files are removed", PATIENCE, async || {
        !fixture.folder("all").try_exists().unwrap()
    })
    .await;
    let mut anna = fixture.caller(&running, "researcher/anna");
    assert_eq!(anna.find("all").await.unwrap_err().code(), Code::NotFound);
    fixture.end(running).await;
}
