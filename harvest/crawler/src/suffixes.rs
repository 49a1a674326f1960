//! The list of public suffixes that an order names, as a file.
//!
//! Owns how large it may be. What it says is the matter of `harvest_policy::suffixes`.

use std::path::PathBuf;

use archive_durable::{DiskError, read_small};
use harvest_model::CrawlOrder;
use harvest_policy::suffixes::{InvalidSuffixList, SuffixList};

/// The longest list that is read, in bytes: Mozilla's has a third of a megabyte.
const MAX_LIST: u64 = 16 << 20;

/// The reason why a list of public suffixes cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SuffixListError {
    /// The file of the list is not there.
    #[error(
        "`queues.public_suffixes`: there is no file {0}; leave the key out for the list that is built in"
    )]
    Absent(PathBuf),
    /// The file of the list cannot be read.
    #[error("`queues.public_suffixes`: {0}")]
    Disk(#[from] DiskError),
    /// The file is no list of public suffixes.
    #[error("`queues.public_suffixes`: {path}: {source}")]
    Invalid {
        /// The file that should be a list.
        path: PathBuf,
        /// The mistake in the list.
        source: InvalidSuffixList,
    },
}

/// Reads the list of public suffixes that an order names; the one that is built in, if it names none.
///
/// # Errors
///
/// [`SuffixListError`] if the file cannot be read, or is no such list.
pub fn suffix_list(order: &CrawlOrder) -> Result<SuffixList, SuffixListError> {
    let Some(path) = &order.queues.public_suffixes else {
        return Ok(SuffixList::default());
    };
    let bytes = read_small(path, MAX_LIST)?;
    let bytes = bytes.ok_or_else(|| SuffixListError::Absent(path.clone()))?;
    let list = SuffixList::parse(&bytes);
    list.map_err(|source| SuffixListError::Invalid {
        path: path.clone(),
        source,
    })
}
