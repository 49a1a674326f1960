//! User jobs: WebAssembly components, and all that holds them in.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use archive_model::{JobLimits, Root};

use crate::control::Control;
use crate::job::{JobError, Sink};
use crate::plan::{InvalidJob, Plan};

/// The largest component that is taken, in bytes.
pub const LARGEST: u64 = 64 << 20;

/// The engine that runs components, and those that it has compiled. One for each process; clones are the same one.
#[derive(Clone, Debug)]
pub struct Components;

/// A component that can be run.
#[derive(Debug)]
pub struct Component;

/// What a component says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// What it does and which arguments it takes, in its own words.
    pub text: String,
    /// Whether it has a reduce step of its own.
    pub reduces: bool,
}

impl Components {
    /// An engine that keeps what it compiles under `cache`, or only in memory.
    pub fn new(cache: Option<&Path>) -> Result<Self, InvalidJob> {
        let _ = cache;
        Ok(Self)
    }

    /// The component with this BLAKE3, if it is at hand without its bytes.
    pub fn get(&self, digest: &Root) -> Option<Arc<Component>> {
        let _ = digest;
        None
    }

    /// Compiles a component, or takes it from the cache; says why it is refused. Takes seconds for tens of megabytes.
    pub fn compile(&self, bytes: &[u8]) -> Result<Arc<Component>, InvalidJob> {
        let _ = bytes;
        Err(InvalidJob::Component("components come next".to_owned()))
    }
}

impl Component {
    /// What it says of itself.
    pub fn about(&self) -> &About {
        const NOTHING: &About = &About {
            text: String::new(),
            reduces: false,
        };
        NOTHING
    }

    /// Ready for files, with these arguments and within these limits.
    pub fn plan(
        self: Arc<Self>,
        arguments: &[(String, String)],
        limits: JobLimits,
    ) -> Result<Box<dyn Plan>, InvalidJob> {
        let _ = (arguments, limits);
        Err(InvalidJob::Component("components come next".to_owned()))
    }

    /// Its reduce step over all the output, by name of the files.
    pub fn reduce(
        &self,
        arguments: &[(String, String)],
        limits: JobLimits,
        input: &mut dyn Read,
        out: &mut dyn Sink,
        control: &Control,
    ) -> Result<(), JobError> {
        let _ = (arguments, limits, input, out, control);
        Err(JobError::Failed("components come next".to_owned()))
    }
}
