//! The account of a queue: what its URIs cost, and when it has to make way for others or may fetch nothing more.
//!
//! Owns the arithmetic of Heritrix' budgets and of NetarchiveSuite's quotas. A session budget decides how long a queue
//! stays active while others wait; a total budget and the quotas retire it.

use crate::status::FetchStatus;

/// The limits of one queue, and its rank among others. `None` is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// The precedence of the queue: it waits for queues of a smaller one.
    pub precedence: u8,
    /// The cost that the queue may run up before another one has its turn.
    pub session: u64,
    /// The cost of a failure on top of that of a URI.
    pub error_penalty: u64,
    /// The most cost at all (Heritrix' `queueTotalBudget`: tries are counted).
    pub total: Option<u64>,
    /// The most URIs that were fetched (`groupMaxFetchSuccesses`).
    pub successes: Option<u64>,
    /// The most bytes that came in (`groupMaxAllKb`, of which a kilobyte has 1024 bytes).
    pub bytes: Option<u64>,
}

impl Default for QueueLimits {
    /// Returns Heritrix' sessions of 3,000 with a penalty of 100, and no other limit; all of one precedence.
    fn default() -> Self {
        Self {
            precedence: 1,
            session: 3000,
            error_penalty: 100,
            total: None,
            successes: None,
            bytes: None,
        }
    }
}

/// The limits that a person gives one queue while the crawl runs. `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueBudget {
    /// The most URIs that are fetched.
    pub objects: Option<u64>,
    /// The most bytes that come in.
    pub bytes: Option<u64>,
}

impl QueueLimits {
    /// Returns these limits with those of a person in place of the total ones. Sessions stay as they are.
    #[must_use]
    pub const fn with_budget(self, budget: QueueBudget) -> Self {
        Self {
            total: None,
            successes: budget.objects,
            bytes: budget.bytes,
            ..self
        }
    }
}

/// The sums that a queue has spent and received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueAccount {
    /// The cost since the queue became active.
    pub session: u64,
    /// The cost of all tries.
    pub total: u64,
    /// The URIs that were fetched.
    pub successes: u64,
    /// The bytes of all responses as they are recorded.
    pub bytes: u64,
    /// The tries that failed.
    pub errors: u64,
}

/// A quota that is used up, by the name that crawl logs have for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quota {
    /// The most fetched URIs.
    Successes,
    /// The most bytes.
    Bytes,
}

impl Quota {
    /// Returns the annotation of a URI that it keeps out: the harvest report takes its stop reason from it.
    pub const fn annotation(self) -> &'static str {
        match self {
            Self::Successes => "Q:groupMaxFetchSuccesses",
            Self::Bytes => "Q:groupMaxAllKb",
        }
    }
}

/// The answer to the question whether a queue may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueStanding {
    /// The next URI of the queue may be fetched.
    Open,
    /// Other queues have their turn first.
    SessionSpent,
    /// The total budget of the queue is used up: it is retired.
    BudgetSpent,
    /// A quota of the queue is used up: it is retired, and its URIs are logged with the annotation.
    QuotaReached(Quota),
}

impl QueueStanding {
    /// Returns whether the queue has used up what it may have at all.
    pub const fn is_spent(self) -> bool {
        matches!(self, Self::BudgetSpent | Self::QuotaReached(_))
    }
}

impl QueueAccount {
    /// Charges a finished try: the cost of its URI, a penalty for a failure, and nothing for a URI that was left out or
    /// deferred. `bytes`: the size of the response as it is recorded.
    pub fn charge_fetch(
        &mut self,
        status: FetchStatus,
        bytes: u64,
        cost: u64,
        limits: &QueueLimits,
    ) {
        let cost = if status.is_success() {
            cost
        } else if status.is_failure() {
            limits.error_penalty.saturating_add(cost)
        } else {
            0
        };
        self.session = self.session.saturating_add(cost);
        self.total = self.total.saturating_add(cost);
        self.bytes = self.bytes.saturating_add(bytes);
        self.successes += u64::from(status.is_success());
        self.errors += u64::from(status.is_failure());
    }

    /// Begins a session: the queue has become active.
    pub fn begin_session(&mut self) {
        self.session = 0;
    }

    /// Returns whether the queue may go on. `in_flight` of its URIs are being fetched, and count as fetched, so that a
    /// quota is kept within one object for each connection.
    pub fn queue_standing(&self, limits: &QueueLimits, in_flight: u64) -> QueueStanding {
        let reached = |limit: Option<u64>, value: u64| limit.is_some_and(|limit| value >= limit);
        if reached(limits.successes, self.successes.saturating_add(in_flight)) {
            QueueStanding::QuotaReached(Quota::Successes)
        } else if reached(limits.bytes, self.bytes) {
            QueueStanding::QuotaReached(Quota::Bytes)
        } else if reached(limits.total, self.total.saturating_add(in_flight)) {
            QueueStanding::BudgetSpent
        } else if self.session >= limits.session {
            QueueStanding::SessionSpent
        } else {
            QueueStanding::Open
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: FetchStatus = FetchStatus::from_http(200);

    /// Fails if a try costs more or less than its kind.
    #[test]
    fn cost_follows_from_the_status() {
        let limits = QueueLimits::default();
        let cost = |status| {
            let mut account = QueueAccount::default();
            account.charge_fetch(status, 10, 1, &limits);
            (account.total, account.successes, account.errors)
        };
        assert_eq!(cost(GOOD), (1, 1, 0));
        assert_eq!(cost(FetchStatus::from_http(404)), (1, 1, 0));
        assert_eq!(cost(FetchStatus::TIMEOUT), (101, 0, 1));
        assert_eq!(cost(FetchStatus::DEFERRED), (0, 0, 0));
        assert_eq!(cost(FetchStatus::ROBOTS_PRECLUDED), (0, 0, 0));
        let mut account = QueueAccount::default();
        account.charge_fetch(GOOD, 10, 3, &limits);
        account.charge_fetch(FetchStatus::TIMEOUT, 10, 3, &limits);
        assert_eq!(
            (account.session, account.total, account.successes),
            (106, 106, 1)
        );
    }

    /// Fails if a limit is passed, or a queue stops before it.
    #[test]
    fn each_limit_ends_the_queue_in_time() {
        let open = QueueLimits::default();
        for (limits, expected, after) in [
            (
                QueueLimits {
                    successes: Some(3),
                    ..open
                },
                QueueStanding::QuotaReached(Quota::Successes),
                3,
            ),
            (
                QueueLimits {
                    bytes: Some(25),
                    ..open
                },
                QueueStanding::QuotaReached(Quota::Bytes),
                3,
            ),
            (
                QueueLimits {
                    total: Some(3),
                    ..open
                },
                QueueStanding::BudgetSpent,
                3,
            ),
            (
                QueueLimits { session: 3, ..open },
                QueueStanding::SessionSpent,
                3,
            ),
            (
                QueueLimits {
                    successes: Some(0),
                    ..open
                },
                QueueStanding::QuotaReached(Quota::Successes),
                0,
            ),
        ] {
            let mut account = QueueAccount::default();
            for _ in 0..after {
                assert_eq!(account.queue_standing(&limits, 0), QueueStanding::Open);
                account.charge_fetch(GOOD, 10, 1, &limits);
            }
            assert_eq!(account.queue_standing(&limits, 0), expected);
        }
    }

    /// Fails if a budget of a person leaves a limit of the order in place, or takes a session away.
    #[test]
    fn budget_of_a_person_replaces_total_limits() {
        let limits = QueueLimits {
            total: Some(1),
            successes: Some(1),
            bytes: Some(1),
            ..QueueLimits::default()
        };
        let budget = QueueBudget {
            objects: Some(3),
            bytes: None,
        };
        let raised = limits.with_budget(budget);
        assert_eq!(
            (raised.total, raised.successes, raised.bytes),
            (None, Some(3), None)
        );
        assert_eq!(raised.session, limits.session);
        let mut account = QueueAccount::default();
        account.charge_fetch(GOOD, 10, 1, &limits);
        assert!(account.queue_standing(&limits, 0).is_spent());
        assert!(!account.queue_standing(&raised, 0).is_spent());
    }

    /// Fails if several connections of a queue pass its quota together.
    #[test]
    fn fetches_in_flight_count_as_fetched() {
        let limits = QueueLimits {
            successes: Some(3),
            ..QueueLimits::default()
        };
        let mut account = QueueAccount::default();
        account.charge_fetch(GOOD, 10, 1, &limits);
        assert_eq!(account.queue_standing(&limits, 1), QueueStanding::Open);
        assert_eq!(
            account.queue_standing(&limits, 2),
            QueueStanding::QuotaReached(Quota::Successes)
        );
    }

    /// Fails if a new session does not give a queue its turn, or forgives what it has spent at all.
    #[test]
    fn new_session_opens_the_queue_again() {
        let limits = QueueLimits {
            session: 1,
            ..QueueLimits::default()
        };
        let mut account = QueueAccount::default();
        account.charge_fetch(GOOD, 10, 1, &limits);
        assert_eq!(
            account.queue_standing(&limits, 0),
            QueueStanding::SessionSpent
        );
        account.begin_session();
        assert_eq!(
            (account.queue_standing(&limits, 0), account.total),
            (QueueStanding::Open, 1)
        );
    }
}
