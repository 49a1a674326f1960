//! Walks that go on by themselves over many files, and must not be stopped by a few of them.

use archive_model::{FileName, GROUP_SIZE};
use proto_archive::wire;
use proto_archive::wire::AnomalyKind;
use proto_archive::wire::anomaly_state::State;
use proto_archive::wire::preservation_client::PreservationClient;
use proto_archive::wire::scrub_request::Order;
use proto_archive::wire::scrub_state::Activity;
use tonic::Code;

use super::visits::{name, noise, store};
use super::world::{Cluster, LONG, REPOSITORY, eventually, flip, on_a_cluster};

async fn anomalies(cluster: &Cluster) -> Vec<wire::AnomalyState> {
    let mut officer = PreservationClient::new(cluster.channel("officer/ole"));
    let request = wire::AnomaliesRequest {
        all: true,
        file: String::new(),
    };
    let mut pages = officer.anomalies(request).await.unwrap().into_inner();
    let mut anomalies = Vec::new();
    while let Some(page) = pages.message().await.unwrap() {
        anomalies.extend(page.anomalies);
    }
    anomalies
}

/// Restarts the repository with these settings.
async fn restart(cluster: &mut Cluster, settings: &str) {
    cluster.stop(REPOSITORY).await;
    settings.clone_into(&mut cluster.repository_settings);
    cluster.start(REPOSITORY).await;
}

/// Fails if files that cannot be confirmed keep others waiting. Their node is silent, so that nobody can look at them a
/// second time; they come first by name, as many as are done at once.
#[test]
fn unconfirmable_files_keep_no_others_waiting() {
    on_a_cluster(async |cluster: &mut Cluster| {
        cluster.add_replica("four");
        cluster.start("monitor-four").await;
        cluster.start("bitarchive-four").await;
        restart(cluster, "").await;
        cluster.until_all_nodes_live().await;
        let bytes = noise(16 * 16384, 31);
        let gone: Vec<FileName> = (0..4).map(|n| name(&format!("a-{n}"))).collect();
        let flipped = name("z");
        for name in gone.iter().chain([&flipped]) {
            store(cluster, name, &bytes).await.unwrap();
        }
        cluster.stop("bitarchive-four").await;
        for name in &gone {
            std::fs::remove_file(cluster.copy("four", name)).unwrap();
        }
        cluster.start("bitarchive-four").await;
        restart(
            cluster,
            "[repair]\nautomatic = 'off'\n[checks]\nfiles = '2 s'\n",
        )
        .await;
        cluster.until_all_nodes_live().await;
        eventually("they are filed", LONG, async || {
            let open = anomalies(cluster).await;
            let missing = open
                .iter()
                .filter(|one| one.kind() == AnomalyKind::Missing)
                .count();
            (missing == gone.len()).then_some(()).ok_or(open)
        })
        .await;

        cluster.stop("bitarchive-four").await;
        flip(&cluster.copy("one", &flipped), 7 * GROUP_SIZE);
        restart(
            cluster,
            "[repair]\ndelay = '1 s'\nsettled = '1 s'\n[checks]\nfiles = '30 d'\nchecksums = '3 s'\n",
        )
        .await;
        eventually("the other one is repaired", LONG, async || {
            let ever = anomalies(cluster).await;
            let is_it = |one: &wire::AnomalyState| {
                one.kind() == AnomalyKind::Corrupt && one.state() == State::Closed
            };
            let is_so = ever.iter().any(is_it);
            is_so.then_some(()).ok_or(ever)
        })
        .await;
        let open = anomalies(cluster).await;
        let still = |one: &&wire::AnomalyState| {
            one.kind() == AnomalyKind::Missing && one.state() != State::Closed
        };
        assert_eq!(open.iter().filter(still).count(), gone.len(), "{open:?}");
    });
}

/// Fails if an operator can pause or throttle scrubs, or if the trail does not say which officer did.
#[test]
fn only_an_officer_orders_scrubs() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let ask = |order: Order| wire::ScrubsRequest {
            order: Some(wire::ScrubRequest {
                order: order.into(),
                ..wire::ScrubRequest::default()
            }),
            ..wire::ScrubsRequest::default()
        };
        let mut operator = PreservationClient::new(cluster.channel("operator/otto"));
        eventually("the nodes of both replicas are known", LONG, async || {
            let told = operator.clone().scrubs(ask(Order::Unspecified)).await;
            (told.unwrap().into_inner().scrubs.len() == 2).then_some(())
        })
        .await;
        for order in [Order::Pause, Order::Resume, Order::Throttle] {
            let error = operator.scrubs(ask(order)).await.unwrap_err();
            assert_eq!(error.code(), Code::PermissionDenied, "{error}");
        }
        let told = operator.scrubs(wire::ScrubsRequest::default()).await;
        let states = told.unwrap().into_inner().scrubs;
        let is_paused = |one: &wire::scrubs_response::One| {
            one.state.as_ref().unwrap().activity() == Activity::Paused
        };
        assert!(!states.iter().any(is_paused), "{states:?}");

        let mut officer = PreservationClient::new(cluster.channel("officer/ole"));
        let request = wire::ScrubsRequest {
            replica: "one".to_owned(),
            ..ask(Order::Pause)
        };
        let states = officer.scrubs(request).await.unwrap().into_inner().scrubs;
        assert!(states.iter().all(is_paused), "{states:?}");
        let request = wire::AuditRequest::default();
        let mut trail = officer.audit(request).await.unwrap().into_inner();
        let mut lines = Vec::new();
        while let Some(message) = trail.message().await.unwrap() {
            lines.extend(message.lines);
        }
        let said: Vec<_> = lines
            .iter()
            .map(|line| (line.who.as_str(), line.what.as_str()))
            .collect();
        assert_eq!(said, [("officer/ole", "scrubs of replica one: pause")]);
    });
}
