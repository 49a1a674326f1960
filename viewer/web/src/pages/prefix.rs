//! The URLs that begin with a text, or that are in a domain: how many captures each has, the first and the last one.
//!
//! Owns the pages of that list. A page ends after a number of URLs, or where it has looked through as much as it may;
//! then it leads on. Its cursor is a key that it has shown: keys that a visitor may not know of never leave.

use archive_formats::cdx::Capture;
use archive_formats::cdx::query::{CaptureQuery, KeyMatch, KeyRange, MatchKind, TimeSpan};
use archive_formats::date::Stamp;
use askama::Template;
use axum::body::Body;
use axum::http::{Response, StatusCode};
use viewer_replay::request::{ReplayTarget, RequestedSpan, TargetMatch};

use super::layout::Layout;
use super::problem::{PageProblem, nothing_visible};
use super::shown_url::ShownUrl;
use super::texts::machine_time;
use super::{PageAddress, PageHost, PageVisit, page_answer};

/// The number of URLs on one page.
const LISTED: usize = 100;

/// The most captures that are looked through for one page.
const MOST: u64 = 500_000;

/// The captures of one URL.
#[derive(Clone, Debug)]
struct UrlCaptures {
    key: String,
    url: String,
    count: u64,
    first: Stamp,
    last: Stamp,
    /// Whether there may be more than `count`.
    is_cut: bool,
}

/// A line of the list.
#[derive(Debug)]
struct ListedUrl {
    href: String,
    url: ShownUrl,
    count: String,
    first: String,
    first_machine: String,
    last: String,
    last_machine: String,
    is_one: bool,
}

#[derive(Template)]
#[template(path = "prefix.html")]
struct PrefixPage {
    layout: Layout,
    collection: String,
    url: ShownUrl,
    title: String,
    count: String,
    /// The captures of the URL itself, where it is a whole URL.
    exact: String,
    rows: Vec<ListedUrl>,
    /// The link to the first page, if this is another one.
    first_page: Option<String>,
    next: Option<String>,
}

/// URLs of one page, and whether there are more.
struct UrlPage {
    urls: Vec<UrlCaptures>,
    has_more: bool,
}

impl PageHost {
    /// Returns a page of the URLs that begin with a text or are in a domain.
    pub(super) async fn prefix_page(
        &self,
        visit: &PageVisit,
        span: &RequestedSpan,
        target: &ReplayTarget,
        matching: TargetMatch,
    ) -> Result<Response<Body>, PageProblem> {
        let kind = match matching {
            TargetMatch::Domain => MatchKind::Domain,
            TargetMatch::Exact | TargetMatch::Prefix => MatchKind::Prefix,
        };
        let keys = KeyMatch::for_url(kind, target.url()).map_err(|_no_host| PageProblem::NoUrl)?;
        let KeyMatch::Within(range) = keys else {
            return Err(PageProblem::NotUnderstood);
        };
        let after = visit.parameters.get("after");
        let rest = match after {
            Some(after) => behind(&range, after)?,
            None => range,
        };
        let page = self.urls(visit, span, rest, target, matching).await?;
        let address = |after: Option<&str>| {
            let address = visit.calendar(span.digits(), target.url(), matching);
            match after {
                Some(after) => address.with_parameter("after", after),
                None => address,
            }
        };
        let last_key = page.urls.last().map(|url| url.key.as_str());
        let next = page.has_more.then(|| visit.link(&address(last_key)));
        let layout = self.layout(&visit.words, visit.chosen, &address(after));
        let view = PrefixView {
            layout,
            span,
            target,
            matching,
            first_page: after.map(|_| visit.link(&address(None))),
            next,
        };
        let shown = view.page(visit, &page.urls);
        Ok(page_answer(StatusCode::OK, &visit.words, &shown))
    }

    async fn urls(
        &self,
        visit: &PageVisit,
        span: &RequestedSpan,
        range: KeyRange,
        target: &ReplayTarget,
        matching: TargetMatch,
    ) -> Result<UrlPage, PageProblem> {
        let mut query = CaptureQuery::new(KeyMatch::Within(range));
        if let Some((from, to)) = span.bounds() {
            query.span = TimeSpan {
                from: Some(from),
                to: Some(to),
            };
        }
        let mut captures = self.find_captures(visit, query).await?;
        let mut urls: Vec<UrlCaptures> = Vec::new();
        let mut has_more = false;
        while let Some(capture) = captures.next().await? {
            if captures.walked > MOST {
                has_more = true;
                break;
            }
            let count = urls.len();
            match urls.last_mut() {
                Some(url) if url.key == capture.key => url.add(capture),
                Some(_) if count == LISTED => {
                    has_more = true;
                    break;
                }
                _ => urls.push(UrlCaptures::new(capture)),
            }
        }
        let is_cut = captures.walked > MOST;
        let has_blocked = captures.has_blocked;
        drop(captures);
        if urls.is_empty() {
            if is_cut {
                return Err(PageProblem::TooMuch);
            }
            let name = visit.collection.name();
            return Err(nothing_visible(has_blocked, name, target.url(), matching));
        }
        if is_cut && let Some(last) = urls.last_mut() {
            last.is_cut = true;
            if span.bounds().is_none()
                && let Some(stamp) = self.last_of(visit, &last.key).await?
            {
                last.last = stamp;
            }
        }
        Ok(UrlPage { urls, has_more })
    }
}

/// Returns the keys of a range that come behind one of them.
fn behind(range: &KeyRange, after: &str) -> Result<KeyRange, PageProblem> {
    if !range.contains(after) {
        return Err(PageProblem::NoSuchListPage);
    }
    Ok(KeyRange {
        // Keys have no blanks, so that nothing comes between a key and the same one with a blank.
        start: format!("{after} "),
        end: range.end.clone(),
    })
}

impl UrlCaptures {
    fn new(capture: Capture) -> Self {
        Self {
            url: capture.original.unwrap_or_else(|| capture.key.clone()),
            key: capture.key,
            count: 1,
            first: capture.timestamp,
            last: capture.timestamp,
            is_cut: false,
        }
    }

    /// Counts a further capture of the URL, which is spelt as in the last one.
    fn add(&mut self, capture: Capture) {
        self.count += 1;
        self.last = capture.timestamp;
        if let Some(url) = capture.original {
            self.url = url;
        }
    }
}

/// The input from which a page of the list is made.
struct PrefixView<'a> {
    layout: Layout,
    span: &'a RequestedSpan,
    target: &'a ReplayTarget,
    matching: TargetMatch,
    first_page: Option<String>,
    next: Option<String>,
}

impl PrefixView<'_> {
    fn page(self, visit: &PageVisit, urls: &[UrlCaptures]) -> PrefixPage {
        let words = &visit.words;
        let url = self.target.url();
        let calendar = |url: &str| -> PageAddress {
            visit.calendar(self.span.digits(), url, TargetMatch::Exact)
        };
        let rows = urls.iter().map(|own| ListedUrl {
            href: visit.link(&calendar(&own.url)),
            url: ShownUrl::new(&own.url),
            count: if own.is_cut {
                words.count("captures-at-least", own.count)
            } else {
                words.count("captures", own.count)
            },
            first: words.day_of(own.first),
            first_machine: machine_time(own.first),
            last: words.day_of(own.last),
            last_machine: machine_time(own.last),
            is_one: own.first == own.last,
        });
        let count = urls.len() as u64;
        let (title, matching) = match self.matching {
            TargetMatch::Domain => (words.text("urls-of-domain"), "domain"),
            TargetMatch::Exact | TargetMatch::Prefix => (words.text("urls-below"), "prefix"),
        };
        PrefixPage {
            collection: visit.collection.name().to_owned(),
            url: ShownUrl::new(url),
            title,
            count: match (&self.first_page, &self.next) {
                (None, None) => words.count("urls-all", count),
                (None, Some(_)) => words.count("urls-first", count),
                (Some(_), Some(_)) => words.count("urls-next", count),
                (Some(_), None) => words.count("urls-rest", count),
            },
            exact: visit.link(&calendar(url)),
            rows: rows.collect(),
            layout: self
                .layout
                .with_search(url, Some(visit.collection.name()), matching),
            first_page: self.first_page,
            next: self.next,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if the next page repeats a URL, leaves one out, or leaves the range.
    #[test]
    fn next_page_begins_behind_the_last_key() {
        let KeyMatch::Within(range) =
            KeyMatch::for_url(MatchKind::Prefix, "http://a.dk/b").unwrap()
        else {
            panic!("a prefix is a range");
        };
        let rest = behind(&range, "dk,a)/b").unwrap();
        for (key, expected) in [
            ("dk,a)/b", false),
            ("dk,a)/b!", true),
            ("dk,a)/b/", true),
            ("dk,a)/bc", true),
            ("dk,a)/c", false),
        ] {
            assert_eq!(rest.contains(key), expected, "{key}");
        }
        for outside in ["dk,a)/a", "dk,a)/c", "", "x"] {
            assert_eq!(
                behind(&range, outside).err(),
                Some(PageProblem::NoSuchListPage)
            );
        }
    }
}
