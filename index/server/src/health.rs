//! The health of the database: what is known of it beside it, and the end of all that works on it when it is found
//! damaged.
//!
//! Owns a small file beside the directory of the database, `<data>.state.json`: how far the database had come when that
//! was last durable, which imported sets it had, and whether it was found damaged. A database that is behind that file
//! has lost rows, whatever it says of itself. A damaged database is rebuilt at its next opening, and the sets that went
//! with it are named until they are imported again.
//!
//! Not promised: that rows of the last seconds before a damage are missed. The file is written after the database.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use archive_daemon::StartError;
use archive_daemon::tasks::AnyError;
use archive_db::DbError;
use archive_durable::{DiskError, read_state, replace_file};
use index_captures::{CaptureIndex, OpenIndexError, OpenOptions};
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

/// The database is damaged: all that works on it ends.
#[derive(Debug, thiserror::Error)]
#[error("the database of captures is damaged: {0}; it is rebuilt")]
pub(crate) struct DamagedDatabase(String);

/// The record beside the database.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct DatabaseRecord {
    /// The sequence that the database had reached at least.
    sequence: u64,
    /// The sets that the database has.
    sets: BTreeSet<String>,
    /// Sets that went with an earlier database, and were not imported again.
    lost_sets: BTreeSet<String>,
    /// The reason why the database cannot be used any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    damage: Option<String>,
}

/// The health of an open database. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Health {
    path: Arc<Path>,
    record: Arc<Mutex<DatabaseRecord>>,
    ends: CancellationToken,
}

/// A database that was opened.
pub(crate) struct OpenedDatabase {
    pub(crate) captures: CaptureIndex,
    pub(crate) health: Health,
    /// The reason why the database was begun anew, if it was.
    pub(crate) rebuilt: Option<String>,
}

/// Opens the database; one that is damaged, or of another form, is deleted and begun anew. The result names the reason.
pub(crate) fn open_index(data: &Path, memory: usize) -> Result<OpenedDatabase, StartError> {
    let path = record_path(data);
    let mut record = match read_state(&path).map_err(unwritten)? {
        None => DatabaseRecord::default(),
        Some(bytes) => serde_json::from_slice(&bytes).unwrap_or_else(|error| {
            tracing::warn!(file = %path.display(), %error, "the state of the database of captures is unknown");
            DatabaseRecord::default()
        }),
    };
    let options = OpenOptions::default().with_memory(memory);
    let known = options.clone().at_least(record.sequence);
    let opened = match record.damage.take() {
        Some(reason) => Err(reason),
        None => match CaptureIndex::open(data, &known) {
            Ok(opened) => Ok(opened),
            Err(error @ OpenIndexError::Database(_)) => return Err(unopened(error)),
            Err(OpenIndexError::Damaged { source, .. } | OpenIndexError::Format { source, .. }) => {
                Err(source.to_string())
            }
        },
    };
    let (opened, rebuilt) = match opened {
        Ok(opened) => (opened, None),
        Err(reason) => {
            record.lost_sets.append(&mut record.sets);
            record.sequence = 0;
            let sets: Vec<&str> = record.lost_sets.iter().map(String::as_str).collect();
            tracing::error!(
                reason,
                sets = sets.join(" "),
                "cannot use the database of captures; it is rebuilt, and sets have to be imported again"
            );
            CaptureIndex::destroy(data).map_err(|error| {
                StartError::failed("delete the damaged database of captures", error)
            })?;
            // Before there is a database that could be taken for whole.
            write(&path, &record).map_err(unwritten)?;
            (
                CaptureIndex::open(data, &options).map_err(unopened)?,
                Some(reason),
            )
        }
    };
    if let Some(rekeyed) = opened.rekeyed {
        tracing::warn!(
            ?rekeyed,
            "made the keys of all captures again by the rules of this build"
        );
    }
    let health = Health {
        path: path.into(),
        record: Arc::new(Mutex::new(record)),
        ends: CancellationToken::new(),
    };
    health.note_damage(&opened.captures).map_err(unwritten)?;
    Ok(OpenedDatabase {
        captures: opened.captures,
        health,
        rebuilt,
    })
}

/// Returns whether somebody still has the database open.
pub(crate) fn is_busy(error: &StartError) -> bool {
    let opening = error
        .find_cause::<OpenIndexError>()
        .and_then(|error| match error {
            OpenIndexError::Database(error) => Some(error.as_ref()),
            OpenIndexError::Damaged { .. } | OpenIndexError::Format { .. } => None,
        });
    let destroying = error.find_cause::<DbError>();
    matches!(opening.or(destroying), Some(DbError::Busy { .. }))
}

fn unopened(error: OpenIndexError) -> StartError {
    StartError::failed("open the database of captures", error)
}

fn unwritten(error: impl Into<AnyError>) -> StartError {
    StartError::failed("read or write the state of the database of captures", error)
}

impl Health {
    /// Makes durable what the database has, and notes how far it has come, and which sets it has.
    pub(crate) fn note_damage(&self, captures: &CaptureIndex) -> Result<(), NoteError> {
        let sequence = captures.sequence();
        captures.sync()?;
        let mut sets = BTreeSet::new();
        for set in captures.list_sets()? {
            sets.insert(set?.name);
        }
        let mut record = self.lock();
        let noted = DatabaseRecord {
            sequence: sequence.max(record.sequence),
            lost_sets: record.lost_sets.difference(&sets).cloned().collect(),
            sets,
            damage: record.damage.clone(),
        };
        if *record != noted {
            write(&self.path, &noted)?;
            *record = noted;
        }
        Ok(())
    }

    /// Returns the sets that went with an earlier database, and were not imported again.
    pub(crate) fn lost_sets(&self) -> BTreeSet<String> {
        self.lock().lost_sets.clone()
    }

    /// Checks an error of the database for damage. Damage ends all that works on it: an answer from what is left would
    /// lack captures.
    pub(crate) fn check_error(&self, error: &DbError) {
        if !error.is_damage() {
            return;
        }
        let mut record = self.lock();
        if record.damage.is_none() {
            record.damage = Some(error.to_string());
            tracing::error!(%error, "the database of captures is damaged; it is rebuilt");
            if let Err(error) = write(&self.path, &record) {
                tracing::error!(%error, "cannot record the damage");
            }
        }
        self.ends.cancel();
    }

    /// Returns whether the database was found damaged.
    pub(crate) fn is_damaged(&self) -> bool {
        self.ends.is_cancelled()
    }

    /// Ends with an error when the database is found damaged, or well with the stop.
    pub(crate) async fn watch_health(self, stop: CancellationToken) -> Result<(), DamagedDatabase> {
        tokio::select! {
            () = self.ends.cancelled() => {
                let reason = self.lock().damage.clone();
                Err(DamagedDatabase(reason.unwrap_or_default()))
            }
            () = stop.cancelled() => Ok(()),
        }
    }

    /// Locks the state. Nothing panics while it holds the lock, so that what is inside is whole even then.
    fn lock(&self) -> MutexGuard<'_, DatabaseRecord> {
        self.record.lock()
    }
}

/// The reason why the progress of the database was not noted.
#[derive(Debug, thiserror::Error)]
pub enum NoteError {
    /// The database fails.
    #[error(transparent)]
    Database(#[from] DbError),
    /// The file beside it cannot be written.
    #[error("cannot record the state of the database of captures: {0}")]
    Disk(#[from] DiskError),
}

fn record_path(data: &Path) -> PathBuf {
    let data = std::path::absolute(data).unwrap_or_else(|_| data.to_path_buf());
    let mut name = data.file_name().map(OsString::from).unwrap_or_default();
    name.push(".state.json");
    data.with_file_name(name)
}

fn write(path: &Path, record: &DatabaseRecord) -> Result<(), DiskError> {
    // A record of numbers and names is always text.
    let text = serde_json::to_vec_pretty(record).unwrap_or_default();
    replace_file(path, &text)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests damage files")]
mod tests;
