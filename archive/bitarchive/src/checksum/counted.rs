//! What a checksum replica has done since that was last shown.

use std::sync::atomic::{AtomicU64, Ordering};

/// What was done since it was last shown.
#[derive(Debug, Default)]
pub(super) struct Counted {
    pub(super) files: AtomicU64,
    pub(super) bytes: AtomicU64,
}

impl Counted {
    pub(super) fn recorded(&self) {
        self.files.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn hashed(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}
