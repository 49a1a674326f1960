//! The trail as files that only grow, each line bearing the hash of the line before it.
//!
//! ```text
//! <data>/audit/audit-000000.jsonl      cut at 64 MiB; the chain continues over the files
//! {"number":0,"at":"…","who":"harvester/h-1","file":"a.warc.gz","what":"…","previous":"<64 hex digits>"}
//! ```
//!
//! `previous` is the SHA-256 of the line before, without its line feed; of the first line 64 zeros. A line that was
//! changed, removed, added or moved is noticed where it stands; a log that was rewritten as a whole is noticed by the
//! hash of its last line, which the admin data keep and every export carries.
//!
//! Owns the reading and writing of the files. Nothing is appended to a log that is not what it was. Not promised:
//! protection from someone who rewrites log and admin data together; the exports in the replicas reveal that.
//!
//! # Errors
//!
//! All functions fail with [`LogError`] if the log cannot be read or written, or is not what it was.

mod chain;
mod files;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use archive_db::DbError;
use archive_durable::{AppendFile, DiskError, directory};
use serde::{Deserialize, Serialize};

pub use chain::{Chain, LineHash, TrailLine, TrailLineJson};
pub use files::LogWalk;

use crate::rows::AuditLine;

/// The size in bytes at which a file of the log ends and the next begins.
pub const LONGEST_FILE: u64 = 64 << 20;

/// The reason why the log cannot be believed, or not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The log is not what was written.
    #[error(
        "the audit log is not what was written, {} line {line}: {why}; restore the log from a copy or from an export, \
         and find out who changed it", .file.display()
    )]
    Changed {
        /// The file.
        file: PathBuf,
        /// The line in it, from 1.
        line: u64,
        /// The problem.
        why: String,
    },
    /// A system call failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The admin data cannot be read.
    #[error(transparent)]
    Database(#[from] DbError),
    /// A line that cannot be written as JSON; no such line is known.
    #[error("a line of the audit trail cannot be written: {0}")]
    Json(#[from] serde_json::Error),
    /// Given up because the repository stops.
    #[error("given up: the repository stops")]
    Stopped,
}

/// The point that the log has reached: where it ends, and how the chain continues. Kept in the admin data with every
/// deletion of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPosition {
    /// The chain after the last line.
    pub chain: Chain,
    /// The number of the last file.
    pub file: u64,
    /// The number of bytes of that file.
    pub length: u64,
}

impl archive_db::TableValue for LogPosition {}

impl LogPosition {
    /// Returns the position before the first line.
    pub const fn first_position() -> Self {
        Self {
            chain: Chain::start_chain(),
            file: 0,
            length: 0,
        }
    }
}

/// The rows in a table of the admin data that are not, or not yet, only in the log.
pub trait TrailRows {
    /// Returns the line of this number, if the table still has it.
    ///
    /// # Errors
    /// The table cannot be read.
    fn row(&self, number: u64) -> Result<Option<AuditLine>, DbError>;
}

/// The options of [`AuditLog::open`].
#[derive(Clone, Copy, Debug)]
pub struct LogOptions {
    /// The position that the log surely had reached; `None` if nobody knows.
    pub known: Option<LogPosition>,
    /// The size in bytes at which a file of the log ends and the next begins.
    pub longest: u64,
}

impl Default for LogOptions {
    /// Returns the options of a log of which nothing is known, with files of [`LONGEST_FILE`].
    fn default() -> Self {
        Self {
            known: None,
            longest: LONGEST_FILE,
        }
    }
}

/// The log, ready to be appended to.
#[derive(Debug)]
pub struct AuditLog {
    directory: PathBuf,
    position: LogPosition,
    longest: u64,
    out: Option<AppendFile>,
}

impl AuditLog {
    /// Reads the whole log and compares it with what is known of it, and with `rows`, which the table still has.
    /// Finishes what a crash cut off; refuses a log that is not what was written.
    pub fn open(
        at: &Path,
        rows: &dyn TrailRows,
        LogOptions { known, longest }: LogOptions,
        is_stopping: &dyn Fn() -> bool,
    ) -> Result<Self, LogError> {
        directory::make_directory(at)?;
        let mut walk = LogWalk::open(at)?;
        let mut log = Self {
            directory: at.to_owned(),
            position: LogPosition::first_position(),
            longest,
            out: None,
        };
        let sure = known.map_or(0, |known| known.chain.next());
        let mut torn = loop {
            if is_stopping() {
                return Err(LogError::Stopped);
            }
            let entry = match walk.next() {
                None => break walk.torn().to_vec(),
                Some(Ok(entry)) => entry,
                // Lines that were not yet sure may be garbage after a crash: the table still has them.
                Some(Err(LogError::Changed { .. }))
                    if known.is_some() && log.next() >= sure && walk.is_garbage() =>
                {
                    log.cut(&walk)?;
                    break Vec::new();
                }
                Some(Err(error)) => return Err(error),
            };
            if entry.number >= sure && rows.row(entry.number)?.as_ref() != Some(&entry.line) {
                let why = format!("line number {} is not one of this archive's", entry.number);
                return Err(walk.log_changed(why));
            }
            log.position = walk.position();
            if known.is_some_and(|known| known.chain.next() == log.next() && known != log.position)
            {
                return Err(walk.log_changed("the log was rewritten: its hash is another"));
            }
        };
        // At most the last line that is sure may be gone: the table keeps it.
        while log.next() < sure || !torn.is_empty() {
            let next = log.next();
            let missing = |why: &str| walk.log_changed(why);
            let Some(line) = rows.row(next)? else {
                let why = format!(
                    "the log ends here; lines up to number {} are gone",
                    sure.saturating_sub(1)
                );
                return Err(missing(if next < sure {
                    &why
                } else {
                    "an incomplete last line"
                }));
            };
            let mut chain = log.position.chain;
            let whole = chain.chain_line(next, &line)?;
            if !whole.starts_with(&torn) {
                if next < sure || known.is_none() {
                    return Err(missing("the last line was changed"));
                }
                log.cut(&walk)?;
                break;
            }
            let (file, length) = walk.end_at(log.position);
            let mut out = AppendFile::open(&files::log_path(at, file))?;
            out.append(&whole[torn.len()..])?;
            out.sync()?;
            directory::sync_directory(at)?;
            let start = length.saturating_sub(torn.len() as u64);
            log.position = LogPosition {
                chain,
                file,
                length: start + whole.len() as u64,
            };
            torn.clear();
            if known.is_some_and(|known| known.chain.next() == log.next() && known.chain != chain) {
                return Err(missing("the log was rewritten: its hash is another"));
            }
        }
        Ok(log)
    }

    /// Returns the directory of the log.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the number of the next line.
    pub const fn next(&self) -> u64 {
        self.position.chain.next()
    }

    /// Appends lines, whose numbers follow, and makes them durable. After an error the log must be opened again.
    pub fn append(&mut self, lines: &[(u64, AuditLine)]) -> Result<LogPosition, LogError> {
        let mut bytes = Vec::new();
        for (number, line) in lines {
            let mut chain = self.position.chain;
            let text = chain.chain_line(*number, line)?;
            let length = self.position.length + bytes.len() as u64;
            if length > 0 && length + text.len() as u64 > self.longest {
                self.write(&bytes)?;
                bytes.clear();
                self.position.file += 1;
                self.position.length = 0;
                self.out = None;
            }
            bytes.extend_from_slice(&text);
            self.position.chain = chain;
        }
        self.write(&bytes)?;
        Ok(self.position)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), LogError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let is_new = self.out.is_none();
        let mut out = match self.out.take() {
            Some(out) => out,
            None => AppendFile::open(&files::log_path(&self.directory, self.position.file))?,
        };
        out.append(bytes)?;
        out.sync()?;
        if is_new {
            directory::sync_directory(&self.directory)?;
        }
        self.out = Some(out);
        self.position.length += bytes.len() as u64;
        Ok(())
    }

    /// Takes away what follows the last line that counts, in every file.
    fn cut(&mut self, walk: &LogWalk) -> Result<(), LogError> {
        let LogPosition { file, length, .. } = self.position;
        tracing::warn!(
            file,
            length,
            "what a crash left of the audit log is written anew"
        );
        for number in (file..=walk.last_file()).rev() {
            let mut out = AppendFile::open(&files::log_path(&self.directory, number))?;
            out.cut(if number == file { length } else { 0 })?;
        }
        Ok(())
    }
}

/// The statement of a log that is whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSummary {
    /// The number of lines that were read.
    pub lines: u64,
    /// The number of the first line, and one past that of the last.
    pub numbers: std::ops::Range<u64>,
    /// The hash of the last line: compare it with that in an export.
    pub head: LineHash,
    /// Bytes after the last whole line: an append that is under way, or was cut by a crash.
    pub torn: u64,
    /// The number of the line that has each of the hashes that were sought; `None` if no line has it.
    pub sought: Vec<Option<u64>>,
}

/// Verifies `files` of a log, in this order, against nothing but each other. The first of them may be a later file of
/// the log: the chain before it is then taken from its first line. For people who hold copies of the log.
pub fn verify_log(files: &[PathBuf]) -> Result<LogSummary, LogError> {
    verify_all(LogWalk::over_files(files.to_vec()), &[])
}

/// Reads a log to its end, and looks for the lines of hashes that an export or a stamp names.
pub fn verify_all(mut walk: LogWalk, sought: &[LineHash]) -> Result<LogSummary, LogError> {
    let mut lines = 0;
    let mut first = None;
    let mut found = vec![None; sought.len()];
    while let Some(entry) = walk.next() {
        let number = entry?.number;
        first.get_or_insert(number);
        lines += 1;
        let hash = walk.position().chain.previous();
        for (sought, found) in sought.iter().zip(&mut found) {
            if *sought == hash {
                *found = Some(number);
            }
        }
    }
    let chain = walk.position().chain;
    Ok(LogSummary {
        lines,
        numbers: first.unwrap_or(0)..chain.next(),
        head: chain.previous(),
        torn: walk.torn().len() as u64,
        sought: found,
    })
}
