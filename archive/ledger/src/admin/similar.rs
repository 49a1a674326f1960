//! Names that differ only in case: an index on the folded names, beside the files and written in the same batch.
//!
//! Derived from the files. Where it is absent, or its making was cut, it is made anew when the admin data are opened.

use archive_db::{Database, DbError, Table};
use archive_model::FileName;

use super::{Admin, Changes};

/// Folded name and name; the row of two empty texts says that the index is whole.
type Index = Table<(String, String), ()>;

/// The index.
#[derive(Clone, Debug)]
pub(super) struct Similar(Index);

impl Similar {
    pub(super) fn open(database: &Database) -> Result<Self, DbError> {
        database.table("similar").map(Self)
    }

    pub(super) fn put_name(&self, changes: &mut Changes, name: &FileName) -> Result<(), DbError> {
        changes.batch.put(&self.0, &key(name), &())
    }

    pub(super) fn forget_name(
        &self,
        changes: &mut Changes,
        name: &FileName,
    ) -> Result<(), DbError> {
        changes.batch.delete(&self.0, &key(name))
    }
}

impl Admin {
    /// Makes the index of similar names where it is not whole.
    pub(super) fn index_names(&self) -> Result<(), DbError> {
        let whole = (String::new(), String::new());
        let index = &self.similar.0;
        if index.get(&whole)?.is_some() {
            return Ok(());
        }
        let count = self.index_rows(
            |batch, row| batch.put(index, &key(&row.record.name), &()),
            |batch| batch.put(index, &whole, &()),
        )?;
        if count > 0 {
            tracing::info!(
                files = count,
                "the index of names that differ only in case is made"
            );
        }
        Ok(())
    }

    /// Returns another file of the archive whose name differs from `name` only in case; the first one, if there are
    /// several.
    ///
    /// # Errors
    ///
    /// [`DbError`] if the database fails.
    pub fn find_similar(&self, name: &FileName) -> Result<Option<FileName>, DbError> {
        for row in self.similar.0.prefix(&fold(name))? {
            let ((_, other), ()) = row?;
            let Ok(other) = FileName::new(&other) else {
                continue;
            };
            if other == *name {
                continue;
            }
            let row = self.file(&other)?;
            if row.is_some_and(|row| row.record.phase.is_bound()) {
                return Ok(Some(other));
            }
        }
        Ok(None)
    }
}

fn key(name: &FileName) -> (String, String) {
    (fold(name), name.to_string())
}

/// Folds the case of a name: two names have the same result exactly if they differ only in case. The name goes to upper
/// case and back, so that letters with several small forms meet.
fn fold(name: &FileName) -> String {
    let large = name.as_str().chars().flat_map(char::to_uppercase);
    large.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use archive_decisions::store::NamePhase;

    use super::super::tests::row;
    use super::*;
    use crate::admin::AdminRow;

    fn name(text: &str) -> FileName {
        FileName::new(text).unwrap()
    }

    fn put(admin: &Admin, text: &str, phase: NamePhase) {
        let mut row: AdminRow = row(text);
        row.record.phase = phase;
        let mut changes = admin.begin_changes();
        admin.put_row(&mut changes, &row).unwrap();
        admin.commit_changes(changes).unwrap();
    }

    fn similar(admin: &Admin, text: &str) -> Option<String> {
        let found = admin.find_similar(&name(text)).unwrap();
        found.map(|name| name.to_string())
    }

    /// Fails if two names that differ only in case are not found, outside ASCII too (`Straße`), or a name counts as
    /// similar to itself or to a longer one.
    #[test]
    fn only_names_differing_in_case_are_similar() {
        let directory = tempfile::tempdir().unwrap();
        let admin = Admin::init(directory.path()).unwrap();
        for text in ["a.warc", "A.warc", "a.warc.gz", "Straße", "Οδος", "b"] {
            put(&admin, text, NamePhase::Bound);
        }
        assert_eq!(similar(&admin, "a.warc"), Some("A.warc".to_owned()));
        assert_eq!(similar(&admin, "A.warc"), Some("a.warc".to_owned()));
        assert_eq!(similar(&admin, "A.WARC"), Some("A.warc".to_owned()));
        assert_eq!(similar(&admin, "STRASSE"), Some("Straße".to_owned()));
        assert_eq!(similar(&admin, "ΟΔΟΣ"), Some("Οδος".to_owned()));
        for alone in ["b", "a.warc.gz", "a.war", "c", "a"] {
            assert_eq!(similar(&admin, alone), None, "{alone}");
        }
    }

    /// Fails if depositors are warned of a name that only an unfinished or forgotten store has used, or not of one that
    /// a complete file has.
    #[test]
    fn unbound_or_abandoned_name_is_not_similar() {
        let directory = tempfile::tempdir().unwrap();
        let admin = Admin::init(directory.path()).unwrap();
        let expires = jiff::Timestamp::MAX;
        put(&admin, "A", NamePhase::Intent { expires });
        assert_eq!(similar(&admin, "a"), None);
        put(&admin, "A", NamePhase::Complete);
        assert_eq!(similar(&admin, "a"), Some("A".to_owned()));
        let mut changes = admin.begin_changes();
        admin.forget_file(&mut changes, &name("A")).unwrap();
        admin.commit_changes(changes).unwrap();
        assert_eq!(similar(&admin, "a"), None);
    }

    /// Fails if an index of names whose making was cut off is believed: names that differ only in case would not be
    /// noticed.
    #[test]
    fn absent_or_cut_index_is_rebuilt() {
        let directory = tempfile::tempdir().unwrap();
        let admin = Admin::init(directory.path()).unwrap();
        put(&admin, "A", NamePhase::Bound);
        put(&admin, "B", NamePhase::Bound);
        let mut batch = admin.database.batch();
        let index = &admin.similar.0;
        batch
            .delete(index, &(String::new(), String::new()))
            .unwrap();
        batch.delete(index, &key(&name("A"))).unwrap();
        batch.commit().unwrap();
        assert_eq!(similar(&admin, "a"), None);
        drop(admin);
        let admin = Admin::init(directory.path()).unwrap();
        assert_eq!(similar(&admin, "a"), Some("A".to_owned()));
        assert_eq!(similar(&admin, "b"), Some("B".to_owned()));
    }
}
