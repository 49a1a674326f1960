//! The coordinator: what was decided about every file.
//!
//! Owns what the archive remembers of every file, and the workers that act on it. What follows from what is known is decided
//! in `archive-decisions`, whose answers are persisted here first and acted upon second.
//!
//! Around these: one reader that gives proven bytes out of any replica, checks that file [`anomalies`], repairs that move
//! the damaged groups alone, and the workers that do both by themselves.
//!
//! The rooms in reading order, from those that use no other one to the doors:
//!
//! - decisions that need rows: `custody` (which copies count), [`requests`] (acts of two people);
//! - what is remembered: [`admin`] (a row a file), [`anomalies`], [`audit_log`] and `audit` (the trail), [`standing`] (what is
//!   retired or drained), `export` and [`restore`] (the truth outside of this disk, and back);
//! - other machines, called by `archive-replicas`: `membership` (who is there), `attention` (whom to tell of
//!   nodes in trouble);
//! - bytes: `depositor` and `transfer` (into the replicas), `assemble` (proven bytes out of them), `heal` (damaged groups);
//! - one file at a time: `mail` (what is told to the coordinator), [`coordinator`] (the owner of files on their way);
//! - keeping: `preserver` (a look at one name), `checking` (a whole replica), `mending` (a repair), `automatic` and `schedule`
//!   (both without a person), `incidents` and `alarm` (what operators are told);
//! - people: `people` (their acts), `drain` (out of a volume or node), `bootstrap` (into a new replica);
//! - doors: `rpc`, [`serve`](mod@serve), [`settings`], `metrics`.

mod alarm;
mod assemble;
mod attention;
mod automatic;
mod bootstrap;
mod checking;
pub mod coordinator;
mod daily_export;
mod depositor;
mod drain;
mod heal;
mod incidents;
mod limits;
mod mail;
mod membership;
mod mending;
mod metrics;
mod people;
mod preserver;
pub mod restore;
mod rpc;
mod schedule;
#[cfg(test)]
mod scripted;
pub mod serve;
pub mod settings;
mod transfer;

pub use serve::{StartError, serve};
pub use settings::{
    BatchSettings, CheckSettings, DrainSettings, RepairSettings, ReplicaSettings,
    RepositorySettings, Settings,
};
