//! The progress of each drain, for callers; counted again after a start.

use std::collections::BTreeMap;
use std::sync::Arc;

use archive_ledger::standing::DrainSource;
use archive_model::FilesToLeave;
use parking_lot::{Mutex, MutexGuard};

use crate::metrics::Instruments;

/// The progress of one drain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DrainProgress {
    /// The files that are recorded at the source; `None` while they are being counted.
    pub(crate) left: Option<FilesToLeave>,
    /// The reason why some file does not progress, or stays behind; otherwise empty.
    pub(crate) held: String,
}

/// The board of all drains; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct DrainBoard {
    shown: Arc<Mutex<BTreeMap<DrainSource, DrainProgress>>>,
    instruments: Instruments,
}

impl DrainBoard {
    pub(crate) fn new(instruments: Instruments) -> Self {
        Self {
            shown: Arc::default(),
            instruments,
        }
    }

    pub(crate) fn drain_progress(&self, source: &DrainSource) -> DrainProgress {
        self.shown().get(source).cloned().unwrap_or_default()
    }

    pub(super) fn note_counted(&self, source: &DrainSource, files: u64, bytes: u64) {
        self.shown().entry(source.clone()).or_default().left = Some(FilesToLeave { files, bytes });
        self.instruments.show_drain(source, files);
    }

    /// Counts a file of this size that has left.
    pub(super) fn note_left(&self, source: &DrainSource, bytes: u64) {
        let mut shown = self.shown();
        let entry = shown.entry(source.clone()).or_default();
        if let Some(left) = &mut entry.left {
            left.files = left.files.saturating_sub(1);
            left.bytes = left.bytes.saturating_sub(bytes);
            self.instruments.show_drain(source, left.files);
        }
    }

    pub(super) fn note_hold(&self, source: &DrainSource, why: String) {
        self.shown().entry(source.clone()).or_default().held = why;
    }

    /// Forgets drains that have ended.
    pub(super) fn retain_drains(&self, is_there: impl Fn(&DrainSource) -> bool) {
        self.shown().retain(|source, _| {
            let stays = is_there(source);
            if !stays {
                self.instruments.show_drain(source, 0);
            }
            stays
        });
    }

    fn shown(&self) -> MutexGuard<'_, BTreeMap<DrainSource, DrainProgress>> {
        self.shown.lock()
    }
}
