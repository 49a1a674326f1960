//! Keys of requests that have a body: the method and the body are written into the URL.
//!
//! Owns the rules (pywb's since 2.6.7, as cdxj-indexer has them), so that a captured POST is found by its body. Methods
//! other than GET add `__wb_method=…`; the bodies of POST and PUT follow it: forms decoded, multipart as a form, JSON
//! flattened (`name`, `name.2_`, `name.3_`), all else as `__wb_post_data=` in Base64. A body that claims to be JSON and
//! is not adds nothing. Never fails; does not promise that the key can be turned back into the request.
//!
//! Where it differs from cdxj-indexer 1.5.0, on purpose: media types are read in any case; the text goes before a
//! fragment, not behind it, where it would be lost with it; multipart that cannot be read becomes Base64, not an
//! exception; AMF is Base64; integers beyond 64 bits are written as the nearest float, and `-0` as `-0.0`; of a body
//! only the first mebibyte is looked at.

mod flatten;
mod multipart;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::http::MediaType;

/// The most characters that a body adds to a URL.
pub const MAX_QUERY: usize = 4096;

/// The most bytes of a body that are looked at: of a longer one, the beginning is enough.
pub const MAX_BODY: usize = 1 << 20;

/// The URL of a request with the text that makes its key.
///
/// ```
/// use archive_formats::post::append_post_query;
///
/// let form = Some(&b"application/x-www-form-urlencoded"[..]);
/// let appended = append_post_query("http://a.dk/search", "POST", form, b"q=holdfast").unwrap();
/// assert_eq!(appended.url, "http://a.dk/search?__wb_method=POST&q=holdfast");
/// assert!(append_post_query("http://a.dk/search", "GET", None, b"").is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostUrl {
    /// The URL to make a key of.
    pub url: String,
    /// The body as a query: `requestBody` in CDXJ. Empty if the body adds nothing.
    pub body: String,
}

/// Writes a method and a body into a URL. Returns `None` for GET, whose URL is the key as it is.
pub fn append_post_query(
    url: &str,
    method: &str,
    content_type: Option<&[u8]>,
    body: &[u8],
) -> Option<PostUrl> {
    let method = method.trim();
    if method.eq_ignore_ascii_case("GET") || method.is_empty() {
        return None;
    }
    let query = match method {
        "POST" | "PUT" => query(
            content_type.unwrap_or_default(),
            body.get(..MAX_BODY).unwrap_or(body),
        ),
        _ => String::new(),
    };
    let query = match query.char_indices().nth(MAX_QUERY) {
        Some((end, _)) => query.get(..end).unwrap_or_default().to_owned(),
        None => query,
    };
    let (before, fragment) = match url.find('#') {
        Some(at) => url.split_at(at),
        None => (url, ""),
    };
    let mut appended = String::with_capacity(url.len() + query.len() + 24);
    appended.push_str(before);
    appended.push(if before.contains('?') { '&' } else { '?' });
    appended.push_str("__wb_method=");
    appended.push_str(method);
    if !query.is_empty() {
        appended.push('&');
        appended.push_str(&query);
    }
    appended.push_str(fragment);
    Some(PostUrl {
        url: appended,
        body: query,
    })
}

fn query(content_type: &[u8], body: &[u8]) -> String {
    let kind = MediaType::read_media(content_type)
        .map(|m| m.essence)
        .unwrap_or_default();
    if kind.starts_with("application/x-www-form-urlencoded") {
        return match str::from_utf8(body) {
            Ok(form) => unquote(form),
            Err(_) => base64(body),
        };
    }
    if kind.starts_with("multipart/") {
        return match MediaType::read_parameter(content_type, "boundary")
            .and_then(|b| multipart::multipart_fields(&b, body))
        {
            Some(fields) => encode(
                fields
                    .iter()
                    .map(|(name, value)| (name.as_str(), value.as_slice())),
            ),
            None => base64(body),
        };
    }
    if kind.starts_with("application/json") {
        return flatten::flatten_json(body).unwrap_or_default();
    }
    if kind.starts_with("text/plain")
        && let Some(query) = flatten::flatten_json(body)
    {
        return query;
    }
    base64(body)
}

fn base64(body: &[u8]) -> String {
    format!("__wb_post_data={}", STANDARD.encode(body))
}

/// Undoes the escapes of a form; bytes that are not UTF-8 then become U+FFFD.
fn unquote(form: &str) -> String {
    let mut bytes = form.as_bytes().iter();
    let mut out = Vec::with_capacity(form.len());
    while let Some(&byte) = bytes.next() {
        match byte {
            b'+' => out.push(b' '),
            b'%' => {
                let digits = bytes
                    .as_slice()
                    .get(..2)
                    .and_then(|d| str::from_utf8(d).ok());
                let value = digits
                    .filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))
                    .and_then(|d| u8::from_str_radix(d, 16).ok());
                match value {
                    Some(value) => {
                        out.push(value);
                        bytes.next();
                        bytes.next();
                    }
                    None => out.push(b'%'),
                }
            }
            other => out.push(other),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Writes names and values as a form: all but letters, digits and `_.-~` escaped, blanks as `+`.
fn encode<'a>(fields: impl Iterator<Item = (&'a str, &'a [u8])>) -> String {
    let mut out = String::new();
    for (name, value) in fields {
        if !out.is_empty() {
            out.push('&');
        }
        quote(&mut out, name.as_bytes());
        out.push('=');
        quote(&mut out, value);
    }
    out
}

fn quote(out: &mut String, text: &[u8]) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in text {
        match byte {
            b' ' => out.push('+'),
            b'_' | b'.' | b'-' | b'~' => out.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => out.push(char::from(byte)),
            _ => {
                out.push('%');
                for nibble in [byte >> 4, byte & 15] {
                    out.extend(HEX.get(usize::from(nibble)).copied().map(char::from));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
