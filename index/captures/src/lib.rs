//! The captures of an archive by URL and time, in a table that is searched, filled, imported and exported.
//!
//! Owns the table of captures: its keys, the files and sets that captures come from, and the queries over them. Stores
//! for the part that follows an archive its position, and the files that wait. Does not read archive files, does not
//! decide who may see what, and knows no network. It is a cache: what comes from files can be made again from them at
//! any time.
//!
//! The rooms, in reading order:
//! - `captures`: the handle; `open`: opens an index, and `rekey` makes new keys for one of older rules;
//! - `files`: the files that are known, and changes of them; `writer`: the captures of one file; `import`: those of a
//!   set;
//! - `query`: answers; `export`: all captures as lines;
//! - `check` and `sweep`: the work in the background;
//! - `shared`: the state behind all handles; `visible`: the files that are shown; `names`: the sources of captures;
//! - `progress`: how far a file is, and the numbers of all; `rows`: the tables beside the captures;
//! - `keys`, `moment`, `place`: the key of a row; `packed`: its value.
//!
//! Promised:
//! - the captures of a file, or of an imported set, are seen all together or not at all, by queries that begin
//!   afterwards;
//! - a withdrawn file is out of sight at once, and back at once;
//! - an answer is never silently short: damage is an error, as the last item if need be;
//! - memory is bounded at any number of captures, in queries, imports and exports.
//!
//! Every call may block on the disk: asynchronous callers use a blocking thread. Handles are cheap clones.
//!
//! ```
//! use archive_formats::cdx::Capture;
//! use archive_formats::cdx::query::{CaptureQuery, KeyMatch, MatchKind, TimeSpan};
//! use index_captures::{CaptureIndex, MemoryPlace, OpenOptions};
//!
//! let memory = MemoryPlace::new()?;
//! let captures = CaptureIndex::open_in_memory(&memory, &OpenOptions::default())?.captures;
//!
//! let mut capture = Capture::new("", "20260102030405".parse()?);
//! capture.original = Some("http://www.example.org/Logo.png".to_owned());
//! capture.offset = Some(4711);
//! let mut writer = captures.begin_file("1-1.warc.gz")?;
//! writer.push_capture(&capture)?;
//! writer.complete_file(None)?;
//!
//! let mut query = CaptureQuery::new(KeyMatch::for_url(MatchKind::Host, "example.org")?);
//! query.span = TimeSpan::parse("2026", "")?;
//! for found in captures.query_captures(&query)? {
//!     let found = found?;
//!     assert_eq!(found.key, "org,example)/logo.png");
//!     assert_eq!(found.file.as_deref(), Some("1-1.warc.gz"));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![doc = include_str!("../FORMAT.md")]

mod captures;
mod check;
mod export;
mod files;
mod import;
mod keys;
mod moment;
mod names;
mod open;
mod packed;
mod place;
mod progress;
mod query;
mod rekey;
mod rows;
mod shared;
mod sweep;
mod visible;
mod writer;

pub use archive_db::{DbError, MemoryPlace};
pub use captures::CaptureIndex;
pub use check::CheckPoint;
pub use export::{CaptureExport, CaptureExportError, ExportParts, ExportReport, ExportScope};
pub use files::{FileInIndex, FileUpdate, SetEntry};
pub use import::{DamagedLine, ImportError, ImportReport, Importer, MAX_LINE, MAX_NAMED};
pub use open::{OpenIndexError, OpenOptions, OpenedIndex};
pub use progress::{FileProgress, FollowPosition, IndexCounts};
pub use query::{Matches, QueryError};
pub use rekey::KeyChange;
pub use sweep::SweepReport;
pub use writer::FileWriter;

#[cfg(test)]
mod tests;
