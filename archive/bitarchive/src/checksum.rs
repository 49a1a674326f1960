//! A checksum replica: the name, size and root of every file, computed from the bytes that were sent to it. It keeps no
//! bytes: such a replica is a cheap third voice for the day when the admin data itself is in doubt.
//!
//! Owns the order of one upload: hash every byte, compare the hash with the signed admission, write the row, synced,
//! then answer. Its table is a [table of record](table), not a cache: nothing on its disk could restore it.
//!
//! Invariants:
//! - a root in the table is that of a signed admission, and was computed here, from all bytes. The exception is a name
//!   that people have let mean other content (`adopt`): its row has only the word of the admission;
//! - a row that is removed or replaced leaves a line in `removed.jsonl`, with its admission; the number of removals
//!   within an hour is limited, also over a restart;
//! - it answers for a file only after its row is synced.
//!
//! Not promised: that the bytes can still be read anywhere. Everything here blocks; time is an argument.

mod adopt;
mod metrics;
mod put_aside;
mod receiving;
mod replica;
mod serve;
mod settings;
pub mod table;
#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make and damage files")]
pub(crate) mod tests;

#[doc(hidden)]
pub use put_aside::append_removed_row;
pub use put_aside::{PutAsideError, RemovedRow, removed_lines};
pub use receiving::ReceivingFile;
pub use replica::{ChecksumReplica, ChecksumReplicaOptions, VOLUME};
pub use serve::serve_checksum_replica;
pub use settings::{ChecksumReplicaSettings, Settings};
pub use table::{ChecksumTable, ChecksumTableError, RecordedFile};
