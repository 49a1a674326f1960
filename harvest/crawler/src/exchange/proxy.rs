//! Connections by an HTTP proxy (RFC 9110 §9.3.6).
//!
//! Owns what a proxy says of itself: that it cannot be used, or that it refuses a host. A proxy is asked for `http` with
//! the whole URI in the request line, and for `https` by a tunnel, in which the session is with the host.

use std::io;

use archive_formats::http::Head;
use harvest_model::order::HttpProxy;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The longest answer of a proxy to a request for a tunnel.
const LONGEST_HEAD: usize = 64 << 10;

/// The status of a proxy that asks who wants to use it.
const AUTHENTICATION_REQUIRED: u16 = 407;

/// The way by a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyWay<'a> {
    /// The proxy.
    pub proxy: &'a HttpProxy,
    /// The host and port of the tunnel; `None`: requests go to the proxy itself.
    pub tunnel_to: Option<&'a str>,
}

/// The failure of a proxy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProxyFailure {
    /// No host can be asked by the proxy.
    #[error("cannot use the proxy {proxy}: {why}")]
    Lost {
        /// The proxy.
        proxy: String,
        /// The reason.
        why: String,
    },
    /// The proxy has broken off, or has not answered as one.
    #[error("the proxy {proxy} opens no tunnel: {why}")]
    NoTunnel {
        /// The proxy.
        proxy: String,
        /// The reason.
        why: String,
    },
    /// The proxy does not let anybody ask for this URI, or has not reached its host.
    #[error("the proxy {proxy} answers {status} in place of the host")]
    Refused {
        /// The proxy.
        proxy: String,
        /// The status of the proxy's answer.
        status: u16,
    },
}

impl ProxyFailure {
    /// Returns whether the host may be at fault: the proxy says that it has not reached it.
    pub const fn is_of_host(&self) -> bool {
        matches!(self, Self::Refused { status, .. } if *status >= 500)
    }

    /// Returns the failure that an answer stands for which came by a proxy; `None`: the answer is the host's. A proxy names
    /// itself as its author in `Proxy-Status` (RFC 9209 §2.1.1), or in the field of Squid.
    pub fn of_answer(proxy: &HttpProxy, head: &Head) -> Option<Self> {
        let status = head.status()?;
        let says_error = head.get("proxy-status").is_some_and(|value| {
            let value = value.to_ascii_lowercase();
            memchr::memmem::find(&value, b"error=").is_some()
        });
        let is_own = says_error || head.get("x-squid-error").is_some();
        if status == AUTHENTICATION_REQUIRED {
            return Some(Self::of_status(proxy, status));
        }
        (is_own && status >= 400).then(|| Self::of_status(proxy, status))
    }

    fn of_status(proxy: &HttpProxy, status: u16) -> Self {
        let proxy = proxy.to_string();
        if status == AUTHENTICATION_REQUIRED {
            let why = "it asks for a user (407), and orders have none; let it know this machine by its address".to_owned();
            return Self::Lost { proxy, why };
        }
        Self::Refused { proxy, status }
    }

    pub(super) fn of_error(proxy: &HttpProxy, error: &io::Error) -> Self {
        Self::Lost {
            proxy: proxy.to_string(),
            why: error.to_string(),
        }
    }
}

/// Asks a proxy for a tunnel to a host and port. What follows on the stream is between this machine and the host.
pub(super) async fn open_tunnel(
    stream: &mut TcpStream,
    proxy: &HttpProxy,
    host_port: &str,
) -> Result<(), ProxyFailure> {
    let asked = async {
        let request = format!("CONNECT {host_port} HTTP/1.1\r\nHost: {host_port}\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        // One byte after the other: the host's begin behind the empty line.
        let mut raw = Vec::new();
        while !raw.ends_with(b"\r\n\r\n") && !raw.ends_with(b"\n\n") {
            if raw.len() >= LONGEST_HEAD {
                return Err(io::Error::other("its answer to CONNECT does not end"));
            }
            raw.push(stream.read_u8().await?);
        }
        let head = Head::read_head(&mut raw.as_slice(), LONGEST_HEAD);
        let status = head.ok().and_then(|head| head.status());
        status.ok_or_else(|| io::Error::other("its answer to CONNECT has no status"))
    };
    let status = asked.await;
    match status {
        Ok(200..=299) => Ok(()),
        Ok(status) => Err(ProxyFailure::of_status(proxy, status)),
        Err(error) => Err(ProxyFailure::NoTunnel {
            proxy: proxy.to_string(),
            why: error.to_string(),
        }),
    }
}
