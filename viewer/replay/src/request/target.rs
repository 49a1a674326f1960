//! The URL that a request is about.
//!
//! Owns how the rest of a path becomes a URL: with its scheme, with two slashes, and otherwise as it was sent. Escapes
//! are kept as they are: the key makes different spellings equal.

use archive_formats::post;
use archive_formats::surt::UrlKey;
use thiserror::Error;

/// The longest URL, in bytes, of which an escape such as `%C3` is one: so each spelling of a URL has the same length.
pub const LONGEST_URL: usize = 10_000;

/// The schemes whose URLs have a host behind two slashes.
const WITH_HOST: [&str; 5] = ["http", "https", "ftp", "ws", "wss"];

/// The reason why a text is no URL of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InvalidTarget {
    /// The text is empty.
    #[error("there is no URL; write it at the end of the path")]
    Empty,
    /// Longer than [`LONGEST_URL`].
    #[error("it is longer than {LONGEST_URL} bytes, each escape counted as one")]
    TooLong,
    /// A control character, such as a line end.
    #[error("character {0} is a control character; escape it with %")]
    Control(usize),
}

/// A URL, with its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayTarget {
    url: String,
    key: UrlKey,
}

/// The URLs that a pattern means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetMatch {
    /// The URL alone.
    Exact,
    /// All URLs that begin with the URL: `http://example.org/a*`.
    Prefix,
    /// All URLs of a domain: `*.example.org`.
    Domain,
}

impl ReplayTarget {
    /// Reads the end of a path, its query included.
    ///
    /// # Errors
    /// Fails if nothing is there, or if it is too long or has control characters.
    pub fn parse(raw: &str) -> Result<Self, InvalidTarget> {
        let raw = raw.split('#').next().unwrap_or_default();
        if let Some(at) = raw.chars().position(char::is_control) {
            return Err(InvalidTarget::Control(at));
        }
        let decoded = is_escaped_whole(raw).then(|| unescape_ascii(raw));
        let unescaped = decoded.as_deref().unwrap_or(raw);
        if length(unescaped) > LONGEST_URL {
            return Err(InvalidTarget::TooLong);
        }
        let url = with_scheme(unescaped)?;
        let key = UrlKey::parse(&url);
        Ok(Self { url, key })
    }

    /// Reads a URL that may end with `*`, or begin with `*.`.
    ///
    /// # Errors
    /// Fails as [`ReplayTarget::parse`] does.
    pub fn parse_pattern(raw: &str) -> Result<(Self, TargetMatch), InvalidTarget> {
        let (raw, matching) = if let Some(domain) = raw.strip_prefix("*.") {
            (domain, TargetMatch::Domain)
        } else if let Some(prefix) = raw.strip_suffix('*') {
            (prefix, TargetMatch::Prefix)
        } else {
            (raw, TargetMatch::Exact)
        };
        Ok((Self::parse(raw)?, matching))
    }

    /// Returns the same URL as another method than GET asks for it: method and body are in the key, as in the keys of
    /// captures.
    #[must_use]
    pub fn with_request(self, method: &str, content_type: Option<&[u8]>, body: &[u8]) -> Self {
        match post::append_post_query(&self.url, method, content_type, body) {
            Some(appended) => Self {
                key: UrlKey::parse(&appended.url),
                url: self.url,
            },
            None => self,
        }
    }

    /// Returns whether the key is that of a GET: nothing of a request is in it.
    pub fn is_of_get(&self) -> bool {
        self.key == UrlKey::parse(&self.url)
    }

    /// Returns the URL, with its scheme. It may have characters beyond ASCII.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the key of the URL.
    pub fn key(&self) -> &UrlKey {
        &self.key
    }
}

/// Returns the number of bytes of a URL, of which an escape is one.
fn length(url: &str) -> usize {
    let triples = url.as_bytes().windows(3);
    let escapes = triples.filter(|bytes| is_escape(bytes)).count();
    url.len().saturating_sub(escapes.saturating_mul(2))
}

/// Returns whether some bytes are a percent sign with hexadecimal digits.
fn is_escape(bytes: &[u8]) -> bool {
    let digits = bytes.strip_prefix(b"%");
    digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
}

/// Returns whether the whole URL was escaped, as programs do that put it into a path as one segment. A name with a dot
/// is a host.
fn is_escaped_whole(raw: &str) -> bool {
    let Some((name, rest)) = raw.split_once('%') else {
        return false;
    };
    let is_colon = rest
        .get(..2)
        .is_some_and(|code| code.eq_ignore_ascii_case("3a"));
    is_colon && is_scheme(name) && !name.contains('.')
}

/// Undoes the escapes of visible ASCII characters, once. Others stay, so that no control character comes out.
fn unescape_ascii(raw: &str) -> String {
    let mut url = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((before, behind)) = rest.split_once('%') {
        url.push_str(before);
        let code = behind
            .get(..2)
            .filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
        let byte = code.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        if let Some(byte) = byte.filter(u8::is_ascii_graphic) {
            url.push(char::from(byte));
            rest = behind.get(2..).unwrap_or_default();
        } else {
            url.push('%');
            rest = behind;
        }
    }
    url.push_str(rest);
    url
}

/// Returns the URL with its scheme: `http` where it has no scheme, and two slashes where a proxy or browser has taken
/// one away.
fn with_scheme(raw: &str) -> Result<String, InvalidTarget> {
    let (scheme, rest) = match raw.split_once(':') {
        Some((name, rest)) if is_scheme(name) && !is_host_and_port(name, rest) => {
            let name = name.to_ascii_lowercase();
            if !WITH_HOST.contains(&name.as_str()) {
                return if rest.is_empty() {
                    Err(InvalidTarget::Empty)
                } else {
                    Ok(raw.to_owned())
                };
            }
            (name, rest)
        }
        _ => ("http".to_owned(), raw),
    };
    let rest = rest.trim_start_matches('/');
    if rest.is_empty() || rest.starts_with('?') {
        return Err(InvalidTarget::Empty);
    }
    Ok(format!("{scheme}://{rest}"))
}

fn is_scheme(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
}

/// Returns whether what looks like a scheme is a host with its port: `localhost:8080/`.
fn is_host_and_port(name: &str, rest: &str) -> bool {
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let is_port = (1..=5).contains(&digits)
        && matches!(rest.as_bytes().get(digits), None | Some(b'/' | b'?'));
    // Numbers and e-mail addresses are not captured, and `urn:1` has no slash behind it.
    is_port && (name.contains('.') || name.eq_ignore_ascii_case("localhost"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if the escapes of a URL count against its length, or two spellings of one URL have two lengths.
    #[test]
    fn length_is_that_of_unescaped_url() {
        let start = "http://a/";
        let room = LONGEST_URL - start.len();
        let letters = format!("{start}{}", "x".repeat(room));
        let escapes = format!("{start}{}", "%C3".repeat(room));
        let raw = format!("{start}{}", "æ".repeat(room / 2));
        for url in [letters, escapes, raw] {
            let whole = url.replace('%', "%25").replace(':', "%3A");
            let nearly = format!("{url}%4");
            for written in [&url, &whole] {
                let target = ReplayTarget::parse(written).unwrap();
                assert_eq!(target.url(), url);
            }
            assert_eq!(ReplayTarget::parse(&nearly), Err(InvalidTarget::TooLong));
        }
    }
}
