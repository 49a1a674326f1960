//! The smallest part of an archive, which `tests/process.rs` runs and kills: `daemon BEHAVIOUR [KEY=VALUE…]`.

use std::io::{Error, Write};
use std::process::ExitCode;
use std::time::Duration;

use archive_daemon::settings::{self, Sources};
use archive_daemon::tasks::with_causes;
use archive_daemon::{
    Daemon, DaemonSettings, StartError, Worker, WorkerStep, WorkerStepError, run_daemon,
};

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    behaviour: String,
    #[serde(default)]
    daemon: DaemonSettings,
}

/// A worker that prints once that it works, which shows that everything before it is up.
struct Beat;

impl Worker for Beat {
    const NAME: &'static str = "beat";

    async fn step(&mut self) -> Result<WorkerStep, WorkerStepError> {
        std::future::ready(()).await;
        writeln!(std::io::stdout(), "beating")?;
        Ok(WorkerStep::Idle(Duration::from_hours(1)))
    }
}

fn start(daemon: &Daemon, behaviour: String) -> Result<(), StartError> {
    let stop = daemon.tasks.stop_token();
    let daemon = daemon.for_part("example");
    let body = async move {
        match behaviour.as_str() {
            "deaf" => std::future::pending().await,
            "panic" => {
                let none: Option<u8> = behaviour.strip_prefix("x").map(|_| 0);
                #[expect(clippy::unwrap_used, reason = "what this behaviour is for")]
                none.unwrap();
            }
            "spared" => {
                let none: Option<u8> = behaviour.strip_prefix("x").map(|_| 0);
                #[expect(clippy::unwrap_used, reason = "what this behaviour is for")]
                let ended = archive_daemon::catch_panic(|| none.unwrap());
                assert!(ended.is_err(), "it panics");
                stop.cancelled().await;
            }
            "fail" => return Err(Error::other("the disk is gone")),
            _ => stop.cancelled().await,
        }
        Ok(())
    };
    daemon.workers.spawn_worker(Beat)?;
    daemon.tasks.spawn("body", body);
    Ok(())
}

fn main() -> ExitCode {
    let outcome = (|| -> Result<(), WorkerStepError> {
        let mut arguments = std::env::args().skip(1);
        let behaviour = arguments.next().unwrap_or_default();
        let set = std::iter::once(format!("behaviour={behaviour}"))
            .chain(arguments)
            .collect();
        let sources = Sources {
            file: None,
            environment: settings::read_environment()?,
            set,
        };
        let settings: Settings = settings::load_settings(&sources)?;
        run_daemon("example", &settings.daemon, |daemon| {
            Box::pin(async move { start(&daemon, settings.behaviour) })
        })?;
        Ok(())
    })();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            drop(writeln!(
                std::io::stderr(),
                "{}",
                with_causes(error.as_ref())
            ));
            ExitCode::FAILURE
        }
    }
}
