//! The volumes of the archive: every one that was given a completed copy, remembered in the batch of the copy's row.
//!
//! A node may forget a volume, with its data directory for instance; the archive does not.
//!
//! # Errors
//!
//! Every function fails when the tables cannot be read or written; no volume is left out then.

use std::collections::BTreeSet;

use archive_db::DbError;
use archive_decisions::store::FileRecord;
use archive_model::VolumeKey;

use super::schema::{from_table, to_table, volumes_of};
use super::{Admin, Changes, WalkScope};

impl Admin {
    /// Returns every volume that has, or had, a completed copy, the retired ones included.
    pub fn known_volumes(&self) -> Result<BTreeSet<VolumeKey>, DbError> {
        let rows = self.volumes.scan()?;
        rows.map(|row| row.map(|(key, ())| from_table(key)))
            .collect()
    }

    /// Forgets a volume if it has no copy any more, because every copy was moved, or given up.
    pub fn forget_if_empty(&self, volume: &VolumeKey) -> Result<bool, DbError> {
        for row in self.files_in(&WalkScope::Volume(volume.clone()), None)? {
            if volumes_of(&row?.record).any(|key| key == *volume) {
                return Ok(false);
            }
        }
        let mut changes = self.begin_changes();
        changes.has_members = true;
        changes.batch().delete(&self.volumes, &to_table(volume))?;
        self.commit_changes(changes)?;
        Ok(true)
    }

    /// Remembers the volumes of a file's copies.
    pub(super) fn remember_volumes(
        &self,
        changes: &mut Changes,
        record: &FileRecord,
    ) -> Result<(), DbError> {
        for volume in volumes_of(record) {
            let key = to_table(&volume);
            if self.volumes.get(&key)?.is_none() {
                changes.has_members = true;
                changes.batch.put(&self.volumes, &key, &())?;
            }
        }
        Ok(())
    }
}
