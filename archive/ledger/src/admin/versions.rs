//! Admin data that a later release has written: refused in words, left as they are, and never a shorter archive.

use archive_db::{Database, DatabaseOptions, DbError, Table, TableValue, Text};
use archive_model::FileName;
use serde::{Deserialize, Serialize};

use super::schema::{TABLES, VERSION};
use super::stamp::{AdminStamp, STAMP};
use super::tests::{row, store};
use super::{Admin, AdminError};

fn name(text: &str) -> FileName {
    FileName::new(text).unwrap()
}

/// A row as no release has written it yet.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct LaterRow(String);

impl TableValue for LaterRow {
    const VERSION: u8 = 99;
}

/// Fails if a build opens admin data of a later release and alters them, or the error does not name both versions.
#[test]
fn database_of_later_release_is_refused_and_untouched() {
    let directory = tempfile::tempdir().unwrap();
    let tables = [TABLES, &["later"]].concat();
    let options = DatabaseOptions::new("admin", VERSION + 1, &tables);
    let path = directory.path().join("admin");
    let later = Database::open(&path, &options).unwrap();
    let files: Table<Text<FileName>, super::AdminRow> = later.table("files").unwrap();
    let mut batch = later.batch();
    batch.put(&files, &Text(name("a")), &row("a")).unwrap();
    batch.commit().unwrap();
    let stamp = AdminStamp::new(directory.path().join(STAMP), None);
    stamp.write_stamp(|| later.reach()).unwrap();
    drop((later, files));
    let error = Admin::open(directory.path()).unwrap_err();
    assert!(
        matches!(error, AdminError::Database(DbError::Format { .. })),
        "{error}"
    );
    let said = error.to_string();
    assert!(
        said.contains("admin version 5; this build reads admin version 4"),
        "{said}"
    );
    let later = Database::open(&path, &options).unwrap();
    let files: Table<Text<FileName>, super::AdminRow> = later.table("files").unwrap();
    assert_eq!(files.get(&Text(name("a"))).unwrap(), Some(row("a")));
}

/// Fails if a row that this build cannot read is skipped in a listing or a count, hides the rows after it, or is
/// overwritten.
#[test]
fn row_of_later_release_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let admin = Admin::init(directory.path()).unwrap();
    for file in ["a", "b", "c"] {
        store(&admin, file);
    }
    drop(admin);
    let path = directory.path().join("admin");
    let database = Database::open(&path, &DatabaseOptions::new("admin", VERSION, TABLES)).unwrap();
    let files: Table<Text<FileName>, LaterRow> = database.table("files").unwrap();
    let mut batch = database.batch();
    let later = LaterRow("what b has become".to_owned());
    batch.put(&files, &Text(name("b")), &later).unwrap();
    batch.commit().unwrap();
    drop((database, files));

    let admin = Admin::open(directory.path()).unwrap();
    let is_told = |error: &DbError| {
        matches!(error, DbError::Unreadable { .. }) && error.to_string().contains("version 99")
    };
    let error = admin.file(&name("b")).unwrap_err();
    assert!(is_told(&error), "{error}");
    let listed: Vec<_> = admin.list_files(None).unwrap().collect();
    assert!(listed[1].as_ref().is_err_and(is_told), "{listed:?}");
    for (at, file) in [(0, "a"), (2, "c")] {
        assert_eq!(listed[at].as_ref().unwrap().record.name, name(file));
    }
    let error = admin.count_rows(|_row| {}).unwrap_err();
    assert!(
        matches!(&error, AdminError::Database(error) if is_told(error)),
        "{error}"
    );
    // Nor is it written over: an act that changes a row reads it first.
    let mut changes = admin.begin_changes();
    admin.put_row(&mut changes, &row("b")).unwrap();
    assert!(is_told(&admin.commit_changes(changes).unwrap_err()));
    drop(admin);
    let database = Database::open(&path, &DatabaseOptions::new("admin", VERSION, TABLES)).unwrap();
    let files: Table<Text<FileName>, LaterRow> = database.table("files").unwrap();
    assert_eq!(files.get(&Text(name("b"))).unwrap(), Some(later));
}
