//! What is true about bytes: roots, trees, proofs, signed admissions. Only Read and Write.
//!
//! Owns the outboard's format and everything that is said with it: building a tree while bytes pass ([`TreeBuilder`]),
//! judging one copy ([`walk()`]), proving ranges to someone else ([`encode`], [`decode`]); and the signed documents that
//! bind a root to a name: [`Admission`] and [`Receipt`], in DSSE [`Envelope`]s, held against a [`TrustFile`]; and the file
//! that proves a part of an archived file to anyone, offline ([`record_proof`]).
//!
//! Invariants:
//! - a byte that is called good, or handed out by [`decode`], hashes to the root that the caller gave;
//! - a damaged outboard costs time, never a verdict against good data;
//! - a payload is parsed only after its signature was verified, and its bytes are never written anew;
//! - memory does not grow with the file.
//!
//! It makes it impossible to await, to open a file, to ask for the time or for chance: readers, writers, times and seeds
//! are arguments.
//!
//! Not promised: durability (the caller syncs), secrecy (the caller guards its keys), or a root that is the right one
//! (that is what the admission is for).
//!
//! ```
//! use std::ops::ControlFlow;
//! use archive_proof::{OutboardState, TreeBuilder, walk};
//!
//! let mut bytes = vec![7; 100_000];
//! let mut builder = TreeBuilder::new(Vec::new());
//! builder.update(&bytes)?;
//! let tree = builder.finish()?;
//!
//! bytes[40_000] ^= 1;
//! let found = walk(&bytes, Some(&tree.sink), tree.root, tree.size, &mut |_| ControlFlow::Continue(()));
//! assert_eq!(found.damaged.iter().collect::<Vec<_>>(), [2]);
//! assert_eq!(found.outboard, OutboardState::Good);
//! # Ok::<(), std::io::Error>(())
//! ```

pub mod admission;
mod chaining;
pub mod envelope;
mod join;
pub mod key;
pub mod outboard;
mod pairs;
pub mod points;
pub mod ranges;
pub mod read_at;
pub mod reader;
pub mod receipt;
pub mod record_proof;
#[cfg(test)]
mod testing;
pub mod tree;
pub mod trust;
pub mod version;
pub mod walk;

pub use admission::{Admission, AdmissionError};
pub use envelope::{Envelope, InvalidEnvelope};
pub use key::{InvalidKey, PublicKey, SigningKey};
pub use outboard::outboard_size;
pub use points::{Points, Shelf};
pub use ranges::{DecodeError, EncodeError, decode, encode, ranges_with_last};
pub use read_at::ReadAt;
pub use reader::{ProvenReader, Unproven};
pub use receipt::{Custody, Receipt, ReceiptError};
pub use record_proof::{ProofWriter, Proven, RecordProofError};
pub use tree::{Prefix, RebuildError, Tree, TreeBuilder, rebuild_outboard};
pub use trust::{InvalidTrustFile, TrustFile, TrustedKey, Verified, VerifyError};
pub use version::UnknownVersion;
pub use walk::{OutboardState, Walk, walk};
