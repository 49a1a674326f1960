//! The programs beside the crawler: found, or said to be missing; and the judges, which are Python.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tools_testing::{Random, skipped};

/// The web server, and the Python of the judges.
pub struct Tools {
    pub nginx: PathBuf,
    python: PathBuf,
}

impl Tools {
    /// Finds the tools, or says what the test lacks.
    pub fn find() -> Option<Self> {
        let nginx = nginx()?;
        let python = python();
        if python.is_none() {
            skipped("warcio is not on PATH (pip install warcio)");
        }
        python.map(|python| Self { nginx, python })
    }

    /// Runs a script of `judges` on these words and files, and returns the document that it prints. It ends with an
    /// error if something is not as it has to be.
    #[track_caller]
    pub fn judge(&self, script: &str, words: &[&str], files: &[PathBuf]) -> Value {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/crawl/judges");
        let mut command = Command::new(&self.python);
        // Without -B it would leave its compiled modules among the sources.
        command.arg("-B").arg(folder.join(script));
        command.args(words).args(files);
        let output = command.stdin(Stdio::null()).output().expect("python");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}: {said}");
        serde_json::from_slice(&output.stdout).expect("a document")
    }

    /// Returns the Python of the judges.
    pub fn python(&self) -> &Path {
        &self.python
    }

    /// Returns the failures that `warcio check` prints, as a record id and what failed.
    pub fn warcio_failures(&self, files: &[PathBuf]) -> Vec<(String, String)> {
        let output = Command::new(self.python.with_file_name("warcio"))
            .args(["check", "-v"])
            .args(files)
            .output()
            .expect("warcio");
        let said = String::from_utf8(output.stdout).expect("text");
        let mut id = String::new();
        let mut failures = Vec::new();
        for line in said.lines() {
            if let Some((_, rest)) = line.split_once("WARC-Record-ID ") {
                rest.split(' ').next().unwrap_or(rest).clone_into(&mut id);
            } else if line.contains("failed") {
                let words: Vec<&str> = line.split_whitespace().take(3).collect();
                failures.push((id.clone(), words.join(" ")));
            }
        }
        assert!(!id.is_empty(), "{said}");
        failures
    }
}

/// Returns the path of the web server, or a word that it is missing.
pub fn nginx() -> Option<PathBuf> {
    let nginx = program("nginx");
    if nginx.is_none() {
        skipped("nginx is not installed (nginx-light)");
    }
    nginx
}

/// Returns the path of a program.
pub fn program(name: &str) -> Option<PathBuf> {
    folders()
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

/// Returns the folders of `PATH`, and those where Debian keeps servers.
fn folders() -> impl Iterator<Item = PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let more = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    folders.into_iter().chain(more)
}

/// Returns the Python that has warcio: beside the command, if that is no shim of another program.
fn python() -> Option<PathBuf> {
    let beside = folders().filter(|folder| folder.join("warcio").is_file());
    let mut pythons = beside.map(|folder| folder.join("python3"));
    pythons.find(|python| has_modules(python, &["warcio"]))
}

/// Returns the first Python of these folders that has all of these modules.
pub fn python_with(modules: &[&str]) -> Option<PathBuf> {
    let mut pythons = folders()
        .map(|folder| folder.join("python3"))
        .filter(|python| python.is_file());
    pythons.find(|python| has_modules(python, modules))
}

fn has_modules(python: &Path, modules: &[&str]) -> bool {
    let probe = Command::new(python)
        .args(["-c", &format!("import {}", modules.join(", "))])
        .stdin(Stdio::null())
        .output();
    probe.is_ok_and(|output| output.status.success())
}

/// Returns a free port of 127.0.0.1. It may be taken by others until somebody listens on it.
pub fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bind");
    listener.local_addr().expect("an address").port()
}

/// Returns a generator of choices. `HOLDFAST_SEED` repeats those of a run.
pub fn dice() -> Random {
    let seed = match std::env::var("HOLDFAST_SEED") {
        Ok(text) => text.parse().expect("a number"),
        Err(_absent) => u64::from(std::process::id()),
    };
    println!("seed {seed}");
    Random::new(seed)
}
