//! The way to the tables from where nothing may block.
//!
//! # Errors
//!
//! An error of the admin data is told to the log here, once; the caller can do nothing, an operator must.

use std::sync::Arc;

use archive_db::DbError;
use archive_ledger::admin::{Admin, AdminRow, AuditLine};
use archive_ledger::anomalies::{Anomalies, Filing, Look, LookResult};
use archive_model::{FileName, ReplicaId};
use archive_rpc::answers::{Outlet, Progress, feed};
use archive_rpc::{CallError, Kind};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

/// Runs what reads or writes tables on a thread that may block.
pub(crate) async fn with_tables<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, DbError> + Send + 'static,
) -> Result<T, CallError> {
    blocking(work).await?.map_err(|error| admin_failed(&error))
}

/// Runs other work on a thread that may block.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, CallError> {
    let done = spawn_blocking(work).await;
    done.map_err(|error| Kind::Internal.error(error.to_string()))
}

/// Sends what is read from tables, from a thread that may block, for as long as somebody takes it.
pub(crate) async fn feed_rows<M: Send + 'static>(
    to: &mpsc::Sender<M>,
    work: impl FnMut(&mut Outlet<M>) -> Result<Progress, DbError> + Send + 'static,
) -> Result<(), CallError> {
    let fed = feed(to, work).await;
    fed.map_err(|error| admin_failed(&error))
}

/// Reads the row of a file, as it is now.
pub(crate) async fn file_row(
    admin: &Admin,
    name: &FileName,
) -> Result<Option<AdminRow>, CallError> {
    let (admin, name) = (admin.clone(), name.clone());
    with_tables(move || admin.file(&name)).await
}

/// Adds a line to the audit trail.
pub(crate) async fn note(admin: &Admin, line: AuditLine) -> Result<(), CallError> {
    let admin = admin.clone();
    with_tables(move || admin.note(line)).await
}

/// Files a look at a copy as it stands, in the name of `who`.
pub(crate) async fn file_look(
    anomalies: &Arc<Anomalies>,
    (replica, name): (&ReplicaId, &FileName),
    look: Look,
    who: &str,
) -> Result<LookResult, CallError> {
    let (anomalies, who) = (Arc::clone(anomalies), who.to_owned());
    let (replica, name) = (replica.clone(), name.clone());
    with_tables(move || {
        let filing = Filing {
            file: &name,
            replica: &replica,
            who: &who,
        };
        anomalies.look(filing, &look)
    })
    .await
}

/// Turns an error of the admin data into what its caller is told.
pub(crate) fn admin_failed(error: &DbError) -> CallError {
    tracing::error!(%error, "the admin data cannot be read or written");
    Kind::Storage.error(error.to_string())
}
