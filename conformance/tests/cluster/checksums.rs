//! The checksum replica of a running archive: a store waits for it, it is made good unasked, and it gives no bytes.

use archive_client::{Access, ClientError, ErrorClass, FileRange, Ingest, ReplicaProgress};
use archive_model::ReplicaKind;
use archive_rpc::{ExpectedIdentity, Role, RpcLimits, connect_lazy};
use proto_archive::wire::node_client::NodeClient;
use proto_archive::wire::{FilesRequest, PutAsideRequest};

use super::visits::{get, list, name, noise, root, store};
use super::world::{CHECKSUMS, Cluster, on_a_cluster, on_a_patient_cluster};
use super::{SIZE, completed};

/// Fails if the checksum replica is left out of receipts or the status, claims to have bytes, or forgets its checksums
/// at a restart.
#[test]
fn checksum_replica_acts_like_others_without_bytes() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let name = name("a.warc.gz");
        let bytes = noise(SIZE, 1);
        let stored = store(cluster, &name, &bytes).await.unwrap();
        let third = stored
            .receipt
            .replicas
            .iter()
            .find(|custody| custody.replica.as_str() == "three")
            .unwrap();
        assert_eq!(third.kind, ReplicaKind::Checksum);
        assert_eq!(third.volume.as_ref().unwrap().as_str(), "table");

        let wanted = FileRange {
            replica: Some("three".parse().unwrap()),
            ..FileRange::whole_file(name.clone())
        };
        let (read, end) = get(cluster, &wanted).await;
        let error = end.unwrap_err();
        assert!(read.is_empty());
        assert!(error.to_string().contains("checksums only"), "{error}");

        let status = cluster.reader().status().await.unwrap();
        let third = status
            .replicas
            .iter()
            .find(|replica| replica.replica.as_str() == "three")
            .unwrap();
        assert_eq!((third.kind, third.required), (ReplicaKind::Checksum, true));
        assert_eq!(third.problem, None);
        let [node] = third.nodes.as_slice() else {
            panic!("{third:?}")
        };
        assert!(node.alive && node.node.as_str() == "three-1", "{node:?}");

        // The checksums outlive the process of the checksum replica.
        cluster.stop(CHECKSUMS).await;
        cluster.start(CHECKSUMS).await;
        let (entries, end) = list(&cluster.reader(), Some("three")).await.unwrap();
        assert_eq!(entries[0].root, Some(root(&bytes)));
        assert_eq!((end.count, end.gaps), (1, vec![]));
    });
}

/// Fails if a store is acknowledged without the checksum replica, or if that replica does not get the checksum unasked
/// when it is back.
#[test]
fn absent_checksum_replica_is_reported_and_later_completed() {
    on_a_patient_cluster(async |cluster: &mut Cluster| {
        let name = name("during");
        let bytes = noise(SIZE, 2);
        cluster.stop(CHECKSUMS).await;
        let error = store(cluster, &name, &bytes).await.unwrap_err();
        let said = error.to_string();
        assert!(matches!(error, ClientError::NotEnoughReplicas(_)), "{said}");
        let (_, reasons) = said.split_once(": ").unwrap();
        assert!(reasons.contains("three"), "{said}");
        assert!(
            !reasons.contains("one:") && !reasons.contains("two:"),
            "{said}"
        );
        let reader = cluster.reader();
        let error = list(&reader, Some("three")).await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::Unreachable, "{error}");
        let (read, end) = get(cluster, &FileRange::whole_file(name.clone())).await;
        end.unwrap();
        assert!(read == bytes, "the bytes are in two places");

        cluster.start(CHECKSUMS).await;
        let depositor = cluster.depositor();
        let what = "in all, unasked";
        let stored = cluster.eventually_retried(what, async || {
            let status = depositor.stat(&name).await.unwrap();
            (completed(&status) == 3).then_some(()).ok_or(status)
        });
        stored.await;
        let (entries, _) = list(&reader, Some("three")).await.unwrap();
        assert_eq!(entries[0].root, Some(root(&bytes)));
        let again = store(cluster, &name, &bytes).await.unwrap();
        assert!(again.already);
        assert_eq!(again.receipt.replicas.len(), 3);
    });
}

/// Fails if the checksum replica gives out other admissions than were signed, from which the admin data would be
/// restored wrongly.
#[test]
fn checksum_replica_returns_admissions_as_signed() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let mut admitted = Vec::new();
        for n in 0..3 {
            let stored = store(cluster, &name(&format!("f-{n}")), &noise(1000, n)).await;
            admitted.push(stored.unwrap().admission);
        }
        let status = cluster.depositor().stat(&name("f-0")).await.unwrap();
        let is_there = |progress| progress == ReplicaProgress::UploadCompleted;
        assert!(status.replicas.iter().all(|one| is_there(one.progress)));

        let channel = connect_lazy(
            &cluster.address(CHECKSUMS),
            &cluster.credentials("repository/kb"),
            &ExpectedIdentity::any_of_role(Role::Node),
            &RpcLimits::default(),
        );
        let mut node = NodeClient::new(channel.unwrap());
        let mut messages = node
            .admissions(FilesRequest::default())
            .await
            .unwrap()
            .into_inner();
        let mut found = Vec::new();
        let mut count = None;
        while let Some(message) = messages.message().await.unwrap() {
            for one in message.admissions {
                let envelope = archive_proof::Envelope::parse(one.admission.as_bytes()).unwrap();
                found.push(archive_proof::Admission::verify(&envelope, cluster.trust()).unwrap());
            }
            count = message.end.map(|end| end.count);
        }
        assert_eq!((found, count), (admitted, Some(3)));

        let put_aside = PutAsideRequest {
            name: "f-1".to_owned(),
            checksum: root(&noise(1000, 1)).as_bytes().to_vec().into(),
            who: "officer/anna".to_owned(),
            why: "a test".to_owned(),
            ..PutAsideRequest::default()
        };
        node.put_aside(put_aside).await.unwrap();
        let (entries, _) = list(&cluster.reader(), Some("three")).await.unwrap();
        let left: Vec<_> = entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(left, ["f-0", "f-2"]);
    });
}
