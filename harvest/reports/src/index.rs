//! The index of an archive file, as the metadata file of its job has it: NetarchiveSuite's CDX lines, and the captures.
//!
//! Owns which records have a line, and what is in it. Both lists are made in one reading of the file, sorted bytewise
//! with bounded memory, and lie in temporary files without a name. Does not resolve revisits.
//!
//! NetarchiveSuite's lines are of `response` records only (in ARC files: of all records but the version block):
//! `url ip date14 mimetype length filename offset md5`, where the length is that of the block, and the MD5 that of the
//! bytes after the HTTP header.
//!
//! The captures are CDXJ lines of HTTP responses and revisits that are whole. They are what later jobs are deduplicated
//! against, so that nobody has to join a crawl log with CDX lines by URL (the join takes the last of two captures of
//! one URL). Beside the usual members they have, where it is known: `recordId`, `etag`, `lastModified`; of a revisit
//! `refersTo`, `refersToTargetUri` and `refersToDate`, so that the first capture is found and no revisit refers to a
//! revisit. A response that was truncated has no `etag` and no `lastModified`: "not modified" would be said of a whole
//! one.

use std::fs::File;
use std::io::{self, Read, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use archive_formats::cdx::{
    Capture, ExtractedCapture, Format, SortError, Sorter, extract_with_digest,
};
use archive_formats::defect::Defect;
use archive_formats::digest::Algorithm;
use archive_formats::http::Head;
use archive_formats::warc::{Header, ReadRecordError, RecordSummary, WarcReader, WarcType};
use thiserror::Error;

/// The memory for the lines of each list, in bytes, before they go to disk.
const MEMORY: usize = 16 << 20;

/// The longest validator that is kept. A longer one would not be sent to a host; one that is cut says something else.
const LONGEST_VALIDATOR: usize = 1024;

/// The most problems of a file that are named.
const MAX_NAMED: usize = 100;

/// The reason why an archive file has no index.
#[derive(Debug, Error)]
pub enum ArchiveIndexError {
    /// The archive file cannot be read.
    #[error("cannot read the archive file {file}: {source}")]
    Read {
        /// The name of the archive file.
        file: String,
        /// The error of the reader.
        source: ReadRecordError,
    },
    /// The temporary files of the sort cannot be used.
    #[error("cannot sort the index of {file}: {source}; see to the disk of this machine")]
    Sort {
        /// The name of the archive file.
        file: String,
        /// The error of the sorter.
        source: SortError,
    },
}

/// A sorted list of lines in a temporary file.
#[derive(Debug)]
pub struct IndexLines {
    /// The lines, from the first byte.
    pub lines: File,
    /// The number of lines.
    pub count: u64,
}

/// The index of an archive file.
#[derive(Debug)]
pub struct ArchiveIndex {
    /// The name of the archive file.
    pub file: String,
    /// NetarchiveSuite's CDX lines.
    pub cdx: IndexLines,
    /// The captures as CDXJ lines.
    pub captures: IndexLines,
    /// The number of problems: records that are damaged, or have no place in an index though they should.
    pub problem_count: u64,
    /// The first problems, each with the offset of its record.
    pub problems: Vec<String>,
    /// The first problem that costs content: the file is damaged.
    pub damage: Option<String>,
}

/// Indexes an archive file (WARC or ARC, compressed or not), which is named `file`. Temporary files lie in `directory`.
///
/// # Errors
///
/// Fails if the archive file or the temporary files cannot be read or written. Damage in the archive file is no
/// failure: the records after it are indexed, and the damage is among the problems.
pub fn index_archive_file(
    archive: impl Read,
    file: &str,
    directory: &Path,
) -> Result<ArchiveIndex, ArchiveIndexError> {
    let mut index = IndexBuilder {
        file,
        directory: directory.to_owned(),
        cdx: Sorter::new(directory, MEMORY),
        captures: Sorter::new(directory, MEMORY),
        problem_count: 0,
        problems: Vec::new(),
        damage: None,
    };
    let mut reader = WarcReader::new(archive);
    let failed = |source| ArchiveIndexError::Read {
        file: file.to_owned(),
        source,
    };
    while let Some(record) = reader.next_record().map_err(failed)? {
        let kind = record.kind();
        let header = record.header().clone();
        let is_response = kind == WarcType::Response;
        if !is_response && kind != WarcType::Revisit {
            let end = record.read_end().map_err(failed)?;
            index.note_end(&end);
            continue;
        }
        let extracted = extract_with_digest(record, file, Algorithm::Md5).map_err(failed)?;
        index.add(is_response, &header, extracted)?;
    }
    for defect in reader.take_defects() {
        index.note_defect(defect.offset, &defect);
    }
    index.finish()
}

struct IndexBuilder<'a> {
    file: &'a str,
    directory: PathBuf,
    cdx: Sorter,
    captures: Sorter,
    problem_count: u64,
    problems: Vec<String>,
    damage: Option<String>,
}

impl IndexBuilder<'_> {
    fn add(
        &mut self,
        is_response: bool,
        header: &Header,
        extracted: ExtractedCapture,
    ) -> Result<(), ArchiveIndexError> {
        let end = extracted.end;
        let head = extracted.head;
        self.note_end(&end);
        self.note(end.offset, extracted.omitted);
        let Some(mut capture) = extracted.capture else {
            return Ok(());
        };
        if is_response {
            let mut line = capture.clone();
            line.length = Some(end.block_length);
            add_text(&mut line, "e", header, "WARC-IP-Address");
            let line = Format::netarchive_suite(true).write_line(&line);
            self.cdx
                .push(line.as_bytes())
                .map_err(sort_error(self.file))?;
        }
        if let Some(head) = head.filter(|_| end.complete) {
            capture.digest = header
                .text_of("WARC-Payload-Digest")
                .map(|digest| digest.trim().to_owned());
            add_id(&mut capture, "recordId", header, "WARC-Record-ID");
            if !is_response || header.get("WARC-Truncated").is_none() {
                add_validators(&mut capture, &head);
            }
            if !is_response {
                add_original(&mut capture, header);
            }
            let line = Format::Cdxj.write_line(&capture);
            self.captures
                .push(line.as_bytes())
                .map_err(sort_error(self.file))?;
        }
        Ok(())
    }

    fn note_end(&mut self, end: &RecordSummary) {
        for defect in &end.defects {
            self.note_defect(end.offset, defect);
        }
        if !end.complete {
            let cut = || format!("offset {}: the record is not whole", end.offset);
            self.damage.get_or_insert_with(cut);
        }
    }

    fn note_defect(&mut self, offset: u64, defect: &Defect) {
        let words = defect.to_string();
        if defect.class.costs_content() {
            let named = || format!("offset {offset}: {words}");
            self.damage.get_or_insert_with(named);
        }
        self.note(offset, [words]);
    }

    fn note(&mut self, offset: u64, problems: impl IntoIterator<Item = String>) {
        for words in problems {
            self.problem_count += 1;
            if self.problems.len() < MAX_NAMED {
                self.problems.push(format!("offset {offset}: {words}"));
            }
        }
    }

    fn finish(self) -> Result<ArchiveIndex, ArchiveIndexError> {
        let sort = |sorter| write_sorted(sorter, &self.directory).map_err(sort_error(self.file));
        Ok(ArchiveIndex {
            file: self.file.to_owned(),
            cdx: sort(self.cdx)?,
            captures: sort(self.captures)?,
            problem_count: self.problem_count,
            problems: self.problems,
            damage: self.damage,
        })
    }
}

/// Adds the values by which a host can be asked whether it has changed (RFC 9110 §8.8).
fn add_validators(capture: &mut Capture, head: &Head) {
    for (name, field) in [("etag", "ETag"), ("lastModified", "Last-Modified")] {
        let value = head
            .get(field)
            .filter(|value| value.len() <= LONGEST_VALIDATOR);
        let value = value.and_then(|value| str::from_utf8(value).ok());
        let value = value.filter(|value| !value.is_empty());
        capture
            .extra
            .extend(value.map(|value| (name.to_owned(), value.to_owned())));
    }
}

/// Adds to a revisit the capture that it refers to.
fn add_original(capture: &mut Capture, header: &Header) {
    add_id(capture, "refersTo", header, "WARC-Refers-To");
    add_id(
        capture,
        "refersToTargetUri",
        header,
        "WARC-Refers-To-Target-URI",
    );
    add_text(capture, "refersToDate", header, "WARC-Refers-To-Date");
}

fn add_id(capture: &mut Capture, name: &str, header: &Header, field: &str) {
    let id = header
        .read_uri(field)
        .map(|id| (name.to_owned(), id.into_owned()));
    capture.extra.extend(id);
}

fn add_text(capture: &mut Capture, name: &str, header: &Header, field: &str) {
    let text = header.text_of(field);
    let text = text.map(|text| (name.to_owned(), text.trim().to_owned()));
    capture.extra.extend(text);
}

fn sort_error(file: &str) -> impl Fn(SortError) -> ArchiveIndexError {
    move |source| ArchiveIndexError::Sort {
        file: file.to_owned(),
        source,
    }
}

/// Returns the lines of a sorter in a temporary file, at its first byte.
fn write_sorted(sorter: Sorter, directory: &Path) -> Result<IndexLines, SortError> {
    let temporary = |source: io::Error| SortError::Temporary {
        directory: directory.to_owned(),
        source,
    };
    let mut lines = tempfile::tempfile_in(directory).map_err(temporary)?;
    let mut output = io::BufWriter::new(&mut lines);
    let count = sorter.finish(&mut output)?;
    output.flush().map_err(temporary)?;
    drop(output);
    lines.rewind().map_err(temporary)?;
    Ok(IndexLines { lines, count })
}

#[cfg(test)]
mod tests;
