//! The events of a crawl, and its end.

use std::time::Duration;

use harvest_model::order::RobotsPolicy;
use harvest_policy::address_turns::RequestTicket;
use harvest_policy::hops::Hop;
use harvest_policy::host_rests::HostTrouble;
use harvest_policy::politeness::FinishedFetch;
use harvest_policy::robots::{RobotsAnswer, RobotsRules};
use harvest_policy::status::{FetchStatus, TryDecision};
use harvest_policy::turns::CrawlMoment;

use super::{CrawlOwner, InFlightSubject, InFlightUri, SYNC};
use crate::capture::RecordGroup;
use crate::crawl::hosts::{dns_uri, robots_uri};
use crate::crawl::log_line::crawl_log_line;
use crate::crawl::workers::WorkerEvent;
use crate::crawl::{CrawlError, CrawlNotice};
use crate::dns::{DnsAnswer, DnsError};
use crate::frontier::{LeaseOutcome, NextStep, PrerequisiteRow};
use crate::process::{ProcessedUri, RobotsFile};
use crate::recorder::{FinishedTry, RecorderError, TrySubject};

/// The most redirects from a robots.txt (RFC 9309 §2.3.1.2).
const MOST_ROBOTS_REDIRECTS: u8 = 5;

/// The seconds after which the name server is asked again for a host without an address.
const NO_ADDRESS_SECONDS: i64 = 3600;

impl CrawlOwner {
    pub(super) fn handle_event(&mut self, event: WorkerEvent) -> Result<(), CrawlError> {
        match event {
            WorkerEvent::Resolved {
                host,
                answer,
                records,
                line,
            } => self.handle_addresses(&host, answer, records, *line),
            WorkerEvent::Fetched { ticket, result } => {
                let Some(flight) = self.remove_in_flight(ticket) else {
                    return Ok(());
                };
                match result {
                    Ok(processed) => match self.rest_of_proxy(&flight, &processed) {
                        // Nothing of it is recorded: it is fetched again, once there is a proxy.
                        Some(until) => {
                            self.put_back_fetch(flight, until);
                            Ok(())
                        }
                        None => self.handle_fetch(flight, *processed),
                    },
                    Err(source) if source.is_no_space() => {
                        // Nothing of it is recorded: it is fetched again, once there is room.
                        let until = self.now().saturating_add(SYNC);
                        self.put_back_fetch(flight, until);
                        Ok(())
                    }
                    Err(source) => Err(CrawlError::Process {
                        uri: flight.uri.uri,
                        source,
                    }),
                }
            }
            WorkerEvent::Panicked(ticket) => {
                let Some(flight) = self.remove_in_flight(ticket) else {
                    return Ok(());
                };
                let now = self.clock.instant();
                let status = FetchStatus::RUNTIME_EXCEPTION;
                let mut line = crawl_log_line(&flight.uri, status, self.clock.now());
                line.annotations.push("err=Panic".to_owned());
                self.handle_fetch(
                    flight,
                    ProcessedUri {
                        status,
                        after: TryDecision::Finished(status),
                        is_lasting: false,
                        records: Vec::new(),
                        lines: vec![line],
                        candidates: Vec::new(),
                        seed: None,
                        content: None,
                        duration: Duration::ZERO,
                        ended: now,
                        bytes: 0,
                        retry_after: None,
                        cut: None,
                        robots: None,
                        proxy_failure: None,
                    },
                )
            }
        }
    }

    /// Removes a URI whose fetch is over, and frees its connection.
    pub(super) fn remove_in_flight(&mut self, ticket: RequestTicket) -> Option<InFlightUri> {
        let flight = self.in_flight.remove(&ticket)?;
        if let Some(fetching) = &flight.fetching {
            self.fetching = self.fetching.saturating_sub(1);
            self.free_connections.push(fetching.connection);
        }
        Some(flight)
    }

    fn handle_addresses(
        &mut self,
        host: &str,
        answer: Result<DnsAnswer, DnsError>,
        records: Vec<RecordGroup>,
        mut line: archive_formats::crawl_log::CrawlLogLine,
    ) -> Result<(), CrawlError> {
        let uri = dns_uri(host);
        let tickets = self.asking.remove(&uri).unwrap_or_default();
        let first = tickets
            .first()
            .and_then(|ticket| self.in_flight.get(ticket));
        if let Some(first) = first {
            line.via = Some(first.uri.uri.clone());
            line.source.clone_from(&first.uri.source);
            line.hops = first.uri.hops_to(Hop::Prerequisite);
        }
        let now = self.clock.now();
        let url = first.map(|first| first.url.clone());
        if !matches!(&answer, Err(error) if error.is_silence()) {
            self.rests.note_name_server();
        }
        let (addresses, seconds) = match answer {
            Ok(answer) => {
                let holds = answer.holds.min(self.job.order.dns.validity.duration());
                let seconds = i64::try_from(holds.as_secs()).unwrap_or(i64::MAX);
                (answer.addresses, seconds)
            }
            Err(DnsError::NoAddress(_)) => (Vec::new(), NO_ADDRESS_SECONDS),
            Err(error @ DnsError::Failed { .. }) => {
                let moment = self.now();
                let loss = Some(moment).filter(|_| error.is_silence());
                let loss = loss.and_then(|moment| self.rests.note_unresolved(host, moment));
                if let Some(loss) = loss {
                    if loss.is_news {
                        self.notify(CrawlNotice::NoNameServer(error.to_string()));
                    }
                    for ticket in tickets {
                        if let Some(flight) = self.in_flight.remove(&ticket) {
                            self.defer_subject(flight.subject, loss.until)?;
                        }
                    }
                    return Ok(());
                }
                if let Some(url) = url {
                    let trouble = HostTrouble::Unreachable(None);
                    self.note_trouble(&url, trouble, &[], moment);
                }
                for ticket in tickets {
                    self.refuse_uri(ticket, FetchStatus::DNS_FAILED, None);
                }
                return Ok(());
            }
        };
        let until = now.as_second().saturating_add(seconds);
        self.hosts.put_addresses(host, &addresses, until, now);
        let answer = PrerequisiteRow::Addresses { addresses, until };
        self.finished.push(FinishedTry {
            subject: TrySubject::Prerequisite {
                uri,
                answer: Some(answer),
            },
            records,
            lines: vec![line],
            candidates: Vec::new(),
            content: None,
        });
        for ticket in tickets {
            self.advance_request(ticket)?;
        }
        Ok(())
    }

    fn handle_fetch(
        &mut self,
        flight: InFlightUri,
        processed: ProcessedUri,
    ) -> Result<(), CrawlError> {
        self.note_host(&flight, &processed);
        let rests_until = self.rest_after(&flight, &processed)?;
        if let Some(fetching) = &flight.fetching {
            let ended = self.moment_of(processed.ended);
            let until = self.address_pause.map_or(rests_until, |pause| {
                rests_until.min(ended.saturating_add(pause))
            });
            self.turns.end_request(fetching.address, until);
        }
        match flight.subject {
            InFlightSubject::Login { number } => {
                self.handle_login(number, flight.uri.uri, processed, rests_until);
                Ok(())
            }
            InFlightSubject::Uri(lease) => {
                let ended = self.moment_of(processed.ended);
                let next = match processed.after {
                    TryDecision::Finished(_) => NextStep::Finish,
                    TryDecision::Deferred => NextStep::GoBack,
                    TryDecision::RetryAfter(delay) => {
                        NextStep::RetryAt(ended.saturating_add(delay))
                    }
                };
                let is_final = next == NextStep::Finish;
                if let Some(cut) = processed.cut {
                    self.cut_answers.keep_answer(cut);
                }
                let status = match processed.after {
                    TryDecision::Finished(status) => status,
                    TryDecision::Deferred | TryDecision::RetryAfter(_) => processed.status,
                };
                if is_final && status.is_success() {
                    self.progress.fetched += 1;
                    self.progress.bytes = self.progress.bytes.saturating_add(processed.bytes);
                }
                self.progress.failed += u64::from(is_final && status.is_failure());
                self.note_seed(&lease.uri, processed.status, processed.after);
                if let Some(seed) = &processed.seed {
                    self.accept_redirected_seed(seed);
                    let kept = self.recorder.accept_seed(seed);
                    kept?;
                }
                let content = processed.content.map(|content| (flight.url, content));
                let outcome = LeaseOutcome {
                    status,
                    bytes: processed.bytes,
                    next,
                    rests_until,
                };
                self.finished.push(FinishedTry {
                    subject: TrySubject::Uri { lease, outcome },
                    records: processed.records,
                    lines: processed.lines,
                    candidates: processed.candidates,
                    content,
                });
                Ok(())
            }
            InFlightSubject::Robots {
                ref asked,
                redirects,
            } => {
                let asked = asked.clone();
                self.handle_robots(&flight, asked, redirects, processed, rests_until)
            }
        }
    }

    /// Returns the moment until which the host of a URI in flight rests.
    fn rest_after(
        &mut self,
        flight: &InFlightUri,
        processed: &ProcessedUri,
    ) -> Result<Duration, CrawlError> {
        let mut crawl_delay = processed.robots.as_ref().and_then(|robots| {
            let rules = RobotsRules::parse(&robots.file, &self.job.order.robots.agent);
            rules.crawl_delay().filter(|_| robots.status == 200)
        });
        let obeys = self.job.order.robots_policy_for(&flight.url) == RobotsPolicy::Obey;
        crawl_delay = crawl_delay.filter(|_| obeys);
        if obeys
            && processed.robots.is_none()
            && let Some(robots) = robots_uri(&flight.url)
        {
            let product = &self.job.order.robots.agent;
            let frontier = self.recorder.frontier();
            let now = self.clock.now();
            let rules = self
                .hosts
                .host_robots(robots.as_str(), product, frontier, now);
            let rules = rules.map_err(RecorderError::from)?;
            crawl_delay = rules.and_then(|rules| rules.crawl_delay());
        }
        let politeness = self.job.order.politeness_for(&flight.url);
        let pause = politeness.pause_after(FinishedFetch {
            duration: processed.duration,
            bytes: processed.bytes,
            crawl_delay,
        });
        Ok(self.moment_of(processed.ended).saturating_add(pause))
    }

    fn handle_robots(
        &mut self,
        flight: &InFlightUri,
        asked: String,
        redirects: u8,
        processed: ProcessedUri,
        rests_until: CrawlMoment,
    ) -> Result<(), CrawlError> {
        let own_uri = flight.uri.uri.clone();
        let mut finished = FinishedTry {
            subject: TrySubject::Prerequisite {
                uri: own_uri,
                answer: None,
            },
            records: processed.records,
            lines: processed.lines,
            candidates: processed.candidates,
            content: None,
        };
        let location = processed.robots.as_ref().and_then(|robots| {
            let is_redirect = matches!(robots.status, 300..=399);
            robots.location.clone().filter(|_| is_redirect)
        });
        if let Some(location) = location.filter(|_| redirects < MOST_ROBOTS_REDIRECTS) {
            self.finished.push(finished);
            let mut uri = flight.uri.clone();
            uri.via = Some(std::mem::replace(
                &mut uri.uri,
                location.as_str().to_owned(),
            ));
            uri.hops = flight.uri.hops_to(Hop::Redirect);
            let subject = InFlightSubject::Robots {
                asked,
                redirects: redirects + 1,
            };
            let ticket = self.add_in_flight(subject, uri, location);
            return self.advance_request(ticket);
        }
        let status = processed.robots.as_ref().map(|robots| robots.status);
        let is_unreachable = RobotsAnswer::from_status(status) == RobotsAnswer::Unreachable;
        if is_unreachable && self.robots_policy_of(&asked) == RobotsPolicy::Obey {
            self.finished.push(finished);
            let asks = processed.retry_after;
            self.fail_robots(&asked, processed.status, processed.is_lasting, asks);
            return Ok(());
        }
        let RobotsFile { file, .. } = processed.robots.unwrap_or(RobotsFile {
            status: 0,
            file: Vec::new(),
            location: None,
        });
        let holds = self.job.order.robots.validity.duration();
        let until = self.clock.time_after(holds).as_second();
        let answer = PrerequisiteRow::Robots {
            status,
            file,
            until,
        };
        self.hosts
            .put_robots(&asked, &self.job.order.robots.agent, &answer);
        if let TrySubject::Prerequisite { uri, answer: kept } = &mut finished.subject {
            uri.clone_from(&asked);
            *kept = Some(answer);
        }
        self.finished.push(finished);
        let waiting = self.asking.remove(&asked).unwrap_or_default();
        self.continue_after(waiting, rests_until);
        Ok(())
    }

    /// Lets URIs go on that have waited for an answer of their host, once it has rested. Where queues meet at their
    /// address, the address rests as long; else their queue does.
    pub(super) fn continue_after(&mut self, waiting: Vec<RequestTicket>, rests_until: CrawlMoment) {
        if self.address_pause.is_some() && rests_until > self.now() {
            for ticket in waiting {
                self.put_back_waiting(ticket, rests_until);
            }
            return;
        }
        for ticket in waiting {
            if let Some(flight) = self.in_flight.get_mut(&ticket) {
                flight.has_waited = true;
            }
            self.released.push_back(ticket);
        }
    }
}
