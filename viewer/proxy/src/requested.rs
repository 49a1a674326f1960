//! The meaning of a request: a site, a tunnel to one, or the proxy itself.
//!
//! Owns how the target of a request, the tunnel that it came through and its `Host` become one URL. They have to agree:
//! a request that names one host in a tunnel to another one is refused. Nothing here is connected to.

use std::fmt;

use axum::http::uri::Authority;
use axum::http::{Method, StatusCode, Uri};

/// The hosts of the proxy itself, at which it is controlled. The second one is that of NetarchiveSuite.
pub(crate) const CONTROL_HOSTS: [&str; 2] =
    ["viewerproxy.invalid", "netarchivesuite.viewerproxy.invalid"];

/// A scheme as it can be spoken here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Plain HTTP.
    Http,
    /// HTTP over TLS.
    Https,
    /// FTP, as browsers ask their proxy for it.
    Ftp,
}

impl Scheme {
    fn parse(scheme: &str) -> Option<Self> {
        match scheme.to_ascii_lowercase().as_str() {
            "http" => Some(Self::Http),
            "https" => Some(Self::Https),
            "ftp" => Some(Self::Ftp),
            _ => None,
        }
    }

    const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
            Self::Ftp => 21,
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Ftp => "ftp",
        })
    }
}

/// A host and a port, as a client would connect to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostAndPort {
    /// The host, in lower case; an address of version 6 in brackets.
    pub host: String,
    /// Never 0.
    pub port: u16,
}

impl HostAndPort {
    fn read(authority: &Authority, default_port: Option<u16>) -> Result<Self, InvalidProxyTarget> {
        if authority.as_str().contains('@') {
            return Err(InvalidProxyTarget::UserInfo);
        }
        let host = authority.host().to_ascii_lowercase();
        let named = authority.as_str().get(host.len()..).unwrap_or_default();
        let port = match named {
            // A colon without a number stands for the default, too (RFC 3986, section 3.2.3).
            "" | ":" => default_port.ok_or(InvalidProxyTarget::NoPort)?,
            _ => read_port(named).ok_or(InvalidProxyTarget::Port)?,
        };
        let read = Self { host, port };
        if read.certificate_name().is_empty() {
            return Err(InvalidProxyTarget::NoHost);
        }
        Ok(read)
    }

    /// Returns the host as certificates name it.
    pub fn certificate_name(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }

    fn origin(&self, scheme: Scheme) -> String {
        if self.port == scheme.default_port() {
            format!("{scheme}://{}", self.host)
        } else {
            format!("{scheme}://{}:{}", self.host, self.port)
        }
    }
}

/// Reads the port behind a host. A sign in front of the digits, which the standard library would read, is refused.
fn read_port(named: &str) -> Option<u16> {
    let digits = named.strip_prefix(':')?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|port| is_number && *port != 0)
}

/// The way by which a request came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestChannel {
    /// The request came at the port of the proxy.
    Open,
    /// The request came through a tunnel to a host.
    Tunnel(Tunnel),
}

/// A tunnel that a client believes to end at a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tunnel {
    /// The scheme that is spoken in the tunnel.
    pub scheme: Scheme,
    /// The host at which the client believes it to end.
    pub to: HostAndPort,
    /// The user name with which the tunnel was opened.
    pub user: Option<Box<str>>,
}

/// The URL of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteUrl {
    /// The URL as it is looked up.
    pub url: String,
    /// The scheme, host and port of the URL, as browsers write them into `Origin`.
    pub origin: String,
    /// The host of the URL, in lower case.
    pub host: String,
    /// The path and query of the URL.
    pub path: String,
}

impl SiteUrl {
    fn new(scheme: Scheme, at: &HostAndPort, path: &str) -> Self {
        let origin = at.origin(scheme);
        let path = match path {
            "" => "/".to_owned(),
            query if query.starts_with('?') => format!("/{query}"),
            path => path.to_owned(),
        };
        Self {
            url: format!("{origin}{path}"),
            origin,
            host: at.host.clone(),
            path,
        }
    }

    /// Returns whether the URL is of the proxy itself. No archived page has such an origin, at no port.
    pub fn is_control(&self) -> bool {
        CONTROL_HOSTS.contains(&self.host.trim_end_matches('.'))
    }
}

/// The meaning of the target of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TargetMeaning {
    /// A tunnel to a host.
    OpenTunnel(HostAndPort),
    /// A page, an image or anything else of a site.
    Site(SiteUrl),
    /// The proxy was taken for a web server.
    Itself,
}

/// The reason why the target of a request has no meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidProxyTarget {
    /// Neither a target nor a tunnel names a host.
    #[error("the request names no host")]
    NoHost,
    /// A tunnel to a host and no port.
    #[error("the request names no port; CONNECT needs host:port, such as example.org:443")]
    NoPort,
    /// Something else than a port behind the host.
    #[error("the port is not a number from 1 to 65535")]
    Port,
    /// A user name in front of the host.
    #[error("the URL has a user name in it; leave out what stands before the `@`")]
    UserInfo,
    /// A scheme of which there are no captures.
    #[error("only http, https and ftp URLs are archived")]
    Scheme,
    /// `CONNECT` in a tunnel.
    #[error("this is a tunnel already; CONNECT cannot be used in it")]
    NestedTunnel,
    /// The request is for another host than that of its tunnel.
    #[error("the request is for another host or port than its tunnel leads to")]
    Misdirected,
    /// `*`, or a host alone, in a tunnel.
    #[error("the request has no path")]
    NoPath,
}

impl InvalidProxyTarget {
    /// Returns the status of the answer.
    pub const fn status(self) -> StatusCode {
        match self {
            Self::Misdirected => StatusCode::MISDIRECTED_REQUEST,
            _ => StatusCode::BAD_REQUEST,
        }
    }
}

/// Reads the target of a request. `hosts` are the values of all its `Host` fields.
pub(crate) fn read_target(
    channel: &RequestChannel,
    method: &Method,
    uri: &Uri,
    hosts: &[&[u8]],
) -> Result<TargetMeaning, InvalidProxyTarget> {
    let path = uri.path_and_query().map_or("", |path| path.as_str());
    match channel {
        RequestChannel::Open if method == Method::CONNECT => {
            let authority = uri.authority().ok_or(InvalidProxyTarget::NoHost)?;
            HostAndPort::read(authority, None).map(TargetMeaning::OpenTunnel)
        }
        RequestChannel::Tunnel(_) if method == Method::CONNECT => {
            Err(InvalidProxyTarget::NestedTunnel)
        }
        RequestChannel::Open => {
            let Some(scheme) = uri.scheme_str() else {
                return Ok(TargetMeaning::Itself);
            };
            let scheme = Scheme::parse(scheme).ok_or(InvalidProxyTarget::Scheme)?;
            let authority = uri.authority().ok_or(InvalidProxyTarget::NoHost)?;
            let at = HostAndPort::read(authority, Some(scheme.default_port()))?;
            Ok(TargetMeaning::Site(SiteUrl::new(scheme, &at, path)))
        }
        RequestChannel::Tunnel(tunnel) => {
            let default = Some(tunnel.scheme.default_port());
            if let Some(scheme) = uri.scheme_str() {
                let authority = uri.authority().ok_or(InvalidProxyTarget::NoHost)?;
                let named = HostAndPort::read(authority, default)?;
                if Scheme::parse(scheme) != Some(tunnel.scheme) || named != tunnel.to {
                    return Err(InvalidProxyTarget::Misdirected);
                }
            } else if uri.authority().is_some() {
                return Err(InvalidProxyTarget::NoPath);
            }
            for host in hosts {
                let host =
                    Authority::try_from(*host).map_err(|_error| InvalidProxyTarget::NoHost)?;
                if HostAndPort::read(&host, default)? != tunnel.to {
                    return Err(InvalidProxyTarget::Misdirected);
                }
            }
            if !path.is_empty() && !path.starts_with(['/', '?']) {
                return Err(InvalidProxyTarget::NoPath);
            }
            Ok(TargetMeaning::Site(SiteUrl::new(
                tunnel.scheme,
                &tunnel.to,
                path,
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(method: &str, target: &str) -> Result<TargetMeaning, InvalidProxyTarget> {
        let uri: Uri = target.parse().unwrap();
        read_target(
            &RequestChannel::Open,
            &method.parse().unwrap(),
            &uri,
            &[b"other.example"],
        )
    }

    fn site(target: &str) -> SiteUrl {
        match open("GET", target).unwrap() {
            TargetMeaning::Site(site) => site,
            TargetMeaning::OpenTunnel(_) | TargetMeaning::Itself => panic!("{target} is no site"),
        }
    }

    fn in_tunnel(target: &str, hosts: &[&[u8]]) -> Result<TargetMeaning, InvalidProxyTarget> {
        let tunnel = Tunnel {
            scheme: Scheme::Https,
            to: HostAndPort {
                host: "a.example".to_owned(),
                port: 8443,
            },
            user: None,
        };
        let uri: Uri = target.parse().unwrap();
        read_target(&RequestChannel::Tunnel(tunnel), &Method::GET, &uri, hosts)
    }

    /// Fails if a URL is looked up in another spelling than its client meant, or `Host` counts before it.
    #[test]
    fn absolute_targets_become_urls() {
        for (target, url) in [
            ("http://A.example", "http://a.example/"),
            ("http://a.example:80/x?y=%20z", "http://a.example/x?y=%20z"),
            ("HTTP://a.example:8080?q", "http://a.example:8080/?q"),
            ("https://[::1]:443/", "https://[::1]/"),
            ("ftp://a.example/f", "ftp://a.example/f"),
            ("http://127.0.0.1:9/", "http://127.0.0.1:9/"),
        ] {
            assert_eq!(site(target).url, url);
        }
        assert_eq!(site("http://a.example:81/").origin, "http://a.example:81");
    }

    /// Fails if nonsense becomes a URL or a tunnel.
    #[test]
    fn nonsense_has_no_meaning() {
        for (method, target, expected) in [
            (
                "GET",
                "http://user:pw@a.example/",
                InvalidProxyTarget::UserInfo,
            ),
            ("GET", "gopher://a.example/", InvalidProxyTarget::Scheme),
            ("GET", "http://a.example:0/", InvalidProxyTarget::Port),
            ("GET", "http://a.example:99999/", InvalidProxyTarget::Port),
            ("GET", "http://a.example:+80/", InvalidProxyTarget::Port),
            ("GET", "http://[::1]x/", InvalidProxyTarget::Port),
            ("GET", "http://[]/", InvalidProxyTarget::NoHost),
            ("CONNECT", ":443", InvalidProxyTarget::NoHost),
            ("CONNECT", "a.example", InvalidProxyTarget::NoPort),
            ("CONNECT", "a.example:", InvalidProxyTarget::NoPort),
            ("CONNECT", "u@a.example:443", InvalidProxyTarget::UserInfo),
            ("CONNECT", "/", InvalidProxyTarget::NoHost),
        ] {
            assert_eq!(open(method, target), Err(expected), "{method} {target}");
        }
        assert_eq!(open("GET", "/"), Ok(TargetMeaning::Itself));
        assert_eq!(open("OPTIONS", "*"), Ok(TargetMeaning::Itself));
    }

    /// Fails if a tunnel to an address or an odd port is refused.
    #[test]
    fn tunnels_lead_to_any_host_and_port() {
        for (target, host, port, name) in [
            ("A.example:443", "a.example", 443, "a.example"),
            ("a.example:1", "a.example", 1, "a.example"),
            ("10.0.0.1:8443", "10.0.0.1", 8443, "10.0.0.1"),
            ("[2001:db8::1]:443", "[2001:db8::1]", 443, "2001:db8::1"),
        ] {
            let Ok(TargetMeaning::OpenTunnel(to)) = open("CONNECT", target) else {
                panic!("{target}");
            };
            assert_eq!((to.host.as_str(), to.port), (host, port));
            assert_eq!(to.certificate_name(), name);
        }
    }

    /// Fails if a request in a tunnel to one host is answered with another one's capture.
    #[test]
    fn tunnel_and_host_have_to_agree() {
        let own = SiteUrl::new(
            Scheme::Https,
            &HostAndPort {
                host: "a.example".to_owned(),
                port: 8443,
            },
            "/x",
        );
        assert_eq!(own.url, "https://a.example:8443/x");
        for (target, hosts) in [
            ("/x", vec![]),
            ("/x", vec![b"A.example:8443".as_slice()]),
            ("https://a.example:8443/x", vec![]),
        ] {
            assert_eq!(
                in_tunnel(target, &hosts),
                Ok(TargetMeaning::Site(own.clone())),
                "{target} {hosts:?}"
            );
        }
        for (target, host) in [
            ("/x", "b.example:8443"),
            ("/x", "a.example"),
            ("https://b.example:8443/x", "a.example:8443"),
            ("http://a.example:8443/x", "a.example:8443"),
        ] {
            assert_eq!(
                in_tunnel(target, &[host.as_bytes()]),
                Err(InvalidProxyTarget::Misdirected),
                "{target} {host}"
            );
        }
        for target in ["*", "a.example:8443"] {
            assert_eq!(in_tunnel(target, &[]), Err(InvalidProxyTarget::NoPath));
        }
    }

    /// Fails if an archived page can have an origin of the proxy itself.
    #[test]
    fn control_hosts_are_never_archived_sites() {
        for (target, is_control) in [
            ("http://viewerproxy.invalid/", true),
            ("http://ViewerProxy.invalid:8080/x", true),
            ("https://viewerproxy.invalid./", true),
            ("http://netarchivesuite.viewerproxy.invalid/getStatus", true),
            ("http://x.viewerproxy.invalid/", false),
            ("http://viewerproxy.invalid.example/", false),
        ] {
            assert_eq!(site(target).is_control(), is_control, "{target}");
        }
    }
}
