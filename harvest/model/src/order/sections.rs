//! The sections of an order, with the defaults of Heritrix and NetarchiveSuite.
//!
//! Owns what can be said in an order. The comments here are those of the documented file. What a value means is decided
//! by the policy that it becomes.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::{NonZeroU16, NonZeroU32};
use std::path::PathBuf;

use archive_model::{ByteSize, Period};
use harvest_policy::address::AddressNetwork;
use harvest_policy::cost::{CostPolicy, UriOrder};
use harvest_policy::queue_name::QueueKind;
use harvest_policy::surt::SurtPrefix;
use harvest_policy::traps::TrapExpression;
use serde::{Deserialize, Serialize};
use url::Url;

use super::header_field::HeaderFieldText;
use super::name_server::NameServer;
use super::proxy::HttpProxy;
use super::section::section;
use crate::text;

/// The part of a site that a seed stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScopeKind {
    /// The domain under its public suffix, with all its hosts.
    Domain,
    /// The host and port of the seed.
    Host,
    /// The directory of the seed on its host.
    Prefix,
}

/// The targets of redirects from seeds that count as seeds. The page that a seed is redirected to is captured in any
/// case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SeedRedirects {
    /// Targets in the registered domain of the seed.
    SameSite,
    /// Targets wherever they lie, each with its host alone.
    Host,
    /// None.
    Off,
}

/// The obedience to the rules of robots.txt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RobotsPolicy {
    /// The rules are kept (RFC 9309).
    Obey,
    /// The file is fetched and documented, and excludes nothing.
    Ignore,
}

impl RobotsPolicy {
    /// Returns the word in the order and in the documentation of a crawl.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Obey => "obey",
            Self::Ignore => "ignore",
        }
    }
}

/// The cases in which a page is fetched by HTTP/2. Its records then no longer have the bytes of the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Http2Use {
    /// Never: a server that refuses HTTP/1.1 is not harvested.
    Never,
    /// HTTP/2 is spoken where a server refuses HTTP/1.1.
    WhenNeeded,
    /// HTTP/2 is spoken wherever a server offers it.
    Always,
}

/// The hosts that are spoken to by TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TlsUse {
    /// Those that speak any version from 1.0 on, with any suite that encrypts.
    Any,
    /// Those that speak versions 1.2 and 1.3, with suites of today.
    Modern,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "QueueKind", rename_all = "kebab-case")]
enum QueueKindText {
    Domain,
    Seed,
    Host,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "CostPolicy", rename_all = "kebab-case")]
enum CostPolicyText {
    Unit,
    Surplus,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "UriOrder", rename_all = "kebab-case")]
enum UriOrderText {
    Cost,
    Hops,
}

section! {
    /// The URIs that belong to the crawl. The rules are asked in a fixed order, and the last one with an opinion
    /// decides.
    ScopeSettings {
        /// The part of a site that a seed stands for: "domain", "host" or "prefix" (its directory).
        kind: ScopeKind = ScopeKind::Domain,
        /// Which targets of a seed's redirects (`Location`, or a refresh of its page) count as seeds: "same-site" (those
        /// in its own domain), "host" (wherever they lie, each with its host: for sites that have moved) or "off". The
        /// page that the seed leads to is captured in any case.
        seed_redirects: SeedRedirects = SeedRedirects::SameSite,
        /// The most hops from a seed.
        max_hops: usize = 20,
        /// The most hops from a page to its parts (images, style sheets), wherever they lie; redirects are not counted.
        max_embed_hops: usize = 2,
        /// The most of these that may be guesses from scripts.
        max_speculative_hops: usize = 1,
        /// The most segments of a path.
        max_path_segments: usize = 20,
        /// The most times that the same segments of a path may follow each other.
        max_path_repeats: usize = 2,
        /// Prefixes in SURT form that are accepted beside those of the seeds, such as `http://(dk,example,`.
        #[serde(with = "text::list")]
        accept: Vec<SurtPrefix> = Vec::new(),
        /// Regular expressions; a URI is accepted, too, if all of it matches one.
        #[serde(with = "text::list")]
        accept_expressions: Vec<TrapExpression> = Vec::new(),
        /// Prefixes in SURT form that are rejected.
        #[serde(with = "text::list")]
        reject: Vec<SurtPrefix> = Vec::new(),
        /// Crawler traps: regular expressions; a URI is rejected if all of it matches one.
        #[serde(with = "text::list")]
        traps: Vec<TrapExpression> = Vec::new(),
    }
}

section! {
    /// The politeness to one address, at which many hosts may live.
    AddressPoliteness {
        /// The most requests at a time; never fewer than `queues.connections`.
        connections: NonZeroU16 = NonZeroU16::MIN.saturating_add(3),
        /// The pause of each of these connections after a request, where that of its host is not shorter.
        min_delay: Period = Period::from_millis(200),
    }
}

section! {
    /// The pause of a host after each fetch.
    PolitenessSettings {
        /// The pause as a multiple of the time that the fetch took.
        delay_factor: f64 = 5.0,
        /// The shortest pause.
        min_delay: Period = Period::from_secs(3),
        /// The longest pause that comes from the factor.
        max_delay: Period = Period::from_secs(30),
        /// The longest Crawl-delay of a robots.txt that is kept; a longer one counts as this.
        max_crawl_delay: Period = Period::from_secs(300),
        /// The most bytes a second from one host, over a fetch and its pause.
        max_bandwidth: Option<ByteSize> = None,
        /// The most connections to one address, at which many hosts may live, and the pause of each of them after a
        /// request (if the pause of the host is not shorter). Crawl-delay and slowness of a host are its own. Queues by
        /// seed ask each address as they would ask one host.
        address: AddressPoliteness = AddressPoliteness::default(),
    }
}

section! {
    /// The rules of robots.txt (RFC 9309).
    RobotsSettings {
        /// "obey" or "ignore".
        policy: RobotsPolicy = RobotsPolicy::Obey,
        /// The name of the crawler in robots.txt: letters, "-" and "_". The user agent must contain it.
        agent: String = "holdfast".to_owned(),
        /// The time that a robots.txt holds before it is fetched again.
        validity: Period = Period::from_secs(24 * 60 * 60),
    }
}

section! {
    /// The queues of URIs, and the limits of each of them.
    QueueSettings {
        /// The name of a queue: the "domain" of a URI, the domain of the "seed" that led to it, or its "host".
        #[serde(with = "QueueKindText")]
        by: QueueKind = QueueKind::Domain,
        /// A list of public suffixes in place of the one that is built in, in the format of publicsuffix.org: it says
        /// what a domain is.
        public_suffixes: Option<PathBuf> = None,
        /// The most requests at a time in one queue.
        connections: NonZeroU16 = NonZeroU16::MIN,
        /// The cost of a URI: "unit" (1), or "surplus" (1 more with a query, 2 more if the page that led to it differs
        /// by its query only).
        #[serde(with = "CostPolicyText")]
        cost: CostPolicy = CostPolicy::Unit,
        /// Which URIs come first: those of less "cost", or those that fewer "hops" led to. Redirects and the parts of a
        /// page come before other pages.
        #[serde(with = "UriOrderText")]
        first: UriOrder = UriOrder::Cost,
        /// The rank of a queue, from 0 to 255: it waits while queues of a smaller one have URIs that may be fetched.
        precedence: u8 = 1,
        /// The cost after which a queue makes way for others.
        session_budget: u64 = 3000,
        /// The cost of a failure on top of that.
        error_penalty: u64 = 100,
        /// The most cost of a queue at all: tries are counted.
        total_budget: Option<u64> = None,
        /// The most objects of a queue.
        max_objects: Option<u64> = None,
        /// The most bytes of a queue, as they are recorded.
        max_bytes: Option<ByteSize> = None,
        /// Whether `max_objects` counts what was fetched (a quota), or every try (a budget).
        objects_by_quota: bool = true,
    }
}

section! {
    /// The limits of the whole job and of each fetch.
    LimitSettings {
        /// The most objects of the job.
        max_objects: Option<u64> = None,
        /// The most bytes of the job, as they are recorded.
        max_bytes: Option<ByteSize> = None,
        /// The most bytes a second of the whole job; slower fetches take longer, as `total` counts it.
        max_bandwidth: Option<ByteSize> = None,
        /// The longest time of the job.
        max_time: Option<Period> = None,
        /// The longest time without a finished URI, while only tries that failed before are left: then the crawl ends.
        idle: Period = Period::from_secs(30 * 60),
        /// The most fetches at a time.
        max_fetches: NonZeroU16 = NonZeroU16::MIN.saturating_add(49),
        /// The longest wait for a connection, and for its TLS handshake.
        connect: Period = Period::from_secs(20),
        /// The longest wait for the next byte.
        stall: Period = Period::from_secs(20),
        /// The longest time of a fetch.
        total: Period = Period::from_secs(20 * 60),
        /// The most bytes of the head of a response.
        max_head: ByteSize = ByteSize::from_bytes(64 << 10),
        /// The most bytes of its body; what is behind them is cut off and said.
        max_body: Option<ByteSize> = None,
        /// The most bytes of the bodies of media types, if that is less, such as `{ "video/*" = "50 MB", "application/zip" =
        /// "0 B" }`. An exact type goes before "video/*", and this before "*/*".
        max_body_by_type: BTreeMap<String, ByteSize> = BTreeMap::new(),
    }
}

section! {
    /// Failures that pass: no address, no connection, "come back later".
    RetrySettings {
        /// The most tries of one URI, the first one included.
        max_tries: NonZeroU32 = NonZeroU32::MIN.saturating_add(2),
        /// The pause before the second try of a URI; its queue goes on meanwhile. A host that cannot be reached, or is too
        /// busy, rests for as long.
        first_delay: Period = Period::from_secs(5),
        /// The pause before each further try. A host that cannot be reached for `max_tries` times this is given up.
        delay: Period = Period::from_secs(5 * 60),
        /// The longest pause that a host may ask for (Retry-After).
        max_retry_after: Period = Period::from_secs(60 * 60),
    }
}

section! {
    /// The requests.
    HttpSettings {
        /// The user agent. "{version}" is the version of the crawler, "{contact}" the contact.
        user_agent: String = "Mozilla/5.0 (compatible; holdfast/{version}; +{contact})".to_owned(),
        /// A page about the harvest, or "mailto:" and an address: without one nothing is fetched but from this machine.
        contact: Option<Url> = None,
        /// A mail address for the field From.
        from: Option<String> = None,
        /// Further fields of every request, such as "Accept-Language: da, en;q=0.5". `Accept` takes the place of the one
        /// that is sent otherwise.
        #[serde(with = "text::list")]
        fields: Vec<HeaderFieldText> = Vec::new(),
        /// The address of this machine that hosts see, where it has several.
        source_address: Option<IpAddr> = None,
        /// The HTTP proxy by which all hosts are asked, such as `http://proxy.example.dk:3128`. It alone looks up their
        /// addresses, and guards those that are not of the public web: `[networks]` and `politeness.address` hold for
        /// addresses in URIs only, and records do not name any.
        #[serde(with = "text::optional")]
        proxy: Option<HttpProxy> = None,
        /// Whether compressed responses are asked for. They are recorded as they come.
        accept_compression: bool = false,
        /// The hosts that are spoken to by TLS: "any" (also those that speak nothing else than TLS 1.0 and 1.1 or suites that
        /// were given up: they are asked again by the system's OpenSSL), or "modern" (TLS 1.2 and 1.3).
        tls: TlsUse = TlsUse::Any,
        /// HTTP/2: "never", "when-needed" (where a server refuses HTTP/1.1) or "always".
        http2: Http2Use = Http2Use::WhenNeeded,
        /// Whether cookies are kept and sent (RFC 6265), while the crawl runs; a resumed crawl begins without any.
        cookies: bool = true,
    }
}

section! {
    /// The links in what was fetched.
    ExtractionSettings {
        /// Whether links are left that a page asks not to follow: `nofollow` in its `robots` meta element, in
        /// `X-Robots-Tag`, or in the `rel` of a link. Parts of a page are fetched in any case.
        obey_nofollow: bool = false,
        /// Whether `/favicon.ico` is fetched for pages that name no icon, as browsers do to show it beside their names.
        favicon: bool = true,
        /// Whether texts in scripts are taken for links.
        scripts: bool = true,
        /// The most links of one document.
        max_links: usize = 6000,
    }
}

section! {
    /// Patterns of URIs that only make more of themselves (calendars, session ids): they are put under quarantine.
    QuarantineSettings {
        /// The pages of one pattern that repeat themselves until it is put under quarantine; 0 for never.
        after_pages: u32 = 200,
        /// The pages of patterns under quarantine that are fetched of each host all the same, when its queue has nothing
        /// else left: only those count that bring nothing new. What is left then is held back and told; a file NAME.free
        /// frees it, after the end, too.
        trial_pages: u32 = 500,
    }
}

section! {
    /// The archive files.
    FileSettings {
        /// The size after which a new file is begun.
        max_size: ByteSize = ByteSize::from_bytes(1_000_000_000),
        /// Whether each record is compressed by itself (gzip).
        compress: bool = true,
    }
}

section! {
    /// Responses that were archived before.
    DedupSettings {
        /// The index of earlier jobs, made by `holdfast index dedup`.
        file: Option<PathBuf> = None,
        /// Whether text is looked up too.
        all: bool = false,
    }
}

section! {
    /// Addresses that are no place of the public web: loopback, private, link-local.
    NetworkSettings {
        /// Networks that may be crawled whatever they are, such as "10.20.0.0/16". Seeds that are addresses are
        /// allowed.
        #[serde(with = "text::list")]
        allow: Vec<AddressNetwork> = Vec::new(),
    }
}

section! {
    /// The names of hosts.
    DnsSettings {
        /// Name servers, such as "127.0.0.1:53"; without one those of this machine.
        #[serde(with = "text::list")]
        servers: Vec<NameServer> = Vec::new(),
        /// The longest time that an address holds before it is asked for again; it holds for as long as the name server
        /// says, and for a minute at least.
        validity: Period = Period::from_secs(6 * 60 * 60),
    }
}
