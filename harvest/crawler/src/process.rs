//! The work that follows a fetch: its records, its line in the crawl log, and the URIs that it leads to.
//!
//! Runs on threads beside the fetches; reads the body once for its links and once for its records. Owns which status a
//! try has, which lines its `metadata` record has, and which of the links belong to the crawl. Writes nothing but
//! temporary files.

use std::io::{self, BufReader, Seek as _, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use archive_daemon::clock::{Chance, NoChance};
use archive_formats::crawl_log::CrawlLogLine;
use archive_formats::http::{Body, DecodeLimits as BodyLimits, Head, MediaType, ResponseEnding};
use archive_formats::warc::WriteError;
use harvest_extraction::{Extraction, ExtractionLimits, FetchedDocument, extract_links};
use harvest_model::CrawlOrder;
use harvest_model::order::SeedRedirects;
use harvest_policy::address::BEHIND_PROXY;
use harvest_policy::cost::{CostPolicy, UriOrder};
use harvest_policy::hops::{Hop, HopPath, InvalidHop};
use harvest_policy::quarantine::{MAX_BYTES, ResponseContent, text_sketch};
use harvest_policy::queue_name::QueueNaming;
use harvest_policy::scope::Scope;
use harvest_policy::status::{FetchStatus, FinishedAttempt, RetryRules, TryDecision};
use index_dedup::{DedupError, EarlierCapture};
use parking_lot::{Mutex, RwLock};
use url::Url;

use self::describe::{describe_metadata, log_line, retry_after, robots_file, status_of};
pub use self::novelty::KnownCaptures;

use crate::capture::{
    CaptureError, CapturedExchange, Novelty, RecordGroup, RecordWriterPool, record_id,
};
use crate::exchange::proxy::ProxyFailure;
use crate::exchange::receive::Truncation;
use crate::fetch::FetchExchange;
use crate::frontier::{CandidateUri, FrontierUri, RecentKeys, UriHasher};

mod candidates;
mod describe;
mod novelty;

/// The reason why a fetch cannot be processed.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The records of the exchange cannot be made.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// The temporary file of the response.
    #[error("cannot read a response from its temporary file: {0}; see to the disk of this machine")]
    Spool(#[from] io::Error),
    /// The hops that led to the URI, as the frontier has them.
    #[error("cannot read the hops in the frontier of the crawl: {0}")]
    Hops(#[from] InvalidHop),
    /// No randomness for the ids of records.
    #[error(transparent)]
    Chance(#[from] NoChance),
    /// The index of earlier captures.
    #[error(transparent)]
    Dedup(#[from] DedupError),
}

impl ProcessError {
    /// Returns whether the disk of this machine has no room: with room the fetch can be made again.
    pub fn is_no_space(&self) -> bool {
        let error = match self {
            Self::Capture(CaptureError::Storage(WriteError::Io(error))) | Self::Spool(error) => {
                error
            }
            Self::Capture(_) | Self::Hops(_) | Self::Chance(_) | Self::Dedup(_) => return false,
        };
        matches!(
            error.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
        )
    }
}

/// The purpose of a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchPurpose {
    /// A URI of the crawl.
    Page,
    /// A robots.txt that is asked for before other URIs of its host. It is not tried again.
    Robots,
    /// A login form that is sent before other URIs of its host, by the number of its credential. It is not tried again.
    Login(usize),
}

/// A fetched URI.
#[derive(Debug)]
pub struct FetchedUri {
    /// The URI, as the frontier has it.
    pub uri: FrontierUri,
    /// The URI, parsed.
    pub url: Url,
    /// The number of the connection, for the crawl log.
    pub connection: u32,
    /// The exchange with the host.
    pub fetched: FetchExchange,
    /// The moment at which the exchange ended.
    pub ended: Instant,
    /// The capture that the request was conditional on.
    pub condition: Option<EarlierCapture>,
    /// Whether the host asks for a user, and the next request can name one.
    pub is_answerable: bool,
}

/// A URI that was processed.
#[derive(Debug)]
pub struct ProcessedUri {
    /// The status of the try.
    pub status: FetchStatus,
    /// Whether the URI is tried again, and when.
    pub after: TryDecision,
    /// Whether another try would end as this one, because the host cannot be asked in any way that this crawl has.
    pub is_lasting: bool,
    /// The records of the try; empty if the URI is tried again because the try has failed.
    pub records: Vec<RecordGroup>,
    /// The lines of the try in the crawl log; empty if the URI is tried again because the try has failed.
    pub lines: Vec<CrawlLogLine>,
    /// The URIs that the response leads to and that belong to the crawl.
    pub candidates: Vec<CandidateUri>,
    /// A URI that counts as a seed from now on, because a seed leads to it by redirects.
    pub seed: Option<Url>,
    /// The content of a page that was fetched well.
    pub content: Option<ResponseContent>,
    /// The duration of the exchange.
    pub duration: Duration,
    /// The moment at which the exchange ended.
    pub ended: Instant,
    /// The bytes of the response as it is recorded.
    pub bytes: u64,
    /// The time that the host asks for with a 429 or 503.
    pub retry_after: Option<Duration>,
    /// The longest answer so far of a URI whose host has broken off, and that is tried again.
    pub cut: Option<Box<FetchedUri>>,
    /// The answer to the question for robots.txt, of such a fetch and its redirects.
    pub robots: Option<RobotsFile>,
    /// The failure of the proxy, if that is why there is no answer.
    pub proxy_failure: Option<ProxyFailure>,
}

/// The answer to the question for robots.txt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RobotsFile {
    /// The status of the response.
    pub status: u16,
    /// The file, as much of it as is read.
    pub file: Vec<u8>,
    /// The place to which the host redirects.
    pub location: Option<Url>,
}

/// A processor of fetched URIs.
pub struct FetchProcessor {
    /// The rules by which URIs belong to the crawl.
    pub scope: RwLock<Scope>,
    /// The rule by which queues get their names.
    pub queues: QueueNaming,
    /// The cost of a URI for its queue.
    pub costs: CostPolicy,
    /// The order of the URIs of a queue.
    pub first: UriOrder,
    /// Where a redirect from a seed makes a seed.
    pub seed_redirects: SeedRedirects,
    /// Whether texts in scripts are taken for links.
    pub reads_scripts: bool,
    /// The hasher of the frontier.
    pub hasher: UriHasher,
    /// The rules by which a try is repeated.
    pub retry: RetryRules,
    /// The longest time of an exchange.
    pub longest: Duration,
    /// The limits of what is read of a document for its links.
    pub limits: ExtractionLimits,
    /// The means to make records.
    pub scratch: RecordWriterPool,
    /// Randomness for the ids of records.
    pub chance: Chance,
    /// The captures of earlier jobs.
    pub known: Option<Arc<KnownCaptures>>,
    recent: Mutex<RecentKeys>,
}

impl std::fmt::Debug for FetchProcessor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FetchProcessor")
            .field("retry", &self.retry)
            .finish_non_exhaustive()
    }
}

/// The settings of a processor.
#[derive(Debug)]
pub struct FetchProcessorSettings<'a> {
    /// The order of the crawl.
    pub order: &'a CrawlOrder,
    /// The rules by which URIs belong to the crawl.
    pub scope: Scope,
    /// The rule by which queues get their names.
    pub queues: QueueNaming,
    /// The hasher of the frontier.
    pub hasher: UriHasher,
    /// The directory for large groups of records.
    pub scratch: PathBuf,
    /// Randomness for the ids of records.
    pub chance: Chance,
    /// The captures of earlier jobs.
    pub known: Option<Arc<KnownCaptures>>,
}

impl FetchedUri {
    /// Returns the length of the response as it is recorded.
    const fn block_length(&self) -> u64 {
        self.fetched.exchange.response.block_length
    }
}

impl FetchProcessor {
    /// Makes a processor that has found no link yet.
    pub fn new(settings: FetchProcessorSettings<'_>) -> Self {
        let FetchProcessorSettings {
            order,
            scope,
            queues,
            hasher,
            scratch,
            chance,
            known,
        } = settings;
        Self {
            scope: RwLock::new(scope),
            queues,
            costs: order.queues.cost,
            first: order.queues.first,
            seed_redirects: order.scope.seed_redirects,
            reads_scripts: order.extraction.scripts,
            hasher,
            retry: order.retry_rules(),
            longest: order.limits.total.duration(),
            limits: ExtractionLimits {
                max_links: order.extraction.max_links,
                obeys_nofollow: order.extraction.obey_nofollow,
                guesses_icon: order.extraction.favicon,
                ..ExtractionLimits::default()
            },
            scratch: RecordWriterPool::new(scratch, order.files.compress),
            chance,
            known,
            recent: Mutex::default(),
        }
    }

    /// Processes a fetched URI. `cut`: the longest answer so far, if its host has broken off before; the longer of two
    /// that are cut is recorded.
    ///
    /// # Errors
    ///
    /// [`ProcessError`] if this machine fails; nothing that a host sends is an error.
    pub fn process_fetch(
        &self,
        mut fetched: FetchedUri,
        mut cut: Option<Box<FetchedUri>>,
        purpose: FetchPurpose,
    ) -> Result<ProcessedUri, ProcessError> {
        let is_cut = self.is_cut(&fetched);
        if let Some(earlier) = cut.as_mut().filter(|_| is_cut)
            && earlier.block_length() > fetched.block_length()
        {
            earlier.uri = fetched.uri.clone();
            earlier.ended = fetched.ended;
            std::mem::swap(earlier.as_mut(), &mut fetched);
        }
        let response = &mut fetched.fetched.exchange.response;
        let status = status_of(response);
        let retry_after = retry_after(response, fetched.fetched.exchange.began);
        let tries = fetched.uri.tries.saturating_add(1);
        // A login takes two requests, however few tries the order leaves.
        let is_answered = fetched.is_answerable && tries < self.retry.max_tries.max(2);
        let after = match purpose {
            FetchPurpose::Page if is_answered => TryDecision::Deferred,
            FetchPurpose::Page => self.retry.after_try(FinishedAttempt {
                status,
                tries,
                retry_after,
                is_cut,
            }),
            FetchPurpose::Robots | FetchPurpose::Login(_) => TryDecision::Finished(status),
        };
        let mut processed = ProcessedUri {
            status,
            after,
            is_lasting: false,
            records: Vec::new(),
            lines: Vec::new(),
            candidates: Vec::new(),
            seed: None,
            content: None,
            duration: fetched.fetched.exchange.duration,
            ended: fetched.ended,
            bytes: response.block_length,
            retry_after,
            cut: None,
            robots: None,
            proxy_failure: None,
        };
        let status = match after {
            TryDecision::Finished(status) => status,
            TryDecision::Deferred => status,
            TryDecision::RetryAfter(_) => {
                processed.cut = if is_cut { Some(Box::new(fetched)) } else { cut };
                return Ok(processed);
            }
        };
        let hops: HopPath = fetched.uri.hops.parse()?;
        // A demand for a user is recorded, and leads nowhere.
        let (extraction, text) = if is_answered {
            (Extraction::default(), Vec::new())
        } else {
            self.extract(&mut fetched, &hops)?
        };
        if purpose == FetchPurpose::Robots {
            processed.robots = robots_file(&mut fetched, &extraction)?;
            processed.candidates = self.list_sitemaps(&fetched, processed.robots.as_ref(), &hops);
        } else {
            (processed.candidates, processed.seed) =
                self.list_candidates(&fetched.uri, &hops, &extraction.links, status);
            let content = content(&fetched, status, &hops, &text);
            processed.content = content.filter(|_| purpose == FetchPurpose::Page);
        }
        let metadata = describe_metadata(&fetched, &extraction);
        let mut line = log_line(&fetched, status, tries, &extraction);
        if status.is_success() {
            let known = self.known.as_ref();
            let known = known.filter(|_| purpose == FetchPurpose::Page);
            let comparison = known.map(|known| known.compare_payload(&fetched, status));
            let comparison = comparison.transpose()?.unwrap_or_default();
            line.annotations.extend(comparison.annotations);
            let group = self.records(&mut fetched, &metadata, comparison.novelty)?;
            processed.records.push(group);
        }
        processed.lines.push(line);
        Ok(processed)
    }

    /// Returns whether a host has broken off or stopped within its answer. One that goes on for as long as the order lets
    /// it would go on the next time, too.
    fn is_cut(&self, fetched: &FetchedUri) -> bool {
        let exchange = &fetched.fetched.exchange;
        match exchange.response.truncation {
            Some(Truncation::Disconnect) => true,
            Some(Truncation::Time) => exchange.duration < self.longest,
            Some(Truncation::Length) | None => false,
        }
    }

    /// Returns the place of a URI among those of its queue that are as urgent.
    pub fn place_in_queue(&self, uri: &str, via: Option<&str>, path: &HopPath) -> u8 {
        self.first.place_uri(self.costs.uri_cost(uri, via), path)
    }

    /// Finds the links of a response, and keeps the start of its text.
    fn extract(
        &self,
        fetched: &mut FetchedUri,
        hops: &HopPath,
    ) -> Result<(Extraction, Vec<u8>), io::Error> {
        let response = &mut fetched.fetched.exchange.response;
        let head = response.head.as_ref();
        // The last field of a cut head is another one than was meant.
        let Some(head) = head.filter(|_| response.ending != ResponseEnding::HeadTooLong) else {
            return Ok((Extraction::default(), Vec::new()));
        };
        let begin = head.raw().len() as u64;
        response.block.seek(SeekFrom::Start(begin))?;
        let input = BufReader::with_capacity(64 << 10, &mut response.block);
        let body = Body::decoded_body(head, input, BodyLimits::default());
        let via = fetched.uri.via.as_ref();
        let via = via.and_then(|via| Url::parse(via).ok());
        let interim = response.interim.iter();
        let interim =
            interim.filter_map(|raw| Head::read_head(&mut raw.as_slice(), raw.len()).ok());
        let interim: Vec<Head> = interim.collect();
        let document = FetchedDocument {
            url: &fetched.url,
            head: Some(head),
            interim: &interim,
            via: via.as_ref(),
            is_manifest: hops.last() == Some(Hop::Manifest),
        };
        let mut kept = PrefixReader {
            source: body,
            begin: Vec::new(),
        };
        let extraction = extract_links(&document, BufReader::new(&mut kept), &self.limits);
        Ok((extraction, kept.begin))
    }

    fn records(
        &self,
        fetched: &mut FetchedUri,
        metadata: &[(String, String)],
        novelty: Novelty,
    ) -> Result<RecordGroup, ProcessError> {
        let request = fetched.fetched.request.recorded_bytes();
        let exchange = &mut fetched.fetched.exchange;
        let ids = [
            record_id(self.chance.random_bytes()?),
            record_id(self.chance.random_bytes()?),
            record_id(self.chance.random_bytes()?),
        ];
        let capture = CapturedExchange {
            uri: &fetched.uri.uri,
            began: exchange.began,
            address: Some(exchange.address.ip()).filter(|address| *address != BEHIND_PROXY),
            request: &request,
            response: &mut exchange.response,
            protocol: exchange.protocol,
            novelty,
            metadata,
            record_ids: ids,
        };
        Ok(capture.into_records(&self.scratch)?)
    }
}

/// Returns the name of the queue of a URI, given the seed that all began with.
pub fn queue_name(names: &QueueNaming, url: &Url, source: Option<&str>) -> String {
    let seed = source.and_then(|source| Url::parse(source).ok());
    names.queue_name(url, seed.as_ref().unwrap_or(url))
}

/// A reader that keeps the start of what is read.
struct PrefixReader<R> {
    source: R,
    begin: Vec<u8>,
}

impl<R: io::Read> io::Read for PrefixReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        let room = MAX_BYTES.saturating_sub(self.begin.len()).min(count);
        self.begin
            .extend_from_slice(buffer.get(..room).unwrap_or_default());
        Ok(count)
    }
}

/// Returns the content of a page, by its words if it is a text.
fn content(
    fetched: &FetchedUri,
    status: FetchStatus,
    hops: &HopPath,
    text: &[u8],
) -> Option<ResponseContent> {
    if status.number() != 200 {
        return None;
    }
    if hops.last() == Some(Hop::Manifest) {
        return Some(ResponseContent::Manifest);
    }
    let response = &fetched.fetched.exchange.response;
    let media_type = response.head.as_ref();
    let media_type = media_type.and_then(|head| MediaType::read_media(head.get("content-type")?));
    let is_text = media_type.is_none_or(|media_type| {
        let essence = media_type.essence;
        essence.starts_with("text/") || essence.contains("xml") || essence.contains("json")
    });
    if is_text {
        return Some(ResponseContent::Text(text_sketch(text, &fetched.url)));
    }
    Some(ResponseContent::of_digest(
        &response.payload_digest.to_string(),
    ))
}
