//! The storage that keeps the rows of incidents over a restart.

use std::fmt;

use super::incident::IncidentRow;
use crate::tasks::AnyError;

/// A storage of one row for each incident. Its functions may block: they are called where that is allowed.
pub trait IncidentMemory: Send + Sync + fmt::Debug {
    /// Reads all rows.
    ///
    /// # Errors
    /// The memory cannot be read.
    fn load(&self) -> Result<Vec<(String, IncidentRow)>, AnyError>;

    /// Sets rows, and deletes those that are `None`; durable when it returns, all or none.
    ///
    /// # Errors
    /// The memory cannot be written; no row has changed then.
    fn keep(&self, rows: &[(String, Option<IncidentRow>)]) -> Result<(), AnyError>;
}

/// A memory that keeps nothing: after a restart every problem that still exists is announced anew.
#[derive(Clone, Copy, Debug)]
pub struct NoMemory;

impl IncidentMemory for NoMemory {
    fn load(&self) -> Result<Vec<(String, IncidentRow)>, AnyError> {
        Ok(Vec::new())
    }

    fn keep(&self, _rows: &[(String, Option<IncidentRow>)]) -> Result<(), AnyError> {
        Ok(())
    }
}
