//! Archives that are down, refuse, or lie; and the outcome of a crawl, which is kept before any of that.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use archive_client::fake::FakeArchive;

use crate::prelude::*;

/// Fails if a job that is suspended while its archive is down hangs, or crawls again when it goes on; or if its report
/// then leaves out a file.
#[tokio::test]
async fn suspended_upload_never_crawls_again() {
    let _disk = DISK.read().await;
    let base = tempfile::tempdir().unwrap();
    let (seed, asked) = site_that_counts().await;
    let directory = create(base.path(), seed, "files.max_size = \"1 MB\"");
    let unreliable = Arc::new(UnreliableArchive {
        refusals: AtomicU32::new(u32::MAX),
        ..UnreliableArchive::new(&directory)
    });
    let down = environment(
        Some(Arc::clone(&unreliable) as Arc<dyn Ingest>),
        Clock::system_clock(),
    );
    let (control, requests) = mpsc::unbounded_channel();
    let (progress, _) = watch::channel(CrawlProgress::default());
    let notify = |notice: JobNotice<'_>| {
        if let JobNotice::Waiting { .. } = notice {
            control.send(CrawlCommand::Suspend).unwrap();
        }
    };
    let report = run_job(
        &directory,
        &down,
        JobConsole {
            requests,
            progress,
            notify: &notify,
        },
    )
    .await
    .unwrap();
    assert_eq!(report.status, HarvestJobEnd::Suspended);
    assert_eq!(report.stop_reason, "Finished");
    assert!(
        report
            .files
            .iter()
            .all(|file| !file.stored && file.error.is_none())
    );
    let log = fs::read(directory.path_of("logs/crawl.log")).unwrap();
    let before = asked.load(Ordering::SeqCst);
    unreliable.refusals.store(0, Ordering::SeqCst);
    let directory = reopened(&directory);
    let report = run(&directory, &down).await;
    assert_eq!((report.status, report.objects), (HarvestJobEnd::Done, 5));
    assert_eq!(asked.load(Ordering::SeqCst), before);
    assert_eq!(fs::read(directory.path_of("logs/crawl.log")).unwrap(), log);
    let stored: Vec<&str> = report.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(stored.len(), 2);
    assert!(report.files.iter().all(|file| file.stored && file.size > 0));
    // Nothing is left to do, and the report still names all files with their sizes.
    let again = run(&reopened(&directory), &down).await;
    assert_eq!(again.files, report.files);
    assert_eq!(again.domains, report.domains);
    assert_eq!(unreliable.responses().len(), 6);
}

/// Fails if an archive file that has changed on the disk while it waited for the archive is stored, or that is not said,
/// or the files beside it and the metadata are not stored.
#[tokio::test]
async fn file_that_changed_since_it_was_closed_is_set_aside() {
    let _disk = DISK.read().await;
    let base = tempfile::tempdir().unwrap();
    let directory = create(base.path(), site().await, "");
    let unreliable = UnreliableArchive {
        refused: Some("12-"),
        ..UnreliableArchive::new(&directory)
    };
    let archive = unreliable.archive.clone();
    let refusing = environment(Some(Arc::new(unreliable)), Clock::system_clock());
    assert_eq!(
        run(&directory, &refusing).await.status,
        HarvestJobEnd::Failed
    );
    let flip = |folder: &str| {
        let name = names(&directory.path_of(folder)).pop_first().unwrap();
        let path = directory.path_of(folder).join(&name);
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        archive_durable::replace_file(&path, &bytes).unwrap();
        name
    };
    let name = flip("warcs");
    let metadata = flip("metadata");
    let told = parking_lot::Mutex::new(Vec::new());
    let notify = |notice: JobNotice<'_>| {
        if let JobNotice::NotStored { name, why } = notice {
            told.lock().push(format!("{name}: {why}"));
        }
    };
    let good = environment(Some(Arc::new(archive.clone())), Clock::system_clock());
    let report = try_run(&reopened(&directory), &good, &notify)
        .await
        .unwrap();
    assert_eq!(report.status, HarvestJobEnd::Failed);
    let told = told.into_inner();
    assert!(
        told.len() == 1 && told[0].contains("others than those it was closed with"),
        "{told:?}"
    );
    let aside = format!("{name}.invalid");
    assert_eq!(
        names(&directory.path_of("warcs")),
        BTreeSet::from([aside.clone()])
    );
    // What documents the crawl is made again, and names no capture of the file.
    let stored: Vec<(String, bool)> = report
        .files
        .into_iter()
        .map(|file| (file.name, file.stored))
        .collect();
    assert_eq!(stored, [(aside, false), (metadata.clone(), true)]);
    assert!(archive.stat(&name.parse().unwrap()).await.is_err());
    assert!(archive.stat(&metadata.parse().unwrap()).await.is_ok());
}

/// Fails if a receipt for other bytes passes for the one of a file: the file would be deleted.
#[tokio::test]
async fn receipt_for_other_bytes_is_refused() {
    let _disk = DISK.read().await;
    let base = tempfile::tempdir().unwrap();
    let directory = create(base.path(), site().await, "");
    let liar = UnreliableArchive {
        lies: true,
        ..UnreliableArchive::new(&directory)
    };
    let report = run(
        &directory,
        &environment(Some(Arc::new(liar)), Clock::system_clock()),
    )
    .await;
    assert_eq!(report.status, HarvestJobEnd::Failed);
    let expected = ["the receipt of the archive is for", "not stored yet"];
    for (file, expected) in report.files.iter().zip(expected) {
        let error = file.error.as_ref().unwrap();
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(names(&directory.path_of("warcs")).len(), 1);
    assert_eq!(names(&directory.path_of("metadata")).len(), 1);
    assert_eq!(names(&directory.path_of("receipts")).len(), 0);
}

/// Fails if a name that the archive has with other content, which is found out only when the file is stored, is waited
/// for, or the document of the crawl can never be stored.
#[tokio::test]
async fn metadata_whose_name_is_taken_gets_the_next_one() {
    let _disk = DISK.read().await;
    let base = tempfile::tempdir().unwrap();
    let seed = site().await;
    let archive = FakeArchive::new();
    let one = base.path().join("one");
    let two = base.path().join("two");
    let clock = Clock::system_clock;
    run(
        &create(&one, seed.clone(), ""),
        &environment(Some(Arc::new(archive.clone())), clock()),
    )
    .await;
    // A second job that says it is the first one, while the archive does not say what it has.
    let second = create(&two, seed, "");
    let unreliable = UnreliableArchive {
        archive: archive.clone(),
        is_blind: true,
        ..UnreliableArchive::new(&second)
    };
    let report = run(&second, &environment(Some(Arc::new(unreliable)), clock())).await;
    assert_eq!(report.status, HarvestJobEnd::Failed);
    assert!(report.files[0].stored, "{report:?}");
    let report = run(
        &reopened(&second),
        &environment(Some(Arc::new(archive)), clock()),
    )
    .await;
    assert_eq!(report.status, HarvestJobEnd::Done);
    assert_eq!(report.files.last().unwrap().name, "12-metadata-2.warc.gz");
}

/// Fails if each file of a job waits anew for an archive that is down, or the job does not end.
#[tokio::test]
async fn patience_is_that_of_the_whole_job() {
    let _disk = DISK.read().await;
    let base = tempfile::tempdir().unwrap();
    let directory = create(base.path(), site().await, "");
    let unreliable = UnreliableArchive {
        refusals: AtomicU32::new(u32::MAX),
        ..UnreliableArchive::new(&directory)
    };
    let manual = ManualClock::running_from("2026-11-23T00:00:00Z".parse().unwrap());
    let environment = environment(Some(Arc::new(unreliable)), manual.clock());
    let waits = AtomicU32::new(0);
    let notify = |notice: JobNotice<'_>| {
        if let JobNotice::Waiting { .. } = notice {
            waits.fetch_add(1, Ordering::SeqCst);
        }
    };
    let advance = async {
        loop {
            // Time passes once the crawl and its documentation are over: no fetch is given up for it.
            if directory.path_of("metadata.json").try_exists().unwrap() {
                manual.advance(Duration::from_secs(10));
            }
            tokio::task::yield_now().await;
        }
    };
    let report = tokio::select! {
        report = try_run(&directory, &environment, &notify) => report.unwrap(),
        () = advance => unreachable!(),
    };
    assert_eq!(report.status, HarvestJobEnd::Failed);
    assert_eq!(report.files.len(), 2);
    for (file, expected) in report
        .files
        .iter()
        .zip(["nobody answers", "not stored yet"])
    {
        assert!(file.error.as_ref().unwrap().contains(expected), "{file:?}");
    }
    // Pauses of 5 seconds to 5 minutes fill an hour: 17 of them, once.
    let waits = waits.load(Ordering::SeqCst);
    assert!((4..25).contains(&waits), "{waits}");
    assert_eq!(names(&directory.path_of("warcs")).len(), 1);
}

/// Fails if a file that an archive could not take stays behind though the archive takes the next one.
#[tokio::test]
async fn given_up_file_is_stored_with_next_one() {
    let _disk = DISK.read().await;
    let base = tempfile::tempdir().unwrap();
    let directory = create(base.path(), site().await, "");
    let unreliable = UnreliableArchive {
        refusals: AtomicU32::new(1),
        ..UnreliableArchive::new(&directory)
    };
    let mut impatient = environment(Some(Arc::new(unreliable)), Clock::system_clock());
    impatient.patience = Duration::ZERO;
    let report = run(&directory, &impatient).await;
    assert_eq!(report.status, HarvestJobEnd::Done);
    assert_eq!(report.files.len(), 2);
    for file in &report.files {
        assert!(file.stored && file.error.is_none(), "{file:?}");
    }
    assert_eq!(names(&directory.path_of("warcs")).len(), 0);
}

/// Fails if a receipt that was damaged counts, or a file that is here is not stored for it.
#[tokio::test]
async fn damaged_receipt_counts_for_nothing() {
    let _disk = DISK.read().await;
    let base = tempfile::tempdir().unwrap();
    let directory = create(base.path(), site().await, "");
    let archive = FakeArchive::new();
    let mut keeping = environment(Some(Arc::new(archive)), Clock::system_clock());
    keeping.keeps_files = true;
    let report = run(&directory, &keeping).await;
    let name = &report.files[0].name;
    let receipt = directory
        .path_of("receipts")
        .join(format!("{name}.receipt.json"));
    let whole = fs::read(&receipt).unwrap();
    for damaged in [&whole[..whole.len() / 2], b"", b"{}"] {
        archive_durable::replace_file(&receipt, damaged).unwrap();
        let report = run(&directory, &keeping).await;
        assert_eq!(report.status, HarvestJobEnd::Done);
        assert!(fs::read(&receipt).unwrap().len() >= whole.len() - 10);
    }
    // The bytes are gone, and nothing says that the archive has them.
    archive_durable::replace_file(&receipt, b"{}").unwrap();
    archive_durable::directory::remove_name(&directory.path_of("warcs").join(name)).unwrap();
    let report = run(&directory, &keeping).await;
    assert_eq!(report.status, HarvestJobEnd::Failed);
    assert!(!report.files[0].stored);
}
