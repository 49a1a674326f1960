//! The meaning of the numbers of files, kept at hand for those that were asked for last.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;

/// The most sources that are kept at hand.
const ROOM: usize = 1 << 14;

/// The file that a capture stands in, and how it came into the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CaptureSource {
    /// The set that the capture was imported with; `None` for one of a file of the archive.
    pub(crate) set: Option<Arc<str>>,
    /// The name of the file; `None` if the imported line names none.
    pub(crate) file: Option<Arc<str>>,
}

/// The sources of numbers.
#[derive(Debug, Default)]
pub(crate) struct FileNames {
    known: RwLock<HashMap<u32, Arc<CaptureSource>>>,
}

impl FileNames {
    /// Returns the source of a number that was asked for lately.
    pub(crate) fn get(&self, number: u32) -> Option<Arc<CaptureSource>> {
        let known = self.known.read();
        known.get(&number).map(Arc::clone)
    }

    /// Keeps the source of a number at hand.
    pub(crate) fn insert_name(&self, number: u32, source: &Arc<CaptureSource>) {
        let mut known = self.known.write();
        if known.len() >= ROOM {
            known.clear();
        }
        known.insert(number, Arc::clone(source));
    }

    /// Forgets a number that is not used any more.
    pub(crate) fn forget_name(&self, number: u32) {
        let mut known = self.known.write();
        known.remove(&number);
    }
}
