//! Protection of the last good copies: whether an act would take them.
//!
//! Owns the count, by what the archive vouches for (`custody`) and not by what is recorded: a damaged copy is no reason
//! to give up a good one. Nor is one whose node is silent, of which nothing is filed: for an act that moves or destroys a
//! copy another one is read whole, and for one that takes a part out of service a node answers for its volume now. Reads
//! the admin data and the anomalies in parallel, in memory that does not grow with them.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use archive_db::DbError;
use archive_decisions::store::{FileRecord, ReplicaRecord};
use archive_model::{FileName, NodeKey, ReplicaId, ReplicaKind, Root, VolumeKey};
use archive_replicas::answering_volumes;
use archive_rpc::{CallError, CallErrorKind};
use futures_util::future::join_all;

use super::People;
use super::refusal::{changed_meanwhile, recorded_content};
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
    /// Checks that a replica besides `but` shows a whole copy of a file now: its node has read all of it.
    ///
    /// # Errors
    /// The reason why none does, which names what is silent.
    pub(super) async fn check_other_copy(
        &self,
        row: &AdminRow,
        but: Option<&ReplicaId>,
    ) -> Result<(), CallError> {
        let name = &row.record.name;
        let root = recorded_content(&row.record)?.root;
        let others = self
            .vouched(row, |vouched| {
                let others = vouched
                    .good_copies()
                    .filter(|(id, copy)| Some(*id) != but && copy.kind == ReplicaKind::Bitarchive);
                others.map(|(id, _)| id.clone()).collect::<Vec<_>>()
            })
            .await?;
        let mut doubts = Vec::new();
        let mut kind = CallErrorKind::Mismatch;
        for replica in &others {
            match self.find_whole_copy(replica, name, root).await {
                Ok(true) => return Ok(()),
                Ok(false) => doubts.push(format!("replica {replica} has none")),
                Err(error) => {
                    // It may answer later.
                    if error.kind.is_passing() {
                        kind = error.kind;
                    }
                    doubts.push(format!("replica {replica}: {}", error.reason));
                }
            }
        }
        if doubts.is_empty() {
            return Err(changed_meanwhile(format!(
                "no other replica has a good copy of {name}; add `--last-copies` if the archive shall not keep it"
            )));
        }
        Err(kind.to_error(format!(
            "no other replica shows a good copy of {name} now ({}); see to that first, or add `--last-copies` if the \
             archive shall not keep it",
            doubts.join("; ")
        )))
    }

    /// Returns whether a replica has a whole copy of a file, which is read for that.
    async fn find_whole_copy(
        &self,
        replica: &ReplicaId,
        name: &FileName,
        root: Root,
    ) -> Result<bool, CallError> {
        let located = self.archive.calls.locate_on_disk(replica, name).await?;
        let copies = located.copies.iter();
        for copy in copies.filter(|copy| copy.is_readable() && copy.root == Some(root)) {
            if self.verify_copies(replica, name, copy).await?.root == Some(root) {
                return Ok(true);
            }
        }
        match located.silent {
            Some(silent) => Err(CallErrorKind::Unavailable.to_error(silent)),
            None => Ok(false),
        }
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
        let (answering, silent) = self.answering_volumes().await;
        let admin = self.archive.admin.clone();
        let anomalies = Arc::clone(&self.archive.anomalies);
        let now = self.archive.standing.current_snapshot();
        let of = part.clone();
        let counting = with_tables(move || {
            let view = PartView {
                part: &of,
                now: &now,
                answering: &answering,
            };
            only_there(&view, admin.list_files(None)?, anomalies.list_rows()?)
        });
        let only = counting.await?;
        if only == 0 {
            return Ok(());
        }
        let silent = match silent.as_slice() {
            [] => String::new(),
            silent => format!(" that anybody answers for now ({})", silent.join("; ")),
        };
        Err(changed_meanwhile(match part {
            ServicePart::Replica(_) => format!(
                "{only} file(s) have no good copy but in {part}{silent}; repair them in another replica first"
            ),
            ServicePart::Volume(_) | ServicePart::Node(_) => format!(
                "{only} file(s) have no good copy but on {part}{silent}; repair them first, or add `--last-copies`, which two custodians must say"
            ),
        }))
    }

    /// Returns the volumes that nodes report now, and what is silent, in words.
    async fn answering_volumes(&self) -> (BTreeSet<VolumeKey>, Vec<String>) {
        let specs = self.archive.standing.in_service(&self.specs);
        let calls = &self.archive.calls;
        let asking = specs
            .iter()
            .map(|spec| calls.answered_call(calls.replicas.reported_nodes(&spec.id)));
        let mut answering = BTreeSet::new();
        let mut silent = Vec::new();
        for (spec, heard) in specs.iter().zip(join_all(asking).await) {
            match heard {
                Ok(heard) => {
                    answering.extend(answering_volumes(&spec.id, &heard));
                    let dead = heard.iter().filter(|node| !node.alive);
                    silent.extend(dead.map(|node| format!("node {} is silent", node.node)));
                }
                Err(error) => silent.push(format!("replica {}: {}", spec.id, error.reason)),
            }
        }
        (answering, silent)
    }
}

/// A part that is to go out of service, and what counts without it.
#[derive(Clone, Copy, Debug)]
struct PartView<'a> {
    part: &'a ServicePart,
    now: &'a StandingSnapshot,
    /// The volumes that a node answers for now.
    answering: &'a BTreeSet<VolumeKey>,
}

/// Counts the files on the part that have no good copy elsewhere. Both sides are sorted by file.
fn only_there(
    view: &PartView<'_>,
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
        only += u64::from(is_only_there(view, &record, &anomalies));
    }
    Ok(only)
}

fn is_only_there(view: &PartView<'_>, record: &FileRecord, filed: &[AnomalyRow]) -> bool {
    let PartView {
        part,
        now,
        answering,
    } = *view;
    let vouched = FileEvidence { record, now, filed };
    let keeps_bytes = |copy: &ReplicaRecord| copy.kind == ReplicaKind::Bitarchive;
    let is_answered = |id: &ReplicaId, copy: &ReplicaRecord| {
        let volume = copy.volume_key(id);
        volume.is_some_and(|volume| answering.contains(&volume))
    };
    record.replicas.iter().any(|(id, copy)| {
        let mut others = vouched.good_copies();
        keeps_bytes(copy)
            && copy.state.is_completed()
            && part.has(id, copy)
            && !others
                .any(|(other, copy)| other != id && keeps_bytes(copy) && is_answered(other, copy))
    })
}

#[cfg(test)]
mod tests;
