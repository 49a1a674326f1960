//! Retirement of volumes, nodes and replicas.
//!
//! A retirement is stored first, then its node is told: so it holds also if node and disk never come back. The rows of
//! all files follow by themselves (`fill`).

use std::sync::Arc;

use archive_decisions::store::FileRecord;
use archive_ledger::requests::PersonRequest;
use archive_ledger::standing::{ReplicaRow, Retirement};
use archive_model::{
    Act, Cause, FileName, NodeKey, NodeSelector, ReplicaId, VolumeKey, VolumeSelector,
};
use archive_rpc::{CallError, CallErrorKind};

use super::People;
use super::last::ServicePart;
use super::refusal::changed_meanwhile;
use crate::tables::with_tables;

impl People {
    /// Completes an act with the replica, and the node, of the part that it takes out of service: exactly that part is
    /// approved, even if another one has the same id by then.
    pub(super) async fn with_place(&self, act: Act) -> Result<Act, CallError> {
        let node = |key: NodeKey| NodeSelector {
            replica: Some(key.replica),
            node: key.node,
        };
        Ok(match act {
            Act::RetireVolume {
                volume,
                last_copies,
            } => Act::RetireVolume {
                volume: self.named_volume(&volume).await?.into(),
                last_copies,
            },
            Act::RetireNode {
                node: named,
                last_copies,
            } => Act::RetireNode {
                node: node(self.named_node(&named).await?),
                last_copies,
            },
            Act::ReinstateVolume(volume) => {
                Act::ReinstateVolume(self.retired_volume(&volume)?.into())
            }
            Act::ReinstateNode(named) => Act::ReinstateNode(node(self.retired_node(&named)?)),
            act => act,
        })
    }

    /// Checks that a volume can be retired.
    pub(super) async fn volume_can_go(
        &self,
        volume: &VolumeKey,
        last_copies: bool,
    ) -> Result<(), CallError> {
        if self
            .archive
            .standing
            .current_snapshot()
            .volumes
            .contains_key(volume)
        {
            return Err(changed_meanwhile(format!("{volume} is retired already")));
        }
        self.check_dispensable(ServicePart::Volume(volume.clone()), last_copies)
            .await
    }

    /// Checks that a node can be retired.
    pub(super) async fn node_can_go(
        &self,
        key: &NodeKey,
        last_copies: bool,
    ) -> Result<(), CallError> {
        self.keeps_bytes(&key.replica, &format_args!("node {}", key.node))?;
        self.check_dispensable(ServicePart::Node(key.clone()), last_copies)
            .await
    }

    pub(super) async fn retire_volume(
        &self,
        named: &VolumeSelector,
        last_copies: bool,
        request: &PersonRequest,
        cause: &Cause,
    ) -> Result<String, CallError> {
        let volume = self.named_volume(named).await?;
        let known = self
            .archive
            .standing
            .current_snapshot()
            .volumes
            .get(&volume)
            .cloned();
        if known.is_none_or(|retired| retired.why != cause.why) {
            self.volume_can_go(&volume, last_copies).await?;
            let row = self.retired(request, cause);
            let line =
                self.archive
                    .audit_line(cause.who.clone(), None, format!("{volume} is retired"));
            let standing = Arc::clone(&self.archive.standing);
            let key = volume.clone();
            let retired = with_tables(move || standing.retire_volume(&key, &row, Some(line)));
            retired.await?;
        }
        let telling = self.archive.calls.replicas.tell_retired(&volume);
        let node = &volume.node;
        Ok(match self.archive.calls.reading_call(0, telling).await {
            Ok(()) => format!("node {node} has retired it; its files are stored elsewhere"),
            Err(error) => format!(
                "it does not count any more, and its files are stored elsewhere; node {node} will be told when it answers ({})",
                error.reason
            ),
        })
    }

    pub(super) async fn retire_node(
        &self,
        named: &NodeSelector,
        last_copies: bool,
        request: &PersonRequest,
        cause: &Cause,
    ) -> Result<String, CallError> {
        let done = "it is not asked and not missed any more; its files are stored elsewhere";
        let is_mine = |(key, retired): (&NodeKey, &Retirement)| {
            key.node == named.node && retired.why == cause.why
        };
        if self
            .archive
            .standing
            .current_snapshot()
            .nodes
            .iter()
            .any(is_mine)
        {
            return Ok(done.to_owned());
        }
        let key = self.named_node(named).await?;
        self.node_can_go(&key, last_copies).await?;
        let line = self
            .archive
            .audit_line(cause.who.clone(), None, format!("{key} is retired"));
        let standing = Arc::clone(&self.archive.standing);
        let replica = key.replica.clone();
        let row = self.retired(request, cause);
        let retired = with_tables(move || standing.retire_node(&key, row, Some(line)));
        retired.await?;
        let admin = self.archive.admin.clone();
        let id = replica.clone();
        let left = with_tables(move || admin.list_nodes(&id)).await?;
        self.archive.calls.replicas.set_members(&replica, left);
        Ok(done.to_owned())
    }

    pub(super) async fn retire_replica(
        &self,
        replica: &ReplicaId,
        request: &PersonRequest,
        cause: &Cause,
    ) -> Result<String, CallError> {
        match self
            .archive
            .standing
            .current_snapshot()
            .replicas
            .get(replica)
        {
            Some(ReplicaRow::Retired(retired)) if retired.why == cause.why => {}
            _ => {
                self.check_expendable(replica).await?;
                let row = ReplicaRow::Retired(self.retired(request, cause));
                let line = self.archive.audit_line(
                    cause.who.clone(),
                    None,
                    format!("replica {replica} is retired"),
                );
                let standing = Arc::clone(&self.archive.standing);
                let id = replica.clone();
                let retired =
                    with_tables(move || standing.set_replica(&id, Some(&row), Some(line)));
                retired.await?;
            }
        }
        Ok(
            "it is neither asked nor required any more; it may be removed from the settings"
                .to_owned(),
        )
    }

    /// Checks that the archive can do without a replica.
    pub(super) async fn check_expendable(&self, replica: &ReplicaId) -> Result<(), CallError> {
        self.check_configured(replica)?;
        let now = self.archive.standing.current_snapshot();
        if now.is_retired(replica) {
            return Err(changed_meanwhile(format!(
                "replica {replica} is retired already"
            )));
        }
        let mut left = self.archive.standing.in_service(&self.specs);
        left.retain(|spec| spec.id != *replica);
        let probe = FileName::new("a")
            .map_err(|error| CallErrorKind::Internal.to_error(error.to_string()))?;
        FileRecord::free_name(probe, &left)
            .map_err(|error| changed_meanwhile(error.to_string()))?;
        self.check_dispensable(ServicePart::Replica(replica.clone()), false)
            .await
    }

    fn retired(&self, request: &PersonRequest, cause: &Cause) -> Retirement {
        Retirement {
            at: self.archive.now(),
            by: request.asked_by.clone(),
            why: cause.why.clone(),
            emptied: false,
        }
    }
}
