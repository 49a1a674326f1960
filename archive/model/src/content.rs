//! The content of a file, as far as it can be named in a few bytes: its root and its size.
//!
//! The two belong together: a tree over the bytes has its shape from the size and its values from the root, and neither
//! proves anything without the other.

use crate::checksum::Root;

/// The bytes that every good copy of a file has.
///
/// ```
/// use archive_model::{FileContent, Root};
///
/// let admitted = FileContent { root: Root::from_bytes([7; 32]), size: 40_000 };
/// let cut = FileContent { size: 39_999, ..admitted };
/// assert_ne!(admitted, cut);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileContent {
    /// The BLAKE3 root: what decides about every copy.
    pub root: Root,
    /// The size in bytes.
    pub size: u64,
}
