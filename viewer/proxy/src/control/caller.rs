//! The callers of commands: programs, the proxy's own pages, people who typed an address, and pages that may not call.
//!
//! Owns one decision, from the header of a request alone. An archived page runs in the same browser as the pages of the
//! proxy, and can have it send any GET, and forms. It cannot take away `Origin` from a form, and it cannot pretend to
//! be another origin. It can leave out `Referer`; so a browser's GET that says nothing about where it came from changes
//! nothing.

use axum::http::header::{ACCEPT_LANGUAGE, COOKIE, ORIGIN, REFERER, USER_AGENT};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use url::Url;

/// The origin of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// A form or a link of the proxy's own pages.
    OwnPage,
    /// A program such as curl, which runs no pages.
    Program,
    /// A browser that says nothing about the page, as with an address that a person has typed.
    UnknownPage,
    /// A page of another origin, or something that is no page: a frame, an image, a script.
    Foreign,
}

const SEC_FETCH: [&str; 4] = [
    "sec-fetch-site",
    "sec-fetch-mode",
    "sec-fetch-dest",
    "sec-fetch-user",
];

/// Names the caller of a request to a control host with the origin `own`.
pub(crate) fn identify_caller(own: &str, headers: &HeaderMap) -> Caller {
    let mut is_own = false;
    for origin in headers.get_all(ORIGIN) {
        if origin.as_bytes() != own.as_bytes() {
            return Caller::Foreign;
        }
        is_own = true;
    }
    for referer in headers.get_all(REFERER) {
        if origin_of(referer).as_deref() != Some(own) {
            return Caller::Foreign;
        }
        is_own = true;
    }
    let says = |name: &'static str, allowed: &[&str]| {
        let values = headers.get_all(HeaderName::from_static(name)).iter();
        values.into_iter().all(|value| {
            let allowed = allowed.iter();
            allowed
                .map(|word| word.as_bytes())
                .any(|word| word == value.as_bytes())
        })
    };
    let is_navigation = says("sec-fetch-site", &["none", "same-origin"])
        && says("sec-fetch-mode", &["navigate"])
        && says("sec-fetch-dest", &["document"]);
    // A page can have an address loaded before a person means to see it.
    let is_ahead = ["sec-purpose", "purpose", "x-moz"]
        .iter()
        .any(|name| headers.contains_key(*name));
    if !is_navigation || is_ahead {
        return Caller::Foreign;
    }
    if is_own {
        return Caller::OwnPage;
    }
    if is_browser(headers) {
        Caller::UnknownPage
    } else {
        Caller::Program
    }
}

/// Returns whether a browser has sent it. Browsers call themselves Mozilla, and pages cannot change that for other
/// origins.
fn is_browser(headers: &HeaderMap) -> bool {
    let mut agents = headers.get_all(USER_AGENT).iter();
    let is_mozilla = agents.any(|agent| {
        let start = agent.as_bytes().get(..7).unwrap_or_default();
        start.eq_ignore_ascii_case(b"mozilla")
    });
    let has = |name: &HeaderName| headers.contains_key(name);
    is_mozilla
        || has(&COOKIE)
        || has(&ACCEPT_LANGUAGE)
        || SEC_FETCH.iter().any(|name| headers.contains_key(*name))
        || headers.contains_key("upgrade-insecure-requests")
}

fn origin_of(value: &HeaderValue) -> Option<String> {
    let url = Url::parse(value.to_str().ok()?).ok()?;
    Some(url.origin().ascii_serialization())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "http://viewerproxy.invalid";

    fn named(fields: &[(&'static str, &'static str)]) -> Caller {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, HeaderValue::from_static(value));
        }
        identify_caller(OWN, &headers)
    }

    /// Fails if an archived page can pass for the proxy's own, by any request that a browser sends for it.
    #[test]
    fn archived_pages_are_foreign() {
        let mozilla = ("user-agent", "Mozilla/5.0 (X11)");
        for fields in [
            [mozilla, ("origin", "http://hostile.example")],
            [mozilla, ("origin", "null")],
            [mozilla, ("origin", "https://viewerproxy.invalid")],
            [mozilla, ("origin", "http://x.viewerproxy.invalid")],
            [mozilla, ("referer", "http://hostile.example/p")],
            [
                mozilla,
                ("referer", "http://viewerproxy.invalid@hostile.example/"),
            ],
            [mozilla, ("referer", "nonsense")],
            [mozilla, ("sec-fetch-site", "cross-site")],
            [mozilla, ("sec-fetch-site", "same-site")],
            [mozilla, ("sec-fetch-dest", "iframe")],
            [mozilla, ("sec-fetch-dest", "image")],
            [mozilla, ("sec-fetch-mode", "no-cors")],
            [mozilla, ("sec-purpose", "prefetch;prerender")],
            [
                ("referer", "http://viewerproxy.invalid/"),
                ("origin", "null"),
            ],
        ] {
            assert_eq!(named(&fields), Caller::Foreign, "{fields:?}");
        }
    }

    /// Fails if the own forms do nothing, or programs of old are shut out.
    #[test]
    fn own_forms_and_programs_are_known() {
        let mozilla = ("user-agent", "Mozilla/5.0 (X11)");
        for (fields, expected) in [
            (vec![mozilla, ("origin", OWN)], Caller::OwnPage),
            (
                vec![mozilla, ("referer", "http://viewerproxy.invalid/x")],
                Caller::OwnPage,
            ),
            (vec![("user-agent", "curl/8.0")], Caller::Program),
            (vec![], Caller::Program),
        ] {
            assert_eq!(named(&fields), expected, "{fields:?}");
        }
    }

    /// Fails if an image that hides its `Referer` passes for a program.
    #[test]
    fn browser_without_origin_proves_nothing() {
        for fields in [
            vec![("user-agent", "Mozilla/5.0 (X11)")],
            vec![("accept-language", "da")],
            vec![("sec-fetch-site", "none")],
            vec![("cookie", "a=b"), ("user-agent", "x")],
        ] {
            assert_eq!(named(&fields), Caller::UnknownPage, "{fields:?}");
        }
    }
}
