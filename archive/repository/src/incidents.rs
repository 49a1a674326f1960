//! The table of reported incidents in the admin data: one row for each, so that a restart reports nothing twice.

use archive_daemon::notify::IncidentMemory;
use archive_daemon::notify::incident::IncidentRow;
use archive_daemon::tasks::AnyError;
use archive_db::{DbError, Table, TableValue};
use archive_ledger::admin::Admin;
use serde::{Deserialize, Serialize};

/// The row of an incident.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StoredIncident(IncidentRow);

impl TableValue for StoredIncident {}

/// The table of reported incidents.
#[derive(Debug)]
pub(crate) struct IncidentTable {
    admin: Admin,
    table: Table<String, StoredIncident>,
}

impl IncidentTable {
    pub(crate) fn open(admin: &Admin) -> Result<Self, DbError> {
        Ok(Self {
            admin: admin.clone(),
            table: admin.open_table("incidents")?,
        })
    }
}

impl IncidentMemory for IncidentTable {
    fn load(&self) -> Result<Vec<(String, IncidentRow)>, AnyError> {
        let rows = self.table.scan()?;
        let rows = rows.map(|row| row.map(|(key, StoredIncident(kept))| (key, kept)));
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn keep(&self, rows: &[(String, Option<IncidentRow>)]) -> Result<(), AnyError> {
        let mut changes = self.admin.begin_changes();
        for (key, kept) in rows {
            match kept {
                Some(kept) => {
                    changes
                        .batch()
                        .put(&self.table, key, &StoredIncident(kept.clone()))?;
                }
                None => changes.batch().delete(&self.table, key)?,
            }
        }
        Ok(self.admin.commit_changes(changes)?)
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    /// Fails if a restart loses a reported incident, or a removed one stays.
    #[test]
    fn rows_survive_restart_until_removed() {
        let directory = tempfile::tempdir().unwrap();
        let kept = IncidentRow {
            since: Timestamp::UNIX_EPOCH,
            count: 7,
            text: "ü\n".to_owned(),
            told: Some(Timestamp::MAX),
            over: None,
        };
        let opened = || IncidentTable::open(&Admin::init(directory.path()).unwrap()).unwrap();
        let rows = ["a/b", "c"].map(|key| (key.to_owned(), Some(kept.clone())));
        opened().keep(&rows).unwrap();
        let table = opened();
        assert_eq!(table.load().unwrap().len(), 2);
        table.keep(&[("a/b".to_owned(), None)]).unwrap();
        drop(table);
        assert_eq!(opened().load().unwrap(), [("c".to_owned(), kept)]);
    }
}
