//! The addresses of the page host: made for links, and taken apart when they come back.
//!
//! Archived URLs stand in a path as they are, with their query: `/all/*/http://example.org/?lang=da` is about the
//! archived URL with `?lang=da`. Where a page needs parameters of its own, the archived URL is escaped as a whole, so
//! that the question mark that is left is the page's: `/all/*/http%3A%2F%2Fexample.org%2F?lang=da`. The same is done
//! with a URL that would not come back as it was: browsers remove `..`, and `*` at an end has a meaning.

use std::borrow::Cow;

use archive_formats::date::Stamp;
use url::form_urlencoded;
use viewer_replay::request::{TargetMatch, header_safe};

use super::language::Language;
use super::shown_url::hex_digit;

/// The longest value of a parameter that is kept.
const LONGEST_VALUE: usize = 64 * 1024;

/// The thing that a page is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PagePath {
    /// The search for a URL.
    Home,
    /// The captures of a URL, or the URLs that begin with it.
    Calendar {
        /// The name of the collection.
        collection: String,
        /// The digits of the time that is shown; empty for all time.
        span: String,
        /// The URL whose captures are shown.
        url: String,
        /// The URLs that are meant.
        matching: TargetMatch,
    },
    /// A capture in its frame.
    Frame {
        /// The name of the collection.
        collection: String,
        /// The time; `None` for the latest capture.
        time: Option<Stamp>,
        /// The URL of the capture.
        url: String,
    },
}

/// An address of the page host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageAddress {
    path: PagePath,
    parameters: Vec<(&'static str, String)>,
}

impl PageAddress {
    /// Returns the address of a page without parameters.
    pub(crate) const fn new(path: PagePath) -> Self {
        Self {
            path,
            parameters: Vec::new(),
        }
    }

    /// Adds a parameter.
    #[must_use]
    pub(crate) fn with_parameter(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.parameters.push((name, value.into()));
        self
    }

    /// Returns the address as a link has it: visible ASCII. A language that was chosen goes with it.
    pub(crate) fn link_to(&self, language: Option<Language>) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        for (name, value) in &self.parameters {
            query.append_pair(name, value);
        }
        if let Some(language) = language {
            query.append_pair("lang", language.tag());
        }
        let query = query.finish();
        let is_escaped = !query.is_empty();
        let mut link = match &self.path {
            PagePath::Home => "/".to_owned(),
            PagePath::Calendar {
                collection,
                span,
                url,
                matching,
            } => {
                let (before, behind) = match matching {
                    TargetMatch::Exact => ("", ""),
                    TargetMatch::Prefix => ("", "*"),
                    TargetMatch::Domain => ("*.", ""),
                };
                // A prefix has the star behind it, which says that those of the URL are meant.
                let is_plain = !is_escaped && is_plain(url) && !url.ends_with('*');
                let url = url_in_path(url, is_plain);
                // A domain is written without a scheme where it can be.
                let url = match (matching, url.strip_prefix("http://")) {
                    (TargetMatch::Domain, Some(host)) => host,
                    _ => &url,
                };
                format!("/{collection}/{span}*/{before}{url}{behind}")
            }
            PagePath::Frame {
                collection,
                time,
                url,
            } => {
                let time = time.map_or(String::new(), |time| format!("{time}/"));
                let url = url_in_path(url, !is_escaped && is_plain(url));
                format!("/replay/{collection}/{time}{url}")
            }
        };
        if is_escaped {
            link.push('?');
            link.push_str(&query);
        }
        link
    }
}

fn url_in_path(url: &str, is_plain: bool) -> String {
    if is_plain {
        header_safe(url)
    } else {
        escape_whole(url)
    }
}

/// Returns whether a URL comes back from a browser as it was written into a path.
fn is_plain(url: &str) -> bool {
    let lower = url.to_ascii_lowercase();
    let has_dots = ["/.", "/%2e"].iter().any(|dots| lower.contains(dots));
    (lower.starts_with("http://") || lower.starts_with("https://"))
        && !has_dots
        && !url.contains(['\\', '#', '|', '^', '`', '{', '}'])
}

/// Returns a URL as one segment of a path, with its own escapes escaped, too.
fn escape_whole(url: &str) -> String {
    let mut escaped = String::with_capacity(url.len() * 2);
    for byte in url.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            escaped.push(char::from(byte));
        } else {
            escaped.extend(['%', hex_digit(byte >> 4), hex_digit(byte & 15)]);
        }
    }
    escaped
}

/// The parameters of a page. An unknown one is no error, and of several of one name the first counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PageParameters {
    values: Vec<(String, String)>,
}

impl PageParameters {
    /// Splits the target of a request: the path with the archived URL, and the parameters of the page.
    pub(crate) fn split_target(target: &str) -> (Cow<'_, str>, Self) {
        let none = || (Cow::Borrowed(target), Self::default());
        let Some((path, query)) = target.split_once('?') else {
            return none();
        };
        let segments: Vec<&str> = path.split('/').collect();
        let url = match segments.as_slice() {
            ["", ""] | ["", _, ""] => return (Cow::Borrowed(path), Self::read(query)),
            ["", "replay", _, url] => url,
            ["", "replay", _, time, url] if is_digits(time) => url,
            ["", _, span, url] if span.strip_suffix('*').is_some_and(is_digits) => {
                url.strip_prefix("*.").unwrap_or(url)
            }
            _ => return none(),
        };
        if is_escaped_whole(url) {
            (Cow::Borrowed(path), Self::read(query))
        } else {
            none()
        }
    }

    fn read(query: &str) -> Self {
        let pairs = form_urlencoded::parse(query.as_bytes());
        let values = pairs
            .filter(|(_, value)| value.len() <= LONGEST_VALUE)
            .map(|(name, value)| (name.into_owned(), value.into_owned()));
        Self {
            values: values.collect(),
        }
    }

    /// Returns the value of a parameter; an empty one is absent.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let mut values = self.values.iter();
        let found = values.find(|(known, _)| known == name);
        found
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    /// Returns whether a parameter is there, be it empty.
    pub(crate) fn has_parameter(&self, name: &str) -> bool {
        self.values.iter().any(|(known, _)| known == name)
    }
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns whether a segment begins with a scheme and an escaped colon, as [`ReplayTarget`](viewer_replay::request::ReplayTarget)
/// has it.
fn is_escaped_whole(segment: &str) -> bool {
    let Some((scheme, rest)) = segment.split_once('%') else {
        return false;
    };
    let is_colon = rest
        .get(..2)
        .is_some_and(|code| code.eq_ignore_ascii_case("3a"));
    is_colon
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-'))
}

#[cfg(test)]
mod tests {
    use viewer_replay::request::{ReplayRequest, ReplayTarget};

    use super::*;

    fn calendar(url: &str, matching: TargetMatch) -> PageAddress {
        PageAddress::new(PagePath::Calendar {
            collection: "all".to_owned(),
            span: "2020".to_owned(),
            url: url.to_owned(),
            matching,
        })
    }

    /// Returns the key and the match that the server reads from a link.
    fn read(link: &str) -> (String, Option<TargetMatch>, PageParameters) {
        let (path, parameters) = PageParameters::split_target(link);
        let request = ReplayRequest::parse(&path).unwrap();
        if let ReplayRequest::Page { target, .. } = request {
            return (target.key().to_string(), None, parameters);
        }
        let ReplayRequest::Calendar {
            target, matching, ..
        } = request
        else {
            panic!("{link}: {request:?}");
        };
        (target.key().to_string(), Some(matching), parameters)
    }

    /// Fails if a link leads to the page of another URL, or a parameter of the page becomes a part of the URL.
    #[test]
    fn links_come_back_as_they_were_made() {
        for url in [
            "http://example.org/",
            "https://example.org/a?b=c&lang=da",
            "http://example.org/?x=%26%2520%3F",
            "http://example.org/ends*",
            "http://example.org/100%",
            "http://example.org/a/../b/./c",
            "http://example.org/\"><script>alert(1)</script>",
            "http://example.org/\\x{y}|`^",
            "http://example.org/æøå?ø=å",
            "http://example.org/a;b,c=d+e",
            "ftp://example.org/file",
            "ws://example.org/socket?lang=en",
            "urn:isbn:0451450523",
            "dns:example.org",
        ] {
            let key = ReplayTarget::parse(url).unwrap().key().to_string();
            for matching in [TargetMatch::Exact, TargetMatch::Prefix] {
                let plain = calendar(url, matching);
                let more = plain
                    .clone()
                    .with_parameter("after", "k=1&2")
                    .with_parameter("page", "3");
                for (address, language, parameter) in [
                    (&plain, None, None),
                    (&plain, Some(Language::Danish), None),
                    (&more, Some(Language::English), Some("k=1&2")),
                ] {
                    let link = address.link_to(language);
                    assert!(link.bytes().all(|byte| byte.is_ascii_graphic()), "{link}");
                    let (found, kind, parameters) = read(&link);
                    assert_eq!((found, kind), (key.clone(), Some(matching)), "{link}");
                    assert_eq!(parameters.get("after"), parameter, "{link}");
                    assert_eq!(
                        parameters.get("lang"),
                        language.map(Language::tag),
                        "{link}"
                    );
                }
            }
            let frame = PageAddress::new(PagePath::Frame {
                collection: "all".to_owned(),
                time: Some("20200101000000".parse().unwrap()),
                url: url.to_owned(),
            });
            for language in [None, Some(Language::Danish)] {
                let link = frame.link_to(language);
                let (found, _, parameters) = read(&link);
                assert_eq!(found, key, "{link}");
                assert_eq!(
                    parameters.get("lang"),
                    language.map(Language::tag),
                    "{link}"
                );
            }
        }
        let domain = calendar("http://example.org/", TargetMatch::Domain);
        let link = domain.link_to(Some(Language::Danish));
        assert_eq!(read(&link).1, Some(TargetMatch::Domain), "{link}");
    }

    /// Fails if the query of an archived URL is taken for parameters of the page.
    #[test]
    fn query_of_plain_url_is_its_own() {
        for target in [
            "/all/*/http://example.org/?lang=da",
            "/all/*/example.org?lang=da",
            "/all/*/http://a.example/http%3A%2F%2Fb.example?lang=da",
            "/replay/all/2020/http://a.example/?lang=da",
            "/replay/all/a.example/http%3A%2F%2Fb?lang=da",
            "/all/http%3A%2F%2Fa.example?lang=da",
        ] {
            let (path, parameters) = PageParameters::split_target(target);
            assert_eq!(
                (path.as_ref(), parameters),
                (target, PageParameters::default())
            );
        }
        let (_, parameters) = PageParameters::split_target("/?url=a%26b&lang=da&url=other&empty=");
        assert_eq!(parameters.get("url"), Some("a&b"));
        assert_eq!(
            (parameters.get("empty"), parameters.has_parameter("empty")),
            (None, true)
        );
    }
}
