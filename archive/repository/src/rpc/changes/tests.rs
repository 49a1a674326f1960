//! Tests of the feed as followers receive it: which begin with a listing, live changes, and the cost of a slow
//! follower.

use std::collections::BTreeSet;
use std::path::Path;

use archive_daemon::clock::ManualClock;
use archive_db::Table;
use archive_ledger::admin::AdminRow;
use archive_ledger::restore::testing::row;
use archive_model::{ChangeKind, FeedChange, FileName, ReplicaState};
use tokio::sync::mpsc;
use tokio::sync::mpsc::Receiver;
use tokio::task::{JoinSet, spawn_blocking};

use super::*;

/// A follower of some admin data, and the clock that it reads.
struct TestFollower {
    messages: Receiver<Result<ChangesResponse, Status>>,
    hand: ManualClock,
    telling: JoinSet<Result<(), Status>>,
}

fn follow(admin: &Admin, after: Option<FeedPosition>) -> TestFollower {
    let hand = ManualClock::new(jiff::Timestamp::UNIX_EPOCH);
    let (answers, messages) = mpsc::channel(4);
    let follower = Follower {
        admin: admin.clone(),
        clock: hand.clock(),
        answers,
    };
    let mut telling = JoinSet::new();
    telling.spawn(async move { follower.tell(after).await });
    TestFollower {
        messages,
        hand,
        telling,
    }
}

/// The messages that a follower has read until it had caught up.
#[derive(Debug, Default, PartialEq)]
struct FeedTranscript {
    /// The files of the listing and the position behind it.
    listing: Option<(Vec<String>, FeedPosition)>,
    changes: Vec<FeedChange>,
    caught_up: Option<FeedPosition>,
}

impl FeedTranscript {
    fn names(&self) -> Vec<&str> {
        let names = self.changes.iter();
        names.map(|change| change.file.name.as_str()).collect()
    }
}

impl TestFollower {
    async fn next(&mut self) -> Step {
        let message = self.messages.recv().await.unwrap();
        message.unwrap().step.unwrap()
    }

    async fn until_caught_up(&mut self) -> FeedTranscript {
        let mut heard = FeedTranscript::default();
        let mut names = Vec::new();
        loop {
            match self.next().await {
                Step::Files(page) => {
                    assert!(page.files.len() <= ENTRIES);
                    names.extend(page.files.into_iter().map(|file| file.name));
                }
                Step::Listed(end) => {
                    assert_eq!(end.count, names.len() as u64);
                    let position = end.position.unwrap().into();
                    heard.listing = Some((std::mem::take(&mut names), position));
                }
                Step::Changes(page) => {
                    assert!(page.changes.len() <= ENTRIES);
                    let changes = page.changes.into_iter();
                    heard
                        .changes
                        .extend(changes.map(|change| FeedChange::try_from(change).unwrap()));
                }
                Step::CaughtUp(position) => {
                    heard.caught_up = Some(position.into());
                    return heard;
                }
            }
        }
    }
}

fn put(admin: &Admin, rows: &[AdminRow]) {
    let mut changes = admin.begin_changes();
    for row in rows {
        admin.put_row(&mut changes, row).unwrap();
    }
    admin.commit_changes(changes).unwrap();
}

fn withdrawn(mut row: AdminRow) -> AdminRow {
    for copy in row.record.replicas.values_mut() {
        copy.state = ReplicaState::Withdrawn("r-1".to_owned());
    }
    row
}

fn feed_position(admin: &Admin) -> FeedPosition {
    *admin.follow_feed().borrow()
}

fn open(directory: &Path) -> Admin {
    Admin::init(directory).unwrap()
}

/// Fails if a follower without a position misses a file, receives a withdrawn one, or misses live changes.
#[tokio::test]
async fn newcomer_hears_listing_then_changes() {
    let directory = tempfile::tempdir().unwrap();
    let admin = open(directory.path());
    put(&admin, &[row("c", 1), row("a", 2), row("b", 3)]);
    put(&admin, &[withdrawn(row("b", 3))]);
    let begun = feed_position(&admin);
    let mut following = follow(&admin, None);
    let heard = following.until_caught_up().await;
    let listed = vec!["a".to_owned(), "c".to_owned()];
    assert_eq!(heard.listing, Some((listed, begun)));
    assert_eq!((heard.names(), heard.caught_up), (vec![], Some(begun)));

    put(&admin, &[row("d", 4)]);
    let heard = following.until_caught_up().await;
    assert_eq!((heard.listing.as_ref(), heard.names()), (None, vec!["d"]));
    assert_eq!(heard.caught_up, Some(feed_position(&admin)));
    put(&admin, &[row("b", 3)]);
    let heard = following.until_caught_up().await;
    assert_eq!(heard.changes[0].kind, ChangeKind::Restored);
    assert_eq!(heard.changes[0].position, feed_position(&admin));
}

/// Fails if a follower that comes back receives a change twice or misses one, or if one whose position is unknown gets
/// no listing.
#[tokio::test]
async fn position_decides_how_the_feed_begins() {
    let directory = tempfile::tempdir().unwrap();
    let admin = open(directory.path());
    let begin = feed_position(&admin);
    let mut positions = vec![begin];
    for name in ["a", "b", "c"] {
        put(&admin, &[row(name, 1)]);
        positions.push(feed_position(&admin));
    }
    for (rest, position) in positions.iter().enumerate() {
        let heard = follow(&admin, Some(*position)).until_caught_up().await;
        assert_eq!(heard.listing, None, "{position}");
        let expected: Vec<_> = ["a", "b", "c"].into_iter().skip(rest).collect();
        assert_eq!(heard.names(), expected, "{position}");
        assert_eq!(heard.caught_up, Some(feed_position(&admin)));
    }
    let end = feed_position(&admin);
    let future = FeedPosition {
        number: end.number + 1,
        ..end
    };
    let another = FeedPosition { lineage: 7, ..end };
    for unknown in [future, another] {
        let heard = follow(&admin, Some(unknown)).until_caught_up().await;
        let (names, position) = heard.listing.unwrap();
        assert_eq!((names.concat(), position), ("abc".to_owned(), end));
    }
}

/// Fails if an idle feed is silent for longer than promised, or an idle follower receives changes that were not made.
#[tokio::test]
async fn idle_feed_says_that_it_lives() {
    let directory = tempfile::tempdir().unwrap();
    let admin = open(directory.path());
    let mut following = follow(&admin, Some(feed_position(&admin)));
    let begin = following.until_caught_up().await;
    for _ in 0..3 {
        following.hand.advance_sleepers(1, BEAT).await;
        assert_eq!(following.until_caught_up().await, begin);
    }
}

/// Fails if what a slow follower has not read is kept for it in memory, or if it misses any of it.
#[tokio::test]
async fn slow_follower_keeps_a_few_messages() {
    const MANY: usize = 6 * ENTRIES + 1;
    let directory = tempfile::tempdir().unwrap();
    let admin = open(directory.path());
    let mut following = follow(&admin, Some(feed_position(&admin)));
    following.until_caught_up().await;
    let names: Vec<_> = (0..MANY).map(|number| format!("f-{number:05}")).collect();
    for some in names.chunks(100) {
        put(&admin, &rows(some));
    }
    assert!(following.messages.len() <= following.messages.max_capacity());
    let mut heard = Vec::new();
    let mut next = 1;
    while heard.len() < MANY {
        for change in following.until_caught_up().await.changes {
            assert_eq!(change.position.number, next);
            next += 1;
            heard.push(change.file.name.to_string());
        }
    }
    assert_eq!(heard, names);
}

/// Creates rows of many files, without signing each.
fn rows<'a>(of: impl IntoIterator<Item = &'a String>) -> Vec<AdminRow> {
    let template = row("x", 1);
    let named = of.into_iter().map(|name| {
        let mut row = template.clone();
        row.record.name = FileName::new(name).unwrap();
        row
    });
    named.collect()
}

/// Fails if a file that is stored or withdrawn while the listing is under way is in neither of the two, or stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_between_listing_and_changes() {
    let directory = tempfile::tempdir().unwrap();
    let admin = open(directory.path());
    let names = |kind: &str, count: usize| -> Vec<String> {
        (0..count)
            .map(|number| format!("{kind}-{number:05}"))
            .collect()
    };
    let first = rows(&names("m", 4 * ENTRIES));
    let before = rows(&names("a", 200));
    let behind = rows(&names("z", 200));
    put(&admin, &first);
    let mut following = follow(&admin, None);
    let deciding = admin.clone();
    let decided = spawn_blocking(move || {
        let gone = first.into_iter().step_by(20).map(withdrawn);
        for ((before, gone), behind) in before.into_iter().zip(gone).zip(behind) {
            put(&deciding, &[before]);
            put(&deciding, &[gone]);
            put(&deciding, &[behind]);
        }
    });
    let mut standing = BTreeSet::new();
    let mut end = None;
    while !standing.contains("z-00199") {
        let heard = following.until_caught_up().await;
        if let Some((names, position)) = heard.listing {
            standing = names.into_iter().collect();
            end = Some(position);
        }
        for change in heard.changes {
            assert_eq!(Some(change.position.number - 1), end.map(|end| end.number));
            end = Some(change.position);
            let name = change.file.name.to_string();
            match change.kind {
                ChangeKind::Stored => standing.insert(name),
                ChangeKind::Withdrawn => standing.remove(&name),
                ChangeKind::Restored | ChangeKind::NewRoot => panic!("{:?}", change.kind),
            };
        }
    }
    decided.await.unwrap();
    let expected: BTreeSet<_> = admin
        .list_files(None)
        .unwrap()
        .map(Result::unwrap)
        .filter(|row| matches!(FeedState::from_record(&row.record), FeedState::Standing(_)))
        .map(|row| row.record.name.to_string())
        .collect();
    assert_eq!(expected.len(), 4 * ENTRIES + 200);
    assert_eq!(standing, expected);
}

/// Fails if a change that is missing from the table is skipped silently.
#[tokio::test]
async fn lost_row_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let admin = open(directory.path());
    let begin = feed_position(&admin);
    for name in ["a", "b", "c"] {
        put(&admin, &[row(name, 1)]);
    }
    let table: Table<u64, ()> = admin.open_table("feed").unwrap();
    for lost in [2, 3] {
        let mut changes = admin.begin_changes();
        changes.batch().delete(&table, &lost).unwrap();
        admin.commit_changes(changes).unwrap();
        let mut following = follow(&admin, Some(begin));
        let ended = following
            .telling
            .join_next()
            .await
            .unwrap()
            .unwrap()
            .unwrap_err();
        assert_eq!(
            CallErrorKind::from_status(&ended),
            CallErrorKind::Storage,
            "{ended}"
        );
        while let Ok(message) = following.messages.try_recv() {
            let step = message.unwrap().step;
            assert!(!matches!(step, Some(Step::CaughtUp(_))), "{step:?}");
        }
    }
}

/// Fails if the feed is still read for a follower that has gone away.
#[tokio::test]
async fn follower_that_goes_ends_its_telling() {
    let directory = tempfile::tempdir().unwrap();
    let admin = open(directory.path());
    let mut following = follow(&admin, None);
    following.until_caught_up().await;
    drop(following.messages);
    following
        .telling
        .join_next()
        .await
        .unwrap()
        .unwrap()
        .unwrap();
}
