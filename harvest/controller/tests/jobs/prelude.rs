//! A site, an archive with moods, and a job between them.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "helpers of tests"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use archive_client::fake::FakeArchive;
pub(crate) use archive_client::{CallFuture, ClientError, Deposit, Ingest, StoreEvent, StoredFile};
pub(crate) use archive_daemon::clock::{Chance, Clock, ManualClock};
use archive_formats::warc::validate::Validator;
pub(crate) use archive_formats::warc::{WarcReader, WarcType};
pub(crate) use archive_model::FileName;
pub(crate) use harvest_controller::{
    HarvestJobEnd, HarvestJobError, JobConsole, JobDirectory, JobEnvironment, JobNotice, JobReport,
    run_job,
};
pub(crate) use harvest_crawler::crawl::{CrawlCommand, CrawlProgress};
pub(crate) use harvest_model::{CrawlOrder, HarvestJob};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
pub(crate) use tokio::sync::{RwLock, mpsc, watch};
pub(crate) use url::Url;

/// The disk: tests that make its calls fail hold it alone.
pub(crate) static DISK: RwLock<()> = RwLock::const_new(());

const ORDER: &str = "
    scope.kind = \"host\"
    extraction.favicon = false
    politeness = { delay_factor = 0.0, min_delay = \"0 ms\", max_delay = \"0 ms\" }
";

/// An order with a password for the site, which no file but that of the job may have.
pub(crate) const WITH_PASSWORD: &str = "
    [[credential]]
    host = \"127.0.0.1\"
    realm = \"r\"
    user = \"u\"
    password = \"hunter2-secret\"
";

/// Serves a site of five pages: a home page with links to the others.
pub(crate) async fn site() -> Url {
    site_that_counts().await.0
}

/// Serves the same site; returns its base URI and a counter of the requests.
pub(crate) async fn site_that_counts() -> (Url, Arc<AtomicU32>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&asked);
    tokio::task::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::task::spawn(answer(stream, Arc::clone(&counter)));
        }
    });
    (Url::parse(&base).unwrap(), asked)
}

/// Serves the same site at a place of its own, for as long as it is polled.
#[expect(clippy::infinite_loop, reason = "who polls it drops it")]
pub(crate) async fn serve_site(listener: TcpListener) -> std::convert::Infallible {
    let asked = Arc::new(AtomicU32::new(0));
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        tokio::task::spawn(answer(stream, Arc::clone(&asked)));
    }
}

async fn answer(mut stream: TcpStream, asked: Arc<AtomicU32>) {
    loop {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            let Ok(byte) = stream.read_u8().await else {
                return;
            };
            request.push(byte);
        }
        asked.fetch_add(1, Ordering::SeqCst);
        let text = String::from_utf8(request).unwrap();
        let path = text.split(' ').nth(1).unwrap();
        let body = match path {
            "/" => "<a href=1>1</a> <a href=2>2</a> <a href=3>3</a> <a href=4>4</a>".to_owned(),
            "/robots.txt" => String::new(),
            _ => format!("page {path}"),
        };
        let length = body.len();
        let is_open = text.contains("\r\nAuthorization: Basic dTpodW50ZXIyLXNlY3JldA==\r\n");
        let status = if path == "/4" && !is_open {
            "401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"r\""
        } else {
            "200 OK"
        };
        let head = format!("HTTP/1.1 {status}\r\nContent-Type: text/html\r\n");
        let response = format!("{head}Content-Length: {length}\r\n\r\n{body}");
        if stream.write_all(response.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// An archive with moods, which keeps what it has stored where a test can read it.
pub(crate) struct UnreliableArchive {
    pub(crate) archive: FakeArchive,
    /// The number of calls for which the archive cannot be reached.
    pub(crate) refusals: AtomicU32,
    /// A part of the names that the archive refuses.
    pub(crate) refused: Option<&'static str>,
    /// Whether the archive does not say what it has.
    pub(crate) is_blind: bool,
    /// Whether the receipts are for other bytes.
    pub(crate) lies: bool,
    /// The directory of the job.
    pub(crate) job: PathBuf,
    pub(crate) files: Mutex<BTreeMap<String, Vec<u8>>>,
}

impl UnreliableArchive {
    pub(crate) fn new(job: &JobDirectory) -> Self {
        Self {
            archive: FakeArchive::new(),
            refusals: AtomicU32::new(0),
            refused: None,
            is_blind: false,
            lies: false,
            job: job.root().to_owned(),
            files: Mutex::default(),
        }
    }

    async fn keep(
        &self,
        deposit: &Deposit,
        watch: &(dyn Fn(StoreEvent<'_>) + Send + Sync),
    ) -> Result<StoredFile, ClientError> {
        let left = self.refusals.load(Ordering::SeqCst);
        if left > 0 {
            self.refusals.store(left - 1, Ordering::SeqCst);
            return Err(ClientError::Unavailable("nobody answers".to_owned()));
        }
        let name = deposit.name.as_str();
        if self.refused.is_some_and(|part| name.contains(part)) {
            return Err(ClientError::Refused("not you".to_owned()));
        }
        let mut stored = self.archive.store(deposit, watch).await?;
        let paths = ["warcs", "metadata"].map(|folder| self.job.join(folder).join(name));
        let bytes = paths.iter().find_map(|path| fs::read(path).ok()).unwrap();
        let before = self.files.lock().insert(name.to_owned(), bytes.clone());
        assert!(before.is_none_or(|before| before == bytes), "{name}");
        if self.lies {
            stored.admission.size += 1;
        }
        Ok(stored)
    }

    /// Returns the names of the files that it has.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        self.files.lock().keys().cloned().collect()
    }

    /// Returns the URIs of all responses that it has, sorted.
    pub(crate) fn responses(&self) -> Vec<String> {
        let files = self.files.lock();
        let records = files.values().flat_map(|bytes| records(bytes));
        let responses = records.filter(|(kind, _)| *kind == WarcType::Response);
        let mut uris: Vec<String> = responses.map(|(_, uri)| uri).collect();
        uris.sort();
        uris
    }
}

impl Ingest for UnreliableArchive {
    fn store<'a>(
        &'a self,
        deposit: &'a Deposit,
        watch: &'a (dyn Fn(StoreEvent<'_>) + Send + Sync),
    ) -> CallFuture<'a, StoredFile> {
        Box::pin(self.keep(deposit, watch))
    }

    fn stat<'a>(&'a self, name: &'a FileName) -> CallFuture<'a, archive_client::FileStatus> {
        if self.is_blind {
            return Box::pin(async { Err(ClientError::Unavailable("nobody answers".to_owned())) });
        }
        self.archive.stat(name)
    }
}

pub(crate) fn environment(archive: Option<Arc<dyn Ingest>>, clock: Clock) -> JobEnvironment {
    JobEnvironment {
        clock,
        chance: Chance::seeded_chance(1),
        archive,
        patience: Duration::from_hours(1),
        keeps_files: false,
        host: "crawler".to_owned(),
        address: "192.0.2.7".parse().unwrap(),
        organization: "example.dk".to_owned(),
    }
}

pub(crate) fn create(base: &Path, seed: Url, order: &str) -> JobDirectory {
    let order = CrawlOrder::parse(&format!("{ORDER}{order}")).unwrap();
    let submitted = "2026-11-23T00:00:00Z".parse().unwrap();
    let job = HarvestJob::new(12, 34, submitted)
        .with_seeds(vec![seed])
        .with_order(order);
    JobDirectory::create_directory(base, job, submitted).unwrap()
}

pub(crate) async fn run(directory: &JobDirectory, environment: &JobEnvironment) -> JobReport {
    try_run(directory, environment, &|_| {}).await.unwrap()
}

pub(crate) async fn try_run(
    directory: &JobDirectory,
    environment: &JobEnvironment,
    notify: &(dyn Fn(JobNotice<'_>) + Send + Sync),
) -> Result<JobReport, HarvestJobError> {
    let (_control, requests) = mpsc::unbounded_channel();
    let (progress, _) = watch::channel(CrawlProgress::default());
    run_job(
        directory,
        environment,
        JobConsole {
            requests,
            progress,
            notify,
        },
    )
    .await
}

/// Suspends a job as soon as it has fetched something: its archive file stays open.
pub(crate) async fn suspend(directory: &JobDirectory, environment: &JobEnvironment) {
    let (control, requests) = mpsc::unbounded_channel();
    let (progress, mut watched) = watch::channel(CrawlProgress::default());
    let suspending = async {
        watched
            .wait_for(|progress| progress.fetched > 1)
            .await
            .unwrap();
        control.send(CrawlCommand::Suspend).unwrap();
        std::future::pending::<()>().await;
    };
    let notify = |_: JobNotice<'_>| {};
    let report = tokio::select! {
        report = run_job(directory, environment, JobConsole { requests, progress, notify: &notify }) => report.unwrap(),
        () = suspending => unreachable!(),
    };
    assert_eq!(report.status, HarvestJobEnd::Suspended);
    assert_eq!(report.stop_reason, "Suspended");
}

/// Returns the job in a directory, as another process opens it.
pub(crate) fn reopened(directory: &JobDirectory) -> JobDirectory {
    JobDirectory::open(directory.root()).unwrap()
}

pub(crate) fn names(directory: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(directory).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

/// Returns the only file of a directory.
pub(crate) fn only(directory: &Path) -> PathBuf {
    let names = names(directory);
    assert_eq!(names.len(), 1, "{names:?}");
    directory.join(names.first().unwrap())
}

/// Returns the kinds and URIs of the records of a file, which is valid.
pub(crate) fn records(bytes: &[u8]) -> Vec<(WarcType, String)> {
    let mut validator = Validator::default();
    let mut violations = Vec::new();
    let mut records = Vec::new();
    let mut reader = WarcReader::new(bytes);
    while let Some(record) = reader.next_record().unwrap() {
        let uri = record.header().get("WARC-Target-URI").unwrap_or_default();
        records.push((record.kind(), String::from_utf8(uri.to_vec()).unwrap()));
        violations.extend(validator.check_record(record).unwrap());
    }
    violations.extend(validator.finish_file());
    assert!(violations.is_empty(), "{violations:?}");
    records
}

/// Returns the content of the record of a metadata file whose URI has a part.
pub(crate) fn record(bytes: &[u8], part: &str) -> String {
    let mut reader = WarcReader::new(bytes);
    while let Some(mut record) = reader.next_record().unwrap() {
        let uri = record.header().get("WARC-Target-URI").unwrap_or_default();
        if String::from_utf8_lossy(&uri).contains(part) {
            let mut text = String::new();
            std::io::Read::read_to_string(&mut record, &mut text).unwrap();
            return text;
        }
    }
    String::new()
}
