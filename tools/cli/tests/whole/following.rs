//! The index follows an archive in which parts are down, busy or killed: nothing is late, lost or shown twice.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use archive_formats::warc::{Builder, WarcType, WarcWriter};
use rustix::process::Signal;
use serde_json::{Value, json};
use tools_testing::Random;

use crate::archive::{Archive, wait};
use crate::batch::hostile;
use crate::kills::chosen;

/// A generous bound: it says that nothing waits for what is down, not how fast a machine is.
const BOUND: Duration = Duration::from_mins(1);

/// Returns the URL of a page of a file.
fn url(file: &str, page: u64) -> String {
    format!("http://{file}.example/{page}")
}

/// Makes an archive file of a few pages, under a name of its own.
fn make(archive: &Archive, file: &str, pages: u64) -> PathBuf {
    let mut writer = WarcWriter::gzip_writer(Vec::new(), 6);
    for page in 0..pages {
        let id = format!("urn:uuid:00000000-0000-4000-8000-{page:012}");
        let block =
            format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>{page} of {file}");
        let record = Builder::new(WarcType::Response, &id, "2026-11-21T19:14:09Z")
            .target_uri(&url(file, page))
            .content_type("application/http; msgtype=response");
        let length = block.len() as u64;
        let head = record.render_head(length).expect("a header");
        writer
            .write_record(&head, length, &mut block.as_bytes())
            .expect("written");
    }
    let path = archive.path(&format!("{file}.warc.gz"));
    std::fs::write(&path, writer.into_inner()).expect("write");
    path
}

/// Returns the captures of a page.
fn captures(archive: &Archive, url: &str) -> Result<usize, String> {
    let ran = archive.run(&["--json", "captures", url]);
    if ran.code == 0 {
        Ok(ran.out.lines().count())
    } else {
        Err(ran.err)
    }
}

/// Waits until pages are found, each once.
#[track_caller]
fn found(archive: &Archive, file: &str, page: u64) {
    let url = url(file, page);
    wait(&format!("captures of {url}"), || {
        match captures(archive, &url) {
            Ok(1) => Ok(()),
            other => Err(other),
        }
    });
}

/// Returns the status of the index, once all is indexed.
#[track_caller]
fn all_indexed(archive: &Archive) -> Value {
    wait("nothing is behind", || {
        let ran = archive.run(&["--json", "index", "status"]);
        if matches!(ran.code, 0 | 1) && ran.json()["behind"] == 0 {
            return Ok(ran.json());
        }
        Err(ran)
    })
}

/// Jobs of a researcher that compute for as long as they are let.
fn begin_endless_jobs(archive: &Archive) {
    let path = hostile(archive, "endless.wat");
    for id in ["long-1", "long-2"] {
        let words = [
            "batch",
            "run",
            "--wasm",
            path.to_str().expect("text"),
            "--detach",
            "--id",
            id,
        ];
        archive.run(&words).expect(0);
        wait("it computes", || {
            let job = archive.run(&["--json", "batch", "status", id]);
            let runs = matches!(job.code, 0 | 1) && job.json()["state"] == "running";
            runs.then_some(()).ok_or(job)
        });
    }
}

/// Fails if a capture is found late because researchers compute, or because a node or a monitor of one replica is
/// killed or hangs.
#[test]
fn captures_are_found_soon_beside_dead_replica() {
    let mut archive = Archive::processes(&[]);
    // With replica one down there are receipts only if it is not required.
    let settings = archive.data().join("settings/repository.toml");
    let text = std::fs::read_to_string(&settings).expect("read");
    std::fs::write(
        &settings,
        text.replacen("required = true", "required = false", 1),
    )
    .expect("write");
    archive.kill("repository");
    archive.restart("repository");
    archive.wait_for_answers();
    let first = make(&archive, "first", 3);
    archive
        .run(&["store", first.to_str().expect("text")])
        .expect(0);
    found(&archive, "first", 0);
    begin_endless_jobs(&archive);

    let mut slowest = Duration::ZERO;
    for (number, (what, part, signal)) in [
        ("nothing is down", "", None),
        ("a node is killed", "bitarchive-one", Some(Signal::KILL)),
        ("a node hangs", "bitarchive-one", Some(Signal::STOP)),
        ("a monitor is killed", "monitor-one", Some(Signal::KILL)),
        ("a monitor hangs", "monitor-one", Some(Signal::STOP)),
    ]
    .into_iter()
    .enumerate()
    {
        match signal {
            Some(signal) if signal == Signal::KILL => archive.kill(part),
            Some(signal) => archive.signal(part, signal),
            None => {}
        }
        // At once, and when it is known that the part is down.
        for round in 0..3 {
            let file = format!("case-{number}-{round}");
            let path = make(&archive, &file, 3);
            archive.until(&["store", path.to_str().expect("text")], 0);
            let stored = Instant::now();
            found(&archive, &file, 2);
            let span = stored.elapsed();
            println!("{what}, file {round}: found {span:?} after its receipt");
            slowest = slowest.max(span);
        }
        match signal {
            Some(signal) if signal == Signal::KILL => archive.restart(part),
            Some(_) => archive.signal(part, Signal::CONT),
            None => {}
        }
        archive.wait_for_answers();
    }
    // A node goes away between a receipt and the reading of the file: the archive does not know of it yet.
    let path = make(&archive, "between", 3);
    archive.signal("index", Signal::STOP);
    archive
        .run(&["store", path.to_str().expect("text")])
        .expect(0);
    archive.signal("bitarchive-one", Signal::STOP);
    archive.signal("index", Signal::CONT);
    let stored = Instant::now();
    found(&archive, "between", 2);
    let span = stored.elapsed();
    println!("a node hangs behind a receipt: found after {span:?}");
    slowest = slowest.max(span);
    archive.signal("bitarchive-one", Signal::CONT);
    archive.wait_for_answers();
    println!("the slowest of all: {slowest:?}");
    assert!(slowest < BOUND, "{slowest:?}");
    let status = all_indexed(&archive);
    assert_eq!(status["parked_files"], 0, "{status:#}");
    for id in ["long-1", "long-2"] {
        archive.run(&["batch", "cancel", id]).expect(0);
    }
    archive.stop();
}

/// Fails if a capture is lost or shown twice, or a file parked, because a part was killed while the index followed.
///
/// `HOLDFAST_KILLS` is how often (10), `HOLDFAST_SEED` repeats the choices of a run.
#[test]
fn killed_parts_lose_and_repeat_no_capture() {
    const PAGES: u64 = 50;
    const PARTS: [&str; 5] = [
        "index",
        "repository",
        "bitarchive-one",
        "bitarchive-two",
        "monitor-one",
    ];
    let (kills, seed) = chosen(10);
    let mut dice = Random::new(seed);
    let mut archive = Archive::processes(&[]);
    let mut files = Vec::new();
    for round in 0..kills {
        let mut words = vec!["store".to_owned()];
        for number in 0..3 {
            let file = format!("f-{round}-{number}");
            words.push(make(&archive, &file, PAGES).display().to_string());
            files.push(file);
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        archive.until(&words, 0);
        // In the middle of whatever it does for these files.
        let part = PARTS[usize::try_from(dice.below(5)).expect("small")];
        archive.kill_within(Duration::from_millis(700), part, &mut dice);
    }
    archive.wait_for_answers();
    wait("all files are indexed", || {
        let status = all_indexed(&archive);
        let is_all = status["indexed"] == files.len();
        is_all.then_some(()).ok_or(status)
    });
    let exported = archive.run(&["index", "export", "-o", "-"]).expect(0).out;
    let lines = exported.lines();
    let urls: Vec<String> = lines
        .map(|line| {
            let fields = line.splitn(3, ' ').nth(2).expect("three fields");
            let fields: Value = serde_json::from_str(fields).expect("a document");
            fields["url"].as_str().expect("text").to_owned()
        })
        .collect();
    let expected: BTreeSet<String> = files
        .iter()
        .flat_map(|file| (0..PAGES).map(move |page| url(file, page)))
        .collect();
    assert_eq!(urls.len(), expected.len(), "each once");
    assert!(urls.into_iter().collect::<BTreeSet<_>>() == expected);
    let status = all_indexed(&archive);
    assert_eq!(
        (&status["captures"], &status["parked_files"]),
        (&expected.len().into(), &0.into()),
        "{status:#}"
    );
    archive.stop();
}

/// Fails if what was stored while the index was away is not caught up, by a job for each file, or if the results of its
/// jobs pile up in the repository.
#[test]
fn thousand_files_are_caught_up_in_few_jobs() {
    const FILES: usize = 1000;
    let mut archive = Archive::processes(&[]);
    archive.kill("index");
    let directory = archive.path("many");
    std::fs::create_dir(&directory).expect("mkdir");
    for number in 0..FILES {
        let path = make(&archive, &format!("n-{number:04}"), 2);
        std::fs::rename(&path, directory.join(path.file_name().expect("a name"))).expect("move");
    }
    let words = ["store", "--recursive", directory.to_str().expect("text")];
    archive.run(&words).expect(0);
    let begun = Instant::now();
    archive.restart("index");
    let status = wait("all files are indexed", || {
        let status = all_indexed(&archive);
        let is_all = status["indexed"] == FILES;
        is_all.then_some(status.clone()).ok_or(status)
    });
    println!("{FILES} files caught up in {:?}", begun.elapsed());
    assert_eq!(status["captures"], 2 * FILES, "{status:#}");
    for number in [0, 499, 999] {
        found(&archive, &format!("n-{number:04}"), 1);
    }
    let listed = archive.json(&["batch", "list"], 0);
    assert_eq!(listed["jobs"], json!([]), "those of people");
    let listed = archive.json(&["batch", "list", "--all"], 0);
    let jobs = listed["jobs"].as_array().expect("jobs");
    let own: Vec<&Value> = jobs
        .iter()
        .filter(|job| {
            job["who"]
                .as_str()
                .is_some_and(|who| who.starts_with("index/"))
        })
        .collect();
    println!("{} jobs of the index are kept", own.len());
    assert!((1..=40).contains(&own.len()), "{} jobs", own.len());
    for job in own {
        let ended = time(job, "ended");
        let expires = time(job, "expires");
        let kept = expires.duration_since(ended).as_secs();
        assert!((1..=600).contains(&kept), "{job:#}");
    }
    archive.stop();
}

fn time(job: &Value, field: &str) -> jiff::Timestamp {
    let text = job[field]
        .as_str()
        .unwrap_or_else(|| panic!("{field} of {job:#}"));
    text.parse().expect("a time")
}
