//! A batch job: over which replica it runs, when its turn comes, and what it does next.
//!
//! Owns the state of a job between two events. A table keeps that state, and a shell performs what follows from it:
//! both are `archive-jobs`.
//!
//! - [`choice`]: the replica that reads for a job which names none;
//! - [`queue`]: whose turn it is;
//! - [`life`]: from the first turn of a job to its end.

pub mod choice;
pub mod life;
pub mod queue;
