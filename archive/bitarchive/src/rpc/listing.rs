//! Listings of any length in messages of bounded length. The last message says that it is the last.

use prost::Message;
use proto_archive::wire;
use tonic::Status;

use super::{Answers, send};

/// The most entries in one message.
const MOST_ENTRIES: usize = 1000;

/// The most bytes in one message, unless a single entry is larger. A client reads at most 4 MiB.
const MOST_BYTES: usize = 1 << 20;

/// The entries of one message that is being filled.
#[derive(Debug)]
pub(super) struct ListingPage<T> {
    entries: Vec<T>,
    bytes: usize,
}

impl<T: Message> ListingPage<T> {
    pub(super) const fn new() -> Self {
        Self {
            entries: Vec::new(),
            bytes: 0,
        }
    }

    /// Adds an entry. Returns the earlier ones, which are to be sent first, if there is no room for both.
    pub(super) fn push(&mut self, entry: T) -> Option<Vec<T>> {
        let bytes = entry.encoded_len();
        let is_full = self.entries.len() >= MOST_ENTRIES
            || (!self.entries.is_empty() && self.bytes + bytes > MOST_BYTES);
        let full = is_full.then(|| {
            self.bytes = 0;
            std::mem::take(&mut self.entries)
        });
        self.bytes += bytes;
        self.entries.push(entry);
        full
    }

    /// Returns the entries of the last message.
    pub(super) fn rest(self) -> Vec<T> {
        self.entries
    }
}

/// Sends every entry, then the end with the `gaps` at that time. An error among the entries ends the listing without an
/// end.
pub(super) fn send_all(
    all: impl Iterator<Item = Result<wire::FileEntry, Status>>,
    gaps: impl FnOnce() -> Vec<wire::Gap>,
    answers: &Answers<wire::FilesResponse>,
) -> Result<(), Status> {
    let mut count = 0;
    let mut page = ListingPage::new();
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
    let (entries, end) = (page.rest(), Some(end));
    send(answers, files(entries, end))
}

/// Makes the message before the listing, with the number of names that were looked at.
pub(super) fn looking(looked: u64) -> wire::FilesResponse {
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
    let mut page = ListingPage::new();
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
    let (admissions, end) = (page.rest(), Some(end));
    send(answers, wire::AdmissionsResponse { admissions, end })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a message has more entries or bytes than a client reads.
    #[test]
    fn messages_are_bounded_in_entries_and_bytes() {
        let long = |length: usize| wire::AtticItem {
            why: "x".repeat(length),
            ..wire::AtticItem::default()
        };
        for (length, count) in [(0, 2500), (1000, 2500), (700_000, 5), (3_000_000, 3)] {
            let mut page = ListingPage::new();
            let mut sent: Vec<_> = (0..count).filter_map(|_| page.push(long(length))).collect();
            sent.push(page.rest());
            assert_eq!(sent.iter().map(Vec::len).sum::<usize>(), count);
            for items in sent {
                assert!((1..=MOST_ENTRIES).contains(&items.len()));
                let end = None;
                let one = items.len() == 1;
                let bytes = wire::AtticResponse { items, end }.encoded_len();
                assert!(one || bytes < 2 * MOST_BYTES, "{bytes}");
            }
        }
    }
}
