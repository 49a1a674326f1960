//! When a crawl ends, and what it leaves: limits, idleness, want of room, the last lines and its outcome.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use archive_durable::Space;
use archive_model::{ByteSize, Period};
use harvest_policy::address_turns::RequestTicket;
use harvest_policy::status::{FetchStatus, TryDecision};
use harvest_policy::turns::CrawlMoment;

use super::login::login_name;
use super::{CrawlOwner, InFlightSubject, InFlightUri, SYNC};
use crate::crawl::log_line::crawl_log_line;
use crate::crawl::workers::WorkerCommand;
use crate::crawl::{ConnectionSnapshot, CrawlEnd, CrawlError, CrawlNotice, CrawlOutcome};
use crate::frontier::FrontierUri;
use crate::recorder::{FinishedTry, RecorderError, TrySubject};

/// The time for which fetches under way may go on when the crawl is to end, or has no room left.
const GRACE: Duration = Duration::from_secs(10);

/// The interval at which the running time is written when nothing else is.
const KEEP_RUNNING: Duration = Duration::from_secs(10);

/// The bytes of a body from which on it may be ended for want of room on the disk.
const LARGE_BODY: u64 = 64 << 20;

/// The most failing seeds that people are notified of while the crawl runs.
const MOST_TOLD_SEEDS: usize = 20;

/// The most failing seeds that are remembered.
const MOST_FAILING_SEEDS: usize = 1000;

impl CrawlOwner {
    /// Returns whether one more URI stays within the limit of objects.
    pub(super) fn has_room(&self) -> bool {
        let under_way = self.in_flight.len() as u64;
        let begun = self.progress.fetched.saturating_add(under_way);
        self.job
            .order
            .limits
            .max_objects
            .is_none_or(|limit| begun < limit)
    }

    pub(super) fn check_limits(&mut self, now: CrawlMoment) {
        let limits = &self.job.order.limits;
        let reached = |limit: Option<u64>, value| limit.is_some_and(|limit| value >= limit);
        let running = self.running.time_at(now);
        let end = if reached(limits.max_objects, self.progress.fetched) {
            CrawlEnd::ObjectLimit
        } else if reached(limits.max_bytes.map(ByteSize::bytes), self.progress.bytes) {
            CrawlEnd::DataLimit
        } else if limits
            .max_time
            .is_some_and(|limit| running >= limit.duration())
        {
            CrawlEnd::TimeLimit
        } else {
            return;
        };
        self.decide_end(end);
    }

    /// Decides to end the crawl, unless that was decided before.
    pub(super) fn decide_end(&mut self, end: CrawlEnd) {
        if self.end.is_none() {
            self.end = Some(end);
            self.ending_since = Some(self.now());
        }
    }

    /// Checks the conditions that no event reports: the room on the disk, whether anything was finished lately, and the
    /// time that is left.
    pub(super) fn check_conditions(&mut self) -> Result<(), CrawlError> {
        let now = self.now();
        // An upload, or a person, makes room.
        let space = Space::measure_space(&self.directory).map_err(RecorderError::from)?;
        self.limit_bodies(space.free);
        let lacked_space = self.progress.lacks_space;
        self.progress.lacks_space = space.free < self.min_free;
        if !self.progress.lacks_space {
            self.lacks_space_since = None;
        } else if self.lacks_space_since.is_none() {
            self.lacks_space_since = Some(now);
            self.notify(CrawlNotice::LacksSpace);
        }
        if lacked_space && !self.progress.lacks_space {
            self.last_finished = now;
        }
        let since = self.lacks_space_since.filter(|_| self.fetching > 0);
        if since.is_some_and(|since| now >= since.saturating_add(GRACE)) {
            self.cut_fetches();
        }
        let idle = self.job.order.limits.idle.duration();
        let lacks_space = self.lacks_space_since;
        if self.is_idle(now) {
            self.decide_end(CrawlEnd::Idle);
        } else if lacks_space.is_some_and(|since| now >= since.saturating_add(idle)) {
            // Nobody makes room. A person does, or moves the job, and resumes it.
            self.decide_end(CrawlEnd::Suspended);
        }
        self.running.set_running(now, !self.holds_fetches());
        let running = self.running.time_at(now);
        let is_due = running >= self.kept_running.saturating_add(KEEP_RUNNING);
        if is_due {
            self.kept_running = running;
        }
        self.recorder.set_running_time(running, is_due);
        if !self.holds_fetches() && self.end.is_none() {
            self.recorder.begin_trials()?;
        }
        self.progress.quarantined = self.count_quarantined();
        let troubled = self.rests.count_troubled(now);
        (self.progress.resting_hosts, self.progress.lost_hosts) = troubled;
        self.progress.lacks_proxy = self.rests.is_proxy_lost();
        let frontier = self.recorder.frontier();
        let next = frontier.next_retry();
        let fetching = self
            .in_flight
            .values()
            .filter_map(|flight| flight.fetching.as_ref());
        let received = fetching.map(|fetching| fetching.received.load(Ordering::Relaxed));
        self.progress.bytes_under_way = received.sum();
        self.progress.next_try = next.map(|next| self.clock.time_after(next.saturating_sub(now)));
        self.progress.deferred = frontier.deferred_uris();
        self.progress.retired_queues = frontier.retired_queues() as u64;
        self.progress.queues = frontier.queue_lengths();
        Ok(())
    }

    /// Says how large a body may be. A large one ends where it has taken as much of the disk as is left, since its records
    /// take as much again: it is recorded up to there, and is not asked for again. Where there is no room at all a large
    /// one ends first; the others are put back, and asked for again once there is room.
    fn limit_bodies(&self, free: u64) {
        let fetching = self
            .in_flight
            .values()
            .filter_map(|flight| flight.fetching.as_ref());
        let received = fetching.map(|fetching| fetching.received.load(Ordering::Relaxed));
        let largest = received.max().unwrap_or(0);
        let room = if free < self.min_free {
            (largest / 2).max(LARGE_BODY)
        } else {
            // Half of what was free before it came.
            (free - self.min_free)
                .saturating_add(largest)
                .max(2 * LARGE_BODY)
                / 2
        };
        self.room.store(room, Ordering::Relaxed);
    }

    pub(super) fn count_quarantined(&self) -> u64 {
        self.recorder.quarantine().held_patterns().count() as u64
    }

    /// Returns whether nothing was finished for too long, and no URI is left that waits for nothing but its turn, or for
    /// a host that has asked for patience.
    fn is_idle(&self, now: CrawlMoment) -> bool {
        let idle = self.job.order.limits.idle.duration();
        let waits_for_proxy = self.rests.is_proxy_lost() && self.fetching == 0;
        !self.holds_fetches()
            && (waits_for_proxy || self.in_flight.is_empty())
            && self.finished.is_empty()
            && now.saturating_sub(self.last_finished) >= idle
            && self.recorder.frontier().waiting_uris() > 0
            && (waits_for_proxy || !self.recorder.frontier().has_fresh_uris())
            && !self.rests.has_busy_hosts(now)
            && self
                .recorder
                .frontier()
                .next_retry()
                .is_none_or(|due| due > now)
    }

    /// Ends all fetches under way; their URIs come again.
    fn cut_fetches(&mut self) {
        _ = self.channels.commands.send(WorkerCommand::CutFetches);
        let now = self.now();
        let fetching = self.in_flight.iter();
        let fetching = fetching.filter(|(_, flight)| flight.fetching.is_some());
        let tickets: Vec<RequestTicket> = fetching.map(|(ticket, _)| *ticket).collect();
        for ticket in tickets {
            if let Some(flight) = self.remove_in_flight(ticket) {
                self.put_back_fetch(flight, now);
            }
        }
    }

    /// Puts the URI of a fetch of which nothing is recorded back into its queue, which rests until a moment.
    pub(super) fn put_back_fetch(&mut self, flight: InFlightUri, until: CrawlMoment) {
        if let Some(fetching) = flight.fetching {
            self.turns.end_request(fetching.address, until);
        }
        self.put_back_subject(flight.subject, until);
    }

    /// Puts a URI in flight that is not being fetched back into its queue, which rests until a moment.
    pub(super) fn put_back_waiting(&mut self, ticket: RequestTicket, until: CrawlMoment) {
        if let Some(flight) = self.in_flight.remove(&ticket) {
            self.put_back_subject(flight.subject, until);
        }
    }

    /// Puts a URI back into its queue, or those that have waited for an answer of their host.
    fn put_back_subject(&mut self, subject: InFlightSubject, until: CrawlMoment) {
        let name = match subject {
            InFlightSubject::Uri(lease) => return self.recorder.put_back(&lease, until),
            InFlightSubject::Robots { asked, .. } => asked,
            InFlightSubject::Login { number } => login_name(number),
        };
        for ticket in self.asking.remove(&name).unwrap_or_default() {
            self.put_back_waiting(ticket, until);
        }
    }

    /// Notes the progress of a seed, and tells people of one that fails.
    pub(super) fn note_seed(&mut self, uri: &FrontierUri, status: FetchStatus, after: TryDecision) {
        let is_seed = uri.source.as_ref() == Some(&uri.uri);
        if !is_seed {
            return;
        }
        if status.is_success() {
            self.failing_seeds.remove(&uri.uri);
            return;
        }
        let again = match after {
            TryDecision::RetryAfter(delay) => Some((delay, self.job.order.retry.max_tries.get())),
            TryDecision::Finished(_) => None,
            TryDecision::Deferred => return,
        };
        if self.failing_seeds.len() < MOST_FAILING_SEEDS {
            self.failing_seeds.insert(uri.uri.clone(), status);
        }
        // The tries between the first and the last one tell nothing new.
        let is_news = uri.tries == 0 || again.is_none();
        if is_news && status.is_failure() && self.told_seeds < MOST_TOLD_SEEDS {
            self.told_seeds += 1;
            self.notify(CrawlNotice::SeedFailed {
                seed: uri.uri.clone(),
                status,
                again,
                idle: self.job.order.limits.idle.duration(),
            });
        }
    }

    /// Returns the reason why the crawl is over; `None` if it is not.
    pub(super) fn end_reason(&self) -> Option<CrawlEnd> {
        if let Some(end) = self.end {
            // As many as there may be are under way.
            let is_patient = matches!(
                end,
                CrawlEnd::ObjectLimit | CrawlEnd::DataLimit | CrawlEnd::Finished
            );
            let since = self.ending_since.unwrap_or_default();
            let has_waited = !is_patient && self.now() >= since.saturating_add(GRACE);
            return (self.fetching == 0 || has_waited).then_some(end);
        }
        let is_idle = self.is_exhausted && self.in_flight.is_empty() && !self.holds_fetches();
        is_idle.then_some(CrawlEnd::Finished)
    }

    /// Returns the time for which nothing is to be done unless an event comes.
    pub(super) fn next_wake(&self, synced: Instant) -> Duration {
        let now = self.now();
        let next_sync = self.moment_of(synced).saturating_add(SYNC);
        let limit = self.job.order.limits.max_time.map(Period::duration);
        let left = limit.map(|limit| limit.saturating_sub(self.running.time_at(now)));
        let limit = left.map(|left| now.saturating_add(left));
        let limit = limit.filter(|_| self.end.is_none() && !self.holds_fetches());
        let cut = self.ending_since.map(|since| since.saturating_add(GRACE));
        let cut = cut.filter(|cut| *cut > now);
        let moments = [
            self.later,
            self.turns.next_due(),
            Some(next_sync),
            limit,
            cut,
        ];
        let next = moments.into_iter().flatten().min().unwrap_or(next_sync);
        next.saturating_sub(now)
    }

    pub(super) fn publish_figures(&mut self) {
        let frontier = self.recorder.frontier();
        self.progress.queued = frontier.waiting_uris();
        self.progress.active_queues = frontier.active_queues() as u64;
        self.progress.under_way = self.fetching as u64;
        let progress = &self.progress;
        self.channels.progress.send_if_modified(|last| {
            let differs = last != progress;
            if differs {
                last.clone_from(progress);
            }
            differs
        });
    }

    /// Ends the crawl: its last file is closed, unless it is to be resumed.
    pub(super) fn close_crawl(mut self, end: CrawlEnd) -> Result<CrawlOutcome, CrawlError> {
        let running = self.running.time_at(self.now());
        self.recorder.set_running_time(running, true);
        if end == CrawlEnd::Suspended {
            self.recorder.sync_files()?;
            return self.outcome(end);
        }
        for (lease, quota) in self.recorder.retired_heads()? {
            let status = FetchStatus::BLOCKED_BY_QUOTA;
            let mut line = crawl_log_line(&lease.uri, status, self.clock.now());
            line.annotations.push(quota.annotation().to_owned());
            // The URI stays: a job that goes on with a higher limit fetches it.
            self.finished.push(FinishedTry {
                subject: TrySubject::Prerequisite {
                    uri: lease.uri.uri,
                    answer: None,
                },
                records: Vec::new(),
                lines: vec![line],
                candidates: Vec::new(),
                content: None,
            });
        }
        self.record()?;
        if end == CrawlEnd::Idle {
            // Who lets the crawl go on does so because the hosts may be reached now.
            let now = self.now();
            self.recorder.recall_retries(now, |_| true)?;
        }
        if let Some(closed) = self.recorder.close_file()? {
            _ = self.channels.closed.send(closed);
        }
        self.outcome(end)
    }

    fn outcome(self, end: CrawlEnd) -> Result<CrawlOutcome, CrawlError> {
        let connections = self.connections();
        let remaining = self.recorder.frontier().count_remaining();
        let remaining = remaining.map_err(RecorderError::from)?;
        let seeds = self.failing_seeds.iter();
        Ok(CrawlOutcome {
            end,
            duration: self.running.time_at(self.now()),
            remaining: remaining.by_host,
            remaining_of_seeds: remaining.by_seed,
            quarantined: self.recorder.quarantined_patterns(),
            failing_seeds: seeds
                .map(|(seed, status)| (seed.clone(), status.number()))
                .collect(),
            progress: self.progress,
            taken_back: 0,
            connections,
        })
    }

    /// Returns the connections as they are now.
    fn connections(&self) -> Vec<ConnectionSnapshot> {
        let now = self.now();
        let under_way = self.in_flight.values().filter_map(|flight| {
            let fetching = flight.fetching.as_ref()?;
            Some(ConnectionSnapshot {
                number: fetching.connection,
                uri: Some(flight.uri.uri.clone()),
                elapsed: now.saturating_sub(fetching.since),
            })
        });
        let free = self.free_connections.iter();
        let free = free.map(|number| ConnectionSnapshot {
            number: *number,
            uri: None,
            elapsed: Duration::ZERO,
        });
        let mut connections: Vec<ConnectionSnapshot> = under_way.chain(free).collect();
        connections.sort_by_key(|connection| connection.number);
        connections
    }
}
