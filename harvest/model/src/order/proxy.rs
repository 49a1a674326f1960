//! The HTTP proxy of an order.
//!
//! Owns its form: `http://`, a host and a port. Does not speak to it.

use std::fmt;
use std::str::FromStr;

use url::{Host, Url};

/// An HTTP proxy: `http://proxy.example.dk:3128`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpProxy {
    host: Host,
    port: u16,
}

/// A text that is no address of a proxy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no address of a proxy; write for example `http://proxy.example.dk:3128`, without a user and a path"
)]
pub struct InvalidProxy(String);

impl HttpProxy {
    /// Returns the name or the address of the proxy, as systems look it up.
    pub fn host(&self) -> String {
        match &self.host {
            Host::Domain(name) => name.clone(),
            Host::Ipv4(address) => address.to_string(),
            Host::Ipv6(address) => address.to_string(),
        }
    }

    /// Returns the port.
    pub const fn port(&self) -> u16 {
        self.port
    }
}

impl FromStr for HttpProxy {
    type Err = InvalidProxy;

    fn from_str(text: &str) -> Result<Self, InvalidProxy> {
        let invalid = || InvalidProxy(text.to_owned());
        let url = Url::parse(text).map_err(|_not| invalid())?;
        // Port 80 is the one that a URL may leave out.
        let port = url.port_or_known_default();
        let is_bare = url.scheme() == "http"
            && url.path() == "/"
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none();
        match (url.host(), port) {
            (Some(host), Some(port)) if is_bare => Ok(Self {
                host: host.to_owned(),
                port,
            }),
            _ => Err(invalid()),
        }
    }
}

impl fmt::Display for HttpProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a proxy is read as another one, or a text is taken of which a part would be left out.
    #[test]
    fn proxy_is_a_host_and_a_port() {
        for (text, expected) in [
            ("http://proxy.dk:3128", "http://proxy.dk:3128"),
            ("http://PROXY.dk/", "http://proxy.dk:80"),
            ("http://[::1]:8080", "http://[::1]:8080"),
        ] {
            assert_eq!(text.parse::<HttpProxy>().unwrap().to_string(), expected);
        }
        for text in [
            "",
            "proxy.dk:3128",
            "https://proxy.dk:3128",
            "socks5://proxy.dk:1080",
            "http://u:p@proxy.dk:3128",
            "http://proxy.dk:3128/path",
            "http://proxy.dk:3128?q",
        ] {
            assert!(text.parse::<HttpProxy>().is_err(), "{text}");
        }
    }
}
