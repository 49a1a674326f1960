//! The order of a job: how it is to be harvested.
//!
//! Owns the order as a TOML file: unknown keys and bad values are refused with their line and key. A new order has the
//! defaults of Heritrix and NetarchiveSuite, and prints as a file in which every key is explained.

mod change;
mod checks;
mod credential;
mod documentation;
mod header_field;
mod invalid;
mod name_server;
mod overlay;
mod policies;
mod proxy;
mod section;
mod sections;

use serde::{Deserialize, Serialize};

pub use change::{JobActivity, OrderChangeError};
pub use credential::{Credential, LoginForm, Password};
pub use documentation::PrintOrderError;
pub use header_field::{HeaderFieldText, InvalidHeaderText};
pub use invalid::InvalidOrder;
pub use name_server::{InvalidNameServer, NameServer};
pub use overlay::Overlay;
pub use proxy::{HttpProxy, InvalidProxy};
pub use sections::{
    DedupSettings, DnsSettings, ExtractionSettings, FileSettings, Http2Use, HttpSettings,
    LimitSettings, NetworkSettings, PolitenessSettings, QuarantineSettings, QueueSettings,
    RetrySettings, RobotsPolicy, RobotsSettings, ScopeKind, ScopeSettings, SeedRedirects, TlsUse,
};

/// The longest order that is read, in bytes: lists of crawler traps grow long.
pub const MAX_ORDER: usize = 64 << 20;

/// The settings of one crawl.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CrawlOrder {
    /// The URIs that belong to the crawl.
    pub scope: ScopeSettings,
    /// The pause of a host after each fetch.
    pub politeness: PolitenessSettings,
    /// The rules of robots.txt.
    pub robots: RobotsSettings,
    /// The queues of URIs.
    pub queues: QueueSettings,
    /// The limits of the whole job and of each fetch.
    pub limits: LimitSettings,
    /// The tries after failures that may pass.
    pub retry: RetrySettings,
    /// The requests to hosts.
    pub http: HttpSettings,
    /// The links in what was fetched.
    pub extraction: ExtractionSettings,
    /// Patterns of URIs that only make more of themselves.
    pub quarantine: QuarantineSettings,
    /// The archive files.
    pub files: FileSettings,
    /// Responses that were archived before.
    pub dedup: DedupSettings,
    /// Addresses that are no place of the public web.
    pub networks: NetworkSettings,
    /// The names of hosts.
    pub dns: DnsSettings,
    /// Users and passwords.
    #[serde(rename = "credential", skip_serializing_if = "Vec::is_empty")]
    pub credentials: Vec<Credential>,
    /// Other settings for a part of the web.
    #[serde(rename = "overlay", skip_serializing_if = "Vec::is_empty")]
    pub overlays: Vec<Overlay>,
}

impl CrawlOrder {
    /// Reads an order. Keys that are not given have their default.
    ///
    /// # Errors
    ///
    /// [`InvalidOrder`] names the line and the key of the first mistake.
    pub fn parse(text: &str) -> Result<Self, InvalidOrder> {
        if text.len() > MAX_ORDER {
            return Err(InvalidOrder::too_long());
        }
        let order: Self =
            toml::from_str(text).map_err(|error| InvalidOrder::from_toml(&error, text))?;
        order.check().map_err(|error| error.with_line(text))?;
        Ok(order)
    }
}

#[cfg(test)]
mod tests;
