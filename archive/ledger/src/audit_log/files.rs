//! The files of the log, read one after the other.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use archive_durable::{DiskError, directory};

use super::chain::{Chain, TrailLine};
use super::{LogError, LogPosition};

/// The longest line that is read, in bytes.
const LONGEST_LINE: u64 = 8 << 20;

/// Returns the path of the log file with this number.
pub(super) fn log_path(at: &Path, number: u64) -> PathBuf {
    at.join(format!("audit-{number:06}.jsonl"))
}

/// Returns the number of the log file with this name; `None` if the file does not belong to the log.
fn number(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("audit-")?.strip_suffix(".jsonl")?;
    let is_plain = digits.len() >= 6 && digits.bytes().all(|b| b.is_ascii_digit());
    is_plain.then(|| digits.parse().ok()).flatten()
}

/// The lines of a log, oldest first. The first error is the last item. Memory holds one line.
#[derive(Debug)]
pub struct LogWalk {
    files: Vec<PathBuf>,
    at: usize,
    reader: Option<BufReader<File>>,
    /// The chain after the last whole line.
    chain: Option<Chain>,
    length: u64,
    line: u64,
    torn: Vec<u8>,
    /// Whether the bytes that were read last are no line at all, as a crash may leave them.
    is_garbage: bool,
    is_done: bool,
}

impl LogWalk {
    /// Opens the log in a directory, at its first line. Without the directory the log has no lines.
    ///
    /// # Errors
    ///
    /// [`LogError`] if the directory cannot be listed, or a file is missing between others.
    pub fn open(at: &Path) -> Result<Self, LogError> {
        let entries = match directory::list_directory(at) {
            Err(error) if error.is_absent() => Vec::new(),
            other => other?,
        };
        let names = entries.iter().filter_map(|entry| entry.name.to_str());
        let mut numbers: Vec<u64> = names.filter_map(number).collect();
        numbers.sort_unstable();
        for (expected, found) in (0..).zip(&numbers) {
            if expected != *found {
                return Err(LogError::Changed {
                    file: log_path(at, expected),
                    line: 1,
                    why: "the file is gone".to_owned(),
                });
            }
        }
        let mut walk =
            Self::over_files(numbers.iter().map(|number| log_path(at, *number)).collect());
        walk.chain = Some(Chain::start_chain());
        Ok(walk)
    }

    /// Walks over `files`, in this order. The chain before them is taken from their first line.
    pub fn over_files(files: Vec<PathBuf>) -> Self {
        Self {
            files,
            at: 0,
            reader: None,
            chain: None,
            length: 0,
            line: 0,
            torn: Vec::new(),
            is_garbage: false,
            is_done: false,
        }
    }

    /// Returns the position after the last line that was read.
    pub fn position(&self) -> LogPosition {
        LogPosition {
            chain: self.chain.unwrap_or(Chain::start_chain()),
            file: self.at as u64,
            length: self.length,
        }
    }

    /// Returns the bytes behind the last whole line, once all were read.
    pub fn torn(&self) -> &[u8] {
        &self.torn
    }

    /// Whether the error was about bytes that are no line at all: a crash leaves such bytes, a forger does not.
    pub(super) const fn is_garbage(&self) -> bool {
        self.is_garbage
    }

    /// Returns the number of the last file, and its length with its torn bytes, once all lines were read; if there are
    /// no files, those of `position`.
    pub(super) fn end_at(&self, position: LogPosition) -> (u64, u64) {
        if self.files.is_empty() {
            return (position.file, position.length);
        }
        (self.last_file(), self.length + self.torn.len() as u64)
    }

    pub(super) fn last_file(&self) -> u64 {
        (self.files.len() as u64).saturating_sub(1)
    }

    /// Returns the error that the last line read is not what was written.
    pub fn log_changed(&self, why: impl Into<String>) -> LogError {
        LogError::Changed {
            file: self
                .files
                .get(self.at)
                .or(self.files.last())
                .cloned()
                .unwrap_or_default(),
            line: self.line,
            why: why.into(),
        }
    }

    fn read(&mut self) -> Result<Option<TrailLine>, LogError> {
        loop {
            let Some(path) = self.files.get(self.at) else {
                return Ok(None);
            };
            let reader = match &mut self.reader {
                Some(reader) => reader,
                none => none.insert(BufReader::with_capacity(
                    1 << 18,
                    directory::open_directory(path)?,
                )),
            };
            let mut bytes = Vec::new();
            reader
                .by_ref()
                .take(LONGEST_LINE)
                .read_until(b'\n', &mut bytes)
                .map_err(|error| DiskError::new("read", path, error))?;
            let is_whole = bytes.pop_if(|last| *last == b'\n').is_some();
            if is_whole {
                self.line += 1;
                let before = Chain::chain_before(&bytes);
                self.is_garbage = before.is_err();
                let own = before.map_err(|why| self.log_changed(why))?;
                let mut chain = self.chain.unwrap_or(own);
                let entry = chain
                    .accept_line(&bytes)
                    .map_err(|why| self.log_changed(why))?;
                self.chain = Some(chain);
                self.length += bytes.len() as u64 + 1;
                return Ok(Some(entry));
            }
            let is_last = self.at + 1 >= self.files.len();
            if !bytes.is_empty() && (!is_last || bytes.len() as u64 == LONGEST_LINE) {
                self.line += 1;
                self.is_garbage = true;
                return Err(self.log_changed("the line has no end"));
            }
            self.torn = bytes;
            if is_last {
                return Ok(None);
            }
            self.at += 1;
            (self.reader, self.length, self.line) = (None, 0, 0);
        }
    }
}

impl Iterator for LogWalk {
    type Item = Result<TrailLine, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let read = self.read().transpose();
        self.is_done = !matches!(read, Some(Ok(_)));
        read
    }
}
