//! An export, read line by line: each is looked at, and what is wrong is said with the number of the line.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use archive_decisions::store::NamePhase;
use archive_durable::directory;
use archive_model::FileName;
use archive_proof::{Admission, Envelope, TrustFile};
use flate2::bufread::MultiGzDecoder;

use super::RestoreError;
use crate::admin::{AdminRow, AuditLine};
use crate::audit_log::Chain;
use crate::export::{ExportEnd, ExportHeader, ExportLine, ExportNode, FORMAT, RowCounts, TableRow};

/// The longest line that is read, in bytes.
const LONGEST: u64 = 8 << 20;

/// The use of a line.
pub(super) enum RestoreLine {
    /// The header.
    Header(ExportHeader),
    /// A file, whose admission was verified if it has one.
    File(Box<AdminRow>),
    /// A node.
    Node(ExportNode),
    /// A row of another table.
    Row(Box<TableRow>),
    /// A line of the trail.
    Audit(u64, AuditLine),
    /// The last line, whose counts and hash are right.
    End,
    /// The line cannot be used, for this reason.
    Bad(String),
}

/// An export that is being read.
pub(super) struct ExportLines<'a> {
    reader: Box<dyn BufRead>,
    trust: &'a TrustFile,
    archive: &'a str,
    whole: blake3::Hasher,
    counted: ExportEnd,
    chain: Option<Chain>,
    last_name: Option<FileName>,
    last_row: Option<(u8, Vec<String>)>,
    pub(super) number: u64,
    is_ended: bool,
    is_broken: bool,
}

impl<'a> ExportLines<'a> {
    /// Opens an export, packed or not.
    pub(super) fn open(
        path: &Path,
        trust: &'a TrustFile,
        archive: &'a str,
    ) -> Result<Self, RestoreError> {
        let unreadable = |error: io::Error| RestoreError::Export {
            path: path.to_owned(),
            why: format!("the export cannot be read: {error}"),
        };
        let file: File =
            directory::open_directory(path).map_err(|error| unreadable(error.source))?;
        let mut plain = BufReader::with_capacity(1 << 18, file);
        let is_packed = plain
            .fill_buf()
            .map_err(unreadable)?
            .starts_with(&[0x1f, 0x8b]);
        let reader: Box<dyn BufRead> = if is_packed {
            Box::new(BufReader::with_capacity(
                1 << 18,
                MultiGzDecoder::new(plain),
            ))
        } else {
            Box::new(plain)
        };
        Ok(Self {
            reader,
            trust,
            archive,
            whole: blake3::Hasher::new(),
            counted: ExportEnd {
                files: 0,
                nodes: 0,
                audit: 0,
                rows: RowCounts::default(),
                audit_head: String::new(),
                blake3: String::new(),
            },
            chain: Some(Chain::start_chain()),
            last_name: None,
            last_row: None,
            number: 0,
            is_ended: false,
            is_broken: false,
        })
    }

    /// Returns the next line; `None` if no line follows.
    pub(super) fn next(&mut self) -> Option<RestoreLine> {
        if self.is_broken {
            return None;
        }
        let mut bytes = Vec::new();
        let read = self
            .reader
            .by_ref()
            .take(LONGEST)
            .read_until(b'\n', &mut bytes);
        self.number += 1;
        if let Err(error) = read {
            self.is_broken = true;
            return Some(RestoreLine::Bad(format!(
                "the rest cannot be read: {error}"
            )));
        }
        if bytes.is_empty() {
            self.is_broken = true;
            let cut = "the export ends here, without its last line: it was cut";
            return (!self.is_ended).then(|| RestoreLine::Bad(cut.to_owned()));
        }
        if self.is_ended {
            self.is_broken = true;
            return Some(RestoreLine::Bad(
                "something follows the last line".to_owned(),
            ));
        }
        if bytes.last() != Some(&b'\n') {
            self.is_broken = true;
            return Some(RestoreLine::Bad(
                "the line has no end: the export was cut".to_owned(),
            ));
        }
        Some(self.look(&bytes).unwrap_or_else(RestoreLine::Bad))
    }

    fn look(&mut self, bytes: &[u8]) -> Result<RestoreLine, String> {
        let line: Result<ExportLine, _> = serde_json::from_slice(bytes);
        if let Ok(ExportLine::End(end)) = &line {
            return self.end(end);
        }
        self.whole.update(bytes);
        match line.map_err(|error| format!("it is no line of an export: {error}"))? {
            ExportLine::Header(header) => {
                if self.number != 1 {
                    return Err("a second header".to_owned());
                }
                if header.format != FORMAT {
                    let found = &header.format;
                    return Err(format!(
                        "its format is {found:?}; this build reads {FORMAT}"
                    ));
                }
                if header.archive != self.archive {
                    let found = &header.archive;
                    let own = self.archive;
                    return Err(format!("it is of the archive {found:?}, not of {own:?}"));
                }
                Ok(RestoreLine::Header(header))
            }
            ExportLine::File(row) => {
                let name = row.record.name.clone();
                let is_after = self.last_name.as_ref().is_none_or(|last| *last < name);
                self.counted.files += 1;
                if !is_after {
                    return Err(format!("{name} is out of order"));
                }
                self.last_name = Some(name.clone());
                check_row(&row, self.trust, self.archive)
                    .map_err(|why| format!("{name}: {why}"))?;
                Ok(RestoreLine::File(row))
            }
            ExportLine::Node(node) => {
                self.counted.nodes += 1;
                Ok(RestoreLine::Node(node))
            }
            ExportLine::Row(row) => {
                self.counted.rows.add(&row);
                let place = row.sort_key();
                if self.last_row.as_ref().is_some_and(|last| *last >= place) {
                    return Err("a row that is out of order, or there twice".to_owned());
                }
                self.last_row = Some(place);
                Ok(RestoreLine::Row(row))
            }
            ExportLine::Audit(written) => {
                let (number, line) = written.into_line();
                self.counted.audit += 1;
                // After a line that is lost the hash of the log cannot be compared any more.
                self.chain = self
                    .chain
                    .and_then(|mut chain| chain.chain_line(number, &line).ok().map(|_| chain));
                Ok(RestoreLine::Audit(number, line))
            }
            ExportLine::End(_) => Err("a second end".to_owned()),
        }
    }

    fn end(&mut self, end: &ExportEnd) -> Result<RestoreLine, String> {
        self.is_ended = true;
        let found = self.whole.finalize().to_hex();
        if end.blake3 != found.as_str() {
            return Err(
                "the BLAKE3 of the export is another: something in it was changed".to_owned(),
            );
        }
        let head = self.chain.map(|chain| chain.previous().to_string());
        let counted = ExportEnd {
            audit_head: head.unwrap_or_default(),
            blake3: end.blake3.clone(),
            ..self.counted.clone()
        };
        if *end != counted {
            return Err("it counts other lines than there are, or another trail".to_owned());
        }
        Ok(RestoreLine::End)
    }
}

/// Whether a row says what its admission says, and a trusted key signed that.
fn check_row(row: &AdminRow, trust: &TrustFile, archive: &str) -> Result<(), String> {
    let record = &row.record;
    let Some(admission) = &row.admission else {
        return match (&record.content, record.phase) {
            (None, NamePhase::Free | NamePhase::Intent { .. }) => Ok(()),
            (_, _) => Err("it has no admission".to_owned()),
        };
    };
    let envelope = Envelope::parse(admission.as_bytes()).map_err(|error| error.to_string())?;
    let admission = Admission::verify(&envelope, trust).map_err(|error| error.to_string())?;
    let content = record
        .content
        .as_ref()
        .ok_or("it is admitted, and has no content")?;
    let is_same = admission.name == record.name
        && admission.archive == archive
        && admission.size == content.size
        && admission.root == content.root
        && admission.digests == content.digests
        && admission.depositor == row.depositor;
    if !is_same {
        return Err("its admission is of something else".to_owned());
    }
    Ok(())
}
