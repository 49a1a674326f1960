//! Requests of people to a running crawl.
//!
//! Owns that a request counts as a whole or not at all, and that it is answered once it is durable.

use std::collections::HashSet;
use std::sync::Arc;

use harvest_model::{CrawlOrder, HarvestJob};
use harvest_policy::account::QueueBudget;
use harvest_policy::address_turns::RequestTicket;
use harvest_policy::hops::HopPath;
use harvest_policy::host_rests::HostPort;
use harvest_policy::rejections::{RejectionRule, Rejections};
use harvest_policy::status::FetchStatus;
use url::Url;

use super::{CrawlOwner, InFlightSubject, address_pause, address_places};
use crate::crawl::{ControlAnswer, ControlRequest, CrawlCommand, CrawlEnd, CrawlError, FailedUri};
use crate::frontier::{CandidateUri, DesiredState, FrontierUri, Urgency};
use crate::process::queue_name;
use crate::recorder::RecorderError;

/// The most patterns that are named to a person who has named another one.
const MOST_NAMED: usize = 10;

impl CrawlOwner {
    /// Carries out a request, makes it durable, and answers it.
    pub(super) fn handle_request(&mut self, request: ControlRequest) -> Result<(), CrawlError> {
        let answer = self.execute(request.control)?;
        self.record()?;
        self.recorder.sync_files()?;
        // Who asked may have gone.
        _ = request.answer.send(answer);
        Ok(())
    }

    /// Carries out a request that nobody waits for.
    pub(super) fn handle_command(&mut self, control: CrawlCommand) -> Result<(), CrawlError> {
        self.execute(control).map(drop)
    }

    fn execute(&mut self, control: CrawlCommand) -> Result<ControlAnswer, CrawlError> {
        match control {
            CrawlCommand::Pause => {
                self.recorder.set_desired_state(DesiredState::Paused)?;
                self.progress.is_paused = true;
                Ok(Ok("the crawl pauses".to_owned()))
            }
            CrawlCommand::Resume => {
                self.recorder.set_desired_state(DesiredState::Running)?;
                self.progress.is_paused = false;
                if self.end == Some(CrawlEnd::Terminated) {
                    // A crawl that a person has ended, and goes on with.
                    self.end = None;
                    self.ending_since = None;
                }
                self.last_finished = self.now();
                Ok(Ok("the crawl resumes".to_owned()))
            }
            CrawlCommand::Terminate => {
                self.recorder.set_desired_state(DesiredState::Terminated)?;
                self.decide_end(CrawlEnd::Terminated);
                Ok(Ok("the crawl ends".to_owned()))
            }
            CrawlCommand::Suspend => {
                self.decide_end(CrawlEnd::Suspended);
                Ok(Ok("the crawl ends, to be resumed".to_owned()))
            }
            CrawlCommand::AddSeeds(seeds) => self.add_seeds(&seeds),
            CrawlCommand::Reject(rules) => self.reject(&rules),
            CrawlCommand::Accept(rules) => self.accept(&rules),
            CrawlCommand::Free(patterns) => self.free(&patterns),
            CrawlCommand::Retry { rules, failed } => self.retry(&rules, failed),
            CrawlCommand::Change(order) => self.change(*order),
            CrawlCommand::Budget(budgets) => self.put_budgets(budgets),
        }
    }

    fn add_seeds(&mut self, seeds: &[Url]) -> Result<ControlAnswer, CrawlError> {
        if let Err(error) = self.job.order.check_contact(seeds) {
            return Ok(Err(error.to_string()));
        }
        self.allowed.extend(self.job.order.allowed_networks(seeds));
        self.recorder.add_seeds(seeds)?;
        for seed in seeds {
            self.accept_seed(seed);
        }
        let new = self.schedule_seeds(seeds)?;
        self.last_finished = self.now();
        let known = seeds.len().saturating_sub(new);
        Ok(Ok(format!(
            "new seeds: {new}; known before, or rejected: {known}"
        )))
    }

    fn reject(&mut self, rules: &[RejectionRule]) -> Result<ControlAnswer, CrawlError> {
        match self.recorder.add_rejections(rules) {
            Ok(()) => {}
            Err(RecorderError::Rejections(error)) => return Ok(Err(error.to_string())),
            Err(error) => return Err(error.into()),
        }
        let waiting = self.in_flight.iter().filter(|(_, flight)| {
            let is_uri = matches!(flight.subject, InFlightSubject::Uri(_));
            is_uri && flight.fetching.is_none() && self.recorder.rejects_url(&flight.url)
        });
        let waiting: Vec<RequestTicket> = waiting.map(|(ticket, _)| *ticket).collect();
        for ticket in waiting {
            self.refuse_uri(ticket, FetchStatus::BLOCKED_BY_USER, None);
        }
        let rules: Vec<String> = rules.iter().map(ToString::to_string).collect();
        Ok(Ok(format!("rejected from now on: {}", rules.join(" "))))
    }

    fn accept(&mut self, rules: &[RejectionRule]) -> Result<ControlAnswer, CrawlError> {
        let holding = self.recorder.rejected_rules();
        let is_there = |rule: &RejectionRule| {
            let rule = rule.to_string();
            holding.iter().any(|(name, _)| *name == rule)
        };
        if let Some(unknown) = rules.iter().find(|rule| !is_there(rule)) {
            let names: Vec<&str> = holding
                .iter()
                .take(MOST_NAMED)
                .map(|(name, _)| name.as_str())
                .collect();
            let names = if names.is_empty() {
                "nothing is".to_owned()
            } else {
                format!("these are: {}", names.join(" "))
            };
            return Ok(Err(format!(
                "{unknown} is not rejected ({names}); write a rule as it was rejected"
            )));
        }
        let mut uris = 0;
        for rule in rules {
            uris += self.recorder.remove_rejection(rule)?.unwrap_or(0);
        }
        self.last_finished = self.now();
        let rules: Vec<String> = rules.iter().map(ToString::to_string).collect();
        Ok(Ok(format!(
            "accepted again: {}; URIs that wait in their queues again: {uris}",
            rules.join(" ")
        )))
    }

    /// Tries failures again, and asks their hosts at once.
    fn retry(
        &mut self,
        rules: &[RejectionRule],
        failed: Vec<FailedUri>,
    ) -> Result<ControlAnswer, CrawlError> {
        let mut covered = Rejections::default();
        if let Err(error) = covered.add(rules.iter().cloned()) {
            return Ok(Err(error.to_string()));
        }
        let hosts: HashSet<HostPort> = failed
            .iter()
            .filter_map(|failed| HostPort::of_url(&failed.url))
            .collect();
        let root = |host: &HostPort| {
            let port = format!("http://{host}/");
            let urls = [port, format!("https://{host}/")];
            urls.iter()
                .filter_map(|url| Url::parse(url).ok())
                .any(|url| covered.covers_url(&url))
        };
        self.rests
            .forgive_hosts(|host| hosts.contains(host) || root(host));
        let now = self.now();
        let recalled = self
            .recorder
            .recall_retries(now, |url| covered.covers_url(url))?;
        let given_up = failed.len();
        let candidates = failed
            .into_iter()
            .map(|failed| self.failed_candidate(failed));
        let candidates = candidates.collect();
        self.recorder.schedule_again(candidates)?;
        self.progress.failed = self.recorder.frontier().queue_totals().errors;
        self.last_finished = now;
        Ok(Ok(format!(
            "tried again: {given_up} URIs that were given up, and {recalled} at once that wait for their next try"
        )))
    }

    fn failed_candidate(&self, failed: FailedUri) -> CandidateUri {
        let FailedUri {
            url,
            hops,
            via,
            source,
        } = failed;
        CandidateUri {
            queue: queue_name(&self.processor.queues, &url, source.as_deref()),
            key: self.processor.hasher.key_of(&url),
            cost: self
                .processor
                .place_in_queue(url.as_str(), via.as_deref(), &hops),
            uri: FrontierUri {
                uri: url.as_str().to_owned(),
                hops: hops.to_string(),
                via,
                source,
                urgency: Urgency::Normal,
                tries: 0,
            },
        }
    }

    /// Goes on by another order. What it may change is decided by who sends it.
    fn change(&mut self, order: CrawlOrder) -> Result<ControlAnswer, CrawlError> {
        let suffixes = Arc::clone(&self.processor.queues.suffixes);
        let scope = match order.scope_for(&self.job.seeds, &suffixes) {
            Ok(scope) => scope,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let job = HarvestJob {
            order,
            ..self.job.as_ref().clone()
        };
        self.job = Arc::new(job);
        self.address_pause = address_pause(&self.job);
        self.turns.set_places(address_places(&self.job));
        *self.processor.scope.write() = scope;
        let frontier = self.recorder.frontier();
        for url in frontier.accepted_seeds().map_err(RecorderError::from)? {
            self.accept_redirected_seed(&url);
        }
        for url in frontier.added_seeds().map_err(RecorderError::from)? {
            self.accept_seed(&url);
        }
        self.last_finished = self.now();
        Ok(Ok(
            "the order is changed; pauses hold from the next fetch on, and the scope for links that are found from now on"
                .to_owned(),
        ))
    }

    fn free(&mut self, patterns: &[String]) -> Result<ControlAnswer, CrawlError> {
        let quarantine = self.recorder.quarantine();
        let is_held = |name: &str| quarantine.held_patterns().any(|held| held == name);
        let is_freed = |name: &str| quarantine.freed_patterns().any(|freed| freed == name);
        if let Some(unknown) = patterns
            .iter()
            .find(|name| !is_held(name) && !is_freed(name))
        {
            let held: Vec<&str> = quarantine.held_patterns().take(MOST_NAMED).collect();
            let held = if held.is_empty() {
                "no pattern is".to_owned()
            } else {
                format!("these are: {}", held.join(", "))
            };
            return Ok(Err(format!(
                "{unknown} is not under quarantine ({held}); write a pattern as the notice has it"
            )));
        }
        let mut uris = 0;
        for pattern in patterns {
            uris += self.recorder.free_pattern(pattern)?;
        }
        self.last_finished = self.now();
        self.progress.quarantined = self.count_quarantined();
        let count = patterns.len();
        Ok(Ok(format!(
            "patterns freed: {count}; URIs that wait in their queues again: {uris}"
        )))
    }

    fn put_budgets(
        &mut self,
        budgets: Vec<(String, QueueBudget)>,
    ) -> Result<ControlAnswer, CrawlError> {
        let mut known = 0_u64;
        let mut unknown = Vec::new();
        for (name, budget) in budgets {
            if self.recorder.put_budget(&name, budget)? {
                known += 1;
            } else {
                unknown.push(name);
            }
        }
        self.last_finished = self.now();
        let mut done = format!("queues with other limits: {known}");
        if !unknown.is_empty() {
            done.push_str("; without a URI yet, so that theirs hold from their first one on: ");
            done.push_str(&unknown.join(" "));
        }
        Ok(Ok(done))
    }

    /// Adds seeds to their queues; returns how many are new.
    pub(super) fn schedule_seeds(&mut self, seeds: &[Url]) -> Result<usize, CrawlError> {
        let hasher = self.processor.hasher;
        let candidates = seeds.iter().map(|url| {
            let source = url.as_str().to_owned();
            CandidateUri {
                queue: queue_name(&self.processor.queues, url, None),
                key: hasher.key_of(url),
                cost: self
                    .processor
                    .place_in_queue(&source, None, &HopPath::seed_path()),
                uri: FrontierUri {
                    uri: source.clone(),
                    hops: HopPath::seed_path().to_string(),
                    via: None,
                    source: Some(source),
                    urgency: Urgency::High,
                    tries: 0,
                },
            }
        });
        let candidates = candidates.collect();
        Ok(self.recorder.schedule_candidates(candidates)?)
    }

    pub(super) fn accept_redirected_seed(&self, url: &Url) {
        let mut scope = self.processor.scope.write();
        self.job
            .order
            .accept_redirected_seed(url, &mut scope.accepted);
    }

    pub(super) fn accept_seed(&self, url: &Url) {
        let mut scope = self.processor.scope.write();
        let suffixes = &self.processor.queues.suffixes;
        let order = &self.job.order;
        order.accept_seed(url, suffixes, &mut scope.accepted);
    }
}
