//! `holdfast crawl status`: what a crawl does and waits for.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use harvest_controller::lock::{JobLock, LockError};
use harvest_controller::{
    JobDirectory, JobDirectoryError, LastLine, SeedState, ask_view, last_log_lines,
};
use harvest_crawler::crawl::CrawlEnd;
use harvest_crawler::crawl::view::{
    CrawlView, HostTroubleView, QueueView, QueueWait, ViewList, ViewQuestion,
};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;
use tools_terminal::context::CommandContext;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::output::{TableColumn, TextTable, size_text};

use super::words::uris_are;
use super::{BASE, progress};

/// The interval at which a terminal is drawn anew.
const PERIOD: Duration = Duration::from_secs(2);

/// The longest URI that a terminal is shown, in characters.
const WIDEST: usize = 70;

/// Show what a crawl does, and what it waits for
///
/// Shows the fetches under way, the queues with what each waits for and until when, hosts that rest or are given up, the
/// next tries, failed seeds, what is held back, and the last lines of the crawl log. In a terminal it is drawn anew every
/// two seconds, until Ctrl-C or the end of the crawl. Of a crawl that does not run, how it ended is shown, and what it
/// has left.
///
/// The exit code is 0 if the crawl runs or has ended well, and 1 if it was suspended, or its process has died.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast crawl status
  holdfast crawl status holdfast-crawls/12_1767225600000 --about example.dk
  holdfast crawl status --once --most 1000
  holdfast crawl status --seeds
  holdfast crawl status --json | jq .view.queues")]
pub(super) struct CrawlStatus {
    /// The directory of the job [default: the youngest one in holdfast-crawls]
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Show only this domain or host, with what lies below it; may be given several times
    #[arg(long, value_name = "NAME")]
    about: Vec<String>,
    /// Most entries of each list
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    most: usize,
    /// Show it once, also in a terminal
    #[arg(long)]
    once: bool,
    /// List the seeds with their state instead
    #[arg(long)]
    seeds: bool,
}

/// The status of a job, as `--json` has it.
#[derive(Debug, Serialize)]
struct StatusDocument {
    job: u64,
    directory: String,
    state: CrawlState,
    /// Of a crawl that runs.
    view: Option<CrawlView>,
    /// Of a crawl that is over: the number of URIs that were left, and of those that could not be had.
    remaining: Option<u64>,
    failed: Option<u64>,
    last_lines: Vec<LastLine>,
}

/// The state of a crawl.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum CrawlState {
    Crawling,
    /// The crawl is over, and its files are being stored.
    Storing,
    Finished,
    Idle,
    Limit,
    Stopped,
    Broken,
    /// Nobody works on the job, and its crawl is not over.
    Suspended,
}

impl CrawlState {
    const fn of_end(end: CrawlEnd) -> Self {
        match end {
            CrawlEnd::Finished => Self::Finished,
            CrawlEnd::Idle => Self::Idle,
            CrawlEnd::TimeLimit | CrawlEnd::DataLimit | CrawlEnd::ObjectLimit => Self::Limit,
            CrawlEnd::Terminated | CrawlEnd::Suspended => Self::Stopped,
            CrawlEnd::Broken => Self::Broken,
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Crawling => "crawling",
            Self::Storing => "its crawl is over, and its files are being stored",
            Self::Finished => "finished: nothing was left to fetch",
            Self::Idle => "ended idle: what was left waits for hosts that cannot be reached",
            Self::Limit => "ended at a limit",
            Self::Stopped => "ended by a person",
            Self::Broken => "broke off",
            Self::Suspended => "does not run; `holdfast crawl --resume DIR` continues it",
        }
    }
}

impl CrawlStatus {
    /// Shows the status.
    pub(super) fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let path = match &self.directory {
            Some(path) => path.clone(),
            None => youngest_job(Path::new(BASE))?,
        };
        let directory = JobDirectory::open(&path).map_err(|error| failed(&error))?;
        if self.seeds {
            return self.list_seeds(&directory, context);
        }
        let is_live = !self.once && !context.output.is_json() && std::io::stdout().is_terminal();
        loop {
            let document = self.document(&directory)?;
            let state = document.state;
            if context.output.is_json() {
                context.output.write_document(&document)?;
            } else if is_live && state == CrawlState::Crawling {
                // To the first place, and what was there goes.
                let text = text_lines(&document).join("\x1b[K\n");
                let mut out = std::io::stdout().lock();
                let written = write!(out, "\x1b[H{text}\x1b[K\n\x1b[J").and_then(|()| out.flush());
                written.map_err(|error| Failure::output_failed(&error))?;
            } else {
                context
                    .output
                    .write_line(&text_lines(&document).join("\n"))?;
            }
            if !is_live || state != CrawlState::Crawling {
                return Ok(match state {
                    CrawlState::Suspended | CrawlState::Broken => Exit::Failed,
                    _ => Exit::Done,
                });
            }
            std::thread::sleep(PERIOD);
        }
    }

    fn document(&self, directory: &JobDirectory) -> Result<StatusDocument, Failure> {
        let question = ViewQuestion {
            most: self.most,
            about: self.about.clone(),
        };
        let view = ask_view(directory, &question).map_err(|error| {
            Failure::because_failed(format!(
                "cannot ask the crawl in {}: {error}; it may be of another version of holdfast",
                directory.root().display()
            ))
        })?;
        let outcome = directory.read_outcome().map_err(|error| failed(&error))?;
        let state = match (&view, &outcome) {
            (Some(_), _) => CrawlState::Crawling,
            (None, Some(outcome)) => match JobLock::acquire(directory) {
                Err(LockError::Busy(_)) => CrawlState::Storing,
                _ => CrawlState::of_end(outcome.end),
            },
            (None, None) => CrawlState::Suspended,
        };
        let lines = last_log_lines(directory, self.most, |host| question.is_about(host));
        Ok(StatusDocument {
            job: directory.job().id,
            directory: directory.root().display().to_string(),
            state,
            view,
            remaining: outcome
                .as_ref()
                .map(|outcome| outcome.remaining.values().sum()),
            failed: outcome.as_ref().map(|outcome| outcome.progress.failed),
            last_lines: lines.map_err(|error| failed(&error))?,
        })
    }

    fn list_seeds(
        &self,
        directory: &JobDirectory,
        context: &CommandContext,
    ) -> Result<Exit, Failure> {
        let question = ViewQuestion {
            most: usize::MAX,
            about: self.about.clone(),
        };
        let seeds = directory.seed_states(|host| question.is_about(host));
        let seeds = seeds.map_err(|error| failed(&error))?;
        if context.output.is_json() {
            context.output.write_document(&seeds)?;
            return Ok(Exit::Done);
        }
        let mut table = TextTable::new(&[
            TableColumn::Right("STATUS"),
            TableColumn::Left("SEED"),
            TableColumn::Left("STATE"),
        ]);
        for SeedState {
            seed,
            status,
            words,
        } in seeds
        {
            let status = status.map_or_else(|| "-".to_owned(), |status| status.to_string());
            table.push([status, seed, words.to_owned()]);
        }
        context.output.write_table(&table)?;
        Ok(Exit::Done)
    }
}

/// Returns a status as lines of text.
fn text_lines(document: &StatusDocument) -> Vec<String> {
    let StatusDocument {
        job,
        directory,
        state,
        ..
    } = document;
    let head = format!("job {job} in {directory}: {}", state.words());
    let mut lines = Vec::new();
    if let Some(view) = &document.view {
        let running = archive_model::Period::from_secs(view.running_seconds);
        let ending = if view.is_ending {
            ", and ending: fetches under way have 10 seconds"
        } else {
            ""
        };
        lines.push(format!("{head} for {running}{ending}"));
        lines.push(progress::figures(&view.progress));
        for part in [fetches, queues, hosts, retries, seeds, held] {
            lines.extend(part(view));
        }
    } else {
        lines.push(head);
        let left = document.remaining.filter(|left| *left > 0);
        lines.extend(left.map(|left| {
            let left = uris_are(left);
            format!("{left} left: `holdfast crawl --resume {directory}` goes on")
        }));
        let lost = document.failed.filter(|lost| *lost > 0);
        lines.extend(lost.map(|lost| {
            format!("{lost} URIs could not be had: `holdfast crawl --retry-failed {directory}` tries them again")
        }));
    }
    if !document.last_lines.is_empty() {
        lines.push(String::new());
        lines.push("last lines of the crawl log".to_owned());
        lines.extend(document.last_lines.iter().map(|line| {
            let time = clock_time(line.time);
            format!("  {time}  {:>5}  {}", line.status, shortened(&line.uri))
        }));
    }
    lines
}

fn failed(error: &JobDirectoryError) -> Failure {
    Failure::because_failed(error.to_string())
}

/// Returns the directory of the job that was begun last.
fn youngest_job(base: &Path) -> Result<PathBuf, Failure> {
    let jobs = list_jobs(base)?;
    jobs.into_iter().next_back().ok_or_else(|| {
        Failure::wrong_usage(format!(
            "there is no job in {}; name the directory of one",
            base.display()
        ))
    })
}

/// Returns the directories of jobs, the oldest first.
pub(super) fn list_jobs(base: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = match std::fs::read_dir(base) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|error| Failure::unreadable_file(base, &error))?,
    };
    let mut jobs = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| Failure::unreadable_file(base, &error))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let begun = name
            .rsplit_once('_')
            .and_then(|(_, begun)| begun.parse::<u64>().ok());
        let file = entry.path().join("job.toml");
        let is_job = file
            .try_exists()
            .map_err(|error| Failure::unreadable_file(&file, &error))?;
        if let Some(begun) = begun.filter(|_| is_job) {
            jobs.push((begun, entry.path()));
        }
    }
    jobs.sort();
    Ok(jobs.into_iter().map(|(_, path)| path).collect())
}

fn clock_time(time: Timestamp) -> String {
    let time = time.to_zoned(TimeZone::system());
    let is_today = time.date() == jiff::Zoned::now().date();
    let form = if is_today {
        "%H:%M:%S"
    } else {
        "%Y-%m-%d %H:%M"
    };
    time.strftime(form).to_string()
}

fn shortened(uri: &str) -> String {
    if uri.chars().count() <= WIDEST {
        return uri.to_owned();
    }
    let mut short: String = uri.chars().take(WIDEST - 1).collect();
    short.push('…');
    short
}

/// Returns a list as lines of text; none of an empty one.
fn part<T>(title: &str, list: &ViewList<T>, table: &TextTable) -> Vec<String> {
    if list.entries.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![String::new(), title.to_owned()];
    lines.extend(table.to_string().lines().map(|line| format!("  {line}")));
    if list.more > 0 {
        lines.push(format!("  and {} more", list.more));
    }
    lines
}

fn fetches(view: &CrawlView) -> Vec<String> {
    let mut table = TextTable::new(&[
        TableColumn::Right("SECONDS"),
        TableColumn::Right("BYTES"),
        TableColumn::Left("URI"),
    ]);
    for fetch in &view.fetches.entries {
        let seconds = format!(
            "{}.{}",
            fetch.milliseconds / 1000,
            fetch.milliseconds % 1000 / 100
        );
        table.push([seconds, size_text(fetch.bytes), shortened(&fetch.uri)]);
    }
    part("fetches under way", &view.fetches, &table)
}

fn queues(view: &CrawlView) -> Vec<String> {
    let mut table = TextTable::new(&[
        TableColumn::Left("QUEUE"),
        TableColumn::Right("WAITING"),
        TableColumn::Right("LATER"),
        TableColumn::Right("FETCHED"),
        TableColumn::Right("FAILED"),
        TableColumn::Left("WAITS FOR"),
    ]);
    for queue in &view.queues.entries {
        table.push([
            shortened(&queue.name),
            queue.waiting.to_string(),
            queue.deferred.to_string(),
            queue.fetched.to_string(),
            queue.failed.to_string(),
            wait_words(queue),
        ]);
    }
    part("queues", &view.queues, &table)
}

fn wait_words(queue: &QueueView) -> String {
    let what = match queue.wait {
        QueueWait::Fetch => "the end of a fetch",
        QueueWait::Answer => "a name server, or robots.txt",
        QueueWait::Address => "a place at its address",
        QueueWait::Pause => "the end of its pause",
        QueueWait::Turn => "its turn",
        QueueWait::Retry => "hosts in trouble, or the next try",
        QueueWait::Limit => "a higher limit: it has what it may have",
    };
    match queue.until {
        Some(until) => format!("{what}, until {}", clock_time(until)),
        None => what.to_owned(),
    }
}

fn hosts(view: &CrawlView) -> Vec<String> {
    let mut table = TextTable::new(&[
        TableColumn::Left("HOST"),
        TableColumn::Right("TRIES"),
        TableColumn::Right("WAITING"),
        TableColumn::Left("STATE"),
    ]);
    for host in &view.hosts.entries {
        let trouble = match host.trouble {
            HostTroubleView::Unreachable => "cannot be reached",
            HostTroubleView::Busy => "asks for patience",
        };
        let state = match host.until {
            Some(until) => format!("{trouble}; asked again at {}", clock_time(until)),
            None => format!("{trouble}; given up"),
        };
        let strikes = host.strikes.to_string();
        table.push([
            shortened(&host.host),
            strikes,
            host.waiting.to_string(),
            state,
        ]);
    }
    part("hosts in trouble", &view.hosts, &table)
}

fn retries(view: &CrawlView) -> Vec<String> {
    let mut table = TextTable::new(&[
        TableColumn::Left("AT"),
        TableColumn::Right("TRIES"),
        TableColumn::Left("URI"),
    ]);
    for retry in &view.retries.entries {
        let tries = retry.tries.to_string();
        table.push([clock_time(retry.due), tries, shortened(&retry.uri)]);
    }
    part("URIs that wait for a moment", &view.retries, &table)
}

fn seeds(view: &CrawlView) -> Vec<String> {
    let mut table = TextTable::new(&[TableColumn::Left("SEED"), TableColumn::Left("REASON")]);
    for seed in &view.failing_seeds.entries {
        table.push([shortened(&seed.seed), seed.reason.clone()]);
    }
    part("seeds that fail", &view.failing_seeds, &table)
}

fn held(view: &CrawlView) -> Vec<String> {
    let mut table = TextTable::new(&[
        TableColumn::Right("URIS"),
        TableColumn::Left("BY"),
        TableColumn::Left("PATTERN OR RULE"),
    ]);
    for held in &view.held.entries {
        let by = if held.is_rejected {
            "a person"
        } else {
            "quarantine"
        };
        table.push([held.uris.to_string(), by.to_owned(), held.name.clone()]);
    }
    part("held back", &view.held, &table)
}
