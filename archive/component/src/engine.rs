//! The engine that runs components, and the components that it has compiled.
//!
//! Owns the clock of the engine: every few milliseconds whatever computes looks whether it may continue.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use archive_batch::{InvalidJob, Sink, Stop, StopControl};
use archive_model::{JobLimits, Root};
use parking_lot::Mutex;
use tempfile::TempDir;
use wasmtime::component::Linker;
use wasmtime::{Engine, EngineWeak};

use super::block::Block;
use super::cache::Cache;
use super::child::{CompileError, Compiler};
use super::compile::{Program, looks_like_one};
use super::config::make_engine;
use super::guest::{Call, Guest};
use super::host::{self, Host};
use super::{About, Component, reason};

/// The time between two looks of computing code whether it may continue.
const TICK: Duration = Duration::from_millis(10);
/// The number of compiled components that are kept: one of Python takes about 60 MB.
const KEPT: usize = 4;
/// The time that a component may compute to describe itself.
const DESCRIBE: Duration = Duration::from_secs(5);

/// The engine that runs components, and the components that it has compiled. One for each process, shared by all
/// clones.
#[derive(Clone)]
pub struct Components(Arc<Inner>);

struct Inner {
    engine: Engine,
    linker: Linker<Host>,
    cache: Option<Cache>,
    around: ProcessHooks,
    /// The directory of the cache, if the caller named none.
    _scratch: Option<TempDir>,
    /// The components that are kept, the one used last at the end.
    kept: Mutex<Vec<(Root, Slot)>>,
}

/// A component that was compiled, is being compiled, or was refused.
type Slot = Arc<OnceLock<Result<Arc<Component>, CompileError>>>;

/// The functions that the process lends to the components that it runs.
#[derive(Clone, Debug)]
pub struct ProcessHooks {
    /// The process in which components are compiled; `None` for this process, which a component may then take down.
    pub compiler: Option<Compiler>,
    /// Runs a function, and returns whether it went to its end: if it panics, the process continues.
    pub spare: fn(&mut dyn FnMut()) -> bool,
}

impl Default for ProcessHooks {
    /// Returns hooks that compile in this process and spare no panic: for components of the person who runs the
    /// process.
    fn default() -> Self {
        Self {
            compiler: None,
            spare: |work| {
                work();
                true
            },
        }
    }
}

impl fmt::Debug for Components {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Components").finish_non_exhaustive()
    }
}

impl Components {
    /// Creates an engine that compiles in this process, and keeps compiled code under `cache`, or only in memory.
    ///
    /// Code that lies under `cache` is run: nobody else may write there.
    ///
    /// # Errors
    ///
    /// [`InvalidJob`] if the engine or its cache cannot be made.
    pub fn new(cache: Option<&Path>) -> Result<Self, InvalidJob> {
        Self::with_hooks(ProcessHooks::default(), cache)
    }

    /// Creates an engine as [`Components::new`] does, with the functions that the process lends to it.
    ///
    /// # Errors
    ///
    /// [`InvalidJob`] if the engine or its cache cannot be made.
    pub fn with_hooks(around: ProcessHooks, cache: Option<&Path>) -> Result<Self, InvalidJob> {
        let failed = |error: wasmtime::Error| {
            InvalidJob::Component(format!("there is no engine for components here: {error:#}"))
        };
        // Code that another process compiles comes by way of a cache.
        let scratch = if cache.is_none() && around.compiler.is_some() {
            Some(tempfile::tempdir().map_err(|error| failed(error.into()))?)
        } else {
            None
        };
        let cache = cache
            .or(scratch.as_ref().map(TempDir::path))
            .map(Cache::new);
        let engine = make_engine(cache.as_ref().map(Cache::code_path)).map_err(failed)?;
        let linker = host::make_linker(&engine).map_err(failed)?;
        let weak = engine.weak();
        thread::Builder::new()
            .name("component-clock".to_owned())
            .spawn(move || tick(&weak))
            .map_err(|error| failed(error.into()))?;
        Ok(Self(Arc::new(Inner {
            engine,
            linker,
            cache,
            around,
            _scratch: scratch,
            kept: Mutex::new(Vec::new()),
        })))
    }

    /// Returns the component with this BLAKE3 hash, if it is in memory already.
    pub fn get(&self, digest: &Root) -> Option<Arc<Component>> {
        let slot = self.slot(digest, false)?;
        slot.get()?.as_ref().ok().map(Arc::clone)
    }

    /// Compiles a component, or takes it from the cache. This takes seconds for tens of megabytes, or ends when
    /// `control` is stopped.
    ///
    /// The same component is compiled once, however many ask at the same time.
    ///
    /// # Errors
    /// [`CompileError`], which tells whether the component is at fault.
    pub fn compile_component(
        &self,
        bytes: &[u8],
        control: &StopControl,
    ) -> Result<Arc<Component>, CompileError> {
        let digest = Root::from_bytes(*blake3::hash(bytes).as_bytes());
        loop {
            control.check_stop()?;
            let Some(slot) = self.slot(&digest, true) else {
                return self.compile_now(digest, bytes, control);
            };
            let compiled = slot.get_or_init(|| self.compile_now(digest, bytes, control));
            if compiled.is_err() {
                self.forget(&slot);
            }
            // The caller that compiled it for both may have gone away meanwhile.
            if !matches!(compiled, Err(CompileError::Stopped(_))) {
                return compiled.clone();
            }
        }
    }

    fn compile_now(
        &self,
        digest: Root,
        bytes: &[u8],
        control: &StopControl,
    ) -> Result<Arc<Component>, CompileError> {
        looks_like_one(bytes)?;
        let program = match &self.0.cache {
            None => self.compile_here(bytes)?,
            Some(cache) => {
                let compile = || {
                    if let Some(compiler) = &self.0.around.compiler {
                        compiler.compile_in_child(cache.code_path(), bytes, control)?;
                    }
                    self.compile_here(bytes)
                };
                cache.with_lock(compile).map_err(|error| {
                    let directory = cache.code_path().display();
                    CompileError::Untried(format!(
                        "what was compiled before is kept in {directory}, which cannot be used: {error}"
                    ))
                })??
            }
        };
        let limits = JobLimits {
            file_time: DESCRIBE,
            ..JobLimits::default()
        };
        let described = Guest::start_guest(&program, limits, control).and_then(|mut guest| {
            guest.call_guest(Call::Describe, &mut Block::no_block(), &mut DescriptionSink)
        });
        control.check_stop()?;
        let text = described
            .map_err(|error| InvalidJob::Component(format!("asked for `describe`, {error}")))?;
        let about = About {
            text: reason::shorten_text(text),
            reduces: program.has_reduce(),
        };
        Ok(Arc::new(Component {
            digest,
            about,
            program,
        }))
    }

    /// Compiles in this process; code that another process has compiled just before is found in the cache.
    fn compile_here(&self, bytes: &[u8]) -> Result<Arc<Program>, CompileError> {
        let mut compiled = None;
        let ended = (self.0.around.spare)(&mut || {
            let inner = &self.0;
            let program = Program::compile_program(&inner.engine, &inner.linker, bytes);
            compiled = Some(program.map(|program| program.with_spare(inner.around.spare)));
        });
        match compiled.filter(|_| ended) {
            Some(program) => Ok(Arc::new(program?)),
            None => Err(InvalidJob::Component(
                "the compiler panicked; that is a bug, please report it".to_owned(),
            )
            .into()),
        }
    }

    /// Returns the place of a component, which becomes the one used last. Makes a place for a new component only if
    /// `make` is set.
    fn slot(&self, digest: &Root, make: bool) -> Option<Slot> {
        let mut kept = self.0.kept.lock();
        let found = kept.iter().position(|(other, _)| other == digest);
        let slot = match found {
            Some(at) => kept.remove(at).1,
            None if make => Slot::default(),
            None => return None,
        };
        kept.push((*digest, Arc::clone(&slot)));
        if kept.len() > KEPT {
            kept.remove(0);
        }
        Some(slot)
    }

    fn forget(&self, slot: &Slot) {
        let mut kept = self.0.kept.lock();
        kept.retain(|(_, other)| !Arc::ptr_eq(other, slot));
    }
}

/// A sink for a component that describes itself, which writes nothing.
struct DescriptionSink;

impl Sink for DescriptionSink {
    fn write(&mut self, _bytes: &[u8]) -> Result<(), Stop> {
        Err(Stop::Output)
    }
}

/// Goes on as long as there is the engine.
fn tick(engine: &EngineWeak) {
    while let Some(engine) = engine.upgrade() {
        engine.increment_epoch();
        drop(engine);
        thread::sleep(TICK);
    }
}
