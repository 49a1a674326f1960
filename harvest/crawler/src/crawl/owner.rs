//! The owner of a crawl: what has come is recorded, then the next URIs are given out.
//!
//! Owns the state of every URI between the frontier and its record: which answers of its host it waits for, and whether
//! its address rests. Everything is decided on one thread.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::net::IpAddr;
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use archive_daemon::clock::Clock;
use harvest_model::HarvestJob;
use harvest_policy::address::AddressNetwork;
use harvest_policy::address_turns::{AddressTurns, RequestTicket};
use harvest_policy::host_rests::{HostRests, HostStanding};
use harvest_policy::queue_name::QueueKind;
use harvest_policy::status::FetchStatus;
use harvest_policy::turns::CrawlMoment;
use tokio::sync::{mpsc, watch};
use url::Url;

use super::hosts::HostAnswers;
use super::workers::{FetchCommand, WorkerCommand, WorkerEvent, exchange_limits};
use super::{
    ControlRequest, CrawlCommand, CrawlEnd, CrawlError, CrawlNotice, CrawlOutcome, CrawlProgress,
    CrawlSettings, ViewRequest,
};
use crate::archive_files::ClosedFile;
use crate::frontier::{FrontierUri, LeaseOutcome, NextStep, NextUri, SeenKey, Urgency, UriLease};
use crate::process::{FetchProcessor, FetchPurpose};
use crate::recorder::{CrawlRecorder, FinishedTry, MOST_IN_BATCH, RecorderNews, TrySubject};

use self::cut_answers::CutAnswers;
use self::running_time::RunningTime;

mod begin;
mod cut_answers;
mod ending;
mod events;
mod login;
mod requests;
mod rests;
mod running_time;
mod steps;
mod view;

/// The interval at which what was written is made durable.
const SYNC: Duration = Duration::from_secs(1);

/// The most URIs between the frontier and their record.
const MOST_IN_FLIGHT: usize = 4096;

/// The channels of an owner.
#[derive(Debug)]
pub(super) struct OwnerChannels {
    pub(super) commands: mpsc::UnboundedSender<WorkerCommand>,
    pub(super) events: mpsc::UnboundedReceiver<WorkerEvent>,
    pub(super) control: mpsc::UnboundedReceiver<CrawlCommand>,
    pub(super) requests: mpsc::UnboundedReceiver<ControlRequest>,
    pub(super) views: mpsc::UnboundedReceiver<ViewRequest>,
    pub(super) closed: mpsc::UnboundedSender<ClosedFile>,
    pub(super) notices: mpsc::UnboundedSender<CrawlNotice>,
    pub(super) progress: watch::Sender<CrawlProgress>,
}

/// A URI between the frontier and its record.
#[derive(Debug)]
struct InFlightUri {
    subject: InFlightSubject,
    uri: FrontierUri,
    url: Url,
    /// The connection that fetches the URI; `None` before and after its fetch.
    fetching: Option<FetchConnection>,
    /// The addresses of the host that may be asked, once they are known.
    addresses: Vec<IpAddr>,
    /// Whether the URI has waited for robots.txt: then it is not put back while others wait for its address.
    has_waited: bool,
}

/// The connection of a fetch.
#[derive(Clone, Debug)]
struct FetchConnection {
    address: IpAddr,
    /// The bytes that have come.
    received: Arc<AtomicU64>,
    /// The number of the connection in the crawl log.
    connection: u32,
    since: CrawlMoment,
}

#[derive(Debug)]
enum InFlightSubject {
    Uri(UriLease),
    /// A robots.txt, or where a redirect says that it is.
    Robots {
        /// The URI that other URIs wait for.
        asked: String,
        redirects: u8,
    },
    /// A login form, by the number of its credential.
    Login {
        number: usize,
    },
}

/// The owner of a crawl.
#[derive(Debug)]
pub(super) struct CrawlOwner {
    recorder: CrawlRecorder,
    directory: PathBuf,
    /// The version of the crawler, for its user agent.
    version: String,
    job: Arc<HarvestJob>,
    /// The networks that may be connected to, whatever they are.
    allowed: Vec<AddressNetwork>,
    max_fetches: usize,
    processor: Arc<FetchProcessor>,
    clock: Clock,
    channels: OwnerChannels,
    begin: Instant,
    hosts: HostAnswers,
    /// The hosts in trouble.
    rests: HostRests,
    /// The longest answers so far of URIs whose hosts have broken off, and that are tried again.
    cut_answers: CutAnswers,
    turns: AddressTurns,
    /// The longest pause of a connection to an address; `None`: that of the host.
    address_pause: Option<Duration>,
    in_flight: HashMap<RequestTicket, InFlightUri>,
    next_ticket: RequestTicket,
    /// The URIs that wait for an answer of their host, by the URI of the question.
    asking: HashMap<String, Vec<RequestTicket>>,
    /// URIs that have waited for such an answer, and can go on.
    released: VecDeque<RequestTicket>,
    /// The login forms that were sent, by the number of their credential.
    sent_logins: HashSet<usize>,
    /// URIs whose address is free, and that wait for a free connection.
    may_go: VecDeque<(RequestTicket, IpAddr)>,
    fetching: usize,
    free_connections: Vec<u32>,
    finished: Vec<FinishedTry>,
    /// The moment of the next turn of a queue.
    later: Option<CrawlMoment>,
    is_exhausted: bool,
    end: Option<CrawlEnd>,
    /// The moment at which the end of the crawl was decided.
    ending_since: Option<CrawlMoment>,
    progress: CrawlProgress,
    running: RunningTime,
    /// The running time that is durable.
    kept_running: Duration,
    /// The moment at which a URI was last finished, or a pause ended.
    last_finished: CrawlMoment,
    /// The bytes that have to be free on the disk for a fetch to begin.
    min_free: u64,
    /// The most bytes that a body may have for want of room on the disk.
    room: Arc<AtomicU64>,
    lacks_space_since: Option<CrawlMoment>,
    /// The seeds whose last try has failed.
    failing_seeds: BTreeMap<String, FetchStatus>,
    told_seeds: usize,
    told_hosts: usize,
}

/// The means of an owner.
pub(super) struct OwnerSetup {
    pub(super) recorder: CrawlRecorder,
    pub(super) processor: Arc<FetchProcessor>,
    pub(super) clock: Clock,
    /// The most bytes that a body may have for want of room on the disk.
    pub(super) room: Arc<AtomicU64>,
    pub(super) channels: OwnerChannels,
    /// The first moment of the crawl in this process.
    pub(super) begin: Instant,
}

impl CrawlOwner {
    pub(super) fn new(settings: &CrawlSettings, setup: OwnerSetup) -> Self {
        let OwnerSetup {
            recorder,
            processor,
            clock,
            room,
            channels,
            begin,
        } = setup;
        let job = Arc::clone(&settings.job);
        let address_pause = address_pause(&job);
        let places = address_places(&job);
        let max_fetches = job.order.limits.max_fetches.get().into();
        let running = recorder.frontier().running_time();
        let job_retry = job.order.retry_rules();
        Self {
            recorder,
            allowed: job.order.allowed_networks(&job.seeds),
            max_fetches,
            directory: settings.directory.clone(),
            version: settings.version.clone(),
            job,
            processor,
            clock,
            channels,
            begin,
            hosts: HostAnswers::default(),
            rests: HostRests::new(job_retry),
            cut_answers: CutAnswers::default(),
            turns: AddressTurns::new(places),
            address_pause,
            in_flight: HashMap::new(),
            next_ticket: 0,
            asking: HashMap::new(),
            released: VecDeque::new(),
            sent_logins: HashSet::new(),
            may_go: VecDeque::new(),
            fetching: 0,
            free_connections: Vec::new(),
            finished: Vec::new(),
            later: None,
            is_exhausted: false,
            end: None,
            ending_since: None,
            progress: CrawlProgress::default(),
            running: RunningTime::new(running),
            kept_running: running,
            last_finished: CrawlMoment::ZERO,
            min_free: settings.min_free,
            room,
            lacks_space_since: None,
            failing_seeds: BTreeMap::new(),
            told_seeds: 0,
            told_hosts: 0,
        }
    }

    /// Crawls to the end. What was recorded stays recorded, whatever happens.
    pub(super) async fn run_owner(mut self) -> Result<CrawlOutcome, CrawlError> {
        self.begin_crawl()?;
        let mut synced = self.clock.instant();
        loop {
            loop {
                self.record()?;
                self.lease_uris()?;
                let passed = self.clock.elapsed_since(synced);
                if self.finished.is_empty() || passed >= SYNC {
                    self.record()?;
                    break;
                }
            }
            // Also where one refused URI follows the other. What a request changes is done at once.
            if let Ok(request) = self.channels.control.try_recv() {
                self.handle_command(request)?;
                continue;
            }
            if let Ok(request) = self.channels.requests.try_recv() {
                self.handle_request(request)?;
                continue;
            }
            self.publish_figures();
            if let Some(end) = self.end_reason() {
                return self.close_crawl(end);
            }
            let wait = self.next_wake(synced);
            tokio::select! {
                event = self.channels.events.recv() => {
                    if event.is_none() {
                        // Nobody works for this crawl any more: its process ends.
                        self.recorder.sync_files()?;
                        return self.close_crawl(CrawlEnd::Suspended);
                    }
                    let mut next = event;
                    while let Some(event) = next {
                        self.handle_event(event)?;
                        next = if self.finished.len() < MOST_IN_BATCH {
                            self.channels.events.try_recv().ok()
                        } else {
                            None
                        };
                    }
                }
                Some(request) = self.channels.control.recv() => self.handle_command(request)?,
                Some(request) = self.channels.requests.recv() => self.handle_request(request)?,
                Some(request) = self.channels.views.recv() => {
                    // Who asked may have gone.
                    _ = request.answer.send(self.view(&request.question)?);
                }
                () = self.clock.sleep(wait) => {}
            }
            let now = self.clock.instant();
            if now.saturating_duration_since(synced) >= SYNC {
                self.check_conditions()?;
                self.recorder.sync_files()?;
                synced = now;
            }
        }
    }

    fn now(&self) -> CrawlMoment {
        self.moment_of(self.clock.instant())
    }

    fn moment_of(&self, instant: Instant) -> CrawlMoment {
        instant.saturating_duration_since(self.begin)
    }

    /// Returns whether no fetch begins now, for a person's sake or for want of room.
    const fn holds_fetches(&self) -> bool {
        self.progress.is_paused || self.progress.lacks_space
    }

    /// Writes down what is over.
    fn record(&mut self) -> Result<(), CrawlError> {
        if self.finished.is_empty() {
            return Ok(());
        }
        let is_over = |finished: &FinishedTry| match &finished.subject {
            TrySubject::Uri { outcome, .. } => outcome.is_final(),
            TrySubject::Prerequisite { .. } => false,
        };
        if self.finished.iter().any(is_over) {
            self.last_finished = self.now();
        }
        let finished = std::mem::take(&mut self.finished);
        for finished in &finished {
            if let TrySubject::Uri { lease, outcome } = &finished.subject
                && outcome.is_lost()
            {
                // Before anybody can read in the log that the URI is lost.
                let key = self.processor.hasher.key_of_text(&lease.uri.uri);
                self.processor.forget_key(&key);
            }
        }
        let found = finished.iter();
        let found = found.filter(|finished| !self.recorder.holds_links_of(finished));
        let candidates = found.flat_map(|finished| &finished.candidates);
        let keys: Vec<SeenKey> = candidates.map(|candidate| candidate.key).collect();
        for closed in self.recorder.record_batch(finished)? {
            // A job that has gone does not upload.
            _ = self.channels.closed.send(closed);
        }
        self.processor.remember_keys(keys.into_iter());
        for news in self.recorder.take_news() {
            let notice = match news {
                RecorderNews::Held(pattern) => {
                    self.progress.quarantined += 1;
                    CrawlNotice::Quarantined(pattern)
                }
                RecorderNews::SameWords(page, name) => {
                    self.progress.quarantined += 1;
                    CrawlNotice::SameWords(page, name)
                }
            };
            self.notify(notice);
        }
        Ok(())
    }

    /// Sends a notice, if somebody listens.
    fn notify(&self, notice: CrawlNotice) {
        _ = self.channels.notices.send(notice);
    }

    /// Leases the URIs whose turn it is.
    fn lease_uris(&mut self) -> Result<(), CrawlError> {
        let now = self.now();
        self.running.set_running(now, !self.holds_fetches());
        self.check_limits(now);
        self.recorder.wake_retries(now)?;
        while let Some(ticket) = self.released.pop_front() {
            self.advance_request(ticket)?;
        }
        let due = self.turns.take_due(now);
        self.may_go.extend(due);
        self.start_fetches();
        self.later = None;
        self.is_exhausted = false;
        if let Some(until) = self.rests.proxy_rest(now) {
            self.later = Some(until);
            return Ok(());
        }
        let mut held = 0; // Between very many of them it is looked at what else has come.
        while self.end.is_none()
            && !self.holds_fetches()
            && self.fetching < self.max_fetches
            && self.in_flight.len() < MOST_IN_FLIGHT
            && self.finished.len() < MOST_IN_BATCH
            && self.has_room()
        {
            match self.recorder.next(now)? {
                NextUri::Fetch(lease) => {
                    held += usize::from(!self.begin_way(*lease)?);
                    if held == MOST_IN_BATCH {
                        self.later = Some(now);
                        break;
                    }
                }
                NextUri::Later(moment) => {
                    self.later = Some(moment);
                    break;
                }
                NextUri::Waiting => break,
                NextUri::Over if self.recorder.begin_trials()? => {}
                NextUri::Over => {
                    self.is_exhausted = true;
                    break;
                }
            }
            self.start_fetches();
        }
        Ok(())
    }

    /// Begins the way of a URI to its fetch. Not if it is held back: then nothing is said of it.
    fn begin_way(&mut self, lease: UriLease) -> Result<bool, CrawlError> {
        let uri = lease.uri.clone();
        let Ok(url) = Url::parse(&uri.uri) else {
            self.refuse_lease(lease, FetchStatus::UNFETCHABLE, None);
            return Ok(true);
        };
        if self.recorder.rejects_url(&url) {
            self.refuse_lease(lease, FetchStatus::BLOCKED_BY_USER, None);
            return Ok(true);
        }
        let is_trial = uri.urgency == Urgency::Trial;
        if let Some(pattern) = self.recorder.holding_pattern(&url).filter(|_| !is_trial) {
            let pattern = pattern.to_owned();
            let outcome = LeaseOutcome {
                status: FetchStatus::BLOCKED_BY_USER,
                bytes: 0,
                next: NextStep::Finish,
                rests_until: CrawlMoment::ZERO,
            };
            self.recorder.hold_back(&pattern, lease, outcome)?;
            return Ok(false);
        }
        let standing = self.host_standing(&url);
        if standing != HostStanding::Open {
            self.leave_to_host(lease, &url, standing)?;
            return Ok(standing == HostStanding::GivenUp);
        }
        let ticket = self.add_in_flight(InFlightSubject::Uri(lease), uri, url);
        self.advance_request(ticket)?;
        Ok(true)
    }

    fn add_in_flight(
        &mut self,
        subject: InFlightSubject,
        uri: FrontierUri,
        url: Url,
    ) -> RequestTicket {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let flight = InFlightUri {
            subject,
            uri,
            url,
            fetching: None,
            addresses: Vec::new(),
            has_waited: false,
        };
        self.in_flight.insert(ticket, flight);
        ticket
    }

    /// Fetches what may go, as far as there are connections.
    fn start_fetches(&mut self) {
        let now = self.now();
        let waits = self.holds_fetches() || self.rests.proxy_rest(now).is_some();
        // At the end they give back their turns.
        while self.fetching < self.max_fetches && (self.end.is_some() || !waits) {
            let Some((ticket, address)) = self.may_go.pop_front() else {
                return;
            };
            // The host may have got into trouble since.
            let rests = self.in_flight.get(&ticket).is_some_and(|flight| {
                matches!(flight.subject, InFlightSubject::Uri(_))
                    && self.host_standing(&flight.url) != HostStanding::Open
            });
            if rests && self.end.is_none() {
                self.turns.end_request(address, CrawlMoment::ZERO);
                self.released.push_back(ticket);
                continue;
            }
            let Some(flight) = self
                .in_flight
                .get_mut(&ticket)
                .filter(|_| self.end.is_none())
            else {
                self.turns.end_request(address, CrawlMoment::ZERO);
                continue;
            };
            let connection = self.free_connections.pop().unwrap_or_else(|| {
                u32::try_from(self.fetching).expect("`max_fetches` of an order is a `u16`")
            });
            let received = Arc::new(AtomicU64::new(0));
            flight.fetching = Some(FetchConnection {
                address,
                received: Arc::clone(&received),
                connection,
                since: now,
            });
            self.fetching += 1;
            let purpose = match flight.subject {
                InFlightSubject::Uri(_) => FetchPurpose::Page,
                InFlightSubject::Robots { .. } => FetchPurpose::Robots,
                InFlightSubject::Login { number } => FetchPurpose::Login(number),
            };
            let command = FetchCommand {
                ticket,
                cut: self.cut_answers.take_answer(&flight.uri.uri),
                uri: flight.uri.clone(),
                url: flight.url.clone(),
                address,
                received,
                limits: exchange_limits(&self.job.order, &flight.url, purpose),
                user_agent: self
                    .job
                    .order
                    .overlaid_user_agent(&flight.url, &self.version),
                connection,
                purpose,
            };
            // The other end lives as long as this one.
            _ = self
                .channels
                .commands
                .send(WorkerCommand::Fetch(Box::new(command)));
        }
    }
}

/// Returns the longest pause of a connection to an address. One behind a proxy is not known. Queues by seed may ask one host: its pause is kept where
/// they meet.
fn address_pause(job: &HarvestJob) -> Option<Duration> {
    if job.order.http.proxy.is_some() {
        return Some(Duration::ZERO);
    }
    let by_address = &job.order.politeness.address;
    (job.order.queues.by != QueueKind::Seed).then(|| by_address.min_delay.duration())
}

/// Returns the number of requests that an address has at a time.
fn address_places(job: &HarvestJob) -> NonZeroU16 {
    let own = job.order.queues.connections;
    if job.order.http.proxy.is_some() {
        // Whose address a host shares only the proxy knows: its queue is polite to it.
        NonZeroU16::MAX
    } else if job.order.queues.by == QueueKind::Seed {
        own
    } else {
        own.max(job.order.politeness.address.connections)
    }
}
