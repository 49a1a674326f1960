//! The name of the queue of a URI: URIs of one queue are fetched one after the other, and share its budgets and quotas.
//!
//! Owns what a domain is: the label under a public suffix (Mozilla's list, compiled in), as NetarchiveSuite counts objects and
//! bytes. An address is kept whole, and a host without a public suffix (`localhost`, `intranet`) is its own domain. Names stay
//! in the form that `url` gives them: lower case, international ones as `xn--`.
//!
//! ```
//! use harvest_policy::queue_name::{QueueKind, registrable_domain};
//! use url::Url;
//!
//! let image = Url::parse("https://images.example.co.uk/a.png")?;
//! let seed = Url::parse("https://www.example.dk/")?;
//! assert_eq!(QueueKind::Domain.name(&image, &seed).as_deref(), Some("example.co.uk"));
//! assert_eq!(QueueKind::Seed.name(&image, &seed).as_deref(), Some("example.dk"));
//! assert_eq!(QueueKind::Host.name(&image, &seed).as_deref(), Some("images.example.co.uk"));
//! assert_eq!(registrable_domain("localhost"), "localhost");
//! # Ok::<(), url::ParseError>(())
//! ```

use url::Url;

/// The list of public suffixes that is compiled in, for documentation: the crate, and its version, which is published anew
/// whenever the list changes.
pub const SUFFIX_LIST: &str = "psl 2.1.247";

/// The part of a URI, or of the seed that it was found from, that names its queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueKind {
    /// The domain of its host.
    #[default]
    Domain,
    /// The domain of the seed: what a page takes from elsewhere counts against the site that has the page.
    Seed,
    /// Its host.
    Host,
}

impl QueueKind {
    /// The name of the queue of a URI that was found from `seed`. `None` if it has no host.
    pub fn name(self, url: &Url, seed: &Url) -> Option<String> {
        match self {
            Self::Domain => Some(registrable_domain(host(url)?).to_owned()),
            Self::Seed => Some(registrable_domain(host(seed)?).to_owned()),
            Self::Host => Some(host(url)?.to_owned()),
        }
    }
}

/// The host of a URI without the dot of the root at its end; of a `dns:` URI (RFC 4501) the name that is asked for.
fn host(url: &Url) -> Option<&str> {
    let host = match url.scheme() {
        "dns" => url.path().rsplit('/').next()?,
        _ => url.host_str()?,
    };
    let host = host.strip_suffix('.').unwrap_or(host);
    (!host.is_empty()).then_some(host)
}

/// The domain of a host: `example.co.uk` of `www.example.co.uk`. The host itself if it is an address, a public suffix, or
/// under none.
pub fn registrable_domain(host: &str) -> &str {
    let is_address = host.starts_with('[') || host.parse::<std::net::Ipv4Addr>().is_ok();
    if is_address {
        return host;
    }
    let domain = psl::domain(host.as_bytes()).filter(|domain| domain.suffix().is_known());
    let domain = domain.and_then(|domain| std::str::from_utf8(domain.trim().as_bytes()).ok());
    domain.unwrap_or(host)
}

/// Whether a host is a public suffix itself: everything below it belongs to others.
pub fn is_public_suffix(host: &str) -> bool {
    let suffix = psl::suffix(host.as_bytes()).filter(psl::Suffix::is_known);
    suffix.is_some_and(|suffix| suffix.as_bytes() == host.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if two domains share a queue, or one domain has two.
    #[test]
    fn domain_is_one_label_under_its_suffix() {
        for (host, expected) in [
            ("www.example.dk", "example.dk"),
            ("example.dk", "example.dk"),
            ("a.b.c.example.co.uk", "example.co.uk"),
            ("dk", "dk"),
            ("co.uk", "co.uk"),
            ("user.github.io", "user.github.io"),
            ("localhost", "localhost"),
            ("www.intranet", "www.intranet"),
            ("127.0.0.1", "127.0.0.1"),
            ("8.8.8.8", "8.8.8.8"),
            ("[2001:db8::1]", "[2001:db8::1]"),
            ("www.xn--blbr-roah.dk", "xn--blbr-roah.dk"),
            ("www.xn--85x722f.xn--55qx5d.cn", "xn--85x722f.xn--55qx5d.cn"),
            ("www.ck", "www.ck"),
            ("a.b.ck", "a.b.ck"),
            ("x.a.b.ck", "a.b.ck"),
            ("", ""),
            (".", "."),
            ("..dk", ".dk"),
        ] {
            assert_eq!(registrable_domain(host), expected, "{host}");
        }
    }

    /// Fails if a domain passes for a suffix, or a suffix for a domain.
    #[test]
    fn suffix_is_told_from_domain() {
        for (host, expected) in [
            ("dk", true),
            ("co.uk", true),
            ("github.io", true),
            ("example.dk", false),
            ("localhost", false),
            ("intranet", false),
            ("127.0.0.1", false),
            ("", false),
        ] {
            assert_eq!(is_public_suffix(host), expected, "{host}");
        }
    }

    /// Fails if a kind of queue takes its name from another part.
    #[test]
    fn each_kind_names_its_own_part() {
        let name = |kind: QueueKind, url: &str| {
            let seed = Url::parse("https://www.seed.dk./x").unwrap();
            kind.name(&Url::parse(url).unwrap(), &seed)
        };
        for (url, domain, host) in [
            (
                "http://Www.Example.DK:8080/x",
                "example.dk",
                "www.example.dk",
            ),
            ("http://www.example.dk./x", "example.dk", "www.example.dk"),
            ("http://blåbær.dk/", "xn--blbr-roah.dk", "xn--blbr-roah.dk"),
            ("http://[::1]:80/", "[::1]", "[::1]"),
            ("http://0x7f.1/", "127.0.0.1", "127.0.0.1"),
            ("dns:www.example.dk", "example.dk", "www.example.dk"),
            (
                "dns://1.1.1.1/www.example.dk",
                "example.dk",
                "www.example.dk",
            ),
        ] {
            assert_eq!(
                name(QueueKind::Domain, url).as_deref(),
                Some(domain),
                "{url}"
            );
            assert_eq!(name(QueueKind::Host, url).as_deref(), Some(host), "{url}");
            assert_eq!(
                name(QueueKind::Seed, url).as_deref(),
                Some("seed.dk"),
                "{url}"
            );
        }
        assert_eq!(name(QueueKind::Domain, "mailto:a@b.dk"), None);
    }

    /// Fails if the list is updated, and the version that is documented is not.
    #[test]
    fn version_of_the_list_is_the_locked_one() {
        let lock = include_str!("../../../Cargo.lock");
        let (_, behind) = lock.split_once("name = \"psl\"\nversion = \"").unwrap();
        let (version, _) = behind.split_once('"').unwrap();
        assert_eq!(SUFFIX_LIST, format!("psl {version}"));
    }
}
