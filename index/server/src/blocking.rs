//! Work that may block on the disk, on a thread for such work.

use tokio::task::{JoinError, spawn_blocking};

/// Runs work on a blocking thread. The error is that of the work, or what `panicked` makes of a panic in it.
pub(crate) async fn run_blocking<T, W, E>(
    work: impl FnOnce() -> Result<T, W> + Send + 'static,
    panicked: impl FnOnce(JoinError) -> E,
) -> Result<T, E>
where
    T: Send + 'static,
    W: Send + 'static,
    E: From<W>,
{
    match spawn_blocking(work).await {
        Ok(done) => Ok(done?),
        Err(error) => Err(panicked(error)),
    }
}
