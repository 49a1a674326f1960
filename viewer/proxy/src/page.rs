//! Answers of the proxy in words: errors that stand where an archived page would, and the pages of the control hosts.
//!
//! Owns their form: HTML without scripts for browsers, plain text to all others. Everything that came from outside is
//! escaped where it is written. An answer under the address of an archived site has nothing in it that acts.

use axum::body::Body;
use axum::http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, RETRY_AFTER,
    VARY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use viewer_replay::html::{self, escape_html, tame_text};

const STYLE: &str = "body{font:1rem/1.5 sans-serif;max-width:44rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}\
                     p,code,li{overflow-wrap:anywhere}form{margin:.5rem 0}label{display:block;margin:.3rem 0}\
                     input,select,button{font:inherit;max-width:100%}";

/// A page of the proxy for people.
#[derive(Clone, Debug)]
pub(crate) struct ProxyPage {
    status: StatusCode,
    title: String,
    blocks: Vec<Block>,
    retry_after: Option<u32>,
    is_control: bool,
}

/// A part of a page.
#[derive(Clone, Debug)]
pub(crate) enum Block {
    Heading(&'static str),
    Words(String),
    /// A text that is copied, such as a URL.
    Quote(String),
    Link {
        to: &'static str,
        words: &'static str,
    },
    Form(Form),
}

/// A form that changes something.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    pub(crate) action: String,
    pub(crate) inputs: Vec<FormInput>,
    pub(crate) button: &'static str,
}

/// A field of a form.
#[derive(Clone, Debug)]
pub(crate) enum FormInput {
    Hidden {
        name: String,
        value: String,
    },
    Text {
        name: &'static str,
        label: &'static str,
        value: String,
    },
    Choice {
        name: &'static str,
        label: &'static str,
        options: Vec<String>,
        chosen: String,
    },
}

impl ProxyPage {
    /// Returns a page that stands where an archived one would.
    pub(crate) fn new(status: StatusCode, title: &str) -> Self {
        Self {
            status,
            title: title.to_owned(),
            blocks: Vec::new(),
            retry_after: None,
            is_control: false,
        }
    }

    /// Returns a page of a control host.
    pub(crate) fn control_page(status: StatusCode, title: &str) -> Self {
        Self {
            is_control: true,
            ..Self::new(status, title)
        }
    }

    #[must_use]
    pub(crate) fn with_words(self, words: impl Into<String>) -> Self {
        self.with_block(Block::Words(words.into()))
    }

    #[must_use]
    pub(crate) fn with_block(mut self, block: Block) -> Self {
        self.blocks.push(block);
        self
    }

    #[must_use]
    pub(crate) const fn again_after(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
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
        let mut response = plain_page(self.status, content_type, text);
        let headers = response.headers_mut();
        headers.insert(VARY, HeaderValue::from_static("accept, accept-datetime"));
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        let form_action = if self.is_control { "'self'" } else { "'none'" };
        let policy = format!(
            "default-src 'none'; style-src 'unsafe-inline'; form-action {form_action}; base-uri 'none'; frame-ancestors 'none'"
        );
        if let Ok(policy) = HeaderValue::from_str(&policy) {
            headers.insert(CONTENT_SECURITY_POLICY, policy);
        }
        response
    }

    fn text(&self) -> String {
        let mut text = format!("{}\n", tame_text(&self.title));
        for block in &self.blocks {
            match block {
                Block::Heading(words) => text.extend(["\n", words, "\n"]),
                Block::Words(words) | Block::Quote(words) => {
                    text.extend(["\n", &tame_text(words), "\n"]);
                }
                Block::Link { to, words } => text.extend(["\n", words, ": ", to, "\n"]),
                Block::Form(form) => {
                    text.extend(["\n", form.button, ": ", &tame_text(&form.action), "\n"]);
                }
            }
        }
        text
    }

    fn html(&self) -> String {
        let title = escape_html(&self.title);
        let mut html = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
             content=\"width=device-width\">\n<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
        );
        for block in &self.blocks {
            block.write(&mut html);
        }
        html.push_str("</body>\n</html>\n");
        html
    }
}

impl Block {
    fn write(&self, html: &mut String) {
        match self {
            Self::Heading(words) => html.extend(["<h2>", &escape_html(words), "</h2>\n"]),
            Self::Words(words) => html.extend(["<p>", &escape_html(words), "</p>\n"]),
            Self::Quote(words) => html.extend(["<p><code>", &escape_html(words), "</code></p>\n"]),
            Self::Link { to, words } => html.extend([
                "<p><a rel=\"noreferrer\" href=\"",
                &escape_html(to),
                "\">",
                &escape_html(words),
                "</a></p>\n",
            ]),
            Self::Form(form) => {
                let action = escape_html(&form.action);
                html.extend(["<form method=\"post\" action=\"", &action, "\">\n"]);
                for input in &form.inputs {
                    input.write(html);
                }
                html.extend([
                    "<button>",
                    &escape_html(form.button),
                    "</button>\n</form>\n",
                ]);
            }
        }
    }
}

impl FormInput {
    fn write(&self, html: &mut String) {
        match self {
            Self::Hidden { name, value } => html.extend([
                "<input type=\"hidden\" name=\"",
                &escape_html(name),
                "\" value=\"",
                &escape_html(value),
                "\">\n",
            ]),
            Self::Text { name, label, value } => html.extend([
                "<label>",
                &escape_html(label),
                " <input name=\"",
                name,
                "\" value=\"",
                &escape_html(value),
                "\"></label>\n",
            ]),
            Self::Choice {
                name,
                label,
                options,
                chosen,
            } => {
                html.extend([
                    "<label>",
                    &escape_html(label),
                    " <select name=\"",
                    name,
                    "\">\n",
                ]);
                for option in options {
                    let selected = if option == chosen { " selected" } else { "" };
                    html.extend([
                        "<option",
                        selected,
                        ">",
                        &escape_html(option),
                        "</option>\n",
                    ]);
                }
                html.push_str("</select></label>\n");
            }
        }
    }
}

/// Returns an answer that is not kept, not framed, and read as what it is.
pub(crate) fn plain_page(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Body>,
) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_TYPE, content_type),
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "same-origin"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "\"'><script>alert(1)</script>\u{1b}[2J";

    /// Fails if a URL, a label or the name of a collection can become markup anywhere on a page.
    #[test]
    fn words_from_outside_are_escaped() {
        let hostile = || HOSTILE.to_owned();
        let form = Form {
            action: hostile(),
            inputs: vec![
                FormInput::Hidden {
                    name: hostile(),
                    value: hostile(),
                },
                FormInput::Text {
                    name: "a",
                    label: "A",
                    value: hostile(),
                },
                FormInput::Choice {
                    name: "b",
                    label: "B",
                    options: vec![hostile()],
                    chosen: hostile(),
                },
            ],
            button: "Go",
        };
        let page = ProxyPage::control_page(StatusCode::OK, HOSTILE)
            .with_words(HOSTILE)
            .with_block(Block::Quote(hostile()))
            .with_block(Block::Form(form));
        let html = page.html();
        assert!(
            !html.contains("<script") && !html.contains('\u{1b}'),
            "{html}"
        );
        assert!(!html.contains("\"'>"), "{html}");
        assert!(html.contains("<option selected>"), "{html}");
        assert!(!page.text().contains('\u{1b}'));
    }

    /// Fails if a program gets HTML, or a page can be framed, kept or sent elsewhere by a form.
    #[test]
    fn pages_cannot_be_framed_or_kept() {
        let html =
            HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("text/html,*/*;q=0.8"))]);
        for (page, form) in [
            (
                ProxyPage::control_page(StatusCode::OK, "x"),
                "form-action 'self'",
            ),
            (
                ProxyPage::new(StatusCode::NOT_FOUND, "x"),
                "form-action 'none'",
            ),
        ] {
            let response = page.to_response(&html);
            let headers = response.headers();
            assert_eq!(headers[CONTENT_TYPE], "text/html; charset=utf-8");
            assert_eq!(headers[CACHE_CONTROL], "no-store");
            assert_eq!(headers[X_FRAME_OPTIONS], "DENY");
            let policy = headers[CONTENT_SECURITY_POLICY].to_str().unwrap();
            assert!(policy.contains(form), "{policy}");
            assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
            let response = page.to_response(&HeaderMap::new());
            assert_eq!(
                response.headers()[CONTENT_TYPE],
                "text/plain; charset=utf-8"
            );
        }
    }
}
