//! `progress-statistics.log`: a line every 20 seconds, and a note of each state.
//!
//! Owns the log while a crawl runs. Numbers come from the progress of the crawl.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::time::{Duration, Instant};

use archive_daemon::clock::Clock;
use archive_durable::{AppendFile, DiskError};
use harvest_crawler::crawl::{CrawlEnd, CrawlProgress};
use harvest_reports::progress::{
    CrawlState, EndMessage, ProgressLine, ProgressRate, StateNote, progress_legend,
};
use harvest_reports::text::Hundredths;
use tokio::sync::watch;

/// The interval at which a line is written.
const PERIOD: Duration = Duration::from_secs(20);

/// The bytes of a log that are read at a time to find the end of its last line.
const PIECE: u64 = 64 << 10;

/// The log of the progress of a crawl.
pub(crate) struct ProgressLog {
    log: AppendFile,
    clock: Clock,
    /// The moment and the progress of the first line: a crawl that is resumed has fetched before.
    first: Option<(Instant, CrawlProgress)>,
    /// The moment and the progress of the last line.
    last: Option<(Instant, CrawlProgress)>,
}

impl ProgressLog {
    /// Opens the log, and notes that the crawl runs.
    pub(crate) fn open(path: &Path, clock: Clock) -> Result<Self, DiskError> {
        let mut log = Self::reopen(path, clock)?;
        let time = log.clock.now();
        let state = CrawlState::Running;
        // Durable with the next note: it says nothing that the start of the crawl does not.
        log.write(&StateNote { time, state }.to_string())?;
        Ok(log)
    }

    /// Opens the log. A line that a dead process has left half written is cut off.
    pub(crate) fn reopen(path: &Path, clock: Clock) -> Result<Self, DiskError> {
        let mut log = Self {
            log: AppendFile::open(path)?,
            clock,
            first: None,
            last: None,
        };
        if cut_to_whole_lines(path)? == 0 {
            log.write(&progress_legend())?;
        }
        Ok(log)
    }

    /// Writes lines until the crawl gives no more progress.
    pub(crate) async fn follow_crawl(
        &mut self,
        mut progress: watch::Receiver<CrawlProgress>,
    ) -> Result<(), DiskError> {
        let mut noted = CrawlState::Running;
        let clock = self.clock.clone();
        let mut next = clock.instant();
        loop {
            let now = clock.instant();
            if now >= next {
                let current = progress.borrow_and_update().clone();
                self.line(&current)?;
                next = now.checked_add(PERIOD).unwrap_or(now);
            }
            let wait = next.saturating_duration_since(now);
            tokio::select! {
                changed = progress.changed() => {
                    if changed.is_err() {
                        return Ok(());
                    }
                    let state = state(&progress.borrow());
                    if state != noted {
                        noted = state;
                        self.note_state(state)?;
                    }
                }
                () = clock.sleep(wait) => {}
            }
        }
    }

    fn line(&mut self, progress: &CrawlProgress) -> Result<(), DiskError> {
        let now = self.clock.instant();
        let this = (now, progress.clone());
        let first = self.first.get_or_insert_with(|| this.clone());
        let last = self.last.as_ref().unwrap_or(first);
        let rate = |value: fn(&CrawlProgress) -> u64| {
            let since = |(begin, before): &(Instant, CrawlProgress)| {
                let more = value(progress).saturating_sub(value(before));
                Hundredths::per_second(more, now.saturating_duration_since(*begin))
            };
            ProgressRate {
                current: since(last),
                average: since(first),
            }
        };
        let documents_per_second = rate(|progress| progress.fetched);
        let kilobytes_per_second = rate(|progress| progress.bytes / 1024);
        let queues = progress.queues;
        let line = ProgressLine {
            time: self.clock.now(),
            discovered: progress
                .fetched
                .saturating_add(progress.queued)
                .saturating_add(progress.failed)
                .saturating_add(progress.under_way),
            queued: progress.queued,
            downloaded: progress.fetched,
            documents_per_second,
            kilobytes_per_second,
            failures: progress.failed,
            busy_threads: progress.under_way,
            memory_kilobytes: memory("VmRSS:"),
            heap_kilobytes: memory("VmData:"),
            congestion: Hundredths::quotient(queues.wanting.into(), queues.served.into()),
            max_depth: queues.longest,
            average_depth: progress.queued.checked_div(queues.not_empty).unwrap_or(0),
        };
        self.last = Some(this);
        self.write(&line.to_string())
    }

    /// Notes a state.
    pub(crate) fn note_state(&mut self, state: CrawlState) -> Result<(), DiskError> {
        let note = StateNote {
            time: self.clock.now(),
            state,
        };
        self.write(&note.to_string())?;
        self.log.sync()
    }

    /// Writes the last line and the state in which the crawl has ended.
    pub(crate) fn end_log(
        &mut self,
        progress: &CrawlProgress,
        state: CrawlState,
    ) -> Result<(), DiskError> {
        self.line(progress)?;
        self.note_state(state)
    }

    fn write(&mut self, line: &str) -> Result<(), DiskError> {
        self.log.append(format!("{line}\n").as_bytes())
    }
}

/// Returns the state that a progress shows.
const fn state(progress: &CrawlProgress) -> CrawlState {
    match (
        progress.is_paused || progress.lacks_space,
        progress.under_way,
    ) {
        (false, _) => CrawlState::Running,
        (true, 0) => CrawlState::Paused,
        (true, _) => CrawlState::Waiting,
    }
}

/// Returns the memory of this process in kilobytes, by its name in `/proc`; 0 where it is not known.
fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_ascii_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Cuts a log behind its last whole line. Returns its length then.
pub(crate) fn cut_to_whole_lines(path: &Path) -> Result<u64, DiskError> {
    let failed = |error| DiskError::new("read", path, error);
    let mut file = File::open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    let mut end = length;
    while end > 0 {
        let begin = end.saturating_sub(PIECE);
        let mut piece = Vec::new();
        file.seek(SeekFrom::Start(begin)).map_err(failed)?;
        let mut part = (&file).take(end.saturating_sub(begin));
        part.read_to_end(&mut piece).map_err(failed)?;
        if let Some(at) = piece.iter().rposition(|byte| *byte == b'\n') {
            end = begin + at as u64 + 1;
            break;
        }
        end = begin;
    }
    if end < length {
        AppendFile::open(path)?.cut(end)?;
    }
    Ok(end)
}

/// Returns the words of the end of a crawl; `None` of one that is to be resumed.
pub(crate) const fn end_message(end: CrawlEnd) -> Option<EndMessage> {
    match end {
        CrawlEnd::Finished => Some(EndMessage::Finished),
        // NetarchiveSuite ends a crawl that does nothing more, as an operator does: its harvest is unfinished.
        CrawlEnd::Terminated | CrawlEnd::Idle => Some(EndMessage::EndedByOperator),
        CrawlEnd::TimeLimit => Some(EndMessage::TimeLimit),
        CrawlEnd::DataLimit => Some(EndMessage::DataLimit),
        CrawlEnd::ObjectLimit => Some(EndMessage::DocumentLimit),
        CrawlEnd::Broken => Some(EndMessage::AbnormalExit),
        CrawlEnd::Suspended => None,
    }
}

#[cfg(test)]
mod tests;
