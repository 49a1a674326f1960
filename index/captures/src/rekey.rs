//! New keys for an index whose keys were made by other rules.
//!
//! The captures are written into the second table under their new keys; one batch then says that it is in use. An index
//! whose change was cut off says still that the first one is, and the change begins anew.

use archive_db::{ChangeBatch, Database, DbError, InvalidValue, Table};

use crate::keys::KeyRules;
use crate::packed::{pack_capture, unpack_capture};
use crate::place::Place;
use crate::rows::{self, AboutRow, BATCH, PackedCapture};

/// A change of the keys of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyChange {
    /// The version of the rules that the keys were made by.
    pub from: u16,
    /// The version of the rules that the keys are made by now.
    pub to: u16,
    /// The number of captures that were written again.
    pub captures: u64,
    /// The number of captures that have another key than before.
    pub changed: u64,
}

/// Writes all captures under keys of these rules.
pub(crate) fn rekey_rows(
    database: &Database,
    about: &AboutRow,
    rules: KeyRules,
) -> Result<(AboutRow, KeyChange), DbError> {
    let next = about.other_about(rules.version);
    let old: Table<Place, PackedCapture> = database.table(about.table_name())?;
    let new: Table<Place, PackedCapture> = database.table(next.table_name())?;
    let mut rekeyed = KeyChange {
        from: about.key_version,
        to: rules.version,
        captures: 0,
        changed: 0,
    };
    let mut batch = database.batch();
    // An earlier change may have been cut off.
    batch.clear_table(&new)?;
    for row in old.scan()? {
        let (place, packed) = row?;
        let unreadable = |why: &str| DbError::Unreadable {
            path: database.path().to_path_buf(),
            table: about.table_name().to_owned(),
            key: place.to_bytes().escape_ascii().to_string(),
            what: InvalidValue::Undecodable(why.to_owned()).into(),
        };
        let capture = unpack_capture(&place, &packed, None).map_err(unreadable)?;
        let mut new_place = place.clone();
        new_place.key = rules.key_of(&capture);
        rekeyed.captures += 1;
        rekeyed.changed += u64::from(new_place.key != place.key);
        // What is packed leaves out what the key says.
        batch.put(&new, &new_place, &pack_capture(&new_place, &capture))?;
        if batch.size() >= BATCH {
            flush(&mut batch, database)?;
        }
    }
    flush(&mut batch, database)?;
    batch.put(&database.table(rows::ABOUT)?, &0_u8, &next)?;
    batch.clear_table(&old)?;
    batch.commit()?;
    Ok((next, rekeyed))
}

fn flush(batch: &mut ChangeBatch, database: &Database) -> Result<(), DbError> {
    std::mem::replace(batch, database.batch()).write()?;
    Ok(())
}
