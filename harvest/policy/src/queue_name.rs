//! The name of the queue of a URI: URIs of one queue are fetched one after the other, and share its budgets and quotas.
//!
//! Owns which part of a URI names its queue, as NetarchiveSuite counts objects and bytes by domain. Names stay in the
//! form that `url` gives them: lower case, international ones as `xn--`.
//!
//! ```
//! use harvest_policy::queue_name::{QueueKind, QueueNaming};
//! use url::Url;
//!
//! let image = Url::parse("https://images.example.co.uk/a.png")?;
//! let seed = Url::parse("https://www.example.dk/")?;
//! let name = |kind| QueueNaming { kind, ..QueueNaming::default() }.queue_name(&image, &seed);
//! assert_eq!(name(QueueKind::Domain), "example.co.uk");
//! assert_eq!(name(QueueKind::Seed), "example.dk");
//! assert_eq!(name(QueueKind::Host), "images.example.co.uk");
//! # Ok::<(), url::ParseError>(())
//! ```

use std::sync::Arc;

use url::Url;

use crate::suffixes::SuffixList;

/// The part of a URI, or of the seed that it was found from, that names its queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueKind {
    /// The domain of the URI's host.
    #[default]
    Domain,
    /// The domain of the seed: what a page takes from elsewhere counts against the site that has the page.
    Seed,
    /// The host of the URI.
    Host,
}

/// The rule by which queues get their names.
#[derive(Clone, Debug, Default)]
pub struct QueueNaming {
    /// The part that names a queue.
    pub kind: QueueKind,
    /// The public suffixes, under which domains are.
    pub suffixes: Arc<SuffixList>,
}

impl QueueNaming {
    /// Returns the name of the queue of a URI that was found from `seed`: the scheme, if it has no host.
    pub fn queue_name(&self, url: &Url, seed: &Url) -> String {
        let name = match self.kind {
            QueueKind::Domain => host(url).map(|host| self.suffixes.registered_domain(host)),
            QueueKind::Seed => host(seed).map(|host| self.suffixes.registered_domain(host)),
            QueueKind::Host => host(url),
        };
        name.unwrap_or_else(|| url.scheme()).to_owned()
    }
}

/// Returns the host of a URI without the dot of the root at its end; of a `dns:` URI (RFC 4501) the name that is asked
/// for.
fn host(url: &Url) -> Option<&str> {
    let host = match url.scheme() {
        "dns" => url.path().rsplit('/').next()?,
        _ => url.host_str()?,
    };
    let host = host.strip_suffix('.').unwrap_or(host);
    (!host.is_empty()).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a kind of queue takes its name from another part.
    #[test]
    fn each_kind_names_its_own_part() {
        let name = |kind: QueueKind, url: &str| {
            let seed = Url::parse("https://www.seed.dk./x").unwrap();
            let names = QueueNaming {
                kind,
                ..QueueNaming::default()
            };
            names.queue_name(&Url::parse(url).unwrap(), &seed)
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
            assert_eq!(name(QueueKind::Domain, url), domain, "{url}");
            assert_eq!(name(QueueKind::Host, url), host, "{url}");
            assert_eq!(name(QueueKind::Seed, url), "seed.dk", "{url}");
        }
        assert_eq!(name(QueueKind::Domain, "mailto:a@b.dk"), "mailto");
    }
}
