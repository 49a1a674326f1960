//! Access to the tables from asynchronous tasks, which must not block.
//!
//! # Errors
//!
//! An error of the admin data is logged here, once; the caller can do nothing, an operator must act.

use archive_db::DbError;
use archive_rpc::answers::{FeedError, Outlet, Progress, feed};
use archive_rpc::{CallError, Kind};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

/// Runs work with tables on a blocking thread.
pub(crate) async fn with_tables<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, DbError> + Send + 'static,
) -> Result<T, CallError> {
    blocking(work).await?.map_err(|error| admin_failed(&error))
}

/// Runs other work on a blocking thread.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, CallError> {
    let done = spawn_blocking(work).await;
    done.map_err(|error| Kind::Internal.error(error.to_string()))
}

/// Sends rows of tables from a blocking thread, as long as somebody receives them.
pub(crate) async fn feed_rows<M: Send + 'static>(
    to: &mpsc::Sender<M>,
    work: impl FnMut(&mut Outlet<M>) -> Result<Progress, DbError> + Send + 'static,
) -> Result<(), CallError> {
    feed(to, work).await.map_err(|error| match error {
        FeedError::Work(error) => admin_failed(&error),
        FeedError::Stopped => Kind::Unavailable.error("the repository is stopping"),
    })
}

/// Logs an error of the admin data, and returns the error for the caller.
pub(crate) fn admin_failed(error: &DbError) -> CallError {
    tracing::error!(%error, "cannot read or write the admin data");
    Kind::Storage.error(error.to_string())
}
