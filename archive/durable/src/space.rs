//! The room on a volume, with a reserve that is never touched.

use std::path::Path;

use crate::error::DiskError;

/// The room on a file system, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// The size of the file system.
    pub total: u64,
    /// The bytes that an ordinary user may still write.
    pub free: u64,
}

impl Space {
    /// Asks the file system that has `path`.
    ///
    /// # Errors
    ///
    /// Returns a [`DiskError`] if the file system does not answer.
    pub fn measure_space(path: &Path) -> Result<Self, DiskError> {
        let found =
            rustix::fs::statvfs(path).map_err(|error| DiskError::new("statvfs", path, error))?;
        Ok(Self {
            total: found.f_blocks.saturating_mul(found.f_frsize),
            free: found.f_bavail.saturating_mul(found.f_frsize),
        })
    }

    /// Returns the bytes that may be used while `reserve` bytes stay free.
    pub const fn usable_bytes(&self, reserve: u64) -> u64 {
        self.free.saturating_sub(reserve)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if the reserve of a disk counts as usable, or the usable space wraps round when less than the reserve is
    /// free.
    #[test]
    fn the_reserve_is_not_for_use() {
        let space = Space {
            total: 100,
            free: 30,
        };
        assert_eq!(space.usable_bytes(10), 20);
        assert_eq!(space.usable_bytes(31), 0);
        let here = Space::measure_space(Path::new(".")).unwrap();
        assert!(here.free <= here.total && here.total > 0);
        assert!(
            Space::measure_space(Path::new("/no/such/place"))
                .unwrap_err()
                .is_absent()
        );
    }
}
