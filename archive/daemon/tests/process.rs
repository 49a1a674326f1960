//! Properties that only a whole process shows: signals, exit codes, the panic hook. Runs `examples/daemon.rs`.
#![expect(clippy::expect_used, reason = "helpers of tests")]

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Output, Stdio};

use archive_daemon::telemetry::{self, InstallError, LogFilter, LogFormat};
use rustix::process::{Pid, Signal, kill_process};

/// Starts the example. The file is built by `cargo test` with the other examples.
fn daemon(behaviour: &str, set: &[&str]) -> Child {
    with_variable(
        "HOLDFAST__DAEMON__LOG_FORMAT",
        "json".as_ref(),
        behaviour,
        set,
    )
}

fn with_variable(name: &str, value: &OsStr, behaviour: &str, set: &[&str]) -> Child {
    let test = std::env::current_exe().expect("the path of this test");
    let built = test
        .parent()
        .and_then(|deps| deps.parent())
        .expect("a target directory");
    Command::new(built.join("examples/daemon"))
        .arg(behaviour)
        .args(set)
        .env(name, value)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the example; build it with `cargo build -p archive-daemon --examples`")
}

/// Waits until the worker prints that it works, so that the signals are taken over.
fn up(child: &mut Child) {
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("its output"))
        .read_line(&mut line)
        .expect("a line");
    assert_eq!(line, "beating\n");
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("a living child");
}

fn end(child: Child) -> (Output, String) {
    let output = child.wait_with_output().expect("its end");
    let text = String::from_utf8(output.stderr.clone()).expect("text");
    (output, text)
}

/// Fails if SIGTERM or SIGINT kills the process without a drain, or a drained process does not end with exit code 0.
#[test]
fn a_signal_drains_and_ends_well() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut child = daemon("good", &[]);
        up(&mut child);
        send(&child, signal);
        let (output, text) = end(child);
        assert_eq!(output.status.code(), Some(0), "{text}");
        assert!(
            text.lines().all(|line| line.starts_with('{')),
            "one JSON object a line: {text}"
        );
        assert!(text.contains(r#""message":"stopped""#), "{text}");
    }
}

/// Fails if a second signal has to wait until the drain is over.
#[test]
fn a_second_signal_ends_at_once() {
    let mut child = daemon("deaf", &["daemon.drain=1 h"]);
    up(&mut child);
    send(&child, Signal::TERM);
    let mut errors = BufReader::new(child.stderr.take().expect("its log"));
    let mut line = String::new();
    while !line.contains("stopping") {
        line.clear();
        assert_ne!(
            errors.read_line(&mut line).expect("a line"),
            0,
            "it ended too early"
        );
    }
    send(&child, Signal::INT);
    assert_eq!(end(child).0.status.code(), Some(130));
}

/// Fails if a process whose task did not stop ends with exit code 0, or the error does not name the task.
#[test]
fn task_that_does_not_drain_is_named() {
    let mut child = with_variable("HOLDFAST__DAEMON__DRAIN", "1 s".as_ref(), "deaf", &[]);
    up(&mut child);
    send(&child, Signal::TERM);
    let (output, text) = end(child);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text.ends_with("still running 1s after the stop: example/body\n"),
        "{text}"
    );
}

/// Fails if a panic in code that is spared ends the process, or is logged without its place.
#[test]
fn spared_panic_is_logged_and_ends_nothing() {
    let mut child = daemon("spared", &[]);
    up(&mut child);
    send(&child, Signal::TERM);
    let (output, text) = end(child);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(
        text.contains("one job ends because it panicked at"),
        "{text}"
    );
    assert!(text.contains("examples/daemon.rs:"), "{text}");
}

/// Fails if a process lives on after a panic, or the log lacks the place, the message or the task of the panic.
#[test]
fn a_panic_aborts_with_its_reason() {
    let (output, text) = end(daemon("panic", &[]));
    assert_eq!(
        output.status.signal(),
        Some(Signal::ABORT.as_raw()),
        "{text}"
    );
    assert!(text.contains("examples/daemon.rs:"), "{text}");
    assert!(
        text.contains("called `Option::unwrap()` on a `None` value in task `example/body`"),
        "{text}"
    );
}

/// Fails if a process lives on after one of its tasks failed, or ends without naming the task and the cause.
#[test]
fn a_task_that_fails_ends_the_process() {
    let (output, text) = end(daemon("fail", &[]));
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text.ends_with("task `example/body` failed: the disk is gone\n"),
        "{text}"
    );
}

/// Fails if the log names another address than that of the metrics, or a process starts without them where the port is
/// taken.
#[test]
fn metrics_are_served_where_the_log_says() {
    let mut child = daemon("good", &[]);
    let mut errors = BufReader::new(child.stderr.take().expect("its log"));
    let mut line = String::new();
    errors.read_line(&mut line).expect("a line");
    let (_, rest) = line.split_once("http://").expect("an address");
    let (address, _) = rest.split_once("/metrics").expect("the page");
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    let mut stream = TcpStream::connect(address).expect("a server");
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .expect("room");
    let mut page = String::new();
    stream.read_to_string(&mut page).expect("a page");
    assert!(
        page.starts_with("HTTP/1.1 200 OK") && page.ends_with("# EOF\n"),
        "{page}"
    );
    up(&mut child);

    let (output, text) = end(daemon("good", &[&format!("daemon.metrics={address}")]));
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text.contains(&format!(
            "daemon.metrics: cannot listen on {address}: Address already in use (os error 98); set another address"
        )),
        "{text}"
    );
    send(&child, Signal::TERM);
    assert_eq!(child.wait().expect("its end").code(), Some(0));
}

/// Fails if a process starts with a misspelt key, or its error does not name the override or variable that is wrong.
#[test]
fn settings_that_are_wrong_name_themselves() {
    let (output, text) = end(daemon("good", &["daemon.drane=1 s"]));
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        text,
        "--set daemon.drane=1 s: unknown key `daemon.drane`; did you mean `drain`?\n"
    );
    let (_, text) = end(daemon("good", &["daemon.log=inof"]));
    assert!(
        text.starts_with("--set daemon.log=inof: `daemon.log`: `inof` is no log filter"),
        "{text}"
    );
    let latin = OsStr::from_bytes(b"caf\xe9");
    let (_, text) = end(with_variable("HOLDFAST__BEHAVIOUR", latin, "good", &[]));
    assert_eq!(text, "environment HOLDFAST__BEHAVIOUR: not UTF-8\n");
}

/// Fails if a second log in one process takes the place of the first, or is ignored without an error.
#[test]
fn logging_is_installed_once() {
    let filter = LogFilter::default();
    telemetry::install_telemetry(&filter, LogFormat::Auto, None).expect("the first");
    let second = telemetry::install_telemetry(&filter, LogFormat::Json, None);
    assert!(matches!(second, Err(InstallError::Twice(_))));
}
