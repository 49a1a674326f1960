//! The part of the admin data that batch jobs may touch: their own table, and the trail. Rows of files are read only, so
//! that a fault of a job cannot change what is recorded of a file.
//!
//! # Errors
//!
//! Every function fails when the admin data cannot be read or written.

use archive_db::{DbError, Table, TableValue};
use archive_model::{FileName, JobId};

use super::{Admin, AdminRow, AuditLine};

/// The table of batch jobs, with the trail. `R` is the row of a job. Cheap to clone.
#[derive(Clone, Debug)]
pub struct JobLedger<R> {
    admin: Admin,
    jobs: Table<String, R>,
}

impl<R: TableValue> JobLedger<R> {
    /// Opens the table.
    pub fn open(admin: Admin) -> Result<Self, DbError> {
        Ok(Self {
            jobs: admin.open_table("batch")?,
            admin,
        })
    }

    /// Returns the row of a job; `None` if the table has no such job.
    pub fn job(&self, id: &JobId) -> Result<Option<R>, DbError> {
        self.jobs.get(&id.as_str().to_owned())
    }

    /// Returns the rows of all jobs, by id.
    pub fn all_jobs(&self) -> Result<impl Iterator<Item = Result<R, DbError>> + '_, DbError> {
        Ok(self.jobs.scan()?.map(|row| row.map(|(_, row)| row)))
    }

    /// Writes the row of a job and a line of the trail, both or none, synced.
    pub fn write_job(&self, id: &JobId, row: &R, line: Option<AuditLine>) -> Result<(), DbError> {
        let mut changes = self.admin.begin_changes();
        let key = id.as_str().to_owned();
        changes.batch().put(&self.jobs, &key, row)?;
        if let Some(line) = line {
            changes.note_line(line);
        }
        self.admin.commit_changes(changes)
    }

    /// Deletes the row of a job and writes a line of the trail, both or none, synced.
    pub fn delete_job(&self, id: &JobId, line: Option<AuditLine>) -> Result<(), DbError> {
        let mut changes = self.admin.begin_changes();
        let key = id.as_str().to_owned();
        changes.batch().delete(&self.jobs, &key)?;
        if let Some(line) = line {
            changes.note_line(line);
        }
        self.admin.commit_changes(changes)
    }

    /// Returns the row of a file; `None` if nobody has stored one of that name.
    pub fn file(&self, name: &FileName) -> Result<Option<AdminRow>, DbError> {
        self.admin.file(name)
    }

    /// Returns the rows of all files, sorted by name.
    pub fn all_files(
        &self,
    ) -> Result<impl Iterator<Item = Result<AdminRow, DbError>> + '_, DbError> {
        self.admin.list_files(None)
    }
}
