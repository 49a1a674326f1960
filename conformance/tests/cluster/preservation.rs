//! The archive as officers see it: damage is found where it is, repaired from what is good, and never invented out of
//! silence.

mod automatic;
mod gone;
mod strangers;
mod told;

use archive_client::FileRange;
use archive_model::{AnomalyClass, FileName, GROUP_SIZE};
use proto_archive::wire::anomaly_state::{Finder, State};
use proto_archive::wire::check_request::Kind;
use proto_archive::wire::preservation_client::PreservationClient;
use proto_archive::wire::repair_response::Outcome;
use proto_archive::{convert, wire};
use tonic::transport::Channel;
use tonic::{Code, Status};

use super::visits::{get, name, noise, store};
use super::wire::Wire;
use super::world::{
    Cluster, LONG, MONITORS, NODES, REPOSITORY, eventually, flip, on_a_cluster,
    on_a_patient_cluster,
};

const SIZE: usize = 64 * 16384 + 7;

/// The messages of one check.
#[derive(Debug, Default)]
pub(crate) struct CheckMessages {
    anomalies: Vec<wire::AnomalyState>,
    reports: Vec<wire::check_response::Report>,
}

impl CheckMessages {
    pub(crate) fn report(&self, replica: &str) -> &wire::check_response::Report {
        let mut reports = self.reports.iter();
        reports.find(|report| report.replica == replica).unwrap()
    }

    /// Returns the findings as `replica kind file`, sorted.
    pub(crate) fn found(&self) -> Vec<String> {
        let mut found: Vec<_> = self.anomalies.iter().map(said).collect();
        found.sort();
        found
    }
}

/// Returns the kind in one word.
pub(crate) fn kind(anomaly: &wire::AnomalyState) -> AnomalyClass {
    convert::anomaly_class("kind", anomaly.kind).unwrap()
}

fn outcome(step: &wire::RepairResponse) -> &'static str {
    convert::repair_outcome("outcome", step.outcome)
        .unwrap()
        .as_str()
}

fn said(anomaly: &wire::AnomalyState) -> String {
    format!("{} {} {}", anomaly.replica, kind(anomaly), anomaly.file)
}

fn officer(cluster: &Cluster) -> PreservationClient<Channel> {
    PreservationClient::new(cluster.channel("officer/ole"))
}

pub(crate) async fn check(
    cluster: &Cluster,
    request: wire::CheckRequest,
) -> Result<CheckMessages, Status> {
    let mut steps = officer(cluster).check(request).await?.into_inner();
    let mut checked = CheckMessages::default();
    while let Some(message) = steps.message().await? {
        match message.step.unwrap() {
            wire::check_response::Step::Progress(_) => {}
            wire::check_response::Step::Anomaly(anomaly) => checked.anomalies.push(anomaly),
            wire::check_response::Step::Report(report) => checked.reports.push(report),
        }
    }
    Ok(checked)
}

pub(crate) fn of(kind: Kind) -> wire::CheckRequest {
    wire::CheckRequest {
        kind: kind.into(),
        ..wire::CheckRequest::default()
    }
}

pub(crate) async fn anomalies(cluster: &Cluster, all: bool) -> Vec<wire::AnomalyState> {
    let file = String::new();
    let request = wire::AnomaliesRequest { all, file };
    let mut pages = officer(cluster)
        .anomalies(request)
        .await
        .unwrap()
        .into_inner();
    let mut anomalies = Vec::new();
    while let Some(page) = pages.message().await.unwrap() {
        anomalies.extend(page.anomalies);
    }
    anomalies
}

pub(crate) async fn repair(
    cluster: &Cluster,
    request: wire::RepairRequest,
) -> Result<Vec<wire::RepairResponse>, Status> {
    let mut steps = officer(cluster).repair(request).await?.into_inner();
    let mut said = Vec::new();
    while let Some(step) = steps.message().await? {
        if step.outcome() != Outcome::Progress {
            said.push(step);
        }
    }
    Ok(said)
}

/// Checks a file and repairs it: what came of it.
pub(super) async fn mend(cluster: &Cluster, name: &FileName) -> Vec<&'static str> {
    let names = vec![name.to_string()];
    let request = wire::CheckRequest {
        names: names.clone(),
        ..of(Kind::Checksums)
    };
    assert_eq!(check(cluster, request).await.unwrap().anomalies.len(), 1);
    let request = wire::RepairRequest {
        names,
        reason: "a test".to_owned(),
        ..wire::RepairRequest::default()
    };
    let steps = repair(cluster, request).await.unwrap();
    outcomes(&steps)
}

pub(crate) fn everything() -> wire::RepairRequest {
    wire::RepairRequest {
        all: true,
        reason: "a test".to_owned(),
        ..wire::RepairRequest::default()
    }
}

pub(crate) fn outcomes(steps: &[wire::RepairResponse]) -> Vec<&'static str> {
    steps.iter().map(outcome).collect()
}

async fn assert_reads(cluster: &Cluster, name: &FileName, bytes: &[u8], replica: &str) {
    let wanted = FileRange {
        replica: Some(replica.parse().unwrap()),
        ..FileRange::whole_file(name.clone())
    };
    let (read, end) = get(cluster, &wanted).await;
    end.unwrap();
    assert!(read == bytes, "{name} in {replica}");
}

/// Takes a copy away behind the node's back, and lets the node notice.
async fn take_away(cluster: &mut Cluster, node: usize, replica: &str, name: &FileName) {
    cluster.stop(NODES[node]).await;
    std::fs::remove_file(cluster.copy(replica, name)).unwrap();
    cluster.start(NODES[node]).await;
    cluster.until_all_nodes_live().await;
}

/// Fails if the files of a silent node are filed as missing, or if a file that is missing stays so after a repair was
/// ordered.
#[test]
fn silence_is_never_absence_and_absence_is_mended() {
    on_a_cluster(async |cluster: &mut Cluster| {
        cluster.stop(REPOSITORY).await;
        "[repair]\nautomatic = 'off'\n".clone_into(&mut cluster.repository_settings);
        cluster.start(REPOSITORY).await;
        cluster.until_all_nodes_live().await;
        let names: Vec<FileName> = (0..5).map(|n| name(&format!("f-{n}"))).collect();
        let bytes = noise(SIZE, 22);
        for name in &names {
            store(cluster, name, &bytes).await.unwrap();
        }
        let clean = check(cluster, of(Kind::Files)).await.unwrap();
        assert_eq!(clean.found(), [""; 0]);
        for replica in ["one", "two"] {
            let report = clean.report(replica);
            assert_eq!((report.files, report.intact), (5, 5), "{report:?}");
            assert_eq!(report.gaps, []);
        }

        cluster.stop(NODES[1]).await;
        let silent = check(cluster, of(Kind::Files)).await.unwrap();
        let report = silent.report("two");
        assert!(!report.gaps.is_empty(), "{report:?}");
        assert_eq!(report.intact, 0, "{report:?}");
        let kinds: Vec<_> = silent.anomalies.iter().map(kind).collect();
        assert!(
            kinds.iter().all(|kind| *kind == AnomalyClass::Unverified),
            "{kinds:?}"
        );
        assert_eq!(silent.report("one").intact, 5);

        std::fs::remove_file(cluster.copy("two", &names[3])).unwrap();
        cluster.start(NODES[1]).await;
        cluster.until_all_nodes_live().await;
        let request = wire::CheckRequest {
            r#match: "f-[0-9]".to_owned(),
            replica: "two".to_owned(),
            ..of(Kind::Files)
        };
        let missing = check(cluster, request).await.unwrap();
        assert_eq!(missing.found(), ["two missing f-3"], "{missing:?}");
        let open = anomalies(cluster, false).await;
        assert_eq!(
            open.iter().map(said).collect::<Vec<_>>(),
            ["two missing f-3"]
        );
        assert_eq!(open[0].state(), State::Open);
        // The node of the missing copy has found it, too, when it started.
        assert!(
            [Finder::Check, Finder::Scrub].contains(&open[0].found_by()),
            "{open:?}"
        );
        assert!(open[0].held.contains("holdfast repair f-3"), "{open:?}");

        let dry = wire::RepairRequest {
            dry_run: true,
            ..everything()
        };
        let planned = repair(cluster, dry).await.unwrap();
        assert_eq!(outcomes(&planned), ["planned"]);
        assert!(
            planned[0].what.contains("copy the whole file"),
            "{planned:?}"
        );
        let wrong = wire::RepairRequest {
            confirm: 7,
            ..everything()
        };
        let refused = repair(cluster, wrong).await.unwrap_err();
        assert_eq!(refused.code(), Code::FailedPrecondition);
        assert!(
            refused
                .message()
                .contains("holdfast repair --all --confirm 1"),
            "{refused}"
        );

        let done = repair(cluster, everything()).await.unwrap();
        assert_eq!(outcomes(&done), ["repaired"], "{done:?}");
        assert_reads(cluster, &names[3], &bytes, "two").await;
        assert_eq!(anomalies(cluster, false).await, []);
        let ever = anomalies(cluster, true).await;
        assert!(
            ever.iter().all(|anomaly| anomaly.state() == State::Closed),
            "{ever:?}"
        );
        let clean = check(cluster, of(Kind::Files)).await.unwrap();
        assert_eq!(clean.found(), [""; 0]);
        assert_eq!(clean.report("two").intact, 5);
        let again = repair(cluster, everything()).await.unwrap();
        assert_eq!(again, []);
    });
}

/// Fails if a check of one name looks at other files too, or if a name that the archive does not have is found to be in
/// order.
#[test]
fn single_name_can_be_checked_and_repaired() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let here = name("here");
        let there = name("there");
        let bytes = noise(SIZE, 23);
        for name in [&here, &there] {
            store(cluster, name, &bytes).await.unwrap();
        }
        take_away(cluster, 0, "one", &here).await;
        let named = |name: &str| wire::CheckRequest {
            names: vec![name.to_owned()],
            ..of(Kind::Files)
        };
        let other = check(cluster, named("there")).await.unwrap();
        assert_eq!(other.found(), [""; 0]);
        assert_eq!(other.report("one").files, 1);
        let found = check(cluster, named("here")).await.unwrap();
        assert_eq!(found.found(), ["one missing here"]);
        let unknown = check(cluster, named("nowhere")).await.unwrap_err();
        assert_eq!(unknown.code(), Code::NotFound);
        let bad = wire::CheckRequest {
            r#match: "(".to_owned(),
            ..of(Kind::Files)
        };
        let bad = check(cluster, bad).await.unwrap_err();
        assert_eq!(bad.code(), Code::InvalidArgument);

        let request = |name: &str| wire::RepairRequest {
            names: vec![name.to_owned()],
            ..wire::RepairRequest::default()
        };
        let done = repair(cluster, request("there")).await.unwrap();
        assert_eq!(outcomes(&done), ["nothing"]);
        let done = repair(cluster, request("here")).await.unwrap();
        assert_eq!(outcomes(&done), ["repaired"], "{done:?}");
        assert_reads(cluster, &here, &bytes, "one").await;
        let unknown = repair(cluster, request("nowhere")).await.unwrap_err();
        assert_eq!(unknown.code(), Code::NotFound);
    });
}

/// Fails if the repair of one flipped bit moves more than its group, or is not possible because the other copy has
/// damage elsewhere.
#[test]
fn flipped_bit_costs_only_its_group() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let name = name("a.warc.gz");
        let bytes = noise(SIZE, 24);
        store(cluster, &name, &bytes).await.unwrap();
        flip(&cluster.copy("one", &name), 5 * GROUP_SIZE + 7);
        flip(&cluster.copy("two", &name), 6 * GROUP_SIZE);
        let quick = check(cluster, of(Kind::Files)).await.unwrap();
        assert_eq!(quick.found(), [""; 0], "a catalog cannot know");
        let found = check(cluster, of(Kind::Checksums)).await.unwrap();
        let corrupt = ["one corrupt a.warc.gz", "two corrupt a.warc.gz"];
        assert_eq!(found.found(), corrupt, "{found:?}");
        let one = found
            .anomalies
            .iter()
            .find(|found| found.replica == "one")
            .unwrap();
        assert_eq!(one.groups, [wire::GroupRange { start: 5, end: 6 }]);
        assert_eq!(found.report("one").intact, 0);

        let done = repair(cluster, everything()).await.unwrap();
        assert_eq!(outcomes(&done), ["repaired", "repaired"], "{done:?}");
        for step in &done {
            assert!((1..=32 * 1024).contains(&step.bytes_moved), "{step:?}");
            assert!(!step.attic.is_empty(), "{step:?}");
        }
        for replica in ["one", "two"] {
            assert_reads(cluster, &name, &bytes, replica).await;
        }
        assert_eq!(anomalies(cluster, false).await, []);
        let clean = check(cluster, of(Kind::Checksums)).await.unwrap();
        assert_eq!((clean.found(), clean.report("two").intact), (vec![], 1));
    });
}

/// Fails if a group that is damaged in every copy is not filed as lost with its bytes, or if a repair that cannot
/// succeed writes into a copy.
#[test]
fn loss_is_located_exactly_and_changes_nothing() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let name = name("a");
        let bytes = noise(SIZE, 25);
        store(cluster, &name, &bytes).await.unwrap();
        for group in [3, 8] {
            flip(&cluster.copy("one", &name), group * GROUP_SIZE);
        }
        flip(&cluster.copy("two", &name), 8 * GROUP_SIZE);
        let found = check(cluster, of(Kind::Checksums)).await.unwrap();
        let lost = ["one corrupt a", "one lost a", "two corrupt a", "two lost a"];
        assert_eq!(found.found(), lost, "known before anybody tries a repair");
        let before = std::fs::read(cluster.copy("one", &name)).unwrap();
        let done = repair(cluster, everything()).await.unwrap();
        assert!(
            done.iter().all(|step| step.outcome() == Outcome::Lost),
            "{done:?}"
        );
        assert!(std::fs::read(cluster.copy("one", &name)).unwrap() == before);
        let open = anomalies(cluster, false).await;
        let lost: Vec<_> = open
            .iter()
            .filter(|found| kind(found) == AnomalyClass::Lost)
            .collect();
        assert_eq!(lost.len(), 2, "{open:?}");
        let range = wire::GroupRange {
            start: 8 * GROUP_SIZE,
            end: 9 * GROUP_SIZE,
        };
        assert!(lost.iter().all(|found| found.lost == [range]), "{lost:?}");

        // Another copy turns up: a bit flips back.
        flip(&cluster.copy("two", &name), 8 * GROUP_SIZE);
        let found = check(cluster, of(Kind::Checksums)).await.unwrap();
        assert_eq!(found.found(), ["one corrupt a"]);
        let done = repair(cluster, everything()).await.unwrap();
        assert_eq!(outcomes(&done), ["repaired"], "{done:?}");
        assert_eq!(anomalies(cluster, false).await, []);
        assert_reads(cluster, &name, &bytes, "one").await;
    });
}

/// Fails if a node can pass a challenge with what its catalog says, without reading its disk.
#[test]
fn a_catalog_cannot_answer_a_challenge() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let name = name("a");
        let bytes = noise(SIZE, 26);
        store(cluster, &name, &bytes).await.unwrap();
        let challenge = || wire::CheckRequest {
            challenge: true,
            ..of(Kind::Files)
        };
        let clean = check(cluster, challenge()).await.unwrap();
        assert_eq!(clean.found(), [""; 0]);
        for group in 0..65 {
            flip(&cluster.copy("two", &name), group * GROUP_SIZE);
        }
        let found = check(cluster, challenge()).await.unwrap();
        assert_eq!(found.found(), ["two corrupt a"], "{found:?}");
        assert_eq!(
            found.anomalies[0].groups,
            [wire::GroupRange { start: 0, end: 65 }]
        );
    });
}

/// Fails if a read that takes a group from another replica, since the first has it damaged, keeps that to itself.
#[test]
fn damage_that_a_read_meets_is_filed() {
    on_a_patient_cluster(async |cluster: &mut Cluster| {
        let mut heartbeats = Vec::new();
        for (node, monitor) in NODES.into_iter().zip(MONITORS) {
            let line = Wire::to(&cluster.address(monitor)).await;
            let way = (node.to_owned(), monitor.to_owned());
            cluster.detours.insert(way, line.address());
            cluster.stop(node).await;
            cluster.start(node).await;
            heartbeats.push(line);
        }
        let name = name("a");
        let bytes = noise(SIZE, 27);
        store(cluster, &name, &bytes).await.unwrap();
        // No node can say what it finds itself: all that is filed comes from the read.
        heartbeats.iter().for_each(Wire::hold);
        for (replica, offset) in [("one", 0), ("two", GROUP_SIZE)] {
            flip(&cluster.copy(replica, &name), offset);
        }
        let (read, end) = get(cluster, &FileRange::whole_file(name)).await;
        end.unwrap();
        assert!(read == bytes);
        let filed = eventually("what was met is filed", LONG, async || {
            anomalies(cluster, false).await.pop()
        })
        .await;
        let expected = (AnomalyClass::Corrupt, Finder::Read);
        assert_eq!((kind(&filed), filed.found_by()), expected, "{filed:?}");
        heartbeats.iter().for_each(Wire::release);
    });
}
