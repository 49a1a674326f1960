//! The removals that the audit log knows: a log that survived the admin data keeps what an older export has forgotten.
//!
//! The line of each decision about a file says how the file stands in every replica, in the order of their ids; the last
//! line counts. What a person wrote as a reason may look like another replica's state: the state of that replica itself
//! stands behind it, and counts.

use std::collections::BTreeMap;

use archive_db::DbError;
use archive_decisions::store::{FileRecord, NamePhase};
use archive_model::{FileName, ReplicaId, ReplicaState};
use jiff::Timestamp;

use super::RestoreFindings;
use crate::admin::{AdminRestore, AuditLine};

/// The word with which the state of a removed copy begins.
const WITHDRAWN: &str = "withdrawn: ";

/// The words with which the states of other copies begin.
const OTHERS: [&str; 2] = ["upload ", "data uploaded"];

/// A removal as a line of the log tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LoggedRemoval {
    at: Timestamp,
    why: String,
}

/// The copies that are withdrawn at the end of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LoggedRemovals(BTreeMap<FileName, BTreeMap<ReplicaId, LoggedRemoval>>);

impl LoggedRemovals {
    /// Follows the next line of the log.
    pub(super) fn follow_line(&mut self, line: &AuditLine) {
        let Some(name) = &line.file else {
            return;
        };
        let mut before: Option<ReplicaId> = None;
        for part in line.what.split("; ") {
            let Some((id, state)) = part.split_once(": ") else {
                continue;
            };
            let Ok(id) = id.parse::<ReplicaId>() else {
                continue;
            };
            if before.as_ref().is_some_and(|before| *before > id) {
                continue;
            }
            if let Some(why) = state.strip_prefix(WITHDRAWN) {
                let removal = LoggedRemoval {
                    at: line.at,
                    why: why.to_owned(),
                };
                let of_name = self.0.entry(name.clone()).or_default();
                of_name.entry(id.clone()).or_insert(removal);
            } else if OTHERS.iter().any(|word| state.starts_with(word)) {
                if let Some(of_name) = self.0.get_mut(name) {
                    of_name.remove(&id);
                }
            } else {
                continue;
            }
            before = Some(id);
        }
        if self.0.get(name).is_some_and(BTreeMap::is_empty) {
            self.0.remove(name);
        }
    }

    /// Withdraws in the restored rows what the log knows to be removed. Adds what was changed to `found`, and a line of
    /// the trail for each file to `lines`.
    pub(super) fn withdraw_copies(
        &self,
        restoring: &mut AdminRestore,
        found: &mut RestoreFindings,
        mut line: impl FnMut(&mut AdminRestore, &FileName, String) -> Result<(), DbError>,
    ) -> Result<(), DbError> {
        for (name, removals) in &self.0 {
            let Some(mut row) = restoring.restored_row(name)? else {
                continue;
            };
            let mut said = Vec::new();
            for (replica, LoggedRemoval { at, why }) in removals {
                if withdraw_copy(&mut row.record, replica, *at, why.clone()) {
                    said.push(format!("{replica}: {WITHDRAWN}{why}"));
                }
            }
            if !said.is_empty() {
                let said = said.join("; ");
                found.add_finding(name.as_str(), said.as_str());
                restoring.restore_file(&row)?;
                line(restoring, name, format!("{said}; as the audit log says"))?;
            }
        }
        Ok(())
    }
}

/// Withdraws a copy that was removed at that time. Returns `false` if the row is newer, knows it, or has no such copy.
pub(super) fn withdraw_copy(
    record: &mut FileRecord,
    replica: &ReplicaId,
    at: Timestamp,
    why: String,
) -> bool {
    let Some(copy) = record.replicas.get_mut(replica) else {
        return false;
    };
    let is_newer = copy.state.is_completed() && copy.since > at;
    if copy.state.is_withdrawn() || is_newer {
        return false;
    }
    copy.state = ReplicaState::Withdrawn(why);
    copy.since = at;
    copy.node = None;
    copy.volume = None;
    copy.sealed = false;
    if record.open_replicas().next().is_none() {
        record.phase = NamePhase::Complete;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if the last line about a copy does not count, if a reason makes a removal of another replica, or a line
    /// that is no decision about a file is taken for one.
    #[test]
    fn last_line_of_the_log_counts() {
        let mut logged = LoggedRemovals::default();
        let mut follow = |file: Option<&str>, what: &str| {
            logged.follow_line(&AuditLine {
                at: Timestamp::UNIX_EPOCH,
                who: "officer/olga".to_owned(),
                file: file.map(|file| file.parse().unwrap()),
                what: what.to_owned(),
            });
            let rows = logged.0.iter().flat_map(|(name, of_name)| {
                of_name
                    .iter()
                    .map(move |(id, removal)| format!("{name} {id} {}", removal.why))
            });
            rows.collect::<Vec<_>>()
        };
        assert_eq!(
            follow(Some("a"), "one: upload completed; two: upload started"),
            [""; 0]
        );
        assert_eq!(follow(None, "one: withdrawn: of no file"), [""; 0]);
        assert_eq!(
            follow(Some("a"), "refused: remove a from replica one"),
            [""; 0]
        );
        let gone = follow(
            Some("a"),
            "one: withdrawn: r1: a court; two: withdrawn: lies; three: upload completed; two: upload completed",
        );
        assert_eq!(gone, ["a one r1: a court"]);
        let both = follow(
            Some("b"),
            "one: withdrawn: r2: law; two: withdrawn: r3: law",
        );
        assert_eq!(
            both,
            ["a one r1: a court", "b one r2: law", "b two r3: law"]
        );
        assert_eq!(
            follow(Some("b"), "one: upload completed; two: withdrawn: r3: law").len(),
            2
        );
        let back = follow(Some("a"), "one: upload started; two: upload completed");
        assert_eq!(back, ["b two r3: law"]);
    }
}
