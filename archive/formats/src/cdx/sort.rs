//! Sorts lines of any number with bounded memory.
//!
//! Lines are gathered until they fill the memory that was granted, sorted bytewise, and written to a nameless temporary
//! file; the files are merged at the end. Nothing of it outlives the process, and nothing here is durable.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Seek as _, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;

#[cfg(test)]
mod tests;

/// The number of runs that are merged at once: each needs a file and a buffer.
const FAN_IN: usize = 64;

/// The size of the buffer of a run that is merged, in bytes.
const BUFFER: usize = 64 * 1024;

/// The reason why sorting failed.
#[derive(Debug, Error)]
pub enum SortError {
    /// A line has a line end in it, and would come out as two.
    #[error("a line holds a line end at byte {at}; escape it first")]
    LineEnd {
        /// The position of the line end, counted from 0.
        at: usize,
    },
    /// The temporary directory failed.
    #[error("temporary file in {}: {source}", directory.display())]
    Temporary {
        /// The directory that the caller gave.
        directory: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The output failed.
    #[error("sorted output: {0}")]
    Output(io::Error),
}

/// A check whether sorting may continue, made now and then.
struct Check(Box<dyn Fn() -> io::Result<()> + Send>);

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Check")
    }
}

/// A check before bytes are written to disk: whether temporary files of this many bytes are allowed.
struct Room(Box<dyn Fn(u64) -> io::Result<()> + Send>);

impl fmt::Debug for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Room")
    }
}

/// Sorts lines bytewise.
#[derive(Debug)]
pub struct Sorter {
    directory: PathBuf,
    memory: usize,
    unique: bool,
    check: Option<Check>,
    room: Option<Room>,
    text: Vec<u8>,
    lines: Vec<(usize, usize)>,
    /// The runs by the number of times that they were merged: each level holds fewer than [`FAN_IN`].
    levels: Vec<Vec<File>>,
}

impl Sorter {
    /// Makes a sorter with about `memory` bytes of memory, and temporary files in an existing directory.
    pub fn new(directory: &Path, memory: usize) -> Self {
        Self {
            directory: directory.to_owned(),
            memory,
            unique: false,
            check: None,
            room: None,
            text: Vec::new(),
            lines: Vec::new(),
            levels: Vec::new(),
        }
    }

    /// Keeps only one of equal lines.
    #[must_use]
    pub fn dropping_duplicates(mut self) -> Self {
        self.unique = true;
        self
    }

    /// Calls `check` now and then; an error of it ends the sorting.
    #[must_use]
    pub fn with_check(mut self, check: impl Fn() -> io::Result<()> + Send + 'static) -> Self {
        self.check = Some(Check(Box::new(check)));
        self
    }

    /// Calls `room` before each temporary file, with the most bytes that all of them will have together; an error of it
    /// ends the sorting.
    #[must_use]
    pub fn with_room(mut self, room: impl Fn(u64) -> io::Result<()> + Send + 'static) -> Self {
        self.room = Some(Room(Box::new(room)));
        self
    }

    /// Takes a line, without its line end.
    ///
    /// # Errors
    ///
    /// Fails if the line has a line end in it, or if a temporary file cannot be written.
    pub fn push(&mut self, line: &[u8]) -> Result<(), SortError> {
        if let Some(at) = memchr::memchr(b'\n', line) {
            return Err(SortError::LineEnd { at });
        }
        let held = self.text.len() + self.lines.len() * size_of::<(usize, usize)>();
        if !self.lines.is_empty() && held.saturating_add(line.len()) > self.memory {
            self.spill()?;
        }
        self.lines.push((self.text.len(), line.len()));
        self.text.extend_from_slice(line);
        Ok(())
    }

    /// Writes all lines in their order, each with a line end; returns their number.
    ///
    /// # Errors
    ///
    /// Fails if a temporary file cannot be read or written, or if the output cannot be written.
    pub fn finish(mut self, output: &mut impl Write) -> Result<u64, SortError> {
        if self.levels.is_empty() {
            self.sort();
            let mut out = LineOutput::new(output, self.unique, self.check.as_ref());
            for line in self.sorted() {
                out.write(line).map_err(SortError::Output)?;
            }
            return Ok(out.count);
        }
        self.spill()?;
        self.text = Vec::new();
        self.lines = Vec::new();
        let runs: Vec<File> = self.levels.drain(..).flatten().collect();
        merge(runs, output, self.unique, self.check.as_ref()).map_err(|e| e.placed(&self.directory))
    }

    fn sort(&mut self) {
        let text = &self.text;
        let line =
            |(start, length): (usize, usize)| text.get(start..start + length).unwrap_or_default();
        self.lines.sort_unstable_by(|a, b| line(*a).cmp(line(*b)));
    }

    fn sorted(&self) -> impl Iterator<Item = &[u8]> {
        self.lines
            .iter()
            .map(|(start, length)| self.text.get(*start..start + length).unwrap_or_default())
    }

    /// Writes the lines in memory as a run.
    fn spill(&mut self) -> Result<(), SortError> {
        if self.lines.is_empty() {
            return Ok(());
        }
        self.sort();
        let ends = self.text.len().saturating_add(self.lines.len());
        let mut file = self.temporary(ends as u64)?;
        let mut buffered = BufWriter::with_capacity(BUFFER, &mut file);
        let mut out = LineOutput::new(&mut buffered, self.unique, self.check.as_ref());
        for line in self.sorted() {
            out.write(line).map_err(|source| self.failed(source))?;
        }
        buffered.flush().map_err(|source| self.failed(source))?;
        drop(buffered);
        self.text.clear();
        self.lines.clear();
        self.add(file, 0)
    }

    /// Adds a run to a level; merges a full level into one run of the next.
    fn add(&mut self, run: File, level: usize) -> Result<(), SortError> {
        let mut run = run;
        let mut level = level;
        loop {
            if self.levels.len() <= level {
                self.levels.resize_with(level + 1, Vec::new);
            }
            let Some(runs) = self.levels.get_mut(level) else {
                return Ok(());
            };
            runs.push(run);
            if runs.len() < FAN_IN {
                return Ok(());
            }
            let merged = size(runs).map_err(|source| self.failed(source))?;
            let mut file = self.temporary(merged)?;
            let full = self.levels.get_mut(level).map(std::mem::take);
            let full = full.unwrap_or_default();
            let mut buffered = BufWriter::with_capacity(BUFFER, &mut file);
            merge(full, &mut buffered, self.unique, self.check.as_ref())
                .map_err(|e| e.placed(&self.directory))?;
            buffered.flush().map_err(|source| self.failed(source))?;
            drop(buffered);
            run = file;
            level += 1;
        }
    }

    /// Returns the bytes of all temporary files.
    fn temporary_bytes(&self) -> io::Result<u64> {
        let mut levels = self.levels.iter();
        levels.try_fold(0_u64, |sum, runs| Ok(sum.saturating_add(size(runs)?)))
    }

    /// Makes a temporary file for at most `bytes` more bytes.
    fn temporary(&self, bytes: u64) -> Result<File, SortError> {
        if let Some(room) = &self.room {
            let held = self
                .temporary_bytes()
                .map_err(|source| self.failed(source))?;
            (room.0)(held.saturating_add(bytes)).map_err(|source| self.failed(source))?;
        }
        tempfile::tempfile_in(&self.directory).map_err(|source| self.failed(source))
    }

    fn failed(&self, source: io::Error) -> SortError {
        SortError::Temporary {
            directory: self.directory.clone(),
            source,
        }
    }
}

/// Returns the bytes of all runs together.
fn size(runs: &[File]) -> io::Result<u64> {
    let mut runs = runs.iter();
    runs.try_fold(0_u64, |sum, run| {
        Ok(sum.saturating_add(run.metadata()?.len()))
    })
}

/// Writes lines, and leaves out repeated ones where asked to.
struct LineOutput<'a, W> {
    output: &'a mut W,
    last: Option<Vec<u8>>,
    unique: bool,
    check: Option<&'a Check>,
    taken: u64,
    count: u64,
}

/// The number of lines that are taken before the next check whether to continue.
const CHECKED: u64 = 4096;

impl<'a, W: Write> LineOutput<'a, W> {
    fn new(output: &'a mut W, unique: bool, check: Option<&'a Check>) -> Self {
        Self {
            output,
            last: None,
            unique,
            check,
            taken: 0,
            count: 0,
        }
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        if self.taken.is_multiple_of(CHECKED)
            && let Some(check) = self.check
        {
            (check.0)()?;
        }
        self.taken += 1;
        if self.unique {
            if self.last.as_deref() == Some(line) {
                return Ok(());
            }
            let last = self.last.get_or_insert_default();
            last.clear();
            last.extend_from_slice(line);
        }
        self.output.write_all(line)?;
        self.output.write_all(b"\n")?;
        self.count += 1;
        Ok(())
    }
}

/// The side of a merge that failed.
enum MergeError {
    Run(io::Error),
    Output(io::Error),
}

impl MergeError {
    fn placed(self, directory: &Path) -> SortError {
        match self {
            Self::Run(source) => SortError::Temporary {
                directory: directory.to_owned(),
                source,
            },
            Self::Output(source) => SortError::Output(source),
        }
    }
}

fn merge(
    runs: Vec<File>,
    output: &mut impl Write,
    unique: bool,
    check: Option<&Check>,
) -> Result<u64, MergeError> {
    let mut inputs = Vec::with_capacity(runs.len());
    let mut heads = BinaryHeap::with_capacity(runs.len());
    for (n, mut file) in runs.into_iter().enumerate() {
        file.rewind().map_err(MergeError::Run)?;
        let mut input = BufReader::with_capacity(BUFFER, file);
        let mut line = Vec::new();
        if next(&mut input, &mut line).map_err(MergeError::Run)? {
            heads.push(Reverse((line, n)));
        }
        inputs.push(input);
    }
    let mut out = LineOutput::new(output, unique, check);
    while let Some(Reverse((mut line, n))) = heads.pop() {
        out.write(&line).map_err(MergeError::Output)?;
        if let Some(input) = inputs.get_mut(n)
            && next(input, &mut line).map_err(MergeError::Run)?
        {
            heads.push(Reverse((line, n)));
        }
    }
    Ok(out.count)
}

/// Reads the next line of a run, without its end; returns `false` at the end of the run.
fn next(input: &mut BufReader<File>, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    if input.read_until(b'\n', line)? == 0 {
        return Ok(false);
    }
    if line.pop() != Some(b'\n') {
        return Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "a temporary file ends in the middle of a line; somebody shortened it",
        ));
    }
    Ok(true)
}
