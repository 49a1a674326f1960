//! The engine that runs components, and those that it has compiled.
//!
//! Owns the settings of the engine, and its clock: every few milliseconds whatever computes looks whether it may go on.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use archive_model::{JobLimits, Root};
use wasmtime::component::Linker;
use wasmtime::{CacheConfig, Config, Engine, EngineWeak};

use super::block::Block;
use super::cache::Cache;
use super::compile::Program;
use super::guest::{Call, Guest};
use super::host::{self, Host};
use super::{About, Component, reason};
use crate::control::{Control, Stop};
use crate::job::Sink;
use crate::plan::InvalidJob;

/// How deep components may call.
pub(super) const STACK: usize = 1 << 20;
/// How often what computes looks whether it may go on.
const TICK: Duration = Duration::from_millis(10);
/// How many compiled components are kept: one of Python takes about 60 MB.
const KEPT: usize = 4;
/// How long a component may compute to say what it is.
const DESCRIBE: Duration = Duration::from_secs(5);

/// The engine that runs components, and those that it has compiled. One for each process; clones are the same one.
#[derive(Clone)]
pub struct Components(Arc<Inner>);

struct Inner {
    engine: Engine,
    linker: Linker<Host>,
    cache: Option<Cache>,
    /// The last one used is the last.
    kept: Mutex<Vec<(Root, Slot)>>,
}

/// A component that was compiled, is being compiled, or was refused.
type Slot = Arc<OnceLock<Result<Arc<Component>, InvalidJob>>>;

impl fmt::Debug for Components {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Components").finish_non_exhaustive()
    }
}

impl Components {
    /// An engine that keeps what it compiles under `cache`, or only in memory.
    ///
    /// What lies under `cache` is run: nobody else may write there.
    pub fn new(cache: Option<&Path>) -> Result<Self, InvalidJob> {
        let failed = |error: wasmtime::Error| {
            InvalidJob::Component(format!("there is no engine for components here: {error:#}"))
        };
        let cache = cache.map(Cache::new);
        let engine = Engine::new(&config(cache.as_ref()).map_err(failed)?).map_err(failed)?;
        let linker = host::linker(&engine).map_err(failed)?;
        let weak = engine.weak();
        thread::Builder::new()
            .name("component-clock".to_owned())
            .spawn(move || tick(&weak))
            .map_err(|error| failed(error.into()))?;
        Ok(Self(Arc::new(Inner {
            engine,
            linker,
            cache,
            kept: Mutex::new(Vec::new()),
        })))
    }

    /// The component with this BLAKE3, if it is at hand without its bytes.
    pub fn get(&self, digest: &Root) -> Option<Arc<Component>> {
        let slot = self.slot(digest, false)?;
        slot.get()?.as_ref().ok().map(Arc::clone)
    }

    /// Compiles a component, or takes it from the cache; says why it is refused. Takes seconds for tens of megabytes.
    ///
    /// The same component is compiled once, whoever asks at the same time.
    pub fn compile(&self, bytes: &[u8]) -> Result<Arc<Component>, InvalidJob> {
        let digest = Root::from_bytes(*blake3::hash(bytes).as_bytes());
        let Some(slot) = self.slot(&digest, true) else {
            return self.compile_now(digest, bytes);
        };
        let compiled = slot.get_or_init(|| self.compile_now(digest, bytes));
        if compiled.is_err() {
            self.forget(&slot);
        }
        compiled.clone()
    }

    fn compile_now(&self, digest: Root, bytes: &[u8]) -> Result<Arc<Component>, InvalidJob> {
        let compile = || Program::compile(&self.0.engine, &self.0.linker, bytes);
        let program = match &self.0.cache {
            None => compile()?,
            Some(cache) => cache.with(compile).map_err(|error| {
                let directory = cache.code().display();
                InvalidJob::Component(format!(
                    "what was compiled before is kept in {directory}, which cannot be used: {error}"
                ))
            })??,
        };
        let limits = JobLimits {
            file_time: DESCRIBE,
            ..JobLimits::default()
        };
        let described = Guest::start(&program, limits, &Control::default())
            .and_then(|mut guest| guest.call(Call::Describe, &mut Block::nothing(), &mut Nowhere));
        let text = described
            .map_err(|error| InvalidJob::Component(format!("asked for `describe`, {error}")))?;
        let about = About {
            text: reason::short(text),
            reduces: program.reduces(),
        };
        Ok(Arc::new(Component {
            digest,
            about,
            program,
        }))
    }

    /// The place of a component, which becomes the last one used.
    fn slot(&self, digest: &Root, make: bool) -> Option<Slot> {
        let mut kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
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
        let mut kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(_, other)| !Arc::ptr_eq(other, slot));
    }
}

/// What describes itself writes nothing.
struct Nowhere;

impl Sink for Nowhere {
    fn write(&mut self, _bytes: &[u8]) -> Result<(), Stop> {
        Err(Stop::Output)
    }
}

fn config(cache: Option<&Cache>) -> wasmtime::Result<Config> {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .max_wasm_stack(STACK)
        // The same on every node, whatever its processor does with what is no number.
        .cranelift_nan_canonicalization(true)
        .relaxed_simd_deterministic(true);
    if let Some(cache) = cache {
        let mut settings = CacheConfig::new();
        settings
            .with_directory(cache.code())
            // What is used often would be written again, and then not be what was noted.
            .with_optimized_compression_usage_counter_threshold(u64::MAX);
        config.cache(Some(wasmtime::Cache::new(settings)?));
    }
    Ok(config)
}

/// Goes on as long as there is the engine.
fn tick(engine: &EngineWeak) {
    while let Some(engine) = engine.upgrade() {
        engine.increment_epoch();
        drop(engine);
        thread::sleep(TICK);
    }
}
