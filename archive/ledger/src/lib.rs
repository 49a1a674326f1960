//! The ledger of the archive: what was decided about every file, by whom, and the way back when it is lost.
//!
//! Owns the admin data (a row for each file, with the tables beside it), the audit trail, and their form outside of
//! this disk: the export that is archived like any other file, and the restore from it. Each change of several tables
//! is one synced batch, and a stamp in a second file knows how far they reach.
//!
//! Not promised: that a decision was acted on. No crate under this one can call another machine, so a fault of the
//! network cannot lie between a row and its trail; `archive-stores` and `archive-repository` act after it was
//! remembered here.
//!
//! The rooms in reading order; each knows only those before it:
//!
//! ```text
//! rows          the plain rows of files, trail and nodes
//! audit_log     the trail in files, each line with the hash of the one before
//! admin         a row for each file, and the only way to change it, with a line of the trail
//! audit         the trail read from its beginning, and moved from the table into the files
//! anomalies     what is wrong, from when it was found until it ended
//! requests      acts of two people
//! standing      replicas that are filled, nodes and volumes that are retired or drained
//! custody       which copies count, and what a receipt may therefore say
//! export        all of this as lines of JSON
//! restore       the way back from them, or from the admissions that the replicas keep
//! ```
//!
//! ```
//! use archive_ledger::admin::Admin;
//!
//! let data = tempfile::tempdir().unwrap();
//! let admin = Admin::init(data.path()).unwrap();
//! assert_eq!(admin.list_files(None).unwrap().count(), 0);
//! ```

#![warn(missing_docs, clippy::wildcard_enum_match_arm)]

pub mod admin;
pub mod anomalies;
pub mod audit;
pub mod audit_log;
pub mod custody;
pub mod export;
pub mod requests;
pub mod restore;
mod rows;
pub mod standing;
