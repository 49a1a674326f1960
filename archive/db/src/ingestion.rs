//! Writing many rows of one table in a database in use: they are sorted in memory, and handed to RocksDB as whole
//! files.
//!
//! The rows of such a file have their final form, so that they pass neither the log nor a table in memory, and are
//! never written again where they come in the order of their keys. Few rows, and rows of a table that has not yet
//! merged those before, are written as a [`ChangeBatch`].
//!
//! Promised: changes that were written to the database before rows are handed over are durable before these rows. The
//! rows of one [`Ingestion::write`] do not become visible all at once: their user shows them by a row of its own, which
//! it writes afterwards.

use std::fs;
use std::path::{Path, PathBuf};

use rocksdb::{IngestExternalFileOptions, SstFileWriter};

use crate::batch::ChangeBatch;
use crate::database::Database;
use crate::engine::Engine;
use crate::error::DbError;
use crate::key::Key;
use crate::table::Table;
use crate::value::{self, TableValue};

/// Fewer bytes of rows than this are not worth a file.
const LEAST_FILE: usize = 1 << 20;

/// The number of files in the first level at which the table counts as behind: RocksDB then slows batches down, and
/// nothing else.
const MOST_UNDIGESTED: u64 = 12;

/// The share of rows, one in this number, that may sort before the last row of the previous file, while the others
/// still become a file of their own.
const LATE_OF: usize = 8;

/// A batch of late or few rows is written when it has this many bytes.
const BATCH: usize = 1 << 20;

/// The end of the name of a file that is being written.
const ENDING: &str = "ingest";

/// Rows of one table on their way into files. Later rows of one key win over earlier ones.
///
/// ```
/// use archive_db::{MemoryPlace, DatabaseOptions};
///
/// let database = MemoryPlace::new()?.open(&DatabaseOptions::new("example", 1, &["sizes"]))?;
/// let sizes = database.table::<u64, u64>("sizes")?;
/// let mut rows = database.ingestion(&sizes);
/// for number in 0..1000 {
///     rows.put(&number, &(number * 10))?;
/// }
/// rows.write()?;
/// database.sync()?;
/// assert_eq!(sizes.get(&999)?, Some(9990));
/// # Ok::<(), archive_db::DbError>(())
/// ```
#[derive(Debug)]
#[must_use = "rows are in the database once they are written"]
pub struct Ingestion<K, V> {
    database: Database,
    table: Table<K, V>,
    /// The encoded rows, one after the other: the key and the value of each.
    bytes: Vec<u8>,
    rows: Vec<Row>,
    value: Vec<u8>,
    /// The last key of the last file.
    last: Vec<u8>,
    least_file: usize,
}

/// The place of a row in the buffer: its beginning, and the lengths of its key and value.
#[derive(Clone, Copy, Debug)]
struct Row {
    start: usize,
    key: usize,
    value: usize,
}

impl Database {
    /// Begins a fast write of many rows of a table in use.
    pub fn ingestion<K: Key, V: TableValue>(&self, table: &Table<K, V>) -> Ingestion<K, V> {
        Ingestion::new(self, table)
    }
}

impl<K: Key, V: TableValue> Ingestion<K, V> {
    fn new(database: &Database, table: &Table<K, V>) -> Self {
        Self {
            database: database.clone(),
            table: table.clone(),
            bytes: Vec::new(),
            rows: Vec::new(),
            value: Vec::new(),
            last: Vec::new(),
            least_file: LEAST_FILE,
        }
    }

    /// Sets the least number of bytes of rows in a file; the default is 1 MiB.
    pub const fn least_file(mut self, bytes: usize) -> Self {
        self.least_file = bytes;
        self
    }

    /// Sets the row of `key` once the rows are written.
    ///
    /// # Errors
    ///
    /// Returns [`DbError::Unwritable`] if the value cannot be encoded.
    pub fn put(&mut self, key: &K, value: &V) -> Result<(), DbError> {
        let scratch = std::mem::take(&mut self.value);
        self.value = value::encode_into(value, scratch).map_err(|what| DbError::Unwritable {
            table: self.table.name().to_owned(),
            what,
        })?;
        let start = self.bytes.len();
        key.encode_last(&mut self.bytes);
        let end = self.bytes.len();
        self.bytes.extend_from_slice(&self.value);
        self.rows.push(Row {
            start,
            key: end - start,
            value: self.value.len(),
        });
        Ok(())
    }

    /// Returns the number of bytes of the rows that are not written yet.
    pub fn size(&self) -> usize {
        self.bytes.len() + self.rows.len() * size_of::<Row>()
    }

    /// Writes the rows: they can be read from then on, and survive the end of the process; a power cut, too, once
    /// [`Database::sync`] has returned.
    ///
    /// # Errors
    ///
    /// Returns a [`DbError`] if the database fails: some of the rows may then be in it.
    pub fn write(&mut self) -> Result<(), DbError> {
        let mut rows = std::mem::take(&mut self.rows);
        let bytes = std::mem::take(&mut self.bytes);
        // The sort is stable: of rows with one key, the last one is the last that was put.
        rows.sort_by(|one, other| one.key(&bytes).cmp(other.key(&bytes)));
        let late = rows.partition_point(|row| row.key(&bytes) <= self.last.as_slice());
        let (late, rest) = if late <= rows.len() / LATE_OF {
            rows.split_at(late)
        } else {
            rows.split_at(0)
        };
        self.put_in_batches(late, &bytes)?;
        if bytes.len() < self.least_file || self.is_behind()? {
            self.put_in_batches(rest, &bytes)?;
        } else {
            self.put_in_file(rest, &bytes)?;
        }
        // The buffers are reused.
        (self.rows, self.bytes) = (rows, bytes);
        self.rows.clear();
        self.bytes.clear();
        Ok(())
    }

    /// Returns whether RocksDB still has to merge much of what the table received.
    fn is_behind(&self) -> Result<bool, DbError> {
        let inner = &self.database.inner;
        let family = self.table.family_in(inner)?;
        let files = inner
            .db
            .property_value_cf(family, "rocksdb.num-files-at-level0")
            .map_err(|error| inner.engine_error(&error))?;
        let files = files.and_then(|files| files.parse::<u64>().ok());
        Ok(files.is_none_or(|files| files >= MOST_UNDIGESTED))
    }

    fn put_in_batches(&self, rows: &[Row], bytes: &[u8]) -> Result<(), DbError> {
        let inner = &self.database.inner;
        let mut batch = self.database.batch();
        for row in rows {
            batch.put_encoded(&self.table, row.key(bytes), row.value(bytes))?;
            if batch.size() >= BATCH {
                write_batch(inner, std::mem::replace(&mut batch, self.database.batch()))?;
            }
        }
        write_batch(inner, batch)
    }

    /// Writes sorted rows into a file, which RocksDB takes over.
    fn put_in_file(&mut self, rows: &[Row], bytes: &[u8]) -> Result<(), DbError> {
        let Some(last) = rows.last() else {
            return Ok(());
        };
        let inner = &self.database.inner;
        // A file is durable at once: it must not outlive rows that were written before it.
        self.database.sync()?;
        let file = file_name(inner.path(), inner.next_file_number());
        let taken = self.write_file(&file, rows, bytes).and_then(|()| {
            let mut options = IngestExternalFileOptions::default();
            options.set_move_files(true);
            let family = self.table.family_in(inner)?;
            inner
                .db
                .ingest_external_file_cf_opts(family, &options, vec![&file])
                .map_err(|error| inner.engine_error(&error))
        });
        if let Err(error) = taken {
            // The next opening deletes the remains.
            _ = fs::remove_file(&file);
            return Err(inner.failed_write(error));
        }
        self.last.clear();
        self.last.extend_from_slice(last.key(bytes));
        Ok(())
    }

    fn write_file(&self, file: &Path, rows: &[Row], bytes: &[u8]) -> Result<(), DbError> {
        let inner = &self.database.inner;
        let failed = |error: rocksdb::Error| inner.engine_error(&error);
        let options = inner.family_options(self.table.name());
        let mut writer = SstFileWriter::create(&options);
        writer.open(file).map_err(failed)?;
        let mut rows = rows.iter().peekable();
        while let Some(row) = rows.next() {
            let key = row.key(bytes);
            if rows.peek().is_some_and(|next| next.key(bytes) == key) {
                continue;
            }
            writer.put(key, row.value(bytes)).map_err(failed)?;
        }
        writer.finish().map_err(failed)
    }
}

fn write_batch(inner: &Engine, batch: ChangeBatch) -> Result<(), DbError> {
    if inner.syncs_later {
        batch.write()?;
    } else {
        batch.commit()?;
    }
    Ok(())
}

impl Row {
    fn key(self, bytes: &[u8]) -> &[u8] {
        let end = self.start + self.key;
        &bytes[self.start..end]
    }

    fn value(self, bytes: &[u8]) -> &[u8] {
        let start = self.start + self.key;
        &bytes[start..start + self.value]
    }
}

/// Returns the path of a file on its way into a database.
fn file_name(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{number}.{ENDING}"))
}

/// Deletes the files that a killed process left on their way. No other process has the database open.
pub(crate) fn delete_left(directory: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == ENDING) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{DatabaseOptions, MemoryPlace};

    fn options() -> DatabaseOptions {
        DatabaseOptions::new("test", 1, &["rows", "other"]).syncs_later()
    }

    fn all(database: &Database) -> BTreeMap<u64, String> {
        let table = database.table::<u64, String>("rows").unwrap();
        table.scan().unwrap().map(Result::unwrap).collect()
    }

    fn files(database: &Database) -> u64 {
        let live = database.inner.db.live_files().unwrap();
        let of_table = live.iter().filter(|file| file.column_family_name == "rows");
        of_table.count() as u64
    }

    /// Fails if a row is lost, an earlier row of a key wins over a later one, or files that are too late hide what came
    /// before them: rows that are sorted, nearly sorted, scattered and repeated, beside batches.
    #[test]
    fn rows_are_those_of_a_map() {
        let orders: [fn(u64) -> u64; 4] = [
            |n| n,
            |n| if n % 50 == 7 { n / 2 } else { n },
            |n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 50,
            |n| 10_000 - n,
        ];
        for order in orders {
            let memory = MemoryPlace::new().unwrap();
            let database = memory.open(&options()).unwrap();
            let table = database.table::<u64, String>("rows").unwrap();
            let mut expected = BTreeMap::new();
            let mut ingestion = database.ingestion(&table).least_file(0);
            for number in 0..10_000_u64 {
                let key = order(number);
                let value = format!("{number} of {}", order(number));
                ingestion.put(&key, &value).unwrap();
                expected.insert(key, value);
                if number % 700 == 699 {
                    ingestion.write().unwrap();
                    assert_eq!(ingestion.size(), 0);
                    // Another user writes meanwhile.
                    let mut batch = database.batch();
                    batch
                        .put(&table, &(number * 1000), &"x".to_owned())
                        .unwrap();
                    batch.write().unwrap();
                    expected.insert(number * 1000, "x".to_owned());
                }
            }
            ingestion.write().unwrap();
            ingestion.write().unwrap();
            assert_eq!(all(&database), expected);
            assert!(files(&database) > 0);
            drop((ingestion, table));
            drop(database);
            let database = memory.open(&options()).unwrap();
            assert_eq!(all(&database), expected);
            assert_eq!(database.verify(), Ok(expected.len() as u64 + 1));
        }
    }

    /// Fails if few rows become a file.
    #[test]
    fn few_rows_make_no_file() {
        let memory = MemoryPlace::new().unwrap();
        let database = memory.open(&options()).unwrap();
        let table = database.table::<u64, String>("rows").unwrap();
        let mut ingestion = database.ingestion(&table);
        ingestion.put(&1, &"one".to_owned()).unwrap();
        ingestion.write().unwrap();
        assert_eq!(files(&database), 0);
        assert_eq!(table.get(&1), Ok(Some("one".to_owned())));
    }

    /// Fails if a file lies in the way of the next process, or stays, after a kill in the middle of writing it; or if a
    /// file that was taken leaves its first name behind.
    #[test]
    fn files_left_on_their_way_go() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("database");
        let open = || Database::open(&path, &options()).unwrap();
        let left = || {
            let entries = fs::read_dir(&path).unwrap();
            let names = entries.map(|entry| entry.unwrap().path());
            names
                .filter(|path| path.extension().is_some_and(|e| e == ENDING))
                .count()
        };
        let database = open();
        let table = database.table::<u64, String>("rows").unwrap();
        let mut ingestion = database.ingestion(&table).least_file(0);
        ingestion.put(&1, &"one".to_owned()).unwrap();
        ingestion.write().unwrap();
        assert_eq!((left(), files(&database)), (0, 1));
        drop((ingestion, table));
        drop(database);
        fs::copy(path.join("CURRENT"), file_name(&path, 0)).unwrap();
        let database = open();
        assert_eq!(left(), 0);
        let table = database.table::<u64, String>("rows").unwrap();
        let mut ingestion = database.ingestion(&table).least_file(0);
        ingestion.put(&2, &"two".to_owned()).unwrap();
        ingestion.write().unwrap();
        assert_eq!(all(&database).len(), 2);
    }

    /// Fails if a file is durable before what was written earlier: a power cut would take that and leave the file.
    #[test]
    fn earlier_writes_are_durable_before_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("database");
        let database = Database::open(&path, &options()).unwrap();
        let table = database.table::<u64, String>("rows").unwrap();
        let other = database.table::<u64, String>("other").unwrap();
        let mut batch = database.batch();
        batch.put(&other, &7, &"first".to_owned()).unwrap();
        batch.write().unwrap();
        let mut ingestion = database.ingestion(&table).least_file(0);
        ingestion.put(&1, &"one".to_owned()).unwrap();
        ingestion.write().unwrap();
        // The image is the state of the disk now, as another process would find it.
        let image = directory.path().join("image");
        fs::create_dir(&image).unwrap();
        for entry in fs::read_dir(&path).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), image.join(entry.file_name())).unwrap();
        }
        let database = Database::open(&image, &options()).unwrap();
        let other = database.table::<u64, String>("other").unwrap();
        assert_eq!(other.get(&7), Ok(Some("first".to_owned())));
        assert_eq!(all(&database).len(), 1);
    }
}
