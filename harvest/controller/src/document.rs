//! The documentation of a job: reports, and the metadata file with everything that a later reader needs.
//!
//! Owns which files of the job's directory go into the metadata file. `job.toml` does not: it has passwords.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Write};
use std::path::{Path, PathBuf};

use archive_durable::{AppendFile, DiskError, directory, replace};
use harvest_crawler::archive_files::ClosedFile;
use harvest_crawler::capture::record_id;
use harvest_crawler::crawl::CrawlOutcome;
use harvest_crawler::suffixes::{SuffixListError, suffix_list};
use harvest_reports::archive_files::{ArchiveFileReport, archive_files_report};
use harvest_reports::harvest::{HarvestReport, StopReason};
use harvest_reports::log::{CrawlLogReader, LogEntry};
use harvest_reports::metadata::{
    Document, JobIdentity, MetadataError, MetadataFile, RecordStamp, Section,
};
use harvest_reports::processors::processors_report;
use harvest_reports::progress::{EndMessage, FILE_NAME as PROGRESS_LOG, last_line};
use harvest_reports::statistics::{CrawlStatistics, CrawlSummary};
use harvest_reports::warcinfo::Warcinfo;
use harvest_reports::{archive_files, processors};

use crate::directory::{JobDirectory, JobDirectoryError, open};
use crate::job::{JobParts, end_message};
use crate::report::{DomainOutcome, stop_reason};

/// The name of the crawl log.
const CRAWL_LOG: &str = "crawl.log";

/// Why a crawl cannot be documented.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// The directory of the job.
    #[error(transparent)]
    Directory(#[from] JobDirectoryError),
    /// The list of public suffixes.
    #[error(transparent)]
    Suffixes(#[from] SuffixListError),
    /// The disk.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A log.
    #[error("cannot read {path}: {source}")]
    Log {
        /// The log.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The metadata file.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// The metadata file cannot be ended.
    #[error("cannot write the metadata file: {0}")]
    Write(io::Error),
}

/// Writes the reports and the metadata file, unless it is there. Gives the metadata file.
pub(crate) fn document(
    job: &JobDirectory,
    parts: &JobParts,
    warcinfo: &Warcinfo,
    outcome: &CrawlOutcome,
) -> Result<ClosedFile, DocumentError> {
    let name = metadata_name(job);
    let path = job.path("metadata").join(&name);
    let receipt = job.path("receipts").join(format!("{name}.receipt.json"));
    let size = if let Some(directory::EntryKind::File { size, .. }) = directory::kind(&path)? {
        size
    } else if directory::kind(&receipt)?.is_some() {
        // It is in the archive, and no other one may have its name.
        0
    } else {
        write_reports(job, parts, outcome)?;
        write_metadata(job, parts, warcinfo, &name)?
    };
    Ok(ClosedFile {
        name,
        path,
        size,
        closed: parts.clock.now(),
    })
}

/// The name of the metadata file, as NetarchiveSuite has it: `12-metadata-1.warc.gz`, or with a collection
/// `COLLECTION-12-34-metadata-1.warc.gz`.
fn metadata_name(job: &JobDirectory) -> String {
    let job = job.job();
    let prefix = if job.collection.is_some() {
        job.archive_prefix()
    } else {
        job.id.to_string()
    };
    format!("{prefix}-metadata-1.warc.gz")
}

fn log_error(path: &Path) -> impl Fn(io::Error) -> DocumentError {
    |source| DocumentError::Log {
        path: path.to_owned(),
        source,
    }
}

fn write_reports(
    job: &JobDirectory,
    parts: &JobParts,
    outcome: &CrawlOutcome,
) -> Result<(), DocumentError> {
    let path = job.path("logs").join(CRAWL_LOG);
    let seeds = job.job().seeds.iter().map(ToString::to_string);
    let mut statistics = CrawlStatistics::new(seeds);
    for entry in CrawlLogReader::new(BufReader::new(open(&path)?)) {
        match entry.map_err(log_error(&path))? {
            LogEntry::Line(line) => statistics.add(&line),
            LogEntry::Unreadable(line) => statistics.add_unreadable(line),
        }
    }
    let name = job.job().id.to_string();
    let summary = CrawlSummary {
        name: name.clone(),
        end: end_message(outcome.end).unwrap_or(EndMessage::AbnormalExit),
        duration: outcome.duration,
    };
    let directory = job.path("reports");
    for (name, text) in statistics.reports(&summary, outcome.remaining.clone()) {
        replace(&directory.join(name), text.as_bytes())?;
    }
    let now = parts.clock.now();
    let stages = processors_report(&name, now, &statistics.stages());
    replace(&directory.join(processors::FILE_NAME), stages.as_bytes())?;
    let files = job
        .indexed_files()?
        .into_iter()
        .map(|file| ArchiveFileReport {
            name: file.name,
            closed: file.closed,
            size: file.size,
        });
    let files: Vec<ArchiveFileReport> = files.collect();
    let report = archive_files_report(&files);
    replace(&directory.join(archive_files::FILE_NAME), report.as_bytes())?;
    Ok(())
}

/// A file that is appended to, as a writer.
struct Appending(AppendFile);

impl Write for Appending {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.append(bytes).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_metadata(
    job: &JobDirectory,
    parts: &JobParts,
    warcinfo: &Warcinfo,
    name: &str,
) -> Result<u64, DocumentError> {
    let open_path = job.path("metadata").join(format!("{name}.open"));
    let mut file = AppendFile::open(&open_path)?;
    file.cut(0)?;
    let identity = JobIdentity {
        organization: parts.organization.clone(),
        harvest_id: job.job().harvest_id,
        harvest_number: u64::from(job.job().harvest_number),
        job_id: job.job().id,
    };
    let (clock, chance) = (&parts.clock, &parts.chance);
    let stamps = || RecordStamp {
        // The system has randomness, or the crawl would not have begun.
        id: record_id(chance.bytes().unwrap_or_default()),
        time: clock.now(),
    };
    let sink = io::BufWriter::new(Appending(file));
    let mut metadata = MetadataFile::begin(sink, name, identity, parts.address, warcinfo, stamps)?;
    metadata.documents(documents(job)?)?;
    for entry in job.indexed_files()? {
        metadata.index(&mut job.index_of(&entry.name)?)?;
    }
    let sink = metadata.finish().map_err(DocumentError::Write)?;
    let file = sink
        .into_inner()
        .map_err(|error| DocumentError::Write(error.into_error()))?;
    file.0.sync()?;
    let path = job.path("metadata").join(name);
    directory::move_new(&open_path, &path)?;
    match directory::kind(&path)? {
        Some(directory::EntryKind::File { size, .. }) => Ok(size),
        Some(_) | None => Ok(0),
    }
}

/// The files of the job that a later reader needs.
fn documents(job: &JobDirectory) -> Result<Vec<Document<'static>>, DocumentError> {
    let mut documents = Vec::new();
    let mut add = |section, name: &str, file: File| {
        documents.push(Document {
            section,
            name: name.to_owned(),
            content: Box::new(file),
        });
    };
    for name in ["order.toml", "seeds.txt", "harvestInfo.xml"] {
        add(Section::Setup, name, open(&job.path(name))?);
    }
    for (folder, section) in [("reports", Section::Reports), ("logs", Section::Logs)] {
        for name in directory::names(&job.path(folder))? {
            let name = name.to_string_lossy().into_owned();
            if Section::of_name(&name) == Some(section) {
                add(section, &name, open(&job.path(folder).join(&name))?);
            }
        }
    }
    // Heritrix writes these also when there is nothing to tell.
    for name in ["uri-errors.log", "runtime-errors.log"] {
        if directory::kind(&job.path("logs").join(name))?.is_none() {
            documents.push(Document {
                section: Section::Logs,
                name: name.to_owned(),
                content: Box::new(Cursor::new(Vec::new())),
            });
        }
    }
    Ok(documents)
}

/// The harvest of each domain, as the logs tell it.
pub(crate) fn domains(job: &JobDirectory) -> Result<Vec<DomainOutcome>, DocumentError> {
    let path = job.path("logs").join(PROGRESS_LOG);
    let last = last_line(BufReader::new(open(&path)?)).map_err(log_error(&path))?;
    let reason = StopReason::from_last_progress_line(last.as_deref());
    let mut report = HarvestReport::new(reason, false);
    let suffixes = suffix_list(&job.job().order)?;
    let path = job.path("logs").join(CRAWL_LOG);
    for entry in CrawlLogReader::new(BufReader::new(open(&path)?)) {
        match entry.map_err(log_error(&path))? {
            LogEntry::Line(line) => {
                report.add(&line, |host| Some(suffixes.domain(host).to_owned()));
            }
            // It is counted in crawl-report.txt.
            LogEntry::Unreadable(_) => {}
        }
    }
    let domains = report.domains().map(|(domain, report)| DomainOutcome {
        domain: domain.to_owned(),
        objects: report.objects,
        bytes: report.bytes,
        stop_reason: stop_reason(report.stop_reason),
    });
    Ok(domains.collect())
}
