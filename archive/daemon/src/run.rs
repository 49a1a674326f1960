//! Starting, serving and draining, alike for every part.
//!
//! [`run_daemon()`] is the whole life of a process, from top to bottom. Owner of: the runtime and the panic hook. Not
//! promised: an exit code; the command line chooses that from the [`RunError`].

use std::cell::Cell;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use documented::DocumentedFields;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

use crate::clock::{Chance, Clock};
use crate::metrics::{self, Metrics};
use crate::settings::Period;
use crate::shutdown::Signals;
use crate::start::{StartError, Starting};
use crate::tasks::{self, TaskError, Tasks};
use crate::telemetry::{self, InstallError, LogFilter, LogFormat};
use crate::worker::Workers;

/// The time that blocking code outside of the tasks may still run after they have ended.
const LAST_CALL: Duration = Duration::from_secs(1);

/// The section `[daemon]`, the same in every part's settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct DaemonSettings {
    /// The level of logging: `info`, or levels by module: `info,archive_rpc=debug`.
    pub log: LogFilter,
    /// The format of the log: `auto` (for people on a terminal and in `log_file`, else JSON), `human` or `json`.
    pub log_format: LogFormat,
    /// The file that the log goes to, in place of standard error. At 10 MB it is put aside as `.1`; four such files are
    /// kept. Its directory has to be there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_file: Option<PathBuf>,
    /// The address at which `/metrics` is served. Port 0 takes a free one, which is logged.
    pub metrics: SocketAddr,
    /// The time that tasks may take to end after a stop.
    pub drain: Period,
    /// Whether the process stops when its standard input ends: set by a process that starts this one and holds the other
    /// end of a pipe, so that this one does not outlive it, however it dies. With input from `/dev/null` it stops at once.
    pub end_with_stdin: bool,
}

impl Default for DaemonSettings {
    fn default() -> Self {
        Self {
            log: LogFilter::default(),
            log_format: LogFormat::default(),
            log_file: None,
            metrics: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            drain: Period::from_secs(30),
            end_with_stdin: false,
        }
    }
}

/// The services that a part runs with, cheap to clone.
#[derive(Clone, Debug)]
pub struct Daemon {
    /// The clock of the process.
    pub clock: Clock,
    /// The source of randomness.
    pub chance: Chance,
    /// The running tasks, and the stop of all of them.
    pub tasks: Tasks,
    /// The background jobs.
    pub workers: Workers,
    /// The metrics of the process.
    pub metrics: Metrics,
    /// The executable of this process, for work that is better done in a process of its own; absent: that work is done
    /// in this one. Only a caller that knows its verbs sets it.
    pub executable: Option<PathBuf>,
}

/// The reason why a process ended without being asked to, or did not end in time.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Logging could not be installed.
    #[error("logging cannot start")]
    Telemetry(#[from] InstallError),
    /// The system gave no threads or no event queue.
    #[error("the runtime cannot start")]
    Runtime(#[source] io::Error),
    /// The signals could not be taken over.
    #[error("signals cannot be watched")]
    Signals(#[source] io::Error),
    /// The part did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A task failed or did not end.
    #[error(transparent)]
    Task(#[from] TaskError),
}

impl Daemon {
    /// Makes a daemon without tasks. Parts get theirs from [`run_daemon()`]; tests make it with a clock of their own.
    pub fn new(clock: Clock, chance: Chance) -> Self {
        let tasks = Tasks::new();
        let workers = Workers::new(clock.clone(), tasks.clone());
        Self {
            clock,
            chance,
            tasks,
            workers,
            metrics: Metrics::new(),
            executable: None,
        }
    }

    /// Returns the same daemon for one of several parts in a process: its tasks and workers are named `part/…`, its
    /// metrics bear the label `part`.
    #[must_use]
    pub fn for_part(&self, part: &str) -> Self {
        Self {
            tasks: self.tasks.for_part(part),
            workers: self.workers.for_part(part),
            metrics: self.metrics.with_label("part", part),
            ..self.clone()
        }
    }
}

/// Runs a part until a signal or a failure: the body of `main`.
///
/// `start` brings the part up and returns; the tasks that it starts in [`Daemon::tasks`] live until the stop. It may
/// also itself wait for the stop. Returns `Ok` after a stop that was asked for and in which every task ended without an
/// error.
///
/// # Errors
///
/// [`RunError`]: logging, the runtime, the signals or the metrics cannot start, or a task failed or did not end in
/// time.
pub fn run_daemon(
    name: &str,
    settings: &DaemonSettings,
    start: impl FnOnce(Daemon) -> Starting<()>,
) -> Result<(), RunError> {
    abort_on_panic();
    install_log(settings)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(RunError::Runtime)?;
    let outcome = runtime.block_on(live(name, settings, Box::new(start)));
    runtime.shutdown_timeout(LAST_CALL);
    outcome
}

fn install_log(settings: &DaemonSettings) -> Result<(), RunError> {
    let file = settings.log_file.as_deref();
    let installed = telemetry::install_telemetry(&settings.log, settings.log_format, file);
    installed.map_err(|error| match (error, file) {
        (InstallError::File(error), Some(path)) => {
            let unwritable = format!("{}: {error}; set another path", path.display());
            StartError::of_setting("daemon.log_file", unwritable).into()
        }
        (error, _) => RunError::Telemetry(error),
    })
}

async fn live(
    name: &str,
    settings: &DaemonSettings,
    start: Box<dyn FnOnce(Daemon) -> Starting<()> + '_>,
) -> Result<(), RunError> {
    // The signals come first: one that arrives during the start must not be lost.
    let signals = Signals::new().map_err(RunError::Signals)?;
    let daemon = Daemon::new(Clock::system_clock(), Chance::system_chance());
    let (listener, address) = bind_setting("daemon.metrics", settings.metrics).await?;
    let tasks = &daemon.tasks;
    tasks.spawn(
        "metrics",
        metrics::serve_metrics(listener, daemon.metrics.clone(), tasks.stop_token()),
    );
    tracing::info!(
        part = name,
        metrics = format!("http://{address}/metrics"),
        "starting"
    );
    if settings.end_with_stdin {
        stop_with_stdin(tasks.clone()).map_err(RunError::Runtime)?;
    }
    let refusal = Arc::new(Mutex::new(None));
    let starting = start(daemon.clone());
    let refused = Arc::clone(&refusal);
    let stopped = tasks.clone();
    tasks.spawn_once(name, async move {
        if let Err(error) = starting.await {
            *refused.lock() = Some(error);
            stopped.stop_all();
        }
    });
    // The drain runs while signals are watched too, so that a second one can cut it short.
    let outcome = tokio::select! {
        outcome = tasks.join_tasks(settings.drain.duration()) => outcome,
        never = signals.watch_signals(tasks) => match never {},
    };
    if let Some(error) = refusal.lock().take() {
        return Err(RunError::Start(error));
    }
    outcome?;
    tracing::info!(part = name, "stopped");
    Ok(())
}

/// Takes the address of a setting, on which nothing is answered yet. Port 0 becomes a free one.
///
/// # Errors
///
/// Fails if the address is taken, or is not one of this machine.
pub async fn bind_setting(
    setting: &str,
    address: SocketAddr,
) -> Result<(TcpListener, SocketAddr), StartError> {
    let refused = |error| {
        let told = format!("cannot listen on {address}: {error}; set another address");
        StartError::of_setting(setting, told)
    };
    let listener = TcpListener::bind(address).await.map_err(refused)?;
    let bound = listener.local_addr().map_err(refused)?;
    Ok((listener, bound))
}

/// Stops the tasks when standard input ends. The thread reads as long as the process lives, and holds up nothing.
fn stop_with_stdin(tasks: Tasks) -> io::Result<()> {
    let read_to_end = move || {
        _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        tracing::info!("stopping, since the process that started this one has ended");
        tasks.stop_all();
    };
    let thread = std::thread::Builder::new().name("stdin".to_owned());
    thread.spawn(read_to_end).map(drop)
}

thread_local! {
    /// Whether a panic of this thread must not end the process.
    static SPARED: Cell<bool> = const { Cell::new(false) };
}

/// The error of spared work that panicked. The message is on standard error.
#[derive(Debug, thiserror::Error)]
#[error("it panicked; that is a bug, please report it")]
pub struct CaughtPanic;

/// Runs work whose panic must not end the process: that of one job, beside which the archive continues.
///
/// State that the work shares with others must not be used again after a panic.
///
/// # Errors
///
/// [`CaughtPanic`] if `work` panics.
pub fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, CaughtPanic> {
    let before = SPARED.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    SPARED.set(before);
    done.map_err(|_said_by_the_hook| CaughtPanic)
}

/// Makes a panic anywhere end the process by `abort`, after its place, task and reason were printed; only
/// [spared](catch_panic) work does not end the process, and is printed, too.
pub fn abort_on_panic() {
    std::panic::set_hook(Box::new(|panic| {
        let task =
            tasks::current_part().map_or_else(String::new, |name| format!(" in task `{name}`"));
        let trace = std::backtrace::Backtrace::capture();
        let spared = SPARED.get();
        let what = if spared {
            "one job ends"
        } else {
            "the process ends"
        };
        // Standard error may be closed; then the message is lost.
        drop(writeln!(
            io::stderr(),
            "a bug: {what} because it {panic}{task}\n{trace}"
        ));
        if !spared {
            std::process::abort();
        }
    }));
}
