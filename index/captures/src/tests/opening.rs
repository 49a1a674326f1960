//! An index is opened: new, again, damaged, and with keys of other rules.

use std::fs::{self, OpenOptions as FileOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use archive_formats::cdx::Capture;

use super::{add, answer, capture, empty, everything, of_all, of_file, of_url};
use crate::keys::KeyRules;
use crate::{CaptureIndex, KeyChange, MemoryPlace, OpenIndexError, OpenOptions};

/// Rules by which URLs were keys as they are.
fn plain() -> OpenOptions {
    let mut options = OpenOptions::default();
    options.rules = KeyRules {
        version: 0,
        key: |url| format!("plain:{url}"),
    };
    options
}

/// Fails if an index of older rules is searched by new ones, loses a capture, or does not say that it was changed.
#[test]
fn older_keys_are_made_again() {
    let memory = MemoryPlace::new().unwrap();
    let old = CaptureIndex::open_in_memory(&memory, &plain()).unwrap();
    assert!(old.is_new && old.rekeyed.is_none());
    let captures = old.captures;
    add(&captures, "a", &of_file("a", 5000));
    add(&captures, "hidden", &of_file("hidden", 10));
    captures.withdraw_file("hidden").unwrap();
    let mut import = captures.begin_import("set").unwrap();
    let mut keyless = Capture::new("only,key)/", "20200101000000".parse().unwrap());
    keyless.mime = Some("text/html".to_owned());
    import.push_capture(&keyless).unwrap();
    import.complete_import().unwrap();
    assert!(
        everything(&captures)
            .iter()
            .filter(|c| c.key.starts_with("plain:"))
            .count()
            == 5000
    );
    drop(captures);

    let opened = CaptureIndex::open_in_memory(&memory, &OpenOptions::default()).unwrap();
    let rekeyed = KeyChange {
        from: 0,
        to: 1,
        captures: 5011,
        changed: 5010,
    };
    assert_eq!((opened.rekeyed, opened.is_new), (Some(rekeyed), false));
    let captures = opened.captures;
    let mut expected = super::sorted(of_file("a", 5000));
    expected.push(keyless);
    assert_eq!(everything(&captures), expected);
    captures.reinstate_file("hidden").unwrap();
    let found = answer(&captures, &of_url("http://www.a.dk/3"));
    assert!(found.len() > 700, "{}", found.len());
    captures.withdraw_file("hidden").unwrap();
    drop(captures);

    // And back, and forth again: both tables have been in use.
    let back = CaptureIndex::open_in_memory(&memory, &plain()).unwrap();
    assert_eq!(back.rekeyed.unwrap().changed, 5010);
    drop(back);
    let forth = CaptureIndex::open_in_memory(&memory, &OpenOptions::default()).unwrap();
    assert_eq!(everything(&forth.captures), expected);
    drop(forth);
    let again = CaptureIndex::open_in_memory(&memory, &OpenOptions::default()).unwrap();
    assert_eq!(again.rekeyed, None);
}

/// Fails if a change of keys that was cut off leaves captures of it beside those of the next one.
#[test]
fn cut_off_change_of_keys_begins_anew() {
    let (memory, captures) = empty();
    add(&captures, "a", &of_file("a", 20));
    let shared = &captures.shared;
    let other = shared.database.table(crate::rows::CAPTURES[1]).unwrap();
    let mut batch = shared.database.batch();
    for row in shared.tables.captures.scan().unwrap() {
        let (mut place, packed) = row.unwrap();
        place.key = format!("cut-off:{}", place.key);
        batch.put(&other, &place, &packed).unwrap();
    }
    batch.commit().unwrap();
    drop((other, captures));
    let opened = CaptureIndex::open_in_memory(&memory, &plain()).unwrap();
    assert_eq!(opened.rekeyed.unwrap().captures, 20);
    let all = everything(&opened.captures);
    assert!(all.len() == 20 && all.iter().all(|c| c.key.starts_with("plain:")));
}

/// Returns a closed index on disk with its captures in tables.
fn on_disk(directory: &Path) -> PathBuf {
    let path = directory.join("captures");
    let captures = CaptureIndex::open(&path, &OpenOptions::default().with_memory(8 << 20))
        .unwrap()
        .captures;
    let mut all = Vec::new();
    for number in 0..40_000_u64 {
        let url = format!(
            "http://a.dk/{:x}",
            number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
        );
        all.push(capture(&url, "20200101000000", number));
    }
    add(&captures, "a", &all);
    path
}

fn files(path: &Path, end: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files
        .filter(|file| file.to_str().unwrap().ends_with(end))
        .collect();
    files.sort_by_key(|file| std::cmp::Reverse(fs::metadata(file).unwrap().len()));
    files
}

fn copy(path: &Path, name: &str) -> PathBuf {
    let copy = path.with_file_name(name);
    fs::create_dir(&copy).unwrap();
    for entry in fs::read_dir(path).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
    }
    copy
}

fn flip(file: &Path, position: u64) {
    let mut file = FileOptions::new()
        .read(true)
        .write(true)
        .open(file)
        .unwrap();
    let mut byte = [0];
    file.seek(SeekFrom::Start(position)).unwrap();
    file.read_exact(&mut byte).unwrap();
    file.seek(SeekFrom::Start(position)).unwrap();
    file.write_all(&[byte[0] ^ 0x10]).unwrap();
}

type Damage = fn(&Path);

/// Fails if a damaged index is opened with fewer captures, or does not say what to do.
#[test]
fn damaged_index_is_refused_with_words() {
    let directory = tempfile::tempdir().unwrap();
    let path = on_disk(directory.path());
    let options = OpenOptions::default();
    let damages: [(&str, Damage); 3] = [
        (".sst", |file| fs::remove_file(file).unwrap()),
        (".sst", |file| {
            let length = fs::metadata(file).unwrap().len() / 2;
            FileOptions::new()
                .write(true)
                .open(file)
                .unwrap()
                .set_len(length)
                .unwrap();
        }),
        ("CURRENT", |file| fs::remove_file(file).unwrap()),
    ];
    for (number, (end, deed)) in damages.into_iter().enumerate() {
        let image = copy(&path, &format!("image {number}"));
        deed(&files(&image, end)[0]);
        let error = CaptureIndex::open(&image, &options).unwrap_err();
        assert!(error.is_damage(), "{error}");
        let words = error.to_string();
        for part in [
            "is damaged",
            "delete that directory",
            "imported again",
            "image",
        ] {
            assert!(words.contains(part), "{words}");
        }
        CaptureIndex::destroy(&image).unwrap();
        assert!(CaptureIndex::open(&image, &options).unwrap().is_new);
    }
    let captures = CaptureIndex::open(&path, &options).unwrap().captures;
    assert_eq!(everything(&captures).len(), 40_000);
    let busy = CaptureIndex::open(&path, &options).unwrap_err();
    assert!(
        matches!(busy, OpenIndexError::Database(_)) && !busy.is_damage(),
        "{busy}"
    );
}

/// Fails if a flipped bit makes an answer shorter, or changes it.
#[test]
fn flipped_bit_never_shortens_an_answer() {
    let directory = tempfile::tempdir().unwrap();
    let path = on_disk(directory.path());
    let table = &files(&path, ".sst")[0];
    let length = fs::metadata(table).unwrap().len();
    let mut noticed = 0;
    for number in 0..8 {
        let image = copy(&path, &format!("image {number}"));
        flip(
            &image.join(table.file_name().unwrap()),
            length * number / 8 + 50,
        );
        let Ok(opened) = CaptureIndex::open(&image, &OpenOptions::default()) else {
            noticed += 1;
            continue;
        };
        let captures = opened.captures;
        let mut matches = captures.query_captures(&of_all()).unwrap();
        let good = matches.by_ref().take_while(Result::is_ok).count();
        if good < 40_000 {
            noticed += 1;
            assert!(matches.next().is_none(), "the error is the last item");
            let errors = captures
                .query_captures(&of_all())
                .unwrap()
                .filter(Result::is_err);
            assert_eq!(errors.count(), 1);
        }
        assert_eq!(
            captures.verify().is_err(),
            good < 40_000,
            "verify sees it, too"
        );
    }
    assert!(noticed > 4, "{noticed}");
}
