//! Lines of a sorted text, found by binary search with positioned reads.
//!
//! Owns how many bytes are read where, and the lines that every search begins with, which are kept. Does not know what
//! a line means.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use parking_lot::Mutex;

use crate::layout::MAX_LINE;

/// The bytes on either side of a place that are read at first: most lines lie within.
const HALF: u64 = 512;

/// The lines of the first steps of a search are kept: at most 1023 of a section.
const KEPT_STEPS: u32 = 10;

/// A longer line is not kept, so that the lines of two sections have 2 MiB at most.
const KEPT_LENGTH: usize = 1024;

/// A line and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexLine {
    /// The offset of its first byte.
    pub(crate) start: u64,
    /// The bytes without the line end.
    pub(crate) text: Vec<u8>,
}

impl IndexLine {
    /// Returns the offset behind its line end.
    pub(crate) fn end(&self) -> u64 {
        self.start
            .saturating_add(self.text.len() as u64)
            .saturating_add(1)
    }
}

/// A file whose lines are searched.
#[derive(Debug)]
pub(crate) struct SearchedFile {
    file: File,
    kept: Mutex<HashMap<u64, IndexLine>>,
}

impl SearchedFile {
    pub(crate) fn new(file: File) -> Self {
        Self {
            file,
            kept: Mutex::default(),
        }
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Returns the first line of a section that is not less than `target`, or `None` if all are less.
    ///
    /// # Errors
    ///
    /// Those of [`line_at`](Self::line_at).
    pub(crate) fn first_from(
        &self,
        section: &Range<u64>,
        target: &[u8],
    ) -> io::Result<Option<IndexLine>> {
        let at = self.lower_bound(section, target)?;
        (at < section.end)
            .then(|| self.line_at(section, at))
            .transpose()
    }

    /// Returns the last line of a section that is less than `target`, or `None` if none is.
    ///
    /// # Errors
    ///
    /// Those of [`line_at`](Self::line_at).
    pub(crate) fn last_before(
        &self,
        section: &Range<u64>,
        target: &[u8],
    ) -> io::Result<Option<IndexLine>> {
        let at = self.lower_bound(section, target)?;
        let is_first = at <= section.start;
        (!is_first)
            .then(|| self.line_at(section, at - 1))
            .transpose()
    }

    /// Returns the offset of the first line that is not less than `target`: a begin of a line, or the end of the
    /// section.
    fn lower_bound(&self, section: &Range<u64>, target: &[u8]) -> io::Result<u64> {
        let mut low = section.start;
        let mut high = section.end;
        let mut step = 0;
        while low < high {
            let middle = low + (high - low) / 2;
            let (order, line) = self.probe(section, middle, step, target)?;
            match order {
                Ordering::Less => low = line.end,
                Ordering::Equal | Ordering::Greater => high = line.start,
            }
            step += 1;
        }
        Ok(low)
    }

    /// Compares the line around an offset with `target`, and says where that line lies. The middles of the first steps
    /// are the same in every search.
    fn probe(
        &self,
        section: &Range<u64>,
        at: u64,
        step: u32,
        target: &[u8],
    ) -> io::Result<(Ordering, Range<u64>)> {
        let judge = |line: &IndexLine| (line.text.as_slice().cmp(target), line.start..line.end());
        if step >= KEPT_STEPS {
            return Ok(judge(&self.line_at(section, at)?));
        }
        let lock = || self.kept.lock();
        if let Some(line) = lock().get(&at) {
            return Ok(judge(line));
        }
        let line = self.line_at(section, at)?;
        let judged = judge(&line);
        if line.text.len() <= KEPT_LENGTH {
            lock().insert(at, line);
        }
        Ok(judged)
    }

    /// Returns the line in which an offset of a section lies.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::InvalidData`] if there is no line of at most [`MAX_LINE`] bytes, and what the system says.
    pub(crate) fn line_at(&self, section: &Range<u64>, at: u64) -> io::Result<IndexLine> {
        let longest = MAX_LINE as u64 + 1;
        let mut half = HALF;
        loop {
            let from = at.saturating_sub(half).max(section.start);
            let to = at.saturating_add(half).min(section.end);
            let bytes = self.read(from..to)?;
            let here = usize::try_from(at.saturating_sub(from)).unwrap_or(usize::MAX);
            let (before, behind) = bytes.split_at(here.min(bytes.len()));
            let is_end = |byte: &u8| *byte == b'\n';
            let begin = before.iter().rposition(is_end).map(|end| end + 1);
            let begin = begin.or((from == section.start).then_some(0));
            let end = behind.iter().position(is_end).map(|end| before.len() + end);
            if let (Some(begin), Some(end)) = (begin, end)
                && end - begin <= MAX_LINE
            {
                return Ok(IndexLine {
                    start: from + begin as u64,
                    text: bytes.get(begin..end).unwrap_or_default().to_vec(),
                });
            }
            if half >= longest || (end.is_none() && to == section.end) {
                let words = format!("no line of at most {MAX_LINE} bytes lies at offset {at}");
                return Err(io::Error::new(io::ErrorKind::InvalidData, words));
            }
            half = (half * 8).min(longest);
        }
    }

    fn read(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        let length = usize::try_from(range.end.saturating_sub(range.start));
        let mut bytes = vec![0; length.unwrap_or(0)];
        self.file.read_exact_at(&mut bytes, range.start)?;
        Ok(bytes)
    }
}
