//! The reason why a component ended, in words.
//!
//! Owns the order of blame: a stop, then a limit that the component exceeded, then its own error.

use std::time::Duration;

use archive_batch::BatchJobError;
use archive_model::JobLimits;
use archive_model::limits::LONGEST_REASON;
use wasmtime::{Trap, WasmBacktrace};

use super::host::{HANDED_OVER, Halt};

/// Returns the meaning of an error that came out of a component.
pub(super) fn job_error(error: &wasmtime::Error, limits: &JobLimits) -> BatchJobError {
    if let Some(halt) = error.downcast_ref::<Halt>() {
        return match *halt {
            Halt::Stopped(stop) => BatchJobError::Stopped(stop),
            Halt::Time => BatchJobError::Broken(format!(
                "the component computed for more than {}, its limit; it may be endless",
                seconds(limits.file_time)
            )),
            Halt::Memory(most) => BatchJobError::Broken(format!(
                "the component wants more memory than its limit of {most} bytes"
            )),
            halt @ (Halt::Tables | Halt::Gone) => {
                BatchJobError::Broken(format!("the component is broken: {halt}"))
            }
        };
    }
    let mut words = match error.downcast_ref::<Trap>() {
        Some(Trap::UnreachableCodeReached) => {
            "the component gave up (`unreachable`): a panic or an error that nobody handled"
                .to_owned()
        }
        Some(Trap::StackOverflow) => {
            "the component called itself too deeply (stack overflow)".to_owned()
        }
        Some(trap) => format!("the component trapped: {}", strip(&trap.to_string())),
        None => match error.root_cause().to_string() {
            // Wasmtime has no public type for it.
            words if words.contains("allocated for hostcalls") => format!(
                "the component hands over more than {} MiB at once: write less at a time",
                HANDED_OVER >> 20
            ),
            words => format!("the component did what it must not: {words}"),
        },
    };
    if let Some(name) = innermost(error) {
        words = format!("{words}, in `{name}`");
    }
    BatchJobError::Broken(shorten_text(words))
}

/// Returns the failure with the reason that the component gave itself.
pub(super) fn guest_failed(text: String) -> BatchJobError {
    if text.trim().is_empty() {
        return BatchJobError::Failed("the component failed without a reason".to_owned());
    }
    BatchJobError::Failed(shorten_text(text))
}

/// Cuts a text to the length that the reason of a failure may have.
pub(super) fn shorten_text(mut text: String) -> String {
    if let Some((at, _)) = text.char_indices().nth(LONGEST_REASON) {
        text.truncate(at);
    }
    text
}

fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}

fn strip(text: &str) -> &str {
    text.strip_prefix("wasm trap: ").unwrap_or(text)
}

/// Returns the innermost function in which the error happened, if the component has names.
fn innermost(error: &wasmtime::Error) -> Option<String> {
    let trace = error.downcast_ref::<WasmBacktrace>()?;
    let name = trace.frames().iter().find_map(|frame| frame.func_name())?;
    Some(name.chars().take(100).collect())
}
