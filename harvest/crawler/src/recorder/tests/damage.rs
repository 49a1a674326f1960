//! Crawls whose state is damaged: they are refused, and nothing is changed.

use std::collections::BTreeMap;
use std::fs;

use super::*;

/// Returns all files of a directory that a crawl must not lose, with their content.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for folder in ["logs", "warcs"] {
        for name in directory::list_names(&directory.join(folder)).unwrap() {
            let path = directory.join(folder).join(name);
            found.insert(path.clone(), fs::read(path).unwrap());
        }
    }
    found
}

/// Returns a crawl that was ended in order, with two of five URIs recorded.
fn begun() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let (mut recorder, _) = open(directory.path());
    schedule(&mut recorder, 5);
    for _ in 0..2 {
        let lease = lease(&mut recorder).unwrap();
        recorder.record_batch(vec![finished(lease)]).unwrap();
    }
    recorder.sync_files().unwrap();
    directory
}

/// Asserts that a crawl is refused, by the name of a file, and that nothing of it is changed.
fn assert_refused(directory: &Path, named: &str) {
    let before = contents(directory);
    let error = try_open(directory).unwrap_err();
    assert!(error.is_damage(), "{error:?}");
    assert!(error.to_string().contains(named), "{error}");
    assert_eq!(contents(directory), before);
}

fn archive_file(directory: &Path) -> PathBuf {
    let names = directory::list_names(&directory.join("warcs")).unwrap();
    directory.join("warcs").join(names.first().unwrap())
}

/// Fails if a crawl continues with a log or an archive file that has lost durable bytes, or fills them up.
#[test]
fn shortened_file_is_refused() {
    for is_gone in [false, true] {
        for kind in ["crawl.log", ".open"] {
            let directory = begun();
            let path = match kind {
                "crawl.log" => directory.path().join("logs").join(CRAWL_LOG),
                _ => archive_file(directory.path()),
            };
            let length = path.metadata().unwrap().len();
            if is_gone {
                fs::remove_file(&path).unwrap();
            } else {
                AppendFile::open(&path).unwrap().cut(length - 1).unwrap();
            }
            assert_refused(directory.path(), kind);
        }
    }
}

/// Fails if a crawl that has lost its frontier begins anew over its files.
#[test]
fn lost_frontier_is_refused() {
    let directory = begun();
    fs::remove_dir_all(directory.path().join("state")).unwrap();
    assert_refused(directory.path(), "state");
}

/// Fails if a frontier is resumed that is older than its archive file.
#[test]
fn older_frontier_is_refused() {
    let directory = begun();
    let copy = directory.path().join("copy");
    fs::create_dir(&copy).unwrap();
    for name in directory::list_names(&directory.path().join("state")).unwrap() {
        fs::copy(directory.path().join("state").join(&name), copy.join(&name)).unwrap();
    }
    let (mut recorder, _) = open(directory.path());
    let lease = lease(&mut recorder).unwrap();
    recorder.record_batch(vec![finished(lease)]).unwrap();
    recorder.close_file().unwrap();
    drop(recorder);
    fs::remove_dir_all(directory.path().join("state")).unwrap();
    #[expect(clippy::disallowed_methods, reason = "the test is the only user")]
    fs::rename(&copy, directory.path().join("state")).unwrap();
    assert_refused(directory.path(), "older");
}

/// Fails if a crawl continues with a frontier in whose tables a byte has changed.
#[test]
fn flipped_byte_of_frontier_is_refused() {
    let directory = begun();
    // What is in the log comes into a table when it is opened again.
    drop(open(directory.path()));
    let state = directory.path().join("state");
    let names = directory::list_names(&state).unwrap();
    let tables = names
        .iter()
        .filter(|name| name.to_string_lossy().ends_with(".sst"));
    let tables: Vec<PathBuf> = tables.map(|name| state.join(name)).collect();
    assert!(!tables.is_empty(), "{names:?}");
    for table in tables {
        let whole = fs::read(&table).unwrap();
        let mut flipped = whole.clone();
        flipped[whole.len() / 4] ^= 0x10;
        archive_durable::replace_file(&table, &flipped).unwrap();
        assert_refused(directory.path(), "state");
        archive_durable::replace_file(&table, &whole).unwrap();
    }
    drop(open(directory.path()));
}

/// Fails if a frontier whose log has lost its end, or is missing, passes for one that was never written.
#[test]
fn cut_log_of_frontier_is_refused() {
    for quarters in 0..3 {
        let directory = begun();
        let state = directory.path().join("state");
        let names = directory::list_names(&state).unwrap();
        let logs = names
            .iter()
            .filter(|name| name.to_string_lossy().ends_with(".log"));
        let logs: Vec<PathBuf> = logs.map(|name| state.join(name)).collect();
        let newest = logs.iter().max().unwrap();
        let length = newest.metadata().unwrap().len();
        let kept = length / 4 * quarters;
        AppendFile::open(newest).unwrap().cut(kept).unwrap();
        assert_refused(directory.path(), "state");
    }
}
