//! Each part as a child process, so that one of them can be stopped or killed while the others run.
//!
//! The id of each is in `<data>/run/<part>.pid`. A part that ends is reported and not started again: the person who
//! ended it may want it so. `holdfast <part> --settings <data>/settings/<part>.toml` starts it again. Where a part of
//! these settings runs already, nothing is started, and its id stays where it is.
//!
//! A part lives no longer than this process, however this one dies: it stops when the pipe that is its standard input
//! ends.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use archive_daemon::Daemon;
use archive_durable::{directory, read_state, replace_file};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

use super::prepare::{CHECKSUM_PART, CHECKSUM_VERB, INDEX, PreparedArchive, REPLICAS, VIEWER};
use super::story::Story;

/// The parts, as processes.
pub(super) struct Processes {
    run: PathBuf,
    /// The directory of the logs; without it, the parts log to this terminal.
    logs: Option<PathBuf>,
    story: Story,
    daemon: Daemon,
    parts: Vec<Part>,
}

/// A part: its verb, its name, its settings file, and the settings of the command line, which override it.
#[derive(Clone)]
struct Part {
    verb: &'static str,
    name: String,
    settings: PathBuf,
    set: Vec<String>,
}

impl Processes {
    /// Starts every part; each lives until the stop or its own end.
    pub(super) fn start_parts(
        prepared: &PreparedArchive,
        set: &BTreeMap<String, Vec<String>>,
        logs: Option<PathBuf>,
        story: &Story,
        daemon: &Daemon,
    ) -> Result<Self, String> {
        let replicas = REPLICAS.iter().flat_map(|replica| {
            [
                ("monitor", format!("monitor-{replica}")),
                ("bitarchive", format!("bitarchive-{replica}")),
            ]
        });
        let others = [
            (CHECKSUM_VERB, CHECKSUM_PART.to_owned()),
            ("repository", "repository".to_owned()),
            (INDEX, INDEX.to_owned()),
            (VIEWER, VIEWER.to_owned()),
        ];
        let parts = replicas.chain(others).map(|(verb, name)| Part {
            verb,
            settings: prepared.settings_path(&name),
            set: set.get(&name).cloned().unwrap_or_default(),
            name,
        });
        let processes = Self {
            run: prepared.run_path(),
            logs,
            story: story.clone(),
            daemon: daemon.clone(),
            parts: parts.collect(),
        };
        directory::make_directory(&processes.run).map_err(|error| error.to_string())?;
        for part in &processes.parts {
            processes.refuse_running(part)?;
        }
        for part in &processes.parts {
            processes.begin(part)?;
        }
        Ok(processes)
    }

    /// Kills a part without warning, as a crash does.
    pub(super) fn kill_part(&self, name: &str) -> Result<(), String> {
        let pid = self.pid_file(name);
        let text = read_state(&pid).map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&text.unwrap_or_default()).into_owned();
        let id = text.trim().parse().ok().and_then(Pid::from_raw);
        let id = id.ok_or_else(|| format!("{}: {text:?} is not a process id", pid.display()))?;
        kill_process(id, Signal::KILL).map_err(|error| format!("{name}: {error}"))
    }

    /// Starts a part again that has ended.
    pub(super) fn restart_part(&self, name: &str) -> Result<(), String> {
        let part = self.parts.iter().find(|part| part.name == name);
        self.begin(part.ok_or_else(|| format!("there is no part {name}"))?)
    }

    /// Refuses if the process that was last begun as this part runs still.
    fn refuse_running(&self, part: &Part) -> Result<(), String> {
        let pid = self.pid_file(&part.name);
        let text = read_state(&pid).map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&text.unwrap_or_default()).into_owned();
        match text.trim().parse::<u32>() {
            Ok(id) if is_part(id, &part.settings) => Err(format!(
                "{} runs already, as process {id}; end it first (its `holdfast up` with Ctrl-C, or `kill {id}`)",
                part.name
            )),
            _ => Ok(()),
        }
    }

    fn begin(&self, part: &Part) -> Result<(), String> {
        let child = self.spawn(part)?;
        let Part {
            verb,
            name,
            settings,
            ..
        } = part.clone();
        let id = child.id().ok_or_else(|| format!("{name} ended at once"))?;
        replace_file(&self.pid_file(&name), format!("{id}\n").as_bytes())
            .map_err(|error| error.to_string())?;
        let stop = self.daemon.tasks.stop_token();
        let story = self.story.clone();
        self.daemon.tasks.spawn_once(&name.clone(), async move {
            watch(verb, &name, &settings, child, &story, &stop).await;
        });
        Ok(())
    }

    fn spawn(&self, part: &Part) -> Result<Child, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command
            .arg(part.verb)
            .arg("--settings")
            .arg(&part.settings)
            .args(["--set", "daemon.end_with_stdin=true"])
            .stdin(Stdio::piped())
            .kill_on_drop(true);
        if let Some(logs) = &self.logs {
            let file = logs.join(format!("{}.log", part.name));
            let file = format!("daemon.log_file={:?}", file.display().to_string());
            command.arg("--set").arg(file);
        }
        for one in &part.set {
            command.arg("--set").arg(one);
        }
        // A Ctrl-C at the terminal is for `up`, which stops its parts in order.
        command.process_group(0);
        command
            .spawn()
            .map_err(|error| format!("{}: {error}", part.name))
    }

    fn pid_file(&self, name: &str) -> PathBuf {
        self.run.join(format!("{name}.pid"))
    }
}

/// Returns whether a process runs that was started with these settings: an id alone may be another's by now.
fn is_part(id: u32, settings: &Path) -> bool {
    let Ok(mut file) = File::open(format!("/proc/{id}/cmdline")) else {
        return false;
    };
    let mut words = Vec::new();
    file.read_to_end(&mut words).is_ok()
        && words
            .split(|byte| *byte == 0)
            .any(|word| word == settings.as_os_str().as_bytes())
}

/// Waits for the child's end; asks it to end at the stop.
async fn watch(
    verb: &str,
    part: &str,
    settings: &Path,
    mut child: Child,
    story: &Story,
    stop: &CancellationToken,
) {
    // To wait for a child closes its standard input.
    let _stdin = child.stdin.take();
    let ended = tokio::select! {
        ended = child.wait() => ended,
        () = stop.cancelled() => {
            let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
            if let Some(Err(error)) = id.map(|id| kill_process(id, Signal::TERM)) {
                story.tell_event(&format!("{part} cannot be asked to end: {error}"));
            }
            _ = child.wait().await;
            return;
        }
    };
    match ended {
        Ok(status) => story.tell_event(&format!(
            "{part} ended ({status}) and stays so; start it again with `holdfast {verb} --settings {}`",
            settings.display()
        )),
        Err(error) => story.tell_event(&format!("{part} cannot be watched: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use archive_daemon::{Chance, Clock, Metrics, Tasks, Workers};

    use super::super::prepare::prepare_archive;
    use super::*;

    fn daemon() -> Daemon {
        let clock = Clock::system_clock();
        let tasks = Tasks::new();
        Daemon {
            chance: Chance::system_chance(),
            workers: Workers::new(clock.clone(), tasks.clone()),
            metrics: Metrics::new(),
            executable: None,
            clock,
            tasks,
        }
    }

    /// Fails if a second `up` begins a part that runs, or one beside it, or loses its id or what people wrote.
    #[tokio::test]
    async fn second_up_over_running_part_is_refused() {
        let data = tempfile::tempdir().unwrap();
        let now = Clock::system_clock().now();
        let first = prepare_archive(data.path(), None, now).unwrap();
        let client = first.client_file();
        replace_file(&client, b"# people's own\n").unwrap();
        // The part that is begun last: those before it are not begun either.
        let running = Command::new("sh")
            .args(["-c", "read end"])
            .arg(first.settings_path("repository"))
            .stdin(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let id = running.id().unwrap();
        let pid = first.run_path().join("repository.pid");
        directory::make_directory(&first.run_path()).unwrap();
        replace_file(&pid, format!("{id}\n").as_bytes()).unwrap();

        let second = prepare_archive(data.path(), None, now).unwrap();
        let started =
            Processes::start_parts(&second, &BTreeMap::new(), None, &Story::new(), &daemon());
        let refused = started.err().unwrap();
        assert!(
            refused.contains(&format!("repository runs already, as process {id};")),
            "{refused}"
        );
        let begun = directory::list_directory(&second.run_path()).unwrap();
        assert_eq!(begun.len(), 1, "{begun:?}");
        let kept = |path: &Path| String::from_utf8(read_state(path).unwrap().unwrap()).unwrap();
        assert_eq!(kept(&pid), format!("{id}\n"));
        assert_eq!(kept(&client), "# people's own\n");
    }

    /// Fails if a part that runs is taken for one that ended, or another process for a part.
    #[test]
    fn running_part_is_known_by_its_settings() {
        let own = std::env::args_os().next().unwrap();
        assert!(is_part(std::process::id(), Path::new(&own)));
        assert!(!is_part(std::process::id(), Path::new("/none.toml")));
        assert!(!is_part(u32::MAX, Path::new(&own)));
    }
}
