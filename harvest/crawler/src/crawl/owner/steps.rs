//! The steps of a URI before its fetch: addresses of its host, robots.txt, a turn at its address.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use harvest_model::order::RobotsPolicy;
use harvest_policy::address::{BEHIND_PROXY, ForbiddenAddress, decide_address};
use harvest_policy::address_turns::RequestTicket;
use harvest_policy::hops::Hop;
use harvest_policy::host_rests::HostPort;
use harvest_policy::status::{FetchStatus, FinishedAttempt, TryDecision};
use jiff::Timestamp;
use url::{Host, Url};

use super::{CrawlOwner, InFlightSubject};
use crate::crawl::CrawlError;
use crate::crawl::hosts::{dns_uri, robots_uri};
use crate::crawl::log_line::crawl_log_line;
use crate::crawl::workers::WorkerCommand;
use crate::frontier::{FrontierUri, LeaseOutcome, NextStep, PrerequisiteRow, Urgency, UriLease};
use crate::recorder::{FinishedTry, RecorderError, TrySubject};

/// The most requests that wait for one address; further ones wait in their queues.
const MOST_WAITING: usize = 16;

/// The shortest time that each request which waits for an address is expected to take.
const SHORTEST_WAY: Duration = Duration::from_millis(100);

impl CrawlOwner {
    /// Takes a URI in flight one step nearer to its fetch: addresses of its host, robots.txt, a turn at its address.
    pub(super) fn advance_request(&mut self, ticket: RequestTicket) -> Result<(), CrawlError> {
        let Some(flight) = self.in_flight.get(&ticket) else {
            return Ok(());
        };
        let url = flight.url.clone();
        let tries = flight.uri.tries;
        if !self.is_host_open(ticket, &url)? {
            return Ok(());
        }
        let time = self.clock.now();
        let addresses: Arc<[IpAddr]> = match url.host() {
            Some(Host::Ipv4(address)) => Arc::new([address.into()]),
            Some(Host::Ipv6(address)) => Arc::new([address.into()]),
            Some(Host::Domain(host)) if self.job.order.http.proxy.is_some() => {
                let is_local = host == "localhost" || host.ends_with(".localhost");
                let local = IpAddr::V4(Ipv4Addr::LOCALHOST);
                Arc::new([if is_local { local } else { BEHIND_PROXY }])
            }
            Some(Host::Domain(host)) => {
                let frontier = self.recorder.frontier();
                let found = self.hosts.host_addresses(host, frontier, time);
                let Some(addresses) = found.map_err(RecorderError::from)? else {
                    return self.ask_for_address(host, ticket);
                };
                addresses
            }
            None => Arc::new([]),
        };
        let permitted = addresses.iter().copied();
        let permitted = permitted.filter(|address| self.decide_address(*address).is_ok());
        let mut permitted: Vec<IpAddr> = permitted.collect();
        permitted.sort_by_key(|address| self.turns.waiting_at(*address));
        // The address at which the fewest wait; each try takes another one. Where none is permitted, the first address says why.
        let host = HostPort::of_url(&url);
        let address = host.and_then(|host| {
            self.rests
                .pick_address(&host, &permitted, tries as usize, self.now())
        });
        let Some(address) = address.or(addresses.first().copied()) else {
            let status = if url.has_host() && matches!(url.scheme(), "http" | "https") {
                FetchStatus::DOMAIN_PREREQUISITE_FAILED
            } else {
                FetchStatus::UNFETCHABLE
            };
            self.refuse_uri(ticket, status, None);
            return Ok(());
        };
        if !matches!(url.scheme(), "http" | "https") {
            self.refuse_uri(ticket, FetchStatus::UNFETCHABLE, None);
            return Ok(());
        }
        if let Err(forbidden) = self.decide_address(address) {
            let annotation = format!("address:{:?}", forbidden.purpose);
            self.refuse_uri(ticket, FetchStatus::BLOCKED_BY_ADDRESS, Some(annotation));
            return Ok(());
        }
        if self.job.order.http.contact.is_none() && !address.is_loopback() {
            let annotation = Some("address:NoContact".to_owned());
            self.refuse_uri(ticket, FetchStatus::BLOCKED_BY_ADDRESS, annotation);
            return Ok(());
        }
        if self.put_off_if_crowded(ticket, &url, address) {
            return Ok(());
        }
        if !self.is_allowed_by_robots(ticket, &url, time)? || !self.is_logged_in(ticket, &url)? {
            return Ok(());
        }
        if let Some(flight) = self.in_flight.get_mut(&ticket) {
            flight.addresses = permitted;
        }
        let now = self.now();
        if self.turns.ask_turn(address, ticket, now) {
            self.may_go.push_back((ticket, address));
        }
        Ok(())
    }

    /// Decides whether an address may be connected to. Of those that it knows alone, the proxy decides.
    fn decide_address(&self, address: IpAddr) -> Result<(), ForbiddenAddress> {
        if address == BEHIND_PROXY && self.job.order.http.proxy.is_some() {
            return Ok(());
        }
        decide_address(address, &self.allowed)
    }

    /// Puts a URI off whose address many others wait for already: they would take the places of those that need not
    /// wait.
    fn put_off_if_crowded(&mut self, ticket: RequestTicket, url: &Url, address: IpAddr) -> bool {
        let flight = self.in_flight.get(&ticket);
        let may_wait = flight.is_none_or(|flight| {
            flight.has_waited || !matches!(flight.subject, InFlightSubject::Uri(_))
        });
        let waiting = self.turns.waiting_at(address);
        if may_wait || waiting < MOST_WAITING {
            return false;
        }
        // About the time that the requests take which wait already.
        let own = self.job.order.politeness_for(url).min_delay;
        let pause = self.address_pause.map_or(own, |pause| pause.min(own));
        let pause = pause.max(SHORTEST_WAY);
        let rest = pause.saturating_mul(u32::try_from(waiting).unwrap_or(u32::MAX));
        let until = self.now().saturating_add(rest);
        self.put_back_waiting(ticket, until);
        true
    }

    fn ask_for_address(&mut self, host: &str, ticket: RequestTicket) -> Result<(), CrawlError> {
        if let Some(until) = self.rests.name_server_rest(self.now()) {
            return match self.in_flight.remove(&ticket) {
                Some(flight) => self.defer_subject(flight.subject, until),
                None => Ok(()),
            };
        }
        let waiting = self.asking.entry(dns_uri(host)).or_default();
        waiting.push(ticket);
        if waiting.len() == 1 {
            let command = WorkerCommand::Resolve(host.to_owned());
            // The other end lives as long as this one.
            _ = self.channels.commands.send(command);
        }
        Ok(())
    }

    /// Returns whether a URI in flight may go on to its fetch: its host's robots.txt is known and allows it, or it is
    /// one itself.
    fn is_allowed_by_robots(
        &mut self,
        ticket: RequestTicket,
        url: &Url,
        time: Timestamp,
    ) -> Result<bool, CrawlError> {
        let flight = self.in_flight.get(&ticket);
        let is_robots =
            |subject: &InFlightSubject| matches!(subject, InFlightSubject::Robots { .. });
        let is_asked = flight.is_some_and(|flight| !is_robots(&flight.subject));
        let robots = robots_uri(url).filter(|robots| is_asked && robots != url);
        let Some(robots) = robots else {
            return Ok(true);
        };
        let product = &self.job.order.robots.agent;
        let frontier = self.recorder.frontier();
        let rules = self
            .hosts
            .host_robots(robots.as_str(), product, frontier, time);
        let rules = rules.map_err(RecorderError::from)?;
        if let Some(rules) = rules {
            let path = url.query().map_or_else(
                || url.path().to_owned(),
                |query| format!("{}?{query}", url.path()),
            );
            let allows = self.job.order.robots_policy_for(url) == RobotsPolicy::Ignore
                || rules.allows_path(&path);
            if !allows {
                let annotation = Some("robotExcluded".to_owned());
                self.refuse_uri(ticket, FetchStatus::ROBOTS_PRECLUDED, annotation);
            }
            return Ok(allows);
        }
        let waiting = self.asking.entry(robots.as_str().to_owned()).or_default();
        waiting.push(ticket);
        if waiting.len() == 1 {
            let asked = robots.as_str().to_owned();
            let subject = InFlightSubject::Robots {
                asked,
                redirects: 0,
            };
            let ticket = self.add_prerequisite(ticket, subject, robots);
            self.advance_request(ticket)?;
        }
        Ok(false)
    }

    /// Adds a prerequisite: the fetch that another URI in flight waits for.
    pub(super) fn add_prerequisite(
        &mut self,
        needed_by: RequestTicket,
        subject: InFlightSubject,
        url: Url,
    ) -> RequestTicket {
        let flight = self.in_flight.get(&needed_by);
        let hops = flight.map(|flight| flight.uri.hops_to(Hop::Prerequisite));
        let uri = FrontierUri {
            uri: url.as_str().to_owned(),
            hops: hops.unwrap_or_default(),
            via: flight.map(|flight| flight.uri.uri.clone()),
            source: flight.and_then(|flight| flight.uri.source.clone()),
            urgency: Urgency::Prerequisite,
            // The same address as for the URI that waits for it.
            tries: flight.map_or(0, |flight| flight.uri.tries),
        };
        self.add_in_flight(subject, uri, url)
    }

    /// Ends the question for a robots.txt that cannot be had: what waits for it is tried again later, unless that
    /// `is_lasting`. `cause`: how it failed. `retry_after`: the time that the host asks for.
    pub(super) fn fail_robots(
        &mut self,
        asked: &str,
        cause: FetchStatus,
        is_lasting: bool,
        retry_after: Option<Duration>,
    ) {
        if self.robots_policy_of(asked) == RobotsPolicy::Ignore {
            return self.continue_without_robots(asked);
        }
        let status = FetchStatus::ROBOTS_PREREQUISITE_FAILED;
        // An answer such as 503 is no failure by itself.
        let cause = if cause.is_failure() { cause } else { status };
        for ticket in self.asking.remove(asked).unwrap_or_default() {
            let Some(flight) = self.in_flight.remove(&ticket) else {
                continue;
            };
            match flight.subject {
                InFlightSubject::Uri(lease) => {
                    let tries = lease.uri.tries.saturating_add(1);
                    let again = self.after_try(status, tries);
                    let after = match again {
                        _ if is_lasting => TryDecision::Finished(status),
                        TryDecision::RetryAfter(delay) => {
                            let most = self.processor.retry.max_retry_after;
                            let asked = retry_after.map(|asked| asked.min(most));
                            TryDecision::RetryAfter(asked.unwrap_or(delay))
                        }
                        TryDecision::Deferred | TryDecision::Finished(_) => again,
                    };
                    self.refuse_because(lease, status, after, None, cause);
                }
                InFlightSubject::Login { number } => {
                    self.fail_login(number, &flight.uri, status, None);
                }
                // Nothing is asked for before it.
                InFlightSubject::Robots { .. } => {}
            }
        }
    }

    /// Returns the policy of the order for the robots.txt that was asked for, wherever redirects have led.
    pub(super) fn robots_policy_of(&self, asked: &str) -> RobotsPolicy {
        let order = &self.job.order;
        let url = Url::parse(asked);
        url.map_or(order.robots.policy, |url| order.robots_policy_for(&url))
    }

    /// Lets URIs go on that have waited for a robots.txt that cannot be had, and that the order does not heed.
    fn continue_without_robots(&mut self, asked: &str) {
        let holds = self.job.order.robots.validity.duration();
        let answer = PrerequisiteRow::Robots {
            status: None,
            file: Vec::new(),
            until: self.clock.time_after(holds).as_second(),
        };
        let product = &self.job.order.robots.agent;
        drop(self.hosts.put_robots(asked, product, &answer));
        let waiting = self.asking.remove(asked);
        self.released.extend(waiting.unwrap_or_default());
    }

    /// Ends the way of a URI in flight without a fetch.
    pub(super) fn refuse_uri(
        &mut self,
        ticket: RequestTicket,
        status: FetchStatus,
        annotation: Option<String>,
    ) {
        let Some(flight) = self.in_flight.remove(&ticket) else {
            return;
        };
        match flight.subject {
            InFlightSubject::Uri(lease) => self.refuse_lease(lease, status, annotation),
            InFlightSubject::Robots { asked, .. } => {
                self.fail_robots(&asked, status, false, None);
            }
            InFlightSubject::Login { number } => {
                self.fail_login(number, &flight.uri, status, annotation);
            }
        }
    }

    pub(super) fn refuse_lease(
        &mut self,
        lease: UriLease,
        status: FetchStatus,
        annotation: Option<String>,
    ) {
        let tries = lease.uri.tries.saturating_add(1);
        let after = self.after_try(status, tries);
        self.refuse_because(lease, status, after, annotation, status);
    }

    fn after_try(&self, status: FetchStatus, tries: u32) -> TryDecision {
        self.processor.retry.after_try(FinishedAttempt {
            status,
            tries,
            retry_after: None,
            is_cut: false,
        })
    }

    /// Refuses a URI. `cause`: the reason that people read of a seed, where the status says less.
    pub(super) fn refuse_because(
        &mut self,
        lease: UriLease,
        status: FetchStatus,
        after: TryDecision,
        annotation: Option<String>,
        cause: FetchStatus,
    ) {
        let tries = lease.uri.tries.saturating_add(1);
        let mut lines = Vec::new();
        if let TryDecision::Finished(last) = after {
            let mut line = crawl_log_line(&lease.uri, last, self.clock.now());
            if tries > 1 {
                line.annotations.push(format!("{tries}t"));
            }
            line.annotations.extend(annotation);
            // The last status says only that there were too many tries.
            if status == FetchStatus::DNS_FAILED {
                line.annotations.push("err=Dns".to_owned());
            } else if status == FetchStatus::ROBOTS_PREREQUISITE_FAILED {
                line.annotations.push("err=Robots".to_owned());
            }
            lines.push(line);
        }
        let now = self.now();
        let next = match after {
            TryDecision::Finished(_) => NextStep::Finish,
            TryDecision::Deferred => NextStep::GoBack,
            TryDecision::RetryAfter(delay) => NextStep::RetryAt(now.saturating_add(delay)),
        };
        let is_finished = matches!(after, TryDecision::Finished(_));
        self.progress.failed += u64::from(is_finished && status.is_failure());
        self.note_seed(&lease.uri, cause, after);
        let outcome = LeaseOutcome {
            status,
            bytes: 0,
            next,
            rests_until: now,
        };
        self.finished.push(FinishedTry {
            subject: TrySubject::Uri { lease, outcome },
            records: Vec::new(),
            lines,
            candidates: Vec::new(),
            content: None,
        });
    }
}
