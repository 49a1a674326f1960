//! The recorder of a crawl: the order in which the outcome of a try is written down.
//!
//! Owns that nothing stands in the crawl log without its records, or twice, whenever the process ends: first the
//! records into the archive file, then the line into the log, then the outcome into the frontier, with the place in
//! both that it ends at. Every second, and before a file is closed, all three are synced in this order. When the
//! recorder is opened again, the files are cut behind the last outcome that all three have, and later ones are taken
//! back. One thread owns it; its calls block.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use archive_daemon::clock::{Chance, Clock};
use archive_db::DbError;
use archive_durable::{AppendFile, DiskError, directory};
use archive_formats::crawl_log::CrawlLogLine;
use harvest_policy::account::Quota;
use harvest_policy::hops::Hop;
use harvest_policy::quarantine::{Quarantine, ResponseContent};
use harvest_policy::rejections::{RejectionRule, Rejections};
use harvest_policy::status::FetchStatus;
use harvest_policy::traps::InvalidTrap;
use harvest_policy::turns::CrawlMoment;
use url::Url;

use crate::archive_files::{
    ArchiveFileError, ArchiveFileSettings, ArchiveFiles, ClosedFile, has_records,
};
use crate::capture::RecordGroup;
use crate::frontier::{
    CandidateUri, ExistingFrontier, Frontier, FrontierChanges, FrontierSettings, LeaseOutcome,
    NextUri, PrerequisiteRow, RecordedPlace, Urgency, UriLease,
};

mod damage;
mod requests;

/// The most outcomes of one batch.
pub const MOST_IN_BATCH: usize = 256;

/// The size of changes that are committed before their batch is over.
const MOST_BYTES: usize = 8 << 20;

/// The name of the crawl log.
pub const CRAWL_LOG: &str = "crawl.log";

/// The reason why a crawl cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecorderError {
    /// The frontier cannot be read or written.
    #[error("cannot use the frontier of the crawl: {0}")]
    Frontier(#[from] DbError),
    /// The archive files.
    #[error("cannot record the crawl in an archive file: {0}")]
    ArchiveFile(#[from] ArchiveFileError),
    /// The crawl log, or a directory.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A file of the crawl is not what the frontier says. Nothing was changed.
    #[error("{path}: {what}", path = path.display())]
    Damaged {
        /// The file of the crawl.
        path: PathBuf,
        /// The contradiction between the file and the frontier.
        what: String,
    },
    /// The rules by which URIs are rejected.
    #[error("cannot use the rules by which URIs are rejected: {0}")]
    Rejections(#[from] InvalidTrap),
}

/// The subject of a try.
#[derive(Clone, Debug)]
pub enum TrySubject {
    /// A URI of the frontier.
    Uri {
        /// The lease of the URI.
        lease: UriLease,
        /// The outcome of the try for the queue of the URI.
        outcome: LeaseOutcome,
    },
    /// A question to a host that goes before its URIs.
    Prerequisite {
        /// `dns:HOST`, or the URI of robots.txt.
        uri: String,
        /// The answer; `None` if there was none that is worth keeping.
        answer: Option<PrerequisiteRow>,
    },
}

/// A try that is over, with everything that is to be written of it.
#[derive(Debug)]
pub struct FinishedTry {
    /// The URI that was tried.
    pub subject: TrySubject,
    /// The records of the try; empty if there was no exchange.
    pub records: Vec<RecordGroup>,
    /// The lines of the try in the crawl log; the time of each is that of writing.
    pub lines: Vec<CrawlLogLine>,
    /// The URIs that the response led to.
    pub candidates: Vec<CandidateUri>,
    /// The content of a page, as far as it says whether its pattern makes more of itself.
    pub content: Option<(Url, ResponseContent)>,
}

/// What a batch of tries has shown of the quarantine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecorderNews {
    /// This pattern is put under quarantine.
    Held(String),
    /// The host of this page answers with the same words under many patterns: what is first found behind them is held
    /// back by this name.
    SameWords(Url, String),
}

/// The settings of a recorder.
#[derive(Debug)]
pub struct RecorderSettings {
    /// The directory of the frontier.
    pub state: PathBuf,
    /// The directory of the logs.
    pub logs: PathBuf,
    /// The archive files.
    pub files: ArchiveFileSettings,
    /// The settings of the frontier.
    pub frontier: FrontierSettings,
    /// The quarantine, without patterns.
    pub quarantine: Quarantine,
}

/// The files of a crawl, and its frontier.
#[derive(Debug)]
pub struct CrawlRecorder {
    frontier: Frontier,
    files: ArchiveFiles,
    log: AppendFile,
    log_length: u64,
    quarantine: Quarantine,
    rejections: Rejections,
    /// What people are to be told of the quarantine.
    news: Vec<RecorderNews>,
    /// The numbers of URIs that are held back, by pattern.
    held: BTreeMap<String, u64>,
    is_synced: bool,
    clock: Clock,
}

impl CrawlRecorder {
    /// Begins a crawl in its directories, or resumes it. Returns the number of outcomes that were taken back, too.
    ///
    /// # Errors
    ///
    /// [`RecorderError`] if a file or the database is damaged, or the disk refuses. [`RecorderError::is_damage`]:
    /// nothing was changed.
    pub fn open(
        settings: RecorderSettings,
        clock: Clock,
        chance: Chance,
    ) -> Result<(Self, u64), RecorderError> {
        directory::make_directory(&settings.logs)?;
        let log_path = settings.logs.join(CRAWL_LOG);
        let files = &settings.files.directory;
        let path = &log_path;
        let is_whole = |from: &RecordedPlace, to: &RecordedPlace| {
            has_records(files, from, to) && has_lines(path, from.log_length, to.log_length)
        };
        let accept =
            |found: &ExistingFrontier| damage::check_place(found, &settings.state, path, files);
        let (frontier, resume) =
            Frontier::open_accepted(&settings.state, &settings.frontier, accept, is_whole)?;
        let mut log = AppendFile::open(&log_path)?;
        log.cut(resume.place.log_length)?;
        if resume.place.log_length == 0 {
            // The name of the log is made durable, as its lines are.
            directory::sync_directory(&settings.logs)?;
        }
        let mut quarantine = settings.quarantine;
        for (is_held, pattern) in frontier.held_patterns()? {
            if is_held {
                quarantine.hold_pattern(&pattern);
            } else {
                quarantine.free_pattern(&pattern);
            }
        }
        let mut rejections = Rejections::default();
        rejections.add(frontier.list_rejections()?)?;
        let mut recorder = Self {
            frontier,
            files: ArchiveFiles::open(settings.files, &resume.place, chance)?,
            log,
            log_length: resume.place.log_length,
            quarantine,
            rejections,
            news: Vec::new(),
            held: BTreeMap::new(),
            is_synced: true,
            clock,
        };
        recorder.forget_closed_file(&resume.place)?;
        recorder.held = recorder.frontier.count_held_back()?;
        recorder.release_freed()?;
        Ok((recorder, resume.taken_back))
    }

    /// Makes durable that a file is closed whose process ended, or whose disk was full, before the frontier knew: from
    /// now on the file may be stored and deleted.
    fn forget_closed_file(&mut self, place: &RecordedPlace) -> Result<(), RecorderError> {
        let current = self.files.place_at(self.log_length);
        if place.file != current.file {
            self.frontier.sync_to(&current)?;
            self.frontier.sync_log()?;
        }
        Ok(())
    }

    /// Returns the frontier, for what is only read.
    pub const fn frontier(&self) -> &Frontier {
        &self.frontier
    }

    /// Leases the next URI.
    ///
    /// # Errors
    ///
    /// [`RecorderError::Frontier`].
    pub fn next(&mut self, now: CrawlMoment) -> Result<NextUri, RecorderError> {
        Ok(self.frontier.next(now)?)
    }

    /// Returns the first URI of each queue that a quota has retired.
    ///
    /// # Errors
    ///
    /// [`RecorderError::Frontier`].
    pub fn retired_heads(&mut self) -> Result<Vec<(UriLease, Quota)>, RecorderError> {
        Ok(self.frontier.retired_heads()?)
    }

    /// Adds URIs to the frontier, as a person asks for it: seeds.
    ///
    /// # Errors
    ///
    /// [`RecorderError::Frontier`].
    pub fn schedule_candidates(
        &mut self,
        candidates: Vec<CandidateUri>,
    ) -> Result<usize, RecorderError> {
        let mut changes = self.frontier.begin_changes();
        let new = self.add(&mut changes, candidates, None)?;
        self.frontier.commit_changes(changes)?;
        self.is_synced = false;
        Ok(new.len())
    }

    /// Adds URIs to their queues, or to those that are held back; returns the new ones. `same_words`: the page on which
    /// they were found, and the name by which links are held back that are found there first.
    fn add(
        &mut self,
        changes: &mut FrontierChanges,
        candidates: Vec<CandidateUri>,
        same_words: Option<(&Url, &str)>,
    ) -> Result<Vec<Url>, DbError> {
        let mut new = Vec::new();
        for candidate in candidates {
            let Ok(url) = Url::parse(&candidate.uri.uri) else {
                continue;
            };
            let by_words = same_words.filter(|(page, _)| leads_on(&candidate, &url, page));
            let by_words = by_words.map(|(_, name)| name.to_owned());
            if same_words.is_none() {
                self.release_found(changes, &url)?;
            }
            let is_new = match self.holding_name(&url).or(by_words) {
                Some(name) => {
                    let is_new = self.frontier.hold_back(changes, &name, candidate)?;
                    self.count_held(name, is_new);
                    is_new
                }
                None => self.frontier.schedule_uri(changes, candidate)?,
            };
            if is_new {
                new.push(url);
            }
        }
        Ok(new)
    }

    /// Puts a URI back into its queue that was held back by the words of the page on which it was found first, because
    /// another page links to it.
    fn release_found(&mut self, changes: &mut FrontierChanges, url: &Url) -> Result<(), DbError> {
        for name in self.quarantine.held_words(url) {
            if self.frontier.release_uri(changes, name, url.as_str())?
                && let Some(count) = self.held.get_mut(name)
            {
                *count = count.saturating_sub(1);
            }
        }
        Ok(())
    }

    /// Returns whether what a try has found is held back by the words of its page, so that it counts as found only once
    /// another page links to it.
    pub fn holds_links_of(&self, finished: &FinishedTry) -> bool {
        let content = finished.content.as_ref();
        content.is_some_and(|(url, content)| self.quarantine.holding_words(url, *content).is_some())
    }

    /// Returns the pattern under quarantine that holds a URI back.
    pub fn holding_pattern(&self, url: &Url) -> Option<&str> {
        self.quarantine.holding_pattern(url)
    }

    /// Returns the name under which a URI is held back: that of a rule by which a person rejects it, or its pattern
    /// under quarantine.
    fn holding_name(&self, url: &Url) -> Option<String> {
        let rule = self.rejections.covering_rule(url).map(rejected_name);
        rule.or_else(|| self.quarantine.holding_pattern(url).map(str::to_owned))
    }

    fn count_held(&mut self, name: String, is_new: bool) {
        if is_new {
            *self.held.entry(name).or_insert(0) += 1;
        }
    }

    /// Holds back a URI that was leased and whose pattern is under quarantine.
    ///
    /// # Errors
    ///
    /// [`RecorderError::Frontier`].
    pub fn hold_back(
        &mut self,
        pattern: &str,
        lease: UriLease,
        outcome: LeaseOutcome,
    ) -> Result<(), RecorderError> {
        let mut changes = self.frontier.begin_changes();
        self.frontier
            .hold_back_lease(&mut changes, pattern, &lease)?;
        let place = self.files.place_at(self.log_length);
        self.frontier
            .finish_uri(&mut changes, lease, outcome, place)?;
        self.frontier.commit_changes(changes)?;
        self.count_held(pattern.to_owned(), true);
        self.is_synced = false;
        Ok(())
    }

    /// Notes for the quarantine that a URI comes to nothing, for now.
    pub fn note_failure(&mut self, url: &Url) {
        self.quarantine.note_failure(url);
    }

    /// Lets a URI wait that was leased and cannot be fetched before a moment.
    ///
    /// # Errors
    ///
    /// [`RecorderError::Frontier`].
    pub fn defer(&mut self, lease: &UriLease, until: CrawlMoment) -> Result<(), RecorderError> {
        self.is_synced = false;
        Ok(self.frontier.defer(lease, until)?)
    }

    /// Puts URIs back into their queues whose moment has come.
    ///
    /// # Errors
    ///
    /// [`RecorderError::Frontier`].
    pub fn wake_retries(&mut self, now: CrawlMoment) -> Result<(), RecorderError> {
        Ok(self.frontier.wake_retries(now)?)
    }

    /// Returns the patterns under quarantine, each with the number of its URIs that are held back.
    pub fn quarantined_patterns(&self) -> Vec<(String, u64)> {
        let patterns = self.quarantine.held_patterns();
        let counted = patterns.map(|pattern| {
            let count = self.held.get(pattern).copied();
            (pattern.to_owned(), count.unwrap_or(0))
        });
        counted.collect()
    }

    /// Returns the rules by which people reject URIs, each with the number of URIs that it holds back.
    pub fn rejected_rules(&self) -> Vec<(String, u64)> {
        let rules = self.rejections.rules().iter();
        let counted = rules.map(|rule| {
            let count = self.held.get(&rejected_name(rule)).copied();
            (rule.to_string(), count.unwrap_or(0))
        });
        counted.collect()
    }

    /// Writes down a batch of tries. Returns the archive files that were closed meanwhile.
    ///
    /// # Errors
    ///
    /// [`RecorderError`]: the crawl has to end, and can be resumed.
    pub fn record_batch(
        &mut self,
        batch: Vec<FinishedTry>,
    ) -> Result<Vec<ClosedFile>, RecorderError> {
        let mut closed = Vec::new();
        let mut changes = self.frontier.begin_changes();
        let mut lines = Vec::new();
        for finished in batch {
            if self.files.is_full() && !finished.records.is_empty() {
                let full = std::mem::replace(&mut changes, self.frontier.begin_changes());
                self.commit(full, &mut lines)?;
                closed.extend(self.close_file()?);
            }
            self.write(finished, &mut changes, &mut lines)?;
            if changes.size() > MOST_BYTES {
                let large = std::mem::replace(&mut changes, self.frontier.begin_changes());
                self.commit(large, &mut lines)?;
            }
        }
        self.commit(changes, &mut lines)?;
        Ok(closed)
    }

    fn write(
        &mut self,
        finished: FinishedTry,
        changes: &mut FrontierChanges,
        lines: &mut Vec<u8>,
    ) -> Result<(), RecorderError> {
        let now = self.clock.now();
        for mut group in finished.records {
            self.files.append_records(&mut group, now)?;
        }
        for line in finished.lines {
            let line = CrawlLogLine { time: now, ..line };
            lines.extend_from_slice(format!("{line}\n").as_bytes());
        }
        let place = self.files.place_at(self.log_length + length(lines));
        let is_trial = matches!(&finished.subject, TrySubject::Uri { lease, .. } if lease.uri.urgency == Urgency::Trial);
        if let TrySubject::Uri { lease, outcome } = &finished.subject
            && outcome.is_final()
            && outcome.status.came_to_nothing()
            && let Ok(url) = Url::parse(&lease.uri.uri)
        {
            self.quarantine.note_failure(&url);
        }
        match finished.subject {
            TrySubject::Uri { lease, outcome } => {
                if outcome.is_final()
                    && outcome.status == FetchStatus::BLOCKED_BY_USER
                    && let Ok(url) = Url::parse(&lease.uri.uri)
                    && let Some(name) = self.holding_name(&url)
                {
                    // Until the person thinks better of it.
                    self.frontier.hold_back_lease(changes, &name, &lease)?;
                    self.count_held(name, true);
                }
                self.frontier.finish_uri(changes, lease, outcome, place)?;
            }
            TrySubject::Prerequisite { uri, answer } => {
                if let Some(answer) = answer {
                    let key = self.frontier.uri_hasher().key_of_text(&uri);
                    self.frontier.mark_seen(changes, key)?;
                    self.frontier.put_answer(changes, &uri, &answer, place)?;
                }
            }
        }
        let Some((page, content)) = finished.content else {
            self.add(changes, finished.candidates, None)?;
            return Ok(());
        };
        let same_words = self.quarantine.holding_words(&page, content);
        let same_words = same_words.map(str::to_owned);
        let same_words = same_words.as_deref().map(|name| (&page, name));
        let new = self.add(changes, finished.candidates, same_words)?;
        let finding = self
            .quarantine
            .note_response(&page, content, &new, is_trial);
        for name in finding.pattern.iter().chain(&finding.words) {
            self.frontier.put_pattern(changes, name, true)?;
        }
        self.news.extend(finding.pattern.map(RecorderNews::Held));
        let same_words = finding
            .words
            .map(|name| RecorderNews::SameWords(page, name));
        self.news.extend(same_words);
        Ok(())
    }

    fn commit(
        &mut self,
        changes: FrontierChanges,
        lines: &mut Vec<u8>,
    ) -> Result<(), RecorderError> {
        self.log.append(lines)?;
        self.log_length += length(lines);
        lines.clear();
        self.frontier.commit_changes(changes)?;
        self.is_synced = false;
        Ok(())
    }

    /// Makes durable what was written.
    ///
    /// # Errors
    ///
    /// [`RecorderError`]: nothing is known of what was written since the last sync.
    pub fn sync_files(&mut self) -> Result<(), RecorderError> {
        if self.is_synced {
            return Ok(());
        }
        self.files.sync_files()?;
        self.log.sync()?;
        self.frontier
            .sync_to(&self.files.place_at(self.log_length))?;
        self.is_synced = true;
        Ok(())
    }

    /// Closes the archive file that is open, if one is.
    ///
    /// # Errors
    ///
    /// [`RecorderError`] if it cannot be made durable, or get its final name.
    pub fn close_file(&mut self) -> Result<Option<ClosedFile>, RecorderError> {
        self.sync_files()?;
        // Nothing may be taken back any more of a file that has its final name.
        self.frontier.sync_log()?;
        let closed = self.files.close_file(self.clock.now())?;
        self.frontier
            .confirm_durable(&self.files.place_at(self.log_length))?;
        // The file may be stored and deleted from now on: a frontier that still names it would pass for damaged.
        self.frontier.sync_log()?;
        Ok(closed)
    }
}

/// Returns the name under which the URIs are held back that a rule rejects. No pattern has a space.
fn rejected_name(rule: &RejectionRule) -> String {
    format!("rejected {rule}")
}

/// Returns whether a URI may lead on from a page for ever: it is of the same host, and no part of the page.
fn leads_on(candidate: &CandidateUri, url: &Url, page: &Url) -> bool {
    let is_part = candidate.uri.hops.ends_with(Hop::Embed.letter());
    !is_part && url.host() == page.host() && url.port() == page.port()
}

fn length(bytes: &[u8]) -> u64 {
    bytes.len() as u64
}

/// Returns whether a log has whole lines between two lengths.
fn has_lines(path: &Path, from: u64, to: u64) -> bool {
    if from == to {
        return true;
    }
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        // What is read is believed to be durable.
        file.sync_all()?;
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(to.saturating_sub(from)).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let Ok(bytes) = read() else {
        return false;
    };
    let text = std::str::from_utf8(&bytes).unwrap_or_default();
    let mut lines = text.lines();
    length(&bytes) == to.saturating_sub(from)
        && text.ends_with('\n')
        && lines.all(|line| line.parse::<CrawlLogLine>().is_ok())
}

#[cfg(test)]
mod tests;
