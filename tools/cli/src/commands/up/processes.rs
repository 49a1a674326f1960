//! Each part as a child process, so that one of them can be stopped or killed while the others go on.
//!
//! The id of each is in `<data>/run/<part>.pid`. A part that ends is reported and not started again: whoever ended it
//! may want it so. `holdfast <part> --settings <data>/settings/<part>.toml` starts it again.

use std::path::Path;
use std::process::Stdio;

use archive_daemon::Daemon;
use archive_durable::{directory, replace};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

use super::prepare::{CHECKSUM_PART, CHECKSUM_VERB, Prepared, REPLICAS};
use crate::output::tell;

/// Starts every part; each lives until the stop or its own end.
pub(super) fn start(prepared: &Prepared, set: &[String], daemon: &Daemon) -> Result<(), String> {
    let run = prepared.run();
    directory::make(&run).map_err(|error| error.to_string())?;
    let replicas = REPLICAS.iter().flat_map(|replica| {
        [
            ("monitor", format!("monitor-{replica}")),
            ("bitarchive", format!("bitarchive-{replica}")),
        ]
    });
    let others = [
        (CHECKSUM_VERB, CHECKSUM_PART.to_owned()),
        ("repository", "repository".to_owned()),
    ];
    for (verb, part) in replicas.chain(others) {
        let child = spawn(verb, &prepared.settings(&part), set)?;
        let id = child.id().ok_or_else(|| format!("{part} ended at once"))?;
        replace(
            &run.join(format!("{part}.pid")),
            format!("{id}\n").as_bytes(),
        )
        .map_err(|error| error.to_string())?;
        let stop = daemon.tasks.stop();
        daemon.tasks.spawn_once(&part.clone(), async move {
            watch(verb, &part, child, &stop).await;
            Ok::<(), std::convert::Infallible>(())
        });
    }
    Ok(())
}

fn spawn(verb: &str, settings: &Path, set: &[String]) -> Result<Child, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command
        .arg(verb)
        .arg("--settings")
        .arg(settings)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    for one in set {
        command.arg("--set").arg(one);
    }
    // A Ctrl-C at the terminal is for `up`, which stops its parts in order.
    command.process_group(0);
    command.spawn().map_err(|error| format!("{verb}: {error}"))
}

/// Waits for the child's end; asks it to end at the stop.
async fn watch(verb: &str, part: &str, mut child: Child, stop: &CancellationToken) {
    let ended = tokio::select! {
        ended = child.wait() => ended,
        () = stop.cancelled() => {
            let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
            if let Some(Err(error)) = id.map(|id| kill_process(id, Signal::TERM)) {
                tell(&format!("{part} cannot be asked to end: {error}"));
            }
            drop(child.wait().await);
            return;
        }
    };
    match ended {
        Ok(status) => tell(&format!(
            "{part} ended ({status}); start it again with `holdfast {verb} --settings …/settings/{part}.toml`"
        )),
        Err(error) => tell(&format!("{part} cannot be watched: {error}")),
    }
}
