//! Jobs whose crawl is over and goes on, and people who watch.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener as StdListener;
use std::sync::Arc;

use archive_client::fake::FakeArchive;
use harvest_controller::{JobRemains, ask_view};
use harvest_crawler::crawl::view::{CrawlView, QueueWait, ViewQuestion};
use harvest_model::order::JobActivity;

use crate::prelude::*;

/// Returns how often each URI of a site stands in the crawl log as fetched, robots.txt left out.
fn fetched_uris(job: &JobDirectory) -> BTreeMap<String, usize> {
    let log = fs::read_to_string(job.path_of("logs/crawl.log")).unwrap();
    let mut counts = BTreeMap::new();
    for line in log.lines() {
        let mut words = line.split_whitespace();
        if words.nth(1).is_some_and(|status| !status.starts_with('-')) {
            let uri = words.nth(1).unwrap().to_owned();
            if !uri.ends_with("/robots.txt") {
                *counts.entry(uri).or_insert(0) += 1;
            }
        }
    }
    counts
}

/// Fails if a job that has ended at a limit cannot go on with a higher one, fetches something twice, documents itself in
/// the metadata file that is archived, or keeps a frontier that nobody needs.
#[tokio::test]
async fn job_goes_on_behind_its_limit() {
    let _disk = DISK.read().await;
    let base = tempfile::tempdir().unwrap();
    let job = create(base.path(), site().await, "limits.max_objects = 2");
    let archive = FakeArchive::new();
    let environment = environment(Some(Arc::new(archive.clone())), Clock::system_clock());
    let report = run(&job, &environment).await;
    assert_eq!((report.status, report.objects), (HarvestJobEnd::Done, 2));
    assert!(report.remaining > 0, "{report:?}");
    let job = reopened(&job);
    assert!(
        matches!(job.remains(false).unwrap(), JobRemains::Uris { remaining, .. } if remaining == report.remaining)
    );
    let higher = job.changed_order("[limits]\nmax_objects = 50", JobActivity::Stopped);
    let job = job.keep_order(higher.unwrap()).unwrap();
    job.reopen_crawl(false).unwrap();
    let job = reopened(&job);
    assert_eq!(job.remains(false).unwrap(), JobRemains::Crawl);
    let report = run(&job, &environment).await;
    assert_eq!(
        (report.stop_reason.as_str(), report.objects),
        ("Finished", 5)
    );
    let stored: Vec<&str> = report.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(stored.last(), Some(&"12-metadata-2.warc.gz"));
    for name in ["12-metadata-1.warc.gz", "12-metadata-2.warc.gz"] {
        archive.stat(&FileName::new(name).unwrap()).await.unwrap();
    }
    let fetched = fetched_uris(&job);
    assert_eq!(fetched.len(), 5, "{fetched:?}");
    assert!(fetched.values().all(|count| *count == 1), "{fetched:?}");
    assert!(!job.path_of("state").try_exists().unwrap());
    assert_eq!(job.remains(false).unwrap(), JobRemains::Nothing);
}

/// Fails if a job that a person has ended cannot go on.
#[tokio::test]
async fn terminated_job_goes_on() {
    let _disk = DISK.read().await;
    let base = tempfile::tempdir().unwrap();
    let job = create(base.path(), site().await, "");
    archive_durable::replace_file(&job.path_of("action").join("terminate"), b"").unwrap();
    let environment = environment(None, Clock::system_clock());
    let report = run(&job, &environment).await;
    assert_eq!((report.objects, report.remaining), (0, 1), "{report:?}");
    let job = reopened(&job);
    job.reopen_crawl(false).unwrap();
    let report = run(&job, &environment).await;
    assert_eq!(
        (report.stop_reason.as_str(), report.objects),
        ("Finished", 5)
    );
    assert_eq!(names(&job.path_of("action")).len(), 0);
}

/// Fails if what could not be had is not tried again, or what was had is.
#[tokio::test]
async fn failures_of_an_ended_job_are_tried_again() {
    let _disk = DISK.read().await;
    let base = tempfile::tempdir().unwrap();
    let living = site().await;
    let closed = StdListener::bind("127.0.0.1:0").unwrap();
    let dead = format!("http://{}/", closed.local_addr().unwrap());
    drop(closed);
    let job = create(base.path(), living.clone(), "retry.max_tries = 1");
    let seeds = job.path_of("action").join("dead.seeds");
    archive_durable::replace_file(&seeds, format!("{dead}\n").as_bytes()).unwrap();
    let environment = environment(None, Clock::system_clock());
    let report = run(&job, &environment).await;
    assert_eq!((report.objects, report.failed), (5, 1), "{report:?}");
    assert_eq!(job.remains(true).unwrap(), JobRemains::Failures(1));
    let address = dead.trim_start_matches("http://").trim_end_matches('/');
    let listener = tokio::net::TcpListener::bind(address).await.unwrap();
    let serving = serve_site(listener);
    let job = reopened(&job);
    job.reopen_crawl(true).unwrap();
    let report = tokio::select! {
        report = run(&job, &environment) => report,
        never = serving => match never {},
    };
    assert_eq!(
        (report.objects, report.failed_seeds.len()),
        (10, 0),
        "{report:?}"
    );
    let fetched = fetched_uris(&job);
    assert_eq!(fetched.len(), 10, "{fetched:?}");
    assert!(fetched.values().all(|count| *count == 1), "{fetched:?}");
    assert_eq!(names(&job.path_of("action")).len(), 0);
}

/// Fails if the metadata file of a job is lost because the archive has one of that number.
#[tokio::test]
async fn taken_metadata_name_is_known_before_the_crawl() {
    let _disk = DISK.read().await;
    let archive = FakeArchive::new();
    let environment = environment(Some(Arc::new(archive.clone())), Clock::system_clock());
    let first = tempfile::tempdir().unwrap();
    run(&create(first.path(), site().await, ""), &environment).await;
    let second = tempfile::tempdir().unwrap();
    let told = parking_lot::Mutex::new(Vec::new());
    let notify = |notice: JobNotice<'_>| match notice {
        JobNotice::MetadataNameTaken { name, .. } => told.lock().push(name.to_owned()),
        JobNotice::Stored(name) => told.lock().push(format!("stored {name}")),
        _ => {}
    };
    let again = create(second.path(), site().await, "files.max_size = \"1 MB\"");
    let report = try_run(&again, &environment, &notify).await.unwrap();
    assert_eq!(report.status, HarvestJobEnd::Done, "{report:?}");
    let told = told.into_inner();
    assert_eq!(told[0], "12-metadata-2.warc.gz", "{told:?}");
    assert_eq!(told.last().unwrap(), "stored 12-metadata-2.warc.gz");
}

/// Fails if a person who watches is not told what a job waits for, or a job that does not run passes for one that does.
#[tokio::test]
async fn running_job_is_watched() {
    let _disk = DISK.read().await;
    let base = tempfile::tempdir().unwrap();
    let job = create(base.path(), site().await, "");
    let question = ViewQuestion {
        most: 3,
        about: Vec::new(),
    };
    assert_eq!(ask_view(&job, &question).unwrap(), None);
    // What a process has left that was killed.
    drop(std::os::unix::net::UnixListener::bind(job.path_of("view.socket")).unwrap());
    assert_eq!(ask_view(&job, &question).unwrap(), None);
    let (control, requests) = mpsc::unbounded_channel();
    control.send(CrawlCommand::Pause).unwrap();
    let (progress, mut watched) = watch::channel(CrawlProgress::default());
    let watching = async {
        watched
            .wait_for(|progress| progress.is_paused)
            .await
            .unwrap();
        let asked = job.clone();
        let view = tokio::task::spawn_blocking(move || {
            loop {
                // The door opens beside the crawl.
                if let Some(view) = ask_view(&asked, &question).unwrap() {
                    break view;
                }
            }
        });
        let view = view.await.unwrap();
        control.send(CrawlCommand::Resume).unwrap();
        view
    };
    let environment = environment(None, Clock::system_clock());
    let quiet = |_: JobNotice<'_>| {};
    let running = run_job(
        &job,
        &environment,
        JobConsole {
            requests,
            progress,
            notify: &quiet,
        },
    );
    let (report, view): (_, CrawlView) = tokio::join!(running, watching);
    assert_eq!(report.unwrap().objects, 5);
    assert!(view.progress.is_paused);
    let queues: Vec<_> = view.queues.entries.iter().collect();
    assert_eq!(queues.len(), 1, "{view:?}");
    assert_eq!((queues[0].waiting, queues[0].wait), (1, QueueWait::Turn));
    assert_eq!(queues[0].next.as_deref(), Some(job.job().seeds[0].as_str()));
    assert!(!job.path_of("view.socket").try_exists().unwrap());
}
