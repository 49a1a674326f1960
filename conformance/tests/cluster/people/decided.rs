//! Decisions of people hold: while files are on their way, after the admin data were lost, and for every copy.

use archive_client::{
    ClientError, FileRange, Ingest, Keeper, Preservation, ReplicaProgress, ReplicaStatus,
};
use archive_daemon::Clock;
use archive_ledger::restore::from_export;
use archive_model::FileName;
use archive_repository::Settings;
use archive_repository::restore::{AllowedGaps, from_both, from_replicas};
use proto_archive::wire::ask_request::{Act, NewRoot, Remove, RetireReplica};
use proto_archive::wire::request_state::State as RequestStage;
use proto_archive::wire::{AuditLineState, AuditRequest, CheckRequest, check_request};

use super::super::feed::reinstate;
use super::super::visits::{get, limits, list, name, noise, root, store};
use super::super::waiting;
use super::super::world::{Cluster, NODES, REPOSITORY, eventually, flip, on_a_cluster};
use super::{LONG, approve, ask, decide, people};

async fn trail(cluster: &Cluster, file: &str) -> Vec<AuditLineState> {
    let request = AuditRequest {
        file: file.to_owned(),
        since: String::new(),
    };
    let mut stream = people(cluster, "officer/olga")
        .audit(request)
        .await
        .unwrap()
        .into_inner();
    let mut lines = Vec::new();
    while let Some(message) = stream.message().await.unwrap() {
        lines.extend(message.lines);
    }
    lines
}

/// Returns the progress of a file in each replica, by their names.
async fn progress(cluster: &Cluster, name: &FileName) -> Vec<(String, ReplicaProgress)> {
    let said = |copy: &ReplicaStatus| (copy.replica.to_string(), copy.progress);
    // A harvester sees only what it deposited itself.
    let status = cluster
        .depositor_as("reader/anna")
        .stat(name)
        .await
        .unwrap();
    let mut all: Vec<_> = status.replicas.iter().map(said).collect();
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}

async fn remove(cluster: &Cluster, name: &FileName, replica: &str, bytes: &[u8]) {
    let act = Act::Remove(Remove {
        name: name.to_string(),
        replica: replica.to_owned(),
        checksum: root(bytes).as_bytes().to_vec().into(),
        last_copies: true,
    });
    let asked = ask(cluster, "custodian/anna", act, "a court order")
        .await
        .unwrap();
    let ended = approve(cluster, "custodian/bert", &asked.id).await.unwrap();
    assert_eq!(ended.state(), RequestStage::Done, "{ended:?}");
}

/// Fails if a file that was bound after the walk over a retired replica had passed its name still requires a copy
/// there.
#[test]
fn file_bound_after_replica_retired_is_told() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let name = name("a");
        let bytes = noise(16 * 1024 * 1024, 41);
        let (deposit, mut is_reached, go) = waiting(&name, &bytes);
        let depositor = cluster.depositor();
        let ignore = |_: archive_client::StoreEvent<'_>| {};
        let deciding = async {
            is_reached.recv().await.unwrap();
            let retire = Act::RetireReplica(RetireReplica {
                replica: "two".to_owned(),
            });
            assert_eq!(decide(cluster, retire).await.state(), RequestStage::Done);
            // Long enough for many passes over an archive of no files.
            for _ in 0..30 {
                let lines = trail(cluster, "").await;
                if lines.iter().any(|line| line.what.contains("given up")) {
                    break;
                }
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
            cluster.stop(NODES[1]).await;
            go.send(()).unwrap();
        };
        let storing = depositor.store(&deposit, &ignore);
        let (_first, ()) = tokio::join!(storing, deciding);
        eventually("acknowledged without it", LONG, async || {
            store(cluster, &name, &bytes).await
        })
        .await;
        let said = progress(cluster, &name).await;
        assert_eq!(
            said[2],
            ("two".to_owned(), ReplicaProgress::Withdrawn),
            "{said:?}"
        );
        eventually("the walk ends", LONG, async || {
            let lines = trail(cluster, "").await;
            let is_given_up = lines
                .iter()
                .any(|line| line.what.contains("no file counts on retired replica two"));
            is_given_up.then_some(()).ok_or(lines)
        })
        .await;
    });
}

/// Fails if admin data that are restored from the replicas have forgotten a removal, so that the copy is made again or
/// the name is free for other bytes.
#[test]
fn removed_copy_stays_removed_after_restore_from_replicas() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let here = name("here");
        let nowhere = name("nowhere");
        let noted = name("noted");
        let bytes = noise(100_000, 42);
        for name in [&here, &nowhere, &noted] {
            store(cluster, name, &bytes).await.unwrap();
        }
        remove(cluster, &here, "one", &bytes).await;
        remove(cluster, &noted, "three", &bytes).await;
        for replica in ["three", "two", "one"] {
            remove(cluster, &nowhere, replica, &bytes).await;
        }
        cluster.stop(REPOSITORY).await;
        for lost in ["admin", "audit"] {
            std::fs::remove_dir_all(cluster.path("repository").join(lost)).unwrap();
        }
        let settings = toml::from_str(&cluster.settings(REPOSITORY)).unwrap();
        let report = from_replicas(&settings, false, Clock::system_clock())
            .await
            .unwrap();
        assert!(report.written && report.files == 3, "{report:?}");
        assert_eq!(report.incomplete, 0, "{report:?}");
        let removed: Vec<_> = report.removed.list.iter().collect();
        assert_eq!(report.removed.count, 5, "{removed:?}");
        assert!(
            removed
                .iter()
                .all(|one| one.what.contains("custodian/anna")),
            "{removed:?}"
        );
        cluster.start(REPOSITORY).await;
        cluster.until_all_nodes_live().await;
        let done = ReplicaProgress::UploadCompleted;
        let out = ReplicaProgress::Withdrawn;
        for (name, expected) in [
            (&here, [out, done, done]),
            (&noted, [done, out, done]),
            (&nowhere, [out, out, out]),
        ] {
            let said = progress(cluster, name).await;
            let said: Vec<_> = said.into_iter().map(|(_, progress)| progress).collect();
            assert_eq!(said, expected, "{name}: one, three, two");
        }
        for content in [&bytes, &noise(5, 1)] {
            let error = store(cluster, &nowhere, content).await.unwrap_err();
            let is_taken = matches!(error, ClientError::Refused(_) | ClientError::Exists(_));
            assert!(is_taken, "{error}");
        }
        let (read, end) = get(cluster, &FileRange::whole_file(here.clone())).await;
        end.unwrap();
        assert!(read == bytes);
        assert!(!cluster.copy("one", &here).try_exists().unwrap());
        let (entries, _) = list(&cluster.reader(), Some("one")).await.unwrap();
        assert!(
            entries.iter().all(|entry| entry.name != here),
            "{entries:?}"
        );
    });
}

/// Fails if a root that two persons adopted is recorded for the named copy only, and the others that match count as
/// damaged. Both copies were altered alike, beside sidecars that still say the old root; the checksum replica records
/// the old one.
#[test]
fn adopted_root_is_borne_by_every_matching_copy() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let name = name("a");
        let mut bytes = noise(100_000, 43);
        store(cluster, &name, &bytes).await.unwrap();
        for replica in ["one", "two"] {
            flip(&cluster.copy(replica, &name), 50_000);
        }
        bytes[50_000] ^= 1;
        let act = Act::NewRoot(NewRoot {
            name: name.to_string(),
            replica: "one".to_owned(),
            root: root(&bytes).as_bytes().to_vec().into(),
        });
        let asked = ask(cluster, "custodian/anna", act, "nobody has the old one")
            .await
            .unwrap();
        let ended = approve(cluster, "custodian/bert", &asked.id).await.unwrap();
        assert_eq!(ended.state(), RequestStage::Done, "{ended:?}");
        let all = progress(cluster, &name).await;
        let is_done = |(_, progress): &(String, ReplicaProgress)| {
            *progress == ReplicaProgress::UploadCompleted
        };
        assert!(all.len() == 3 && all.iter().all(is_done), "{all:?}");
        for replica in ["one", "two"] {
            let wanted = FileRange {
                replica: Some(replica.parse().unwrap()),
                ..FileRange::whole_file(name.clone())
            };
            let (read, end) = get(cluster, &wanted).await;
            end.unwrap();
            assert!(read == bytes, "{replica}");
        }
        for replica in [None, Some("one"), Some("two"), Some("three")] {
            let (entries, end) = list(&cluster.reader(), replica).await.unwrap();
            let roots: Vec<_> = entries.iter().map(|entry| entry.root).collect();
            assert_eq!((roots, end.gaps), (vec![Some(root(&bytes))], vec![]));
        }
        let request = CheckRequest {
            kind: check_request::Kind::Checksums.into(),
            ..CheckRequest::default()
        };
        let mut steps = people(cluster, "officer/olga")
            .check(request)
            .await
            .unwrap()
            .into_inner();
        while let Some(message) = steps.message().await.unwrap() {
            let step = message.step.unwrap();
            let is_anomaly = matches!(step, proto_archive::wire::check_response::Step::Anomaly(_));
            assert!(!is_anomaly, "{step:?}");
        }
        let removed = std::fs::read_to_string(cluster.path("three").join("removed.jsonl")).unwrap();
        assert!(removed.contains("\"name\":\"a\""), "the old row: {removed}");
        // The admission of the old root is evidence.
        for replica in ["one", "two"] {
            let attic = cluster.path(replica).join("volume/attic");
            assert_eq!(std::fs::read_dir(attic).unwrap().count(), 1, "{replica}");
        }
    });
}

/// Fails if what the archive did by itself, long after, bears the depositor's name, or a line says what the one before
/// it says.
#[test]
fn the_trail_names_who_did_it() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let name = name("a");
        let bytes = noise(20_000, 44);
        cluster.stop(NODES[1]).await;
        store(cluster, &name, &bytes).await.unwrap_err();
        let before = trail(cluster, "a").await;
        assert_eq!(before[0].who, "harvester/h-1", "{before:?}");
        cluster.stop(REPOSITORY).await;
        cluster.start(NODES[1]).await;
        cluster.start(REPOSITORY).await;
        cluster.until_all_nodes_live().await;
        eventually("copied unasked", LONG, async || {
            let said = progress(cluster, &name).await;
            let are_all = said
                .iter()
                .all(|(_, progress)| *progress == ReplicaProgress::UploadCompleted);
            are_all.then_some(()).ok_or(said)
        })
        .await;
        let after = trail(cluster, "a").await;
        let copied = &after[before.len()..];
        // What is remembered again and again is told once.
        let is_news = |two: &[AuditLineState]| two[0].what != two[1].what;
        assert!(after.windows(2).all(is_news), "{after:#?}");
        assert!(
            !copied.is_empty() && copied.iter().all(|line| line.who == "repository/kb"),
            "{copied:?}"
        );
    });
}

async fn export(cluster: &Cluster) -> Vec<u8> {
    let keeper = Keeper::new(cluster.channel("operator/o"), limits());
    let mut asked = keeper.export().await.unwrap();
    let mut lines = Vec::new();
    while let Some(part) = asked.next().await.unwrap() {
        lines.extend_from_slice(&part);
    }
    lines
}

/// Fails if what two persons removed after an export comes back with it, although the audit log is still there.
#[test]
fn removal_after_the_export_stands_in_the_log() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let bytes = noise(50_000, 46);
        let [one, all, back] = ["one", "all", "back"].map(name);
        for name in [&one, &all, &back] {
            store(cluster, name, &bytes).await.unwrap();
        }
        let lines = export(cluster).await;
        for (name, replica) in [(&one, "one"), (&back, "one"), (&all, "one"), (&all, "two")] {
            remove(cluster, name, replica, &bytes).await;
        }
        reinstate(cluster, &back, "one").await;
        let count = trail(cluster, "").await.len();
        let log = cluster.path("repository").join("audit/audit-000000.jsonl");
        eventually("the log has every line", LONG, async || {
            let written = std::fs::read_to_string(&log).unwrap_or_default();
            let has_all = written.lines().count() >= count;
            has_all.then_some(()).ok_or(written)
        })
        .await;
        cluster.stop(REPOSITORY).await;
        std::fs::remove_dir_all(cluster.path("repository").join("admin")).unwrap();
        let file = cluster.path("export.jsonl");
        archive_durable::replace_file(&file, &lines).unwrap();
        let settings: Settings = toml::from_str(&cluster.settings(REPOSITORY)).unwrap();
        let target = settings.repository.restore_target();
        let now = Clock::system_clock().now();
        let restored = from_export(target, &file, false, now).unwrap();
        assert!(
            restored.written && restored.removed.count == 2,
            "{restored:?}"
        );
        cluster.start(REPOSITORY).await;
        cluster.until_all_nodes_live().await;
        let (done, out) = (ReplicaProgress::UploadCompleted, ReplicaProgress::Withdrawn);
        for (name, bytes) in [
            (&one, [out, done]),
            (&all, [out, out]),
            (&back, [done, done]),
        ] {
            let said = progress(cluster, name).await;
            let of = |replica: &str| {
                let mut found = said.iter().filter(|(id, _)| id.as_str() == replica);
                found.next().unwrap().1
            };
            assert_eq!(["one", "two"].map(of), bytes, "{name}");
        }
        let lines = trail(cluster, "one").await;
        let said = lines.last().map(|line| line.what.as_str());
        assert!(
            said.is_some_and(|said| said.ends_with("; as the audit log says")),
            "{lines:?}"
        );
    });
}

/// Fails if what was admitted after the export is forgotten, or what was removed before or after it is copied again.
#[test]
fn export_and_replicas_together_restore_admin_data() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let before = name("before");
        let removed = name("removed");
        let late = name("removed-late");
        let after = name("after");
        let bytes = noise(50_000, 45);
        for name in [&before, &removed, &late] {
            store(cluster, name, &bytes).await.unwrap();
        }
        remove(cluster, &removed, "one", &bytes).await;
        let lines = export(cluster).await;
        remove(cluster, &late, "one", &bytes).await;
        store(cluster, &after, &bytes).await.unwrap();
        cluster.stop(REPOSITORY).await;
        for lost in ["admin", "audit"] {
            std::fs::remove_dir_all(cluster.path("repository").join(lost)).unwrap();
        }
        let export = cluster.path("export.jsonl");
        archive_durable::replace_file(&export, &lines).unwrap();
        let settings = toml::from_str(&cluster.settings(REPOSITORY)).unwrap();
        let allowed = AllowedGaps::default();
        let both = from_both(&settings, &export, allowed, Clock::system_clock()).await;
        let (exported, found) = both.unwrap();
        assert!(exported.written && exported.files == 3, "{exported:?}");
        assert!(found.written && found.files == 1, "{found:?}");
        assert_eq!(found.removed.count, 1, "{found:?}");
        assert_eq!((found.contradicting.count, found.unsigned.count), (0, 0));
        cluster.start(REPOSITORY).await;
        cluster.until_all_nodes_live().await;
        let done = ReplicaProgress::UploadCompleted;
        let out = ReplicaProgress::Withdrawn;
        for (name, first) in [
            (&before, done),
            (&removed, out),
            (&late, out),
            (&after, done),
        ] {
            let said = progress(cluster, name).await;
            let said: Vec<_> = said.into_iter().map(|(_, progress)| progress).collect();
            assert_eq!(said, [first, done, done], "{name}");
        }
        let lines = trail(cluster, "").await;
        assert!(
            lines
                .iter()
                .map(|line| line.number)
                .eq(0..lines.len() as u64)
        );
        let restored = lines
            .iter()
            .filter(|line| line.what.contains("admin data re"));
        assert_eq!(restored.count(), 2, "{lines:?}");
    });
}
