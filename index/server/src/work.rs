//! Background jobs: rows that no query shows are removed, what was changed is made durable, all captures are read now
//! and then, certificates are reloaded, and a file taken at random is read again and compared.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use archive_daemon::{Chance, Clock, Worker, WorkerStep, WorkerStepError};
use archive_db::DbError;
use archive_formats::cdx::Capture;
use archive_model::FileName;
use index_captures::{CaptureIndex, CheckPoint, FileProgress};
use proto_index::status::Comparison;
use tokio::sync::Notify;
use tokio::task::spawn_blocking;

use crate::board::StatusBoard;
use crate::extract::Extractor;
use crate::follower::Follower;
use crate::health::{Health, NoteError};
use crate::metrics::Instruments;

/// The number of rows that one turn of the sweep reads.
const ROWS: u64 = 100_000;

/// The pause before the next look for something to sweep or to sync.
const PAUSE: Duration = Duration::from_secs(10);

/// The most names that are looked at to take one at random.
const MOST_NAMES: usize = 1000;

/// The job that removes rows that no query shows, and makes changes durable.
pub(crate) struct TidyWorker {
    pub(crate) captures: CaptureIndex,
    pub(crate) health: Health,
}

impl Worker for TidyWorker {
    const NAME: &'static str = "tidy";

    async fn step(&mut self) -> Result<WorkerStep, WorkerStepError> {
        let captures = self.captures.clone();
        let health = self.health.clone();
        let swept = spawn_blocking(move || {
            health.note_damage(&captures)?;
            let swept = captures.sweep_rows(ROWS);
            Ok::<_, NoteError>(swept.inspect_err(|error| health.check_error(error))?)
        });
        let swept = swept.await??;
        // A query that began before the sweep may still run.
        if swept.is_complete || swept.read == 0 {
            return Ok(WorkerStep::Idle(PAUSE));
        }
        Ok(WorkerStep::Again)
    }
}

/// The number of captures that one turn of a check reads.
const CHECKED: u64 = 50_000;

/// The pause between two turns of a check, which must not slow queries down.
const CHECK_PAUSE: Duration = Duration::from_secs(1);

/// The time in which all captures are read once.
const CHECK_PERIOD: Duration = Duration::from_hours(24);

/// The job that reads all captures from time to time: damage is found before somebody asks for the captures in it.
pub(crate) struct CheckWorker {
    pub(crate) captures: CaptureIndex,
    pub(crate) health: Health,
    pub(crate) point: CheckPoint,
}

impl Worker for CheckWorker {
    const NAME: &'static str = "verify";

    async fn step(&mut self) -> Result<WorkerStep, WorkerStepError> {
        let captures = self.captures.clone();
        let health = self.health.clone();
        let mut point = self.point.clone();
        let checked = spawn_blocking(move || {
            let checked = captures.check_rows(&mut point, CHECKED);
            let is_end = checked.inspect_err(|error| health.check_error(error))?;
            Ok::<_, DbError>((is_end, point))
        });
        let (is_end, point) = checked.await??;
        self.point = point;
        Ok(WorkerStep::Idle(if is_end {
            CHECK_PERIOD
        } else {
            CHECK_PAUSE
        }))
    }
}

/// The job that reads a random file again, and compares its captures with those in the index.
pub(crate) struct CompareWorker {
    pub(crate) extractor: Extractor,
    pub(crate) follower: Arc<Follower>,
    pub(crate) board: Arc<StatusBoard>,
    pub(crate) instruments: Instruments,
    pub(crate) chance: Chance,
    pub(crate) clock: Clock,
    pub(crate) wake: Arc<Notify>,
    pub(crate) pause: Duration,
    /// Whether a pause has passed since the start: the first turn only waits.
    pub(crate) has_waited: bool,
}

impl Worker for CompareWorker {
    const NAME: &'static str = "compare";

    async fn step(&mut self) -> Result<WorkerStep, WorkerStepError> {
        if !std::mem::replace(&mut self.has_waited, true) {
            return Ok(WorkerStep::Idle(self.pause));
        }
        let random: [u8; 8] = self.chance.random_bytes()?;
        let follower = Arc::clone(&self.follower);
        let random = u64::from_le_bytes(random);
        let picked = spawn_blocking(move || pick(follower.captures(), random));
        if let Some(name) = picked.await?? {
            self.compare(&name).await?;
        }
        Ok(WorkerStep::Idle(self.pause))
    }
}

impl CompareWorker {
    async fn compare(&self, name: &FileName) -> Result<(), WorkerStepError> {
        let Some(found) = self.extractor.read_again(name).await? else {
            return Ok(());
        };
        let follower = Arc::clone(&self.follower);
        let own = name.clone();
        let compared =
            spawn_blocking(move || differences(follower.captures(), own.as_str(), &found));
        let Some((captures, differences)) = compared.await?? else {
            return Ok(());
        };
        self.board.set_comparison(Comparison {
            time: self.clock.now(),
            name: name.clone(),
            captures,
            differences,
        });
        if differences == 0 {
            self.instruments.compared_equal.inc();
            return Ok(());
        }
        self.instruments.compared_different.inc();
        tracing::warn!(
            file = %name, captures, differences,
            "the index differs from a file that was read again; the file is indexed again"
        );
        let follower = Arc::clone(&self.follower);
        let own = name.clone();
        spawn_blocking(move || follower.read_again(&own)).await??;
        self.wake.notify_one();
        Ok(())
    }
}

/// Picks an indexed file at random: one of some that follow a random name.
fn pick(captures: &CaptureIndex, random: u64) -> Result<Option<FileName>, DbError> {
    let fits = |progress: &FileProgress, is_withdrawn: bool| {
        let is_read = matches!(
            progress,
            FileProgress::Indexed | FileProgress::NothingToIndex
        );
        is_read && !is_withdrawn
    };
    let mut names = Vec::new();
    // Names begin with digits or letters, mostly: a random beginning of two characters leads anywhere.
    let letter = |byte: u64| {
        let all = b"0123456789abcdefghijklmnopqrstuvwxyz";
        char::from(all[(byte % 36) as usize])
    };
    let start: String = [letter(random), letter(random >> 8)].iter().collect();
    for after in [Some(start.as_str()), None] {
        for entry in captures.list_files(after)?.take(MOST_NAMES) {
            let entry = entry?;
            if fits(&entry.progress, entry.is_withdrawn) {
                names.push(entry.name);
            }
        }
        if !names.is_empty() {
            break;
        }
    }
    if names.is_empty() {
        return Ok(None);
    }
    let remainder = (random >> 16) % names.len() as u64;
    let at = usize::try_from(remainder).expect("a remainder is less than the number of names");
    Ok(names[at].parse().ok())
}

/// Compares captures that were read with those in the index: how many were read, and how many the index has otherwise,
/// lacks, or has too many. `None`: the file is not in the index any more.
fn differences(
    captures: &CaptureIndex,
    name: &str,
    found: &[Capture],
) -> Result<Option<(u64, u64)>, DbError> {
    let Some(entry) = captures.file_entry(name)? else {
        return Ok(None);
    };
    if entry.is_withdrawn
        || !matches!(
            entry.progress,
            FileProgress::Indexed | FileProgress::NothingToIndex
        )
    {
        return Ok(None);
    }
    let mut places = BTreeSet::new();
    let mut wrong = 0_u64;
    for (line, capture) in (0_u64..).zip(found) {
        let place = (
            capture.offset.ok_or(line),
            capture.key.clone(),
            capture.timestamp.to_string(),
        );
        places.insert(place);
        let stored = captures.find_capture(name, capture, line)?;
        if stored
            .as_ref()
            .is_none_or(|stored| !is_same(stored, capture))
        {
            wrong += 1;
        }
    }
    let read = places.len() as u64;
    let surplus = entry.captures.saturating_sub(read);
    Ok(Some((read, wrong.saturating_add(surplus))))
}

/// Returns whether the index has what was read. Its key may be of other rules, and is made from the URL.
fn is_same(stored: &Capture, read: &Capture) -> bool {
    let mut read = read.clone();
    read.key.clone_from(&stored.key);
    *stored == read
}

#[cfg(test)]
mod tests {
    use index_captures::{MemoryPlace, OpenOptions};

    use super::*;

    fn capture(offset: u64, status: u16) -> Capture {
        let mut capture = Capture::new("example,a)/", "20200101000000".parse().unwrap());
        capture.original = Some("http://a.example/".to_owned());
        capture.status = Some(status);
        capture.file = Some("a.warc".to_owned());
        capture.offset = Some(offset);
        capture
    }

    fn index(all: &[Capture]) -> CaptureIndex {
        let memory = MemoryPlace::new().unwrap();
        let opened = CaptureIndex::open_in_memory(&memory, &OpenOptions::default()).unwrap();
        let mut writer = opened.captures.begin_file("a.warc").unwrap();
        for capture in all {
            writer.push_capture(capture).unwrap();
        }
        writer.complete_file(None).unwrap();
        opened.captures
    }

    /// Fails if a capture that is changed, lacking or surplus in the index passes for right.
    #[test]
    fn differences_are_counted() {
        let read = [capture(0, 200), capture(7, 404)];
        let check = |indexed: &[Capture], expected| {
            let index = index(indexed);
            assert_eq!(differences(&index, "a.warc", &read).unwrap(), expected);
            assert_eq!(differences(&index, "b.warc", &read).unwrap(), None);
        };
        check(&read, Some((2, 0)));
        check(&[capture(0, 200)], Some((2, 1)));
        check(&[capture(0, 200), capture(7, 200)], Some((2, 1)));
        let surplus = [capture(0, 200), capture(7, 404), capture(9, 200)];
        check(&surplus, Some((2, 1)));
        check(&[], Some((2, 2)));
    }

    /// Fails if captures that only a log names are not compared, or always differ.
    #[test]
    fn captures_of_logs_are_compared_by_their_order() {
        let told_of = |offset| {
            let mut capture = capture(0, 200);
            capture.offset = None;
            capture.original_record = Some(archive_formats::cdx::OriginalRecord {
                length: None,
                offset: Some(offset),
                file: Some("old.arc".to_owned()),
            });
            capture
        };
        let read = [capture(0, 200), told_of(7), told_of(9)];
        let check = |indexed: &[Capture], expected| {
            let found = differences(&index(indexed), "a.warc", &read).unwrap();
            assert_eq!(found, Some((3, expected)));
        };
        check(&read, 0);
        check(&[capture(0, 200), told_of(7), told_of(8)], 1);
        check(&[capture(0, 200), told_of(7)], 1);
        check(&[capture(0, 200), told_of(7), told_of(9), told_of(10)], 1);
    }

    /// Fails if no file is ever taken, or one that is not in the index.
    #[test]
    fn picked_file_is_indexed() {
        let index = index(&[capture(0, 200)]);
        let mut update = index.update_files();
        update.set_progress("b.warc", FileProgress::PENDING);
        update.commit().unwrap();
        for random in [0, 1, 0x0a0b_0c0d, u64::MAX] {
            let picked = pick(&index, random).unwrap().unwrap();
            assert_eq!(picked.as_str(), "a.warc", "{random:x}");
        }
    }
}
