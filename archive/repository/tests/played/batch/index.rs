//! Tests of jobs of the index: their class, and what the index may do to jobs of others.

use std::collections::{BTreeSet, VecDeque};

use proto_archive::wire::batch_output_request::What;
use proto_archive::wire::batch_status::State;
use proto_archive::wire::{BatchJobsRequest, BatchSpec};
use tonic::Code;

use super::ends::{fill, list};
use super::fixture::{BatchFixture, file_list, state};
use super::replica::RunEnd;

/// Fails if a job of the index waits for researchers' jobs, counts among them, or is refused because too many of them
/// wait; or if a job of a researcher gets into its class.
#[tokio::test(flavor = "multi_thread")]
async fn index_job_waits_for_no_researcher() {
    let mut fixture = BatchFixture::new().await;
    fixture.settings.running = 2;
    fixture.settings.waiting = 3;
    fill(&fixture.replica, &["a", "b"]);
    for long in ["long-1", "long-2"] {
        let hangs = VecDeque::from([RunEnd::Hangs(0)]);
        fixture.replica.script().cuts.insert(long.to_owned(), hangs);
    }
    let running = fixture.start().await;
    let mut anna = fixture.caller(&running, "researcher/anna");
    let mut bo = fixture.caller(&running, "researcher/bo");
    let mut index = fixture.caller(&running, "index/main");
    for long in ["long-1", "long-2"] {
        anna.submit(long, file_list()).await.unwrap();
        anna.until(long, |status| state(status) == State::Running)
            .await;
    }
    for (who, id) in [(&mut anna, "waits-1"), (&mut bo, "waits-2")] {
        who.submit(id, file_list()).await.unwrap();
    }
    bo.submit("waits-3", file_list()).await.unwrap();
    let full = bo.submit("waits-4", file_list()).await.unwrap_err();
    assert_eq!(full.code(), Code::ResourceExhausted);

    for id in ["cdx-1", "cdx-2", "cdx-3"] {
        index.submit(id, file_list()).await.unwrap();
        let status = index.ended(id).await;
        assert_eq!(state(&status), State::Done, "{status:?}");
        assert_eq!(status.who, "index/main");
        assert_eq!(index.output(id, What::Result).await, b"a\nb\n");
    }
    for long in ["long-1", "long-2"] {
        assert_eq!(state(&anna.find(long).await.unwrap()), State::Running);
    }
    let waits = anna.find("waits-1").await.unwrap();
    assert_eq!(state(&waits), State::Queued, "no place of the index is its");
    let of_index = BTreeSet::from(["cdx-1", "cdx-2", "cdx-3"].map(str::to_owned));
    assert_eq!(fixture.replica.script().of_index, of_index);
    fixture.end(running).await;
}

/// Fails if jobs of the index have no limit, so that a faulty program takes the whole machine.
#[tokio::test(flavor = "multi_thread")]
async fn class_of_index_has_two_places() {
    let fixture = BatchFixture::new().await;
    for id in ["cdx-1", "cdx-2"] {
        let hangs = VecDeque::from([RunEnd::Hangs(0)]);
        fixture.replica.script().cuts.insert(id.to_owned(), hangs);
    }
    let running = fixture.start().await;
    let mut index = fixture.caller(&running, "index/main");
    for id in ["cdx-1", "cdx-2"] {
        index.submit(id, file_list()).await.unwrap();
        index
            .until(id, |status| state(status) == State::Running)
            .await;
    }
    index.submit("cdx-3", file_list()).await.unwrap();
    let mut anna = fixture.caller(&running, "researcher/anna");
    anna.submit("beside", file_list()).await.unwrap();
    assert_eq!(state(&anna.ended("beside").await), State::Done);
    assert_eq!(state(&index.find("cdx-3").await.unwrap()), State::Queued);
    index.cancel("cdx-1").await.unwrap();
    assert_eq!(state(&index.ended("cdx-3").await), State::Done);
    fixture.end(running).await;
}

/// Fails if the index reads or ends jobs of others, or runs components.
#[tokio::test(flavor = "multi_thread")]
async fn index_has_power_over_its_own_jobs_only() {
    let fixture = BatchFixture::new().await;
    fill(&fixture.replica, &["a"]);
    let hangs = VecDeque::from([RunEnd::Hangs(0)]);
    fixture
        .replica
        .script()
        .cuts
        .insert("long".to_owned(), hangs);
    let running = fixture.start().await;
    let mut anna = fixture.caller(&running, "researcher/anna");
    let mut index = fixture.caller(&running, "index/main");
    anna.submit("study", file_list()).await.unwrap();
    anna.ended("study").await;
    anna.submit("long", file_list()).await.unwrap();
    let jobs = index.0.batch_jobs(BatchJobsRequest {}).await.unwrap();
    let jobs = jobs.into_inner().jobs;
    assert!(jobs.iter().any(|job| job.name == "extract-cdx"));

    let refused = index.cancel("long").await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
    let read = index.output_from("study", What::Result, 0).await;
    let refused = read.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
    let bytes = b"\0asm";
    let component = BatchSpec {
        job: String::new(),
        component: blake3::hash(bytes).as_bytes().to_vec().into(),
        component_size: bytes.len() as u64,
        ..file_list()
    };
    let submitted = index.submit_with("own", component, bytes).await;
    let refused = submitted.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
    assert!(!fixture.folder("own").try_exists().unwrap());
    // The index learns nothing else about an id that is taken.
    let taken = index.submit("study", file_list()).await.unwrap_err();
    assert_eq!(taken.code(), Code::AlreadyExists, "{taken}");

    index.submit("cdx", file_list()).await.unwrap();
    index.ended("cdx").await;
    assert_eq!(list(&mut index, true, false).await, ["cdx"]);
    assert_eq!(list(&mut index, false, true).await, ["long"]);
    assert_eq!(anna.output("cdx", What::Result).await, b"a\n");
    let refused = anna.cancel("cdx").await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
    let mut operator = fixture.caller(&running, "operator/otto");
    operator.cancel("long").await.unwrap();
    let ended = anna.ended("long").await;
    assert_eq!(state(&ended), State::Cancelled);
    fixture.end(running).await;
}
