//! One node of a bitarchive replica: its volumes, its files and what is known of them. Also the [checksum replica], which
//! has names and checksums without files.
//!
//! [checksum replica]: checksum
//!
//! Owns the write path (what is acknowledged is durable, read back, and under its final name), the layout of a volume,
//! the catalog, the manifests, the attic.
//!
//! Invariants:
//! - a final name never bears bytes that are not those of a signed admission;
//! - a file that is gone never makes its row go; a volume that is gone never makes its files *missing*;
//! - a node never decides alone whether a file should be there: that is the repository's to say.
//!
//! Not promised: knowledge of other nodes. Where a name may be on two nodes, the monitor sees it.
#![doc = include_str!("../FORMAT.md")]

mod admitted;
mod adopt;
pub mod attic;
pub mod brake;
pub mod catalog;
pub mod checksum;
mod claims;
mod cores;
pub mod error;
mod heartbeat;
mod hold;
pub mod layout;
pub mod manifest;
pub mod mend;
mod metrics;
pub mod node;
pub mod reconcile;
pub mod rpc;
pub mod scrub;
pub mod serve;
pub mod settings;
mod standing;
pub mod upload;
pub mod verify;
pub mod volumes;
pub mod work;

pub use catalog::{Catalog, Condition, Entry, Row, Tally};
pub use error::NodeError;
pub use layout::{Layout, Shelf};
pub use mend::{Mend, MendOrder, MendReport};
pub use node::{Node, NodeOptions, OpenFile};
pub use reconcile::ReconcileReport;
pub use rpc::{JobRunner, RunnerError, StartRunner};
pub use serve::{StartError, serve};
pub use settings::{AtticSettings, Settings};
pub use upload::Upload;
pub use volumes::{Volume, Volumes, VolumesError};

/// The directories of tests that are not about the disk: in memory, where a sync costs nothing. Disks that fail have tests
/// of their own, and whole archives are tested on real ones.
#[cfg(test)]
mod testing {
    /// Makes a directory for a test.
    pub(crate) fn directory() -> tempfile::TempDir {
        let in_memory = tempfile::tempdir_in("/dev/shm");
        in_memory.or_else(|_none| tempfile::tempdir()).unwrap()
    }
}
