//! The part `repository`, which keeps stored files, carries out the decisions of people, and answers.
//!
//! Owns the workers that keep every copy as it was admitted, with and without a person, and the doors. Decisions are
//! made in `archive-decisions` and remembered in `archive-ledger`; files on their way belong to `archive-stores`, batch
//! jobs to `archive-jobs`, and machines are called by `archive-replicas`.
//!
//! Not promised: that a decision was carried out. It is persisted first and acted upon second, and after a restart
//! again.
//!
//! The rooms in reading order, from those that use no other one to the doors:
//!
//! - `tables` (the way to the ledger from where nothing may block), `claims` (who acts on which file), `archive` (the
//!   handles that all actors share);
//! - `room` (on the disk of the admin data);
//! - who is there: `membership` (which nodes and volumes each replica has), `attention` (their incidents, for
//!   operators);
//! - keeping: `preserver` (a look at one name), `checking` (a whole replica), `mending` (a repair), `automatic` and
//!   `schedule` (both without a person), `incidents` and `alarm` (incidents of files, for operators);
//! - people: `people` (their acts), `drain` (out of a volume or node), `fill` (into a new replica, and the rows after a
//!   retirement);
//! - the ledger outside of this disk: `daily_export` (into the archive itself), [`restore`] (out of the replicas);
//! - doors: `rpc`, [`serve`](mod@serve), [`settings`], `metrics`.

mod alarm;
mod archive;
mod attention;
mod automatic;
mod checking;
mod claims;
mod daily_export;
mod drain;
mod fill;
mod incidents;
mod membership;
mod mending;
mod metrics;
mod people;
mod preserver;
pub mod restore;
mod room;
mod rpc;
mod schedule;
pub mod serve;
pub mod settings;
mod tables;

pub use serve::serve_repository;
pub use settings::{
    BatchSettings, CheckSettings, DrainSettings, RepairSettings, ReplicaSettings,
    RepositorySettings, Settings,
};
