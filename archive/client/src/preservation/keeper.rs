//! Preservation over gRPC. Each answer is checked against its request before it is handed out.

use std::time::Duration;

use archive_model::{
    Act, AtticPlace, CheckStep, FileCopy, FileName, FiledAnomaly, Mode, NodeSelector, NodeState,
    ReplicaId, ScrubOrder,
};
use archive_rpc::limits::LARGEST_MESSAGE;
use archive_rpc::{IdleTimeout, InvalidMessage, StepReader, StepStream};
use bytes::Bytes;
use proto_archive::wire::preservation_client::PreservationClient;
use proto_archive::{convert, wire};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Response, Status, Streaming};

use super::anomaly::Anomalies;
use super::attic::{Attics, attic_item};
use super::check::Checks;
use super::repair::Repairs;
use super::trail::{AuditLines, Export};
use super::{
    AnomalySelection, ArchiveSteps, AtticEntry, AtticSelection, AuditSelection, Bootstrap,
    CheckOrder, CopyReplacement, HeldAuditLine, NotifyOutcome, Preservation, Repair, RepairOrder,
    ReplacedCopy, RequestRecord, ScrubSelection, Scrubs, VolumeOrder,
};
use crate::CallFuture;
use crate::error::{ClientError, call_failed};
use crate::ingest::within_limit;
use crate::limits::ClientLimits;

/// The most bytes of names in one request: below what a server reads.
const MOST_NAMES: usize = 3 << 20;

/// The number of messages that wait for the connection: enough to read ahead of it.
const AHEAD: usize = 4;

/// A keeper, who looks after an archive, at the door of its repository. Cheap to clone; clones share the connection.
///
/// ```
/// use archive_client::preservation::AnomalySelection;
/// use archive_client::{ClientError, Keeper, Preservation};
///
/// /// Counts the anomalies that are open.
/// async fn open_anomalies(archive: &Keeper) -> Result<u64, ClientError> {
///     let mut anomalies = archive.anomalies(&AnomalySelection::default()).await?;
///     let mut count = 0;
///     while anomalies.next().await?.is_some() {
///         count += 1;
///     }
///     Ok(count)
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Keeper {
    client: PreservationClient<Channel>,
    limits: ClientLimits,
}

impl Keeper {
    /// Takes a channel to the repository.
    pub fn new(channel: Channel, limits: ClientLimits) -> Self {
        let client = PreservationClient::new(channel).max_decoding_message_size(LARGEST_MESSAGE);
        Self { client, limits }
    }

    /// Waits for the answer to a call, within a limit. `what` names the call, for an archive that does not offer it.
    async fn answer<T>(
        &self,
        what: &'static str,
        limit: Duration,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, ClientError> {
        let doing = "waiting for the archive's answer";
        match within_limit(limit, doing, call).await? {
            Ok(response) => Ok(response.into_inner()),
            Err(status) => Err(call_failed(what, &status)),
        }
    }

    /// Waits for the answer to a call that needs no reading of copies.
    async fn soon<T>(
        &self,
        what: &'static str,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, ClientError> {
        self.answer(what, self.limits.answer_limit(), call).await
    }

    /// Waits for an act that reads whole copies first.
    async fn done<T>(
        &self,
        what: &'static str,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, ClientError> {
        match self.answer(what, self.limits.act_limit(), call).await {
            Err(ClientError::TimedOut(said)) => Err(ClientError::TimedOut(format!(
                "{said}; it may be done all the same: look first"
            ))),
            other => other,
        }
    }

    /// Begins to read steps. The archive may read a copy back between two of them.
    async fn steps<T: StepReader<Error = ClientError>>(
        &self,
        what: &'static str,
        reader: T,
        call: impl Future<Output = Result<Response<Streaming<T::Message>>, Status>>,
    ) -> Result<ArchiveSteps<T::Item>, ClientError> {
        let limit = self.limits.verification_limit(0);
        let stream = IdleTimeout::new(self.answer(what, limit, call).await?, limit);
        Ok(ArchiveSteps::new(StepStream::of_optional_call(
            stream, reader, what,
        )))
    }

    async fn send_replacement(
        &self,
        replacement: &CopyReplacement,
        watch: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<ReplacedCopy, ClientError> {
        const WHAT: &str = "replacing copies";
        let (requests, outgoing) = mpsc::channel(AHEAD);
        let mut client = self.client.clone();
        let call = client.replace(ReceiverStream::new(outgoing));
        tokio::pin!(call);
        let answer = tokio::select! {
            answer = &mut call => answer,
            sent = replacement.send_bytes(requests, &self.limits, watch) => {
                sent?;
                let limit = self.limits.verification_limit(replacement.size);
                within_limit(limit, "the archive verifies the new copy", call).await?
            }
        };
        let answer = answer
            .map_err(|status| call_failed(WHAT, &status))?
            .into_inner();
        let attic = answer
            .attic
            .ok_or_else(|| InvalidMessage::missing_field("attic"))?;
        let attic = attic_item(&replacement.replica, attic)?;
        let entry = copy_of(answer.entry.as_ref(), &replacement.name)?;
        Ok(ReplacedCopy { entry, attic })
    }
}

/// Reads the copy of the file `name`; fails if it is of another file.
fn copy_of(entry: Option<&wire::FileEntry>, name: &FileName) -> Result<FileCopy, ClientError> {
    let copy = convert::file_copy(entry.ok_or_else(|| InvalidMessage::missing_field("entry"))?)?;
    if copy.name == *name {
        return Ok(copy);
    }
    let found = copy.name;
    Err(ClientError::Untrusted(format!(
        "asked for {name}, the archive speaks of {found}"
    )))
}

/// Reads the request `id`; fails if it is another one.
fn meant(state: wire::RequestState, id: &str) -> Result<RequestRecord, ClientError> {
    let request = RequestRecord::try_from(state)?;
    if request.id == id {
        return Ok(request);
    }
    let found = request.id;
    Err(ClientError::Untrusted(format!(
        "asked for request {id}, the archive speaks of {found}"
    )))
}

/// Refuses more names than a server reads, with an error that says what to do.
fn bounded(names: &[FileName]) -> Result<(), ClientError> {
    let bytes: usize = names.iter().map(|name| name.as_str().len() + 5).sum();
    if bytes <= MOST_NAMES {
        return Ok(());
    }
    let count = names.len();
    Err(ClientError::Invalid(format!(
        "{count} names are too many for one request; name fewer, or all of them"
    )))
}

impl Preservation for Keeper {
    fn check<'a>(&'a self, order: &'a CheckOrder) -> CallFuture<'a, ArchiveSteps<CheckStep>> {
        Box::pin(async move {
            bounded(&order.names)?;
            let mut client = self.client.clone();
            let call = client.check(wire::CheckRequest::from(order));
            self.steps("checks", Checks::new(order), call).await
        })
    }

    fn anomalies<'a>(
        &'a self,
        selection: &'a AnomalySelection,
    ) -> CallFuture<'a, ArchiveSteps<FiledAnomaly>> {
        Box::pin(async move {
            let mut client = self.client.clone();
            let call = client.anomalies(wire::AnomaliesRequest {
                all: selection.all,
                file: selection
                    .file
                    .as_ref()
                    .map(ToString::to_string)
                    .unwrap_or_default(),
            });
            self.steps("lists of anomalies", Anomalies(selection.clone()), call)
                .await
        })
    }

    fn repair<'a>(&'a self, order: &'a RepairOrder) -> CallFuture<'a, ArchiveSteps<Repair>> {
        Box::pin(async move {
            bounded(&order.names)?;
            let mut client = self.client.clone();
            let call = client.repair(wire::RepairRequest::from(order));
            self.steps("repairs", Repairs::new(order), call).await
        })
    }

    fn scrubs<'a>(
        &'a self,
        selection: &'a ScrubSelection,
        order: ScrubOrder,
    ) -> CallFuture<'a, Scrubs> {
        Box::pin(async move {
            let mut client = self.client.clone();
            let call = client.scrubs(selection.wire_request(order));
            Ok(Scrubs::try_from(
                self.soon("orders to scrubbing", call).await?,
            )?)
        })
    }

    fn replace<'a>(
        &'a self,
        replacement: &'a CopyReplacement,
        watch: &'a (dyn Fn(u64) + Send + Sync),
    ) -> CallFuture<'a, ReplacedCopy> {
        Box::pin(self.send_replacement(replacement, watch))
    }

    fn adopt<'a>(&'a self, name: &'a FileName, replica: &'a ReplicaId) -> CallFuture<'a, FileCopy> {
        Box::pin(async move {
            let mut client = self.client.clone();
            let call = client.adopt(wire::AdoptFileRequest {
                name: name.to_string(),
                replica: replica.to_string(),
            });
            copy_of(
                self.done("adopting files", call).await?.entry.as_ref(),
                name,
            )
        })
    }

    fn attics<'a>(
        &'a self,
        selection: &'a AtticSelection,
    ) -> CallFuture<'a, ArchiveSteps<AtticEntry>> {
        Box::pin(async move {
            let mut client = self.client.clone();
            let call = client.attics(wire::AtticsRequest {
                replica: selection
                    .replica
                    .as_ref()
                    .map(ToString::to_string)
                    .unwrap_or_default(),
                name: selection
                    .name
                    .as_ref()
                    .map(ToString::to_string)
                    .unwrap_or_default(),
            });
            self.steps("lists of its attics", Attics(selection.clone()), call)
                .await
        })
    }

    fn restore<'a>(&'a self, place: &'a AtticPlace, reason: &'a str) -> CallFuture<'a, FileCopy> {
        Box::pin(async move {
            let mut client = self.client.clone();
            let call = client.restore(convert::attics_ref(place, reason));
            Ok(convert::file_copy(
                &self.done("restoring files from an attic", call).await?,
            )?)
        })
    }

    fn ask<'a>(&'a self, act: &'a Act, reason: &'a str) -> CallFuture<'a, RequestRecord> {
        Box::pin(async move {
            let mut client = self.client.clone();
            let call = client.ask(convert::ask_request(act, reason));
            let request = RequestRecord::try_from(self.soon("requests", call).await?)?;
            if request.act == act.kind() {
                return Ok(request);
            }
            let asked = act.kind();
            let found = request.act;
            Err(ClientError::Untrusted(format!(
                "asked for {asked}, the archive has a request for {found}"
            )))
        })
    }

    fn requests(&self, all: bool) -> CallFuture<'_, Vec<RequestRecord>> {
        Box::pin(async move {
            let mut client = self.client.clone();
            let call = client.requests(wire::RequestsRequest { all });
            let answer = self.soon("requests", call).await?;
            let requests = answer.requests.into_iter().map(RequestRecord::try_from);
            Ok(requests.collect::<Result<_, _>>()?)
        })
    }

    fn approve<'a>(&'a self, id: &'a str) -> CallFuture<'a, RequestRecord> {
        Box::pin(async move {
            let mut client = self.client.clone();
            let call = client.approve(wire::RequestRef { id: id.to_owned() });
            meant(self.done("requests", call).await?, id)
        })
    }

    fn withdraw<'a>(&'a self, id: &'a str) -> CallFuture<'a, RequestRecord> {
        Box::pin(async move {
            let mut client = self.client.clone();
            let call = client.withdraw(wire::RequestRef { id: id.to_owned() });
            meant(self.soon("requests", call).await?, id)
        })
    }

    fn volume<'a>(&'a self, order: &'a VolumeOrder) -> CallFuture<'a, NodeState> {
        Box::pin(async move {
            let mut client = self.client.clone();
            let call = client.volume(wire::VolumeRequest::from(order));
            Ok(convert::node_state(
                self.done("orders to volumes", call).await?,
            )?)
        })
    }

    fn node<'a>(&'a self, name: &'a NodeSelector, mode: Mode) -> CallFuture<'a, NodeState> {
        Box::pin(async move {
            let node = &name.node;
            let mut client = self.client.clone();
            let call = client.node(wire::NodeRequest {
                node: node.to_string(),
                order: Some(wire::SetModeRequest {
                    mode: convert::wire_mode(mode).into(),
                }),
                replica: convert::or_empty(name.replica.as_ref()),
            });
            let status = convert::node_state(self.soon("orders to nodes", call).await?)?;
            if status.node == *node {
                return Ok(status);
            }
            let found = status.node;
            Err(ClientError::Untrusted(format!(
                "asked for node {node}, the archive speaks of {found}"
            )))
        })
    }

    fn bootstrap<'a>(&'a self, replica: &'a ReplicaId) -> CallFuture<'a, Bootstrap> {
        Box::pin(async move {
            let mut client = self.client.clone();
            let call = client.bootstrap(wire::BootstrapRequest {
                replica: replica.to_string(),
            });
            Ok(self.done("filling replicas", call).await?.into())
        })
    }

    fn audit<'a>(
        &'a self,
        selection: &'a AuditSelection,
    ) -> CallFuture<'a, ArchiveSteps<HeldAuditLine>> {
        Box::pin(async move {
            let mut client = self.client.clone();
            let call = client.audit(wire::AuditRequest::from(selection));
            self.steps("its audit trail", AuditLines::new(selection), call)
                .await
        })
    }

    fn export(&self) -> CallFuture<'_, ArchiveSteps<Bytes>> {
        Box::pin(async move {
            let mut client = self.client.clone();
            let call = client.export(wire::ExportRequest {});
            self.steps("exports", Export::default(), call).await
        })
    }

    fn notify_test(&self) -> CallFuture<'_, NotifyOutcome> {
        Box::pin(async move {
            let mut client = self.client.clone();
            let call = client.notify_test(wire::NotifyTestRequest {});
            Ok(self.done("test notifications", call).await?.into())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a request with more names than a server reads is sent, so that it fails without advice on what to do.
    #[test]
    fn too_many_names_are_refused_before_sending() {
        let name = FileName::new(&"x".repeat(240)).unwrap();
        assert!(bounded(&vec![name.clone(); 10_000]).is_ok());
        assert!(bounded(&vec![name; 20_000]).is_err());
    }
}
