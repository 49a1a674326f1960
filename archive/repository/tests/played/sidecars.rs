//! Tests of a restore from sidecars: nodes that answer, contradict each other, forge admissions and fail.

mod fixture;

use archive_ledger::admin::Admin;
use archive_ledger::restore::RestoreError;
use archive_model::FileName;
use archive_repository::restore::RestoreReport;

use fixture::{SidecarFixture, SidecarPages, end, foreign, gap, signed};

fn names(findings: &archive_ledger::restore::RestoreFindings) -> Vec<&str> {
    findings
        .list
        .iter()
        .map(|finding| finding.about.as_str())
        .collect()
}

fn files(fixture: &SidecarFixture) -> Vec<(String, usize)> {
    let admin = Admin::init(&fixture.data()).unwrap();
    let rows = admin.list_files(None).unwrap().map(Result::unwrap);
    rows.map(|row| (row.record.name.to_string(), row.record.donors().count()))
        .collect()
}

fn is_there(fixture: &SidecarFixture) -> bool {
    fixture.data().join("admin/CURRENT").try_exists().unwrap()
}

async fn restore(fixture: &SidecarFixture, partial: bool) -> Result<RestoreReport, RestoreError> {
    let clock = archive_daemon::Clock::system_clock();
    archive_repository::restore::from_replicas(&fixture.settings(), partial, clock).await
}

/// Fails if a file with a valid admission is not restored from the sidecars, or an unsigned one is, or is not named.
#[tokio::test(flavor = "multi_thread")]
async fn signed_files_are_restored_others_named() {
    let one: SidecarPages = vec![
        vec![("a", signed("a", 1)), ("b", signed("b", 1))],
        vec![],
        vec![
            ("c", signed("c", 1)),
            ("d", foreign("d", 1)),
            ("f", String::new()),
        ],
    ];
    let two: SidecarPages = vec![vec![
        ("a", signed("a", 1)),
        ("c", signed("c", 2)),
        ("d", signed("other", 1)),
        ("e", signed("e", 1)),
        ("f", signed("f", 1)),
    ]];
    let fixture = SidecarFixture::start(end(one, 5), end(two, 5)).await;
    let report = restore(&fixture, false).await.unwrap();
    assert!(report.written && report.silent.count == 0, "{report:?}");
    assert_eq!(names(&report.contradicting), ["c"]);
    assert_eq!(names(&report.unsigned), ["d"]);
    assert_eq!((report.files, report.incomplete), (4, 3));
    let expected = [("a", 2), ("b", 1), ("e", 1), ("f", 1)];
    assert_eq!(
        files(&fixture),
        expected.map(|(name, copies)| (name.to_owned(), copies))
    );
    let admin = Admin::init(&fixture.data()).unwrap();
    let row = admin.file(&FileName::new("a").unwrap()).unwrap().unwrap();
    assert_eq!(row.admission, Some(signed("a", 1)));
    assert_eq!(row.depositor, "harvester/h");
    for (replica, node) in [("one", "one-1"), ("two", "two-1")] {
        let nodes = admin.list_nodes(&replica.parse().unwrap()).unwrap();
        assert_eq!(nodes, [node.parse().unwrap()]);
    }
    drop(admin);
    let again = restore(&fixture, true).await.unwrap_err();
    assert!(matches!(again, RestoreError::There(_)), "{again}");
    fixture.stop().await;
}

/// Fails if admin data are restored from incomplete answers although nobody asked for a partial restore.
#[tokio::test(flavor = "multi_thread")]
async fn incomplete_answer_restores_only_on_demand() {
    let good: SidecarPages = vec![vec![("a", signed("a", 1))]];
    let more: SidecarPages = vec![vec![("a", signed("a", 1)), ("b", signed("b", 1))]];
    let unsorted: SidecarPages = vec![vec![("b", signed("b", 1)), ("a", signed("a", 1))]];
    let bad_name: SidecarPages = vec![vec![("../a", signed("a", 1))]];
    for (what, bad) in [
        ("cut", (more.clone(), None)),
        ("short", end(more.clone(), 3)),
        ("unsorted", end(unsorted, 2)),
        ("gap", gap(more, 2)),
    ] {
        let fixture = SidecarFixture::start(end(good.clone(), 1), bad).await;
        let report = restore(&fixture, false).await.unwrap();
        assert!(
            !report.written && report.silent.count == 1,
            "{what}: {report:?}"
        );
        assert!(!is_there(&fixture), "{what}");
        let report = restore(&fixture, true).await.unwrap();
        assert!(
            report.written && report.silent.count == 1,
            "{what}: {report:?}"
        );
        assert!(
            files(&fixture).iter().any(|(name, _)| name == "a"),
            "{what}"
        );
        fixture.stop().await;
    }
    let fixture = SidecarFixture::start(end(good, 1), end(bad_name, 1)).await;
    let report = restore(&fixture, false).await.unwrap();
    assert!(report.written && report.unsigned.count == 1, "{report:?}");
    fixture.stop().await;
}
