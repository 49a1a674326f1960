//! The settings of a viewer.

mod collection;
mod proxy;
mod web;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

use archive_daemon::settings::InvalidSettings;
use archive_daemon::{ByteSize, DaemonSettings, Period};
use archive_rpc::RpcSettings;
use documented::DocumentedFields;
use serde::{Deserialize, Serialize};
use viewer_replay::access::{Group, VisitorNetwork, VisitorSettings};
use viewer_replay::cdx_server::WalkLimit;

pub use collection::{AccessWord, CollectionSettings, EmbargoSettings, PeriodSettings};
pub use viewer_proxy::ProxySettings;
pub use web::WebSettings;
pub(crate) use web::host_name;

/// The name of the collection that there is when no other is set: the whole archive.
pub const DEFAULT_COLLECTION: &str = "all";

/// Everything in the settings file of a viewer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Logs, metrics, stop.
    #[serde(default)]
    pub daemon: DaemonSettings,
    /// The certificate of the viewer, `viewer/<name>`, and the address that answers questions about its health.
    pub rpc: RpcSettings,
    /// The addresses of the archive and the index.
    pub viewer: ViewerSettings,
    /// The replay listener.
    #[serde(default)]
    pub replay: ReplaySettings,
    /// The pages for people, on a host of their own. Without it there are no pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web: Option<WebSettings>,
    /// The proxy, by which browsers and tools see the archive where they ask for the web; without this section there is
    /// no proxy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<ProxySettings>,
    /// The groups of visitors. Has to be there when a listener is reachable from other machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<AccessSettings>,
    /// The collections; without any there is one of the whole archive, `all`.
    #[serde(default, rename = "collection")]
    #[documented_fields(rename = "collection")]
    pub collections: Vec<CollectionSettings>,
}

/// The section `[viewer]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields)]
pub struct ViewerSettings {
    /// The address of the repository, `host:port`.
    pub repository: String,
    /// The address of the index, `host:port`.
    pub index: String,
    /// The trust file: whose admissions count.
    pub trust: PathBuf,
}

/// The section `[replay]`: where archived bytes are handed out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct ReplaySettings {
    /// The address that replay listens on. Port 0 takes a free one, which is logged.
    pub listen: SocketAddr,
    /// The URL under which visitors reach replay, such as `https://replay.example.org`; without it, each request's own
    /// `Host`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The certificate of replay for the names of its hosts, PEM. Needed beyond loopback.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<PathBuf>,
    /// The private key of the certificate, PEM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
    /// The answer of a `TimeGate`: the capture itself, or a redirect to it.
    pub timegate: TimeGateAnswer,
    /// A service worker to serve in place of our own: a file of `wabac.js`, which the operator supplies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_worker: Option<PathBuf>,
    /// The longest target of a request, in bytes. An archived URL of 10,000 bytes has room, also where all of them are
    /// escaped and their escapes are escaped again, as in a path. HTTP/1 ends at 65,534.
    pub longest_url: ByteSize,
    /// The largest body of a query that comes by POST.
    pub largest_query: ByteSize,
    /// The most captures that one request passes over to count pages. Beyond, it is refused as busy, and the next
    /// request continues the count.
    pub counted_captures: NonZeroU64,
    /// The most connections that are open at once. Further ones wait to be accepted.
    pub connections: NonZeroUsize,
    /// The most requests that are answered at once. Further ones are refused as busy.
    pub requests: NonZeroUsize,
    /// The most records that are read at once. Further ones wait for their turn.
    pub records: NonZeroUsize,
    /// The longest time that a client may take to send the head of a request, and that a handshake may last.
    pub head_time: Period,
    /// The longest time that a request waits for the first byte of its answer.
    pub answer_time: Period,
    /// The longest time that a client may leave an answer unread.
    pub unread_time: Period,
}

/// The answer of a `TimeGate`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeGateAnswer {
    /// 200 with the capture and its `Content-Location`, as pywb does.
    #[default]
    Content,
    /// 302 to the capture.
    Redirect,
}

impl Default for ReplaySettings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            url: None,
            certificate: None,
            key: None,
            timegate: TimeGateAnswer::default(),
            service_worker: None,
            longest_url: ByteSize::from_bytes(64 * 1024),
            largest_query: ByteSize::from_bytes(64 * 1024),
            counted_captures: WalkLimit::default().captures,
            connections: nonzero(1024),
            requests: nonzero(256),
            records: nonzero(64),
            head_time: Period::from_secs(10),
            answer_time: Period::from_secs(60),
            unread_time: Period::from_secs(120),
        }
    }
}

const fn nonzero(number: usize) -> NonZeroUsize {
    match NonZeroUsize::new(number) {
        Some(number) => number,
        None => NonZeroUsize::MIN,
    }
}

/// The section `[access]`: who visitors are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct AccessSettings {
    /// The proxies whose `X-Pywb-ACL-User` and `X-Forwarded-For` are believed: addresses or networks.
    pub trusted_proxies: Vec<String>,
    /// Groups by network.
    #[serde(rename = "network", skip_serializing_if = "Vec::is_empty")]
    #[documented_fields(rename = "network")]
    pub networks: Vec<NetworkSettings>,
}

/// An entry `[[access.network]]`: the visitors of a network are in a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields)]
pub struct NetworkSettings {
    /// The network, such as `10.1.0.0/16`, or one address.
    pub network: String,
    /// The group of the visitors.
    pub group: String,
}

impl Settings {
    /// Checks that the settings can work together.
    ///
    /// # Errors
    ///
    /// Fails with the first setting that cannot be used.
    pub fn check(&self) -> Result<(), InvalidSettings> {
        self.replay.check()?;
        if let Some(web) = &self.web {
            web.check(&self.replay)?;
        }
        self.visitor_settings()?;
        let mut names = BTreeSet::new();
        for collection in &self.collections {
            collection.check()?;
            if !names.insert(&collection.name) {
                return Err(InvalidSettings::new(format!(
                    "there are two collections `{}`; give one of them another name",
                    collection.name
                )));
            }
        }
        self.check_proxy()?;
        self.check_reach()
    }

    /// Returns the groups of visitors.
    ///
    /// # Errors
    ///
    /// Fails when a text is no network or no group.
    pub fn visitor_settings(&self) -> Result<VisitorSettings, InvalidSettings> {
        let Some(access) = &self.access else {
            return Ok(VisitorSettings::default());
        };
        let networks = access.networks.iter().map(|own| {
            let group: Group = own.group.parse().map_err(|error| {
                InvalidSettings::new(format!(
                    "cannot use access.network {}: {error}",
                    own.network
                ))
            })?;
            Ok((parse_network(&own.network)?, group))
        });
        let proxies = access.trusted_proxies.iter();
        Ok(VisitorSettings {
            networks: networks.collect::<Result<_, InvalidSettings>>()?,
            trusted_proxies: proxies
                .map(|proxy| parse_network(proxy))
                .collect::<Result<_, _>>()?,
        })
    }

    /// Returns the collections, with the one that there is when none is set.
    pub fn all_collections(&self) -> Vec<CollectionSettings> {
        if self.collections.is_empty() {
            vec![CollectionSettings::whole_archive()]
        } else {
            self.collections.clone()
        }
    }

    /// Refuses a listener that other machines reach, if it is not encrypted or it was not decided what they see.
    fn check_reach(&self) -> Result<(), InvalidSettings> {
        let replay = &self.replay;
        self.check_listener("replay", replay.listen, replay.certificate.is_some())?;
        match &self.web {
            Some(web) => self.check_listener("web", web.listen, web.certificate.is_some()),
            None => Ok(()),
        }
    }

    fn check_listener(
        &self,
        section: &'static str,
        listen: SocketAddr,
        has_tls: bool,
    ) -> Result<(), InvalidSettings> {
        if listen.ip().to_canonical().is_loopback() {
            return Ok(());
        }
        if !has_tls {
            return Err(InvalidSettings::new(format!(
                "{section}.listen is {listen}, which other machines reach: set {section}.certificate and {section}.key, or \
                 listen on 127.0.0.1"
            )));
        }
        if self.access.is_none() || self.collections.is_empty() {
            return Err(undecided_access(section, listen));
        }
        match self
            .collections
            .iter()
            .find(|own| own.default_access.is_none())
        {
            Some(own) => Err(InvalidSettings::new(format!(
                "{section}.listen is {listen}, which other machines reach: collection `{}` needs `default_access`",
                own.name
            ))),
            None => Ok(()),
        }
    }
}

impl ReplaySettings {
    fn check(&self) -> Result<(), InvalidSettings> {
        self.longest_url.refuse_zero("replay.longest_url")?;
        self.largest_query.refuse_zero("replay.largest_query")?;
        self.head_time.refuse_zero("replay.head_time")?;
        self.answer_time.refuse_zero("replay.answer_time")?;
        self.unread_time.refuse_zero("replay.unread_time")?;
        if self.certificate.is_some() != self.key.is_some() {
            return Err(half_pair("replay"));
        }
        if let Some(url) = &self.url
            && !is_origin(url)
        {
            return Err(not_an_origin("replay", url));
        }
        Ok(())
    }
}

/// Other machines reach a listener, and the settings do not say who may see what.
fn undecided_access(section: &str, listen: SocketAddr) -> InvalidSettings {
    InvalidSettings::new(format!(
        "{section}.listen is {listen}, which other machines reach: write a section [access], and `default_access` in each \
         [[collection]], or listen on 127.0.0.1"
    ))
}

fn half_pair(section: &str) -> InvalidSettings {
    InvalidSettings::new(format!(
        "{section}.certificate and {section}.key belong together; set both, or neither"
    ))
}

/// Links could not begin with this URL.
fn not_an_origin(section: &str, url: &str) -> InvalidSettings {
    InvalidSettings::new(format!(
        "{section}.url is {url:?}; it must be like https://archive.example.org, without a path"
    ))
}

fn parse_network(text: &str) -> Result<VisitorNetwork, InvalidSettings> {
    text.parse()
        .map_err(|error| InvalidSettings::new(format!("cannot use [access]: {error}")))
}

/// Returns whether a text is a scheme and an authority, and nothing else.
fn is_origin(url: &str) -> bool {
    let Ok(parsed) = url.parse::<axum::http::Uri>() else {
        return false;
    };
    let is_web = matches!(parsed.scheme_str(), Some("http" | "https"));
    let Some(authority) = parsed.authority() else {
        return false;
    };
    // Nothing that could end a directive of a policy in which it stands.
    let is_plain = authority.as_str().bytes().all(|byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':' | b'[' | b']')
    });
    is_web && is_plain && url.ends_with(authority.as_str())
}

#[cfg(test)]
pub(crate) mod tests;
