//! Listings of any length in messages of a bounded one. The last message says that it is the last.

use proto_archive::wire;
use tonic::Status;

use super::{Answers, send};

/// How many entries one message of a listing has.
const ENTRIES: usize = 1000;

/// How many bytes of admissions one message has, unless a single one is larger. A client reads at most 4 MiB.
const ADMISSION_BYTES: usize = 1 << 20;

/// Sends every entry, then the end with the `gaps` as they are then. An error among the entries ends it without one.
pub(super) fn send_all(
    all: impl Iterator<Item = Result<wire::FileEntry, Status>>,
    gaps: impl FnOnce() -> Vec<wire::Gap>,
    answers: &Answers<wire::FilesResponse>,
) -> Result<(), Status> {
    let mut count = 0;
    let mut entries = Vec::with_capacity(ENTRIES);
    for entry in all {
        entries.push(entry?);
        count += 1;
        if entries.len() == ENTRIES {
            let entries = std::mem::replace(&mut entries, Vec::with_capacity(ENTRIES));
            send(answers, wire::FilesResponse { entries, end: None })?;
        }
    }
    let end = wire::files_response::End {
        count,
        gaps: gaps(),
    };
    send(
        answers,
        wire::FilesResponse {
            entries,
            end: Some(end),
        },
    )
}

/// Sends every admission, then the end.
pub(super) fn send_admissions(
    all: impl Iterator<Item = Result<wire::admissions_response::One, Status>>,
    gaps: impl FnOnce() -> Vec<wire::Gap>,
    answers: &Answers<wire::AdmissionsResponse>,
) -> Result<(), Status> {
    let mut count = 0;
    let (mut admissions, mut bytes) = (Vec::new(), 0);
    for one in all {
        let one = one?;
        if !admissions.is_empty()
            && (admissions.len() == ENTRIES || bytes + one.admission.len() > ADMISSION_BYTES)
        {
            let admissions = std::mem::take(&mut admissions);
            bytes = 0;
            send(
                answers,
                wire::AdmissionsResponse {
                    admissions,
                    end: None,
                },
            )?;
        }
        bytes += one.admission.len();
        admissions.push(one);
        count += 1;
    }
    let end = wire::files_response::End {
        count,
        gaps: gaps(),
    };
    send(
        answers,
        wire::AdmissionsResponse {
            admissions,
            end: Some(end),
        },
    )
}
