//! The child process and what it said before it ended.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Lines};
use std::os::unix::process::ExitStatusExt;
use std::process::{ChildStdout, Command, ExitStatus, Stdio};

use archive_model::FileName;
use conformance::machine::CrashMachine;

const ABORTED: i32 = 6;

/// A run of `crash_node`, being put together.
#[derive(Clone, Debug)]
pub(super) struct Child {
    arguments: Vec<String>,
}

/// The output of a run.
#[derive(Debug)]
pub(super) struct Outcome {
    /// The files that were acknowledged, with their roots.
    pub(super) acknowledged: BTreeMap<FileName, String>,
    /// The acts of the run, in order: `doing ACT` or `did ACT`.
    pub(super) acts: Vec<String>,
    /// The reasons why files were refused.
    pub(super) refused: Vec<String>,
    /// The number of calls that were counted; `None` if the run did not come to its end.
    pub(super) calls: Option<u64>,
    /// The reason why the volume was taken offline.
    pub(super) poisoned: Option<String>,
    status: ExitStatus,
}

impl Child {
    pub(super) fn at(machine: &CrashMachine, now: i64) -> Self {
        let directory = machine.directory().to_str().unwrap();
        Self {
            arguments: Vec::new(),
        }
        .with(&["--directory", directory])
        .with(&["--now", &now.to_string()])
    }

    pub(super) fn fault(self, fault: &str, at: u64) -> Self {
        self.with(&["--fault", fault, "--at", &at.to_string()])
    }

    pub(super) fn on(self, operation: &str) -> Self {
        self.with(&["--operation", operation])
    }

    pub(super) fn counting_from_start(self) -> Self {
        self.with(&["--from-start"])
    }

    pub(super) fn endless(self, prefix: &str) -> Self {
        self.with(&["--endless", prefix])
    }

    pub(super) fn acts(self, prefix: &str) -> Self {
        self.with(&["--acts", prefix])
    }

    pub(super) fn in_place(self) -> Self {
        self.with(&["--in-place"])
    }

    /// Stores these files and ends.
    pub(super) fn store(self, names: &[&str]) -> Outcome {
        self.with(names).spawn().wait()
    }

    pub(super) fn spawn(self) -> RunningChild {
        let mut process = Command::new(env!("CARGO_BIN_EXE_crash_node"))
            .args(self.arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        RunningChild {
            process,
            lines,
            said: Vec::new(),
        }
    }

    fn with(mut self, arguments: &[&str]) -> Self {
        self.arguments
            .extend(arguments.iter().map(|text| (*text).to_owned()));
        self
    }
}

/// A run that has begun. Killed when it is dropped.
#[derive(Debug)]
pub(super) struct RunningChild {
    process: std::process::Child,
    lines: Lines<BufReader<ChildStdout>>,
    said: Vec<String>,
}

impl RunningChild {
    /// Waits until the run has said a line with this beginning, this many times from now. Returns `false` if it ended
    /// before.
    pub(super) fn heard(&mut self, beginning: &str, times: usize) -> bool {
        let mut heard = 0;
        while heard < times {
            let Some(line) = self.lines.next() else {
                return false;
            };
            let line = line.unwrap();
            heard += usize::from(line.starts_with(beginning));
            self.said.push(line);
        }
        true
    }

    pub(super) fn kill(&mut self) {
        self.process.kill().unwrap();
    }

    /// Reads what the run says up to its end, and returns its output.
    pub(super) fn wait(mut self) -> Outcome {
        while self.heard("", 1) {}
        let mut outcome = Outcome {
            acknowledged: BTreeMap::new(),
            acts: Vec::new(),
            refused: Vec::new(),
            calls: None,
            poisoned: None,
            status: self.process.wait().unwrap(),
        };
        for line in &self.said {
            match line.split_once(' ').unwrap_or((line, "")) {
                ("acknowledged", rest) => {
                    let (name, root) = rest.split_once(' ').unwrap();
                    let name = FileName::new(name).unwrap();
                    outcome.acknowledged.insert(name, root.to_owned());
                }
                ("refused", rest) => outcome.refused.push(rest.to_owned()),
                ("poisoned", why) => outcome.poisoned = Some(why.to_owned()),
                ("calls", count) => outcome.calls = Some(count.parse().unwrap()),
                ("doing" | "did", _) => outcome.acts.push(line.clone()),
                ("ready", "") => {}
                _ => panic!("crash_node said {line:?}"),
            }
        }
        outcome
    }
}

impl Drop for RunningChild {
    fn drop(&mut self) {
        // It has ended already, as a rule.
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Outcome {
    /// Returns whether the run died at the fault.
    pub(super) fn aborted(&self) -> bool {
        self.status.signal() == Some(ABORTED)
    }

    /// Returns whether the run came to its end.
    pub(super) fn ended(&self) -> bool {
        self.status.success() && self.calls.is_some()
    }
}
