//! Conformance: sees everything, seen by nothing.
//!
//! Owns the tests that no single crate can have: that the source tree is what `ARCHITECTURE.md` says it is, and that
//! its manners are kept, that whatever implements a trait keeps the promises of that trait, and that a node keeps its
//! promises when it dies or its disk fails. The library finds out what is there, says what is promised, and has the
//! node that dies; `tests/` says what should be.
//!
//! The rooms in reading order:
//!
//! - [`tree`] (the files of the source tree), [`cargo`] (what Cargo knows of the workspace);
//! - [`contract`] (the promises of each trait, as functions);
//! - [`machine`] (a node that is killed, and its disk).
//!
//! Not promised: an interface. No crate depends on this one, and a test holds that too.

pub mod cargo;
pub mod contract;
pub mod machine;
pub mod tree;
