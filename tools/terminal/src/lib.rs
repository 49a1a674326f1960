//! The terminal: what the verbs of the command line share.
//!
//! Owns the way from a command line to an archive and back: which archive is asked and as whom, how an answer is
//! written for people and for programs, how progress is shown, and the exit code. It knows no verb: those are in
//! `tools-cli`.
//!
//! Not promised: what an archive answers. A refusal of the archive becomes a [`exit::Failure`] with its words
//! unchanged.
//!
//! The rooms in reading order:
//!
//! - [`context`] (the options that every command takes), [`session`] (the connection to an archive that they name);
//! - [`exit`] (the end of a command: its exit code, and its words when it fails);
//! - [`output`] (a table, or one JSON document), [`items`] (a long answer, written while it comes), [`shown_path`]
//!   (paths in documents), [`describe`] (the words for damage, gaps and times);
//! - [`progress`] and [`bars`]: progress on stderr;
//! - arguments: [`range`] (bytes of a file), [`reason`] (why somebody acts), [`list`] (names, and files of them),
//!   [`checksums`] (lists of checksums);
//! - [`save`] (a file that is fetched), [`losses`] (the records in damaged bytes).

pub mod bars;
pub mod checksums;
pub mod context;
pub mod describe;
pub mod exit;
pub mod items;
pub mod list;
pub mod losses;
pub mod output;
pub mod progress;
pub mod range;
pub mod reason;
pub mod save;
pub mod session;
pub mod shown_path;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
