//! Requests and what they ask for: pywb's path space, with the Internet Archive's and OutbackCDX's look-ups in it.
//!
//! Owns the paths, and how the URL in one is read: raw, from path and query together, as it was sent. Does not know
//! which collections there are, and does not read the queries of look-ups.
//!
//! | Path | Request |
//! |---|---|
//! | `/` | [`ReplayRequest::Home`] |
//! | `/<coll>/` | [`ReplayRequest::Collection`] |
//! | `/<coll>/cdx?…`, `/<coll>/index?…`, `/cdx/search/cdx?…`, `/<coll>?…` | [`ReplayRequest::Lookup`] |
//! | `/<coll>/timemap/(link\|json\|cdxj)/[page/]<url>` | [`ReplayRequest::TimeMap`] |
//! | `/<coll>/[mod_/]<url>` | [`ReplayRequest::TimeGate`] |
//! | `/<coll>/<ts>[mod_]/<url>` | [`ReplayRequest::Memento`] |
//! | `/<coll>/*/<url>`, `/<coll>/2020*/<url>` | [`ReplayRequest::Calendar`] |
//! | `/<coll>/getFile`, `getRecord`, `getMetadata` | [`ReplayRequest::File`], [`ReplayRequest::Record`], [`ReplayRequest::Metadata`] |
//! | `/<coll>/mismatches` | [`ReplayRequest::Mismatches`] |
//! | `/replay/<coll>/[<ts>/]<url>` | [`ReplayRequest::Page`], on the host of the pages |
//!
//! ```
//! use viewer_replay::request::{Modifier, ReplayRequest};
//!
//! let request = ReplayRequest::parse("/all/2020id_/http:/example.org/a?b=c")?;
//! let ReplayRequest::Memento { collection, time, modifier, target } = request else {
//!     panic!("a memento was asked for");
//! };
//! assert_eq!((collection.as_str(), time.digits()), ("all", "2020"));
//! assert_eq!(time.stamp().to_string(), "20201231235959");
//! assert_eq!(modifier, Some(Modifier::Identity));
//! assert_eq!(target.url(), "http://example.org/a?b=c");
//! assert_eq!(target.key().as_str(), "org,example)/a?b=c");
//! # Ok::<(), viewer_replay::request::InvalidRequest>(())
//! ```

mod addresses;
mod invalid;
mod modifier;
mod target;
mod time;

use std::borrow::Cow;
use std::num::NonZeroU32;

use archive_formats::date::InvalidDate;
use url::form_urlencoded;

pub use addresses::{Addresses, header_safe};
pub use invalid::InvalidRequest;
pub use modifier::Modifier;
pub use target::{InvalidTarget, LONGEST_URL, ReplayTarget, TargetMatch};
pub use time::{RequestedSpan, RequestedTime};

/// Names that no collection can have: they begin other paths.
pub const RESERVED_NAMES: [&str; 3] = ["cdx", "replay", "static"];

/// The longest name of a collection.
const LONGEST_NAME: usize = 64;

/// A request, as far as its path says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayRequest {
    /// The list of collections.
    Home,
    /// The page of a collection.
    Collection {
        /// The name of the collection.
        collection: String,
    },
    /// A look-up in the index.
    Lookup {
        /// The collection; `None` for the path of the Internet Archive, which names none.
        collection: Option<String>,
        /// The dialect of the parameters and the answer.
        dialect: LookupDialect,
        /// The query as it was sent, without the question mark.
        query: String,
    },
    /// The captures of a URL, for machines.
    TimeMap {
        /// The name of the collection.
        collection: String,
        /// The form of the TimeMap.
        format: TimeMapFormat,
        /// The page of the TimeMap, if one is named.
        page: Option<NonZeroU32>,
        /// The URL whose captures are listed.
        target: ReplayTarget,
    },
    /// The capture of a URL that is nearest to `Accept-Datetime`, or the latest one.
    TimeGate {
        /// The name of the collection.
        collection: String,
        /// The form in which the capture is shown.
        modifier: Option<Modifier>,
        /// The URL whose capture is looked for.
        target: ReplayTarget,
    },
    /// The capture of a URL at a time, or the nearest one.
    Memento {
        /// The name of the collection.
        collection: String,
        /// The time of the capture.
        time: RequestedTime,
        /// The form in which the capture is shown.
        modifier: Option<Modifier>,
        /// The URL of the capture.
        target: ReplayTarget,
    },
    /// The captures of a URL, or of the URLs that begin with it, for people.
    Calendar {
        /// The name of the collection.
        collection: String,
        /// The time that is shown.
        span: RequestedSpan,
        /// The URL, or the beginning of some.
        target: ReplayTarget,
        /// The URLs that are meant.
        matching: TargetMatch,
    },
    /// The page that frames a capture.
    Page {
        /// The name of the collection.
        collection: String,
        /// The time; `None` for the latest capture.
        time: Option<RequestedTime>,
        /// The URL of the capture.
        target: ReplayTarget,
    },
    /// A whole archive file.
    File {
        /// The name of the collection.
        collection: String,
        /// The name of the file (`arcFile`).
        file: String,
    },
    /// A record of an archive file.
    Record {
        /// The name of the collection.
        collection: String,
        /// The name of the file (`arcFile`).
        file: String,
        /// The offset of the record (`arcOffset`).
        offset: u64,
    },
    /// The captures whose payload was seen not to have the digest of its record.
    Mismatches {
        /// The name of the collection.
        collection: String,
    },
    /// The metadata files of a harvest job.
    Metadata {
        /// The name of the collection.
        collection: String,
        /// The job (`jobID`).
        job: String,
    },
}

/// The dialect of a look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupDialect {
    /// pywb's CDXJ API.
    Pywb,
    /// The CDX server of the Internet Archive.
    InternetArchive,
    /// OutbackCDX.
    Outback,
}

/// The form of a TimeMap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeMapFormat {
    /// `application/link-format`, as RFC 7089 has it.
    Link,
    /// A line of JSON for each capture.
    Json,
    /// A line of CDXJ for each capture.
    Cdxj,
}

impl TimeMapFormat {
    /// Returns the name of the form in paths.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::Json => "json",
            Self::Cdxj => "cdxj",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        [Self::Link, Self::Json, Self::Cdxj]
            .into_iter()
            .find(|format| format.name() == name)
    }
}

impl ReplayRequest {
    /// Reads the path and query of a request, as they were sent.
    ///
    /// # Errors
    /// Fails with the error that the client gets.
    pub fn parse(path_and_query: &str) -> Result<Self, InvalidRequest> {
        let rest = path_and_query
            .strip_prefix('/')
            .ok_or(InvalidRequest::NoSuchPath)?;
        let (path, query) = split_query(rest);
        if path.is_empty() {
            return Ok(Self::Home);
        }
        if path == "cdx/search/cdx" {
            return Ok(Self::Lookup {
                collection: None,
                dialect: LookupDialect::InternetArchive,
                query: query.unwrap_or_default().to_owned(),
            });
        }
        if let Some(page) = rest.strip_prefix("replay/") {
            return page_request(page);
        }
        let Some((name, _)) = path.split_once('/') else {
            let collection = collection(path)?;
            return Ok(match query {
                None | Some("") => Self::Collection { collection },
                Some(query) => Self::Lookup {
                    collection: Some(collection),
                    dialect: LookupDialect::Outback,
                    query: query.to_owned(),
                },
            });
        };
        let inner = rest.get(name.len() + 1..).unwrap_or_default();
        in_collection(collection(name)?, inner)
    }
}

/// Returns a request of the pages: what is behind `/replay/`.
fn page_request(rest: &str) -> Result<ReplayRequest, InvalidRequest> {
    let (name, rest) = rest.split_once('/').ok_or(InvalidRequest::NoSuchPath)?;
    let collection = collection(name)?;
    let (time, url) = match leading_time(rest)? {
        Some((LeadingTime::At(time, None), url)) => (Some(time), url),
        Some((LeadingTime::At(_, Some(modifier)), _)) => {
            return Err(InvalidRequest::Modifier(modifier.name().to_owned()));
        }
        _ => (None, rest),
    };
    Ok(ReplayRequest::Page {
        collection,
        time,
        target: ReplayTarget::parse(url)?,
    })
}

/// Returns a request within a collection: what is behind `/<coll>/`.
fn in_collection(collection: String, rest: &str) -> Result<ReplayRequest, InvalidRequest> {
    let (path, query) = split_query(rest);
    let query = query.unwrap_or_default();
    match path {
        "" => return Ok(ReplayRequest::Collection { collection }),
        "cdx" | "index" => {
            return Ok(ReplayRequest::Lookup {
                collection: Some(collection),
                dialect: LookupDialect::Pywb,
                query: query.to_owned(),
            });
        }
        "mismatches" => return Ok(ReplayRequest::Mismatches { collection }),
        "getFile" => {
            return Ok(ReplayRequest::File {
                collection,
                file: parameter(query, "arcFile")?.into_owned(),
            });
        }
        "getRecord" => {
            let offset = parameter(query, "arcOffset")?;
            return Ok(ReplayRequest::Record {
                collection,
                file: parameter(query, "arcFile")?.into_owned(),
                offset: number("arcOffset", &offset)?,
            });
        }
        "getMetadata" => {
            return Ok(ReplayRequest::Metadata {
                collection,
                job: parameter(query, "jobID")?.into_owned(),
            });
        }
        _ => {}
    }
    if let Some(rest) = rest.strip_prefix("timemap/") {
        return time_map(collection, rest);
    }
    Ok(match leading_time(rest)? {
        Some((LeadingTime::At(time, modifier), url)) => ReplayRequest::Memento {
            collection,
            time,
            modifier,
            target: ReplayTarget::parse(url)?,
        },
        Some((LeadingTime::Span(span), url)) => {
            let (target, matching) = ReplayTarget::parse_pattern(url)?;
            ReplayRequest::Calendar {
                collection,
                span,
                target,
                matching,
            }
        }
        Some((LeadingTime::Latest(modifier), url)) => ReplayRequest::TimeGate {
            collection,
            modifier: Some(modifier),
            target: ReplayTarget::parse(url)?,
        },
        None => ReplayRequest::TimeGate {
            collection,
            modifier: None,
            target: ReplayTarget::parse(rest)?,
        },
    })
}

fn time_map(collection: String, rest: &str) -> Result<ReplayRequest, InvalidRequest> {
    let (name, rest) = rest.split_once('/').unwrap_or((rest, ""));
    let format = TimeMapFormat::from_name(name)
        .ok_or_else(|| InvalidRequest::TimeMapFormat(name.to_owned()))?;
    let (page, url) = match rest.split_once('/') {
        Some((digits, url)) if is_digits(digits) => {
            let page = digits
                .parse()
                .map_err(|_error| InvalidRequest::Page(digits.to_owned()))?;
            (Some(page), url)
        }
        _ => (None, rest),
    };
    Ok(ReplayRequest::TimeMap {
        collection,
        format,
        page,
        target: ReplayTarget::parse(url)?,
    })
}

/// The first segment of a path, where it is a time and not the beginning of a URL.
enum LeadingTime {
    At(RequestedTime, Option<Modifier>),
    Span(RequestedSpan),
    /// A modifier alone: the latest capture.
    Latest(Modifier),
}

/// Reads a time, a span or a modifier that a slash ends; `None` if the URL begins at once.
///
/// A segment of digits is a time, so that an impossible one is refused; digits that letters follow are a host
/// (`1und1.de`) unless the letters end like a modifier.
fn leading_time(rest: &str) -> Result<Option<(LeadingTime, &str)>, InvalidRequest> {
    let Some((segment, url)) = rest.split_once('/') else {
        return if is_digits(rest) {
            Err(InvalidTarget::Empty.into())
        } else {
            Ok(None)
        };
    };
    let end = segment
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(segment.len());
    let (digits, behind) = segment.split_at(end);
    let time = || RequestedTime::parse(digits).map_err(|reason| bad_time(digits, reason));
    let found = match behind {
        "*" => {
            let span = RequestedSpan::parse(digits).map_err(|reason| bad_time(digits, reason))?;
            LeadingTime::Span(span)
        }
        "" if digits.is_empty() => return Ok(None),
        "" => LeadingTime::At(time()?, None),
        letters => match Modifier::from_name(letters) {
            Some(modifier) if digits.is_empty() => LeadingTime::Latest(modifier),
            Some(modifier) => LeadingTime::At(time()?, Some(modifier)),
            None if !digits.is_empty() && is_like_modifier(letters) => {
                return Err(InvalidRequest::Modifier(letters.to_owned()));
            }
            None => return Ok(None),
        },
    };
    Ok(Some((found, url)))
}

fn bad_time(digits: &str, reason: InvalidDate) -> InvalidRequest {
    InvalidRequest::Time {
        digits: digits.chars().take(40).collect(),
        reason,
    }
}

fn is_like_modifier(text: &str) -> bool {
    let letters = text.strip_suffix('_').unwrap_or_default();
    !letters.is_empty() && letters.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn split_query(text: &str) -> (&str, Option<&str>) {
    match text.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (text, None),
    }
}

/// Returns the name of a collection, if it can be one.
fn collection(name: &str) -> Result<String, InvalidRequest> {
    let is_sound = (1..=LONGEST_NAME).contains(&name.len())
        && !name.starts_with('.')
        && !RESERVED_NAMES.contains(&name)
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
    if is_sound {
        Ok(name.to_owned())
    } else {
        Err(InvalidRequest::Collection(name.chars().take(80).collect()))
    }
}

/// Returns the value of a parameter that has to be there once.
fn parameter<'a>(query: &'a str, name: &'static str) -> Result<Cow<'a, str>, InvalidRequest> {
    let mut values = form_urlencoded::parse(query.as_bytes())
        .filter(|(found, _)| found == name)
        .map(|(_, value)| value);
    let first = values.next().filter(|value| !value.is_empty());
    let first = first.ok_or(InvalidRequest::Parameter(name))?;
    if values.any(|value| value != first) {
        return Err(InvalidRequest::Parameter(name));
    }
    Ok(first)
}

fn number(name: &'static str, value: &str) -> Result<u64, InvalidRequest> {
    let number = is_digits(value).then(|| value.parse().ok()).flatten();
    number.ok_or_else(|| InvalidRequest::Number {
        name,
        value: value.chars().take(40).collect(),
    })
}

#[cfg(test)]
mod tests;
