//! `holdfast crawl`: one harvest job, from its seeds to its receipts.

use std::collections::HashSet;
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use archive_client::Ingest;
use archive_daemon::Clock;
use archive_daemon::clock::Chance;
use archive_model::{ByteSize, Period};
use clap::{Args, Subcommand, ValueEnum};
use harvest_controller::lock::{JobLock, LockError};
use harvest_controller::{
    HarvestJobError, JobConsole, JobDirectory, JobDirectoryError, JobEnvironment, JobNotice,
    RunSettings, run_job,
};
use harvest_crawler::crawl::CrawlProgress;
use harvest_model::order::{NameServer, RobotsPolicy, ScopeKind};
use harvest_model::seed::parse_seed;
use harvest_model::{Collection, CrawlOrder, HarvestJob, InvalidOrder};
use harvest_policy::address::AddressNetwork;
use tokio::sync::{mpsc, watch};
use tools_terminal::context::CommandContext;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::progress::TransferProgress;
use tools_terminal::session::Session;
use url::Url;

use self::machine::{host_name, own_address};
use self::signals::Signals;

mod jobs;
mod machine;
mod progress;
mod resume;
mod signals;
mod status;
mod words;

/// The time to wait for an archive that is down.
const PATIENCE: Duration = Duration::from_hours(24);

/// The arguments by which a job that was begun may go on in another way.
const CHANGES_OF_JOB: [&str; 5] = ["order", "max_objects", "max_bytes", "max_time", "delay"];

/// The arguments that say what a job is: a job that was begun has its own, and would not heed them.
const SETTINGS_OF_JOB: [&str; 14] = [
    "seeds",
    "seeds_file",
    "scope",
    "max_hops",
    "robots",
    "connections",
    "contact",
    "dedup",
    "dedup_all",
    "dns",
    "allow_network",
    "job",
    "harvest",
    "collection",
];

/// The longest name of a harvest that a command line gives it, in bytes.
const LONGEST_NAME: usize = 500;

/// The directory of jobs, unless another one is named.
const BASE: &str = "holdfast-crawls";

/// Crawl sites, document the crawl, and store all of it
///
/// Begins with the seeds and follows links within the scope, politely. Each archive file is
/// stored in every replica as soon as it is full, and the metadata file last; a local file is
/// deleted only when its receipt is kept. The job has a directory of its own, with its logs,
/// reports and receipts.
///
/// Outside of this machine nothing is fetched without --contact: a page, or mailto: and an
/// address, where the owner of a site can ask about the visit. Storing needs the role
/// harvester.
///
/// Ctrl-C ends the crawl, and --resume continues it: fetches under way have 10 seconds to
/// end. A second Ctrl-C ends the process at once; --resume works after that, too. A crawl ends
/// by itself when nothing is left to fetch, at a limit, or when nothing was fetched for half an
/// hour (`limits.idle` of the order) and all that is left waits for hosts that cannot be reached.
/// What fails is tried three times, after 5 seconds and 5 minutes (`retry` of the order), while
/// everything else goes on.
///
/// A crawl that has ended with URIs left goes on with --resume: at a limit with a higher one
/// (--max-objects, --max-bytes, --max-time), with pauses by --delay, with other keys by --order.
/// --retry-failed tries again what could not be had, too. Its metadata file is a further one.
/// The directory of a job can be removed once all is stored and nobody wants to go on with it.
///
/// `holdfast crawl status` shows what a crawl does and waits for, while it runs.
///
/// While a job runs, files in the directory `action` of its directory are requests to it. Each
/// is carried out within seconds and then lies in `done` as TIME-NAME; one that cannot be
/// understood lies there as TIME-NAME.refused, with the reason in TIME-NAME.reason. Those that
/// lie there before the crawl begins go before its first fetch.
///
///   pause        no new fetch begins; the time does not count
///   resume       fetches begin again
///   terminate    the crawl ends, is documented and stored
///   NAME.seeds   further seeds, one on each line
///   NAME.reject  URIs that are no longer fetched, one rule on each line: a URI, for all that
///                begins with it; a prefix in SURT form; or a regular expression
///   NAME.accept  rules by which URIs were rejected and that hold no more, one on each line;
///                what they have held back is fetched
///   NAME.free    patterns that are freed from quarantine, one on each line, as printed
///   NAME.retry   failures that are tried again, one rule on each line, as in NAME.reject:
///                `.*` for all; hosts in trouble are asked at once
///   NAME.order   keys of the order that change, as TOML: those of the sections politeness and
///                scope, overlays, and the limits of the whole job
///   NAME.budget  limits of domains, one on each line: DOMAIN OBJECTS BYTES; -1 is no limit;
///                a domain that was over its limit is resumed
///
/// The exit code is 1 if a file was not stored, or URIs are left whose hosts could not be reached,
/// and 4 if no seed could be reached.
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:
  holdfast crawl https://example.org/ --contact https://library.example/harvest
  holdfast crawl http://localhost:8080/docs/ --scope prefix --delay 0 --no-store
  holdfast crawl --seeds seeds.txt --order order.toml --delay '500 ms'
  holdfast crawl https://example.org/ --contact mailto:web@library.example --max-objects 1000 --max-time '2 h'
  holdfast crawl --order order.toml --collection national --job 12 --harvest 34 https://example.org/
  holdfast crawl --resume holdfast-crawls/12_1767225600000
  holdfast crawl --resume holdfast-crawls/12_1767225600000 --max-objects 5000
  holdfast crawl --retry-failed holdfast-crawls/12_1767225600000
  holdfast crawl --salvage holdfast-crawls/12_1767225600000"
)]
pub(crate) struct Crawl {
    #[command(subcommand)]
    verb: Option<CrawlVerb>,
    /// URIs to begin with; `http://` is added where it is missing
    #[arg(value_name = "SEED", required_unless_present_any = ["seeds_file", "resume", "retry_failed", "salvage"])]
    seeds: Vec<String>,
    /// File with further URIs to begin with, one on each line; `#` begins a comment, and `-` is standard input
    #[arg(long = "seeds", value_name = "FILE")]
    seeds_file: Option<PathBuf>,
    /// Go on with the job in this directory
    #[arg(long, value_name = "DIR", conflicts_with_all = SETTINGS_OF_JOB)]
    resume: Option<PathBuf>,
    /// Go on with the job in this directory, whose crawl is over, and try again what could not be had
    #[arg(long, value_name = "DIR", conflicts_with = "resume", conflicts_with_all = SETTINGS_OF_JOB)]
    retry_failed: Option<PathBuf>,
    /// End the job in this directory, whose state is damaged: what it has recorded is documented and stored
    #[arg(long, value_name = "DIR", conflicts_with_all = ["resume", "retry_failed"], conflicts_with_all = CHANGES_OF_JOB, conflicts_with_all = SETTINGS_OF_JOB)]
    salvage: Option<PathBuf>,
    /// The order, a TOML file with the settings of the crawl; the other options override it
    #[arg(long, value_name = "FILE")]
    order: Option<PathBuf>,
    /// The part of a site that a seed stands for [default: domain]
    #[arg(long, value_enum)]
    scope: Option<ScopeArgument>,
    /// Most hops from a seed
    #[arg(long, value_name = "COUNT")]
    max_hops: Option<usize>,
    /// Most objects that the job fetches
    #[arg(long, value_name = "COUNT")]
    max_objects: Option<u64>,
    /// Most bytes that the job fetches, such as '10 GB'
    #[arg(long, value_name = "SIZE")]
    max_bytes: Option<ByteSize>,
    /// Longest time that the job crawls, such as '2 h'
    #[arg(long, value_name = "DURATION")]
    max_time: Option<Period>,
    /// Whether the rules of robots.txt are obeyed [default: obey]
    #[arg(long, value_enum)]
    robots: Option<RobotsArgument>,
    /// Pause of a site after a fetch, such as '3 s'; a bare number counts milliseconds [default: 5 times as long as the
    /// fetch took, at least 3 s and at most 30 s]
    #[arg(long, value_name = "DURATION", value_parser = parse_delay)]
    delay: Option<Period>,
    /// Most requests to one site at once; the site rests after each round of them
    #[arg(long, value_name = "COUNT")]
    connections: Option<NonZeroU16>,
    /// A page about the harvest, or mailto: and an address, where owners of sites can ask
    #[arg(long, value_name = "URL", value_parser = parse_contact)]
    contact: Option<Url>,
    /// Index of earlier jobs, made by `holdfast index dedup`: content that has not changed is not stored again
    #[arg(long, value_name = "FILE")]
    dedup: Option<PathBuf>,
    /// Do not store unchanged text again either [default: text is stored again]
    #[arg(long)]
    dedup_all: bool,
    /// Name server to ask [default: those of this machine]
    #[arg(long, value_name = "ADDRESS")]
    dns: Option<NameServer>,
    /// Network that may be crawled although it is no part of the public web; may be given several times
    #[arg(long, value_name = "CIDR")]
    allow_network: Vec<AddressNetwork>,
    /// Collection of the harvest, with which the names of the files begin
    #[arg(long, value_name = "NAME")]
    collection: Option<Collection>,
    /// Number of the job [default: the milliseconds since 1970]
    #[arg(long, value_name = "N")]
    job: Option<u64>,
    /// Number of the harvest that the job belongs to
    #[arg(long, value_name = "N", default_value = "0")]
    harvest: u64,
    /// Organisation that harvests, for the metadata file [default: the name of this machine]
    #[arg(long, value_name = "NAME")]
    organization: Option<String>,
    /// Put the directory of the job into this one, and keep its archive files after they are stored [default:
    /// holdfast-crawls, and stored files are deleted]
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Store nothing: the archive files stay in the directory of the job
    #[arg(long)]
    no_store: bool,
}

/// A verb of crawls.
#[derive(Debug, Subcommand)]
enum CrawlVerb {
    Status(status::CrawlStatus),
    List(jobs::CrawlList),
    Order(jobs::PrintedOrder),
}

/// The part of a site that a seed stands for.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ScopeArgument {
    /// The host of the seed
    Host,
    /// The domain of the seed, with all hosts below it
    Domain,
    /// The directory of the seed
    Prefix,
}

/// Whether the rules of robots.txt are obeyed.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum RobotsArgument {
    /// The rules are obeyed
    Obey,
    /// The rules are fetched and archived, and not obeyed
    Ignore,
}

impl Crawl {
    /// Runs the crawl in a runtime of its own: Ctrl-C ends the crawl and not the process.
    pub(crate) fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        match self.verb {
            Some(CrawlVerb::Status(status)) => return status.run(context),
            Some(CrawlVerb::List(list)) => return list.run(context),
            Some(CrawlVerb::Order(_)) => return jobs::PrintedOrder::run(context),
            None => {}
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build();
        let runtime = runtime.map_err(|error| {
            Failure::because_failed(format!(
                "cannot start threads: {error}; raise the limits of the process"
            ))
        })?;
        let ended = runtime.block_on(self.crawl(context));
        // What still reads a disk does not keep a person waiting who has pressed Ctrl-C twice.
        runtime.shutdown_background();
        ended
    }

    async fn crawl(self, context: &CommandContext) -> Result<Exit, Failure> {
        let failed = |error: JobDirectoryError| Failure::because_failed(error.to_string());
        let clock = Clock::system_clock();
        let host = host_name();
        let signals = Signals::new().map_err(|error| {
            Failure::because_failed(format!(
                "cannot handle signals: {error}; raise the limits of the process"
            ))
        })?;
        let bar = if context.output.is_json() {
            TransferProgress::hidden()
        } else {
            TransferProgress::counting()
        };
        let mut session = None;
        let directory = if let Some(path) = self.resume.as_ref().or(self.retry_failed.as_ref()) {
            let (directory, words) = resume::take_up(path, &self)?;
            bar.tell_user(&words);
            directory
        } else if let Some(path) = &self.salvage {
            let directory = JobDirectory::open(path).map_err(failed)?;
            give_up_frontier(&directory, &clock)?;
            let path = path.display();
            bar.tell_user(&format!(
                "job {} in {path}: what its crawl has recorded is documented and stored",
                directory.job().id
            ));
            directory
        } else {
            let job = self.job(&clock)?;
            // Before a directory is made for nothing.
            if !self.no_store {
                session = Some(Session::open(&context.global)?);
            }
            let directory = self.begin(job, &clock)?;
            let id = directory.job().id;
            let path = directory.root().display();
            bar.tell_user(&format!("job {id} in {path}"));
            directory
        };
        let run = directory.run_settings().map_err(failed)?;
        let stores_nothing = self.no_store || run.stores_nothing;
        let archive: Option<Arc<dyn Ingest>> = if stores_nothing {
            None
        } else {
            let session = match session {
                Some(session) => session,
                None => Session::open(&context.global)?,
            };
            Some(Arc::new(session.depositor()))
        };
        let environment = JobEnvironment {
            clock: clock.clone(),
            chance: Chance::system_chance(),
            archive,
            patience: PATIENCE,
            keeps_files: self.keep.is_some() || run.keeps_files || stores_nothing,
            address: own_address(),
            organization: self.organization.unwrap_or(run.organization),
            host,
        };
        let (control, requests) = mpsc::unbounded_channel();
        let (progress, watched) = watch::channel(CrawlProgress::default());
        let notices = bar.clone();
        let root = directory.root().to_owned();
        let notify =
            move |notice: JobNotice<'_>| notices.tell_user(&words::describe_notice(notice, &root));
        let running = run_job(
            &directory,
            &environment,
            JobConsole {
                requests,
                progress,
                notify: &notify,
            },
        );
        let ended = tokio::select! {
            ended = running => ended.map_err(|error| broken_off(&error, &directory))?,
            exit = signals.watch_signals(&bar, &control) => {
                let path = directory.root().display();
                bar.tell_user(&format!("ended at once; continue with `holdfast crawl --resume {path}`"));
                return Ok(exit);
            }
            never = progress::show_progress(&bar, &clock, watched) => match never {},
        };
        bar.finish();
        words::report_crawl(context, &ended)
    }

    /// Returns the job that the command line describes.
    fn job(&self, clock: &Clock) -> Result<HarvestJob, Failure> {
        let now = clock.now();
        let order = self.order()?;
        let seeds = self.all_seeds()?;
        order.check_contact(&seeds).map_err(|error| {
            Failure::wrong_usage(format!("{}; give it with --contact", error.message))
        })?;
        let id = self.job.unwrap_or_else(|| {
            // A clock before 1970 is wrong by more than a number of a job.
            u64::try_from(now.as_millisecond()).unwrap_or_default()
        });
        let mut job = HarvestJob::new(id, self.harvest, now)
            .with_seeds(seeds)
            .with_order(order);
        job.collection.clone_from(&self.collection);
        job.harvest.name = command_words();
        job.harvest.template = match &self.order {
            Some(path) => path.display().to_string(),
            None => "default".to_owned(),
        };
        Ok(job)
    }

    /// Begins a job in a new directory.
    fn begin(&self, job: HarvestJob, clock: &Clock) -> Result<JobDirectory, Failure> {
        let base = self.keep.clone().unwrap_or_else(|| PathBuf::from(BASE));
        let run = RunSettings {
            stores_nothing: self.no_store,
            keeps_files: self.keep.is_some(),
            organization: self.organization.clone().unwrap_or_else(host_name),
        };
        let created = JobDirectory::begin_job(&base, job, &run, clock.now());
        created.map_err(|error| Failure::because_failed(error.to_string()))
    }

    /// Returns the seeds of the command line, then those of the file, each once.
    fn all_seeds(&self) -> Result<Vec<Url>, Failure> {
        let mut seeds = Vec::new();
        let mut known = HashSet::new();
        for text in &self.seeds {
            let seed = parse_seed(text)
                .map_err(|error| Failure::wrong_usage(format!("{text}: {error}")))?;
            if known.insert(seed.clone()) {
                seeds.push(seed);
            }
        }
        let Some(path) = &self.seeds_file else {
            return Ok(seeds);
        };
        let text = if path == Path::new("-") {
            std::io::read_to_string(std::io::stdin())
        } else {
            std::fs::read_to_string(path)
        };
        let text = text.map_err(|error| Failure::unreadable_file(path, &error))?;
        for (line, number) in text.lines().zip(1..) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let seed = parse_seed(line).map_err(|error| {
                let path = path.display();
                Failure::wrong_usage(format!("{path}, line {number}: {line}: {error}"))
            })?;
            if known.insert(seed.clone()) {
                seeds.push(seed);
            }
        }
        if seeds.is_empty() {
            let path = path.display();
            return Err(Failure::wrong_usage(format!("{path} names no seed")));
        }
        Ok(seeds)
    }

    /// Returns the order of the file, with the options of the command line over it.
    fn order(&self) -> Result<CrawlOrder, Failure> {
        let wrong = |error: InvalidOrder| Failure::new(Exit::Settings, error.to_string());
        let mut order = match &self.order {
            None => CrawlOrder::default(),
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .map_err(|error| Failure::unreadable_file(path, &error))?;
                CrawlOrder::parse(&text).map_err(wrong)?
            }
        };
        if let Some(scope) = self.scope {
            order.scope.kind = match scope {
                ScopeArgument::Host => ScopeKind::Host,
                ScopeArgument::Domain => ScopeKind::Domain,
                ScopeArgument::Prefix => ScopeKind::Prefix,
            };
        }
        if let Some(robots) = self.robots {
            order.robots.policy = match robots {
                RobotsArgument::Obey => RobotsPolicy::Obey,
                RobotsArgument::Ignore => RobotsPolicy::Ignore,
            };
        }
        if let Some(delay) = self.delay {
            order.politeness.delay_factor = 0.0;
            order.politeness.min_delay = delay;
            order.politeness.max_delay = delay;
        }
        order.scope.max_hops = self.max_hops.unwrap_or(order.scope.max_hops);
        order.limits.max_objects = self.max_objects.or(order.limits.max_objects);
        order.limits.max_bytes = self.max_bytes.or(order.limits.max_bytes);
        order.limits.max_time = self.max_time.or(order.limits.max_time);
        order.queues.connections = self.connections.unwrap_or(order.queues.connections);
        order.http.contact = self.contact.clone().or(order.http.contact);
        if let Some(file) = &self.dedup {
            order.dedup.file = Some(file.clone());
        }
        order.dedup.all |= self.dedup_all;
        if let Some(server) = &self.dns {
            order.dns.servers = vec![*server];
        }
        order
            .networks
            .allow
            .extend(self.allow_network.iter().copied());
        order.check().map_err(wrong)?;
        Ok(order)
    }
}

/// Returns the words of the command line, for the documentation of the crawl; of a long one its beginning.
fn command_words() -> String {
    let words = std::env::args_os().skip(1);
    let words: Vec<String> = words
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let words = format!("holdfast {}", words.join(" "));
    let end = words.floor_char_boundary(LONGEST_NAME);
    words.get(..end).unwrap_or_default().to_owned()
}

/// Reads a contact: a URL, or a mail address by itself.
fn parse_contact(text: &str) -> Result<Url, String> {
    let is_mail = text.contains('@') && !text.contains([':', '/', ' ']);
    let url = if is_mail {
        &format!("mailto:{text}")
    } else {
        text
    };
    Url::parse(url).map_err(|error| {
        format!("{error}: write `https://library.example/harvest`, or `web@library.example`")
    })
}

/// Reads a pause: a duration with its unit, or a number of milliseconds.
fn parse_delay(text: &str) -> Result<Period, String> {
    match text.parse::<u64>() {
        Ok(milliseconds) => Ok(Period::from_millis(milliseconds)),
        Err(_) => text.parse::<Period>().map_err(|error| error.to_string()),
    }
}

/// Gives up the frontier of a job that no process works on.
fn give_up_frontier(directory: &JobDirectory, clock: &Clock) -> Result<(), Failure> {
    let lock = JobLock::acquire(directory).map_err(HarvestJobError::from);
    let _lock = lock.map_err(|error| broken_off(&error, directory))?;
    let given_up = directory.give_up_frontier(clock.now());
    given_up.map_err(|error| Failure::because_failed(error.to_string()))?;
    Ok(())
}

/// Tells a person what to do about a job that has broken off.
fn broken_off(error: &HarvestJobError, directory: &JobDirectory) -> Failure {
    let path = directory.root().display();
    match error {
        HarvestJobError::Lock(LockError::Busy(_)) => Failure::new(Exit::Refused, error.to_string()),
        HarvestJobError::Frontier { .. } => Failure::because_failed(format!(
            "{error}; `holdfast crawl --salvage {path}` does so"
        )),
        _ if matches!(directory.root().try_exists(), Ok(false)) => Failure::because_failed(
            format!("{error}; the directory of the job is gone, and with it what was not stored"),
        ),
        _ => Failure::because_failed(format!(
            "{error}; continue with `holdfast crawl --resume {path}`"
        )),
    }
}
