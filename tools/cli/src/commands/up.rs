//! `holdfast up`: a whole archive in one process, on an embedded default.
//!
//! Two bitarchive replicas of one node each, their monitors, a checksum replica, the repository, the index and the
//! viewer, with mutual TLS on loopback, all below one data directory. It reads the same settings files as the parts do
//! when they run alone.

mod client_file;
mod demonstration;
mod ports;
mod prepare;
mod processes;

use std::collections::BTreeMap;
use std::path::PathBuf;

use archive_daemon::{Clock, Daemon};
use clap::Args;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tools_terminal::context::Context;
use tools_terminal::exit::{Exit, Failure};

use self::prepare::{PreparedArchive, prepare};
use self::processes::Processes;
use crate::commands::parts::{live, load};

/// Start a whole archive on this machine
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    holdfast up                          in ./holdfast-data, until Ctrl-C\n  \
    holdfast up --data /srv/archive      elsewhere\n  \
    holdfast up --demo --once            demonstrate it, and end")]
pub(crate) struct Up {
    /// Directory of all data; created if it does not exist
    #[arg(long, value_name = "DIR", default_value = "holdfast-data")]
    data: PathBuf,
    /// Take the free ports from PORT on for the parts of a new archive [default: free ones, chosen by DIR]
    #[arg(long, value_name = "PORT")]
    first_port: Option<u16>,
    /// Start each part as a process of its own; the ids of the processes are in DIR/run
    #[arg(long)]
    processes: bool,
    /// Store, damage and read real files through the command line, and print what that has proven
    #[arg(long)]
    demo: bool,
    /// End after the demonstration
    #[arg(long, requires = "demo")]
    once: bool,
}

/// The reason why `up` ended.
#[derive(Debug, thiserror::Error)]
enum UpError {
    #[error(transparent)]
    Monitor(#[from] archive_monitor::StartError),
    #[error(transparent)]
    Node(#[from] archive_bitarchive::StartError),
    #[error(transparent)]
    Repository(#[from] archive_repository::StartError),
    #[error(transparent)]
    Index(#[from] index_server::StartError),
    #[error(transparent)]
    Viewer(#[from] viewer_web::StartError),
    #[error("{0}")]
    Process(String),
    #[error("the demonstration did not prove what it should: {0}")]
    Demonstration(String),
}

/// The settings of every part, read before anything starts.
struct Parts {
    monitors: Vec<archive_monitor::Settings>,
    nodes: Vec<archive_bitarchive::Settings>,
    checksums: archive_bitarchive::checksum::Settings,
    repository: archive_repository::Settings,
    index: index_server::Settings,
    viewer: viewer_web::Settings,
    /// The settings from the command line, by part.
    set: BTreeMap<String, Vec<String>>,
}

impl Up {
    /// Runs the archive until a signal.
    pub(crate) fn run(self, context: &Context) -> Result<Exit, Failure> {
        let prepared = prepare(&self.data, self.first_port, Clock::system().now())?;
        let parts = Parts::load(&prepared, &context.global.set)?;
        context.output.line(&prepared.greeting())?;
        let settings = parts.repository.daemon.clone();
        live("up", &settings, move |daemon| async move {
            let processes = if self.processes {
                let started = Processes::start(&prepared, &parts.set, &daemon);
                Some(started.map_err(UpError::Process)?)
            } else {
                start(parts, &daemon).await?;
                None
            };
            self.show(&prepared, processes.as_ref(), &daemon).await
        })
    }

    /// Runs the demonstration, where it is wanted.
    async fn show(
        &self,
        prepared: &PreparedArchive,
        processes: Option<&Processes>,
        daemon: &Daemon,
    ) -> Result<(), UpError> {
        if self.demo {
            let stop = daemon.tasks.stop();
            let shown = tokio::select! {
                shown = demonstration::run(prepared, processes) => shown,
                () = stop.cancelled() => Ok(()),
            };
            shown.map_err(UpError::Demonstration)?;
        }
        if self.once {
            daemon.tasks.stop_all();
        }
        Ok(())
    }
}

impl Parts {
    fn load(prepared: &PreparedArchive, set: &[String]) -> Result<Self, Failure> {
        let mut routes = Routes {
            prepared,
            set,
            taken: BTreeMap::new(),
        };
        let monitor = |replica: &&str| format!("monitor-{replica}");
        let node = |replica: &&str| format!("bitarchive-{replica}");
        let monitors = prepare::REPLICAS.iter().map(monitor);
        let monitors = monitors
            .map(|part| routes.load(&part))
            .collect::<Result<_, _>>()?;
        let nodes = prepare::REPLICAS.iter().map(node);
        let nodes = nodes
            .map(|part| routes.load(&part))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            monitors,
            nodes,
            checksums: routes.load(prepare::CHECKSUM_PART)?,
            repository: routes.load("repository")?,
            index: routes.load(prepare::INDEX)?,
            viewer: routes.load(prepare::VIEWER)?,
            set: routes.end()?,
        })
    }
}

/// Gives each part those of the `--set`s that are for it: `up` has many settings files, and a key is for those parts
/// that have its section.
struct Routes<'a> {
    prepared: &'a PreparedArchive,
    set: &'a [String],
    taken: BTreeMap<String, Vec<String>>,
}

impl Routes<'_> {
    fn load<T: DeserializeOwned + Serialize>(&mut self, part: &str) -> Result<T, Failure> {
        let file = self.prepared.settings(part);
        let plain: T = load(&file, &[])?;
        let sections = serde_json::to_value(&plain)
            .map_err(|error| Failure::new(Exit::Bug, error.to_string()))?;
        let is_for_it = |one: &&String| sections.get(section(one)).is_some();
        let own: Vec<String> = self.set.iter().filter(is_for_it).cloned().collect();
        if own.is_empty() {
            return Ok(plain);
        }
        let settings = load(&file, &own)?;
        self.taken.insert(part.to_owned(), own);
        Ok(settings)
    }

    /// Returns the settings of each part; a key that no part has is a mistake.
    fn end(self) -> Result<BTreeMap<String, Vec<String>>, Failure> {
        let is_taken = |one: &&String| self.taken.values().flatten().any(|taken| taken == *one);
        match self.set.iter().find(|one| !is_taken(one)) {
            None => Ok(self.taken),
            Some(one) => Err(Failure::new(
                Exit::Settings,
                format!("--set {one}: no part has a section `{}`", section(one)),
            )),
        }
    }
}

fn section(one: &str) -> &str {
    one.split(['.', '=']).next().unwrap_or(one)
}

async fn start(parts: Parts, daemon: &Daemon) -> Result<(), UpError> {
    for settings in parts.monitors {
        let part = daemon.part(&format!("monitor-{}", settings.monitor.replica));
        archive_monitor::serve(settings, part).await?;
    }
    for settings in parts.nodes {
        let part = daemon.part(&format!("bitarchive-{}", settings.bitarchive.node));
        archive_bitarchive::serve(settings, part, archive_runs::start).await?;
    }
    let part = daemon.part(prepare::CHECKSUM_PART);
    archive_bitarchive::checksum::serve(parts.checksums, part).await?;
    archive_repository::serve(parts.repository, daemon.part("repository")).await?;
    index_server::serve(parts.index, daemon.part(prepare::INDEX)).await?;
    viewer_web::serve(parts.viewer, daemon.part(prepare::VIEWER)).await?;
    Ok(())
}
