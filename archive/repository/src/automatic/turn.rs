//! The turns of anomalies: every one gets one before any gets a second, and a look that showed nothing is a failure.

use archive_db::DbError;
use archive_ledger::anomalies::{Anomalies, AnomalyRow};

/// The step for an anomaly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RepairStep {
    /// Look a second time.
    Confirm,
    /// The anomaly is to be repaired.
    Repair,
}

/// Returns at most `free` anomalies that need a step. The search begins after `last`, the anomaly that had its turn
/// before, and goes once around, so that the first files by name never keep the others waiting.
pub(super) fn next(
    anomalies: &Anomalies,
    last: Option<&AnomalyRow>,
    free: usize,
    mut judge: impl FnMut(&AnomalyRow) -> Result<Option<RepairStep>, DbError>,
) -> Result<Vec<(AnomalyRow, RepairStep)>, DbError> {
    let mut work = Vec::new();
    if free == 0 {
        return Ok(work);
    }
    let rest = anomalies.rows_after(last)?.map(|row| (row, false));
    let again = anomalies.list_rows()?.map(|row| (row, true));
    for (row, is_again) in rest.chain(again) {
        let row = row?;
        let is_around = is_again && last.is_none_or(|last| place(&row) > place(last));
        if is_around {
            break;
        }
        if let Some(step) = judge(&row)? {
            work.push((row, step));
            if work.len() >= free {
                break;
            }
        }
    }
    Ok(work)
}

/// Returns the place of a row in the table.
fn place(row: &AnomalyRow) -> (&str, &str, String) {
    (
        row.file.as_str(),
        row.replica.as_str(),
        row.filed.slot_key(),
    )
}

/// Returns whether a second look decided about `before`, given the anomalies of the file now: that it was closed, or
/// confirmed.
pub(super) fn is_decided(before: &AnomalyRow, now: &[AnomalyRow]) -> bool {
    let now = now.iter().find(|row| row.filed.id == before.filed.id);
    now.is_none_or(|now| now.filed.confirmed > before.filed.confirmed)
}

#[cfg(test)]
mod tests {
    use archive_daemon::Clock;
    use archive_ledger::admin::Admin;
    use archive_ledger::anomalies::{Filing, Look, LookQuality};
    use archive_model::{AnomalyKind, FileName, Finder, ReplicaId};

    use super::*;

    fn look(quality: LookQuality, is_second: bool) -> Look {
        let found = match quality {
            LookQuality::Listing => vec![AnomalyKind::Missing],
            _ => Vec::new(),
        };
        Look {
            found,
            quality,
            by: Finder::Scrub,
            is_second,
            size: 7,
            place: None,
        }
    }

    struct TurnFixture {
        _directory: tempfile::TempDir,
        anomalies: Anomalies,
        replica: ReplicaId,
    }

    impl TurnFixture {
        fn new(count: usize) -> Self {
            let directory = tempfile::tempdir().unwrap();
            let admin = Admin::init(directory.path()).unwrap();
            let anomalies = Anomalies::open(&admin, Clock::system_clock()).unwrap();
            let fixture = Self {
                _directory: directory,
                anomalies,
                replica: ReplicaId::new("one").unwrap(),
            };
            for number in 0..count {
                fixture.look(&format!("f-{number}"), &look(LookQuality::Listing, false));
            }
            fixture
        }

        fn look(&self, file: &str, look: &Look) {
            let filing = Filing {
                file: &FileName::new(file).unwrap(),
                replica: &self.replica,
                who: "repository/kb",
            };
            self.anomalies.file_look(filing, look).unwrap();
        }

        fn row(&self, file: &str) -> Vec<AnomalyRow> {
            self.anomalies
                .rows_of(&FileName::new(file).unwrap())
                .unwrap()
        }
    }

    /// Fails if rounds always begin with the first by name, or an anomaly is left out or gets two turns at the end of a
    /// round.
    #[test]
    fn every_anomaly_has_a_turn_first() {
        let fixture = TurnFixture::new(7);
        let mut last = None;
        let mut turns = Vec::new();
        for free in [0, 2, 4, 3, 7, 100] {
            let confirm = |_: &AnomalyRow| Ok(Some(RepairStep::Confirm));
            let work = next(&fixture.anomalies, last.as_ref(), free, confirm).unwrap();
            turns.push(
                work.iter()
                    .map(|(row, _)| row.file.to_string())
                    .collect::<String>(),
            );
            last = work.into_iter().map(|(row, _)| row).next_back().or(last);
        }
        let turns: Vec<_> = turns.iter().map(|turn| turn.replace("f-", "")).collect();
        assert_eq!(turns, ["", "01", "2345", "601", "2345601", "2345601"]);
        let nothing = |_: &AnomalyRow| Ok(None);
        assert_eq!(
            next(&fixture.anomalies, last.as_ref(), 4, nothing).unwrap(),
            []
        );
        let seventh = |row: &AnomalyRow| {
            let is_it = row.file.as_str() == "f-6";
            Ok(is_it.then_some(RepairStep::Repair))
        };
        let work = next(&fixture.anomalies, last.as_ref(), 4, seventh).unwrap();
        assert_eq!(work.len(), 1);
    }

    /// Fails if a look during which a part was silent counts as a confirmation.
    #[test]
    fn look_with_silent_part_confirms_nothing() {
        let fixture = TurnFixture::new(1);
        let before = fixture.row("f-0").remove(0);
        fixture.look("f-0", &look(LookQuality::Nothing, true));
        assert!(!is_decided(&before, &fixture.row("f-0")));
        fixture.look("f-0", &look(LookQuality::Listing, true));
        let confirmed = fixture.row("f-0").remove(0);
        assert!(is_decided(&before, std::slice::from_ref(&confirmed)));
        fixture.look("f-0", &look(LookQuality::Nothing, true));
        assert!(!is_decided(&confirmed, &fixture.row("f-0")));
        fixture.look("f-0", &look(LookQuality::Glimpse, true));
        assert!(is_decided(&confirmed, &fixture.row("f-0")), "closed");
    }
}
