//! `audit`, `receipt` and `verify receipt`.

use archive_proof::testing::admission;
use proto_archive::wire::{AuditLineState, AuditResponse};

use crate::archive::receipt;
use crate::holdfast::Place;
use crate::world::key;

/// Fails if a missing number in the audit trail passes for a complete answer, or if `--since` is sent as another
/// moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn audit_trail_is_listed_in_order() {
    let place = Place::new().await;
    let line = |number, file: &str| AuditLineState {
        number,
        at: "2026-01-02T03:04:05Z".into(),
        who: "officer/ora".into(),
        file: file.into(),
        what: "checked".into(),
        previous: String::new(),
    };
    let audit = |lines: Vec<AuditLineState>, words: &[&str]| {
        place
            .world
            .archive
            .state()
            .keeping
            .audit
            .say([AuditResponse { lines }]);
        place.holdfast(&[&["audit", "--as", "officer"], words].concat())
    };
    let ran = audit(vec![line(7, "a"), line(8, "")], &["--since", "2026-01-01"]).expect(0);
    let expected = "7  2026-01-02T03:04:05Z  officer/ora  a  checked\n8  2026-01-02T03:04:05Z  officer/ora  -  checked\n";
    assert_eq!(ran.out, expected);
    let asked = place
        .world
        .archive
        .state()
        .keeping
        .audit
        .asked
        .pop()
        .unwrap();
    assert_eq!(asked.since, "2026-01-01T00:00:00Z");
    let ran = audit(vec![line(7, "a"), line(9, "a")], &["--json"]).expect(1);
    assert!(
        ran.err.contains("hole") && ran.json()["complete"] == false,
        "{ran:?}"
    );
    assert_eq!(audit(vec![], &["--json"]).expect(0).json()["count"], 0);
    audit(vec![], &["--since", "yesterday"]).usage();
}

/// Fails if a receipt that is asked for again is altered on its way to the file, or is saved although no trusted key
/// signed it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receipt_is_given_again_and_is_good() {
    let place = Place::new().await;
    let envelope = receipt(&admission("a", b"abc"), 2, &key(1));
    place.world.archive.state().receipt = Some(envelope.clone());
    let ran = place.holdfast(&["receipt", "a"]).expect(0);
    assert_eq!(ran.out.trim_end(), envelope);
    place.write("printed.json", ran.out.as_bytes());
    place
        .holdfast(&["verify", "receipt", "printed.json"])
        .expect(0);
    place
        .holdfast(&["receipt", "a", "--receipts", "new/dir"])
        .expect(0);
    place
        .holdfast(&["verify", "receipt", "new/dir/a.receipt.json"])
        .expect(0);
    let said = place
        .holdfast(&["receipt", "a", "../b", "--json"])
        .expect(2)
        .json();
    assert_eq!(said["receipts"][0]["receipt"], envelope);
    assert_eq!(
        said["receipts"][0]["replicas"],
        serde_json::json!(["one", "two"])
    );
    assert_eq!(said["receipts"][1]["error"]["class"], "usage");
    place.world.archive.state().receipt = Some(receipt(&admission("a", b"abc"), 2, &key(2)));
    let ran = place
        .holdfast(&["receipt", "a", "--receipts", "bad"])
        .expect(1);
    assert!(ran.err.contains("do not believe"), "{ran:?}");
    assert!(!place.has("bad/a.receipt.json"));
}
