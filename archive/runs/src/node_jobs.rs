//! What the batch jobs of a node share: the engine, the places for jobs and reduce steps, the permits to compute.

use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use archive_batch::InvalidJob;
use archive_bitarchive::Node;
use archive_bitarchive::settings::NodeBatchSettings;
use archive_component::{Compiler, Components, Surroundings};
use archive_daemon::{Clock, Tasks};
use archive_durable::{DiskError, directory};
use archive_model::{JobLane, Program};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::instruments::BatchInstruments;
use crate::memory;
use crate::unclean::{NotedRun, UncleanEnds};

/// The most files of one job that are computed, or wait with their output, at once.
const MOST_AHEAD: NonZero<usize> = NonZero::<usize>::MIN.saturating_add(15);

/// Why batch jobs cannot be run at all.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BatchError {
    /// The directory for compiled components cannot be made.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The engine for components does not start.
    #[error(transparent)]
    Engine(#[from] InvalidJob),
}

/// What all batch jobs of a node share.
pub(crate) struct Batch {
    pub(crate) node: Arc<Node>,
    pub(crate) components: Components,
    /// Held while a component is compiled.
    pub(crate) compiling: Arc<Semaphore>,
    pub(crate) clock: Clock,
    pub(crate) tasks: Tasks,
    pub(crate) unclean: UncleanEnds,
    /// How many files a job computes at once.
    pub(crate) workers: usize,
    ahead: NonZero<usize>,
    /// How much memory the components of one job may take.
    share: u64,
    jobs: Arc<Semaphore>,
    most_jobs: u32,
    /// For jobs of the index, which wait for no other. They are built in, and take no share of the memory.
    index_jobs: Arc<Semaphore>,
    reduces: Arc<Semaphore>,
    most_reduces: u32,
    pub(crate) instruments: BatchInstruments,
}

/// The right to run a job; given back when the last of its threads has ended.
#[derive(Debug)]
pub(crate) struct Slot {
    instruments: BatchInstruments,
    _permit: OwnedSemaphorePermit,
    noted: Option<NotedRun>,
}

impl Slot {
    /// The same, for a run that is noted as long as it lasts.
    pub(crate) fn noting(self, run: NotedRun) -> Self {
        let mut slot = self;
        slot.noted = Some(run);
        slot
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.instruments.jobs.dec();
        drop(self.noted.take());
    }
}

/// The right to run a reduce step; given back when its thread has ended.
#[derive(Debug)]
pub(crate) struct ReduceSlot {
    _permit: OwnedSemaphorePermit,
    _noted: Option<NotedRun>,
}

impl ReduceSlot {
    /// The same, for a step that is noted as long as it lasts.
    pub(crate) fn noting(self, run: NotedRun) -> Self {
        Self {
            _noted: Some(run),
            ..self
        }
    }
}

impl Batch {
    /// Ready for jobs. What is compiled is kept in `batch-cache` under `data`: a cache, which may be deleted.
    pub(crate) fn open(
        node: &Arc<Node>,
        data: &Path,
        settings: NodeBatchSettings,
        (clock, tasks, executable): (&Clock, &Tasks, Option<&Path>),
        instruments: BatchInstruments,
    ) -> Result<Self, BatchError> {
        let cache = data.join("batch-cache");
        directory::make(&cache)?;
        let around = Surroundings {
            compiler: executable.map(|executable| Compiler::new(executable.to_owned())),
            spare: |work| archive_daemon::spare(work).is_ok(),
        };
        let cores = || thread::available_parallelism().map_or(1, NonZero::get);
        let workers = settings
            .workers
            .map_or_else(cores, |workers| usize::from(workers.get()));
        Ok(Self {
            node: Arc::clone(node),
            components: Components::within(around, Some(&cache))?,
            compiling: Arc::new(Semaphore::new(1)),
            clock: clock.clone(),
            tasks: tasks.clone(),
            unclean: UncleanEnds::open(data)?,
            workers,
            ahead: NonZero::new(workers.saturating_mul(2))
                .unwrap_or(NonZero::<usize>::MIN)
                .min(MOST_AHEAD),
            share: memory::share(settings.memory, memory::installed(), settings.jobs),
            jobs: Arc::new(Semaphore::new(usize::from(settings.jobs.get()))),
            most_jobs: settings.jobs.get().into(),
            index_jobs: Arc::new(Semaphore::new(JobLane::MOST_OF_INDEX)),
            reduces: Arc::new(Semaphore::new(usize::from(settings.reduces.get()))),
            most_reduces: settings.reduces.get().into(),
            instruments,
        })
    }

    /// A place among the jobs of a lane that run; absent while too many do.
    pub(crate) fn slot(&self, lane: JobLane) -> Option<Slot> {
        let places = match lane {
            JobLane::Research => &self.jobs,
            JobLane::Index => &self.index_jobs,
        };
        let permit = Arc::clone(places).try_acquire_owned().ok()?;
        self.instruments.jobs.inc();
        Some(Slot {
            instruments: self.instruments.clone(),
            _permit: permit,
            noted: None,
        })
    }

    /// A place among the reduce steps that run; absent while too many do.
    pub(crate) fn reduce_slot(&self) -> Option<ReduceSlot> {
        let permit = Arc::clone(&self.reduces).try_acquire_owned().ok()?;
        Some(ReduceSlot {
            _permit: permit,
            _noted: None,
        })
    }

    /// How many reduce steps run at once at most.
    pub(crate) const fn most_reduces(&self) -> u32 {
        self.most_reduces
    }

    /// How many files of a job are begun at most, and not yet taken, when a component of it may take so many bytes.
    pub(crate) fn most_ahead(&self, program: &Program, memory: u64) -> NonZero<usize> {
        match program {
            Program::BuiltIn(_) => self.ahead,
            Program::Component(_) => memory::fitting(self.share, memory, self.ahead),
        }
    }

    /// How many jobs run at once at most.
    pub(crate) const fn most_jobs(&self) -> u32 {
        self.most_jobs
    }
}
