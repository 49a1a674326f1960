//! A running job: files are computed ahead, and their outputs are given in the order of the names.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::num::NonZero;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use archive_batch::{Plan, Stop, StopControl};
use archive_model::{BatchFileOutcome, FileName, FileSelection, JobId, JobNode, VolumeId};
use bytes::Bytes;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

use crate::context::JobContext;
use crate::early_end::EarlyEnd;
use crate::file;
use crate::instruments::JobInstruments;
use crate::names::names_page;
use crate::node_jobs::{JobSlot, NodeJobs};
use crate::output::{FileEvent, FileOutput, MOST_WAITING, WorkerContext};

/// The time between two reports of progress.
const EVERY: Duration = Duration::from_secs(1);

/// The order to run a job.
#[derive(Debug)]
pub(crate) struct RunOrder {
    /// The id of the job.
    pub(crate) id: JobId,
    /// The plan for each file.
    pub(crate) plan: Box<dyn Plan>,
    /// The files that the job reads.
    pub(crate) selection: FileSelection,
    /// The name after which the job begins.
    pub(crate) after: Option<FileName>,
    /// The most bytes of output.
    pub(crate) output: u64,
    /// The most files that are begun and not yet sent.
    pub(crate) ahead: NonZero<usize>,
    /// The control that ends the computing of the job.
    pub(crate) control: StopControl,
    /// The token that ends the waiting of the job.
    pub(crate) stop: CancellationToken,
}

/// A step of a running job.
#[derive(Debug)]
pub(crate) enum RunStep {
    /// The next file begins.
    Begin(FileName),
    /// The next bytes of its output.
    Output(Bytes),
    /// The file is done.
    Done(Box<BatchFileOutcome>),
    /// A report of progress.
    Progress(JobNode),
    /// The job is done: the number of files, and the volumes that were offline.
    End(u64, BTreeMap<VolumeId, String>),
}

/// A file that is being computed, or waits for its turn.
struct FileAhead {
    name: FileName,
    pieces: mpsc::Receiver<FileEvent>,
}

type Permit = Result<OwnedSemaphorePermit, AcquireError>;

/// A job that runs until it is dropped.
pub(crate) struct RunningJob {
    shared: Arc<JobContext>,
    node_jobs: Arc<NodeJobs>,
    waiting: WorkerContext,
    names: VecDeque<FileName>,
    /// The name after which the next page of names begins.
    after: Option<FileName>,
    /// Whether all names were read.
    is_listed: bool,
    ahead: VecDeque<FileAhead>,
    most_ahead: usize,
    /// The permit that the job waits for: it keeps its place in the queue.
    permit: Option<Pin<Box<dyn Future<Output = Permit> + Send>>>,
    /// Whether the first file was announced.
    is_begun: bool,
    /// Whether a progress report was given.
    has_progressed: bool,
    ticks: Interval,
    most_output: u64,
    output: u64,
    files: u64,
    offline: BTreeMap<VolumeId, String>,
}

impl Drop for RunningJob {
    fn drop(&mut self) {
        self.waiting.control.stop(Stop::Cancelled);
        self.waiting.stop.cancel();
    }
}

/// A file that is counted while it is in the job.
struct CountedFile(JobInstruments);

impl CountedFile {
    fn new(instruments: &JobInstruments) -> Self {
        instruments.files.inc();
        Self(instruments.clone())
    }
}

impl Drop for CountedFile {
    fn drop(&mut self) {
        self.0.files.dec();
    }
}

impl RunningJob {
    /// Begins a job. Must be called within the runtime.
    pub(crate) fn begin_job(node_jobs: &Arc<NodeJobs>, slot: JobSlot, order: RunOrder) -> Self {
        let waiting = WorkerContext {
            workers: Arc::new(Semaphore::new(node_jobs.workers)),
            control: order.control.clone(),
            stop: order.stop,
            runtime: tokio::runtime::Handle::current(),
        };
        let shared = Arc::new(JobContext {
            id: order.id,
            node: Arc::clone(&node_jobs.node),
            plan: order.plan,
            control: order.control,
            clock: node_jobs.clock.clone(),
            instruments: node_jobs.instruments.clone(),
            bytes: AtomicU64::new(0),
            total: AtomicU64::new(0),
            selection: order.selection,
            _slot: slot,
        });
        let counted = Arc::clone(&shared);
        let after = order.after.clone();
        node_jobs.tasks.spawn_blocking("batch-count", move || {
            count(&counted, after);
        });
        let mut ticks = interval_at(Instant::now() + EVERY, EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            shared,
            node_jobs: Arc::clone(node_jobs),
            waiting,
            names: VecDeque::new(),
            after: order.after,
            is_listed: false,
            ahead: VecDeque::new(),
            most_ahead: order.ahead.get(),
            permit: None,
            is_begun: false,
            has_progressed: false,
            ticks,
            most_output: order.output,
            output: 0,
            files: 0,
            offline: BTreeMap::new(),
        }
    }

    /// Returns the progress.
    pub(crate) fn job_progress(&self) -> JobNode {
        let total = self.shared.total.load(Ordering::Relaxed);
        JobNode {
            node: self.shared.node.id.clone(),
            files: self.files,
            files_total: (total > 0).then_some(total),
            bytes: self.shared.bytes.load(Ordering::Relaxed),
            seen: None,
        }
    }

    /// Stops waiting for a permit: a job whose caller does not read must not get one.
    pub(crate) fn let_go(&mut self) {
        self.permit = None;
    }

    /// Returns the next step. It must not be called again after the end or an error.
    pub(crate) async fn next(&mut self) -> Result<RunStep, EarlyEnd> {
        loop {
            if self.names.is_empty() && self.ahead.len() < self.most_ahead {
                self.read_names().await?;
            }
            let first = self.ahead.front().map(|ahead| &ahead.name);
            let Some(first) = first.or(self.names.front()) else {
                if !self.is_listed {
                    continue;
                }
                return Ok(RunStep::End(self.files, std::mem::take(&mut self.offline)));
            };
            if !self.is_begun {
                self.is_begun = true;
                return Ok(RunStep::Begin(first.clone()));
            }
            if !self.has_progressed {
                // Even the shortest job reports progress once.
                self.has_progressed = true;
                return Ok(RunStep::Progress(self.job_progress()));
            }
            match self.wait().await {
                Event::Tick => return Ok(RunStep::Progress(self.job_progress())),
                Event::Permit(permit) => {
                    let permit = permit.map_err(|error| EarlyEnd::Bug(error.to_string()))?;
                    self.start(permit);
                }
                Event::File(piece) => {
                    if let Some(step) = self.handle(piece)? {
                        return Ok(step);
                    }
                }
            }
        }
    }

    /// Reads a page of names, unless all were read.
    async fn read_names(&mut self) -> Result<(), EarlyEnd> {
        if self.is_listed {
            return Ok(());
        }
        let after = self.after.clone();
        let shared = Arc::clone(&self.shared);
        let read =
            spawn_blocking(move || names_page(&shared.node, &shared.selection, after.as_ref()));
        let page = read
            .await
            .map_err(|error| EarlyEnd::Bug(error.to_string()))??;
        self.names = page.names.into();
        self.is_listed = page.next.is_none();
        self.after = page.next;
        Ok(())
    }

    /// Waits for the first file, for a permit to begin one more, and for the next report of progress.
    async fn wait(&mut self) -> Event {
        let wants_more = self.ahead.len() < self.most_ahead && !self.names.is_empty();
        if wants_more && self.permit.is_none() {
            self.permit = Some(Box::pin(Arc::clone(&self.waiting.workers).acquire_owned()));
        }
        poll_fn(|cx| {
            if self.ticks.poll_tick(cx).is_ready() {
                return Poll::Ready(Event::Tick);
            }
            if let Some(permit) = self.permit.as_mut().filter(|_| wants_more)
                && let Poll::Ready(permit) = permit.as_mut().poll(cx)
            {
                self.permit = None;
                return Poll::Ready(Event::Permit(permit));
            }
            match self.ahead.front_mut() {
                Some(first) => first.pieces.poll_recv(cx).map(Event::File),
                None => Poll::Pending,
            }
        })
        .await
    }

    /// Computes the next file on a thread of its own.
    fn start(&mut self, permit: OwnedSemaphorePermit) {
        let Some(name) = self.names.pop_front() else {
            return;
        };
        let (sender, pieces) = mpsc::channel(MOST_WAITING);
        let turn = FileOutput::new(self.waiting.clone(), sender, permit);
        self.ahead.push_back(FileAhead {
            name: name.clone(),
            pieces,
        });
        let shared = Arc::clone(&self.shared);
        let counted = CountedFile::new(&shared.instruments);
        self.node_jobs.tasks.spawn_blocking("batch-file", move || {
            let _counted = counted;
            file::compute_file(&shared, &name, turn);
        });
    }

    /// Handles an event of the first file.
    fn handle(&mut self, piece: Option<FileEvent>) -> Result<Option<RunStep>, EarlyEnd> {
        let step = match piece {
            Some(FileEvent::Output(bytes)) => {
                self.output = self.output.saturating_add(bytes.len() as u64);
                if self.output > self.most_output {
                    self.waiting.control.stop(Stop::Output);
                    return Err(EarlyEnd::Stopped(Stop::Output));
                }
                return Ok(Some(RunStep::Output(bytes)));
            }
            Some(FileEvent::Done(done)) => {
                self.files += 1;
                let instruments = &self.shared.instruments;
                if done.failures.is_empty() {
                    instruments.whole.inc();
                } else {
                    instruments.failed.inc();
                }
                Some(RunStep::Done(done))
            }
            Some(FileEvent::Gone) => None,
            Some(FileEvent::Offline(volumes)) => {
                self.offline.extend(volumes);
                None
            }
            Some(FileEvent::Failed(ended)) => return Err(ended),
            None => {
                let stopped = self.waiting.control.stop_reason().map(EarlyEnd::Stopped);
                return Err(stopped.unwrap_or_else(|| {
                    EarlyEnd::Bug("the thread of a file ended without a last event".to_owned())
                }));
            }
        };
        self.ahead.pop_front();
        self.is_begun = false;
        Ok(step)
    }
}

/// The event that ended a wait.
enum Event {
    Tick,
    Permit(Permit),
    File(Option<FileEvent>),
}

/// Counts the files of a job, for people who wait. Ignores errors: the job itself meets them.
fn count(shared: &JobContext, mut after: Option<FileName>) {
    let mut total = 0;
    while shared.control.stop_reason().is_none() {
        let Ok(page) = names_page(&shared.node, &shared.selection, after.as_ref()) else {
            return;
        };
        total += page.names.len() as u64;
        if page.next.is_none() {
            shared.total.store(total, Ordering::Relaxed);
            return;
        }
        after = page.next;
    }
}
