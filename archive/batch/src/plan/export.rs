//! Records as a new WARC file.
//!
//! Owns the choice of records in a file, and how records of ARC files become WARC records. A chosen record is copied
//! with its header as it stands, in a gzip member of its own; a warcinfo record before the records of a file names that
//! file. So the output of many files, one after the other, is a WARC file. A record is written once it is known to be
//! whole: until then it is held, beyond some mebibytes in a temporary file.

use std::io::{self, Read, Seek as _};
use std::net::IpAddr;

use archive_formats::date::{DateReading, Fill, Stamp, WarcDate};
use archive_formats::warc::{Builder, Record, RecordSummary, WarcType, WarcWriter, WriteError};
use archive_model::{FileName, Root};

use super::arguments::{Arguments, WholeMatch};
use super::{Argument, InvalidJob, JobInfo, Plan, Reduce, view};
use crate::control::StopControl;
use crate::job::{BatchJobError, File, Job, Reads, Sink};

pub(super) const INFO: JobInfo = JobInfo {
    name: "export",
    about: "Copies records into a new WARC file, each as it stands in its file; records of ARC files become WARC 1.1.",
    output: "a gzip member for each record, and one with a warcinfo record before those of a file",
    arguments: &[
        Argument {
            name: "url",
            about: "a regular expression that the whole URL of a record must match",
            default: Some(".*"),
        },
        Argument {
            name: "mime",
            about: "a regular expression that its whole media type must match; of an answer, that which the server gave",
            default: Some(".*"),
        },
        Argument {
            name: "from",
            about: "not before this time, as 2016, 20161231235959 or 2016-12-31T23:59:59Z; empty: from the first",
            default: Some(""),
        },
        Argument {
            name: "to",
            about: "not after this time, as 2016, 20161231235959 or 2016-12-31T23:59:59Z; empty: to the last",
            default: Some(""),
        },
    ],
    reduce: Reduce::Concatenate,
};

/// The number of bytes of a record that are held in memory.
const HELD: usize = 8 << 20;

/// The number of bytes that are written at once.
const PIECE: usize = 64 * 1024;

/// The level of compression.
const LEVEL: u32 = 6;

#[derive(Debug)]
struct Export {
    url: WholeMatch,
    mime: WholeMatch,
    from: Option<Stamp>,
    to: Option<Stamp>,
}

pub(super) fn plan_export(arguments: &Arguments) -> Result<Box<dyn Plan>, InvalidJob> {
    Ok(Box::new(Export {
        url: arguments.match_expression("url")?,
        mime: arguments.match_expression("mime")?,
        from: arguments.end_of_span("from", Fill::First)?,
        to: arguments.end_of_span("to", Fill::Last)?,
    }))
}

impl Plan for Export {
    fn reduce(&self) -> Reduce {
        INFO.reduce
    }

    fn start(&self, _control: &StopControl) -> Result<Box<dyn Job + '_>, BatchJobError> {
        Ok(Box::new(ExportJob {
            plan: self,
            file: None,
            is_begun: false,
        }))
    }
}

impl Export {
    /// Whether a record is wanted, as far as its header says.
    fn wants<R: Read>(&self, record: &Record<'_, R>) -> bool {
        if matches!(record.kind(), WarcType::Warcinfo | WarcType::ArcHeader) {
            return false;
        }
        let is_in_time = match (view::record_time(record), self.from, self.to) {
            (_, None, None) => true,
            (None, _, _) => false,
            (Some(time), from, to) => {
                from.is_none_or(|from| from <= time) && to.is_none_or(|to| time <= to)
            }
        };
        is_in_time && self.url.is_match(view::record_url(record))
    }
}

struct ExportJob<'a> {
    plan: &'a Export,
    file: Option<(FileName, Root)>,
    is_begun: bool,
}

impl Job for ExportJob<'_> {
    fn reads(&self) -> Reads {
        Reads::Records
    }

    fn begin(&mut self, file: &File, _out: &mut dyn Sink) -> Result<(), BatchJobError> {
        self.file = Some((file.name.clone(), file.root));
        Ok(())
    }

    fn record(
        &mut self,
        mut record: Record<'_, &mut dyn Read>,
        out: &mut dyn Sink,
    ) -> Result<RecordSummary, BatchJobError> {
        if !self.plan.wants(&record) {
            return Ok(record.read_end()?);
        }
        let mut start = Vec::new();
        if !self.plan.mime.is_everything() {
            let media = if view::is_answer(&record) {
                let head = view::read_head(&mut record)?;
                start = [head.raw(), head.unread_bytes()].concat();
                view::media_of(&head)
            } else {
                view::record_media(&record)
            };
            let mime = media.map(|media| media.essence).unwrap_or_default();
            if !self.plan.mime.is_match(mime) {
                return Ok(record.read_end()?);
            }
        }
        let time = view::record_time(&record);
        let header = if record.arc().is_some() {
            self.converted(&record)?
        } else {
            record.header().raw().to_vec()
        };
        let Some(length) = record.announced_length() else {
            return Err(not_exported("it does not say how long it is"));
        };
        let mut writer = WarcWriter::gzip_writer(tempfile::spooled_tempfile(HELD), LEVEL);
        let mut block = Block {
            inner: start.as_slice().chain(&mut record),
            failed: false,
        };
        let written = writer.write_record(&header, length, &mut block);
        let is_unreadable = block.failed;
        match written {
            Ok(_) => {}
            Err(WriteError::Io(error)) if is_unreadable => {
                return Err(BatchJobError::Read(error.into()));
            }
            Err(error) => return Err(not_exported(&error.to_string())),
        }
        let end = record.read_end()?;
        if !end.complete {
            return Err(not_exported("it is not whole"));
        }
        if !self.is_begun {
            out.write(&self.warcinfo(time)?)?;
            self.is_begun = true;
        }
        let temporary = |error: io::Error| not_exported(&format!("temporary file: {error}"));
        let mut spool = writer.into_inner();
        spool.rewind().map_err(temporary)?;
        let mut piece = vec![0; PIECE];
        loop {
            let count = spool.read(&mut piece).map_err(temporary)?;
            if count == 0 {
                return Ok(end);
            }
            out.write(&piece[..count])?;
        }
    }
}

impl ExportJob<'_> {
    /// Returns the header that a record of an ARC file gets.
    fn converted<R: Read>(&self, record: &Record<'_, R>) -> Result<Vec<u8>, BatchJobError> {
        let header = record.header();
        let time = view::record_time(record).ok_or_else(|| not_exported("it has no date"))?;
        let is_answer = view::is_answer(record);
        let kind = if is_answer {
            WarcType::Response
        } else {
            WarcType::Resource
        };
        let id = self.id(&[&record.offset().to_le_bytes(), header.raw()]);
        let mut builder = Builder::new(kind, &id, &w3c(time)).target_uri(&view::record_url(record));
        let address = header.text_of("WARC-IP-Address").unwrap_or_default();
        if address
            .parse::<IpAddr>()
            .is_ok_and(|address| !address.is_unspecified())
        {
            builder = builder.with_field("WARC-IP-Address", &address);
        }
        let media = header.text_of("Content-Type").unwrap_or_default();
        if is_answer {
            builder = builder.content_type("application/http; msgtype=response");
        } else if media.contains('/') {
            builder = builder.content_type(media.trim());
        }
        let length = record.announced_length().unwrap_or_default();
        builder
            .render_head(length)
            .map_err(|error| not_exported(&error.to_string()))
    }

    /// Returns the bytes in front of the first record of a file: the same whenever the same records are exported.
    fn warcinfo(&self, time: Option<Stamp>) -> Result<Vec<u8>, BatchJobError> {
        let source = self.file.as_ref().map_or_else(String::new, |(name, root)| {
            format!("records of {name} (BLAKE3 {root})")
        });
        let body = format!(
            "software: holdfast {}\r\nformat: WARC File Format 1.1\r\nconformsTo: http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/\r\ndescription: {source}\r\n",
            env!("CARGO_PKG_VERSION"),
        );
        let date = time.map_or_else(|| "1970-01-01T00:00:00Z".to_owned(), w3c);
        let length = body.len() as u64;
        let head = Builder::new(
            WarcType::Warcinfo,
            &self.id(&[body.as_bytes(), date.as_bytes()]),
            &date,
        )
        .content_type("application/warc-fields")
        .render_head(length)
        .map_err(|error| not_exported(&error.to_string()))?;
        let mut writer = WarcWriter::gzip_writer(Vec::new(), LEVEL);
        writer
            .write_record(&head, length, &mut body.as_bytes())
            .map_err(|error| not_exported(&error.to_string()))?;
        Ok(writer.into_inner())
    }

    /// Returns the identifier of a record, computed from the root of its file and from `parts`.
    fn id(&self, parts: &[&[u8]]) -> String {
        let mut hasher = blake3::Hasher::new();
        if let Some((_, root)) = &self.file {
            hasher.update(root.as_bytes());
        }
        for part in parts {
            hasher.update(part);
        }
        let mut bytes = [0; 16];
        hasher.finalize_xof().fill(&mut bytes);
        // The bits of a custom identifier of RFC 9562: version 8, variant 10.
        let number = u128::from_be_bytes(bytes);
        let number = (number & !(0xf << 76) & !(0x3 << 62)) | (0x8 << 76) | (0x2 << 62);
        let digits = format!("{number:032x}");
        let part = |from: usize, to: usize| &digits[from..to];
        format!(
            "urn:uuid:{}-{}-{}-{}-{}",
            part(0, 8),
            part(8, 12),
            part(12, 16),
            part(16, 20),
            part(20, 32)
        )
    }
}

fn not_exported(why: &str) -> BatchJobError {
    BatchJobError::Failed(format!("not exported: {why}"))
}

/// Returns the time as WARC writes it.
fn w3c(time: Stamp) -> String {
    let digits = time.to_string();
    let part = |from: usize, to: usize| &digits[from..to];
    let text = format!(
        "{}-{}-{}T{}:{}:{}Z",
        part(0, 4),
        part(4, 6),
        part(6, 8),
        part(8, 10),
        part(10, 12),
        part(12, 14)
    );
    WarcDate::read_date(&text, DateReading::Strict).map_or(text, |date| date.to_string())
}

/// A block that remembers whether reading it has failed.
struct Block<R> {
    inner: R,
    failed: bool,
}

impl<R: Read> Read for Block<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer);
        self.failed |= read
            .as_ref()
            .is_err_and(|error| error.kind() != io::ErrorKind::Interrupted);
        read
    }
}
