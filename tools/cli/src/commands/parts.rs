//! The parts of the archive, each as a process of its own.

use std::path::{Path, PathBuf};

use archive_bitarchive::checksum::ChecksumTable;
use archive_daemon::settings::{self, Sources};
use archive_daemon::{Daemon, DaemonSettings, RunError, run};
use archive_ledger::admin::Admin;
use clap::Args;
use serde::de::DeserializeOwned;
use tools_terminal::context::Context;
use tools_terminal::exit::{Exit, Failure};

/// The arguments that every part takes.
#[derive(Debug, Args)]
pub(crate) struct Part {
    /// The settings file of the part
    #[arg(long, value_name = "FILE")]
    settings: PathBuf,
}

/// The arguments of the repository.
#[derive(Debug, Args)]
pub(crate) struct Repository {
    #[command(flatten)]
    part: Part,
    /// Begin with empty admin data if there are none yet; without this option, missing admin data are an error
    #[arg(long)]
    init: bool,
}

impl Repository {
    /// Runs the repository until a signal.
    pub(crate) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let settings: archive_repository::Settings = self.part.load(context)?;
        if self.init {
            init_admin(&settings.repository.data)?;
        }
        let own = settings.daemon.clone();
        live("repository", &own, |daemon| async move {
            archive_repository::serve(settings, daemon)
                .await
                .map(|_| ())
        })
    }
}

/// Begins with empty admin data, where there are none and never were.
pub(crate) fn init_admin(data: &Path) -> Result<(), Failure> {
    Admin::init(data)
        .map(drop)
        .map_err(|error| Failure::failed(error.to_string()))
}

/// The arguments of a checksum replica.
#[derive(Debug, Args)]
pub(crate) struct ChecksumReplica {
    #[command(flatten)]
    part: Part,
    /// Begin with an empty record if there is no record yet; without this option, a missing record is an error
    #[arg(long)]
    init: bool,
}

impl ChecksumReplica {
    /// Runs a checksum replica until a signal.
    pub(crate) fn run(&self, context: &Context) -> Result<Exit, Failure> {
        let settings: archive_bitarchive::checksum::Settings = self.part.load(context)?;
        if self.init {
            let own = &settings.checksum_replica;
            ChecksumTable::init(&own.data, &own.node, &own.replica)
                .map_err(|error| Failure::failed(error.to_string()))?;
        }
        let own = settings.daemon.clone();
        live("checksum-replica", &own, |daemon| async move {
            archive_bitarchive::checksum::serve(settings, daemon)
                .await
                .map(|_| ())
        })
    }
}

impl Part {
    /// Runs a monitor until a signal.
    pub(crate) fn monitor(&self, context: &Context) -> Result<Exit, Failure> {
        let settings: archive_monitor::Settings = self.load(context)?;
        let own = settings.daemon.clone();
        live("monitor", &own, |daemon| async move {
            archive_monitor::serve(settings, daemon).await.map(|_| ())
        })
    }

    /// Runs a node until a signal.
    pub(crate) fn bitarchive(&self, context: &Context) -> Result<Exit, Failure> {
        let settings: archive_bitarchive::Settings = self.load(context)?;
        let own = settings.daemon.clone();
        live("bitarchive", &own, |daemon| async move {
            archive_bitarchive::serve(settings, daemon, archive_runs::start)
                .await
                .map(|_| ())
        })
    }

    /// Runs a viewer until a signal.
    pub(crate) fn viewer(&self, context: &Context) -> Result<Exit, Failure> {
        let settings: viewer_web::Settings = self.load(context)?;
        let own = settings.daemon.clone();
        live("viewer", &own, |daemon| async move {
            viewer_web::serve(settings, daemon).await.map(|_| ())
        })
    }

    fn load<T: DeserializeOwned>(&self, context: &Context) -> Result<T, Failure> {
        load(&self.settings, &context.global.set)
    }
}

/// Reads a settings file, under the environment and the command line.
pub(crate) fn load<T: DeserializeOwned>(
    file: &std::path::Path,
    set: &[String],
) -> Result<T, Failure> {
    let wrong = |error: settings::SettingsError| Failure::new(Exit::Settings, error.to_string());
    let environment = settings::environment().map_err(wrong)?;
    settings::load(&Sources {
        file: Some(file.to_owned()),
        environment,
        set: set.to_vec(),
    })
    .map_err(wrong)
}

/// Runs a part until a signal, and says why where it ends by itself.
pub(crate) fn live<E, F>(
    name: &str,
    settings: &DaemonSettings,
    start: impl FnOnce(Daemon) -> F,
) -> Result<Exit, Failure>
where
    E: std::error::Error + Send + Sync + 'static,
    F: Future<Output = Result<(), E>> + Send + 'static,
{
    // Itself, also after another one was installed in its place.
    let executable = Some(PathBuf::from("/proc/self/exe"));
    let start = |daemon| {
        start(Daemon {
            executable,
            ..daemon
        })
    };
    match run(name, settings, start) {
        Ok(()) => Ok(Exit::Done),
        Err(error) => Err(why(&error)),
    }
}

fn why(error: &RunError) -> Failure {
    let mut message = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        message = format!("{message}: {cause}");
        source = cause.source();
    }
    let exit = match error {
        RunError::Metrics { .. } => Exit::Settings,
        _ => Exit::Failed,
    };
    Failure::new(exit, message)
}
