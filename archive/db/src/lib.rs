//! Typed, synced tables on RocksDB: the only crate that links it.
//!
//! Owns how keys and values become bytes, what is synced when, which version of a database this build reads, and the
//! difference between *there is no such row* and *I cannot tell*. Does not decide what is stored in a table, nor
//! whether the database is a cache or a record.
//!
//! Promised:
//! - a [`ChangeBatch`] that was committed is synced, in all its tables or in none; one that was only written
//!   ([`ChangeBatch::write`], where [`DatabaseOptions::syncs_later`] allows it) is lost together with everything after it, or not at
//!   all;
//! - no read is silently short: damage is an `Err`, as the last item of an iteration if need be;
//! - a database of another name or version, or whose bulk [`Load`] was cut off, is refused at [`Database::open`];
//! - memory stays within [`DatabaseOptions::with_memory`] and what a caller holds in a [`ChangeBatch`] or an [`Ingestion`], at any number
//!   of rows.
//!
//! Not promised: to notice a write-ahead log that vanished or was cut at a record boundary. RocksDB opens such a
//! database with fewer rows. Its users compare with the disk (a cache), or keep [`Database::reach`] in a second place
//! and open with [`DatabaseOptions::with_reach`] (a record). A user that keeps it before it acknowledges a commit may let
//! [`DatabaseOptions::torn_tail`] cut away a write that a power cut tore.
//!
//! Every call may block on the disk: asynchronous callers use a blocking thread. Handles are cheap clones.
//!
//! The rooms in reading order:
//!
//! - `key`, `value` (how keys and values become bytes), `table` (typed rows in the order of their keys);
//! - `batch` (changes that are committed together), `ingestion` and `load` (many rows at once);
//! - `options`, `tuning` (what a user asks of a database, and how RocksDB is set up for it), `version` (which build
//!   reads it);
//! - `open`, `torn`, `log` (opening: refusals, and writes that a power cut tore);
//! - `database`, `engine` (an open database, and the RocksDB that its handles share), `reach` (how far it has come);
//! - `error`, `memory` (databases without a disk, for tests), `fault` (commits that fail, for tests).
//!
//! ```
//! use archive_db::{MemoryPlace, DatabaseOptions, TableValue};
//!
//! #[derive(serde::Serialize, serde::Deserialize, Debug, PartialEq)]
//! struct Row { size: u64 }
//! impl TableValue for Row {}
//!
//! # fn main() -> Result<(), archive_db::DbError> {
//! let database = MemoryPlace::new()?.open(&DatabaseOptions::new("example", 1, &["files"]))?;
//! let files = database.table::<String, Row>("files")?;
//! let mut batch = database.batch();
//! batch.put(&files, &"a.warc".to_owned(), &Row { size: 7 })?;
//! batch.commit()?;
//! assert_eq!(files.get(&"a.warc".to_owned())?, Some(Row { size: 7 }));
//! # Ok(())
//! # }
//! ```

#![warn(missing_docs, clippy::wildcard_enum_match_arm)]

pub mod batch;
pub mod database;
mod engine;
pub mod error;
#[cfg(feature = "faults")]
pub mod fault;
pub mod ingestion;
pub mod key;
pub mod load;
mod log;
pub mod memory;
mod open;
pub mod options;
pub mod reach;
pub mod table;
pub mod torn;
mod tuning;
pub mod value;
mod version;

pub use batch::ChangeBatch;
pub use database::Database;
pub use error::{BrokenDatabase, DbError};
pub use ingestion::Ingestion;
pub use key::{InvalidTableKey, Key, StartsWith, Text};
pub use load::Load;
pub use memory::MemoryPlace;
pub use options::{CutFile, DatabaseOptions};
pub use reach::{InvalidReach, Reach};
pub use table::{Rows, Table};
pub use torn::TornTail;
pub use tuning::TableCompression;
pub use value::{InvalidValue, TableValue};
