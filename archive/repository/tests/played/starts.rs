//! Tests of the start of a repository, and of what it does by itself before the first call.

use std::os::unix::fs::PermissionsExt;

use archive_daemon::Clock;
use archive_daemon::worker::WorkerStatus;
use archive_durable::{AppendFile, replace_file};
use archive_ledger::admin::{Admin, AdminRow};
use archive_ledger::audit_log::LogWalk;
use archive_ledger::restore::testing::row;
use archive_model::ReplicaKind;
use archive_proof::testing::{admission, signing_key};
use archive_proof::{SigningKey, TrustFile, TrustedKey};
use jiff::Timestamp;
use tools_testing::{PATIENCE, eventually};

use crate::lab::{Lab, StartedRepository, replica, stored_copy};

/// Creates admin data with one file, of which the replica `two` has a copy.
fn store(lab: &Lab) {
    let copy = stored_copy("two-1", Some("v-1"));
    lab.store(&["a"], 7, [1; 32], "two", copy);
}

/// Starts a repository with these replicas, whose monitors are silent.
async fn start(lab: &Lab, replicas: &[&str]) -> StartedRepository {
    let replicas = replicas.iter();
    let replicas = replicas.map(|id| replica(id, ReplicaKind::Bitarchive, "127.0.0.1:1"));
    StartedRepository::start(lab.settings(replicas.collect()), Clock::system_clock()).await
}

/// Fails if a repository starts whose settings lack a replica that has copies, or refuses to start once it is there.
#[tokio::test(flavor = "multi_thread")]
async fn start_without_replica_with_copies_is_refused() {
    let lab = Lab::new();
    store(&lab);
    let refused = start(&lab, &["one"]).await;
    let error = refused.address.as_ref().unwrap_err();
    assert!(
        error.is_of_settings() && error.to_string().starts_with("replica two has copies"),
        "{error:?}"
    );
    refused.stop().await;
    let started = start(&lab, &["one", "two"]).await;
    assert!(started.address.is_ok(), "{:?}", started.address);
    started.stop().await;
    lab.end().await;
}

/// Fails if a repository starts under another archive's name than that of its certificate, its trust file or its data:
/// the nodes would believe nothing that it signs, and the names would stay taken.
#[tokio::test(flavor = "multi_thread")]
async fn start_under_another_archives_name_is_refused() {
    let lab = Lab::new();
    let old = SigningKey::from_seed([9; 32]);
    let row = AdminRow {
        admission: Some(admission("a", b"x").sign(&old).unwrap().as_str().to_owned()),
        ..row("a", 1)
    };
    let admin = Admin::init(&lab.data()).unwrap();
    let mut changes = admin.begin_changes();
    admin.put_row(&mut changes, &row).unwrap();
    admin.commit_changes(changes).unwrap();
    drop(admin);
    let start_as = async |archive: &str| {
        let replicas = ["one", "two"];
        let replicas = replicas.map(|id| replica(id, ReplicaKind::Bitarchive, "127.0.0.1:1"));
        let mut settings = lab.settings(replicas.to_vec());
        archive.clone_into(&mut settings.repository.archive);
        let started = StartedRepository::start(settings, Clock::system_clock()).await;
        let error = started.address.as_ref().err().map(ToString::to_string);
        started.stop().await;
        error.unwrap_or_default()
    };
    let trusted = |archive: &str, key: &SigningKey| TrustedKey {
        archive: archive.to_owned(),
        public_key: key.public_key(),
        from: Timestamp::UNIX_EPOCH,
        until: None,
    };
    let certified = start_as("kbx").await;
    assert!(
        certified.contains("the certificate is repository/kb, not repository/kbx"),
        "{certified}"
    );
    lab.certify(&["repository/kb", "repository/kbx"]);
    let listed = start_as("kbx").await;
    assert!(listed.contains("for archive kbx"), "{listed}");
    let keys = vec![trusted("kbx", &signing_key()), trusted("kb", &old)];
    let trust = TrustFile::new(keys).unwrap().to_json().unwrap();
    replace_file(&lab.at("trust.json"), trust.as_bytes()).unwrap();
    let data = start_as("kbx").await;
    assert!(
        data.contains("the admin data are those of archive kb, not of kbx"),
        "{data}"
    );
    lab.end().await;
}

/// Fails if a repository signs with a key that every account of its machine can read.
#[tokio::test(flavor = "multi_thread")]
async fn exposed_signing_key_is_refused() {
    let lab = Lab::new();
    store(&lab);
    let key = lab.at("signing.pem");
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o644)).unwrap();
    let refused = start(&lab, &["two"]).await;
    let error = refused.address.as_ref().unwrap_err().to_string();
    assert!(error.contains("signing.pem: its mode is 0644"), "{error}");
    refused.stop().await;
    lab.end().await;
}

/// Fails if the stamp is not updated while the archive is idle.
#[tokio::test(flavor = "multi_thread")]
async fn running_repository_stamps_its_admin_data() {
    let lab = Lab::new();
    store(&lab);
    let started = start(&lab, &["two"]).await;
    assert!(started.address.is_ok(), "{:?}", started.address);
    let workers = started.daemon.workers.list_workers();
    let is_it = |worker: &WorkerStatus| &*worker.name == "admin-stamp";
    assert!(workers.iter().any(is_it), "{workers:?}");
    started.stop().await;
    lab.end().await;
}

/// Fails if a repository that has cut away a torn write does not record it in the audit trail.
#[tokio::test(flavor = "multi_thread")]
async fn start_behind_torn_write_is_in_the_trail() {
    let lab = Lab::new();
    store(&lab);
    let entries = std::fs::read_dir(lab.data().join("admin")).unwrap();
    let files = entries.map(|entry| entry.unwrap().path());
    let logs = files.filter(|file| file.extension().is_some_and(|kind| kind == "log"));
    // A power cut leaves of a write its whole length, and zeros.
    let mut torn = vec![0x12, 0x34, 0x56, 0x78, 0xe8, 3, 1];
    torn.resize(1007, 0);
    let mut log = AppendFile::open(&logs.max().unwrap()).unwrap();
    log.append(&torn).unwrap();
    drop(log);
    let started = start(&lab, &["two"]).await;
    assert!(started.address.is_ok(), "{:?}", started.address);
    let line = eventually("the first line of the log", PATIENCE, async || {
        let mut log = LogWalk::open(&lab.data().join("audit")).unwrap();
        match log.next() {
            Some(Ok(entry)) => Ok(entry.line),
            other => Err(other),
        }
    })
    .await;
    assert_eq!(line.who, "repository/kb");
    assert!(line.what.contains("1007 bytes after byte"), "{line:?}");
    started.stop().await;
    lab.end().await;
}
