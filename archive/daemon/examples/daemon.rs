//! The smallest part of an archive, which `tests/process.rs` runs and kills: `daemon BEHAVIOUR [KEY=VALUE…]`.

use std::io::{Error, Write};
use std::process::ExitCode;
use std::time::Duration;

use archive_daemon::settings::{self, Sources};
use archive_daemon::tasks::with_causes;
use archive_daemon::{Daemon, DaemonSettings, StartError, Step, Worker, WorkerError, run};

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

    async fn step(&mut self) -> Result<Step, WorkerError> {
        std::future::ready(()).await;
        writeln!(std::io::stdout(), "beating")?;
        Ok(Step::Idle(Duration::from_hours(1)))
    }
}

fn start(daemon: &Daemon, behaviour: String) -> Result<(), StartError> {
    let stop = daemon.tasks.stop();
    let daemon = daemon.part("example");
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
                let ended = archive_daemon::spare(|| none.unwrap());
                assert!(ended.is_err(), "it panics");
                stop.cancelled().await;
            }
            "fail" => return Err(Error::other("the disk is gone")),
            _ => stop.cancelled().await,
        }
        Ok(())
    };
    daemon.workers.spawn(Beat)?;
    daemon.tasks.spawn("body", body);
    Ok(())
}

fn main() -> ExitCode {
    let outcome = (|| -> Result<(), WorkerError> {
        let mut arguments = std::env::args().skip(1);
        let behaviour = arguments.next().unwrap_or_default();
        let set = std::iter::once(format!("behaviour={behaviour}"))
            .chain(arguments)
            .collect();
        let sources = Sources {
            file: None,
            environment: settings::environment()?,
            set,
        };
        let settings: Settings = settings::load(&sources)?;
        run("example", &settings.daemon, |daemon| {
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
