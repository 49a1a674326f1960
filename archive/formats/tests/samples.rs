//! Files that other projects publish: they have as many records as their makers say, and as `warcio` sees.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;

use archive_formats::defect::Class;
use archive_formats::warc::{WarcReader, WarcWriter};
use tools_testing::Random;

use crate::files::read;

/// Returns the folder of the samples, and its `MANIFEST.tsv`. Says that the test is skipped where one is missing.
fn samples() -> Option<(PathBuf, String)> {
    let Some(folder) = std::env::var_os("HOLDFAST_SAMPLES").map(PathBuf::from) else {
        tools_testing::skipped("HOLDFAST_SAMPLES names no folder with sample files");
        return None;
    };
    match fs::read_to_string(folder.join("MANIFEST.tsv")) {
        Ok(manifest) => Some((folder, manifest)),
        Err(error) => {
            tools_testing::skipped(&format!("HOLDFAST_SAMPLES has no MANIFEST.tsv: {error}"));
            None
        }
    }
}

/// Reads `{'warcinfo': 2, …}` as a map.
fn counts(text: &str) -> Option<BTreeMap<String, u64>> {
    let inside = text.strip_prefix('{')?.strip_suffix('}')?;
    inside
        .split(", ")
        .map(|pair| {
            let (name, count) = pair.split_once(": ")?;
            Some((name.trim_matches('\'').to_owned(), count.parse().ok()?))
        })
        .collect()
}

/// Fails if a published file gives more or fewer records of a type than `warcio` counts in it.
#[test]
fn records_are_counted_as_by_warcio() {
    let Some((folder, manifest)) = samples() else {
        return;
    };
    let mut files = 0;
    for line in manifest.lines().skip(1) {
        let columns: Vec<_> = line.split('\t').collect();
        let (Some(expected), failed) = (counts(columns[5]), !columns[4].is_empty()) else {
            continue;
        };
        files += 1;
        let mut reader = WarcReader::new(File::open(folder.join(columns[0])).unwrap());
        let mut found = BTreeMap::new();
        while let Some(record) = reader.next_record().unwrap() {
            *found.entry(record.kind().name().to_owned()).or_insert(0) += 1;
            record.read_end().unwrap();
        }
        if failed {
            // `warcio` gave up; we do not.
            let total: u64 = found.values().sum();
            assert!(total >= expected.values().sum(), "{line}: {found:?}");
        } else {
            assert_eq!(found, expected, "{line}");
        }
    }
    assert!(files > 0);
}

/// Fails if a header in a form that only other programs write, and our own test files lack, changes when it is copied.
#[test]
fn published_files_are_copied_byte_for_byte() {
    let Some((folder, manifest)) = samples() else {
        return;
    };
    let mut same = 0;
    let mut refused = Vec::new();
    for line in manifest.lines().skip(1) {
        let columns: Vec<_> = line.split('\t').collect();
        if counts(columns[5]).is_none() {
            continue;
        }
        let bytes = fs::read(folder.join(columns[0])).unwrap();
        let mut inside = Vec::new();
        if bytes.starts_with(&[0x1f, 0x8b]) {
            let decoded = std::io::copy(
                &mut flate2::bufread::MultiGzDecoder::new(bytes.as_slice()),
                &mut inside,
            );
            if decoded.is_err() {
                refused.push(columns[0]);
                continue;
            }
        } else {
            inside.clone_from(&bytes);
        }
        let mut reader = WarcReader::new(bytes.as_slice());
        let mut writer = WarcWriter::plain_writer(Vec::new());
        let mut is_whole = true;
        while let Some(record) = reader.next_record().unwrap() {
            is_whole &= match writer.copy_record(record) {
                Ok((_, end)) => !end
                    .defects
                    .iter()
                    .any(|defect| defect.class == Class::Garbage),
                Err(_) => false,
            };
        }
        if is_whole && reader.take_defects().is_empty() {
            assert!(writer.into_inner() == inside, "{line}");
            same += 1;
        } else {
            refused.push(columns[0]);
        }
    }
    eprintln!("{same} files are the same, not whole: {refused:?}");
    assert!(same > 60);
}

/// Fails if a published file with random damage makes the reader panic, or gives out records out of order.
#[test]
fn damaged_samples_are_read_to_their_end() {
    let Some((folder, manifest)) = samples() else {
        return;
    };
    let mut dice = Random::new(0x51ed_270b_9a3c_5b1d);
    for line in manifest.lines().skip(1) {
        let columns: Vec<_> = line.split('\t').collect();
        let file = fs::read(folder.join(columns[0])).unwrap();
        if counts(columns[5]).is_none() || file.len() > 50_000 {
            continue;
        }
        for _ in 0..300 {
            let mut file = file.clone();
            for _ in 0..=dice.index(4) {
                let at = dice.index(file.len());
                match dice.index(3) {
                    0 => file[at] ^= 1 << dice.index(8),
                    1 => file.truncate(at.max(1)),
                    _ => {
                        let to = (at + dice.index(500)).min(file.len());
                        file.drain(at..to);
                        file.push(0);
                    }
                }
            }
            let (seen, _) = read(&file);
            assert!(seen.is_sorted_by_key(|seen| seen.end.offset), "{line}");
        }
    }
}
