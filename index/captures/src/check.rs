//! Reads all captures, a bounded number in each call, so that damage is met before somebody asks for them.

use std::ops::Bound::{Excluded, Unbounded};

use archive_db::DbError;

use crate::CaptureIndex;
use crate::place::Place;

/// The place that a check has reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckPoint {
    /// The last row that was read; `None` before the first one.
    last: Option<Place>,
}

impl CaptureIndex {
    /// Reads up to `limit` captures behind a point, with their checksums, and moves the point on. Returns whether it
    /// was the end; the point is then at the beginning again.
    ///
    /// # Errors
    ///
    /// [`DbError`] if a row cannot be read, or decoded.
    pub fn check_rows(&self, point: &mut CheckPoint, limit: u64) -> Result<bool, DbError> {
        let start = point.last.take().map_or(Unbounded, Excluded);
        let mut rows = self.shared.tables.captures.range((start, Unbounded))?;
        for _ in 0..limit {
            let Some(row) = rows.next() else {
                point.last = None;
                return Ok(true);
            };
            let (place, packed) = row?;
            self.shared.unpack_row(&place, &packed)?;
            point.last = Some(place);
        }
        Ok(false)
    }
}
