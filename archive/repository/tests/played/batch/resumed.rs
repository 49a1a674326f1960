//! Tests of resumed jobs: after any failure at any place, the results are those of an undisturbed run, byte by byte.

use std::collections::VecDeque;
use std::io::Write;

use proto_archive::wire::batch_output_request::What;
use proto_archive::wire::batch_status::State;
use tools_testing::{PATIENCE, eventually};

use super::fixture::{BatchFixture, file_list, state};
use super::replica::{PlayedReplica, RunEnd};

/// Fills a replica with seven files: most with output, one with a failure, one without output, and one that no node can
/// read completely.
fn fill(replica: &PlayedReplica) {
    let mut script = replica.script();
    for (at, name) in ["a", "b", "c", "d", "e", "f", "g"].into_iter().enumerate() {
        let output = if name == "d" {
            String::new()
        } else {
            format!("{name} {}\n", "x".repeat(at * 3))
        };
        script.files.insert(format!("{name}.warc"), output.into());
    }
    script.failing.insert("c.warc".to_owned());
    script.unread.insert("e.warc".to_owned());
}

/// Returns the number of messages of a complete run.
fn messages(replica: &PlayedReplica) -> usize {
    let script = replica.script();
    let of = |output: &Vec<u8>| output.len().div_ceil(5) + 3;
    script.files.values().map(of).sum::<usize>() + 1
}

async fn left(caller: &mut super::fixture::Caller, id: &str) -> (Vec<u8>, Vec<u8>, String) {
    let manifest = caller.manifest(id).await;
    (
        caller.output(id, What::Result).await,
        caller.output(id, What::Errors).await,
        manifest,
    )
}

/// Fails if a run that fails after any of its messages loses or repeats output.
#[tokio::test(flavor = "multi_thread")]
async fn run_cut_after_any_message_is_resumed() {
    let fixture = BatchFixture::new().await;
    fill(&fixture.replica);
    let count = messages(&fixture.replica);
    let running = fixture.start().await;
    let mut anna = fixture.caller(&running, "researcher/anna");
    anna.submit("whole", file_list()).await.unwrap();
    let whole = anna.ended("whole").await;
    assert_eq!(state(&whole), State::Partial, "{whole:?}");
    let expected = left(&mut anna, "whole").await;
    assert_eq!((whole.files, whole.failed, whole.unread), (6, 1, 1));
    assert_eq!(whole.result_bytes, expected.0.len() as u64);
    assert_eq!(expected.2.lines().count(), 6);
    assert!(count > 20, "{count}");
    let cut = |at: usize| match at % 2 {
        0 => RunEnd::Broken(at),
        _ => RunEnd::Ended(at),
    };
    for at in 0..count {
        let id = format!("cut-{at}");
        // Each run fails once more, later.
        let cuts = VecDeque::from([cut(at), cut(at / 2)]);
        fixture.replica.script().cuts.insert(id.clone(), cuts);
        anna.submit(&id, file_list()).await.unwrap();
    }
    for at in 0..count {
        let id = format!("cut-{at}");
        let status = anna.ended(&id).await;
        assert_eq!(state(&status), State::Partial, "{status:?}");
        assert!((1..=2).contains(&status.restarts), "{id}: {status:?}");
        assert_eq!(left(&mut anna, &id).await, expected, "{id}");
        assert_eq!(
            (status.files, status.unread, status.records, status.bytes),
            (whole.files, whole.unread, whole.records, whole.bytes)
        );
    }
    fixture.end(running).await;
}

/// Fails if a repository that stops after any message of a run loses or repeats output.
#[tokio::test(flavor = "multi_thread")]
async fn repository_stopped_after_any_message_resumes() {
    let fixture = BatchFixture::new().await;
    fill(&fixture.replica);
    let count = messages(&fixture.replica);
    let mut running = fixture.start().await;
    let mut anna = fixture.caller(&running, "researcher/anna");
    anna.submit("whole", file_list()).await.unwrap();
    anna.ended("whole").await;
    let expected = left(&mut anna, "whole").await;
    for at in (0..count).step_by(3) {
        let id = format!("stop-{at}");
        let cuts = VecDeque::from([RunEnd::Hangs(at), RunEnd::Hangs(4)]);
        fixture.replica.script().cuts.insert(id.clone(), cuts);
        anna.submit(&id, file_list()).await.unwrap();
        for runs in 1..=2 {
            eventually("another run", PATIENCE, async || {
                let all = fixture.replica.script().runs.clone();
                let own = all.iter().filter(|run| run.0 == id).count();
                if own < runs { Err(own) } else { Ok(()) }
            })
            .await;
            drop(anna);
            running.stop().await;
            // A kill leaves bytes behind the last checkpoint.
            for name in ["output", "errors.jsonl", "manifest.jsonl"] {
                let path = fixture.folder(&id).join(name);
                if path.try_exists().unwrap() {
                    let mut file = std::fs::OpenOptions::new()
                        .append(true)
                        .open(&path)
                        .unwrap();
                    file.write_all(b"{\"file\":\"half a li").unwrap();
                }
            }
            running = fixture.start().await;
            anna = fixture.caller(&running, "researcher/anna");
        }
        let status = anna.ended(&id).await;
        assert_eq!(state(&status), State::Partial, "{status:?}");
        assert_eq!((status.files, status.unread), (6, 1), "{status:?}");
        assert_eq!(left(&mut anna, &id).await, expected, "{id}");
    }
    // An ended job survives any restart, and its result can be read from any offset.
    let result = anna.output("whole", What::Result).await;
    for offset in 0..=result.len() {
        let from = anna.output_from("whole", What::Result, offset as u64).await;
        assert_eq!(from.unwrap(), result[offset..]);
    }
    let behind = result.len() as u64 + 1;
    let error = anna.output_from("whole", What::Result, behind).await;
    assert_eq!(error.unwrap_err().code(), tonic::Code::InvalidArgument);
    fixture.end(running).await;
}

/// Fails if a job resumes although files of it are lost, or a directory without a job stays.
#[tokio::test(flavor = "multi_thread")]
async fn lost_files_fail_job_and_orphans_go() {
    let fixture = BatchFixture::new().await;
    fill(&fixture.replica);
    for id in ["cut-output", "no-folder"] {
        let cuts = VecDeque::from([RunEnd::Hangs(12)]);
        fixture.replica.script().cuts.insert(id.to_owned(), cuts);
    }
    let running = fixture.start().await;
    let mut anna = fixture.caller(&running, "researcher/anna");
    for id in ["cut-output", "no-folder"] {
        anna.submit(id, file_list()).await.unwrap();
        anna.until(id, |status| status.files > 0).await;
    }
    drop(anna);
    running.stop().await;
    let output = fixture.folder("cut-output").join("output");
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(output)
        .unwrap();
    file.set_len(1).unwrap();
    std::fs::remove_dir_all(fixture.folder("no-folder")).unwrap();
    std::fs::create_dir(fixture.folder("of-nobody")).unwrap();
    std::fs::create_dir(fixture.folder("of-nobody").join("scratch")).unwrap();
    let running = fixture.start().await;
    let mut anna = fixture.caller(&running, "researcher/anna");
    for id in ["cut-output", "no-folder"] {
        let status = anna.ended(id).await;
        assert_eq!(state(&status), State::Failed);
        assert!(
            status.reason.contains("submit the job again"),
            "{}",
            status.reason
        );
    }
    assert!(!fixture.folder("of-nobody").try_exists().unwrap());
    fixture.end(running).await;
}
