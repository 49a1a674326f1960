//! Requests of people, as the recorder carries them out: seeds, rejected URIs, freed patterns, budgets.
//!
//! Each is written into the frontier before it counts. The caller syncs before it says that a request is done.

use std::collections::BTreeSet;
use std::time::Duration;

use harvest_policy::account::QueueBudget;
use harvest_policy::quarantine::Quarantine;
use harvest_policy::rejections::RejectionRule;
use harvest_policy::turns::CrawlMoment;
use url::Url;

use super::{CrawlRecorder, MOST_BYTES, RecorderError, RecorderNews, rejected_name};
use crate::frontier::{CandidateUri, DesiredState, UriLease};

/// The URIs of one pattern that are put on trial at one time: what they bring decides of the next ones.
const TRIAL_BATCH: u32 = 20;

impl CrawlRecorder {
    /// Notes a URI that counts as a seed from now on.
    ///
    /// # Errors
    ///
    /// [`RecorderError::Frontier`].
    pub fn accept_seed(&mut self, url: &Url) -> Result<(), RecorderError> {
        Ok(self.frontier.accept_seed(url)?)
    }

    /// Notes seeds that a person has added.
    ///
    /// # Errors
    ///
    /// [`RecorderError::Frontier`].
    pub fn add_seeds(&mut self, seeds: &[Url]) -> Result<(), RecorderError> {
        let mut changes = self.frontier.begin_changes();
        for seed in seeds {
            self.frontier.add_seed(&mut changes, seed)?;
        }
        self.frontier.commit_changes(changes)?;
        self.is_synced = false;
        Ok(())
    }

    /// Notes the state that a person asks for.
    ///
    /// # Errors
    ///
    /// [`RecorderError::Frontier`].
    pub fn set_desired_state(&mut self, state: DesiredState) -> Result<(), RecorderError> {
        let mut changes = self.frontier.begin_changes();
        self.frontier.put_desired_state(&mut changes, state)?;
        self.frontier.commit_changes(changes)?;
        self.is_synced = false;
        Ok(())
    }

    /// Rejects URIs from now on: new ones are held back. Those that wait are to be asked about by
    /// [`CrawlRecorder::rejects_url`].
    ///
    /// # Errors
    ///
    /// [`RecorderError::Rejections`] if all expressions together are too large: then nothing has changed.
    pub fn add_rejections(&mut self, rules: &[RejectionRule]) -> Result<(), RecorderError> {
        self.rejections.add(rules.iter().cloned())?;
        let mut changes = self.frontier.begin_changes();
        for rule in rules {
            self.frontier.put_rejection(&mut changes, rule)?;
        }
        self.frontier.commit_changes(changes)?;
        self.is_synced = false;
        Ok(())
    }

    /// Takes a rule back by which URIs were rejected, and puts those back into their queues that it has held back;
    /// returns how many. `None`: there is no such rule.
    ///
    /// # Errors
    ///
    /// [`RecorderError::Frontier`].
    pub fn remove_rejection(&mut self, rule: &RejectionRule) -> Result<Option<u64>, RecorderError> {
        if !self.rejections.remove(rule)? {
            return Ok(None);
        }
        let mut changes = self.frontier.begin_changes();
        self.frontier.remove_rejection(&mut changes, rule)?;
        self.frontier.commit_changes(changes)?;
        self.is_synced = false;
        self.release(&rejected_name(rule)).map(Some)
    }

    /// Returns whether a person rejects a URI.
    pub fn rejects_url(&self, url: &Url) -> bool {
        self.rejections.covers_url(url)
    }

    /// Returns a queue other limits than the order has. Returns whether the queue is known yet.
    ///
    /// # Errors
    ///
    /// [`RecorderError::Frontier`].
    pub fn put_budget(&mut self, name: &str, budget: QueueBudget) -> Result<bool, RecorderError> {
        let mut changes = self.frontier.begin_changes();
        let is_known = self.frontier.put_budget(&mut changes, name, budget)?;
        self.frontier.commit_changes(changes)?;
        self.is_synced = false;
        Ok(is_known)
    }

    /// Returns the patterns under quarantine, and those that were freed.
    pub const fn quarantine(&self) -> &Quarantine {
        &self.quarantine
    }

    /// Takes what people are to be told since the last call.
    pub fn take_news(&mut self) -> Vec<RecorderNews> {
        std::mem::take(&mut self.news)
    }

    /// Puts URIs of patterns under quarantine back into their queues: those of hosts whose trial lasts, where the queue has
    /// nothing else. Returns whether there were any.
    ///
    /// # Errors
    ///
    /// [`RecorderError::Frontier`].
    pub fn begin_trials(&mut self) -> Result<bool, RecorderError> {
        let patterns = self.quarantine.held_patterns();
        let has_uris = |pattern: &&str| self.held.get(*pattern).is_some_and(|count| *count > 0);
        let patterns: Vec<String> = patterns.filter(has_uris).map(str::to_owned).collect();
        let mut is_any = false;
        for pattern in patterns {
            let pages = self.quarantine.trial_pages_left(&pattern).min(TRIAL_BATCH);
            if pages == 0 || !self.frontier.is_trial_due(&pattern)? {
                continue;
            }
            let mut changes = self.frontier.begin_changes();
            let begun = self.frontier.put_on_trial(&mut changes, &pattern, pages)?;
            self.frontier.commit_changes(changes)?;
            self.is_synced = false;
            self.quarantine.charge_trial(&pattern, begun);
            if let Some(left) = self.held.get_mut(&pattern) {
                *left = left.saturating_sub(u64::from(begun));
            }
            is_any |= begun > 0;
        }
        Ok(is_any)
    }

    /// Frees a pattern for good, and puts its URIs back into their queues; returns how many there were.
    ///
    /// # Errors
    ///
    /// [`RecorderError::Frontier`].
    pub fn free_pattern(&mut self, pattern: &str) -> Result<u64, RecorderError> {
        self.quarantine.free_pattern(pattern);
        let mut changes = self.frontier.begin_changes();
        self.frontier.put_pattern(&mut changes, pattern, false)?;
        self.frontier.commit_changes(changes)?;
        self.is_synced = false;
        self.release(pattern)
    }

    fn release(&mut self, pattern: &str) -> Result<u64, RecorderError> {
        let mut count = 0;
        let mut behind = String::new();
        loop {
            let mut changes = self.frontier.begin_changes();
            let Some((more, last)) =
                self.frontier
                    .release_pattern(&mut changes, pattern, &behind)?
            else {
                self.held.remove(pattern);
                return Ok(count);
            };
            self.frontier.commit_changes(changes)?;
            self.is_synced = false;
            count += more;
            behind = last;
        }
    }

    /// Puts back what nothing holds any more: a process has ended while it freed a pattern, or took a rule back.
    pub(super) fn release_freed(&mut self) -> Result<(), RecorderError> {
        let rules = self.rejections.rules().iter().map(rejected_name);
        let patterns = self.quarantine.held_patterns().map(str::to_owned);
        let holding: BTreeSet<String> = rules.chain(patterns).collect();
        let held: Vec<String> = self.held.keys().cloned().collect();
        for name in held {
            if !holding.contains(&name) {
                self.release(&name)?;
            }
        }
        Ok(())
    }

    /// Puts URIs back into their queues that were finished: they are tried again.
    ///
    /// # Errors
    ///
    /// [`RecorderError::Frontier`].
    pub fn schedule_again(&mut self, candidates: Vec<CandidateUri>) -> Result<(), RecorderError> {
        let mut changes = self.frontier.begin_changes();
        for candidate in candidates {
            self.frontier.schedule_again(&mut changes, candidate)?;
            if changes.size() > MOST_BYTES {
                let large = std::mem::replace(&mut changes, self.frontier.begin_changes());
                self.frontier.commit_changes(large)?;
            }
        }
        self.frontier.commit_changes(changes)?;
        self.is_synced = false;
        Ok(())
    }

    /// Lets URIs come back now that wait for their next try; returns how many.
    ///
    /// # Errors
    ///
    /// [`RecorderError::Frontier`].
    pub fn recall_retries(
        &mut self,
        now: CrawlMoment,
        is_recalled: impl Fn(&Url) -> bool,
    ) -> Result<u64, RecorderError> {
        self.is_synced = false;
        Ok(self.frontier.recall_retries(now, is_recalled)?)
    }

    /// Puts a URI back that was leased and not fetched; its queue rests until a moment.
    pub fn put_back(&mut self, lease: &UriLease, until: CrawlMoment) {
        self.frontier.put_back(lease, until);
    }

    /// Notes for how long the crawl has run. It is written with the next sync, and `is_due` makes one.
    pub const fn set_running_time(&mut self, running: Duration, is_due: bool) {
        self.frontier.set_running_time(running);
        if is_due {
            self.is_synced = false;
        }
    }
}
