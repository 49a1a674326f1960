//! Custody: the recorded copies of a file that count now, and the receipt that names them.
//!
//! Owns the rule: a copy counts when the admin data record it as completed, nothing that holds it was retired, and no
//! anomaly is filed that says otherwise. A client gets the answer that a file is in the archive by this rule, and by
//! nothing else: a depositor deletes its own copy on the answer.
//!
//! Not promised: that a copy of which nothing is filed is good. That is what scrubs and checks find out.

#[cfg(test)]
mod tests;

use archive_decisions::store::{FileRecord, ReplicaRecord};
use archive_model::{AnomalyKind, ReplicaId, ReplicaKind, ReplicaState, StoreFailure};
use archive_proof::receipt::CustodyStatement;
use archive_proof::{Envelope, Receipt, SigningKey};
use jiff::Timestamp;

use crate::anomalies::{AnomalyRecord, AnomalyRow, is_of_one_copy};
use crate::standing::StandingSnapshot;

/// Everything that is known of a file at one moment.
#[derive(Clone, Copy, Debug)]
pub struct FileEvidence<'a> {
    /// The row of the file.
    pub record: &'a FileRecord,
    /// The list of what is out of service.
    pub now: &'a StandingSnapshot,
    /// The anomalies of the file that are open or accepted.
    pub filed: &'a [AnomalyRow],
}

/// The reason why a copy does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CustodyDoubt<'a> {
    /// The copy is not recorded as completed.
    State(&'a ReplicaState),
    /// The replica, node or volume that holds it was retired.
    Retired,
    /// The anomaly is filed of the copy.
    Filed(&'a AnomalyRecord),
}

impl<'a> FileEvidence<'a> {
    /// Returns the reason why a copy does not count; `None` if it does.
    pub fn doubt_copy(&self, id: &ReplicaId, copy: &'a ReplicaRecord) -> Option<CustodyDoubt<'a>> {
        if !copy.state.is_completed() {
            return Some(CustodyDoubt::State(&copy.state));
        }
        if !self.now.copy_counts(id, copy) {
            return Some(CustodyDoubt::Retired);
        }
        let of = self.filed.iter().filter(|row| row.replica == *id);
        let mut doubts = of
            .map(|row| &row.filed)
            .filter(|filed| is_doubt(&filed.kind) && is_of(filed, copy));
        let first = doubts.next()?;
        // An accepted anomaly is named only if no other is filed.
        let open = std::iter::once(first)
            .chain(doubts)
            .find(|filed| filed.accepted.is_none());
        Some(CustodyDoubt::Filed(open.unwrap_or(first)))
    }

    /// Returns the copies that count.
    pub fn good_copies(&self) -> impl Iterator<Item = (&'a ReplicaId, &'a ReplicaRecord)> + '_ {
        let copies = self.record.replicas.iter();
        copies.filter(|(id, copy)| self.doubt_copy(id, copy).is_none())
    }

    /// Whether good bytes are anywhere.
    pub fn has_bytes(&self) -> bool {
        self.good_copies()
            .any(|(_, copy)| copy.kind == ReplicaKind::Bitarchive)
    }

    /// Returns the number of replicas besides `replica` that have good bytes of it.
    pub fn other_good_copies(&self, replica: &ReplicaId) -> usize {
        let bytes = |copy: &ReplicaRecord| copy.kind == ReplicaKind::Bitarchive;
        self.good_copies()
            .filter(|(id, copy)| *id != replica && bytes(copy))
            .count()
    }

    /// Returns the required replicas that have no copy that counts, with the reasons; empty if the archive vouches for
    /// the file. A replica whose copy people have withdrawn, retired or accepted is not waited for, as long as good
    /// bytes are left elsewhere.
    pub fn lacking_replicas(&self) -> Vec<(&'a ReplicaId, CustodyDoubt<'a>)> {
        let has_bytes = self.has_bytes();
        let is_waited_for = |id: &ReplicaId, copy: &ReplicaRecord, doubt: &CustodyDoubt<'_>| {
            let is_last_hope = !has_bytes && copy.kind == ReplicaKind::Bitarchive;
            let is_lived_with = match doubt {
                CustodyDoubt::State(_) | CustodyDoubt::Retired => self.now.is_retired(id),
                CustodyDoubt::Filed(filed) => filed.accepted.is_some(),
            };
            !copy.state.is_withdrawn() && (is_last_hope || (copy.required && !is_lived_with))
        };
        let copies = self.record.replicas.iter();
        copies
            .filter_map(|(id, copy)| Some((id, copy, self.doubt_copy(id, copy)?)))
            .filter(|(id, copy, doubt)| is_waited_for(id, copy, doubt))
            .map(|(id, _, doubt)| (id, doubt))
            .collect()
    }

    /// Returns the reason why the archive cannot vouch for the file, for people; `None` if it can.
    pub fn missing_reason(&self) -> Option<String> {
        if self.record.content.is_none() {
            return Some("its content is not known yet".to_owned());
        }
        let lacking = self.lacking_replicas();
        if lacking.is_empty() && self.has_bytes() {
            return None;
        }
        let said = lacking.iter().map(|(id, doubt)| format!("{id}: {doubt}"));
        let said = said.collect::<Vec<_>>().join("; ");
        Some(if said.is_empty() {
            "no replica keeps its bytes".to_owned()
        } else {
            said
        })
    }

    /// Signs the custody receipt: the admission, and every replica that has a copy that counts.
    ///
    /// # Errors
    ///
    /// The reason why there is no receipt, for people: the admission cannot be read, or the receipt cannot be written.
    pub fn write_receipt(
        &self,
        admission: &str,
        now: Timestamp,
        key: &SigningKey,
    ) -> Result<String, String> {
        let admission = Envelope::parse(admission.as_bytes()).map_err(|error| error.to_string())?;
        let replicas = self
            .good_copies()
            .filter_map(|(id, copy)| {
                Some(CustodyStatement {
                    replica: id.clone(),
                    kind: copy.kind,
                    completed: copy.since,
                    node: copy.node.clone()?,
                    volume: copy.volume.clone(),
                })
            })
            .collect();
        let receipt = Receipt {
            admission,
            replicas,
            issued: now,
        };
        receipt
            .sign(key)
            .map(|envelope| envelope.as_str().to_owned())
            .map_err(|error| error.to_string())
    }
}

impl CustodyDoubt<'_> {
    /// Returns the failure that is reported to a depositor.
    pub fn store_failure(&self) -> StoreFailure {
        match self {
            Self::State(ReplicaState::UploadFailed(reason)) => reason.clone(),
            Self::State(state) => StoreFailure::Gone(state.to_string()),
            Self::Retired => StoreFailure::Gone(self.to_string()),
            Self::Filed(filed) => match &filed.kind {
                AnomalyKind::Conflicting(_) | AnomalyKind::Disputed(_) => StoreFailure::Conflict,
                AnomalyKind::Corrupt(_) | AnomalyKind::Unreadable(_) | AnomalyKind::Lost(_) => {
                    StoreFailure::Disk(self.to_string())
                }
                AnomalyKind::Missing
                | AnomalyKind::Incomplete
                | AnomalyKind::Unexpected
                | AnomalyKind::Duplicate(_)
                | AnomalyKind::Unverified { .. }
                | AnomalyKind::Transient => StoreFailure::Gone(self.to_string()),
            },
        }
    }
}

impl std::fmt::Display for CustodyDoubt<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::State(state) => write!(f, "{state}"),
            Self::Retired => f.write_str("its volume, node or replica was retired"),
            Self::Filed(filed) => write!(f, "{} is filed (a{})", filed.kind, filed.id),
        }
    }
}

/// Whether the anomaly is filed of this copy: another copy in the same replica may be damaged, or unexpected, while
/// this one is good.
fn is_of(filed: &AnomalyRecord, copy: &ReplicaRecord) -> bool {
    let is_there = copy.copy_place().is_none_or(|place| filed.is_at(&place));
    is_there || !is_of_one_copy(&filed.kind)
}

/// Whether nobody can vouch for a copy of which this kind is filed. A second good copy, and a look that could not be
/// had, say nothing against a copy.
pub const fn is_doubt(kind: &AnomalyKind) -> bool {
    match kind {
        AnomalyKind::Missing
        | AnomalyKind::Corrupt(_)
        | AnomalyKind::Unreadable(_)
        | AnomalyKind::Lost(_)
        | AnomalyKind::Conflicting(_)
        | AnomalyKind::Disputed(_)
        // Something lies there that no sidecar vouches for.
        | AnomalyKind::Unexpected => true,
        AnomalyKind::Duplicate(_)
        | AnomalyKind::Unverified { .. }
        | AnomalyKind::Transient
        // The copy that is recorded now was stored since.
        | AnomalyKind::Incomplete => false,
    }
}
