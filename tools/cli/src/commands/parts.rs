//! The parts of the archive, each as a process of its own.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use archive_bitarchive::checksum::ChecksumTable;
use archive_daemon::settings::{self, Sources};
use archive_daemon::tasks::with_causes;
use archive_daemon::{Daemon, DaemonSettings, RunError, Starting, run_daemon};
use archive_ledger::admin::{Admin, AdminRestore};
use archive_part::PartSettings;
use clap::Args;
use serde::de::DeserializeOwned;
use tools_terminal::context::CommandContext;
use tools_terminal::exit::{Exit, Failure};

use super::archive_keys::{keep_signing_key, keep_trust_file};

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
    /// Begin an archive: with empty admin data, a signing key and a trust file that lists it, each where the settings
    /// say and none is yet. Give copies of the trust file to the nodes and to who verifies receipts. Without this
    /// option, what is missing is an error
    #[arg(long)]
    init: bool,
}

impl Repository {
    /// Runs the repository until a signal.
    pub(crate) fn run(&self, context: &CommandContext) -> Result<Exit, Failure> {
        let file = &self.part.settings;
        let settings: archive_repository::Settings = load_part_settings(file, &context.global.set)?;
        if self.init {
            let own = &settings.repository;
            // Files that were signed already need the key that signed them.
            let is_begun = AdminRestore::is_there(&own.data);
            if !is_begun.map_err(|error| Failure::because_failed(error.to_string()))? {
                let key = keep_signing_key(&own.signing_key)?;
                keep_trust_file(&own.trust, &own.archive, &key)?;
            }
            init_admin(&own.data)?;
        }
        run_part(file, settings, archive_repository::serve_repository)
    }
}

/// Begins with empty admin data, where there are none and never were.
pub(crate) fn init_admin(data: &Path) -> Result<(), Failure> {
    Admin::init(data)
        .map(drop)
        .map_err(|error| Failure::because_failed(error.to_string()))
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
    pub(crate) fn run(&self, context: &CommandContext) -> Result<Exit, Failure> {
        let file = &self.part.settings;
        let settings: archive_bitarchive::checksum::Settings =
            load_part_settings(file, &context.global.set)?;
        if self.init {
            let own = &settings.checksum_replica;
            ChecksumTable::init(&own.data, &own.node, &own.replica)
                .map_err(|error| Failure::because_failed(error.to_string()))?;
        }
        run_part(
            file,
            settings,
            archive_bitarchive::checksum::serve_checksum_replica,
        )
    }
}

impl Part {
    /// Runs a monitor until a signal.
    pub(crate) fn monitor(&self, context: &CommandContext) -> Result<Exit, Failure> {
        let settings = load_part_settings(&self.settings, &context.global.set)?;
        run_part(&self.settings, settings, archive_monitor::serve_monitor)
    }

    /// Runs a node until a signal.
    pub(crate) fn bitarchive(&self, context: &CommandContext) -> Result<Exit, Failure> {
        let settings = load_part_settings(&self.settings, &context.global.set)?;
        run_part(&self.settings, settings, |settings, daemon| {
            archive_bitarchive::serve_node(settings, daemon, archive_runs::start_runs)
        })
    }

    /// Runs a viewer until a signal.
    pub(crate) fn viewer(&self, context: &CommandContext) -> Result<Exit, Failure> {
        let settings = load_part_settings(&self.settings, &context.global.set)?;
        run_part(&self.settings, settings, viewer_web::serve_viewer)
    }
}

/// Runs a part with the settings of a file until a signal.
pub(crate) fn run_part<S: PartSettings>(
    file: &Path,
    settings: S,
    serve: impl FnOnce(S, Daemon) -> Starting<SocketAddr>,
) -> Result<Exit, Failure> {
    let daemon_settings = settings.daemon().clone();
    let file = file.to_owned();
    live_part(S::PART, &daemon_settings, |daemon| {
        let serving = serve(settings, daemon);
        Box::pin(async move {
            let served = serving.await;
            served.map(drop).map_err(|error| error.in_file(&file))
        })
    })
}

/// Reads a settings file, under the environment and the command line.
pub(crate) fn load_part_settings<T: DeserializeOwned>(
    file: &Path,
    set: &[String],
) -> Result<T, Failure> {
    Ok(settings::load_settings(&Sources {
        file: Some(file.to_owned()),
        environment: settings::read_environment()?,
        set: set.to_vec(),
    })?)
}

/// Runs a part until a signal, and says why where it ends by itself.
pub(crate) fn live_part(
    name: &str,
    settings: &DaemonSettings,
    start: impl FnOnce(Daemon) -> Starting<()>,
) -> Result<Exit, Failure> {
    // Itself, also after another one was installed in its place.
    let executable = Some(PathBuf::from("/proc/self/exe"));
    let start = |daemon| {
        start(Daemon {
            executable,
            ..daemon
        })
    };
    match run_daemon(name, settings, start) {
        Ok(()) => Ok(Exit::Done),
        Err(RunError::Start(error)) if error.is_of_settings() => {
            Err(Failure::new(Exit::Settings, error.to_string()))
        }
        Err(error) => Err(Failure::because_failed(with_causes(&error))),
    }
}
