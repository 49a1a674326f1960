//! Statements about bytes that can be proven: roots, trees, proofs, signed admissions. The crate uses only `Read` and
//! `Write`.
//!
//! Owns the outboard's format and everything that is done with it: building a tree while bytes pass ([`TreeBuilder`]),
//! judging one copy ([`walk_tree()`]), proving ranges to someone else ([`encode_ranges`], [`decode_ranges`]); and the signed documents
//! that bind a root to a name: [`Admission`] and [`Receipt`], in DSSE [`Envelope`]s, verified with a [`TrustFile`]; and
//! the file that proves a part of an archived file to anyone, offline ([`record_proof`]).
//!
//! Invariants:
//! - a byte that is called good, or handed out by [`decode_ranges`], hashes to the root that the caller gave;
//! - a damaged outboard costs time, never a verdict against good data;
//! - a payload is parsed only after its signature was verified, and its bytes are never written anew;
//! - memory does not grow with the file.
//!
//! It makes it impossible to await, to open a file, to ask for the time or for chance: readers, writers, times and
//! seeds are arguments.
//!
//! The rooms in reading order:
//!
//! - `chaining`, `pairs` (inner hashes, and how they are read), [`outboard`] (the format of the tree), [`tree`] (how
//!   one is built), [`rebuild`] (how it is made again), [`read_at`] (how this crate sees a file);
//! - [`mod@walk`] (which groups of a copy are good), [`reader`] (any bytes of a copy, proven before they are handed
//!   out);
//! - [`ranges`], `join` (bytes with their proof, for someone else; slices that become one), [`record_proof`] (the same
//!   as one file, offline), [`points`] (where a stream that was cut continues);
//! - [`key`], [`envelope`], [`trust`] (who signs, and whose signatures count), [`admission`], [`receipt`] (what is
//!   signed), [`version`] (how each document begins).
//!
//! Not promised: durability (the caller syncs), secrecy (the caller guards its keys), or that a root is the right one
//! (the admission tells that).
//!
//! ```
//! use std::ops::ControlFlow;
//! use archive_proof::{CopyBytes, OutboardState, TreeBuilder, walk_tree};
//!
//! let mut bytes = vec![7; 100_000];
//! let mut builder = TreeBuilder::new(Vec::new());
//! builder.update(&bytes)?;
//! let tree = builder.finish()?;
//!
//! bytes[40_000] ^= 1;
//! let copy = CopyBytes { data: &bytes, outboard: Some(&tree.sink) };
//! let found = walk_tree(copy, tree.content(), &mut |_| ControlFlow::Continue(()));
//! assert_eq!(found.damaged.iter().collect::<Vec<_>>(), [2]);
//! assert_eq!(found.outboard, OutboardState::Good);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! A signed admission counts for those who trust the key that signed it:
//!
//! ```
//! use archive_model::{Digests, FileName, Root, UploadId};
//! use archive_proof::{Admission, SigningKey, TrustFile, TrustedKey};
//!
//! let key = SigningKey::from_seed([7; 32]);
//! let admission = Admission {
//!     archive: "kb".to_owned(),
//!     name: FileName::new("a.warc.gz")?,
//!     size: 0,
//!     root: Root::from_bytes(*blake3::hash(b"").as_bytes()),
//!     digests: Digests::default(),
//!     depositor: "harvester/one".to_owned(),
//!     admitted: "2026-11-26T12:00:00Z".parse()?,
//!     upload: UploadId::new("u-1")?,
//! };
//! let envelope = admission.sign(&key)?;
//!
//! let trust = TrustFile::new(vec![TrustedKey {
//!     archive: "kb".to_owned(),
//!     public_key: key.public_key(),
//!     from: "2026-01-01T00:00:00Z".parse()?,
//!     until: None,
//! }])?;
//! assert_eq!(Admission::verify(&envelope, &trust)?, admission);
//! assert!(Admission::verify(&envelope, &TrustFile::default()).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(
    missing_docs,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

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
pub mod rebuild;
pub mod receipt;
pub mod record_proof;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod tree;
pub mod trust;
pub mod version;
pub mod walk;

pub use admission::{Admission, AdmissionError};
pub use envelope::{Envelope, InvalidEnvelope};
pub use key::{InvalidSigningKey, PublicKey, SigningKey};
pub use outboard::outboard_size;
pub use points::{Points, ResumeStates};
pub use ranges::{DecodeError, EncodeError, decode_ranges, encode_ranges, ranges_with_last};
pub use read_at::{CopyBytes, ReadAt};
pub use reader::{ProvenReadError, ProvenReader};
pub use rebuild::{RebuildError, rebuild_outboard};
pub use receipt::{CustodyStatement, Receipt, ReceiptError};
pub use record_proof::{ProofWriter, ProvenRecord, RecordProofError};
pub use tree::{Prefix, Tree, TreeBuilder};
pub use trust::{InvalidTrustFile, TrustFile, TrustedKey, VerifiedPayload, VerifyError};
pub use version::UnknownVersion;
pub use walk::{OutboardState, WalkResult, walk_tree};
