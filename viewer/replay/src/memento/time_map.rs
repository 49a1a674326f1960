//! TimeMaps: all captures of a URL, in the form of RFC 7089, in JSON and in CDXJ.
//!
//! Owns their text, capture by capture, so that no TimeMap is held in memory, and how a long one becomes pages.
//! Captures come in the order of time, after access has been decided: a TimeMap shows what its visitor may see.

use archive_formats::cdx::{Capture, Format};
use archive_formats::date::Stamp;
use serde_json::Value;

use crate::request::{Addresses, TimeMapFormat, header_safe};

use super::http_date;

/// The captures that a TimeMap is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeMapScope {
    /// The first capture of the URL.
    pub first: Stamp,
    /// The last capture of the URL.
    pub last: Stamp,
    /// The page that the TimeMap is; `None` if all captures are in it.
    pub page: Option<TimeMapPage>,
}

/// A page of a TimeMap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeMapPage {
    /// The number of the page, from 1 on.
    pub number: u32,
    /// The first capture of the page.
    pub from: Stamp,
    /// The last capture of the page.
    pub until: Stamp,
    /// The number of captures of the page.
    pub captures: u64,
}

/// Returns the pages of a TimeMap with at most `size` captures each, from the times of all captures in their order.
pub fn split_pages(times: impl IntoIterator<Item = Stamp>, size: u64) -> Vec<TimeMapPage> {
    let size = size.max(1);
    let mut pages: Vec<TimeMapPage> = Vec::new();
    for time in times {
        match pages.last_mut() {
            Some(page) if page.captures < size => {
                page.until = time;
                page.captures += 1;
            }
            last => {
                let number = last.map_or(1, |page| page.number.saturating_add(1));
                pages.push(TimeMapPage {
                    number,
                    from: time,
                    until: time,
                    captures: 1,
                });
            }
        }
    }
    pages
}

/// A TimeMap of a URL, in a form.
#[derive(Clone, Copy, Debug)]
pub struct TimeMap<'a> {
    /// The addresses of the collection.
    pub addresses: &'a Addresses,
    /// The name of the collection.
    pub collection: &'a str,
    /// The URL whose captures the TimeMap lists.
    pub url: &'a str,
    /// The form of the TimeMap.
    pub format: TimeMapFormat,
    /// The captures that the TimeMap has.
    pub scope: TimeMapScope,
}

/// A writer of TimeMaps.
///
/// [`begin_map`](Self::begin_map), then each capture, or each page of one that is only an index of its pages, then
/// [`end_map`](Self::end_map). The output is appended to a text, which the caller may empty at any time.
#[derive(Debug)]
pub struct TimeMapWriter<'a> {
    map: TimeMap<'a>,
    /// The capture that is written once the next one comes, because the last one has a relation of its own.
    held: Option<(Stamp, String)>,
}

impl<'a> TimeMapWriter<'a> {
    /// Makes a writer that has written nothing yet.
    pub const fn new(map: TimeMap<'a>) -> Self {
        Self { map, held: None }
    }

    /// Returns the value of `Content-Type`.
    pub const fn content_type(&self) -> &'static str {
        match self.map.format {
            TimeMapFormat::Link => "application/link-format",
            TimeMapFormat::Json => "application/x-ndjson",
            TimeMapFormat::Cdxj => "text/x-cdxj",
        }
    }

    /// Writes what stands before the captures.
    pub fn begin_map(&mut self, out: &mut String) {
        if self.map.format != TimeMapFormat::Link {
            return;
        }
        let (number, from, until) = match self.map.scope.page {
            Some(page) => (Some(page.number), page.from, page.until),
            None => (None, self.map.scope.first, self.map.scope.last),
        };
        let text = format!("<{}>; rel=\"original\",\n", header_safe(self.map.url));
        out.push_str(&text);
        self.link_map(out, "self", number, from, until);
        let text = format!(
            ",\n<{}>; rel=\"timegate\"",
            self.map.addresses.time_gate(self.map.url)
        );
        out.push_str(&text);
    }

    /// Writes a capture.
    pub fn write_capture(&mut self, capture: &Capture, out: &mut String) {
        match self.map.format {
            TimeMapFormat::Link => {
                let url = capture.original.as_deref().unwrap_or(self.map.url);
                let address = self
                    .map
                    .addresses
                    .memento_address(capture.timestamp, None, url);
                let before = self.held.replace((capture.timestamp, address));
                self.link_capture(before, false, out);
            }
            TimeMapFormat::Json => {
                out.push_str(&json(capture, self.map.collection));
                out.push('\n');
            }
            TimeMapFormat::Cdxj => {
                out.push_str(&Format::Cdxj.write_line(capture));
                out.push('\n');
            }
        }
    }

    /// Writes a page of which this TimeMap is the index. JSON and CDXJ have no word for it.
    pub fn write_page(&self, page: &TimeMapPage, out: &mut String) {
        if self.map.format == TimeMapFormat::Link {
            out.push_str(",\n");
            self.link_map(out, "timemap", Some(page.number), page.from, page.until);
        }
    }

    /// Writes what stands behind the captures.
    pub fn end_map(mut self, out: &mut String) {
        let held = self.held.take();
        self.link_capture(held, true, out);
        if self.map.format == TimeMapFormat::Link {
            out.push('\n');
        }
    }

    fn link_capture(&self, capture: Option<(Stamp, String)>, is_end: bool, out: &mut String) {
        let Some((stamp, address)) = capture else {
            return;
        };
        // Several captures may have the time of the first; each of them is the first memento.
        let first = if stamp == self.map.scope.first {
            "first "
        } else {
            ""
        };
        let last = if is_end && stamp == self.map.scope.last {
            "last "
        } else {
            ""
        };
        let text = format!(
            ",\n<{address}>; rel=\"{first}{last}memento\"; datetime=\"{}\"; collection=\"{}\"",
            http_date(stamp),
            self.map.collection
        );
        out.push_str(&text);
    }

    fn link_map(
        &self,
        out: &mut String,
        relation: &str,
        page: Option<u32>,
        from: Stamp,
        until: Stamp,
    ) {
        let text = format!(
            "<{}>; rel=\"{relation}\"; type=\"application/link-format\"; from=\"{}\"; until=\"{}\"",
            self.map
                .addresses
                .time_map(TimeMapFormat::Link, page, self.map.url),
            http_date(from),
            http_date(until),
        );
        out.push_str(&text);
    }
}

/// Returns a capture as pywb's index says it in JSON: every value is a text, in pywb's order.
fn json(capture: &Capture, collection: &str) -> String {
    let number = |number: Option<u64>| number.map(|number| number.to_string());
    let original = capture.original_record.clone().unwrap_or_default();
    let known = [
        ("urlkey", Some(capture.key.clone())),
        ("timestamp", Some(capture.timestamp.to_string())),
        ("url", capture.original.clone()),
        ("mime", capture.mime.clone()),
        ("status", number(capture.status.map(u64::from))),
        ("digest", capture.digest.clone()),
        ("redirect", capture.redirect.clone()),
        ("robotflags", capture.robots.clone()),
        ("length", number(capture.length)),
        ("offset", number(capture.offset)),
        ("filename", capture.file.clone()),
        ("orig.length", number(original.length)),
        ("orig.offset", number(original.offset)),
        ("orig.filename", original.file),
        ("source-coll", Some(collection.to_owned())),
    ];
    let known = known.map(|(name, value)| value.map(|value| (name.to_owned(), value)));
    let mut json = String::from("{");
    for (name, value) in known.into_iter().flatten().chain(capture.extra.clone()) {
        let separator = if json.len() == 1 { "" } else { "," };
        let name = Value::String(name);
        let value = Value::String(value);
        let text = format!("{separator}{name}:{value}");
        json.push_str(&text);
    }
    json.push('}');
    json
}
