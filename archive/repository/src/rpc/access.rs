//! The service `Access`.

use archive_ledger::standing::StandingSnapshot;
use archive_model::{ArchiveError, Drain};
use archive_rpc::CallErrorKind;
use futures_util::future::join_all;
use proto_archive::wire::access_server::Access;
use proto_archive::{convert as fields, wire};
use tonic::{Request, Response, Status};

use super::{AnswerStream, Door, admin_failed, changes, get, list, salvage};
use crate::settings::ReplicaSettings;

impl Door {
    /// Returns the read of a file that the archive has.
    fn job(&self, request: &wire::GetRequest) -> Result<get::GetJob, Status> {
        let name = fields::file_name("name", &request.name)?;
        let replica = request.replica.as_str();
        if !replica.is_empty()
            && self
                .archive
                .specs
                .iter()
                .all(|spec| spec.id.as_str() != replica)
        {
            let said = format!("replica {replica:?} is not in the settings of this archive");
            return Err(CallErrorKind::NotFound.to_status(said));
        }
        let row = self.archive.admin.file(&name);
        let row = row.map_err(|error| admin_failed(&error))?;
        let unknown = || fields::to_status(&ArchiveError::NotFound(name.to_string()));
        get::GetJob::new(&row.ok_or_else(unknown)?, request)
    }
}

impl Door {
    /// Returns the state of a replica, as its monitor reports it within its limit.
    async fn replica_state(
        &self,
        spec: &ReplicaSettings,
        standing: &StandingSnapshot,
    ) -> wire::status_response::ReplicaState {
        let retired = standing.is_retired(&spec.id);
        let (nodes, problem) = match self.archive.calls.replicas.state_now(&spec.id).await {
            Err(_) if retired => (Vec::new(), String::new()),
            Ok(nodes) => (nodes, String::new()),
            Err(error) => (Vec::new(), error.reason),
        };
        wire::status_response::ReplicaState {
            replica: spec.id.to_string(),
            kind: wire::ReplicaKind::from(spec.kind).into(),
            required: spec.required,
            problem,
            nodes: nodes.into_iter().map(fields::node_status).collect(),
            filling: standing.is_filling(&spec.id),
            retired,
            site: spec.site.clone().unwrap_or_default(),
        }
    }
}

impl Door {
    /// Returns the drains under way.
    fn drains(&self) -> Vec<wire::status_response::Drain> {
        let standing = self.archive.standing.current_snapshot();
        let drains = standing.draining.iter().map(|(source, row)| {
            let progress = self.drains.drain_progress(source);
            fields::drain_message(Drain {
                replica: source.replica.clone(),
                node: source.node.clone(),
                volume: source.volume.clone(),
                since: row.since,
                left: progress.left,
                drained: row.drained,
                held: Some(progress.held).filter(|held| !held.is_empty()),
            })
        });
        drains.collect()
    }
}

#[tonic::async_trait]
impl Access for Door {
    async fn get(
        &self,
        request: Request<wire::GetRequest>,
    ) -> Result<Response<AnswerStream<wire::GetResponse>>, Status> {
        let job = self.job(&request.into_inner())?;
        let door = self.clone();
        Ok(self.answer("get", |answers| async move {
            job.run_get(&door, &answers).await
        }))
    }

    async fn salvage(
        &self,
        request: Request<wire::GetRequest>,
    ) -> Result<Response<AnswerStream<wire::SalvageResponse>>, Status> {
        let job = self.job(&request.into_inner())?;
        let door = self.clone();
        Ok(self.answer("salvage", |answers| async move {
            salvage::run_salvage(job, &door, &answers).await
        }))
    }

    async fn list(
        &self,
        request: Request<wire::ListRequest>,
    ) -> Result<Response<AnswerStream<wire::ListResponse>>, Status> {
        let job = list::ListJob::new(&request.into_inner())?;
        let door = self.clone();
        Ok(self.answer("list", |answers| async move {
            job.run_list(&door, &answers).await
        }))
    }

    async fn receipt(
        &self,
        request: Request<wire::ReceiptRequest>,
    ) -> Result<Response<wire::ReceiptResponse>, Status> {
        Ok(Response::new(self.issue_receipt(&request)?))
    }

    async fn changes(
        &self,
        request: Request<wire::ChangesRequest>,
    ) -> Result<Response<AnswerStream<wire::ChangesResponse>>, Status> {
        let job = changes::FeedJob::new(request.get_ref());
        let door = self.clone();
        Ok(self.answer("changes", |answers| async move {
            job.run_feed(&door, &answers).await
        }))
    }

    async fn status(
        &self,
        _request: Request<wire::StatusRequest>,
    ) -> Result<Response<wire::StatusResponse>, Status> {
        let standing = self.archive.standing.current_snapshot();
        // The monitors are asked at once: one that does not answer delays none of the others.
        let asked = self
            .archive
            .specs
            .iter()
            .map(|spec| self.replica_state(spec, &standing));
        let replicas = join_all(asked).await;
        let Some(counts) = self.archive.admin.counts() else {
            return Err(CallErrorKind::Unavailable.to_status(
                "the repository has just started and is still counting its files; try again later",
            ));
        };
        let mut anomalies = self.archive.anomalies.count_kinds();
        anomalies.retain(|_, count| *count > 0);
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Ok(Response::new(wire::StatusResponse {
            replicas,
            files: counts.files,
            bytes: counts.bytes,
            below_required: standing.below_required(&counts),
            version,
            anomalies: fields::anomaly_count_messages(&anomalies),
            held: self.preserver.held_at_all().unwrap_or_default(),
            drains: self.drains(),
            problems: self.own_problems(),
        }))
    }
}

impl Door {
    /// Returns what is wrong with the repository itself.
    fn own_problems(&self) -> Vec<String> {
        let audit = (self.audit_refused.get() != 0).then(|| {
            "nothing is appended to the audit log, and its lines wait in the admin data: see the log of the repository"
                .to_owned()
        });
        self.room.shortage().into_iter().chain(audit).collect()
    }
}
