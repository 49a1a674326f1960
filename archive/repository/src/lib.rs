//! The coordinator: what was decided about every file.
//!
//! Owns the decisions of the archive, each a pure core: [`store`] (one file on its way into every replica), [`check`]
//! (a replica's listing against the admin data), [`vote`] (which root is right) and [`repair`] (what to move, and when).
//! No core awaits, reads a clock or touches a disk: times are arguments, answers are values.
//!
//! Around them: one reader that gives proven bytes out of any replica, checks that file [`anomalies`], repairs that move
//! the damaged groups alone, and the workers that do both by themselves.
//!
//! Not promised by a core: that anything was remembered or done. The shell persists first, then acts.

pub mod admin;
mod alarm;
pub mod anomalies;
mod assemble;
mod attention;
mod audit;
pub mod audit_log;
mod automatic;
mod batch;
mod bootstrap;
pub mod check;
mod checking;
pub mod coordinator;
mod custody;
mod depositor;
mod drain;
mod export;
mod heal;
mod incidents;
mod membership;
mod mending;
mod metrics;
mod people;
mod preserver;
pub mod repair;
mod replicas;
pub mod requests;
pub mod restore;
mod rpc;
mod schedule;
pub mod serve;
pub mod settings;
pub mod standing;
pub mod store;
mod transfer;
pub mod vote;

pub use serve::{StartError, serve};
pub use settings::{
    BatchSettings, CheckSettings, DrainSettings, RepairSettings, ReplicaSettings,
    RepositorySettings, Settings,
};
