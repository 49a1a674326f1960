//! The trail, receipts on demand, exports into the archive itself, and the way back from lost admin data.

use std::collections::BTreeSet;
use std::fs;

use archive_client::{FileRange, Keeper, Preservation};
use archive_daemon::Clock;
use archive_ledger::restore::from_export;
use archive_proof::{Envelope, Receipt};
use archive_repository::restore::from_replicas;
use proto_archive::wire::access_client::AccessClient;
use proto_archive::wire::preservation_client::PreservationClient;
use proto_archive::wire::{AuditLineState, AuditRequest, NotifyTestRequest, ReceiptRequest};
use tonic::{Code, Status};

use super::visits::{get, limits, list, name, noise, store};
use super::world::{Cluster, LONG, REPOSITORY, eventually, on_a_cluster};

async fn audit(cluster: &Cluster, file: &str) -> Result<Vec<AuditLineState>, Status> {
    let mut client = PreservationClient::new(cluster.channel("officer/o"));
    let request = AuditRequest {
        file: file.to_owned(),
        since: String::new(),
    };
    let mut stream = client.audit(request).await?.into_inner();
    let mut lines = Vec::new();
    while let Some(message) = stream.message().await? {
        lines.extend(message.lines);
    }
    Ok(lines)
}

async fn receipt(cluster: &Cluster, grant: &str, file: &str) -> Result<Receipt, Status> {
    let mut client = AccessClient::new(cluster.channel(grant));
    let name = file.to_owned();
    let said = client
        .receipt(ReceiptRequest { name })
        .await?
        .into_inner()
        .receipt;
    let envelope = Envelope::parse(said.as_bytes()).unwrap();
    Ok(Receipt::verify(&envelope, cluster.trust()).unwrap().0)
}

async fn names(cluster: &Cluster) -> Vec<String> {
    let (entries, _) = list(&cluster.reader(), None).await.unwrap();
    entries.iter().map(|entry| entry.name.to_string()).collect()
}

/// Fails if an audit log that was edited is read as if it were intact, if its lines have a hole, or if a harvester gets
/// another one's receipt.
#[test]
fn trail_is_kept_and_receipts_can_be_repeated() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let bytes = noise(20_000, 1);
        store(cluster, &name("a"), &bytes).await.unwrap();
        store(cluster, &name("b"), &bytes).await.unwrap();
        let whole = audit(cluster, "").await.unwrap();
        assert!(
            whole
                .iter()
                .map(|line| line.number)
                .eq(0..whole.len() as u64)
        );
        let own = audit(cluster, "a").await.unwrap();
        assert!(
            !own.is_empty() && own.iter().all(|line| line.file == "a"),
            "{own:?}"
        );
        assert_eq!(own[0].who, "harvester/h-1");
        let who: BTreeSet<_> = own.iter().map(|line| line.who.as_str()).collect();
        assert_eq!(who, BTreeSet::from(["harvester/h-1", "repository/kb"]));
        eventually("every line is in the log", LONG, async || {
            let lines = audit(cluster, "").await.unwrap();
            let are_in = lines.iter().all(|line| line.previous.len() == 64);
            are_in.then_some(()).ok_or(lines)
        })
        .await;

        for grant in ["reader/anna", "harvester/h-1"] {
            let receipt = receipt(cluster, grant, "a").await.unwrap();
            assert_eq!(receipt.replicas.len(), 3, "{grant}");
        }
        for (grant, file) in [("harvester/h-2", "a"), ("reader/anna", "c")] {
            let status = receipt(cluster, grant, file).await.unwrap_err();
            assert_eq!(status.code(), Code::NotFound, "{grant}");
        }

        // Somebody edits the trail while the repository is stopped.
        cluster.stop(REPOSITORY).await;
        let log = cluster.path("repository").join("audit/audit-000000.jsonl");
        let text = fs::read_to_string(&log).unwrap();
        archive_durable::replace_file(&log, text.replacen("h-1", "h-9", 1).as_bytes()).unwrap();
        cluster.start(REPOSITORY).await;
        let status = audit(cluster, "").await.unwrap_err();
        assert!(status.message().contains("audit-000000.jsonl"), "{status}");
    });
}

/// Fails if a test notification counts as sent although no channel is configured, or does not say what to set.
#[test]
fn notification_test_without_channel_fails_with_remedy() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let mut operator = PreservationClient::new(cluster.channel("operator/o"));
        let told = operator
            .notify_test(NotifyTestRequest {})
            .await
            .unwrap()
            .into_inner();
        assert!(
            told.failed && told.outcomes[0].contains("notify.command"),
            "{told:?}"
        );
    });
}

/// Fails if lost admin data cannot be restored from an export in the archive, or if exports are stored though nothing
/// has changed.
#[test]
fn admin_data_are_restored_from_archived_export() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let bytes = noise(300_000, 2);
        store(cluster, &name("a"), &bytes).await.unwrap();
        store(cluster, &name("b"), &bytes).await.unwrap();
        let keeper = Keeper::new(cluster.channel("operator/o"), limits());
        let mut asked = keeper.export().await.unwrap();
        let mut lines = Vec::new();
        while let Some(part) = asked.next().await.unwrap() {
            lines.extend_from_slice(&part);
        }
        assert!(lines.starts_with(b"{\"header\":{\"format\":\"holdfast-admin-export/2\""));

        cluster.stop(REPOSITORY).await;
        "export = '1 s'\n".clone_into(&mut cluster.extra);
        cluster.start(REPOSITORY).await;
        cluster.until_all_nodes_live().await;
        let export = eventually("an export in the archive", LONG, async || {
            let names = names(cluster).await;
            let export = names
                .iter()
                .find(|name| name.starts_with("holdfast-admin-kb-"));
            export.cloned().ok_or(names)
        })
        .await;
        // Nothing changes any more but for the exports themselves: there is one, however many are due.
        let turns = cluster.steps(REPOSITORY, "export");
        eventually("more exports were due", LONG, async || {
            (cluster.steps(REPOSITORY, "export") >= turns + 6).then_some(())
        })
        .await;
        assert_eq!(names(cluster).await, ["a", "b", &export]);
        let stored = eventually("the export is everywhere", LONG, async || {
            receipt(cluster, "reader/anna", &export).await.ok()
        })
        .await;
        assert_eq!(stored.replicas.len(), 3);
        let (packed, end) = get(cluster, &FileRange::whole_file(name(&export))).await;
        end.unwrap();

        cluster.stop(REPOSITORY).await;
        cluster.extra.clear();
        let data = cluster.path("repository");
        fs::remove_dir_all(data.join("admin")).unwrap();
        let file = cluster.path("export.jsonl.gz");
        archive_durable::replace_file(&file, &packed).unwrap();
        let settings: archive_repository::Settings =
            toml::from_str(&cluster.settings(REPOSITORY)).unwrap();
        let report = from_export(
            settings.repository.restore_target(),
            &file,
            false,
            cluster.now(),
        )
        .unwrap();
        assert!(report.written && report.damaged.count == 0, "{report:?}");
        cluster.start(REPOSITORY).await;
        cluster.until_all_nodes_live().await;
        assert_eq!(names(cluster).await, ["a", "b"]);
        let (read, end) = get(cluster, &FileRange::whole_file(name("a"))).await;
        end.unwrap();
        assert!(read == bytes);
        assert!(store(cluster, &name("a"), &bytes).await.unwrap().already);
        store(cluster, &name("c"), &bytes).await.unwrap();
        let trail = audit(cluster, "").await.unwrap();
        assert!(
            trail
                .iter()
                .map(|line| line.number)
                .eq(0..trail.len() as u64)
        );
        assert!(trail.iter().any(|line| line.what.contains("restored")));
        eventually("the log goes on", LONG, async || {
            let lines = audit(cluster, "").await.unwrap();
            let are_in = lines.iter().all(|line| line.previous.len() == 64);
            are_in.then_some(()).ok_or(lines)
        })
        .await;
    });
}

/// Fails if the sidecars of the nodes are not enough to restore lost admin data, or if the trail does not say on what
/// each file's row rests.
#[test]
fn admin_data_are_restored_from_sidecars() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let bytes = noise(100_000, 3);
        store(cluster, &name("a"), &bytes).await.unwrap();
        store(cluster, &name("b"), &bytes).await.unwrap();
        cluster.stop(REPOSITORY).await;
        let data = cluster.path("repository");
        fs::remove_dir_all(data.join("admin")).unwrap();
        let settings = toml::from_str(&cluster.settings(REPOSITORY)).unwrap();
        let report = from_replicas(&settings, false, Clock::system_clock())
            .await
            .unwrap();
        assert_eq!(report.nodes.len(), 3, "{report:?}");
        assert!(
            report.written && report.files == 2 && report.incomplete == 0,
            "{report:?}"
        );
        cluster.start(REPOSITORY).await;
        cluster.until_all_nodes_live().await;
        assert_eq!(names(cluster).await, ["a", "b"]);
        for file in ["a", "b"] {
            let said = audit(cluster, file).await.unwrap();
            let told = said.iter().filter(|line| {
                line.what.contains("; re-established from the admission of")
                    && line.what.contains("one: upload completed on one-1/")
            });
            assert_eq!(told.count(), 1, "{file}: {said:?}");
        }
        let (read, end) = get(cluster, &FileRange::whole_file(name("b"))).await;
        end.unwrap();
        assert!(read == bytes);
        assert!(store(cluster, &name("a"), &bytes).await.unwrap().already);
    });
}
