//! The directory of a harvest job that an earlier build began is resumed as it is.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::support::job::{JobFolder, executable, run};

/// Returns the status and URI of each line of a crawl log, those of names that were looked up included.
fn outcomes(log: &Path) -> BTreeSet<(String, String)> {
    let text = std::fs::read_to_string(log).expect("a crawl log");
    let lines = text.lines().map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        (fields[1].to_owned(), fields[3].to_owned())
    });
    lines.collect()
}

/// The job was killed after it had fetched 17 of 25 URIs of a site at 127.0.0.1:81, where nothing listens now: the rest cannot be
/// reached, but for one that `robots.txt` forbids. Fails if the frontier, the logs, the order or the open archive file of an
/// earlier build are refused or misread: a URI would be lost, or asked for again and then be unreachable.
#[test]
fn job_of_earlier_build_is_resumed() {
    let directory = tempfile::tempdir().unwrap();
    let golden =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/crawl-before-one-house.tar.gz");
    let mut tar = Command::new("tar");
    tar.args(["--no-same-owner", "-xzf"]).arg(golden);
    let status = tar.arg("-C").arg(directory.path()).status().expect("tar");
    assert!(status.success());
    let base = directory.path().join("base");
    std::fs::create_dir(&base).unwrap();
    let job = base.join("7_1795773683706");
    std::fs::rename(directory.path().join("job"), &job).unwrap();

    let ended = run(executable().args(["crawl", "--json", "--resume"]).arg(&job)).expect(0);
    let report = ended.json();
    assert_eq!(report["status"], "done", "{report:#}");
    assert_eq!(report["objects"], 17, "{report:#}");
    let expected = outcomes(&directory.path().join("said/crawl.log"));
    assert_eq!(outcomes(&job.join("logs/crawl.log")), expected);
    JobFolder::only_one(&base).check_files();
}
