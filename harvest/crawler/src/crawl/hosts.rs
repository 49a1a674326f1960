//! The answers of hosts that a crawl works with: addresses and robots.txt, each as long as it holds.
//!
//! In memory as many as were used lately; the others are read from the frontier again. Asks nobody itself.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use archive_db::DbError;
use harvest_policy::robots::{RobotsAnswer, RobotsRules};
use jiff::Timestamp;
use url::Url;

use crate::frontier::{Frontier, PrerequisiteRow};

/// The most hosts in memory, of either kind.
const MOST_IN_MEMORY: usize = 4096;

/// The most bytes of robots.txt whose rules are in memory: hosts may say much.
const MOST_ROBOTS_BYTES: usize = 8 << 20;

/// The answers in memory.
#[derive(Debug, Default)]
pub(super) struct HostAnswers {
    addresses: HashMap<String, (Arc<[IpAddr]>, Timestamp)>,
    robots: HashMap<String, (Arc<RobotsRules>, Timestamp)>,
    /// The bytes of the files that the rules were read from.
    robots_bytes: usize,
}

/// Returns the URI of the question for the addresses of a host.
pub(super) fn dns_uri(host: &str) -> String {
    format!("dns:{host}")
}

/// Returns the URI of the robots.txt of the host of a URI.
pub(super) fn robots_uri(url: &Url) -> Option<Url> {
    let mut robots = url.join("/robots.txt").ok()?;
    robots.set_query(None);
    robots.set_fragment(None);
    // A user is asked for by a page, not by a host.
    robots.set_username("").ok()?;
    robots.set_password(None).ok()?;
    Some(robots)
}

impl HostAnswers {
    /// Returns the addresses of a host; empty if it has none, `None` if it has to be asked for them.
    pub(super) fn host_addresses(
        &mut self,
        host: &str,
        frontier: &Frontier,
        now: Timestamp,
    ) -> Result<Option<Arc<[IpAddr]>>, DbError> {
        if let Some((addresses, until)) = self.addresses.get(host)
            && *until > now
        {
            return Ok(Some(Arc::clone(addresses)));
        }
        let Some(PrerequisiteRow::Addresses { addresses, until }) =
            frontier.answer_to(&dns_uri(host))?
        else {
            return Ok(None);
        };
        Ok(self.put_addresses(host, &addresses, until, now))
    }

    /// Keeps the addresses of a host in memory, if they still hold.
    pub(super) fn put_addresses(
        &mut self,
        host: &str,
        addresses: &[IpAddr],
        until: i64,
        now: Timestamp,
    ) -> Option<Arc<[IpAddr]>> {
        let until = Timestamp::from_second(until).ok()?;
        let addresses: Arc<[IpAddr]> = addresses.into();
        make_room(&mut self.addresses);
        let entry = (Arc::clone(&addresses), until);
        self.addresses.insert(host.to_owned(), entry);
        (until > now).then_some(addresses)
    }

    /// Returns the rules of a robots.txt for a crawler, by its URI; `None` if it has to be asked for.
    pub(super) fn host_robots(
        &mut self,
        uri: &str,
        product: &str,
        frontier: &Frontier,
        now: Timestamp,
    ) -> Result<Option<Arc<RobotsRules>>, DbError> {
        if let Some((rules, until)) = self.robots.get(uri)
            && *until > now
        {
            return Ok(Some(Arc::clone(rules)));
        }
        let row = frontier.answer_to(uri)?;
        let rules = row.and_then(|row| self.put_robots(uri, product, &row));
        Ok(rules
            .filter(|(_, until)| *until > now)
            .map(|(rules, _)| rules))
    }

    /// Keeps the rules of a robots.txt in memory; returns them with the time as long as they hold.
    pub(super) fn put_robots(
        &mut self,
        uri: &str,
        product: &str,
        row: &PrerequisiteRow,
    ) -> Option<(Arc<RobotsRules>, Timestamp)> {
        let PrerequisiteRow::Robots {
            status,
            file,
            until,
        } = row
        else {
            return None;
        };
        let until = Timestamp::from_second(*until).ok()?;
        let rules = Arc::new(match RobotsAnswer::from_status(*status) {
            RobotsAnswer::File => RobotsRules::parse(file, product),
            RobotsAnswer::Absent => RobotsRules::default(),
            RobotsAnswer::Unreachable => RobotsRules::forbid_all(),
        });
        make_room(&mut self.robots);
        self.robots_bytes = self.robots_bytes.saturating_add(file.len());
        if self.robots_bytes > MOST_ROBOTS_BYTES {
            self.robots.clear();
            self.robots_bytes = file.len();
        }
        let entry = (rules, until);
        self.robots.insert(uri.to_owned(), entry.clone());
        Some(entry)
    }
}

/// Forgets all entries of a map that is full: those in use come back from the frontier.
fn make_room<V>(map: &mut HashMap<String, V>) {
    if map.len() >= MOST_IN_MEMORY {
        map.clear();
    }
}
