//! Batch jobs as people run them: parts are killed meanwhile, components misbehave, and the answer is whole or says
//! why.

use std::path::{Path, PathBuf};

use archive_formats::warc::{Builder, WarcType, WarcWriter};
use rustix::process::Signal;
use serde_json::Value;
use tools_testing::Random;

use crate::archive::{Archive, wait};

const MONITOR: &str = "monitor-one";
const NODE: &str = "bitarchive-one";

/// Pages whose bytes shrink well: much to read, little to store.
fn pages(file: u64, records: u64, size: usize) -> Vec<u8> {
    let mut dice = Random::new(file + 1);
    let mut writer = WarcWriter::gzip_writer(Vec::new(), 6);
    for page in 0..records {
        let id = format!("urn:uuid:00000000-0000-4000-8000-{file:06}{page:06}");
        let url = format!("http://site-{}.example/{file}/{page}", dice.below(7));
        let line = format!("<p>{} of {page} in {file}</p>\n", dice.below(1_000_000));
        let mut block = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<title>Page {page} of {file}</title>\n"
        )
        .into_bytes();
        while block.len() < size {
            block.extend_from_slice(line.as_bytes());
        }
        let record = Builder::new(WarcType::Response, &id, "2026-11-21T19:14:09Z")
            .target_uri(&url)
            .content_type("application/http; msgtype=response");
        let length = block.len() as u64;
        let head = record.render_head(length).expect("a header");
        writer
            .write_record(&head, length, &mut block.as_slice())
            .expect("written");
    }
    writer.into_inner()
}

/// Stores `count` archive files, and returns their paths outside the archive.
pub fn store(archive: &Archive, count: u64, records: u64, size: usize) -> Vec<PathBuf> {
    let paths: Vec<PathBuf> = (0..count)
        .map(|number| {
            let path = archive.path(&format!("f-{number:03}.warc.gz"));
            std::fs::write(&path, pages(number, records, size)).expect("write");
            path
        })
        .collect();
    let mut words = vec!["store"];
    words.extend(paths.iter().map(|path| path.to_str().expect("text")));
    archive.run(&words).expect(0);
    paths
}

/// Returns the index that `holdfast` makes of the same files on this machine.
fn index(archive: &Archive, paths: &[PathBuf]) -> String {
    let mut words = vec!["cdx"];
    words.extend(paths.iter().map(|path| path.to_str().expect("text")));
    archive.run(&words).expect(0).out
}

fn status(archive: &Archive, id: &str) -> Option<Value> {
    let ran = archive.run(&["--json", "batch", "status", id]);
    matches!(ran.code, 0 | 1).then(|| ran.json())
}

fn has_ended(status: &Value) -> bool {
    ["done", "partial", "failed", "cancelled"]
        .iter()
        .any(|word| status["state"] == *word)
}

fn end_of(archive: &Archive, id: &str) -> Value {
    wait("the end of a job", || match status(archive, id) {
        Some(status) if has_ended(&status) => Ok(status),
        other => Err(other),
    })
}

/// Writes the binary form of a component of the hostile ones beside the archive.
pub fn hostile(archive: &Archive, name: &str) -> PathBuf {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../archive/component/tests/hostile");
    let binary = wat::parse_file(folder.join(name)).expect("a component");
    let path = archive.path(name).with_extension("wasm");
    std::fs::write(&path, binary).expect("write");
    path
}

/// Fails if a job is lost, or gives other lines, because the repository, the monitor or the node was killed under it.
#[test]
fn a_job_survives_the_kill_of_every_part() {
    let mut archive = Archive::processes(&[]);
    let paths = store(&archive, 40, 20, 1 << 20);
    let expected = index(&archive, &paths);
    assert_eq!(expected.lines().count(), 800);
    for part in ["repository", MONITOR, NODE] {
        let id = format!("without-{part}");
        let words = [
            "batch",
            "run",
            "extract-cdx",
            "--replica",
            "one",
            "--detach",
            "--id",
            &id,
        ];
        assert_eq!(archive.run(&words).expect(0).out.trim(), id);
        wait("a node reads for the job", || {
            let status = status(&archive, &id);
            let nodes = status
                .as_ref()
                .and_then(|status| status["nodes"].as_array());
            let runs = nodes.is_some_and(|nodes| !nodes.is_empty());
            runs.then_some(()).ok_or(status)
        });
        // The job cannot end before its part is killed.
        archive.signal(NODE, Signal::STOP);
        let under_way = status(&archive, &id).expect("a status");
        assert_eq!(under_way["state"], "running", "{part}: {under_way:#}");
        archive.kill(part);
        archive.restart(part);
        if part != NODE {
            archive.signal(NODE, Signal::CONT);
        }
        let ended = end_of(&archive, &id);
        println!("{part}: begun again {} time(s)", ended["restarts"]);
        // A run that has begun needs no monitor.
        assert!(
            ended["restarts"].as_u64() > Some(0) || part == MONITOR,
            "{part}: {ended:#}"
        );
        assert_eq!(ended["state"], "done", "{part}: {ended:#}");
        assert_eq!((&ended["files"], &ended["failed"]), (&40.into(), &0.into()));
        let result = archive.run(&["batch", "output", &id]).expect(0).out;
        assert!(result == expected, "{part}: another result");
    }
    archive.stop();
}

/// Fails if the result, the errors or the manifest of a job do not get into the files that were named, or are written
/// over others.
#[test]
fn person_follows_batch_job_and_gets_its_output() {
    let archive = Archive::start(&[]);
    let jobs = archive.json(&["batch", "jobs"], 0);
    let names: Vec<&str> = jobs["jobs"]
        .as_array()
        .expect("jobs")
        .iter()
        .map(|job| job["name"].as_str().expect("a name"))
        .collect();
    assert!(
        names.contains(&"checksum") && names.contains(&"extract-cdx"),
        "{names:?}"
    );
    let paths = store(&archive, 3, 4, 2000);
    let at = |name: &str| archive.path(name).to_str().expect("text").to_owned();
    let result = at("result");
    let errors = at("errors");
    let manifest = at("manifest");
    let words = [
        "batch",
        "run",
        "checksum",
        "--arg",
        "algorithm=blake3",
        "-o",
        &result,
        "-e",
        &errors,
        "--manifest",
        &manifest,
    ];
    archive.run(&words).expect(0);
    let line = |path: &PathBuf| {
        let bytes = std::fs::read(path).expect("read");
        let name = path.file_name().expect("a name").to_string_lossy();
        format!("{name}##{}\n", blake3::hash(&bytes))
    };
    let lines = paths.iter().map(line).collect::<Vec<_>>().concat();
    assert_eq!(std::fs::read_to_string(&result).expect("read"), lines);
    assert_eq!(std::fs::read_to_string(&errors).expect("read"), "");
    let read = std::fs::read_to_string(&manifest).expect("read");
    assert_eq!(read.lines().count(), 4, "the job, and three files: {read}");
    // Nothing is overwritten.
    archive.run(&words).expect(5);
    assert_eq!(
        archive.run(&["batch", "run", "file-list"]).expect(0).out,
        "f-000.warc.gz\nf-001.warc.gz\nf-002.warc.gz\n"
    );
    let listed = archive.json(&["batch", "list", "--own"], 0);
    assert_eq!(
        listed["jobs"].as_array().expect("jobs").len(),
        2,
        "{listed:#}"
    );
    archive.run(&["batch", "run", "make-coffee"]).expect(1);
    archive
        .run(&["batch", "run", "extract-metadata", "--arg", "url=("])
        .expect(2);
    archive.run(&["batch", "status", "b-unknown"]).expect(1);
    archive
        .run(&["batch", "run", "file-list", "--as", "custodian/custodian-1"])
        .expect(5);
    archive.stop();
}

/// Fails if a component that never ends, takes memory or writes without a limit, or traps is not stopped, or changes
/// what a job beside it gives.
#[test]
fn misbehaving_component_is_stopped_without_harm_to_others() {
    let archive = Archive::start(&[]);
    let paths = store(&archive, 4, 6, 5000);
    let expected = index(&archive, &paths);
    for (name, words, option) in [
        (
            "endless.wat",
            "may be endless",
            ["--file-timeout", "500 ms"],
        ),
        ("greedy.wat", "memory", ["--memory", "64 MB"]),
        ("chatty.wat", "written more", ["--max-output", "1 MB"]),
        ("trapping.wat", "unreachable", ["--memory", "64 MB"]),
    ] {
        let id = format!("bad-{}", &name[..4]);
        let beside = format!("beside-{}", &name[..4]);
        let path = hostile(&archive, name);
        let path = path.to_str().expect("text");
        let bad = [
            "batch", "run", "--wasm", path, "--detach", "--id", &id, option[0], option[1],
        ];
        archive.run(&bad).expect(0);
        let good = ["batch", "run", "extract-cdx", "--id", &beside];
        assert_eq!(archive.run(&good).expect(0).out, expected, "beside {name}");
        let ended = end_of(&archive, &id);
        let errors = archive.run(&["batch", "output", &id, "-e", "-"]);
        let said = format!("{} {}", ended["reason"], errors.out);
        println!("{name}: {} {said}", ended["state"]);
        assert!(said.contains(words), "{name}: {said}: {ended:#}");
        assert!(
            ended["state"] == "failed" || ended["failed"] == 4,
            "{name}: {ended:#}"
        );
    }
    // Storing and reading still work.
    archive.store("after.bin", 100_000);
    archive.run(&["get", "after.bin", "-o", "-"]).expect(0);
    archive.stop();
}
