//! The records in damaged bytes, for the verbs that report damage.
//!
//! Owns how much is read for that, and how it is said. What is read comes through the same door as every read: proven,
//! and from any replica that has it.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use archive_client::{Losses, find_losses};
use archive_model::{FileName, FiledAnomaly};
use serde::Serialize;

use crate::exit::Failure;
use crate::output::size_text;
use crate::progress::TransferProgress;
use crate::session::Session;

/// The most bytes that a command reads to name lost records where no file was named.
const MOST_READ: u64 = 64 << 30;

/// The most items that wait until the archive has said all of them.
pub const MOST_WAITING: usize = 10_000;

/// The most answers that are kept: the copies of a file are often damaged in the same bytes.
const MOST_KEPT: usize = 16;

/// A finder of the records in damaged bytes, which remembers its last answers.
#[derive(Debug)]
pub struct RecordFinder<'a> {
    session: &'a Session,
    /// The number of bytes that may still be read; `None` is any number.
    left: Option<u64>,
    kept: VecDeque<(FileName, Vec<Range<u64>>, Losses)>,
}

/// An item, and the records in the bytes that it names.
#[derive(Debug, Serialize)]
pub struct WithRecords<'a, T> {
    #[serde(flatten)]
    item: &'a T,
    #[serde(flatten)]
    records: &'a RecordLosses,
}

/// The records that damage touches, as far as they could be named.
#[derive(Debug, Default, Serialize)]
pub struct RecordLosses {
    #[serde(flatten)]
    losses: Option<Losses>,
    /// The reason why the records cannot be named.
    #[serde(rename = "records_error", skip_serializing_if = "Option::is_none")]
    error: Option<Failure>,
}

impl RecordLosses {
    /// Returns whether the records could not be named.
    pub const fn is_failed(&self) -> bool {
        self.error.is_some()
    }

    /// Returns an item with these records in it.
    pub const fn attach_to<'a, T>(&'a self, item: &'a T) -> WithRecords<'a, T> {
        WithRecords {
            item,
            records: self,
        }
    }

    /// Returns a line, and under it a line for each record.
    pub fn below_line(&self, line: String) -> String {
        let mut lines = vec![line];
        lines.extend(self.losses.iter().flat_map(lines_of));
        if let Some(Failure { message, .. }) = &self.error {
            lines.push(format!("    the records are not known: {message}"));
        }
        lines.join("\n")
    }
}

/// Returns the losses as people read them, a line each.
pub fn lines_of(losses: &Losses) -> Vec<String> {
    let Losses {
        records,
        unknown,
        omitted,
        not_an_archive_file,
    } = losses;
    let mut lines: Vec<String> = records
        .iter()
        .map(|record| format!("    {record}"))
        .collect();
    if *omitted > 0 {
        lines.push(format!("    and {omitted} more records"));
    }
    for span in unknown {
        let bytes = format!("bytes {}-{}", span.start, span.end - 1);
        lines.push(if *not_an_archive_file {
            format!("    not an archive file: {bytes}")
        } else {
            format!("    unknown {bytes}: it is not known which records begin there")
        });
    }
    lines
}

/// Returns the damaged bytes of an anomaly; an empty list where it is not about some bytes.
pub fn damaged_ranges(anomaly: &FiledAnomaly) -> Vec<Range<u64>> {
    if anomaly.lost.is_empty() {
        // Where the size is not known, it is known from the admission later.
        return anomaly.groups.byte_ranges(u64::MAX).collect();
    }
    let lost = anomaly.lost.iter();
    lost.map(|(start, end)| *start..*end).collect()
}

impl<'a> RecordFinder<'a> {
    /// Makes a finder. `is_named`: a person has named the files, so that as much is read as it takes.
    pub fn new(session: &'a Session, is_named: bool) -> Self {
        Self {
            session,
            left: (!is_named).then_some(MOST_READ),
            kept: VecDeque::new(),
        }
    }

    /// Finds the records in the bytes that an anomaly names.
    pub async fn look_for_records(&mut self, anomaly: &FiledAnomaly) -> RecordLosses {
        let ranges = damaged_ranges(anomaly);
        let Some(last) = ranges.iter().map(|range| range.end).max() else {
            return RecordLosses::default();
        };
        let mut kept = self.kept.iter();
        let known = kept.find(|(file, of, _)| *file == anomaly.file && *of == ranges);
        if let Some((_, _, losses)) = known {
            let losses = Some(losses.clone());
            return RecordLosses {
                losses,
                error: None,
            };
        }
        match self.read(&anomaly.file, &ranges, last).await {
            Ok(losses) => {
                self.kept.truncate(MOST_KEPT - 1);
                let kept = (anomaly.file.clone(), ranges, losses.clone());
                self.kept.push_front(kept);
                RecordLosses {
                    losses: Some(losses),
                    error: None,
                }
            }
            Err(error) => RecordLosses {
                losses: None,
                error: Some(error),
            },
        }
    }

    async fn read(
        &mut self,
        file: &FileName,
        ranges: &[Range<u64>],
        last: u64,
    ) -> Result<Losses, Failure> {
        if self.left.is_some_and(|left| left < last) {
            let most = size_text(MOST_READ);
            return Err(Failure::because_failed(format!(
                "more than {most} would have to be read; ask for one file: `holdfast anomalies --file {file} --records`"
            )));
        }
        let progress = TransferProgress::of_bytes(last);
        progress.set_message(format!("records of {file}"));
        let read = AtomicU64::new(0);
        let watch = |at: u64| progress.step_bytes(read.swap(at, Ordering::Relaxed), at);
        let reader = self.session.reader();
        let found = find_losses(&reader, file, ranges.to_vec(), &watch).await;
        progress.finish();
        let read = read.load(Ordering::Relaxed);
        self.left = self.left.map(|left| left.saturating_sub(read));
        found.map_err(|error| self.session.failure(error))
    }
}

#[cfg(test)]
mod tests {
    use archive_client::{LostRecord, Span};
    use archive_model::{AnomalyClass, AnomalyState};

    use super::*;
    use crate::testing::filed_anomaly;

    /// Fails if a URL in a damaged record can steer the terminal, or if records that were left out and bytes of unknown
    /// records are not mentioned.
    #[test]
    fn damaged_records_are_listed_below_their_anomaly() {
        let record = LostRecord {
            offset: 12,
            length: Some(9),
            kind: "response".into(),
            url: Some("http://a/\u{1b}[2J".into()),
            date: Some("2026-01-02T03:04:05Z".into()),
            id: None,
            whole: true,
        };
        let unknown = vec![Span { start: 20, end: 30 }];
        let losses = Losses {
            records: vec![record],
            unknown,
            omitted: 3,
            not_an_archive_file: false,
        };
        let records = RecordLosses {
            losses: Some(losses.clone()),
            error: None,
        };
        assert_eq!(
            records.below_line("17  lost".into()),
            "17  lost\n    wholly  offset 12  response  2026-01-02T03:04:05Z  http://a/ [2J\n    \
             and 3 more records\n    unknown bytes 20-29: it is not known which records begin there"
        );
        let anomaly = filed_anomaly(AnomalyClass::Lost, AnomalyState::Open);
        let json = serde_json::to_value(records.attach_to(&anomaly)).unwrap();
        assert_eq!((&json["id"], &json["kind"]), (&"17".into(), &"lost".into()));
        assert_eq!(json["records"][0]["url"], "http://a/\u{1b}[2J", "as it is");
        assert_eq!(
            json["unknown"],
            serde_json::json!([{"start": 20, "end": 30}])
        );
        let none = Losses {
            records: vec![],
            not_an_archive_file: true,
            omitted: 0,
            ..losses
        };
        assert_eq!(lines_of(&none), ["    not an archive file: bytes 20-29"]);
        let nothing = serde_json::to_value(RecordLosses::default().attach_to(&anomaly)).unwrap();
        assert!(nothing.get("records").is_none(), "{nothing}");
    }

    /// Fails if whole groups are called damaged where the lost bytes are known exactly, or a group is given wrong
    /// bytes.
    #[test]
    fn damaged_bytes_are_lost_bytes_or_whole_groups() {
        let mut anomaly = filed_anomaly(AnomalyClass::Missing, AnomalyState::Open);
        assert!(damaged_ranges(&anomaly).is_empty());
        anomaly.groups.insert_range(1..3);
        assert_eq!(damaged_ranges(&anomaly).first(), Some(&(16_384..49_152)));
        anomaly.lost = vec![(5, 6)];
        assert_eq!(damaged_ranges(&anomaly).first(), Some(&(5..6)));
    }
}
