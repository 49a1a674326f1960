//! Listings of any length in messages of bounded length. The last message says that it is the last.

use archive_rpc::Page;
use proto_archive::wire;
use tonic::Status;

use super::{Answers, send};

/// Sends every entry, then the end with the `gaps` at that time. An error among the entries ends the listing without an
/// end.
pub(super) fn send_all(
    all: impl Iterator<Item = Result<wire::FileEntry, Status>>,
    gaps: impl FnOnce() -> Vec<wire::Gap>,
    answers: &Answers<wire::FilesResponse>,
) -> Result<(), Status> {
    let mut count = 0;
    let mut page = Page::new();
    for entry in all {
        count += 1;
        if let Some(entries) = page.push(entry?) {
            send(answers, files(entries, None))?;
        }
    }
    let end = wire::files_response::End {
        count,
        gaps: gaps(),
    };
    let entries = page.take_page();
    let end = Some(end);
    send(answers, files(entries, end))
}

/// Makes the message before the listing, with the number of names that were looked at.
pub(super) fn still_looking(looked: u64) -> wire::FilesResponse {
    wire::FilesResponse {
        looked: looked.max(1),
        ..wire::FilesResponse::default()
    }
}

const fn files(
    entries: Vec<wire::FileEntry>,
    end: Option<wire::files_response::End>,
) -> wire::FilesResponse {
    wire::FilesResponse {
        entries,
        end,
        looked: 0,
    }
}

/// Sends every admission, then the end.
pub(super) fn send_admissions(
    all: impl Iterator<Item = Result<wire::admissions_response::One, Status>>,
    gaps: impl FnOnce() -> Vec<wire::Gap>,
    answers: &Answers<wire::AdmissionsResponse>,
) -> Result<(), Status> {
    let mut count = 0;
    let mut page = Page::new();
    for one in all {
        count += 1;
        if let Some(admissions) = page.push(one?) {
            let end = None;
            send(answers, wire::AdmissionsResponse { admissions, end })?;
        }
    }
    let end = wire::files_response::End {
        count,
        gaps: gaps(),
    };
    let admissions = page.take_page();
    let end = Some(end);
    send(answers, wire::AdmissionsResponse { admissions, end })
}
