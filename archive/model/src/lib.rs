//! The nouns of the archive.
//!
//! Owns the types that every part of the archive speaks of: names, checksums, replicas, states, damage. They are plain
//! values: nothing here opens a file, reads a clock, or can await. Each constructor checks its value, so that a
//! [`FileName`] in hand is a name that may be archived.
//!
//! Not promised: a wire or disk format. Those live in `proto-archive` and beside the code that writes a file.
//!
//! The rooms in reading order:
//!
//! - [`file_name`], [`name_pattern`], [`name_list`] (what files are called), [`checksum`], [`content`], [`groups`]
//!   (what is in them);
//! - [`mod@replica`], [`node`], [`copy`] (where copies are, and how), [`disk_order`] (what a node does with its disks),
//!   [`gap`] (what could not be asked), [`store_state`] (how far each has come);
//! - [`anomaly`], [`check`] (what is wrong), [`attic`], [`scrub`], [`repair`], [`mend`], [`drain`] (what is done about
//!   it);
//! - [`batch`], [`job_status`], [`feed`] (jobs over files, how far they are, and changes of files), [`role`],
//!   [`approval`], [`cause`], [`act`], `request` (who may do what and why, and what wants a second person);
//! - [`mod@error`], [`limits`], [`quantity`], [`backoff`] (errors, bounds, units and pauses that all parts share),
//!   [`secret`] (who may use the file of a key or password), `text` (characters of foreign texts that are not shown),
//!   `time` (times that are reckoned from others), `closed_set` (the macro behind every enumeration of words).
//!
//! ```
//! use archive_model::FileName;
//! assert!(FileName::new("12-34-20260101-00001.warc.gz").is_ok());
//! assert!(FileName::new("../escape").is_err());
//! ```

#![warn(missing_docs, clippy::wildcard_enum_match_arm)]

pub mod act;
pub mod anomaly;
pub mod approval;
pub mod attic;
pub mod backoff;
pub mod batch;
pub mod cause;
pub mod check;
pub mod checksum;
mod closed_set;
pub mod content;
pub mod copy;
pub mod disk_order;
pub mod drain;
pub mod error;
pub mod feed;
pub mod file_name;
pub mod gap;
pub mod groups;
pub mod job_status;
pub mod limits;
pub mod mend;
pub mod name_list;
pub mod name_pattern;
pub mod node;
pub mod quantity;
pub mod repair;
pub mod replica;
pub mod request;
pub mod role;
pub mod scrub;
pub mod secret;
pub mod store_state;
mod text;
mod time;

pub use act::{Act, NodeSelector, VolumeSelector};
pub use anomaly::{AnomalyClass, AnomalyKind, AnomalyState, FiledAnomaly, Finder};
pub use approval::Approval;
pub use attic::{AtticItem, AtticKind, AtticPlace, InvalidAtticPlace};
pub use backoff::Backoff;
pub use batch::{
    BatchFileOutcome, FailureKind, FileFailure, FileSelection, JobClass, JobId, JobLimits, JobSpec,
    Program, Reduce,
};
pub use cause::{Cause, InvalidCause};
pub use check::{CheckKind, CheckProgress, CheckStep, ReplicaReport};
pub use checksum::{Digests, InvalidChecksum, Root};
pub use content::FileContent;
pub use copy::{CopyCondition, CopyDoubt, CopyPlace, CopySelector, CopyStanding, FileCopy};
pub use disk_order::DiskOrder;
pub use drain::{Drain, FilesToLeave};
pub use error::ArchiveError;
pub use feed::{ChangeKind, FeedChange, FeedFile, FeedPosition};
pub use file_name::{FileName, InvalidFileName};
pub use gap::{Gap, SilentPart, VolumeName};
pub use groups::{GROUP_SIZE, Groups};
pub use job_status::{JobNode, JobOutput, JobState, JobStatus};
pub use mend::MendOrder;
pub use name_list::{InvalidNameList, NameList};
pub use name_pattern::{InvalidPattern, NamePattern};
pub use node::{Mode, NodeState, VolumeState};
pub use quantity::{ByteSize, InvalidQuantity, Period};
pub use repair::RepairOutcome;
pub use replica::{
    InvalidId, NodeId, NodeKey, ReplicaId, ReplicaKind, UploadId, VolumeId, VolumeKey,
};
pub use request::{ActKind, RequestState};
pub use role::{InvalidRole, Role};
pub use scrub::{NodeScrub, ScrubActivity, ScrubOrder};
pub use secret::{ExposedSecret, check_secret};
pub use store_state::{ReplicaProgress, ReplicaState, ReplicaStatus, StoreFailure};
pub use text::{is_steering, visible_character};
pub use time::time_after;
