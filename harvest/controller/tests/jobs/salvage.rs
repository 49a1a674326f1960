//! Files that a dead process has left, and files that somebody else has damaged.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use archive_durable::AppendFile;
use parking_lot::Mutex;

use crate::prelude::*;

/// Takes the frontier away, as a broken disk does.
fn lose_frontier(directory: &JobDirectory) {
    archive_durable::directory::move_new(
        &directory.path_of("state"),
        &directory.path_of("lost-state"),
    )
    .unwrap();
}

fn write(path: &Path, bytes: &[u8]) {
    archive_durable::replace_file(path, bytes).unwrap();
}

/// Runs a job; returns its report, and its notices as `name: what`.
async fn run_with_notices(
    directory: &JobDirectory,
    environment: &JobEnvironment,
) -> (JobReport, Vec<String>) {
    let words = Mutex::new(Vec::new());
    let notify = |notice: JobNotice<'_>| {
        let said = match notice {
            JobNotice::Salvaged { name, what } => format!("{name}: {what}"),
            JobNotice::NotStored { name, why } => format!("{name}: {why}"),
            _ => return,
        };
        words.lock().push(said);
    };
    let report = try_run(directory, environment, &notify).await.unwrap();
    (report, words.into_inner())
}

/// Suspends a job that has fetched something, and takes its frontier away.
async fn job_without_frontier(
    base: &Path,
) -> (JobDirectory, Arc<UnreliableArchive>, JobEnvironment) {
    let directory = create(base, site().await, "limits.max_fetches = 1");
    let unreliable = Arc::new(UnreliableArchive::new(&directory));
    let environment = environment_with(&unreliable);
    suspend(&directory, &environment).await;
    lose_frontier(&directory);
    (directory, unreliable, environment)
}

/// Fails if a crawl whose frontier is lost throws away what it has recorded, passes for done, or begins anew.
#[tokio::test]
async fn lost_frontier_ends_job_with_what_it_has() {
    let _disk = DISK.read().await;
    let base = tempfile::tempdir().unwrap();
    let (directory, unreliable, environment) = job_without_frontier(base.path()).await;
    let open = only(&directory.path_of("warcs"));
    // The process died within a record and within a line.
    AppendFile::open(&open)
        .unwrap()
        .append(&fs::read(&open).unwrap()[..99])
        .unwrap();
    let log = directory.path_of("logs/crawl.log");
    let lines = fs::read(&log).unwrap();
    AppendFile::open(&log)
        .unwrap()
        .append(b"2026-11-23T00:00")
        .unwrap();
    let directory = reopened(&directory);
    let (report, words) = run_with_notices(&directory, &environment).await;
    assert_eq!(report.status, HarvestJobEnd::Failed);
    assert_eq!(report.stop_reason, "Finished - Abnormal exit from crawling");
    assert!(
        words[0].ends_with("was cut behind its last whole record, and closed"),
        "{words:?}"
    );
    assert!(
        words[1].starts_with("state: the frontier is lost"),
        "{words:?}"
    );
    assert!(report.files.iter().all(|file| file.stored), "{report:?}");
    assert_eq!(fs::read(&log).unwrap(), lines);
    let logged = String::from_utf8(lines).unwrap();
    let logged = logged
        .lines()
        .map(|line| line.split_ascii_whitespace().nth(3).unwrap());
    let mut logged: Vec<&str> = logged.filter(|uri| uri.starts_with("http")).collect();
    logged.sort_unstable();
    assert_eq!(unreliable.responses(), logged);
    // The job stays ended.
    let again = run(&reopened(&directory), &environment).await;
    assert_eq!(again, report);
}

/// Fails if an open file that is damaged before its end is cut there, deleted or stored.
#[tokio::test]
async fn open_file_damaged_inside_becomes_invalid() {
    let _disk = DISK.read().await;
    let base = tempfile::tempdir().unwrap();
    let (directory, unreliable, environment) = job_without_frontier(base.path()).await;
    let open = only(&directory.path_of("warcs"));
    let mut bytes = fs::read(&open).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x55;
    bytes[middle + 1] ^= 0x55;
    write(&open, &bytes);
    let (report, words) = run_with_notices(&reopened(&directory), &environment).await;
    assert!(
        words[0].ends_with("was set aside as `.invalid`"),
        "{words:?}"
    );
    assert_eq!(report.status, HarvestJobEnd::Failed);
    let aside = only(&directory.path_of("warcs"));
    assert_eq!(aside.extension().unwrap(), "invalid");
    assert_eq!(fs::read(&aside).unwrap(), bytes);
    let error = report.files[0].error.as_ref().unwrap();
    assert!(error.starts_with("damaged: it lies in `warcs`"), "{error}");
    assert_eq!(unreliable.responses(), Vec::<String>::new());
}

/// Fails if a closed file that was damaged on the disk is stored as if it were whole, or the others are not.
#[tokio::test]
async fn damaged_closed_file_is_set_aside() {
    let _disk = DISK.read().await;
    let base = tempfile::tempdir().unwrap();
    let order = "limits.max_fetches = 1\nfiles.max_size = \"1 kB\"";
    let directory = create(base.path(), site().await, order);
    let nowhere = environment(None, Clock::system_clock());
    let report = run(&directory, &nowhere).await;
    assert!(report.files.len() > 3, "{report:?}");
    let name = report.files[1].name.clone();
    let path = directory.path_of("warcs").join(&name);
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x55;
    write(&path, &bytes);
    // As if the process had died before it was indexed, and before anything was documented.
    for gone in [
        directory.path_of("index").join(format!("{name}.json")),
        directory.path_of("metadata.json"),
        directory.path_of("metadata/12-metadata-1.warc.gz"),
    ] {
        archive_durable::directory::remove_name(&gone).unwrap();
    }
    let unreliable = Arc::new(UnreliableArchive::new(&directory));
    let storing = environment_with(&unreliable);
    let (report, words) = run_with_notices(&reopened(&directory), &storing).await;
    assert!(
        words[0].contains("it is damaged") && words[0].contains("offset"),
        "{words:?}"
    );
    assert_eq!(report.status, HarvestJobEnd::Failed);
    for file in &report.files {
        let is_damaged = file.name == format!("{name}.invalid");
        assert_eq!(file.stored, !is_damaged, "{file:?}");
    }
    assert_eq!(names(&directory.path_of("warcs")).len(), 1);
    let metadata = unreliable.files.lock()["12-metadata-1.warc.gz"].clone();
    assert!(
        !records(&metadata)
            .iter()
            .any(|(_, uri)| uri.contains(&name))
    );
}

fn environment_with(unreliable: &Arc<UnreliableArchive>) -> JobEnvironment {
    environment(
        Some(Arc::clone(unreliable) as Arc<dyn Ingest>),
        Clock::system_clock(),
    )
}

/// Fails if a file that is not of the job is stored with it, or deleted.
#[tokio::test]
async fn foreign_files_are_moved_away() {
    let _disk = DISK.read().await;
    let base = tempfile::tempdir().unwrap();
    let directory = create(base.path(), site().await, "");
    for foreign in ["99-34-x.warc.gz", "notes.txt", "12-345-x.warc.gz.open"] {
        write(&directory.path_of("warcs").join(foreign), b"mine");
    }
    let unreliable = Arc::new(UnreliableArchive::new(&directory));
    let (report, words) = run_with_notices(&directory, &environment_with(&unreliable)).await;
    assert_eq!(report.status, HarvestJobEnd::Done);
    assert_eq!(report.files.len(), 2);
    assert_eq!(words.len(), 3);
    assert_eq!(names(&directory.path_of("lost-files")).len(), 3);
    assert_eq!(
        fs::read(directory.path_of("lost-files/notes.txt")).unwrap(),
        b"mine"
    );
}

/// Fails if what a process has left of a metadata file that it was writing gets into the one that is stored.
#[tokio::test]
async fn half_written_metadata_file_is_written_anew() {
    let _disk = DISK.read().await;
    let base = tempfile::tempdir().unwrap();
    let directory = create(base.path(), site().await, "");
    write(
        &directory.path_of("metadata/12-metadata-1.warc.gz.open"),
        &vec![7; 100_000],
    );
    let unreliable = Arc::new(UnreliableArchive::new(&directory));
    let report = run(&directory, &environment_with(&unreliable)).await;
    assert_eq!(report.status, HarvestJobEnd::Done);
    let metadata = unreliable.files.lock()["12-metadata-1.warc.gz"].clone();
    assert!(records(&metadata).len() > 10);
    assert_eq!(names(&directory.path_of("metadata")).len(), 0);
    assert!(!directory.path_of("state").try_exists().unwrap());
}
