//! Removes the rows of captures that no query shows any more.
//!
//! Captures of a replaced or deleted file, of a replaced set, and of a writer that did not complete, are out of sight
//! at once. Their rows stay until a sweep meets them: it reads all captures, a bounded number in each call.

use archive_db::DbError;

use crate::CaptureIndex;
use crate::rows::{BATCH, file_number};
use crate::shared::{Ledger, SharedState, Sweep};
use crate::visible::NumberSet;

/// The outcome of a part of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepReport {
    /// The number of captures that were read.
    pub read: u64,
    /// The number of those that were removed.
    pub removed: u64,
    /// Whether nothing is left to do; else the caller continues.
    pub is_complete: bool,
}

impl CaptureIndex {
    /// Removes rows that no query shows; reads up to `limit` captures in one call. A sweep that is
    /// not needed reads none.
    ///
    /// While a query that began before the sweep still runs, there is nothing to do, and the sweep is not complete.
    ///
    /// # Errors
    ///
    /// [`DbError`] if the database fails.
    pub fn sweep_rows(&self, limit: u64) -> Result<SweepReport, DbError> {
        let shared = &self.shared;
        let mut ledger = shared.ledger();
        let mut swept = SweepReport {
            read: 0,
            removed: 0,
            is_complete: false,
        };
        let generation = shared.with_view(|view| view.generation);
        let begun = match ledger.sweep.take() {
            Some(sweep) => Some(sweep),
            None => shared.begin_sweep(&ledger, generation)?,
        };
        let Some(mut sweep) = begun else {
            swept.is_complete = true;
            return Ok(swept);
        };
        if ledger.oldest_generation(generation) < sweep.generation {
            ledger.sweep = Some(sweep);
            return Ok(swept);
        }
        // Changes are made while rows are read: they never revive a dead number.
        drop(ledger);
        let outcome = shared.sweep(&mut sweep, limit, &mut swept);
        let mut ledger = shared.ledger();
        if outcome.is_ok() && sweep.has_read_all {
            shared.forget(&sweep)?;
            swept.is_complete = true;
        } else {
            ledger.sweep = Some(sweep);
        }
        outcome?;
        Ok(swept)
    }
}

impl SharedState {
    /// Finds the numbers whose rows no query shows; `None` if there are no such rows.
    fn begin_sweep(&self, ledger: &Ledger, generation: u64) -> Result<Option<Sweep>, DbError> {
        let mut sweep = Sweep {
            dead: NumberSet::default(),
            numbers: Vec::new(),
            imports: Vec::new(),
            last: None,
            generation,
            has_read_all: false,
        };
        for row in self.tables.dead.range(..)? {
            let (number, ()) = row?;
            if !ledger.writing.contains(&number) {
                sweep.dead.set_number(number, true);
                sweep.numbers.push(number);
            }
        }
        for row in self.tables.imports.range(..)? {
            let (import, set) = row?;
            let current = self.tables.sets.get(&set)?;
            let is_current = current.is_some_and(|set| set.import == import);
            if is_current || ledger.importing.contains(&import) {
                continue;
            }
            sweep.imports.push(import);
            for file in self.tables.import_files.prefix(&import)? {
                let (_, number) = file?;
                sweep.dead.set_number(file_number(number), true);
            }
        }
        let is_empty = sweep.numbers.is_empty() && sweep.imports.is_empty();
        Ok((!is_empty).then_some(sweep))
    }

    /// Reads up to `limit` captures, and deletes the dead ones of them.
    fn sweep(&self, sweep: &mut Sweep, limit: u64, swept: &mut SweepReport) -> Result<(), DbError> {
        use std::ops::Bound::{Excluded, Unbounded};
        let start = sweep.last.clone().map_or(Unbounded, Excluded);
        let captures = &self.tables.captures;
        let mut batch = self.database.batch();
        let mut last = sweep.last.take();
        let mut rows = captures.range((start, Unbounded))?;
        while swept.read < limit {
            let Some(row) = rows.next() else {
                sweep.has_read_all = true;
                break;
            };
            let (place, _) = row?;
            swept.read += 1;
            if sweep.dead.has_number(place.file) {
                batch.delete(captures, &place)?;
                swept.removed += 1;
            }
            last = Some(place);
            if batch.size() >= BATCH {
                self.flush_counts(&mut batch)?;
            }
        }
        batch.write()?;
        sweep.last = last;
        Ok(())
    }

    /// Forgets the numbers and imports that have no rows any more.
    fn forget(&self, sweep: &Sweep) -> Result<(), DbError> {
        let tables = &self.tables;
        let mut batch = self.database.batch();
        for number in &sweep.numbers {
            batch.delete(&tables.dead, number)?;
            batch.delete(&tables.numbers, number)?;
            self.names.forget_name(*number);
            self.flush_full(&mut batch)?;
        }
        for import in &sweep.imports {
            for file in tables.import_files.prefix(import)? {
                let (key, number) = file?;
                let number = file_number(number);
                batch.delete(&tables.import_files, &key)?;
                batch.delete(&tables.numbers, &number)?;
                self.names.forget_name(number);
                self.flush_full(&mut batch)?;
            }
            batch.delete(&tables.imports, import)?;
        }
        batch.write()?;
        Ok(())
    }
}
