//! The form in which a crawl tells whether it has seen a URI.
//!
//! Two URIs of one form are fetched once. In order: no user, no fragment, no `www.` in front of a host and
//! no dot at its end, no session id in path or query, no `?` without a query. Hosts are in small letters already; paths
//! keep their case, because most hosts of today do tell cases apart. The URI itself is what is fetched and archived,
//! never this form.

use url::Url;

/// Parameters of a query that name a session, and the fewest characters of a value that is one.
const SESSION_PARAMETERS: [(&str, usize); 6] = [
    ("jsessionid", 1),
    ("phpsessid", 10),
    ("aspsessionid", 10),
    ("sid", 32),
    ("cfid", 1),
    ("cftoken", 1),
];

/// Returns the form of a URI in which it is remembered as seen.
///
/// ```
/// use harvest_policy::canonical::canonical_uri;
/// use url::Url;
///
/// let uri = Url::parse("http://user@WWW.example.dk/A;jsessionid=1F0B?PHPSESSID=0123456789abcdef&b=c#d")?;
/// assert_eq!(canonical_uri(&uri), "http://example.dk/A?b=c");
/// # Ok::<(), url::ParseError>(())
/// ```
pub fn canonical_uri(url: &Url) -> String {
    let mut form = format!("{}://", url.scheme());
    let host = url.host_str().unwrap_or_default();
    form.push_str(without_www(host.trim_end_matches('.')));
    if let Some(port) = url.port() {
        form.push(':');
        form.push_str(&port.to_string());
    }
    form.push_str(&without_session(url.path()));
    let query = url.query().unwrap_or_default();
    let parameters: Vec<&str> = query.split('&').filter(|part| !is_session(part)).collect();
    let query = parameters.join("&");
    if !query.is_empty() {
        form.push('?');
        form.push_str(&query);
    }
    form
}

/// Returns the host without `www.`; a host of which nothing but a suffix would be left keeps it. `www2.` and the like are
/// hosts of their own: Heritrix takes them for `www.` too, and loses sites by it.
fn without_www(host: &str) -> &str {
    let short = host.strip_prefix("www.");
    short.filter(|short| short.contains('.')).unwrap_or(host)
}

/// Returns the path without `;jsessionid=…` in any of its segments.
fn without_session(path: &str) -> String {
    let segments: Vec<String> = path
        .split('/')
        .map(|segment| {
            let parts: Vec<&str> = segment
                .split(';')
                .enumerate()
                .filter(|(index, part)| *index == 0 || !is_session(part))
                .map(|(_, part)| part)
                .collect();
            parts.join(";")
        })
        .collect();
    segments.join("/")
}

/// Returns whether `name=value` is a session of a name that is known.
fn is_session(parameter: &str) -> bool {
    let Some((name, value)) = parameter.split_once('=') else {
        return false;
    };
    let name = name.to_ascii_lowercase();
    SESSION_PARAMETERS.iter().any(|(known, fewest)| {
        // Microsoft's have a random tail: `ASPSESSIONIDCSSQ`.
        let named = name == *known || (*known == "aspsessionid" && name.starts_with(known));
        named
            && value.len() >= *fewest
            && value
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"._!-".contains(&byte))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if two spellings of one place are two, or two places are one.
    #[test]
    fn spellings_of_one_place_are_one() {
        for (uri, expected) in [
            ("HTTP://www.Example.dk", "http://example.dk/"),
            ("http://www12.example.dk:80/", "http://www12.example.dk/"),
            ("https://example.dk:8443/a", "https://example.dk:8443/a"),
            ("http://www.dk/", "http://www.dk/"),
            ("http://wwwx.example.dk/", "http://wwwx.example.dk/"),
            ("http://www.example.dk./", "http://example.dk/"),
            ("http://example.dk/A/b?", "http://example.dk/A/b"),
            ("http://example.dk/a#top", "http://example.dk/a"),
            ("http://example.dk/?b=2&a=1", "http://example.dk/?b=2&a=1"),
            (
                "http://example.dk/a;jsessionid=0A1B!2/b;v=1",
                "http://example.dk/a/b;v=1",
            ),
            (
                "http://example.dk/?ASPSESSIONIDCSSQ=ABCDEFGHIJKL&x",
                "http://example.dk/?x",
            ),
            ("http://example.dk/?sid=5", "http://example.dk/?sid=5"),
            ("http://example.dk/?CFID=1&CFTOKEN=2", "http://example.dk/"),
            ("http://[::1]:81/", "http://[::1]:81/"),
            ("dns:example.dk", "dns://example.dk"),
        ] {
            assert_eq!(canonical_uri(&Url::parse(uri).unwrap()), expected, "{uri}");
        }
    }
}
