//! `crawl`: jobs that are interrupted, damaged, without an answer, or asked for something while they run.
#![expect(clippy::unwrap_used, reason = "helpers of a test")]

use std::io::{Read, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tools_testing::{PATIENCE, eventually_blocking};

use crate::crawls::{Site, only_entry};
use crate::holdfast::{Ran, executable, run};

/// Begins a crawl that fetches robots.txt and then rests for an hour. Gives its process and its directory.
fn begin_slow(site: &Site, base: &Path) -> (Child, PathBuf) {
    let mut command = executable();
    command.args([
        "crawl",
        &site.base,
        "--delay",
        "3600000",
        "--no-store",
        "--keep",
    ]);
    let command = command
        .arg(base)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let job = eventually_blocking("the job", PATIENCE, || {
        let entries = std::fs::read_dir(base).map_err(|error| error.to_string())?;
        let mut names = entries.map(|entry| entry.unwrap().file_name());
        // One that begins with a dot is not whole yet, and is renamed.
        let job = names.find(|name| !name.as_encoded_bytes().starts_with(b"."));
        job.map(|name| base.join(name))
            .ok_or_else(|| "no job".to_owned())
    });
    wait_for_outcome(&job, &format!("{}robots.txt", site.base));
    (child, job)
}

/// Waits until the crawl log has the outcome of `uri`: its fourth column.
fn wait_for_outcome(job: &Path, uri: &str) {
    eventually_blocking("a fetched URI", PATIENCE, || {
        let log = std::fs::read_to_string(job.join("logs/crawl.log")).unwrap_or_default();
        let mut uris = log.lines().map(|line| line.split_whitespace().nth(3));
        if uris.any(|logged| logged == Some(uri)) {
            Ok(())
        } else {
            Err(log)
        }
    });
}

fn end(child: Child, signal: Signal) -> Output {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
    child.wait_with_output().unwrap()
}

/// Reads what a process says until it says some words.
fn read_until(child: &mut Child, words: &str) {
    let said = child.stderr.as_mut().unwrap();
    let mut text = Vec::new();
    let mut byte = [0];
    while !String::from_utf8_lossy(&text).contains(words) {
        said.read_exact(&mut byte).unwrap();
        text.extend(byte);
    }
}

fn resume(job: &Path) -> Ran {
    run(executable().args(["crawl", "--json", "--resume"]).arg(job))
}

/// Returns a URI of this machine at which no server listens.
fn dead_seed() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}/", listener.local_addr().unwrap())
}

/// Fails if a signal loses the crawl, a second process joins it, or the job does not end as it should.
#[test]
fn interrupted_crawl_goes_on_and_is_terminated() {
    let site = Site::serve();
    let directory = tempfile::tempdir().unwrap();
    let (child, job) = begin_slow(&site, directory.path());
    let second = resume(&job);
    assert_eq!(second.code, 5, "{second:?}");
    assert!(second.err.contains("another process"), "{second:?}");
    for (child, signal) in [(Some(child), Signal::INT), (None, Signal::TERM)] {
        let child = child.unwrap_or_else(|| {
            let mut command = executable();
            let command = command.args(["crawl", "--resume"]).arg(&job);
            let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn().unwrap();
            read_until(&mut child, "URIs were fetched");
            // Another process asks at once for what the first one rested before.
            wait_for_outcome(&job, &site.base);
            child
        });
        let ended = end(child, signal);
        let told = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(130), "{told}");
        assert!(told.contains("ending the crawl"), "{told}");
        assert!(told.contains("crawl --resume "), "{told}");
    }
    archive_durable::replace_file(&job.join("action/terminate"), b"").unwrap();
    let ran = resume(&job);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.err.contains("resuming its crawl"), "{ran:?}");
    assert!(ran.err.contains("1 URIs were fetched"), "{ran:?}");
    assert_eq!(ran.json()["stop_reason"], "Finished - Ended by operator");
    let report = std::fs::read_to_string(job.join("reports/frontier-summary-report.txt")).unwrap();
    let queue = report
        .lines()
        .find(|line| line.starts_with("127.0.0.1 "))
        .unwrap();
    let fields: Vec<&str> = queue.split(' ').collect();
    assert_eq!((fields.len(), fields[2]), (12, "3"), "{report}");
    assert!(fields[10].starts_with(&site.base), "{report}");
    let threads = std::fs::read_to_string(job.join("reports/threads-report.txt")).unwrap();
    assert!(threads.contains("[thread]"), "{threads}");
}

/// Fails if a crawl of seeds that no server answers for passes for done, or does not name them.
#[test]
fn dead_seed_ends_with_exit_four() {
    let seed = dead_seed();
    let other = dead_seed();
    let directory = tempfile::tempdir().unwrap();
    let order = directory.path().join("order.toml");
    archive_durable::replace_file(&order, b"[retry]\nmax_tries = 1\n").unwrap();
    let jobs = directory.path().join("jobs");
    let mut command = executable();
    let words = ["crawl", &seed, &other, "--no-store", "--json", "--order"];
    let ran = run(command.args(words).arg(&order).arg("--keep").arg(&jobs)).expect(4);
    let named = format!("no seed was fetched: {seed}: ");
    assert!(ran.err.contains(&named), "{ran:?}");
    assert!(
        ran.err
            .contains("no connection to its host can be made; it is not tried again"),
        "{ran:?}"
    );
    let report = ran.json();
    assert_eq!(report["objects"], 0);
    assert_eq!(report["failed_seeds"][1]["seed"], other.as_str());
    // With a seed that answers, it is a crawl like others.
    let site = Site::serve();
    let jobs = directory.path().join("others");
    let mut command = executable();
    let words = [
        "crawl",
        &seed,
        &site.base,
        "--no-store",
        "--json",
        "--delay",
        "0",
        "--order",
    ];
    let ran = run(command.args(words).arg(&order).arg("--keep").arg(&jobs)).expect(0);
    assert_eq!(ran.json()["failed_seeds"][0]["seed"], seed.as_str());
    let named = format!("one seed was not fetched well: {seed}: ");
    assert!(ran.err.contains(&named), "{ran:?}");
}

/// Fails if a crawl whose directory goes away ends with a crash, or with advice that leads nowhere.
#[test]
fn crawl_without_its_directory_ends_with_a_reason() {
    let site = Site::serve();
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().join("jobs");
    let (child, job) = begin_slow(&site, &base);
    // The crawl may be making a file there.
    eventually_blocking("the directory to go", PATIENCE, || {
        std::fs::remove_dir_all(&job).map_err(|error| error.to_string())
    });
    let ended = child.wait_with_output().unwrap();
    let told = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{told}");
    assert!(told.contains("the directory of the job is gone"), "{told}");
}

/// Fails if a crawl that ends because nothing but what cannot be reached is left passes for done, calls a domain complete
/// of which something is left, names no seed that its host lacks, or cannot go on once the host is there.
#[test]
fn idle_crawl_says_what_is_left_and_goes_on() {
    let site = Site::serve();
    let dead = TcpListener::bind("127.0.0.2:0").unwrap();
    let address = dead.local_addr().unwrap();
    drop(dead);
    let seed = format!("http://{address}/");
    let missing = format!("{}missing", site.base);
    let directory = tempfile::tempdir().unwrap();
    let order = directory.path().join("order.toml");
    let text = b"[limits]\nidle = \"1 s\"\n[retry]\nfirst_delay = \"1 h\"\n";
    archive_durable::replace_file(&order, text).unwrap();
    let jobs = directory.path().join("jobs");
    let mut command = executable();
    let words = [
        "crawl",
        &site.base,
        &missing,
        &seed,
        "--no-store",
        "--json",
        "--delay",
        "0",
        "--order",
    ];
    let ran = run(command.args(words).arg(&order).arg("--keep").arg(&jobs)).expect(1);
    assert!(
        ran.err
            .contains("1 URI is left, whose hosts could not be reached"),
        "{ran:?}"
    );
    assert!(
        ran.err
            .contains(&format!("{missing}: its host says that it is not there")),
        "{ran:?}"
    );
    let report = ran.json();
    assert_eq!(
        (&report["outcome"], &report["remaining"]),
        (&"idle".into(), &1.into())
    );
    let domain = |name: &str| {
        let domains = report["domains"].as_array().unwrap();
        domains
            .iter()
            .find(|domain| domain["domain"] == name)
            .unwrap()
    };
    let left = domain("127.0.0.2");
    assert_eq!(
        (&left["objects"], &left["remaining"], &left["stop_reason"]),
        (&0.into(), &1.into(), &"download unfinished".into())
    );
    assert_eq!(domain("127.0.0.1")["stop_reason"], "download complete");
    let job = only_entry(&jobs);
    let status = run(executable().args(["crawl", "status"]).arg(&job)).expect(0);
    assert!(
        status
            .out
            .contains("1 URI is left: `holdfast crawl --resume"),
        "{status:?}"
    );
    // The host is there now.
    let listener = TcpListener::bind(address).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            // One that closes without a request is answered, too.
            _ = stream.read(&mut request);
            _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
        }
    });
    let report = resume(&job).expect(0).json();
    assert_eq!(
        (&report["outcome"], &report["remaining"]),
        (&"finished".into(), &0.into()),
        "{report}"
    );
}

/// Fails if a crawl continues with a shortened log, changes it, or what it has recorded cannot be had without its
/// state.
#[test]
fn damaged_job_is_refused_and_salvaged() {
    let site = Site::serve();
    let directory = tempfile::tempdir().unwrap();
    let (child, job) = begin_slow(&site, directory.path());
    end(child, Signal::INT);
    let log = job.join("logs/crawl.log");
    let mut whole = std::fs::read(&log).unwrap();
    whole.pop();
    archive_durable::replace_file(&log, &whole).unwrap();
    let ran = resume(&job);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("crawl.log: has "), "{ran:?}");
    let salvage = format!("holdfast crawl --salvage {}", job.display());
    assert!(ran.err.contains(&salvage), "{ran:?}");
    assert_eq!(std::fs::read(&log).unwrap(), whole);
    let ran = run(executable()
        .args(["crawl", "--json", "--salvage"])
        .arg(&job));
    assert_eq!(ran.code, 1, "{ran:?}");
    let report = ran.json();
    assert_eq!(report["status"], "failed");
    assert_eq!(
        report["stop_reason"],
        "Finished - Abnormal exit from crawling"
    );
    assert_eq!(report["files"].as_array().unwrap().len(), 2, "{report}");
    run(executable()
        .args(["warc", "check"])
        .arg(only_entry(&job.join("warcs"))))
    .expect(0);
    run(executable()
        .args(["warc", "check"])
        .arg(only_entry(&job.join("metadata"))))
    .expect(0);
    let again = run(executable()
        .args(["crawl", "--json", "--salvage"])
        .arg(&job));
    assert_eq!(again.json()["files"], report["files"], "{again:?}");
}

/// Fails if an option of the command line is lost on its way into the job, or does not stand over the order.
#[test]
fn every_option_reaches_the_job() {
    let site = Site::serve();
    let directory = tempfile::tempdir().unwrap();
    let order = directory.path().join("order.toml");
    let text = b"[scope]\nmax_hops = 3\nmax_embed_hops = 1\n[robots]\npolicy = \"obey\"\n";
    archive_durable::replace_file(&order, text).unwrap();
    let jobs = directory.path().join("jobs");
    let mut command = executable();
    let words = [
        "crawl",
        &site.base,
        "--scope",
        "prefix",
        "--max-hops",
        "2",
        "--max-objects",
        "3",
        "--max-bytes",
        "5 MB",
        "--max-time",
        "2 h",
        "--robots",
        "ignore",
        "--delay",
        "1",
        "--connections",
        "2",
        "--dedup-all",
        "--dns",
        "127.0.0.1:5353",
        "--allow-network",
        "10.0.0.0/8",
        "--contact",
        "https://library.example/harvest",
        "--collection",
        "national",
        "--job",
        "12",
        "--harvest",
        "34",
        "--organization",
        "library.example",
        "--no-store",
        "--json",
        "--order",
    ];
    let ran = run(command.args(words).arg(&order).arg("--keep").arg(&jobs)).expect(0);
    let report = ran.json();
    let mut keys: Vec<&String> = report.as_object().unwrap().keys().collect();
    keys.sort();
    let expected = [
        "bytes",
        "directory",
        "domains",
        "failed",
        "failed_seeds",
        "files",
        "job",
        "objects",
        "outcome",
        "quarantined",
        "remaining",
        "status",
        "stop_reason",
    ];
    assert_eq!(keys, expected);
    let job = only_entry(&jobs);
    assert!(
        job.file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with("12_")
    );
    let order = std::fs::read_to_string(job.join("order.toml")).unwrap();
    for line in [
        "kind = \"prefix\"",
        "max_hops = 2",
        "max_embed_hops = 1",
        "max_objects = 3",
        "max_bytes = \"5 MB\"",
        "max_time = \"2 h\"",
        "policy = \"ignore\"",
        "min_delay = \"1 ms\"",
        "connections = 2",
        "all = true",
        "\"127.0.0.1:5353\"",
        "\"10.0.0.0/8\"",
        "contact = \"https://library.example/harvest\"",
    ] {
        assert!(order.contains(line), "{line} in {order}");
    }
    let file = report["files"][0]["name"].as_str().unwrap();
    assert!(file.starts_with("national-12-34-"), "{file}");
    let info = std::fs::read_to_string(job.join("run.json")).unwrap();
    assert!(info.contains("library.example"), "{info}");
}

/// Fails if the help does not say how a crawl that runs is asked for something.
#[test]
fn help_names_every_request() {
    let ran = run(executable().args(["crawl", "--help"])).expect(0);
    let names = [
        "pause",
        "resume",
        "terminate",
        "NAME.seeds",
        "NAME.reject",
        "NAME.accept",
        "NAME.free",
        "NAME.retry",
        "NAME.budget",
        "NAME.order",
        "TIME-NAME.refused",
        "crawl status",
        "--retry-failed",
        "--salvage",
        "Ctrl-C",
    ];
    for name in names {
        assert!(ran.out.contains(name), "{name}: {}", ran.out);
    }
}

/// Fails if a person is not shown what a crawl waits for, that nobody works on it, or how it goes on behind its limit.
#[test]
fn crawl_is_watched_until_its_end_and_beyond() {
    let site = Site::serve();
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().join("jobs");
    let (child, job) = begin_slow(&site, &base);
    let status = |words: &[&str]| run(executable().args(["crawl", "status"]).arg(&job).args(words));
    let running = eventually_blocking("the queue that rests", PATIENCE, || {
        let ran = status(&[]);
        // It rests once its first fetch is over.
        if ran.out.contains("the end of its pause, until") {
            Ok(ran)
        } else {
            Err(format!("{ran:?}"))
        }
    });
    assert_eq!(running.code, 0, "{running:?}");
    for part in [
        ": crawling for",
        "1 queued in 1 active queues",
        "QUEUE",
        "last lines",
        "/robots.txt",
    ] {
        assert!(running.out.contains(part), "{part}: {}", running.out);
    }
    let view = status(&["--json"]).json();
    assert_eq!(view["state"], "crawling");
    assert_eq!(view["view"]["queues"]["entries"][0]["wait"], "pause");
    let other = status(&["--json", "--about", "nobody.dk"]).json();
    assert_eq!(
        other["view"]["queues"]["entries"].as_array().unwrap().len(),
        0
    );
    let seeds = status(&["--seeds"]).expect(0);
    assert!(
        seeds.out.contains("it waits, or is being tried"),
        "{seeds:?}"
    );
    let jobs = run(executable().args(["crawl", "list"]).arg(&base)).expect(0);
    assert!(jobs.out.contains("crawling"), "{jobs:?}");
    end(child, Signal::KILL);
    let killed = status(&[]).expect(1);
    assert!(killed.out.contains("does not run"), "{killed:?}");

    let ended = |words: &[&str], code| {
        let mut command = executable();
        run(command.args(["crawl", "--json"]).args(words).arg(&job)).expect(code)
    };
    let report = ended(&["--delay", "0", "--max-objects", "2", "--resume"], 0).json();
    assert_eq!(
        (&report["outcome"], &report["objects"]),
        (&"limit".into(), &2.into())
    );
    let limit = status(&[]).expect(0);
    assert!(limit.out.contains("ended at a limit"), "{limit:?}");
    assert!(
        limit.out.contains("are left: `holdfast crawl --resume"),
        "{limit:?}"
    );
    let refused = ended(&["--resume"], 2);
    assert!(
        refused.err.contains("give a higher one by --max-objects"),
        "{refused:?}"
    );
    let refused = ended(
        &[
            "--max-objects",
            "9",
            "--order",
            "/no/such/order",
            "--resume",
        ],
        2,
    );
    assert!(refused.err.contains("/no/such/order"), "{refused:?}");
    let report = ended(&["--max-objects", "100", "--resume"], 0).json();
    assert_eq!(report["outcome"], "finished", "{report}");
    let finished = status(&[]).expect(0);
    assert!(
        finished.out.contains("finished: nothing was left to fetch"),
        "{finished:?}"
    );
    let seeds = status(&["--seeds", "--json"]).json();
    assert_eq!(seeds[0]["status"], 200, "{seeds}");
    let nothing = ended(&["--retry-failed"], 1);
    assert!(nothing.err.contains("no failures"), "{nothing:?}");
}

/// Fails if the order that is printed is not one that can be given, or does not explain itself.
#[test]
fn order_is_printed_as_it_can_be_given() {
    let printed = run(executable().args(["crawl", "order"])).expect(0).out;
    assert!(
        printed.contains("# The pause of a host after each fetch."),
        "{printed}"
    );
    let directory = tempfile::tempdir().unwrap();
    let order = directory.path().join("order.toml");
    archive_durable::replace_file(&order, printed.as_bytes()).unwrap();
    let mut command = executable();
    command
        .args(["crawl", "https://example.org/", "--no-store", "--order"])
        .arg(&order);
    // It lacks nothing but a contact.
    let ran = run(&mut command).expect(2);
    assert!(ran.err.contains("--contact"), "{ran:?}");
}
