//! The work that follows a fetch: its records, its line in the crawl log, and the URIs that it leads to.
//!
//! Runs on threads beside the fetches; reads the body once for its links and once for its records. Owns which status a try has,
//! which lines its `metadata` record has, and which of the links belong to the crawl. Writes nothing but temporary files.

use std::io::{self, BufReader, Seek as _, SeekFrom};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

use archive_daemon::clock::{Chance, NoChance};
use archive_formats::crawl_log::CrawlLogLine;
use archive_formats::http::{Body, Ending, Limits as BodyLimits, MediaType};
use archive_formats::warc::WriteError;
use harvest_extraction::{Document, Extraction, Limits as ExtractionLimits, extract};
use harvest_model::Order;
use harvest_policy::cost::{CostPolicy, UriOrder};
use harvest_policy::hops::{Hop, HopPath, InvalidHop};
use harvest_policy::quarantine::{Content, MAX_BYTES, words};
use harvest_policy::queue_name::QueueNames;
use harvest_policy::scope::Scope;
use harvest_policy::status::{AfterTry, FetchStatus, RetryRules};
use index_dedup::{DedupError, EarlierCapture};
use url::Url;

use self::describe::{line, metadata, retry_after, robots_file, status_of};
pub use self::novelty::KnownCaptures;

use crate::capture::{Capture, CaptureError, Novelty, RecordGroup, Scratch, record_id};
use crate::fetch::Fetched;
use crate::frontier::{Candidate, FrontierUri, RecentKeys, UriHasher};

mod candidates;
mod describe;
mod novelty;

/// The reason why a fetch cannot be worked up.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The records.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// The temporary file of the response.
    #[error("cannot read a response from its temporary file: {0}; see to the disk of this machine")]
    Spool(#[from] io::Error),
    /// The hops that led to the URI, as the frontier has them.
    #[error("the hops in the frontier of the crawl: {0}")]
    Hops(#[from] InvalidHop),
    /// No randomness for the ids of records.
    #[error(transparent)]
    Chance(#[from] NoChance),
    /// The index of earlier captures.
    #[error(transparent)]
    Dedup(#[from] DedupError),
}

impl ProcessError {
    /// Whether the disk of this machine has no room: with room the fetch can be made again.
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
    /// The same, parsed.
    pub url: Url,
    /// The number of the connection, for the crawl log.
    pub connection: u32,
    /// The exchange.
    pub fetched: Fetched,
    /// When it ended.
    pub ended: Instant,
    /// The capture that the request was conditional on.
    pub condition: Option<EarlierCapture>,
    /// Whether the host asks for a user, and the next request can name one.
    pub is_answerable: bool,
}

/// A URI that was worked up.
#[derive(Debug)]
pub struct ProcessedUri {
    /// The status of the try.
    pub status: FetchStatus,
    /// Whether it is tried again, and when.
    pub after: AfterTry,
    /// Whether another try would end as this one, because the host cannot be asked in any way that this crawl has.
    pub is_lasting: bool,
    /// Its records; none if it is tried again because it has failed.
    pub records: Vec<RecordGroup>,
    /// Its lines in the crawl log; none if it is tried again because it has failed.
    pub lines: Vec<CrawlLogLine>,
    /// The URIs that it leads to and that belong to the crawl.
    pub candidates: Vec<Candidate>,
    /// A URI that counts as a seed from now on, because a seed leads to it by redirects.
    pub seed: Option<Url>,
    /// The content of a page that was fetched well.
    pub content: Option<Content>,
    /// The time that the exchange took.
    pub duration: Duration,
    /// When it ended.
    pub ended: Instant,
    /// The bytes of the response as it is recorded.
    pub bytes: u64,
    /// Of robots.txt and its redirects: the answer.
    pub robots: Option<RobotsFile>,
}

/// The answer to the question for robots.txt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RobotsFile {
    /// The status of the response.
    pub status: u16,
    /// As much of the file as is read.
    pub file: Vec<u8>,
    /// Where the host says that it is, with a redirect.
    pub location: Option<Url>,
}

/// Works up fetched URIs.
pub struct Processor {
    /// Which URIs belong to the crawl.
    pub scope: RwLock<Scope>,
    /// The rules by which queues get their names.
    pub queues: QueueNames,
    /// The cost of a URI for its queue.
    pub costs: CostPolicy,
    /// Which URIs of a queue come first.
    pub first: UriOrder,
    /// Whether texts in scripts are taken for links.
    pub reads_scripts: bool,
    /// The hasher of the frontier.
    pub hasher: UriHasher,
    /// When a try is repeated.
    pub retry: RetryRules,
    /// The limits of what is read of a document for its links.
    pub limits: ExtractionLimits,
    /// The means to make records.
    pub scratch: Scratch,
    /// Randomness for the ids of records.
    pub chance: Chance,
    /// The captures of earlier jobs.
    pub known: Option<Arc<KnownCaptures>>,
    recent: Mutex<RecentKeys>,
}

impl std::fmt::Debug for Processor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Processor")
            .field("retry", &self.retry)
            .finish_non_exhaustive()
    }
}

impl Processor {
    /// A processor for an order. `scratch`: where large record groups go.
    pub fn new(
        order: &Order,
        scope: Scope,
        queues: QueueNames,
        hasher: UriHasher,
        scratch: PathBuf,
        chance: Chance,
    ) -> Self {
        Self {
            scope: RwLock::new(scope),
            queues,
            costs: order.queues.cost,
            first: order.queues.first,
            reads_scripts: order.extraction.scripts,
            hasher,
            retry: order.retry_rules(),
            limits: ExtractionLimits {
                max_links: order.extraction.max_links,
                ..ExtractionLimits::default()
            },
            scratch: Scratch::new(scratch, order.files.compress),
            chance,
            known: None,
            recent: Mutex::default(),
        }
    }

    /// Works up a fetched URI.
    ///
    /// # Errors
    ///
    /// [`ProcessError`] if this machine fails; nothing that a host sends is an error.
    pub fn process(
        &self,
        mut fetched: FetchedUri,
        purpose: FetchPurpose,
    ) -> Result<ProcessedUri, ProcessError> {
        let response = &mut fetched.fetched.exchange.response;
        let status = status_of(response);
        let retry_after = retry_after(response, fetched.fetched.exchange.began);
        let tries = fetched.uri.tries.saturating_add(1);
        // A login takes two requests, however few tries the order leaves.
        let is_answered = fetched.is_answerable && tries < self.retry.max_tries.max(2);
        let after = match purpose {
            FetchPurpose::Page if is_answered => AfterTry::Deferred,
            FetchPurpose::Page => self.retry.after_try(status, tries, retry_after),
            FetchPurpose::Robots | FetchPurpose::Login(_) => AfterTry::Finished(status),
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
            robots: None,
        };
        let status = match after {
            AfterTry::Finished(status) => status,
            AfterTry::Deferred => status,
            AfterTry::RetryAfter(_) => return Ok(processed),
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
            processed.candidates = self.sitemaps(&fetched, processed.robots.as_ref(), &hops);
        } else {
            (processed.candidates, processed.seed) =
                self.candidates(&fetched.uri, &hops, &extraction.links, status);
            let content = content(&fetched, status, &hops, &text);
            processed.content = content.filter(|_| purpose == FetchPurpose::Page);
        }
        let metadata = metadata(&fetched, &extraction);
        let mut line = line(&fetched, status, tries, &extraction);
        if status.is_success() {
            let known = self.known.as_ref();
            let known = known.filter(|_| purpose == FetchPurpose::Page);
            let comparison = known.map(|known| known.compare(&fetched, status));
            let comparison = comparison.transpose()?.unwrap_or_default();
            line.annotations.extend(comparison.annotations);
            let group = self.records(&mut fetched, &metadata, comparison.novelty)?;
            processed.records.push(group);
        }
        processed.lines.push(line);
        Ok(processed)
    }

    /// The place of a URI among those of its queue that are as urgent.
    pub fn place(&self, uri: &str, via: Option<&str>, path: &HopPath) -> u8 {
        self.first.place(self.costs.cost(uri, via), path)
    }

    /// Finds the links of a response, and keeps the begin of its text.
    fn extract(
        &self,
        fetched: &mut FetchedUri,
        hops: &HopPath,
    ) -> Result<(Extraction, Vec<u8>), io::Error> {
        let response = &mut fetched.fetched.exchange.response;
        let head = response.head.as_ref();
        // The last field of a cut head is another one than was meant.
        let Some(head) = head.filter(|_| response.ending != Ending::HeadTooLong) else {
            return Ok((Extraction::default(), Vec::new()));
        };
        let begin = u64::try_from(head.raw().len()).unwrap_or(u64::MAX);
        response.block.seek(SeekFrom::Start(begin))?;
        let input = BufReader::with_capacity(64 << 10, &mut response.block);
        let body = Body::decoded(head, input, BodyLimits::default());
        let via = fetched.uri.via.as_ref();
        let via = via.and_then(|via| Url::parse(via).ok());
        let document = Document {
            url: &fetched.url,
            head: Some(head),
            via: via.as_ref(),
            is_manifest: hops.last() == Some(Hop::Manifest),
        };
        let mut kept = KeptBegin {
            source: body,
            begin: Vec::new(),
        };
        let extraction = extract(&document, BufReader::new(&mut kept), &self.limits);
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
            record_id(self.chance.bytes()?),
            record_id(self.chance.bytes()?),
            record_id(self.chance.bytes()?),
        ];
        let capture = Capture {
            uri: &fetched.uri.uri,
            began: exchange.began,
            address: exchange.address.ip(),
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

/// The name of the queue of a URI, given the seed that all began with.
pub fn queue_name(names: &QueueNames, url: &Url, source: Option<&str>) -> String {
    let seed = source.and_then(|source| Url::parse(source).ok());
    names.name(url, seed.as_ref().unwrap_or(url))
}

/// A reader that keeps the begin of what is read.
struct KeptBegin<R> {
    source: R,
    begin: Vec<u8>,
}

impl<R: io::Read> io::Read for KeptBegin<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        let room = MAX_BYTES.saturating_sub(self.begin.len()).min(count);
        self.begin
            .extend_from_slice(buffer.get(..room).unwrap_or_default());
        Ok(count)
    }
}

/// The content of a page, by its words if it is a text.
fn content(
    fetched: &FetchedUri,
    status: FetchStatus,
    hops: &HopPath,
    text: &[u8],
) -> Option<Content> {
    if status.number() != 200 {
        return None;
    }
    if hops.last() == Some(Hop::Manifest) {
        return Some(Content::Manifest);
    }
    let response = &fetched.fetched.exchange.response;
    let media_type = response.head.as_ref();
    let media_type = media_type.and_then(|head| MediaType::read(head.get("content-type")?));
    let is_text = media_type.is_none_or(|media_type| {
        let essence = media_type.essence;
        essence.starts_with("text/") || essence.contains("xml") || essence.contains("json")
    });
    if is_text {
        return Some(Content::Words(words(text)));
    }
    let digest = response.payload_digest.to_string();
    Some(Content::Digest(words(digest.as_bytes())))
}
