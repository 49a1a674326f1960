//! Removals over a line that carries only one way: done once or not at all, and nobody is told otherwise.

use archive_client::ReplicaProgress;
use proto_archive::wire::RequestState;
use proto_archive::wire::ask_request::{Act, Remove};
use proto_archive::wire::request_state::State as RequestStage;

use super::super::people::{approve, ask, stat};
use super::super::visits::root;
use super::*;

/// Somebody asks for the removal of a copy of replica two.
async fn asked(cluster: &Cluster, name: &FileName, bytes: &[u8]) -> RequestState {
    let act = Act::Remove(Remove {
        name: name.to_string(),
        replica: "two".to_owned(),
        checksum: root(bytes).as_bytes().to_vec().into(),
        last_copies: false,
    });
    ask(cluster, "custodian/anna", act, "law").await.unwrap()
}

async fn approved(cluster: &Cluster, id: &str) -> RequestState {
    approve(cluster, "custodian/bert", id).await.unwrap()
}

async fn is_withdrawn(cluster: &Cluster, name: &FileName) -> bool {
    let status = stat(cluster, name).await;
    let mut replicas = status.replicas.iter();
    let two = replicas.find(|copy| copy.replica.as_str() == "two");
    two.unwrap().progress == ReplicaProgress::Withdrawn
}

fn in_attic(cluster: &Cluster) -> usize {
    let attic = cluster.path("two").join("volume/attic");
    directory::list_directory(&attic).unwrap().len()
}

/// Fails if a removal of which the node's answer is lost counts as done before the node has confirmed it, or is done a
/// second time when it is repeated.
#[test]
fn removal_with_lost_answer_is_done_once() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let lines = lay(cluster, "").await;
        let file = name("a");
        let bytes = noise(SIZE, 81);
        store(cluster, &file, &bytes).await.unwrap();
        let request = asked(cluster, &file, &bytes).await;
        let copy = cluster.copy("two", &file);
        // The line to the node is there before it falls silent.
        check(cluster, of(Kind::Checksums)).await.unwrap();
        lines.node.hold_only(Silence::Answers);
        let connections = lines.node.connections();
        let meanwhile = async {
            eventually("the copy is put aside", LONG, async || {
                !copy.try_exists().unwrap()
            })
            .await;
            assert!(!is_withdrawn(cluster, &file).await, "nobody has said so");
            eventually("asked anew", LONG, async || {
                lines.node.connections() > connections + 1
            })
            .await;
            lines.node.release();
        };
        let (ended, ()) = tokio::join!(approved(cluster, &request.id), meanwhile);
        assert_eq!(ended.state(), RequestStage::Done, "{ended:?}");
        assert!(is_withdrawn(cluster, &file).await);
        assert_eq!(
            (copy.try_exists().unwrap(), in_attic(cluster)),
            (false, 1),
            "once"
        );
        let clean = check(cluster, of(Kind::Checksums)).await.unwrap();
        assert_eq!(clean.found(), [""; 0]);
        assert_eq!(clean.report("one").intact, 1);
    });
}

/// Fails if a removal that the node never heard of counts as done and withdraws the copy, or cannot be asked for again.
#[test]
fn undelivered_removal_fails_and_copy_stays() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let lines = lay(cluster, "").await;
        let file = name("a");
        let bytes = noise(SIZE, 82);
        store(cluster, &file, &bytes).await.unwrap();
        let request = asked(cluster, &file, &bytes).await;
        let copy = cluster.copy("two", &file);
        lines.node.hold_only(Silence::Requests);
        let ended = approved(cluster, &request.id).await;
        assert_eq!(ended.state(), RequestStage::Failed, "{ended:?}");
        assert!(copy.try_exists().unwrap() && !is_withdrawn(cluster, &file).await);
        lines.node.release();
        // What was on the line may still come there: then the copy is missing, and copied again.
        eventually("whole", LONG, async || {
            let found = check(cluster, of(Kind::Checksums)).await.unwrap();
            let is_clean = found.found().is_empty() && found.report("two").intact == 1;
            if !is_clean {
                repair(cluster, everything()).await.unwrap();
            }
            let is_whole = is_clean && copy.try_exists().unwrap();
            is_whole.then_some(()).ok_or(found)
        })
        .await;
        assert!(!is_withdrawn(cluster, &file).await);
        let request = asked(cluster, &file, &bytes).await;
        let ended = approved(cluster, &request.id).await;
        assert_eq!(ended.state(), RequestStage::Done, "{ended:?}");
        assert!(!copy.try_exists().unwrap() && is_withdrawn(cluster, &file).await);
    });
}
