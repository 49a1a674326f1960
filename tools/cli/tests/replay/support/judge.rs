//! The judges in Python: programs over the field's own libraries, each a process.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::tools::python_with;

/// A Python with the libraries of a judge.
pub struct Judge {
    python: PathBuf,
}

impl Judge {
    /// Finds a Python with these modules, or says what the test lacks.
    pub fn find(modules: &[(&str, &str)]) -> Option<Self> {
        let names: Vec<&str> = modules.iter().map(|(module, _)| *module).collect();
        let python = python_with(&names);
        if python.is_none() {
            let packages: Vec<&str> = modules.iter().map(|(_, package)| *package).collect();
            let packages = packages.join(" ");
            tools_testing::skipped(&format!(
                "no python3 on PATH has what the judge needs (pip install {packages})"
            ));
        }
        python.map(|python| Self { python })
    }

    /// Runs a script of `judges` and returns the document that it prints. It ends with an error if something is not as
    /// it has to be.
    #[track_caller]
    pub fn run(&self, script: &str, words: &[&str]) -> Value {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/replay/judges");
        // Without -B it would leave its compiled modules among the sources.
        let output = Command::new(&self.python)
            .arg("-B")
            .arg(folder.join(script))
            .args(words)
            .env("NO_PROXY", "*")
            .stdin(Stdio::null())
            .output()
            .expect("python");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}: {said}");
        serde_json::from_slice(&output.stdout).expect("a document")
    }
}

/// The reader of archive files.
pub const WARCIO: (&str, &str) = ("warcio", "warcio");
/// The indexer of archive files.
pub const CDXJ_INDEXER: (&str, &str) = ("cdxj_indexer", "cdxj-indexer");
/// The client of CDX servers.
pub const CDX_TOOLKIT: (&str, &str) = ("cdx_toolkit", "cdx_toolkit");
