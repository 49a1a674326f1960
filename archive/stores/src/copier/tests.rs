//! The report of a probe about a replica's answers.

use super::*;
use crate::mail::CoordinatorMessage;
use crate::scripted::{ScriptedReplicas, good, id, silent};

/// Fails if a file passes for absent where a volume that may hold it is silent, passes for perhaps there where every
/// volume answered, or silence elsewhere hides a good copy.
#[tokio::test]
async fn silent_volume_answers_probe_with_silence() {
    let scripted = ScriptedReplicas::start().await;
    let (transfers, mut messages) = scripted.transfers();
    let copier = Copier::new(transfers, scripted.assembler());
    let copy = good("one", "v-1", 7);
    let gap = silent("one", "v-2");
    for (entries, gaps, expected) in [
        (vec![], vec![], "Absent"),
        (vec![], vec![gap.clone()], "Silent"),
        (vec![copy.clone()], vec![], "Completed"),
        (vec![copy], vec![gap], "Completed"),
    ] {
        scripted.lists("one", entries);
        if let Some(found) = scripted.script().found.get_mut("one") {
            found.gaps = gaps;
        }
        let name = FileName::new("a").unwrap();
        copier.probe_replica(name, id("one"), SignedDuration::from_mins(5));
        let message = tools_testing::in_time(messages.recv());
        let Some(CoordinatorMessage::Happened { event, .. }) = message.await else {
            panic!("the probe ended without an answer")
        };
        let reported = format!("{event:?}");
        assert!(
            reported.starts_with(expected),
            "{reported} instead of {expected}"
        );
    }
}
