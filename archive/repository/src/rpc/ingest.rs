//! The service `Ingest`.

use std::sync::Arc;

use archive_decisions::store::{Claim, ReplicaRecord};
use archive_ledger::admin::Admin;
use archive_model::{ArchiveError, Digests, FileName, ReplicaId};
use archive_proof::{Admission, Envelope};
use archive_rpc::{CallErrorKind, Identity, IdleTimeout, InvalidMessage, LeastRate, Role};
use archive_stores::coordinator::Times;
use archive_stores::depositor::{Chunk, DepositReply, DepositRequest, DepositStream};
use proto_archive::wire::ingest_server::Ingest;
use proto_archive::wire::store_request::{Open, Step};
use proto_archive::{convert as fields, wire};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{StreamExt, adapters::Fuse};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};

use super::{AnswerStream, Door, convert};
use crate::tables::with_tables;

#[tonic::async_trait]
impl Ingest for Door {
    async fn store(
        &self,
        request: Request<Streaming<wire::StoreRequest>>,
    ) -> Result<Response<AnswerStream<wire::StoreResponse>>, Status> {
        let who = depositor(&*Identity::from_request(&request)?)?;
        self.room.refuse_without_room()?;
        let least = self.settings.least_rate.bytes();
        let steps = IdleTimeout::new(request.into_inner(), self.settings.stall.duration());
        let mut steps = LeastRate::new(steps, least, sent as SentBytes).fuse();
        let first = steps
            .next()
            .await
            .ok_or_else(|| InvalidMessage::missing_field("open"))??;
        let Some(Step::Open(open)) = first.step else {
            return Err(InvalidMessage::missing_field("open").into());
        };
        let (name, claim) = asked(&open).inspect_err(|_refused| self.stores.refuse_invalid())?;
        let (replies, answers) = mpsc::channel(16);
        let source = DepositStream::new(chunks(steps), replies.clone(), claim.clone());
        let depositor = DepositRequest {
            who,
            source: Some(source),
            replies,
            sent: false,
            claim: claim.clone(),
            received: None,
            answered: CancellationToken::new(),
        };
        if !self.archive.mail.ask_store(name, claim, depositor).await {
            return Err(CallErrorKind::Unavailable.to_status("the repository is stopping"));
        }
        let admin = self.archive.admin.clone();
        let answers = ReceiverStream::new(answers).then(move |reply| answer(admin.clone(), reply));
        Ok(Response::new(Box::pin(answers)))
    }

    async fn stat(
        &self,
        request: Request<wire::StatRequest>,
    ) -> Result<Response<wire::StatResponse>, Status> {
        let identity = Identity::from_request(&request)?;
        let asked = request.into_inner().name;
        let name = fields::file_name("name", &asked)?;
        let unknown = || fields::to_status(&ArchiveError::NotFound(asked.clone()));
        let admin = self.archive.admin.clone();
        let anomalies = Arc::clone(&self.archive.anomalies);
        let of = name.clone();
        let read = with_tables(move || Ok((admin.file(&of)?, anomalies.rows_of(&of)?)));
        let (row, filed) = read.await?;
        let row = row
            // A file that was not received completely is not in the archive.
            .filter(|row| row.record.content.is_some())
            .ok_or_else(unknown)?;
        if !may_know(&identity, &row.depositor) {
            return Err(unknown());
        }
        let admitted = match &row.admission {
            None => String::new(),
            Some(text) => self
                .read_admission(text)
                .map(|admission| admission.admitted.to_string())?,
        };
        let now = self.archive.standing.current_snapshot();
        let retries = self.retries.retry_times(&name);
        let silence = |id: &ReplicaId, copy: &ReplicaRecord| self.find_silence(id, copy);
        let stat = convert::wire_stat(&row, admitted, (&now, &filed), &retries, silence);
        Ok(Response::new(stat))
    }
}

impl Door {
    /// Returns why nobody answers for a copy now, by the last answers of the monitors; `None` if its node does.
    fn find_silence(&self, id: &ReplicaId, copy: &ReplicaRecord) -> Option<String> {
        let nodes = match self.archive.calls.replicas.last_in_service(id) {
            None => return Some("its monitor has not answered yet".to_owned()),
            Some(Err(silence)) => return Some(silence.reason),
            Some(Ok(nodes)) => nodes,
        };
        let node = copy.node.as_ref()?;
        match nodes.iter().find(|heard| heard.node == *node) {
            None => Some(format!("its monitor does not know node {node}")),
            Some(heard) if !heard.alive => Some(format!("node {node} is silent")),
            Some(heard) => {
                let mut volumes = heard.volumes.iter();
                let volume = volumes.find(|one| one.volume == copy.volume)?;
                let problem = volume.problem.as_ref()?;
                Some(format!("its volume is offline: {problem}"))
            }
        }
    }

    /// Reads an admission that a key of this archive signed.
    pub(super) fn read_admission(&self, text: &str) -> Result<Admission, Status> {
        let unusable = |why: String| {
            CallErrorKind::Storage
                .to_status(format!("cannot read the admission of the file: {why}"))
        };
        let envelope =
            Envelope::parse(text.as_bytes()).map_err(|error| unusable(error.to_string()))?;
        Admission::verify(&envelope, &self.trust).map_err(|error| unusable(error.to_string()))
    }
}

/// Returns whether the caller may know of a file of this depositor: readers and custodians of all, harvesters of their
/// own.
pub(super) fn may_know(identity: &Identity, depositor: &str) -> bool {
    let is_own = |grant: &archive_rpc::Grant| grant.to_string() == depositor;
    identity.has_role(Role::Reader)
        || identity.has_role(Role::Custodian)
        || identity.grants().iter().any(is_own)
}

/// Returns the name and role under which the caller deposits.
fn depositor(identity: &Identity) -> Result<String, Status> {
    let grant = identity
        .grants()
        .iter()
        .find(|grant| grant.role() == Role::Harvester);
    let refused = || {
        CallErrorKind::Refused
            .to_status("storing a file needs a certificate with the role harvester")
    };
    grant.map(ToString::to_string).ok_or_else(refused)
}

fn asked(open: &Open) -> Result<(FileName, Claim), Status> {
    let name = open.name.parse().map_err(|reason| {
        fields::to_status(&ArchiveError::Name {
            name: open.name.clone(),
            reason,
        })
    })?;
    Ok((name, claim(open)?))
}

fn claim(open: &Open) -> Result<Claim, Status> {
    let root = fields::optional_root("blake3", &open.blake3)?;
    let sha256 = fields::optional_bytes("sha256", &open.sha256)?;
    let md5 = fields::optional_bytes("md5", &open.md5)?;
    if root.is_none() && sha256.is_none() && md5.is_none() && !open.no_digest {
        return Err(InvalidMessage::invalid_field(
            "no_digest",
            "is not set, and no digest is given; give a digest or set it",
        )
        .into());
    }
    Ok(Claim {
        size: open.size,
        root,
        digests: Digests { sha256, md5 },
    })
}

/// What measures a message of a depositor.
type SentBytes = fn(&wire::StoreRequest) -> usize;

/// The messages of a depositor.
type Steps = Fuse<LeastRate<IdleTimeout<Streaming<wire::StoreRequest>>, SentBytes>>;

/// Returns the bytes of the file in a message.
fn sent(message: &wire::StoreRequest) -> usize {
    match &message.step {
        Some(Step::Data(bytes)) => bytes.len(),
        Some(Step::Open(_) | Step::Close(_)) | None => 0,
    }
}

/// Returns the messages of the depositor after `open`.
fn chunks(steps: Steps) -> impl tokio_stream::Stream<Item = Result<Chunk, String>> {
    steps.map(|message| match message {
        Err(status) => Err(status.message().to_owned()),
        Ok(message) => match message.step {
            Some(Step::Data(bytes)) => Ok(Chunk::Data(bytes)),
            Some(Step::Close(_)) => Ok(Chunk::End),
            Some(Step::Open(_)) | None => {
                Err("a message after `open` has neither `data` nor `close`".to_owned())
            }
        },
    })
}

/// Returns another file whose name differs only in case. An error is logged: the receipt does not depend on it.
async fn similar(admin: Admin, name: FileName) -> String {
    let found = with_tables(move || admin.find_similar(&name)).await;
    let found = found.unwrap_or_else(|error| {
        tracing::error!(%error, "cannot read the index of similar names");
        None
    });
    found.map(|other| other.to_string()).unwrap_or_default()
}

async fn answer(admin: Admin, reply: DepositReply) -> Result<wire::StoreResponse, Status> {
    use wire::store_response::{Ready, Step, Stored};
    let step = match reply {
        DepositReply::Ready { upload, offset } => Step::Ready(Ready {
            upload: upload.into(),
            offset,
        }),
        DepositReply::Taken(bytes) => Step::Taken(bytes),
        DepositReply::Failed(error) => return Err(fields::to_status(&error)),
        DepositReply::Stored(custody) => Step::Stored(Stored {
            replicas: convert::wire_replicas(&custody.record, &Times::new()),
            receipt: custody.receipt,
            already: custody.already,
            similar_name: similar(admin, custody.record.name).await,
        }),
    };
    Ok(wire::StoreResponse { step: Some(step) })
}
