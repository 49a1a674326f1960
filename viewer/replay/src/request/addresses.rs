//! The addresses of the replay host: the paths of a collection, made from URLs and times.
//!
//! Owns what [`ReplayRequest::parse`](super::ReplayRequest::parse) reads: an address that is made here is read there as what it was
//! made from. All of them are visible ASCII, so that they stand in a header as they are.

use archive_formats::date::Stamp;

use super::{Modifier, TimeMapFormat};

/// The addresses of one collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// Origin and collection, without a slash at the end.
    base: String,
}

impl Addresses {
    /// Returns the addresses of a collection at an origin such as `http://127.0.0.1:8091`; with an empty one, paths.
    pub fn new(origin: &str, collection: &str) -> Self {
        Self {
            base: format!("{}/{collection}", origin.trim_end_matches('/')),
        }
    }

    /// Returns the address of a capture (URI-M).
    pub fn memento_address(&self, time: Stamp, modifier: Option<Modifier>, url: &str) -> String {
        let modifier = modifier.map_or("", Modifier::name);
        self.with_url(&format!("{time}{modifier}/"), url)
    }

    /// Returns the address of the TimeGate (URI-G).
    pub fn time_gate(&self, url: &str) -> String {
        self.with_url("", url)
    }

    /// Returns the address of a TimeMap (URI-T), or of one of its pages.
    pub fn time_map(&self, format: TimeMapFormat, page: Option<u32>, url: &str) -> String {
        let mut path = format!("timemap/{}/", format.name());
        if let Some(page) = page {
            path.push_str(&page.to_string());
            path.push('/');
        }
        self.with_url(&path, url)
    }

    fn with_url(&self, path: &str, url: &str) -> String {
        let mut address = format!("{}/{path}", self.base);
        push_safe(&mut address, url.as_bytes());
        address
    }
}

/// Returns a URL as it can stand in a header and between `<` and `>`: what is not visible ASCII, or could end it there,
/// is escaped.
pub fn header_safe(url: &str) -> String {
    let mut safe = String::with_capacity(url.len());
    push_safe(&mut safe, url.as_bytes());
    safe
}

fn push_safe(out: &mut String, url: &[u8]) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let digit = |nibble: u8| char::from(HEX.get(usize::from(nibble)).copied().unwrap_or(b'0'));
    for byte in url {
        if byte.is_ascii_graphic() && !matches!(byte, b'"' | b'<' | b'>' | b'#' | b'\\') {
            out.push(char::from(*byte));
        } else {
            out.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
}
