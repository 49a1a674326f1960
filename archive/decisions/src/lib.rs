//! The decisions of the archive, each a pure function of what is known.
//!
//! Owns the state machines of one file on its way into every replica and of one batch job, and the answers to four
//! questions: which root is right, what is wrong with a replica, what a repair has to move, and what a drain does next
//! with one file. Times are arguments, and answers are values: nothing here awaits, reads a clock or touches a disk,
//! and nothing under this crate could. So each decision is tried in every state that its tests can name, in seconds and
//! without a process or a table.
//!
//! Not promised: that anything was remembered or done. `archive-stores`, `archive-repository` and `archive-jobs`
//! persist an answer first, and then act on it.
//!
//! The rooms in reading order:
//!
//! - [`store`]: one file, from the first question of a depositor to copies that were read back in every replica;
//! - [`check`]: the listing of a replica, merged with the admin data: each anomaly, and what could not be verified;
//! - [`vote`]: which root is right, where replicas disagree and no signed admission decides;
//! - [`repair`]: the groups to move and the donors to take them from, or why nothing is done; [`repair::policy`] says
//!   when;
//! - [`drain`]: the next step for one file that has to leave a volume or a node;
//! - [`batch`]: one batch job, from its place in the queue to its end.
//!
//! ```
//! use archive_decisions::vote::{RootAuthority, Ballot, Evidence, RootVerdict, decide_root};
//! use archive_model::{ReplicaId, Root};
//!
//! let [first, second, third] = ["a", "b", "c"].map(|id| ReplicaId::new(id).unwrap());
//! let right = Root::from_bytes([1; 32]);
//! let wrong = Root::from_bytes([2; 32]);
//! // No record and no signature is left: two replicas of three agree.
//! let ballot = |replica: &ReplicaId, root| Ballot { replica: replica.clone(), root };
//! let evidence = Evidence {
//!     ballots: vec![ballot(&first, right), ballot(&second, wrong), ballot(&third, right)],
//!     ..Evidence::default()
//! };
//! assert_eq!(decide_root(&evidence), RootVerdict::Right(right, RootAuthority::Vote));
//! ```

#![warn(missing_docs, clippy::wildcard_enum_match_arm)]

pub mod batch;
pub mod check;
pub mod drain;
pub mod repair;
pub mod store;
pub mod vote;
