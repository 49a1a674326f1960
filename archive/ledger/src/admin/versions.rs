//! Admin data that a later release has written: refused in words, left as they are, and never a shorter archive.

use archive_db::{Database, DbError, InvalidValue, Options, Table, Text, Value};
use archive_model::{FileName, NodeKey, ReplicaState, VolumeKey};
use serde::{Deserialize, Serialize};

use super::schema::{PLACES, RetiredVersion1, TABLES, VERSION};
use super::tests::{row, store};
use super::{Admin, AdminError, WalkScope};
use crate::standing::{Retirement, Standing};

fn name(text: &str) -> FileName {
    FileName::new(text).unwrap()
}

/// A row as no release has written it yet.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct LaterRow(String);

impl Value for LaterRow {
    const VERSION: u8 = 99;

    fn upgrade(version: u8, _body: &[u8]) -> Result<Self, InvalidValue> {
        Err(InvalidValue::Version {
            found: version,
            written: Self::VERSION,
        })
    }
}

/// Fails if a build opens admin data of a later release and alters them, or the error does not name both versions.
#[test]
fn database_of_later_release_is_refused_and_untouched() {
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
        said.contains("admin version 5; this build reads admin version 1–4"),
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
    let database = Database::open(&path, &Options::new("admin", VERSION, TABLES)).unwrap();
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
    let listed: Vec<_> = admin.files(None).unwrap().collect();
    assert!(listed[1].as_ref().is_err_and(is_told), "{listed:?}");
    for (at, file) in [(0, "a"), (2, "c")] {
        assert_eq!(listed[at].as_ref().unwrap().record.name, name(file));
    }
    let error = admin.count(|_row| {}).unwrap_err();
    assert!(
        matches!(&error, AdminError::Database(error) if is_told(error)),
        "{error}"
    );
    // Nor is it written over: an act that changes a row reads it first.
    let mut changes = admin.change();
    admin.put(&mut changes, &row("b")).unwrap();
    assert!(is_told(&admin.commit(changes).unwrap_err()));
    drop(admin);
    let database = Database::open(&path, &Options::new("admin", VERSION, TABLES)).unwrap();
    let files: Table<Text<FileName>, LaterRow> = database.table("files").unwrap();
    assert_eq!(files.get(&Text(name("b"))).unwrap(), Some(later));
}

/// Fails if a directory of version 1 is refused, what it says of a retired volume is lost or meant of a namesake, or
/// the volumes of its copies are not known.
#[test]
fn version_1_retired_volumes_get_their_full_key() {
    let directory = tempfile::tempdir().unwrap();
    let key = |replica: &str, volume: &str| VolumeKey {
        replica: replica.parse().unwrap(),
        node: "n-1".parse().unwrap(),
        volume: volume.parse().unwrap(),
    };
    let retired = Retirement {
        at: jiff::Timestamp::UNIX_EPOCH,
        by: "operator/otto".to_owned(),
        why: "r1: dead".to_owned(),
        emptied: true,
    };
    let tables = ["files", "volumes"];
    let path = directory.path().join("admin");
    let database = Database::open(&path, &Options::new("admin", 1, &tables)).unwrap();
    let old = database.table("volumes").unwrap();
    let mut batch = database.batch();
    let before = RetiredVersion1 {
        replica: "two".parse().unwrap(),
        node: "n-1".parse().unwrap(),
        retired: retired.clone(),
    };
    let id: Text<archive_model::VolumeId> = Text("disk-1".parse().unwrap());
    batch.put(&old, &id, &before).unwrap();
    let mut file = row("a");
    for copy in file.record.replicas.values_mut() {
        copy.state = ReplicaState::UploadCompleted;
        copy.node = Some("n-1".parse().unwrap());
        copy.volume = Some("disk-1".parse().unwrap());
    }
    let files = database.table("files").unwrap();
    batch.put(&files, &Text(name("a")), &file).unwrap();
    batch.commit().unwrap();
    drop((database, old, files));

    for _start in 0..2 {
        let admin = Admin::open(directory.path()).unwrap();
        let known: Vec<_> = admin.volumes().unwrap().into_iter().collect();
        assert_eq!(known, [key("one", "disk-1")]);
        let now = Standing::open(admin).unwrap().now();
        let out: Vec<_> = now.volumes.clone().into_iter().collect();
        assert_eq!(out, [(key("two", "disk-1"), retired.clone())]);
        let (replica, copy) = file.record.replicas.first_key_value().unwrap();
        assert!(now.counts(replica, copy), "its namesake is retired, not it");
    }
}

/// Fails if a directory of before the index is refused, or its files are not found at their places.
#[test]
fn version_3_files_are_found_at_their_places() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("admin");
    let tables: Vec<_> = TABLES
        .iter()
        .copied()
        .filter(|one| *one != PLACES)
        .collect();
    let database = Database::open(&path, &Options::new("admin", 3, &tables)).unwrap();
    let files = database.table("files").unwrap();
    let mut batch = database.batch();
    for text in ["a", "b"] {
        let file = crate::restore::testing::row(text, 1);
        batch.put(&files, &Text(name(text)), &file).unwrap();
    }
    batch.commit().unwrap();
    drop((database, files));
    let stamp = directory.path().join(super::stamp::STAMP);
    let mut stamp = archive_durable::AppendFile::open(&stamp).unwrap();
    stamp.append(b"1").unwrap();

    for _start in 0..2 {
        let admin = Admin::open(directory.path()).unwrap();
        assert_eq!(admin.count(drop).unwrap(), 0);
        let there = WalkScope::Node(NodeKey {
            replica: "one".parse().unwrap(),
            node: "one-1".parse().unwrap(),
        });
        let rows = admin.files_in(&there, None).unwrap();
        let names: Vec<_> = rows.map(|row| row.unwrap().record.name).collect();
        assert_eq!(names, [name("a"), name("b")]);
    }
}
