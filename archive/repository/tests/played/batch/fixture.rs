//! The fixture of batch tests: a repository over real TLS and RocksDB, its replica `one` a [`PlayedReplica`], and
//! callers.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use archive_daemon::Clock;
use archive_daemon::clock::ManualClock;
use archive_ledger::admin::Admin;
use archive_model::ReplicaKind;
use archive_repository::{BatchSettings, Settings};
use proto_archive::wire::batch_client::BatchClient;
use proto_archive::wire::batch_output_request::What;
use proto_archive::wire::batch_status::State;
use proto_archive::wire::batch_submit_request::{Open, Step};
use proto_archive::wire::node_server::NodeServer;
use proto_archive::wire::replica_server::ReplicaServer;
use proto_archive::wire::{
    BatchOutputRequest, BatchRef, BatchSpec, BatchStatus, BatchSubmitRequest,
};
use tonic::Status;
use tonic::service::Routes;
use tonic::transport::Channel;
use tools_testing::{PATIENCE, eventually};

use super::replica::{PlayedNode, PlayedReplica, ROOT, SIZE, Script};
use crate::lab::{Lab, StartedRepository, replica, stored_copy};

/// A time as long as the longest pause of a job, and longer than any limit that these tests set.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

pub(crate) struct BatchFixture {
    lab: Lab,
    endpoint: String,
    pub(crate) replica: PlayedReplica,
    pub(crate) settings: BatchSettings,
    /// The time of the repository.
    pub(crate) hand: ManualClock,
}

/// A caller of the repository.
pub(crate) struct Caller(pub(crate) BatchClient<Channel>);

impl BatchFixture {
    pub(crate) async fn new() -> Self {
        let lab = Lab::new();
        drop(Admin::init(&lab.data()).unwrap());
        let played = PlayedReplica::default();
        let routes = Routes::new(ReplicaServer::new(played.clone()));
        let endpoint = lab.play("monitor/one", routes).await;
        for id in ["n-1", "n-3"] {
            let replica = played.clone();
            let routes = Routes::new(NodeServer::new(PlayedNode { id, replica }));
            let endpoint = lab.play(&format!("node/{id}"), routes).await;
            played.script().endpoints.insert(id, endpoint);
        }
        Self {
            lab,
            endpoint,
            replica: played,
            hand: ManualClock::running_from(Clock::system_clock().now()),
            settings: BatchSettings {
                running: 64,
                ..BatchSettings::default()
            },
        }
    }

    /// Changes the script, and lets the time pass for which an earlier answer of the monitor may be used.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Script)) {
        change(&mut self.replica.script());
        self.hand.advance(Duration::from_secs(3));
    }

    /// Returns the directory of a job.
    pub(crate) fn folder(&self, id: &str) -> PathBuf {
        self.lab.data().join("batch").join(id)
    }

    fn all_settings(&self) -> Settings {
        let mut settings = self.lab.settings(vec![
            replica("one", ReplicaKind::Bitarchive, &self.endpoint),
            replica("sums", ReplicaKind::Checksum, &self.endpoint),
        ]);
        settings.batch = self.settings.clone();
        settings
    }

    /// Adds files to the admin data, which are in replica `one` for a long time.
    pub(crate) fn store(&self, names: &[&str]) {
        let copy = stored_copy("n-2", None);
        self.lab.store(names, SIZE, ROOT, "one", copy);
    }

    pub(crate) async fn start(&self) -> StartedRepository {
        let started = StartedRepository::start(self.all_settings(), self.hand.clock()).await;
        assert!(started.address.is_ok(), "{:?}", started.address);
        started
    }

    pub(crate) fn caller(&self, started: &StartedRepository, grant: &str) -> Caller {
        Caller(BatchClient::new(self.lab.channel(started, grant)))
    }

    pub(crate) async fn end(self, started: StartedRepository) {
        started.stop().await;
        self.lab.end().await;
    }
}

/// Returns the built-in job over all files of replica `one`.
pub(crate) fn file_list() -> BatchSpec {
    BatchSpec {
        job: "file-list".to_owned(),
        replica: "one".to_owned(),
        ..BatchSpec::default()
    }
}

impl Caller {
    pub(crate) async fn submit(
        &mut self,
        id: &str,
        spec: BatchSpec,
    ) -> Result<BatchStatus, Status> {
        self.submit_with(id, spec, &[]).await
    }

    pub(crate) async fn submit_with(
        &mut self,
        id: &str,
        spec: BatchSpec,
        component: &[u8],
    ) -> Result<BatchStatus, Status> {
        let open = Step::Open(Open {
            id: id.to_owned(),
            spec: Some(spec),
            avoided: Vec::new(),
        });
        let pieces = component.chunks(1000);
        let pieces = pieces.map(|bytes| Step::Component(bytes.to_vec().into()));
        let steps: Vec<_> = std::iter::once(open).chain(pieces).collect();
        let steps = steps
            .into_iter()
            .map(|step| BatchSubmitRequest { step: Some(step) });
        let answer = self.0.batch_submit(tokio_stream::iter(steps)).await?;
        Ok(answer.into_inner())
    }

    pub(crate) async fn find(&mut self, id: &str) -> Result<BatchStatus, Status> {
        let id = id.to_owned();
        Ok(self.0.batch_find(BatchRef { id }).await?.into_inner())
    }

    pub(crate) async fn cancel(&mut self, id: &str) -> Result<BatchStatus, Status> {
        let id = id.to_owned();
        Ok(self.0.batch_cancel(BatchRef { id }).await?.into_inner())
    }

    /// Waits until the status of a job fulfils a condition.
    pub(crate) async fn until(
        &mut self,
        id: &str,
        is_so: impl Fn(&BatchStatus) -> bool,
    ) -> BatchStatus {
        eventually("a job in another state", PATIENCE, async || {
            let status = self.find(id).await.unwrap();
            if is_so(&status) {
                Ok(status)
            } else {
                Err(status)
            }
        })
        .await
    }

    /// Waits for the end of a job without waiting for its pauses: advances the clock over them, each time later, so
    /// that a slow machine gets there, too.
    pub(crate) async fn ended_after_pauses(
        &mut self,
        fixture: &BatchFixture,
        id: &str,
    ) -> BatchStatus {
        let mut calm = Duration::from_millis(200);
        let mut next = Instant::now();
        eventually("the end of a job", PATIENCE, async || {
            let status = self.find(id).await.unwrap();
            if !status.ended.is_empty() {
                return Ok(status);
            }
            if Instant::now() >= next {
                fixture.hand.advance(LONGEST_PAUSE);
                next = Instant::now() + calm;
                calm = calm * 3 / 2;
            }
            Err(status)
        })
        .await
    }

    /// Waits for the end of a job.
    pub(crate) async fn ended(&mut self, id: &str) -> BatchStatus {
        self.until(id, |status| !status.ended.is_empty()).await
    }

    pub(crate) async fn output(&mut self, id: &str, what: What) -> Vec<u8> {
        self.output_from(id, what, 0).await.unwrap()
    }

    pub(crate) async fn output_from(
        &mut self,
        id: &str,
        what: What,
        offset: u64,
    ) -> Result<Vec<u8>, Status> {
        let request = BatchOutputRequest {
            id: id.to_owned(),
            what: what.into(),
            offset,
        };
        let mut stream = self.0.batch_output(request).await?.into_inner();
        let mut bytes = Vec::new();
        let mut size = None;
        while let Some(message) = stream.message().await? {
            assert!(size.is_none(), "a message after the end");
            bytes.extend_from_slice(&message.data);
            size = message.end.then_some(message.size);
        }
        assert_eq!(size, Some(offset + bytes.len() as u64));
        Ok(bytes)
    }

    /// Returns the lines of a manifest except the first, which is the job itself.
    pub(crate) async fn manifest(&mut self, id: &str) -> String {
        let text = self.output(id, What::Manifest).await;
        let text = String::from_utf8(text).unwrap();
        let (first, rest) = text.split_once('\n').unwrap();
        assert!(first.starts_with(&format!("{{\"job\":\"{id}\"")), "{first}");
        rest.to_owned()
    }

    /// Returns the number of files of a manifest, if there is one.
    pub(crate) async fn manifest_or_nothing(&mut self, id: &str) -> usize {
        let text = self.output(id, What::Manifest).await;
        let lines = text.split(|byte| *byte == b'\n').count() - 1;
        lines.saturating_sub(1)
    }
}

pub(crate) fn state(status: &BatchStatus) -> State {
    State::try_from(status.state).unwrap()
}
