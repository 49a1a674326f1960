//! The settings of the proxy: the section `[proxy]` of a viewer.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use archive_daemon::settings::InvalidSettings;
use archive_daemon::{ByteSize, Period};
use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

/// The section `[proxy]`: where browsers and tools see the archive where they ask for the web.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields)]
pub struct ProxySettings {
    /// The address that the proxy listens on. Port 0 takes a free one, which is logged.
    pub listen: SocketAddr,
    /// The directory of the proxy's authority, which is made at the first start. Its parent has to be there.
    pub data: PathBuf,
    /// The collection of clients that have chosen no other; without it `all`, or the only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection: Option<String>,
    /// The most connections that are open at once. Further ones wait to be accepted.
    #[serde(default = "default_connections")]
    pub connections: NonZeroUsize,
    /// The longest URL of a request, in bytes. Escapes make one of 10,000 bytes three times as long.
    #[serde(default = "default_longest_url")]
    pub longest_url: ByteSize,
    /// The longest time that a client may take to send the head of a request, and that a handshake may last.
    #[serde(default = "default_head_time")]
    pub head_time: Period,
    /// The longest time that a client may leave an answer unread.
    #[serde(default = "default_unread_time")]
    pub unread_time: Period,
    /// The most clients whose choices and lists of missing URLs are remembered; the longest unused go first.
    #[serde(default = "default_clients")]
    pub clients: NonZeroUsize,
    /// The time for which the choices and the list of a client that asks for nothing are remembered.
    #[serde(default = "default_idle")]
    pub idle: Period,
    /// The most missing URLs that are recorded of one client.
    #[serde(default = "default_missing")]
    pub missing: NonZeroUsize,
    /// The most bytes of missing URLs that are recorded of all clients together.
    #[serde(default = "default_missing_bytes")]
    pub missing_bytes: ByteSize,
}

impl ProxySettings {
    /// Returns settings with all defaults.
    pub fn new(listen: SocketAddr, data: PathBuf) -> Self {
        Self {
            listen,
            data,
            collection: None,
            connections: default_connections(),
            longest_url: default_longest_url(),
            head_time: default_head_time(),
            unread_time: default_unread_time(),
            clients: default_clients(),
            idle: default_idle(),
            missing: default_missing(),
            missing_bytes: default_missing_bytes(),
        }
    }

    /// Makes the error of a collection of the proxy that is not one of `[[collection]]`.
    pub fn unknown_collection(name: &str) -> InvalidSettings {
        InvalidSettings::new(format!(
            "proxy.collection is `{name}`, and there is no such collection; name one of [[collection]]"
        ))
    }

    /// Checks everything that can be known without the other sections.
    ///
    /// # Errors
    ///
    /// Fails with the first setting that cannot be used.
    pub fn check(&self) -> Result<(), InvalidSettings> {
        self.longest_url.refuse_zero("proxy.longest_url")?;
        self.head_time.refuse_zero("proxy.head_time")?;
        self.unread_time.refuse_zero("proxy.unread_time")?;
        self.idle.refuse_zero("proxy.idle")?;
        self.missing_bytes.refuse_zero("proxy.missing_bytes")?;
        Ok(())
    }
}

const fn nonzero(number: usize) -> NonZeroUsize {
    match NonZeroUsize::new(number) {
        Some(number) => number,
        None => NonZeroUsize::MIN,
    }
}

const fn default_connections() -> NonZeroUsize {
    nonzero(1024)
}

fn default_longest_url() -> ByteSize {
    ByteSize::from_bytes(32 * 1024)
}

fn default_head_time() -> Period {
    Period::from_secs(30)
}

fn default_unread_time() -> Period {
    Period::from_secs(120)
}

const fn default_clients() -> NonZeroUsize {
    nonzero(1000)
}

fn default_idle() -> Period {
    Period::from_secs(12 * 60 * 60)
}

const fn default_missing() -> NonZeroUsize {
    nonzero(10_000)
}

fn default_missing_bytes() -> ByteSize {
    ByteSize::from_bytes(64 * 1024 * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a limit of nothing is taken, or the defaults are not sound.
    #[test]
    fn limits_of_nothing_are_refused() {
        let settings = ProxySettings::new(([127, 0, 0, 1], 0).into(), "p".into());
        settings.check().unwrap();
        let mut idle = settings.clone();
        idle.idle = Period::from_secs(0);
        let refusal = idle.check().unwrap_err().to_string();
        assert_eq!(refusal, "proxy.idle must be longer than 0");
        let mut missing = settings;
        missing.missing_bytes = ByteSize::from_bytes(0);
        assert!(missing.check().is_err());
    }
}
