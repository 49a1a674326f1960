//! The keys that a query asks for: one, or a range.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::surt::UrlKey;

/// The keys that a query asks for.
///
/// ```
/// use archive_formats::cdx::query::{KeyMatch, MatchKind};
///
/// let domain = KeyMatch::for_url(MatchKind::Domain, "example.org")?;
/// assert!(domain.matches("org,example)/") && domain.matches("org,example,www)/a"));
/// assert!(!domain.matches("org,examples)/"));
/// # Ok::<(), archive_formats::cdx::query::NoHost>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyMatch {
    /// A single key.
    Exact(UrlKey),
    /// All keys of a range.
    Within(KeyRange),
}

/// A range of keys, in the order of their bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// The first key of the range.
    pub start: String,
    /// The first key behind the range; `None`: the range has no end.
    pub end: Option<String>,
}

/// The way in which a URL selects keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatchKind {
    /// The key of the URL only.
    Exact,
    /// All keys that begin with the key of the URL.
    Prefix,
    /// All keys of the host of the URL.
    Host,
    /// All keys of the host of the URL and of the hosts below it.
    Domain,
    /// All keys from the one of the URL on, to the end of the index.
    Range,
}

/// A URL without a host cannot select one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the URL has no host, which a host or domain match needs")]
pub struct NoHost;

/// The error of a name that no match kind has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the match type is one of exact, prefix, host, domain, range")]
pub struct UnknownMatchKind;

impl MatchKind {
    /// Returns the name that all CDX servers have for the match kind.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Prefix => "prefix",
            Self::Host => "host",
            Self::Domain => "domain",
            Self::Range => "range",
        }
    }
}

impl fmt::Display for MatchKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for MatchKind {
    type Err = UnknownMatchKind;

    fn from_str(text: &str) -> Result<Self, UnknownMatchKind> {
        [
            Self::Exact,
            Self::Prefix,
            Self::Host,
            Self::Domain,
            Self::Range,
        ]
        .into_iter()
        .find(|kind| kind.as_str() == text)
        .ok_or(UnknownMatchKind)
    }
}

impl KeyMatch {
    /// Returns the keys that a URL selects in this way.
    ///
    /// A URL that ends with a slash keeps it as a prefix, although keys lose theirs: `a.org/b/` selects what is below
    /// `b`. Host and domain follow the field's servers: other ports of a host are other hosts.
    ///
    /// # Errors
    ///
    /// Fails for a host or domain match of a URL without a host.
    pub fn for_url(kind: MatchKind, url: impl AsRef<[u8]>) -> Result<Self, NoHost> {
        let url = url.as_ref();
        let key = UrlKey::parse(url);
        let ends_with_slash = url.trim_ascii_end().ends_with(b"/") && !key.as_str().ends_with('/');
        let slash = if ends_with_slash { "/" } else { "" };
        Self::for_key(kind, key, slash)
    }

    /// Returns the keys that a key selects in this way.
    ///
    /// # Errors
    ///
    /// Fails for a host or domain match of a key without a host.
    pub fn for_url_key(kind: MatchKind, key: UrlKey) -> Result<Self, NoHost> {
        Self::for_key(kind, key, "")
    }

    fn for_key(kind: MatchKind, key: UrlKey, slash: &str) -> Result<Self, NoHost> {
        let range = match kind {
            MatchKind::Exact => return Ok(Self::Exact(key)),
            MatchKind::Prefix => KeyRange::of_prefix(format!("{key}{slash}")),
            MatchKind::Range => KeyRange {
                start: key.as_str().to_owned(),
                end: None,
            },
            MatchKind::Host => {
                let host = key.host().filter(|host| !host.is_empty()).ok_or(NoHost)?;
                // `*` is the byte behind `)`, which ends a host.
                KeyRange {
                    start: format!("{host})/"),
                    end: Some(format!("{host}*")),
                }
            }
            MatchKind::Domain => {
                let host = key.host().filter(|host| !host.is_empty()).ok_or(NoHost)?;
                // A host ends with `)` or continues with `,`; `-` is the byte behind `,`.
                let first = if host.contains(',') { ")/" } else { "," };
                KeyRange {
                    start: format!("{host}{first}"),
                    end: Some(format!("{host}-")),
                }
            }
        };
        Ok(Self::Within(range))
    }

    /// Returns whether a key is one of those asked for.
    pub fn matches(&self, key: &str) -> bool {
        match self {
            Self::Exact(exact) => exact.as_str() == key,
            Self::Within(range) => range.contains(key),
        }
    }
}

impl KeyRange {
    /// Returns the range of all keys.
    pub fn all() -> Self {
        Self::of_prefix("")
    }

    /// Returns the range of all keys that begin with `prefix`.
    pub fn of_prefix(prefix: impl Into<String>) -> Self {
        let start = prefix.into();
        // Keys are ASCII, and so is the first key behind them; behind a text of the highest characters the range has no
        // end.
        let end = start.char_indices().rev().find_map(|(at, last)| {
            let next = char::from_u32(u32::from(last).saturating_add(1))?;
            let mut end = start.get(..at)?.to_owned();
            end.push(next);
            Some(end)
        });
        Self { start, end }
    }

    /// Returns whether a key lies in the range.
    pub fn contains(&self, key: &str) -> bool {
        key >= self.start.as_str() && self.end.as_deref().is_none_or(|end| key < end)
    }
}
