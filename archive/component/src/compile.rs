//! The imports and exports that make a component a job.
//!
//! Owns the refusals, in plain words. Compiles; keeps nothing.

use archive_batch::InvalidJob;
use archive_model::limits::LARGEST_COMPONENT;
use wasmtime::component::{
    Component as Code, ComponentExportIndex, ComponentNamedList, Instance, InstancePre, Lift,
    Linker, Lower, TypedFunc,
};
use wasmtime::{Engine, Store};

use super::bounds;
use super::host::{Halt, Host};
use super::wit::{ArchiveRecord, Arguments, CallResult, File};

/// The beginning of all interfaces.
const PACKAGE: &str = "holdfast:batch/";
const RECORDS: &str = "holdfast:batch/records@1.0.0";
const BYTES: &str = "holdfast:batch/bytes@1.0.0";
const REDUCER: &str = "holdfast:batch/reducer@1.0.0";

/// The rest of the first bytes of a module and of a component.
const MODULE: &[u8] = b"\0asm\x01\0\0\0";
const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

/// Runs a function whose panic ends one job. Returns whether the function went to its end.
type Spare = fn(&mut dyn FnMut()) -> bool;

/// The part of a file that a component is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JobInput {
    Records,
    Bytes,
}

/// A compiled component whose imports and exports are those of a job.
pub(super) struct Program {
    code: InstancePre<Host>,
    spare: Spare,
    shows: JobInput,
    describe: ComponentExportIndex,
    begin: ComponentExportIndex,
    /// `record` or `more`.
    next: ComponentExportIndex,
    end: ComponentExportIndex,
    reduce: Option<ComponentExportIndex>,
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program")
            .field("shows", &self.shows)
            .field("reduces", &self.reduce.is_some())
            .finish_non_exhaustive()
    }
}

type Function<P> = TypedFunc<P, (CallResult,)>;

/// The functions of one instance, with their types.
pub(super) struct Functions {
    pub(super) describe: TypedFunc<(), (String,)>,
    pub(super) begin: Function<(File, Arguments)>,
    record: Option<Function<(ArchiveRecord,)>>,
    more: Option<Function<(Vec<u8>,)>>,
    pub(super) end: Function<()>,
    reduce: Option<Function<(Arguments,)>>,
}

impl Functions {
    pub(super) fn record_function(&self) -> Result<&Function<(ArchiveRecord,)>, Halt> {
        self.record.as_ref().ok_or(Halt::Gone)
    }

    pub(super) fn more_function(&self) -> Result<&Function<(Vec<u8>,)>, Halt> {
        self.more.as_ref().ok_or(Halt::Gone)
    }

    pub(super) fn reduce_function(&self) -> Result<&Function<(Arguments,)>, Halt> {
        self.reduce.as_ref().ok_or(Halt::Gone)
    }
}

impl Program {
    /// Compiles a component in binary form and looks whether it is a job.
    pub(super) fn compile_program(
        engine: &Engine,
        linker: &Linker<Host>,
        bytes: &[u8],
    ) -> Result<Self, InvalidJob> {
        looks_like_one(bytes)?;
        bounds::check_bounds(bytes).map_err(InvalidJob::Component)?;
        let code = Code::from_binary(engine, bytes).map_err(|error| {
            refuse(format!(
                "it does not compile: {}",
                innermost_message(&error)
            ))
        })?;
        imports_nothing_else(engine, &code).map_err(InvalidJob::Component)?;
        Self::link(linker, &code)
    }

    fn link(linker: &Linker<Host>, code: &Code) -> Result<Self, InvalidJob> {
        let records = code.get_export_index(None, RECORDS);
        let bytes = code.get_export_index(None, BYTES);
        let (shows, name, next, instance) = match (records, bytes) {
            (Some(records), None) => (JobInput::Records, RECORDS, "record", records),
            (None, Some(bytes)) => (JobInput::Bytes, BYTES, "more", bytes),
            (Some(_), Some(_)) => {
                return Err(refuse(format!(
                    "it exports both {RECORDS} and {BYTES}; a job is shown one of the two"
                )));
            }
            (None, None) => {
                let there = exports(code);
                return Err(refuse(format!(
                    "it is no job: it exports neither {RECORDS} nor {BYTES}, but {there}"
                )));
            }
        };
        let function = |interface: &str, instance: &ComponentExportIndex, function: &str| {
            code.get_export_index(Some(instance), function)
                .ok_or_else(|| refuse(format!("its {interface} has no function `{function}`")))
        };
        let reduce = match code.get_export_index(None, REDUCER) {
            Some(reducer) => Some(function(REDUCER, &reducer, "reduce")?),
            None => None,
        };
        let pre = linker.instantiate_pre(code).map_err(|error| {
            refuse(format!(
                "what it imports is not what there is: {}",
                innermost_message(&error)
            ))
        })?;
        Ok(Self {
            shows,
            describe: function(name, &instance, "describe")?,
            begin: function(name, &instance, "begin")?,
            next: function(name, &instance, next)?,
            end: function(name, &instance, "end")?,
            reduce,
            code: pre,
            spare: |work| {
                work();
                true
            },
        })
    }

    /// Returns the program with `spare`, which catches a panic beside one of its instances.
    pub(super) fn with_spare(self, spare: Spare) -> Self {
        Self { spare, ..self }
    }

    /// Runs a function, and returns whether it went to its end.
    pub(super) fn spare_work(&self, mut work: impl FnMut()) -> bool {
        (self.spare)(&mut work)
    }

    pub(super) fn engine(&self) -> &Engine {
        self.code.engine()
    }

    pub(super) fn job_input(&self) -> JobInput {
        self.shows
    }

    pub(super) fn has_reduce(&self) -> bool {
        self.reduce.is_some()
    }

    /// Makes a fresh instance, and returns its functions. Fails if one of them has another type.
    pub(super) fn instantiate_functions(
        &self,
        store: &mut Store<Host>,
    ) -> wasmtime::Result<Functions> {
        let instance = self.code.instantiate(&mut *store)?;
        let (record, more) = match self.shows {
            JobInput::Records => (Some(typed(store, &instance, &self.next, "record")?), None),
            JobInput::Bytes => (None, Some(typed(store, &instance, &self.next, "more")?)),
        };
        let reduce = match &self.reduce {
            Some(index) => Some(typed(store, &instance, index, "reduce")?),
            None => None,
        };
        Ok(Functions {
            describe: typed(store, &instance, &self.describe, "describe")?,
            begin: typed(store, &instance, &self.begin, "begin")?,
            record,
            more,
            end: typed(store, &instance, &self.end, "end")?,
            reduce,
        })
    }
}

/// The error of a function that has another type than a job's.
#[derive(Debug, thiserror::Error)]
#[error("its function `{name}` has another type than in holdfast:batch@1.0.0: {reason}")]
pub(super) struct OtherType {
    name: &'static str,
    reason: String,
}

fn typed<P, R>(
    store: &mut Store<Host>,
    instance: &Instance,
    index: &ComponentExportIndex,
    name: &'static str,
) -> wasmtime::Result<TypedFunc<P, R>>
where
    P: ComponentNamedList + Lower,
    R: ComponentNamedList + Lift,
{
    instance.get_typed_func(store, index).map_err(|error| {
        let reason = innermost_message(&error);
        OtherType { name, reason }.into()
    })
}

fn refuse(reason: String) -> InvalidJob {
    InvalidJob::Component(super::reason::shorten_text(reason))
}

/// Returns the innermost words of an error, on one line.
fn innermost_message(error: &wasmtime::Error) -> String {
    let words = error.root_cause().to_string();
    words.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

fn size(bytes: &[u8]) -> Result<(), InvalidJob> {
    let size = bytes.len() as u64;
    if size > LARGEST_COMPONENT {
        return Err(refuse(format!(
            "it has {size} bytes; at most {LARGEST_COMPONENT} are taken"
        )));
    }
    if bytes.is_empty() {
        return Err(refuse("it is empty".to_owned()));
    }
    Ok(())
}

/// Looks at nothing but its first bytes: a caller that reads on is prepared for more than this process is.
pub(super) fn looks_like_one(bytes: &[u8]) -> Result<(), InvalidJob> {
    size(bytes)?;
    first_bytes(bytes).map_err(InvalidJob::Component)
}

fn first_bytes(bytes: &[u8]) -> Result<(), String> {
    if bytes.starts_with(MODULE) {
        return Err(
            "it is a core module and no component; make one of it with `wasm-tools component new`, or let the tool of \
             your language make it (see archive/component/examples)"
                .to_owned(),
        );
    }
    if !bytes.starts_with(COMPONENT) {
        return Err(
            "it is no WebAssembly component in binary form: it begins with other bytes; make text (`.wat`) binary with \
             `wasm-tools parse`"
                .to_owned(),
        );
    }
    Ok(())
}

/// Fails with the imports of a component that a job may not have.
fn imports_nothing_else(engine: &Engine, code: &Code) -> Result<(), String> {
    let ty = code.component_type();
    let foreign: Vec<&str> = ty
        .imports(engine)
        .map(|(name, _)| name)
        .filter(|name| !name.starts_with(PACKAGE))
        .collect();
    if foreign.is_empty() {
        return Ok(());
    }
    Err(format!(
        "it imports {}, and a job may import only {PACKAGE}…: build it with `componentize-py … --stub-wasi`, with \
         `componentize-js … --disable stdio random clocks http fetch-event`, or in Rust for wasm32-unknown-unknown",
        few(&foreign)
    ))
}

fn exports(code: &Code) -> String {
    let ty = code.component_type();
    let names: Vec<&str> = ty.exports(code.engine()).map(|(name, _)| name).collect();
    if names.is_empty() {
        return "nothing".to_owned();
    }
    few(&names)
}

/// Returns the first names as a text, with the number of further ones.
fn few(names: &[&str]) -> String {
    const SHOWN: usize = 8;
    let shown = names
        .iter()
        .take(SHOWN)
        .copied()
        .collect::<Vec<_>>()
        .join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
