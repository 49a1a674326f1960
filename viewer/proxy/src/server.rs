//! One request in, one answer out.
//!
//! Owns the order in which a request is judged: its target, the control hosts, what cannot be replayed (web sockets, service
//! workers, other methods), its date, and then the archive. Whatever a request names, nothing is ever connected to.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use archive_daemon::{Clock, Counter, Gauge};
use axum::body::Body;
use axum::http::header::{HOST, PROXY_AUTHORIZATION, UPGRADE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use viewer_replay::memento::accept_datetime;
use viewer_replay::request::{InvalidTarget as InvalidUrl, Target};
use viewer_replay::response::Method as ReplyMethod;

use crate::archive::{CaptureAnswer, CaptureRequest, ProxiedArchive};
use crate::authority::ProxyAuthority;
use crate::clients::{ClientKey, Clients, View};
use crate::page::{Block, Page};
use crate::requested::{Channel, HostAndPort, Meaning, SiteUrl, read};

/// The longest user name that tells a client apart, in bytes.
const LONGEST_USER: usize = 100;

/// The address of the page that controls the proxy.
const CONTROL_PAGE: &str = "http://viewerproxy.invalid/";

/// Everything that answers need.
pub(crate) struct ProxyServer<A> {
    parts: ServerParts<A>,
}

/// The parts that a server is put together from.
pub(crate) struct ServerParts<A> {
    pub(crate) archive: Arc<A>,
    pub(crate) authority: Arc<ProxyAuthority>,
    pub(crate) clients: Arc<Clients>,
    /// The collection of clients that have chosen no other.
    pub(crate) collection: Option<String>,
    pub(crate) longest_url: usize,
    pub(crate) clock: Clock,
    pub(crate) connections: Gauge,
    pub(crate) misses: Counter,
}

/// An answer, and the tunnel that begins behind it.
pub(crate) struct ProxyAnswer {
    pub(crate) response: Response<Body>,
    pub(crate) tunnel: Option<(HostAndPort, ClientKey)>,
}

impl<A: ProxiedArchive> ProxyServer<A> {
    pub(crate) const fn new(parts: ServerParts<A>) -> Self {
        Self { parts }
    }

    /// How many connections are open.
    pub(crate) const fn connections(&self) -> &Gauge {
        &self.parts.connections
    }

    pub(crate) fn archive(&self) -> &A {
        &self.parts.archive
    }

    pub(crate) fn authority(&self) -> &ProxyAuthority {
        &self.parts.authority
    }

    pub(crate) fn clients(&self) -> &Clients {
        &self.parts.clients
    }

    pub(crate) const fn clock(&self) -> &Clock {
        &self.parts.clock
    }

    pub(crate) fn now(&self) -> Instant {
        self.parts.clock.instant()
    }

    /// The collection of a view.
    pub(crate) fn collection(&self, view: &View) -> Option<String> {
        let chosen = view.collection.clone();
        chosen
            .or_else(|| self.parts.collection.clone())
            .or_else(|| self.archive().unnamed())
    }

    /// Answers a request that came over a channel.
    pub(crate) async fn answer(
        &self,
        peer: SocketAddr,
        channel: &Channel,
        request: Request<Body>,
    ) -> ProxyAnswer {
        let (head, body) = request.into_parts();
        let key = ClientKey {
            address: peer.ip().to_canonical(),
            user: match channel {
                Channel::Open => user(&head.headers),
                Channel::Tunnel(tunnel) => tunnel.user.clone(),
            },
        };
        let hosts: Vec<&[u8]> = values(&head.headers, &HOST).collect();
        let response = match read(channel, &head.method, &head.uri, &hosts) {
            Err(error) => Page::new(error.status(), "This request cannot be understood")
                .words(format!("Not possible: {error}."))
                .response(&head.headers),
            Ok(Meaning::OpenTunnel(to)) => {
                return ProxyAnswer {
                    response: Response::new(Body::empty()),
                    tunnel: Some((to, key)),
                };
            }
            Ok(Meaning::Itself) => itself().response(&head.headers),
            Ok(Meaning::Site(site)) if site.url.len() > self.parts.longest_url => {
                let words = format!("The URL has more than {} bytes.", self.parts.longest_url);
                Page::new(StatusCode::URI_TOO_LONG, "Too long")
                    .words(words)
                    .response(&head.headers)
            }
            Ok(Meaning::Site(site)) if is_web_socket(&head.headers) => {
                Page::new(StatusCode::NOT_IMPLEMENTED, "WebSockets are not archived")
                    .words("The archive has answers to requests, and no conversations.")
                    .with(Block::Quote(site.url))
                    .response(&head.headers)
            }
            Ok(Meaning::Site(site)) if site.is_control() => {
                self.control(&key, &site, &head, body).await
            }
            Ok(Meaning::Site(site)) => match self.replay(&key, &site, &head).await {
                Ok(response) => response,
                Err(page) => page.response(&head.headers),
            },
        };
        ProxyAnswer {
            response,
            tunnel: None,
        }
    }

    async fn replay(
        &self,
        key: &ClientKey,
        site: &SiteUrl,
        head: &Parts,
    ) -> Result<Response<Body>, Box<Page>> {
        let headers = &head.headers;
        let method = match head.method {
            Method::GET => ReplyMethod::Get,
            Method::HEAD => ReplyMethod::Head,
            Method::OPTIONS if headers.contains_key("access-control-request-method") => {
                return Ok(preflight(headers));
            }
            _ => return Err(Box::new(not_allowed(&site.url))),
        };
        if headers.contains_key("service-worker") {
            return Err(Box::new(no_service_worker()));
        }
        let target = Target::parse(&site.url).map_err(|error| Box::new(invalid_url(error)))?;
        let wanted = accept_datetime(values(headers, &HeaderName::from_static("accept-datetime")))
            .map_err(|error| {
                let page = Page::new(StatusCode::BAD_REQUEST, "This date cannot be understood");
                Box::new(page.words(error.to_string()))
            })?;
        let view = self.clients().view(key, self.now());
        let collection = self.collection(&view);
        let request = CaptureRequest {
            client: key.address,
            collection: collection.as_deref(),
            jobs: view.jobs.as_ref().map(|choice| &choice.jobs),
            time: wanted.or(view.date),
            target: &target,
            method,
            headers,
        };
        match self.archive().capture(request).await {
            CaptureAnswer::Answered(response) => Ok(response),
            CaptureAnswer::Missing(words) => {
                self.parts.misses.inc();
                let is_listed = self.clients().record(key, self.now(), &site.url);
                Err(Box::new(missing(&site.url, words, is_listed)))
            }
        }
    }
}

/// The values of all fields of a name.
fn values<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a [u8]> {
    headers.get_all(name).into_iter().map(HeaderValue::as_bytes)
}

/// The user name that a client gives its proxy. It proves nothing, and no password is asked for.
fn user(headers: &HeaderMap) -> Option<Box<str>> {
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

fn is_web_socket(headers: &HeaderMap) -> bool {
    let mut protocols =
        values(headers, &UPGRADE).flat_map(|value| value.split(|byte| *byte == b','));
    protocols.any(|protocol| protocol.trim_ascii().eq_ignore_ascii_case(b"websocket"))
}

/// Says yes to a question of the browser before a request across origins. Whether a page may read the answer to the request
/// itself is what the archived header says.
fn preflight(asked: &HeaderMap) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    for (question, answer) in [
        ("origin", "access-control-allow-origin"),
        (
            "access-control-request-method",
            "access-control-allow-methods",
        ),
        (
            "access-control-request-headers",
            "access-control-allow-headers",
        ),
    ] {
        if let Some(value) = asked.get(question) {
            headers.insert(answer, value.clone());
        }
    }
    headers.insert(
        "access-control-allow-credentials",
        HeaderValue::from_static("true"),
    );
    headers.insert("access-control-max-age", HeaderValue::from_static("0"));
    response
}

fn missing(url: &str, words: Vec<String>, is_listed: bool) -> Page {
    let mut page = Page::new(StatusCode::NOT_FOUND, "Not in the archive")
        .words(
            "This proxy shows the archive and never the web, and there is nothing at this address:",
        )
        .with(Block::Quote(url.to_owned()));
    for words in words {
        page = page.words(words);
    }
    if is_listed {
        page = page.words("It is in your list of missing URLs.");
    }
    page.with(Block::Link {
        to: CONTROL_PAGE,
        words: "The collection, the date and the list of missing URLs",
    })
}

/// The answer to a client that takes the proxy for a web server.
fn itself() -> Page {
    Page::new(StatusCode::BAD_REQUEST, "This is a proxy")
        .words(
            "Set it as the HTTP proxy of a browser or tool, for http and https; then every address shows the archive. The page \
             at this address says more then:",
        )
        .with(Block::Quote(CONTROL_PAGE.to_owned()))
}

fn not_allowed(url: &str) -> Page {
    Page::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "Not possible in the archive",
    )
    .words("Only GET and HEAD have answers in the archive. Nothing was sent to anybody.")
    .with(Block::Quote(url.to_owned()))
}

fn no_service_worker() -> Page {
    Page::new(StatusCode::FORBIDDEN, "Service workers are not replayed")
        .words("An archived service worker would stay in the browser, mix captures of different dates, and act on the live site later.")
}

fn invalid_url(error: InvalidUrl) -> Page {
    let status = match error {
        InvalidUrl::TooLong => StatusCode::URI_TOO_LONG,
        InvalidUrl::Empty | InvalidUrl::Control(_) => StatusCode::BAD_REQUEST,
    };
    Page::new(status, "This URL cannot be looked up").words(format!("The URL: {error}."))
}

impl<A> std::fmt::Debug for ProxyServer<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProxyServer")
            .field("authority", &self.parts.authority)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &'static str, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(
            HeaderName::from_static(name),
            HeaderValue::from_str(value).unwrap(),
        )])
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
            let found = user(&with("proxy-authorization", &value));
            assert_eq!(found.as_deref(), expected, "{plain:?}");
        }
        let long = format!("basic {}", BASE64_STANDARD.encode("x".repeat(101)));
        for value in ["Basic", "Basic !", "Bearer YTpi", &long] {
            assert_eq!(user(&with("proxy-authorization", value)), None, "{value}");
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
