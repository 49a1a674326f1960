//! Damage that a disk does behind the archive's back.

use std::fs::{OpenOptions, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;

/// Flips one bit behind the archive's back.
pub(crate) fn flip(path: &Path, offset: u64) {
    std::fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap();
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).unwrap();
    file.write_all_at(&byte.map(|old| old ^ 1), offset).unwrap();
    file.sync_all().unwrap();
    std::fs::set_permissions(path, Permissions::from_mode(0o444)).unwrap();
}
