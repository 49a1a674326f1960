//! Jobs from their seeds to their receipts.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use archive_client::fake::FakeArchive;

use crate::prelude::*;

/// Fails if a file is not in the archive, a local one stays, a receipt is missing, or a document of the crawl is.
#[tokio::test]
async fn job_is_crawled_documented_and_stored() {
    let _disk = DISK.read().await;
    let base = tempfile::tempdir().unwrap();
    let directory = create(base.path(), site().await, "");
    let archive = FakeArchive::new();
    let report = run(
        &directory,
        &environment(Some(Arc::new(archive.clone())), Clock::system_clock()),
    )
    .await;
    assert_eq!((report.status, report.objects), (HarvestJobEnd::Done, 5));
    assert_eq!(report.stop_reason, "Finished");
    assert_eq!(report.domains.len(), 1);
    assert_eq!(report.domains[0].objects, 5);
    let stored: Vec<&str> = report.files.iter().map(|file| file.name.as_str()).collect();
    assert!(stored[0].starts_with("12-34-"), "{stored:?}");
    assert_eq!(stored[1], "12-metadata-1.warc.gz");
    for name in &stored {
        let status = archive.stat(&FileName::new(name).unwrap()).await.unwrap();
        assert!(!status.replicas.is_empty(), "{name}");
        assert!(names(&directory.path_of("receipts")).contains(&format!("{name}.receipt.json")));
    }
    assert_eq!(names(&directory.path_of("warcs")), BTreeSet::new());
    assert_eq!(names(&directory.path_of("metadata")), BTreeSet::new());
    assert_eq!(directory.root().file_name().unwrap(), "12_1795392000000");
}

/// Fails if the metadata file lacks what a later reader needs, or has it in another order.
#[tokio::test]
async fn metadata_file_documents_the_crawl() {
    let _disk = DISK.read().await;
    let base = tempfile::tempdir().unwrap();
    let directory = create(base.path(), site().await, "");
    let report = run(&directory, &environment(None, Clock::system_clock())).await;
    assert!(report.files.iter().all(|file| !file.stored));
    let file = fs::read(directory.path_of("metadata/12-metadata-1.warc.gz")).unwrap();
    let records = records(&file);
    let uris: Vec<&str> = records.iter().map(|(_, uri)| uri.as_str()).collect();
    for part in [
        "crawl/setup/order.toml?",
        "crawl/setup/seeds.txt?",
        "crawl/setup/harvestInfo.xml?",
        "crawl/reports/crawl-report.txt?",
        "crawl/reports/seeds-report.txt?",
        "crawl/reports/archivefiles-report.txt?",
        "crawl/logs/crawl.log?",
        "crawl/logs/progress-statistics.log?",
        "crawl/index/cdx?",
        "crawl/index/captures?",
    ] {
        let count = uris.iter().filter(|uri| uri.contains(part)).count();
        assert_eq!(count, 1, "{part} in {uris:?}");
    }
    assert!(
        uris[1..]
            .iter()
            .all(|uri| uri.starts_with("metadata://example.dk/crawl/"))
    );
    let log = fs::read_to_string(directory.path_of("logs/progress-statistics.log")).unwrap();
    assert!(log.trim_end().ends_with("CRAWL ENDED - Finished"), "{log}");
}

/// Fails if an archive that is down for a while ends a job, or a file is deleted before it is stored.
#[tokio::test]
async fn archive_that_is_down_is_waited_for() {
    let _disk = DISK.read().await;
    let base = tempfile::tempdir().unwrap();
    let directory = create(base.path(), site().await, "");
    let manual = ManualClock::running_from("2026-11-23T00:00:00Z".parse().unwrap());
    let unreliable = Arc::new(UnreliableArchive {
        refusals: AtomicU32::new(3),
        ..UnreliableArchive::new(&directory)
    });
    let environment = environment(
        Some(Arc::clone(&unreliable) as Arc<dyn Ingest>),
        manual.clock(),
    );
    let (_control, requests) = mpsc::unbounded_channel();
    let (progress, _) = watch::channel(CrawlProgress::default());
    let waits = AtomicU32::new(0);
    let stored = AtomicU32::new(0);
    let warcs = directory.path_of("warcs");
    let notify = |notice: JobNotice<'_>| {
        if let JobNotice::Waiting { .. } = notice {
            assert_eq!(names(&warcs).len(), 1);
            waits.fetch_add(1, Ordering::SeqCst);
        } else {
            stored.fetch_add(1, Ordering::SeqCst);
        }
    };
    // The crawl is over when its only file is stored: no fetch is given up for the time that passes here.
    let advance = async {
        loop {
            if waits.load(Ordering::SeqCst) > 0 && stored.load(Ordering::SeqCst) == 0 {
                manual.advance(Duration::from_secs(1));
            }
            tokio::task::yield_now().await;
        }
    };
    let report = tokio::select! {
        report = run_job(&directory, &environment, JobConsole { requests, progress, notify: &notify }) => report.unwrap(),
        () = advance => unreachable!(),
    };
    assert_eq!(report.status, HarvestJobEnd::Done);
    assert_eq!(waits.load(Ordering::SeqCst), 3);
}

/// Fails if a refused file is deleted, or the job passes for done; or if going on with the job crawls or stores
/// anything twice.
#[tokio::test]
async fn refused_file_stays_and_is_stored_later() {
    let _disk = DISK.read().await;
    let base = tempfile::tempdir().unwrap();
    let directory = create(base.path(), site().await, "");
    let unreliable = UnreliableArchive {
        refused: Some("12-34-"),
        ..UnreliableArchive::new(&directory)
    };
    let archive = unreliable.archive.clone();
    let report = run(
        &directory,
        &environment(Some(Arc::new(unreliable)), Clock::system_clock()),
    )
    .await;
    assert_eq!(report.status, HarvestJobEnd::Failed);
    assert!(report.files[0].error.as_ref().unwrap().contains("not you"));
    // Later jobs would take what it names for known.
    let metadata = &report.files[1];
    assert!(!metadata.stored && metadata.error.as_ref().unwrap().contains("not stored yet"));
    assert_eq!(names(&directory.path_of("metadata")).len(), 1);
    assert_eq!(names(&directory.path_of("warcs")).len(), 1);
    let log = fs::read(directory.path_of("logs/crawl.log")).unwrap();
    let directory = JobDirectory::open(directory.root()).unwrap();
    let report = run(
        &directory,
        &environment(Some(Arc::new(archive)), Clock::system_clock()),
    )
    .await;
    assert_eq!((report.status, report.objects), (HarvestJobEnd::Done, 5));
    assert_eq!(names(&directory.path_of("warcs")), BTreeSet::new());
    // Once more: nothing is left to do, and nothing is done.
    let again = run(&directory, &environment(None, Clock::system_clock())).await;
    assert_eq!(again.objects, 5);
    assert_eq!(names(&directory.path_of("metadata")), BTreeSet::new());
    assert_eq!(fs::read(directory.path_of("logs/crawl.log")).unwrap(), log);
}

/// Fails if a request in the directory of a job is not taken, or a wrong one is not named.
#[tokio::test]
async fn requests_in_the_action_directory_are_taken() {
    let _disk = DISK.read().await;
    let base = tempfile::tempdir().unwrap();
    let one = site().await;
    let two = site().await;
    let directory = create(base.path(), one, "");
    let action = directory.path_of("action");
    archive_durable::replace_file(&action.join("more.seeds"), two.as_str().as_bytes()).unwrap();
    archive_durable::replace_file(&action.join("nonsense"), b"x").unwrap();
    let manual = ManualClock::new("2026-11-23T00:00:00Z".parse().unwrap());
    let environment = environment(None, manual.clock());
    let (control, requests) = mpsc::unbounded_channel();
    // The crawl pauses from the start, so that the requests come in time.
    control.send(CrawlCommand::Pause).unwrap();
    let (progress, mut watched) = watch::channel(CrawlProgress::default());
    let taken = AtomicU32::new(0);
    let told = |control: &mpsc::UnboundedSender<CrawlCommand>| {
        if taken.fetch_add(1, Ordering::SeqCst) == 1 {
            control.send(CrawlCommand::Resume).unwrap();
        }
    };
    let notify = |notice: JobNotice<'_>| match notice {
        JobNotice::Action { name, done } => {
            assert_eq!(
                (name, done.starts_with("new seeds: 1;")),
                ("more.seeds", true)
            );
            told(&control);
        }
        JobNotice::ActionRefused { name, .. } => {
            assert_eq!(name, "nonsense");
            told(&control);
        }
        JobNotice::Crawl(_) => {}
        _ => panic!("{notice:?}"),
    };
    // No fetch is under way before both are taken, and none is given up for the time that passes here.
    let advance = async {
        watched
            .wait_for(|progress| progress.is_paused)
            .await
            .unwrap();
        loop {
            if taken.load(Ordering::SeqCst) < 2 {
                manual.advance(Duration::from_secs(1));
            }
            tokio::task::yield_now().await;
        }
    };
    let report = tokio::select! {
        report = run_job(&directory, &environment, JobConsole { requests, progress, notify: &notify }) => report.unwrap(),
        () = advance => unreachable!(),
    };
    assert_eq!(report.objects, 10);
    let done = names(&directory.path_of("done"));
    assert_eq!(done.len(), 3);
    assert!(done.iter().any(|name| name.ends_with("-nonsense.reason")));
    assert_eq!(report.status, HarvestJobEnd::Done);
    assert!(done.iter().any(|name| name.ends_with("-nonsense.refused")));
    assert!(done.iter().any(|name| name.ends_with("-more.seeds")));
}

/// Fails if a password of the order gets into anything but the file that only its owner reads, or stays there when the
/// job is over.
#[tokio::test]
async fn password_stays_in_the_job_file_until_its_end() {
    let _disk = DISK.read().await;
    let base = tempfile::tempdir().unwrap();
    let directory = create(base.path(), site().await, WITH_PASSWORD);
    let has_password = |path: &Path| {
        let bytes = fs::read(path).unwrap();
        bytes.windows(14).any(|window| window == b"hunter2-secret")
    };
    suspend(&directory, &environment(None, Clock::system_clock())).await;
    assert!(has_password(&directory.path_of("job.toml")));
    let resumed = reopened(&directory);
    let report = run(&resumed, &environment(None, Clock::system_clock())).await;
    assert_eq!(report.status, HarvestJobEnd::Done);
    let mut folders = vec![directory.root().to_owned()];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            assert!(!has_password(&path), "{}", path.display());
            seen += 1;
        }
    }
    assert!(seen > 10);
    assert_eq!(reopened(&directory).job().order.credentials.len(), 1);
    let mode = directory
        .path_of("job.toml")
        .metadata()
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}
