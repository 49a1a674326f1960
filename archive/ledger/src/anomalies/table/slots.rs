//! Rows that an earlier release filed by their kind alone, though damage is of one copy: filed by the copy from now on.

use archive_db::{DbError, Table};

use super::Key;
use crate::admin::Admin;
use crate::anomalies::AnomalyRecord;

/// Files each row in its slot; writes nothing if every row is in its slot already.
pub(super) fn renew(admin: &Admin, open: &Table<Key, AnomalyRecord>) -> Result<(), DbError> {
    let mut changes = admin.change();
    let mut is_changed = false;
    for row in open.scan()? {
        let (key, filed) = row?;
        if key.2 != filed.slot() {
            let slot = (key.0.clone(), key.1.clone(), filed.slot());
            changes.batch().delete(open, &key)?;
            changes.batch().put(open, &slot, &filed)?;
            is_changed = true;
        }
    }
    if is_changed {
        admin.commit(changes)?;
    }
    Ok(())
}
