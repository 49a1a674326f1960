//! Crawls that are killed again and again: resumed, they are as if nothing had happened.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc;

use rustix::process::{Pid, Signal, kill_process};

use crate::archive::content;
use crate::support::job::{JobFolder, crawl, executable, run};
use crate::support::nginx::Nginx;
use crate::support::relay::Relay;
use crate::support::tools::{Tools, dice};

/// The connections of a crawl.
const CONNECTIONS: usize = 4;

/// The pages of the site.
pub const PAGES: usize = 600;

/// Writes a site whose pages lead to each other. Each has words of its own: pages that repeat themselves are a trap.
pub fn write_site(root: &Path) {
    let word = |byte: &u8| char::from(b'a' + byte % 26);
    for page in 0..PAGES {
        let next = [page * 2 + 1, page * 2 + 2, page + 7].map(|next| next % PAGES);
        let links = next.map(|next| format!("<a href='/{next}.html'>{next}</a> "));
        let letters = content(&format!("page {page}"), 50 + page * 7 % 3000);
        let text = letters
            .chunks(7)
            .map(|word_of| word_of.iter().map(word).collect::<String>() + " ");
        let html = format!(
            "<html><body>{}{}</body></html>",
            links.concat(),
            text.collect::<String>()
        );
        std::fs::write(root.join(format!("{page}.html")), html).expect("write");
    }
    std::fs::write(root.join("index.html"), "<a href='/0.html'>in</a>").expect("write");
}

/// A crawl that is cut short and resumed, through a relay that knows the moment.
pub struct InterruptedCrawl<'a> {
    pub relay: &'a Relay,
    pub base: &'a Path,
}

impl InterruptedCrawl<'_> {
    /// Runs the crawl, or resumes it, until that number of pieces has passed the relay. Then acts upon it, and kills
    /// it.
    #[track_caller]
    pub fn run_until(&self, pieces: usize, act: impl FnOnce() + Send + 'static) {
        let mut command = executable();
        command.arg("crawl");
        if self.base.is_dir() {
            command
                .arg("--resume")
                .arg(JobFolder::only_one(self.base).path());
        } else {
            let seed = self.relay.base();
            let connections = CONNECTIONS.to_string();
            command.args([&seed, "--delay", "0", "--connections", &connections]);
            command
                .args(["--job", "5", "--no-store", "--keep"])
                .arg(self.base);
        }
        let (started, child) = mpsc::channel();
        self.relay.after(pieces, move || {
            act();
            let id: Pid = child.recv().expect("a process");
            kill_process(id, Signal::KILL).expect("a signal");
        });
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn().expect("a crawl");
        started.send(Pid::from_child(&child)).expect("sent");
        let output = child.wait_with_output().expect("an end");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            output.status.signal(),
            Some(9),
            "it ended by itself: {said}"
        );
    }

    /// Resumes the crawl to its end, and returns its directory.
    #[track_caller]
    pub fn finish(&self) -> JobFolder {
        let job = JobFolder::only_one(self.base);
        let ended = run(executable()
            .args(["crawl", "--json", "--resume"])
            .arg(job.path()))
        .expect(0);
        assert_eq!(ended.json()["status"], "done");
        job
    }
}

/// Returns the URIs of the site as an undisturbed crawl finds them.
pub fn undisturbed(relay: &Relay) -> BTreeSet<String> {
    let directory = tempfile::tempdir().expect("a directory");
    let base = relay.base();
    let words = [&base, "--delay", "0", "--connections", "4"];
    let uris = crawl(directory.path(), &words).0.uris();
    assert_eq!(
        uris.len(),
        PAGES + 3,
        "the pages, the home page, robots.txt and the icon"
    );
    uris
}

/// Checks the directory of a resumed crawl: all URIs, one line and one response each, valid files.
#[track_caller]
pub fn is_as_undisturbed(tools: &Tools, job: &JobFolder, expected: &BTreeSet<String>) {
    assert_eq!(&job.uris(), expected);
    job.check_files();
    assert!(tools.warcio_failures(&job.files()).is_empty());
    let files = job.archive_files();
    let responses = tools.judge("responses.py", &[], &files);
    let responses = responses.as_object().unwrap();
    for (uri, count) in responses {
        assert_eq!(count, 1, "{uri} has {count} responses");
    }
    let captured: BTreeSet<String> = responses.keys().cloned().collect();
    assert_eq!(&captured, expected);
}

/// Fails if a crawl that was killed ten times loses a URI or captures one twice, asks for more again than one URI a
/// kill and connection, or leaves a file that is not valid.
#[test]
fn crawl_killed_ten_times_is_whole() {
    const KILLS: usize = 10;
    let Some(tools) = Tools::find() else { return };
    let root = tempfile::tempdir().unwrap();
    write_site(root.path());
    let site = Nginx::serve(&tools.nginx, root.path());
    let relay = Relay::to(site.port);
    let expected = undisturbed(&relay);
    let before = site.requests_when(|requests| requests.len() == expected.len());
    let directory = tempfile::tempdir().unwrap();
    let crawl = InterruptedCrawl {
        relay: &relay,
        base: &directory.path().join("crawl"),
    };
    let mut dice = dice();
    // A request and its response are two pieces at least, and each kill has its share of them: the crawl lasts until
    // the last one.
    let share = 2 * PAGES as u64 / (KILLS as u64 + 1);
    for _ in 0..KILLS {
        let pieces = usize::try_from(1 + dice.below(share)).unwrap();
        crawl.run_until(pieces, || ());
    }
    let job = crawl.finish();
    is_as_undisturbed(&tools, &job, &expected);
    let requests = site.requests().split_off(before.len());
    let paths: BTreeSet<&str> = requests
        .iter()
        .map(|request| request.path.as_str())
        .collect();
    let repeats = requests.len() - paths.len();
    assert!(
        repeats <= KILLS * CONNECTIONS,
        "{repeats} repeats of {} requests",
        requests.len()
    );
}
