//! The URL of a request, and which keys it selects.

use archive_formats::cdx::query::{KeyMatch, MatchKind};
use archive_formats::surt::UrlKey;

use super::parameters::Parameters;
use super::{CdxRequestError, Dialect};

/// The keys that a request asks for, and the URL that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) url: Vec<u8>,
    pub(super) kind: MatchKind,
    pub(super) keys: KeyMatch,
}

impl Target {
    /// Reads `url`, `matchType` and, for OutbackCDX, `urlkey`, `method` and `requestBody`.
    ///
    /// A star at the end of a URL or in front of its host widens the match. It is a part of the URL only with
    /// `matchType=exact` or `range`; any other match type takes it away and stays as it was given.
    pub(super) fn read_target(
        dialect: Dialect,
        parameters: &Parameters,
    ) -> Result<Self, CdxRequestError> {
        let explicit = match_kind(dialect, parameters)?;
        let url = parameters.first("url").filter(|url| !url.is_empty());
        let key = match dialect {
            Dialect::OutbackCdx => parameters.text("urlkey")?,
            Dialect::Pywb | Dialect::Wayback => None,
        };
        let url = match (url, key) {
            (Some(_), Some(_)) => return Err(CdxRequestError::Both("url", "urlkey")),
            (None, None) => return Err(CdxRequestError::Missing("url")),
            (None, Some(key)) => {
                let kind = explicit.unwrap_or(MatchKind::Exact);
                return Ok(Self {
                    url: key.as_bytes().to_vec(),
                    kind,
                    keys: KeyMatch::for_url_key(kind, UrlKey::from_index(key))?,
                });
            }
            (Some(url), None) => url,
        };
        let (kind, bare) = match explicit {
            Some(kind @ (MatchKind::Exact | MatchKind::Range)) => (kind, url),
            Some(kind) => (kind, star_match(url).map_or(url, |(_, bare)| bare)),
            None => star_match(url).unwrap_or((MatchKind::Exact, url)),
        };
        let mut asked = bare.to_vec();
        if dialect == Dialect::OutbackCdx {
            append_request(&mut asked, parameters)?;
        }
        Ok(Self {
            keys: KeyMatch::for_url(kind, &asked)?,
            url: bare.to_vec(),
            kind,
        })
    }
}

fn match_kind(
    dialect: Dialect,
    parameters: &Parameters,
) -> Result<Option<MatchKind>, CdxRequestError> {
    let Some(text) = parameters.text("matchType")? else {
        return Ok(None);
    };
    let wanted = "exact, prefix, host or domain";
    let kind: Result<MatchKind, _> = match dialect {
        Dialect::OutbackCdx if text.eq_ignore_ascii_case("default") => return Ok(None),
        Dialect::OutbackCdx => text.to_ascii_lowercase().parse(),
        Dialect::Pywb | Dialect::Wayback => text.parse(),
    };
    match (dialect, kind) {
        (Dialect::Pywb | Dialect::Wayback, Ok(MatchKind::Range)) | (_, Err(_)) => {
            Err(CdxRequestError::wrong_value("matchType", text, wanted))
        }
        (_, Ok(kind)) => Ok(Some(kind)),
    }
}

/// Returns the match that a star asks for, and the URL without it.
fn star_match(url: &[u8]) -> Option<(MatchKind, &[u8])> {
    if let Some(rest) = url.strip_prefix(b"*.") {
        return Some((MatchKind::Domain, rest.strip_suffix(b"*").unwrap_or(rest)));
    }
    let rest = url.strip_suffix(b"*")?;
    Some((MatchKind::Prefix, rest))
}

/// Appends what makes the key of a request that was not a GET.
fn append_request(url: &mut Vec<u8>, parameters: &Parameters) -> Result<(), CdxRequestError> {
    let Some(method) = parameters.text("method")? else {
        return Ok(());
    };
    let is_token = method.len() <= 32 && method.bytes().all(|b| b.is_ascii_alphabetic());
    if !is_token {
        let wanted = "a method of HTTP, in letters";
        return Err(CdxRequestError::wrong_value("method", method, wanted));
    }
    if method.eq_ignore_ascii_case("GET") {
        return Ok(());
    }
    let end = url.iter().position(|b| *b == b'#').unwrap_or(url.len());
    url.truncate(end);
    url.push(if url.contains(&b'?') { b'&' } else { b'?' });
    url.extend_from_slice(b"__wb_method=");
    url.extend_from_slice(method.to_ascii_uppercase().as_bytes());
    if let Some(body) = parameters.first("requestBody").filter(|b| !b.is_empty()) {
        url.push(b'&');
        url.extend_from_slice(body);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(dialect: Dialect, query: &str) -> Result<Target, CdxRequestError> {
        Target::read_target(
            dialect,
            &Parameters::decode_query(query.as_bytes(), None).unwrap(),
        )
    }

    /// Fails if a star widens a match that is exact, or is looked for where it widened one.
    #[test]
    fn stars_widen_unless_exact() {
        use MatchKind::{Domain, Exact, Host, Prefix};
        for (query, kind, url) in [
            ("url=http://example.com/a", Exact, "http://example.com/a"),
            ("url=example.com/*", Prefix, "example.com/"),
            ("url=example.com/a*", Prefix, "example.com/a"),
            ("url=*.example.com", Domain, "example.com"),
            ("url=*.example.com/*", Domain, "example.com/"),
            ("url=example.com/*&matchType=exact", Exact, "example.com/*"),
            ("url=*.a.org/x&matchType=exact", Exact, "*.a.org/x"),
            ("url=example.com/*&matchType=prefix", Prefix, "example.com/"),
            ("url=example.com/*&matchType=host", Host, "example.com/"),
            (
                "url=http://a.org/?q=*&matchType=",
                Prefix,
                "http://a.org/?q=",
            ),
        ] {
            for dialect in [Dialect::Pywb, Dialect::Wayback, Dialect::OutbackCdx] {
                let target = read(dialect, query).unwrap();
                assert_eq!(target.kind, kind, "{query}");
                assert_eq!(target.url, url.as_bytes(), "{query}");
            }
        }
    }

    /// Fails if a literal star is lost from its key.
    #[test]
    fn literal_star_is_part_of_key() {
        let target = read(Dialect::Pywb, "url=a.org/x*&matchType=exact").unwrap();
        assert_eq!(
            target.keys,
            KeyMatch::Exact(UrlKey::parse("http://a.org/x*"))
        );
    }

    /// Fails if only one server's match types, or their capitals, are known everywhere.
    #[test]
    fn match_types_are_of_their_dialect() {
        for dialect in [Dialect::Pywb, Dialect::Wayback] {
            for kind in ["range", "EXACT", "fuzzy"] {
                assert!(read(dialect, &format!("url=a.org&matchType={kind}")).is_err());
            }
        }
        for (kind, expected) in [
            ("range", Some(MatchKind::Range)),
            ("PREFIX", Some(MatchKind::Prefix)),
            ("Default", Some(MatchKind::Exact)),
            ("fuzzy", None),
        ] {
            let target = read(Dialect::OutbackCdx, &format!("url=a.org&matchType={kind}"));
            assert_eq!(target.ok().map(|t| t.kind), expected, "{kind}");
        }
    }

    /// Fails if the key of a POST is not the one that an index has for it.
    #[test]
    fn method_and_body_make_the_key() {
        let query = "url=http://httpbin.org/post&method=post&requestBody=foo%3Dbar%26a%3D1";
        let target = read(Dialect::OutbackCdx, query).unwrap();
        let appended = archive_formats::post::append_post_query(
            "http://httpbin.org/post",
            "POST",
            Some(b"application/x-www-form-urlencoded"),
            b"foo=bar&a=1",
        );
        assert_eq!(
            target.keys,
            KeyMatch::Exact(UrlKey::parse(appended.unwrap().url))
        );
        let get = read(Dialect::OutbackCdx, "url=http://a.org/x&method=GET").unwrap();
        assert_eq!(get.keys, KeyMatch::Exact(UrlKey::parse("http://a.org/x")));
        assert!(read(Dialect::OutbackCdx, "url=a.org&method=PO%20ST").is_err());
    }

    /// Fails if a request without a URL, or with two, or a host match without a host gets an answer.
    #[test]
    fn urls_that_select_nothing_are_refused() {
        assert_eq!(
            read(Dialect::Pywb, "url="),
            Err(CdxRequestError::Missing("url"))
        );
        assert!(read(Dialect::OutbackCdx, "url=a.org&urlkey=org,a)/").is_err());
        assert!(read(Dialect::Wayback, "url=urn:isbn:1&matchType=host").is_err());
        let key = read(Dialect::OutbackCdx, "urlkey=org,a)/x").unwrap();
        assert_eq!(key.keys, KeyMatch::Exact(UrlKey::from_index("org,a)/x")));
        // Other dialects do not know the parameter.
        assert!(read(Dialect::Pywb, "urlkey=org,a)/x").is_err());
    }

    /// Fails if a very long URL, or bytes that are not text, cannot be asked for.
    #[test]
    fn any_bytes_make_a_key() {
        let long = format!("url=http://a.org/{}", "x".repeat(10_000));
        assert!(read(Dialect::Wayback, &long).is_ok());
        let target = read(Dialect::Pywb, "url=http://a.org/%E6%F8").unwrap();
        assert_eq!(
            target.keys,
            KeyMatch::Exact(UrlKey::parse(b"http://a.org/\xe6\xf8"))
        );
    }
}
