//! The fast way to the key of a plain URL: `http` or `https`, a host of names, nothing escaped and nothing to escape.
//!
//! Nearly all URLs of an archive are plain, and an index makes the keys of all of them. Returns the key that the rules
//! give, or nothing.

use super::{authority, query};

/// Returns the key of a URL; `None` if it is not plain.
pub(super) fn plain_key(url: &[u8]) -> Option<String> {
    let stays = |byte: &u8| (0x21..=0x7e).contains(byte) && !matches!(byte, b'%' | b'#');
    if !url.iter().all(stays) {
        return None;
    }
    let url = str::from_utf8(url).ok()?;
    let rest = url.strip_prefix("http")?;
    let rest = rest.strip_prefix('s').unwrap_or(rest);
    let rest = rest.strip_prefix("://")?;
    let is_end = |byte: u8| matches!(byte, b'/' | b'?');
    let end = rest.bytes().position(is_end).unwrap_or(rest.len());
    let (host, rest) = rest.split_at_checked(end)?;
    let (path, arguments) = match rest.split_once('?') {
        Some((path, arguments)) => (path, Some(arguments)),
        None => (rest, None),
    };
    let mut key = String::with_capacity(url.len());
    push_host(&mut key, host)?;
    key.push(')');
    push_path(&mut key, path)?;
    key.make_ascii_lowercase();
    if let Some(arguments) = arguments {
        query::append_canonical(&mut key, arguments.to_ascii_lowercase());
    }
    Some(key)
}

/// Appends a host of labels; `None` if it may be an address.
fn push_host(key: &mut String, host: &str) -> Option<()> {
    let is_of_names = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if !host.bytes().all(is_of_names) {
        return None;
    }
    let host = match host.split_once('.') {
        Some((first, rest)) if authority::is_www(first) => rest,
        _ => host,
    };
    let last = host.rsplit('.').next()?;
    if last.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    for (at, label) in host.rsplit('.').enumerate() {
        if label.is_empty() {
            return None;
        }
        if at > 0 {
            key.push(',');
        }
        key.push_str(label);
    }
    Some(())
}

/// Appends a path; `None` if it has dot segments or a page that may have a session before it.
fn push_path(key: &mut String, path: &str) -> Option<()> {
    let begin = key.len();
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        if matches!(segment, "." | "..") {
            return None;
        }
        key.push('/');
        key.push_str(segment);
    }
    if key.len() == begin {
        key.push('/');
    }
    // A session stands in brackets.
    let has_session = path.contains('(');
    (!has_session).then_some(())
}

#[cfg(test)]
mod tests {
    use super::super::{key as by_rules, tests::judged};

    /// Fails if the short way gives another key than the rules, or is never taken.
    #[test]
    fn plain_keys_are_those_of_the_rules() {
        let mut plain = 0_u32;
        let mut check = |url: &[u8]| {
            if let Some(key) = super::plain_key(url) {
                assert_eq!(key, by_rules(url), "{}", url.escape_ascii());
                plain += 1;
            }
        };
        for (url, _) in judged() {
            let url = url.as_bytes();
            check(url);
            for at in 0..url.len() {
                check(&url[..at]);
                let mut changed = url.to_vec();
                for byte in *b" %#:/?.&=@(aZ09_~\x7f\xc3" {
                    changed[at] = byte;
                    check(&changed);
                }
            }
        }
        let pieces = [
            "/",
            "/",
            ".",
            "..",
            "a",
            "B",
            "www",
            "www1",
            "WWW2",
            "1",
            "0x7f",
            "_",
            "-",
            "?",
            "&",
            "=",
            "id",
            "sid=",
            "PHPSESSID=",
            "0123456789abcdef",
            "jsessionid=",
            ".aspx",
            "(S(",
            "))",
            "cfid=1&cftoken=2",
            ":80",
            "@",
            "~",
            ";",
            "%41",
            "é",
            "x.dk",
            "://",
            "http",
            "dk",
            "aspsessionidabcdefgh=abcdefghijklmnopqrstuvwx",
            "|",
            "\"",
            "\\",
            "+",
            "!",
            "*",
        ];
        let mut seed = 11_u64;
        let mut random = |end: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            usize::try_from(seed >> 20).unwrap() % end
        };
        let begins = [
            "http://",
            "https://",
            "http://a.dk",
            "https://www.b-c.org/",
            "HTTP://",
            "//",
            "",
        ];
        for _ in 0..200_000 {
            let mut url = begins[random(begins.len())].to_owned();
            for _ in 0..random(9) {
                url.push_str(pieces[random(pieces.len())]);
            }
            check(url.as_bytes());
        }
        assert!(plain > 50_000, "{plain}");
    }
}
