//! The work that follows a fetch: its records, its line in the crawl log, and the URIs that it leads to.
//!
//! Runs on threads beside the fetches; reads the body once for its links and once for its records. Owns which status a try has,
//! which lines its `metadata` record has, and which of the links belong to the crawl. Writes nothing but temporary files.

use std::io::{self, BufReader, Seek as _, SeekFrom};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use archive_daemon::clock::{Chance, NoChance};
use archive_formats::crawl_log::CrawlLogLine;
use archive_formats::http::{Body, Ending, Limits as BodyLimits, MediaType};
use harvest_extraction::{Document, Extraction, Limits as ExtractionLimits, Link, extract};
use harvest_model::Order;
use harvest_policy::hops::{Hop, HopPath};
use harvest_policy::quarantine::{Content, MAX_BYTES, words};
use harvest_policy::queue_name::QueueKind;
use harvest_policy::robots::RobotsRules;
use harvest_policy::scope::Scope;
use harvest_policy::status::{AfterTry, FetchStatus, RetryRules};
use index_dedup::{DedupError, EarlierCapture};
use url::Url;

use self::describe::{line, metadata, retry_after, robots_file, status_of};
pub use self::novelty::KnownCaptures;

use crate::capture::{Capture, CaptureError, Novelty, RecordGroup, Scratch, record_id};
use crate::fetch::Fetched;
use crate::frontier::{Candidate, FrontierUri, RecentKeys, Urgency, UriHasher};

mod describe;
mod novelty;

/// The most redirects from a seed whose target counts as a seed.
const MOST_SEED_REDIRECTS: usize = 5;

/// Why a fetch cannot be worked up.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The records.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// The temporary file of the response.
    #[error("cannot read a response from its temporary file: {0}; see to the disk of this machine")]
    Spool(#[from] io::Error),
    /// No randomness for the ids of records.
    #[error(transparent)]
    Chance(#[from] NoChance),
    /// The index of earlier captures.
    #[error(transparent)]
    Dedup(#[from] DedupError),
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
}

/// A URI that was worked up.
#[derive(Debug)]
pub struct ProcessedUri {
    /// The status of the try.
    pub status: FetchStatus,
    /// Whether it is tried again, and when.
    pub after: AfterTry,
    /// Its records; none if it is tried again.
    pub records: Vec<RecordGroup>,
    /// Its lines in the crawl log; none if it is tried again.
    pub lines: Vec<CrawlLogLine>,
    /// The URIs that it leads to and that belong to the crawl.
    pub candidates: Vec<Candidate>,
    /// A URI that counts as a seed from now on, because a seed leads to it by redirects.
    pub seed: Option<Url>,
    /// The content of a page that was fetched well.
    pub content: Option<Content>,
    /// How long the exchange took.
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
    /// Which part of a URI names its queue.
    pub queues: QueueKind,
    /// Whether texts in scripts are taken for links.
    pub reads_scripts: bool,
    /// The hasher of the frontier.
    pub hasher: UriHasher,
    /// When a try is repeated.
    pub retry: RetryRules,
    /// How much is read of a document for its links.
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
        hasher: UriHasher,
        scratch: PathBuf,
        chance: Chance,
    ) -> Self {
        Self {
            scope: RwLock::new(scope),
            queues: order.queue_kind(),
            reads_scripts: order.extraction.scripts,
            hasher,
            retry: order.retry_rules(),
            limits: ExtractionLimits {
                max_links: order.extraction.max_links,
                ..ExtractionLimits::default()
            },
            scratch: Scratch::new(scratch),
            chance,
            known: None,
            recent: Mutex::default(),
        }
    }

    /// Works up a fetched URI. `is_robots`: it is a robots.txt that is asked for before other URIs of its host.
    ///
    /// # Errors
    ///
    /// [`ProcessError`] if this machine fails; nothing that a host sends is an error.
    pub fn process(
        &self,
        mut fetched: FetchedUri,
        is_robots: bool,
    ) -> Result<ProcessedUri, ProcessError> {
        let response = &mut fetched.fetched.exchange.response;
        let status = status_of(response);
        let retry_after = retry_after(response, fetched.fetched.exchange.began);
        let tries = fetched.uri.tries.saturating_add(1);
        let after = if is_robots {
            AfterTry::Finished(status)
        } else {
            self.retry.after_try(status, tries, retry_after)
        };
        let mut processed = ProcessedUri {
            status,
            after,
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
        let AfterTry::Finished(status) = after else {
            return Ok(processed);
        };
        let hops: HopPath = fetched.uri.hops.parse().unwrap_or_default();
        let (extraction, text) = self.extract(&mut fetched, &hops)?;
        if is_robots {
            processed.robots = Some(robots_file(&mut fetched, &extraction)?);
            processed.candidates = self.sitemaps(&fetched, processed.robots.as_ref(), &hops);
        } else {
            (processed.candidates, processed.seed) =
                self.candidates(&fetched.uri, &hops, &extraction.links, status);
            processed.content = content(&fetched, status, &hops, &text);
        }
        let metadata = metadata(&fetched, &extraction);
        let mut line = line(&fetched, status, tries, &extraction);
        if status.is_success() {
            let known = self.known.as_ref().filter(|_| !is_robots);
            let comparison = known.map(|known| known.compare(&fetched, status));
            let comparison = comparison.transpose()?.unwrap_or_default();
            line.annotations.extend(comparison.annotations);
            let group = self.records(&mut fetched, &metadata, comparison.novelty)?;
            processed.records.push(group);
        }
        processed.lines.push(line);
        Ok(processed)
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

    /// The links that belong to the crawl and were not found lately.
    fn candidates(
        &self,
        from: &FrontierUri,
        hops: &HopPath,
        links: &[Link],
        status: FetchStatus,
    ) -> (Vec<Candidate>, Option<Url>) {
        let mut found = Vec::new();
        let mut seed = None;
        let is_redirect = matches!(status.number(), 300..=399);
        let own_key = self.hasher.key_of_text(&from.uri);
        let scope = self.scope.read().unwrap_or_else(PoisonError::into_inner);
        for link in links {
            if link.hop == Hop::Speculative && !self.reads_scripts {
                continue;
            }
            let path = hops.then(link.hop);
            let mut key = self.hasher.key_of(&link.url);
            if link.hop == Hop::Redirect && key == own_key && link.url.as_str() != from.uri {
                key = self.hasher.key_of_redirect(&link.url);
            }
            let becomes_seed = is_redirect
                && link.hop == Hop::Redirect
                && path.is_redirected_seed()
                && path.len() <= MOST_SEED_REDIRECTS;
            if becomes_seed {
                seed = Some(link.url.clone());
            } else {
                let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
                if recent.contains(&key) {
                    continue;
                }
                if !scope.decide(&link.url, &path).is_accepted() {
                    continue;
                }
                recent.insert(key);
            }
            found.push(self.candidate(from, &link.url, &path, key));
        }
        (found, seed)
    }

    fn candidate(
        &self,
        from: &FrontierUri,
        url: &Url,
        path: &HopPath,
        key: crate::frontier::SeenKey,
    ) -> Candidate {
        let within = path.within_page();
        let is_near = path.last() == Some(Hop::Redirect) || within.len() == 1;
        Candidate {
            queue: queue_name(self.queues, url, from.source.as_deref()),
            key,
            cost: 1,
            uri: FrontierUri {
                uri: url.as_str().to_owned(),
                hops: path.to_string(),
                via: Some(from.uri.clone()),
                source: from.source.clone(),
                urgency: if is_near {
                    Urgency::Medium
                } else {
                    Urgency::Normal
                },
                tries: 0,
            },
        }
    }

    /// The sitemaps that a robots.txt names.
    fn sitemaps(
        &self,
        fetched: &FetchedUri,
        robots: Option<&RobotsFile>,
        hops: &HopPath,
    ) -> Vec<Candidate> {
        let Some(file) = robots.filter(|file| file.status == 200) else {
            return Vec::new();
        };
        let rules = RobotsRules::parse(&file.file, "");
        let urls = rules.sitemaps().iter();
        let links = urls.filter_map(|text| {
            let url = fetched.url.join(text).ok()?;
            Some(Link {
                url,
                hop: Hop::Manifest,
                context: "robots.txt:Sitemap",
            })
        });
        let links: Vec<Link> = links.collect();
        self.candidates(&fetched.uri, hops, &links, FetchStatus::from_http(200))
            .0
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
pub fn queue_name(kind: QueueKind, url: &Url, source: Option<&str>) -> String {
    let seed = source.and_then(|source| Url::parse(source).ok());
    let name = kind.name(url, seed.as_ref().unwrap_or(url));
    name.unwrap_or_else(|| url.scheme().to_owned())
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
