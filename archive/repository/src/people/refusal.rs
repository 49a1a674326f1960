//! Refusals that acts of people and drains share: a file is not in the archive, or has changed since the act was asked
//! for.

use archive_decisions::store::{Content, FileRecord};
use archive_rpc::{CallError, CallErrorKind};

/// Returns the content that was admitted under the name.
pub(crate) fn recorded_content(record: &FileRecord) -> Result<&Content, CallError> {
    let unknown =
        || CallErrorKind::NotFound.to_error(format!("{} is not in the archive", record.name));
    record.content.as_ref().ok_or_else(unknown)
}

/// Returns the refusal of an act that is not possible any more.
pub(super) fn changed_meanwhile(why: String) -> CallError {
    CallErrorKind::Mismatch.to_error(why)
}

/// Returns the refusal of a request that does not name what it would destroy.
pub(super) fn unnamed() -> CallError {
    changed_meanwhile(
        "the request does not name what it would destroy; ask again, with the checksum of the file"
            .to_owned(),
    )
}
