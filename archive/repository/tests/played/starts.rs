//! Tests of the start of a repository, and of what it does by itself before the first call.

use std::collections::BTreeMap;
use std::path::Path;

use archive_daemon::worker::WorkerStatus;
use archive_daemon::{Chance, Clock, Daemon};
use archive_decisions::store::{Content, FileRecord, Phase, ReplicaRecord};
use archive_durable::AppendFile;
use archive_ledger::admin::{Admin, AdminRow};
use archive_ledger::audit_log::Walk;
use archive_model::{Digests, FileName, ReplicaKind, ReplicaState, Root};
use archive_repository::StartError;
use jiff::Timestamp;
use testing::{PATIENCE, eventually};

use crate::lab::{Lab, StartedRepository, replica};

/// Creates admin data with one file, of which the replica `two` has a copy.
fn store(data: &Path) {
    let mut copy = ReplicaRecord::started(ReplicaKind::Bitarchive, true, Timestamp::UNIX_EPOCH);
    copy.state = ReplicaState::UploadCompleted;
    copy.node = Some("two-1".parse().unwrap());
    copy.volume = Some("v-1".parse().unwrap());
    let record = FileRecord {
        name: FileName::new("a").unwrap(),
        phase: Phase::Complete,
        upload: None,
        content: Some(Content {
            size: 7,
            root: Root::from_bytes([1; 32]),
            digests: Digests::default(),
        }),
        replicas: BTreeMap::from([("two".parse().unwrap(), copy)]),
    };
    let row = AdminRow {
        record,
        depositor: "harvester/h".to_owned(),
        admission: None,
    };
    let admin = Admin::init(data).unwrap();
    let mut changes = admin.change();
    admin.put(&mut changes, &row).unwrap();
    admin.commit(changes).unwrap();
}

/// Starts a repository with these replicas, whose monitors are silent.
async fn start(lab: &Lab, replicas: &[&str]) -> (StartedRepository, Result<(), StartError>) {
    let replicas = replicas.iter();
    let replicas = replicas.map(|id| replica(id, ReplicaKind::Bitarchive, "127.0.0.1:1"));
    let daemon = Daemon::new(Clock::system(), Chance::system());
    let started = archive_repository::serve(lab.settings(replicas.collect()), daemon.clone()).await;
    (StartedRepository(daemon), started.map(drop))
}

/// Fails if a repository starts whose settings lack a replica that has copies, or refuses to start once it is there.
#[tokio::test(flavor = "multi_thread")]
async fn start_without_replica_with_copies_is_refused() {
    let lab = Lab::new();
    store(&lab.data());
    let (daemon, started) = start(&lab, &["one"]).await;
    assert!(
        matches!(&started, Err(StartError::LeftOut(replica)) if replica.as_str() == "two"),
        "{started:?}"
    );
    daemon.stop().await;
    let (daemon, started) = start(&lab, &["one", "two"]).await;
    started.unwrap();
    daemon.stop().await;
    lab.end().await;
}

/// Fails if the stamp is not updated while the archive is idle.
#[tokio::test(flavor = "multi_thread")]
async fn running_repository_stamps_its_admin_data() {
    let lab = Lab::new();
    store(&lab.data());
    let (daemon, started) = start(&lab, &["two"]).await;
    started.unwrap();
    let workers = daemon.0.workers.list();
    let is_it = |worker: &WorkerStatus| &*worker.name == "admin-stamp";
    assert!(workers.iter().any(is_it), "{workers:?}");
    daemon.stop().await;
    lab.end().await;
}

/// Fails if a repository that has cut away a torn write does not record it in the audit trail.
#[tokio::test(flavor = "multi_thread")]
async fn start_behind_torn_write_is_in_the_trail() {
    let lab = Lab::new();
    store(&lab.data());
    let entries = std::fs::read_dir(lab.data().join("admin")).unwrap();
    let files = entries.map(|entry| entry.unwrap().path());
    let logs = files.filter(|file| file.extension().is_some_and(|kind| kind == "log"));
    // A power cut leaves of a write its whole length, and zeros.
    let mut torn = vec![0x12, 0x34, 0x56, 0x78, 0xe8, 3, 1];
    torn.resize(1007, 0);
    let mut log = AppendFile::open(&logs.max().unwrap()).unwrap();
    log.append(&torn).unwrap();
    drop(log);
    let (daemon, started) = start(&lab, &["two"]).await;
    started.unwrap();
    let line = eventually("the first line of the log", PATIENCE, async || {
        let mut log = Walk::open(&lab.data().join("audit")).unwrap();
        match log.next() {
            Some(Ok(entry)) => Ok(entry.line),
            other => Err(other),
        }
    })
    .await;
    assert_eq!(line.who, "repository/kb");
    assert!(line.what.contains("1007 bytes after byte"), "{line:?}");
    daemon.stop().await;
    lab.end().await;
}
