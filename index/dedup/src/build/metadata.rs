//! Reads metadata files: WARC or ARC, compressed or not, damaged or not.
//!
//! Owns which records of a metadata file are read (crawl logs and CDX as NetarchiveSuite writes them, and our index of
//! captures), and which of them are believed: those that are whole, by their lengths, their compression and their block
//! digest. A wrong offset looks like a right one, so that a record that was changed gives no line. A record that is cut
//! gives its whole lines if it is not compressed; else a cut cannot be distinguished from a change.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::{self, Read};

use archive_formats::cdx::{Capture, SortError, Sorter};
use archive_formats::defect::{Class, Defect};
use archive_formats::digest::{Digest, DigestValue, Hashers};
use archive_formats::warc::{Compression, ReadRecordError, Record, RecordSummary, WarcReader};

use super::fact::{self, Fact, FactKind, NoCapture};
use super::line::{BlockLine, LineReader};
use crate::layout;
use crate::report::{BuildProblem, BuildReport, printable_text};

/// The most bytes of the name of an organisation in the list of jobs.
const LONGEST_ORGANIZATION: usize = 255;

/// The lines that are believed.
#[derive(Debug, Default)]
pub(super) struct TrustedLines {
    /// The records whose lines are left out.
    changed: HashSet<u64>,
    /// The indexes of captures of each job, of which there is one for each archive file.
    captures: HashMap<String, CaptureIndexes>,
}

/// The numbers of indexes of captures.
#[derive(Debug, Default)]
struct CaptureIndexes {
    begun: u64,
    whole: u64,
}

impl TrustedLines {
    /// Returns whether a line is used. The log and the CDX of a job are not, where all its captures are there.
    pub(super) fn accept_fact(&self, fact: &Fact) -> bool {
        let captures = self.captures.get(&fact.job);
        let is_complete = captures.is_some_and(|captures| captures.begun == captures.whole);
        let is_needed = fact.kind == FactKind::Capture || !is_complete;
        is_needed && !self.changed.contains(&fact.record)
    }
}

/// The reader of metadata files, one after another.
#[derive(Debug)]
pub(super) struct Collector {
    facts: Sorter,
    trusted: TrustedLines,
    /// The jobs that were read, as lines of an index.
    all_jobs: BTreeSet<String>,
    /// The number of records that were begun, which is that of the last one.
    records: u64,
    /// The jobs of which the file that is read has indexes of captures.
    jobs: HashSet<String>,
    /// Whether that file has lost something, which may be further such indexes.
    is_damaged: bool,
}

/// A record that is read.
#[derive(Debug)]
struct MetadataRecord {
    file: String,
    uri: String,
    /// The offset of the record in the file.
    offset: u64,
    kind: FactKind,
    job: String,
    /// The line of the job in an index; `None` if its number is not known.
    numbered_job: Option<String>,
}

impl MetadataRecord {
    /// Recognizes a record by its URI; `None` for all records that are not read.
    fn from_uri(uri: &str, file: &str, offset: u64) -> Option<Self> {
        let (organization, path) = uri.strip_prefix("metadata://")?.split_once('/')?;
        let kinds = [
            ("crawl/index/captures", FactKind::Capture),
            ("crawl/index/cdx", FactKind::Index),
            ("crawl/logs/crawl.log", FactKind::Log),
        ];
        let kind = kinds.iter().find(|(start, _)| path.starts_with(start))?.1;
        let (_, query) = path.split_once('?').unwrap_or_default();
        let mut parameters = query.split('&');
        let job = parameters.find_map(|parameter| parameter.strip_prefix("jobid="));
        let number = job.and_then(|job| job.parse::<u64>().ok());
        let organization = layout::escape_key(organization);
        let is_short = organization.len() <= LONGEST_ORGANIZATION;
        let numbered_job = number.filter(|_| is_short);
        let job = job.map_or_else(|| file.to_owned(), |job| format!("{organization}/{job}"));
        Some(Self {
            file: file.to_owned(),
            uri: printable_text(uri),
            offset,
            kind,
            job: layout::escape_key(&job),
            numbered_job: numbered_job.map(|number| format!("{organization} {number:020}")),
        })
    }

    fn read(&self, line: &str) -> Result<Capture, NoCapture> {
        match self.kind {
            FactKind::Capture => fact::from_captures(line),
            FactKind::Index => fact::from_index(line),
            FactKind::Log => fact::from_log(line),
        }
    }

    fn problem(&self, number: u64, problem: &str) -> BuildProblem {
        BuildProblem::Line {
            file: self.file.clone(),
            record: self.uri.clone(),
            offset: self.offset,
            number,
            problem: printable_text(problem),
        }
    }
}

/// The reason why a file is not read to its end.
#[derive(Debug)]
enum ReadStop {
    /// The file cannot be read. The others are read all the same.
    File(ReadRecordError),
    /// Nothing can be sorted any more.
    Sort(SortError),
}

impl From<ReadRecordError> for ReadStop {
    fn from(error: ReadRecordError) -> Self {
        Self::File(error)
    }
}

impl From<io::Error> for ReadStop {
    fn from(error: io::Error) -> Self {
        Self::File(error.into())
    }
}

impl From<SortError> for ReadStop {
    fn from(error: SortError) -> Self {
        Self::Sort(error)
    }
}

impl Collector {
    pub(super) fn new(facts: Sorter) -> Self {
        Self {
            facts,
            trusted: TrustedLines::default(),
            all_jobs: BTreeSet::new(),
            records: 0,
            jobs: HashSet::new(),
            is_damaged: false,
        }
    }

    /// Returns the facts, to be sorted, which of them are believed, and the jobs that they are of.
    pub(super) fn finish(self) -> (Sorter, TrustedLines, BTreeSet<String>) {
        (self.facts, self.trusted, self.all_jobs)
    }

    /// Reads a file. Problems of the file are in the report.
    ///
    /// # Errors
    ///
    /// Those of the sorter.
    pub(super) fn read_metadata<R: Read>(
        &mut self,
        file: &str,
        source: R,
        report: &mut BuildReport,
    ) -> Result<(), SortError> {
        report.files += 1;
        let before = self.records;
        self.is_damaged = false;
        let mut reader = WarcReader::new(source);
        let ended = self.records(file, &mut reader, report);
        self.name_defects(file, &reader.take_defects(), report);
        self.is_damaged |= ended.is_err();
        for job in std::mem::take(&mut self.jobs) {
            if self.is_damaged {
                self.captures(&job).begun += 1;
            }
        }
        let file = file.to_owned();
        match ended {
            Err(ReadStop::Sort(error)) => return Err(error),
            Err(ReadStop::File(error)) => {
                let problem = error.to_string();
                report.add_problem(BuildProblem::Damage { file, problem });
            }
            Ok(()) if self.records == before => report.add_problem(BuildProblem::Empty { file }),
            Ok(()) => {}
        }
        Ok(())
    }

    fn records<R: Read>(
        &mut self,
        file: &str,
        reader: &mut WarcReader<R>,
        report: &mut BuildReport,
    ) -> Result<(), ReadStop> {
        while let Some(record) = reader.next_record()? {
            let uri = record
                .header()
                .read_uri("WARC-Target-URI")
                .unwrap_or_default();
            let source = MetadataRecord::from_uri(&uri, file, record.offset());
            let end = match &source {
                Some(source) => self.record(source, record, report)?,
                None => record.read_end()?,
            };
            if source.is_some() && is_cut(&end) && reader.compression() == Compression::Plain {
                self.trusted.changed.remove(&self.records);
            }
            self.name_defects(file, &end.defects, report);
        }
        Ok(())
    }

    /// Reads a record to its end. It is believed once that is reached.
    fn record<R: Read>(
        &mut self,
        source: &MetadataRecord,
        mut record: Record<'_, R>,
        report: &mut BuildReport,
    ) -> Result<RecordSummary, ReadStop> {
        self.records += 1;
        self.all_jobs.extend(source.numbered_job.clone());
        self.trusted.changed.insert(self.records);
        if source.kind == FactKind::Capture {
            self.captures(&source.job).begun += 1;
            self.jobs.insert(source.job.clone());
        }
        let expected = record.header().text_of("WARC-Block-Digest");
        let expected = expected.and_then(|text| text.parse::<Digest>().ok());
        let expected = expected.and_then(|digest| digest.value().cloned());
        let hashers = Hashers::new(expected.as_ref().map(DigestValue::algorithm));
        let mut lines = LineReader::new(&mut record, hashers);
        let mut number = 0;
        let mut last = None;
        while let Some(line) = lines.next_line()? {
            number += 1;
            report.lines += 1;
            match line {
                BlockLine::Text { text, has_end } if has_end => {
                    self.line(source, number, &text, report)?;
                }
                BlockLine::Text { text, .. } => last = Some(text),
                BlockLine::Unusable(problem) => {
                    report.add_problem(source.problem(number, &problem));
                }
            }
        }
        let found = lines.into_hashers().finish();
        let end = record.read_end()?;
        let is_garbled =
            |defect: &Defect| matches!(defect.class, Class::Crc | Class::Deflate | Class::Isize);
        let is_right = match expected {
            Some(expected) => found.contains(&expected),
            None => !end.defects.iter().any(is_garbled),
        };
        if end.complete && !is_right {
            report.add_problem(BuildProblem::Damage {
                file: source.file.clone(),
                problem: format!(
                    "offset {}: {} was changed, by its digest or its compression, and is left out",
                    end.offset, source.uri
                ),
            });
        }
        if !end.complete || !is_right {
            return Ok(end);
        }
        self.trusted.changed.remove(&self.records);
        // Of a line that was cut, the last number would lack digits.
        if let Some(text) = last {
            self.line(source, number, &text, report)?;
        }
        if source.kind == FactKind::Capture {
            self.captures(&source.job).whole += 1;
        }
        Ok(end)
    }

    /// Names the defects that cost content.
    fn name_defects(&mut self, file: &str, defects: &[Defect], report: &mut BuildReport) {
        for defect in defects.iter().filter(|defect| defect.class.costs_content()) {
            self.is_damaged = true;
            report.add_problem(BuildProblem::Damage {
                file: file.to_owned(),
                problem: printable_text(&defect.to_string()),
            });
        }
    }

    fn captures(&mut self, job: &str) -> &mut CaptureIndexes {
        self.trusted.captures.entry(job.to_owned()).or_default()
    }

    /// Adds the capture of a line, or reports the line.
    fn line(
        &mut self,
        source: &MetadataRecord,
        number: u64,
        text: &str,
        report: &mut BuildReport,
    ) -> Result<(), SortError> {
        if text.is_empty() {
            return Ok(());
        }
        match source.read(text) {
            Ok(capture) => {
                let fact = Fact {
                    job: source.job.clone(),
                    kind: source.kind,
                    record: self.records,
                    capture,
                };
                self.facts.push(fact.write_line().as_bytes())?;
            }
            Err(NoCapture::Other) => {}
            Err(NoCapture::Bad(problem)) => report.add_problem(source.problem(number, &problem)),
        }
        Ok(())
    }
}

/// Returns whether a record lacks its end, and nothing else is wrong with it.
fn is_cut(end: &RecordSummary) -> bool {
    let mut costly = end
        .defects
        .iter()
        .filter(|defect| defect.class.costs_content());
    !end.complete && costly.all(|defect| defect.class == Class::Cut)
}
