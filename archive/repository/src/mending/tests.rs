//! Tests of the repair that an anomaly gets, over scripted replicas.

use archive_ledger::anomalies::{Look, LookQuality};
use archive_model::{FileName, Finder};
use archive_stores::scripted::{good, id};

use super::*;
use crate::preserver::tests::{PreserverFixture, look_context};

/// Fails if a repair leaves a second good copy where it is, moves the recorded one, leaves the anomaly open, or if the
/// trail lacks what is to be done or what was done.
#[tokio::test]
async fn repaired_duplicate_keeps_the_recorded_copy() {
    let fixture = PreserverFixture::start(&["a"]).await;
    let copies = ["volume-one", "volume-2"].map(|volume| good("one", volume, 7));
    fixture.scripted.lists("one", copies.to_vec());
    let own = &fixture.own;
    let file = FileName::new("a").unwrap();
    let look = Look {
        found: vec![AnomalyKind::Duplicate(vec!["one-1".parse().unwrap()])],
        quality: LookQuality::Listing,
        by: Finder::Check,
        is_second: false,
        size: 7,
        place: None,
    };
    let found = own
        .file_look(&id("one"), &file, look, &look_context())
        .await
        .unwrap();
    for (is_dry, outcome, acts) in [
        (true, RepairOutcome::Planned, &[][..]),
        (
            false,
            RepairOutcome::Repaired,
            &["one: put aside from volume-2"],
        ),
    ] {
        let repair_context = RepairContext {
            who: "officer/olga".into(),
            why: "after a drain".to_owned(),
            is_dry,
        };
        let done = own
            .repair_file(&found.open[0], &repair_context, &|_| {})
            .await
            .unwrap();
        assert_eq!(done.outcome, outcome, "{}", done.what);
        assert_eq!(fixture.scripted.script().acts, acts);
    }
    assert_eq!(fixture.filed(&file).await, Vec::<String>::new());
    let lines = own.archive.admin.audit_rows(0).unwrap();
    let lines = lines.map(|line| line.unwrap().1.what);
    let of_repair: Vec<String> = lines
        .filter(|what| what.ends_with("; after a drain"))
        .collect();
    assert_eq!(
        of_repair,
        [
            "volume volume-2 of node one-1 of replica one to be put aside: \
             a good copy is on volume volume-one of node one-1; after a drain",
            "the surplus copy in replica one on volume volume-2 of node one-1 is in the attic there as x-1; \
             after a drain",
        ]
    );
}
