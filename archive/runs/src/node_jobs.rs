//! The state that the batch jobs of a node share: the engine, the places of jobs and reduce steps, the permits to
//! compute.

use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use archive_batch::InvalidJob;
use archive_bitarchive::Node;
use archive_bitarchive::settings::NodeBatchSettings;
use archive_component::{Compiler, Components, ProcessHooks};
use archive_daemon::{Clock, Tasks};
use archive_durable::{DiskError, directory};
use archive_model::{JobClass, Program};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::instruments::JobInstruments;
use crate::memory;
use crate::unclean::{NotedRun, UncleanEnds};

/// The most files of one job that are computed, or wait with their output, at once.
const MOST_AHEAD: NonZero<usize> = NonZero::<usize>::MIN.saturating_add(15);

/// The reason why a node cannot run batch jobs at all.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    /// The directory for compiled components cannot be made.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The engine for components does not start.
    #[error(transparent)]
    Engine(#[from] InvalidJob),
}

/// The state that all batch jobs of a node share.
pub(crate) struct NodeJobs {
    pub(crate) node: Arc<Node>,
    pub(crate) components: Components,
    /// The permit to compile a component, of which there is one.
    pub(crate) compiling: Arc<Semaphore>,
    pub(crate) clock: Clock,
    pub(crate) tasks: Tasks,
    pub(crate) unclean: UncleanEnds,
    /// The number of files that a job computes at once.
    pub(crate) workers: usize,
    ahead: NonZero<usize>,
    /// The bytes of memory that the components of one job may take.
    share: u64,
    jobs: Arc<Semaphore>,
    most_jobs: u32,
    /// The places of jobs of the index, which wait for no other. They are built in, and take no share of the memory.
    index_jobs: Arc<Semaphore>,
    reduces: Arc<Semaphore>,
    most_reduces: u32,
    pub(crate) instruments: JobInstruments,
}

/// The place of a job that runs. It is free again when the last thread of the job has ended.
#[derive(Debug)]
pub(crate) struct JobSlot {
    instruments: JobInstruments,
    _permit: OwnedSemaphorePermit,
    noted: Option<NotedRun>,
}

impl JobSlot {
    /// Keeps the run noted on disk for as long as the place is taken.
    pub(crate) fn noting_run(self, run: NotedRun) -> Self {
        let mut slot = self;
        slot.noted = Some(run);
        slot
    }
}

impl Drop for JobSlot {
    fn drop(&mut self) {
        self.instruments.jobs.dec();
        drop(self.noted.take());
    }
}

/// The place of a reduce step that runs. It is free again when the thread of the step has ended.
#[derive(Debug)]
pub(crate) struct ReduceSlot {
    _permit: OwnedSemaphorePermit,
    _noted: Option<NotedRun>,
}

impl ReduceSlot {
    /// Keeps the step noted on disk for as long as the place is taken.
    pub(crate) fn noting_run(self, run: NotedRun) -> Self {
        Self {
            _noted: Some(run),
            ..self
        }
    }
}

/// The parts that the jobs of a node are made of.
#[derive(Debug)]
pub(crate) struct NodeJobsParts {
    pub(crate) node: Arc<Node>,
    /// The directory of what is kept over a restart.
    pub(crate) data: PathBuf,
    pub(crate) settings: NodeBatchSettings,
    pub(crate) clock: Clock,
    pub(crate) tasks: Tasks,
    /// The program that compiles components in a process of its own; without it, this process does.
    pub(crate) executable: Option<PathBuf>,
    pub(crate) instruments: JobInstruments,
}

impl NodeJobs {
    /// Starts the engine. Compiled components are kept in `batch-cache` under `data`: a cache, which may be deleted.
    pub(crate) fn open(parts: NodeJobsParts) -> Result<Self, OpenError> {
        let NodeJobsParts {
            node,
            data,
            settings,
            clock,
            tasks,
            executable,
            instruments,
        } = parts;
        let cache = data.join("batch-cache");
        directory::make_directory(&cache)?;
        let around = ProcessHooks {
            compiler: executable.map(Compiler::new),
            spare: |work| archive_daemon::catch_panic(work).is_ok(),
        };
        let cores = || thread::available_parallelism().map_or(1, NonZero::get);
        let workers = settings
            .workers
            .map_or_else(cores, |workers| usize::from(workers.get()));
        Ok(Self {
            node,
            components: Components::with_hooks(around, Some(&cache))?,
            compiling: Arc::new(Semaphore::new(1)),
            clock,
            tasks,
            unclean: UncleanEnds::open(&data)?,
            workers,
            ahead: NonZero::new(workers.saturating_mul(2))
                .unwrap_or(NonZero::<usize>::MIN)
                .min(MOST_AHEAD),
            share: memory::memory_share(settings.memory, memory::installed_memory(), settings.jobs),
            jobs: Arc::new(Semaphore::new(usize::from(settings.jobs.get()))),
            most_jobs: settings.jobs.get().into(),
            index_jobs: Arc::new(Semaphore::new(JobClass::MOST_OF_INDEX)),
            reduces: Arc::new(Semaphore::new(usize::from(settings.reduces.get()))),
            most_reduces: settings.reduces.get().into(),
            instruments,
        })
    }

    /// Takes a place among the jobs of a class. Returns `None` if all places are taken.
    pub(crate) fn take_slot(&self, class: JobClass) -> Option<JobSlot> {
        let places = match class {
            JobClass::Research => &self.jobs,
            JobClass::Index => &self.index_jobs,
        };
        let permit = Arc::clone(places).try_acquire_owned().ok()?;
        self.instruments.jobs.inc();
        Some(JobSlot {
            instruments: self.instruments.clone(),
            _permit: permit,
            noted: None,
        })
    }

    /// Takes a place among the reduce steps. Returns `None` if all places are taken.
    pub(crate) fn reduce_slot(&self) -> Option<ReduceSlot> {
        let permit = Arc::clone(&self.reduces).try_acquire_owned().ok()?;
        Some(ReduceSlot {
            _permit: permit,
            _noted: None,
        })
    }

    /// Returns the number of reduce steps that may run at once.
    pub(crate) const fn most_reduces(&self) -> u32 {
        self.most_reduces
    }

    /// Returns how many files of a job may be begun and not yet sent, if each component of it may take `memory` bytes.
    pub(crate) fn most_ahead(&self, program: &Program, memory: u64) -> NonZero<usize> {
        match program {
            Program::BuiltIn(_) => self.ahead,
            Program::Component(_) => memory::fitting_jobs(self.share, memory, self.ahead),
        }
    }

    /// Returns the number of jobs that may run at once.
    pub(crate) const fn most_jobs(&self) -> u32 {
        self.most_jobs
    }
}
