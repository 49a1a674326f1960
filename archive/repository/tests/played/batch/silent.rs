//! Tests of monitors and nodes that are silent, or end every run: they are waited for, then left out and named.

use std::collections::VecDeque;

use archive_daemon::Period;
use proto_archive::wire::BatchSpec;
use proto_archive::wire::batch_output_request::What;
use proto_archive::wire::batch_status::State;
use tonic::Code;

use super::ends::fill;
use super::fixture::{BatchFixture, file_list, state};
use super::replica::RunEnd;

/// Fails if a job fails because its monitor is silent, or does not say that it waits for it.
#[tokio::test(flavor = "multi_thread")]
async fn silent_monitor_is_waited_for() {
    let fixture = BatchFixture::new().await;
    fill(&fixture.replica, &["a"]);
    fixture.replica.script().silent = true;
    let running = fixture.start().await;
    let mut anna = fixture.caller(&running, "researcher/anna");
    let nowhere = BatchSpec {
        replica: String::new(),
        ..file_list()
    };
    assert_eq!(
        anna.submit("any", nowhere).await.unwrap_err().code(),
        Code::Unavailable
    );
    anna.submit("waits", file_list()).await.unwrap();
    let status = anna
        .until("waits", |status| !status.reason.is_empty())
        .await;
    assert_eq!(state(&status), State::Queued);
    assert!(
        status.reason.contains("monitor of replica one is silent"),
        "{}",
        status.reason
    );
    fixture.replica.script().silent = false;
    assert_eq!(state(&anna.ended("waits").await), State::Done);
    fixture.end(running).await;
}

/// Fails if a job skips nodes that its monitor has not heard of yet, or waits for them without limit.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_unknown_to_the_monitor_are_waited_for() {
    let fixture = BatchFixture::new().await;
    fill(&fixture.replica, &["a"]);
    fixture.replica.script().unheard = 3;
    let running = fixture.start().await;
    let mut anna = fixture.caller(&running, "researcher/anna");
    // Other callers ask too: the nodes may be heard of before the job looks.
    anna.submit("waits", file_list()).await.unwrap();
    let status = anna.ended("waits").await;
    assert_eq!(state(&status), State::Done, "{status:?}");
    assert_eq!((status.files, fixture.replica.script().unheard), (1, 0));
    drop(anna);
    running.stop().await;

    // The job waits with a limit, and once only for a node that is not heard of.
    let mut fixture = fixture;
    fixture.settings.patience = Period::from_secs(5);
    fixture.replica.script().unheard = usize::MAX;
    let running = fixture.start().await;
    let mut anna = fixture.caller(&running, "researcher/anna");
    anna.submit("goes-on", file_list()).await.unwrap();
    let status = anna
        .until("goes-on", |status| !status.reason.is_empty())
        .await;
    assert_eq!(state(&status), State::Running);
    assert!(
        status.reason.contains("waiting for n-1"),
        "{}",
        status.reason
    );
    anna.ended_after_pauses(&fixture, "goes-on").await;
    fixture.end(running).await;
}

/// Fails if a node that sends nothing holds up a job.
#[tokio::test(flavor = "multi_thread")]
async fn node_that_stalls_ends_the_run() {
    let fixture = BatchFixture::new().await;
    fill(&fixture.replica, &["a", "b"]);
    let stalls = VecDeque::from([RunEnd::Hangs(4)]);
    let name = "stalls".to_owned();
    fixture.replica.script().cuts.insert(name, stalls);
    let running = fixture.start().await;
    let mut anna = fixture.caller(&running, "researcher/anna");
    anna.submit("stalls", file_list()).await.unwrap();
    let status = anna.ended_after_pauses(&fixture, "stalls").await;
    assert_eq!(state(&status), State::Done, "{status:?}");
    assert_eq!((status.files, status.restarts), (2, 1), "{status:?}");
    assert_eq!(anna.output("stalls", What::Result).await, b"a\nb\n");
    fixture.end(running).await;
}

/// Fails if a node that ends each run, or does not listen, keeps files of the others from being read.
#[tokio::test(flavor = "multi_thread")]
async fn node_ending_each_run_is_left_out() {
    let mut fixture = BatchFixture::new().await;
    fixture.settings.patience = Period::from_secs(1);
    fill(&fixture.replica, &["a", "b"]);
    fixture.replica.script().has_breaking_node = true;
    let running = fixture.start().await;
    let mut anna = fixture.caller(&running, "researcher/anna");
    for (id, says) in [
        ("without", "the catalog is damaged"),
        ("unreached", "127.0.0.1:1"),
    ] {
        if id == "unreached" {
            let nobody = "127.0.0.1:1".to_owned();
            fixture.change(|script| drop(script.endpoints.insert("n-3", nobody)));
        }
        anna.submit(id, file_list()).await.unwrap();
        let status = anna.ended_after_pauses(&fixture, id).await;
        assert_eq!(state(&status), State::Partial, "{status:?}");
        assert_eq!((status.files, status.unread, status.restarts), (2, 0, 5));
        assert_eq!(anna.output(id, What::Result).await, b"a\nb\n");
        assert_eq!(status.gaps.len(), 1, "{:?}", status.gaps);
        assert_eq!(status.gaps[0].node, "n-3");
        let said = &status.gaps[0].reason;
        assert!(said.contains(says), "{said}");
    }
    assert_eq!(
        fixture.replica.script().breaks,
        5,
        "it is not asked any more"
    );
    fixture.end(running).await;
}
