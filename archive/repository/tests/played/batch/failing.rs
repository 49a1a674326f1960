//! A test of these tests: one that fails says so at once.

use std::collections::VecDeque;
use std::sync::mpsc;

use proto_archive::wire::batch_status::State;
use tools_testing::PATIENCE;

use super::ends::fill;
use super::fixture::{BatchFixture, file_list, state};
use super::replica::RunEnd;

/// Fails while a job of a node that sends nothing is under way, and stops nothing.
async fn fail_while_a_job_hangs() {
    let fixture = BatchFixture::new().await;
    fill(&fixture.replica, &["a", "b"]);
    let hangs = VecDeque::from([RunEnd::Hangs(4)]);
    let name = "hangs".to_owned();
    fixture.replica.script().cuts.insert(name, hangs);
    let running = fixture.start().await;
    let mut anna = fixture.caller(&running, "researcher/anna");
    anna.submit("hangs", file_list()).await.unwrap();
    let is_running = |status: &_| state(status) == State::Running;
    let status = anna.until("hangs", is_running).await;
    assert_eq!(state(&status), State::Done, "this assertion shall fail");
}

/// Fails if a failed assertion is told only once the blocking code of a repository ends, which waits for the stop that
/// a failed test never gives.
#[test]
fn failed_assertion_ends_the_test_at_once() {
    let (end, ended) = mpsc::channel();
    std::thread::spawn(move || {
        let outcome = std::panic::catch_unwind(|| {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(fail_while_a_job_hangs());
        });
        end.send(outcome)
    });
    let outcome = ended.recv_timeout(PATIENCE);
    let failure = outcome.expect("the test ends").unwrap_err();
    let said = failure.downcast_ref::<String>().unwrap();
    assert!(said.contains("this assertion shall fail"), "{said}");
}
