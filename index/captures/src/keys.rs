//! Keys of captures, made from their URLs.

use std::borrow::Cow;
use std::fmt::Write as _;

use archive_formats::cdx::Capture;

/// The rules by which keys are made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyRules {
    pub(crate) version: u16,
    pub(crate) key: fn(&str) -> String,
}

impl KeyRules {
    /// Returns the key of a capture: of its URL and of the body that was posted to it. A capture without a URL keeps
    /// the key that it has.
    pub(crate) fn key_of(&self, capture: &Capture) -> String {
        let key = match &capture.original {
            Some(url) => (self.key)(&asked_url(capture, url)),
            None => capture.key.clone(),
        };
        clean(key)
    }
}

/// Returns the URL that a capture is asked for by: the method and the body of a request other than GET are in it.
fn asked_url<'a>(capture: &Capture, url: &'a str) -> Cow<'a, str> {
    let method = capture.extra("method").map(str::trim);
    let Some(method) = method.filter(|m| !m.is_empty() && !m.eq_ignore_ascii_case("GET")) else {
        return Cow::Borrowed(url);
    };
    let (before, fragment) = url.find('#').map_or((url, ""), |at| url.split_at(at));
    let mark = if before.contains('?') { '&' } else { '?' };
    let mut asked = format!("{before}{mark}__wb_method={method}");
    if let Some(body) = capture.extra("requestBody").filter(|body| !body.is_empty()) {
        asked.push('&');
        asked.push_str(body);
    }
    asked.push_str(fragment);
    Cow::Owned(asked)
}

/// Returns a key without blanks and control characters: they are escaped.
fn clean(key: String) -> String {
    if key.is_empty() {
        return "-".to_owned();
    }
    let is_unclean = |byte: u8| byte <= b' ' || byte == 0x7f;
    if !key.bytes().any(is_unclean) {
        return key;
    }
    let mut escaped = String::with_capacity(key.len() + 8);
    for character in key.chars() {
        if u8::try_from(character).is_ok_and(is_unclean) {
            // Writing to a string cannot fail.
            let _fits = write!(escaped, "%{:02X}", u32::from(character)).is_ok();
        } else {
            escaped.push(character);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use archive_formats::post;
    use archive_formats::surt::UrlKey;

    use super::*;

    const RULES: KeyRules = KeyRules {
        version: 1,
        key: |url| UrlKey::parse(url).to_string(),
    };

    fn capture(key: &str, url: Option<&str>) -> Capture {
        let mut capture = Capture::new(key, "20200101000000".parse().unwrap());
        capture.original = url.map(str::to_owned);
        capture
    }

    /// Fails if the key of a foreign line is believed, or one that cannot be made again is lost.
    #[test]
    fn keys_are_made_from_urls() {
        let check = |key: &str, url, expected: &str| {
            assert_eq!(RULES.key_of(&capture(key, url)), expected);
        };
        check("x", Some("http://www.a.dk/B"), "dk,a)/b");
        check("dk,a)/B", None, "dk,a)/B");
        check("a b\0\u{7f}é", None, "a%20b%00%7Fé");
        check("", None, "-");
        check("", Some(""), "-");
    }

    /// Fails if the key of a posted form differs from the one that extraction gives it.
    #[test]
    fn posted_bodies_are_in_keys() {
        let form = Some(&b"application/x-www-form-urlencoded"[..]);
        for url in ["http://a.dk/f", "http://a.dk/f?x=1#y"] {
            for body in ["b=2&c=3", ""] {
                let asked = post::append_post_query(url, "POST", form, body.as_bytes()).unwrap();
                let mut posted = capture("", Some(url));
                posted.extra.push(("requestBody".into(), asked.body));
                posted.extra.push(("method".into(), "POST".into()));
                let expected = UrlKey::parse(&asked.url).to_string();
                assert_eq!(RULES.key_of(&posted), expected);
            }
        }
    }
}
