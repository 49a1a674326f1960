//! The follower on a database in memory, with a feed and readings that a test makes up.

use archive_client::FeedStep;
use archive_daemon::clock::ManualClock;
use archive_formats::cdx::Capture;
use archive_model::{ChangeKind, FeedChange, FeedFile, FeedPosition, Root};
use index_captures::{MemoryPlace, OpenOptions};

use super::*;

const LIMITS: FileQueueLimits = FileQueueLimits {
    batches: 2,
    files: 10,
    bytes: 1000,
    pause: Duration::from_secs(5),
};

/// An index that a test drives, and the parts that it must not lose.
struct TestFollower {
    follower: Follower,
    clock: ManualClock,
    number: u64,
    _memory: MemoryPlace,
}

fn test_follower() -> TestFollower {
    let memory = MemoryPlace::new().unwrap();
    let opened = CaptureIndex::open_in_memory(&memory, &OpenOptions::default()).unwrap();
    let clock = ManualClock::new("2026-11-23T20:00:00Z".parse().unwrap());
    TestFollower {
        follower: Follower::new(opened.captures, LIMITS, clock.clock()),
        clock,
        number: 0,
        _memory: memory,
    }
}

fn name(text: &str) -> FileName {
    FileName::new(text).unwrap()
}

fn feed_file(text: &str, content: u8) -> FeedFile {
    FeedFile {
        name: name(text),
        size: 10,
        root: Root::from_bytes([content; 32]),
    }
}

impl TestFollower {
    fn position(&self) -> FeedPosition {
        FeedPosition {
            number: self.number,
            lineage: 0xabc,
        }
    }

    fn change(&mut self, kind: ChangeKind, file: &str, content: u8) -> FeedStep {
        self.number += 1;
        FeedStep::Change(FeedChange {
            position: self.position(),
            kind,
            file: feed_file(file, content),
        })
    }

    fn apply(&self, steps: Vec<FeedStep>) {
        let (mut reading, _) = self.follower.begin_reading().unwrap();
        assert!(self.follower.apply_changes(steps, &mut reading).unwrap());
    }

    fn list(&self, files: &[(&str, u8)]) {
        let mut steps = vec![FeedStep::Listing];
        let listed = files.iter();
        steps.extend(listed.map(|(file, content)| FeedStep::File(feed_file(file, *content))));
        steps.push(FeedStep::Listed(self.position()));
        // The steps are applied one by one, as they may come.
        let (mut reading, _) = self.follower.begin_reading().unwrap();
        for step in steps {
            assert!(
                self.follower
                    .apply_changes(vec![step], &mut reading)
                    .unwrap()
            );
        }
    }

    fn stored(&mut self, files: &[&str]) {
        let files = files.iter();
        let steps: Vec<_> = files
            .map(|file| self.change(ChangeKind::Stored, file, 1))
            .collect();
        self.apply(steps);
    }

    fn writer(&self, file: &str) -> FileWriter {
        let mut writer = self.follower.captures().begin_file(file).unwrap();
        let mut capture = Capture::new("", "20200101000000".parse().unwrap());
        capture.original = Some(format!("http://{file}.example/"));
        capture.offset = Some(0);
        writer.push_capture(&capture).unwrap();
        writer
    }

    /// Reads all that waits now, well.
    fn read_all(&self) -> Vec<String> {
        let mut read = Vec::new();
        while let Some(batch) = self.follower.next_batch().unwrap() {
            for file in &batch.files {
                let outcome = FileOutcome::Extracted(self.writer(file.name.as_str()));
                let settled = self.follower.settle_file(batch.number, &file.name, outcome);
                assert_eq!(settled.unwrap(), QueueVerdict::Indexed);
                read.push(file.name.to_string());
            }
            self.follower.end_batch(batch.number);
        }
        read
    }

    fn fail(&self, file: &str) -> QueueVerdict {
        let batch = self.follower.next_batch().unwrap().unwrap();
        assert_eq!(batch.files[0].name.as_str(), file);
        let failed = FileOutcome::Failed("damaged".to_owned(), None);
        let verdict = self.follower.settle_file(batch.number, &name(file), failed);
        self.follower.end_batch(batch.number);
        verdict.unwrap()
    }
}

/// Fails if a change is lost, read twice, or not kept with its position.
#[test]
fn changes_lead_to_captures() {
    let mut index = test_follower();
    index.stored(&["b", "a"]);
    assert_eq!(index.follower.counts().pending, 2);
    assert_eq!(
        index.follower.feed_position().unwrap(),
        Some(index.position())
    );
    assert_eq!(index.read_all(), ["a", "b"]);
    index.stored(&["a"]);
    assert_eq!(index.read_all(), Vec::<String>::new(), "reported twice");
    let withdrawn = index.change(ChangeKind::Withdrawn, "a", 1);
    index.apply(vec![withdrawn]);
    assert_eq!(index.follower.counts().captures, 1);
    let back = index.change(ChangeKind::Restored, "a", 1);
    index.apply(vec![back]);
    assert_eq!(index.follower.counts().captures, 2, "without reading again");
    assert_eq!(index.read_all(), Vec::<String>::new());
    let new = index.change(ChangeKind::NewRoot, "a", 2);
    index.apply(vec![new]);
    assert_eq!(
        index.follower.counts().captures,
        1,
        "those of other bytes go"
    );
    assert_eq!(index.read_all(), ["a"]);
}

/// Fails if captures of a file are shown that was withdrawn, or got other content, while it was read.
#[test]
fn readings_from_before_a_change_are_stale() {
    for kind in [ChangeKind::Withdrawn, ChangeKind::NewRoot] {
        let mut index = test_follower();
        index.stored(&["a"]);
        let batch = index.follower.next_batch().unwrap().unwrap();
        let writer = index.writer("a");
        let change = index.change(kind, "a", 2);
        index.apply(vec![change]);
        assert!(!index.follower.counts_for(batch.number, &name("a")));
        let outcome = FileOutcome::Extracted(writer);
        let settled = index
            .follower
            .settle_file(batch.number, &name("a"), outcome);
        assert_eq!(settled.unwrap(), QueueVerdict::Stale);
        assert_eq!(index.follower.counts().captures, 0, "{kind:?}");
        index.follower.end_batch(batch.number);
        let expected: &[&str] = match kind {
            ChangeKind::NewRoot => &["a"],
            ChangeKind::Stored | ChangeKind::Withdrawn | ChangeKind::Restored => &[],
        };
        assert_eq!(index.read_all(), expected);
    }
}

/// Fails if a listing leaves files that the archive no longer has, misses new ones, or changes those that are right.
#[test]
fn listing_makes_the_index_right() {
    let mut index = test_follower();
    index.stored(&["b", "d", "f", "h"]);
    let withdrawn = index.change(ChangeKind::Withdrawn, "h", 1);
    index.apply(vec![withdrawn]);
    index.read_all();
    index.list(&[("a", 1), ("b", 1), ("d", 2), ("g", 1)]);
    assert_eq!(index.read_all(), ["a", "d", "g"]);
    let known = index.follower.captures().list_files(None).unwrap();
    let known: Vec<_> = known.map(|entry| entry.unwrap().name).collect();
    assert_eq!(known, ["a", "b", "d", "f", "g", "h"]);
    let counts = index.follower.counts();
    assert_eq!((counts.captures, counts.withdrawn), (4, 2), "f, h");
    index.list(&[]);
    assert_eq!(index.follower.counts().captures, 0);
}

fn retry(failures: u32, reason: &str) -> QueueVerdict {
    let reason = reason.to_owned();
    QueueVerdict::Retry { failures, reason }
}

/// Fails if failures are forgotten over a restart, or a parked file cannot be tried again.
#[test]
fn failures_park_and_retry_frees() {
    let mut index = test_follower();
    index.stored(&["a"]);
    assert_eq!(index.fail("a"), retry(1, "damaged"));
    assert_eq!(index.follower.next_batch().unwrap(), None);
    // A restart: the queue is new, and the database is not.
    let captures = index.follower.captures().clone();
    index.follower = Follower::new(captures, LIMITS, index.clock.clock());
    assert_eq!(index.fail("a"), retry(2, "damaged"));
    index.clock.advance(Duration::from_secs(50));
    assert!(matches!(
        index.fail("a"),
        QueueVerdict::Parked { failures: 3, .. }
    ));
    assert_eq!(index.follower.counts().parked, 1);
    let entry = index.follower.captures().file_entry("a").unwrap().unwrap();
    let FileProgress::Parked { reason, .. } = entry.progress else {
        panic!("{entry:?}");
    };
    let (since, reason) = split_reason(&reason);
    assert_eq!((since.is_some(), reason), (true, "damaged"));
    assert_eq!(index.follower.next_batch().unwrap(), None);
    let unknown = index.follower.retry_files(&[name("a"), name("b")]).unwrap();
    assert_eq!(unknown, Err(name("b")));
    assert_eq!(index.follower.counts().parked, 1, "nothing was done");
    assert_eq!(index.follower.retry_files(&[]).unwrap(), Ok(1));
    assert_eq!(index.read_all(), ["a"]);
}

/// Fails if a file is parked because its nodes were down, or the reason for its wait is not reported.
#[test]
fn outage_of_nodes_parks_no_file() {
    let mut index = test_follower();
    index.stored(&["a"]);
    for _ in 0..5 {
        let batch = index.follower.next_batch().unwrap().unwrap();
        let unread = FileOutcome::Unread("its nodes are down".to_owned());
        let verdict = index.follower.settle_file(batch.number, &name("a"), unread);
        assert_eq!(verdict.unwrap(), retry(0, "its nodes are down"));
        index.follower.end_batch(batch.number);
        assert_eq!(index.follower.next_batch().unwrap(), None);
        index.clock.advance(index.follower.next_turn().unwrap());
    }
    let entry = index.follower.captures().file_entry("a").unwrap().unwrap();
    let waits = FileProgress::Pending {
        attempts: 0,
        reason: Some("its nodes are down".to_owned()),
    };
    assert_eq!(entry.progress, waits);
    assert_eq!(index.read_all(), ["a"]);
}

/// Fails if a feed that was begun before everything was forgotten continues: its position would hide what is lacking.
#[test]
fn forgotten_index_begins_with_a_listing() {
    let mut index = test_follower();
    index.stored(&["a"]);
    index.read_all();
    let (mut reading, after) = index.follower.begin_reading().unwrap();
    assert!(after.is_some());
    assert_eq!(index.follower.forget_files().unwrap(), 1);
    let late = index.change(ChangeKind::Stored, "b", 1);
    assert!(
        !index
            .follower
            .apply_changes(vec![late], &mut reading)
            .unwrap()
    );
    assert_eq!(index.follower.feed_position().unwrap(), None);
    assert_eq!(index.read_all(), Vec::<String>::new());
    index.list(&[("a", 1), ("b", 1)]);
    assert_eq!(index.read_all(), ["a", "b"]);
    assert_eq!(
        index.follower.feed_position().unwrap(),
        Some(index.position())
    );
}
