//! The directory of a harvest job that an earlier build began is resumed as it is.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::support::job::{JobFolder, executable, run};

/// The URIs of a crawl log.
#[derive(Debug, PartialEq, Eq)]
struct LoggedUris {
    /// The URIs that were fetched, each with its status.
    fetched: BTreeSet<(i32, String)>,
    /// All URIs, those that could not be fetched included.
    all: BTreeSet<String>,
}

impl LoggedUris {
    fn read(log: &Path) -> Self {
        let text = std::fs::read_to_string(log).expect("a crawl log");
        let lines = text.lines().map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            (fields[1].parse().expect("a status"), fields[3].to_owned())
        });
        let lines: Vec<(i32, String)> = lines.collect();
        Self {
            fetched: lines.iter().filter(|line| line.0 > 0).cloned().collect(),
            all: lines.into_iter().map(|line| line.1).collect(),
        }
    }
}

/// The job was killed after it had fetched 17 of 25 URIs of a site at 127.0.0.1:81, where nothing listens now: the
/// others cannot be reached, and are logged so. Fails if the frontier, the logs, the order or the open archive file of
/// an earlier build are refused or misread: a URI would be lost, or one that was fetched would be asked for again and
/// then be unreachable.
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
    let expected = LoggedUris::read(&directory.path().join("said/crawl.log"));
    assert_eq!(LoggedUris::read(&job.join("logs/crawl.log")), expected);
    JobFolder::only_one(&base).check_files();
}
