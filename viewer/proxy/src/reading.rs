//! The reading of a request: everything that its head says, judged in one order, before anything is looked up.
//!
//! Owns that order: the target, its length, what cannot be replayed (web sockets, service workers), the control hosts,
//! questions before requests across origins, the URL and the date. It reads no body, and asks neither a clock nor the
//! archive, so that a fuzzer gives it what clients give the server.
//!
//! Not promised: an interface. It is public for that fuzzer.

use archive_formats::date::Stamp;
use axum::http::header::{HOST, PROXY_AUTHORIZATION, UPGRADE};
pub use axum::http::request::Parts as RequestHead;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use viewer_replay::memento::{InvalidDatetime, accept_datetime};
use viewer_replay::request::{InvalidTarget as InvalidUrl, ReplayTarget};
use viewer_replay::response::ReplyMethod;

pub use crate::control::command::{Change, Command, CommandParameters, InvalidCommand, Question};
use crate::requested::{self, TargetMeaning};
pub use crate::requested::{
    HostAndPort, InvalidProxyTarget, RequestChannel, Scheme, SiteUrl, Tunnel,
};

/// The longest user name by which a client is known, in bytes.
const LONGEST_USER: usize = 100;

/// The meaning of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProxyRequest {
    /// A tunnel to a host.
    OpenTunnel(HostAndPort),
    /// The proxy was taken for a web server.
    Itself,
    /// A page or a command of a control host.
    Control(SiteUrl),
    /// The question of a browser before a request across origins.
    Preflight,
    /// A page, an image or anything else of a site.
    Capture(CaptureQuestion),
}

/// A question for a capture, as far as the head of its request says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureQuestion {
    /// The URL as the client means it.
    pub site: SiteUrl,
    /// The URL as it is looked up.
    pub target: ReplayTarget,
    /// Whether the bytes of the capture are wanted.
    pub method: ReplyMethod,
    /// Whether the request is a GET or a HEAD. Method and body of any other request are in the key of its capture, and
    /// not yet in that of the target.
    pub is_read: bool,
    /// The time that the request names.
    pub date: Option<Stamp>,
}

/// The reason why a request is refused before anything is looked up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidProxyRequest {
    /// The target of the request has no meaning.
    #[error(transparent)]
    Target(#[from] InvalidProxyTarget),
    /// The URL of the request has more bytes than this.
    #[error("the URL has more than {0} bytes")]
    TooLong(usize),
    /// The request asks to change to a WebSocket, at this URL.
    #[error("WebSockets are not archived")]
    WebSocket(String),
    /// The request asks for the script of a service worker.
    #[error("service workers are not replayed")]
    ServiceWorker,
    /// The URL of the request cannot be looked up.
    #[error("cannot look up the URL: {0}")]
    Url(#[from] InvalidUrl),
    /// The date of the request cannot be read.
    #[error(transparent)]
    Date(#[from] InvalidDatetime),
}

impl InvalidProxyRequest {
    /// Returns the status of the answer.
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::Target(error) => error.status(),
            Self::TooLong(_) | Self::Url(InvalidUrl::TooLong) => StatusCode::URI_TOO_LONG,
            Self::WebSocket(_) => StatusCode::NOT_IMPLEMENTED,
            Self::ServiceWorker => StatusCode::FORBIDDEN,
            Self::Url(InvalidUrl::Empty | InvalidUrl::Control(_)) | Self::Date(_) => {
                StatusCode::BAD_REQUEST
            }
        }
    }
}

/// Builds a head from the bytes of a client. Returns `None` if HTTP has no such head.
///
/// The server has its heads from hyper; tests and fuzzers, which play clients, have them from here.
pub fn build_head<'a>(
    method: &[u8],
    target: &[u8],
    fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
) -> Option<RequestHead> {
    let mut request = Request::builder().method(method).uri(target);
    for (name, value) in fields {
        request = request.header(name, value);
    }
    let (head, ()) = request.body(()).ok()?.into_parts();
    Some(head)
}

/// Reads the head of a request that came over a channel.
///
/// # Errors
///
/// Fails with the error that the client gets.
pub fn read_request(
    channel: &RequestChannel,
    head: &RequestHead,
    longest_url: usize,
) -> Result<ProxyRequest, InvalidProxyRequest> {
    let headers = &head.headers;
    let hosts: Vec<&[u8]> = values(headers, &HOST).collect();
    let site = match requested::read_target(channel, &head.method, &head.uri, &hosts)? {
        TargetMeaning::OpenTunnel(to) => return Ok(ProxyRequest::OpenTunnel(to)),
        TargetMeaning::Itself => return Ok(ProxyRequest::Itself),
        TargetMeaning::Site(site) => site,
    };
    if site.url.len() > longest_url {
        return Err(InvalidProxyRequest::TooLong(longest_url));
    }
    if is_web_socket(headers) {
        return Err(InvalidProxyRequest::WebSocket(site.url));
    }
    if site.is_control() {
        return Ok(ProxyRequest::Control(site));
    }
    let (method, is_read) = match head.method {
        Method::GET => (ReplyMethod::Get, true),
        Method::HEAD => (ReplyMethod::Head, true),
        Method::OPTIONS if headers.contains_key("access-control-request-method") => {
            return Ok(ProxyRequest::Preflight);
        }
        _ => (ReplyMethod::Get, false),
    };
    if headers.contains_key("service-worker") {
        return Err(InvalidProxyRequest::ServiceWorker);
    }
    let target = ReplayTarget::parse(&site.url)?;
    let date = accept_datetime(values(headers, &HeaderName::from_static("accept-datetime")))?;
    Ok(ProxyRequest::Capture(CaptureQuestion {
        site,
        target,
        method,
        is_read,
        date,
    }))
}

/// Returns the user name that a client gives its proxy. It proves nothing, and no password is asked for.
pub fn user_of(headers: &HeaderMap) -> Option<Box<str>> {
    let value = headers.get(PROXY_AUTHORIZATION)?.to_str().ok()?;
    let (scheme, credentials) = value.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = BASE64_STANDARD.decode(credentials.trim()).ok()?;
    let text = String::from_utf8(decoded).ok()?;
    let user = text.split(':').next().unwrap_or_default();
    let is_plain =
        !user.is_empty() && user.len() <= LONGEST_USER && !user.contains(char::is_control);
    is_plain.then(|| user.into())
}

/// Returns the values of all fields of a name.
fn values<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a [u8]> {
    headers.get_all(name).into_iter().map(HeaderValue::as_bytes)
}

fn is_web_socket(headers: &HeaderMap) -> bool {
    let mut protocols =
        values(headers, &UPGRADE).flat_map(|value| value.split(|byte| *byte == b','));
    protocols.any(|protocol| protocol.trim_ascii().eq_ignore_ascii_case(b"websocket"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: usize = 100;

    fn with(name: &'static str, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(
            HeaderName::from_static(name),
            HeaderValue::from_str(value).unwrap(),
        )])
    }

    fn read(
        method: &str,
        target: &str,
        fields: &[(&str, &str)],
    ) -> Result<ProxyRequest, InvalidProxyRequest> {
        let fields = fields.iter();
        let fields = fields.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let head = build_head(method.as_bytes(), target.as_bytes(), fields).unwrap();
        read_request(&RequestChannel::Open, &head, LONGEST)
    }

    /// Fails if a capture is looked up by another URL or date than its request names.
    #[test]
    fn capture_question_is_what_head_says() {
        let date = ("Accept-Datetime", "Wed, 01 Jan 2020 00:00:00 GMT");
        for (method, fields, expected) in [
            (
                "GET",
                vec![date],
                (ReplyMethod::Get, true, "20200101000000"),
            ),
            ("HEAD", vec![], (ReplyMethod::Head, true, "")),
            ("POST", vec![], (ReplyMethod::Get, false, "")),
            ("OPTIONS", vec![], (ReplyMethod::Get, false, "")),
        ] {
            let asked = read(method, "http://A.example:80/x", &fields);
            let Ok(ProxyRequest::Capture(question)) = asked else {
                panic!("{method}: {asked:?}");
            };
            assert_eq!(question.site.url, "http://a.example/x");
            assert_eq!(question.target.url(), question.site.url);
            let date = question.date.map(|date| date.to_string());
            let date = date.unwrap_or_default();
            let found = (question.method, question.is_read, date.as_str());
            assert_eq!(found, expected, "{method}");
        }
    }

    /// Fails if a request is refused with another status than its first fault has, or is not refused.
    #[test]
    fn first_fault_decides_about_status() {
        let socket = ("Upgrade", "websocket");
        let worker = ("Service-Worker", "script");
        let date = ("Accept-Datetime", "yesterday");
        let long = format!("http://a.example/{}", "x".repeat(LONGEST));
        for (method, target, fields, status) in [
            ("GET", "gopher://a.example/", vec![socket], 400),
            ("GET", &long, vec![socket], 414),
            ("DELETE", "http://a.example/", vec![socket, worker], 501),
            ("DELETE", "http://a.example/", vec![worker, date], 403),
            ("GET", "http://a.example/", vec![date], 400),
            ("GET", "http://viewerproxy.invalid/", vec![socket], 501),
        ] {
            let error = read(method, target, &fields).unwrap_err();
            assert_eq!(error.status().as_u16(), status, "{method} {target}");
        }
        let asked = [("Access-Control-Request-Method", "PUT")];
        let preflight = read("OPTIONS", "http://a.example/", &asked);
        assert_eq!(preflight, Ok(ProxyRequest::Preflight));
        let control = read("DELETE", "http://viewerproxy.invalid/x", &[worker]);
        assert!(matches!(control, Ok(ProxyRequest::Control(_))));
    }

    /// Fails if credentials tell clients apart that share a name, or nonsense becomes a name.
    #[test]
    fn user_is_name_of_credentials() {
        for (plain, expected) in [
            ("anna:secret", Some("anna")),
            ("anna:other", Some("anna")),
            ("anna", Some("anna")),
            (":secret", None),
            ("a\nb:c", None),
        ] {
            let value = format!("Basic {}", BASE64_STANDARD.encode(plain));
            let found = user_of(&with("proxy-authorization", &value));
            assert_eq!(found.as_deref(), expected, "{plain:?}");
        }
        let long = format!("basic {}", BASE64_STANDARD.encode("x".repeat(101)));
        for value in ["Basic", "Basic !", "Bearer YTpi", &long] {
            assert_eq!(
                user_of(&with("proxy-authorization", value)),
                None,
                "{value}"
            );
        }
    }

    /// Fails if a WebSocket is answered as if it were a request, or an offer of HTTP/2 is refused.
    #[test]
    fn only_web_sockets_are_refused() {
        for (value, expected) in [
            ("WebSocket", true),
            ("h2c, websocket", true),
            ("h2c", false),
        ] {
            assert_eq!(is_web_socket(&with("upgrade", value)), expected, "{value}");
        }
    }
}
