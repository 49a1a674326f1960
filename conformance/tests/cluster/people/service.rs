//! Replicas that are filled; nodes, volumes and replicas that go out of service.

use archive_client::{FileRange, ReplicaProgress};
use archive_model::FileName;
use proto_archive::wire::ask_request::{Act, RetireNode, RetireReplica, RetireVolume};
use proto_archive::wire::check_request::Kind;
use proto_archive::wire::request_state::State as RequestStage;
use proto_archive::wire::{BootstrapRequest, CheckRequest, Mode};
use tonic::Code;

use super::super::preservation::{check, of};
use super::super::visits::{get, list, name, noise, store};
use super::super::world::{Cluster, NODES, REPOSITORY, eventually, on_a_cluster};
use super::{LONG, approve, ask, decide, node_of, people, stat, status, store_some, until_live};

/// Returns the bytes of a file in one replica.
async fn read(cluster: &Cluster, replica: &str, name: &FileName) -> Vec<u8> {
    let wanted = FileRange {
        replica: Some(replica.parse().unwrap()),
        ..FileRange::whole_file(name.clone())
    };
    let (read, end) = get(cluster, &wanted).await;
    end.unwrap();
    read
}

/// Adds the replica `four` to an archive that runs.
async fn add_fourth(cluster: &mut Cluster) {
    cluster.add_replica("four");
    cluster.stop(REPOSITORY).await;
    cluster.start("monitor-four").await;
    cluster.start("bitarchive-four").await;
    cluster.start(REPOSITORY).await;
    until_live(cluster, "four", 1).await;
}

fn filling_of_fourth() -> BootstrapRequest {
    BootstrapRequest {
        replica: "four".to_owned(),
    }
}

/// Fails if a new replica does not get the older files, or counts as short of files while it is being filled.
#[test]
fn a_new_replica_is_filled_from_the_others() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let mut names = store_some(cluster, 30).await;
        add_fourth(cluster).await;
        let new = name("new");
        store(cluster, &new, &noise(1000, 99)).await.unwrap();
        assert_eq!(
            node_of(&stat(cluster, &new).await, "four").as_deref(),
            Some("four-1")
        );
        let lacks = stat(cluster, &names[0]).await;
        assert_eq!(node_of(&lacks, "four"), None);
        let four = lacks
            .replicas
            .iter()
            .find(|copy| copy.replica.as_str() == "four");
        let why = four.unwrap().reason.clone().unwrap_or_default();
        assert!(why.contains("holdfast replica bootstrap four"), "{why}");
        // Nobody has had it filled yet: it lacks the older files, and all that tells of files says so.
        assert_eq!(status(cluster).await.below_required, 30);
        let checked = check(cluster, of(Kind::Files)).await.unwrap();
        let report = checked.report("four");
        assert_eq!((report.files, report.intact, report.not_stored), (1, 1, 30));
        let of_one = CheckRequest {
            names: vec![names[0].to_string()],
            ..of(Kind::Checksums)
        };
        let checked = check(cluster, of_one).await.unwrap();
        let of_replica = |replica| {
            let report = checked.report(replica);
            (report.files, report.intact, report.not_stored)
        };
        assert_eq!(of_replica("one"), (1, 1, 0));
        assert_eq!(of_replica("four"), (0, 0, 1));
        store(cluster, &names[0], &noise(20_000, 0)).await.unwrap();
        assert_eq!(
            node_of(&stat(cluster, &names[0]).await, "four").as_deref(),
            Some("four-1")
        );

        let denied = people(cluster, "officer/olga")
            .bootstrap(filling_of_fourth())
            .await
            .unwrap_err();
        assert_eq!(denied.code(), Code::PermissionDenied);
        let begun = people(cluster, "operator/otto")
            .bootstrap(filling_of_fourth())
            .await
            .unwrap();
        assert_eq!(
            (begun.get_ref().files, begun.get_ref().bytes),
            (29, 580_000)
        );
        let said = status(cluster).await;
        assert_eq!(said.below_required, 0, "what is being filled is no alarm");
        cluster.stop(REPOSITORY).await;
        cluster.start(REPOSITORY).await;
        eventually("filled", LONG, async || {
            let said = status(cluster).await;
            assert_eq!(said.below_required, 0);
            let is_filling = |one: &proto_archive::wire::status_response::ReplicaState| one.filling;
            let is_filled = !said.replicas.iter().any(is_filling);
            is_filled.then_some(()).ok_or(said)
        })
        .await;
        names.push(new);
        for name in &names {
            let status = stat(cluster, name).await;
            assert_eq!(
                node_of(&status, "four").as_deref(),
                Some("four-1"),
                "{name}"
            );
        }
        let (entries, end) = list(&cluster.reader(), Some("four")).await.unwrap();
        assert_eq!((entries.len(), end.gaps), (31, vec![]));
        assert!(read(cluster, "four", &names[3]).await == noise(20_000, 3));
    });
}

/// Fails if a replica that was retired is still required, asked or filled, or if the last one with bytes can be
/// retired.
#[test]
fn retired_replica_is_neither_required_nor_filled() {
    on_a_cluster(async |cluster: &mut Cluster| {
        add_fourth(cluster).await;
        let names = store_some(cluster, 1).await;
        assert_eq!(
            node_of(&stat(cluster, &names[0]).await, "four").as_deref(),
            Some("four-1")
        );
        let retire = Act::RetireReplica(RetireReplica {
            replica: "four".to_owned(),
        });
        let ended = decide(cluster, retire.clone()).await;
        assert_eq!(ended.state(), RequestStage::Done, "{ended:?}");
        cluster.stop("bitarchive-four").await;
        cluster.stop("monitor-four").await;
        store(cluster, &name("after"), &noise(1000, 98))
            .await
            .unwrap();
        eventually("every file was told", LONG, async || {
            let status = stat(cluster, &names[0]).await;
            let is_withdrawn = |copy: &archive_client::ReplicaStatus| {
                copy.replica.as_str() == "four" && copy.progress == ReplicaProgress::Withdrawn
            };
            let is_so = status.replicas.iter().any(is_withdrawn);
            is_so.then_some(()).ok_or(status)
        })
        .await;
        let said = status(cluster).await;
        assert_eq!(said.below_required, 0);
        assert!(
            said.replicas
                .iter()
                .any(|one| one.retired && one.replica == "four")
        );
        let again = ask(cluster, "operator/otto", retire, "again")
            .await
            .unwrap_err();
        assert_eq!(again.code(), Code::FailedPrecondition, "{again}");
        let error = people(cluster, "operator/otto")
            .bootstrap(filling_of_fourth())
            .await
            .unwrap_err();
        assert_eq!(error.code(), Code::FailedPrecondition, "{error}");
        // The archive cannot do without the others.
        let two = Act::RetireReplica(RetireReplica {
            replica: "two".to_owned(),
        });
        assert_eq!(decide(cluster, two).await.state(), RequestStage::Done);
        let one = Act::RetireReplica(RetireReplica {
            replica: "one".to_owned(),
        });
        let error = ask(cluster, "operator/otto", one, "all").await.unwrap_err();
        assert_eq!(error.code(), Code::FailedPrecondition, "{error}");
    });
}

/// Fails if a replica whose disk was wiped is not filled, since the admin data still say that it has everything, or is
/// filled with names that cannot be read.
#[test]
fn a_replica_that_lost_everything_is_filled_again() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let names = store_some(cluster, 20).await;
        cluster.stop(NODES[1]).await;
        cluster.wipe("two");
        cluster.start(NODES[1]).await;
        until_live(cluster, "two", 1).await;
        let (entries, end) = list(&cluster.reader(), Some("two")).await.unwrap();
        assert_eq!((entries.len(), end.gaps), (0, vec![]));
        let request = BootstrapRequest {
            replica: "two".to_owned(),
        };
        people(cluster, "operator/otto")
            .bootstrap(request)
            .await
            .unwrap();
        eventually("filled again", LONG, async || {
            let listed = list(&cluster.reader(), Some("two")).await;
            let count = listed.map(|(entries, _)| entries.len());
            let filling = status(cluster).await.replicas.iter().any(|one| one.filling);
            let is_filled = !filling && count.as_ref().is_ok_and(|count| *count == names.len());
            is_filled.then_some(()).ok_or((count, filling))
        })
        .await;
        assert_eq!(status(cluster).await.below_required, 0);
        for (number, name) in (0..).zip(names) {
            assert!(read(cluster, "two", &name).await == noise(20_000, number));
        }
    });
}

/// Fails if files of a silent node count as missing before it is retired, or are not copied to the other node
/// afterwards.
#[test]
fn permanently_dead_node_is_retired() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let names = store_some(cluster, 12).await;
        cluster.add_node("two", "-2");
        cluster.start("bitarchive-two-2").await;
        until_live(cluster, "two", 2).await;
        cluster.stop(NODES[1]).await;
        let reader = cluster.reader();
        eventually("its silence is seen", LONG, async || {
            let (_, end) = list(&reader, Some("two"))
                .await
                .map_err(|error| error.to_string())?;
            (!end.gaps.is_empty())
                .then_some(())
                .ok_or("no gap".to_owned())
        })
        .await;
        assert_eq!(
            status(cluster).await.below_required,
            0,
            "a dead node makes nothing missing"
        );

        let retire = Act::RetireNode(RetireNode {
            node: "two-1".to_owned(),
            ..RetireNode::default()
        });
        let unknown = Act::RetireNode(RetireNode {
            node: "nine-1".to_owned(),
            ..RetireNode::default()
        });
        let error = ask(cluster, "operator/otto", unknown, "dead")
            .await
            .unwrap_err();
        assert_eq!(error.code(), Code::NotFound);
        let alone = ask(cluster, "operator/olga", retire.clone(), "dead")
            .await
            .unwrap();
        let error = approve(cluster, "officer/olga", &alone.id)
            .await
            .unwrap_err();
        assert_eq!(
            error.code(),
            Code::PermissionDenied,
            "the same person: {error}"
        );
        let ended = decide(cluster, retire).await;
        assert_eq!(ended.state(), RequestStage::Done, "{ended:?}");
        // The other request is about a world that is gone.
        let late = approve(cluster, "custodian/anna", &alone.id).await.unwrap();
        assert_eq!(late.state(), RequestStage::Failed, "{late:?}");
        eventually("copied to the other node", LONG, async || {
            let mut left = 0;
            for name in &names {
                let status = stat(cluster, name).await;
                left += u64::from(node_of(&status, "two").as_deref() != Some("two-2-1"));
            }
            if left == 0 { Ok(()) } else { Err(left) }
        })
        .await;
        let (entries, end) = list(&reader, Some("two")).await.unwrap();
        assert_eq!(
            (entries.len(), end.gaps),
            (names.len(), vec![]),
            "proven: nobody is missed"
        );
        assert_eq!(status(cluster).await.below_required, 0);

        // A retired node that lives on is shown as retired, and asked for nothing: also after a restart of everybody.
        cluster.start(NODES[1]).await;
        cluster.stop(REPOSITORY).await;
        cluster.start(REPOSITORY).await;
        eventually("shown as retired", LONG, async || {
            let said = status(cluster).await;
            let nodes = said.replicas.iter().flat_map(|replica| &replica.nodes);
            let mut retired = nodes.filter(|node| node.node == "two-1");
            let is_retired = retired
                .next()
                .is_some_and(|node| node.mode() == Mode::Retired && !node.alive);
            is_retired.then_some(()).ok_or(said)
        })
        .await;
        let (entries, end) = list(&reader, Some("two")).await.unwrap();
        assert_eq!((entries.len(), end.gaps), (names.len(), vec![]));
        // Switched off, it is no gap either, though its monitor has heard it.
        cluster.stop(NODES[1]).await;
        let checked = check(cluster, of(Kind::Files)).await.unwrap();
        assert_eq!(checked.report("two").gaps, []);
    });
}

/// Fails if a volume cannot be retired when its node and disk are permanently dead: the admin data still knows the
/// volume.
#[test]
fn a_volume_of_a_dead_node_is_retired() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let names = store_some(cluster, 1).await;
        cluster.stop(NODES[1]).await;
        let retire = |volume: &str| {
            Act::RetireVolume(RetireVolume {
                volume: volume.to_owned(),
                ..RetireVolume::default()
            })
        };
        let error = ask(cluster, "operator/otto", retire("nothing"), "dead")
            .await
            .unwrap_err();
        assert_eq!(error.code(), Code::NotFound, "{error}");
        let ended = decide(cluster, retire("volume-two")).await;
        assert_eq!(ended.state(), RequestStage::Done, "{ended:?}");
        eventually("its copies do not count", LONG, async || {
            let said = status(cluster).await;
            (said.below_required == 1).then_some(()).ok_or(said)
        })
        .await;
        eventually("given up", LONG, async || {
            let status = stat(cluster, &names[0]).await;
            let is_given_up = node_of(&status, "two").is_none();
            is_given_up.then_some(()).ok_or(status)
        })
        .await;
    });
}
