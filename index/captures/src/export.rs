//! Writes captures as CDX with any legend, or as CDXJ: sorted bytewise, in one part or in several.

use std::io::{self, Write};
use std::path::Path;

use archive_db::DbError;
use archive_formats::cdx::query::{CaptureQuery, KeyMatch, KeyRange};
use archive_formats::cdx::{CdxField, Format, SortError, Sorter};
use thiserror::Error;

use crate::CaptureIndex;
use crate::names::CaptureSource;
use crate::query::{MatchingRows, SourceTest};

/// The memory that sorting takes before it uses temporary files, in bytes.
const MEMORY: usize = 32 << 20;

/// An export: its captures, and the form of its lines.
///
/// ```
/// use std::io;
///
/// use archive_formats::cdx::{Capture, Format};
/// use index_captures::{CaptureIndex, CaptureExport, ExportParts, ExportScope, MemoryPlace, OpenOptions};
///
/// /// One part in memory.
/// #[derive(Default)]
/// struct Whole(Vec<u8>);
///
/// impl ExportParts for Whole {
///     type Part = Vec<u8>;
///
///     fn begin(&mut self, _number: u64) -> io::Result<Vec<u8>> {
///         Ok(Vec::new())
///     }
///
///     fn finish(&mut self, part: Vec<u8>) -> io::Result<()> {
///         self.0 = part;
///         Ok(())
///     }
/// }
///
/// let memory = MemoryPlace::new()?;
/// let captures = CaptureIndex::open_in_memory(&memory, &OpenOptions::default())?.captures;
/// let mut writer = captures.begin_file("a.warc.gz")?;
/// writer.push_capture(&Capture::new("dk,a)/", "20260102030405".parse()?))?;
/// writer.complete_file(None)?;
///
/// let export = CaptureExport {
///     format: Format::Cdxj,
///     scope: ExportScope::All,
///     is_unique: true,
///     part_size: None,
/// };
/// let mut whole = Whole::default();
/// captures.begin_export(&export, &std::env::temp_dir(), &mut whole)?;
/// assert!(whole.0.starts_with(b"dk,a)/ 20260102030405 {"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct CaptureExport {
    /// The form of the lines.
    pub format: Format,
    /// The captures that are exported.
    pub scope: ExportScope,
    /// Whether equal lines are written once.
    pub is_unique: bool,
    /// The most bytes of a part, its header included; `None` for one part. A line that is longer is a part alone.
    pub part_size: Option<u64>,
}

/// The captures that are exported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ExportScope {
    /// All captures that are shown.
    #[default]
    All,
    /// The captures of the files of the archive.
    Archive,
    /// The captures of one imported set.
    Set(String),
}

/// The parts that an export is written to.
pub trait ExportParts {
    /// A part that is open.
    type Part: Write;

    /// Begins the part of a number, counted from 1.
    ///
    /// # Errors
    ///
    /// The system's reason; the export stops.
    fn begin(&mut self, number: u64) -> io::Result<Self::Part>;

    /// Finishes a part that is whole. A part that is dropped instead is not.
    ///
    /// # Errors
    ///
    /// The system's reason; the export stops.
    fn finish(&mut self, part: Self::Part) -> io::Result<()>;
}

/// The outcome of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportReport {
    /// The number of lines that were written, headers not counted.
    pub lines: u64,
    /// The number of parts; an export without captures has one.
    pub parts: u64,
    /// The number of bytes.
    pub bytes: u64,
}

/// The reason why an export stops.
#[derive(Debug, Error)]
pub enum CaptureExportError {
    /// A set that was never imported, or was deleted.
    #[error("there is no imported set {0:?}")]
    NoSet(String),
    /// The index cannot be read.
    #[error("cannot read the index of captures: {0}")]
    Database(#[from] DbError),
    /// Sorting fails: a temporary file cannot be written.
    #[error("cannot sort captures: {0}")]
    Sort(SortError),
    /// The output fails.
    #[error("cannot write captures: {0}")]
    Output(io::Error),
}

impl From<SortError> for CaptureExportError {
    fn from(error: SortError) -> Self {
        match error {
            SortError::Output(error) => Self::Output(error),
            SortError::LineEnd { .. } | SortError::Temporary { .. } => Self::Sort(error),
        }
    }
}

impl CaptureIndex {
    /// Writes captures. Temporary files, if they are needed, go to `temporary`, and are removed afterwards.
    ///
    /// # Errors
    ///
    /// [`CaptureExportError`]; the parts that were finished until then are whole, and the export is not.
    pub fn begin_export<P: ExportParts>(
        &self,
        export: &CaptureExport,
        temporary: &Path,
        parts: &mut P,
    ) -> Result<ExportReport, CaptureExportError> {
        let mut output = Output::new(parts, export)?;
        let captures = self.rows_in_scope(&export.scope)?;
        if is_in_key_order(&export.format) {
            write_groups(captures, export, temporary, &mut output)?;
        } else {
            let mut sorter = sorter(export, temporary);
            for capture in captures {
                let line = export.format.write_line(&capture?);
                sorter.push(line.as_bytes())?;
            }
            sorter.finish(&mut output)?;
        }
        output.finish().map_err(CaptureExportError::Output)
    }

    fn rows_in_scope(&self, scope: &ExportScope) -> Result<MatchingRows<'_>, CaptureExportError> {
        let sources: Option<SourceTest> = match scope {
            ExportScope::All => None,
            ExportScope::Archive => Some(Box::new(|source: &CaptureSource| source.set.is_none())),
            ExportScope::Set(name) => {
                if self.shared.tables.sets.get(name)?.is_none() {
                    return Err(CaptureExportError::NoSet(name.clone()));
                }
                let name = name.clone();
                Some(Box::new(move |source: &CaptureSource| {
                    source.set.as_deref() == Some(name.as_str())
                }))
            }
        };
        let all = CaptureQuery::new(KeyMatch::Within(KeyRange::all()));
        Ok(self.read_query(&all, sources)?)
    }
}

fn sorter(export: &CaptureExport, temporary: &Path) -> Sorter {
    let sorter = Sorter::new(temporary, MEMORY);
    if export.is_unique {
        sorter.dropping_duplicates()
    } else {
        sorter
    }
}

/// Returns whether lines of a form are sorted by key and time, so that only those of one key and time have to be
/// sorted.
fn is_in_key_order(format: &Format) -> bool {
    let Format::Cdx(legend) = format else {
        return true;
    };
    let header = format.header();
    let delimiter = header.as_deref().and_then(|header| header.chars().next());
    // A blank or a tab sorts before every character of a key.
    let is_blank = delimiter.is_none_or(|delimiter| matches!(delimiter, ' ' | '\t'));
    let mut fields = legend.fields();
    is_blank && fields.next() == Some(CdxField::Key) && fields.next() == Some(CdxField::Timestamp)
}

/// Writes captures that come in the order of key and time.
fn write_groups<P: ExportParts>(
    captures: MatchingRows<'_>,
    export: &CaptureExport,
    temporary: &Path,
    output: &mut Output<'_, P>,
) -> Result<(), CaptureExportError> {
    let mut group: Option<Group> = None;
    for capture in captures {
        let capture = capture?;
        let line = export.format.write_line(&capture);
        let is_same = group
            .as_ref()
            .is_some_and(|group| group.key == capture.key && group.timestamp == capture.timestamp);
        if let Some(group) = group.as_mut().filter(|_| is_same) {
            group.push(&line, || sorter(export, temporary))?;
            continue;
        }
        let next = Group {
            key: capture.key,
            timestamp: capture.timestamp,
            first: line,
            others: None,
        };
        if let Some(group) = group.replace(next) {
            group.write(output)?;
        }
    }
    match group {
        Some(group) => group.write(output),
        None => Ok(()),
    }
}

/// The lines of one key and time.
struct Group {
    key: String,
    timestamp: archive_formats::date::Stamp,
    first: String,
    /// The sorter with all lines of the group, if there are several.
    others: Option<Sorter>,
}

impl Group {
    fn push(&mut self, line: &str, sorter: impl FnOnce() -> Sorter) -> Result<(), SortError> {
        if self.others.is_none() {
            let mut sorter = sorter();
            sorter.push(self.first.as_bytes())?;
            self.others = Some(sorter);
        }
        match &mut self.others {
            Some(sorter) => sorter.push(line.as_bytes()),
            None => Ok(()),
        }
    }

    fn write<P: ExportParts>(self, output: &mut Output<'_, P>) -> Result<(), CaptureExportError> {
        match self.others {
            Some(sorter) => {
                sorter.finish(output)?;
                Ok(())
            }
            None => output
                .line(self.first.as_bytes())
                .map_err(CaptureExportError::Output),
        }
    }
}

/// The parts, and how full the open one is.
struct Output<'a, P: ExportParts> {
    parts: &'a mut P,
    header: Option<String>,
    limit: u64,
    part: P::Part,
    /// The bytes and lines of the open part.
    size: u64,
    lines: u64,
    /// The line that is handed over in pieces.
    line: Vec<u8>,
    report: ExportReport,
}

impl<'a, P: ExportParts> Output<'a, P> {
    fn new(parts: &'a mut P, export: &CaptureExport) -> Result<Self, CaptureExportError> {
        let part = parts.begin(1).map_err(CaptureExportError::Output)?;
        let mut output = Self {
            parts,
            header: export.format.header(),
            limit: export.part_size.unwrap_or(u64::MAX),
            part,
            size: 0,
            lines: 0,
            line: Vec::new(),
            report: ExportReport {
                parts: 1,
                ..ExportReport::default()
            },
        };
        output.write_header().map_err(CaptureExportError::Output)?;
        Ok(output)
    }

    /// Writes a line, without its end, into the open part or the next one.
    fn line(&mut self, line: &[u8]) -> io::Result<()> {
        let length = length(line).saturating_add(1);
        if self.lines > 0 && self.size.saturating_add(length) > self.limit {
            self.report.parts += 1;
            let next = self.parts.begin(self.report.parts)?;
            let full = std::mem::replace(&mut self.part, next);
            self.parts.finish(full)?;
            self.size = 0;
            self.lines = 0;
            self.write_header()?;
        }
        self.put(line)?;
        self.lines += 1;
        self.report.lines += 1;
        Ok(())
    }

    fn write_header(&mut self) -> io::Result<()> {
        match self.header.clone() {
            Some(header) => self.put(header.as_bytes()),
            None => Ok(()),
        }
    }

    fn put(&mut self, line: &[u8]) -> io::Result<()> {
        self.part.write_all(line)?;
        self.part.write_all(b"\n")?;
        let length = length(line).saturating_add(1);
        self.size = self.size.saturating_add(length);
        self.report.bytes = self.report.bytes.saturating_add(length);
        Ok(())
    }

    fn finish(mut self) -> io::Result<ExportReport> {
        self.part.flush()?;
        self.parts.finish(self.part)?;
        Ok(self.report)
    }
}

fn length(line: &[u8]) -> u64 {
    line.len() as u64
}

/// A sorter hands over lines in pieces, with their ends.
impl<P: ExportParts> Write for Output<'_, P> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let Some(end) = piece.strip_suffix(b"\n") else {
                self.line.extend_from_slice(piece);
                continue;
            };
            let mut line = std::mem::take(&mut self.line);
            line.extend_from_slice(end);
            self.line(&line)?;
            line.clear();
            self.line = line;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.part.flush()
    }
}
