//! Removing what is not what it should be: a wrong copy of a file, or a file that nobody knows, by its own checksum.
//!
//! Such a copy is not *withdrawn*: the replica shall have the file, so the right bytes are brought once the wrong ones are
//! out of the way. No answer tells the checksum of a copy: whoever removes it must know it.

use archive_decisions::store::Event;
use archive_ledger::admin::AdminRow;
use archive_ledger::anomalies::{Look, LookQuality};
use archive_model::{AnomalyKind, FileName, Finder, NodeId, ReplicaId, Root, VolumeId};
use archive_replicas::{Cause, Copy};
use archive_rpc::{CallError, Kind};

use super::People;
use super::refusal::{changed, content};
use crate::tables::{file_look, with_tables};

impl People {
    /// The copy of that checksum, which is not what was admitted under the name; else why there is none to be removed.
    pub(super) async fn wrong_copy(
        &self,
        row: Option<&AdminRow>,
        (name, replica): (&FileName, &ReplicaId),
        checksum: &Root,
    ) -> Result<(NodeId, VolumeId), CallError> {
        let found = self.existing_copies(replica, name).await?;
        let admitted = row.map(|row| content(&row.record)).transpose()?;
        let admitted = admitted.map(|content| content.root);
        let copy = row.and_then(|row| row.record.replicas.get(replica));
        let counts = copy.is_some_and(|copy| copy.state.is_completed());
        let mut is_any = false;
        for copy in found {
            if row.is_none() && !copy.is_unexpected() {
                return Err(changed(format!(
                    "{name} has an admission of its own: adopt it, and then remove it"
                )));
            }
            is_any = true;
            let is_right = counts && copy.is_present() && copy.root == admitted;
            if !is_right && self.verified(replica, name, &copy).await?.root == Some(*checksum) {
                let Copy { node, volume, .. } = copy;
                return Ok((node, volume));
            }
        }
        if is_any {
            let said = "the checksum is not that of the copy; read it again from the archive";
            return Err(Kind::Mismatch.error(said));
        }
        Err(Kind::NotFound.error(format!("replica {replica} has no copy of {name}")))
    }

    /// Whether an earlier try of the same request has put a copy aside, on any node of the replica.
    pub(super) async fn is_aside(
        &self,
        (name, replica): (&FileName, &ReplicaId),
        mine: &str,
    ) -> Result<bool, CallError> {
        let (admin, id) = (self.admin.clone(), replica.clone());
        let nodes = with_tables(move || admin.nodes(&id)).await?;
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

    /// A wrong copy was put aside: what was filed of it is so no more, and the right one is brought.
    pub(super) async fn make_room(
        &self,
        row: Option<&AdminRow>,
        (name, replica): (&FileName, &ReplicaId),
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
            file_look(&self.anomalies, (replica, name), look, &cause.who).await?;
        }
        if is_wanted {
            let gone = Event::Gone {
                replica: replica.clone(),
            };
            self.order(name, gone, &cause.who).await?;
        }
        Ok(())
    }
}
