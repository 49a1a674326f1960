//! The notifier with a command, by the hand of a clock.

use std::path::Path;

use tools_testing::{PATIENCE, eventually};

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
    let daemon = Daemon::new(hand.clock(), Chance::seeded_chance(1));
    (
        Notifier::start_notifier("repository kb", settings, &daemon, Arc::new(NoMemory)).unwrap(),
        hand,
        daemon,
    )
}

async fn lines(path: &Path, count: usize) -> Vec<serde_json::Value> {
    let text = eventually("messages", PATIENCE, async || {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let is_all = text.lines().count() >= count && text.ends_with('\n');
        if is_all { Ok(text) } else { Err(text) }
    })
    .await;
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Fails if an incident that passes within the delay is announced, one that lasts is announced more than once, or its
/// end is not announced.
#[tokio::test]
async fn lasting_incident_and_its_end_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("said");
    let (notifier, hand, daemon) = started(&settings(&format!("cat >> {}", path.display())));
    for number in 0..1000 {
        notifier.raise_incident("node/one-1", format!("silent {number}\n\"quoted\""));
        notifier.raise_incident("volume/v", "offline");
    }
    notifier.resolve_incident("volume/v");
    hand.advance_sleepers(1, Duration::from_mins(5)).await;
    let said = lines(&path, 1).await;
    assert_eq!(said.len(), 1);
    assert_eq!(said[0]["version"], message::VERSION);
    assert_eq!(said[0]["subject"], "repository kb: node/one-1 began");
    assert_eq!(said[0]["items"].as_array().unwrap().len(), 1);
    assert_eq!(said[0]["items"][0]["count"], 1000);
    assert_eq!(said[0]["items"][0]["text"], "silent 999\n\"quoted\"");
    notifier.resolve_incident("node/one-1");
    hand.advance_sleepers(1, Duration::from_mins(5)).await;
    let said = lines(&path, 2).await;
    assert_eq!(said[1]["items"][0]["what"], "over");
    daemon.tasks.stop_all();
    daemon.tasks.join_tasks(SOON).await.unwrap();
}

/// Fails if a message whose hook failed is lost, or is tried again only when the reminder is due.
#[tokio::test]
async fn undelivered_message_is_tried_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("said");
    let open = directory.path().join("open");
    let script = format!("test -e {} && cat >> {}", open.display(), path.display());
    let (notifier, hand, daemon) = started(&settings(&script));
    notifier.raise_incident("k", "t");
    hand.advance_sleepers(1, Duration::from_mins(5)).await;
    let command = notifier.0.as_ref().unwrap().command.as_ref().unwrap();
    eventually("a failure", PATIENCE, async || command.is_failing()).await;
    #[expect(clippy::disallowed_methods, reason = "only a mark")]
    std::fs::write(&open, "").unwrap();
    // The channel waits to try again, and the reminder is not due.
    hand.advance_sleepers(2, outbox::LONGEST_PAUSE).await;
    let said = lines(&path, 1).await;
    assert_eq!(said[0]["items"][0]["what"], "began");
    daemon.tasks.stop_all();
    daemon.tasks.join_tasks(SOON).await.unwrap();
}

/// Fails if the stop of the daemon waits for a hook that hangs.
#[tokio::test]
async fn stop_does_not_wait_for_hanging_hook() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("begun");
    let script = format!("echo 1 > {}; sleep 1000", path.display());
    let (notifier, hand, daemon) = started(&settings(&script));
    notifier.raise_incident("k", "t");
    hand.advance_sleepers(1, Duration::from_mins(5)).await;
    lines(&path, 1).await;
    daemon.tasks.stop_all();
    daemon.tasks.join_tasks(SOON).await.unwrap();
}

/// Fails if a test message whose hook failed is reported without the reason, or a notifier without channels cannot be
/// asked.
#[tokio::test]
async fn a_test_says_what_came_of_it() {
    let (notifier, _hand, daemon) = started(&settings("echo closed >&2; exit 9"));
    let outcomes = notifier.send_test().await;
    assert!(outcomes[0].failure.as_ref().unwrap().contains("closed"));
    assert_eq!(Notifier::silent_notifier().send_test().await, []);
    Notifier::silent_notifier().raise_incident("k", "t");
    daemon.tasks.stop_all();
    daemon.tasks.join_tasks(SOON).await.unwrap();
}

/// Rows that outlive a notifier, or fail.
#[derive(Debug, Default)]
struct Rows {
    rows: Mutex<BTreeMap<String, incident::IncidentRow>>,
    fails: bool,
}

impl IncidentMemory for Rows {
    fn load(&self) -> Result<Vec<(String, incident::IncidentRow)>, crate::tasks::AnyError> {
        Ok(lock(&self.rows).clone().into_iter().collect())
    }

    fn keep(
        &self,
        rows: &[(String, Option<incident::IncidentRow>)],
    ) -> Result<(), crate::tasks::AnyError> {
        if self.fails {
            return Err("no room".into());
        }
        for (key, kept) in rows {
            match kept {
                Some(kept) => drop(lock(&self.rows).insert(key.clone(), kept.clone())),
                None => drop(lock(&self.rows).remove(key)),
            }
        }
        Ok(())
    }
}

/// Fails if a restart repeats a message, also one whose hook had not ended at the stop, or if nobody is told that what
/// was wrong is over.
#[tokio::test]
async fn a_restart_repeats_nothing_and_forgets_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("said");
    let settings = settings(&format!("cat >> {}; sleep 0.3", path.display()));
    let memory = Arc::new(Rows::default());
    let hand = ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap());
    let begin = || {
        let daemon = Daemon::new(hand.clock(), Chance::seeded_chance(1));
        let memory = Arc::clone(&memory) as Arc<dyn IncidentMemory>;
        let notifier =
            Notifier::start_notifier("repository kb", &settings, &daemon, memory).unwrap();
        (notifier, daemon)
    };
    let wrong = |keys: &[&str]| {
        let wrong = keys
            .iter()
            .map(|key| ((*key).to_owned(), Problem::begun_now("t")));
        wrong.collect::<BTreeMap<_, _>>()
    };
    let (notifier, daemon) = begin();
    notifier.declare_incidents("a", &wrong(&["a/1", "a/2"]), &BTreeSet::new());
    hand.advance_sleepers(1, Duration::from_mins(5)).await;
    lines(&path, 1).await;
    daemon.tasks.stop_all();
    daemon.tasks.join_tasks(SOON).await.unwrap();
    let told = |kept: &incident::IncidentRow| kept.told.is_some();
    let told: Vec<bool> = lock(&memory.rows).values().map(told).collect();
    assert_eq!(told, [true, true]);
    // One of the problems has ended meanwhile, and one is new.
    let (notifier, daemon) = begin();
    notifier.declare_incidents("a", &wrong(&["a/2", "a/3"]), &BTreeSet::new());
    hand.advance_sleepers(1, Duration::from_mins(5)).await;
    let said = lines(&path, 2).await;
    let items = said[1]["items"].as_array().unwrap().iter();
    let items: Vec<_> = items
        .map(|item| format!("{} {}", item["key"], item["what"]))
        .collect();
    assert_eq!(items, ["\"a/1\" \"over\"", "\"a/3\" \"began\""]);
    eventually(
        "the incident that is over is forgotten",
        PATIENCE,
        async || {
            let keys: Vec<_> = lock(&memory.rows).keys().cloned().collect();
            if keys == ["a/2", "a/3"] {
                Ok(())
            } else {
                Err(keys)
            }
        },
    )
    .await;
    daemon.tasks.stop_all();
    daemon.tasks.join_tasks(SOON).await.unwrap();
}

/// Fails if an incident is not announced because its row cannot be written.
#[tokio::test]
async fn messages_are_sent_even_if_rows_fail() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("said");
    let hand = ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap());
    let daemon = Daemon::new(hand.clock(), Chance::seeded_chance(1));
    let memory = Arc::new(Rows {
        fails: true,
        ..Rows::default()
    });
    let settings = settings(&format!("cat >> {}", path.display()));
    let notifier = Notifier::start_notifier("r", &settings, &daemon, memory).unwrap();
    notifier.raise_incident("k", "t");
    let told = lines(&path, 1);
    let passing = async {
        loop {
            hand.advance_sleepers(1, Duration::from_mins(1)).await;
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        said = told => assert_eq!(said[0]["items"][0]["key"], "k"),
        () = passing => {}
    }
    daemon.tasks.stop_all();
    daemon.tasks.join_tasks(SOON).await.unwrap();
}

/// Fails if a mail server that hangs holds up the command or the stop.
#[tokio::test]
async fn ways_do_not_wait_for_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("said");
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port();
    let smtp = format!(
        "[smtp]\nserver = 'localhost'\nport = {port}\ntls = 'none'\nfrom = 'a@b.c'\nto = ['d@e.f']\n"
    );
    let smtp: NotifySettings = toml::from_str(&smtp).unwrap();
    let settings = NotifySettings {
        smtp: smtp.smtp,
        limit: crate::settings::Period::from_secs(1000),
        ..settings(&format!("cat >> {}", path.display()))
    };
    let (notifier, hand, daemon) = started(&settings);
    notifier.raise_incident("k", "t");
    hand.advance_sleepers(1, Duration::from_mins(5)).await;
    assert_eq!(lines(&path, 1).await[0]["items"][0]["what"], "began");
    daemon.tasks.stop_all();
    daemon.tasks.join_tasks(SOON).await.unwrap();
    // A test message reports the outcome of each channel.
    let settings = NotifySettings {
        limit: crate::settings::Period::from_secs(5),
        ..settings
    };
    let (notifier, _hand, daemon) = started(&settings);
    let outcomes = notifier.send_test().await;
    assert_eq!((outcomes[0].way, outcomes[0].is_taken), ("command", true));
    assert_eq!((outcomes[1].way, outcomes[1].is_taken), ("smtp", false));
    assert_eq!(outcomes[1].target, format!("localhost:{port} to d@e.f"));
    assert!(outcomes[1].failure.as_ref().unwrap().contains("after 5 s"));
    daemon.tasks.stop_all();
    daemon.tasks.join_tasks(SOON).await.unwrap();
}
