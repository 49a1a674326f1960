//! A line of an index for each capture.
//!
//! Lines are made as `holdfast cdx` makes them, and sorted as it sorts them. A header line sorts before all others, and
//! stands once: forms that have one are reduced to different lines.

use std::io::Read;

use archive_formats::cdx::{Capture, Exchanges, Format, extract_capture, extract_with_digest};
use archive_formats::digest::Algorithm;
use archive_formats::warc::{Record, RecordSummary, WarcType};

use super::arguments::{Arguments, wrong_argument};
use super::view::LONGEST_LINE;
use super::{Argument, InvalidJob, JobInfo, Plan, Reduce};
use crate::control::StopControl;
use crate::job::{BatchJobError, File, Job, Reads, Sink};

pub(super) const INFO: JobInfo = JobInfo {
    name: "extract-cdx",
    about: "Makes a sorted index of the captures in the files: the lines that `holdfast cdx` makes of the same files. The \
            two NetarchiveSuite forms are of HTTP responses only.",
    output: "a CDX line",
    arguments: &[
        Argument {
            name: "format",
            about: "cdxj, cdx11, cdx9, netarchivesuite (A e b m n g v) or netarchivesuite-md5 (A e b m n g v c)",
            default: Some("cdxj"),
        },
        Argument {
            name: "post-append",
            about: "true: the keys of answers to POST and PUT are made from what was posted, too; not with the two \
                    NetarchiveSuite forms, which have no keys",
            default: Some("false"),
        },
    ],
    reduce: Reduce::Sort,
};

/// A form of lines.
#[derive(Clone, Debug)]
pub(super) struct Form {
    format: Format,
    kind: FormKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FormKind {
    Usual,
    NetarchiveSuite { md5: bool },
}

impl Form {
    /// Returns a form that index tools read.
    pub(super) fn usual_form(format: Format) -> Self {
        Self {
            format,
            kind: FormKind::Usual,
        }
    }

    fn netarchive_suite(md5: bool) -> Self {
        Self {
            format: Format::netarchive_suite(md5),
            kind: FormKind::NetarchiveSuite { md5 },
        }
    }

    /// Whether lines name their fields, so that further fields may be added.
    pub(super) fn has_names(&self) -> bool {
        matches!(self.format, Format::Cdxj)
    }

    /// Returns the way in which lines of many files become one index.
    pub(super) fn reduce_rule(&self) -> Reduce {
        if self.format.header().is_some() {
            Reduce::Unique
        } else {
            Reduce::Sort
        }
    }

    /// Writes the header line, if the form has one.
    pub(super) fn begin_output(&self, out: &mut dyn Sink) -> Result<(), BatchJobError> {
        if let Some(header) = self.format.header() {
            out.write(format!("{header}\n").as_bytes())?;
        }
        Ok(())
    }

    /// Writes the line of one capture.
    pub(super) fn write_capture(
        &self,
        capture: &Capture,
        out: &mut dyn Sink,
    ) -> Result<(), BatchJobError> {
        let mut line = self.format.write_line(capture);
        line.push('\n');
        if line.len() > LONGEST_LINE {
            return Err(BatchJobError::Failed(format!(
                "not in the index: its line would have {} bytes",
                line.len()
            )));
        }
        Ok(out.write(line.as_bytes())?)
    }
}

#[derive(Debug)]
struct ExtractCdx {
    form: Form,
    is_post_append: bool,
}

pub(super) fn plan_extract_cdx(arguments: &Arguments) -> Result<Box<dyn Plan>, InvalidJob> {
    let form = arguments.choice(
        "format",
        &[
            ("cdxj", Form::usual_form(Format::Cdxj)),
            ("cdx11", Form::usual_form(Format::cdx11())),
            ("cdx9", Form::usual_form(Format::cdx9())),
            ("netarchivesuite", Form::netarchive_suite(false)),
            ("netarchivesuite-md5", Form::netarchive_suite(true)),
        ],
    )?;
    let is_post_append = arguments.choice("post-append", &[("false", false), ("true", true)])?;
    if is_post_append && form.kind != FormKind::Usual {
        return Err(wrong_argument(
            "post-append",
            "lines of the NetarchiveSuite forms have no keys that it could be in".to_owned(),
        ));
    }
    Ok(Box::new(ExtractCdx {
        form,
        is_post_append,
    }))
}

impl Plan for ExtractCdx {
    fn reduce(&self) -> Reduce {
        self.form.reduce_rule()
    }

    fn start(&self, _control: &StopControl) -> Result<Box<dyn Job + '_>, BatchJobError> {
        Ok(Box::new(ExtractCdxJob {
            form: &self.form,
            is_post_append: self.is_post_append,
            file: String::new(),
            exchanges: None,
        }))
    }
}

struct ExtractCdxJob<'a> {
    form: &'a Form,
    is_post_append: bool,
    file: String,
    /// Joins requests with their answers, where keys are made of both.
    exchanges: Option<Exchanges>,
}

impl Job for ExtractCdxJob<'_> {
    fn reads(&self) -> Reads {
        Reads::Records
    }

    fn begin(&mut self, file: &File, out: &mut dyn Sink) -> Result<(), BatchJobError> {
        file.name.as_str().clone_into(&mut self.file);
        self.exchanges = self
            .is_post_append
            .then(|| Exchanges::new(file.name.as_str()));
        self.form.begin_output(out)
    }

    fn record(
        &mut self,
        record: Record<'_, &mut dyn Read>,
        out: &mut dyn Sink,
    ) -> Result<RecordSummary, BatchJobError> {
        let extracted = match self.form.kind {
            FormKind::Usual => match &mut self.exchanges {
                Some(exchanges) => exchanges.read_record(record)?,
                None => extract_capture(record, &self.file)?,
            },
            FormKind::NetarchiveSuite { md5 } => {
                let url = super::view::record_url(&record).to_ascii_lowercase();
                let is_http = url.starts_with("http://") || url.starts_with("https://");
                if record.kind() != WarcType::Response || !is_http {
                    return Ok(record.read_end()?);
                }
                let address = record.header().text_of("WARC-IP-Address");
                let address = address.map(|address| address.trim().to_owned());
                let mut extracted = if md5 {
                    extract_with_digest(record, &self.file, Algorithm::Md5)?
                } else {
                    extract_capture(record, &self.file)?
                };
                if let Some(capture) = &mut extracted.capture {
                    // This form has always had the length of the block.
                    capture.length = Some(extracted.end.block_length);
                    capture
                        .extra
                        .extend(address.map(|address| ("e".to_owned(), address)));
                }
                extracted
            }
        };
        if let Some(capture) = &extracted.capture {
            let written = self.form.write_capture(capture, out);
            written.map_err(|error| match (error, capture.offset) {
                // The capture may be that of the record before.
                (BatchJobError::Failed(why), Some(offset)) if offset != extracted.end.offset => {
                    BatchJobError::Failed(format!("{why} (of the record at {offset})"))
                }
                (error, _) => error,
            })?;
        }
        match extracted.omitted {
            Some(why) => Err(BatchJobError::Failed(format!("not in the index: {why}"))),
            None => Ok(extracted.end),
        }
    }

    fn end(&mut self, out: &mut dyn Sink) -> Result<(), BatchJobError> {
        let last = self.exchanges.as_mut().and_then(Exchanges::finish_exchange);
        last.map_or(Ok(()), |capture| self.form.write_capture(&capture, out))
    }
}
