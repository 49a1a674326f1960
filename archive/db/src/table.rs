//! A typed table: rows by key, in the order of the keys or against it.
//!
//! # Errors
//!
//! Every read fails with [`DbError::Damaged`] or [`DbError::Io`] if the files cannot be read, and with
//! [`DbError::Unreadable`] if a row does not decode. No read is short instead.

use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use rocksdb::{ColumnFamily, DBRawIterator, ReadOptions};

use crate::engine::{Engine, scan_options};
use crate::error::{DbError, InvalidRow};
use crate::key::{Key, StartsWith, to_bytes};
use crate::value::{self, TableValue};

/// A table of a [`crate::Database`]. Clones share it, and keep the database open.
///
/// Rows are in the order of their keys:
///
/// ```
/// use archive_db::{MemoryPlace, DatabaseOptions};
///
/// let database = MemoryPlace::new()?.open(&DatabaseOptions::new("example", 1, &["copies"]))?;
/// let copies = database.table::<(String, u64), String>("copies")?;
/// let mut batch = database.batch();
/// for (name, number, place) in [("a", 1, "disk-1"), ("a", 2, "disk-2"), ("b", 1, "disk-1")] {
///     batch.put(&copies, &(name.to_owned(), number), &place.to_owned())?;
/// }
/// batch.commit()?;
/// let of_a = copies.prefix(&"a".to_owned())?.collect::<Result<Vec<_>, _>>()?;
/// assert_eq!(of_a.len(), 2);
/// assert_eq!(copies.last()?, Some((("b".to_owned(), 1), "disk-1".to_owned())));
/// # Ok::<(), archive_db::DbError>(())
/// ```
pub struct Table<K, V> {
    inner: Arc<Engine>,
    name: Arc<str>,
    row: PhantomData<fn() -> (K, V)>,
}

impl<K: Key, V: TableValue> Table<K, V> {
    pub(crate) fn new(inner: Arc<Engine>, name: &str) -> Self {
        Self {
            inner,
            name: name.into(),
            row: PhantomData,
        }
    }

    /// Returns the name of the table.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the row of `key`, or `None` if it is known to be absent.
    pub fn get(&self, key: &K) -> Result<Option<V>, DbError> {
        self.inner.get(&self.name, key)
    }

    /// Reads all rows, for listings and comparisons: ahead, and past the cache.
    pub fn scan(&self) -> Result<Rows<'_, K, V>, DbError> {
        self.rows(Span::ALL, Direction::Forwards, scan_options())
    }

    /// Reads the rows whose keys are in `range`. A range that ends before it starts is empty.
    pub fn range(&self, range: impl RangeBounds<K>) -> Result<Rows<'_, K, V>, DbError> {
        self.rows(
            Span::from_range(&range),
            Direction::Forwards,
            ReadOptions::default(),
        )
    }

    /// Reads the rows of [`Table::range`], the greatest key first.
    pub fn range_backwards(&self, range: impl RangeBounds<K>) -> Result<Rows<'_, K, V>, DbError> {
        self.rows(
            Span::from_range(&range),
            Direction::Backwards,
            ReadOptions::default(),
        )
    }

    /// Reads the rows whose keys begin with the components of `prefix`.
    pub fn prefix<P: Key>(&self, prefix: &P) -> Result<Rows<'_, K, V>, DbError>
    where
        K: StartsWith<P>,
    {
        self.rows(
            Span::beginning_with(prefix),
            Direction::Forwards,
            ReadOptions::default(),
        )
    }

    /// Reads the rows of [`Table::prefix`], the greatest key first.
    pub fn prefix_backwards<P: Key>(&self, prefix: &P) -> Result<Rows<'_, K, V>, DbError>
    where
        K: StartsWith<P>,
    {
        self.rows(
            Span::beginning_with(prefix),
            Direction::Backwards,
            ReadOptions::default(),
        )
    }

    /// Returns the row with the greatest key.
    pub fn last(&self) -> Result<Option<(K, V)>, DbError> {
        self.range_backwards(..)?.next().transpose()
    }

    /// Counts the rows by reading them all.
    pub fn count(&self) -> Result<u64, DbError> {
        self.inner.count(&self.name)
    }

    /// Returns the table in RocksDB, if it belongs to the database `inner`.
    pub(crate) fn family_in<'a>(
        &self,
        inner: &'a Arc<Engine>,
    ) -> Result<&'a ColumnFamily, DbError> {
        if Arc::ptr_eq(inner, &self.inner) {
            inner.family(&self.name)
        } else {
            Err(DbError::NoTable {
                path: inner.path().to_path_buf(),
                table: self.name.to_string(),
            })
        }
    }

    fn rows(
        &self,
        span: Span,
        direction: Direction,
        mut options: ReadOptions,
    ) -> Result<Rows<'_, K, V>, DbError> {
        if let Some(end) = span.end {
            options.set_iterate_upper_bound(end);
        }
        if direction == Direction::Backwards && !span.start.is_empty() {
            options.set_iterate_lower_bound(span.start.clone());
        }
        let mut raw = self
            .inner
            .db
            .raw_iterator_cf_opt(self.inner.family(&self.name)?, options);
        match direction {
            Direction::Forwards => raw.seek(span.start),
            Direction::Backwards => raw.seek_to_last(),
        }
        Ok(Rows {
            table: self,
            raw,
            direction,
            is_done: false,
        })
    }
}

impl<K, V> Clone for Table<K, V> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            name: Arc::clone(&self.name),
            row: PhantomData,
        }
    }
}

impl<K, V> fmt::Debug for Table<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table({})", self.name)
    }
}

/// The direction in which rows are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    /// From the least key up.
    Forwards,
    /// From the greatest key down.
    Backwards,
}

/// Rows in the order of their keys, or against it, as they were when the iteration began.
///
/// The iteration is complete only if no item was an error, so a caller must not skip errors (`flatten`, `filter_map`).
/// A row that cannot be decoded is an error in its place and the rows after it follow; damage on disk is the last item.
#[must_use = "rows are read as they are asked for"]
pub struct Rows<'a, K, V> {
    table: &'a Table<K, V>,
    raw: DBRawIterator<'a>,
    direction: Direction,
    is_done: bool,
}

impl<K: Key, V: TableValue> Rows<'_, K, V> {
    /// Continues at the row of `key`, or at the next one if that is absent; the rows before it are not read. Does
    /// nothing if the iteration has already passed it.
    pub fn skip_to(&mut self, key: &K) {
        let key = to_bytes(key);
        let is_ahead = self.raw.key().is_some_and(|next| match self.direction {
            Direction::Forwards => next < key.as_slice(),
            Direction::Backwards => next > key.as_slice(),
        });
        if is_ahead {
            match self.direction {
                Direction::Forwards => self.raw.seek(key),
                Direction::Backwards => self.raw.seek_for_prev(key),
            }
        }
    }
}

impl<K: Key, V: TableValue> Iterator for Rows<'_, K, V> {
    type Item = Result<(K, V), DbError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let Some((key, value)) = self.raw.item() else {
            // The end of the range and the end of the readable rows look alike but for the status.
            self.is_done = true;
            return self
                .raw
                .status()
                .err()
                .map(|error| Err(self.table.inner.engine_error(&error)));
        };
        let row = decode(key, value)
            .map_err(|what| self.table.inner.unreadable(&self.table.name, key, what));
        match self.direction {
            Direction::Forwards => self.raw.next(),
            Direction::Backwards => self.raw.prev(),
        }
        Some(row)
    }
}

impl<K: Key, V: TableValue> FusedIterator for Rows<'_, K, V> {}

impl<K, V> fmt::Debug for Rows<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rows of {:?}", self.table)
    }
}

fn decode<K: Key, V: TableValue>(key: &[u8], value: &[u8]) -> Result<(K, V), InvalidRow> {
    Ok((K::decode_last(key)?, value::decode_value(value)?))
}

/// A range of key bytes: from `start` up to, but without, `end`.
struct Span {
    start: Vec<u8>,
    end: Option<Vec<u8>>,
}

impl Span {
    /// The span of every key.
    const ALL: Self = Self {
        start: Vec::new(),
        end: None,
    };

    fn from_range<K: Key>(range: &impl RangeBounds<K>) -> Self {
        // Nothing lies between a key and that key with a zero byte after it.
        let after = |key: &K| {
            let mut bytes = to_bytes(key);
            bytes.push(0);
            bytes
        };
        Self {
            start: match range.start_bound() {
                Bound::Included(key) => to_bytes(key),
                Bound::Excluded(key) => after(key),
                Bound::Unbounded => Vec::new(),
            },
            end: match range.end_bound() {
                Bound::Included(key) => Some(after(key)),
                Bound::Excluded(key) => Some(to_bytes(key)),
                Bound::Unbounded => None,
            },
        }
    }

    fn beginning_with(prefix: &impl Key) -> Self {
        let mut start = Vec::new();
        prefix.encode(&mut start);
        // The end is the first key after all with this prefix: the last byte that can grow is raised, the rest is cut.
        let mut end = start.clone();
        while let Some(last) = end.pop() {
            if let Some(next) = last.checked_add(1) {
                end.push(next);
                return Self {
                    start,
                    end: Some(end),
                };
            }
        }
        Self { start, end: None }
    }
}

impl Engine {
    pub(crate) fn get<K: Key, V: TableValue>(
        &self,
        table: &str,
        key: &K,
    ) -> Result<Option<V>, DbError> {
        let key = to_bytes(key);
        let found = self
            .db
            .get_pinned_cf(self.family(table)?, &key)
            .map_err(|error| self.engine_error(&error))?;
        found
            .map(|value| {
                value::decode_value(&value)
                    .map_err(|what| self.unreadable(table, &key, what.into()))
            })
            .transpose()
    }

    pub(crate) fn last_key(&self, table: &str) -> Result<Option<Vec<u8>>, DbError> {
        let mut raw = self.db.raw_iterator_cf(self.family(table)?);
        raw.seek_to_last();
        raw.status().map_err(|error| self.engine_error(&error))?;
        Ok(raw.key().map(<[u8]>::to_vec))
    }

    fn unreadable(&self, table: &str, key: &[u8], what: InvalidRow) -> DbError {
        DbError::Unreadable {
            path: self.path().to_path_buf(),
            table: table.to_owned(),
            key: key.escape_ascii().to_string(),
            what,
        }
    }
}

#[cfg(test)]
mod tests;
