//! The target of a redirect: the `Location` of a response, as a URL of its own.
//!
//! Owns which responses are redirects: a 3xx that is not 304, whose first `Location` is, or together with the URL of
//! the record becomes, an absolute `http` or `https` URL. The `Location` is resolved as browsers do it (the URL
//! Standard), so that the result is ASCII without blanks and line ends, whatever the server sent. Anything else is no
//! redirect: a guess would be a link to nowhere in every index.

use std::fmt::Write as _;

use url::Url;

use crate::http::Head;

/// The longest redirect that is kept, in bytes. A part of a URL is another URL, so that a longer one is left out.
const LONGEST: usize = 16 << 10;

/// Returns the target of the response to `url`, if it redirects.
pub(super) fn redirect_target(url: &str, head: &Head) -> Option<String> {
    if !matches!(head.status(), Some(300..=303 | 305..=399)) {
        return None;
    }
    resolve(url, head.get("Location")?)
}

fn resolve(url: &str, location: &[u8]) -> Option<String> {
    let location = location.trim_ascii();
    if location.is_empty() || location.len() > LONGEST {
        return None;
    }
    let location = escaped(location);
    let target = match Url::parse(url) {
        Ok(base) => base.join(&location),
        Err(_) => Url::parse(&location),
    };
    let target = target.ok()?;
    let is_http = matches!(target.scheme(), "http" | "https");
    (is_http && target.as_str().len() <= LONGEST).then(|| target.into())
}

/// Escapes bytes that are not ASCII one by one, as browsers do, whatever they were meant to be.
fn escaped(location: &[u8]) -> String {
    let mut text = String::with_capacity(location.len());
    for &byte in location {
        if byte.is_ascii() {
            text.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ok = write!(text, "%{byte:02X}").is_ok();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "http://www.example.org/a/b?c=d#e";

    fn resolved(location: &str) -> Option<String> {
        resolve(PAGE, location.as_bytes())
    }

    /// Fails if a browser would go somewhere else.
    #[test]
    fn location_is_resolved_as_browsers_do() {
        for (location, expected) in [
            ("http://other.example/x", "http://other.example/x"),
            ("HTTPS://Other.Example:443", "https://other.example/"),
            ("/x/../y", "http://www.example.org/y"),
            ("x y", "http://www.example.org/a/x%20y"),
            ("?q=1", "http://www.example.org/a/b?q=1"),
            ("#f", "http://www.example.org/a/b?c=d#f"),
            ("//cdn.example/z", "http://cdn.example/z"),
            ("\\\\cdn.example\\z", "http://cdn.example/z"),
            ("  /trimmed\t", "http://www.example.org/trimmed"),
            ("/æ", "http://www.example.org/%C3%A6"),
            ("http://bøger.dk/", "http://xn--bger-gra.dk/"),
        ] {
            assert_eq!(resolved(location).as_deref(), Some(expected), "{location}");
        }
        let latin = resolve(PAGE, b"/caf\xe9");
        assert_eq!(latin.as_deref(), Some("http://www.example.org/caf%E9"));
        let absolute = resolve("no url", b"http://a.example/");
        assert_eq!(absolute.as_deref(), Some("http://a.example/"));
    }

    /// Fails if a location that is not valid, or that no browser follows, is in an index.
    #[test]
    fn nonsense_is_no_redirect() {
        for location in [
            "",
            " ",
            "http://",
            "http://[::1",
            "http://a b/",
            "javascript:alert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "mailto:a@b.example",
        ] {
            assert_eq!(resolved(location), None, "{location}");
        }
        assert_eq!(resolve("no url", b"/relative"), None);
        assert_eq!(resolved(&"x".repeat(LONGEST + 1)), None);
        // Every blank becomes three characters.
        assert_eq!(resolved(&format!("/a{}b", " ".repeat(LONGEST / 2))), None);
        assert!(resolved(&"x".repeat(10_000)).is_some());
    }

    /// Fails if a server can end a line of an index, or begin one.
    #[test]
    fn line_ends_and_controls_stay_out() {
        for byte in 0..=u8::MAX {
            let location = [b"/a".as_slice(), &[byte], b"b"].concat();
            let target = resolve(PAGE, &location).unwrap();
            let is_clean = target.bytes().all(|byte| byte.is_ascii_graphic());
            assert!(is_clean, "{byte:#x}: {target:?}");
        }
        let injected = resolve(PAGE, b"/a\r\nSet-Cookie: b").unwrap();
        assert_eq!(injected, "http://www.example.org/aSet-Cookie:%20b");
    }
}
