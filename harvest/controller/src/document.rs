//! The documentation of a job: reports, and the metadata file with everything that a later reader needs.
//!
//! Owns which files of the job's directory go into the metadata file. `job.toml` does not: it has passwords.

use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use archive_durable::directory::EntryKind;
use archive_durable::{
    AppendFile, DiskError, SmallFile, UncachedFile, directory, replace_all, replace_file,
};
use archive_model::Root;
use harvest_crawler::archive_files::{ClosedFile, OPEN};
use harvest_crawler::capture::record_id;
use harvest_crawler::crawl::CrawlOutcome;
use harvest_crawler::frontier::{Frontier, FrontierSettings, QueueSnapshot};
use harvest_crawler::recorder::{CRAWL_LOG, RecorderError};
use harvest_crawler::suffixes::SuffixListError;
use harvest_reports::archive_files::{ArchiveFileReport, archive_files_report};
use harvest_reports::frontier::{QueueReport, ReportMoment};
use harvest_reports::log::{CrawlLogReader, LogEntry};
use harvest_reports::metadata::{
    JobIdentity, MetadataDocument, MetadataError, MetadataFile, MetadataHead, MetadataSection,
    RecordStamp,
};
use harvest_reports::processors::processors_report;
use harvest_reports::progress::EndMessage;
use harvest_reports::statistics::{CrawlStatistics, CrawlSummary};
use harvest_reports::text::Hundredths;
use harvest_reports::threads::ThreadReport;
use harvest_reports::warcinfo::Warcinfo;
use harvest_reports::{archive_files, frontier, processors, threads};

use crate::directory::{CrawledFile, JobDirectory, JobDirectoryError, open_file};
use crate::environment::JobEnvironment;
use crate::error_logs::ErrorLogs;
use crate::progress_log::end_message;
use crate::requests_log::{self, requests_log};

/// The reason why a crawl cannot be documented.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// The directory of the job cannot be used.
    #[error(transparent)]
    Directory(#[from] JobDirectoryError),
    /// The list of public suffixes cannot be used.
    #[error(transparent)]
    Suffixes(#[from] SuffixListError),
    /// The disk fails.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A log of the crawl cannot be read.
    #[error("cannot read {path}: {source}")]
    Log {
        /// The path of the log.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The frontier of the crawl cannot be read.
    #[error(transparent)]
    Frontier(#[from] RecorderError),
    /// The metadata file cannot be written.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// The metadata file cannot be ended.
    #[error("cannot write the metadata file: {0}")]
    Write(io::Error),
}

/// Writes the reports and the metadata file, unless it was written before. Returns the metadata file; `None`: it is in
/// the archive, and no other one may have its name.
pub(crate) fn write_documents(
    job: &JobDirectory,
    environment: &JobEnvironment,
    warcinfo: &Warcinfo,
    outcome: &CrawlOutcome,
) -> Result<Option<(ClosedFile, Root)>, DocumentError> {
    let name = job.metadata_name(job.metadata_version()?);
    let path = job.path_of("metadata").join(&name);
    let written = job.metadata_file()?;
    if let Some(other) = written.as_ref().filter(|entry| entry.name != name)
        && !job.has_receipt(&other.name)?
    {
        job.remove_metadata(&other.name)?;
    }
    let written = written.filter(|entry| entry.name == name);
    let is_here = directory::entry_kind(&path)?.is_some();
    if written.is_some() && !is_here && job.has_receipt(&name)? {
        return Ok(None);
    }
    let root_of = || UncachedFile::open(&path)?.root();
    if let Some(entry) = written.filter(|_| is_here)
        && root_of()? == entry.root
    {
        let CrawledFile {
            name,
            size,
            closed,
            root,
        } = entry;
        return Ok(Some((
            ClosedFile {
                name,
                path,
                size,
                closed,
            },
            root,
        )));
    }
    // One that is not described was not finished, and one that has other bytes was damaged since: it is made again.
    if is_here {
        directory::remove_name(&path)?;
    }
    let size = {
        let mut reports = crawl_reports(job, environment, outcome)?;
        reports.extend(frontier_reports(job, environment, outcome)?);
        let reports = reports.iter();
        let files = reports.map(|(name, text)| SmallFile::new(name, text.as_bytes()));
        replace_all(&job.path_of("reports"), &files.collect::<Vec<_>>())?;
        let requests = requests_log(job)?;
        if !requests.is_empty() {
            let path = job.path_of("logs").join(requests_log::FILE_NAME);
            replace_file(&path, requests.as_bytes())?;
        }
        write_metadata(job, environment, warcinfo, &name)?
    };
    let closed = environment.clock.now();
    let root = root_of()?;
    job.keep_metadata_file(&CrawledFile {
        name: name.clone(),
        size,
        closed,
        root,
    })?;
    let file = ClosedFile {
        name,
        path,
        size,
        closed,
    };
    Ok(Some((file, root)))
}

/// Returns the error of a log that cannot be read.
pub(crate) fn log_error(path: &Path) -> impl Fn(io::Error) -> DocumentError {
    |source| DocumentError::Log {
        path: path.to_owned(),
        source,
    }
}

/// The name of a report, and its text.
type NamedReport = (&'static str, String);

/// Returns the reports about what was fetched.
fn crawl_reports(
    job: &JobDirectory,
    environment: &JobEnvironment,
    outcome: &CrawlOutcome,
) -> Result<Vec<NamedReport>, DocumentError> {
    let path = job.path_of("logs").join(CRAWL_LOG);
    let seeds = job.job().seeds.iter().map(ToString::to_string);
    let mut statistics = CrawlStatistics::new(seeds);
    let mut errors = ErrorLogs::begin_logs(job)?;
    for entry in CrawlLogReader::new(BufReader::new(open_file(&path)?)) {
        match entry.map_err(log_error(&path))? {
            LogEntry::Line(line) => {
                errors.add(&line)?;
                statistics.add_line(&line);
            }
            LogEntry::Unreadable(line) => statistics.add_unreadable(line),
        }
    }
    errors.finish()?;
    let name = job.job().id.to_string();
    let summary = CrawlSummary {
        name: name.clone(),
        end: end_message(outcome.end).unwrap_or(EndMessage::AbnormalExit),
        duration: outcome.duration,
    };
    let mut reports: Vec<NamedReport> = Vec::new();
    reports.extend(statistics.write_reports(&summary, outcome.remaining.clone()));
    let now = environment.clock.now();
    let stages = processors_report(&name, now, &statistics.stage_reports());
    reports.push((processors::FILE_NAME, stages));
    let files = job
        .indexed_files()?
        .into_iter()
        .map(|file| ArchiveFileReport {
            name: file.name,
            closed: file.closed,
            size: file.size,
        });
    let files: Vec<ArchiveFileReport> = files.collect();
    reports.push((archive_files::FILE_NAME, archive_files_report(&files)));
    Ok(reports)
}

/// Returns the reports about queues and connections at the end of a crawl; none without a frontier.
fn frontier_reports(
    job: &JobDirectory,
    environment: &JobEnvironment,
    outcome: &CrawlOutcome,
) -> Result<Vec<NamedReport>, DocumentError> {
    let state = job.path_of("state");
    if directory::entry_kind(&state)?.is_none() {
        return Ok(Vec::new());
    }
    let order = &job.job().order;
    let time = environment.clock.now();
    let settings = FrontierSettings {
        limits: order.queue_rules(),
        cost: order.queues.cost,
        connections: order.queues.connections.get().into(),
        // The key is for a frontier that is begun now, and this one was begun before.
        fresh_key: [0; 32],
        begin: time,
    };
    let queues = Frontier::read_snapshot(&state, &settings).map_err(RecorderError::from);
    let queues = match queues {
        Ok(queues) => queues,
        // The crawl is over: what it has harvested is not kept back for a report.
        Err(error) if error.is_damage() => {
            let text = format!("There is no report: {error}\n");
            let files = [frontier::SUMMARY_FILE_NAME, frontier::NONEMPTY_FILE_NAME];
            return Ok(files.map(|file| (file, text.clone())).into());
        }
        Err(error) => return Err(error.into()),
    };
    let queues: Vec<_> = queues.into_iter().map(queue_report).collect();
    let name = job.job().id.to_string();
    let now = ReportMoment {
        time,
        since_begin: Duration::ZERO,
    };
    let connections = outcome.connections.iter().map(|connection| ThreadReport {
        number: connection.number,
        uri: connection.uri.clone(),
        step: match connection.uri {
            Some(_) => "fetch".to_owned(),
            None => "wait".to_owned(),
        },
        elapsed: connection.elapsed,
    });
    let connections: Vec<_> = connections.collect();
    Ok(vec![
        (
            frontier::SUMMARY_FILE_NAME,
            frontier::frontier_summary_report(&name, now, &queues),
        ),
        (
            frontier::NONEMPTY_FILE_NAME,
            frontier::frontier_nonempty_report(&name, now, &queues),
        ),
        (
            threads::FILE_NAME,
            threads::threads_report(&name, time, &connections),
        ),
    ])
}

fn queue_report(queue: QueueSnapshot) -> QueueReport {
    let account = queue.account;
    let limits = queue.limits;
    let balance = i128::from(limits.session) - i128::from(account.session);
    let tries = account.successes.saturating_add(account.errors);
    QueueReport {
        name: queue.name,
        state: queue.state,
        precedence: queue.precedence,
        current_size: queue.size,
        total_enqueues: Some(queue.enqueued),
        session_balance: i64::try_from(balance).unwrap_or(i64::MIN),
        last_cost: 1,
        average_cost: Hundredths::quotient(account.total.into(), tries.into()),
        last_dequeue: queue.last_taken,
        total_spend: account.total,
        total_budget: limits.total,
        error_count: account.errors,
        last_peeked: queue.next,
        last_queued: None,
    }
}

/// A file that is appended to, as a writer.
struct AppendWriter(AppendFile);

impl Write for AppendWriter {
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
    environment: &JobEnvironment,
    warcinfo: &Warcinfo,
    name: &str,
) -> Result<u64, DocumentError> {
    let open_path = job.path_of("metadata").join(format!("{name}{OPEN}"));
    let mut file = AppendFile::open(&open_path)?;
    file.cut(0)?;
    let identity = JobIdentity {
        organization: environment.organization.clone(),
        harvest_id: job.job().harvest_id,
        harvest_number: u64::from(job.job().harvest_number),
        job_id: job.job().id,
    };
    let clock = &environment.clock;
    let chance = &environment.chance;
    let stamps = || RecordStamp {
        id: record_id(
            chance
                .random_bytes()
                .expect("the system has had randomness since the crawl began"),
        ),
        time: clock.now(),
    };
    let sink = io::BufWriter::new(AppendWriter(file));
    let head = MetadataHead {
        name,
        job: &identity,
        address: environment.address,
        warcinfo,
    };
    let mut metadata = MetadataFile::begin_file(sink, head, stamps)?;
    metadata.duplicate_reduction_jobs(&job.deduplicated_against()?)?;
    metadata.write_documents(documents(job)?)?;
    for entry in job.indexed_files()? {
        metadata.write_index(&mut job.index_of(&entry.name)?)?;
    }
    let sink = metadata.finish().map_err(DocumentError::Write)?;
    let file = sink
        .into_inner()
        .map_err(|error| DocumentError::Write(error.into_error()))?;
    file.0.sync()?;
    let path = job.path_of("metadata").join(name);
    directory::move_new(&open_path, &path)?;
    match directory::entry_kind(&path)? {
        Some(EntryKind::File { size, .. }) => Ok(size),
        _ => Err(DiskError::new("stat", &path, io::ErrorKind::NotFound).into()),
    }
}

/// Returns the files of the job that a later reader needs.
fn documents(job: &JobDirectory) -> Result<Vec<MetadataDocument<'static>>, DocumentError> {
    let mut documents = Vec::new();
    let mut add = |section, name: &str, file: File| {
        documents.push(MetadataDocument {
            section,
            name: name.to_owned(),
            content: Box::new(file),
        });
    };
    for name in ["order.toml", "seeds.txt", "harvestInfo.xml"] {
        add(MetadataSection::Setup, name, open_file(&job.path_of(name))?);
    }
    for (folder, section) in [
        ("reports", MetadataSection::Reports),
        ("logs", MetadataSection::Logs),
    ] {
        for name in directory::list_names(&job.path_of(folder))? {
            let name = name.to_string_lossy().into_owned();
            if MetadataSection::from_file_name(&name) == Some(section) {
                add(section, &name, open_file(&job.path_of(folder).join(&name))?);
            }
        }
    }
    Ok(documents)
}
