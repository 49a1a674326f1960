//! The doors: the services `Ingest`, `Access`, `Preservation` and `Batch`. The doors decode requests, call the core,
//! and encode its answers.

mod access;
mod batch;
mod changes;
mod convert;
mod get;
mod ingest;
mod ledger;
mod list;
mod preservation;
mod receipt;
mod salvage;

use std::sync::Arc;

use archive_daemon::{Gauge, Notifier};
use archive_jobs::Batches;
use archive_model::limits::MOST_GATHERED_LISTINGS;
use archive_proof::{SigningKey, TrustFile};
use archive_rpc::answers::{ROOM, open_answers, send_answer};
use archive_rpc::{AnswerStream, Answers, Services};
use archive_stores::coordinator::Retries;
use archive_stores::metrics::Stores;
use proto_archive::wire::access_server::AccessServer;
use proto_archive::wire::batch_server::BatchServer;
use proto_archive::wire::ingest_server::IngestServer;
use proto_archive::wire::preservation_server::PreservationServer;
use tokio::sync::Semaphore;
use tonic::service::Routes;
use tonic::{Response, Status};

use crate::archive::Archive;
use crate::automatic::Volumes;
use crate::drain::DrainBoard;
use crate::people::People;
use crate::preserver::Preserver;
use crate::room::Room;
use crate::settings::RepositorySettings;
use crate::tables::admin_failed;

/// The state of all doors.
#[derive(Clone, Debug)]
pub(crate) struct Door {
    pub(crate) archive: Archive,
    pub(crate) settings: Arc<RepositorySettings>,
    pub(crate) trust: Arc<TrustFile>,
    pub(crate) key: Arc<SigningKey>,
    pub(crate) notifier: Notifier,
    pub(crate) preserver: Preserver,
    pub(crate) volumes: Arc<Volumes>,
    pub(crate) drains: DrainBoard,
    pub(crate) batches: Batches,
    pub(crate) retries: Retries,
    pub(crate) stores: Stores,
    pub(crate) room: Room,
    /// Is 1 while nothing is appended to the audit log.
    pub(crate) audit_refused: Gauge,
    pub(crate) people: Arc<People>,
    /// The permits to list a replica.
    pub(crate) listings: Arc<Semaphore>,
    /// The permits to follow the feed.
    pub(crate) followers: Arc<Semaphore>,
}

impl Door {
    /// Creates the permits to list replicas, for all callers together.
    pub(crate) fn call_places() -> Arc<Semaphore> {
        Arc::new(Semaphore::new(MOST_GATHERED_LISTINGS))
    }

    /// Creates the permits to follow the feed, for all callers together.
    pub(crate) fn follower_places() -> Arc<Semaphore> {
        Arc::new(Semaphore::new(changes::MOST_FOLLOWERS))
    }
}

/// Returns the services of the repository, with the rules of who may call them.
pub(crate) fn repository_services(door: Door) -> Services {
    let routes = Routes::new(IngestServer::new(door.clone()))
        .add_service(AccessServer::new(door.clone()))
        .add_service(BatchServer::new(door.clone()))
        .add_service(PreservationServer::new(door));
    Services {
        routes,
        rules: proto_archive::rules::archive_rules(),
        descriptors: vec![proto_archive::DESCRIPTORS],
    }
}

impl Door {
    /// Runs work in a task of its own. The messages that it sends are the answer, followed by its error if it fails.
    fn answer<T: Send + 'static, F>(
        &self,
        name: &str,
        work: impl FnOnce(Answers<T>) -> F,
    ) -> Response<AnswerStream<T>>
    where
        F: Future<Output = Result<(), Status>> + Send + 'static,
    {
        let (stream, task) = open_answers(ROOM, work);
        self.archive.tasks.spawn_once(name, task);
        Response::new(stream)
    }
}
