//! The settings of the page host, and the rule that pages and replay are on two hosts.
//!
//! Archived pages run scripts. Browsers keep cookies by host, whatever the port, so that pages for people and archived
//! pages never share one.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use archive_daemon::settings::InvalidSettings;
use archive_daemon::{ByteSize, Period};
use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

use super::{ReplaySettings, half_pair, is_origin, nonzero, not_an_origin};

/// The section `[web]`: where pages for people are. Without it there are no pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct WebSettings {
    /// The address that the pages listen on. Port 0 takes a free one, which is logged.
    pub listen: SocketAddr,
    /// The URL under which visitors reach it, such as `https://archive.example.org`; without it, the address of
    /// `listen`. Its host is another one than that of the replay listener.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The certificate of the pages for the names of their hosts, PEM. Needed beyond loopback.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<PathBuf>,
    /// The private key of the certificate, PEM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
    /// The longest target of a request, in bytes. Escapes make an archived URL three times as long as it is, and those
    /// of a path five times.
    pub longest_url: ByteSize,
    /// The most connections that are open at once. Further ones wait to be accepted.
    pub connections: NonZeroUsize,
    /// The most requests that are answered at once. Further ones are refused as busy.
    pub requests: NonZeroUsize,
    /// The longest time that a client may take to send the head of a request, and that a handshake may last.
    pub head_time: Period,
    /// The longest time that a request waits for its page.
    pub answer_time: Period,
    /// The longest time that a client may leave a page unread.
    pub unread_time: Period,
}

impl Default for WebSettings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            url: None,
            certificate: None,
            key: None,
            longest_url: ByteSize::from_bytes(64 * 1024),
            connections: nonzero(1024),
            requests: nonzero(64),
            head_time: Period::from_secs(10),
            answer_time: Period::from_secs(60),
            unread_time: Period::from_secs(120),
        }
    }
}

impl WebSettings {
    pub(super) fn check(&self, replay: &ReplaySettings) -> Result<(), InvalidSettings> {
        self.longest_url.refuse_zero("web.longest_url")?;
        self.head_time.refuse_zero("web.head_time")?;
        self.answer_time.refuse_zero("web.answer_time")?;
        self.unread_time.refuse_zero("web.unread_time")?;
        if self.certificate.is_some() != self.key.is_some() {
            return Err(half_pair("web"));
        }
        if let Some(url) = &self.url
            && !is_origin(url)
        {
            return Err(not_an_origin("web", url));
        }
        for (section, url, listen) in [
            ("web", &self.url, self.listen),
            ("replay", &replay.url, replay.listen),
        ] {
            if url.is_none() && listen.ip().is_unspecified() {
                return Err(InvalidSettings::new(format!(
                    "{section}.listen is {listen}, which is every address of this machine: set {section}.url to the URL \
                     under which visitors reach it; pages and replay are on two hosts"
                )));
            }
        }
        let host = host(self.url.as_deref(), self.listen);
        if host == self::host(replay.url.as_deref(), replay.listen) {
            return Err(InvalidSettings::new(format!(
                "web and replay are both on host `{host}`: archived pages could reach the pages for people, because ports \
                 do not part cookies; give one of them another host by `url`, for example web.url = \
                 \"http://localhost:8080\" and replay.url = \"http://127.0.0.1:8081\""
            )));
        }
        Ok(())
    }
}

/// Returns the host under which a listener is reached, so that two of them can be compared: small letters, no port.
fn host(url: Option<&str>, listen: SocketAddr) -> String {
    let authority = url.and_then(|url| url.split_once("://"));
    match authority {
        Some((_, authority)) => host_name(authority),
        None => listen.ip().to_canonical().to_string(),
    }
}

/// Returns the host of an authority, as it is compared: small letters, no port, no dot at the end, and addresses in one
/// spelling.
pub(crate) fn host_name(authority: &str) -> String {
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if is_port(port) => host,
        _ => authority,
    };
    let bare = host.trim_start_matches('[').trim_end_matches([']', '.']);
    match bare.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().to_string(),
        Err(_not_an_address) => bare.to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if one host in two spellings passes for two.
    #[test]
    fn hosts_are_compared_in_one_spelling() {
        for (authority, expected) in [
            ("Archive.Example.org:8443", "archive.example.org"),
            ("archive.example.org.", "archive.example.org"),
            ("[2001:DB8:0::1]:80", "2001:db8::1"),
            ("[::1]", "::1"),
            ("[::ffff:127.0.0.1]:80", "127.0.0.1"),
            ("127.0.0.1", "127.0.0.1"),
            ("localhost:1", "localhost"),
        ] {
            assert_eq!(host_name(authority), expected, "{authority}");
        }
        let listen = SocketAddr::from(([127, 0, 0, 1], 80));
        assert_eq!(host(None, listen), "127.0.0.1");
        assert_eq!(host(Some("http://LOCALHOST:80"), listen), "localhost");
    }
}
