//! Filed anomalies of a file, as the coordinator uses them: a copy that is known to be gone is asked for again when
//! somebody sends the bytes, and the anomaly of its absence is closed when it is there.

use archive_decisions::store::{FileRecord, StoringEvent};
use archive_ledger::admin::AdminError;
use archive_ledger::anomalies::{AnomalyRow, Filing, Look, LookQuality};
use archive_ledger::custody::FileEvidence;
use archive_ledger::standing::StandingSnapshot;
use archive_model::{AnomalyKind, CopyPlace, FileName, Finder, Groups, ReplicaId};
use jiff::Timestamp;

use super::act::FileDecision;
use super::{Coordinator, Step};

/// A copy that did not count before an event, and does if the record says so after it.
#[derive(Debug)]
pub(super) struct ReturnedCopy {
    name: FileName,
    replica: ReplicaId,
    place: CopyPlace,
    /// Whether the node has just read the whole copy back.
    is_read: bool,
}

impl ReturnedCopy {
    /// Returns the copy that the event may make count again; `None` if it counts already, or if the event stores no
    /// copy.
    pub(super) fn from_event(record: &FileRecord, event: &StoringEvent) -> Option<Self> {
        let (replica, node, volume, is_read) = event.stored_copy()?;
        let counts = |copy: &archive_decisions::store::ReplicaRecord| copy.state.is_completed();
        (!record.replicas.get(replica).is_some_and(counts)).then(|| Self {
            name: record.name.clone(),
            replica: replica.clone(),
            place: CopyPlace {
                node: node.clone(),
                volume: volume.clone(),
            },
            is_read,
        })
    }

    /// Whether the record counts the copy now.
    pub(super) fn counts_now(&self, record: &FileRecord) -> bool {
        let copy = record.replicas.get(&self.replica);
        copy.is_some_and(|copy| copy.state.is_completed())
    }
}

impl Coordinator {
    /// Stops counting copies that are known not to be there, and wants those of required replicas that were never
    /// given the file. This is done before a depositor is heard, so that they are asked for, copied from a good one, or
    /// taken from the depositor.
    pub(super) fn reopen_file(
        &mut self,
        name: &FileName,
        now: Timestamp,
        all: &mut Vec<FileDecision>,
    ) -> Step<()> {
        let Some(active) = self.files.get_mut(name) else {
            return Ok(());
        };
        if !active.state.record().phase.is_bound() {
            return Ok(());
        }
        let filed = self
            .parts
            .anomalies
            .rows_of(name)
            .map_err(AdminError::from)?;
        let standing = self.parts.standing.current_snapshot();
        let record = active.state.record();
        let unfilled = standing.unfilled_replicas(record);
        let unfilled = unfilled.map(|(id, kind)| StoringEvent::Wanted {
            replica: id.clone(),
            kind,
            required: true,
            gone: None,
        });
        let events: Vec<_> = given_up(record, &standing, &filed)
            .into_iter()
            .chain(unfilled)
            .collect();
        for event in events {
            let decided = active.state.apply_event(event, now, &self.parts.limits);
            all.push(FileDecision::by_itself(name.clone(), decided));
        }
        Ok(())
    }

    /// Closes the anomalies of copies that are there again, as far as their nodes have looked.
    pub(super) fn close_returned_copies(&mut self) -> Step<()> {
        let who = format!("repository/{}", self.parts.archive);
        for back in std::mem::take(&mut self.back) {
            let filed = self.parts.anomalies.rows_of(&back.name);
            if filed.map_err(AdminError::from)?.is_empty() {
                continue;
            }
            let size = self.files.get(&back.name).and_then(|active| {
                let content = active.state.record().content.as_ref()?;
                Some(content.size)
            });
            let size = size.unwrap_or_default();
            let look = Look {
                found: Vec::new(),
                quality: if back.is_read {
                    LookQuality::Bytes
                } else {
                    LookQuality::Glimpse
                },
                by: Finder::Check,
                is_second: false,
                size,
                place: Some(back.place),
            };
            let filing = Filing {
                file: &back.name,
                replica: &back.replica,
                who: &who,
            };
            self.parts
                .anomalies
                .file_look(filing, &look)
                .map_err(AdminError::from)?;
            if back.is_read {
                self.parts
                    .anomalies
                    .found_again(&back.name, &Groups::all(size), &who)
                    .map_err(AdminError::from)?;
            }
        }
        Ok(())
    }
}

/// Returns the events that tell the store core which copies are known not to be there. Pure.
fn given_up(
    record: &FileRecord,
    now: &StandingSnapshot,
    filed: &[AnomalyRow],
) -> Vec<StoringEvent> {
    let vouched = FileEvidence { record, now, filed };
    let has_bytes = vouched.has_bytes();
    let mut events = Vec::new();
    for (id, copy) in &record.replicas {
        if !copy.state.is_completed() || now.is_retired(id) {
            continue;
        }
        let is_missing = |row: &&AnomalyRow| {
            row.replica == *id
                && row.filed.kind == AnomalyKind::Missing
                // An accepted anomaly counts only if no replica has good bytes.
                && (row.filed.accepted.is_none() || !has_bytes)
        };
        if !now.copy_counts(id, copy) {
            let why = "what held it was retired".to_owned();
            events.push(StoringEvent::Wanted {
                replica: id.clone(),
                kind: copy.kind,
                required: copy.required,
                gone: copy.copy_place().map(|place| (place, why)),
            });
        } else if filed.iter().any(|row| is_missing(&row)) {
            let replica = id.clone();
            events.push(StoringEvent::Gone { replica });
        }
    }
    events
}

#[cfg(test)]
mod tests;
