//! Files that nothing vouches for: each has a way out.

use std::path::{Path, PathBuf};

use proto_archive::wire::ask_request::{Accept, Act, Remove};
use proto_archive::wire::request_state::State as RequestStage;
use proto_archive::wire::{AuditRequest, Role};

use super::super::visits::root;
use super::*;

/// Returns the path of the sidecar of a copy.
fn sidecar(cluster: &Cluster, replica: &str, name: &FileName) -> PathBuf {
    let file = cluster.copy(replica, name);
    let directory = file.parent().unwrap();
    let volume = directory.parent().unwrap().parent().unwrap();
    let meta = volume.join("meta").join(directory.file_name().unwrap());
    meta.join(format!("{name}.json"))
}

/// Does something to the disk of a replica while its node is away.
async fn behind_its_back(cluster: &mut Cluster, node: usize, work: impl FnOnce(&Cluster)) {
    cluster.stop(NODES[node]).await;
    work(cluster);
    cluster.start(NODES[node]).await;
    cluster.until_all_nodes_live().await;
}

fn remove(name: &FileName, checksum: archive_model::Root, last_copies: bool) -> Act {
    Act::Remove(Remove {
        name: name.to_string(),
        replica: "one".to_owned(),
        checksum: checksum.as_bytes().to_vec().into(),
        last_copies,
    })
}

async fn ask(cluster: &Cluster, act: Act) -> Result<wire::RequestState, Status> {
    let request = wire::AskRequest {
        act: Some(act),
        reason: "a test".to_owned(),
    };
    let mut anna = PreservationClient::new(cluster.channel("custodian/anna"));
    Ok(anna.ask(request).await?.into_inner())
}

/// Asks for an act, and has it approved by a second person. Returns the state of the request.
async fn decide(cluster: &Cluster, act: Act) -> wire::RequestState {
    let id = ask(cluster, act).await.unwrap().id;
    let mut bert = PreservationClient::new(cluster.channel("custodian/bert"));
    let ended = bert.approve(wire::RequestRef { id }).await;
    ended.unwrap().into_inner()
}

async fn adopt(cluster: &Cluster, name: &FileName) -> Result<wire::AdoptFileResponse, Status> {
    let request = wire::AdoptFileRequest {
        name: name.to_string(),
        replica: "one".to_owned(),
    };
    Ok(officer(cluster).adopt(request).await?.into_inner())
}

/// Returns the lines of the audit trail about a file.
async fn trail(cluster: &Cluster, file: &FileName) -> Vec<String> {
    let request = AuditRequest {
        file: file.to_string(),
        since: String::new(),
    };
    let mut pages = officer(cluster).audit(request).await.unwrap().into_inner();
    let mut lines = Vec::new();
    while let Some(page) = pages.message().await.unwrap() {
        lines.extend(page.lines.into_iter().map(|line| line.what));
    }
    lines
}

async fn found(cluster: &Cluster, kind: Kind) -> Vec<String> {
    check(cluster, of(kind)).await.unwrap().found()
}

/// Fails if a sidecar that rotted is not found or cannot be repaired, or if the trail does not announce the act before
/// it is done.
#[test]
fn a_sidecar_that_rotted_is_written_anew() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let good = name("good");
        let bad = name("bad");
        let bytes = noise(SIZE, 41);
        for name in [&good, &bad] {
            store(cluster, name, &bytes).await.unwrap();
        }
        behind_its_back(cluster, 0, |cluster| {
            for name in [&good, &bad] {
                let sidecar = sidecar(cluster, "one", name);
                assert!(sidecar.try_exists().unwrap());
                std::fs::remove_file(&sidecar).unwrap();
                archive_durable::replace_file(&sidecar, b"rot").unwrap();
            }
            flip(&cluster.copy("one", &bad), 9);
        })
        .await;
        // The node sees the rotten sidecars when it reads the copies again; what is wrong with the bytes comes first.
        let seen = found(cluster, Kind::Checksums).await;
        assert_eq!(seen, ["one corrupt bad", "one unexpected good"]);
        let done = repair(cluster, everything()).await.unwrap();
        assert_eq!(outcomes(&done), ["repaired", "repaired"], "{done:?}");
        for name in [&good, &bad] {
            assert_reads(cluster, name, &bytes, "one").await;
        }
        // The act is in the trail also if the repository dies over it.
        let lines = trail(cluster, &good).await;
        let place = |what: &str| lines.iter().position(|line| line.contains(what));
        let announced = place("to be rewritten from the admin data");
        let done = place("was rewritten from the admin data");
        assert!(announced.is_some() && announced < done, "{lines:#?}");
        // The sidecar that the damage hid is found by the next reading, and no other.
        let left = found(cluster, Kind::Checksums).await;
        assert!(
            left.iter().all(|left| left == "one unexpected bad"),
            "{left:?}"
        );
        let done = repair(cluster, everything()).await.unwrap();
        assert!(
            outcomes(&done).iter().all(|outcome| *outcome == "repaired"),
            "{done:?}"
        );
        assert_eq!(found(cluster, Kind::Checksums).await, [""; 0]);
    });
}

/// Fails if a file without an admission is adopted, is removed under the checksum of other bytes, or cannot be removed
/// at all.
#[test]
fn a_stranger_is_removed_by_its_own_checksum() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let name = name("stranger");
        let bytes = noise(SIZE, 42);
        behind_its_back(cluster, 0, |cluster| {
            archive_durable::replace_file(&cluster.copy("one", &name), &bytes).unwrap();
        })
        .await;
        assert_eq!(
            found(cluster, Kind::Files).await,
            ["one unexpected stranger"]
        );
        let refused = adopt(cluster, &name).await.unwrap_err();
        assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
        assert!(refused.message().contains("remove it"), "{refused}");
        let refused = ask(cluster, remove(&name, root(&noise(5, 1)), true)).await;
        assert_eq!(refused.unwrap_err().code(), Code::FailedPrecondition);
        let hashed = || async {
            let asked = ask(cluster, remove(&name, root(&bytes), false)).await;
            asked.ok()
        };
        // The node hashes the copy in the background.
        let asked = eventually("it is hashed", LONG, async || hashed().await).await;
        let mut bert = PreservationClient::new(cluster.channel("custodian/bert"));
        let ended = bert.approve(wire::RequestRef { id: asked.id }).await;
        assert_eq!(ended.unwrap().into_inner().state(), RequestStage::Done);
        assert!(!cluster.copy("one", &name).try_exists().unwrap());
        assert_eq!(anomalies(cluster, false).await, []);
        assert_eq!(found(cluster, Kind::Files).await, [""; 0]);
    });
}

fn copy_all(from: &Path, to: &Path) {
    archive_durable::directory::make_directory(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_all(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// Fails if a file that the archive once admitted can be removed as a stranger, or is not what it was after its
/// adoption. The admin data come back from before the file was stored; its admission lies in every replica.
#[test]
fn unknown_file_with_valid_admission_is_adopted() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let old = name("old");
        let new = name("new");
        let bytes = noise(SIZE, 43);
        store(cluster, &old, &bytes).await.unwrap();
        let data = cluster.path("repository");
        let kept = cluster.path("kept");
        cluster.stop(REPOSITORY).await;
        copy_all(&data, &kept);
        cluster.start(REPOSITORY).await;
        let first = store(cluster, &new, &bytes).await.unwrap();
        cluster.stop(REPOSITORY).await;
        std::fs::remove_dir_all(&data).unwrap();
        copy_all(&kept, &data);
        cluster.start(REPOSITORY).await;
        cluster.until_all_nodes_live().await;

        let unexpected = [
            "one unexpected new",
            "three unexpected new",
            "two unexpected new",
        ];
        assert_eq!(found(cluster, Kind::Files).await, unexpected);
        let refused = ask(cluster, remove(&new, root(&bytes), true)).await;
        let refused = refused.unwrap_err();
        assert!(refused.message().contains("adopt it"), "{refused}");
        adopt(cluster, &new).await.unwrap();
        assert_eq!(anomalies(cluster, false).await, []);
        assert_eq!(found(cluster, Kind::Checksums).await, [""; 0]);
        assert_reads(cluster, &new, &bytes, "two").await;
        let again = store(cluster, &new, &bytes).await.unwrap();
        assert!(again.already);
        assert_eq!(again.admission, first.admission, "as it was signed");
        let twice = adopt(cluster, &new).await.unwrap_err();
        assert_eq!(twice.code(), Code::NotFound, "{twice}");
    });
}

/// Stores a file of which the copy in replica one is damaged; returns the id of that anomaly.
async fn store_damaged(cluster: &Cluster, name: &FileName, bytes: &[u8]) -> String {
    store(cluster, name, bytes).await.unwrap();
    flip(&cluster.copy("one", name), GROUP_SIZE);
    check(cluster, of(Kind::Checksums)).await.unwrap();
    anomalies(cluster, false).await[0].id.clone()
}

/// Fails if a second person accepts damage that came after the request was written, or if damage that is accepted stays
/// so when there is more of it.
#[test]
fn accepted_anomaly_is_what_second_person_read() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let name = name("a");
        let id = store_damaged(cluster, &name, &noise(SIZE, 44)).await;
        let accept = || {
            Act::Accept(Accept {
                anomaly: id.clone(),
            })
        };
        let asked = ask(cluster, accept()).await.unwrap();
        let expected = format!("accept anomaly {id}: a in replica one: corrupt groups 1");
        assert_eq!(asked.what, expected);
        flip(&cluster.copy("one", &name), 3 * GROUP_SIZE);
        check(cluster, of(Kind::Checksums)).await.unwrap();
        let mut bert = PreservationClient::new(cluster.channel("custodian/bert"));
        let request = wire::RequestRef { id: asked.id };
        let ended = bert.approve(request).await.unwrap().into_inner();
        assert_eq!(ended.state(), RequestStage::Failed, "{ended:?}");
        assert!(ended.outcome.contains("ask again"), "{ended:?}");
        let ended = decide(cluster, accept()).await;
        assert_eq!(ended.state(), RequestStage::Done, "{ended:?}");
        assert_eq!(anomalies(cluster, false).await, []);
        flip(&cluster.copy("one", &name), 5 * GROUP_SIZE);
        check(cluster, of(Kind::Checksums)).await.unwrap();
        assert_eq!(anomalies(cluster, false).await.len(), 1, "open again");
    });
}

/// Fails if the last good copy can go without the word for it, since a copy with accepted damage counts as another one.
#[test]
fn copy_with_accepted_damage_counts_as_lost() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let name = name("a");
        let bytes = noise(SIZE, 45);
        let anomaly = store_damaged(cluster, &name, &bytes).await;
        let ended = decide(cluster, Act::Accept(Accept { anomaly })).await;
        assert_eq!(ended.state(), RequestStage::Done, "{ended:?}");
        assert_eq!(anomalies(cluster, false).await, []);
        let refused = ask(cluster, remove_from(&name, "two", &bytes)).await;
        let refused = refused.unwrap_err();
        assert!(refused.message().contains("--last-copies"), "{refused}");
        let retire = wire::ask_request::RetireVolume {
            volume: "volume-two".to_owned(),
            ..Default::default()
        };
        let refused = ask(cluster, Act::RetireVolume(retire.clone())).await;
        let refused = refused.unwrap_err();
        assert!(refused.message().contains("1 file(s)"), "{refused}");
        let retire = wire::ask_request::RetireVolume {
            last_copies: true,
            ..retire
        };
        let asked = ask(cluster, Act::RetireVolume(retire)).await.unwrap();
        assert_eq!(asked.approvers, [i32::from(Role::Custodian)]);
    });
}

fn remove_from(name: &FileName, replica: &str, bytes: &[u8]) -> Act {
    Act::Remove(Remove {
        name: name.to_string(),
        replica: replica.to_owned(),
        checksum: root(bytes).as_bytes().to_vec().into(),
        last_copies: false,
    })
}
