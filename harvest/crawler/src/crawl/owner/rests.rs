//! Hosts and name servers in trouble: what waits for them, and what people are told.
//!
//! Owns that a URI whose host rests waits beside its queue, which goes on, and that one whose host is given up is
//! recorded as failed.

use std::net::IpAddr;

use harvest_model::order::RobotsPolicy;
use harvest_policy::address_turns::RequestTicket;
use harvest_policy::host_rests::{HostPort, HostStanding, HostTrouble};
use harvest_policy::status::{FetchStatus, TryDecision};
use harvest_policy::turns::CrawlMoment;
use url::Url;

use super::login::login_name;
use super::{CrawlOwner, InFlightSubject, InFlightUri};
use crate::crawl::workers::WorkerCommand;
use crate::crawl::{CrawlError, CrawlNotice};
use crate::exchange::proxy::ProxyFailure;
use crate::frontier::UriLease;
use crate::process::{FetchedUri, ProcessedUri};

/// The most given-up hosts that people are told of while the crawl runs.
const MOST_TOLD_HOSTS: usize = 20;

impl CrawlOwner {
    /// Returns what the host of a URI may be asked now.
    pub(super) fn host_standing(&self, url: &Url) -> HostStanding {
        if self.rests.is_quiet() {
            return HostStanding::Open;
        }
        let host = HostPort::of_url(url);
        host.map_or(HostStanding::Open, |host| {
            self.rests.standing(&host, self.now())
        })
    }

    /// Lets a URI wait whose host rests, or ends it where the host is given up.
    pub(super) fn leave_to_host(
        &mut self,
        lease: UriLease,
        url: &Url,
        standing: HostStanding,
    ) -> Result<(), CrawlError> {
        let host = HostPort::of_url(url);
        match standing {
            HostStanding::Rests(until) => {
                if let Some(host) = host {
                    self.rests.count_waiting(&host);
                    if !self.rests.is_busy(&host) {
                        self.recorder.note_failure(url);
                    }
                }
                self.recorder.defer(&lease, until)?;
            }
            HostStanding::Open => unreachable!("a host that may be asked leaves no URI to it"),
            HostStanding::GivenUp => {
                if let Some(cut) = self.cut_answers.take_answer(&lease.uri.uri) {
                    self.record_cut(lease, url.clone(), *cut);
                    return Ok(());
                }
                let status = FetchStatus::TOO_MANY_RETRIES;
                let annotation = Some("err=HostGivenUp".to_owned());
                let after = TryDecision::Finished(status);
                let cause = match host {
                    Some(host) if self.rests.is_busy(&host) => FetchStatus::from_http(503),
                    _ => FetchStatus::CONNECT_FAILED,
                };
                self.refuse_because(lease, status, after, annotation, cause);
            }
        }
        Ok(())
    }

    /// Records what has come of a URI before its host was given up: this is its last try.
    fn record_cut(&mut self, lease: UriLease, url: Url, cut: FetchedUri) {
        let mut uri = lease.uri.clone();
        uri.tries = uri
            .tries
            .max(self.processor.retry.max_tries.saturating_sub(1));
        let ticket = self.add_in_flight(InFlightSubject::Uri(lease), uri.clone(), url);
        let cut = Box::new(FetchedUri { uri, ..cut });
        // The other end lives as long as this one.
        _ = self
            .channels
            .commands
            .send(WorkerCommand::Record(ticket, cut));
    }

    /// Returns whether the host of a URI in flight may be asked. Else the URI is in flight no more.
    pub(super) fn is_host_open(
        &mut self,
        ticket: RequestTicket,
        url: &Url,
    ) -> Result<bool, CrawlError> {
        let standing = self.host_standing(url);
        if standing == HostStanding::Open {
            return Ok(true);
        }
        let Some(flight) = self.in_flight.remove(&ticket) else {
            return Ok(false);
        };
        match (flight.subject, standing) {
            (InFlightSubject::Uri(lease), standing) => self.leave_to_host(lease, url, standing)?,
            // The host to which a robots.txt, or a login, leads.
            (subject, HostStanding::Rests(until)) => self.defer_subject(subject, until)?,
            (InFlightSubject::Robots { asked, .. }, _) => {
                self.fail_robots(&asked, FetchStatus::CONNECT_FAILED, false, None);
            }
            (InFlightSubject::Login { number }, _) => {
                self.fail_login(number, &flight.uri, FetchStatus::CONNECT_FAILED, None);
            }
        }
        Ok(false)
    }

    /// Lets a URI wait for a moment, or those that have waited for an answer of their host.
    pub(super) fn defer_subject(
        &mut self,
        subject: InFlightSubject,
        until: CrawlMoment,
    ) -> Result<(), CrawlError> {
        let name = match subject {
            InFlightSubject::Uri(lease) => return Ok(self.recorder.defer(&lease, until)?),
            InFlightSubject::Robots { asked, .. } => asked,
            InFlightSubject::Login { number } => login_name(number),
        };
        for ticket in self.asking.remove(&name).unwrap_or_default() {
            if let Some(flight) = self.in_flight.remove(&ticket) {
                self.defer_subject(flight.subject, until)?;
            }
        }
        Ok(())
    }

    /// Returns the moment until which everything rests, if a fetch says that the proxy is at fault; tells people then.
    pub(super) fn rest_of_proxy(
        &mut self,
        flight: &InFlightUri,
        processed: &ProcessedUri,
    ) -> Option<CrawlMoment> {
        self.job.order.http.proxy.as_ref()?;
        let failure = processed.proxy_failure.as_ref();
        let Some(failure) = failure.filter(|failure| !failure.is_of_host()) else {
            let is_answer = failure.is_some() || processed.status.is_success();
            let began = flight.fetching.as_ref().filter(|_| is_answer);
            if let Some(fetching) = began {
                self.rests.note_proxy(fetching.since);
            }
            return None;
        };
        let host = HostPort::of_url(&flight.url)?.to_string();
        let is_unusable = matches!(failure, ProxyFailure::Lost { .. });
        let now = self.now();
        let loss = self.rests.note_proxy_failure(&host, is_unusable, now)?;
        if loss.is_news {
            self.notify(CrawlNotice::NoProxy(failure.to_string()));
        }
        Some(loss.until)
    }

    /// Notes what a fetch says of its host.
    pub(super) fn note_host(&mut self, flight: &InFlightUri, processed: &ProcessedUri) {
        if flight.fetching.is_none() {
            // An answer of long ago.
            return;
        }
        let needs_robots = match &flight.subject {
            InFlightSubject::Robots { asked, .. } => {
                self.robots_policy_of(asked) == RobotsPolicy::Obey
            }
            InFlightSubject::Uri(_) | InFlightSubject::Login { .. } => false,
        };
        let trouble = match processed.status {
            FetchStatus::RUNTIME_EXCEPTION => return,
            FetchStatus::CONNECT_FAILED => {
                HostTrouble::Unreachable(flight.fetching.as_ref().map(|fetching| fetching.address))
            }
            FetchStatus::CONNECT_LOST | FetchStatus::TIMEOUT => HostTrouble::NoAnswer,
            status if status.asks_for_patience() => HostTrouble::Busy(processed.retry_after),
            // No URI of the host can be asked for.
            status if needs_robots && status.number() >= 500 => HostTrouble::Unreachable(None),
            _ => {
                if !self.rests.is_quiet()
                    && let Some(host) = HostPort::of_url(&flight.url)
                {
                    self.rests.note_answer(&host);
                }
                return;
            }
        };
        let began = flight
            .fetching
            .as_ref()
            .map_or(self.now(), |fetching| fetching.since);
        self.note_trouble(&flight.url, trouble, &flight.addresses, began);
    }

    /// Notes a trouble of the host of a URI; tells people if the host is given up by that.
    pub(super) fn note_trouble(
        &mut self,
        url: &Url,
        trouble: HostTrouble,
        addresses: &[IpAddr],
        began: CrawlMoment,
    ) {
        let Some(host) = HostPort::of_url(url) else {
            return;
        };
        let now = self.now();
        let given_up = self
            .rests
            .note_trouble(&host, trouble, addresses, began, now);
        let Some(given_up) = given_up.filter(|_| self.told_hosts < MOST_TOLD_HOSTS) else {
            return;
        };
        self.told_hosts += 1;
        self.notify(CrawlNotice::HostGivenUp {
            host: host.to_string(),
            unreachable: given_up.unreachable,
            is_busy: given_up.is_busy,
            waiting: given_up.waiting,
        });
    }
}
