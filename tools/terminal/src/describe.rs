//! The words in which things of the archive are shown to people: damage, gaps, times. Texts of the archive are plain
//! already.

use std::fmt::Write;
use std::ops::Range;

use archive_client::{Drain, FilesToLeave};
use archive_model::{FiledAnomaly, Gap, Groups};
use jiff::Timestamp;

use crate::output::{or_dash, size_text};

/// The most ranges that a line names. All of them are in the JSON document.
const MOST_RANGES: usize = 8;

/// Returns a time as text, in whole seconds and UTC.
pub fn describe_time(at: Timestamp) -> String {
    at.round(jiff::Unit::Second).unwrap_or(at).to_string()
}

/// Returns a time as text, or a dash if it is not known.
pub fn time_or_dash(at: Option<Timestamp>) -> String {
    or_dash(at.map(describe_time).as_ref())
}

/// Returns a gap of an answer as words: `replica two, node n-2: silent`.
pub fn describe_gap(gap: &Gap) -> String {
    let mut said = format!("replica {}", gap.replica);
    for (what, id) in [
        ("node", gap.node.as_ref().map(ToString::to_string)),
        ("volume", gap.volume.as_ref().map(ToString::to_string)),
    ] {
        if let Some(id) = id {
            said = format!("{said}, {what} {id}");
        }
    }
    format!("{said}: {}", gap.reason)
}

/// Returns the progress of a drain as words.
pub fn describe_drain(drain: &Drain) -> String {
    let Drain { replica, node, .. } = drain;
    let (what, verb) = match &drain.volume {
        Some(volume) => (
            format!("volume {volume} of node {node} of replica {replica}"),
            format!("volume retire {volume}"),
        ),
        None => (
            format!("node {node} of replica {replica}"),
            format!("node retire {node}"),
        ),
    };
    let state = match (drain.drained, drain.left) {
        (Some(_), _) => {
            format!("drained; it may be retired: `holdfast {verb} --reason TEXT`")
        }
        (None, None) => "draining; what it has is being counted".to_owned(),
        (None, Some(FilesToLeave { files, bytes })) => {
            format!(
                "draining; {files} file(s), {}, are to leave",
                size_text(bytes)
            )
        }
    };
    match &drain.held {
        None => format!("{what}: {state}"),
        Some(held) => format!("{what}: {state}; {held}"),
    }
}

/// Returns an anomaly in one line: kind, file, replica, what.
pub fn describe_anomaly(anomaly: &FiledAnomaly) -> String {
    let FiledAnomaly {
        kind,
        file,
        replica,
        ..
    } = anomaly;
    let mut line = format!("{kind:<11}  {file}  {replica}  {}", damage(anomaly));
    if let Some(held) = &anomaly.held {
        line = format!("{line} [held: {held}]");
    }
    line.truncate(line.trim_end().len());
    line
}

/// Returns the exact damage as words: groups and their bytes, lost bytes, and what the archive says.
fn damage(anomaly: &FiledAnomaly) -> String {
    let said = &anomaly.what;
    let mut parts = Vec::new();
    if !anomaly.groups.is_empty() {
        let groups = describe_groups(&anomaly.groups);
        let bytes = bytes(anomaly.groups.byte_ranges(anomaly.size));
        parts.push(match bytes.as_str() {
            "" => format!("groups {groups}"),
            bytes => format!("groups {groups} (bytes {bytes})"),
        });
    }
    if !anomaly.lost.is_empty() {
        let lost = anomaly.lost.iter().map(|(start, end)| *start..*end);
        parts.push(format!("bytes {}", bytes(lost)));
    }
    // The archive's text may begin with the kind, and say the same groups or bytes again.
    let (said, is_ours) = match said.strip_prefix(anomaly.kind.as_str()) {
        Some(rest) if rest.is_empty() || rest.starts_with(' ') => (rest.trim_start(), true),
        _ => (said.as_str(), false),
    };
    if !said.is_empty() && (parts.is_empty() || !is_ours) {
        parts.push(said.to_owned());
    }
    parts.join("; ")
}

/// Returns the numbers of groups as `3,7-9`.
pub fn describe_groups(groups: &Groups) -> String {
    list(groups.ranges())
}

/// Returns byte ranges, first and last included: `49152-65535,114688-163839`.
fn bytes(ranges: impl Iterator<Item = Range<u64>>) -> String {
    list(ranges)
}

fn list(ranges: impl Iterator<Item = Range<u64>>) -> String {
    let mut ranges = ranges.filter(|range| range.start < range.end).peekable();
    let mut said = String::new();
    for range in ranges.by_ref().take(MOST_RANGES) {
        let comma = if said.is_empty() { "" } else { "," };
        let first = range.start;
        let last = range.end - 1;
        let added = if first == last {
            write!(said, "{comma}{first}")
        } else {
            write!(said, "{comma}{first}-{last}")
        };
        // Writing into a text cannot fail.
        debug_assert!(added.is_ok());
    }
    let more = ranges.count();
    match more {
        0 => said,
        more => format!("{said} and {more} more ranges"),
    }
}

#[cfg(test)]
mod tests {
    use archive_model::{AnomalyClass, AnomalyState, VolumeName};

    use super::*;
    use crate::testing::filed_anomaly;

    /// Fails if the bytes of the last group are said to go beyond the end of the file, or if a line says its kind of
    /// damage twice.
    #[test]
    fn damage_is_described_in_groups_and_bytes() {
        let groups = Groups::from_iter([3, 7, 8, 9]);
        let corrupt = FiledAnomaly {
            groups,
            ..filed_anomaly(AnomalyClass::Corrupt, AnomalyState::Open)
        };
        let line = "corrupt      a.warc.gz  two  groups 3,7-9 (bytes 49152-65535,114688-159999)";
        assert_eq!(describe_anomaly(&corrupt), line);
        let same = FiledAnomaly {
            what: "corrupt groups 3,7-9".into(),
            ..corrupt.clone()
        };
        assert_eq!(describe_anomaly(&same), line);
        let held = FiledAnomaly {
            what: "on node n-1".into(),
            held: Some("the brake".into()),
            ..corrupt
        };
        assert_eq!(
            describe_anomaly(&held),
            format!("{line}; on node n-1 [held: the brake]")
        );
        let missing = filed_anomaly(AnomalyClass::Missing, AnomalyState::Open);
        assert_eq!(describe_anomaly(&missing), "missing      a.warc.gz  two");
        let words = |kind: AnomalyClass, what: &str| {
            let what = what.to_owned();
            describe_anomaly(&FiledAnomaly {
                what,
                ..filed_anomaly(kind, AnomalyState::Open)
            })
        };
        assert_eq!(
            words(AnomalyClass::Missing, "missing"),
            "missing      a.warc.gz  two"
        );
        let silent = words(AnomalyClass::Unverified, "unverified node n-1");
        assert_eq!(silent, "unverified   a.warc.gz  two  node n-1");
        let lost = FiledAnomaly {
            lost: vec![(16384, 32768), (40000, 40001)],
            ..filed_anomaly(AnomalyClass::Lost, AnomalyState::Open)
        };
        assert_eq!(
            describe_anomaly(&lost),
            "lost         a.warc.gz  two  bytes 16384-32767,40000"
        );
    }

    /// Fails if a thousand damaged groups make a line of a thousand numbers, or damage of a file of unknown size
    /// panics.
    #[test]
    fn damage_without_end_is_a_short_line() {
        let many: Groups = (0..1000).map(|n| n * 2).collect();
        assert_eq!(
            describe_groups(&many),
            "0,2,4,6,8,10,12,14 and 992 more ranges"
        );
        // A size that is not known leaves no bytes, and breaks nothing.
        let unknown = FiledAnomaly {
            groups: many,
            size: 0,
            ..filed_anomaly(AnomalyClass::Unreadable, AnomalyState::Open)
        };
        assert!(describe_anomaly(&unknown).ends_with("and 992 more ranges"));
    }

    /// Fails if a gap names its replica only although the silent node or volume is known, be it by its path.
    #[test]
    fn gaps_name_what_is_silent() {
        let silent = |node: Option<&str>, volume: Option<&str>| Gap {
            replica: "two".parse().unwrap(),
            node: node.map(|id| id.parse().unwrap()),
            volume: volume.map(VolumeName::new),
            reason: "silent".into(),
        };
        assert_eq!(describe_gap(&silent(None, None)), "replica two: silent");
        let all = describe_gap(&silent(Some("n-2"), Some("v")));
        assert_eq!(all, "replica two, node n-2, volume v: silent");
        let disk = describe_gap(&silent(Some("n-2"), Some("/disks/1")));
        assert_eq!(disk, "replica two, node n-2, volume /disks/1: silent");
    }
}
