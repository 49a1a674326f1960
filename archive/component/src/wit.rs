//! The nouns that go over the border of a component: those of `wit/batch.wit`, field by field in the same order.
//!
//! Only what the host hands in: what comes out are bytes and texts.

use archive_formats::http::{Head, Start};
use archive_formats::warc::{Header, Record};
use std::io::Read;
use wasmtime::component::{ComponentType, Lower};

/// `arguments`.
pub(super) type Arguments = Vec<(String, String)>;
/// `fields`.
pub(super) type Fields = Vec<(String, String)>;
/// `result<_, string>`.
pub(super) type CallResult = Result<(), String>;

/// `file`.
#[derive(Clone, Debug, ComponentType, Lower)]
#[component(record)]
pub(super) struct File {
    name: String,
    size: u64,
    blake3: String,
    stored: String,
}

/// `archive-record`.
#[derive(Clone, Debug, ComponentType, Lower)]
#[component(record)]
pub(super) struct ArchiveRecord {
    offset: u64,
    kind: String,
    url: Option<String>,
    date: Option<String>,
    id: Option<String>,
    length: Option<u64>,
}

/// `http-message`.
#[derive(Clone, Debug, ComponentType, Lower)]
#[component(record)]
pub(super) struct HttpMessage {
    #[component(name = "first-line")]
    first_line: String,
    status: Option<u16>,
    fields: Fields,
}

impl From<&archive_batch::job::File> for File {
    fn from(file: &archive_batch::job::File) -> Self {
        Self {
            name: file.name.as_str().to_owned(),
            size: file.size,
            blake3: file.root.to_string(),
            stored: file.stored.clone(),
        }
    }
}

impl ArchiveRecord {
    pub(super) fn from_record<R: Read>(record: &Record<'_, R>) -> Self {
        let header = record.header();
        let text = |name| {
            let value = header.text_of(name)?;
            Some(value.trim().to_owned())
        };
        Self {
            offset: record.offset(),
            kind: record.kind().name().to_owned(),
            url: header
                .read_uri("WARC-Target-URI")
                .map(std::borrow::Cow::into_owned),
            date: text("WARC-Date"),
            id: text("WARC-Record-ID"),
            length: record.announced_length(),
        }
    }
}

impl HttpMessage {
    /// Returns the message as a component is shown it, made of its head; `None` if the bytes do not begin with a line
    /// of HTTP.
    pub(super) fn from_head(head: &Head) -> Option<Self> {
        if *head.start() == Start::Missing {
            return None;
        }
        let first = head.raw().split(|byte| *byte == b'\n').next();
        Some(Self {
            first_line: text(first.unwrap_or_default().trim_ascii_end()),
            status: head.status(),
            fields: head
                .fields()
                .iter()
                .map(|field| (text(&field.name), text(&field.value)))
                .collect(),
        })
    }
}

/// Returns all fields of the header of a record.
pub(super) fn header_fields(header: &Header) -> Fields {
    header
        .fields()
        .map(|field| (text(field.name), text(&field.value())))
        .collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
