//! Uploads that do not begin.

use archive_daemon::clock::ManualClock;
use archive_model::{FileName, UploadId};
use jiff::Timestamp;

use super::*;
use crate::scripted::{ScriptedReplicas, id};

/// Fails if a monitor that answers pings and no calls holds a store without end.
#[tokio::test]
async fn monitor_that_never_places_is_given_up() {
    let scripted = ScriptedReplicas::start().await;
    scripted.script().places_nothing = true;
    let (mut transfers, _letters) = scripted.transfers();
    let hand = ManualClock::new(Timestamp::UNIX_EPOCH);
    transfers.calls.clock = hand.clock();
    let item = StoringFile {
        name: FileName::new("a.warc").unwrap(),
        upload: UploadId::new("u1").unwrap(),
        size: 7,
    };
    let replica = id("one");
    let opening = transfers.open(&replica, &item, Vec::new(), &[]);
    let (opened, ()) = tokio::join!(opening, hand.advance_sleepers(1, transfers.calls.stall));
    let Err(error) = opened else {
        panic!("it was given a place")
    };
    assert_eq!(error.kind, CallErrorKind::TimedOut, "{error}");
    assert!(error.reason.starts_with("replica one"), "{error}");
}
