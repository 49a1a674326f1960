//! Chaining values: the inner hashes of BLAKE3 (section 2.1 of its paper).
//!
//! Owns the only calls into `blake3::hazmat`. The shape of the tree is the caller's (see [`crate::outboard`]); the root
//! is finalised differently from every inner value, so each function is told whether it makes the root.

use archive_model::GROUP_SIZE;
use blake3::hazmat::{HasherExt as _, Mode, merge_subtrees_non_root, merge_subtrees_root};

/// The hash of a subtree: a root if the subtree is the whole file.
pub(crate) type Value = [u8; 32];

/// The values of the two children of an inner node.
pub(crate) type Pair = (Value, Value);

/// [`GROUP_SIZE`] as a length in memory.
pub(crate) const GROUP: usize = 16 * 1024;
const _: () = assert!(GROUP as u64 == GROUP_SIZE);

/// Returns the value of the subtree that starts at `first` (a group index) and holds `bytes`; only a root may be empty.
pub(crate) fn of_bytes(first: u64, bytes: &[u8], root: bool) -> Value {
    if root {
        return blake3::hash(bytes).into();
    }
    blake3::Hasher::new()
        .set_input_offset(first * GROUP_SIZE)
        .update(bytes)
        .finalize_non_root()
}

/// Returns the value of the node above two subtrees.
pub(crate) fn merge_pair(pair: &Pair, root: bool) -> Value {
    let (left, right) = pair;
    if root {
        merge_subtrees_root(left, right, Mode::Hash).into()
    } else {
        merge_subtrees_non_root(left, right, Mode::Hash)
    }
}
