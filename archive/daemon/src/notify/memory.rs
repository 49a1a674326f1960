//! Where the rows of incidents are kept over a restart.

use std::fmt;

use super::incident::IncidentRow;
use crate::tasks::AnyError;

/// Keeps one row for each incident. Blocks: it is called where that is allowed.
pub trait Memory: Send + Sync + fmt::Debug {
    /// All rows.
    fn load(&self) -> Result<Vec<(String, IncidentRow)>, AnyError>;

    /// Sets rows, and takes away those that are `None`; durable when it returns, all or none.
    fn keep(&self, rows: &[(String, Option<IncidentRow>)]) -> Result<(), AnyError>;
}

/// Remembers nothing: after a restart everything that is still wrong is told anew.
#[derive(Clone, Copy, Debug)]
pub struct Forgetful;

impl Memory for Forgetful {
    fn load(&self) -> Result<Vec<(String, IncidentRow)>, AnyError> {
        Ok(Vec::new())
    }

    fn keep(&self, _rows: &[(String, Option<IncidentRow>)]) -> Result<(), AnyError> {
        Ok(())
    }
}
