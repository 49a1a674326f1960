//! One node of a bitarchive replica: its volumes, its files and what is known of them. Also the [checksum replica],
//! which has names and checksums without files.
//!
//! [checksum replica]: checksum
//!
//! Owns the write path (what is acknowledged is durable, read back, and under its final name), the layout of a volume,
//! the catalog, the manifests, the attic. Batch jobs run in another crate, which is handed to [`serve_node`].
//!
//! Invariants:
//! - a final name never bears bytes that are not those of a signed admission;
//! - the row of a file stays when the file is absent; an absent volume never makes its files *missing*;
//! - a node never decides alone whether a file should be there: the repository decides.
//!
//! The rooms, in reading order:
//!
//! - [`layout`] (paths on a volume), [`volumes`] (which disks are there), [`catalog`] (what is known of their files);
//! - [`reconcile`] (the disks against the catalog, when they come online), [`manifest`] (the lists for people);
//! - [`attic`] (the items of what was removed or replaced), [`brake`] (how much of that within an hour);
//! - `claims` (who works on a file), `cores` (work that computes), `scrub_age` (how old checks are), `admitted`
//!   (received bytes against their admission);
//! - [`node`]: all of it together. [`NodeDisks`] keeps the catalog in step with the volumes; above it [`NodeFiles`] takes
//!   in (the write path), reads, verifies, mends and adopts files; above both [`NodeAttic`] puts aside, restores and
//!   purges;
//! - [`scrub`] (every copy is verified, in time);
//! - [`checksum`]: the checksum replica, with a table in the place of disks;
//! - [`rpc`] (the door), `heartbeat` (the calls to the monitor), [`settings`], `metrics`, `serve` (the start of the
//!   process), [`error`] and [`work`] (common types).
//!
//! Not promised: knowledge of other nodes. The monitor sees whether a name is on two nodes.

#![warn(missing_docs)]
#![doc = include_str!("../FORMAT.md")]

mod admitted;
pub mod attic;
pub mod brake;
pub mod catalog;
pub mod checksum;
mod claims;
mod cores;
pub mod error;
mod heartbeat;
pub mod layout;
pub mod manifest;
mod metrics;
pub mod node;
pub mod reconcile;
pub mod rpc;
pub mod scrub;
mod scrub_age;
pub mod serve;
pub mod settings;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod volumes;
pub mod work;

pub use catalog::{Catalog, CatalogEntry, Condition, FindingCounts, Row};
pub use error::NodeError;
pub use layout::{FileDirectory, Layout};
pub use node::{
    Mend, MendReport, Node, NodeAttic, NodeDisks, NodeFiles, NodeOptions, NodeUpload, OpenFile,
    VerifyProgress,
};
pub use reconcile::ReconcileReport;
pub use rpc::{JobRunner, RunnerError, StartRunner};
pub use serve::serve_node;
pub use settings::{AtticSettings, Settings};
pub use volumes::{Volume, Volumes, VolumesError};
