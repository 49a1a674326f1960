//! Joins the lines of crawl logs with the records that indexes name.
//!
//! Owns which line of a log belongs to which record: one of the same job, the same exact URL and the same second. Of
//! what is left over, the latest line takes the latest record, and so on backwards. NetarchiveSuite gave every line the
//! latest record of its URL, so that two captures in one job had one place.

use std::collections::{BTreeMap, VecDeque};

use archive_formats::cdx::{Capture, Sorter};
use archive_formats::date::Stamp;

use super::chains::{self, Duplicate, Graph};
use super::fact::{self, Fact, FactKind, whole_second};
use super::metadata::TrustedLines;
use super::{DedupBuildError, SortedLines, Workspace};
use crate::report::BuildReport;

/// The lines of one URL of a job that are joined at once, in bytes. Of more, only equal seconds find each other for
/// sure.
const JOINED: usize = 1 << 20;

/// Joins facts, and leaves records and duplicates.
///
/// # Errors
///
/// Those of the temporary files.
pub(super) fn join_lines<'a>(
    mut facts: SortedLines<'_>,
    trusted: &TrustedLines,
    workspace: Workspace<'a>,
    report: &mut BuildReport,
) -> Result<Graph<'a>, DedupBuildError> {
    let mut joiner = Joiner {
        nodes: workspace.sorter(),
        duplicates: workspace.sorter(),
    };
    let mut group = Vec::<Fact>::new();
    let mut size = 0;
    for line in facts.lines()? {
        let line = line?;
        let Some(fact) = Fact::read_line(&line).filter(|fact| trusted.accept_fact(fact)) else {
            continue;
        };
        let is_same = |first: &Fact| first.job == fact.job && first.capture.key == fact.capture.key;
        if !group.first().is_some_and(is_same) || size > JOINED {
            joiner.group(&mut group, report)?;
            size = 0;
        }
        size += line.len();
        group.push(fact);
    }
    joiner.group(&mut group, report)?;
    Ok(Graph {
        nodes: workspace.sorted(joiner.nodes)?,
        duplicates: joiner.duplicates,
    })
}

#[derive(Debug)]
struct Joiner {
    nodes: Sorter,
    duplicates: Sorter,
}

impl Joiner {
    /// Joins the lines of one URL in one job, which are sorted by time.
    fn group(
        &mut self,
        group: &mut Vec<Fact>,
        report: &mut BuildReport,
    ) -> Result<(), DedupBuildError> {
        let mut records: BTreeMap<Stamp, VecDeque<Capture>> = BTreeMap::new();
        let mut logged = Vec::new();
        for fact in group.drain(..) {
            match fact.kind {
                FactKind::Capture => self.push_capture(&fact.capture)?,
                FactKind::Index => {
                    let same = records
                        .entry(whole_second(fact.capture.timestamp))
                        .or_default();
                    same.push_back(fact.capture);
                }
                FactKind::Log => logged.push(fact.capture),
            }
        }
        let mut left = Vec::new();
        for line in logged {
            let same = records.get_mut(&line.timestamp);
            match same.and_then(VecDeque::pop_front) {
                Some(record) => self.push_line(line, Some(record))?,
                // A revisit is no record of an index that has none, and takes none from the others.
                None if fact::is_revisit(&line) => self.push_line(line, None)?,
                None => left.push(line),
            }
        }
        let mut records = records.into_values().flatten().rev();
        for line in left.into_iter().rev() {
            match records.next() {
                Some(record) => self.push_line(line, Some(record))?,
                None => report.without_record += 1,
            }
        }
        records.try_for_each(|record| self.push_node(&record))
    }

    /// Adds a line of a log with its record.
    fn push_line(
        &mut self,
        mut line: Capture,
        record: Option<Capture>,
    ) -> Result<(), DedupBuildError> {
        if let Some(record) = record {
            if fact::is_revisit(&record) && !fact::is_revisit(&line) {
                fact::set_origin(&mut line, None);
            }
            line.timestamp = record.timestamp;
            line.length = record.length;
            line.offset = record.offset;
            line.file = record.file;
            line.mime = line.mime.or(record.mime);
            line.digest = line.digest.or(record.digest);
        }
        self.push_capture(&line)
    }

    /// Adds a capture; one that repeats another becomes a duplicate to follow.
    fn push_capture(&mut self, capture: &Capture) -> Result<(), DedupBuildError> {
        if fact::capture_origin(capture).is_some() {
            let duplicate = Duplicate::new(capture);
            self.duplicates.push(duplicate.write_line().as_bytes())?;
        }
        self.push_node(capture)
    }

    fn push_node(&mut self, capture: &Capture) -> Result<(), DedupBuildError> {
        for line in chains::node_lines(capture) {
            self.nodes.push(line.as_bytes())?;
        }
        Ok(())
    }
}
