//! User jobs: WebAssembly components, and all that holds them in.
//!
//! Owns the rules for components, and the end of one that breaks them. `wit/` says what a component is shown and what
//! it can ask for; it imports that and nothing else. Each file has an instance of its own on a thread of its own, so
//! that memory, stack and computing time of one file are separated from those of another. Does not limit the size of
//! the output: the [`Sink`] does that.
//!
//! Only binaries are compiled, no text. Where a [`Compiler`] is
//! named, a component is compiled in a process of its own, within limits of memory and time, before this process looks
//! at it; and a panic beside a component ends one job where the process [can spare](ProcessHooks::spare) it.
//!
//! The rooms in reading order:
//!
//! - `wit` (the nouns that cross the border), `block` (bytes that a component is shown a piece at a time);
//! - `config` (the settings of an engine), `compile` and `child` (bytes become a program, within limits), `cache`
//!   (compiled ones on disk), `bounds` (of memory);
//! - `host` (what a component may ask for), `guest` (one instance on its thread), `reason` (why it ended);
//! - `engine` ([`Components`], which has them all), `job` (a component as a [`Plan`]).
//!
//! ```
//! use archive_batch::StopControl;
//! use archive_component::Components;
//!
//! // No folder for what is compiled, and no process for compiling.
//! let components = Components::new(None)?;
//! let binary = wat::parse_bytes(include_bytes!("../examples/count.wat"))?;
//! let count = components.compile_component(&binary, &StopControl::default())?;
//! assert_eq!(count.job_input(), "records");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(missing_docs)]

mod block;
mod bounds;
mod cache;
mod child;
mod compile;
mod config;
mod engine;
mod guest;
mod host;
mod job;
mod reason;
mod wit;

use std::io::{BufReader, Read};
use std::sync::Arc;

use archive_batch::{BatchJobError, InvalidJob, Plan, Sink, StopControl};
use archive_model::{JobLimits, Root};

pub use child::{CompileError, Compiler, VERB, compile_child};
pub use engine::{Components, ProcessHooks};

use self::block::Block;
use self::compile::Program;
use self::guest::{Call, Guest};

/// A component that can be run.
#[derive(Debug)]
pub struct Component {
    digest: Root,
    about: About,
    program: Arc<Program>,
}

/// The description that a component gives of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// The work of the component and its arguments, in its own words.
    pub text: String,
    /// Whether the component has a reduce step of its own.
    pub reduces: bool,
}

impl Component {
    /// Returns the BLAKE3 hash of the component's bytes.
    pub fn digest(&self) -> Root {
        self.digest
    }

    /// Returns the description that the component gives of itself.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Returns the part of a file that the component is shown: `records` or `bytes`.
    pub fn job_input(&self) -> &'static str {
        match self.program.job_input() {
            compile::JobInput::Records => "records",
            compile::JobInput::Bytes => "bytes",
        }
    }

    /// Returns the plan that runs the component over files, with these arguments and within these limits.
    ///
    /// # Errors
    ///
    /// None yet: the component itself checks its arguments, with its first file.
    pub fn make_plan(
        self: Arc<Self>,
        arguments: &[(String, String)],
        limits: JobLimits,
    ) -> Result<Box<dyn Plan>, InvalidJob> {
        Ok(Box::new(job::Files::new(self, arguments.to_vec(), limits)))
    }

    /// Returns the reduce step of the component, with these arguments and within these limits.
    ///
    /// # Errors
    ///
    /// [`BatchJobError::Broken`] if the component has no reduce step.
    pub fn make_reducer(
        &self,
        arguments: &[(String, String)],
        limits: JobLimits,
    ) -> Result<ComponentReducer, BatchJobError> {
        if !self.about.reduces {
            let reason = "the component has no reduce step: it does not export `reducer`";
            return Err(BatchJobError::Broken(reason.to_owned()));
        }
        let limits = JobLimits {
            file_time: limits.time,
            ..limits
        };
        Ok(ComponentReducer {
            program: Arc::clone(&self.program),
            arguments: arguments.to_vec(),
            limits,
        })
    }
}

/// The reduce step of a component. It may compute as long as the whole job may take.
#[derive(Debug)]
pub struct ComponentReducer {
    program: Arc<Program>,
    arguments: Vec<(String, String)>,
    limits: JobLimits,
}

impl ComponentReducer {
    /// Runs over all the output, in the order of the names of the files, and writes the result of the job.
    ///
    /// # Errors
    ///
    /// [`BatchJobError`] if the component fails or goes over a limit, the sink fails, or the job has to end.
    pub fn reduce_outputs(
        self,
        input: &mut dyn Read,
        out: &mut dyn Sink,
        control: &StopControl,
    ) -> Result<(), BatchJobError> {
        let mut guest = Guest::start_guest(&self.program, self.limits, control)?;
        let mut input = BufReader::new(input);
        let mut block = Block::whole_block(&mut input);
        guest.call_guest(Call::Reduce(self.arguments), &mut block, out)?;
        block.read_damage()
    }
}
