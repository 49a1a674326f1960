//! The notification command: run without a shell, with the message on its standard input and a minimal environment.
//!
//! A command that hangs is killed with everything that it started. Not promised: that it did anything with the message.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use tokio::time::timeout;

use super::message::plain_text;

/// The search path in the environment of a hook.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The most bytes of the command's standard error that are repeated.
const SAID: usize = 1024;

/// The time that processes that the command started may keep its standard error open after it has ended.
const LINGER: Duration = Duration::from_secs(1);

/// A process group, which is killed when this is dropped.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(pid) = self.0
            && let Err(error) = kill_process_group(pid, Signal::KILL)
        {
            tracing::debug!(%error, "a hook was gone before it was killed");
        }
    }
}

/// Runs the command once; fails with the reason if it does not end with success.
pub(super) async fn run_hook(
    argv: &[String],
    message: &[u8],
    limit: Duration,
) -> Result<(), String> {
    let (program, arguments) = argv.split_first().ok_or("notify.command is empty")?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .env("PATH", PATH)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    let mut child = command
        .spawn()
        .map_err(|error| format!("{program} cannot be started: {error}"))?;
    let pid = child.id().and_then(|id| i32::try_from(id).ok());
    let mut group = Group(pid.and_then(Pid::from_raw));
    let input = child.stdin.take();
    let errors = child.stderr.take();
    let whole = async {
        let mut said = Vec::new();
        let mut feeding = Box::pin(async {
            if let Some(mut input) = input {
                // A hook need not read its message.
                _ = input.write_all(message).await;
                _ = input.shutdown().await;
            }
        });
        let mut listening = Box::pin(listen(errors, &mut said));
        let mut is_fed = false;
        let mut is_heard = false;
        let status = loop {
            tokio::select! {
                status = child.wait() => break status,
                () = &mut feeding, if !is_fed => is_fed = true,
                () = &mut listening, if !is_heard => is_heard = true,
            }
        };
        if !is_heard {
            drop(timeout(LINGER, &mut listening).await);
        }
        drop(listening);
        (status, said)
    };
    let ended = timeout(limit, whole).await;
    let (status, said) = ended.map_err(|_late| {
        let seconds = limit.as_secs();
        format!("{program} had not ended after {seconds} s and was killed")
    })?;
    let status = status.map_err(|error| format!("{program}: {error}"))?;
    // The command has ended by itself; the processes that it left running are not killed.
    group.0 = None;
    if status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&said);
    let said = plain_text(said.trim());
    Err(format!("{program} ended with {status}: {said}"))
}

/// Reads to the end, so that the command is not blocked, and keeps the beginning.
async fn listen(errors: Option<impl AsyncRead + Unpin>, said: &mut Vec<u8>) {
    let Some(mut errors) = errors else {
        return;
    };
    let mut buffer = [0; 4096];
    while let Ok(read) = errors.read(&mut buffer).await
        && read > 0
    {
        let room = SAID.saturating_sub(said.len()).min(read);
        said.extend_from_slice(&buffer[..room]);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use tools_testing::{PATIENCE, eventually};

    use super::*;

    const SOON: Duration = Duration::from_secs(20);

    async fn shell(script: &str, message: &[u8], limit: Duration) -> Result<(), String> {
        let argv = ["/bin/sh", "-c", script].map(str::to_owned);
        run_hook(&argv, message, limit).await
    }

    /// Fails if a notification hook does not get the message, or inherits the environment or the working directory of
    /// the daemon.
    #[tokio::test]
    async fn hook_gets_message_and_minimal_environment() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("said");
        let script = format!("cat > {0}; env >> {0}; pwd >> {0}", path.display());
        shell(&script, b"hello\n", SOON).await.unwrap();
        let said = std::fs::read_to_string(&path).unwrap();
        assert!(
            said.starts_with("hello\n") && said.ends_with("/\n"),
            "{said}"
        );
        assert!(!said.contains("HOME=") && !said.contains("CARGO"), "{said}");
    }

    /// Returns whether a process exists and is no zombie.
    fn lives(pid: &str) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(')')
            .next()
            .is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z"))
    }

    /// Fails if only the shell is killed, and not what it started.
    #[tokio::test]
    async fn hook_that_hangs_is_killed_with_its_children() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("child");
        let script = format!("sleep 1000 & echo $! > {}; sleep 1000", path.display());
        // On a busy machine the shorter limits pass before the child has begun.
        for limit in [300, 3000, 60_000].map(Duration::from_millis) {
            let error = shell(&script, b"x", limit).await.unwrap_err();
            assert!(error.contains("killed"), "{error}");
            let child = std::fs::read_to_string(&path).unwrap_or_default();
            if child.ends_with('\n') {
                let child = child.trim();
                eventually("the end of the child", PATIENCE, async || !lives(child)).await;
                return;
            }
        }
        panic!("the child never began");
    }

    /// Fails if the reason of a failed hook is lost or of any length, or a hook that prints much is blocked by its own
    /// output.
    #[tokio::test]
    async fn failing_hook_reports_bounded_reason() {
        let error = shell("echo no mail today >&2; exit 3", b"x", SOON)
            .await
            .unwrap_err();
        assert!(
            error.contains("no mail today") && error.contains('3'),
            "{error}"
        );
        let script = "head -c 5000000 /dev/zero | tr '\\0' 'x' >&2; exit 1";
        let error = shell(script, b"x", SOON).await.unwrap_err();
        assert!(error.len() < 2 * SAID, "{}", error.len());
        let loud = "head -c 5000000 /dev/zero; head -c 5000000 /dev/zero >&2";
        shell(loud, b"x", SOON).await.unwrap();
    }

    /// Fails if a hook that does not exist counts as announced, or one that ends without reading the message counts as
    /// failed.
    #[tokio::test]
    async fn missing_hook_fails_and_unreading_hook_succeeds() {
        shell("exit 0", &vec![b'x'; 5_000_000], SOON).await.unwrap();
        let argv = ["/nowhere/hook".to_owned()];
        let error = run_hook(&argv, b"x", SOON).await.unwrap_err();
        assert!(error.contains("/nowhere/hook"), "{error}");
        run_hook(&[], b"x", SOON).await.unwrap_err();
    }

    /// Fails if a hook that has ended is waited for because a child in the background holds its output open.
    #[tokio::test]
    async fn background_child_of_hook_does_not_delay_it() {
        let begin = Instant::now();
        shell("sleep 60 & exit 0", b"x", SOON).await.unwrap();
        assert!(begin.elapsed() < Duration::from_secs(50));
    }
}
