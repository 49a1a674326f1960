//! Where tests work that are not about the disk: in memory, where a sync costs nothing. Disks that fail have tests of
//! their own, and whole archives are tested on real ones.

/// A directory of a test.
pub(crate) fn directory() -> tempfile::TempDir {
    let in_memory = tempfile::tempdir_in("/dev/shm");
    in_memory.or_else(|_none| tempfile::tempdir()).unwrap()
}
