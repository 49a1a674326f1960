//! URLs beside their keys: most of a URL is in the key already.

use super::take_byte;
use super::text::{put_text, take_text};

/// The whole URL follows.
const WHOLE: u8 = 0;
/// The first of the numbers for a URL that is made from its key: some of the marks below are added.
const DERIVED: u8 = 0x10;
/// The first of the numbers for a URL whose scheme and host are made from its key; the text from the path on follows.
const HOST: u8 = 0x20;

/// The mark of a URL that begins with `https://`; without it, the URL begins with `http://`.
const HTTPS: u8 = 1;
/// The mark of a host that begins with `www.`, which the key has lost.
const WWW: u8 = 2;
/// The mark of a URL that ends with a slash which the key has lost.
const SLASH: u8 = 4;
/// The mark of a URL without a path, in whose place the key has a slash.
const BARE: u8 = 8;

/// Writes a URL that has this key.
pub(super) fn put_url(out: &mut Vec<u8>, key: &str, url: &str) {
    let behind = scheme(url).and_then(|(marks, rest)| {
        let (marks, rest) = match rest.strip_prefix("www.") {
            Some(rest) => (marks | WWW, rest),
            None => (marks, rest),
        };
        Some((marks, behind_host(key, rest)?))
    });
    let Some((marks, rest)) = behind else {
        out.push(WHOLE);
        put_text(out, url);
        return;
    };
    let path = path(key).unwrap_or_default();
    let mark = if rest == path {
        Some(0)
    } else if rest.strip_suffix('/') == Some(path) {
        Some(SLASH)
    } else if rest.is_empty() && path == "/" {
        Some(BARE)
    } else {
        None
    };
    if let Some(mark) = mark {
        out.push(DERIVED | marks | mark);
        return;
    }
    out.push(HOST | marks);
    put_text(out, rest);
}

/// Returns the text behind the host that is that of a key.
fn behind_host<'a>(key: &str, text: &'a str) -> Option<&'a str> {
    let (labels, port) = host(key)?;
    let mut rest = text;
    for (at, label) in labels.rsplit(',').enumerate() {
        if at > 0 {
            rest = rest.strip_prefix('.')?;
        }
        rest = rest.strip_prefix(label)?;
    }
    rest.strip_prefix(port)
}

/// Reads a URL that has this key.
pub(super) fn take_url(rest: &mut &[u8], key: &str) -> Option<String> {
    let first = take_byte(rest)?;
    let marks = first & 0x0f;
    let mut url = String::with_capacity(key.len() + 16);
    match first & 0xf0 {
        WHOLE if marks == 0 => url.push_str(take_text(rest)?),
        DERIVED => {
            push_host(&mut url, key, marks)?;
            if marks & BARE == 0 {
                url.push_str(path(key)?);
            }
            if marks & SLASH != 0 {
                url.push('/');
            }
        }
        HOST => {
            push_host(&mut url, key, marks)?;
            url.push_str(take_text(rest)?);
        }
        _ => return None,
    }
    Some(url)
}

/// Returns the scheme as marks, and the URL from its host on.
fn scheme(url: &str) -> Option<(u8, &str)> {
    if let Some(rest) = url.strip_prefix("http://") {
        return Some((0, rest));
    }
    url.strip_prefix("https://").map(|rest| (HTTPS, rest))
}

/// Returns the path and the query of a key.
fn path(key: &str) -> Option<&str> {
    key.split_once(')').map(|(_, path)| path)
}

/// Returns the labels of the host of a key, turned round, and its port with the colon.
fn host(key: &str) -> Option<(&str, &str)> {
    let (host, _) = key.split_once(')')?;
    Some(host.find(':').map_or((host, ""), |at| host.split_at(at)))
}

/// Returns scheme and host of a key; `None` if it has no host that is reversed.
fn push_host(url: &mut String, key: &str, marks: u8) -> Option<()> {
    let (labels, port) = host(key)?;
    url.push_str(if marks & HTTPS == 0 {
        "http://"
    } else {
        "https://"
    });
    if marks & WWW != 0 {
        url.push_str("www.");
    }
    for (at, label) in labels.rsplit(',').enumerate() {
        if at > 0 {
            url.push('.');
        }
        url.push_str(label);
    }
    url.push_str(port);
    Some(())
}
