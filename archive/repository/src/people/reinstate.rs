//! Reinstatement of volumes, nodes and removed copies, after two persons have decided it.
//!
//! A replica is not reinstated: it has left the rows of all files. A new one is set up under another id.

use std::sync::Arc;

use archive_decisions::store::{FileRecord, StoringEvent};
use archive_model::{Cause, FileName, NodeKey, NodeSelector, ReplicaId, VolumeKey, VolumeSelector};
use archive_rpc::{CallError, CallErrorKind};

use super::People;
use super::refusal::changed_meanwhile;
use crate::tables::with_tables;

/// Returns the only retired volume or node that `named` means. Fails if there is no such one, or more than one.
fn only<T>(meant: impl Iterator<Item = T>, named: &impl std::fmt::Display) -> Result<T, CallError> {
    let mut meant: Vec<T> = meant.collect();
    match (meant.pop(), meant.len()) {
        (Some(one), 0) => Ok(one),
        (Some(_), _) => Err(changed_meanwhile(format!(
            "more than one {named} is retired; name one with --node and --replica"
        ))),
        (None, _) => Err(CallErrorKind::NotFound.to_error(format!("no {named} is retired"))),
    }
}

/// Checks that two persons have not taken the copy of a replica away: one person does not bring it back.
pub(crate) fn refuse_withdrawn(record: &FileRecord, replica: &ReplicaId) -> Result<(), CallError> {
    if !is_withdrawn(record, replica) {
        return Ok(());
    }
    let name = &record.name;
    Err(changed_meanwhile(format!(
        "the copy of {name} in replica {replica} was removed by two persons; \
         `holdfast reinstate {name} --replica {replica}` asks two to want it again"
    )))
}

fn is_withdrawn(record: &FileRecord, replica: &ReplicaId) -> bool {
    let copy = record.replicas.get(replica);
    copy.is_some_and(|copy| copy.state.is_withdrawn())
}

impl People {
    /// Checks that a copy was removed, and is not wanted again yet.
    pub(super) async fn check_withdrawn(
        &self,
        name: &FileName,
        replica: &ReplicaId,
    ) -> Result<(), CallError> {
        self.check_configured(replica)?;
        if self.archive.standing.current_snapshot().is_retired(replica) {
            return Err(changed_meanwhile(format!(
                "replica {replica} is retired: nothing is stored there any more"
            )));
        }
        let row = self.known_row(name).await?;
        if is_withdrawn(&row.record, replica) {
            return Ok(());
        }
        Err(changed_meanwhile(format!(
            "no copy of {name} was removed from replica {replica}; `holdfast stat {name}` shows its copies"
        )))
    }

    /// Wants a removed copy again. A copy that is wanted stays so: the act is repeated after a restart.
    pub(super) async fn reinstate_copy(
        &self,
        name: &FileName,
        replica: &ReplicaId,
        cause: &Cause,
    ) -> Result<String, CallError> {
        let event = StoringEvent::Reinstated {
            replica: replica.clone(),
        };
        self.order_event(name, event, &cause.who).await?;
        Ok(format!(
            "replica {replica} gets it from another replica; if none has it, restore it from the attic"
        ))
    }

    /// Returns the retired volume that is meant.
    pub(super) fn retired_volume(&self, named: &VolumeSelector) -> Result<VolumeKey, CallError> {
        let now = self.archive.standing.current_snapshot();
        only(
            now.volumes
                .keys()
                .filter(|key| named.selects_volume(key))
                .cloned(),
            named,
        )
    }

    /// Returns the retired node that is meant.
    pub(super) fn retired_node(&self, named: &NodeSelector) -> Result<NodeKey, CallError> {
        let now = self.archive.standing.current_snapshot();
        let is_meant = |key: &&NodeKey| named.selects_node(&key.replica, &key.node);
        only(now.nodes.keys().filter(is_meant).cloned(), named)
    }

    /// Lets a volume count again. Its node is told first: the volume stays retired until the node answers.
    pub(super) async fn reinstate_volume(
        &self,
        named: &VolumeSelector,
        cause: &Cause,
    ) -> Result<String, CallError> {
        let volume = match self.retired_volume(named) {
            Ok(volume) => volume,
            // The act was done before a restart.
            Err(error) if error.kind == CallErrorKind::NotFound => {
                let volume = self.named_volume(named).await?;
                return Ok(format!("{volume} is in service"));
            }
            Err(error) => return Err(error),
        };
        // The table of a checksum replica is no disk: no node was told that it is retired.
        let replicas = &self.archive.calls.replicas;
        if self.keeps_bytes(&volume.replica, &volume).is_ok() {
            replicas.set_reinstating(Some(&volume));
            let told = self
                .archive
                .calls
                .reading_call(0, replicas.tell_reinstated(&volume))
                .await;
            told.inspect_err(|_failed| replicas.set_reinstating(None))?;
        }
        let line = self.archive.audit_line(
            cause.who.clone(),
            None,
            format!("{volume} is in service again"),
        );
        let standing = Arc::clone(&self.archive.standing);
        let reinstated = with_tables(move || standing.reinstate_volume(&volume, line)).await;
        replicas.set_reinstating(None);
        reinstated?;
        Ok("what it has counts again".to_owned())
    }

    /// Lets a node count again.
    pub(super) async fn reinstate_node(
        &self,
        named: &NodeSelector,
        cause: &Cause,
    ) -> Result<String, CallError> {
        let key = match self.retired_node(named) {
            Ok(found) => found,
            // The act was done before a restart.
            Err(error) if error.kind == CallErrorKind::NotFound => self.named_node(named).await?,
            Err(error) => return Err(error),
        };
        let what = format!("{key} is in service again");
        let line = self
            .archive
            .audit_line(cause.who.clone(), None, what.clone());
        let standing = Arc::clone(&self.archive.standing);
        let of = key.clone();
        with_tables(move || standing.reinstate_node(&of, line)).await?;
        let replica = key.replica;
        let admin = self.archive.admin.clone();
        let id = replica.clone();
        let members = with_tables(move || admin.list_nodes(&id)).await?;
        self.archive.calls.replicas.set_members(&replica, members);
        Ok(what)
    }
}
