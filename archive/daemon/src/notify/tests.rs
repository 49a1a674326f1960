//! The notifier with a command, by the hand of a clock.

use std::path::Path;

use super::*;
use crate::clock::{Chance, ManualClock};

const SOON: Duration = Duration::from_secs(20);

fn settings(script: &str) -> NotifySettings {
    NotifySettings {
        command: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
        ..NotifySettings::default()
    }
}

fn started(settings: &NotifySettings) -> (Notifier, ManualClock, Daemon) {
    let hand = ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap());
    let daemon = Daemon::new(hand.clock(), Chance::seeded(1));
    (
        Notifier::start("repository kb", settings, &daemon, Arc::new(Forgetful)).unwrap(),
        hand,
        daemon,
    )
}

async fn lines(path: &Path, count: usize) -> Vec<serde_json::Value> {
    let reading = async {
        loop {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            if text.lines().count() >= count && text.ends_with('\n') {
                return text
                    .lines()
                    .map(|line| serde_json::from_str(line).unwrap())
                    .collect();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(SOON, reading)
        .await
        .expect("a message")
}

#[tokio::test]
async fn an_incident_is_told_when_it_lasts_and_when_it_is_over() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("said");
    let (notifier, hand, daemon) = started(&settings(&format!("cat >> {}", path.display())));
    for number in 0..1000 {
        notifier.raise("node/one-1", format!("silent {number}\n\"quoted\""));
        notifier.raise("volume/v", "offline");
    }
    notifier.resolve("volume/v");
    hand.sleepers(1).await;
    hand.advance(Duration::from_mins(5));
    let said = lines(&path, 1).await;
    assert_eq!(said.len(), 1);
    assert_eq!(said[0]["version"], message::VERSION);
    assert_eq!(said[0]["subject"], "repository kb: node/one-1 began");
    assert_eq!(said[0]["items"].as_array().unwrap().len(), 1);
    assert_eq!(said[0]["items"][0]["count"], 1000);
    assert_eq!(said[0]["items"][0]["text"], "silent 999\n\"quoted\"");
    notifier.resolve("node/one-1");
    hand.sleepers(1).await;
    hand.advance(Duration::from_mins(5));
    let said = lines(&path, 2).await;
    assert_eq!(said[1]["items"][0]["what"], "over");
    daemon.tasks.stop_all();
    daemon.tasks.join(SOON).await.unwrap();
}

#[tokio::test]
async fn a_message_that_did_not_get_through_is_tried_again() {
    let directory = tempfile::tempdir().unwrap();
    let (path, open) = (directory.path().join("said"), directory.path().join("open"));
    let script = format!("test -e {} && cat >> {}", open.display(), path.display());
    let (notifier, hand, daemon) = started(&settings(&script));
    notifier.raise("k", "t");
    hand.sleepers(1).await;
    hand.advance(Duration::from_mins(5));
    let failing = async {
        while !notifier
            .0
            .as_ref()
            .unwrap()
            .command
            .as_ref()
            .unwrap()
            .is_failing()
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(SOON, failing)
        .await
        .expect("a failure");
    #[expect(clippy::disallowed_methods, reason = "only a mark")]
    std::fs::write(&open, "").unwrap();
    // The way waits to try again, and the reminder is not due.
    hand.sleepers(2).await;
    hand.advance(outbox::LONGEST_PAUSE);
    let said = lines(&path, 1).await;
    assert_eq!(said[0]["items"][0]["what"], "began");
    daemon.tasks.stop_all();
    daemon.tasks.join(SOON).await.unwrap();
}

#[tokio::test]
async fn a_stop_does_not_wait_for_a_hook_that_hangs() {
    let (notifier, hand, daemon) = started(&settings("sleep 1000"));
    notifier.raise("k", "t");
    hand.sleepers(1).await;
    hand.advance(Duration::from_mins(5));
    tokio::time::sleep(Duration::from_millis(300)).await;
    daemon.tasks.stop_all();
    daemon.tasks.join(SOON).await.unwrap();
}

#[tokio::test]
async fn a_test_says_what_came_of_it() {
    let (notifier, _hand, daemon) = started(&settings("echo closed >&2; exit 9"));
    let outcomes = notifier.test().await;
    assert!(outcomes[0].failure.as_ref().unwrap().contains("closed"));
    assert_eq!(Notifier::silent().test().await, []);
    Notifier::silent().raise("k", "t");
    daemon.tasks.stop_all();
    daemon.tasks.join(SOON).await.unwrap();
}
