//! Captures with one digest: counted, and revisits given the place of their original.
//!
//! Looks at the captures of one answer only, in their order: an original that the answer does not have, or has behind
//! its revisit, is not found here. An index that resolves revisits itself has said so in the capture already.

use std::collections::HashMap;

use archive_formats::cdx::{Capture, OriginalRecord};

use super::columns::DUPE_COUNT;

/// The most digests of one answer that are remembered. An answer with more breaks off.
pub const MAX_DIGESTS: usize = 200_000;

const REVISIT: &str = "warc/revisit";

/// The digests of an answer.
#[derive(Debug, Default)]
pub(super) struct Duplicates {
    counts: bool,
    resolves: bool,
    known: HashMap<String, KnownDigest>,
}

/// Captures with one digest.
#[derive(Debug, Default)]
struct KnownDigest {
    count: u64,
    mime: Option<String>,
    record: Option<OriginalRecord>,
}

impl Duplicates {
    /// Counts captures, or resolves revisits, or both.
    pub(super) fn new(counts: bool, resolves: bool) -> Self {
        Self {
            counts,
            resolves,
            known: HashMap::new(),
        }
    }

    /// Records the next capture, and writes into it the facts that are known of its digest. Returns `false` if there
    /// are too many digests.
    pub(super) fn note_capture(&mut self, capture: &mut Capture) -> bool {
        if !self.counts && !self.resolves {
            return true;
        }
        let Some(digest) = capture.digest.as_deref() else {
            self.write_count(capture, 0);
            return true;
        };
        let digest = digest.strip_prefix("sha1:").unwrap_or(digest);
        if !self.known.contains_key(digest) {
            if self.known.len() >= MAX_DIGESTS {
                return false;
            }
            self.known.insert(digest.to_owned(), KnownDigest::default());
        }
        let Some(known) = self.known.get_mut(digest) else {
            return false;
        };
        let count = known.count;
        known.count += 1;
        if capture.mime.as_deref() == Some(REVISIT) {
            if self.resolves && capture.original_record.is_none() {
                capture.original_record.clone_from(&known.record);
            }
            if self.counts && known.mime.is_some() {
                capture.mime.clone_from(&known.mime);
            }
        } else if known.record.is_none() {
            known.mime.clone_from(&capture.mime);
            known.record = Some(OriginalRecord {
                length: capture.length,
                offset: capture.offset,
                file: capture.file.clone(),
            });
        }
        self.write_count(capture, count);
        true
    }

    fn write_count(&self, capture: &mut Capture, count: u64) {
        if self.counts {
            capture
                .extra
                .push((DUPE_COUNT.to_owned(), count.to_string()));
        }
    }
}
