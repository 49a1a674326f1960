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
mod story;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use archive_client::{Access, ArchiveReader, ArchiveStatus};
use archive_daemon::{Clock, Daemon, StartError, Starting};
use archive_durable::directory;
use clap::Args;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tools_terminal::context::{CommandContext, Global};
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::output::tell_user;
use tools_terminal::session::Session;

use self::prepare::{PreparedArchive, prepare_archive};
use self::processes::Processes;
use self::story::Story;
use crate::commands::parts::{live_part, load_part_settings};
use crate::commands::status::state_line;

/// The time that the parts may take to find each other.
const PATIENCE: Duration = Duration::from_secs(30);

/// The pause before the archive is asked again whether all of it is up.
const PAUSE: Duration = Duration::from_millis(300);

/// The age at which the line of state is renewed.
const REFRESH: Duration = Duration::from_secs(3);

/// Start a whole archive on this machine
#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own"
)]
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
    /// Show the logs here; without this option they are in DIR/logs, if this is a terminal
    #[arg(long)]
    verbose: bool,
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
    pub(crate) fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let prepared = prepare_archive(&self.data, self.first_port, Clock::system_clock().now())?;
        let parts = Parts::load(&prepared, &context.global.set)?;
        let story = Story::new();
        let logs = (story.is_on_terminal() && !self.verbose).then(|| prepared.logs_path());
        let mut settings = parts.repository.daemon.clone();
        if let Some(logs) = &logs {
            directory::make_directory(logs)
                .map_err(|error| Failure::because_failed(error.to_string()))?;
            settings.log_file.get_or_insert(logs.join("up.log"));
            tell_user(&format!("starting; the logs are in {}", logs.display()));
        }
        let global = Global {
            client: Some(prepared.client_file()),
            who: None,
            set: Vec::new(),
            ..context.global.clone()
        };
        let shown = story.clone();
        let ended = live_part("up", &settings, move |daemon| {
            Box::pin(async move {
                let processes = if self.processes {
                    let started =
                        Processes::start_parts(&prepared, &parts.set, logs, &story, &daemon);
                    Some(started.map_err(|error| StartError::failed("start the parts", error))?)
                } else {
                    start(parts, &prepared, &daemon).await?;
                    None
                };
                let session = Session::open(&global)
                    .map_err(|failure| StartError::failed("ask the archive", failure.message))?;
                let view = View {
                    prepared,
                    story,
                    reader: session.reader(),
                };
                self.show(view, processes.as_ref(), &daemon).await
            })
        });
        shown.end();
        ended
    }

    /// Runs the demonstration, where it is wanted; then says where everything is.
    async fn show(
        &self,
        view: View,
        processes: Option<&Processes>,
        daemon: &Daemon,
    ) -> Result<(), StartError> {
        let stop = daemon.tasks.stop_token();
        tokio::select! {
            () = view.wait_until_up(&daemon.clock) => {}
            () = stop.cancelled() => return Ok(()),
        }
        if self.demo {
            let shown = tokio::select! {
                shown = demonstration::run_demonstration(&view.prepared, processes, &view.story) => shown,
                () = stop.cancelled() => Ok(()),
            };
            shown.map_err(|error| StartError::failed("demonstrate the archive", error))?;
        }
        _ = writeln!(io::stdout(), "\n{}\n", view.prepared.greeting());
        if self.once {
            daemon.tasks.stop_all();
        } else if view.story.is_on_terminal() {
            let clock = daemon.clock.clone();
            daemon.tasks.spawn("state", async move {
                tokio::select! {
                    never = view.keep_state(&clock) => never,
                    () = stop.cancelled() => {}
                }
            });
        }
        Ok(())
    }
}

/// What is shown of a running archive, and where it is asked.
struct View {
    prepared: PreparedArchive,
    story: Story,
    reader: ArchiveReader,
}

impl View {
    /// Waits until the parts have found each other, but not for one that does not come.
    async fn wait_until_up(&self, clock: &Clock) {
        let begun = clock.instant();
        loop {
            let state = match self.reader.status().await {
                Ok(status) if is_up(&status) => {
                    let step =
                        format!("the archive is up, with {} replicas", status.replicas.len());
                    return self.story.tell_step(&step);
                }
                Ok(status) => state_line(&status),
                Err(error) => error.to_string(),
            };
            if clock.elapsed_since(begun) > PATIENCE {
                return self
                    .story
                    .tell_event(&format!("not all of it is up: {state}"));
            }
            clock.sleep(PAUSE).await;
        }
    }

    /// Keeps the line of state up to date.
    async fn keep_state(&self, clock: &Clock) -> ! {
        loop {
            let line = match self.reader.status().await {
                Ok(status) => state_line(&status),
                Err(error) => error.to_string(),
            };
            self.story.show_state(&line);
            clock.sleep(REFRESH).await;
        }
    }
}

/// Returns whether each replica answers, with all of its nodes.
fn is_up(status: &ArchiveStatus) -> bool {
    status.replicas.iter().all(|replica| {
        let mut in_service = replica.nodes.iter().filter(|node| !node.is_retired());
        replica.problem.is_none() && !replica.nodes.is_empty() && in_service.all(|node| node.alive)
    })
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
        let file = self.prepared.settings_path(part);
        let plain: T = load_part_settings(&file, &[])?;
        let sections = serde_json::to_value(&plain)
            .map_err(|error| Failure::new(Exit::Bug, error.to_string()))?;
        let is_for_it = |one: &&String| sections.get(section(one)).is_some();
        let own: Vec<String> = self.set.iter().filter(is_for_it).cloned().collect();
        if own.is_empty() {
            return Ok(plain);
        }
        let settings = load_part_settings(&file, &own)?;
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

/// Starts all parts in this process.
async fn start(
    parts: Parts,
    prepared: &PreparedArchive,
    daemon: &Daemon,
) -> Result<(), StartError> {
    let starter = PartStarter { prepared, daemon };
    for settings in parts.monitors {
        let name = format!("monitor-{}", settings.monitor.replica);
        starter
            .start(&name, &name, |daemon| {
                archive_monitor::serve_monitor(settings, daemon)
            })
            .await?;
    }
    for settings in parts.nodes {
        let own = &settings.bitarchive;
        let file = format!("bitarchive-{}", own.replica);
        let name = format!("bitarchive-{}", own.node);
        let serve =
            |daemon| archive_bitarchive::serve_node(settings, daemon, archive_runs::start_runs);
        starter.start(&file, &name, serve).await?;
    }
    let serve =
        |daemon| archive_bitarchive::checksum::serve_checksum_replica(parts.checksums, daemon);
    starter
        .start(prepare::CHECKSUM_PART, prepare::CHECKSUM_PART, serve)
        .await?;
    let serve = |daemon| archive_repository::serve_repository(parts.repository, daemon);
    starter.start("repository", "repository", serve).await?;
    let serve = |daemon| index_server::serve_index(parts.index, daemon);
    starter.start(prepare::INDEX, prepare::INDEX, serve).await?;
    let serve = |daemon| viewer_web::serve_viewer(parts.viewer, daemon);
    starter.start(prepare::VIEWER, prepare::VIEWER, serve).await
}

/// Starts one part of several in this process.
struct PartStarter<'a> {
    prepared: &'a PreparedArchive,
    daemon: &'a Daemon,
}

impl PartStarter<'_> {
    /// Starts a part. An error names its settings file, which is called `file`; its tasks begin with `name`.
    async fn start(
        &self,
        file: &str,
        name: &str,
        serve: impl FnOnce(Daemon) -> Starting<SocketAddr>,
    ) -> Result<(), StartError> {
        let served = serve(self.daemon.for_part(name)).await;
        let served = served.map_err(|error| error.in_file(&self.prepared.settings_path(file)));
        served.map(drop)
    }
}
