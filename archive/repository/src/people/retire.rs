//! Volumes, nodes and replicas that go out of service for good.
//!
//! Remembered first, then told to whom it concerns: so it holds also where node and disk are dead for ever. What every
//! file has to be told follows by itself (`bootstrap`).

use std::sync::Arc;

use archive_model::{FileName, NodeId, ReplicaId, VolumeId};
use archive_rpc::Kind;
use tonic::Status;

use super::acts::changed;
use super::last::Part;
use super::{People, blocking, failed_db};
use crate::admin::AuditLine;
use crate::replicas::Cause;
use crate::requests::Request;
use crate::standing::{ReplicaRow, Retired, VolumeRow};
use crate::store::FileRecord;

impl People {
    pub(super) async fn retire_volume(
        &self,
        (volume, last_copies): (&VolumeId, bool),
        request: &Request,
        cause: &Cause,
    ) -> Result<String, Status> {
        let known = self.standing.now().volumes.get(volume).cloned();
        let (replica, node) = match known {
            Some(row) if row.retired.why == cause.why => (row.replica, row.node),
            Some(_) => return Err(changed(format!("volume {volume} is retired already"))),
            None => {
                let (replica, node) = self.place_of(volume).await?;
                self.dispensable(Part::Volume(volume.clone()), last_copies)
                    .await?;
                let row = VolumeRow {
                    replica: replica.clone(),
                    node: node.clone(),
                    retired: self.retired(request, cause),
                };
                let line = self.line(cause, format!("volume {volume} of node {node} is retired"));
                let (standing, volume) = (Arc::clone(&self.standing), volume.clone());
                let retired = blocking(move || standing.retire_volume(&volume, &row, Some(line)));
                retired.await?.map_err(|error| failed_db(&error))?;
                (replica, node)
            }
        };
        let telling = self
            .transfers
            .replicas
            .tell_retired(&replica, &node, volume);
        Ok(match self.within(0, telling).await {
            Ok(()) => format!("node {node} has retired it; its files are brought elsewhere"),
            Err(status) => format!(
                "it counts no more, and its files are brought elsewhere; node {node} is told when it can be ({})",
                status.message()
            ),
        })
    }

    pub(super) async fn retire_node(
        &self,
        (node, last_copies): (&NodeId, bool),
        request: &Request,
        cause: &Cause,
    ) -> Result<String, Status> {
        let now = self.standing.now();
        match now.nodes.iter().find(|((_, id), _)| id == node) {
            Some((_, retired)) if retired.why == cause.why => {}
            Some(_) => return Err(changed(format!("node {node} is retired already"))),
            None => {
                let replica = self.replica_of(node).await?;
                self.dispensable(Part::Node(replica.clone(), node.clone()), last_copies)
                    .await?;
                let line = self.line(
                    cause,
                    format!("node {node} of replica {replica} is retired"),
                );
                let (standing, node) = (Arc::clone(&self.standing), node.clone());
                let row = self.retired(request, cause);
                let of = replica.clone();
                let retired = blocking(move || standing.retire_node(&of, &node, row, Some(line)));
                retired.await?.map_err(|error| failed_db(&error))?;
                let (admin, id) = (self.admin.clone(), replica.clone());
                let left = blocking(move || admin.nodes(&id)).await?;
                let left = left.map_err(|error| failed_db(&error))?;
                self.transfers.replicas.set_members(&replica, left);
            }
        }
        Ok("it is not asked and not missed any more; its files are brought elsewhere".to_owned())
    }

    pub(super) async fn retire_replica(
        &self,
        replica: &ReplicaId,
        request: &Request,
        cause: &Cause,
    ) -> Result<String, Status> {
        match self.standing.now().replicas.get(replica) {
            Some(ReplicaRow::Retired(retired)) if retired.why == cause.why => {}
            Some(_) | None => {
                self.expendable(replica).await?;
                let row = ReplicaRow::Retired(self.retired(request, cause));
                let line = self.line(cause, format!("replica {replica} is retired"));
                let (standing, id) = (Arc::clone(&self.standing), replica.clone());
                let retired = blocking(move || standing.set_replica(&id, Some(&row), Some(line)));
                retired.await?.map_err(|error| failed_db(&error))?;
            }
        }
        Ok(
            "it is neither asked nor required any more; take it out of the settings when you like"
                .to_owned(),
        )
    }

    /// Whether the archive can do without a replica.
    pub(super) async fn expendable(&self, replica: &ReplicaId) -> Result<(), Status> {
        self.configured(replica)?;
        let now = self.standing.now();
        if now.is_retired(replica) {
            return Err(changed(format!("replica {replica} is retired already")));
        }
        let mut left = self.standing.in_service(&self.specs);
        left.retain(|spec| spec.id != *replica);
        let probe = FileName::new("a").map_err(|error| Kind::Internal.status(error.to_string()))?;
        FileRecord::free(probe, &left).map_err(|error| changed(error.to_string()))?;
        self.dispensable(Part::Replica(replica.clone()), false)
            .await
    }

    fn retired(&self, request: &Request, cause: &Cause) -> Retired {
        Retired {
            at: self.now(),
            by: request.asked_by.clone(),
            why: cause.why.clone(),
            emptied: false,
        }
    }

    fn line(&self, cause: &Cause, what: String) -> AuditLine {
        AuditLine {
            at: self.now(),
            who: cause.who.clone(),
            file: None,
            what,
        }
    }
}
