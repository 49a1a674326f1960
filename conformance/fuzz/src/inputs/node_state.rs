//! The small files of a node: what it was told, what it has removed and why, whose it is.

use std::path::Path;

use archive_bitarchive::attic::{self, AtticId, AtticItemKind, AtticReason};
use archive_bitarchive::brake::Brake;
use archive_bitarchive::checksum::table::ChecksumTableLabel;
use archive_bitarchive::checksum::{RemovedRow, append_removed_row, removed_lines};
use archive_bitarchive::scrub::orders::StoredOrders;
use archive_bitarchive::{Layout, NodeError};
use archive_model::{FileName, Mode, Root, VolumeId};
use jiff::{SignedDuration, Timestamp};

use super::super::inputs::files::in_file;
use super::super::inputs::words::same;

/// A function that takes a file, and files that are good.
type Format = (fn(&[u8]), &'static [&'static str]);

const FORMATS: [Format; 6] = [
    (
        why,
        &[
            r#"{"format":"holdfast-attic/1","name":"a.warc.gz","at":"2026-01-02T03:04:05Z","who":"officer/anna","why":"it rots","kind":"groups"}"#,
            r#"{"format":"holdfast-attic/1","name":"a","at":"2026-01-02T03:04:05.678Z","who":"n","why":"","kind":"leftover"}"#,
        ],
    ),
    (
        scrub,
        &[
            r#"{"format":"holdfast-scrub/1","paused_until":"2026-01-02T03:04:05Z","bytes_per_second":7,"unknown_since":"2026-01-02T03:04:05Z"}"#,
            r#"{"format":"holdfast-scrub/1"}"#,
        ],
    ),
    (
        removals,
        &[
            r#"{"format":"holdfast-removals/1","at":["2026-01-01T23:59:05Z","2026-01-02T03:04:05Z"]}"#,
            r#"{"format":"holdfast-removals/1","at":[]}"#,
        ],
    ),
    (
        label,
        &[r#"{"format":"holdfast-checksum-replica/2","node":"n-1","replica":"two"}"#],
    ),
    (
        removed,
        &[concat!(
            r#"{"at":"2026-01-02T03:04:05Z","name":"a","size":7,"root":"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff","stored":"2026-01-01T00:00:00Z","who":"officer/anna","why":"no\nmore","admission":"{}"}"#,
            "\n",
            r#"{"at":"2026-01-02T03:04:05Z","name":"#,
            "\n",
            r#"{"at":"2026-01-02T03:04:05Z","name":"b","size":0,"root":"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff","stored":"2026-01-01T00:00:00Z","who":"o","why":"w","admission":null}"#,
            "\n",
        )],
    ),
    (words, &["read-only", "20260101T000000Z-0a-1"]),
];

pub(super) fn node_state_seeds() -> Vec<Vec<u8>> {
    let formats = (0..).zip(FORMATS);
    let seeds = formats.flat_map(|(kind, (_, texts))| {
        let texts = texts.iter();
        texts.map(move |text| [&[kind], text.as_bytes()].concat())
    });
    seeds.collect()
}

/// Takes an input whose first byte selects the file; behind it is the content.
pub(super) fn node_state(input: &[u8]) {
    if let Some((kind, text)) = input.split_first() {
        FORMATS[usize::from(*kind) % FORMATS.len()].0(text);
    }
}

/// Returns a time at which everything in the seeds has just been.
fn now() -> Timestamp {
    "2026-01-02T00:30:00Z".parse().unwrap()
}

/// Returns a document without its end.
fn cut(text: &[u8]) -> &[u8] {
    let text = text.trim_ascii_end();
    &text[..text.len().saturating_sub(1)]
}

fn why(text: &[u8]) {
    const PLACE: &str = "20260102T030405Z-x";
    let look = |text: &[u8]| {
        in_file(&format!("attic/{PLACE}/why.json"), text, |directory, _| {
            let layout = Layout::new(directory);
            let volume = VolumeId::new("v1").unwrap();
            let listed = attic::list_items(&layout, &volume).unwrap();
            assert_eq!(listed.len(), 1, "nothing is hidden");
            attic::read_item(&layout, &listed[0])
        })
    };
    let item = look(text);
    assert_eq!((item.id.as_str(), item.bytes), (PLACE, 0));
    let read = serde_json::from_slice::<AtticReason>(text).ok();
    let Some(reason) = read.filter(|reason| reason.format == "holdfast-attic/1") else {
        assert!(item.damaged.is_some() && item.name.is_none());
        assert_eq!(
            item.kind,
            AtticItemKind::Leftover,
            "what is odd is for people"
        );
        return;
    };
    assert_eq!(item.damaged, None);
    let name = Some(reason.name.clone());
    assert_eq!((item.name, item.at), (name, reason.at));
    assert_eq!(
        (item.who, item.why),
        (reason.who.clone(), reason.why.clone())
    );
    assert_eq!(item.kind, reason.kind);
    let again = serde_json::to_vec_pretty(&reason).unwrap();
    assert_eq!(
        serde_json::from_slice::<AtticReason>(&again).unwrap(),
        reason
    );
    assert!(look(cut(text)).damaged.is_some(), "a cut one");
}

fn scrub(text: &[u8]) {
    let longest = SignedDuration::from_hours(24);
    in_file("scrub.json", text, |directory, path| {
        let first = StoredOrders::read_orders(directory, now());
        let until = first.paused_until.unwrap_or(Timestamp::MIN);
        assert!(until <= now().checked_add(longest).unwrap(), "no longer");
        first.write_orders(directory).unwrap();
        let again = StoredOrders::read_orders(directory, now());
        assert_eq!(
            (
                again.paused_until,
                again.bytes_per_second,
                again.unknown_since
            ),
            (
                first.paused_until,
                first.bytes_per_second,
                first.unknown_since
            )
        );
        let written = std::fs::read(path).unwrap();
        let cut = in_file("scrub.json", cut(&written), |directory, _| {
            StoredOrders::read_orders(directory, now())
        });
        assert_eq!(cut, StoredOrders::default(), "a cut one orders nothing");
    });
}

fn removals(text: &[u8]) {
    const MOST: u64 = 3;
    in_file("removals.json", text, |directory, path| {
        let count = || Brake::new(directory, MOST).count_removal(now());
        let is_damaged = matches!(count(), Err(NodeError::Removals { .. }));
        if is_damaged {
            assert!(matches!(count(), Err(NodeError::Removals { .. })));
            assert_eq!(std::fs::read(path).unwrap(), text, "it stays as it was");
            return;
        }
        let passed = (0..=MOST).filter(|_| count().is_ok()).count() as u64;
        assert!(passed < MOST, "one has passed or was refused before");
        assert!(matches!(count(), Err(NodeError::TooManyRemovals { .. })));
        let written = std::fs::read(path).unwrap();
        in_file("removals.json", cut(&written), |_, _| {
            assert!(matches!(count(), Err(NodeError::Removals { .. })));
        });
    });
}

fn label(text: &[u8]) {
    in_file("holdfast-checksum-replica.json", text, |directory, path| {
        let Ok(read) = ChecksumTableLabel::read_label(directory) else {
            return;
        };
        let read = read.unwrap();
        read.write_label(directory).unwrap();
        assert_eq!(
            ChecksumTableLabel::read_label(directory).unwrap(),
            Some(read)
        );
        let written = std::fs::read(path).unwrap();
        in_file("holdfast-checksum-replica.json", cut(&written), |_, _| {
            assert!(
                ChecksumTableLabel::read_label(directory).is_err(),
                "a cut one"
            );
        });
    });
}

/// Returns the lines that can be read, each in its place.
fn lines(directory: &Path) -> Vec<Option<RemovedRow>> {
    let lines = removed_lines(directory).unwrap();
    lines.map(Result::ok).collect()
}

fn removed(text: &[u8]) {
    in_file("removed.jsonl", text, |directory, path| {
        let before = lines(directory);
        let most = text.split_inclusive(|byte| *byte == b'\n').count();
        assert_eq!(before.len(), most, "each line once");
        for line in before.iter().flatten() {
            let again = serde_json::to_vec(line).unwrap();
            assert_eq!(serde_json::from_slice::<RemovedRow>(&again).unwrap(), *line);
        }
        let line = RemovedRow {
            at: now(),
            name: FileName::new("new").unwrap(),
            size: u64::MAX,
            root: Root::from_bytes([9; 32]),
            stored: Timestamp::MIN,
            who: "officer/b".to_owned(),
            why: "\n\0".to_owned(),
            admission: None,
            approval: None,
        };
        append_removed_row(path, &line).unwrap();
        let after = lines(directory);
        let (last, others) = after.split_last().unwrap();
        assert_eq!(last.as_ref(), Some(&line), "apart from what was torn");
        assert_eq!(others, before, "nothing else has changed");
    });
}

fn words(text: &[u8]) {
    let Ok(text) = str::from_utf8(text) else {
        return;
    };
    same::<Mode>(text);
    if let Ok(id) = AtticId::new(text) {
        assert_eq!(id.as_str(), text);
        assert!(Path::new(text).components().count() == 1, "one directory");
    }
}
