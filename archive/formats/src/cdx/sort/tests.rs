//! Sorting with any memory and any lines, and every way in which it can be ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tools_testing::FullDisk;

use super::*;

/// A deterministic stream of numbers.
fn random(seed: &mut u32) -> usize {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    usize::try_from(*seed).unwrap()
}

fn sorted(lines: &[Vec<u8>], memory: usize, unique: bool) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let mut sorter = Sorter::new(directory.path(), memory);
    if unique {
        sorter = sorter.dropping_duplicates();
    }
    for line in lines {
        sorter.push(line).unwrap();
    }
    let mut out = Vec::new();
    let count = sorter.finish(&mut out).unwrap();
    assert_eq!(count, memchr::memchr_iter(b'\n', &out).count() as u64);
    assert_eq!(
        std::fs::read_dir(directory.path()).unwrap().count(),
        0,
        "nothing is left behind"
    );
    out
}

/// Fails if the granted memory changes the order of lines, `unique` leaves a duplicate, or a temporary file is left
/// behind.
#[test]
fn any_memory_gives_the_order_of_bytes() {
    let mut seed = 7;
    let mut lines: Vec<Vec<u8>> = (0..5000)
        .map(|_| {
            let length = random(&mut seed) % 20;
            (0..length)
                .map(|_| b"ab)\xff \x00"[random(&mut seed) % 6])
                .collect()
        })
        .collect();
    let input = lines.clone();
    lines.sort();
    let mut expected: Vec<u8> = lines
        .iter()
        .flat_map(|l| [l.as_slice(), b"\n"].concat())
        .collect();
    for memory in [0, 1, 100, 1000, 10_000, usize::MAX] {
        assert!(sorted(&input, memory, false) == expected, "{memory}");
    }
    lines.dedup();
    expected = lines
        .iter()
        .flat_map(|l| [l.as_slice(), b"\n"].concat())
        .collect();
    for memory in [0, 100, 1000, usize::MAX] {
        assert!(sorted(&input, memory, true) == expected, "{memory}");
    }
}

/// Fails if an empty line is dropped, or a line that is longer than the granted memory is refused.
#[test]
fn nothing_and_one_line() {
    assert_eq!(sorted(&[], 10, true), b"");
    assert_eq!(sorted(&[vec![]], 10, true), b"\n");
    assert_eq!(sorted(&[vec![b'x'; 100_000]], 10, false).len(), 100_001);
}

/// Fails if a line with a line end in it comes out as two lines.
#[test]
fn a_line_end_within_a_line_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let mut sorter = Sorter::new(directory.path(), 10);
    assert!(matches!(
        sorter.push(b"a\nb"),
        Err(SortError::LineEnd { at: 1 })
    ));
}

/// Fails if the error of a temporary file does not name the directory that was given for it.
#[test]
fn a_directory_that_is_not_there_is_named() {
    let mut sorter = Sorter::new(Path::new("/nowhere/at/all"), 0);
    sorter.push(b"a").unwrap();
    let error = sorter.push(b"b").unwrap_err();
    assert!(error.to_string().contains("/nowhere/at/all"), "{error}");
}

/// Fails if a sort that its caller wants to end continues, in memory or on disk.
#[test]
fn failing_check_ends_sorting() {
    let directory = tempfile::tempdir().unwrap();
    for memory in [0, 1000] {
        let refuse = || Err(io::Error::other("enough"));
        let mut sorter = Sorter::new(directory.path(), memory).with_check(refuse);
        sorter.push(b"a").unwrap();
        let error = match sorter.push(b"b") {
            Ok(()) => sorter.finish(&mut Vec::new()).unwrap_err(),
            Err(error) => error,
        };
        assert!(error.to_string().contains("enough"), "{error}");
    }
}

/// Fails if an error of the output is swallowed, or the temporary directory is blamed for it.
#[test]
fn full_output_is_reported() {
    for memory in [0, 1000] {
        let directory = tempfile::tempdir().unwrap();
        let mut sorter = Sorter::new(directory.path(), memory);
        sorter.push(b"a").unwrap();
        sorter.push(b"b").unwrap();
        assert!(matches!(
            sorter.finish(&mut FullDisk::with_room(0)),
            Err(SortError::Output(_))
        ));
    }
}

/// Fails if temporary files hold more bytes than the caller was asked for, or any although the caller refused.
#[test]
fn sorter_asks_before_it_writes_to_disk() {
    let mut seed = 3;
    let lines: Vec<Vec<u8>> = (0..9000)
        .map(|_| vec![b'x'; random(&mut seed) % 20])
        .collect();
    let bytes: usize = lines.iter().map(|line| line.len() + 1).sum();
    // Each line is a run: runs of runs are merged, too.
    for memory in [0, 100, 10_000] {
        let directory = tempfile::tempdir().unwrap();
        let most = Arc::new(AtomicU64::new(0));
        let asked = Arc::clone(&most);
        let mut sorter = Sorter::new(directory.path(), memory).with_room(move |held| {
            asked.fetch_max(held, Ordering::Relaxed);
            Ok(())
        });
        for line in &lines {
            sorter.push(line).unwrap();
            assert!(sorter.temporary_bytes().unwrap() <= most.load(Ordering::Relaxed));
        }
        sorter.finish(&mut Vec::new()).unwrap();
        let most = usize::try_from(most.load(Ordering::Relaxed)).unwrap();
        assert!(
            (bytes..=2 * bytes).contains(&most),
            "{memory}: {most} of {bytes}"
        );
    }
    // Lines that fit into memory need no disk, and nothing is written that the check refuses.
    for (memory, is_sorted) in [(usize::MAX, true), (10_000, false)] {
        let directory = tempfile::tempdir().unwrap();
        let refuse = |_held| Err(io::Error::other("no room"));
        let mut sorter = Sorter::new(directory.path(), memory).with_room(refuse);
        let pushed = lines.iter().try_for_each(|line| sorter.push(line));
        assert_eq!(sorter.temporary_bytes().unwrap(), 0);
        let finished = pushed.and_then(|()| sorter.finish(&mut Vec::new()));
        assert_eq!(finished.is_ok(), is_sorted, "{memory}: {finished:?}");
    }
}
