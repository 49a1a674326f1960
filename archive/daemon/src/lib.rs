//! The base of every long-running process: settings, telemetry, tasks, workers, clock, shutdown. No gRPC.
//!
//! A part is a library that is handed its settings and a [`Daemon`]. It starts its tasks through the daemon and
//! returns; [`run_daemon`] does the rest, the same for every part: panic hook, logs, metrics, signals, drain, deadline.
//!
//! Owner of: how settings are read, the names of tasks and workers, the only readers of the time ([`Clock`]), of
//! randomness ([`Chance`]) and of the environment ([`settings::read_environment`]).
//!
//! Not promised: that anything is remembered over a restart. A pause, a throttle and a status live in memory; a worker
//! keeps its checkpoint itself.
//!
//! The rooms in reading order:
//!
//! - [`mod@run`] (the life of a process), [`settings`] (where its settings come from), [`start`] (why it does not start),
//!   [`telemetry`] (its log);
//! - [`tasks`] (all that runs), [`worker`] (background jobs), [`thread`] (blocking work of its own), [`shutdown`]
//!   (signals);
//! - [`clock`] (the time and randomness), [`metrics`] (what is counted), [`notify`] (who is notified).
//!
//! ```no_run
//! use archive_daemon::settings::{self, Sources};
//! use archive_daemon::{Daemon, DaemonSettings, StartError, run_daemon};
//!
//! #[derive(serde::Deserialize)]
//! #[serde(deny_unknown_fields)]
//! struct Settings {
//!     #[serde(default)]
//!     daemon: DaemonSettings,
//! }
//!
//! async fn start(daemon: Daemon) -> Result<(), StartError> {
//!     let stop = daemon.tasks.stop_token();
//!     daemon.tasks.spawn("listen", async move {
//!         stop.cancelled().await;
//!         Ok::<(), std::io::Error>(())
//!     });
//!     Ok(())
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let sources = Sources { file: Some("monitor.toml".into()), environment: settings::read_environment()?, set: vec![] };
//! let settings: Settings = settings::load_settings(&sources)?;
//! run_daemon("monitor", &settings.daemon, |daemon| Box::pin(start(daemon)))?;
//! # Ok(())
//! # }
//! ```

#![warn(missing_docs)]

pub mod clock;
pub mod metrics;
pub mod notify;
pub mod run;
pub mod settings;
pub mod shutdown;
pub mod start;
pub mod tasks;
pub mod telemetry;
pub mod thread;
pub mod worker;

pub use clock::{Chance, Clock};
pub use metrics::{Counter, Gauge, Histogram, Metrics};
pub use notify::{Notifier, NotifySettings};
pub use run::{CaughtPanic, Daemon, DaemonSettings, RunError, catch_panic, run_daemon};
pub use settings::{ByteSize, Period};
pub use start::{StartError, Starting};
pub use tasks::{TaskError, TaskOutcome, Tasks};
pub use thread::OwnThread;
pub use worker::{ReloadWorker, Worker, WorkerStep, WorkerStepError, Workers};
