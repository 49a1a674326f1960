//! The lines between the steps of a builder: a key to sort by, and a capture as CDXJ.
//!
//! Owns how facts are written and read back, and what makes a capture a revisit. Fields of a key are separated by tabs,
//! which no key and no CDXJ line of ours has; a tab is less than any byte of a key, so that whole lines sort as their
//! keys do.

use std::fmt;

use archive_formats::cdx::{Capture, Format, OriginalRecord};
use archive_formats::crawl_log::{CrawlLogLine, DuplicateOrigin};
use archive_formats::date::{Stamp, WarcDate};

use crate::layout;
use crate::report::printable_text;

/// The extra field of a revisit: the time of its origin, or [`UNKNOWN`].
const REVISIT: &str = "revisit";

/// The extra field of a revisit: the id of the record that it refers to.
const REFERS_TO: &str = "refers-to";

/// The extra field of a revisit: the URI of the capture that it refers to.
const REFERS_TO_URI: &str = "refers-to-uri";

/// The value for a revisit whose origin is not known.
const UNKNOWN: &str = "unknown";

/// The extra fields that an index has, each after the spelling of it that is read as well.
const EXTRA: [(&str, &str); 3] = [
    ("recordId", "record-id"),
    ("etag", "etag"),
    ("lastModified", "last-modified"),
];

/// The capture that a revisit repeats, as its source names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The place in an archive file: the annotation of a crawl log.
    Place(DuplicateOrigin),
    /// The record itself: the fields of a revisit record.
    Record {
        /// The id of the record.
        id: Option<String>,
        /// The URI and the time of the capture.
        capture: Option<(String, Stamp)>,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Place(DuplicateOrigin { file, offset, time }) => {
                write!(f, "{}, offset {offset}, {time}", printable_text(file))
            }
            Self::Record { id, capture } => {
                if let Some((uri, time)) = capture {
                    write!(f, "{} of {time}", printable_text(uri))?;
                }
                let separator = if capture.is_some() { ", " } else { "" };
                match id {
                    Some(id) => write!(f, "{separator}record {}", printable_text(id)),
                    None => Ok(()),
                }
            }
        }
    }
}

/// A capture with its place in the file that it was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fact {
    /// The job: lines of a log are joined with the index of the same one.
    pub(super) job: String,
    /// The kind of the line.
    pub(super) kind: FactKind,
    /// The number of the record that the line stood in.
    pub(super) record: u64,
    /// The capture. Its key is that of its URL.
    pub(super) capture: Capture,
}

/// The kind of a line of a metadata file, in the order in which lines of one time are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FactKind {
    /// A line of our own index of captures: complete.
    Capture,
    /// A line of an index of records: a place without a digest.
    Index,
    /// A line of a crawl log: a digest without a place.
    Log,
}

impl FactKind {
    const ALL: [Self; 3] = [Self::Capture, Self::Index, Self::Log];

    fn letter(self) -> &'static str {
        match self {
            Self::Capture => "a",
            Self::Index => "i",
            Self::Log => "l",
        }
    }
}

impl Fact {
    /// Returns the line. The number of the record comes last: it depends on the order in which files are read, and no
    /// result may.
    pub(super) fn write_line(&self) -> String {
        format!(
            "{}\t{}\t{}\t{}\t{}\t{:020}",
            layout::escape_key(&self.job),
            self.capture.key,
            whole_second(self.capture.timestamp),
            self.kind.letter(),
            Format::Cdxj.write_line(&self.capture),
            self.record
        )
    }

    /// Reads a line that [`write`](Self::write) has made.
    pub(super) fn read_line(line: &str) -> Option<Self> {
        let (line, record) = line.rsplit_once('\t')?;
        let mut fields = line.splitn(5, '\t');
        let job = fields.next()?;
        let _key = fields.next()?;
        let _time = fields.next()?;
        let kind = fields.next()?;
        let capture = fields.next()?;
        Some(Self {
            job: job.to_owned(),
            kind: FactKind::ALL.into_iter().find(|one| one.letter() == kind)?,
            record: record.parse().ok()?,
            capture: Format::Cdxj.read_line(capture).ok()?,
        })
    }
}

/// Returns the second of a time, with 14 digits.
pub(super) fn whole_second(time: Stamp) -> Stamp {
    Stamp::from_time(time.time())
}

/// Returns whether pages of the web lie under this URL.
fn is_web(url: &str) -> bool {
    let begins = |scheme: &str| {
        let start = url.get(..scheme.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    begins("http://") || begins("https://")
}

/// The reason why a line gives no capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoCapture {
    /// The line is a heading, or of something that is never deduplicated.
    Other,
    /// The line cannot be used, for this reason.
    Bad(String),
}

/// Reads a line of our own index of captures.
pub(super) fn from_captures(line: &str) -> Result<Capture, NoCapture> {
    let read = Format::Cdxj.read_line(line);
    let mut capture = normal(read.map_err(|error| NoCapture::Bad(error.to_string()))?)?;
    let digest = capture
        .digest
        .as_deref()
        .filter(|text| !matches!(*text, "" | "-"));
    let digest = layout::parse_digest(digest.ok_or(NoCapture::Other)?);
    let digest = digest.ok_or_else(|| NoCapture::Bad("its digest cannot be read".to_owned()))?;
    capture.digest = Some(digest.to_string());
    let given = std::mem::take(&mut capture.extra);
    let field = |name: &str| {
        let found = given.iter().find(|(other, _)| other == name);
        let value = found.map(|(_, value)| value.clone());
        value.filter(|value| !value.is_empty() && !value.contains(char::is_control))
    };
    let time = field("refersToDate").and_then(|date| date.parse::<WarcDate>().ok());
    let time = time.map(|date| date.stamp());
    let refers_to = Origin::Record {
        id: field("refersTo"),
        capture: field("refersToTargetUri").zip(time),
    };
    let named = |name: &str| {
        EXTRA
            .iter()
            .find(|(other, own)| name == *other || name == *own)
    };
    let known = given.into_iter();
    let known = known.filter_map(|(name, value)| Some((named(&name)?.1.to_owned(), value)));
    capture.extra = known.collect();
    let is_revisit = capture.mime.as_deref() == Some("warc/revisit");
    if is_revisit || capture.original_record.is_some() || capture.status == Some(304) {
        set_origin(&mut capture, Some(refers_to));
    }
    Ok(capture)
}

/// Reads a line of the CDX of NetarchiveSuite, or of any other whose form is known from its number of fields.
pub(super) fn from_index(line: &str) -> Result<Capture, NoCapture> {
    let bad = |error: archive_formats::cdx::InvalidLine| NoCapture::Bad(error.to_string());
    if line.starts_with(" CDX ") {
        return Err(NoCapture::Other);
    }
    let mut capture = normal(
        Format::sniff_line(line)
            .and_then(|form| form.read_line(line))
            .map_err(bad)?,
    )?;
    let digest = capture.digest.as_deref().and_then(layout::parse_digest);
    // The MD5 of NetarchiveSuite is of other bytes than a payload digest.
    let digest = digest.map(|digest| digest.to_string());
    capture.digest = digest.filter(|digest| digest.starts_with("sha1:"));
    capture.extra.clear();
    if capture.mime.as_deref() == Some("warc/revisit") {
        set_origin(&mut capture, None);
    }
    Ok(capture)
}

/// Completes a capture with its key; refuses one that does not say where it lies.
fn normal(mut capture: Capture) -> Result<Capture, NoCapture> {
    let missing = |what: &str| NoCapture::Bad(format!("it has no {what}"));
    let url = capture.original.as_deref().ok_or_else(|| missing("URL"))?;
    if !is_web(url) {
        return Err(NoCapture::Other);
    }
    capture.key = layout::escape_key(url);
    capture.offset.ok_or_else(|| missing("offset"))?;
    let file = capture.file.as_deref().filter(|file| !file.is_empty());
    file.ok_or_else(|| missing("file"))?;
    capture.redirect = None;
    capture.robots = None;
    Ok(capture)
}

/// Reads a line of a crawl log.
pub(super) fn from_log(line: &str) -> Result<Capture, NoCapture> {
    let line: CrawlLogLine =
        line.parse()
            .map_err(|error: archive_formats::crawl_log::InvalidCrawlLogLine| {
                NoCapture::Bad(error.to_string())
            })?;
    if line.status <= 0 || !is_web(&line.uri) {
        return Err(NoCapture::Other);
    }
    let time = line.begun.unwrap_or_else(|| Stamp::from_time(line.time));
    let mut capture = Capture::new(layout::escape_key(&line.uri), whole_second(time));
    let begins = |text: &String| {
        let prefixes = ["duplicate", "deduplicate:", "warcRevisit"];
        prefixes.iter().any(|prefix| text.starts_with(prefix))
    };
    if let Some(origin) = line.duplicate_origin() {
        set_origin(&mut capture, Some(Origin::Place(origin)));
    } else if line.status == 304 || line.annotations.iter().any(begins) {
        set_origin(&mut capture, None);
    }
    let digest = line.digest.as_deref().and_then(layout::parse_digest);
    capture.digest = digest.map(|digest| digest.to_string());
    capture.status = u16::try_from(line.status).ok();
    capture.mime = line.media_type;
    capture.original = Some(line.uri);
    Ok(capture)
}

/// Returns whether the capture is a revisit, so that nothing may refer to it.
pub(super) fn is_revisit(capture: &Capture) -> bool {
    capture.extra(REVISIT).is_some()
}

/// Returns the origin of a revisit, where it is known.
pub(super) fn capture_origin(capture: &Capture) -> Option<Origin> {
    let time = capture.extra(REVISIT)?.parse().ok();
    if let Some(place) = &capture.original_record {
        return Some(Origin::Place(DuplicateOrigin {
            file: place.file.clone()?,
            offset: place.offset?,
            time: time?,
        }));
    }
    let id = capture.extra(REFERS_TO).map(str::to_owned);
    let uri = capture.extra(REFERS_TO_URI).map(str::to_owned);
    let capture = uri.zip(time);
    (id.is_some() || capture.is_some()).then_some(Origin::Record { id, capture })
}

/// Makes the capture a revisit.
pub(super) fn set_origin(capture: &mut Capture, origin: Option<Origin>) {
    let fields = [REVISIT, REFERS_TO, REFERS_TO_URI];
    let is_other = |name: &str| !fields.contains(&name);
    capture.extra.retain(|(name, _)| is_other(name));
    capture.original_record = None;
    let mut put = |name: &str, value: String| capture.extra.push((name.to_owned(), value));
    let time = match origin {
        Some(Origin::Place(DuplicateOrigin { file, offset, time })) => {
            capture.original_record = Some(OriginalRecord {
                length: None,
                offset: Some(offset),
                file: Some(file),
            });
            Some(time)
        }
        Some(Origin::Record { id, capture }) => {
            if let Some(id) = id {
                put(REFERS_TO, id);
            }
            capture.map(|(uri, time)| {
                put(REFERS_TO_URI, uri);
                time
            })
        }
        None => None,
    };
    let time = time.map_or_else(|| UNKNOWN.to_owned(), |time| time.to_string());
    put(REVISIT, time);
}
