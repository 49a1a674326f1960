//! Pages instead of the one that was asked for: each says what is the matter, and what to do.

use archive_rpc::CallErrorKind;
use askama::Template;
use axum::body::Body;
use axum::http::header::{ALLOW, CACHE_CONTROL, RETRY_AFTER};
use axum::http::{HeaderValue, Response, StatusCode};
use index_client::IndexCallError;
use viewer_replay::request::{InvalidRequest, InvalidTarget, LONGEST_URL, TargetMatch};

use super::address::{PageAddress, PagePath};
use super::layout::Layout;
use super::shown_url::ShownUrl;
use super::{PageHost, PageRequest, page_answer};

/// A reason why there is another page than the one that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PageProblem {
    /// The host has no such page.
    NoSuchPage,
    /// The replay host serves what was asked for.
    OnReplayHost,
    /// The viewer has no collection of this name.
    NoSuchCollection(String),
    /// Nothing was captured that the visitor may know of.
    NoCaptures {
        /// The name of the collection.
        collection: String,
        /// The URL that was asked for.
        url: String,
        /// The URLs that were meant.
        matching: TargetMatch,
    },
    /// The archive has captures, and the visitor may not see them.
    Blocked,
    /// The digits are no time.
    Time(String),
    /// The address names no URL.
    NoUrl,
    /// A character of the URL, counted from 0, is a control character.
    Control(usize),
    /// The URL is too long.
    UrlTooLong,
    /// Something else in the address has another form than it should have.
    NotUnderstood,
    /// The list has fewer pages.
    NoSuchListPage,
    /// Too much had to be looked through before anything could be shown.
    TooMuch,
    /// The request is neither GET nor HEAD.
    Method,
    /// The most requests that may be answered at once are under way.
    Busy,
    /// The index did not answer in time.
    OutOfTime,
    /// The index does not answer.
    IndexDown,
    /// The index has failed.
    IndexFailed,
}

/// The words of a page about a problem.
struct ProblemText {
    status: StatusCode,
    title: String,
    text: String,
    advice: String,
    /// The number of seconds after which the same request may succeed.
    retry_after: Option<u32>,
}

/// A link that may help.
#[derive(Debug)]
struct ProblemLink {
    href: String,
    text: String,
}

#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemPage {
    layout: Layout,
    status: u16,
    title: String,
    text: String,
    advice: String,
    url: Option<ShownUrl>,
    links: Vec<ProblemLink>,
}

impl PageProblem {
    fn text(&self, asked: &PageRequest<'_>) -> ProblemText {
        let words = &asked.words;
        let say = |status, title: String, text: String, advice: String| ProblemText {
            status,
            title,
            text,
            advice,
            retry_after: None,
        };
        let not_found = |text: String, advice: String| {
            say(StatusCode::NOT_FOUND, words.text("not-found"), text, advice)
        };
        let bad = |text: String, advice: String| {
            say(
                StatusCode::BAD_REQUEST,
                words.text("bad-address"),
                text,
                advice,
            )
        };
        let down = |text: String, seconds: u32| ProblemText {
            retry_after: Some(seconds),
            ..say(
                StatusCode::SERVICE_UNAVAILABLE,
                words.text("not-now"),
                text,
                words.text("not-now-advice"),
            )
        };
        match self {
            Self::NoSuchPage => not_found(words.text("no-page"), words.text("no-page-advice")),
            Self::OnReplayHost => not_found(
                words.text("on-replay-host"),
                words.text("on-replay-host-advice"),
            ),
            Self::NoSuchCollection(name) => not_found(
                words.text_with("no-collection", &[("name", &ShownUrl::new(name).short)]),
                words.text("no-collection-advice"),
            ),
            Self::NoCaptures { matching, .. } => not_found(
                match matching {
                    TargetMatch::Exact => words.text("no-captures"),
                    TargetMatch::Prefix | TargetMatch::Domain => words.text("no-captures-below"),
                },
                words.text("no-captures-advice"),
            ),
            Self::Blocked => say(
                StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS,
                words.text("blocked"),
                words.text("blocked-text"),
                words.text("blocked-advice"),
            ),
            Self::Time(digits) => bad(
                words.text_with("bad-time", &[("digits", &ShownUrl::new(digits).short)]),
                words.text("bad-time-advice"),
            ),
            Self::NoUrl => bad(words.text("no-url"), words.text("no-url-advice")),
            Self::Control(at) => bad(
                words.count("url-control", *at as u64 + 1),
                words.text("url-control-advice"),
            ),
            Self::UrlTooLong => say(
                StatusCode::URI_TOO_LONG,
                words.text("url-too-long"),
                words.count("url-too-long-text", LONGEST_URL as u64),
                words.text("url-too-long-advice"),
            ),
            Self::NotUnderstood => bad(words.text("not-understood"), words.text("no-page-advice")),
            Self::NoSuchListPage => not_found(
                words.text("no-list-page"),
                words.text("no-list-page-advice"),
            ),
            Self::TooMuch => bad(words.text("too-much"), words.text("too-much-advice")),
            Self::Method => say(
                StatusCode::METHOD_NOT_ALLOWED,
                words.text("bad-method"),
                words.text("bad-method-text"),
                words.text("no-page-advice"),
            ),
            Self::Busy => down(words.text("busy"), 1),
            Self::OutOfTime => down(words.text("out-of-time"), 5),
            Self::IndexDown => down(words.text("index-down"), 5),
            Self::IndexFailed => down(words.text("index-failed"), 60),
        }
    }
}

impl PageHost {
    /// Returns the page that says what is the matter.
    pub(super) fn problem_page(
        &self,
        asked: &PageRequest<'_>,
        problem: &PageProblem,
    ) -> Response<Body> {
        let words = &asked.words;
        let ProblemText {
            status,
            title,
            text,
            advice,
            retry_after,
        } = problem.text(asked);
        let mut here = PageAddress::new(PagePath::Home);
        let mut layout_url = ("", None);
        let mut url = None;
        let mut links = Vec::new();
        if let PageProblem::NoCaptures {
            collection,
            url: own,
            matching,
        } = problem
        {
            url = Some(ShownUrl::new(own));
            layout_url = (own, Some(collection.as_str()));
            let place = |span: &str, matching| {
                PageAddress::new(PagePath::Calendar {
                    collection: collection.clone(),
                    span: span.to_owned(),
                    url: own.clone(),
                    matching,
                })
            };
            here = place("", *matching);
            if *matching == TargetMatch::Exact {
                links.push(ProblemLink {
                    href: place("", TargetMatch::Prefix).link_to(asked.chosen),
                    text: words.text("see-below"),
                });
            }
        }
        if *problem == PageProblem::OnReplayHost {
            links.push(ProblemLink {
                href: format!("{}{}", self.parts.replay, asked.target),
                text: words.text("to-replay-host"),
            });
        }
        if retry_after.is_some() {
            links.push(ProblemLink {
                href: asked.target.to_owned(),
                text: words.text("try-again"),
            });
        }
        let layout = self.layout(words, asked.chosen, &here);
        let page = ProblemPage {
            layout: layout.with_search(layout_url.0, layout_url.1, "exact"),
            status: status.as_u16(),
            title,
            text,
            advice,
            url,
            links,
        };
        let mut response = page_answer(status, words, &page);
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(seconds) = retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if *problem == PageProblem::Method {
            headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        }
        response
    }
}

/// Returns the problem of a URL of which nothing may be shown.
pub(super) fn nothing_visible(
    has_blocked: bool,
    collection: &str,
    url: &str,
    matching: TargetMatch,
) -> PageProblem {
    if has_blocked {
        return PageProblem::Blocked;
    }
    PageProblem::NoCaptures {
        collection: collection.to_owned(),
        url: url.to_owned(),
        matching,
    }
}

impl From<InvalidRequest> for PageProblem {
    fn from(error: InvalidRequest) -> Self {
        match error {
            InvalidRequest::NoSuchPath => Self::NoSuchPage,
            InvalidRequest::Collection(name) => Self::NoSuchCollection(name),
            InvalidRequest::Time { digits, .. } => Self::Time(digits),
            InvalidRequest::Target(error) => error.into(),
            _ => Self::NotUnderstood,
        }
    }
}

impl From<InvalidTarget> for PageProblem {
    fn from(error: InvalidTarget) -> Self {
        match error {
            InvalidTarget::Empty => Self::NoUrl,
            InvalidTarget::TooLong => Self::UrlTooLong,
            InvalidTarget::Control(at) => Self::Control(at),
        }
    }
}

impl From<IndexCallError> for PageProblem {
    fn from(error: IndexCallError) -> Self {
        tracing::warn!(%error, "the index does not answer the pages");
        match error.kind {
            CallErrorKind::Invalid
            | CallErrorKind::Internal
            | CallErrorKind::Damaged
            | CallErrorKind::Storage => Self::IndexFailed,
            _ => Self::IndexDown,
        }
    }
}
