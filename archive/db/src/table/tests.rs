//! Tables, read in every way.

use super::*;
use crate::{Database, DatabaseOptions, InvalidTableKey, InvalidValue, MemoryPlace};

type Names = Table<(String, u64), String>;

fn open() -> (Database, Names) {
    let database = MemoryPlace::new()
        .unwrap()
        .open(&DatabaseOptions::new("test", 1, &["names", "other"]))
        .unwrap();
    let names = database.table("names").unwrap();
    (database, names)
}

fn key(name: &str, number: u64) -> (String, u64) {
    (name.to_owned(), number)
}

/// Three numbers under each of the names, the name as value.
fn filled() -> (Database, Names) {
    let (database, names) = open();
    let mut batch = database.batch();
    for name in ["b", "a", "", "a\0", "ab", "\u{10ffff}"] {
        for number in [u64::MAX, 0, 256] {
            batch
                .put(&names, &key(name, number), &name.to_owned())
                .unwrap();
        }
    }
    batch.commit().unwrap();
    (database, names)
}

fn keys(rows: Result<Rows<'_, (String, u64), String>, DbError>) -> Vec<(String, u64)> {
    rows.unwrap().map(|row| row.unwrap().0).collect()
}

/// Fails if rows are listed in another order than that of their keys, or the row beside an absent key is returned for
/// it.
#[test]
fn rows_come_in_the_order_of_their_keys() {
    let (_database, names) = filled();
    let all = keys(names.scan());
    assert_eq!(all.len(), 18);
    assert!(all.is_sorted());
    assert_eq!(names.count(), Ok(18));
    assert_eq!(
        names.last().unwrap().unwrap().0,
        key("\u{10ffff}", u64::MAX)
    );
    assert_eq!(names.get(&key("ab", 256)).unwrap().as_deref(), Some("ab"));
    assert_eq!(names.get(&key("ab", 257)), Ok(None));
}

/// Fails if a bound of a range is read as another one, in one of the two directions.
#[test]
fn ranges_are_those_of_a_sorted_map() {
    let (_database, names) = filled();
    let all = keys(names.scan());
    let bounds = |key: &(String, u64)| [Bound::Included(key.clone()), Bound::Excluded(key.clone())];
    let mut ends: Vec<_> = all.iter().flat_map(bounds).collect();
    ends.extend([Bound::Unbounded]);
    ends.extend(bounds(&key("aa", 1)));
    for start in &ends {
        for end in &ends {
            let range = (start.clone(), end.clone());
            let expected: Vec<_> = all
                .iter()
                .filter(|key| range.contains(key))
                .cloned()
                .collect();
            assert_eq!(keys(names.range(range.clone())), expected, "{range:?}");
            let mut backwards = keys(names.range_backwards(range.clone()));
            backwards.reverse();
            assert_eq!(backwards, expected, "{range:?} backwards");
        }
    }
}

/// Fails if a skip leaves out a row that it should not, leaves the range, or goes back.
#[test]
fn skip_continues_at_the_key_or_behind() {
    let (_database, names) = filled();
    let all = keys(names.scan());
    let range = all[2].clone()..all[15].clone();
    let inside: Vec<_> = all.iter().filter(|key| range.contains(key)).collect();
    let absent = [key("", 1), key("aa", 1), key("b", 257), key("z", 0)];
    for target in all.iter().chain(&absent) {
        for read in [0, 1, 5, 12, 13] {
            let mut rows = names.range(range.clone()).unwrap();
            assert_eq!(rows.by_ref().take(read).count(), read);
            rows.skip_to(target);
            let found: Vec<_> = rows.map(|row| row.unwrap().0).collect();
            let left = inside.iter().skip(read).filter(|key| **key >= target);
            assert!(found.iter().eq(left.copied()), "{read} {target:?}");

            let mut rows = names.range_backwards(range.clone()).unwrap();
            assert_eq!(rows.by_ref().take(read).count(), read);
            rows.skip_to(target);
            let found: Vec<_> = rows.map(|row| row.unwrap().0).collect();
            let left = inside.iter().rev().skip(read);
            let left = left.filter(|key| **key <= target);
            assert!(
                found.iter().eq(left.copied()),
                "{read} {target:?} backwards"
            );
        }
    }
}

/// Fails if the rows of a longer text are listed under its beginning, or rows are left out, in either direction.
#[test]
fn a_prefix_has_its_own_rows_only() {
    let (_database, names) = filled();
    for name in ["", "a", "a\0", "ab", "b", "\u{10ffff}"] {
        let expected = [0, 256, u64::MAX].map(|number| key(name, number));
        assert_eq!(keys(names.prefix(&name.to_owned())), expected, "{name:?}");
        let expected = [u64::MAX, 256, 0].map(|number| key(name, number));
        let backwards = keys(names.prefix_backwards(&name.to_owned()));
        assert_eq!(backwards, expected, "{name:?} backwards");
    }
    assert!(keys(names.prefix(&"aa".to_owned())).is_empty());
    assert!(keys(names.prefix_backwards(&"aa".to_owned())).is_empty());
}

/// Fails if the rows after a prefix of 0xff bytes are given as its own.
#[test]
fn prefix_of_the_greatest_bytes_has_an_end() {
    let (database, _) = open();
    let table: Table<([u8; 2], u8), ()> = database.table("other").unwrap();
    let mut batch = database.batch();
    for key in [
        ([0xff, 0xff], 0),
        ([0xff, 0xff], 0xff),
        ([0xff, 0xfe], 0xff),
        ([0, 0xff], 1),
        ([1, 0], 1),
    ] {
        batch.put(&table, &key, &()).unwrap();
    }
    batch.commit().unwrap();
    let count = |prefix: [u8; 2]| {
        let mut backwards: Vec<_> = table.prefix_backwards(&prefix).unwrap().collect();
        backwards.reverse();
        let forwards: Vec<_> = table.prefix(&prefix).unwrap().collect();
        assert_eq!(backwards, forwards, "{prefix:?}");
        forwards.into_iter().map(Result::unwrap).count()
    };
    assert_eq!(
        [[0xff, 0xff], [0xff, 0xfe], [0, 0xff], [1, 0], [1, 1]].map(count),
        [2, 1, 1, 1, 0]
    );
}

/// Fails if a commit changes an iteration that is under way.
#[test]
fn iteration_sees_rows_of_its_beginning() {
    let (database, names) = filled();
    let rows = names.scan().unwrap();
    let backwards = names.range_backwards(..).unwrap();
    let mut batch = database.batch();
    batch.put(&names, &key("new", 1), &String::new()).unwrap();
    batch.delete(&names, &key("a", 0)).unwrap();
    batch.commit().unwrap();
    let seen: Vec<_> = rows.map(|row| row.unwrap().0).collect();
    assert_eq!(seen.len(), 18);
    assert!(seen.contains(&key("a", 0)) && !seen.contains(&key("new", 1)));
    let mut again: Vec<_> = backwards.map(|row| row.unwrap().0).collect();
    again.reverse();
    assert_eq!(again, seen, "backwards");
    assert_eq!(names.get(&key("a", 0)), Ok(None));
}

/// Fails if clearing a table costs rows that the same batch puts afterwards, or rows of another table.
#[test]
fn cleared_table_keeps_rows_put_afterwards() {
    let (database, names) = filled();
    let other: Table<u64, u64> = database.table("other").unwrap();
    let mut batch = database.batch();
    batch.put(&other, &1, &1).unwrap();
    batch.clear_table(&names).unwrap();
    batch
        .put(&names, &key("a", 0), &"again".to_owned())
        .unwrap();
    batch.commit().unwrap();
    assert_eq!(keys(names.scan()), [key("a", 0)]);
    assert_eq!((names.count(), other.count()), (Ok(1), Ok(1)));
    let mut batch = database.batch();
    batch.clear_table(&names).unwrap();
    batch.clear_table(&names).unwrap();
    batch.commit().unwrap();
    assert_eq!((names.count(), names.last()), (Ok(0), Ok(None)));
}

/// Fails if a row that does not decode is left out of a listing, or ends it.
#[test]
fn unreadable_row_is_an_error_in_its_place() {
    let (database, names) = filled();
    let raw = |key: &[u8], value: &[u8]| {
        let family = database.inner.family("names").unwrap();
        database.inner.db.put_cf(family, key, value).unwrap();
    };
    raw(&to_bytes(&key("a", 1)), &[9, 0]);
    raw(b"a\0\0short", &[1, 0]);
    let errors: Vec<_> = names.scan().unwrap().filter_map(Result::err).collect();
    let reason = |error: &DbError| {
        let DbError::Unreadable { what, .. } = error else {
            panic!("{error}")
        };
        what.clone()
    };
    let what: Vec<_> = errors.iter().map(reason).collect();
    let version = InvalidRow::Value(InvalidValue::Version {
        found: 9,
        written: 1,
    });
    assert_eq!(what, [version, InvalidRow::Key(InvalidTableKey::Cut)]);
    assert_eq!(names.count(), Ok(20));
    assert_eq!(
        names.scan().unwrap().count(),
        20,
        "the rows after it follow"
    );
    let rows = names.range_backwards(..).unwrap();
    let mut backwards: Vec<_> = rows.filter_map(Result::err).collect();
    backwards.reverse();
    assert_eq!(backwards, errors);
    assert_eq!(names.range_backwards(..).unwrap().count(), 20);
    let message = names.get(&key("a", 1)).unwrap_err().to_string();
    for part in ["`names`", "/memory", r"a\x00\x00", "unknown version 9"] {
        assert!(message.contains(part), "{message}");
    }
}

/// Fails if a batch of one database writes through a table of another one, or an undeclared table can be used.
#[test]
fn a_table_of_another_database_is_refused() {
    let (database, names) = open();
    let (other, _) = open();
    let mut batch = other.batch();
    assert!(matches!(
        batch.put(&names, &key("a", 1), &String::new()),
        Err(DbError::NoTable { .. })
    ));
    assert!(matches!(
        batch.clear_table(&names),
        Err(DbError::NoTable { .. })
    ));
    assert!(matches!(
        database.table::<u64, u64>("nowhere"),
        Err(DbError::NoTable { .. })
    ));
}
