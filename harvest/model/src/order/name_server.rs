//! The address of a name server.
//!
//! Owns its form in an order: an address, with a port if it is not 53. Does not ask the server.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// The port of DNS (RFC 1035 §4.2).
const PORT: u16 = 53;

/// A name server: `127.0.0.1`, `127.0.0.1:5353` or `[::1]:5353`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NameServer(pub SocketAddr);

/// A text that is no address of a name server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no address of a name server; write for example `127.0.0.1:53`")]
pub struct InvalidNameServer(String);

impl FromStr for NameServer {
    type Err = InvalidNameServer;

    fn from_str(text: &str) -> Result<Self, InvalidNameServer> {
        let alone = || {
            text.parse::<IpAddr>()
                .map(|address| SocketAddr::new(address, PORT))
        };
        let address = text.parse().or_else(|_| alone());
        address
            .map(Self)
            .or(Err(InvalidNameServer(text.to_owned())))
    }
}

impl fmt::Display for NameServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
