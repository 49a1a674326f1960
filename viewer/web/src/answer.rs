//! Answers in words: errors, and the few pages that explain what is served.
//!
//! Owns their form: small HTML for browsers, plain text to all others, never a trace and never a cookie. Everything
//! that came from outside is escaped.

use axum::body::Body;
use axum::http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, RETRY_AFTER, VARY,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use viewer_replay::html::{self, escape_html, tame_text};

/// The wait before a client may ask again when something is down, in seconds.
const SOON: u32 = 5;

/// An answer in words.
#[derive(Clone, Debug)]
pub(crate) struct Notice {
    status: StatusCode,
    title: String,
    words: Vec<String>,
    retry_after: Option<u32>,
    fields: Vec<(&'static str, String)>,
}

impl Notice {
    /// Returns a notice with a title and the words below it.
    pub(crate) fn new(status: StatusCode, title: &str, words: impl Into<String>) -> Self {
        Self {
            status,
            title: title.to_owned(),
            words: vec![words.into()],
            retry_after: None,
            fields: Vec::new(),
        }
    }

    /// Makes the notice that the request makes no sense.
    pub(crate) fn bad_request(words: impl Into<String>) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "This request cannot be understood",
            words,
        )
    }

    /// Makes the notice that the archive does not have what was asked for.
    pub(crate) fn not_found(words: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "Not in the archive", words)
    }

    /// Makes the notice that the archive has what was asked for, and this visitor may not see it.
    pub(crate) fn blocked_notice() -> Self {
        Self::new(
            StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS,
            "Not available to you",
            "The archive has this, and its rules do not let it be shown here. If you think that this is wrong, ask the \
             people who run the archive.",
        )
    }

    /// Makes the notice that something which this needs does not answer.
    pub(crate) fn unavailable_notice(words: impl Into<String>) -> Self {
        let notice = Self::new(StatusCode::SERVICE_UNAVAILABLE, "Not available now", words);
        notice.again_after(SOON)
    }

    /// Makes the notice that the bytes of a record cannot be had intact.
    pub(crate) fn damaged_notice(words: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, "This record cannot be read", words)
    }

    /// Returns the status of the notice.
    pub(crate) const fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the paragraphs of the notice.
    pub(crate) fn words(self) -> Vec<String> {
        self.words
    }

    /// Adds a paragraph.
    #[must_use]
    pub(crate) fn and_words(mut self, words: impl Into<String>) -> Self {
        self.words.push(words.into());
        self
    }

    /// Names the number of seconds after which the same request may succeed.
    #[must_use]
    pub(crate) const fn again_after(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// Adds header fields.
    #[must_use]
    pub(crate) fn with_fields(
        mut self,
        fields: impl IntoIterator<Item = (&'static str, String)>,
    ) -> Self {
        self.fields.extend(fields);
        self
    }

    /// Returns the response, in the form that the client likes.
    pub(crate) fn to_response(&self, asked: &HeaderMap) -> Response<Body> {
        let accept = asked.get_all(ACCEPT).iter();
        let (content_type, text) = if html::is_wanted(accept.map(HeaderValue::as_bytes)) {
            ("text/html; charset=utf-8", self.html())
        } else {
            ("text/plain; charset=utf-8", self.text())
        };
        let mut response = Response::new(Body::from(text));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(VARY, HeaderValue::from_static("accept"));
        headers.insert(
            CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(
                "default-src 'none'; style-src 'unsafe-inline'; form-action 'none'",
            ),
        );
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        for (name, value) in &self.fields {
            put_header(headers, name, value);
        }
        response
    }

    fn text(&self) -> String {
        let mut text = format!("{}\n", self.title);
        for words in &self.words {
            text.push('\n');
            text.push_str(&tame_text(words));
            text.push('\n');
        }
        text
    }

    fn html(&self) -> String {
        let title = escape_html(&self.title);
        let mut html = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
             content=\"width=device-width\">\n<title>{title}</title>\n<style>body{{font:1rem/1.5 sans-serif;max-width:40rem;\
             margin:3rem auto;padding:0 1rem;color-scheme:light dark}}p{{overflow-wrap:anywhere}}</style>\n</head>\n<body>\n\
             <h1>{title}</h1>\n"
        );
        for words in &self.words {
            html.push_str("<p>");
            html.push_str(&escape_html(words));
            html.push_str("</p>\n");
        }
        html.push_str("</body>\n</html>\n");
        html
    }
}

/// Sets a field of a header. A value that cannot stand there is left out: it is made of what came from outside.
pub(crate) fn put_header(headers: &mut HeaderMap, name: &str, value: &str) {
    let name = HeaderName::from_bytes(name.as_bytes());
    if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value.as_bytes())) {
        if name == VARY {
            headers.append(name, value);
        } else {
            headers.insert(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(accept: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(accept))])
    }

    /// Fails if a browser gets plain text, or a program gets HTML.
    #[test]
    fn notice_has_the_form_that_the_client_accepts() {
        let notice = Notice::not_found("No captures of http://example.org/.");
        for (accept, expected) in [
            (
                "text/html,application/xhtml+xml;q=0.9",
                "text/html; charset=utf-8",
            ),
            (
                "application/json, TEXT/HTML;q=0.1",
                "text/html; charset=utf-8",
            ),
            ("*/*", "text/plain; charset=utf-8"),
            ("", "text/plain; charset=utf-8"),
        ] {
            let response = notice.to_response(&asked(accept));
            assert_eq!(response.status(), 404);
            assert_eq!(response.headers()[CONTENT_TYPE], expected, "{accept}");
        }
    }

    /// Fails if what a visitor sends can become markup or move the cursor of a terminal.
    #[test]
    fn words_from_outside_are_escaped() {
        let notice = Notice::bad_request("<script>alert('1')</script>\u{1b}[2J & \"x\"");
        let html = notice.html();
        assert!(
            !html.contains("<script>") && !html.contains('\u{1b}'),
            "{html}"
        );
        assert!(html.contains("&lt;script&gt;alert(&#39;1&#39;)"), "{html}");
        assert!(!notice.text().contains('\u{1b}'));
    }

    /// Fails if a value can begin a header field of its own.
    #[test]
    fn header_values_cannot_be_injected() {
        let mut headers = HeaderMap::new();
        put_header(&mut headers, "Location", "http://a/\r\nSet-Cookie: x=y");
        assert!(headers.is_empty());
        put_header(&mut headers, "X-Archive-Orig-a b", "x");
        assert!(headers.is_empty());
        put_header(&mut headers, "Location", "http://a/");
        assert_eq!(headers["location"], "http://a/");
    }
}
