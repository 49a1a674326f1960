//! Requests of people to a crawl, as its frontier keeps them: seeds, rejected URIs, budgets of queues.
//!
//! Owns that they hold when the crawl is resumed. Each counts at once, and is durable with the next sync.

use archive_db::DbError;
use harvest_policy::account::{QueueBudget, QueueLimits};
use harvest_policy::rejections::RejectionRule;
use url::Url;

use super::rows::{BudgetRow, SeenUriRow};
use super::{DESIRED_STATE, Frontier, FrontierChanges, Queue};

/// The state that a person has asked for, whichever process resumes the crawl.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DesiredState {
    /// URIs are fetched.
    #[default]
    Running,
    /// No fetch begins.
    Paused,
    /// The crawl ends.
    Terminated,
}

impl Frontier {
    /// Notes the state that a person asks for.
    ///
    /// # Errors
    ///
    /// [`DbError`] if it cannot be written.
    pub fn put_desired_state(
        &self,
        changes: &mut FrontierChanges,
        state: DesiredState,
    ) -> Result<(), DbError> {
        let number = match state {
            DesiredState::Running => 0,
            DesiredState::Paused => 1,
            DesiredState::Terminated => 2,
        };
        changes.batch.put(&self.running, &DESIRED_STATE, &number)
    }

    /// Returns the state that a person has asked for.
    ///
    /// # Errors
    ///
    /// [`DbError::Damaged`] if the row names none, [`DbError`] if it cannot be read.
    pub fn desired_state(&self) -> Result<DesiredState, DbError> {
        match self.running.get(&DESIRED_STATE)? {
            None | Some(0) => Ok(DesiredState::Running),
            Some(1) => Ok(DesiredState::Paused),
            Some(2) => Ok(DesiredState::Terminated),
            Some(number) => Err(DbError::Damaged {
                path: self.database.path().to_owned(),
                what: format!("no state of a crawl has the number {number}"),
            }),
        }
    }

    /// Notes a URI that counts as a seed because a seed redirects to it.
    ///
    /// # Errors
    ///
    /// [`DbError`] if it cannot be written.
    pub fn accept_seed(&mut self, url: &Url) -> Result<(), DbError> {
        let mut batch = self.database.batch();
        batch.put(&self.accepted, &url.as_str().to_owned(), &SeenUriRow)?;
        batch.write()?;
        Ok(())
    }

    /// Returns the URIs that count as seeds because seeds redirect to them.
    ///
    /// # Errors
    ///
    /// [`DbError`] if they cannot be read.
    pub fn accepted_seeds(&self) -> Result<Vec<Url>, DbError> {
        let mut seeds = Vec::new();
        for row in self.accepted.scan()? {
            let (uri, _) = row?;
            seeds.extend(Url::parse(&uri).ok());
        }
        Ok(seeds)
    }

    /// Notes a seed that a person has added.
    ///
    /// # Errors
    ///
    /// [`DbError`] if it cannot be written.
    pub fn add_seed(&self, changes: &mut FrontierChanges, url: &Url) -> Result<(), DbError> {
        let uri = url.as_str().to_owned();
        changes.batch.put(&self.added, &uri, &SeenUriRow)
    }

    /// Returns the seeds that people have added.
    ///
    /// # Errors
    ///
    /// [`DbError`] if they cannot be read.
    pub fn added_seeds(&self) -> Result<Vec<Url>, DbError> {
        let mut seeds = Vec::new();
        for row in self.added.scan()? {
            let (uri, _) = row?;
            seeds.extend(Url::parse(&uri).ok());
        }
        Ok(seeds)
    }

    /// Notes a rule by which URIs are rejected.
    ///
    /// # Errors
    ///
    /// [`DbError`] if it cannot be written.
    pub fn put_rejection(
        &self,
        changes: &mut FrontierChanges,
        rule: &RejectionRule,
    ) -> Result<(), DbError> {
        changes
            .batch
            .put(&self.rejected, &rule.to_string(), &SeenUriRow)
    }

    /// Takes back a rule by which URIs were rejected.
    ///
    /// # Errors
    ///
    /// [`DbError`] if it cannot be written.
    pub fn remove_rejection(
        &self,
        changes: &mut FrontierChanges,
        rule: &RejectionRule,
    ) -> Result<(), DbError> {
        changes.batch.delete(&self.rejected, &rule.to_string())
    }

    /// Returns the rules by which URIs are rejected.
    ///
    /// # Errors
    ///
    /// [`DbError`] if they cannot be read.
    pub fn list_rejections(&self) -> Result<Vec<RejectionRule>, DbError> {
        let mut rules = Vec::new();
        for row in self.rejected.scan()? {
            let (text, _) = row?;
            let rule = text.parse().map_err(|error| DbError::Damaged {
                path: self.database.path().to_path_buf(),
                what: format!("a rule by which URIs are rejected: {error}"),
            })?;
            rules.push(rule);
        }
        Ok(rules)
    }

    /// Gives a queue other limits than the order has: it becomes active, or it is retired. Returns whether the queue is
    /// known; one that is not gets them when its first URI comes.
    ///
    /// # Errors
    ///
    /// [`DbError`] if they cannot be written.
    pub fn put_budget(
        &mut self,
        changes: &mut FrontierChanges,
        name: &str,
        budget: QueueBudget,
    ) -> Result<bool, DbError> {
        let name = name.to_owned();
        let row = BudgetRow {
            objects: budget.objects,
            bytes: budget.bytes,
        };
        changes.batch.put(&self.budget_rows, &name, &row)?;
        let number = self.names.get(&name).copied();
        self.budgets.insert(name, budget);
        if let Some(number) = number {
            changes.touch_queue(number);
            self.reconsider_queue(number);
        }
        Ok(number.is_some())
    }

    /// Returns the limits of a queue: those of the order, or those that a person has given it.
    pub(super) fn limits_of(&self, queue: &Queue) -> QueueLimits {
        if self.budgets.is_empty() {
            return queue.limits;
        }
        let budget = self.budgets.get(&queue.name);
        budget.map_or(queue.limits, |budget| queue.limits.with_budget(*budget))
    }
}
