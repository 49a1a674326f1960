//! Tests of tasks: each end of a task is seen and named, and everything stops together.

use std::io;

use super::*;
use crate::clock::ManualClock;

const SOON: Duration = Duration::from_secs(20);

/// Returns the end, which must come: a test that waits without end does not fail.
async fn joined(tasks: &Tasks) -> Result<(), TaskError> {
    let end = tokio::time::timeout(SOON * 2, tasks.join_tasks(SOON)).await;
    end.expect("an end in time")
}

/// A task that ends at the stop, as it should.
async fn until(stop: CancellationToken) -> io::Result<()> {
    stop.cancelled().await;
    Ok(())
}

/// Fails if a task that stops when asked, or one that may end by itself, counts as failed or holds up the end.
#[tokio::test]
async fn tasks_stop_when_asked() {
    let tasks = Tasks::new();
    tasks.spawn("one", until(tasks.stop_token()));
    tasks.spawn("two", until(tasks.stop_token()));
    tasks.spawn_once("three", async {});
    tasks.stop_all();
    joined(&tasks).await.unwrap();
}

/// Fails if a part that cancels its own token stops all other tasks.
#[tokio::test]
async fn a_child_token_stops_nobody_else() {
    let tasks = Tasks::new();
    tasks.stop_token().cancel();
    assert!(!tasks.stop_token().is_cancelled());
}

/// Fails if a task that should run on may end unnoticed, or the error does not name it.
#[tokio::test]
async fn task_that_ends_stops_all_and_is_named() {
    let tasks = Tasks::new();
    tasks.spawn("other", until(tasks.stop_token()));
    tasks
        .for_part("node")
        .spawn("scrub", async { io::Result::Ok(()) });
    let error = joined(&tasks).await.unwrap_err();
    assert_eq!(error.to_string(), "task `node/scrub` ended by itself");
}

/// Fails if a task fails and the others run on, or the error lacks the name of the task or its cause.
#[tokio::test]
async fn an_error_stops_all_and_is_named() {
    let tasks = Tasks::new();
    tasks.spawn("other", until(tasks.stop_token()));
    tasks.spawn_once("upload", async { Err(io::Error::other("disk on fire")) });
    let error = joined(&tasks).await.unwrap_err();
    assert_eq!(with_causes(&error), "task `upload` failed: disk on fire");
}

/// Fails if a part continues after what it cannot do without has failed.
#[tokio::test]
async fn watched_failure_stops_all_and_is_named() {
    let hand = ManualClock::new(jiff::Timestamp::UNIX_EPOCH);
    let tasks = Tasks::new();
    let (has_failed, seen) = tokio::sync::watch::channel(false);
    tasks.spawn_watch("catalog", hand.clock(), move || {
        let has_failed = *seen.borrow();
        has_failed.then(|| io::Error::other("it cannot be written"))
    });
    hand.wait_for_sleepers(1).await;
    has_failed.send_replace(true);
    hand.advance(WATCH);
    let error = joined(&tasks).await.unwrap_err();
    assert_eq!(
        with_causes(&error),
        "task `catalog` failed: it cannot be written"
    );
}

/// Fails if a task panics and the others run on, or the error lacks the name of the task or the message of the panic.
#[tokio::test]
async fn a_panic_stops_all_and_is_named() {
    let tasks = Tasks::new();
    tasks.spawn("other", until(tasks.stop_token()));
    tasks.spawn("bad", async {
        if SOON > Duration::ZERO {
            panic!("no {}", "luck")
        } else {
            io::Result::Ok(())
        }
    });
    let error = joined(&tasks).await.unwrap_err();
    assert_eq!(error.to_string(), "task `bad` panicked: no luck");
}

/// Fails if a runtime that is dropped, as after a failed assertion, waits without end for blocking code.
#[test]
fn dropped_runtime_stops_blocking_code() {
    for mut builder in [
        tokio::runtime::Builder::new_multi_thread(),
        tokio::runtime::Builder::new_current_thread(),
    ] {
        let runtime = builder.build().unwrap();
        let tasks = Tasks::new();
        let handle = runtime.handle().clone();
        let stop = tasks.stop_token();
        let (begun, begins) = std::sync::mpsc::channel();
        let (stopped, stops) = std::sync::mpsc::channel();
        let inside = runtime.enter();
        tasks.spawn_blocking("round", move || {
            begun.send(()).unwrap();
            handle.block_on(stop.cancelled());
            stopped.send(())
        });
        drop(inside);
        begins.recv_timeout(SOON).unwrap();
        // Does all that a drop does, and does not wait.
        runtime.shutdown_background();
        stops.recv_timeout(SOON).unwrap();
    }
}

/// Fails if an error of blocking code is lost, or the code does not know the name of its task.
#[tokio::test]
async fn blocking_code_is_supervised_too() {
    let tasks = Tasks::new();
    tasks.spawn_blocking("fine", || {
        assert_eq!(current_part().as_deref(), Some("fine"));
        io::Result::Ok(())
    });
    tasks
        .for_part("node")
        .for_part("disk")
        .spawn_blocking("walk", || Err::<(), _>(io::Error::other("gone")));
    let error = joined(&tasks).await.unwrap_err();
    assert_eq!(with_causes(&error), "task `node/disk/walk` failed: gone");
}

/// Fails if a task that fails after it was asked to stop counts as ended well.
#[tokio::test]
async fn an_error_while_stopping_is_not_lost() {
    let tasks = Tasks::new();
    let stop = tasks.stop_token();
    tasks.spawn("flush", async move {
        stop.cancelled().await;
        Err(io::Error::other("no space"))
    });
    tasks.stop_all();
    assert_eq!(
        with_causes(&joined(&tasks).await.unwrap_err()),
        "task `flush` failed: no space"
    );
}

/// Fails if a task that ignores the stop holds up the end or lives on, or the error names a task that stopped.
#[tokio::test]
async fn task_that_never_stops_is_aborted_and_named() {
    let tasks = Tasks::new();
    tasks.spawn("good", until(tasks.stop_token()));
    let (cut, mut seen) = tokio::sync::oneshot::channel::<()>();
    tasks.spawn("deaf", async move {
        let _cut = cut;
        std::future::pending::<io::Result<()>>().await
    });
    tasks.stop_all();
    let error = tasks
        .join_tasks(Duration::from_millis(50))
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "still running 50ms after the stop: deaf");
    assert!((&mut seen).await.is_err(), "the task was dropped");
}
