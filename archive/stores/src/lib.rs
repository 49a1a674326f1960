//! Stores: files on their way from a depositor into every replica, and out of the replicas again.
//!
//! Owns each file that is on its way: one coordinator asks `archive-decisions` what follows, remembers it in the
//! ledger, and then has it done. Bytes go in one stream from a depositor to all replicas, or from a replica that has
//! them to one that lacks them, and are hashed or proven while they pass.
//!
//! Not promised: that a file is kept. What happens to a copy that was complete is the business of `archive-repository`.
//!
//! The rooms in reading order:
//!
//! - [`mail`] (the messages to the coordinator), [`depositor`] (who sends a file), [`file_blocks`] (a file on a disk of
//!   the repository, piece by piece);
//! - [`limits`] (how long a whole file may take), [`calls`] (calls to the replicas, which end in time);
//! - [`coordinator`]: the owner of files on their way;
//! - [`transfer`]: one stream in, one for each replica out; [`assemble`]: proven bytes out of any replica;
//! - [`delivery`]: a file from other replicas, or from a disk of the repository, into one replica;
//! - [`copier`]: a replica that lacks a file gets it from another one; [`metrics`]: what became of stores.

pub mod assemble;
pub mod calls;
pub mod coordinator;
pub mod copier;
pub mod delivery;
pub mod depositor;
pub mod file_blocks;
pub mod limits;
pub mod mail;
pub mod metrics;
#[cfg(any(test, feature = "testing"))]
pub mod scripted;
pub mod transfer;
