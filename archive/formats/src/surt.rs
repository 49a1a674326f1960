//! URL keys: canonical URLs turned round so that related URLs sort together (SURT).
//!
//! Owns one dialect, the Internet Archive's, as the Python package `surt`, pywb and cdxj-indexer have it. Never fails:
//! any bytes give a key. Does not say that two URLs with one key are one resource, and loses the URL: keep the original
//! beside it.
//!
//! In order: blanks around and tabs and line ends within go, the fragment goes, escapes are undone until no more are
//! left and then made once where needed; hosts become small, Punycode and dotted decimals, without user, default port
//! and `www1.`; paths lose empty and dot segments and the last slash; session ids go; queries are sorted; all becomes
//! small.
//!
//! Where it differs from `surt` 0.3.1, on purpose:
//!
//! | URL | here | there | why |
//! |---|---|---|---|
//! | `http://a.b/..` | `b,a)/` | `b,a)/..` | RFC 3986: there is nothing above the root |
//! | `DNS:a.b`, `HTTPS:a.b` | as in small letters | kept | a scheme has no case |
//! | `a.b:8080/c` | `b,a:8080)/c` | `a.b:8080/c` | it is what people type, and no scheme has a dot and a number behind it |
//! | `http://a.b:x/` and other ports that are none | `b,a:x)/` | exception | any bytes give a key |
//! | `http://`, `#x`, `file:////a/../b` and others without a host | `http:/`, `file:/b` | `http:`, `file://a/../b` | a path is a path, with or without a host |
//! | `http:u@a.b/`, `//a.b:/` | `b,a)/` | `b,u@a)/`, `:,b,a)/` and the like | no user and no empty port in a key, however the URL begins |
//! | a host in bytes that are not UTF-8 | escaped | bytes dropped | two hosts shall not have one key |
//! | labels that IDNA refuses | escaped | some escaped, some as in IDNA 2003 | one table for all: UTS 46 with the mappings of 2003 for `ß`, `ς` and joiners |

mod authority;
mod escape;
mod path;
mod plain;
mod query;

use std::borrow::Borrow;
use std::fmt;

/// The key of a URL.
///
/// Printable ASCII without blanks, so that it stands in a CDX line as it is; ordered bytewise.
///
/// ```
/// use archive_formats::surt::UrlKey;
///
/// let key = UrlKey::parse("https://www.Example.org:443/a//b?z=1&y=2#top");
/// assert_eq!(key.as_str(), "org,example)/a/b?y=2&z=1");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UrlKey(String);

impl UrlKey {
    /// The version of the rules. An index keeps it beside its keys; keys of other versions are made again from the
    /// URLs.
    pub const VERSION: u16 = 1;

    /// Makes the key of a URL, given as text or as the raw bytes of a record.
    pub fn parse(url: impl AsRef<[u8]>) -> Self {
        let url = url.as_ref();
        Self(plain::plain_key(url).unwrap_or_else(|| key(url)))
    }

    /// Takes a key that stands in an index already.
    pub fn from_index(key: &str) -> Self {
        Self(key.to_owned())
    }

    /// Returns the key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the part before `)`: the host turned round, with its port. `None` for keys without a host.
    pub fn host(&self) -> Option<&str> {
        self.0.split_once(")/").map(|(host, _)| host)
    }
}

impl fmt::Display for UrlKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<UrlKey> for String {
    fn from(key: UrlKey) -> Self {
        key.0
    }
}

impl AsRef<str> for UrlKey {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for UrlKey {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// Makes a key by all rules.
fn key(raw: &[u8]) -> String {
    let clean = clean(raw);
    if clean.is_empty() {
        return "-".to_owned();
    }
    if clean
        .get(..8)
        .is_some_and(|start| start.eq_ignore_ascii_case(b"filedesc"))
    {
        return escape::escape_bytes(&clean);
    }
    let bare = match clean.iter().position(|b| *b == b'#') {
        Some(at) => clean.get(..at).unwrap_or_default(),
        None => &clean,
    };
    let (scheme, rest) = scheme(bare);
    match hierarchical(&scheme, rest) {
        Some(rest) => with_host(&scheme, rest),
        None => opaque(&scheme, rest),
    }
}

/// Removes the blanks around a URL, and the tabs and line ends that editors put in.
fn clean(raw: &[u8]) -> Vec<u8> {
    let blank = |b: &u8| b.is_ascii_whitespace() || *b == 0x0b;
    let start = raw.iter().position(|b| !blank(b)).unwrap_or(raw.len());
    let end = raw
        .iter()
        .rposition(|b| !blank(b))
        .map_or(start, |at| at + 1);
    let middle = raw.get(start..end).unwrap_or_default();
    middle
        .iter()
        .copied()
        .filter(|b| !matches!(b, b'\t' | b'\r' | b'\n'))
        .collect()
}

/// Returns the scheme in small letters, and the text behind its colon; `http` if the URL has no scheme.
fn scheme(url: &[u8]) -> (String, &[u8]) {
    let http = || ("http".to_owned(), url);
    let Some(colon) = url.iter().position(|b| *b == b':') else {
        return http();
    };
    let name = url.get(..colon).unwrap_or_default();
    let rest = url.get(colon + 1..).unwrap_or_default();
    let letters = name.first().is_some_and(u8::is_ascii_alphabetic)
        && name
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    let is_port = digits > 0 && matches!(rest.get(digits), None | Some(b'/' | b'?'));
    if !letters || (is_port && name.contains(&b'.')) {
        return http();
    }
    (String::from_utf8_lossy(name).to_ascii_lowercase(), rest)
}

/// Returns the rest of a URL from its host on: behind `//`, and behind any slashes for the schemes of the web.
fn hierarchical<'a>(scheme: &str, rest: &'a [u8]) -> Option<&'a [u8]> {
    if !matches!(scheme, "http" | "https") {
        return rest.strip_prefix(b"//");
    }
    let mut rest = rest;
    loop {
        let slashes = rest.iter().take_while(|b| **b == b'/').count();
        rest = rest.get(slashes..).unwrap_or_default();
        let doubled = [&b"http://"[..], b"https://"].into_iter().find(|p| {
            rest.get(..p.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(p))
        });
        match doubled {
            Some(prefix) => rest = rest.get(prefix.len()..).unwrap_or_default(),
            None => return Some(rest),
        }
    }
}

fn split_query(rest: &[u8]) -> (&[u8], Option<&[u8]>) {
    match rest.iter().position(|b| *b == b'?') {
        Some(at) => (rest.get(..at).unwrap_or_default(), rest.get(at + 1..)),
        None => (rest, None),
    }
}

fn with_host(scheme: &str, rest: &[u8]) -> String {
    let end = rest
        .iter()
        .position(|b| matches!(b, b'/' | b'?'))
        .unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    let (path, query) = split_query(rest);
    let host = authority::canonical_authority(scheme, authority);
    let path = path::canonical_path(path);
    let mut key = if host.is_empty() {
        format!("{scheme}:")
    } else {
        format!("{host})")
    };
    key.push_str(&path);
    query::append_query(&mut key, query);
    key
}

fn opaque(scheme: &str, rest: &[u8]) -> String {
    let (path, query) = split_query(rest);
    let path = escape::canonical_escapes(path);
    let mut key = format!("{scheme}:");
    key.push_str(if path == "/" {
        &path
    } else {
        path.strip_suffix('/').unwrap_or(&path)
    });
    query::append_query(&mut key, query);
    key
}

#[cfg(test)]
mod tests;
