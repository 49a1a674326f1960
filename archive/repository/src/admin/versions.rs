//! Admin data that a later release has written: refused in words, left as they are, and never a shorter archive.

use archive_db::{Database, DbError, InvalidValue, Options, Table, Text, Value};
use archive_model::FileName;
use serde::{Deserialize, Serialize};

use super::tests::{row, store};
use super::{Admin, AdminError, TABLES, VERSION};

fn name(text: &str) -> FileName {
    FileName::new(text).unwrap()
}

/// A row as no release has written it yet.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Later(String);

impl Value for Later {
    const VERSION: u8 = 99;

    fn upgrade(version: u8, _body: &[u8]) -> Result<Self, InvalidValue> {
        Err(InvalidValue::Version {
            found: version,
            written: Self::VERSION,
        })
    }
}

#[test]
fn a_database_of_a_later_release_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let admin = Admin::init(directory.path()).unwrap();
    store(&admin, "a");
    admin.stamp().unwrap();
    drop(admin);
    let tables = [TABLES, &["later"]].concat();
    let options = Options::new("admin", VERSION + 1, &tables).migration(|_| Ok(()));
    let path = directory.path().join("admin");
    drop(Database::open(&path, &options).unwrap());
    let error = Admin::open(directory.path()).unwrap_err();
    assert!(
        matches!(error, AdminError::Database(DbError::Format { .. })),
        "{error}"
    );
    let said = error.to_string();
    assert!(
        said.contains("admin version 3; this build reads admin version 1–2"),
        "{said}"
    );
    let later = Database::open(&path, &options).unwrap();
    let files: Table<Text<FileName>, super::AdminRow> = later.table("files").unwrap();
    assert_eq!(files.get(&Text(name("a"))).unwrap(), Some(row("a")));
}

#[test]
fn a_row_of_a_later_release_is_an_error_and_never_an_absent_file() {
    let directory = tempfile::tempdir().unwrap();
    let admin = Admin::init(directory.path()).unwrap();
    for file in ["a", "b", "c"] {
        store(&admin, file);
    }
    drop(admin);
    let path = directory.path().join("admin");
    let database = Database::open(&path, &Options::new("admin", VERSION, TABLES)).unwrap();
    let files: Table<Text<FileName>, Later> = database.table("files").unwrap();
    let mut batch = database.batch();
    let later = Later("what b has become".to_owned());
    batch.put(&files, &Text(name("b")), &later).unwrap();
    batch.commit().unwrap();
    drop((database, files));

    let admin = Admin::open(directory.path()).unwrap();
    let is_told = |error: &DbError| {
        matches!(error, DbError::Unreadable { .. }) && error.to_string().contains("version 99")
    };
    let error = admin.file(&name("b")).unwrap_err();
    assert!(is_told(&error), "{error}");
    let listed: Vec<_> = admin.files(None).unwrap().collect();
    assert!(listed[1].as_ref().is_err_and(is_told), "{listed:?}");
    for (at, file) in [(0, "a"), (2, "c")] {
        assert_eq!(listed[at].as_ref().unwrap().record.name, name(file));
    }
    assert!(is_told(&admin.count(|_row| {}).unwrap_err()));
    // Nor is it written over: whoever changes a row reads it first.
    let mut changes = admin.change();
    admin.put(&mut changes, &row("b")).unwrap();
    assert!(is_told(&admin.commit(changes).unwrap_err()));
    drop(admin);
    let database = Database::open(&path, &Options::new("admin", VERSION, TABLES)).unwrap();
    let files: Table<Text<FileName>, Later> = database.table("files").unwrap();
    assert_eq!(files.get(&Text(name("b"))).unwrap(), Some(later));
}
