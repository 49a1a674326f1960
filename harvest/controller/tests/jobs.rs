//! Jobs over a site on loopback and an archive in memory.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "helpers of tests"
)]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use archive_client::fake::FakeArchive;
use archive_client::{Answer, ClientError, Deposit, Ingest, StoreEvent, Stored};
use archive_daemon::clock::{Chance, Clock, ManualClock};
use archive_formats::warc::validate::Validator;
use archive_formats::warc::{Kind, Reader};
use archive_model::FileName;
use harvest_controller::{JobDirectory, JobParts, JobReport, JobStatus, Notice, run_job};
use harvest_crawler::crawl::{Control, CrawlProgress};
use harvest_model::{Job, Order};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use url::Url;

const ORDER: &str = "
    scope.kind = \"host\"
    politeness = { delay_factor = 0.0, min_delay = \"0 ms\", max_delay = \"0 ms\" }
";

/// Serves a site of five pages: a home page with links to the others.
async fn site() -> Url {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/", listener.local_addr().unwrap());
    tokio::task::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::task::spawn(answer(stream));
        }
    });
    Url::parse(&base).unwrap()
}

async fn answer(mut stream: TcpStream) {
    loop {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            let Ok(byte) = stream.read_u8().await else {
                return;
            };
            request.push(byte);
        }
        let text = String::from_utf8(request).unwrap();
        let path = text.split(' ').nth(1).unwrap();
        let body = match path {
            "/" => "<a href=1>1</a> <a href=2>2</a> <a href=3>3</a> <a href=4>4</a>".to_owned(),
            "/robots.txt" => String::new(),
            _ => format!("page {path}"),
        };
        let length = body.len();
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n";
        let response = format!("{head}Content-Length: {length}\r\n\r\n{body}");
        if stream.write_all(response.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// An archive that cannot take a file the first times it is asked, and refuses one name.
struct Moody {
    archive: FakeArchive,
    refusals: AtomicU32,
    refused: Option<&'static str>,
}

impl Ingest for Moody {
    fn store<'a>(
        &'a self,
        deposit: &'a Deposit,
        watch: &'a (dyn Fn(StoreEvent<'_>) + Send + Sync),
    ) -> Answer<'a, Stored> {
        let left = self.refusals.load(Ordering::SeqCst);
        if left > 0 {
            self.refusals.store(left - 1, Ordering::SeqCst);
            return Box::pin(async { Err(ClientError::Unavailable("nobody answers".to_owned())) });
        }
        let name = deposit.name.as_str();
        if self.refused.is_some_and(|part| name.contains(part)) {
            return Box::pin(async { Err(ClientError::Refused("not you".to_owned())) });
        }
        self.archive.store(deposit, watch)
    }

    fn stat<'a>(&'a self, name: &'a FileName) -> Answer<'a, archive_client::FileStatus> {
        self.archive.stat(name)
    }
}

fn parts(archive: Option<Arc<dyn Ingest>>, clock: Clock) -> JobParts {
    JobParts {
        clock,
        chance: Chance::seeded(1),
        archive,
        patience: Duration::from_hours(1),
        keeps_files: false,
        host: "crawler".to_owned(),
        address: "192.0.2.7".parse().unwrap(),
        organization: "example.dk".to_owned(),
    }
}

fn create(base: &Path, seed: Url, order: &str) -> JobDirectory {
    let order = Order::parse(&format!("{ORDER}{order}")).unwrap();
    let submitted = "2026-11-23T00:00:00Z".parse().unwrap();
    let job = Job::new(12, 34, submitted, vec![seed], order);
    JobDirectory::create(base, job, submitted).unwrap()
}

async fn run(directory: &JobDirectory, parts: &JobParts) -> JobReport {
    let (_control, requests) = mpsc::unbounded_channel();
    let (progress, _) = watch::channel(CrawlProgress::default());
    run_job(directory, parts, requests, progress, &|_: Notice<'_>| {})
        .await
        .unwrap()
}

fn names(directory: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(directory).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

/// The kinds and URIs of the records of a file, which is valid.
fn records(bytes: &[u8]) -> Vec<(Kind, String)> {
    let mut validator = Validator::default();
    let mut violations = Vec::new();
    let mut records = Vec::new();
    let mut reader = Reader::new(bytes);
    while let Some(record) = reader.next_record().unwrap() {
        let uri = record.header().get("WARC-Target-URI").unwrap_or_default();
        records.push((record.kind(), String::from_utf8(uri.to_vec()).unwrap()));
        violations.extend(validator.record(record).unwrap());
    }
    violations.extend(validator.finish());
    assert!(violations.is_empty(), "{violations:?}");
    records
}

/// Fails if a file is not in the archive, a local one stays, a receipt is missing, or a document of the crawl is.
#[tokio::test]
async fn job_is_crawled_documented_and_stored() {
    let base = tempfile::tempdir().unwrap();
    let directory = create(base.path(), site().await, "");
    let archive = FakeArchive::new();
    let report = run(
        &directory,
        &parts(Some(Arc::new(archive.clone())), Clock::system()),
    )
    .await;
    assert_eq!((report.status, report.objects), (JobStatus::Done, 5));
    assert_eq!(report.stop_reason, "Finished");
    assert_eq!(report.domains.len(), 1);
    assert_eq!(report.domains[0].objects, 6);
    let stored: Vec<&str> = report.files.iter().map(|file| file.name.as_str()).collect();
    assert!(stored[0].starts_with("12-34-"), "{stored:?}");
    assert_eq!(stored[1], "12-metadata-1.warc.gz");
    for name in &stored {
        let status = archive.stat(&FileName::new(name).unwrap()).await.unwrap();
        assert!(!status.replicas.is_empty(), "{name}");
        assert!(names(&directory.path("receipts")).contains(&format!("{name}.receipt.json")));
    }
    assert_eq!(names(&directory.path("warcs")), BTreeSet::new());
    assert_eq!(names(&directory.path("metadata")), BTreeSet::new());
    assert_eq!(directory.root().file_name().unwrap(), "12_1795392000000");
}

/// Fails if the metadata file lacks what a later reader needs, or has it in another order.
#[tokio::test]
async fn metadata_file_documents_the_crawl() {
    let base = tempfile::tempdir().unwrap();
    let directory = create(base.path(), site().await, "");
    let report = run(&directory, &parts(None, Clock::system())).await;
    assert!(report.files.iter().all(|file| !file.stored));
    let file = fs::read(directory.path("metadata/12-metadata-1.warc.gz")).unwrap();
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
    let log = fs::read_to_string(directory.path("logs/progress-statistics.log")).unwrap();
    assert!(log.trim_end().ends_with("CRAWL ENDED - Finished"), "{log}");
}

/// Fails if an archive that is down for a while ends a job, or a file is deleted before it is stored.
#[tokio::test]
async fn archive_that_is_down_is_waited_for() {
    let base = tempfile::tempdir().unwrap();
    let directory = create(base.path(), site().await, "");
    let manual = ManualClock::running("2026-11-23T00:00:00Z".parse().unwrap());
    let moody = Arc::new(Moody {
        archive: FakeArchive::new(),
        refusals: AtomicU32::new(3),
        refused: None,
    });
    let parts = parts(Some(Arc::clone(&moody) as Arc<dyn Ingest>), manual.clock());
    let (_control, requests) = mpsc::unbounded_channel();
    let (progress, _) = watch::channel(CrawlProgress::default());
    let (waits, stored) = (AtomicU32::new(0), AtomicU32::new(0));
    let warcs = directory.path("warcs");
    let notify = |notice: Notice<'_>| {
        if let Notice::Waiting { .. } = notice {
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
        report = run_job(&directory, &parts, requests, progress, &notify) => report.unwrap(),
        () = advance => unreachable!(),
    };
    assert_eq!(report.status, JobStatus::Done);
    assert_eq!(waits.load(Ordering::SeqCst), 3);
}

/// Fails if a refused file is deleted, or the job passes for done; or if going on with the job crawls or stores anything twice.
#[tokio::test]
async fn refused_file_stays_and_is_stored_later() {
    let base = tempfile::tempdir().unwrap();
    let directory = create(base.path(), site().await, "");
    let moody = Moody {
        archive: FakeArchive::new(),
        refusals: AtomicU32::new(0),
        refused: Some("12-34-"),
    };
    let archive = moody.archive.clone();
    let report = run(&directory, &parts(Some(Arc::new(moody)), Clock::system())).await;
    assert_eq!(report.status, JobStatus::Failed);
    assert!(report.files[0].error.as_ref().unwrap().contains("not you"));
    assert_eq!(names(&directory.path("warcs")).len(), 1);
    let log = fs::read(directory.path("logs/crawl.log")).unwrap();
    let directory = JobDirectory::open(directory.root()).unwrap();
    let report = run(&directory, &parts(Some(Arc::new(archive)), Clock::system())).await;
    assert_eq!((report.status, report.objects), (JobStatus::Done, 5));
    assert_eq!(names(&directory.path("warcs")), BTreeSet::new());
    // Once more: nothing is left to do, and nothing is done.
    let again = run(&directory, &parts(None, Clock::system())).await;
    assert_eq!(again.objects, 5);
    assert_eq!(names(&directory.path("metadata")), BTreeSet::new());
    assert_eq!(fs::read(directory.path("logs/crawl.log")).unwrap(), log);
}

/// Fails if a request in the directory of a job is not taken, or a wrong one is not named.
#[tokio::test]
async fn requests_in_the_action_directory_are_taken() {
    let base = tempfile::tempdir().unwrap();
    let (one, two) = (site().await, site().await);
    let directory = create(base.path(), one, "");
    let action = directory.path("action");
    archive_durable::replace(&action.join("more.seeds"), two.as_str().as_bytes()).unwrap();
    archive_durable::replace(&action.join("nonsense"), b"x").unwrap();
    let manual = ManualClock::new("2026-11-23T00:00:00Z".parse().unwrap());
    let parts = parts(None, manual.clock());
    let (control, requests) = mpsc::unbounded_channel();
    // It pauses from the begin, so that the requests come in time.
    control.send(Control::Pause).unwrap();
    let (progress, mut watched) = watch::channel(CrawlProgress::default());
    let taken = AtomicU32::new(0);
    let told = |control: &mpsc::UnboundedSender<Control>| {
        if taken.fetch_add(1, Ordering::SeqCst) == 1 {
            control.send(Control::Resume).unwrap();
        }
    };
    let notify = |notice: Notice<'_>| match notice {
        Notice::Action { name, done } => {
            assert_eq!(
                (name, done.starts_with("new seeds: 1;")),
                ("more.seeds", true)
            );
            told(&control);
        }
        Notice::ActionRefused { name, .. } => {
            assert_eq!(name, "nonsense");
            told(&control);
        }
        Notice::Crawl(_) => {}
        Notice::Stored(_)
        | Notice::Waiting { .. }
        | Notice::NotStored { .. }
        | Notice::TakenBack(_)
        | Notice::Salvaged { .. }
        | Notice::NothingHarvested => panic!("{notice:?}"),
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
        report = run_job(&directory, &parts, requests, progress, &notify) => report.unwrap(),
        () = advance => unreachable!(),
    };
    assert_eq!(report.objects, 10);
    let done = names(&directory.path("done"));
    assert_eq!(done.len(), 3);
    assert!(done.iter().any(|name| name.ends_with("-nonsense.reason")));
    assert_eq!(report.status, JobStatus::Done);
    assert!(done.iter().any(|name| name.ends_with("-nonsense.refused")));
    assert!(done.iter().any(|name| name.ends_with("-more.seeds")));
}

/// Fails if a password of the order gets into anything but the file that only its owner reads.
#[tokio::test]
async fn password_stays_in_the_job_file() {
    let base = tempfile::tempdir().unwrap();
    let order = "
        [[credential]]
        host = \"127.0.0.1\"
        realm = \"r\"
        user = \"u\"
        password = \"hunter2-secret\"
    ";
    let directory = create(base.path(), site().await, order);
    run(&directory, &parts(None, Clock::system())).await;
    let mut folders = vec![directory.root().to_owned()];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = fs::read(&path).unwrap();
            let has = bytes.windows(14).any(|window| window == b"hunter2-secret");
            assert_eq!(has, path.ends_with("job.toml"), "{}", path.display());
            seen += usize::from(has);
        }
    }
    assert_eq!(seen, 1);
    let mode = directory
        .path("job.toml")
        .metadata()
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}
