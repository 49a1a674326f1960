//! The journal of a mend in place.

use std::path::Path;

use archive_durable::{Journal, JournalWriter, JournaledGroups};
use archive_model::{FileName, Groups, Root};

use super::files::in_file;

/// The longest file that a journal is applied to here, in bytes.
const LONGEST: u64 = 1 << 20;

fn change(size: u64, pairs: &[(u64, u64)]) -> JournaledGroups {
    JournaledGroups {
        name: FileName::new("a.warc.gz").unwrap(),
        size,
        root: Root::from_bytes([7; 32]),
        groups: Groups::try_from(pairs.to_vec()).unwrap(),
    }
}

/// Returns the number of bytes that a change replaces.
fn length(change: &JournaledGroups) -> u64 {
    let ranges = change.groups.byte_ranges(change.size);
    ranges.map(|range| range.end - range.start).sum()
}

/// Returns a whole journal.
fn written(change: &JournaledGroups) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal");
    let mut writer = JournalWriter::create(&path, change).unwrap();
    let bytes: Vec<u8> = (0..length(change)).map(|at| at.to_le_bytes()[0]).collect();
    writer.append(&bytes).unwrap();
    assert!(writer.finish().unwrap().is_some(), "it is whole");
    std::fs::read(path).unwrap()
}

pub(super) fn journal_seeds() -> Vec<Vec<u8>> {
    let small = written(&change(20, &[(0, 1)]));
    let large = written(&change(40_000, &[(0, 1), (2, 3)]));
    let hashless = |whole: &[u8]| [&[1], &whole[..whole.len() - 32]].concat();
    vec![
        [&[0], small.as_slice()].concat(),
        hashless(&small),
        hashless(&large),
        hashless(&written(&change(0, &[(0, 1)]))),
    ]
}

/// Takes an input whose first byte selects: a journal as it stands (0), or one that the hash is added to (1), because a
/// fuzzer finds no hash.
pub(super) fn journal(input: &[u8]) {
    let Some((kind, body)) = input.split_first() else {
        return;
    };
    let mut bytes = body.to_vec();
    if kind & 1 == 1 {
        bytes.extend_from_slice(blake3::hash(body).as_bytes());
    }
    in_file("journal", &bytes, |_, path| {
        let Some(journal) = Journal::open(path).unwrap() else {
            return;
        };
        let change = journal.journaled_groups();
        let (before, hash) = bytes.split_at(bytes.len() - 32);
        assert_eq!(blake3::hash(before).as_bytes(), hash, "its own hash");
        let length = usize::try_from(length(change)).unwrap();
        assert!(length <= before.len(), "no more than there is");
        let text = serde_json::to_vec(change).unwrap();
        assert_eq!(
            serde_json::from_slice::<JournaledGroups>(&text).unwrap(),
            *change
        );
        let cut = in_file("cut", &bytes[..bytes.len() - 1], |_, path| {
            Journal::open(path).unwrap().is_none()
        });
        assert!(cut, "a cut journal is refused");
        if change.size <= LONGEST {
            apply(&journal, &before[before.len() - length..]);
        }
    });
}

/// Applies a journal, which must replace its own bytes and no others.
fn apply(journal: &Journal, mut new: &[u8]) {
    let change = journal.journaled_groups();
    let mut expected = vec![0xaa; 50_000];
    let mended = |_: &Path, path: &Path| {
        journal.apply_to(path).unwrap();
        assert!(journal.is_in(path).unwrap());
        let found = std::fs::read(path).unwrap();
        // It is sealed now.
        std::fs::remove_file(path).unwrap();
        found
    };
    let found = in_file("mended", &expected, mended);
    let size = usize::try_from(change.size).unwrap();
    expected.resize(size, 0);
    for range in change.groups.byte_ranges(change.size) {
        let range = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
        let (bytes, rest) = new.split_at(range.len());
        expected[range].copy_from_slice(bytes);
        new = rest;
    }
    assert!(found == expected, "the file is another");
}
