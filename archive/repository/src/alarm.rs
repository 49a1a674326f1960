//! Incidents of files, for people: damage, loss, anomalies that wait for people, a brake that holds, files that lag
//! behind.
//!
//! Pure: from anomalies, counts and brakes follow all incidents of now, one for each replica and kind of trouble, never
//! one for each file. The kinds are kept apart, so that a loss is not hidden by damage that is repaired automatically.
//! The notifier owns which incidents were reported before, and how long one must last.

mod watch;

use std::collections::BTreeMap;

use archive_daemon::notify::incident::Problem;
use archive_decisions::repair::policy::Hold;
use archive_ledger::admin::LateFiles;
use archive_ledger::anomalies::AnomalyRow;
use archive_model::{AnomalyKind, FileName, ReplicaId};
use jiff::Timestamp;

pub(crate) use watch::Alarm;

/// The most names in one incident.
const NAMES: usize = 5;

/// The keys of all incidents of files.
const FILED: &str = "anomalies";
const HELD: &str = "repair";
const LATE: &str = "files";

/// The kind of action that an anomaly needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Trouble {
    /// The damage is repaired, automatically or by an officer.
    Damaged,
    /// The damage cannot be repaired.
    Lost,
    /// People must decide what is right.
    Unclear,
}

/// The anomalies of one replica and kind of trouble.
#[derive(Debug, Default)]
struct TroubleTally {
    files: u64,
    kinds: BTreeMap<&'static str, u64>,
    first: Vec<FileName>,
    /// The file that was counted last: a file with several anomalies counts once.
    last: Option<FileName>,
    since: Option<Timestamp>,
}

/// The open anomalies, added up.
#[derive(Debug, Default)]
struct Tallies(BTreeMap<(ReplicaId, Trouble), TroubleTally>);

impl Trouble {
    /// Returns the kind of trouble of an anomaly, or `None` if people need not hear of it.
    const fn from_kind(kind: &AnomalyKind) -> Option<Self> {
        use AnomalyKind as K;
        match kind {
            K::Missing | K::Corrupt(_) | K::Unreadable(_) => Some(Self::Damaged),
            K::Lost(_) => Some(Self::Lost),
            K::Unexpected
            | K::Duplicate(_)
            | K::Conflicting(_)
            | K::Disputed(_)
            | K::Unverified { .. } => Some(Self::Unclear),
            // Incomplete stores are reported as files that lag behind.
            K::Transient | K::Incomplete => None,
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Damaged => "damaged",
            Self::Lost => "lost",
            Self::Unclear => "unclear",
        }
    }
}

impl Tallies {
    /// Adds an anomaly; the anomalies of one file must follow each other.
    fn add(&mut self, row: &AnomalyRow) {
        let filed = &row.filed;
        if row.closed.is_some() || filed.accepted.is_some() {
            return;
        }
        let Some(trouble) = Trouble::from_kind(&filed.kind) else {
            return;
        };
        let tally = self.0.entry((row.replica.clone(), trouble)).or_default();
        *tally.kinds.entry(filed.kind.class().as_str()).or_default() += 1;
        tally.since = Some(tally.since.map_or(filed.since, |at| at.min(filed.since)));
        if tally.last.as_ref() != Some(&row.file) {
            tally.files = tally.files.saturating_add(1);
            tally.last = Some(row.file.clone());
            if tally.first.len() < NAMES {
                tally.first.push(row.file.clone());
            }
        }
    }

    /// Returns the incidents, by their keys.
    fn wrong(&self) -> BTreeMap<String, Problem> {
        let wrong = self.0.iter().map(|((replica, trouble), tally)| {
            let key = format!("{FILED}/{replica}/{}", trouble.word());
            (key, tally.wrong(replica, *trouble))
        });
        wrong.collect()
    }
}

impl TroubleTally {
    fn wrong(&self, replica: &ReplicaId, trouble: Trouble) -> Problem {
        let kinds = self
            .kinds
            .iter()
            .map(|(kind, count)| format!("{count} {kind}"));
        let kinds = kinds.collect::<Vec<_>>().join(", ");
        let of = files(self.files);
        let what = match trouble {
            Trouble::Damaged => format!("{of} of replica {replica} must be repaired: {kinds}"),
            Trouble::Lost => format!(
                "{of} of replica {replica} have lost bytes that are good in no replica: {kinds}"
            ),
            Trouble::Unclear => format!("{of} of replica {replica} wait for people: {kinds}"),
        };
        let advice = match trouble {
            Trouble::Damaged => "`holdfast anomalies` shows what is done about each",
            Trouble::Lost => "find another copy, or accept the loss: `holdfast anomalies`",
            Trouble::Unclear => "`holdfast anomalies` shows what each waits for",
        };
        Problem {
            text: format!("{what}\n{}\n{advice}", names(&self.first, self.files)),
            since: self.since,
        }
    }
}

/// Returns the incidents of brakes that hold repairs.
fn held(brakes: &[(ReplicaId, Hold)]) -> BTreeMap<String, Problem> {
    let held = brakes.iter().map(|(replica, hold)| {
        let text = format!("automatic repairs of replica {replica} are stopped: {hold}");
        (format!("{HELD}/{replica}"), Problem::begun_now(text))
    });
    held.collect()
}

/// Returns the incident of files that are not in every required replica; `below` is their number now.
fn late(late: Option<&LateFiles>, below: u64) -> BTreeMap<String, Problem> {
    let Some(late) = late else {
        return BTreeMap::new();
    };
    // New files are among them, and at least as many as are known by name.
    let known = late.files as u64;
    let count = below.max(known);
    let text = format!(
        "{} not in every required replica; {known} of them for longer than allowed\n{}\n\
         `holdfast status` shows what is offline, `holdfast stat NAME` why a copy failed",
        if count == 1 {
            "1 file is".to_owned()
        } else {
            format!("{count} files are")
        },
        names(&late.first, known),
    );
    let wrong = Problem {
        text,
        since: Some(late.since),
    };
    BTreeMap::from([(format!("{LATE}/below-required"), wrong)])
}

fn files(count: u64) -> String {
    match count {
        1 => "1 file".to_owned(),
        _ => format!("{count} files"),
    }
}

fn names(first: &[FileName], of: u64) -> String {
    let names: Vec<String> = first.iter().map(ToString::to_string).collect();
    let shown = first.len() as u64;
    match of.saturating_sub(shown) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

#[cfg(test)]
mod tests;
