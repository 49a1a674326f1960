//! The rows of an answer in each form, and what stands before, between and behind them.

use std::fmt::Write as _;
use std::io::{self, Write};

use archive_formats::cdx::Capture;
use archive_formats::cdx::query::{CaptureField, CollapsedRun, Cursor};
use archive_formats::date::Stamp;

use crate::memento::http_date;

use super::json::{self, Object};
use super::xml::XmlWriter;
use super::{AnswerColumn, AnswerForm, CdxRequest, ColumnValue, Dialect, Extra};

/// The fields of a capture in CDXJ, behind key and timestamp.
const CDXJ: [(&str, CaptureField); 12] = [
    ("url", CaptureField::Original),
    ("mime", CaptureField::Mime),
    ("status", CaptureField::Status),
    ("digest", CaptureField::Digest),
    ("redirect", CaptureField::Redirect),
    ("robotflags", CaptureField::Robots),
    ("length", CaptureField::Length),
    ("offset", CaptureField::Offset),
    ("filename", CaptureField::File),
    ("orig.length", CaptureField::OriginalLength),
    ("orig.offset", CaptureField::OriginalOffset),
    ("orig.filename", CaptureField::OriginalFile),
];

/// The parts of an answer that do not come from captures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerContext {
    /// The address in front of the timestamp of a Memento, with its slash: `https://archive.example/web/`.
    pub memento_prefix: String,
    /// The moment of the answer.
    pub now: Stamp,
}

/// A writer of rows in one form.
#[derive(Debug)]
pub(super) struct RowWriter {
    form: AnswerForm,
    dialect: Dialect,
    columns: Option<Vec<AnswerColumn>>,
    resolves: bool,
    url: String,
    memento_prefix: String,
    xml: Option<XmlWriter>,
    buffer: Vec<u8>,
    count: u64,
}

impl RowWriter {
    pub(super) fn new(request: &CdxRequest, context: &AnswerContext) -> Self {
        let xml = match &request.form {
            AnswerForm::Xml(query) => Some(XmlWriter::new(query, request.url_key(), context.now)),
            _ => None,
        };
        Self {
            form: request.form.clone(),
            dialect: request.dialect,
            columns: request.columns.clone(),
            resolves: request.extras.contains(Extra::ResolveRevisits),
            url: link_target(&request.url),
            memento_prefix: context.memento_prefix.clone(),
            xml,
            buffer: Vec::new(),
            count: 0,
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn is_complete(&self) -> bool {
        self.xml.as_ref().is_some_and(XmlWriter::is_complete)
    }

    /// Writes a row.
    pub(super) fn write_run(
        &mut self,
        run: &CollapsedRun,
        output: &mut impl Write,
    ) -> io::Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        match (&self.form, &mut self.xml) {
            (_, Some(xml)) => xml.write_row(&run.capture, &mut buffer),
            (AnswerForm::Cdxj, _) => self.cdxj(run, &mut buffer),
            (AnswerForm::JsonLines, _) => {
                self.object(run, true, &mut buffer);
                buffer.push(b'\n');
            }
            (AnswerForm::Text, _) => self.text(run, &mut buffer),
            (AnswerForm::Link, _) => self.link(&run.capture, &mut buffer),
            (AnswerForm::JsonRows | AnswerForm::Xml(_), _) => self.array(run, &mut buffer),
            (AnswerForm::JsonObjects, _) => {
                buffer.extend_from_slice(if self.count == 0 { b"[" } else { b",\n" });
                self.numbered_object(run, &mut buffer);
            }
        }
        self.count += 1;
        let written = output.write_all(&buffer);
        self.buffer = buffer;
        written
    }

    /// Writes what closes the answer.
    pub(super) fn end_rows(
        &mut self,
        resume: Option<&Cursor>,
        output: &mut impl Write,
    ) -> io::Result<()> {
        let mut buffer = Vec::new();
        match (&self.form, &mut self.xml) {
            (_, Some(xml)) => xml.end_document(&mut buffer),
            (AnswerForm::Text, _) => {
                if let Some(cursor) = resume {
                    buffer.extend_from_slice(format!("\n{cursor}\n").as_bytes());
                }
            }
            (AnswerForm::JsonRows | AnswerForm::JsonObjects | AnswerForm::Xml(_), _) => {
                if self.count == 0 {
                    buffer.push(b'[');
                }
                if let Some(cursor) = resume {
                    buffer.extend_from_slice(format!(",\n[],\n[\"{cursor}\"]").as_bytes());
                }
                buffer.extend_from_slice(b"]\n");
            }
            (AnswerForm::Link, _) => {
                if self.count == 0 {
                    self.original_link(&mut buffer);
                }
                buffer.push(b'\n');
            }
            (AnswerForm::Cdxj | AnswerForm::JsonLines, _) => {}
        }
        output.write_all(&buffer)
    }

    fn cdxj(&self, run: &CollapsedRun, out: &mut Vec<u8>) {
        put_value(out, &run.capture.key);
        out.extend_from_slice(format!(" {} ", run.capture.timestamp).as_bytes());
        self.object(run, false, out);
        out.push(b'\n');
    }

    /// Writes the fields of a capture as an object of strings; fields that it lacks are left out.
    fn object(&self, run: &CollapsedRun, with_key: bool, out: &mut Vec<u8>) {
        let mut object = Object::begin_object(out);
        match &self.columns {
            Some(columns) => {
                let is_key = |column: &AnswerColumn| {
                    matches!(
                        column.value,
                        ColumnValue::Field(CaptureField::Key | CaptureField::Timestamp)
                    )
                };
                for column in columns.iter().filter(|c| with_key || !is_key(c)) {
                    if let Some(value) = column.value(run, false) {
                        object.write_text(&column.name, &value);
                    }
                }
            }
            None => self.own_fields(&run.capture, with_key, &mut object),
        }
        object.end_object();
    }

    fn own_fields(&self, capture: &Capture, with_key: bool, object: &mut Object<'_>) {
        if with_key {
            object.write_text("urlkey", &capture.key);
            object.write_text("timestamp", &capture.timestamp.to_string());
        }
        for (name, field) in &CDXJ {
            match field.value(capture) {
                Some(value) => object.write_text(name, &value),
                None if self.resolves && name.starts_with("orig.") => object.write_text(name, "-"),
                None => {}
            }
        }
        for (name, value) in &capture.extra {
            object.write_text(name, value);
        }
    }

    fn columns(&self) -> &[AnswerColumn] {
        self.columns.as_deref().unwrap_or_default()
    }

    /// Writes values with blanks between them; `-` for those that are absent.
    fn text(&self, run: &CollapsedRun, out: &mut Vec<u8>) {
        let to_second = self.dialect != Dialect::Pywb;
        for (n, column) in self.columns().iter().enumerate() {
            if n > 0 {
                out.push(b' ');
            }
            match column.value(run, to_second) {
                Some(value) => put_value(out, self.without_label(column, &value)),
                None => out.push(b'-'),
            }
        }
        out.push(b'\n');
    }

    /// Returns the value as lines of CDX have it: without the name of the usual algorithm.
    fn without_label<'a>(&self, column: &AnswerColumn, value: &'a str) -> &'a str {
        let is_digest = column.value == ColumnValue::Field(CaptureField::Digest);
        if is_digest && self.dialect != Dialect::Pywb {
            value.strip_prefix("sha1:").unwrap_or(value)
        } else {
            value
        }
    }

    fn array(&self, run: &CollapsedRun, out: &mut Vec<u8>) {
        let has_header = self.dialect == Dialect::Wayback;
        if self.count == 0 {
            out.push(b'[');
            if has_header {
                self.header(out);
                out.extend_from_slice(b",\n");
            }
        } else {
            out.extend_from_slice(b",\n");
        }
        out.push(b'[');
        for (n, column) in self.columns().iter().enumerate() {
            if n > 0 {
                out.push(b',');
            }
            if has_header {
                let value = column.value(run, true);
                let value = value
                    .as_deref()
                    .map_or("-", |v| self.without_label(column, v));
                json::write_string(out, value);
            } else {
                self.number_or_text(column, run, out);
            }
        }
        out.push(b']');
    }

    fn header(&self, out: &mut Vec<u8>) {
        out.push(b'[');
        for (n, column) in self.columns().iter().enumerate() {
            if n > 0 {
                out.push(b',');
            }
            json::write_string(out, &column.name);
        }
        out.push(b']');
    }

    fn numbered_object(&self, run: &CollapsedRun, out: &mut Vec<u8>) {
        let mut object = Object::begin_object(out);
        for column in self.columns() {
            self.number_or_text(column, run, object.write_name(&column.name));
        }
        object.end_object();
    }

    /// Writes a value as OutbackCDX has it: numbers are numbers, a status that is absent is 0, other numbers are null.
    fn number_or_text(&self, column: &AnswerColumn, run: &CollapsedRun, out: &mut Vec<u8>) {
        let value = column.value(run, true);
        let (is_number, absent) = match &column.value {
            ColumnValue::Field(CaptureField::Status) => (true, "0"),
            ColumnValue::Field(
                CaptureField::Timestamp
                | CaptureField::Length
                | CaptureField::Offset
                | CaptureField::OriginalLength
                | CaptureField::OriginalOffset,
            ) => (true, "null"),
            _ => (false, "\"-\""),
        };
        match value {
            // Numbers have no leading zeros in JSON; those of early years do.
            Some(value) if is_number => {
                let digits = value.trim_start_matches('0');
                out.extend_from_slice(if digits.is_empty() { "0" } else { digits }.as_bytes());
            }
            Some(value) => json::write_string(out, self.without_label(column, &value)),
            None => out.extend_from_slice(absent.as_bytes()),
        }
    }

    fn link(&self, capture: &Capture, out: &mut Vec<u8>) {
        if self.count == 0 {
            self.original_link(out);
        }
        let original = capture.original.as_deref().unwrap_or_default();
        out.extend_from_slice(
            format!(
                ",\n<{}{}/{}>; rel=\"memento\"; datetime=\"{}\"",
                self.memento_prefix,
                capture.timestamp,
                link_target(original.as_bytes()),
                http_date(capture.timestamp),
            )
            .as_bytes(),
        );
    }

    fn original_link(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("<{}>; rel=\"original\"", self.url).as_bytes());
    }
}

/// Writes a value without what would end it, or its line.
fn put_value(out: &mut Vec<u8>, value: &str) {
    for byte in value.bytes() {
        if byte.is_ascii_whitespace() || byte.is_ascii_control() {
            out.extend_from_slice(format!("%{byte:02X}").as_bytes());
        } else {
            out.push(byte);
        }
    }
}

/// Returns a URL that can stand between `<` and `>`.
fn link_target(url: &[u8]) -> String {
    let mut target = String::with_capacity(url.len());
    for &byte in url {
        if byte.is_ascii_graphic() && !matches!(byte, b'<' | b'>' | b'"') {
            target.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ok = write!(target, "%{byte:02X}").is_ok();
        }
    }
    target
}
