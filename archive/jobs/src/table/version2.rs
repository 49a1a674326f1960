//! Rows of version 2 of the table: without names of files and a time to be kept. They are read, and never written.

use archive_db::InvalidValue;
use archive_db::value::decode_body;
use archive_decisions::batch::life::Life;
use archive_model::{JobId, JobLimits, JobSpec, Program, ReplicaId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Checkpoint, JobRow};

/// A row of version 2.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct JobRowV2 {
    pub(super) id: JobId,
    pub(super) spec: JobSpecV2,
    pub(super) component_size: u64,
    pub(super) who: String,
    pub(super) submitted: Timestamp,
    pub(super) started: Option<Timestamp>,
    pub(super) ended: Option<Timestamp>,
    pub(super) expires: Option<Timestamp>,
    pub(super) life: Life,
    pub(super) checkpoint: Checkpoint,
    pub(super) result: Option<u64>,
}

/// The specification of a job of version 2.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct JobSpecV2 {
    pub(super) program: Program,
    pub(super) arguments: Vec<(String, String)>,
    pub(super) files: String,
    pub(super) replica: ReplicaId,
    pub(super) limits: JobLimits,
}

/// Reads a row of version 2.
pub(super) fn read(body: &[u8]) -> Result<JobRow, InvalidValue> {
    decode_body::<JobRowV2>(body).map(JobRow::from)
}

impl From<JobRowV2> for JobRow {
    fn from(old: JobRowV2) -> Self {
        let JobRowV2 {
            id,
            spec,
            component_size,
            who,
            submitted,
            started,
            ended,
            expires,
            life,
            checkpoint,
            result,
        } = old;
        let JobSpecV2 {
            program,
            arguments,
            files,
            replica,
            limits,
        } = spec;
        Self {
            id,
            spec: JobSpec {
                program,
                arguments,
                files,
                names: None,
                replica,
                limits,
                keep: None,
            },
            component_size,
            who,
            submitted,
            started,
            ended,
            expires,
            life,
            checkpoint,
            result,
        }
    }
}

#[cfg(test)]
mod tests {
    use archive_db::{Table, Value};

    use super::*;
    use crate::table::tests::{TableFixture, row};

    impl Value for JobRowV2 {
        const VERSION: u8 = 2;
    }

    fn old(row: JobRow) -> JobRowV2 {
        JobRowV2 {
            id: row.id,
            spec: JobSpecV2 {
                program: row.spec.program,
                arguments: row.spec.arguments,
                files: row.spec.files,
                replica: row.spec.replica,
                limits: row.spec.limits,
            },
            component_size: row.component_size,
            who: row.who,
            submitted: row.submitted,
            started: row.started,
            ended: row.ended,
            expires: row.expires,
            life: row.life,
            checkpoint: row.checkpoint,
            result: row.result,
        }
    }

    /// Fails if a job that an older release has taken is lost, or stops the repository from starting.
    #[test]
    fn version_2_job_is_read_as_it_was() {
        let fixture = TableFixture::new();
        let before = row("j", "researcher/anna");
        let (admin, jobs) = fixture.open();
        let table: Table<String, JobRowV2> = admin.table("batch").unwrap();
        let mut changes = admin.change();
        let key = before.id.as_str().to_owned();
        let written = changes.batch().put(&table, &key, &old(before.clone()));
        written.unwrap();
        admin.commit(changes).unwrap();
        drop((admin, jobs, table));
        let (_, jobs) = fixture.open();
        assert_eq!(jobs.get(&before.id).unwrap(), Some(before));
    }

    /// Fails if a version that nobody knows is taken for one that is.
    #[test]
    fn unknown_version_is_refused() {
        let error = JobRow::upgrade(1, b"").unwrap_err();
        assert!(
            matches!(error, InvalidValue::Version { found: 1, .. }),
            "{error}"
        );
    }
}
