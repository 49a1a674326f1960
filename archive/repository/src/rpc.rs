//! The doors: the services `Ingest`, `Access`, `Preservation` and `Batch`. They decode, ask, and encode.

mod access;
mod batch;
mod convert;
mod drains;
mod get;
mod ingest;
mod ledger;
mod list;
mod preservation;
mod receipt;
mod salvage;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use archive_daemon::{Clock, Notifier, Tasks};
use archive_proof::{SigningKey, TrustFile};
use archive_rpc::{Kind, Services};
use proto_archive::wire::access_server::AccessServer;
use proto_archive::wire::batch_server::BatchServer;
use proto_archive::wire::ingest_server::IngestServer;
use proto_archive::wire::preservation_server::PreservationServer;
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tonic::Status;
use tonic::service::Routes;

use crate::admin::Admin;
use crate::assemble::Assembler;
use crate::automatic::Volumes;
use crate::batch::Batches;
use crate::coordinator::{Mail, Retries};
use crate::drain::Board;
use crate::metrics::Stores;
use crate::people::People;
use crate::preserver::Preserver;
use crate::replicas::Replicas;
use crate::settings::{ReplicaSettings, RepositorySettings};

/// What the doors need.
#[derive(Clone, Debug)]
pub(crate) struct Door {
    pub(crate) settings: Arc<RepositorySettings>,
    pub(crate) specs: Arc<Vec<ReplicaSettings>>,
    pub(crate) trust: Arc<TrustFile>,
    pub(crate) key: Arc<SigningKey>,
    pub(crate) notifier: Notifier,
    pub(crate) admin: Admin,
    pub(crate) assembler: Assembler,
    pub(crate) preserver: Preserver,
    pub(crate) volumes: Arc<Volumes>,
    pub(crate) drains: Board,
    pub(crate) batches: Batches,
    pub(crate) replicas: Arc<Replicas>,
    pub(crate) mail: Mail,
    pub(crate) retries: Retries,
    pub(crate) stores: Stores,
    pub(crate) people: Arc<People>,
    pub(crate) tasks: Tasks,
    pub(crate) clock: Clock,
}

/// What the repository's server offers, and to whom.
pub(crate) fn services(door: Door) -> Services {
    let routes = Routes::new(IngestServer::new(door.clone()))
        .add_service(AccessServer::new(door.clone()))
        .add_service(BatchServer::new(door.clone()))
        .add_service(PreservationServer::new(door));
    Services {
        routes,
        rules: proto_archive::rules::rules(),
        descriptors: vec![proto_archive::DESCRIPTORS],
    }
}

type AnswerStream<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;
type Answers<T> = mpsc::Sender<Result<T, Status>>;

/// How long a caller may leave an answer unread.
const UNREAD: Duration = Duration::from_mins(2);

/// Sends one answer; a caller that is gone, or does not read, ends the work.
async fn send<T>(answers: &Answers<T>, answer: T) -> Result<(), Status> {
    match tokio::time::timeout(UNREAD, answers.send(Ok(answer))).await {
        Ok(sent) => sent.map_err(|_gone| Status::cancelled("the caller is gone")),
        Err(_late) => Err(Kind::TimedOut.status("the caller does not read")),
    }
}

/// An error of the admin data: the caller can do nothing, an operator must.
fn admin_failed(error: &archive_db::DbError) -> Status {
    tracing::error!(%error, "the admin data cannot be read");
    Kind::Storage.status(error.to_string())
}
