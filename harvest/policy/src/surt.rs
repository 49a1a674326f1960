//! URIs turned round, so that a prefix covers a domain, a host or a directory (the SURT form of Heritrix).
//!
//! `http://www.example.dk/a?b` becomes `http://(dk,example,www,)/a?b`: `http://(dk,example,` covers the domain with all
//! its hosts, `http://(dk,example,www,)` one host, `http://(dk,example,www,)/a` what lies under a path. `https` becomes
//! `http`. Paths keep their case. This is the form for scopes; keys of indexes are `archive_formats::surt::UrlKey`.

use std::collections::BTreeSet;
use std::fmt;
use std::net::Ipv4Addr;
use std::ops::Bound;
use std::str::FromStr;

use url::{Host, Url};

/// Returns the SURT form of a URI. `None` if it has no host.
pub fn url_surt(url: &Url) -> Option<String> {
    let mut surt = host_part(url)?;
    surt.push(')');
    surt.push_str(url.path());
    if let Some(query) = url.query() {
        surt.push('?');
        surt.push_str(query);
    }
    Some(surt)
}

/// Returns the SURT form up to the host and its port, without what ends it: `http://(dk,example,www,`.
fn host_part(url: &Url) -> Option<String> {
    let scheme = match url.scheme() {
        "https" => "http",
        scheme => scheme,
    };
    let host = match url.host()? {
        Host::Domain(name) => {
            let labels = name.trim_end_matches('.').rsplit('.');
            labels.flat_map(|label| [label, ","]).collect()
        }
        Host::Ipv4(address) => address.to_string(),
        Host::Ipv6(address) => format!("[{address}]"),
    };
    let port = url
        .port()
        .map_or_else(String::new, |port| format!(":{port}"));
    Some(format!("{scheme}://({host}{port}"))
}

/// A prefix in SURT form, as people write it into a list: `http://(dk,example,` for a domain,
/// `http://(dk,example,www,)` for a host, `http://(dk,example,www,)/a` for a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SurtPrefix(String);

/// The reason why a text is no prefix in SURT form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no prefix in SURT form; write {suggestion}")]
pub struct InvalidSurtPrefix {
    /// The text that should be a prefix.
    pub text: String,
    /// The form that was probably meant, or an example.
    pub suggestion: String,
}

impl SurtPrefix {
    /// Returns whether the prefix covers a URI in SURT form, as [`url_surt`] makes it.
    pub fn covers(&self, surt: &str) -> bool {
        surt.starts_with(&self.0)
    }

    /// Returns the prefix as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SurtPrefix {
    type Err = InvalidSurtPrefix;

    /// Reads a prefix. The scheme and the host become lower case, and `https` becomes `http`.
    fn from_str(text: &str) -> Result<Self, InvalidSurtPrefix> {
        let text = text.trim();
        let invalid = || InvalidSurtPrefix {
            text: text.to_owned(),
            suggestion: with_comma(text).unwrap_or_else(|| suggestion(text)),
        };
        let (scheme, rest) = text.split_once("://(").ok_or_else(invalid)?;
        let (host, path) = rest.split_at(rest.find(')').unwrap_or(rest.len()));
        let is_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let is_host = |c: char| {
            c.is_ascii_alphanumeric() || matches!(c, ',' | '-' | '_' | '.' | ':' | '[' | ']')
        };
        let is_valid = !scheme.is_empty()
            && scheme.chars().all(is_scheme)
            && !host.is_empty()
            && host.chars().all(is_host)
            && path.chars().all(|c| c.is_ascii_graphic())
            && has_port_of_digits(host)
            && (path.is_empty() || is_whole(host));
        if !is_valid {
            return Err(invalid());
        }
        let scheme = scheme.to_ascii_lowercase();
        let scheme = if scheme == "https" { "http" } else { &scheme };
        Ok(Self(format!(
            "{scheme}://({}{path}",
            host.to_ascii_lowercase()
        )))
    }
}

impl fmt::Display for SurtPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns whether what stands before a closing parenthesis is a host as SURT forms have it: labels with a comma behind
/// each, or an address.
fn is_whole(host: &str) -> bool {
    let name = host.split(':').next().unwrap_or_default();
    host.starts_with('[') || name.ends_with(',') || name.parse::<Ipv4Addr>().is_ok()
}

/// Returns whether nothing but digits stands behind the colon of a port.
fn has_port_of_digits(host: &str) -> bool {
    let behind = host.rsplit_once(']').map_or(host, |(_, behind)| behind);
    let is_address = host.starts_with('[') && !host.contains(']');
    let mut parts = behind.split(':').skip(1);
    is_address
        || parts
            .next()
            .is_none_or(|port| port.bytes().all(|b| b.is_ascii_digit()))
            && parts.next().is_none()
}

/// Returns a prefix that lacks nothing but the comma before its closing parenthesis, or has one behind its port, as it
/// should be.
fn with_comma(text: &str) -> Option<String> {
    let (before, path) = text.split_once(')')?;
    let (scheme, host) = before.split_once("://(")?;
    let (name, port) = host.find(':').map_or((host, ""), |at| host.split_at(at));
    let is_right = name.ends_with(',') && !port.ends_with(',');
    if name.is_empty() || is_right {
        return None;
    }
    let name = name.trim_end_matches(',');
    let port = port.trim_end_matches(',');
    let whole: SurtPrefix = format!("{scheme}://({name},{port}){path}").parse().ok()?;
    Some(format!("`{whole}`"))
}

/// Returns the form in which a URI or the name of a host would be a prefix.
fn suggestion(text: &str) -> String {
    let text = if text.contains('(') { "" } else { text };
    let url = Url::parse(text).ok().filter(Url::has_host);
    let url = url.or_else(|| Url::parse(&format!("http://{text}")).ok());
    match url.as_ref().and_then(url_surt) {
        Some(surt) => format!("`{surt}`, or less of it from the right"),
        None => "for example `http://(dk,example,` for a domain".to_owned(),
    }
}

/// Prefixes of SURT forms: a URI is covered if one of them is a prefix of its SURT form.
///
/// ```
/// use harvest_policy::surt::SurtPrefixes;
/// use url::Url;
///
/// let mut prefixes = SurtPrefixes::default();
/// prefixes.add_domain(&Url::parse("https://www.example.dk/")?);
/// assert!(prefixes.covers(&Url::parse("http://images.www.example.dk/a.png")?));
/// assert!(!prefixes.covers(&Url::parse("http://example.dk/")?));
/// # Ok::<(), url::ParseError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SurtPrefixes {
    /// The prefixes, none of which begins with another: the one before a URI in their order is the only one that can
    /// cover it.
    prefixes: BTreeSet<String>,
}

impl SurtPrefixes {
    /// Adds a prefix in SURT form, as people write it into a list.
    pub fn add(&mut self, prefix: &str) {
        if self.covers_surt(prefix) {
            return;
        }
        let covered = self.prefixes.range(prefix.to_owned()..);
        let covered: Vec<String> = covered
            .take_while(|longer| longer.starts_with(prefix))
            .cloned()
            .collect();
        for longer in covered {
            self.prefixes.remove(&longer);
        }
        self.prefixes.insert(prefix.to_owned());
    }

    /// Adds the host of a URI and all below it in the tree of names.
    pub fn add_domain(&mut self, url: &Url) {
        if let Some(prefix) = host_part(url) {
            self.add(&prefix);
        }
    }

    /// Adds the host and port of a URI.
    pub fn add_host(&mut self, url: &Url) {
        if let Some(prefix) = host_part(url) {
            self.add(&format!("{prefix})"));
        }
    }

    /// Adds the directory of a URI: everything on its host whose path begins as its own does up to its last slash.
    pub fn add_directory(&mut self, url: &Url) {
        if let Some(prefix) = host_part(url) {
            let directory = url.path().rsplit_once('/').map_or("", |(before, _)| before);
            self.add(&format!("{prefix}){directory}/"));
        }
    }

    /// Returns whether one of the prefixes covers a URI.
    pub fn covers(&self, url: &Url) -> bool {
        url_surt(url).is_some_and(|surt| self.covers_surt(&surt))
    }

    fn covers_surt(&self, surt: &str) -> bool {
        let up_to = (Bound::Unbounded, Bound::Included(surt));
        let before = self.prefixes.range::<str, _>(up_to).next_back();
        before.is_some_and(|prefix| surt.starts_with(prefix.as_str()))
    }

    /// Returns the prefixes, sorted; without those that others cover.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.prefixes.iter().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    /// Fails if a URI and its SURT form do not name the same place.
    #[test]
    fn hosts_are_turned_round() {
        for (text, expected) in [
            (
                "http://www.example.dk/a?b=C",
                "http://(dk,example,www,)/a?b=C",
            ),
            ("https://Example.DK/A", "http://(dk,example,)/A"),
            ("https://example.dk:8443/", "http://(dk,example,:8443)/"),
            ("https://example.dk:443/", "http://(dk,example,)/"),
            ("http://user:word@example.dk./", "http://(dk,example,)/"),
            ("http://127.0.0.1:80/x", "http://(127.0.0.1)/x"),
            ("http://[::1]/", "http://([::1])/"),
            ("ftp://example.dk/", "ftp://(dk,example,)/"),
            ("http://blåbær.dk/", "http://(dk,xn--blbr-roah,)/"),
        ] {
            assert_eq!(url_surt(&url(text)).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(url_surt(&url("mailto:a@example.dk")), None);
    }

    /// Fails if a prefix covers a namesake, or not what lies under it.
    #[test]
    fn prefixes_cover_domain_host_or_directory() {
        type Add = fn(&mut SurtPrefixes, &Url);
        let cases: [(Add, &[&str], &[&str]); 3] = [
            (
                SurtPrefixes::add_domain,
                &["http://a.dk/", "https://w.a.dk/x", "http://a.dk:81/"],
                &["http://ba.dk/", "http://dk/"],
            ),
            (
                SurtPrefixes::add_host,
                &["http://a.dk/", "https://a.dk/x/y?z"],
                &["http://w.a.dk/", "http://a.dk:81/"],
            ),
            (
                SurtPrefixes::add_directory,
                &["http://a.dk/d/", "http://a.dk/d/e/f"],
                &["http://a.dk/d", "http://a.dk/dd/", "http://a.dk/D/"],
            ),
        ];
        for (add, covered, others) in cases {
            let mut prefixes = SurtPrefixes::default();
            add(&mut prefixes, &url("http://a.dk/d/page.html"));
            for text in covered {
                assert!(prefixes.covers(&url(text)), "{text} by {prefixes:?}");
            }
            for text in others {
                assert!(!prefixes.covers(&url(text)), "{text} by {prefixes:?}");
            }
        }
    }

    /// Fails if of many prefixes another decides than one that is a prefix.
    #[test]
    fn every_set_of_short_prefixes_covers_by_definition() {
        let words: Vec<String> = ["", "a", "b", "aa", "ab", "ba", "bb", "aab", "abb"]
            .map(str::to_owned)
            .into();
        for first in &words {
            for second in &words {
                for third in &words {
                    let mut prefixes = SurtPrefixes::default();
                    for prefix in [first, second, third] {
                        prefixes.add(prefix);
                    }
                    for word in &words {
                        let expected = [first, second, third]
                            .iter()
                            .any(|prefix| word.starts_with(prefix.as_str()));
                        assert_eq!(
                            prefixes.covers_surt(word),
                            expected,
                            "{word} by {prefixes:?}"
                        );
                    }
                }
            }
        }
    }

    /// Fails if a prefix is taken that covers nothing, or the error does not show the right form.
    #[test]
    fn prefix_in_other_form_is_refused() {
        for (text, expected) in [
            ("http://(dk,example,", "http://(dk,example,"),
            ("HTTPS://(DK,Example,)/A", "http://(dk,example,)/A"),
            (" http://(127.0.0.1)/ ", "http://(127.0.0.1)/"),
            ("http://([::1])/", "http://([::1])/"),
            ("http://([::1]:80", "http://([::1]:80"),
            ("http://([::", "http://([::"),
            ("ftp://(dk,example,:2121)/", "ftp://(dk,example,:2121)/"),
        ] {
            assert_eq!(text.parse::<SurtPrefix>().unwrap().as_str(), expected);
        }
        for (text, expected) in [
            ("https://www.example.dk/a", "`http://(dk,example,www,)/a`"),
            ("example.dk", "`http://(dk,example,)/`"),
            ("", "for example"),
            ("http://(", "for example"),
            ("http://()/", "for example"),
            ("http://(dk,example,www)/a", "`http://(dk,example,www,)/a`"),
            ("http://(dk,example:81)", "`http://(dk,example,:81)`"),
            ("http://(dk,example,:81,)/a", "`http://(dk,example,:81)/a`"),
            ("http://(dk,example,:81,", "for example"),
            ("http://(dk,example,)/a b", "for example"),
            ("http://(dk,blåbær,", "for example"),
            ("://(dk,", "for example"),
        ] {
            let error = text.parse::<SurtPrefix>().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
