//! `crawl` of a site that this process serves.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tools_testing::{PATIENCE, eventually_blocking};

use crate::holdfast::{Place, executable, run};

/// The number of pages of a site, beside its home page.
const PAGES: usize = 60;

/// A page whose response is chunked. Nothing links to it.
const CHUNKED: &str = "/chunked";

/// A site on loopback: a home page, and pages that link to their neighbours.
pub struct Site {
    pub base: String,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// The paths that were asked for, in order.
    asked: Mutex<Vec<String>>,
    /// The process to be killed, and the number of the request at which it is.
    victim: Mutex<Option<(Child, usize)>>,
}

impl Site {
    pub fn serve() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let base = format!("http://{}/", listener.local_addr().expect("an address"));
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let state = Arc::clone(&shared);
                std::thread::spawn(move || state.answer(stream.expect("a connection")));
            }
        });
        Self { base, state }
    }

    fn asked(&self) -> Vec<String> {
        self.state.asked.lock().clone()
    }
}

impl State {
    fn answer(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().expect("clone"));
        let mut writer = stream;
        loop {
            let mut first = String::new();
            let mut line = String::new();
            while line != "\r\n" {
                line.clear();
                if reader.read_line(&mut line).unwrap_or(0) == 0 {
                    return;
                }
                if first.is_empty() {
                    first.clone_from(&line);
                }
            }
            let path = first.split(' ').nth(1).expect("a path").to_owned();
            if self.note(&path) {
                return;
            }
            if path == CHUNKED {
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n";
                let body = "5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n";
                writer
                    .write_all((head.to_owned() + body).as_bytes())
                    .expect("write");
                continue;
            }
            let body = page(&path);
            let status = if body.is_some() {
                "200 OK"
            } else {
                "404 Not Found"
            };
            let body = body.unwrap_or_default();
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {length}\r\n\r\n"
            );
            if writer.write_all((head + &body).as_bytes()).is_err() {
                return;
            }
        }
    }

    /// Notes a request; whether it killed the one who sent it.
    fn note(&self, path: &str) -> bool {
        let mut asked = self.asked.lock();
        asked.push(path.to_owned());
        let count = asked.len();
        drop(asked);
        let mut victim = self.victim.lock();
        let Some((child, _)) = victim.as_mut().filter(|(_, at)| count >= *at) else {
            return false;
        };
        child.kill().expect("kill");
        child.wait().expect("its end");
        *victim = None;
        true
    }
}

fn page(path: &str) -> Option<String> {
    let links = |numbers: &[usize]| {
        let links = numbers
            .iter()
            .map(|number| format!("<a href=/{number}>{number}</a> "));
        // Nothing is asked for beside the pages.
        "<link rel=icon href=data:,>".to_owned() + &links.collect::<String>()
    };
    if path == "/" {
        return Some(links(&[1, 2, 3]));
    }
    let number: usize = path.strip_prefix('/')?.parse().ok()?;
    let next = [number + 1, number + 2, number * 2].map(|next| next % PAGES + 1);
    (number <= PAGES).then(|| links(&next))
}

/// Returns the only entry of a directory.
pub fn only_entry(base: &Path) -> PathBuf {
    let mut entries = std::fs::read_dir(base).expect("a directory");
    let path = entries
        .next()
        .expect("an entry")
        .expect("a readable entry")
        .path();
    assert!(entries.next().is_none());
    path
}

/// Returns the URIs of the crawl log, each once.
fn logged(job: &Path) -> BTreeMap<String, i64> {
    let text = std::fs::read_to_string(job.join("logs/crawl.log")).expect("a crawl log");
    let mut statuses = BTreeMap::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let before = statuses.insert(fields[3].to_owned(), fields[1].parse().expect("a status"));
        assert_eq!(before, None, "{line}");
    }
    statuses
}

/// Returns the URIs of the `response` records of a job, each once, by the executable itself. Its files are valid.
fn captured(job: &Path) -> BTreeSet<String> {
    let mut uris = BTreeSet::new();
    for entry in std::fs::read_dir(job.join("warcs")).expect("a directory") {
        let path = entry.expect("a readable entry").path();
        run(executable().args(["warc", "check"]).arg(&path)).expect(0);
        let listed = run(executable().args(["warc", "list", "--json"]).arg(&path)).expect(0);
        for line in listed.out.lines() {
            let record: Value = serde_json::from_str(line).expect("a record");
            if record["type"] == "response" {
                let uri = record["url"].as_str().expect("a URI").to_owned();
                assert!(uris.insert(uri.clone()), "{uri} has two responses");
            }
        }
    }
    uris
}

fn expected(site: &Site) -> BTreeSet<String> {
    let paths = (1..=PAGES).map(|number| number.to_string());
    let paths = paths.chain(["robots.txt".to_owned(), String::new()]);
    paths.map(|path| format!("{}{path}", site.base)).collect()
}

/// Fails if a crawl that was killed ten times has another set of URIs than one that was not, a URI is captured twice or
/// lost, or a host is asked for more again than one URI a kill.
#[test]
fn crawl_killed_ten_times_captures_each_page_once() {
    let site = Site::serve();
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().join("crawls");
    for kill in 1..=10 {
        let mut command = executable();
        command.arg("crawl");
        if kill == 1 {
            command.args([
                &site.base,
                "--delay",
                "0",
                "--job",
                "5",
                "--no-store",
                "--keep",
            ]);
            command.arg(&base);
        } else {
            command.arg("--resume").arg(only_entry(&base));
        }
        let child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        *site.state.victim.lock() = Some((child, kill * 5));
        eventually_blocking("the kill", PATIENCE, || {
            let is_killed = site.state.victim.lock().is_none();
            is_killed.then_some(()).ok_or_else(|| site.asked().len())
        });
    }
    let job = only_entry(&base);
    let ran = run(executable().args(["crawl", "--json", "--resume"]).arg(&job));
    assert_eq!(ran.code, 0, "{ran:?}");
    let report = ran.json();
    assert_eq!(report["objects"], PAGES + 1);
    assert_eq!(report["status"], "done");
    let logged = logged(&job);
    assert_eq!(
        logged.keys().cloned().collect::<BTreeSet<_>>(),
        expected(&site)
    );
    assert_eq!(captured(&job), expected(&site));
    let asked = site.asked();
    let once: BTreeSet<&String> = asked.iter().collect();
    assert!(asked.len() - once.len() <= 10, "{asked:?}");
}

/// Fails if a crawl by the command line leaves a file out of the archive, keeps a local one, or its report lacks a
/// field.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crawl_ends_in_the_archive() {
    let place = Place::new().await;
    let site = Site::serve();
    let words = [
        "crawl",
        &site.base,
        "--delay",
        "0",
        "--json",
        "--job",
        "7",
        "--harvest",
        "3",
    ];
    let words = [
        &words[..],
        &["--max-objects", "20", "--collection", "national"],
    ]
    .concat();
    let ran = place.holdfast(&words);
    assert_eq!(ran.code, 0, "{ran:?}");
    let report = ran.json();
    assert_eq!(
        (&report["job"], &report["status"]),
        (&7.into(), &"done".into())
    );
    assert_eq!(report["objects"], 20);
    assert_eq!(
        report["stop_reason"],
        "Finished - Maximum number of documents limit hit"
    );
    assert_eq!(report["domains"][0]["domain"], "127.0.0.1");
    let files = report["files"].as_array().unwrap();
    assert_eq!(files.len(), 2);
    for file in files {
        let name = file["name"].as_str().unwrap();
        assert!(name.starts_with("national-7-3-"), "{name}");
        place
            .holdfast(&["get", name, "-o", name, "--as", "reader"])
            .expect(0);
        assert_eq!(file["stored"], true);
    }
    let job = only_entry(&place.path("holdfast-crawls"));
    for folder in ["warcs", "metadata"] {
        assert_eq!(std::fs::read_dir(job.join(folder)).unwrap().count(), 0);
    }
    assert_eq!(std::fs::read_dir(job.join("receipts")).unwrap().count(), 2);
}

/// Gives the URI and the SHA-1 of the content of each response, as warcio reads it, and with which digest the record
/// says it has.
const BY_WARCIO: &str = "
import base64, hashlib, sys
from warcio.archiveiterator import ArchiveIterator
for path in sys.argv[1:]:
    with open(path, 'rb') as file:
        for record in ArchiveIterator(file):
            if record.rec_type == 'response':
                digest = base64.b32encode(hashlib.sha1(record.content_stream().read()).digest()).decode()
                said = record.rec_headers.get_header('WARC-Payload-Digest')
                print(record.rec_headers.get_header('WARC-Target-URI'), 'sha1:' + digest, said)
";

/// Fails if warcio finds a record that is not what it says, but for one thing: it digests the payload of a chunked
/// response with the framing of the chunks, which the standard leaves out (IIPC issue 22).
#[test]
fn warcio_finds_no_fault_but_chunked_payloads() {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let judge = folders.iter().map(|folder| folder.join("warcio"));
    let Some(judge) = judge.into_iter().find(|path| path.is_file()) else {
        tools_testing::skipped("warcio is not on PATH (pip install warcio)");
        return;
    };
    let site = Site::serve();
    let directory = tempfile::tempdir().unwrap();
    let chunked = format!("{}chunked", site.base);
    let mut command = executable();
    command.args([
        "crawl",
        &site.base,
        &chunked,
        "--delay",
        "0",
        "--no-store",
        "--keep",
    ]);
    run(command.arg(directory.path())).expect(0);
    let job = only_entry(directory.path());
    let mut files = Vec::new();
    for folder in ["warcs", "metadata"] {
        let entries = std::fs::read_dir(job.join(folder)).unwrap();
        files.extend(entries.map(|entry| entry.unwrap().path()));
    }
    let output = Command::new(&judge)
        .arg("check")
        .args(&files)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let failed: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("failed"))
        .collect();
    assert_eq!(failed.len(), 1, "{said}");
    assert!(failed[0].contains("payload digest failed"), "{said}");
    let python = judge.with_file_name("python");
    let listed = run(Command::new(python).args(["-c", BY_WARCIO]).args(&files));
    assert_eq!(listed.code, 0, "{listed:?}");
    let mut count = 0;
    for line in listed.out.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(words[1], words[2], "{line}");
        count += 1;
    }
    // The pages, the home page, robots.txt and the chunked one.
    assert_eq!(count, PAGES + 3);
}

/// Fails if a second crawl by the index of the first one stores a payload again, or a revisit leads nowhere.
#[test]
fn second_crawl_by_index_stores_no_payload_again() {
    let site = Site::serve();
    let directory = tempfile::tempdir().unwrap();
    let crawl = |name: &str, words: &[&str]| {
        let base = directory.path().join(name);
        let mut command = executable();
        command.args(["crawl", &site.base, "--delay", "0", "--no-store", "--keep"]);
        run(command.arg(&base).args(words)).expect(0);
        only_entry(&base)
    };
    let first = crawl("first", &["--job", "1"]);
    let index = directory.path().join("dedup.txt");
    let metadata = only_entry(&first.join("metadata"));
    run(executable()
        .args(["index", "dedup"])
        .arg(metadata)
        .arg("-o")
        .arg(&index))
    .expect(0);
    let index = index.to_str().unwrap();
    let second = crawl("second", &["--job", "2", "--dedup", index, "--dedup-all"]);
    let log = std::fs::read_to_string(second.join("logs/crawl.log")).unwrap();
    let originals = only_entry(&first.join("warcs"));
    let name = originals.file_name().unwrap().to_str().unwrap().to_owned();
    let duplicates = log
        .lines()
        .filter(|line| line.contains(&format!("duplicate:\"{name},")));
    assert_eq!(duplicates.count(), PAGES + 1, "{log}");
    let warc = only_entry(&second.join("warcs"));
    run(executable().args(["warc", "check"]).arg(&warc)).expect(0);
    let listed = run(executable().args(["warc", "list", "--json"]).arg(&warc)).expect(0);
    let kinds = |kind: &str| listed.out.matches(&format!("\"type\":\"{kind}\"")).count();
    assert_eq!(
        (kinds("revisit"), kinds("response")),
        (PAGES + 1, 1),
        "{listed:?}"
    );
    // Each revisit names a response of the first crawl, which is there.
    let firsts = captured(&first);
    let text = run(executable().args(["warc", "cat"]).arg(&warc));
    let refers = text
        .out
        .lines()
        .filter_map(|line| line.strip_prefix("WARC-Refers-To-Target-URI: "));
    let refers: BTreeSet<String> = refers.map(|uri| uri.trim().to_owned()).collect();
    assert_eq!(refers.len(), PAGES + 1);
    assert!(refers.is_subset(&firsts));
    // By default text is stored again, so that pages stay readable by themselves.
    let third = crawl("third", &["--job", "3", "--dedup", index]);
    assert_eq!(captured(&third).len(), PAGES + 2);
}

/// Fails if the refusal of a wrong command line does not say what to do, or a host outside of this machine is asked
/// without a contact.
#[test]
fn wrong_crawl_says_what_to_do() {
    let crawl = |words: &[&str]| run(executable().arg("crawl").args(words));
    let ran = crawl(&["https://example.org/", "--no-store"]).expect(2);
    assert!(ran.err.contains("--contact"), "{ran:?}");
    let ran = crawl(&["ftp://example.org/", "--no-store"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    let ran = crawl(&["--resume", "/no/such/job"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("job.toml"), "{ran:?}");
    // A job has its settings, and would not heed others.
    let ran = crawl(&["--resume", "/no/such/job", "--max-hops", "0"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    let directory = tempfile::tempdir().unwrap();
    let order = directory.path().join("order.toml");
    archive_durable::replace_file(&order, b"[scope]\nmax_hops = -1\n").unwrap();
    let words = ["http://localhost/", "--order", order.to_str().unwrap()];
    let ran = crawl(&words).expect(3);
    assert!(ran.err.contains("line 2"), "{ran:?}");
    let seeds = directory.path().join("seeds.txt");
    for (text, wrong) in [
        (
            "# ours\n\nhttp://localhost/\nhttp://local host/\n",
            "line 4: http://local host/",
        ),
        ("# none\n", "names no seed"),
    ] {
        archive_durable::replace_file(&seeds, text.as_bytes()).unwrap();
        let ran = crawl(&["--seeds", seeds.to_str().unwrap(), "--no-store"]).expect(2);
        assert!(ran.err.contains(wrong), "{ran:?}");
    }
    let ran = crawl(&["http://localhost/", "--delay", "soon", "--no-store"]);
    assert!(ran.code == 2 && ran.err.contains("--delay"), "{ran:?}");
}

/// Fails if a seed of a file is left out, or one that stands there twice is crawled twice.
#[test]
fn seeds_come_from_a_file_too() {
    let site = Site::serve();
    let directory = tempfile::tempdir().unwrap();
    let seeds = directory.path().join("seeds.txt");
    let base = &site.base;
    let text = format!("# ours\n  {base}  \n{base}\n{base}a\n");
    archive_durable::replace_file(&seeds, text.as_bytes()).unwrap();
    let jobs = directory.path().join("jobs");
    let mut command = executable();
    command.args([
        "crawl",
        "--no-store",
        "--json",
        "--delay",
        "1 ms",
        "--seeds",
    ]);
    let report = run(command.arg(&seeds).arg("--keep").arg(&jobs))
        .expect(0)
        .json();
    assert_eq!(report["outcome"], "finished");
    let job = std::fs::read_dir(&jobs).unwrap().next().unwrap().unwrap();
    let listed = std::fs::read_to_string(job.path().join("seeds.txt")).unwrap();
    assert_eq!(listed, format!("{base}\n{base}a\n"));
}
