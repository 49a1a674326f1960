//! The lines between the steps of a builder: a key to sort by, and a capture as CDXJ.
//!
//! Owns how facts are written and read back, and what makes a capture a revisit. Fields of a key are separated by tabs, which
//! no key and no CDXJ line of ours has; a tab is less than any byte of a key, so that whole lines sort as their keys do.

use archive_formats::cdx::{Capture, Format, OriginalRecord};
use archive_formats::crawl_log::{CrawlLogLine, DuplicateOrigin};
use archive_formats::date::Stamp;

use crate::layout;

/// The extra field of a revisit: the time of its origin, or [`UNKNOWN`].
const REVISIT: &str = "revisit";

/// The value for a revisit whose origin is not known.
const UNKNOWN: &str = "unknown";

/// The extra fields that an index has, each after the spelling of it that is read as well.
const EXTRA: [(&str, &str); 3] = [
    ("recordId", "record-id"),
    ("etag", "etag"),
    ("lastModified", "last-modified"),
];

/// A capture with its place in the file that it was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fact {
    /// The job: lines of a log are joined with the index of the same one.
    pub(super) job: String,
    /// The kind of the line.
    pub(super) kind: Kind,
    /// The number of the record that it stood in.
    pub(super) record: u64,
    /// The capture. Its key is that of its URL.
    pub(super) capture: Capture,
}

/// The kind of a line of a metadata file, in the order in which lines of one time are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Of our own index of captures: complete.
    Capture,
    /// Of an index of records: a place without a digest.
    Index,
    /// Of a crawl log: a digest without a place.
    Log,
}

impl Kind {
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
    /// The line.
    pub(super) fn write(&self) -> String {
        format!(
            "{}\t{}\t{}\t{}\t{}\t{}",
            layout::key(&self.job),
            self.capture.key,
            second(self.capture.timestamp),
            self.kind.letter(),
            self.record,
            Format::Cdxj.write(&self.capture)
        )
    }

    /// Reads a line that [`write`](Self::write) has made.
    pub(super) fn read(line: &str) -> Option<Self> {
        let mut fields = line.splitn(6, '\t');
        let (job, _key, _time) = (fields.next()?, fields.next()?, fields.next()?);
        let (kind, record, capture) = (fields.next()?, fields.next()?, fields.next()?);
        Some(Self {
            job: job.to_owned(),
            kind: Kind::ALL.into_iter().find(|one| one.letter() == kind)?,
            record: record.parse().ok()?,
            capture: Format::Cdxj.read(capture).ok()?,
        })
    }
}

/// The second of a time, with 14 digits.
pub(super) fn second(time: Stamp) -> Stamp {
    Stamp::from_time(time.time())
}

/// Whether pages of the web lie under this URL.
fn is_web(url: &str) -> bool {
    let begins = |scheme: &str| {
        let start = url.get(..scheme.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    begins("http://") || begins("https://")
}

/// Why a line gives no capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoCapture {
    /// It is about something that is never deduplicated.
    Other,
    /// It is wrong.
    Bad(String),
}

/// Reads a line of our own index of captures.
pub(super) fn from_captures(line: &str) -> Result<Capture, NoCapture> {
    let read = Format::Cdxj.read(line);
    let mut capture = normal(read.map_err(|error| NoCapture::Bad(error.to_string()))?)?;
    let digest = capture
        .digest
        .as_deref()
        .filter(|text| !matches!(*text, "" | "-"));
    let digest = layout::digest(digest.ok_or(NoCapture::Other)?);
    let digest = digest.ok_or_else(|| NoCapture::Bad("its digest cannot be read".to_owned()))?;
    capture.digest = Some(digest.to_string());
    let given = std::mem::take(&mut capture.extra);
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
        set_origin(&mut capture, None);
    }
    Ok(capture)
}

/// Reads a line of the CDX of NetarchiveSuite, or of any other whose form is told by its number of fields.
pub(super) fn from_index(line: &str) -> Result<Capture, NoCapture> {
    let bad = |error: archive_formats::cdx::InvalidLine| NoCapture::Bad(error.to_string());
    if line.starts_with(" CDX ") {
        return Err(NoCapture::Other);
    }
    let mut capture = normal(
        Format::sniff(line)
            .and_then(|form| form.read(line))
            .map_err(bad)?,
    )?;
    let digest = capture.digest.as_deref().and_then(layout::digest);
    // The MD5 of NetarchiveSuite is of other bytes than a payload digest.
    let digest = digest.map(|digest| digest.to_string());
    capture.digest = digest.filter(|digest| digest.starts_with("sha1:"));
    capture.extra.clear();
    if capture.mime.as_deref() == Some("warc/revisit") {
        set_origin(&mut capture, None);
    }
    Ok(capture)
}

/// With its key, and everything that says where it lies.
fn normal(mut capture: Capture) -> Result<Capture, NoCapture> {
    let missing = |what: &str| NoCapture::Bad(format!("it has no {what}"));
    let url = capture.original.as_deref().ok_or_else(|| missing("URL"))?;
    if !is_web(url) {
        return Err(NoCapture::Other);
    }
    capture.key = layout::key(url);
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
    let mut capture = Capture::new(layout::key(&line.uri), second(time));
    let begins = |text: &String| {
        let prefixes = ["duplicate", "deduplicate:", "warcRevisit"];
        prefixes.iter().any(|prefix| text.starts_with(prefix))
    };
    if let Some(origin) = line.duplicate_origin() {
        set_origin(&mut capture, Some(origin));
    } else if line.status == 304 || line.annotations.iter().any(begins) {
        set_origin(&mut capture, None);
    }
    let digest = line.digest.as_deref().and_then(layout::digest);
    capture.digest = digest.map(|digest| digest.to_string());
    capture.status = u16::try_from(line.status).ok();
    capture.mime = line.media_type;
    capture.original = Some(line.uri);
    Ok(capture)
}

/// Whether the capture is a revisit, so that nothing may refer to it.
pub(super) fn is_revisit(capture: &Capture) -> bool {
    capture.extra(REVISIT).is_some()
}

/// The origin of a revisit, where it is known.
pub(super) fn origin(capture: &Capture) -> Option<DuplicateOrigin> {
    let time = capture.extra(REVISIT)?.parse().ok()?;
    let place = capture.original_record.as_ref()?;
    Some(DuplicateOrigin {
        file: place.file.clone()?,
        offset: place.offset?,
        time,
    })
}

/// Makes the capture a revisit.
pub(super) fn set_origin(capture: &mut Capture, origin: Option<DuplicateOrigin>) {
    capture.extra.retain(|(name, _)| name != REVISIT);
    let time = origin.as_ref().map(|origin| origin.time.to_string());
    let time = time.unwrap_or_else(|| UNKNOWN.to_owned());
    capture.extra.push((REVISIT.to_owned(), time));
    capture.original_record = origin.map(|origin| OriginalRecord {
        length: None,
        offset: Some(origin.offset),
        file: Some(origin.file),
    });
}
