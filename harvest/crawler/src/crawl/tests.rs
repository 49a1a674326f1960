//! Crawls of sites on loopback, and the files that they leave.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use archive_formats::crawl_log::CrawlLogLine;
use archive_formats::warc::validate::Validator;
use archive_formats::warc::{WarcReader, WarcType};
use harvest_model::CrawlOrder;
use harvest_policy::address::decide_address;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

use super::*;

mod control;
mod cookies;
mod damage;
mod endings;
mod forms;
mod found_links;
mod http2;
mod kept;
mod later;
mod login;
mod names;
mod odd_uris;
mod old_tls;
mod politeness;
mod proxy;
mod quarantine;
mod requests;
mod robots_answers;
mod seeds;
mod settings;
mod troubles;
mod wire;

/// The paths that hosts were asked for, in order.
type AskedPaths = Arc<Mutex<Vec<String>>>;

/// A site: the response to a path, if it has one.
type Pages = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

fn page(body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {length}\r\n\r\n{body}")
}

fn redirect(location: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n")
}

/// Serves a site; returns its base URI and the paths that it is asked for.
async fn serve(pages: &[(&'static str, String)]) -> (Url, AskedPaths) {
    let pages: BTreeMap<&'static str, String> = pages.iter().cloned().collect();
    serve_by(Arc::new(move |path| pages.get(path).cloned())).await
}

async fn serve_by(pages: Pages) -> (Url, AskedPaths) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/", listener.local_addr().unwrap());
    let asked = AskedPaths::default();
    let told = Arc::clone(&asked);
    tokio::task::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::task::spawn(answer(stream, Arc::clone(&pages), Arc::clone(&told)));
        }
    });
    (Url::parse(&base).unwrap(), asked)
}

/// Reads the head of a request; `None` if the connection ends before.
async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    Some(String::from_utf8(head).unwrap())
}

/// Returns the path that a request asks for, from its head.
fn path_of(head: &str) -> &str {
    head.split(' ').nth(1).unwrap()
}

async fn answer(mut stream: TcpStream, pages: Pages, asked: AskedPaths) {
    loop {
        let Some(head) = read_head(&mut stream).await else {
            return;
        };
        let path = path_of(&head).to_owned();
        let not_found = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned();
        let response = pages(&path).unwrap_or(not_found);
        asked.lock().push(path);
        if stream.write_all(response.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// A polite crawl has no place in a test: no pauses. Nor have icons, but where one is the subject.
const ORDER: &str = "
    scope.kind = \"host\"
    queues.by = \"host\"
    politeness = { delay_factor = 0.0, min_delay = \"0 ms\", max_delay = \"0 ms\" }
";

fn settings(directory: &Path, seeds: &[Url], order: &str) -> CrawlSettings {
    let guesses_icon = order.contains("favicon");
    let mut order = CrawlOrder::parse(&format!("{ORDER}{order}")).unwrap();
    order.extraction.favicon = guesses_icon;
    let submitted = "2026-11-23T00:00:00Z".parse().unwrap();
    CrawlSettings {
        directory: directory.to_owned(),
        job: Arc::new(
            HarvestJob::new(1, 2, submitted)
                .with_seeds(seeds.to_vec())
                .with_order(order),
        ),
        host: "test".to_owned(),
        version: "0".to_owned(),
        warcinfo: "software: test\r\n".to_owned(),
        known: None,
        min_free: 0,
    }
}

async fn crawl(settings: CrawlSettings) -> CrawlOutcome {
    let (crawl, _handle) = Crawl::new(settings, Clock::system_clock(), Chance::system_chance());
    crawl.run_crawl().await.unwrap()
}

/// Returns the lines of the crawl log of a crawl.
fn log(directory: &Path) -> Vec<CrawlLogLine> {
    let text = fs::read_to_string(directory.join("logs/crawl.log")).unwrap();
    text.lines().map(|line| line.parse().unwrap()).collect()
}

fn statuses(directory: &Path, base: &Url) -> BTreeMap<String, i32> {
    let lines = log(directory).into_iter();
    let statuses = lines.map(|line| (line.uri.replace(base.as_str(), "/"), line.status));
    let count = statuses.clone().count();
    let statuses: BTreeMap<String, i32> = statuses.collect();
    assert_eq!(statuses.len(), count, "a URI stands in the log twice");
    statuses
}

/// Returns the URIs of the records of one kind in all archive files, which are valid.
fn recorded(directory: &Path, kind: WarcType) -> Vec<String> {
    let mut uris = Vec::new();
    for entry in fs::read_dir(directory.join("warcs")).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        let mut validator = Validator::default();
        let mut violations = Vec::new();
        let mut reader = WarcReader::new(bytes.as_slice());
        while let Some(mut record) = reader.next_record().unwrap() {
            if record.kind() == kind {
                let uri = record.header().get("WARC-Target-URI").unwrap_or_default();
                uris.push(String::from_utf8(uri.to_vec()).unwrap());
            }
            drop(record.read(&mut []));
            violations.extend(validator.check_record(record).unwrap());
        }
        violations.extend(validator.finish_file());
        assert!(violations.is_empty(), "{violations:?}");
    }
    uris
}

fn small_site() -> Vec<(&'static str, String)> {
    vec![
        (
            "/",
            page("<a href='/a'>a</a> <img src=/i.png> <a href=/secret>s</a>"),
        ),
        ("/a", page("<a href='/'>home</a> <a href='/b?x=1#y'>b</a>")),
        ("/b?x=1", redirect("/c")),
        ("/c", page("<a href='http://other.invalid/'>out</a>")),
        ("/i.png", page("not an image")),
        ("/robots.txt", page("User-agent: *\nDisallow: /secret\n")),
    ]
}

/// Fails if a page of a site is not captured, one is twice, or log, records and requests disagree.
#[tokio::test]
async fn small_site_is_captured_whole() {
    let (base, asked) = serve(&small_site()).await;
    let directory = tempfile::tempdir().unwrap();
    let outcome = crawl(settings(directory.path(), std::slice::from_ref(&base), "")).await;
    assert_eq!(outcome.end, CrawlEnd::Finished);
    assert_eq!(outcome.progress.fetched, 5);
    let statuses = statuses(directory.path(), &base);
    let expected = [
        ("/", 200),
        ("/a", 200),
        ("/b?x=1", 302),
        ("/c", 200),
        ("/i.png", 200),
        ("/robots.txt", 200),
        ("/secret", -9998),
    ];
    let expected = expected.map(|(path, status)| (path.to_owned(), status));
    assert_eq!(statuses, BTreeMap::from(expected.clone()));
    let mut responses = recorded(directory.path(), WarcType::Response);
    responses.sort();
    let fetched = expected.iter().filter(|(_, status)| *status > 0);
    let fetched = fetched.map(|(path, _)| base.join(path).unwrap().to_string());
    assert_eq!(responses, fetched.collect::<Vec<_>>());
    assert_eq!(asked.lock().len(), 6);
    assert_eq!(asked.lock().first().unwrap(), "/robots.txt");
}

/// Fails if a crawl that was ended continues with what it has, asks again for a page, or forgets one.
#[tokio::test]
async fn suspended_crawl_goes_on_where_it_was() {
    let (base, asked) = serve(&small_site()).await;
    let directory = tempfile::tempdir().unwrap();
    let seeds = std::slice::from_ref(&base);
    let mut outcomes = Vec::new();
    for _ in 0..20 {
        let settings = settings(directory.path(), seeds, "");
        let (crawl, mut handle) =
            Crawl::new(settings, Clock::system_clock(), Chance::system_chance());
        let control = handle.control.clone();
        let running = tokio::task::spawn(crawl.run_crawl());
        let fetched = handle.progress.borrow().fetched;
        // The crawl is suspended at the next page, or ends because no page is left.
        let next = handle
            .progress
            .wait_for(|progress| progress.fetched > fetched);
        if next.await.is_ok() {
            _ = control.send(CrawlCommand::Suspend);
        }
        let outcome = running.await.unwrap().unwrap();
        assert_eq!(outcome.taken_back, 0);
        outcomes.push(outcome.end);
        if outcome.end == CrawlEnd::Finished {
            break;
        }
    }
    assert_eq!(outcomes.last(), Some(&CrawlEnd::Finished));
    assert_eq!(statuses(directory.path(), &base).len(), 7);
    assert_eq!(recorded(directory.path(), WarcType::Response).len(), 6);
    assert_eq!(asked.lock().len(), 6, "{:?}", asked.lock());
}

/// Fails if a quota is passed, or the log does not say why a queue has ended.
#[tokio::test]
async fn quota_of_a_queue_stands_in_the_log() {
    let (base, _) = serve(&small_site()).await;
    let directory = tempfile::tempdir().unwrap();
    let order = "queues.max_objects = 2";
    let settings = settings(directory.path(), std::slice::from_ref(&base), order);
    let outcome = crawl(settings).await;
    assert_eq!(
        (outcome.end, outcome.progress.fetched),
        (CrawlEnd::Finished, 2)
    );
    let lines = log(directory.path());
    let last = lines.last().unwrap();
    assert_eq!(last.status, -5003);
    assert_eq!(last.annotations, ["Q:groupMaxFetchSuccesses"]);
}

/// Fails if a limit of the crawl is passed by more than the fetches under way.
#[tokio::test]
async fn crawl_ends_at_its_limit_of_objects() {
    let (base, _) = serve(&small_site()).await;
    let directory = tempfile::tempdir().unwrap();
    let order = "limits.max_objects = 3";
    let settings = settings(directory.path(), std::slice::from_ref(&base), order);
    let outcome = crawl(settings).await;
    assert_eq!(
        (outcome.end, outcome.progress.fetched),
        (CrawlEnd::ObjectLimit, 3)
    );
}

/// Fails if a seed's redirect to another host leads nowhere, or a host behind robots.txt that fails is asked for pages.
#[tokio::test]
async fn redirected_seed_takes_its_host_along() {
    let (target, asked) = serve(&small_site()).await;
    let (broken, asked_broken) = serve(&[(
        "/robots.txt",
        "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n".to_owned(),
    )])
    .await;
    let (base, _) = serve(&[("/", redirect(target.as_str()))]).await;
    let directory = tempfile::tempdir().unwrap();
    let seeds = [base, broken.clone()];
    let settings = settings(directory.path(), &seeds, "retry.max_tries = 1");
    let outcome = crawl(settings).await;
    assert_eq!(outcome.end, CrawlEnd::Finished);
    assert_eq!(asked.lock().len(), 6);
    assert_eq!(*asked_broken.lock(), ["/robots.txt"]);
    let lines = log(directory.path());
    let broken = lines.iter().find(|line| line.uri == broken.as_str());
    assert_eq!(broken.unwrap().status, -8);
}

/// Fails if a redirect to another spelling of the same URI, as from `http://a.dk/` to `http://www.a.dk/`, leads nowhere
/// because it counts as seen.
#[tokio::test]
async fn redirect_to_another_spelling_is_followed() {
    let session = "/?PHPSESSID=0123456789abcdef0123456789abcdef";
    let (base, _) = serve(&[("/", redirect(session)), (session, page("home"))]).await;
    let directory = tempfile::tempdir().unwrap();
    crawl(settings(directory.path(), std::slice::from_ref(&base), "")).await;
    let statuses = statuses(directory.path(), &base);
    assert_eq!((statuses["/"], statuses[session]), (302, 200));
}

/// Fails if a quota ends a queue although a fetch under way did not use it up, so that pages are left out unnoticed.
#[tokio::test]
async fn quota_is_used_up_with_several_connections() {
    let mut pages = small_site();
    pages.extend(["/d1", "/d2"].map(|path| (path, page("leaf"))));
    let busy = "HTTP/1.1 503 Busy\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n".to_owned();
    pages.push(("/a", busy));
    let links = "<a href=/a>a</a> <a href=/secret>s</a> <a href=/c>c</a> <a href=/d1>1</a> <a href=/d2>2</a>";
    pages.push(("/", page(links)));
    let (base, _) = serve(&pages).await;
    for connections in 1..4 {
        let directory = tempfile::tempdir().unwrap();
        let order = format!(
            "queues.connections = {connections}\nqueues.max_objects = 4\nretry.max_tries = 3"
        );
        let outcome = crawl(settings(
            directory.path(),
            std::slice::from_ref(&base),
            &order,
        ))
        .await;
        let fetched = outcome.progress.fetched;
        assert!(
            (4..4 + connections).contains(&fetched),
            "{connections}: {fetched}"
        );
    }
}

/// Fails if a trap is fetched, or a page outside of the scope.
#[tokio::test]
async fn traps_and_other_sites_are_left_out() {
    let (other, asked_other) = serve(&small_site()).await;
    let links = format!("<img src='{other}i.png'> <a href='{other}a'>a</a> <a href=/trap>t</a>");
    let (base, asked) = serve(&[("/", page(&links))]).await;
    let directory = tempfile::tempdir().unwrap();
    let order = "scope.traps = [\".*trap.*\"]";
    let outcome = crawl(settings(
        directory.path(),
        std::slice::from_ref(&base),
        order,
    ))
    .await;
    assert_eq!(outcome.progress.fetched, 2);
    let asked: BTreeSet<String> = asked.lock().iter().cloned().collect();
    assert_eq!(asked, ["/", "/robots.txt"].map(str::to_owned).into());
    assert_eq!(*asked_other.lock(), ["/robots.txt", "/i.png"]);
}

/// Fails if a page at a public address, or a name, leads the crawler into the machine or the network that it runs in.
#[tokio::test]
async fn forbidden_addresses_are_not_connected_to() {
    let (base, asked) = serve(&small_site()).await;
    let directory = tempfile::tempdir().unwrap();
    let mut inside = base.clone();
    inside.set_ip_host("127.0.0.2".parse().unwrap()).unwrap();
    let mut settings = settings(directory.path(), std::slice::from_ref(&inside), "");
    let allowed = settings.job.order.allowed_networks(&settings.job.seeds);
    assert!(decide_address(inside.host_str().unwrap().parse().unwrap(), &allowed).is_ok());
    // As if a page of the public web had led there: its seed is another one.
    let job = Arc::get_mut(&mut settings.job).unwrap();
    // Nor does a crawl without a contact leave this machine.
    let public = "http://8.8.8.8/i.png";
    let link = format!("<img src='{inside}'><img src='{public}'>");
    let (seed, _) = serve(&[("/", page(&link))]).await;
    job.seeds = vec![seed];
    let outcome = crawl(settings).await;
    assert_eq!(outcome.progress.fetched, 1);
    let lines = log(directory.path());
    for (uri, annotation) in [
        (inside.as_str(), "address:Loopback"),
        (public, "address:NoContact"),
    ] {
        let refused = lines.iter().find(|line| line.uri == uri).unwrap();
        assert_eq!(
            (refused.status, refused.annotations.as_slice()),
            (-5002, &[annotation.to_owned()][..])
        );
    }
    assert_eq!(*asked.lock(), [""; 0]);
}
