//! Makes every commit of some databases fail, as a disk that answers with errors does (feature `faults`, tests only).

use std::path::{Path, PathBuf};

use parking_lot::Mutex;

/// The directories whose databases refuse every commit.
static FAILING: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Makes every commit to a database at or below `directory` fail with an I/O error from now on.
pub fn fail_commits_below(directory: &Path) {
    let mut failing = FAILING.lock();
    failing.push(directory.to_owned());
}

/// Lets commits below `directory` succeed again.
pub fn allow_commits_below(directory: &Path) {
    let mut failing = FAILING.lock();
    failing.retain(|other| other != directory);
}

pub(crate) fn is_failing(path: &Path) -> bool {
    let failing = FAILING.lock();
    failing.iter().any(|directory| path.starts_with(directory))
}
