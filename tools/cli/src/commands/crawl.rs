//! `holdfast crawl`: one harvest job, from its seeds to its receipts.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use archive_client::Ingest;
use archive_daemon::Clock;
use archive_daemon::clock::Chance;
use archive_model::{ByteSize, Period};
use clap::{Args, ValueEnum};
use harvest_controller::{
    JobDirectory, JobParts, JobReport, JobStatus, Notice, RunSettings, run_job,
};
use harvest_crawler::crawl::{Control, CrawlProgress};
use harvest_model::order::{NameServer, RobotsPolicy, ScopeKind};
use harvest_model::seed::parse_seed;
use harvest_model::{Collection, InvalidOrder, Job, Order};
use harvest_policy::address::Network;
use tokio::sync::{mpsc, watch};
use url::Url;

use super::Context;
use crate::exit::{Exit, Failure};
use crate::output::{size, tell};
use crate::progress::Progress;
use crate::session::Session;

/// How long an archive that is down is waited for.
const PATIENCE: Duration = Duration::from_hours(24);

/// The directory of jobs, unless another one is named.
const BASE: &str = "holdfast-crawls";

/// Crawl sites, document the crawl, and store all of it
///
/// Begins with the seeds and follows links within the scope, politely. Each archive file is stored in every replica as soon as
/// it is full, and the metadata file last; a local file is deleted only when its receipt is kept. The job has a directory of
/// its own, with its logs, reports and receipts. Ctrl-C ends the crawl so that --resume goes on with it; a file `pause`,
/// `resume`, `terminate` or NAME.seeds in the directory `action` of the job is a request to it. The exit code is 1 if a file
/// is not stored.
///
/// Outside of this machine nothing is fetched without --contact: a page, or mailto: and an address, where the owner of a site
/// can ask about the visit.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast crawl https://example.org/ --contact https://library.example/harvest
  holdfast crawl http://localhost:8080/docs/ --scope prefix --delay 0 --no-store
  holdfast crawl https://example.org/ --contact mailto:web@library.example --max-objects 1000 --max-time '2 h'
  holdfast crawl --order order.toml --collection national --job 12 --harvest 34 https://example.org/
  holdfast crawl --resume holdfast-crawls/12_1767225600000")]
pub(crate) struct Crawl {
    /// Where to begin: URIs; without `http://` in front it is added
    #[arg(value_name = "SEED", required_unless_present = "resume")]
    seeds: Vec<String>,
    /// Go on with the job in this directory
    #[arg(long, value_name = "DIR", conflicts_with_all = ["seeds", "order", "job", "harvest", "collection"])]
    resume: Option<PathBuf>,
    /// The crawl settings, a TOML file; the other options stand over it
    #[arg(long, value_name = "FILE")]
    order: Option<PathBuf>,
    /// The part of a site that a seed stands for [default: domain]
    #[arg(long, value_enum)]
    scope: Option<ScopeArgument>,
    /// The most hops from a seed
    #[arg(long, value_name = "N")]
    max_hops: Option<usize>,
    /// The most objects of the job
    #[arg(long, value_name = "N")]
    max_objects: Option<u64>,
    /// The most bytes of the job, such as '10 GB'
    #[arg(long, value_name = "SIZE")]
    max_bytes: Option<ByteSize>,
    /// The longest time of the job, such as '2 h'
    #[arg(long, value_name = "TIME")]
    max_time: Option<Period>,
    /// Whether the rules of robots.txt hold [default: obey]
    #[arg(long, value_enum)]
    robots: Option<RobotsArgument>,
    /// The pause of a host after each fetch, in milliseconds [default: 5 times the fetch, 3 to 30 s]
    #[arg(long, value_name = "MS")]
    delay: Option<u64>,
    /// The most requests at a time to one site
    #[arg(long, value_name = "N")]
    connections: Option<NonZeroU16>,
    /// A page about the harvest, or mailto: and an address
    #[arg(long, value_name = "URL")]
    contact: Option<Url>,
    /// The index of earlier jobs, made by `holdfast index dedup`: what has not changed is not stored again
    #[arg(long, value_name = "FILE")]
    dedup: Option<PathBuf>,
    /// Look up text as well
    #[arg(long)]
    dedup_all: bool,
    /// The name server to ask, instead of those of this machine
    #[arg(long, value_name = "ADDRESS")]
    dns: Option<NameServer>,
    /// A network that may be crawled though it is no part of the public web; may be given several times
    #[arg(long, value_name = "CIDR")]
    allow_network: Vec<Network>,
    /// The collection, which begins the names of the files
    #[arg(long, value_name = "NAME")]
    collection: Option<Collection>,
    /// The number of the job [default: the milliseconds since 1970]
    #[arg(long, value_name = "N")]
    job: Option<u64>,
    /// The number of the harvest that the job belongs to
    #[arg(long, value_name = "N", default_value = "0")]
    harvest: u64,
    /// The organisation that harvests, in the metadata file [default: the name of this machine]
    #[arg(long, value_name = "NAME")]
    organization: Option<String>,
    /// Keep the job in this directory, and its archive files also when they are stored
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Store nothing: the files stay in the directory of the job
    #[arg(long)]
    no_store: bool,
}

/// The part of a site that a seed stands for.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ScopeArgument {
    /// Its host
    Host,
    /// Its domain, with all hosts below it
    Domain,
    /// Its directory
    Prefix,
}

/// Whether the rules of robots.txt hold.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum RobotsArgument {
    /// They hold
    Obey,
    /// They are fetched and archived, and do not hold
    Ignore,
}

impl Crawl {
    /// Brings its own runtime: Ctrl-C ends the crawl and not the process.
    pub(crate) fn run(self, context: &Context) -> Result<Exit, Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build();
        let runtime = runtime
            .map_err(|error| Failure::failed(format!("no threads: {error}; raise the limits")))?;
        runtime.block_on(self.crawl(context))
    }

    async fn crawl(self, context: &Context) -> Result<Exit, Failure> {
        let clock = Clock::system();
        let host = host_name();
        let directory = match &self.resume {
            Some(path) => {
                JobDirectory::open(path).map_err(|error| Failure::failed(error.to_string()))?
            }
            None => self.begin(&clock)?,
        };
        let run = directory
            .run_settings()
            .map_err(|error| Failure::failed(error.to_string()))?;
        let stores_nothing = self.no_store || run.stores_nothing;
        let archive: Option<Arc<dyn Ingest>> = if stores_nothing {
            None
        } else {
            let session = Session::open(&context.global)?;
            Some(Arc::new(session.depositor()))
        };
        let parts = JobParts {
            clock,
            chance: Chance::system(),
            archive,
            patience: PATIENCE,
            keeps_files: self.keep.is_some() || run.keeps_files || stores_nothing,
            address: own_address(),
            organization: self.organization.unwrap_or(run.organization),
            host,
        };
        let bar = if context.output.is_json() {
            Progress::hidden()
        } else {
            Progress::counting()
        };
        let (control, requests) = mpsc::unbounded_channel();
        let (progress, watched) = watch::channel(CrawlProgress::default());
        let told = bar.clone();
        let notify = move |notice: Notice<'_>| told.tell(&words(notice));
        let running = run_job(&directory, &parts, requests, progress, &notify);
        let interrupted = async {
            // Without the signal's handler there is nothing to wait for: the signal then ends the process itself.
            if tokio::signal::ctrl_c().await.is_ok() {
                bar.tell("ending the crawl; press Ctrl-C again to end at once");
                drop(control.send(Control::Suspend));
                if tokio::signal::ctrl_c().await.is_ok() {
                    return;
                }
            }
            std::future::pending::<()>().await;
        };
        let ended = tokio::select! {
            ended = running => ended.map_err(|error| {
                let path = directory.root().display();
                Failure::failed(format!("{error}; go on with `holdfast crawl --resume {path}`"))
            })?,
            () = interrupted => return Ok(Exit::Interrupted),
            () = show(&bar, watched) => return Err(Failure::failed("")),
        };
        bar.finish();
        report(context, &ended)
    }

    /// Makes the job that the command line describes, and its directory.
    fn begin(&self, clock: &Clock) -> Result<JobDirectory, Failure> {
        let now = clock.now();
        let order = self.order()?;
        let mut seeds = Vec::new();
        for text in &self.seeds {
            let seed =
                parse_seed(text).map_err(|error| Failure::usage(format!("{text}: {error}")))?;
            if !seeds.contains(&seed) {
                seeds.push(seed);
            }
        }
        order.check_contact(&seeds).map_err(|error| {
            Failure::usage(format!("{}; give it with --contact", error.message))
        })?;
        let id = self.job.unwrap_or_else(|| {
            // A clock before 1970 is wrong by more than a number of a job.
            u64::try_from(now.as_millisecond()).unwrap_or_default()
        });
        let mut job = Job::new(id, self.harvest, now, seeds, order);
        job.collection.clone_from(&self.collection);
        let base = self.keep.clone().unwrap_or_else(|| PathBuf::from(BASE));
        let run = RunSettings {
            stores_nothing: self.no_store,
            keeps_files: self.keep.is_some(),
            organization: self.organization.clone().unwrap_or_else(host_name),
        };
        let created = JobDirectory::create(&base, job, now).and_then(|directory| {
            directory.keep_run_settings(&run)?;
            Ok(directory)
        });
        created.map_err(|error| Failure::failed(error.to_string()))
    }

    /// The order of the file, with the options of the command line over it.
    fn order(&self) -> Result<Order, Failure> {
        let wrong = |error: InvalidOrder| Failure::new(Exit::Settings, error.to_string());
        let mut order = match &self.order {
            None => Order::default(),
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .map_err(|error| Failure::unreadable(path, &error))?;
                Order::parse(&text).map_err(wrong)?
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
            let delay = Period::from_millis(delay);
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

/// Shows how far a crawl is, for as long as it is polled.
async fn show(bar: &Progress, mut progress: watch::Receiver<CrawlProgress>) {
    while progress.changed().await.is_ok() {
        let now = progress.borrow_and_update().clone();
        let size = size(now.bytes);
        let pause = if now.is_paused {
            ", paused"
        } else if now.lacks_space {
            ", waiting for room on the disk"
        } else {
            ""
        };
        bar.message(format!(
            "{} fetched ({size}), {} queued, {} failed{pause}",
            now.fetched, now.queued, now.failed
        ));
    }
    std::future::pending::<()>().await;
}

fn words(notice: Notice<'_>) -> String {
    match notice {
        Notice::Stored(name) => format!("{name}: stored"),
        Notice::Waiting { name, error, pause } => {
            format!("{name}: {error} (tried again in {pause:?})")
        }
        Notice::NotStored { name, why } => format!("{name}: not stored: {why}"),
        Notice::Action(name) => format!("{name}: taken"),
        Notice::ActionRefused { name, why } => format!("{name}: refused: {why}"),
        Notice::Salvaged { name, what } => format!("{name}: {what}"),
        Notice::NothingHarvested => {
            "the crawl has written no archive file: look into logs/crawl.log for the reason"
                .to_owned()
        }
        Notice::TakenBack(count) => format!(
            "{count} URIs are fetched again: their records had not reached the disk when the job ended"
        ),
    }
}

fn report(context: &Context, report: &JobReport) -> Result<Exit, Failure> {
    if context.output.is_json() {
        context.output.document(report)?;
    } else {
        let bytes = size(report.bytes);
        let output = &context.output;
        output.line(&format!(
            "job {}: {} objects, {bytes}; {}",
            report.job, report.objects, report.stop_reason
        ))?;
        for domain in &report.domains {
            let bytes = size(domain.bytes);
            output.line(&format!(
                "  {}: {} objects, {bytes}; {}",
                domain.domain, domain.objects, domain.stop_reason
            ))?;
        }
        for held in &report.quarantined {
            output.line(&format!(
                "  {}: under quarantine, {} URIs are held back; to fetch them, write this pattern into a file NAME.free in the \
                 directory `action` of a job that runs",
                held.pattern, held.uris
            ))?;
        }
        for file in &report.files {
            let state = if file.stored { "stored" } else { "kept here" };
            output.line(&format!("  {}: {state}", file.name))?;
        }
        output.line(&format!("logs and reports: {}", report.directory))?;
    }
    Ok(match report.status {
        JobStatus::Done => Exit::Done,
        JobStatus::Failed => {
            let unstored = report.files.iter().filter(|file| !file.stored).count();
            if unstored > 0 {
                tell(&format!(
                    "{unstored} files are not stored; go on with `holdfast crawl --resume {}`",
                    report.directory
                ));
            } else {
                tell("the crawl broke off, and what it had recorded is stored");
            }
            Exit::Failed
        }
        JobStatus::Suspended => {
            tell(&format!(
                "go on with `holdfast crawl --resume {}`",
                report.directory
            ));
            Exit::Interrupted
        }
    })
}

/// The name of this machine, as file names may have it.
fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let allowed = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    let name: String = name.trim().chars().filter(allowed).collect();
    if name.is_empty() {
        "localhost".to_owned()
    } else {
        name
    }
}

/// The address that this machine has towards the public web; nothing is sent to find it.
fn own_address() -> IpAddr {
    let address = || {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
        // An address for documentation (RFC 5737): the way to it is the way to all others.
        socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
        Some(socket.local_addr().ok()?.ip())
    };
    address().unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
}
