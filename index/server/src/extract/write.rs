//! The lines of a batch into the database, on a thread that may block, and the verdicts on its files.

use std::collections::BTreeMap;
use std::sync::Arc;

use archive_model::FileName;
use bytes::Bytes;
use index_captures::FileWriter;
use tokio::sync::mpsc;

use super::read_line;
use crate::batch_error::BatchError;
use crate::follower::{FileOutcome, Follower, content_of};
use crate::judge::{FileReport, Judgement, judge_reading};
use crate::metrics::Instruments;
use crate::queue::{BatchNumber, QueueVerdict};

/// Lines of a result; a result without its end is not complete.
pub(super) enum LineStep {
    Lines(Vec<Bytes>),
    /// The report of the job over logs on each file that has logs, and why nothing came of it.
    Logs(BTreeMap<FileName, FileReport>, Option<String>),
    End,
}

/// The writing of a batch.
pub(super) struct Extraction {
    pub(super) follower: Arc<Follower>,
    pub(super) instruments: Instruments,
    pub(super) number: BatchNumber,
    pub(super) names: Vec<FileName>,
    /// The reports of the jobs on each file.
    pub(super) reports: BTreeMap<FileName, FileReport>,
    /// The reason why nothing came of the job.
    pub(super) problem: Option<String>,
    /// Whether no other replica is tried.
    pub(super) is_last: bool,
    /// The files that no node of an earlier replica has read, and why: they may be whole there.
    pub(super) unread: BTreeMap<FileName, String>,
}

/// The files that another replica may have.
#[derive(Default)]
pub(super) struct UnsettledFiles {
    pub(super) names: Vec<FileName>,
    /// The files that no node of the replicas so far has read, and the reasons.
    pub(super) unread: BTreeMap<FileName, String>,
}

impl Extraction {
    /// Writes what comes, and settles the files. Returns those that another replica may have: nothing of them is seen.
    pub(super) fn write_captures(
        mut self,
        mut lines: mpsc::Receiver<LineStep>,
    ) -> Result<UnsettledFiles, BatchError> {
        let follower = Arc::clone(&self.follower);
        let captures = follower.captures();
        let mut writers: BTreeMap<String, FileWriter> = BTreeMap::new();
        for name in &self.names {
            if follower.counts_for(self.number, name) {
                writers.insert(name.to_string(), captures.begin_file(name.as_str())?);
            }
        }
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        loop {
            match lines.blocking_recv() {
                Some(LineStep::Lines(some)) => {
                    for line in some {
                        let line = match read_line(&line) {
                            Ok(line) => line,
                            // No file of the batch can be trusted to be whole: each is tried again alone.
                            Err(error) => {
                                self.problem.get_or_insert(error.to_string());
                                continue;
                            }
                        };
                        if let Some(writer) = writers.get_mut(&line.file)
                            && line.is_indexed()
                        {
                            writer.push_capture(&line.capture)?;
                            *counts.entry(line.file).or_default() += 1;
                        }
                    }
                }
                Some(LineStep::Logs(logs, problem)) => {
                    for (name, log) in logs {
                        if let Some(report) = self.reports.get_mut(&name) {
                            report.add_log(log, problem.as_deref());
                        }
                    }
                }
                Some(LineStep::End) => break,
                // The result was cut: nothing of it is seen.
                None => return Ok(UnsettledFiles::default()),
            }
        }
        let mut left = Vec::new();
        for name in std::mem::take(&mut self.names) {
            let Some(writer) = writers.remove(name.as_str()) else {
                continue;
            };
            let count = counts.get(name.as_str()).copied().unwrap_or(0);
            if !self.settle(&name, writer, count)? {
                left.push(name);
            }
        }
        Ok(UnsettledFiles {
            names: left,
            unread: self.unread,
        })
    }

    /// Settles a file, or returns that it is to be read in another replica.
    fn settle(
        &mut self,
        name: &FileName,
        writer: FileWriter,
        count: u64,
    ) -> Result<bool, BatchError> {
        let entry = self.follower.captures().file_entry(name.as_str())?;
        let content = entry.as_ref().and_then(content_of);
        let expected = content.map(|content| content.root);
        let report = self.reports.get(name).cloned().unwrap_or_default();
        let judgement = match &self.problem {
            Some(problem) => Judgement::Damaged(problem.clone()),
            None => judge_reading(name.as_str(), expected, &report, count),
        };
        let outcome = match judgement {
            Judgement::Extracted { defects } => {
                self.instruments.defects.inc_by(defects);
                FileOutcome::Extracted(writer)
            }
            Judgement::Unread(reason) if !self.is_last => {
                self.unread.insert(name.clone(), reason);
                return Ok(false);
            }
            Judgement::Damaged(_) if !self.is_last => return Ok(false),
            Judgement::Unread(reason) => FileOutcome::Unread(reason),
            Judgement::Damaged(reason) => match self.unread.remove(name) {
                Some(elsewhere) => FileOutcome::Unread(elsewhere),
                None => failure(reason, writer, count),
            },
            Judgement::Failed(reason) => failure(reason, writer, count),
        };
        let verdict = self.follower.settle_file(self.number, name, outcome)?;
        match &verdict {
            QueueVerdict::Indexed => {
                self.instruments.files_indexed.inc();
                self.instruments.captures_indexed.inc_by(count);
            }
            QueueVerdict::Retry { failures, reason } => {
                self.instruments.files_failed.inc();
                tracing::info!(file = %name, failures, reason, "cannot index a file; trying it again");
            }
            QueueVerdict::Parked { failures, reason } => {
                self.instruments.files_failed.inc();
                tracing::warn!(
                    file = %name, failures, reason,
                    "cannot index a file; it is parked, see `holdfast index status`"
                );
            }
            QueueVerdict::Stale => {}
        }
        self.instruments.show_counts(&self.follower.counts());
        Ok(true)
    }
}

/// Returns a failure; the captures that could be read are shown if the file is parked for it.
fn failure(reason: String, writer: FileWriter, count: u64) -> FileOutcome {
    FileOutcome::Failed(reason, Some(writer).filter(|_| count > 0))
}
