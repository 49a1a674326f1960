//! Opens an index: makes it, refuses a damaged one, and updates keys of other rules.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use archive_db::{Database, DatabaseOptions, DbError, MemoryPlace, TableCompression};
use archive_formats::surt::UrlKey;
use parking_lot::{Mutex, RwLock};
use thiserror::Error;

use crate::CaptureIndex;
use crate::keys::KeyRules;
use crate::names::FileNames;
use crate::progress::IndexCounts;
use crate::rekey::{KeyChange, rekey_rows};
use crate::rows::{self, AboutRow, CAPTURES, Tables};
use crate::shared::{Ledger, SharedState, View};
use crate::visible::NumberSet;

/// The version of the tables.
const VERSION: u32 = 1;

/// The options for opening an index.
///
/// ```
/// use index_captures::{CaptureIndex, MemoryPlace, OpenOptions};
///
/// let memory = MemoryPlace::new()?;
/// let options = OpenOptions::default().with_memory(16 << 20);
/// assert!(CaptureIndex::open_in_memory(&memory, &options)?.is_new);
/// assert!(!CaptureIndex::open_in_memory(&memory, &options)?.is_new);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct OpenOptions {
    memory: usize,
    at_least: u64,
    pub(crate) rules: KeyRules,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            memory: 256 << 20,
            at_least: 0,
            rules: KeyRules {
                version: UrlKey::VERSION,
                key: |url| UrlKey::parse(url).into(),
            },
        }
    }
}

impl OpenOptions {
    /// Sets the memory for cached blocks and unwritten rows together, in bytes; 256 MiB by default.
    #[must_use]
    pub const fn with_memory(mut self, bytes: usize) -> Self {
        self.memory = bytes;
        self
    }

    /// Sets how far the index must have come ([`CaptureIndex::sequence`]): one that has not come so far is damaged.
    #[must_use]
    pub const fn at_least(mut self, sequence: u64) -> Self {
        self.at_least = sequence;
        self
    }

    fn to_database(&self) -> DatabaseOptions {
        let mut options = DatabaseOptions::new("captures", VERSION, &rows::ALL)
            .syncs_later()
            .with_memory(self.memory)
            .at_least(self.at_least);
        for table in CAPTURES {
            options = options.with_compression(table, TableCompression::Zstd);
        }
        options
    }
}

/// An index that was opened, and what was done to it.
#[derive(Clone, Debug)]
pub struct OpenedIndex {
    /// The index that was opened.
    pub captures: CaptureIndex,
    /// Whether the index was made now, because the directory had none.
    pub is_new: bool,
    /// The change of the keys, if they were made by other rules than those of this build.
    pub rekeyed: Option<KeyChange>,
}

/// The reason why an index was not opened.
#[derive(Debug, Error)]
pub enum OpenIndexError {
    /// The files of the database contradict each other, or some of them are missing.
    #[error(
        "the index of captures in {} is damaged: {source}; delete that directory: what is in the archive is indexed again by \
         itself, and imported sets have to be imported again",
        path.display()
    )]
    Damaged {
        /// The directory of the database.
        path: PathBuf,
        /// The damage, as the database reports it.
        source: Box<DbError>,
    },
    /// The database was made by another build in a form that this one does not know, or it is no index of captures.
    #[error(
        "the index of captures in {} cannot be read by this build: {source}; use the build that made it, or delete that \
         directory: what is in the archive is indexed again by itself, and imported sets have to be imported again",
        path.display()
    )]
    Format {
        /// The directory of the database.
        path: PathBuf,
        /// The error, which names the form of the database and the one that this build reads.
        source: Box<DbError>,
    },
    /// The database refuses for another reason: another process has it open, or the disk fails.
    #[error("cannot open the index of captures: {0}")]
    Database(#[source] Box<DbError>),
}

impl OpenIndexError {
    fn new(path: &Path, source: DbError) -> Self {
        let path = path.to_path_buf();
        let source = Box::new(source);
        if source.is_damage() {
            Self::Damaged { path, source }
        } else if matches!(*source, DbError::Format { .. }) {
            Self::Format { path, source }
        } else {
            Self::Database(source)
        }
    }

    /// Returns whether the index has to be deleted and built anew.
    pub const fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged { .. })
    }
}

impl CaptureIndex {
    /// Opens the index in a directory; makes it if it is absent.
    ///
    /// An index whose keys were made by other rules gets new ones from the URLs of its captures. That takes about a
    /// minute for ten million, is begun anew if it was cut off, and reads no archive file.
    ///
    /// # Errors
    ///
    /// [`OpenIndexError`]; a damaged index is refused, and never opened with fewer rows.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<OpenedIndex, OpenIndexError> {
        let failed = |error| OpenIndexError::new(path, error);
        let database = Database::open(path, &options.to_database()).map_err(failed)?;
        Self::with_database(database, options).map_err(failed)
    }

    /// Opens an index that is not on disk: for tests.
    ///
    /// # Errors
    ///
    /// As [`CaptureIndex::open`].
    pub fn open_in_memory(
        memory: &MemoryPlace,
        options: &OpenOptions,
    ) -> Result<OpenedIndex, OpenIndexError> {
        let path = Path::new("memory");
        let failed = |error| OpenIndexError::new(path, error);
        let database = memory.open(&options.to_database()).map_err(failed)?;
        Self::with_database(database, options).map_err(failed)
    }

    /// Deletes the index in a directory, with the imported sets: before it is built anew.
    ///
    /// # Errors
    ///
    /// [`DbError`] if it is in use, or the disk refuses.
    pub fn destroy(path: &Path) -> Result<(), DbError> {
        Database::destroy(path)
    }

    fn with_database(database: Database, options: &OpenOptions) -> Result<OpenedIndex, DbError> {
        let rules = options.rules;
        let is_new = database.is_new();
        let abouts = database.table::<u8, AboutRow>(rows::ABOUT)?;
        let about = if let Some(about) = abouts.get(&0)? {
            about
        } else {
            let is_empty = database
                .table::<u32, rows::NumberRow>(rows::NUMBERS)?
                .last()?;
            if is_empty.is_some() {
                return Err(DbError::Damaged {
                    path: database.path().to_path_buf(),
                    what: "it does not say by which rules its keys were made".to_owned(),
                });
            }
            let about = AboutRow {
                key_version: rules.version,
                is_second: false,
            };
            let mut batch = database.batch();
            batch.put(&abouts, &0, &about)?;
            batch.commit()?;
            about
        };
        let (about, rekeyed) = if about.key_version == rules.version {
            (about, None)
        } else {
            let (about, rekeyed) = rekey_rows(&database, &about, rules)?;
            (about, Some(rekeyed))
        };
        let tables = Tables::open(&database, &about)?;
        let (view, ledger) = load(&tables)?;
        let shared = SharedState {
            database,
            tables,
            rules,
            view: RwLock::new(Arc::new(view)),
            ledger: Mutex::new(ledger),
            names: FileNames::default(),
        };
        Ok(OpenedIndex {
            captures: Self {
                shared: Arc::new(shared),
            },
            is_new,
            rekeyed,
        })
    }
}

/// Reads which numbers are shown, and counts.
fn load(tables: &Tables) -> Result<(View, Ledger), DbError> {
    let mut shown = NumberSet::default();
    let mut counts = IndexCounts::default();
    for row in tables.files.scan()? {
        let (_, row) = row?;
        counts.count_file(&row, true);
        if let Some(number) = row.shown_number() {
            shown.set_number(number, true);
        }
    }
    let mut last_import = tables.imports.last()?.map_or(0, |(import, _)| import);
    for row in tables.sets.scan()? {
        let (_, row) = row?;
        counts.sets += 1;
        counts.set_captures = counts.set_captures.saturating_add(row.captures);
        last_import = last_import.max(row.import);
        for file in tables.import_files.prefix(&row.import)? {
            let (_, number) = file?;
            shown.set_number(rows::file_number(number), true);
        }
    }
    let ledger = Ledger {
        last_number: tables.numbers.last()?.map_or(0, |(number, _)| number),
        last_import,
        counts,
        writing: HashSet::new(),
        importing: HashSet::new(),
        earlier: Vec::new(),
        sweep: None,
    };
    let view = View {
        shown,
        generation: 0,
    };
    Ok((view, ledger))
}
