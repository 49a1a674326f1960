//! The XML that Wayback's remote collections read: results, then what was asked for and how many there are.
//!
//! Well-formed for any capture: a character that XML does not have is escaped as in a URL.

use archive_formats::cdx::Capture;
use archive_formats::date::Stamp;

use super::{XmlQuery, XmlQueryKind};

/// A writer of the results of one question.
#[derive(Debug)]
pub(super) struct XmlWriter {
    query: XmlQuery,
    url_key: String,
    now: String,
    is_open: bool,
    results: u64,
    returned: u64,
    group: Option<UrlGroup>,
}

/// The captures of one URL.
#[derive(Debug)]
struct UrlGroup {
    first: Stamp,
    last: Capture,
    captures: u64,
    versions: u64,
}

impl XmlWriter {
    pub(super) fn new(query: &XmlQuery, url_key: &str, now: Stamp) -> Self {
        let mut now = now.to_string();
        now.truncate(14);
        Self {
            query: query.clone(),
            url_key: url_key.to_owned(),
            now,
            is_open: false,
            results: 0,
            returned: 0,
            group: None,
        }
    }

    /// Returns whether further captures would not even be counted.
    pub(super) fn is_complete(&self) -> bool {
        matches!(self.query.kind, XmlQueryKind::Unknown(_)) || self.results >= self.query.counted
    }

    /// Adds a capture.
    pub(super) fn write_row(&mut self, capture: &Capture, out: &mut Vec<u8>) {
        match self.query.kind {
            XmlQueryKind::Url => {
                if self.is_wanted(out) {
                    result_of_capture(capture, out);
                }
            }
            XmlQueryKind::Prefix => match &mut self.group {
                Some(group) if group.last.key == capture.key => group.add(capture),
                _ => {
                    self.end_group(out);
                    self.group = Some(UrlGroup::new(capture));
                }
            },
            XmlQueryKind::Unknown(_) => {}
        }
    }

    /// Ends the document.
    pub(super) fn end_document(&mut self, out: &mut Vec<u8>) {
        self.end_group(out);
        if self.is_open {
            out.extend_from_slice(b"</results>\n");
            self.request(out);
        } else {
            out.extend_from_slice(DECLARATION);
            let (title, message) = match &self.query.kind {
                XmlQueryKind::Unknown(_) => (
                    "Unsupported query type",
                    "The requested query type is unknown to the index.",
                ),
                XmlQueryKind::Url | XmlQueryKind::Prefix => (
                    "Resource Not In Archive",
                    "The Resource you requested is not in this archive.",
                ),
            };
            out.extend_from_slice(b"<error>");
            element(out, "title", title);
            element(out, "message", message);
            out.extend_from_slice(b"</error>\n");
        }
        out.extend_from_slice(b"</wayback>\n");
    }

    /// Counts a result, and says whether it is to be written.
    fn is_wanted(&mut self, out: &mut Vec<u8>) -> bool {
        let at = self.results;
        if at >= self.query.counted {
            return false;
        }
        self.results += 1;
        let end = self.query.skip.saturating_add(self.query.results);
        if !(self.query.skip..end).contains(&at) {
            return false;
        }
        if !self.is_open {
            self.is_open = true;
            out.extend_from_slice(DECLARATION);
            out.extend_from_slice(b"<results>\n");
        }
        self.returned += 1;
        true
    }

    fn end_group(&mut self, out: &mut Vec<u8>) {
        let Some(group) = self.group.take() else {
            return;
        };
        if !self.is_wanted(out) {
            return;
        }
        out.extend_from_slice(b"<result>");
        element(out, "urlkey", &group.last.key);
        let original = group.last.original.as_deref();
        element(out, "originalurl", original.unwrap_or("-"));
        element(out, "numversions", &group.versions.to_string());
        element(out, "numcaptures", &group.captures.to_string());
        element(out, "firstcapturets", &digits(group.first));
        element(out, "lastcapturets", &digits(group.last.timestamp));
        out.extend_from_slice(b"</result>\n");
    }

    fn request(&self, out: &mut Vec<u8>) {
        let (kind, results) = match self.query.kind {
            XmlQueryKind::Prefix => ("prefixquery", "resultstypeurl"),
            XmlQueryKind::Url | XmlQueryKind::Unknown(_) => ("urlquery", "resultstypecapture"),
        };
        out.extend_from_slice(b"<request>");
        element(out, "startdate", "19960101000000");
        element(out, "enddate", &self.now);
        element(out, "type", kind);
        element(out, "firstreturned", &self.query.skip.to_string());
        element(out, "url", &self.url_key);
        element(out, "resultsrequested", &self.query.results.to_string());
        element(out, "resultstype", results);
        element(out, "numreturned", &self.returned.to_string());
        element(out, "numresults", &self.results.to_string());
        out.extend_from_slice(b"</request>\n");
    }
}

const DECLARATION: &[u8] = b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<wayback>\n";

impl UrlGroup {
    fn new(capture: &Capture) -> Self {
        Self {
            first: capture.timestamp,
            last: capture.clone(),
            captures: 1,
            versions: 1,
        }
    }

    fn add(&mut self, capture: &Capture) {
        self.captures += 1;
        self.versions += u64::from(self.last.digest != capture.digest);
        self.last.clone_from(capture);
    }
}

fn result_of_capture(capture: &Capture, out: &mut Vec<u8>) {
    let number = |n: Option<u64>| n.map_or_else(|| "-".to_owned(), |n| n.to_string());
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
    let digest = text(&capture.digest);
    out.extend_from_slice(b"<result>");
    element(out, "compressedoffset", &number(capture.offset));
    if capture.length.is_some() {
        element(out, "compressedendoffset", &number(capture.length));
    }
    element(out, "mimetype", &text(&capture.mime));
    element(out, "file", &text(&capture.file));
    element(out, "redirecturl", &text(&capture.redirect));
    element(out, "urlkey", &capture.key);
    element(
        out,
        "digest",
        digest.strip_prefix("sha1:").unwrap_or(&digest),
    );
    element(
        out,
        "httpresponsecode",
        &number(capture.status.map(u64::from)),
    );
    element(out, "robotflags", &text(&capture.robots));
    element(out, "url", &text(&capture.original));
    element(out, "capturedate", &digits(capture.timestamp));
    out.extend_from_slice(b"</result>\n");
}

/// Returns the 14 digits of a timestamp.
fn digits(stamp: Stamp) -> String {
    let mut text = stamp.to_string();
    text.truncate(14);
    text
}

fn element(out: &mut Vec<u8>, name: &str, text: &str) {
    out.extend_from_slice(format!("<{name}>").as_bytes());
    content(out, text);
    out.extend_from_slice(format!("</{name}>").as_bytes());
}

fn content(out: &mut Vec<u8>, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.extend_from_slice(b"&amp;"),
            '<' => out.extend_from_slice(b"&lt;"),
            '>' => out.extend_from_slice(b"&gt;"),
            c if c.is_ascii_control() => {
                out.extend_from_slice(format!("%{:02X}", u32::from(c)).as_bytes());
            }
            // The two of the basic plane that are no characters.
            '\u{fffe}' | '\u{ffff}' => out.extend_from_slice("\u{fffd}".as_bytes()),
            c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}
