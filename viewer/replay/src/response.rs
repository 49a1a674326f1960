//! Raw answers: from an archived record to the head and the bytes that go over the wire.
//!
//! Owns which fields of an archived head become fields of an answer and which are only kept under another name
//! (`X-Archive-Orig-…`), the status, where a redirect leads, ranges, and how the bytes are held against their digest
//! while they pass. Does not rewrite pages, and adds no security policy of the replay host: that is the business of the
//! server.
//!
//! An archived head is bytes from a stranger. A field of the answer is a token and one line without control characters,
//! or it is left out and counted. Nothing of it means anything to a browser, except the few fields that say what the
//! bytes are.
//!
//! ```
//! use archive_formats::http::Head;
//! use viewer_replay::request::Addresses;
//! use viewer_replay::response::{Redirects, ReplyHead, ReplyOptions};
//!
//! let stored = b"HTTP/1.1 302 Found\r\nLocation: /next\r\nSet-Cookie: a=b\r\n\r\n";
//! let head = Head::read_head(&mut stored.as_slice(), 1 << 20)?;
//! let addresses = Addresses::new("", "all");
//! let reply = ReplyHead::new(Some(&head), &ReplyOptions {
//!     url: "http://a.dk/",
//!     time: "20200101000000".parse()?,
//!     media: None,
//!     redirects: Redirects::InArchive { addresses: &addresses, modifier: None },
//!     is_decoded: false,
//! });
//! assert_eq!(reply.status, 302);
//! assert_eq!(reply.get("Location"), Some(&b"/all/20200101000000/http://a.dk/next"[..]));
//! assert_eq!(reply.get("Set-Cookie"), None);
//! assert_eq!(reply.get("X-Archive-Orig-Set-Cookie"), Some(&b"a=b"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod audit;
mod fields;
mod message;
mod range;
mod verbatim;

use archive_formats::date::Stamp;
use archive_formats::http::{Head, HeaderField, Start};
use url::Url;

use crate::request::{Addresses, Modifier};
use fields::{FieldUse, is_token, use_of, value_of};

pub use audit::{AuditedBody, PayloadAudit};
pub use message::{EntityMeasure, StoredMessage, decoded_entity, measure_entity};
pub use range::{Extent, ReplyMethod};

/// The most bytes of fields under other names: browsers and proxies refuse an answer with more.
const MOST_TOLD: usize = 16 * 1024;

/// The longest value of a field under another name.
const LONGEST_TOLD: usize = 4 * 1024;

/// The name under which an archived field is kept.
const TOLD: &str = "X-Archive-Orig-";

/// The target of redirects.
#[derive(Clone, Copy, Debug)]
pub enum Redirects<'a> {
    /// No target (`id_`): the status says that there is one, and `X-Archive-Orig-Location` where it went. A `Location`
    /// would lead a browser to the live web.
    Reported,
    /// The capture of the new URL at the same time (`ir_`, pages).
    InArchive {
        /// The addresses of the collection.
        addresses: &'a Addresses,
        /// The form in which that capture is shown.
        modifier: Option<Modifier>,
    },
    /// Into the hands of a service worker: the status is 200, and `x-redirect-status`, `x-redirect-statusText` and
    /// `x-orig-location` say what it was, because a worker cannot stop a redirect that it follows.
    ToWorker,
}

/// The options of an answer with a record.
#[derive(Clone, Copy, Debug)]
pub struct ReplyOptions<'a> {
    /// The URL of the capture.
    pub url: &'a str,
    /// The time of the capture.
    pub time: Stamp,
    /// The media type of a record without an HTTP head, from its WARC header.
    pub media: Option<&'a [u8]>,
    /// The target of redirects.
    pub redirects: Redirects<'a>,
    /// Whether content encodings are undone before the bytes are sent.
    pub is_decoded: bool,
}

/// The head of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyHead {
    /// The status of the answer.
    pub status: u16,
    /// The fields in their order: names are tokens, values have no control characters.
    pub fields: Vec<(String, Vec<u8>)>,
}

impl ReplyHead {
    /// Returns the answer with a stored head; `None` for a record without one.
    pub fn new(head: Option<&Head>, options: &ReplyOptions<'_>) -> Self {
        let mut reply = Self {
            status: head.and_then(Head::status).map_or(200, final_status),
            fields: Vec::new(),
        };
        let stored = head.map(Head::fields).unwrap_or_default();
        if head.is_none()
            && let Some(media) = options
                .media
                .map(value_of)
                .filter(|media| !media.is_empty())
        {
            reply.add_field("Content-Type", media);
        }
        let mut renamed = ReplyFields::default();
        for field in stored {
            match use_of(&field.name) {
                FieldUse::Representation if reply.get_bytes(&field.name).is_none() => {
                    reply.pass(field);
                }
                FieldUse::Coding if !options.is_decoded => reply.pass(field),
                FieldUse::Representation | FieldUse::Coding | FieldUse::Reported => {
                    renamed.push(field);
                }
            }
        }
        if let Some(head) = head {
            reply.redirect(head, options);
        }
        renamed.finish(&mut reply);
        reply
    }

    /// Returns the first value of a field of this name, in any case.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.get_bytes(name.as_bytes())
    }

    fn get_bytes(&self, name: &[u8]) -> Option<&[u8]> {
        let mut fields = self.fields.iter();
        fields
            .find(|(known, _)| known.as_bytes().eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_slice())
    }

    /// Adds a field. The value is cleaned as those of archived fields are.
    pub fn add_field(&mut self, name: &str, value: impl AsRef<[u8]>) {
        self.fields
            .push((name.to_owned(), value_of(value.as_ref())));
    }

    /// Sets a field, and removes others of its name.
    pub fn set_field(&mut self, name: &str, value: impl AsRef<[u8]>) {
        self.remove_field(name);
        self.add_field(name, value);
    }

    /// Removes the fields of a name.
    pub fn remove_field(&mut self, name: &str) {
        self.fields
            .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
    }

    /// Adds a field as it was archived.
    fn pass(&mut self, field: &HeaderField) {
        if let (true, Ok(name)) = (is_token(&field.name), str::from_utf8(&field.name)) {
            self.add_field(name, &field.value);
        }
    }

    fn redirect(&mut self, head: &Head, options: &ReplyOptions<'_>) {
        let location = head.get("location").filter(|location| !location.is_empty());
        let is_redirect = (300..400).contains(&self.status) && self.status != 304;
        let location = location.filter(|_| is_redirect);
        match options.redirects {
            Redirects::Reported => {}
            Redirects::InArchive {
                addresses,
                modifier,
            } => {
                if let Some(url) = location.and_then(|location| resolve(options.url, location)) {
                    let address = addresses.memento_address(options.time, modifier, &url);
                    self.add_field("Location", address);
                }
            }
            Redirects::ToWorker => {
                self.add_field("x-orig-ts", options.time.to_string());
                if let Some(location) = location {
                    self.add_field("x-redirect-status", self.status.to_string());
                    self.add_field("x-redirect-statusText", reason(head));
                    self.add_field("x-orig-location", location);
                    self.status = 200;
                }
            }
        }
    }
}

/// The archived fields that are kept under other names.
#[derive(Debug, Default)]
struct ReplyFields {
    fields: Vec<(String, Vec<u8>)>,
    bytes: usize,
    omitted: usize,
}

impl ReplyFields {
    fn push(&mut self, field: &HeaderField) {
        let (true, Ok(name)) = (is_token(&field.name), str::from_utf8(&field.name)) else {
            self.omitted += 1;
            return;
        };
        let bytes = TOLD.len() + name.len() + field.value.len();
        if field.value.len() > LONGEST_TOLD || self.bytes.saturating_add(bytes) > MOST_TOLD {
            self.omitted += 1;
            return;
        }
        self.bytes += bytes;
        let value = value_of(&field.value);
        self.fields.push((format!("{TOLD}{name}"), value));
    }

    fn finish(self, reply: &mut ReplyHead) {
        reply.fields.extend(self.fields);
        if self.omitted > 0 {
            reply.add_field("X-Archive-Omitted-Fields", self.omitted.to_string());
        }
    }
}

/// Returns a status that ends an exchange: interim ones and those that HTTP does not have become 200.
const fn final_status(status: u16) -> u16 {
    match status {
        200..=999 => status,
        _ => 200,
    }
}

/// Returns the words behind the status.
fn reason(head: &Head) -> &[u8] {
    match head.start() {
        Start::Status { reason, .. } => reason,
        Start::Request { .. } | Start::Missing => b"",
    }
}

/// Returns where a `Location` leads from a URL; `None` if that is not a URL of the web.
fn resolve(url: &str, location: &[u8]) -> Option<String> {
    let location = match str::from_utf8(location) {
        Ok(location) => location.to_owned(),
        Err(_) => escape_bytes(location),
    };
    let found = match Url::parse(url) {
        Ok(base) => base.join(location.trim()).ok()?,
        Err(_) => Url::parse(location.trim()).ok()?,
    };
    matches!(found.scheme(), "http" | "https" | "ftp").then(|| {
        let mut found = found;
        found.set_fragment(None);
        found.into()
    })
}

/// Returns bytes that are no UTF-8, with what is not ASCII escaped.
fn escape_bytes(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        if byte.is_ascii() {
            text.push(char::from(*byte));
        } else {
            let escaped = format!("%{byte:02X}");
            text.push_str(&escaped);
        }
    }
    text
}

#[cfg(test)]
mod tests;
