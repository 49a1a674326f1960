//! One batch of files: jobs where their bytes are, their lines into the database, and a verdict on each file.
//!
//! Owns the asking and the reading of what jobs left. How a job is run is in `job`, what a failure means is decided in
//! `judge`, what becomes of a file in the queue. Captures are seen once the file that they are of is settled; of a
//! batch that breaks off, nothing is seen. A file that one replica could not give is read in another one before that
//! counts as a failure. While some replica could not be asked, it does not count as one.
//!
//! Crawls of the time of ARC files wrote no record of content that an earlier crawl had stored: only their logs name
//! it. Such a capture is one of the metadata file that has the log.

mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use archive_client::ClientError;
use archive_client::batch::{self, JobFailure, JobLines, JobOutput, JobState, JobStatus};
use archive_formats::cdx::{Capture, Format, OriginalRecord};
use archive_model::{FileName, ReplicaId, Root};
use serde::Deserialize;
use tokio::sync::mpsc;

use crate::batch_error::BatchError;
use crate::decide::{is_arc_name, is_metadata};
use crate::follower::Follower;
use crate::job::{JobKind, Jobs};
use crate::judge::FileReport;
use crate::metrics::Instruments;
use crate::queue::FileBatch;
use write::{Extraction, LineStep, UnsettledFiles};

/// The most steps, each of many lines, that wait on their way from the network to the database.
const LINES: usize = 64;

/// The most lines that are handed over at once.
const LINES_TOGETHER: usize = 512;

/// The number of replicas in which a file is tried before it is settled.
const PASSES: usize = 3;

/// The means of reading files.
#[derive(Clone)]
pub(crate) struct Extractor {
    pub(crate) jobs: Jobs,
    pub(crate) follower: Arc<Follower>,
    pub(crate) instruments: Instruments,
}

/// The outcome of an ended job, without the lines of its result.
struct EndedJob {
    status: JobStatus,
    reports: BTreeMap<FileName, FileReport>,
    /// The reason why the job has no result.
    problem: Option<String>,
}

/// A line of the manifest of a job.
#[derive(Debug, Deserialize)]
struct ManifestLine {
    file: FileName,
    root: Root,
}

impl Extractor {
    /// Reads a batch, and settles its files. Files that are not settled when it fails wait again.
    pub(crate) async fn read_batch(&self, files: FileBatch) -> Result<(), BatchError> {
        let number = files.number;
        let ended = self.read_files(files).await;
        self.follower.end_batch(number);
        ended
    }

    async fn read_files(&self, files: FileBatch) -> Result<(), BatchError> {
        let number = files.number;
        let mut names: Vec<FileName> = files.files.into_iter().map(|file| file.name).collect();
        let mut unread = BTreeMap::new();
        let mut avoided = BTreeSet::new();
        for pass in 1..=PASSES {
            let job = self.run(JobKind::Extract, &names, &avoided).await?;
            let replica = job.status.spec.replica.clone();
            // No other replica could be chosen if the same one was.
            let is_last = avoided.contains(&replica) || pass == PASSES;
            let (sender, receiver) = mpsc::channel(LINES);
            let extraction = Extraction {
                follower: Arc::clone(&self.follower),
                instruments: self.instruments.clone(),
                number,
                names: names.clone(),
                reports: job.reports,
                problem: job.problem.clone(),
                is_last,
                unread,
            };
            let writing = tokio::task::spawn_blocking(move || extraction.write_captures(receiver));
            let metadata = names.iter().filter(|name| is_metadata(name.as_str()));
            let metadata: Vec<FileName> = metadata.cloned().collect();
            let sent = match job.problem {
                None => {
                    self.send_results(&job.status, &metadata, &avoided, &sender)
                        .await
                }
                Some(_) => Ok(()),
            };
            if sent.is_ok() {
                _ = sender.send(LineStep::End).await;
            }
            drop(sender);
            let written = writing
                .await
                .map_err(|error| BatchError::System(error.to_string()))?;
            UnsettledFiles { names, unread } = written?;
            sent?;
            if names.is_empty() {
                break;
            }
            avoided.insert(replica);
        }
        Ok(())
    }

    /// Sends the captures that a job found, then those that only logs name. Each result is read as soon as it is there.
    async fn send_results(
        &self,
        job: &JobStatus,
        metadata: &[FileName],
        avoided: &BTreeSet<ReplicaId>,
        sender: &mpsc::Sender<LineStep>,
    ) -> Result<(), BatchError> {
        send_lines(self.result(job).await?, sender).await?;
        if metadata.is_empty() {
            return Ok(());
        }
        let logs = self.run(JobKind::Duplicates, metadata, avoided).await?;
        let is_whole = logs.problem.is_none();
        _ = sender
            .send(LineStep::Logs(logs.reports, logs.problem))
            .await;
        if is_whole {
            send_lines(self.result(&logs.status).await?, sender).await?;
        }
        Ok(())
    }

    async fn result(&self, job: &JobStatus) -> Result<JobLines, ClientError> {
        batch::read_output_lines(self.jobs.batch.as_ref(), &job.id, JobOutput::Result).await
    }

    /// Runs a job over files, and reads what it says of each.
    async fn run(
        &self,
        kind: JobKind,
        names: &[FileName],
        avoided: &BTreeSet<ReplicaId>,
    ) -> Result<EndedJob, BatchError> {
        let status = self.jobs.run_jobs(kind, names, avoided).await?;
        let none = FileReport::default;
        let mut reports: BTreeMap<FileName, FileReport> =
            names.iter().map(|name| (name.clone(), none())).collect();
        let from = self.jobs.batch.as_ref();
        let mut errors = batch::read_output_lines(from, &status.id, JobOutput::Errors).await?;
        while let Some(line) = errors.next().await? {
            let failure = JobFailure::read_line(&line)?;
            if let Some(report) = reports.get_mut(&failure.file) {
                report.add_failure(failure.kind, failure.offset, failure.reason);
            }
        }
        let mut manifest = batch::read_output_lines(from, &status.id, JobOutput::Manifest).await?;
        // The first line is about the job.
        let mut is_first = true;
        while let Some(line) = manifest.next().await? {
            if std::mem::take(&mut is_first) {
                continue;
            }
            let read: ManifestLine = serde_json::from_slice(&line).map_err(|error| {
                ClientError::Untrusted(format!("cannot read a line of the manifest: {error}"))
            })?;
            if let Some(report) = reports.get_mut(&read.file) {
                report.root = Some(read.root);
            }
        }
        let problem = match status.state {
            JobState::Done | JobState::Partial => None,
            _ => {
                let why = status.reason.as_deref().unwrap_or("no reason is known");
                Some(format!("job {} is {}: {why}", status.id, status.state))
            }
        };
        Ok(EndedJob {
            status,
            reports,
            problem,
        })
    }

    /// Reads the captures of one file again. `None` if it cannot be read whole now, which other jobs find out as well.
    pub(crate) async fn read_again(
        &self,
        name: &FileName,
    ) -> Result<Option<Vec<Capture>>, BatchError> {
        let kinds = [JobKind::Extract, JobKind::Duplicates];
        let kinds = kinds
            .into_iter()
            .filter(|kind| *kind == JobKind::Extract || is_metadata(name.as_str()));
        let mut found = Vec::new();
        for kind in kinds {
            let names = std::slice::from_ref(name);
            let job = self.run(kind, names, &BTreeSet::new()).await?;
            let report = job.reports.get(name);
            let is_read = report.is_some_and(|report| {
                report.unread.is_none() && report.damaged.is_none() && report.root.is_some()
            });
            if job.problem.is_some() || !is_read {
                return Ok(None);
            }
            let mut lines = self.result(&job.status).await?;
            while let Some(line) = lines.next().await? {
                let line = read_line(&line)?;
                if line.file == name.as_str() && line.is_indexed() {
                    found.push(line.capture);
                }
            }
        }
        Ok(Some(found))
    }
}

/// Sends the lines of a result.
async fn send_lines(
    mut lines: JobLines,
    sender: &mpsc::Sender<LineStep>,
) -> Result<(), ClientError> {
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
    _ = sender.send(LineStep::Lines(together)).await;
    Ok(())
}

/// A line of a result: a capture, and the file that it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResultLine {
    /// The file that has the record of the capture, or only names it in a log.
    pub(crate) file: String,
    pub(crate) capture: Capture,
}

/// The field of a line for the file whose log it is from.
const LOG: &str = "log";

/// Reads a line of a result. A capture that only a log names has no record in the file of that log: where its record
/// lies is kept as that of an original.
pub(crate) fn read_line(line: &[u8]) -> Result<ResultLine, ClientError> {
    let untrusted = |why: String| {
        ClientError::Untrusted(format!("cannot read a line of the result of a job: {why}"))
    };
    let text = str::from_utf8(line).map_err(|error| untrusted(error.to_string()))?;
    let capture = Format::Cdxj.read_line(text);
    let mut capture = capture.map_err(|error| untrusted(error.to_string()))?;
    if let Some(at) = capture.extra.iter().position(|(name, _)| name == LOG) {
        let (_, log) = capture.extra.remove(at);
        capture.original_record = Some(OriginalRecord {
            length: capture.length.take(),
            offset: capture.offset.take(),
            file: capture.file.replace(log),
        });
    }
    let file = capture.file.clone();
    let file = file.ok_or_else(|| untrusted("it names no file".to_owned()))?;
    Ok(ResultLine { file, capture })
}

impl ResultLine {
    /// Returns whether the capture belongs into the index. Crawls that wrote WARC files wrote a record of each
    /// duplicate, too.
    pub(crate) fn is_indexed(&self) -> bool {
        let record = self.capture.original_record.as_ref();
        let told_of = record.filter(|_| self.capture.offset.is_none());
        told_of.is_none_or(|record| record.file.as_deref().is_some_and(is_arc_name))
    }
}

#[cfg(test)]
mod tests {
    use index_captures::{CaptureIndex, MemoryPlace, OpenOptions};

    use super::*;

    /// Fails if a capture of a log is taken for one of the file that has its record, is indexed although that is no ARC
    /// file, or comes out of the index as another one than it is in the log.
    #[test]
    fn lines_of_logs_belong_to_their_logs() {
        let line = |file: &str, log: &str| {
            let text = format!(
                "org,a)/ 20090701000000 {{\"url\": \"http://a.org/\", \"offset\": \"7\", \"filename\": \"{file}\"{log}}}"
            );
            read_line(text.as_bytes()).unwrap()
        };
        let own = line("a.warc", "");
        assert_eq!((own.file.as_str(), own.capture.offset), ("a.warc", Some(7)));
        assert!(own.is_indexed());
        let log = ", \"log\": \"2-metadata-1.arc\"";
        let told_of = line("old.arc.gz", log);
        assert_eq!(told_of.file, "2-metadata-1.arc");
        assert!(told_of.is_indexed());
        assert!(!line("old.warc.gz", log).is_indexed());
        assert!(read_line(b"org,a)/ 20090701000000 {}").is_err());

        let memory = MemoryPlace::new().unwrap();
        let opened = CaptureIndex::open_in_memory(&memory, &OpenOptions::default()).unwrap();
        let mut writer = opened.captures.begin_file(&told_of.file).unwrap();
        writer.push_capture(&told_of.capture).unwrap();
        writer.complete_file(None).unwrap();
        let stored = opened
            .captures
            .find_capture(&told_of.file, &told_of.capture, 0);
        assert_eq!(stored.unwrap(), Some(told_of.capture));
    }
}
