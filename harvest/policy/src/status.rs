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
    /// The pause before the next try.
    pub delay: Duration,
    /// The longest time that a host may ask for by `Retry-After`.
    pub max_retry_after: Duration,
}

impl Default for RetryRules {
    /// Returns 30 tries, 15 minutes apart, as in Heritrix; up to a day where the host says so itself.
    fn default() -> Self {
        Self {
            max_tries: 30,
            delay: Duration::from_mins(15),
            max_retry_after: Duration::from_hours(24),
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
    /// The URI goes back to its queue, which rests for this time.
    RetryAfter(Duration),
}

impl RetryRules {
    /// Decides after the `tries`-th try, which ended with `status`. `retry_after`: the time that the host asks for with
    /// a 429 or 503.
    pub fn after_try(
        &self,
        status: FetchStatus,
        tries: u32,
        retry_after: Option<Duration>,
    ) -> TryDecision {
        let asked = retry_after.filter(|_| matches!(status.number(), 429 | 503));
        let delay = match status {
            FetchStatus::DEFERRED => return TryDecision::Deferred,
            FetchStatus::DNS_FAILED
            | FetchStatus::CONNECT_FAILED
            | FetchStatus::CONNECT_LOST
            | FetchStatus::ROBOTS_PREREQUISITE_FAILED => self.delay,
            // The host asks for patience, and does not say how long.
            _ if status.number() == 429 && asked.is_none() => self.delay,
            _ => match asked {
                Some(asked) => asked.min(self.max_retry_after),
                None => return TryDecision::Finished(status),
            },
        };
        if tries < self.max_tries {
            TryDecision::RetryAfter(delay)
        } else if status.is_success() {
            // The host has answered: its last word is what is archived.
            TryDecision::Finished(status)
        } else {
            TryDecision::Finished(FetchStatus::TOO_MANY_RETRIES)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a passing trouble ends a URI, or a lasting one keeps it in its queue.
    #[test]
    fn passing_failures_are_tried_again() {
        let rules = RetryRules {
            max_tries: 3,
            ..RetryRules::default()
        };
        let minute = Duration::from_mins(1);
        let http = FetchStatus::from_http;
        for (status, tries, retry_after, expected) in [
            (
                FetchStatus::CONNECT_FAILED,
                1,
                None,
                TryDecision::RetryAfter(rules.delay),
            ),
            (
                FetchStatus::DNS_FAILED,
                2,
                None,
                TryDecision::RetryAfter(rules.delay),
            ),
            (
                FetchStatus::DNS_FAILED,
                3,
                None,
                TryDecision::Finished(FetchStatus::TOO_MANY_RETRIES),
            ),
            (FetchStatus::DEFERRED, 99, None, TryDecision::Deferred),
            (
                FetchStatus::TIMEOUT,
                1,
                None,
                TryDecision::Finished(FetchStatus::TIMEOUT),
            ),
            (
                FetchStatus::ROBOTS_PRECLUDED,
                1,
                None,
                TryDecision::Finished(FetchStatus::ROBOTS_PRECLUDED),
            ),
            (http(200), 1, Some(minute), TryDecision::Finished(http(200))),
            (http(503), 1, None, TryDecision::Finished(http(503))),
            (http(429), 1, None, TryDecision::RetryAfter(rules.delay)),
            (http(429), 3, None, TryDecision::Finished(http(429))),
            (http(503), 1, Some(minute), TryDecision::RetryAfter(minute)),
            (
                http(429),
                1,
                Some(minute * 10_000),
                TryDecision::RetryAfter(rules.max_retry_after),
            ),
            (http(429), 3, Some(minute), TryDecision::Finished(http(429))),
        ] {
            assert_eq!(
                rules.after_try(status, tries, retry_after),
                expected,
                "{status} after {tries}"
            );
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
