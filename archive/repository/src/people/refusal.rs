//! Refusals that several acts share: what an act is about is not in the archive, or is not any more what it must be.

use archive_decisions::store::{Content, FileRecord};
use archive_rpc::{CallError, Kind};

/// Returns the content that was admitted under the name; the refusal, if nothing was.
pub(super) fn content(record: &FileRecord) -> Result<&Content, CallError> {
    let unknown = || Kind::NotFound.error(format!("{} is not in the archive", record.name));
    record.content.as_ref().ok_or_else(unknown)
}

/// Refuses because the archive is not as it must be for the act.
pub(super) fn changed(why: String) -> CallError {
    Kind::Mismatch.error(why)
}

/// Refuses a request that was asked for before requests named what they destroy.
pub(super) fn unnamed() -> CallError {
    changed(
        "the request does not name what it would destroy; ask again, with the checksum of the file"
            .to_owned(),
    )
}
