//! URIs of patterns that are under quarantine: they wait beside the queues until a person frees their pattern, or until
//! their trial.

use std::collections::BTreeMap;
use std::ops::Bound;

use archive_db::DbError;

use super::rows::{HeldUriRow, SeenUriRow};
use super::{CandidateUri, Frontier, FrontierChanges, FrontierUri, Urgency, UriLease};

/// A URI that is held back, by its pattern and itself.
type HeldUri = ((String, String), HeldUriRow);

/// The most URIs that are put back in one batch.
const MOST_RELEASED: usize = 4096;

impl Frontier {
    /// Notes that a pattern is under quarantine, or that a person has freed it.
    ///
    /// # Errors
    ///
    /// [`DbError`] if the row cannot be written.
    pub fn put_pattern(
        &self,
        changes: &mut FrontierChanges,
        pattern: &str,
        is_held: bool,
    ) -> Result<(), DbError> {
        let key = (u8::from(is_held), pattern.to_owned());
        let other = (u8::from(!is_held), pattern.to_owned());
        changes.batch.delete(&self.patterns, &other)?;
        changes.batch.put(&self.patterns, &key, &SeenUriRow)
    }

    /// Returns the patterns that were noted, and whether each is under quarantine.
    ///
    /// # Errors
    ///
    /// [`DbError`] if they cannot be read.
    pub fn held_patterns(&self) -> Result<Vec<(bool, String)>, DbError> {
        let rows = self.patterns.scan()?;
        rows.map(|row| row.map(|((is_held, pattern), _)| (is_held == 1, pattern)))
            .collect()
    }

    /// Holds a URI back that was found, unless it was seen. Returns whether it is new.
    ///
    /// # Errors
    ///
    /// [`DbError`] if the tables cannot be read or written.
    pub fn hold_back(
        &mut self,
        changes: &mut FrontierChanges,
        pattern: &str,
        candidate: CandidateUri,
    ) -> Result<bool, DbError> {
        if !self.mark_candidate(changes, &candidate)? {
            return Ok(false);
        }
        let key = (pattern.to_owned(), candidate.uri.uri.clone());
        let row = HeldUriRow {
            queue: candidate.queue,
            uri: candidate.uri,
            cost: candidate.cost,
        };
        changes.batch.put(&self.held, &key, &row)?;
        Ok(true)
    }

    /// Holds a URI back that was leased. Its lease is to be finished in the same changes.
    ///
    /// # Errors
    ///
    /// [`DbError`] if the row cannot be written.
    pub fn hold_back_lease(
        &self,
        changes: &mut FrontierChanges,
        pattern: &str,
        lease: &UriLease,
    ) -> Result<(), DbError> {
        let (_, _, cost, _) = lease.key;
        let queue = self.queue(lease.queue);
        let row = HeldUriRow {
            queue: queue.map(|queue| queue.name.clone()).unwrap_or_default(),
            uri: lease.uri.clone(),
            cost,
        };
        let key = (pattern.to_owned(), lease.uri.uri.clone());
        changes.batch.put(&self.held, &key, &row)
    }

    /// Puts URIs of a pattern back into their queues, as many as belong into one batch, from behind a URI on. Returns
    /// how many there were, and the last one; `None` if there were none.
    ///
    /// # Errors
    ///
    /// [`DbError`] if the tables cannot be read or written.
    pub fn release_pattern(
        &mut self,
        changes: &mut FrontierChanges,
        pattern: &str,
        behind: &str,
    ) -> Result<Option<(u64, String)>, DbError> {
        let rows: Vec<_> = self
            .held_behind(pattern, behind)?
            .take(MOST_RELEASED)
            .collect::<Result<_, _>>()?;
        let last = rows.last().map(|((_, uri), _)| uri.clone());
        let count = rows.len() as u64;
        for (key, row) in rows {
            changes.batch.delete(&self.held, &key)?;
            self.enqueue_by_name(changes, row.queue, &row.uri, row.cost)?;
        }
        Ok(last.map(|last| (count, last)))
    }

    /// Puts one URI back into its queue. Returns whether it was held back by this name.
    ///
    /// # Errors
    ///
    /// [`DbError`] if the tables cannot be read or written.
    pub fn release_uri(
        &mut self,
        changes: &mut FrontierChanges,
        name: &str,
        uri: &str,
    ) -> Result<bool, DbError> {
        let key = (name.to_owned(), uri.to_owned());
        let Some(row) = self.held.get(&key)? else {
            return Ok(false);
        };
        changes.batch.delete(&self.held, &key)?;
        self.enqueue_by_name(changes, row.queue, &row.uri, row.cost)?;
        Ok(true)
    }

    /// Returns whether there is nothing left, and nothing under way, in the queue of the first URI of a pattern that is held
    /// back, so that it might go on. Not if the queue has used up what it may have.
    ///
    /// # Errors
    ///
    /// [`DbError`] if the table cannot be read.
    pub fn is_trial_due(&self, pattern: &str) -> Result<bool, DbError> {
        let Some((_, row)) = self.held_behind(pattern, "")?.next().transpose()? else {
            return Ok(false);
        };
        let queue = self
            .names
            .get(&row.queue)
            .and_then(|number| self.queue(*number));
        Ok(queue
            .is_none_or(|queue| queue.length() == 0 && queue.in_flight == 0 && !queue.is_retired))
    }

    /// Puts the first URIs of a pattern back into their queues though it is under quarantine. Returns how many there were.
    ///
    /// # Errors
    ///
    /// [`DbError`] if the tables cannot be read or written.
    pub fn put_on_trial(
        &mut self,
        changes: &mut FrontierChanges,
        pattern: &str,
        most: u32,
    ) -> Result<u32, DbError> {
        let rows: Vec<_> = (0..most).zip(self.held_behind(pattern, "")?).collect();
        let mut count = 0;
        for (_, row) in rows {
            let (key, row) = row?;
            count += 1;
            changes.batch.delete(&self.held, &key)?;
            let uri = FrontierUri {
                urgency: Urgency::Trial,
                ..row.uri
            };
            self.enqueue_by_name(changes, row.queue, &uri, row.cost)?;
        }
        Ok(count)
    }

    /// Returns the URIs of a pattern that are held back, from behind one on.
    fn held_behind(
        &self,
        pattern: &str,
        behind: &str,
    ) -> Result<impl Iterator<Item = Result<HeldUri, DbError>>, DbError> {
        let begin = (pattern.to_owned(), behind.to_owned());
        let rows = self
            .held
            .range((Bound::Excluded(begin), Bound::Unbounded))?;
        let pattern = pattern.to_owned();
        Ok(rows.take_while(move |row| row.as_ref().map_or(true, |((own, _), _)| *own == pattern)))
    }

    /// Counts the URIs that are held back, by pattern. Reads all of them.
    ///
    /// # Errors
    ///
    /// [`DbError`] if they cannot be read.
    pub fn count_held_back(&self) -> Result<BTreeMap<String, u64>, DbError> {
        let mut counts = BTreeMap::new();
        for row in self.held.scan()? {
            let ((pattern, _), _) = row?;
            *counts.entry(pattern).or_insert(0) += 1;
        }
        Ok(counts)
    }
}
