//! One request in, one answer out.
//!
//! Owns what is done about a request that was read: a tunnel, a page in words, a command, or a look-up in the archive.
//! Whatever a request names, nothing is ever connected to.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use archive_daemon::{Clock, Counter, Gauge};
use archive_formats::post;
use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue, Request, Response, StatusCode};

use crate::archive::{CaptureAnswer, CaptureRequest, ProxiedArchive};
use crate::authority::ProxyAuthority;
use crate::body::{BodyReader, InvalidBody};
use crate::clients::{ClientKey, ClientView, Clients};
use crate::page::{Block, ProxyPage};
use crate::reading::{
    CaptureQuestion, InvalidProxyRequest, ProxyRequest, RequestHead, read_request, user_of,
};
use crate::requested::{HostAndPort, RequestChannel};

/// The address of the page that controls the proxy.
const CONTROL_PAGE: &str = "http://viewerproxy.invalid/";

/// The state of the proxy, shared by all its connections.
pub(crate) struct ProxyServer<A> {
    parts: ServerParts<A>,
    bodies: BodyReader,
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
        Self {
            parts,
            bodies: BodyReader::new(),
        }
    }

    /// Returns the gauge of open connections.
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

    /// Reads the body of a request.
    pub(crate) async fn read_body(&self, body: Body, longest: usize) -> Result<Bytes, InvalidBody> {
        self.bodies
            .read_body(&self.parts.clock, body, longest)
            .await
    }

    pub(crate) fn now(&self) -> Instant {
        self.parts.clock.instant()
    }

    /// Returns the collection of a view.
    pub(crate) fn collection(&self, view: &ClientView) -> Option<String> {
        let chosen = view.collection.clone();
        chosen
            .or_else(|| self.parts.collection.clone())
            .or_else(|| self.archive().sole_collection())
    }

    /// Answers a request that came over a channel.
    pub(crate) async fn answer_request(
        &self,
        peer: SocketAddr,
        channel: &RequestChannel,
        request: Request<Body>,
    ) -> ProxyAnswer {
        let (head, body) = request.into_parts();
        let key = ClientKey {
            address: peer.ip().to_canonical(),
            user: match channel {
                RequestChannel::Open => user_of(&head.headers),
                RequestChannel::Tunnel(tunnel) => tunnel.user.clone(),
            },
        };
        let response = match read_request(channel, &head, self.parts.longest_url) {
            Err(error) => refusal(&error).to_response(&head.headers),
            Ok(ProxyRequest::OpenTunnel(to)) => {
                return ProxyAnswer {
                    response: Response::new(Body::empty()),
                    tunnel: Some((to, key)),
                };
            }
            Ok(ProxyRequest::Itself) => itself().to_response(&head.headers),
            Ok(ProxyRequest::Preflight) => preflight(&head.headers),
            Ok(ProxyRequest::Control(site)) => self.answer_control(&key, &site, &head, body).await,
            Ok(ProxyRequest::Capture(question)) => self.replay(&key, question, &head, body).await,
        };
        ProxyAnswer {
            response,
            tunnel: None,
        }
    }

    /// Answers with a capture. Method and body of a request that is no GET are in the key of its capture.
    async fn replay(
        &self,
        key: &ClientKey,
        question: CaptureQuestion,
        head: &RequestHead,
        body: Body,
    ) -> Response<Body> {
        let headers = &head.headers;
        let CaptureQuestion {
            site,
            mut target,
            method,
            is_read,
            date,
        } = question;
        if !is_read {
            let body = match self.read_body(body, post::MAX_BODY).await {
                Ok(body) => body,
                Err(error) => return unread(error, site.url).to_response(headers),
            };
            let content_type = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
            target = target.with_request(head.method.as_str(), content_type, &body);
        }
        let view = self.clients().client_view(key, self.now());
        let collection = self.collection(&view);
        let request = CaptureRequest {
            client: key.address,
            collection: collection.as_deref(),
            jobs: view.jobs.as_ref().map(|choice| &choice.jobs),
            time: date.or(view.date),
            target: &target,
            method,
            headers,
        };
        match self.archive().capture(request).await {
            CaptureAnswer::Answered(response) => response,
            CaptureAnswer::Missing(words) => {
                self.parts.misses.inc();
                // To harvest its URL would give no answer to a request with a body.
                let is_listed =
                    is_read && self.clients().record_missing(key, self.now(), &site.url);
                missing(site.url, is_read, words, is_listed).to_response(headers)
            }
        }
    }
}

/// Allows what a browser asks before a request across origins (a preflight). Whether a page may read the answer to the
/// request itself is what the archived header says.
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

fn missing(url: String, is_read: bool, words: Vec<String>, is_listed: bool) -> ProxyPage {
    let begin = if is_read {
        "This proxy shows the archive and never the web, and there is nothing at this address:"
    } else {
        "This proxy shows the archive and sends nothing to the web. It has no answer to this request to the address:"
    };
    let mut page = ProxyPage::new(StatusCode::NOT_FOUND, "Not in the archive")
        .with_words(begin)
        .with_block(Block::Quote(url));
    for words in words {
        page = page.with_words(words);
    }
    if is_listed {
        page = page.with_words("It is in your list of missing URLs.");
    }
    page.with_block(Block::Link {
        to: CONTROL_PAGE,
        words: "The collection, the date and the list of missing URLs",
    })
}

/// Returns the answer to a client that takes the proxy for a web server.
fn itself() -> ProxyPage {
    ProxyPage::new(StatusCode::BAD_REQUEST, "This is a proxy")
        .with_words(
            "Set it as the HTTP proxy of a browser or tool, for http and https; then every address shows the archive. The page \
             at this address says more then:",
        )
        .with_block(Block::Quote(CONTROL_PAGE.to_owned()))
}

/// Returns the answer to a request that is refused before anything is looked up.
fn refusal(error: &InvalidProxyRequest) -> ProxyPage {
    let page = |title: &str| ProxyPage::new(error.status(), title);
    match error {
        InvalidProxyRequest::Target(error) => {
            page("This request cannot be understood").with_words(format!("Not possible: {error}."))
        }
        InvalidProxyRequest::TooLong(longest) => {
            page("Too long").with_words(format!("The URL has more than {longest} bytes."))
        }
        InvalidProxyRequest::WebSocket(url) => page("WebSockets are not archived")
            .with_words("The archive has answers to requests, and no conversations.")
            .with_block(Block::Quote(url.clone())),
        InvalidProxyRequest::ServiceWorker => page("Service workers are not replayed").with_words(
            "An archived service worker would stay in the browser, mix captures of different dates, and act on the live site \
             later.",
        ),
        InvalidProxyRequest::Url(error) => {
            page("This URL cannot be looked up").with_words(format!("The URL: {error}."))
        }
        InvalidProxyRequest::Date(error) => {
            page("This date cannot be understood").with_words(error.to_string())
        }
    }
}

/// Returns the answer to a request whose key would have its body in it.
fn unread(error: InvalidBody, url: String) -> ProxyPage {
    ProxyPage::new(error.status(), "This request cannot be looked up")
        .with_words(format!(
            "The archive looks it up by its method and its body, and {error}. Nothing was sent to anybody."
        ))
        .with_block(Block::Quote(url))
}

impl<A> std::fmt::Debug for ProxyServer<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProxyServer")
            .field("authority", &self.parts.authority)
            .finish_non_exhaustive()
    }
}
