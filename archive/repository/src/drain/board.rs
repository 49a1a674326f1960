//! How far each drain is, for those who ask. Counted anew after a start.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use archive_ledger::standing::Source;

use crate::metrics::Instruments;

/// How far one drain is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shown {
    /// Files that are recorded there, and their bytes; none: they are being counted.
    pub(crate) left: Option<(u64, u64)>,
    /// Why something does not go on, or stays behind; empty: nothing does.
    pub(crate) held: String,
}

/// The board; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Board {
    shown: Arc<Mutex<BTreeMap<Source, Shown>>>,
    instruments: Instruments,
}

impl Board {
    pub(crate) fn new(instruments: Instruments) -> Self {
        Self {
            shown: Arc::default(),
            instruments,
        }
    }

    pub(crate) fn of(&self, source: &Source) -> Shown {
        self.shown().get(source).cloned().unwrap_or_default()
    }

    pub(super) fn counted(&self, source: &Source, files: u64, bytes: u64) {
        self.shown().entry(source.clone()).or_default().left = Some((files, bytes));
        self.instruments.show_drain(source, files);
    }

    /// One file of so many bytes has left.
    pub(super) fn left(&self, source: &Source, bytes: u64) {
        let mut shown = self.shown();
        let entry = shown.entry(source.clone()).or_default();
        if let Some((files, all)) = &mut entry.left {
            *files = files.saturating_sub(1);
            *all = all.saturating_sub(bytes);
            self.instruments.show_drain(source, *files);
        }
    }

    pub(super) fn hold(&self, source: &Source, why: String) {
        self.shown().entry(source.clone()).or_default().held = why;
    }

    /// Forgets the drains that are over.
    pub(super) fn retain(&self, is_there: impl Fn(&Source) -> bool) {
        self.shown().retain(|source, _| {
            let stays = is_there(source);
            if !stays {
                self.instruments.show_drain(source, 0);
            }
            stays
        });
    }

    fn shown(&self) -> MutexGuard<'_, BTreeMap<Source, Shown>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
