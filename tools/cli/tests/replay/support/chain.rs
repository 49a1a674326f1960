//! The chain under test: an archive that runs, its index, and the replay listener in front of them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use serde_json::Value;

use crate::archive::{Archive, wait};
use crate::support::curl::{Answer, curl};

/// A whole archive with its replay listener.
pub struct Chain {
    pub archive: Archive,
    /// The origin of the replay listener, without a slash.
    pub replay: String,
}

impl Chain {
    /// Starts an archive in one process; `settings` are given as `--set`.
    pub fn start(settings: &[&str]) -> Self {
        Self::with_archive(Archive::start(settings))
    }

    /// Starts an archive whose parts are processes.
    pub fn processes() -> Self {
        Self::with_archive(Archive::processes(&[]))
    }

    fn with_archive(archive: Archive) -> Self {
        let replay = endpoint(&archive, "replay");
        let chain = Self { archive, replay };
        chain.wait_for_replay();
        chain
    }

    /// Starts the archive again, with more in the settings file of the viewer.
    pub fn set_viewer(&mut self, more: &str) {
        self.archive.down();
        self.add_viewer_settings(more);
        self.archive.up(&[]);
        self.wait_for_replay();
    }

    /// Starts the process of the viewer again, with more in its settings file.
    pub fn restart_viewer(&mut self, more: &str) {
        self.archive.end("viewer", Signal::TERM);
        self.add_viewer_settings(more);
        self.archive.restart("viewer");
        self.wait_for_replay();
    }

    fn add_viewer_settings(&self, more: &str) {
        let path = self.viewer_settings();
        let mut text = std::fs::read_to_string(&path).expect("settings");
        write!(text, "\n{more}").expect("text");
        std::fs::write(&path, text).expect("write");
    }

    /// Returns the settings file of the viewer.
    pub fn viewer_settings(&self) -> PathBuf {
        self.archive.data().join("settings/viewer.toml")
    }

    /// Waits until the replay listener answers: it is the last part that starts.
    pub fn wait_for_replay(&self) {
        wait("the replay listener answers", || {
            let answer = self.get("/");
            if answer.status == 200 {
                Ok(())
            } else {
                Err(answer.status)
            }
        });
    }

    /// Stores files, and waits until their captures can be found.
    #[track_caller]
    pub fn store(&self, paths: &[PathBuf]) {
        let mut words = vec!["store"];
        words.extend(paths.iter().map(|path| text(path)));
        self.archive.run(&words).expect(0);
        self.wait_for_index();
    }

    /// Writes an archive file and stores it.
    #[track_caller]
    pub fn store_bytes(&self, name: &str, bytes: &[u8]) {
        let path = self.archive.path(name);
        std::fs::write(&path, bytes).expect("write");
        self.store(&[path]);
    }

    /// Waits until no stored file is left to be indexed, and returns what the index says of itself.
    #[track_caller]
    pub fn wait_for_index(&self) -> Value {
        // The first line is the head of the table.
        let listed = self.archive.run(&["list"]).expect(0).out;
        let stored = listed.lines().count().saturating_sub(1);
        wait("the index has every file", || {
            let ran = self.archive.run(&["--json", "index", "status"]);
            let document = serde_json::from_str::<Value>(&ran.out).unwrap_or_default();
            let has = |field: &str| document[field].as_u64();
            let parked = has("parked_files").unwrap_or_default();
            let known = has("indexed").unwrap_or_default() + parked;
            if has("behind") == Some(0) && known >= stored as u64 {
                Ok(document)
            } else {
                Err((stored, ran))
            }
        })
    }

    /// Asks the replay listener for a path.
    pub fn get(&self, path: &str) -> Answer {
        self.ask(path, &[])
    }

    /// Asks the replay listener for a path, with more words for curl.
    pub fn ask(&self, path: &str, words: &[&str]) -> Answer {
        curl(&format!("{}{path}", self.replay), words)
    }

    /// Exports every capture that came from files.
    #[track_caller]
    pub fn export(&self) -> String {
        self.archive
            .run(&["index", "export", "-o", "-"])
            .expect(0)
            .out
    }
}

/// Returns the origin of an endpoint in the client file.
#[track_caller]
pub fn endpoint(archive: &Archive, name: &str) -> String {
    find_endpoint(archive, name).unwrap_or_else(|| panic!("the client file names no `{name}`"))
}

/// Returns the origin of an endpoint in the client file, if there is one.
pub fn find_endpoint(archive: &Archive, name: &str) -> Option<String> {
    let client =
        std::fs::read_to_string(archive.data().join("client.toml")).expect("a client file");
    let begin = format!("{name} = \"");
    let mut lines = client.lines();
    let line = lines.find_map(|line| line.strip_prefix(&begin))?;
    Some(line.trim_end_matches('"').trim_end_matches('/').to_owned())
}

/// Returns the authority of an origin: its host and its port.
pub fn authority(origin: &str) -> &str {
    origin.split_once("://").map_or(origin, |(_, rest)| rest)
}

/// Returns the path as text.
pub fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}
