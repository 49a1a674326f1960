//! Protection of the last good copies: whether an act would take them.
//!
//! Owns the count, by what the archive vouches for (`custody`) and not by what is recorded: a damaged copy is no reason
//! to give up a good one. Reads the admin data and the anomalies in parallel, in memory that does not grow with them.

use std::fmt;
use std::sync::Arc;

use archive_db::DbError;
use archive_decisions::store::{FileRecord, ReplicaRecord};
use archive_model::{NodeKey, ReplicaId, ReplicaKind, VolumeKey};
use archive_rpc::CallError;

use super::People;
use super::refusal::changed_meanwhile;
use crate::tables::with_tables;
use archive_ledger::admin::AdminRow;
use archive_ledger::anomalies::AnomalyRow;
use archive_ledger::custody::FileEvidence;
use archive_ledger::standing::StandingSnapshot;

/// A part of the archive that goes out of service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ServicePart {
    /// A disk.
    Volume(VolumeKey),
    /// A node of a replica.
    Node(NodeKey),
    /// A whole replica.
    Replica(ReplicaId),
}

impl fmt::Display for ServicePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Volume(volume) => volume.fmt(f),
            Self::Node(key) => write!(f, "node {}", key.node),
            Self::Replica(replica) => write!(f, "replica {replica}"),
        }
    }
}

impl ServicePart {
    fn has(&self, id: &ReplicaId, copy: &ReplicaRecord) -> bool {
        match self {
            Self::Volume(volume) => {
                *id == volume.replica && copy.volume_key(id).as_ref() == Some(volume)
            }
            Self::Node(key) => key.replica == *id && copy.node.as_ref() == Some(&key.node),
            Self::Replica(replica) => replica == id,
        }
    }
}

impl People {
    /// Returns how many replicas besides `replica` have a good copy of a file.
    pub(super) async fn good_elsewhere(
        &self,
        row: &AdminRow,
        replica: &ReplicaId,
    ) -> Result<usize, CallError> {
        self.vouched(row, |vouched| vouched.other_good_copies(replica))
            .await
    }

    /// Returns whether any replica has a good copy of a file under its name.
    pub(super) async fn is_good_anywhere(&self, row: &AdminRow) -> Result<bool, CallError> {
        self.vouched(row, |vouched: &FileEvidence<'_>| vouched.has_bytes())
            .await
    }

    async fn vouched<T>(
        &self,
        row: &AdminRow,
        ask: impl FnOnce(&FileEvidence<'_>) -> T + Send,
    ) -> Result<T, CallError> {
        let anomalies = Arc::clone(&self.archive.anomalies);
        let name = row.record.name.clone();
        let filed = with_tables(move || anomalies.rows_of(&name)).await?;
        Ok(ask(&FileEvidence {
            record: &row.record,
            now: &self.archive.standing.current_snapshot(),
            filed: &filed,
        }))
    }

    /// Checks that every file on the part has a good copy elsewhere, or that the caller knows that some have none.
    /// Every row is read on purpose: an index that is derived from the rows does not decide whether a last copy goes.
    pub(super) async fn check_dispensable(
        &self,
        part: ServicePart,
        last_copies: bool,
    ) -> Result<(), CallError> {
        if last_copies {
            return Ok(());
        }
        let admin = self.archive.admin.clone();
        let anomalies = Arc::clone(&self.archive.anomalies);
        let now = self.archive.standing.current_snapshot();
        let of = part.clone();
        let counting = with_tables(move || {
            only_there(&of, &now, admin.list_files(None)?, anomalies.list_rows()?)
        });
        match counting.await? {
            0 => Ok(()),
            only => Err(changed_meanwhile(match part {
                ServicePart::Replica(_) => format!(
                    "{only} file(s) have no good copy but in {part}; repair them in another replica first"
                ),
                ServicePart::Volume(_) | ServicePart::Node(_) => format!(
                    "{only} file(s) have no good copy but on {part}; repair them first, or add `--last-copies`, which two custodians must say"
                ),
            })),
        }
    }
}

/// Counts the files on the part that have no good copy elsewhere. Both sides are sorted by file.
fn only_there(
    part: &ServicePart,
    now: &StandingSnapshot,
    files: impl Iterator<Item = Result<AdminRow, DbError>>,
    rows: impl Iterator<Item = Result<AnomalyRow, DbError>>,
) -> Result<u64, DbError> {
    let mut rows = rows.peekable();
    let mut only = 0;
    for file in files {
        let record = file?.record;
        let mut anomalies = Vec::new();
        while let Some(row) =
            rows.next_if(|row| row.as_ref().map_or(true, |row| row.file <= record.name))
        {
            let row = row?;
            if row.file == record.name {
                anomalies.push(row);
            }
        }
        only += u64::from(is_only_there(part, now, &record, &anomalies));
    }
    Ok(only)
}

fn is_only_there(
    part: &ServicePart,
    now: &StandingSnapshot,
    record: &FileRecord,
    filed: &[AnomalyRow],
) -> bool {
    let vouched = FileEvidence { record, now, filed };
    record.replicas.iter().any(|(id, copy)| {
        copy.kind == ReplicaKind::Bitarchive
            && copy.state.is_completed()
            && part.has(id, copy)
            && vouched.other_good_copies(id) == 0
    })
}

#[cfg(test)]
mod tests;
