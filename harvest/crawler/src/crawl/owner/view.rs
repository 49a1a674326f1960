//! The view of a crawl, as its owner gives it.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;

use harvest_policy::address::BEHIND_PROXY;
use harvest_policy::address_turns::RequestTicket;
use harvest_policy::turns::{CrawlMoment, QueueNumber, QueueState};
use jiff::Timestamp;

use super::{CrawlOwner, InFlightSubject};
use crate::crawl::CrawlError;
use crate::crawl::view::{
    CrawlView, FetchView, HeldView, HostTroubleView, HostView, QueueView, QueueWait, RetryView,
    SeedView, ViewList, ViewQuestion,
};
use crate::frontier::QueueSnapshot;
use crate::recorder::RecorderError;

impl CrawlOwner {
    /// Returns the view of the crawl.
    pub(super) fn view(&self, question: &ViewQuestion) -> Result<CrawlView, CrawlError> {
        let now = self.now();
        let most = question.most;
        Ok(CrawlView {
            time: self.clock.now(),
            is_ending: self.end.is_some(),
            running_seconds: self.running.time_at(now).as_secs(),
            progress: self.progress.clone(),
            fetches: self.view_fetches(question, now),
            queues: self.view_queues(question)?,
            hosts: self.view_hosts(question, now),
            retries: self.view_retries(question)?,
            failing_seeds: ViewList::cut_list(self.view_seeds(question), most),
            held: ViewList::cut_list(self.view_held(), most),
        })
    }

    fn time_of(&self, moment: CrawlMoment, now: CrawlMoment) -> Timestamp {
        self.clock.time_after(moment.saturating_sub(now))
    }

    fn view_fetches(&self, question: &ViewQuestion, now: CrawlMoment) -> ViewList<FetchView> {
        let flights = self.in_flight.values();
        let asked = flights.filter(|flight| {
            let host = flight.url.host_str().unwrap_or_default();
            question.is_about(host)
        });
        let fetches = asked.filter_map(|flight| {
            let fetching = flight.fetching.as_ref()?;
            let passed = now.saturating_sub(fetching.since).as_millis();
            Some(FetchView {
                uri: flight.uri.uri.clone(),
                address: match fetching.address {
                    BEHIND_PROXY => "by the proxy".to_owned(),
                    address => address.to_string(),
                },
                milliseconds: u64::try_from(passed).unwrap_or(u64::MAX),
                bytes: fetching.received.load(Ordering::Relaxed),
            })
        });
        let mut fetches: Vec<FetchView> = fetches.collect();
        fetches.sort_by(|a, b| b.milliseconds.cmp(&a.milliseconds).then(a.uri.cmp(&b.uri)));
        ViewList::cut_list(fetches, question.most)
    }

    /// Returns what the URIs under way wait for, by queue: the one that is nearest to its end.
    fn list_waits(&self) -> HashMap<QueueNumber, QueueWait> {
        let asking = self.asking.values().flatten().copied();
        let asking: HashSet<RequestTicket> = asking.collect();
        let mut waits = HashMap::new();
        for (ticket, flight) in &self.in_flight {
            let InFlightSubject::Uri(lease) = &flight.subject else {
                continue;
            };
            let wait = if flight.fetching.is_some() {
                QueueWait::Fetch
            } else if asking.contains(ticket) {
                QueueWait::Answer
            } else {
                QueueWait::Address
            };
            let nearest = waits.entry(lease.queue).or_insert(wait);
            if wait == QueueWait::Fetch {
                *nearest = wait;
            }
        }
        waits
    }

    fn view_queues(&self, question: &ViewQuestion) -> Result<ViewList<QueueView>, CrawlError> {
        let frontier = self.recorder.frontier();
        let longest = frontier.longest_queues(question.most, |name| question.is_about(name));
        let (queues, more) = longest.map_err(RecorderError::from)?;
        let waits = self.list_waits();
        let retries = frontier.next_retries().map_err(RecorderError::from)?;
        let now = self.now();
        let entries = queues.into_iter().map(|queue| {
            let under_way = waits.get(&queue.number).copied();
            let (wait, until) = match self.queue_wait(&queue, under_way, now) {
                (QueueWait::Retry, _) => (QueueWait::Retry, retries.get(&queue.number).copied()),
                wait => wait,
            };
            QueueView {
                waiting: queue.size.saturating_sub(queue.deferred),
                deferred: queue.deferred,
                under_way: queue.under_way,
                fetched: queue.account.successes,
                failed: queue.account.errors,
                bytes: queue.account.bytes,
                name: queue.name,
                wait,
                until,
                next: queue.next,
            }
        });
        Ok(ViewList {
            entries: entries.collect(),
            more,
        })
    }

    fn queue_wait(
        &self,
        queue: &QueueSnapshot,
        under_way: Option<QueueWait>,
        now: CrawlMoment,
    ) -> (QueueWait, Option<Timestamp>) {
        if let Some(wait) = under_way {
            return (wait, None);
        }
        match queue.state {
            QueueState::Retired => (QueueWait::Limit, None),
            _ if queue.size == queue.deferred => (QueueWait::Retry, None),
            QueueState::Snoozed(until) if until > now => {
                (QueueWait::Pause, Some(self.time_of(until, now)))
            }
            _ => (QueueWait::Turn, None),
        }
    }

    fn view_hosts(&self, question: &ViewQuestion, now: CrawlMoment) -> ViewList<HostView> {
        let troubled = self.rests.list_troubled(now).into_iter();
        let hosts = troubled.map(|host| HostView {
            host: host.host.to_string(),
            trouble: if host.is_busy {
                HostTroubleView::Busy
            } else {
                HostTroubleView::Unreachable
            },
            until: host.until.map(|until| self.time_of(until, now)),
            strikes: host.strikes,
            waiting: host.waiting,
        });
        let mut hosts: Vec<HostView> = hosts.filter(|host| question.is_about(&host.host)).collect();
        hosts.sort_by(|a, b| b.waiting.cmp(&a.waiting).then(a.host.cmp(&b.host)));
        ViewList::cut_list(hosts, question.most)
    }

    fn view_retries(&self, question: &ViewQuestion) -> Result<ViewList<RetryView>, CrawlError> {
        let frontier = self.recorder.frontier();
        let first = frontier.first_retries(question.most, |host| question.is_about(host));
        let (first, more) = first.map_err(RecorderError::from)?;
        let entries: Vec<RetryView> = first
            .into_iter()
            .map(|(due, uri)| RetryView {
                uri: uri.uri,
                tries: uri.tries,
                due,
            })
            .collect();
        Ok(ViewList { entries, more })
    }

    fn view_seeds(&self, question: &ViewQuestion) -> Vec<SeedView> {
        let seeds = self.failing_seeds.iter().filter(|(seed, _)| {
            let url = url::Url::parse(seed).ok();
            let host = url
                .as_ref()
                .and_then(url::Url::host_str)
                .unwrap_or_default();
            question.is_about(host)
        });
        let seeds = seeds.map(|(seed, status)| SeedView {
            seed: seed.clone(),
            reason: status.reason().to_string(),
        });
        seeds.collect()
    }

    fn view_held(&self) -> Vec<HeldView> {
        let rejected = self.recorder.rejected_rules().into_iter();
        let patterns = self.recorder.quarantined_patterns().into_iter();
        let rejected = rejected.map(|held| (held, true));
        let held = rejected.chain(patterns.map(|held| (held, false)));
        held.map(|((name, uris), is_rejected)| HeldView {
            name,
            is_rejected,
            uris,
        })
        .collect()
    }
}
