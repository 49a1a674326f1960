//! A job that runs: files are computed ahead, and what comes of them is given in the order of the names.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::num::NonZero;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use archive_batch::{Control, Plan, Stop};
use archive_model::{FileName, FileOutcome, FileSelection, JobId, NodeId, VolumeId};
use bytes::Bytes;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

use crate::ended::Ended;
use crate::file;
use crate::instruments::BatchInstruments;
use crate::names::page;
use crate::node_jobs::{Batch, Slot};
use crate::shared::Shared;
use crate::turn::{PIECES, Piece, Turn, Waiting};

/// How often it says how far it is.
const EVERY: Duration = Duration::from_secs(1);

/// What is to be run.
#[derive(Debug)]
pub(crate) struct Order {
    /// The job.
    pub(crate) id: JobId,
    /// What is done with each file.
    pub(crate) plan: Box<dyn Plan>,
    /// Which files.
    pub(crate) selection: FileSelection,
    /// Only files after this name.
    pub(crate) after: Option<FileName>,
    /// The most bytes of output.
    pub(crate) output: u64,
    /// How many files are begun at most, and not yet taken.
    pub(crate) ahead: NonZero<usize>,
    /// How it is told to end.
    pub(crate) control: Control,
    /// The same, for what waits.
    pub(crate) stop: CancellationToken,
}

/// What comes of a job.
#[derive(Debug)]
pub(crate) enum Step {
    /// The next file.
    Begin(FileName),
    /// The next bytes about it.
    Output(Bytes),
    /// Its end.
    Done(Box<FileOutcome>),
    /// How far it is.
    Progress(Progress),
    /// The end: how many files were done, and which volumes were offline.
    End(u64, BTreeMap<VolumeId, String>),
}

/// How far a job is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) node: NodeId,
    pub(crate) files: u64,
    /// 0: not counted yet.
    pub(crate) files_total: u64,
    pub(crate) bytes: u64,
}

/// A file that is computed, or was, and waits for its turn.
struct Ahead {
    name: FileName,
    pieces: mpsc::Receiver<Piece>,
}

type Permit = Result<OwnedSemaphorePermit, AcquireError>;

/// A job that runs, until it is dropped.
pub(crate) struct Running {
    shared: Arc<Shared>,
    batch: Arc<Batch>,
    waiting: Waiting,
    names: VecDeque<FileName>,
    /// Where the next page of names begins.
    after: Option<FileName>,
    /// Whether all names were read.
    is_listed: bool,
    ahead: VecDeque<Ahead>,
    most_ahead: usize,
    /// The one permit that is waited for: whoever waits keeps its place.
    permit: Option<Pin<Box<dyn Future<Output = Permit> + Send>>>,
    /// Whether the first of the files was begun.
    is_begun: bool,
    /// Whether it was said how far the job is.
    has_progressed: bool,
    ticks: Interval,
    most_output: u64,
    output: u64,
    files: u64,
    offline: BTreeMap<VolumeId, String>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.waiting.control.stop(Stop::Cancelled);
        self.waiting.stop.cancel();
    }
}

/// Counts a file while it is in the job.
struct Counted(BatchInstruments);

impl Counted {
    fn new(instruments: &BatchInstruments) -> Self {
        instruments.files.inc();
        Self(instruments.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.files.dec();
    }
}

impl Running {
    /// Begins. To be called within the runtime.
    pub(crate) fn begin(batch: &Arc<Batch>, slot: Slot, order: Order) -> Self {
        let waiting = Waiting {
            workers: Arc::new(Semaphore::new(batch.workers)),
            control: order.control.clone(),
            stop: order.stop,
            runtime: tokio::runtime::Handle::current(),
        };
        let shared = Arc::new(Shared {
            id: order.id,
            node: Arc::clone(&batch.node),
            plan: order.plan,
            control: order.control,
            clock: batch.clock.clone(),
            instruments: batch.instruments.clone(),
            bytes: AtomicU64::new(0),
            total: AtomicU64::new(0),
            selection: order.selection,
            _slot: slot,
        });
        let (counted, after) = (Arc::clone(&shared), order.after.clone());
        batch.tasks.spawn_blocking("batch-count", move || {
            count(&counted, after);
        });
        let mut ticks = interval_at(Instant::now() + EVERY, EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            shared,
            batch: Arc::clone(batch),
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

    /// How far it is.
    pub(crate) fn progress(&self) -> Progress {
        Progress {
            node: self.shared.node.id().clone(),
            files: self.files,
            files_total: self.shared.total.load(Ordering::Relaxed),
            bytes: self.shared.bytes.load(Ordering::Relaxed),
        }
    }

    /// Stops waiting for a permit: whoever does not listen just now must not be given one.
    pub(crate) fn let_go(&mut self) {
        self.permit = None;
    }

    /// What comes next. After the end, or an error, nothing more may be asked.
    pub(crate) async fn next(&mut self) -> Result<Step, Ended> {
        loop {
            if self.names.is_empty() && self.ahead.len() < self.most_ahead {
                self.read_names().await?;
            }
            let first = self.ahead.front().map(|ahead| &ahead.name);
            let Some(first) = first.or(self.names.front()) else {
                if !self.is_listed {
                    continue;
                }
                return Ok(Step::End(self.files, std::mem::take(&mut self.offline)));
            };
            if !self.is_begun {
                self.is_begun = true;
                return Ok(Step::Begin(first.clone()));
            }
            if !self.has_progressed {
                // However short the job is.
                self.has_progressed = true;
                return Ok(Step::Progress(self.progress()));
            }
            match self.wait().await {
                Event::Tick => return Ok(Step::Progress(self.progress())),
                Event::Permit(permit) => {
                    let permit = permit.map_err(|error| Ended::Bug(error.to_string()))?;
                    self.start(permit);
                }
                Event::Piece(piece) => {
                    if let Some(step) = self.take(piece)? {
                        return Ok(step);
                    }
                }
            }
        }
    }

    /// Reads a page of names, unless there are no more.
    async fn read_names(&mut self) -> Result<(), Ended> {
        if self.is_listed {
            return Ok(());
        }
        let after = self.after.clone();
        let shared = Arc::clone(&self.shared);
        let read = spawn_blocking(move || page(&shared.node, &shared.selection, after.as_ref()));
        let page = read
            .await
            .map_err(|error| Ended::Bug(error.to_string()))??;
        self.names = page.names.into();
        self.is_listed = page.next.is_none();
        self.after = page.next;
        Ok(())
    }

    /// Waits for the first file, for a permit to begin one more, and for the next moment to say how far it is.
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
                Some(first) => first.pieces.poll_recv(cx).map(Event::Piece),
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
        let (sender, pieces) = mpsc::channel(PIECES);
        let turn = Turn::new(self.waiting.clone(), sender, permit);
        self.ahead.push_back(Ahead {
            name: name.clone(),
            pieces,
        });
        let shared = Arc::clone(&self.shared);
        let counted = Counted::new(&shared.instruments);
        self.batch.tasks.spawn_blocking("batch-file", move || {
            let _counted = counted;
            file::compute(&shared, &name, turn);
        });
    }

    /// Takes what came of the first file.
    fn take(&mut self, piece: Option<Piece>) -> Result<Option<Step>, Ended> {
        let step = match piece {
            Some(Piece::Output(bytes)) => {
                self.output = self.output.saturating_add(bytes.len() as u64);
                if self.output > self.most_output {
                    self.waiting.control.stop(Stop::Output);
                    return Err(Ended::Stopped(Stop::Output));
                }
                return Ok(Some(Step::Output(bytes)));
            }
            Some(Piece::Done(done)) => {
                self.files += 1;
                let instruments = &self.shared.instruments;
                if done.failures.is_empty() {
                    instruments.whole.inc();
                } else {
                    instruments.failed.inc();
                }
                Some(Step::Done(done))
            }
            Some(Piece::Gone) => None,
            Some(Piece::Offline(volumes)) => {
                self.offline.extend(volumes);
                None
            }
            Some(Piece::Failed(ended)) => return Err(ended),
            None => {
                let stopped = self.waiting.control.why().map(Ended::Stopped);
                return Err(
                    stopped.unwrap_or_else(|| Ended::Bug("a file ended without a word".to_owned()))
                );
            }
        };
        self.ahead.pop_front();
        self.is_begun = false;
        Ok(step)
    }
}

/// What came of waiting.
enum Event {
    Tick,
    Permit(Permit),
    Piece(Option<Piece>),
}

/// Counts the files, for people who wait. That it fails is met by the job itself.
fn count(shared: &Shared, mut after: Option<FileName>) {
    let mut total = 0;
    while shared.control.why().is_none() {
        let Ok(page) = page(&shared.node, &shared.selection, after.as_ref()) else {
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
