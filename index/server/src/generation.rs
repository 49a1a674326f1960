//! The generations of the part: all that works on one database, from its opening to its end.
//!
//! Owns the end of a generation whose database is found damaged, and the start of the next one, which has the database
//! rebuilt. The process does not end for it: in `holdfast up` it has all other parts too, and these continue. For some
//! seconds the index cannot be reached, and says nothing that would be short.
//!
//! Not promised: to continue without end on a bad disk. The part ends as it does at any other failure when databases
//! are damaged again and again, or when somebody keeps the damaged one open.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use archive_client::{Access, Batch, ClientLimits};
use archive_daemon::run::bind_setting;
use archive_daemon::worker::DuplicateWorker;
use archive_daemon::{Daemon, StartError, TaskError, Tasks, Workers};
use archive_part::Part;
use index_captures::{CaptureIndex, CheckPoint};
use tokio::net::TcpListener;
use tokio::sync::{Notify, Semaphore};
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use crate::board::StatusBoard;
use crate::extract::Extractor;
use crate::follow::{DispatchTask, FeedTask};
use crate::follower::Follower;
use crate::health::{self, Health, OpenedDatabase};
use crate::job::{Jobs, SlowReplicas};
use crate::metrics::Instruments;
use crate::rpc;
use crate::settings::IndexSettings;
use crate::work::{CheckWorker, CompareWorker, TidyWorker};

/// A part whose database is damaged more often than this within [`SPAN`] ends.
const MOST_DAMAGES: usize = 3;

/// The time within which damages are counted: see [`MOST_DAMAGES`].
const SPAN: Duration = Duration::from_hours(1);

/// The names of the tasks.
const PART: &str = "index";

/// The longest time that the damaged database may stay open: queries that run end at their next capture.
const CLOSING: Duration = Duration::from_mins(1);

/// The pause before it is looked again whether it is closed.
const PAUSE: Duration = Duration::from_millis(50);

/// The state that all generations of the part share.
pub(crate) struct Generations {
    pub(crate) settings: IndexSettings,
    pub(crate) daemon: Daemon,
    pub(crate) access: Arc<dyn Access>,
    pub(crate) batch: Arc<dyn Batch>,
    pub(crate) client_limits: ClientLimits,
    pub(crate) part: Part,
    pub(crate) instruments: Instruments,
    /// The address of the service.
    pub(crate) address: SocketAddr,
    /// The longest time that the tasks of a generation may take to end.
    pub(crate) drain: Duration,
}

/// The parts of a generation that its workers, its tasks and its service share.
struct GenerationParts {
    tasks: Tasks,
    extractor: Extractor,
    follower: Arc<Follower>,
    board: Arc<StatusBoard>,
    health: Health,
    /// Woken when files may wait.
    wake: Arc<Notify>,
    /// Woken when everything was forgotten.
    forgotten: Arc<Notify>,
}

/// A generation that runs.
pub(crate) struct Generation {
    tasks: Tasks,
    health: Health,
}

/// The reason why the part ends before it is asked to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EndError {
    /// A task failed for another reason than damage, or damage is found again and again.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// The next generation does not start.
    #[error("cannot rebuild the database of captures: {0}")]
    Start(#[from] StartError),
}

impl Generations {
    /// Opens the database; one that is damaged is rebuilt.
    pub(crate) async fn open_newest(
        settings: &IndexSettings,
    ) -> Result<OpenedDatabase, StartError> {
        let memory = usize::try_from(settings.memory.bytes()).unwrap_or(usize::MAX);
        let data = settings.data.clone();
        spawn_blocking(move || health::open_index(&data, memory)).await?
    }

    /// Starts all that works on a database.
    pub(crate) fn start_generation(
        &self,
        opened: OpenedDatabase,
        listener: TcpListener,
    ) -> Result<Generation, DuplicateWorker> {
        let OpenedDatabase {
            captures,
            health,
            rebuilt,
        } = opened;
        let follower = Arc::new(Follower::new(
            captures.clone(),
            self.settings.queue_limits(),
            self.daemon.clock.clone(),
        ));
        self.instruments.show_counts(&follower.counts());
        let parts = GenerationParts {
            tasks: Tasks::new().for_part(PART),
            extractor: self.extractor(&follower),
            follower,
            board: Arc::new(StatusBoard::new(rebuilt)),
            health: health.clone(),
            wake: Arc::new(Notify::new()),
            forgotten: Arc::new(Notify::new()),
        };
        self.spawn_workers(&parts, captures)?;
        self.spawn_tasks(&parts);
        self.spawn_server(&parts, listener);
        Ok(Generation {
            tasks: parts.tasks,
            health,
        })
    }

    fn extractor(&self, follower: &Arc<Follower>) -> Extractor {
        Extractor {
            jobs: Jobs {
                batch: Arc::clone(&self.batch),
                limits: self.client_limits,
                chance: self.daemon.chance.clone(),
                clock: self.daemon.clock.clone(),
                instruments: self.instruments.clone(),
                slow: SlowReplicas::default(),
            },
            follower: Arc::clone(follower),
            instruments: self.instruments.clone(),
        }
    }

    /// Starts the jobs that take turns: tidying, checking and comparing.
    fn spawn_workers(
        &self,
        parts: &GenerationParts,
        captures: CaptureIndex,
    ) -> Result<(), DuplicateWorker> {
        let clock = &self.daemon.clock;
        let workers = Workers::new(clock.clone(), parts.tasks.clone());
        workers.spawn_worker(TidyWorker {
            captures: captures.clone(),
            health: parts.health.clone(),
        })?;
        workers.spawn_worker(CheckWorker {
            captures,
            health: parts.health.clone(),
            point: CheckPoint::default(),
        })?;
        workers.spawn_worker(CompareWorker {
            extractor: parts.extractor.clone(),
            follower: Arc::clone(&parts.follower),
            board: Arc::clone(&parts.board),
            instruments: self.instruments.clone(),
            chance: self.daemon.chance.clone(),
            clock: clock.clone(),
            wake: Arc::clone(&parts.wake),
            pause: self.settings.compare.duration(),
            has_waited: false,
        })
    }

    /// Starts the tasks that run until the stop: the watch on the database, the feed, and the dispatch of files.
    fn spawn_tasks(&self, parts: &GenerationParts) {
        let GenerationParts { tasks, health, .. } = parts;
        let stop = tasks.stop_token();
        tasks.spawn("health", health.clone().watch_health(stop.clone()));
        let feed = FeedTask {
            access: Arc::clone(&self.access),
            follower: Arc::clone(&parts.follower),
            board: Arc::clone(&parts.board),
            instruments: self.instruments.clone(),
            clock: self.daemon.clock.clone(),
            stop: stop.clone(),
            wake: Arc::clone(&parts.wake),
            forgotten: Arc::clone(&parts.forgotten),
        };
        let watched = health.clone();
        tasks.spawn("feed", async move {
            let ended = feed.run_feed().await;
            ended.inspect_err(|error| error.report_to(&watched))
        });
        let dispatch = DispatchTask {
            extractor: parts.extractor.clone(),
            follower: Arc::clone(&parts.follower),
            board: Arc::clone(&parts.board),
            clock: self.daemon.clock.clone(),
            stop,
            wake: Arc::clone(&parts.wake),
        };
        let watched = health.clone();
        tasks.spawn("dispatch", async move {
            let ended = dispatch.run_dispatch().await;
            ended.inspect_err(|error| error.report_to(&watched))
        });
    }

    /// Starts the service.
    fn spawn_server(&self, parts: &GenerationParts, listener: TcpListener) {
        let tasks = &parts.tasks;
        let door = rpc::Door {
            follower: Arc::clone(&parts.follower),
            board: Arc::clone(&parts.board),
            health: parts.health.clone(),
            instruments: self.instruments.clone(),
            wake: Arc::clone(&parts.wake),
            forgotten: Arc::clone(&parts.forgotten),
            queries: Arc::new(Semaphore::new(self.settings.queries.get())),
            bulk: rpc::Door::bulk_places(),
            temporary: self.settings.data.clone(),
            tasks: tasks.clone(),
        };
        let services = rpc::index_services(door);
        self.part.serve_within(tasks, listener, services);
    }

    /// Runs one generation after the other until the stop.
    pub(crate) async fn run_generations(
        self,
        first: Generation,
        stop: CancellationToken,
    ) -> Result<(), EndError> {
        let mut damages: Vec<Instant> = Vec::new();
        let mut generation = first;
        loop {
            let own = generation.tasks.stop_token();
            tokio::select! {
                () = stop.cancelled() => generation.tasks.stop_all(),
                () = own.cancelled() => {}
            }
            let ended = generation.tasks.join_tasks(self.drain).await;
            if stop.is_cancelled() {
                return Ok(ended?);
            }
            let now = self.daemon.clock.instant();
            damages.retain(|damage| now.saturating_duration_since(*damage) < SPAN);
            if !generation.health.is_damaged() || damages.len() >= MOST_DAMAGES {
                return Ok(ended?);
            }
            damages.push(now);
            drop(generation);
            match self.begin_anew(&stop).await? {
                Some(next) => generation = next,
                None => return Ok(()),
            }
        }
    }

    /// Starts the generation after one whose database is damaged. None: the stop came before.
    async fn begin_anew(&self, stop: &CancellationToken) -> Result<Option<Generation>, StartError> {
        let clock = &self.daemon.clock;
        let begin = clock.instant();
        let opened = loop {
            let opened = Self::open_newest(&self.settings).await;
            let waited = clock.elapsed_since(begin);
            match opened {
                _ if stop.is_cancelled() => return Ok(None),
                Err(error) if health::is_busy(&error) && waited < CLOSING => {
                    clock.sleep(PAUSE).await;
                }
                other => break other?,
            }
        };
        let (listener, _) = bind_setting("rpc.listen", self.address).await?;
        Ok(Some(self.start_generation(opened, listener)?))
    }
}
