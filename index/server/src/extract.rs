//! One batch of files: a job where their bytes are, its lines into the database, and a verdict on each file.
//!
//! Owns the asking and the reading of what a job left. What a failure means is decided in `judge`, what becomes of a file
//! in the queue. Captures are seen once the file that they are of is settled; of a batch that breaks off, nothing is seen.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use archive_client::batch::Left;
use archive_client::batch::{self, JobFailure, JobState, JobStatus, Lines, Submission};
use archive_client::{Batch, ClientError, ClientLimits};
use archive_daemon::Chance;
use archive_db::DbError;
use archive_formats::cdx::{Capture, Format, OriginalRecord};
use archive_model::{FileName, JobId, NameList, Root};
use bytes::Bytes;
use index_captures::FileWriter;
use serde::Deserialize;
use tokio::sync::mpsc;

use crate::decide::{is_arc_name, is_metadata};
use crate::follower::{FileOutcome, Follower, content_of};
use crate::judge::{FileReport, Judgement, judge};
use crate::metrics::Instruments;
use crate::queue::{BatchNumber, FileBatch, Verdict};

/// How long the archive keeps what a job left: long enough to read it, however busy this end is.
const KEEP: Duration = Duration::from_hours(1);

/// Lines on their way from the network to the database.
const LINES: usize = 64;

/// The most lines that are handed over at once.
const LINES_TOGETHER: usize = 512;

/// Why a batch was not read to its end. Its files wait again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BatchError {
    /// The archive does not answer, or refuses.
    #[error("the files to be indexed cannot be read: {0}")]
    Archive(#[from] ClientError),
    /// The database fails: the part ends.
    #[error(transparent)]
    Database(#[from] DbError),
    /// There is no randomness, or no thread.
    #[error("a job cannot be begun: {0}")]
    System(String),
}

/// The means of reading files.
#[derive(Clone)]
pub(crate) struct Extractor {
    pub(crate) batch: Arc<dyn Batch>,
    pub(crate) limits: ClientLimits,
    pub(crate) chance: Chance,
    pub(crate) follower: Arc<Follower>,
    pub(crate) instruments: Instruments,
}

/// The outcome of an ended job, without the lines of its result.
struct EndedJob {
    id: JobId,
    reports: BTreeMap<FileName, FileReport>,
    /// Why it has no result.
    problem: Option<String>,
}

/// A line of the manifest of a job.
#[derive(Debug, Deserialize)]
struct ManifestLine {
    file: FileName,
    root: Root,
}

impl Extractor {
    /// Reads a batch, and settles its files. Those that are not settled when it fails wait again.
    pub(crate) async fn read(&self, files: FileBatch) -> Result<(), BatchError> {
        let number = files.number;
        let ended = self.read_files(files).await;
        self.follower.end(number);
        ended
    }

    async fn read_files(&self, files: FileBatch) -> Result<(), BatchError> {
        let names: Vec<FileName> = files.files.iter().map(|file| file.name.clone()).collect();
        let job = self.run(EXTRACT_JOB, &names).await?;
        let mut duplicates = Vec::new();
        if job.problem.is_none() {
            let metadata = names.iter().filter(|name| is_metadata(name.as_str()));
            let metadata: Vec<FileName> = metadata.cloned().collect();
            duplicates = self.duplicates(&metadata).await?;
        }
        let lines = match job.problem {
            None => Some(batch::lines(self.batch.as_ref(), &job.id, Left::Result).await?),
            Some(_) => None,
        };
        let (sender, receiver) = mpsc::channel(LINES);
        let extraction = Extraction {
            follower: Arc::clone(&self.follower),
            instruments: self.instruments.clone(),
            number: files.number,
            names,
            job,
            duplicates,
        };
        let writing = tokio::task::spawn_blocking(move || extraction.write(receiver));
        let sent = send_lines(lines, sender).await;
        let written = writing
            .await
            .map_err(|error| BatchError::System(error.to_string()))?;
        written?;
        Ok(sent?)
    }

    /// Runs a job over files, and reads what it says of each.
    async fn run(&self, job: &str, names: &[FileName]) -> Result<EndedJob, BatchError> {
        let status = self.run_status(job, names).await?;
        self.reports(status, names).await
    }

    /// Runs a job over files to its end.
    pub(crate) async fn run_status(
        &self,
        job: &str,
        names: &[FileName],
    ) -> Result<JobStatus, BatchError> {
        let random: [u8; 8] = self
            .chance
            .bytes()
            .map_err(|error| BatchError::System(error.to_string()))?;
        let system = |error: &dyn std::fmt::Display| BatchError::System(error.to_string());
        let id = JobId::new(&format!("index-{}", hex::encode(random)))
            .map_err(|error| system(&error))?;
        let list = NameList::new(names.to_vec()).map_err(|error| system(&error))?;
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let arguments = if job == DEDUP_JOB { DEDUP } else { EXTRACT };
        let submission = Submission {
            arguments: arguments.iter().map(pair).collect(),
            names: Some(list),
            keep: Some(KEEP),
            ..Submission::built_in(id, job)
        };
        let status = batch::run(self.batch.as_ref(), &submission, self.limits).await?;
        self.instruments.jobs.inc();
        Ok(status)
    }

    async fn reports(&self, status: JobStatus, names: &[FileName]) -> Result<EndedJob, BatchError> {
        let none = FileReport::default;
        let mut reports: BTreeMap<FileName, FileReport> =
            names.iter().map(|name| (name.clone(), none())).collect();
        let mut errors = batch::lines(self.batch.as_ref(), &status.id, Left::Errors).await?;
        while let Some(line) = errors.next().await? {
            let failure = JobFailure::read(&line)?;
            if let Some(report) = reports.get_mut(&failure.file) {
                report.add(&failure.kind, failure.offset, failure.reason);
            }
        }
        let mut manifest = batch::lines(self.batch.as_ref(), &status.id, Left::Manifest).await?;
        // The first line is about the job.
        let mut is_first = true;
        while let Some(line) = manifest.next().await? {
            if std::mem::take(&mut is_first) {
                continue;
            }
            let read: ManifestLine = serde_json::from_slice(&line).map_err(|error| {
                ClientError::Untrusted(format!("a line of the manifest cannot be read: {error}"))
            })?;
            if let Some(report) = reports.get_mut(&read.file) {
                report.root = Some(read.root);
            }
        }
        let problem = match status.state {
            JobState::Done | JobState::Partial => None,
            JobState::Queued
            | JobState::Running
            | JobState::Reducing
            | JobState::Closing
            | JobState::Failed
            | JobState::Cancelled => {
                let why = status
                    .reason
                    .unwrap_or_else(|| "no reason is known".to_owned());
                Some(format!(
                    "job {} is {}: {why}",
                    status.id,
                    status.state.word()
                ))
            }
        };
        Ok(EndedJob {
            id: status.id,
            reports,
            problem,
        })
    }

    /// Finds what the logs of metadata files say of captures whose content lies in an ARC file of an earlier crawl: crawls
    /// of that time wrote no record of them.
    async fn duplicates(
        &self,
        metadata: &[FileName],
    ) -> Result<Vec<(FileName, Vec<Capture>)>, BatchError> {
        if metadata.is_empty() {
            return Ok(Vec::new());
        }
        let job = self.run(DEDUP_JOB, metadata).await?;
        if job.problem.is_some() {
            return Ok(Vec::new());
        }
        let found = self.duplicate_lines(&job.id).await?;
        if found.is_empty() {
            return Ok(Vec::new());
        }
        if let [one] = metadata {
            return Ok(vec![(one.clone(), found)]);
        }
        // A line does not say which log it is from, so that each file is asked alone.
        let mut duplicates = Vec::new();
        for name in metadata {
            let job = self.run(DEDUP_JOB, std::slice::from_ref(name)).await?;
            if job.problem.is_none() {
                let found = self.duplicate_lines(&job.id).await?;
                duplicates.push((name.clone(), found));
            }
        }
        Ok(duplicates)
    }

    async fn duplicate_lines(&self, id: &JobId) -> Result<Vec<Capture>, BatchError> {
        let mut lines = batch::lines(self.batch.as_ref(), id, Left::Result).await?;
        let mut found = Vec::new();
        while let Some(line) = lines.next().await? {
            let mut capture = read_line(&line)?;
            let is_arc = capture.file.as_deref().is_some_and(is_arc_name);
            if is_arc {
                let record = OriginalRecord {
                    length: capture.length.take(),
                    offset: capture.offset.take(),
                    file: capture.file.take(),
                };
                capture.original_record = Some(record);
                found.push(capture);
            }
        }
        Ok(found)
    }
}

/// The job that makes the captures of a file.
pub(crate) const EXTRACT_JOB: &str = "extract-cdx";

/// The job that finds captures without a record in the logs of crawls.
const DEDUP_JOB: &str = "dedup-cdx";

const EXTRACT: &[(&str, &str)] = &[("format", "cdxj"), ("post-append", "true")];
const DEDUP: &[(&str, &str)] = &[("format", "cdxj")];

/// Hands the lines over; they end with the job's result, or with an error.
async fn send_lines(
    lines: Option<Lines>,
    sender: mpsc::Sender<LineStep>,
) -> Result<(), ClientError> {
    let Some(mut lines) = lines else {
        drop(sender.send(LineStep::End).await);
        return Ok(());
    };
    let mut together = Vec::new();
    while let Some(line) = lines.next().await? {
        together.push(line);
        if together.len() >= LINES_TOGETHER {
            let full = std::mem::take(&mut together);
            if sender.send(LineStep::Lines(full)).await.is_err() {
                return Ok(());
            }
        }
    }
    drop(sender.send(LineStep::Lines(together)).await);
    drop(sender.send(LineStep::End).await);
    Ok(())
}

/// Lines of a result; a result without its end is not complete.
enum LineStep {
    Lines(Vec<Bytes>),
    End,
}

/// The writing of a batch, on a thread that may block.
struct Extraction {
    follower: Arc<Follower>,
    instruments: Instruments,
    number: BatchNumber,
    names: Vec<FileName>,
    job: EndedJob,
    duplicates: Vec<(FileName, Vec<Capture>)>,
}

impl Extraction {
    fn write(mut self, mut lines: mpsc::Receiver<LineStep>) -> Result<(), BatchError> {
        let follower = Arc::clone(&self.follower);
        let captures = follower.captures();
        let mut writers: BTreeMap<String, FileWriter> = BTreeMap::new();
        for name in &self.names {
            if follower.counts_for(self.number, name) {
                writers.insert(name.to_string(), captures.file(name.as_str())?);
            }
        }
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        loop {
            match lines.blocking_recv() {
                Some(LineStep::Lines(some)) => {
                    for line in some {
                        let capture = match read_line(&line) {
                            Ok(capture) => capture,
                            // No file of the batch can be trusted to be whole: each is tried again alone.
                            Err(error) => {
                                self.job.problem.get_or_insert(error.to_string());
                                continue;
                            }
                        };
                        let Some(file) = capture.file.as_deref() else {
                            continue;
                        };
                        if let Some(writer) = writers.get_mut(file) {
                            writer.push(&capture)?;
                            *counts.entry(file.to_owned()).or_default() += 1;
                        }
                    }
                }
                Some(LineStep::End) => break,
                // The result was cut: nothing of it is seen.
                None => return Ok(()),
            }
        }
        for (name, found) in std::mem::take(&mut self.duplicates) {
            if let Some(writer) = writers.get_mut(name.as_str()) {
                for capture in &found {
                    writer.push(capture)?;
                }
                *counts.entry(name.to_string()).or_default() += found.len() as u64;
            }
        }
        for name in &self.names {
            let Some(writer) = writers.remove(name.as_str()) else {
                continue;
            };
            let count = counts.get(name.as_str()).copied().unwrap_or(0);
            self.settle(name, writer, count)?;
        }
        Ok(())
    }

    fn settle(&self, name: &FileName, writer: FileWriter, count: u64) -> Result<(), BatchError> {
        let entry = self.follower.captures().file_entry(name.as_str())?;
        let content = entry.as_ref().and_then(content_of);
        let expected = content.map(|content| content.root);
        let report = self.job.reports.get(name).cloned().unwrap_or_default();
        let judgement = match &self.job.problem {
            Some(problem) => Judgement::Failed(problem.clone()),
            None => judge(name.as_str(), expected, &report, count),
        };
        let outcome = match judgement {
            Judgement::Extracted { defects } => {
                self.instruments.defects.inc_by(defects);
                FileOutcome::Extracted(writer)
            }
            Judgement::Failed(reason) => {
                let writer = Some(writer).filter(|_| count > 0);
                FileOutcome::Failed(reason, writer)
            }
        };
        let verdict = self.follower.settle(self.number, name, outcome)?;
        match &verdict {
            Verdict::Indexed => {
                self.instruments.files_indexed.inc();
                self.instruments.captures_indexed.inc_by(count);
            }
            Verdict::Retry { failures } => {
                self.instruments.files_failed.inc();
                tracing::info!(file = %name, failures, "a file could not be indexed; it is tried again");
            }
            Verdict::Parked { failures, reason } => {
                self.instruments.files_failed.inc();
                tracing::warn!(
                    file = %name, failures, reason,
                    "a file could not be indexed and is parked; see `holdfast index status`"
                );
            }
            Verdict::Stale => {}
        }
        self.instruments.show(&self.follower.counts());
        Ok(())
    }
}

/// Reads a line of a result.
pub(crate) fn read_line(line: &[u8]) -> Result<Capture, ClientError> {
    let untrusted = |why: String| {
        ClientError::Untrusted(format!(
            "a line of the result of a job cannot be read: {why}"
        ))
    };
    let text = str::from_utf8(line).map_err(|error| untrusted(error.to_string()))?;
    Format::Cdxj
        .read(text)
        .map_err(|error| untrusted(error.to_string()))
}
