//! The brake on removals: the most that a node removes within an hour for all callers together, also if a repository
//! has gone mad.
//!
//! Each removal is written into a file of the node data before it is done, so that a restart does not reset the count.
//! A drain does not release the brake: a caller that may ask for removals can ask for a drain as well. Only copies that
//! the node itself has a second time, on a volume that stays in use, have a budget of their own, as nothing leaves the
//! node.
//!
//! Not promised: that an act which failed after it was counted is taken off the count.
//!
//! # Errors
//!
//! A removal is refused with [`NodeError::TooManyRemovals`], or with [`NodeError::Removals`] if the count cannot be
//! read or written.

use std::path::{Path, PathBuf};

use archive_durable::{read_state, replace_file};
use archive_model::time_after;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::error::NodeError;

const FORMAT: &str = "holdfast-removals/1";

/// The time over which removals are counted.
const HOUR: SignedDuration = SignedDuration::from_hours(1);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CountedRemovals {
    format: String,
    at: Vec<Timestamp>,
}

/// The count of removals from `files/` and purges of the attic; in a checksum replica, of removed rows.
#[derive(Debug)]
pub struct Brake {
    path: PathBuf,
    setting: &'static str,
    most: u64,
    alone: Mutex<()>,
}

impl Brake {
    /// Makes a brake that lets `most` removals an hour pass, and keeps their count in the directory `data`.
    pub fn new(data: &Path, most: u64) -> Self {
        Self {
            path: data.join("removals.json"),
            setting: "removals_per_hour",
            most,
            alone: Mutex::default(),
        }
    }

    /// Makes the brake of copies that a drain has moved to another volume of the same node.
    pub(crate) fn for_moved_copies(data: &Path, most: u64) -> Self {
        Self {
            path: data.join("moved.json"),
            setting: "attic.moved_per_hour",
            ..Self::new(data, most)
        }
    }

    /// Refuses if the hour is full. This is a check before the work; [`Brake::count_removal`] decides.
    pub fn check_rate(&self, now: Timestamp) -> Result<(), NodeError> {
        let _alone = self.alone.lock();
        self.room(now).map(|_| ())
    }

    /// Counts a removal, durably, or refuses it.
    pub fn count_removal(&self, now: Timestamp) -> Result<(), NodeError> {
        let _alone = self.alone.lock();
        let mut at = self.room(now)?;
        at.push(now);
        let text = serde_json::to_vec(&CountedRemovals {
            format: FORMAT.to_owned(),
            at,
        })
        .map_err(|error| self.damaged(&error))?;
        Ok(replace_file(&self.path, &text)?)
    }

    /// Returns the removals within the hour, if there is room for one more. A removal in the future, from before a
    /// clock was set back, counts as one of now.
    fn room(&self, now: Timestamp) -> Result<Vec<Timestamp>, NodeError> {
        let at: Vec<Timestamp> = self
            .read()?
            .into_iter()
            .map(|at| at.min(now))
            .filter(|at| now.duration_since(*at) < HOUR)
            .collect();
        if (at.len() as u64) < self.most {
            return Ok(at);
        }
        tracing::error!(
            most = self.most,
            "a removal was refused: this node has removed as much as it may within an hour"
        );
        let first = at.iter().min().copied().unwrap_or(now);
        Err(NodeError::TooManyRemovals {
            setting: self.setting,
            most: self.most,
            again: time_after(first, HOUR),
        })
    }

    fn read(&self) -> Result<Vec<Timestamp>, NodeError> {
        let Some(text) = read_state(&self.path)? else {
            return Ok(Vec::new());
        };
        let remembered: CountedRemovals =
            serde_json::from_slice(&text).map_err(|error| self.damaged(&error))?;
        if remembered.format == FORMAT {
            Ok(remembered.at)
        } else {
            Err(self.damaged(&format_args!(
                "it has the format {}; this build reads {FORMAT}",
                remembered.format
            )))
        }
    }

    fn damaged(&self, what: &dyn std::fmt::Display) -> NodeError {
        NodeError::Removals {
            path: self.path.clone(),
            what: what.to_string(),
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make and damage files")]
mod tests {
    use super::*;

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + minute * 60).unwrap()
    }

    fn is_refused(counted: &Result<(), NodeError>) -> bool {
        matches!(counted, Err(NodeError::TooManyRemovals { .. }))
    }

    /// Fails if a restart resets the count of removals.
    #[test]
    fn removals_within_an_hour_survive_a_restart() {
        let data = crate::testing::directory();
        let start = || Brake::new(data.path(), 3);
        for minute in [0, 10, 20] {
            start().count_removal(at(minute)).unwrap();
        }
        assert!(is_refused(&start().check_rate(at(30))));
        let Err(NodeError::TooManyRemovals { again, .. }) = start().count_removal(at(59)) else {
            panic!("not refused");
        };
        assert_eq!(again, at(60));
        start().count_removal(at(60)).unwrap();
        assert!(is_refused(&start().count_removal(at(69))));
        start().count_removal(at(70)).unwrap();
    }

    /// Fails if a clock that is set forward or back frees the brake, or holds it for days.
    #[test]
    fn wrong_clock_neither_opens_nor_blocks_long() {
        let data = crate::testing::directory();
        let brake = Brake::new(data.path(), 2);
        brake.count_removal(at(1_000_000)).unwrap();
        brake.count_removal(at(0)).unwrap();
        assert!(is_refused(&brake.count_removal(at(1))));
        brake.count_removal(at(61)).unwrap();
        brake.count_removal(at(62)).unwrap();
        assert!(is_refused(&brake.count_removal(at(63))));
    }

    /// Fails if a count of removals that cannot be read counts as no removals, or a limit of zero lets one pass.
    #[test]
    fn a_damaged_memory_lets_nothing_pass() {
        let data = crate::testing::directory();
        let brake = Brake::new(data.path(), 2);
        for text in ["", "{", r#"{"format":"holdfast-removals/9","at":[]}"#] {
            std::fs::write(data.path().join("removals.json"), text).unwrap();
            assert!(
                matches!(brake.count_removal(at(0)), Err(NodeError::Removals { .. })),
                "{text}"
            );
        }
        assert!(is_refused(
            &Brake::new(&data.path().join("other"), 0).check_rate(at(0))
        ));
    }
}
