//! Follows duplicates to the first captures of their content.
//!
//! Owns the meaning of `duplicate:"file,offset,time"`: the origin is the capture at that place, or else, because files
//! are renamed and migrated, the capture of the same URL in that second. And that of the fields `WARC-Refers-To-*`: the
//! origin is the record with that id, or else, because older indexes have no ids, the capture of that URI in that
//! second. One pass over all captures takes every duplicate one step further; a chain that does not end at a first
//! capture is named and left out.

use archive_formats::cdx::{Capture, Format, Sorter};
use archive_formats::crawl_log::DuplicateOrigin;
use archive_formats::date::Stamp;

use super::fact::{self, Origin, whole_second};
use super::{DedupBuildError, SortedLines, Workspace};
use crate::layout::{self, MAX_LINE};
use crate::report::{BuildProblem, BuildReport, printable_text};

/// The most steps of a chain. Crawlers write the first capture as the origin, which is one step.
const MAX_STEPS: u32 = 16;

/// The captures, and the duplicates that lead to them.
#[derive(Debug)]
pub(super) struct Graph<'a> {
    /// Lines of [`node_lines`].
    pub(super) nodes: SortedLines<'a>,
    /// Lines of [`Duplicate::write_line`].
    pub(super) duplicates: Sorter,
}

/// Returns the name of a capture by its place.
fn place(file: &str, offset: u64) -> String {
    format!("p {} {offset:020}", layout::escape_key(file))
}

/// Returns the name of a capture by its URL and second.
fn moment(key: &str, time: Stamp) -> String {
    format!("u {key} {}", whole_second(time))
}

/// Returns the name of a capture by the id of its record.
fn record(id: &str) -> String {
    format!("r {}", layout::escape_key(id))
}

/// Returns the names under which the origin of a capture with this key is sought, the surest first.
fn names_of_origin(origin: &Origin, key: &str) -> Vec<String> {
    match origin {
        Origin::Place(DuplicateOrigin { file, offset, time }) => {
            vec![place(file, *offset), moment(key, *time)]
        }
        Origin::Record { id, capture } => {
            let capture = capture.as_ref();
            let moment = capture.map(|(uri, time)| moment(&layout::escape_key(uri), *time));
            id.iter().map(|id| record(id)).chain(moment).collect()
        }
    }
}

/// Returns the lines of a capture, one for each of its names, each followed by how much is said of the one of that
/// name: what makes it a revisit comes first, because a revisit must not be taken for a response.
pub(super) fn node_lines(capture: &Capture) -> Vec<String> {
    let rank = match (fact::is_revisit(capture), fact::capture_origin(capture)) {
        (true, Some(_)) => 0,
        (true, None) => 1,
        (false, _) if capture.digest.is_some() => 2,
        (false, _) => 3,
    };
    let place = capture.file.as_deref().zip(capture.offset);
    let place = place.map(|(file, offset)| self::place(file, offset));
    let moment = moment(&capture.key, capture.timestamp);
    let record = capture.extra("record-id").map(record);
    let names = place.into_iter().chain([moment]).chain(record);
    let text = Format::Cdxj.write_line(capture);
    names
        .map(|name| format!("{name}\t{rank}\t{text}"))
        .collect()
}

/// A capture under one of its names.
#[derive(Debug)]
struct Node {
    name: String,
    /// The capture as CDXJ: most are never read.
    text: String,
}

impl Node {
    fn read(line: &str) -> Option<Self> {
        let mut fields = line.splitn(3, '\t');
        let name = fields.next()?;
        let _rank = fields.next()?;
        let text = fields.next()?;
        Some(Self {
            name: name.to_owned(),
            text: text.to_owned(),
        })
    }

    fn capture(&self) -> Option<Capture> {
        Format::Cdxj.read_line(&self.text).ok()
    }
}

/// A duplicate on its way to its first capture.
#[derive(Clone, Debug)]
pub(super) struct Duplicate {
    /// The name of the capture that the duplicate leads to.
    name: String,
    /// The name to look for if no capture has that name.
    otherwise: Option<String>,
    steps: u32,
    /// The duplicate, with the origin that was found last.
    capture: Capture,
}

impl Duplicate {
    /// Returns a duplicate whose origin is known.
    pub(super) fn new(capture: &Capture) -> Self {
        let mut duplicate = Self {
            name: String::new(),
            otherwise: None,
            steps: 0,
            capture: capture.clone(),
        };
        if let Some(origin) = fact::capture_origin(capture) {
            duplicate.lead_to(&origin, &capture.key);
        }
        duplicate
    }

    /// Points a duplicate to the origin of a capture with this key.
    fn lead_to(&mut self, origin: &Origin, key: &str) {
        let mut names = names_of_origin(origin, key).into_iter();
        self.name = names.next().unwrap_or_default();
        self.otherwise = names.next();
    }

    /// Returns the line of this duplicate.
    pub(super) fn write_line(&self) -> String {
        let capture = Format::Cdxj.write_line(&self.capture);
        let otherwise = self.otherwise.as_deref().unwrap_or_default();
        format!("{}\t{:02}\t{otherwise}\t{capture}", self.name, self.steps)
    }

    fn read(line: &str) -> Option<Self> {
        let mut fields = line.splitn(4, '\t');
        let name = fields.next()?;
        let steps = fields.next()?;
        let otherwise = fields.next()?;
        let capture = fields.next()?;
        Some(Self {
            name: name.to_owned(),
            otherwise: Some(otherwise.to_owned()).filter(|name| !name.is_empty()),
            steps: steps.parse().ok()?,
            capture: Format::Cdxj.read_line(capture).ok()?,
        })
    }

    fn uri(&self) -> String {
        printable_text(self.capture.original.as_deref().unwrap_or_default())
    }
}

/// Follows all duplicates, and leaves the lines of the section by URL.
///
/// # Errors
///
/// Those of the temporary files.
pub(super) fn follow_chains(
    graph: Graph<'_>,
    workspace: Workspace<'_>,
    report: &mut BuildReport,
) -> Result<Sorter, DedupBuildError> {
    let mut nodes = graph.nodes;
    let mut follower = ChainFollower {
        captures: workspace.sorter(),
        later: graph.duplicates,
        report,
    };
    let mut is_first = true;
    loop {
        let later = std::mem::replace(&mut follower.later, workspace.sorter());
        let mut duplicates = workspace.sorted(later)?;
        if duplicates.count == 0 && !is_first {
            return Ok(follower.captures);
        }
        follower.pass(&mut nodes, &mut duplicates, is_first)?;
        is_first = false;
    }
}

#[derive(Debug)]
struct ChainFollower<'a> {
    captures: Sorter,
    later: Sorter,
    report: &'a mut BuildReport,
}

impl ChainFollower<'_> {
    /// Moves every duplicate one step further. The first pass takes all first captures as well.
    fn pass(
        &mut self,
        nodes: &mut SortedLines<'_>,
        duplicates: &mut SortedLines<'_>,
        is_first: bool,
    ) -> Result<(), DedupBuildError> {
        let mut nodes = nodes.lines()?;
        let mut next = || -> Result<Option<Node>, DedupBuildError> {
            let line = nodes.next().transpose()?;
            Ok(line.as_deref().and_then(Node::read))
        };
        let mut node = self.advance(None, &mut next, is_first)?;
        for line in duplicates.lines()? {
            let Some(duplicate) = Duplicate::read(&line?) else {
                continue;
            };
            while node.as_ref().is_some_and(|node| node.name < duplicate.name) {
                node = self.advance(node, &mut next, is_first)?;
            }
            let origin = node.as_ref().filter(|node| node.name == duplicate.name);
            match origin.and_then(Node::capture) {
                Some(origin) => self.step(duplicate, &origin)?,
                None => self.seek_otherwise(duplicate)?,
            }
        }
        while is_first && node.is_some() {
            node = self.advance(node, &mut next, is_first)?;
        }
        Ok(())
    }

    /// Goes on to the next name, and takes the first capture of that name.
    fn advance(
        &mut self,
        before: Option<Node>,
        next: &mut impl FnMut() -> Result<Option<Node>, DedupBuildError>,
        is_first: bool,
    ) -> Result<Option<Node>, DedupBuildError> {
        let name = before.map(|node| node.name);
        loop {
            let Some(node) = next()? else { return Ok(None) };
            if name.as_ref() == Some(&node.name) {
                continue;
            }
            if is_first && node.name.starts_with("p ") {
                let capture = node.capture();
                let capture = capture.filter(|capture| !fact::is_revisit(capture));
                capture.map_or(Ok(()), |capture| self.push_capture(&capture))?;
            }
            return Ok(Some(node));
        }
    }

    /// Moves a duplicate on from its origin.
    fn step(&mut self, mut duplicate: Duplicate, origin: &Capture) -> Result<(), DedupBuildError> {
        if !fact::is_revisit(origin) {
            return self.first_capture(&duplicate, origin);
        }
        duplicate.steps += 1;
        if duplicate.steps > MAX_STEPS {
            let uri = duplicate.uri();
            self.report.add_problem(BuildProblem::Loop { uri });
            return Ok(());
        }
        let Some(next) = fact::capture_origin(origin) else {
            let uri = duplicate.uri();
            let origin = None;
            self.report
                .add_problem(BuildProblem::Dangling { uri, origin });
            return Ok(());
        };
        duplicate.lead_to(&next, &origin.key);
        fact::set_origin(&mut duplicate.capture, Some(next));
        self.later.push(duplicate.write_line().as_bytes())?;
        Ok(())
    }

    /// Tries the other name of a duplicate, if there is one: no capture has this one.
    fn seek_otherwise(&mut self, mut duplicate: Duplicate) -> Result<(), DedupBuildError> {
        if let Some(name) = duplicate.otherwise.take() {
            duplicate.name = name;
            self.later.push(duplicate.write_line().as_bytes())?;
            return Ok(());
        }
        let origin = fact::capture_origin(&duplicate.capture);
        self.report.add_problem(BuildProblem::Dangling {
            uri: duplicate.uri(),
            origin: origin.map(|origin| origin.to_string()),
        });
        Ok(())
    }

    /// Ends a duplicate at its first capture: that content is found under its URL, too.
    fn first_capture(
        &mut self,
        duplicate: &Duplicate,
        first: &Capture,
    ) -> Result<(), DedupBuildError> {
        let line = &duplicate.capture;
        let is_other = |(one, other): (&String, &String)| one != other;
        let digests = line.digest.as_ref().zip(first.digest.as_ref());
        if digests.is_some_and(is_other) {
            self.report.add_problem(BuildProblem::Contradiction {
                uri: duplicate.uri(),
                file: printable_text(first.file.as_deref().unwrap_or_default()),
                offset: first.offset.unwrap_or_default(),
            });
            return Ok(());
        }
        self.report.duplicates += 1;
        let mut capture = first.clone();
        capture.digest = capture.digest.or_else(|| line.digest.clone());
        capture.mime = capture.mime.or_else(|| line.mime.clone());
        capture.status = capture.status.or(line.status);
        if capture.key != line.key {
            capture.key.clone_from(&line.key);
            // Validators hold for one URL.
            capture.extra.retain(|(name, _)| name == "record-id");
        }
        self.push_capture(&capture)
    }

    /// Adds a line of the section by URL.
    fn push_capture(&mut self, capture: &Capture) -> Result<(), DedupBuildError> {
        if capture.digest.is_none() || capture.file.is_none() {
            return Ok(());
        }
        let line = Format::Cdxj.write_line(capture);
        if line.len() > MAX_LINE {
            let uri = printable_text(&capture.key);
            self.report.add_problem(BuildProblem::LongLine { uri });
            return Ok(());
        }
        self.captures.push(line.as_bytes())?;
        Ok(())
    }
}
