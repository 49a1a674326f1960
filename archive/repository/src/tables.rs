//! Access to the tables from asynchronous tasks, which must not block.
//!
//! # Errors
//!
//! An error of the admin data is logged here, once; the caller can do nothing, an operator must act.

use archive_db::DbError;
use archive_rpc::answers::{FeedError, Outlet, WorkProgress, feed_messages};
use archive_rpc::{CallError, CallErrorKind, run_blocking};
use tokio::sync::mpsc;

/// Runs work with tables on a blocking thread.
pub(crate) async fn with_tables<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, DbError> + Send + 'static,
) -> Result<T, CallError> {
    run_blocking(work)
        .await?
        .map_err(|error| admin_failed(&error))
}

/// Sends rows of tables from a blocking thread, as long as somebody receives them.
pub(crate) async fn feed_rows<M: Send + 'static>(
    to: &mpsc::Sender<M>,
    work: impl FnMut(&mut Outlet<M>) -> Result<WorkProgress, DbError> + Send + 'static,
) -> Result<(), CallError> {
    feed_messages(to, work).await.map_err(|error| match error {
        FeedError::Work(error) => admin_failed(&error),
        FeedError::Stopped => CallErrorKind::Unavailable.to_error("the repository is stopping"),
    })
}

/// Logs an error of the admin data, and returns the error for the caller.
pub(crate) fn admin_failed(error: &DbError) -> CallError {
    tracing::error!(%error, "cannot read or write the admin data");
    CallErrorKind::Storage.to_error(error.to_string())
}
