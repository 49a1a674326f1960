//! The queue, by every short sequence of events beside a model that is too simple to be wrong.

use super::*;

const LIMITS: FileQueueLimits = FileQueueLimits {
    batches: 2,
    files: 3,
    bytes: 100,
    pause: Duration::from_secs(10),
};

fn name(text: &str) -> FileName {
    FileName::new(text).unwrap()
}

fn file(text: &str, size: u64) -> WaitingFile {
    WaitingFile {
        name: name(text),
        size,
        failures: 0,
    }
}

fn names(batch: &FileBatch) -> Vec<&str> {
    batch.files.iter().map(|file| file.name.as_str()).collect()
}

const fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Fails if a batch has more files or bytes than it may, or a large file is never read.
#[test]
fn batches_keep_their_limits() {
    let mut queue = FileQueue::new(LIMITS);
    for (text, size) in [("d", 1), ("a", 1), ("c", 1), ("b", 1)] {
        queue.put_file(file(text, size), at(0));
    }
    queue.put_file(file("large", 5000), at(1));
    let first = queue.next_batch(at(1)).unwrap();
    assert_eq!(names(&first), ["a", "b", "c"]);
    let second = queue.next_batch(at(1)).unwrap();
    assert_eq!(names(&second), ["d"], "the large file would not fit");
    assert_eq!(queue.next_batch(at(1)), None, "two batches are enough");
    assert_eq!(queue.next_turn(at(1)), None);
    queue.end_batch(second.number, at(1));
    let third = queue.next_batch(at(1)).unwrap();
    assert_eq!(names(&third), ["d"], "it was not settled");
    assert_eq!(
        queue.settle_file(third.number, &name("d"), Attempt::Extracted, at(1)),
        QueueVerdict::Indexed
    );
    queue.end_batch(third.number, at(1));
    let fourth = queue.next_batch(at(1)).unwrap();
    assert_eq!(names(&fourth), ["large"]);
    assert_eq!(queue.count_waiting(), 0);
}

fn retry(failures: u32, reason: &str) -> QueueVerdict {
    let reason = reason.to_owned();
    QueueVerdict::Retry { failures, reason }
}

/// Fails if a file is tried again at once, more than three times, or together with others after a failure.
#[test]
fn third_failure_parks() {
    let mut queue = FileQueue::new(LIMITS);
    queue.put_file(file("bad", 1), at(0));
    queue.put_file(file("good", 1), at(0));
    let mut now = 0;
    let failed = || Attempt::Failed("why".to_owned());
    for (failures, pause) in [(1, 10), (2, 100)] {
        let batch = queue.next_batch(at(now)).unwrap();
        let verdict = queue.settle_file(batch.number, &name("bad"), failed(), at(now));
        assert_eq!(verdict, retry(failures, "why"));
        if failures == 1 {
            let good = queue.settle_file(batch.number, &name("good"), Attempt::Extracted, at(now));
            assert_eq!(good, QueueVerdict::Indexed);
        } else {
            assert_eq!(names(&batch), ["bad"]);
        }
        queue.end_batch(batch.number, at(now));
        assert_eq!(queue.next_turn(at(now)), Some(at(pause)));
        assert_eq!(queue.next_batch(at(now + pause - 1)), None);
        now += pause;
        queue.put_file(file("other", 1), at(now));
        if failures == 2 {
            continue;
        }
        queue.drop_file(&name("other"));
    }
    let batch = queue.next_batch(at(now)).unwrap();
    assert_eq!(names(&batch), ["bad"], "a file that failed is read alone");
    let verdict = queue.settle_file(batch.number, &name("bad"), failed(), at(now));
    let parked = QueueVerdict::Parked {
        failures: 3,
        reason: "why".to_owned(),
    };
    assert_eq!(verdict, parked);
    queue.end_batch(batch.number, at(now));
    assert_eq!(queue.count_waiting(), 1, "only the other one");
}

/// Fails if files wait behind one that no node reads, or it is parked, or asked for without a pause.
#[test]
fn unread_file_waits_without_failures() {
    let mut queue = FileQueue::new(LIMITS);
    queue.put_file(file("a", 1), at(0));
    for attempt in 0..7 {
        let now = at(attempt * 100);
        queue.put_file(file("good", 1), now);
        let batch = queue.next_batch(now).unwrap();
        assert_eq!(names(&batch), ["a", "good"], "{attempt}");
        let unread = Attempt::Unread("its nodes are down".to_owned());
        let verdict = queue.settle_file(batch.number, &name("a"), unread, now);
        assert_eq!(verdict, retry(0, "its nodes are down"));
        queue.settle_file(batch.number, &name("good"), Attempt::Extracted, now);
        queue.end_batch(batch.number, now);
        assert_eq!(queue.next_turn(now), Some(at(100)));
    }
}

/// An event of the exhaustive walk, about one file.
#[derive(Clone, Copy, Debug)]
enum Step {
    Put,
    Drop,
    Begin,
    Extract,
    Miss,
    Fail,
    End,
    Refill,
    Clear,
}

/// The state that a single file should be in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Model {
    waits: bool,
    failures: u32,
    /// Failures of the attempt under way, if that attempt counts.
    read: Option<u32>,
}

/// Fails if some order of events loses a file, reads it twice at once, or lets a stale attempt count.
#[test]
fn every_short_sequence_keeps_the_invariants() {
    use Step::{Begin, Clear, Drop, End, Extract, Fail, Miss, Put, Refill};
    const STEPS: [Step; 9] = [Put, Drop, Begin, Extract, Miss, Fail, End, Refill, Clear];
    const DEPTH: u32 = 6;
    for sequence in 0..STEPS.len().pow(DEPTH) {
        let mut rest = sequence;
        let mut taken = Vec::new();
        for _ in 0..DEPTH {
            taken.push(STEPS[rest % STEPS.len()]);
            rest /= STEPS.len();
        }
        walk(&taken);
    }
}

fn walk(steps: &[Step]) {
    let mut queue = FileQueue::new(LIMITS);
    let mut model = Model::default();
    let mut batch = None;
    // Far enough apart that every pause is over.
    for (step, now) in steps.iter().zip((0..).map(|n| at(n * 10_000))) {
        let context = || format!("{steps:?} at {step:?}");
        match step {
            Step::Put => {
                queue.put_file(file("a", 1), now);
                model = Model {
                    waits: true,
                    ..Model::default()
                };
            }
            Step::Refill => {
                queue.refill_file(file("a", 1), now);
                if !model.waits && model.read.is_none() {
                    model = Model {
                        waits: true,
                        ..model
                    };
                    model.failures = 0;
                }
            }
            Step::Drop => {
                queue.drop_file(&name("a"));
                model = Model::default();
            }
            Step::Clear => {
                queue.clear_files();
                model = Model::default();
            }
            Step::Begin => {
                let begun = queue.next_batch(now);
                assert_eq!(
                    begun.is_some(),
                    model.waits && batch_room(&queue, begun.as_ref()),
                    "{}",
                    context()
                );
                if let Some(begun) = begun {
                    assert_eq!(begun.files[0].failures, model.failures, "{}", context());
                    model = Model {
                        read: Some(model.failures),
                        ..Model::default()
                    };
                    batch = Some(begun.number);
                }
            }
            Step::Extract | Step::Miss | Step::Fail => {
                let Some(number) = batch else { continue };
                assert_eq!(
                    queue.counts_for(number, &name("a")),
                    model.read.is_some(),
                    "{}",
                    context()
                );
                let attempt = match step {
                    Step::Fail => Attempt::Failed(String::new()),
                    Step::Miss => Attempt::Unread(String::new()),
                    _ => Attempt::Extracted,
                };
                let verdict = queue.settle_file(number, &name("a"), attempt, now);
                let expected = match model.read {
                    None => QueueVerdict::Stale,
                    Some(_) if matches!(step, Step::Extract) => QueueVerdict::Indexed,
                    Some(failures) if matches!(step, Step::Miss) => retry(failures, ""),
                    Some(before) if before + 1 < MOST_FAILURES => retry(before + 1, ""),
                    Some(before) => QueueVerdict::Parked {
                        failures: before + 1,
                        reason: String::new(),
                    },
                };
                assert_eq!(verdict, expected, "{}", context());
                if model.read.take().is_some()
                    && let QueueVerdict::Retry { failures, .. } = verdict
                {
                    model = Model {
                        waits: true,
                        failures,
                        read: None,
                    };
                }
            }
            Step::End => {
                let Some(number) = batch.take() else { continue };
                queue.end_batch(number, now);
                if let Some(failures) = model.read.take() {
                    model = Model {
                        waits: true,
                        failures,
                        read: None,
                    };
                }
            }
        }
        assert_eq!(
            queue.count_waiting(),
            usize::from(model.waits),
            "{}",
            context()
        );
        assert_eq!(queue.turns.len(), queue.waiting.len(), "{}", context());
        assert!(queue.count_batches() <= LIMITS.batches, "{}", context());
    }
}

/// Returns whether the queue could begin another batch before it was asked.
fn batch_room(queue: &FileQueue, begun: Option<&FileBatch>) -> bool {
    queue.count_batches() - usize::from(begun.is_some()) < LIMITS.batches
}
