//! Fetching one URI from one address: a connection, a request, a response.
//!
//! Owns the connections that wait for their next request, and which header fields a request has. Decides neither what
//! is fetched nor when. A connection that a host has closed meanwhile is replaced once by a fresh one, unseen by the
//! caller; so is one to a host that does not speak HTTP/1.1, if the order allows HTTP/2.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use archive_daemon::clock::{Clock, NoChance};
use archive_model::ByteSize;
use harvest_model::CrawlOrder;
use harvest_model::order::{HeaderFieldText, Http2Use, HttpProxy};
use parking_lot::Mutex;
use rustls::pki_types::ServerName;
use url::Url;

use crate::exchange::bandwidth::Bandwidth;
use crate::exchange::old_tls::OldTlsClient;
use crate::exchange::proxy::{ProxyFailure, ProxyWay};
use crate::exchange::request::{HttpRequest, InvalidHeaderField, referer_field};
use crate::exchange::tls::{ProtocolOffer, TlsClient, TlsSession};
use crate::exchange::{
    ConnectionEnds, Exchange, ExchangeError, ExchangeLimits, ExchangeMeans, HostConnection,
    HttpProtocol,
};

/// The longest time that a connection waits for its next request: servers close it about then.
const LONGEST_IDLE: Duration = Duration::from_secs(30);

/// The most connections that wait.
const MOST_IDLE: usize = 256;

/// The most hosts that are remembered of each kind that is asked in its own way.
const MOST_REMEMBERED: usize = 4096;

/// The reason why there is no response.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The URI names no host that can be connected to.
    #[error("{0} names no host and port that can be connected to")]
    NoHost(String),
    /// A header field of the order cannot be sent.
    #[error(transparent)]
    Header(#[from] InvalidHeaderField),
    /// No randomness to sign a request.
    #[error(transparent)]
    Chance(#[from] NoChance),
    /// The exchange with the host failed.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
}

/// A request to be sent.
#[derive(Clone, Debug)]
pub struct FetchRequest {
    /// The URI that is asked for.
    pub url: Url,
    /// The address of the host, or [`BEHIND_PROXY`](harvest_policy::address::BEHIND_PROXY).
    pub address: IpAddr,
    /// The page that led to the URI.
    pub referer: Option<String>,
    /// Further header fields, each in the place of the one of its name that is sent otherwise.
    pub fields: Vec<(String, String)>,
    /// The value of `Authorization`, which is not recorded.
    pub authorization: Option<String>,
    /// A form to be sent once, with POST; `None`: the URI is asked for.
    pub form: Option<FilledForm>,
    /// The limits of the exchange.
    pub limits: ExchangeLimits,
    /// Where the bytes of the response are counted as they come.
    pub received: Arc<AtomicU64>,
    /// The most bytes that the body may have for want of room on the disk; it changes while they come.
    pub room: Arc<AtomicU64>,
}

/// A form with its values, as `application/x-www-form-urlencoded`.
#[derive(Clone)]
pub struct FilledForm {
    /// The body of the request.
    pub body: Vec<u8>,
    /// The part of the body that is sent, and never recorded: a password.
    pub secret: Range<usize>,
}

impl fmt::Debug for FilledForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilledForm").finish_non_exhaustive()
    }
}

/// A finished fetch.
#[derive(Debug)]
pub struct FetchExchange {
    /// The request as it was sent.
    pub request: HttpRequest,
    /// The exchange with the host.
    pub exchange: Exchange,
    /// The terms of the TLS session, with `https`.
    pub tls: Option<TlsSession>,
    /// The proxy by which the host was asked.
    pub proxy: Option<HttpProxy>,
}

/// The end of a connection that waits: scheme and port with the address, and the host for TLS.
type Endpoint = (String, SocketAddr);

#[derive(Debug, Default)]
struct IdleConnection {
    connections: HashMap<Endpoint, Vec<(HostConnection, Instant)>>,
    count: usize,
}

/// A fetcher of URIs, with the connections that wait for their next request.
///
/// ```no_run
/// use harvest_crawler::fetch::{FetchError, FetchRequest, Fetcher};
///
/// /// Fetches a URI; returns the status that the host answers.
/// async fn status(fetcher: &Fetcher, request: &FetchRequest) -> Result<Option<u16>, FetchError> {
///     let fetched = fetcher.fetch_uri(request).await?;
///     Ok(fetched.exchange.response.head.and_then(|head| head.status()))
/// }
/// ```
#[derive(Debug)]
pub struct Fetcher {
    fields: Vec<(String, String)>,
    /// The address of this machine that hosts see.
    source: Option<IpAddr>,
    /// The proxy by which all hosts are asked.
    proxy: Option<HttpProxy>,
    bandwidth: Bandwidth,
    tls: TlsClient,
    /// The client for hosts that speak TLS of old; `None`: they are not harvested.
    old_tls: Option<OldTlsClient>,
    /// The hosts that speak nothing else.
    old_tls_alone: Mutex<HashSet<Endpoint>>,
    scratch: PathBuf,
    clock: Clock,
    http2: Http2Use,
    idle: Mutex<IdleConnection>,
    /// The hosts that do not speak HTTP/1.1.
    http2_alone: Mutex<HashSet<Endpoint>>,
}

/// The settings of a fetcher.
#[derive(Debug)]
pub struct FetcherSettings<'a> {
    /// The order whose header fields are sent.
    pub order: &'a CrawlOrder,
    /// The version of the crawler, for its user agent.
    pub version: &'a str,
    /// The directory for large responses.
    pub scratch: PathBuf,
}

impl Fetcher {
    /// Makes a fetcher that has no connection yet.
    pub fn new(
        settings: FetcherSettings<'_>,
        tls: TlsClient,
        old_tls: Option<OldTlsClient>,
        clock: Clock,
    ) -> Self {
        let FetcherSettings {
            order,
            version,
            scratch,
        } = settings;
        let mut fields = vec![("User-Agent".to_owned(), order.user_agent(version))];
        let own = order.http.fields.iter().map(HeaderFieldText::parts);
        let own: Vec<(String, String)> = own.collect();
        if !own
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("accept"))
        {
            fields.push(("Accept".to_owned(), "*/*".to_owned()));
        }
        if order.http.accept_compression {
            fields.push(("Accept-Encoding".to_owned(), "gzip, deflate".to_owned()));
        }
        let from = order.http.from.clone();
        fields.extend(from.map(|from| ("From".to_owned(), from)));
        fields.extend(own);
        Self {
            fields,
            source: order.http.source_address,
            proxy: order.http.proxy.clone(),
            bandwidth: Bandwidth::limited_to(order.limits.max_bandwidth.map(ByteSize::bytes)),
            tls,
            old_tls,
            old_tls_alone: Mutex::default(),
            scratch,
            clock,
            http2: order.http.http2,
            idle: Mutex::default(),
            http2_alone: Mutex::default(),
        }
    }

    /// Fetches a URI.
    ///
    /// # Errors
    ///
    /// [`FetchError`]: no byte of a response has come, or this machine cannot keep it.
    pub async fn fetch_uri(&self, fetch: &FetchRequest) -> Result<FetchExchange, FetchError> {
        let request = self.request(fetch)?;
        let endpoint = endpoint(fetch)?;
        while let Some(mut connection) = self.take_idle(&endpoint) {
            // A form is sent once: on a connection that its host may have closed nobody would know. The host has closed
            // it while it waited, which is its right, or has said something that nobody asked for.
            if fetch.form.is_some() || !connection.is_quiet().await {
                continue;
            }
            match self.exchange(&mut connection, &request, fetch).await {
                // A 408 says that the host has waited too long: for this request, which it has not seen, or for none.
                Ok(exchange) if is_request_timeout(&exchange) => {}
                Ok(exchange) => return Ok(self.finish(connection, endpoint, request, exchange)),
                Err(ExchangeError::NoResponse { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            break;
        }
        self.fetch_afresh(fetch, endpoint, request).await
    }

    /// Fetches by a new connection, and by a second one if the host turns out to speak HTTP/2 alone.
    async fn fetch_afresh(
        &self,
        fetch: &FetchRequest,
        endpoint: Endpoint,
        request: HttpRequest,
    ) -> Result<FetchExchange, FetchError> {
        let offer = self.offer(&endpoint);
        let may_change = offer == ProtocolOffer::Http1 && self.http2 != Http2Use::Never;
        let first = match self.open(fetch, &endpoint, offer).await {
            Ok(mut connection) => {
                let mut outcome = self.exchange(&mut connection, &request, fetch).await;
                // A host that knows of protocols and speaks this one has selected it.
                let has_selected = connection.tls().is_none_or(|tls| tls.protocol.is_some());
                let is_refused = match &mut outcome {
                    Ok(exchange) => exchange
                        .is_http2_unasked()
                        .map_err(ExchangeError::Storage)?,
                    Err(error) => matches!(error, ExchangeError::NoResponse { .. }),
                };
                // Nobody knows what became of a form.
                if has_selected || !is_refused || !may_change || fetch.form.is_some() {
                    return Ok(self.finish(connection, endpoint, request, outcome?));
                }
                outcome.map(|exchange| (connection, exchange))
            }
            Err(FetchError::Exchange(error)) if may_change && error.refuses_protocol() => {
                Err(error)
            }
            Err(error) => return Err(error),
        };
        if let Ok(mut connection) = self.open(fetch, &endpoint, ProtocolOffer::Http2).await
            && connection.protocol() == HttpProtocol::Http2
        {
            remember_host(&self.http2_alone, &endpoint);
            let exchange = self.exchange(&mut connection, &request, fetch).await?;
            return Ok(self.finish(connection, endpoint, request, exchange));
        }
        let (connection, exchange) = first?;
        Ok(self.finish(connection, endpoint, request, exchange))
    }

    /// Returns the protocols that a host is offered.
    fn offer(&self, endpoint: &Endpoint) -> ProtocolOffer {
        let known = self.http2_alone.lock();
        // A host that spoke HTTP/2 alone may have learned HTTP/1.1 meanwhile.
        match self.http2 {
            Http2Use::WhenNeeded if !known.contains(endpoint) => ProtocolOffer::Http1,
            Http2Use::WhenNeeded | Http2Use::Always => ProtocolOffer::Both,
            Http2Use::Never => ProtocolOffer::Http1,
        }
    }

    async fn exchange(
        &self,
        connection: &mut HostConnection,
        request: &HttpRequest,
        fetch: &FetchRequest,
    ) -> Result<Exchange, ExchangeError> {
        let means = ExchangeMeans {
            limits: &fetch.limits,
            directory: &self.scratch,
            received: &fetch.received,
            room: &fetch.room,
            bandwidth: &self.bandwidth,
        };
        let exchange = connection
            .exchange_request(request, means, &self.clock)
            .await?;
        let head = exchange.response.head.as_ref();
        let proxy = self.proxy.as_ref().filter(|_| is_plain(fetch));
        let failure = proxy
            .zip(head)
            .and_then(|(proxy, head)| ProxyFailure::of_answer(proxy, head));
        match failure {
            Some(failure) => Err(failure.into()),
            None => Ok(exchange),
        }
    }

    async fn open(
        &self,
        fetch: &FetchRequest,
        endpoint: &Endpoint,
        offer: ProtocolOffer,
    ) -> Result<HostConnection, FetchError> {
        let host_port = format!(
            "{}:{}",
            fetch.url.host_str().unwrap_or_default(),
            endpoint.1.port()
        );
        let tunnel_to = Some(host_port.as_str()).filter(|_| !is_plain(fetch));
        let ends = ConnectionEnds {
            host: endpoint.1,
            own: self.source,
            proxy: self
                .proxy
                .as_ref()
                .map(|proxy| ProxyWay { proxy, tunnel_to }),
        };
        let tls = if fetch.url.scheme() == "https" {
            let host = fetch.url.host_str().unwrap_or_default();
            let host = host.trim_start_matches('[').trim_end_matches(']');
            let name = ServerName::try_from(host.to_owned());
            let name = name.map_err(|_invalid| FetchError::NoHost(fetch.url.to_string()))?;
            Some((&self.tls, name, offer))
        } else {
            None
        };
        let name = tls.as_ref().map(|(_, name, _)| name.clone());
        let old_tls = self.old_tls.as_ref().zip(name);
        if let Some((client, name)) = &old_tls
            && self.old_tls_alone.lock().contains(endpoint)
        {
            return Ok(self.open_old(ends, client, name, fetch).await?);
        }
        let opened = HostConnection::open_connection(ends, tls, &fetch.limits, &self.clock).await;
        match (opened, old_tls) {
            (Err(error), Some((client, name)))
                if error.is_lasting() && !error.refuses_protocol() =>
            {
                match self.open_old(ends, client, &name, fetch).await {
                    Ok(connection) => {
                        remember_host(&self.old_tls_alone, endpoint);
                        Ok(connection)
                    }
                    // The first error says more of the host.
                    Err(_) => Err(error.into()),
                }
            }
            (opened, _) => Ok(opened?),
        }
    }

    async fn open_old(
        &self,
        ends: ConnectionEnds<'_>,
        client: &OldTlsClient,
        name: &ServerName<'static>,
        fetch: &FetchRequest,
    ) -> Result<HostConnection, ExchangeError> {
        let clients = (client, &self.tls);
        HostConnection::open_old_tls(ends, clients, name.clone(), &fetch.limits, &self.clock).await
    }

    fn finish(
        &self,
        connection: HostConnection,
        endpoint: Endpoint,
        request: HttpRequest,
        exchange: Exchange,
    ) -> FetchExchange {
        let tls = connection.tls().cloned();
        if exchange.response.is_reusable {
            self.keep_idle(endpoint, connection);
        }
        FetchExchange {
            request,
            exchange,
            tls,
            proxy: self.proxy.clone(),
        }
    }

    fn request(&self, fetch: &FetchRequest) -> Result<HttpRequest, InvalidHeaderField> {
        let is_own = |name: &str| !fetch.fields.iter().any(|(further, _)| further == name);
        let own = self.fields.iter().filter(|(name, _)| is_own(name));
        let mut fields: Vec<(&str, &str)> = own
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let page = fetch.referer.as_deref();
        let referer = page.and_then(|page| referer_field(page, &fetch.url));
        if let Some(referer) = &referer {
            fields.push(("Referer", referer));
        }
        for (name, value) in &fetch.fields {
            fields.push((name, value));
        }
        let request = match &fetch.form {
            None => HttpRequest::get(&fetch.url, &fields)?,
            Some(form) => {
                fields.push(("Content-Type", "application/x-www-form-urlencoded"));
                let request = HttpRequest::post_form(&fetch.url, &fields, &form.body)?;
                request.with_secret_in_body(form.secret.clone())
            }
        };
        let request = match &self.proxy {
            Some(_) if is_plain(fetch) => request.in_absolute_form(),
            _ => request,
        };
        match &fetch.authorization {
            Some(value) => request.with_secret("Authorization", value),
            None => Ok(request),
        }
    }

    fn take_idle(&self, endpoint: &Endpoint) -> Option<HostConnection> {
        let now = self.clock.instant();
        let mut idle = self.idle.lock();
        let waiting = idle.connections.get_mut(endpoint)?;
        let mut dropped = 0;
        let mut taken = None;
        while let Some((connection, since)) = waiting.pop() {
            dropped += 1;
            if now.saturating_duration_since(since) < LONGEST_IDLE {
                taken = Some(connection);
                break;
            }
        }
        if waiting.is_empty() {
            idle.connections.remove(endpoint);
        }
        idle.count = idle.count.saturating_sub(dropped);
        taken
    }

    fn keep_idle(&self, endpoint: Endpoint, connection: HostConnection) {
        let now = self.clock.instant();
        let mut idle = self.idle.lock();
        if idle.count >= MOST_IDLE {
            idle.connections.retain(|_, waiting| {
                waiting.retain(|(_, since)| now.saturating_duration_since(*since) < LONGEST_IDLE);
                !waiting.is_empty()
            });
            idle.count = idle.connections.values().map(Vec::len).sum();
        }
        if idle.count < MOST_IDLE {
            idle.count += 1;
            let waiting = idle.connections.entry(endpoint).or_default();
            waiting.push((connection, now));
        }
    }
}

/// Remembers a host that is asked in its own way.
fn remember_host(hosts: &Mutex<HashSet<Endpoint>>, endpoint: &Endpoint) {
    let mut hosts = hosts.lock();
    if hosts.len() >= MOST_REMEMBERED {
        hosts.clear();
    }
    hosts.insert(endpoint.clone());
}

/// Returns whether a URI is asked for without TLS.
fn is_plain(fetch: &FetchRequest) -> bool {
    fetch.url.scheme() != "https"
}

/// Returns whether a host says that it has got no request in time (RFC 9110 §15.5.9).
fn is_request_timeout(exchange: &Exchange) -> bool {
    let head = exchange.response.head.as_ref();
    head.is_some_and(|head| head.status() == Some(408))
}

fn endpoint(fetch: &FetchRequest) -> Result<Endpoint, FetchError> {
    let url = &fetch.url;
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
        return Err(FetchError::NoHost(url.to_string()));
    };
    let origin = format!("{}://{host}", url.scheme());
    Ok((origin, SocketAddr::new(fetch.address, port)))
}
