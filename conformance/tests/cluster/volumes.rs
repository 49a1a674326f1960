//! Volumes that a node has forgotten, that bear an id twice, or that are none.

use archive_durable::directory;
use proto_archive::wire::ask_request::{
    Act, ReinstateNode, ReinstateVolume, RetireNode, RetireVolume,
};
use proto_archive::wire::check_request::Kind;
use proto_archive::wire::request_state::State as RequestStage;
use proto_archive::wire::set_volume_request::Order;
use proto_archive::wire::{NodeStatus, SetVolumeRequest, VolumeRequest};
use tonic::{Code, Status};

use super::people::{ask, decide, people, status};
use super::preservation::{check, of};
use super::visits::{name, noise, store};
use super::world::{Cluster, LONG, NODES, REPOSITORY, eventually, on_a_cluster};

async fn order(
    cluster: &Cluster,
    order: Order,
    volume: &str,
    node: &str,
    path: &str,
) -> Result<NodeStatus, Status> {
    let request = VolumeRequest {
        order: Some(SetVolumeRequest {
            order: order.into(),
            volume: volume.to_owned(),
            path: path.to_owned(),
        }),
        node: node.to_owned(),
        replica: String::new(),
    };
    let mut otto = people(cluster, "operator/otto");
    otto.volume(request).await.map(tonic::Response::into_inner)
}

/// Fails if the files of a disk that was added at run time are missing once its node has lost its data directory.
#[test]
fn forgotten_volume_is_a_gap_not_missing() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let path = cluster.path("disk-3");
        directory::make_directory(&path).unwrap();
        let path = path.to_str().unwrap().to_owned();
        let init = order(cluster, Order::Init, "disk-3", "one-1", &path);
        init.await.unwrap();
        let closed = order(cluster, Order::ReadOnly, "volume-one", "", "");
        closed.await.unwrap();
        let file = name("on-disk-3");
        eventually("it lies on the new disk", LONG, async || {
            store(cluster, &file, &noise(1000, 1)).await.ok()
        })
        .await;

        cluster.stop(NODES[0]).await;
        std::fs::remove_dir_all(cluster.path("one").join("node")).unwrap();
        cluster.start(NODES[0]).await;
        let forgotten = eventually("its node does not know the disk", LONG, async || {
            let said = status(cluster).await;
            let nodes = said.replicas.into_iter().flat_map(|replica| replica.nodes);
            let mut nodes = nodes.filter(|node| node.node == "one-1" && node.alive);
            let volumes = nodes.next()?.volumes;
            // What the node said before it was stopped is remembered until it speaks again.
            let mut volumes = volumes.into_iter();
            volumes.find(|volume| volume.volume == "disk-3" && volume.unreported)
        })
        .await;
        assert!(!forgotten.problem.is_empty());
        let checked = check(cluster, of(Kind::Files)).await.unwrap();
        assert_eq!(checked.found(), [format!("one unverified {file}")]);
        let gaps = checked.report("one").gaps.iter();
        let gaps: Vec<_> = gaps.map(|gap| (&*gap.node, &*gap.volume)).collect();
        assert_eq!(gaps, [("one-1", "disk-3")]);

        cluster.stop(REPOSITORY).await;
        cluster.start(REPOSITORY).await;
        eventually("the repository hears the node again", LONG, async || {
            let adopt = order(cluster, Order::Adopt, "", "one-1", &path);
            adopt.await.ok()
        })
        .await;
        eventually("all is there again", LONG, async || {
            let checked = check(cluster, of(Kind::Files)).await.unwrap();
            let is_whole = checked.report("one").gaps.is_empty();
            (is_whole && checked.found().is_empty()).then_some(())
        })
        .await;
        assert_eq!(status(cluster).await.below_required, 0);
    });
}

/// Fails if the table of a checksum replica can be taken out of service like a disk: nothing would be acknowledged
/// then.
#[test]
fn table_of_a_checksum_replica_cannot_be_retired() {
    on_a_cluster(async |cluster: &mut Cluster| {
        store(cluster, &name("a"), &noise(10, 1)).await.unwrap();
        let table = Act::RetireVolume(RetireVolume {
            volume: "table".to_owned(),
            ..RetireVolume::default()
        });
        let node = Act::RetireNode(RetireNode {
            node: "three-1".to_owned(),
            ..RetireNode::default()
        });
        for act in [table, node] {
            let refused = ask(cluster, "operator/otto", act, "old").await.unwrap_err();
            let said = refused.message();
            assert!(said.contains("holdfast replica retire three"), "{said}");
        }
        for word in [Order::Drain, Order::ReadOnly] {
            let refused = order(cluster, word, "table", "", "").await.unwrap_err();
            assert!(refused.message().contains("checksum replica"), "{refused}");
        }
        store(cluster, &name("b"), &noise(10, 2)).await.unwrap();
    });
}

/// Fails if a second disk gets the id of one that the archive has.
#[test]
fn new_volume_with_a_taken_id_is_refused() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let path = cluster.path("disk");
        directory::make_directory(&path).unwrap();
        let shown = path.to_str().unwrap();
        let refused = order(cluster, Order::Init, "volume-two", "one-1", shown)
            .await
            .unwrap_err();
        let said = refused.message();
        assert!(said.contains("volume volume-two of node two-1"), "{said}");
        assert_eq!(directory::list_directory(&path).unwrap().len(), 0);
    });
}

/// Fails if what two persons retired by mistake cannot be taken back by two persons, or comes back without its files.
#[test]
fn retired_volume_and_node_are_reinstated() {
    on_a_cluster(async |cluster: &mut Cluster| {
        store(cluster, &name("a"), &noise(1000, 1)).await.unwrap();
        let retire = Act::RetireVolume(RetireVolume {
            volume: "volume-two".to_owned(),
            ..RetireVolume::default()
        });
        let reinstate = Act::ReinstateVolume(ReinstateVolume {
            volume: "volume-two".to_owned(),
            ..ReinstateVolume::default()
        });
        let early = ask(cluster, "operator/otto", reinstate.clone(), "oops").await;
        assert_eq!(early.unwrap_err().code(), Code::NotFound);
        assert_eq!(decide(cluster, retire).await.state(), RequestStage::Done);
        assert_eq!(decide(cluster, reinstate).await.state(), RequestStage::Done);
        let retire = Act::RetireNode(RetireNode {
            node: "two-1".to_owned(),
            ..RetireNode::default()
        });
        let reinstate = Act::ReinstateNode(ReinstateNode {
            node: "two-1".to_owned(),
            ..ReinstateNode::default()
        });
        assert_eq!(decide(cluster, retire).await.state(), RequestStage::Done);
        assert_eq!(decide(cluster, reinstate).await.state(), RequestStage::Done);
        eventually("all is in service", LONG, async || {
            let said = status(cluster).await;
            let nodes = said.replicas.iter().flat_map(|replica| &replica.nodes);
            let mut nodes = nodes.filter(|node| node.node == "two-1");
            let node = nodes.next()?;
            let is_back = node.alive && node.volumes.iter().all(|volume| !volume.retired);
            (is_back && said.below_required == 0).then_some(())
        })
        .await;
        let checked = check(cluster, of(Kind::Files)).await.unwrap();
        assert_eq!(checked.found(), [""; 0]);
    });
}
