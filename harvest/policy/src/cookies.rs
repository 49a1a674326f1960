//! The cookies of a crawl: which are kept, and which go with a request (RFC 6265 §5).
//!
//! Owns the rules for hosts, domains, paths, secure connections and times, and the bounds: a site that sets cookies
//! without an end pushes out its own, and sites that were not asked for long are forgotten. A cookie is never shared
//! with a host of another registrable domain, whatever it says. Has no clock; a jar is in memory only, and a crawl that
//! is resumed begins with an empty one.
//!
//! ```
//! use harvest_policy::cookies::CookieJar;
//! use url::Url;
//!
//! let mut jar = CookieJar::default();
//! jar.keep_cookie(&Url::parse("https://www.example.dk/in/")?, b"id=7; Domain=example.dk; Path=/; Max-Age=60", 1000);
//! let page = Url::parse("http://images.example.dk/a.png")?;
//! assert_eq!(jar.cookie_field(&page, 1059).as_deref(), Some("id=7"));
//! assert_eq!(jar.cookie_field(&page, 1060), None);
//! # Ok::<(), url::ParseError>(())
//! ```

use std::cmp::Reverse;
use std::collections::HashMap;

use cookie::Cookie;
use cookie::time::OffsetDateTime;
use url::{Host, Url};

use crate::suffixes::SuffixList;

/// The most bytes of a name and its value together (RFC 6265 §6.1).
const MAX_COOKIE: usize = 4096;

/// The most bytes of a domain or a path; a longer one counts as not given.
const MAX_ATTRIBUTE: usize = 1024;

/// The most cookies of a site (RFC 6265 §6.1).
const MAX_COUNT: usize = 50;

/// The most bytes of the cookies of a site: servers refuse requests with longer heads.
const MAX_SITE: usize = 16 << 10;

/// The most bytes of all cookies since the last turn of the memory.
const MAX_YOUNG: usize = 8 << 20;

/// A cookie as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
struct StoredCookie {
    name: String,
    value: String,
    /// The host that has set the cookie, or the domain that it named.
    domain: String,
    /// Whether the cookie is sent to the host that has set it only, and not to others of its domain.
    is_host_only: bool,
    path: String,
    is_secure: bool,
    /// The second since 1970 at which it expires; `None`: it lasts as long as the crawl.
    expires: Option<i64>,
    /// The number of the cookie, in the order in which names were first set.
    number: u64,
}

impl StoredCookie {
    fn bytes(&self) -> usize {
        self.name.len() + self.value.len() + self.domain.len() + self.path.len()
    }

    fn is_gone(&self, now: i64) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    fn replaces(&self, other: &Self) -> bool {
        (&self.name, &self.domain, &self.path) == (&other.name, &other.domain, &other.path)
    }

    /// Returns whether the cookie goes with a request (RFC 6265 §5.4).
    fn goes_to(&self, host: &str, url: &Url) -> bool {
        let is_host = if self.is_host_only {
            host == self.domain
        } else {
            is_within(host, &self.domain)
        };
        is_host
            && path_matches(url.path(), &self.path)
            && (!self.is_secure || url.scheme() == "https")
    }
}

/// The cookies of one registrable domain.
#[derive(Clone, Debug, Default)]
struct SiteCookies {
    cookies: Vec<StoredCookie>,
}

impl SiteCookies {
    fn bytes(&self) -> usize {
        self.cookies.iter().map(StoredCookie::bytes).sum()
    }

    /// Adds a cookie, or takes away the one that it says is over. The oldest ones make room.
    fn put(&mut self, mut cookie: StoredCookie, now: i64) {
        let before = self.cookies.iter().position(|old| cookie.replaces(old));
        if let Some(before) = before.map(|at| self.cookies.remove(at)) {
            cookie.number = before.number;
        }
        self.cookies.push(cookie);
        self.cookies.retain(|cookie| !cookie.is_gone(now));
        while self.cookies.len() > MAX_COUNT || self.bytes() > MAX_SITE {
            self.cookies.remove(0);
        }
    }
}

/// The cookies of a crawl.
#[derive(Clone, Debug, Default)]
pub struct CookieJar {
    /// The sites that were asked lately, by registrable domain.
    young: HashMap<String, SiteCookies>,
    old: HashMap<String, SiteCookies>,
    young_bytes: usize,
    next_number: u64,
    /// The list that is compiled in, whatever names the queues of the crawl: hosts rely on it.
    suffixes: SuffixList,
}

impl CookieJar {
    /// Keeps the cookie of a `Set-Cookie` field in the response of a URI, if it is one and the host may set it. `now`:
    /// the second since 1970.
    pub fn keep_cookie(&mut self, url: &Url, field: &[u8], now: i64) {
        let Some(host) = host(url) else {
            return;
        };
        let Some(cookie) = self.read(url, host, field, now) else {
            return;
        };
        let site = self.suffixes.registered_domain(host).to_owned();
        let is_known = self.young.contains_key(&site) || self.old.contains_key(&site);
        if cookie.is_gone(now) && !is_known {
            return;
        }
        let entry = self.site(&site);
        let before = entry.bytes();
        entry.put(cookie, now);
        let after = entry.bytes();
        self.young_bytes = (self.young_bytes + after).saturating_sub(before);
        if self.young_bytes > MAX_YOUNG {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
    }

    /// Returns the value of the field `Cookie` for a request; `None` if there is nothing to say.
    pub fn cookie_field(&mut self, url: &Url, now: i64) -> Option<String> {
        let host = host(url)?;
        let site = self.suffixes.registered_domain(host).to_owned();
        if !self.young.contains_key(&site) && !self.old.contains_key(&site) {
            return None;
        }
        let cookies = self.site(&site).cookies.iter();
        let mut sent: Vec<&StoredCookie> = cookies
            .filter(|cookie| !cookie.is_gone(now) && cookie.goes_to(host, url))
            .collect();
        sent.sort_by_key(|cookie| (Reverse(cookie.path.len()), cookie.number));
        let pairs = sent.iter().map(|cookie| {
            let StoredCookie { name, value, .. } = cookie;
            format!("{name}={value}")
        });
        let pairs: Vec<String> = pairs.collect();
        (!pairs.is_empty()).then(|| pairs.join("; "))
    }

    /// Returns the cookies of a site, which is used lately from now on.
    fn site(&mut self, site: &str) -> &mut SiteCookies {
        let renewed = self.old.remove(site);
        self.young_bytes += renewed.as_ref().map_or(0, SiteCookies::bytes);
        let entry = self.young.entry(site.to_owned());
        entry.or_insert_with(|| renewed.unwrap_or_default())
    }

    /// Reads a field (RFC 6265 §5.2, §5.3); `None` if it is no cookie, or none that this host may set.
    fn read(&mut self, url: &Url, host: &str, field: &[u8], now: i64) -> Option<StoredCookie> {
        let text = std::str::from_utf8(field).ok()?;
        let cookie = Cookie::parse(text).ok()?;
        let (name, value) = cookie.name_value();
        let breaks = |text: &str| text.contains(char::is_control);
        if name.len() + value.len() > MAX_COOKIE || breaks(name) || breaks(value) {
            return None;
        }
        let named = cookie.domain().filter(|name| name.len() <= MAX_ATTRIBUTE);
        let (domain, is_host_only) = match named {
            Some(named) => self.domain_for(host, named)?,
            None => (host.to_owned(), true),
        };
        let given = cookie.path();
        let path = given.filter(|path| path.starts_with('/') && path.len() <= MAX_ATTRIBUTE);
        let expires = match cookie.max_age() {
            Some(age) => Some(now.saturating_add(age.whole_seconds())),
            None => cookie
                .expires_datetime()
                .map(OffsetDateTime::unix_timestamp),
        };
        let number = self.next_number;
        self.next_number = number.saturating_add(1);
        Some(StoredCookie {
            name: name.to_owned(),
            value: value.to_owned(),
            domain,
            is_host_only,
            path: path.unwrap_or_else(|| default_path(url)).to_owned(),
            is_secure: cookie.secure() == Some(true),
            expires,
            number,
        })
    }

    /// Returns the domain of a cookie that a host sets for a domain, and whether only the host itself gets it; `None`
    /// if the host may not set one there.
    fn domain_for(&self, host: &str, named: &str) -> Option<(String, bool)> {
        let named = named.strip_prefix('.').unwrap_or(named);
        let named = Host::parse(named).ok()?.to_string();
        if named == host {
            // A public suffix may be a host itself; what lies below it belongs to others (RFC 6265 §5.3, 5).
            let is_alone = self.suffixes.is_suffix(host) || is_address(host);
            return Some((named, is_alone));
        }
        let is_own =
            self.suffixes.registered_domain(&named) == self.suffixes.registered_domain(host);
        (is_own && is_within(host, &named)).then_some((named, false))
    }
}

/// Returns the host of a URI as cookies name it.
fn host(url: &Url) -> Option<&str> {
    Some(url.host_str()?.trim_end_matches('.'))
}

fn is_address(host: &str) -> bool {
    !matches!(Host::parse(host), Ok(Host::Domain(_)))
}

/// Returns whether a host is a domain or lies below it (RFC 6265 §5.1.3).
fn is_within(host: &str, domain: &str) -> bool {
    let before = host.strip_suffix(domain);
    before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

/// Returns the directory of a URI (RFC 6265 §5.1.4).
fn default_path(url: &Url) -> &str {
    let directory = url.path().rsplit_once('/').map_or("", |(before, _)| before);
    if directory.is_empty() { "/" } else { directory }
}

/// Returns whether a path lies at or below another one (RFC 6265 §5.1.4).
fn path_matches(path: &str, parent: &str) -> bool {
    let below = path.strip_prefix(parent);
    below.is_some_and(|below| below.is_empty() || parent.ends_with('/') || below.starts_with('/'))
}

#[cfg(test)]
mod tests;
