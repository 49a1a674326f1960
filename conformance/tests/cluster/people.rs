//! The acts of people on the archive, and the second person: over real doors, with real certificates.

mod decided;
mod mad;
mod service;

use archive_client::{Access, FileRange, FileStatus, Ingest, ReplicaOverview, ReplicaProgress};
use archive_model::FileName;
use proto_archive::wire::access_client::AccessClient;
use proto_archive::wire::ask_request::{Accept, Act, ReinstateCopy, Remove};
use proto_archive::wire::preservation_client::PreservationClient;
use proto_archive::wire::request_state::State as RequestStage;
use proto_archive::wire::{
    AskRequest, AtticsRequest, Mode, NodeRequest, ReplaceRequest, RequestRef, RequestState,
    RequestsRequest, Role, SetModeRequest, SetVolumeRequest, StatusRequest, StatusResponse,
    VolumeRequest, replace_request, request_state, set_volume_request,
};
use tonic::transport::Channel;
use tonic::{Code, Status};

use super::visits::{get, name, noise, root, store};
use super::world::{Cluster, LONG, NODES, REPOSITORY, eventually, flip, on_a_cluster};

pub(crate) type People = PreservationClient<Channel>;

pub(crate) fn people(cluster: &Cluster, grant: &str) -> People {
    PreservationClient::new(cluster.channel(grant))
}

pub(crate) async fn ask(
    cluster: &Cluster,
    grant: &str,
    act: Act,
    reason: &str,
) -> Result<RequestState, Status> {
    let request = AskRequest {
        act: Some(act),
        reason: reason.to_owned(),
    };
    Ok(people(cluster, grant).ask(request).await?.into_inner())
}

pub(crate) async fn approve(
    cluster: &Cluster,
    grant: &str,
    id: &str,
) -> Result<RequestState, Status> {
    let request = RequestRef { id: id.to_owned() };
    Ok(people(cluster, grant).approve(request).await?.into_inner())
}

/// Asks and approves; what came of it.
pub(crate) async fn decide(cluster: &Cluster, act: Act) -> RequestState {
    let asked = ask(cluster, "operator/otto", act, "it is broken")
        .await
        .unwrap();
    assert_eq!(asked.state(), RequestStage::Open);
    approve(cluster, "officer/olga", &asked.id).await.unwrap()
}

/// Returns the status of the archive; of a repository that has just started, once it has counted its files.
pub(crate) async fn status(cluster: &Cluster) -> StatusResponse {
    eventually("the files are counted", LONG, async || {
        let mut client = AccessClient::new(cluster.channel("operator/otto"));
        let answer = client.status(StatusRequest::default()).await;
        match answer {
            Err(status) if status.code() == Code::Unavailable => Err(status),
            answer => Ok(answer.unwrap().into_inner()),
        }
    })
    .await
}

pub(crate) async fn stat(cluster: &Cluster, name: &FileName) -> FileStatus {
    cluster.depositor().stat(name).await.unwrap()
}

/// Returns the node on which a replica has a file, if the replica has it.
pub(crate) fn node_of(status: &FileStatus, replica: &str) -> Option<String> {
    let mut replicas = status.replicas.iter();
    let copy = replicas.find(|copy| copy.replica.as_str() == replica)?;
    let node = copy.node.as_ref()?;
    (copy.progress == ReplicaProgress::UploadCompleted).then(|| node.to_string())
}

async fn store_some(cluster: &Cluster, count: u64) -> Vec<FileName> {
    let mut names = Vec::new();
    for number in 0..count {
        let name = name(&format!("f-{number}"));
        store(cluster, &name, &noise(20_000, number)).await.unwrap();
        names.push(name);
    }
    names
}

/// Every node of a replica lives, and their number is `count`.
pub(crate) async fn until_live(cluster: &Cluster, replica: &str, count: usize) {
    let reader = cluster.reader();
    eventually("nodes live", LONG, async || {
        let status = reader.status().await.map_err(|error| error.to_string())?;
        let is_it = |overview: &&ReplicaOverview| overview.replica.as_str() == replica;
        let found = status.replicas.iter().find(is_it);
        let live = found.map(|one| one.nodes.iter().filter(|node| node.alive).count());
        let is_so = live == Some(count);
        is_so.then_some(()).ok_or_else(|| format!("{status:#?}"))
    })
    .await;
}

/// Fails if the person who asked for a removal, or an officer, can approve it, if it can be asked for without a reason
/// or with a wrong checksum, or if a role that may not ask learns from the refusal what the archive has.
#[test]
fn nobody_destroys_alone() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let name = &store_some(cluster, 1).await[0];
        let bytes = noise(20_000, 0);
        let remove = |checksum: &[u8], last_copies| {
            Act::Remove(Remove {
                name: name.to_string(),
                replica: "one".to_owned(),
                checksum: checksum.to_vec().into(),
                last_copies,
            })
        };
        let right = root(&bytes);
        let of_unknown = Act::Remove(Remove {
            name: "unknown".to_owned(),
            replica: "one".to_owned(),
            checksum: right.as_bytes().to_vec().into(),
            last_copies: false,
        });
        // The role is decided before the reason, the checksum, and whether there is such a file.
        for grant in ["officer/olga", "operator/otto"] {
            for (act, reason) in [
                (remove(right.as_bytes(), false), "why"),
                (remove(right.as_bytes(), false), " "),
                (remove(&[9; 32], false), "why"),
                (of_unknown.clone(), "why"),
            ] {
                let error = ask(cluster, grant, act, reason).await.unwrap_err();
                assert_eq!(error.code(), Code::PermissionDenied, "{grant}: {error}");
            }
        }
        let unknown = ask(cluster, "custodian/anna", of_unknown, "why").await;
        assert_eq!(unknown.unwrap_err().code(), Code::NotFound);
        let wrong = ask(cluster, "custodian/anna", remove(&[9; 32], false), "why")
            .await
            .unwrap_err();
        assert_eq!(wrong.code(), Code::FailedPrecondition, "{wrong}");
        assert!(
            !wrong.message().contains(&right.to_string()),
            "it tells the checksum: {wrong}"
        );
        let short = ask(cluster, "custodian/anna", remove(b"abc", false), "why").await;
        assert_eq!(short.unwrap_err().code(), Code::InvalidArgument);
        let silent = ask(
            cluster,
            "custodian/anna",
            remove(right.as_bytes(), false),
            " ",
        )
        .await;
        assert_eq!(silent.unwrap_err().code(), Code::InvalidArgument);

        let asked = ask(
            cluster,
            "custodian/anna",
            remove(right.as_bytes(), false),
            "a court order",
        );
        let asked = asked.await.unwrap();
        assert_eq!(
            (asked.id.as_str(), asked.act()),
            ("r1", request_state::Act::Remove)
        );
        assert_eq!(asked.approvers, [i32::from(Role::Custodian)]);
        for (grant, code) in [
            ("custodian/anna", Code::PermissionDenied),
            ("officer/anna", Code::PermissionDenied),
            ("officer/olga", Code::PermissionDenied),
        ] {
            let error = approve(cluster, grant, &asked.id).await.unwrap_err();
            assert_eq!(error.code(), code, "{grant}: {error}");
        }
        let unknown = approve(cluster, "custodian/bert", "r7").await.unwrap_err();
        assert_eq!(unknown.code(), Code::NotFound);

        let reference = || RequestRef {
            id: asked.id.clone(),
        };
        let error = people(cluster, "custodian/bert")
            .withdraw(reference())
            .await
            .unwrap_err();
        assert_eq!(error.code(), Code::PermissionDenied, "{error}");
        // Requests are remembered.
        cluster.stop(REPOSITORY).await;
        cluster.start(REPOSITORY).await;
        let all = |all| RequestsRequest { all };
        let mut anna = people(cluster, "custodian/anna");
        assert_eq!(
            anna.requests(all(false))
                .await
                .unwrap()
                .into_inner()
                .requests,
            std::slice::from_ref(&asked)
        );
        let withdrawn = anna.withdraw(reference()).await.unwrap().into_inner();
        assert_eq!(withdrawn.state(), RequestStage::Withdrawn);
        let late = approve(cluster, "custodian/bert", &asked.id)
            .await
            .unwrap_err();
        assert_eq!(late.code(), Code::FailedPrecondition, "{late}");
        assert!(
            anna.requests(all(false))
                .await
                .unwrap()
                .into_inner()
                .requests
                .is_empty()
        );
        assert_eq!(
            anna.requests(all(true))
                .await
                .unwrap()
                .into_inner()
                .requests,
            [withdrawn]
        );
        let (read, end) = get(cluster, &FileRange::whole_file(name.clone())).await;
        end.unwrap();
        assert!(read == bytes);

        let accept = Act::Accept(Accept {
            anomaly: "a99".to_owned(),
        });
        let unknown = ask(cluster, "officer/olga", accept, "so be it")
            .await
            .unwrap_err();
        assert_eq!(unknown.code(), Code::NotFound, "{unknown}");
    });
}

/// Fails if an operator alone can retire a volume, or if a node or replica that does not exist is given an order or
/// asked for its attic.
#[test]
fn operator_cannot_retire_alone_or_order_unknown_nodes() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let mut otto = people(cluster, "operator/otto");
        let order = |order: set_volume_request::Order| SetVolumeRequest {
            order: order.into(),
            volume: "volume-one".to_owned(),
            path: String::new(),
        };
        let request = |order, node: &str| VolumeRequest {
            order: Some(order),
            node: node.to_owned(),
            replica: String::new(),
        };
        let retire = request(order(set_volume_request::Order::Retire), "one-1");
        let error = otto.volume(retire).await.unwrap_err();
        assert_eq!(error.code(), Code::PermissionDenied, "{error}");
        assert!(error.message().contains("second person"), "{error}");
        let unknown = request(order(set_volume_request::Order::ReadOnly), "nine-1");
        assert_eq!(
            otto.volume(unknown).await.unwrap_err().code(),
            Code::NotFound
        );
        let mode = NodeRequest {
            node: "nine-1".to_owned(),
            order: Some(SetModeRequest {
                mode: Mode::ReadOnly.into(),
            }),
            ..NodeRequest::default()
        };
        assert_eq!(otto.node(mode).await.unwrap_err().code(), Code::NotFound);
        let mut olga = people(cluster, "officer/olga");
        let attics = AtticsRequest {
            replica: "nine".to_owned(),
            name: String::new(),
        };
        assert_eq!(
            olga.attics(attics).await.unwrap_err().code(),
            Code::NotFound
        );
    });
}

fn replacement(name: &FileName, checksum: &[u8], data: &[u8]) -> Vec<ReplaceRequest> {
    let open = replace_request::Open {
        name: name.to_string(),
        replica: "one".to_owned(),
        checksum: checksum.to_vec().into(),
        reason: "the tape has it".to_owned(),
    };
    let data = data
        .chunks(100_000)
        .map(|part| replace_request::Step::Data(part.to_vec().into()));
    let steps = std::iter::once(replace_request::Step::Open(open)).chain(data);
    steps
        .map(|step| ReplaceRequest { step: Some(step) })
        .collect()
}

/// Fails if a copy is replaced by bytes without the recorded root, or by an officer who names another checksum than the
/// copy has.
#[test]
fn wrong_copy_is_replaced_only_by_right_bytes() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let name = name("a");
        let bytes = noise(1_000_000, 5);
        store(cluster, &name, &bytes).await.unwrap();
        let mut damaged = bytes.clone();
        damaged[77_777] ^= 1;
        flip(&cluster.copy("one", &name), 77_777);
        let mut olga = people(cluster, "officer/olga");
        for (checksum, data) in [
            (root(&damaged), &damaged[..]),
            (root(&damaged), &bytes[..999_999]),
            (root(&bytes[..5]), &bytes[..]),
        ] {
            let steps = replacement(&name, checksum.as_bytes(), data);
            let error = olga.replace(tokio_stream::iter(steps)).await.unwrap_err();
            assert_eq!(error.code(), Code::FailedPrecondition, "{error}");
            assert!(
                std::fs::read(cluster.copy("one", &name)).unwrap() == damaged,
                "untouched"
            );
        }
        let steps = replacement(&name, root(&damaged).as_bytes(), &bytes);
        let replaced = olga
            .replace(tokio_stream::iter(steps))
            .await
            .unwrap()
            .into_inner();
        assert_eq!(replaced.attic.unwrap().name, "a");
        assert!(std::fs::read(cluster.copy("one", &name)).unwrap() == bytes);
        assert_eq!(
            node_of(&stat(cluster, &name).await, "one").as_deref(),
            Some("one-1")
        );
    });
}

/// Fails if a copy is removed because of another one whose node is silent, or that is rotten and was not read since.
#[test]
fn copy_is_removed_only_if_another_one_is_shown() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let name = name("a");
        let bytes = noise(100_000, 5);
        store(cluster, &name, &bytes).await.unwrap();
        let remove = |last_copies| {
            Act::Remove(Remove {
                name: name.to_string(),
                replica: "one".to_owned(),
                checksum: root(&bytes).as_bytes().to_vec().into(),
                last_copies,
            })
        };
        let asked = ask(cluster, "custodian/anna", remove(false), "law")
            .await
            .unwrap();
        cluster.stop(NODES[1]).await;
        let late = approve(cluster, "custodian/bert", &asked.id).await.unwrap();
        assert_eq!(late.state(), RequestStage::Failed, "{late:?}");
        let refused = ask(cluster, "custodian/anna", remove(false), "law").await;
        let refused = refused.unwrap_err();
        assert!(refused.message().contains("replica two"), "{refused}");
        cluster.start(NODES[1]).await;
        until_live(cluster, "two", 1).await;
        flip(&cluster.copy("two", &name), 50_000);
        let refused = ask(cluster, "custodian/anna", remove(false), "law").await;
        let refused = refused.unwrap_err();
        assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
        assert!(
            refused.message().contains("replica two has none"),
            "{refused}"
        );
        assert!(cluster.copy("one", &name).try_exists().unwrap());
        let asked = ask(cluster, "custodian/anna", remove(true), "law")
            .await
            .unwrap();
        let ended = approve(cluster, "custodian/bert", &asked.id).await.unwrap();
        assert_eq!(ended.state(), RequestStage::Done, "{ended:?}");
    });
}

/// Fails if a removed copy is then reported as missing, if the last copy can be removed as well, or if one person, or
/// not even two, can have it again.
#[test]
fn removed_copy_is_withdrawn_until_restored() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let name = name("a");
        let bytes = noise(100_000, 5);
        store(cluster, &name, &bytes).await.unwrap();
        let remove = |replica: &str, last_copies| {
            Act::Remove(Remove {
                name: name.to_string(),
                replica: replica.to_owned(),
                checksum: root(&bytes).as_bytes().to_vec().into(),
                last_copies,
            })
        };
        let asked = ask(cluster, "custodian/anna", remove("one", false), "law")
            .await
            .unwrap();
        let ended = approve(cluster, "custodian/bert", &asked.id).await.unwrap();
        assert_eq!(ended.state(), RequestStage::Done, "{ended:?}");
        let again = approve(cluster, "custodian/bert", &asked.id)
            .await
            .unwrap_err();
        assert_eq!(again.code(), Code::FailedPrecondition, "once");
        assert!(!cluster.copy("one", &name).try_exists().unwrap());
        assert_eq!(status(cluster).await.below_required, 0);
        let error = ask(cluster, "custodian/anna", remove("two", false), "law")
            .await
            .unwrap_err();
        assert_eq!(
            error.code(),
            Code::FailedPrecondition,
            "the last copy: {error}"
        );

        let mut olga = people(cluster, "officer/olga");
        let mut attics = olga
            .attics(AtticsRequest::default())
            .await
            .unwrap()
            .into_inner();
        let mut items = Vec::new();
        while let Some(message) = attics.message().await.unwrap() {
            assert_eq!(message.gaps, []);
            items.extend(message.items);
        }
        let replica = items[0].replica.clone();
        let item = items[0].item.clone().unwrap();
        assert_eq!(
            (items.len(), replica.as_str(), item.name.as_str()),
            (1, "one", "a")
        );
        assert_eq!(item.who, "custodian/anna, approved by custodian/bert");
        let restore = proto_archive::wire::AtticsRef {
            replica,
            node: item.node,
            volume: item.volume,
            id: item.id,
            reason: "the court has changed its mind".to_owned(),
            ..proto_archive::wire::AtticsRef::default()
        };
        let alone = olga.restore(restore.clone()).await.unwrap_err();
        assert_eq!(alone.code(), Code::FailedPrecondition, "{alone}");
        assert!(alone.message().contains("holdfast reinstate a"), "{alone}");
        let wanted = || {
            Act::ReinstateCopy(ReinstateCopy {
                name: "a".to_owned(),
                replica: "one".to_owned(),
            })
        };
        let reason = "the court has changed its mind";
        let nobody = ask(cluster, "operator/otto", wanted(), reason).await;
        assert_eq!(nobody.unwrap_err().code(), Code::PermissionDenied);
        let asked = ask(cluster, "officer/olga", wanted(), reason)
            .await
            .unwrap();
        let alone = approve(cluster, "officer/olaf", &asked.id)
            .await
            .unwrap_err();
        assert_eq!(alone.code(), Code::PermissionDenied, "{alone}");
        let ended = approve(cluster, "custodian/bert", &asked.id).await.unwrap();
        assert_eq!(ended.state(), RequestStage::Done, "{ended:?}");
        // From the other replica: nobody has to fetch it.
        eventually("it is there again", LONG, async || {
            let status = stat(cluster, &name).await;
            let node = node_of(&status, "one");
            (node.as_deref() == Some("one-1"))
                .then_some(())
                .ok_or(status)
        })
        .await;
        let twice = ask(cluster, "officer/olga", wanted(), reason).await;
        assert_eq!(twice.unwrap_err().code(), Code::FailedPrecondition);
        let (_, end) = get(cluster, &FileRange::whole_file(name)).await;
        end.unwrap();
    });
}
