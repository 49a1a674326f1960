//! Seeds: the URIs that a crawl begins with.
//!
//! Owns how people write them: one a line, with or without a scheme, with comments.

use std::collections::HashSet;

use url::Url;

/// A text that is no seed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSeed {
    /// The text is no URI.
    #[error("`{text}` is no seed: {why}; write for example `https://www.example.dk/`")]
    Syntax {
        /// The text of the seed.
        text: String,
        /// The mistake in the syntax.
        why: url::ParseError,
    },
    /// The text is a URI that is not fetched by HTTP.
    #[error("`{0}` is no seed: only `http` and `https` are harvested")]
    Scheme(String),
    /// The URI has a user or a password, which would be documented. They are not repeated here.
    #[error("a seed on {host} has a user or a password in it; write a [[credential]] in the order")]
    User {
        /// The host of the seed.
        host: String,
    },
}

/// A line of a list that is no seed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct InvalidSeedLine {
    /// The number of the line, from 1.
    pub line: usize,
    /// The mistake in the line.
    pub why: InvalidSeed,
}

/// Reads a seed. Without a scheme it is one of `http`, as in NetarchiveSuite. A fragment is cut off: no host sees it.
///
/// # Errors
///
/// [`InvalidSeed`].
///
/// ```
/// use harvest_model::seed::parse_seed;
///
/// assert_eq!(parse_seed("www.blåbær.dk#top")?.as_str(), "http://www.xn--blbr-roah.dk/");
/// # Ok::<(), harvest_model::seed::InvalidSeed>(())
/// ```
pub fn parse_seed(text: &str) -> Result<Url, InvalidSeed> {
    let text = text.trim();
    let whole = if has_scheme(text) {
        text.to_owned()
    } else {
        format!("http://{text}")
    };
    let invalid = |why| InvalidSeed::Syntax {
        text: text.to_owned(),
        why,
    };
    let mut url = Url::parse(&whole).map_err(invalid)?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(InvalidSeed::Scheme(text.to_owned()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(InvalidSeed::User {
            host: url.host_str().unwrap_or_default().to_owned(),
        });
    }
    url.set_fragment(None);
    Ok(url)
}

/// Returns whether a text begins with a scheme. `localhost:8080` does not: what follows the colon is a port.
fn has_scheme(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-');
    rest.starts_with("//")
        || (scheme.chars().all(is_name) && !rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Reads a list of seeds, one a line, in their order and each once. Empty lines and those that begin with `#` or `//`
/// are comments.
///
/// # Errors
///
/// [`InvalidSeedLine`] names the first line that is no seed.
pub fn parse_seeds(text: &str) -> Result<Vec<Url>, InvalidSeedLine> {
    let mut known = HashSet::new();
    let mut seeds = Vec::new();
    for (text, line) in text.lines().map(str::trim).zip(1..) {
        if text.is_empty() || text.starts_with('#') || text.starts_with("//") {
            continue;
        }
        let seed = parse_seed(text).map_err(|why| InvalidSeedLine { line, why })?;
        if known.insert(seed.clone()) {
            seeds.push(seed);
        }
    }
    Ok(seeds)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a seed is read as another URI than people mean.
    #[test]
    fn seed_needs_no_scheme() {
        for (text, expected) in [
            (
                "https://www.example.dk/a?b=C",
                "https://www.example.dk/a?b=C",
            ),
            (" www.example.dk ", "http://www.example.dk/"),
            ("HTTP://Example.dk", "http://example.dk/"),
            ("localhost:8080/x", "http://localhost:8080/x"),
            ("127.0.0.1:80", "http://127.0.0.1/"),
            ("[::1]:8080", "http://[::1]:8080/"),
            ("blåbær.dk", "http://xn--blbr-roah.dk/"),
            ("http://a.dk/x#y", "http://a.dk/x"),
        ] {
            assert_eq!(parse_seed(text).unwrap().as_str(), expected, "{text}");
        }
    }

    /// Fails if something is taken that cannot be fetched, or a password would be documented.
    #[test]
    fn unfetchable_seed_is_refused() {
        for (text, expected) in [
            ("", "write for example"),
            ("http://", "write for example"),
            ("a b.dk", "write for example"),
            ("ftp://a.dk/", "only `http` and `https`"),
            ("mailto:a@b.dk", "only `http` and `https`"),
            ("javascript:void(0)", "only `http` and `https`"),
            ("http://user:word@a.dk/", "[[credential]]"),
            ("http://user@a.dk/", "[[credential]]"),
        ] {
            let error = parse_seed(text).unwrap_err().to_string();
            assert!(
                error.contains(expected) && !error.contains("word@"),
                "{error}"
            );
        }
    }

    /// Fails if a comment is harvested, a seed is lost or stands twice, or the wrong line is named.
    #[test]
    fn list_keeps_order_and_names_lines() {
        let seeds = parse_seeds("# all\n\nb.dk\r\n//no\n a.dk\nhttp://b.dk/\n").unwrap();
        let seeds: Vec<&str> = seeds.iter().map(Url::as_str).collect();
        assert_eq!(seeds, ["http://b.dk/", "http://a.dk/"]);
        assert_eq!(parse_seeds("a.dk\n\nftp://b.dk").unwrap_err().line, 3);
        assert_eq!(parse_seeds("# nothing"), Ok(Vec::new()));
    }
}
