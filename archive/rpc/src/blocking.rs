//! Work that blocks, called from where nothing may.

use tokio::task::spawn_blocking;

use crate::{CallError, CallErrorKind};

/// Runs work that blocks, on a thread that may.
///
/// # Errors
///
/// `Internal` if the work panics, or the runtime ends.
pub async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, CallError> {
    let done = spawn_blocking(work).await;
    done.map_err(|error| CallErrorKind::Internal.to_error(error.to_string()))
}
