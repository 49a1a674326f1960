//! The result of a try to fetch a URI, as a number of the crawl log (Heritrix' fetch status codes).
//!
//! Owns the numbers, and what follows from them: whether it was a success, and whether and when it is tried again.

use std::fmt;
use std::time::Duration;

/// A fetch status: the status of the HTTP response, 1 of a DNS answer, or one of the numbers below zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FetchStatus(i32);

impl FetchStatus {
    /// The DNS server answered.
    pub const DNS_SUCCESS: Self = Self(1);
    /// The DNS server knows no address.
    pub const DNS_FAILED: Self = Self(-1);
    /// No connection could be made.
    pub const CONNECT_FAILED: Self = Self(-2);
    /// The connection broke before the end of the response.
    pub const CONNECT_LOST: Self = Self(-3);
    /// The response took too long.
    pub const TIMEOUT: Self = Self(-4);
    /// The crawler failed, not the host.
    pub const RUNTIME_EXCEPTION: Self = Self(-5);
    /// The address of the host could not be had before.
    pub const DOMAIN_PREREQUISITE_FAILED: Self = Self(-6);
    /// The URI cannot be fetched by any protocol that is known.
    pub const UNFETCHABLE: Self = Self(-7);
    /// All tries failed.
    pub const TOO_MANY_RETRIES: Self = Self(-8);
    /// The host speaks no TLS, or none that the crawler knows.
    pub const TLS_FAILED: Self = Self(-9);
    /// Something else has to be fetched first.
    pub const DEFERRED: Self = Self(-50);
    /// robots.txt could not be had before.
    pub const ROBOTS_PREREQUISITE_FAILED: Self = Self(-61);
    /// Too many hops from the seed.
    pub const TOO_MANY_LINK_HOPS: Self = Self(-4001);
    /// Too many hops from the page.
    pub const TOO_MANY_EMBED_HOPS: Self = Self(-4002);
    /// Not in the scope.
    pub const OUT_OF_SCOPE: Self = Self(-5000);
    /// In the scope, and blocked by a person: a crawler trap.
    pub const BLOCKED_BY_USER: Self = Self(-5001);
    /// The host lies at an address that must not be connected to; the annotation says why. (Heritrix: blocked by a
    /// custom processor.)
    pub const BLOCKED_BY_ADDRESS: Self = Self(-5002);
    /// A quota is used up; the annotation says which.
    pub const BLOCKED_BY_QUOTA: Self = Self(-5003);
    /// The time of the crawl is over.
    pub const BLOCKED_BY_RUNTIME_LIMIT: Self = Self(-5004);
    /// A person took the URI out of the frontier.
    pub const DELETED_BY_OPERATOR: Self = Self(-6000);
    /// The rules of the host's robots.txt exclude it.
    pub const ROBOTS_PRECLUDED: Self = Self(-9998);

    /// Returns the status of an HTTP response.
    pub const fn from_http(status: u16) -> Self {
        Self(status as i32)
    }

    /// Returns the status that a crawl log names by this number.
    pub const fn from_number(number: i32) -> Self {
        Self(number)
    }

    /// Returns the number in the crawl log.
    pub const fn number(self) -> i32 {
        self.0
    }

    /// Returns whether something was fetched: any response of the host, a 404 as well.
    pub const fn is_success(self) -> bool {
        self.0 > 0
    }

    /// Returns whether the URI was left out before a connection was thought of: out of scope, a quota, a trap,
    /// robots.txt.
    pub const fn is_disregarded(self) -> bool {
        matches!(
            self,
            Self::OUT_OF_SCOPE
                | Self::BLOCKED_BY_USER
                | Self::BLOCKED_BY_ADDRESS
                | Self::BLOCKED_BY_QUOTA
                | Self::BLOCKED_BY_RUNTIME_LIMIT
                | Self::DELETED_BY_OPERATOR
                | Self::TOO_MANY_LINK_HOPS
                | Self::TOO_MANY_EMBED_HOPS
                | Self::ROBOTS_PRECLUDED
        )
    }

    /// Returns whether a link to the URI has led to nothing that belongs to an archive: its host refuses, lacks or fails
    /// it, cannot be reached, or must not be asked.
    pub const fn came_to_nothing(self) -> bool {
        self.is_failure()
            || matches!(self, Self::ROBOTS_PRECLUDED | Self::BLOCKED_BY_ADDRESS)
            || matches!(self.0, 400..)
    }

    /// Returns whether the host has answered that it is too busy to answer now.
    pub const fn asks_for_patience(self) -> bool {
        matches!(self.0, 429 | 503)
    }

    /// Returns whether another try may end otherwise.
    pub const fn may_pass(self) -> bool {
        self.asks_for_patience()
            || matches!(
                self,
                Self::DNS_FAILED
                    | Self::CONNECT_FAILED
                    | Self::CONNECT_LOST
                    | Self::TIMEOUT
                    | Self::ROBOTS_PREREQUISITE_FAILED
            )
    }

    /// Returns the status in words, as a clause that follows the name of a URI and a colon.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::DNS_FAILED => "no name server answers for its host",
            Self::CONNECT_FAILED => "no connection to its host can be made",
            Self::CONNECT_LOST => "its host closes the connection without an answer",
            Self::TIMEOUT => "its host answers too slowly",
            Self::RUNTIME_EXCEPTION => "the crawler failed; the crawl log says how",
            Self::DOMAIN_PREREQUISITE_FAILED => "its host has no address",
            Self::UNFETCHABLE => "it cannot be fetched by a protocol that is known",
            Self::TOO_MANY_RETRIES => "all tries failed",
            Self::TLS_FAILED => "its host speaks no TLS that the crawler knows",
            Self::DEFERRED => "something else has to be fetched before",
            Self::ROBOTS_PREREQUISITE_FAILED => "its robots.txt cannot be had",
            Self::OUT_OF_SCOPE => "it is not in the scope",
            Self::BLOCKED_BY_USER => "a person has rejected it",
            Self::BLOCKED_BY_ADDRESS => {
                "its host lies at an address that is no place of the public web"
            }
            Self::BLOCKED_BY_QUOTA => "a quota is used up",
            Self::BLOCKED_BY_RUNTIME_LIMIT => "the time of the crawl is over",
            Self::DELETED_BY_OPERATOR => "a person has deleted it",
            Self::ROBOTS_PRECLUDED => "the robots.txt of its host excludes it",
            Self(0) => "it was not tried",
            Self(1..) => "its host has answered",
            Self(_) => "it was left out",
        }
    }

    /// Returns whether the status counts as a failure of the URI.
    pub const fn is_failure(self) -> bool {
        self.0 < 0 && !self.is_disregarded() && !matches!(self, Self::DEFERRED)
    }
}

impl fmt::Display for FetchStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The rules by which a URI is tried again after it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryRules {
    /// The most tries of one URI, the first one included.
    pub max_tries: u32,
    /// The pause before the second try: most troubles are short.
    pub first_delay: Duration,
    /// The pause before each further try.
    pub delay: Duration,
    /// The longest time that a host may ask for by `Retry-After`.
    pub max_retry_after: Duration,
}

impl Default for RetryRules {
    /// Returns 3 tries, the second after seconds, the third after 5 minutes (NetarchiveSuite's pace); up to an hour where
    /// the host says so itself.
    fn default() -> Self {
        Self {
            max_tries: 3,
            first_delay: Duration::from_secs(5),
            delay: Duration::from_mins(5),
            max_retry_after: Duration::from_hours(1),
        }
    }
}

/// The way of a URI after a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryDecision {
    /// The URI is finished with this status.
    Finished(FetchStatus),
    /// The URI goes back to its queue at once, because something else has to be fetched first. That is no try.
    Deferred,
    /// The URI is tried again after this time; its queue goes on meanwhile.
    RetryAfter(Duration),
}

/// The end of a try, as far as it decides about the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishedAttempt {
    /// The status with which the try ended.
    pub status: FetchStatus,
    /// The number of tries so far, this one included.
    pub tries: u32,
    /// The time that the host asks for with a 429 or 503.
    pub retry_after: Option<Duration>,
    /// Whether the host has broken off, or stopped, within its answer.
    pub is_cut: bool,
}

impl RetryRules {
    /// Decides after a try.
    pub fn after_try(&self, attempt: FinishedAttempt) -> TryDecision {
        let FinishedAttempt {
            status,
            tries,
            retry_after,
            is_cut,
        } = attempt;
        if status == FetchStatus::DEFERRED {
            return TryDecision::Deferred;
        }
        if !is_cut && !status.may_pass() {
            return TryDecision::Finished(status);
        }
        if tries < self.max_tries {
            let asked = retry_after.filter(|_| status.asks_for_patience());
            TryDecision::RetryAfter(match asked {
                Some(asked) => asked.min(self.max_retry_after),
                None => self.delay_after(tries),
            })
        } else if status.is_success() {
            // The host has answered: its last word is what is archived.
            TryDecision::Finished(status)
        } else {
            TryDecision::Finished(FetchStatus::TOO_MANY_RETRIES)
        }
    }

    /// Returns the pause after this number of tries that have failed.
    pub const fn delay_after(&self, tries: u32) -> Duration {
        if tries <= 1 {
            self.first_delay
        } else {
            self.delay
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a passing trouble ends a URI, or a lasting one keeps it in its queue.
    #[test]
    fn passing_failures_are_tried_again() {
        let rules = RetryRules::default();
        let again = TryDecision::RetryAfter;
        let finished = TryDecision::Finished;
        let http = FetchStatus::from_http;
        let minute = Duration::from_mins(1);
        for (status, tries, retry_after, is_cut, expected) in [
            (
                FetchStatus::CONNECT_FAILED,
                1,
                None,
                false,
                again(rules.first_delay),
            ),
            (FetchStatus::DNS_FAILED, 2, None, false, again(rules.delay)),
            (FetchStatus::TIMEOUT, 2, None, false, again(rules.delay)),
            (
                FetchStatus::DNS_FAILED,
                3,
                None,
                false,
                finished(FetchStatus::TOO_MANY_RETRIES),
            ),
            (
                FetchStatus::DEFERRED,
                99,
                None,
                false,
                TryDecision::Deferred,
            ),
            (
                FetchStatus::TLS_FAILED,
                1,
                None,
                false,
                finished(FetchStatus::TLS_FAILED),
            ),
            (
                FetchStatus::ROBOTS_PRECLUDED,
                1,
                None,
                false,
                finished(FetchStatus::ROBOTS_PRECLUDED),
            ),
            (http(200), 1, Some(minute), false, finished(http(200))),
            (http(200), 1, None, true, again(rules.first_delay)),
            (http(200), 3, None, true, finished(http(200))),
            (http(503), 1, None, false, again(rules.first_delay)),
            (http(429), 2, None, false, again(rules.delay)),
            (http(429), 3, None, false, finished(http(429))),
            (http(503), 1, Some(minute), false, again(minute)),
            (
                http(429),
                1,
                Some(minute * 10_000),
                false,
                again(rules.max_retry_after),
            ),
            (http(429), 3, Some(minute), false, finished(http(429))),
        ] {
            let attempt = FinishedAttempt {
                status,
                tries,
                retry_after,
                is_cut,
            };
            assert_eq!(rules.after_try(attempt), expected, "{status} after {tries}");
        }
    }

    /// Fails if a status is two of success, failure and left out, or an answer of the host is a failure.
    #[test]
    fn every_status_is_of_one_kind() {
        for number in (-10_000..1000).filter(|number| *number != 0) {
            let status = FetchStatus(number);
            let kinds = [
                status.is_success(),
                status.is_failure(),
                status.is_disregarded(),
                status == FetchStatus::DEFERRED,
            ];
            assert_eq!(
                kinds.into_iter().filter(|kind| *kind).count(),
                1,
                "{number}"
            );
        }
    }
}
