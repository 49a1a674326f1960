//! Checks, anomalies and repairs, against an archive that lies, breaks off, or is older.

use archive_client::preservation::{AnomalySelection, CheckKind, CheckOrder, RepairOrder};
use archive_client::{
    ArchiveSteps, CallFuture, ClientError, ClientLimits, ErrorClass, Keeper, Preservation,
};
use archive_model::{CheckStep, FileName, Mode, NodeSelector};
use proto_archive::wire::anomaly_state::{Finder, State};
use proto_archive::wire::check_response::{Progress, Report, Step};
use proto_archive::wire::{
    AnomaliesResponse, AnomalyCount, AnomalyKind, AnomalyState, CheckResponse, Gap,
};
use tonic::Status;

use crate::world::{ServedArchive, limits};

pub const OFFICER: &str = "officer/ora";

pub fn name(text: &str) -> FileName {
    FileName::new(text).expect("name")
}

pub fn order() -> CheckOrder {
    CheckOrder {
        kind: CheckKind::Checksums,
        names: vec![name("a")],
        matching: Some(".*".into()),
        replica: None,
        challenge: true,
    }
}

fn anomaly(file: &str, kind: AnomalyKind) -> AnomalyState {
    AnomalyState {
        id: "17".into(),
        file: file.into(),
        replica: "one".into(),
        kind: kind.into(),
        since: "2026-01-02T03:04:05Z".into(),
        state: State::Open.into(),
        found_by: Finder::Scrub.into(),
        ..AnomalyState::default()
    }
}

pub fn checked() -> Vec<CheckResponse> {
    let progress = Progress {
        replica: "one".into(),
        files: 1,
        files_total: 2,
        ..Progress::default()
    };
    let gap = Gap {
        replica: "one".into(),
        node: "n-2".into(),
        volume: String::new(),
        reason: "silent".into(),
    };
    let report = Report {
        replica: "one".into(),
        files: 2,
        intact: 1,
        withdrawn: 0,
        not_stored: 0,
        anomalies: vec![AnomalyCount {
            kind: AnomalyKind::Missing.into(),
            count: 1,
        }],
        gaps: vec![gap],
    };
    let steps = [
        Step::Progress(progress),
        Step::Anomaly(anomaly("a", AnomalyKind::Missing)),
        Step::Report(report),
    ];
    steps.map(|step| CheckResponse { step: Some(step) }).into()
}

async fn check(keeper: &Keeper) -> (Vec<CheckStep>, Result<(), ClientError>) {
    let mut found = Vec::new();
    let order = order();
    let mut steps = match keeper.check(&order).await {
        Ok(steps) => steps,
        Err(error) => return (found, Err(error)),
    };
    loop {
        match steps.next().await {
            Ok(Some(step)) => found.push(step),
            Ok(None) => return (found, Ok(())),
            Err(error) => {
                let after = steps.next().await;
                assert!(matches!(after, Ok(None)), "nothing follows an error");
                return (found, Err(error));
            }
        }
    }
}

/// Returns the error of a call, which comes in place of its first step.
async fn first_error<T>(call: CallFuture<'_, ArchiveSteps<T>>) -> Option<ClientError> {
    match call.await {
        Ok(mut steps) => steps.next().await.err(),
        Err(error) => Some(error),
    }
}

/// Fails if an anomaly, a gap or the total of a check is lost on the way, or the names and the challenge of the order
/// are not sent.
#[tokio::test]
async fn check_tells_anomalies_and_gaps() {
    let world = ServedArchive::new().await;
    let keeper = world.keeper(OFFICER);
    world.archive.state().keeping.check.say(checked());
    let (steps, end) = check(&keeper).await;
    end.unwrap();
    let [
        CheckStep::Progress(progress),
        CheckStep::Anomaly(anomaly),
        CheckStep::Report(report),
    ] = steps.as_slice()
    else {
        panic!("{steps:?}");
    };
    assert_eq!(
        (progress.files_total, progress.bytes_total),
        (Some(2), None)
    );
    assert_eq!(anomaly.file, name("a"));
    assert_eq!(
        (report.files, report.gaps[0].reason.as_str()),
        (2, "silent")
    );
    let asked = world.archive.state().keeping.check.asked.pop().unwrap();
    assert_eq!((asked.names, asked.challenge), (vec!["a".to_owned()], true));
}

/// Fails if a check that was cut gets another exit code than an archive that cannot be reached.
#[tokio::test]
async fn cut_check_counts_as_unreachable() {
    let world = ServedArchive::new().await;
    let keeper = world.keeper(OFFICER);
    let part = checked().into_iter().take(2);
    world.archive.state().keeping.check.say(part);
    let (steps, end) = check(&keeper).await;
    assert_eq!(steps.len(), 2);
    let error = end.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Unreachable, "{error}");
}

/// Fails if an archive that falls silent during a check holds the caller without end, or an answer of any size is read.
#[tokio::test]
async fn a_silent_or_huge_answer_is_given_up() {
    let world = ServedArchive::new().await;
    let short = ClientLimits {
        answer_seconds: 3,
        verify_seconds: 3,
        ..limits()
    };
    let keeper = Keeper::new(world.channel(OFFICER), short);
    {
        let mut state = world.archive.state();
        state.keeping.check.say(checked());
        state.keeping.check.then_silent = true;
    }
    let (steps, end) = check(&keeper).await;
    assert_eq!(steps.len(), 3);
    assert!(matches!(end, Err(ClientError::TimedOut(_))), "{end:?}");

    let huge = AnomaliesResponse {
        anomalies: vec![AnomalyState {
            what: "x".repeat(9 << 20),
            ..anomaly("a", AnomalyKind::Missing)
        }],
    };
    world.archive.state().keeping.anomalies.say([huge]);
    let selection = AnomalySelection::default();
    let mut steps = keeper.anomalies(&selection).await.unwrap();
    let error = steps.next().await.unwrap_err();
    assert!(matches!(error, ClientError::Untrusted(_)), "{error}");
}

/// Fails if a call that an older archive lacks is reported under the name of another call, or under none.
#[tokio::test]
async fn older_archive_names_call_it_lacks() {
    let world = ServedArchive::new().await;
    let keeper = world.keeper(OFFICER);
    let order = order();
    let selection = AnomalySelection::default();
    let all = RepairOrder::default();
    let lacks = |call: &str, error: Option<ClientError>| {
        let error = error.expect("an error");
        assert!(matches!(error, ClientError::NotOffered(_)), "{error}");
        let said = error.to_string();
        assert!(said.contains(&format!("does not offer {call};")), "{said}");
    };
    lacks("checks", first_error(keeper.check(&order)).await);
    lacks(
        "lists of anomalies",
        first_error(keeper.anomalies(&selection)).await,
    );
    lacks("repairs", first_error(keeper.repair(&all)).await);
    lacks("requests", keeper.approve("17").await.err());
    lacks("requests", keeper.requests(true).await.err());
    let operator = world.keeper("operator/opa");
    lacks("test notifications", operator.notify_test().await.err());
}

/// Fails if a role that may not check files or set the mode of a node is let in, or the refusal does not name the role
/// that may.
#[tokio::test]
async fn every_act_is_for_its_roles() {
    let world = ServedArchive::new().await;
    for (grant, act, roles) in [
        ("harvester/h-1", "check", "officer"),
        ("operator/opa", "check", "officer"),
        ("officer/ora", "node", "operator"),
    ] {
        let keeper = world.keeper(grant);
        let error = if act == "check" {
            check(&keeper).await.1.unwrap_err()
        } else {
            let node = NodeSelector {
                node: "n-1".parse().unwrap(),
                replica: None,
            };
            keeper.node(&node, Mode::ReadOnly).await.unwrap_err()
        };
        assert_eq!(error.class(), ErrorClass::Refused, "{error}");
        assert!(
            error.to_string().contains(&format!("is for {roles}")),
            "{error}"
        );
    }
}

/// Fails if a brake on a repair or an approval reaches the caller as a wrong request.
#[tokio::test]
async fn brake_is_no_wrong_request() {
    let world = ServedArchive::new().await;
    let keeper = world.keeper(OFFICER);
    let brake = || Status::failed_precondition("31 files are more than 20 a day");
    {
        let mut state = world.archive.state();
        state.keeping.repair.fail([], brake());
        state.keeping.approve.fail([], brake());
    }
    let all = RepairOrder::default();
    for error in [
        first_error(keeper.repair(&all)).await,
        keeper.approve("17").await.err(),
    ] {
        let error = error.expect("an error");
        assert!(matches!(error, ClientError::Precondition(_)), "{error}");
    }
}
