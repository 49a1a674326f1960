//! The owner of a crawl: what has come is recorded, then the next URIs are given out.
//!
//! Owns the state of every URI between the frontier and its record: which answers of its host it waits for, and whether its
//! address rests. Everything is decided on one thread.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use archive_daemon::clock::Clock;
use archive_durable::Space;
use archive_formats::crawl_log::CrawlLogLine;
use archive_model::ByteSize;
use harvest_model::Job;
use harvest_policy::address::Network;
use harvest_policy::address_turns::{AddressTurns, Ticket};
use harvest_policy::hops::HopPath;
use harvest_policy::status::FetchStatus;
use harvest_policy::turns::Moment;
use jiff::Timestamp;
use tokio::sync::{mpsc, watch};
use url::Url;

use super::hosts::Hosts;
use super::side::{FetchOrder, SideEvent, SideOrder};
use super::{Control, CrawlEnd, CrawlError, CrawlOutcome, CrawlProgress, CrawlSettings, MIN_FREE};
use crate::archive_files::ClosedFile;
use crate::frontier::{Candidate, FrontierUri, Lease, NextUri, Outcome, Urgency};
use crate::process::{FetchPurpose, Processor, queue_name};
use crate::recorder::{FinishedTry, MOST_IN_BATCH, Recorder, RecorderError};

mod events;
mod login;
mod steps;

/// How often what was written is made durable.
const SYNC: Duration = Duration::from_secs(1);

/// The most URIs between the frontier and their record.
const MOST_FLIGHTS: usize = 4096;

/// The channels of an owner.
#[derive(Debug)]
pub(super) struct Channels {
    pub(super) orders: mpsc::UnboundedSender<SideOrder>,
    pub(super) events: mpsc::UnboundedReceiver<SideEvent>,
    pub(super) control: mpsc::UnboundedReceiver<Control>,
    pub(super) closed: mpsc::UnboundedSender<ClosedFile>,
    pub(super) progress: watch::Sender<CrawlProgress>,
}

/// A URI between the frontier and its record.
#[derive(Debug)]
struct Flight {
    subject: FlightSubject,
    uri: FrontierUri,
    url: Url,
    /// The address and the number of its connection, while it is being fetched.
    fetching: Option<(IpAddr, u32)>,
}

#[derive(Debug)]
enum FlightSubject {
    Uri(Lease),
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
pub(super) struct Owner {
    recorder: Recorder,
    directory: PathBuf,
    job: Arc<Job>,
    /// The networks that may be connected to, whatever they are.
    allowed: Vec<Network>,
    max_fetches: usize,
    processor: Arc<Processor>,
    clock: Clock,
    channels: Channels,
    begin: Instant,
    hosts: Hosts,
    turns: AddressTurns,
    flights: HashMap<Ticket, Flight>,
    next_ticket: Ticket,
    /// The URIs that wait for an answer of their host, by the URI of the question.
    asking: HashMap<String, Vec<Ticket>>,
    /// URIs that have waited for such an answer, and can go on.
    released: VecDeque<Ticket>,
    /// The login forms that were sent, by the number of their credential.
    sent_logins: HashSet<usize>,
    /// URIs whose address is free, and that wait for a free connection.
    may_go: VecDeque<(Ticket, IpAddr)>,
    fetching: usize,
    free_connections: Vec<u32>,
    finished: Vec<FinishedTry>,
    /// The moment of the next turn of a queue.
    later: Option<Moment>,
    is_exhausted: bool,
    end: Option<CrawlEnd>,
    progress: CrawlProgress,
}

impl Owner {
    pub(super) fn new(
        recorder: Recorder,
        settings: &CrawlSettings,
        processor: Arc<Processor>,
        clock: Clock,
        channels: Channels,
    ) -> Self {
        let job = Arc::clone(&settings.job);
        let connections = job.order.queues.connections.get().into();
        let max_fetches = job.order.limits.max_fetches.get().into();
        let begin = clock.instant();
        Self {
            recorder,
            allowed: job.order.allowed_networks(&job.seeds),
            max_fetches,
            directory: settings.directory.clone(),
            job,
            processor,
            clock,
            channels,
            begin,
            hosts: Hosts::default(),
            turns: AddressTurns::new(connections),
            flights: HashMap::new(),
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
            progress: CrawlProgress::default(),
        }
    }

    /// Crawls to the end. What was recorded stays recorded, whatever happens.
    pub(super) async fn run(mut self) -> Result<CrawlOutcome, CrawlError> {
        let totals = self.recorder.frontier().totals();
        (self.progress.fetched, self.progress.bytes) = (totals.successes, totals.bytes);
        for url in self
            .recorder
            .frontier()
            .accepted_seeds()
            .map_err(RecorderError::from)?
        {
            self.accept_seed(&url);
        }
        self.schedule_seeds(&Arc::clone(&self.job).seeds)?;
        while let Ok(request) = self.channels.control.try_recv() {
            self.take_control(request)?;
        }
        let mut synced = self.clock.instant();
        loop {
            loop {
                self.record()?;
                self.give_out()?;
                let passed = self.clock.instant().saturating_duration_since(synced);
                if self.finished.is_empty() || passed >= SYNC {
                    self.record()?;
                    break;
                }
            }
            // Also where one refused URI follows the other. What a request changes is done at once.
            if let Ok(request) = self.channels.control.try_recv() {
                self.take_control(request)?;
                continue;
            }
            self.publish();
            if let Some(end) = self.over() {
                return self.close(end);
            }
            let wait = self.next_wake(synced);
            tokio::select! {
                event = self.channels.events.recv() => {
                    if event.is_none() {
                        // Nobody works for this crawl any more: its process ends.
                        self.recorder.sync()?;
                        return self.close(CrawlEnd::Suspended);
                    }
                    let mut next = event;
                    while let Some(event) = next {
                        self.take_event(event)?;
                        next = if self.finished.len() < MOST_IN_BATCH {
                            self.channels.events.try_recv().ok()
                        } else {
                            None
                        };
                    }
                }
                Some(request) = self.channels.control.recv() => self.take_control(request)?,
                () = self.clock.sleep(wait) => {}
            }
            let now = self.clock.instant();
            if now.saturating_duration_since(synced) >= SYNC {
                self.recorder.sync()?;
                synced = now;
                self.look_for_space()?;
            }
        }
    }

    /// Whether the disk has room for another fetch. An upload, or a person, makes some.
    fn look_for_space(&mut self) -> Result<(), CrawlError> {
        let space = Space::of(&self.directory).map_err(RecorderError::from)?;
        self.progress.lacks_space = space.free < MIN_FREE;
        Ok(())
    }

    fn now(&self) -> Moment {
        self.moment_of(self.clock.instant())
    }

    fn moment_of(&self, instant: Instant) -> Moment {
        instant.saturating_duration_since(self.begin)
    }

    fn schedule_seeds(&mut self, seeds: &[Url]) -> Result<(), CrawlError> {
        let hasher = self.processor.hasher;
        let candidates = seeds.iter().map(|url| {
            let source = url.as_str().to_owned();
            Candidate {
                queue: queue_name(&self.processor.queues, url, None),
                key: hasher.key_of(url),
                cost: 1,
                uri: FrontierUri {
                    uri: source.clone(),
                    hops: HopPath::seed().to_string(),
                    via: None,
                    source: Some(source),
                    urgency: Urgency::High,
                    tries: 0,
                },
            }
        });
        let candidates = candidates.collect();
        self.recorder.schedule(candidates)?;
        Ok(())
    }

    /// Writes down what is over.
    fn record(&mut self) -> Result<(), CrawlError> {
        if self.finished.is_empty() {
            return Ok(());
        }
        for closed in self.recorder.record(std::mem::take(&mut self.finished))? {
            // A job that has gone does not upload.
            drop(self.channels.closed.send(closed));
        }
        Ok(())
    }

    /// Gives out the URIs whose turn it is.
    fn give_out(&mut self) -> Result<(), CrawlError> {
        let now = self.now();
        self.check_limits(now);
        while let Some(ticket) = self.released.pop_front() {
            self.proceed(ticket)?;
        }
        let due = self.turns.due(now);
        self.may_go.extend(due);
        self.go();
        self.later = None;
        self.is_exhausted = false;
        while self.end.is_none()
            && !self.progress.is_paused
            && !self.progress.lacks_space
            && self.fetching < self.max_fetches
            && self.flights.len() < MOST_FLIGHTS
            && self.finished.len() < MOST_IN_BATCH
            && self.has_room()
        {
            match self.recorder.next(now)? {
                NextUri::Fetch(lease) => self.begin_flight(*lease)?,
                NextUri::Later(moment) => {
                    self.later = Some(moment);
                    break;
                }
                NextUri::Waiting => break,
                NextUri::Over => {
                    self.is_exhausted = true;
                    break;
                }
            }
            self.go();
        }
        Ok(())
    }

    /// Whether one more URI stays within the limit of objects.
    fn has_room(&self) -> bool {
        let under_way = u64::try_from(self.flights.len()).unwrap_or(u64::MAX);
        let begun = self.progress.fetched.saturating_add(under_way);
        self.job
            .order
            .limits
            .max_objects
            .is_none_or(|limit| begun < limit)
    }

    fn check_limits(&mut self, now: Moment) {
        let limits = &self.job.order.limits;
        let reached = |limit: Option<u64>, value| limit.is_some_and(|limit| value >= limit);
        let end = if reached(limits.max_objects, self.progress.fetched) {
            CrawlEnd::ObjectLimit
        } else if reached(limits.max_bytes.map(ByteSize::bytes), self.progress.bytes) {
            CrawlEnd::DataLimit
        } else if limits.max_time.is_some_and(|limit| now >= limit.duration()) {
            CrawlEnd::TimeLimit
        } else {
            return;
        };
        self.end.get_or_insert(end);
    }

    fn begin_flight(&mut self, lease: Lease) -> Result<(), CrawlError> {
        let uri = lease.uri.clone();
        let Ok(url) = Url::parse(&uri.uri) else {
            self.refuse_lease(lease, FetchStatus::UNFETCHABLE, None);
            return Ok(());
        };
        if let Some(pattern) = self.recorder.holds(&url) {
            let pattern = pattern.to_owned();
            let outcome = Outcome {
                status: FetchStatus::BLOCKED_BY_USER,
                bytes: 0,
                goes_back: false,
                rests_until: Moment::ZERO,
            };
            return Ok(self.recorder.hold_back(&pattern, lease, outcome)?);
        }
        let ticket = self.add_flight(FlightSubject::Uri(lease), uri, url);
        self.proceed(ticket)
    }

    fn add_flight(&mut self, subject: FlightSubject, uri: FrontierUri, url: Url) -> Ticket {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let flight = Flight {
            subject,
            uri,
            url,
            fetching: None,
        };
        self.flights.insert(ticket, flight);
        ticket
    }

    /// Fetches what may go, as far as there are connections.
    fn go(&mut self) {
        let waits = self.progress.is_paused || self.progress.lacks_space;
        // At the end they give back their turns.
        while self.fetching < self.max_fetches && (self.end.is_some() || !waits) {
            let Some((ticket, address)) = self.may_go.pop_front() else {
                return;
            };
            let connection = self.free_connections.pop();
            let connection =
                connection.unwrap_or_else(|| u32::try_from(self.fetching).unwrap_or(u32::MAX));
            let Some(flight) = self.flights.get_mut(&ticket).filter(|_| self.end.is_none()) else {
                self.turns.ended(address, Moment::ZERO);
                continue;
            };
            flight.fetching = Some((address, connection));
            self.fetching += 1;
            let order = FetchOrder {
                ticket,
                uri: flight.uri.clone(),
                url: flight.url.clone(),
                address,
                connection,
                purpose: match flight.subject {
                    FlightSubject::Uri(_) => FetchPurpose::Page,
                    FlightSubject::Robots { .. } => FetchPurpose::Robots,
                    FlightSubject::Login { number } => FetchPurpose::Login(number),
                },
            };
            // The other end lives as long as this one.
            drop(self.channels.orders.send(SideOrder::Fetch(Box::new(order))));
        }
    }

    fn accept_seed(&self, url: &Url) {
        let mut scope = self.processor.scope.write();
        let scope = scope
            .as_deref_mut()
            .unwrap_or_else(|poisoned| poisoned.get_mut());
        let suffixes = &self.processor.queues.suffixes;
        let order = &self.job.order;
        order.accept_seed(url, suffixes, &mut scope.accepted);
    }

    /// Why the crawl is over, if it is.
    fn over(&self) -> Option<CrawlEnd> {
        if self.end.is_some() {
            return self.end.filter(|_| self.fetching == 0);
        }
        let waits = self.progress.is_paused || self.progress.lacks_space;
        let is_idle = self.is_exhausted && self.flights.is_empty() && !waits;
        is_idle.then_some(CrawlEnd::Finished)
    }
}

/// The line of a URI that no host was asked for.
pub(super) fn line_without_fetch(
    uri: &FrontierUri,
    status: FetchStatus,
    time: Timestamp,
) -> CrawlLogLine {
    CrawlLogLine {
        time,
        status: status.number(),
        size: None,
        uri: uri.uri.clone(),
        hops: uri.hops.clone(),
        via: uri.via.clone(),
        media_type: None,
        thread: 0,
        begun: None,
        milliseconds: 0,
        digest: None,
        source: uri.source.clone(),
        annotations: Vec::new(),
    }
}
