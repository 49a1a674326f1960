//! `holdfast up` in a directory of its own, and the command line that talks to it.

use std::fs::{OpenOptions, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;
use tools_testing::{Observation, PATIENCE, PortBlock, eventually_blocking};

/// An archive that runs.
pub struct Archive {
    directory: tempfile::TempDir,
    ports: PortBlock,
    settings: Vec<String>,
    up: Option<Child>,
    /// Parts that a test started again.
    parts: Vec<Child>,
}

/// The exit code and the output of a command.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
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

impl Archive {
    /// Starts one in a new directory; `settings` are given as `--set`.
    pub fn start(settings: &[&str]) -> Self {
        Self::with(settings, &[])
    }

    /// Starts an archive whose parts are processes.
    pub fn processes(settings: &[&str]) -> Self {
        Self::with(settings, &["--processes"])
    }

    fn with(set: &[&str], words: &[&str]) -> Self {
        let mut archive = Self {
            directory: tempfile::tempdir().expect("a directory"),
            ports: PortBlock::claim(),
            settings: set
                .iter()
                .flat_map(|one| ["--set".to_owned(), (*one).to_owned()])
                .collect(),
            up: None,
            parts: Vec::new(),
        };
        archive.up(words);
        archive
    }

    /// Starts `holdfast up` on the directory and waits until everything lives.
    pub fn up(&mut self, words: &[&str]) {
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.path("up.log"))
            .expect("a log");
        let first_port = ["--first-port".to_owned(), self.ports.first().to_string()];
        let is_new = !self.data().join("up.json").exists();
        let child = executable()
            .arg("up")
            .arg("--data")
            .arg(self.data())
            .args(is_new.then_some(first_port).into_iter().flatten())
            .args(words)
            .args(&self.settings)
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .spawn()
            .expect("up");
        self.up = Some(child);
        self.wait_until_alive();
    }

    /// Stops the archive for good, as Ctrl-C does.
    pub fn stop(mut self) {
        self.down();
    }

    /// Stops the archive, so that it can be started again.
    pub fn down(&mut self) {
        for mut child in self.up.take().into_iter().chain(self.parts.drain(..)) {
            // The process may have ended already, which `wait` finds.
            kill_process(Pid::from_child(&child), Signal::TERM).unwrap_or_default();
            child.wait().expect("an end");
        }
    }

    /// Ends `up` by a signal that it does not expect.
    pub fn end_up(&mut self, signal: Signal) {
        let mut child = self.up.take().expect("an archive that is up");
        kill_process(Pid::from_child(&child), signal).expect("a signal");
        wait("the end of up", || {
            child.try_wait().expect("a child").is_some()
        });
    }

    /// Returns whether the process is there that was started last.
    pub fn is_up(&mut self) -> bool {
        let up = self.up.as_mut();
        up.is_some_and(|up| up.try_wait().expect("wait").is_none())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn data(&self) -> PathBuf {
        self.path("data")
    }

    pub fn volume(&self, replica: &str) -> PathBuf {
        self.data().join(replica).join("volume")
    }

    /// Returns the path of an archived file in a bitarchive replica.
    pub fn file(&self, replica: &str, name: &str) -> PathBuf {
        let prefix = &blake3::hash(name.as_bytes()).to_hex()[..2];
        self.volume(replica).join("files").join(prefix).join(name)
    }

    /// Makes a file to be stored, of bytes that no other file has.
    pub fn make(&self, name: &str, size: usize) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, content(name, size)).expect("write");
        path
    }

    /// Runs `holdfast` with words.
    pub fn run(&self, words: &[&str]) -> Ran {
        ran(executable()
            .arg("--client")
            .arg(self.data().join("client.toml"))
            .args(words))
    }

    /// Runs `holdfast` with words, until it ends with this code: what was killed or pulled out is noticed in its time.
    #[track_caller]
    pub fn until(&self, words: &[&str], code: i32) -> Ran {
        eventually_blocking(&format!("{words:?} ends with {code}"), PATIENCE, || {
            let ran = self.run(words);
            if ran.code == code { Ok(ran) } else { Err(ran) }
        })
    }

    /// Runs `holdfast --json` with words, and returns its document, whatever the exit code.
    #[track_caller]
    pub fn json(&self, words: &[&str], code: i32) -> Value {
        let mut all = vec!["--json"];
        all.extend(words);
        self.run(&all).expect(code).json()
    }

    /// Stores a new file.
    #[track_caller]
    pub fn store(&self, name: &str, size: usize) {
        let path = self.make(name, size);
        self.run(&["store", path.to_str().expect("text")]).expect(0);
    }

    /// Stores a new file where not every replica can take it.
    #[track_caller]
    pub fn store_into_some(&self, name: &str, size: usize) {
        let path = self.make(name, size);
        let ran = self.run(&["store", path.to_str().expect("text")]);
        assert!(matches!(ran.code, 1 | 4), "{ran:#?}");
    }

    /// Flips one bit of a stored copy, behind the archive's back.
    pub fn flip(&self, replica: &str, name: &str, offset: u64) {
        self.damage(replica, name, offset, |byte| byte ^ 1);
    }

    /// Changes one byte of a stored copy.
    pub fn damage(&self, replica: &str, name: &str, offset: u64, change: impl Fn(u8) -> u8) {
        let path = self.file(replica, name);
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("chmod");
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&path)
            .expect("open");
        let mut byte = [0];
        file.read_exact_at(&mut byte, offset).expect("read");
        file.write_all_at(&[change(byte[0])], offset)
            .expect("write");
        file.sync_all().expect("sync");
        std::fs::set_permissions(&path, Permissions::from_mode(0o444)).expect("chmod");
    }

    /// Returns whether a copy is, byte for byte, what was stored.
    pub fn is_whole(&self, replica: &str, name: &str, size: usize) -> bool {
        std::fs::read(self.file(replica, name)).is_ok_and(|found| found == content(name, size))
    }

    /// Kills a part without warning.
    pub fn kill(&self, part: &str) {
        self.end(part, Signal::KILL);
    }

    /// Ends a part with a signal, and waits for its end.
    pub fn end(&self, part: &str, signal: Signal) {
        let id = self.pid(part);
        kill_process(id, signal).expect("a signal");
        wait("the end of a part", || !is_running(id));
    }

    /// Returns whether the process of a part is there.
    pub fn is_running(&self, part: &str) -> bool {
        is_running(self.pid(part))
    }

    /// Stops a part where it stands, or lets it continue.
    pub fn signal(&self, part: &str, signal: Signal) {
        kill_process(self.pid(part), signal).expect("a signal");
    }

    fn pid(&self, part: &str) -> Pid {
        let path = self.data().join("run").join(format!("{part}.pid"));
        let text = std::fs::read_to_string(path).expect("a pid");
        Pid::from_raw(text.trim().parse().expect("a number")).expect("a pid")
    }

    /// Starts a part that is not there, as an operator would.
    pub fn restart(&mut self, part: &str) {
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.path(&format!("{part}.log")))
            .expect("a log");
        let verb = match part.split('-').next() {
            Some("checksum") => "checksum-replica",
            Some(verb) => verb,
            None => part,
        };
        let child = executable()
            .arg(verb)
            .arg("--settings")
            .arg(self.data().join("settings").join(format!("{part}.toml")))
            .args(self.settings_of(verb))
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .process_group(0)
            .spawn()
            .expect(part);
        let pid = self.data().join("run").join(format!("{part}.pid"));
        std::fs::write(pid, format!("{}\n", child.id())).expect("write");
        self.parts
            .retain_mut(|child| !matches!(child.try_wait(), Ok(Some(_))));
        self.parts.push(child);
    }

    /// Returns the settings whose section this part has.
    fn settings_of(&self, verb: &str) -> Vec<String> {
        let sections: &[&str] = match verb {
            "repository" => &["repair", "checks", "batch"],
            "bitarchive" => &["scrub", "attic", "bitarchive", "batch_node"],
            _ => &[],
        };
        let pairs = self.settings.chunks(2);
        let own = pairs.filter(|pair| {
            pair.get(1)
                .is_some_and(|set| sections.iter().any(|section| set.starts_with(section)))
        });
        own.flatten().cloned().collect()
    }

    /// Waits until every replica and node that is known answers, whatever else is to be reported.
    pub fn wait_until_alive(&mut self) {
        eventually_blocking("every part lives", PATIENCE, || {
            if let Some(status) = self.up.as_mut().and_then(|up| up.try_wait().expect("wait")) {
                panic!("up ended: {status}\n{}", self.log());
            }
            let ran = self.run(&["--json", "status"]);
            if matches!(ran.code, 0 | 1) && is_alive(&ran.json()) {
                Ok(())
            } else {
                Err(ran)
            }
        });
    }

    /// Returns the logs of the parts.
    pub fn log(&self) -> String {
        let entries = std::fs::read_dir(self.directory.path()).expect("list");
        let logs = entries
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "log"));
        logs.map(|path| std::fs::read_to_string(path).expect("a log"))
            .collect()
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        self.down();
        if std::thread::panicking() {
            let log = self.log();
            let from = log.len().saturating_sub(20_000);
            eprintln!("{}", log.get(from..).unwrap_or(&log));
        }
    }
}

fn is_alive(status: &Value) -> bool {
    let replicas = status["replicas"].as_array().expect("replicas");
    replicas.iter().all(|replica| {
        let nodes = replica["nodes"].as_array().expect("nodes");
        replica["problem"].as_str().is_none_or(str::is_empty)
            && !nodes.is_empty()
            && nodes.iter().all(|node| node["alive"] == true)
    })
}

/// Returns whether any thread of a process is there. The first one may be a zombie already while another is in a long
/// `fsync`, and has the ports and locks until that returns (`proc(5)`).
fn is_running(id: Pid) -> bool {
    let process = format!("/proc/{}", id.as_raw_nonzero());
    let stat = std::fs::read_to_string(format!("{process}/stat"));
    let is_zombie = stat.is_ok_and(|stat| {
        stat.rsplit(')')
            .next()
            .is_some_and(|rest| rest.starts_with(" Z"))
    });
    let threads = std::fs::read_dir(format!("{process}/task")).map_or(0, Iterator::count);
    test_kill_process(id).is_ok() && !(is_zombie && threads < 2)
}

/// Looks again and again until the observation is the awaited one.
#[track_caller]
pub fn wait<O: Observation>(what: &str, look: impl FnMut() -> O) -> O::Value {
    eventually_blocking(what, PATIENCE, look)
}

/// Returns the bytes of a file of that name: the same ones for the same name and size.
pub fn content(name: &str, size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    blake3::Hasher::new()
        .update(name.as_bytes())
        .finalize_xof()
        .fill(&mut bytes);
    bytes
}

/// Returns the executable.
pub fn executable() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
    command.env_remove("HOLDFAST_CLIENT").stdin(Stdio::null());
    command
}

fn ran(command: &mut Command) -> Ran {
    let output = command.output().expect("run");
    Ran {
        code: output.status.code().expect("an exit code"),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Returns the paths of the files of a volume.
pub fn files_below(path: &Path) -> Vec<PathBuf> {
    let directories = std::fs::read_dir(path.join("files")).expect("list");
    directories
        .flat_map(|directory| {
            std::fs::read_dir(directory.expect("a directory").path()).expect("list")
        })
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| {
            path.file_name().is_some_and(|name| {
                name != "manifest-blake3.txt" && !name.to_string_lossy().starts_with('.')
            })
        })
        .collect()
}
