//! A crawl by the executable, and the directory that it leaves.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// Returns the executable.
pub fn executable() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
    command.env_remove("HOLDFAST_CLIENT").stdin(Stdio::null());
    command
}

/// The exit code and the output of a command.
#[derive(Debug)]
pub struct CommandOutput {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl CommandOutput {
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    /// Returns the one document on stdout.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}

/// Runs a command to its end.
pub fn run(command: &mut Command) -> CommandOutput {
    let output = command.output().expect("run");
    CommandOutput {
        code: output.status.code().expect("an exit code"),
        out: String::from_utf8(output.stdout).expect("text"),
        err: String::from_utf8(output.stderr).expect("text"),
    }
}

/// The directory of a job that has ended.
pub struct JobFolder {
    path: PathBuf,
}

/// A line of the crawl log.
#[derive(Clone, Debug)]
pub struct LogLine {
    pub status: i32,
    pub uri: String,
    pub annotations: Vec<String>,
}

impl LogLine {
    /// Returns the bytes that were recorded.
    pub fn size(&self) -> u64 {
        let sizes = self.annotations.iter();
        let mut sizes = sizes.filter_map(|text| text.strip_prefix("content-size:"));
        sizes.next().map_or(0, |size| size.parse().expect("a size"))
    }
}

/// Crawls with these words and keeps the files in `base`, where no other job may be. Gives the folder and the report.
#[track_caller]
pub fn crawl(base: &Path, words: &[&str]) -> (JobFolder, Value) {
    let mut command = executable();
    command.args(["crawl", "--json", "--no-store", "--keep"]);
    let ended = run(command.arg(base).args(words)).expect(0);
    (JobFolder::only_one(base), ended.json())
}

impl JobFolder {
    /// Returns the only job in `base`.
    #[track_caller]
    pub fn only_one(base: &Path) -> Self {
        let entries = entries(base);
        assert_eq!(entries.len(), 1, "{entries:?}");
        Self {
            path: entries[0].clone(),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the lines of the crawl log, without those of names that were looked up.
    pub fn log(&self) -> Vec<LogLine> {
        let path = self.path.join("logs/crawl.log");
        let text = std::fs::read_to_string(path).expect("a crawl log");
        let lines = text.lines().map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            LogLine {
                status: fields[1].parse().expect("a status"),
                uri: fields[3].to_owned(),
                annotations: fields[11].split(',').map(str::to_owned).collect(),
            }
        });
        lines.filter(|line| !line.uri.starts_with("dns:")).collect()
    }

    /// Returns the URIs of the crawl log, each once.
    #[track_caller]
    pub fn uris(&self) -> BTreeSet<String> {
        let mut uris = BTreeSet::new();
        for line in self.log() {
            assert!(uris.insert(line.uri.clone()), "{} twice", line.uri);
        }
        uris
    }

    /// Returns the archive files, without the metadata file.
    pub fn archive_files(&self) -> Vec<PathBuf> {
        entries(&self.path.join("warcs"))
    }

    /// Returns the metadata file.
    #[track_caller]
    pub fn metadata(&self) -> PathBuf {
        let files = entries(&self.path.join("metadata"));
        assert_eq!(files.len(), 1, "{files:?}");
        files[0].clone()
    }

    /// Returns all files of the job.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut files = self.archive_files();
        files.push(self.metadata());
        files
    }

    /// Checks the files by the executable itself.
    #[track_caller]
    pub fn check_files(&self) {
        run(executable().args(["warc", "check"]).args(self.files())).expect(0);
    }
}

/// Returns the entries of a folder, sorted.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    paths
}
