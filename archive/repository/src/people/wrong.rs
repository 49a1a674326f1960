//! Removal of wrong copies: a copy that is not what was admitted, or an unknown file, by its own checksum.
//!
//! Such a copy is not *withdrawn*: the replica shall have the file, so the right bytes are stored once the wrong ones
//! are moved away. No answer reveals the checksum of a copy: the person who removes it must know it.

use archive_decisions::store::StoringEvent;
use archive_ledger::admin::AdminRow;
use archive_ledger::anomalies::{Look, LookQuality};
use archive_model::{AnomalyKind, Cause, FileContent, FileName, Finder, ReplicaId, Root};
use archive_rpc::{CallError, CallErrorKind};

use super::People;
use super::acts::RemovedCopy;
use super::refusal::{changed_meanwhile, recorded_content};
use crate::tables::with_tables;

impl People {
    /// Finds the copies of that checksum, which are not what was admitted under the name.
    ///
    /// # Errors
    /// The reason why there is no such copy to be removed.
    pub(super) async fn wrong_copies(
        &self,
        row: Option<&AdminRow>,
        name: &FileName,
        replica: &ReplicaId,
        checksum: &Root,
    ) -> Result<Vec<RemovedCopy>, CallError> {
        let found = self.existing_copies(replica, name).await?;
        let admitted = row.map(|row| recorded_content(&row.record)).transpose()?;
        let admitted = admitted.map(|content| content.root);
        let copy = row.and_then(|row| row.record.replicas.get(replica));
        let counts = copy.is_some_and(|copy| copy.state.is_completed());
        let mut is_any = false;
        let mut wrong = Vec::new();
        for copy in found {
            if row.is_none() && !copy.is_unexpected() {
                return Err(changed_meanwhile(format!(
                    "cannot remove {name}: it has an admission of its own; adopt it, and then remove it"
                )));
            }
            is_any = true;
            let is_right = counts && copy.is_present() && copy.root == admitted;
            if !is_right && self.verify_copies(replica, name, &copy).await?.root == Some(*checksum)
            {
                wrong.push(RemovedCopy {
                    place: copy.place,
                    content: FileContent {
                        root: *checksum,
                        size: copy.size,
                    },
                });
            }
        }
        if !wrong.is_empty() {
            return Ok(wrong);
        }
        if is_any {
            let said = "the checksum is not that of the copy; check its copies again, and use the checksum that is shown";
            return Err(CallErrorKind::Mismatch.to_error(said));
        }
        Err(CallErrorKind::NotFound.to_error(format!("replica {replica} has no copy of {name}")))
    }

    /// Returns whether an earlier try of the same request has moved a copy into an attic, on any node of the replica.
    pub(super) async fn is_aside(
        &self,
        name: &FileName,
        replica: &ReplicaId,
        mine: &str,
    ) -> Result<bool, CallError> {
        let admin = self.archive.admin.clone();
        let id = replica.clone();
        let nodes = with_tables(move || admin.list_nodes(&id)).await?;
        for node in nodes {
            if self
                .set_aside_before(replica, &node, name, mine)
                .await?
                .is_some()
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Closes the anomalies of a wrong copy that was moved into the attic, and has the right one stored.
    pub(super) async fn make_room(
        &self,
        row: Option<&AdminRow>,
        name: &FileName,
        replica: &ReplicaId,
        cause: &Cause,
    ) -> Result<(), CallError> {
        let left = self.existing_copies(replica, name).await?;
        let copy = row.and_then(|row| row.record.replicas.get(replica));
        let is_wanted = copy.is_some_and(|copy| !copy.state.is_withdrawn());
        if left.is_empty() {
            let missing = is_wanted.then_some(AnomalyKind::Missing);
            let size = row.and_then(|row| row.record.content.as_ref());
            let look = Look {
                found: missing.into_iter().collect(),
                quality: LookQuality::Listing,
                by: Finder::Check,
                is_second: false,
                size: size.map_or(0, |content| content.size),
                place: None,
            };
            self.archive
                .file_look(replica, name, look, &cause.who)
                .await?;
        }
        if is_wanted {
            let gone = StoringEvent::Gone {
                replica: replica.clone(),
            };
            self.order_event(name, gone, &cause.who).await?;
        }
        Ok(())
    }
}
