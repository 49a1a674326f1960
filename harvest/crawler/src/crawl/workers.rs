//! The work beside the recorder: questions to name servers, fetches, and the work on what was fetched.
//!
//! Owns nothing that outlives a try. What it does ends in an event for the owner of the crawl, whatever happens.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use archive_daemon::clock::{Chance, Clock};
use archive_formats::crawl_log::CrawlLogLine;
use archive_formats::date::Stamp;
use archive_formats::digest::{Algorithm, digest_bytes};
use harvest_model::CrawlOrder;
use harvest_policy::address_turns::RequestTicket;
use harvest_policy::status::{FetchStatus, FinishedAttempt, TryDecision};
use index_dedup::EarlierCapture;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::task::{JoinError, JoinSet};
use url::Url;

use super::log_line::crawl_log_line;
use crate::capture::{RecordGroup, ResourceBlock, record_id};
use crate::cookies::CrawlCookies;
use crate::dns::{DnsAnswer, DnsError, DnsResolver};
use crate::exchange::receive::ReceiveLimits;
use crate::exchange::{ExchangeError, ExchangeLimits};
use crate::fetch::{FetchError, FetchExchange, FetchRequest, Fetcher};
use crate::frontier::FrontierUri;
use crate::login::CrawlLogins;
use crate::process::{FetchProcessor, FetchPurpose, FetchedUri, ProcessError, ProcessedUri};

/// A command of the owner.
#[derive(Debug)]
pub(super) enum WorkerCommand {
    /// To ask for the addresses of a host.
    Resolve(String),
    /// To fetch a URI.
    Fetch(Box<FetchCommand>),
    /// To record what has come of a URI that is not fetched any more.
    Record(RequestTicket, Box<FetchedUri>),
    /// To end all fetches: they end in no event.
    CutFetches,
}

/// A URI to be fetched.
#[derive(Debug)]
pub(super) struct FetchCommand {
    pub(super) ticket: RequestTicket,
    pub(super) uri: FrontierUri,
    /// The longest answer so far, if the host has broken off before.
    pub(super) cut: Option<Box<FetchedUri>>,
    pub(super) url: Url,
    pub(super) address: IpAddr,
    /// Where the bytes are counted that have come.
    pub(super) received: Arc<AtomicU64>,
    pub(super) limits: ExchangeLimits,
    /// The user agent, where it is another one than the order has for all.
    pub(super) user_agent: Option<String>,
    pub(super) connection: u32,
    pub(super) purpose: FetchPurpose,
}

/// An event for the owner.
#[derive(Debug)]
pub(super) enum WorkerEvent {
    /// The answer of a name server.
    Resolved {
        host: String,
        answer: Result<DnsAnswer, DnsError>,
        records: Vec<RecordGroup>,
        line: Box<CrawlLogLine>,
    },
    /// A fetch is over and processed.
    Fetched {
        ticket: RequestTicket,
        result: Result<Box<ProcessedUri>, ProcessError>,
    },
    /// The work on a fetch has panicked: a bug of ours, which ends one URI.
    Panicked(RequestTicket),
}

/// The workers of a crawl, which do all that its owner would have to wait for.
#[derive(Debug)]
pub(super) struct CrawlWorkers {
    pub(super) fetcher: Fetcher,
    pub(super) dns: DnsResolver,
    /// The places of questions to name servers: many at once would pass for an attack.
    pub(super) questions: Semaphore,
    pub(super) processor: Arc<FetchProcessor>,
    pub(super) clock: Clock,
    pub(super) chance: Chance,
    /// The most bytes that a body may have for want of room on the disk; the owner of the crawl says it.
    pub(super) room: Arc<AtomicU64>,
    pub(super) logins: CrawlLogins,
    pub(super) cookies: CrawlCookies,
    pub(super) events: UnboundedSender<WorkerEvent>,
}

impl CrawlWorkers {
    /// Carries out commands until the owner sends no more.
    pub(super) async fn serve_commands(
        self: Arc<Self>,
        mut commands: UnboundedReceiver<WorkerCommand>,
    ) {
        let mut questions = JoinSet::new();
        let mut fetches = JoinSet::new();
        let mut tickets = HashMap::new();
        loop {
            tokio::select! {
                command = commands.recv() => {
                    let workers = Arc::clone(&self);
                    // The owner may have ended when an event is sent.
                    match command {
                        None => return,
                        Some(WorkerCommand::CutFetches) => fetches.abort_all(),
                        Some(WorkerCommand::Resolve(host)) => {
                            questions.spawn(async move {
                                _ = workers.events.send(workers.resolve(host).await);
                            });
                        }
                        Some(WorkerCommand::Fetch(command)) => {
                            let ticket = command.ticket;
                            let task = fetches.spawn(async move {
                                _ = workers.events.send(workers.fetch(*command).await);
                            });
                            tickets.insert(task.id(), ticket);
                        }
                        Some(WorkerCommand::Record(ticket, answer)) => {
                            let task = fetches.spawn(async move {
                                let event = workers.process(ticket, *answer, None, FetchPurpose::Page);
                                _ = workers.events.send(event.await);
                            });
                            tickets.insert(task.id(), ticket);
                        }
                    }
                }
                Some(_) = questions.join_next() => {}
                Some(ended) = fetches.join_next_with_id() => {
                    let task = ended.as_ref().map_or_else(JoinError::id, |(task, ())| *task);
                    let ticket = tickets.remove(&task);
                    let has_panicked = ended.is_err_and(|error| error.is_panic());
                    if let Some(ticket) = ticket.filter(|_| has_panicked) {
                        _ = self.events.send(WorkerEvent::Panicked(ticket));
                    }
                }
            }
        }
    }

    async fn resolve(&self, host: String) -> WorkerEvent {
        // Nobody closes it.
        let _place = self.questions.acquire().await;
        let began = self.clock.now();
        let start = self.clock.instant();
        let answer = self.dns.resolve_host(&host, began).await;
        let duration = self.clock.elapsed_since(start);
        let uri = super::hosts::dns_uri(&host);
        let text = answer.as_ref().map_or("", |answer| answer.text.as_str());
        let mut line = CrawlLogLine {
            time: began,
            status: FetchStatus::DNS_FAILED.number(),
            size: None,
            uri: uri.clone(),
            hops: "P".to_owned(),
            via: None,
            media_type: Some("text/dns".to_owned()),
            thread: 0,
            begun: Some(Stamp::from_time_millis(began)),
            milliseconds: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
            digest: None,
            source: None,
            annotations: Vec::new(),
        };
        let mut records = Vec::new();
        if !text.is_empty() {
            let size = text.len() as u64;
            line.status = FetchStatus::DNS_SUCCESS.number();
            line.size = Some(size);
            line.digest = Some(digest_bytes(Algorithm::Sha1, text.as_bytes()).to_string());
            line.annotations.push(format!("content-size:{size}"));
            let id = record_id(
                self.chance
                    .random_bytes()
                    .expect("the system has had randomness since the crawl began"),
            );
            let resource = ResourceBlock {
                uri: &uri,
                time: began,
                address: self.dns.name_server(),
                media_type: "text/dns",
                record_id: &id,
                block: text.as_bytes(),
            };
            match resource.into_records(&self.processor.scratch) {
                Ok(group) => records.push(group),
                // A line without its record would say that there is one.
                Err(_) => line.status = FetchStatus::RUNTIME_EXCEPTION.number(),
            }
        }
        WorkerEvent::Resolved {
            host,
            answer,
            records,
            line: Box::new(line),
        }
    }

    async fn fetch(self: &Arc<Self>, command: FetchCommand) -> WorkerEvent {
        let FetchCommand {
            ticket,
            uri,
            cut,
            url,
            address,
            received,
            limits,
            user_agent,
            connection,
            purpose,
        } = command;
        let condition = match self.condition(&uri, purpose).await {
            Ok(condition) => condition,
            Err(error) => {
                let result = Err(error);
                return WorkerEvent::Fetched { ticket, result };
            }
        };
        let user_agent = user_agent.map(|value| ("User-Agent".to_owned(), value));
        let mut fields = Vec::from_iter(user_agent);
        if let Some(earlier) = &condition {
            let etag = earlier.etag.clone();
            fields.extend(etag.map(|etag| ("If-None-Match".to_owned(), etag)));
            let modified = earlier.last_modified.clone();
            fields.extend(modified.map(|time| ("If-Modified-Since".to_owned(), time)));
        }
        let fetch = FetchRequest {
            url: url.clone(),
            address,
            referer: uri.via.clone(),
            fields,
            authorization: None,
            form: match purpose {
                FetchPurpose::Page | FetchPurpose::Robots => None,
                FetchPurpose::Login(number) => self.logins.filled_form(number),
            },
            limits,
            received,
            room: Arc::clone(&self.room),
        };
        let start = self.clock.instant();
        let (fetched, cut) = match self.fetch_with_login(fetch, purpose).await {
            Ok((fetched, is_answerable)) => {
                let fetched = FetchedUri {
                    uri,
                    url,
                    connection,
                    fetched,
                    ended: self.clock.instant(),
                    condition,
                    is_answerable,
                };
                (fetched, cut)
            }
            Err(FetchError::Exchange(ExchangeError::Storage(error))) => {
                return WorkerEvent::Fetched {
                    ticket,
                    result: Err(ProcessError::Spool(error)),
                };
            }
            Err(error) => {
                let mut processed = self.failed_try(&uri, connection, &error, start, purpose);
                let is_final = matches!(processed.after, TryDecision::Finished(_));
                match cut {
                    // What came before is all there is.
                    Some(cut) if is_final => (FetchedUri { uri, ..*cut }, None),
                    cut => {
                        processed.cut = cut;
                        return WorkerEvent::Fetched {
                            ticket,
                            result: Ok(Box::new(processed)),
                        };
                    }
                }
            }
        };
        self.process(ticket, fetched, cut, purpose).await
    }

    /// Makes the records of a fetch, and finds its links.
    async fn process(
        &self,
        ticket: RequestTicket,
        fetched: FetchedUri,
        cut: Option<Box<FetchedUri>>,
        purpose: FetchPurpose,
    ) -> WorkerEvent {
        let processor = Arc::clone(&self.processor);
        let work = move || {
            archive_daemon::run::catch_panic(|| {
                processor.process_fetch(fetched, cut, purpose).map(Box::new)
            })
        };
        match tokio::task::spawn_blocking(work).await {
            Ok(Ok(result)) => WorkerEvent::Fetched { ticket, result },
            Ok(Err(_)) | Err(_) => WorkerEvent::Panicked(ticket),
        }
    }

    /// Fetches a URI. Says, too, whether its host asks for a user that the order has: the URI is to be asked for again
    /// then, in its turn, as every request to a host.
    async fn fetch_with_login(
        &self,
        mut fetch: FetchRequest,
        purpose: FetchPurpose,
    ) -> Result<(FetchExchange, bool), FetchError> {
        if purpose != FetchPurpose::Page {
            return Ok((self.fetch_with_cookies(&fetch).await?, false));
        }
        fetch.authorization = self.logins.authorization_field(&fetch.url)?;
        let fetched = self.fetch_with_cookies(&fetch).await?;
        let head = fetched.exchange.response.head.as_ref();
        let was_sent = fetch.authorization.is_some();
        let is_answerable = match head.filter(|head| head.status() == Some(401)) {
            Some(head) => self.logins.can_answer(&fetch.url, head, was_sent)?,
            None => false,
        };
        Ok((fetched, is_answerable))
    }

    /// Fetches a URI with the cookies of its host, and keeps those of the response.
    async fn fetch_with_cookies(&self, fetch: &FetchRequest) -> Result<FetchExchange, FetchError> {
        let mut fetch = fetch.clone();
        let cookies = self.cookies.cookie_field(&fetch.url);
        fetch
            .fields
            .extend(cookies.map(|cookies| ("Cookie".to_owned(), cookies)));
        let fetched = self.fetcher.fetch_uri(&fetch).await?;
        if let Some(head) = &fetched.exchange.response.head {
            self.cookies.keep_cookies(&fetch.url, head);
        }
        Ok(fetched)
    }

    /// Returns the earlier capture that a request is conditional on.
    async fn condition(
        &self,
        uri: &FrontierUri,
        purpose: FetchPurpose,
    ) -> Result<Option<EarlierCapture>, ProcessError> {
        let known = self.processor.known.clone();
        let Some(known) = known.filter(|_| purpose == FetchPurpose::Page) else {
            return Ok(None);
        };
        let uri = uri.uri.clone();
        let found = tokio::task::spawn_blocking(move || known.find_condition(&uri)).await;
        let found = found.map_err(|error| ProcessError::Spool(std::io::Error::other(error)))?;
        Ok(found?)
    }

    /// Returns a try without a response.
    fn failed_try(
        &self,
        uri: &FrontierUri,
        connection: u32,
        error: &FetchError,
        start: Instant,
        purpose: FetchPurpose,
    ) -> ProcessedUri {
        let status = match error {
            FetchError::NoHost(_) | FetchError::Header(_) => FetchStatus::UNFETCHABLE,
            FetchError::Chance(_) => FetchStatus::RUNTIME_EXCEPTION,
            FetchError::Exchange(error) => match error {
                ExchangeError::Tls { .. } if error.is_lasting() => FetchStatus::TLS_FAILED,
                ExchangeError::Connect { .. }
                | ExchangeError::Proxy(_)
                | ExchangeError::Tls { .. }
                | ExchangeError::Http2 { .. } => FetchStatus::CONNECT_FAILED,
                ExchangeError::NotHttp2(_) => FetchStatus::UNFETCHABLE,
                ExchangeError::NoResponse { .. } => FetchStatus::CONNECT_LOST,
                ExchangeError::Timeout { .. } => FetchStatus::TIMEOUT,
                ExchangeError::Storage(_) => FetchStatus::RUNTIME_EXCEPTION,
            },
        };
        let tries = uri.tries.saturating_add(1);
        // A server does not learn another TLS while it is waited for.
        let is_lasting = matches!(status, FetchStatus::TLS_FAILED | FetchStatus::UNFETCHABLE);
        let after = match purpose {
            FetchPurpose::Page if !is_lasting => self.processor.retry.after_try(FinishedAttempt {
                status,
                tries,
                retry_after: None,
                is_cut: false,
            }),
            _ => TryDecision::Finished(status),
        };
        let ended = self.clock.instant();
        let mut lines = Vec::new();
        if let TryDecision::Finished(status) = after {
            let mut line = crawl_log_line(uri, status, self.clock.now());
            line.thread = connection;
            if tries > 1 {
                line.annotations.push(format!("{tries}t"));
            }
            let name = match error {
                FetchError::NoHost(_) => "NoHost",
                FetchError::Header(_) => "InvalidHeaderField",
                FetchError::Chance(_) => "NoChance",
                FetchError::Exchange(error) => match error {
                    ExchangeError::Connect { .. } => "Connect",
                    ExchangeError::Proxy(_) => "Proxy",
                    ExchangeError::Tls { .. } if error.has_old_tls() => "OldTls",
                    ExchangeError::Tls { .. } => "Tls",
                    ExchangeError::Http2 { .. } => "Http2",
                    ExchangeError::NotHttp2(_) => "NotHttp2",
                    ExchangeError::NoResponse { .. } => "NoResponse",
                    ExchangeError::Timeout { .. } => "Timeout",
                    ExchangeError::Storage(_) => "Storage",
                },
            };
            line.annotations.push(format!("err={name}"));
            lines.push(line);
        }
        ProcessedUri {
            status,
            after,
            is_lasting,
            records: Vec::new(),
            lines,
            candidates: Vec::new(),
            seed: None,
            content: None,
            duration: ended.saturating_duration_since(start),
            ended,
            bytes: 0,
            retry_after: None,
            cut: None,
            robots: None,
            proxy_failure: match error {
                FetchError::Exchange(ExchangeError::Proxy(failure)) => Some(failure.clone()),
                _ => None,
            },
        }
    }
}

/// Returns the limits of the exchange of a URI.
pub(super) fn exchange_limits(
    order: &CrawlOrder,
    url: &Url,
    purpose: FetchPurpose,
) -> ExchangeLimits {
    let limits = &order.limits;
    ExchangeLimits {
        connect: limits.connect.duration(),
        stall: limits.stall.duration(),
        total: limits.total.duration(),
        receive: ReceiveLimits {
            head: usize::try_from(limits.max_head.bytes()).unwrap_or(usize::MAX),
            body: order.max_body_for(url),
            // A cut robots.txt would be none.
            body_by_type: match purpose {
                FetchPurpose::Page => limits.max_body_by_type.clone(),
                FetchPurpose::Robots | FetchPurpose::Login(_) => BTreeMap::new(),
            },
        },
    }
}
