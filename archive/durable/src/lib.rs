//! The writing of files that last: everything that the archive keeps is written here.
//!
//! Owns the order of system calls that makes bytes durable on Linux, and nothing else: a [`Stage`] receives bytes
//! beside their destination, hashes them on the way, syncs, reads them back past the page cache and links them under
//! their final name without ever replacing a file. [`volume`] distinguishes one disk from another, [`sidecar`]
//! keeps the facts about a file beside it, [`space`] measures the room that is left.
//!
//! Invariants:
//! - a final name never bears bytes that were not synced and read back;
//! - nothing is replaced, except a small state file by [`replace_file()`], a [`stamp`] slot by slot, and a damaged copy by
//!   its repaired one ([`exchange`], or [`journal`] where there is no room for two): after a crash it is old or new,
//!   never absent;
//! - a system call that fails is reported with its name and path, and is never tried again.
//!
//! Not promised: durability on a disk that lies about its cache, or on file systems without hard links.
//!
//! The rooms in reading order:
//!
//! - `call`, `error` (each system call and its failure), [`directory`] (names, and what makes them durable);
//! - [`stage`] (a file from the wire to its final name), [`verify`] (what is on the medium), [`hashed`] (what is read
//!   anyway);
//! - [`exchange`] and [`journal`] (a damaged copy becomes its repaired one), [`replace`](mod@replace), [`append`] and
//!   [`stamp`] (small state, lists that grow, how far something has come);
//! - [`sidecar`], [`volume`], [`space`] (a file's description, a disk's label, the room that is left);
//! - `fault` (system calls that fail, for tests).
//!
//! The reason for the order: a name that was given before the bytes were synced may bear an empty file after a power
//! cut, and one whose directory was not synced may be gone. With the feature `faults`, every system call of this crate
//! is a point at which a test can make it fail, or the process die; `conformance/tests/crash.rs` does both.

#![warn(missing_docs, clippy::wildcard_enum_match_arm)]

pub mod append;
mod call;
pub mod directory;
pub mod error;
pub mod exchange;
#[cfg(feature = "faults")]
pub mod fault;
pub mod hashed;
pub mod journal;
pub mod replace;
pub mod sidecar;
pub mod space;
pub mod stage;
pub mod stamp;
pub mod verify;
pub mod volume;

pub use append::AppendFile;
pub use error::{DiskError, DiskSeverity};
pub use exchange::{ProvenCopy, RepairedCopy};
pub use hashed::HashedFile;
pub use journal::{Journal, JournalWriter, JournaledGroups};
pub use replace::{
    SmallFile, read_secret, read_small, read_state, replace_all, replace_file, replace_secret,
};
pub use sidecar::{OutboardRecord, Sidecar, SidecarError};
pub use space::Space;
pub use stage::{
    FinalPaths, PublishError, ReceivedFile, Reservation, SealedFile, Stage, SurveyedFile,
    VerifiedFile,
};
pub use stamp::{StampFile, StampWriter};
pub use verify::UncachedFile;
pub use volume::{ExpectedVolume, VolumeIdentity, VolumeProblem};
