//! The demonstration of `holdfast up --demo`: the public command line, on sites that it crawls, with every number taken
//! from its answers.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use archive_daemon::Clock;
use archive_model::FileName;
use serde_json::Value;
use tokio::process::Command;
use tools_terminal::output::size_text;

use super::prepare::{CHECKSUM_REPLICA, PreparedArchive, REPLICAS};
use super::processes::Processes;
use super::story::Story;

/// The documentation that is served on loopback and archived from there, where it is installed.
const SOURCES: [&str; 2] = ["/usr/share/doc", "/usr/share/common-licenses"];

/// The time that a part may take to be seen as dead, or alive again.
const PATIENCE: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(300);

/// Runs the demonstration. An error says what was not as it should be.
pub(super) async fn run_demonstration(
    prepared: &PreparedArchive,
    processes: Option<&Processes>,
    story: &Story,
) -> Result<(), String> {
    let show = Demonstration::new(prepared, story)?;
    let jobs = show.crawl_sources().await?;
    let mut files = Vec::new();
    let mut receipts = Vec::new();
    for job in &jobs {
        files.extend(list(&job.join("warcs"))?);
        files.extend(list(&job.join("metadata"))?);
        receipts.extend(list(&job.join("receipts"))?);
    }
    if files.len() != receipts.len() {
        return Err(format!(
            "{} files of crawls have {} receipts",
            files.len(),
            receipts.len()
        ));
    }
    show.story.tell_step(&format!(
        "each of {} archive and metadata files is in {} replicas, read back from the disk, and in a checksum replica",
        files.len(),
        REPLICAS.len()
    ));
    show.json(&with(&["verify", "receipt"], &receipts)).await?;
    show.story.tell_step(&format!(
        "verified {} custody receipts, offline",
        receipts.len()
    ));

    for replica in REPLICAS.into_iter().chain([CHECKSUM_REPLICA]) {
        let listed = show
            .text(&["list", "--replica", replica, "--checksums"])
            .await?;
        let judged = show.b3sum(&files).await?;
        match judged {
            None => show
                .story
                .tell_event("SKIPPED: b3sum as a judge (it is not installed)"),
            Some(judged) if sorted(&listed) == sorted(&judged) => {
                show.story.tell_step(&format!(
                    "replica {replica}: b3sum of the originals says the same of every file"
                ));
            }
            Some(_) => {
                return Err(format!(
                    "replica {replica} lists other checksums than b3sum"
                ));
            }
        }
    }

    let victim = files.first().ok_or("there is no file to damage")?;
    let name = victim
        .file_name()
        .and_then(|name| name.to_str())
        .ok_or("a file name that is no text")?;
    let damaged = show.flip_a_bit(name)?;
    let back = show.directory.join("read-back.warc.gz");
    let out = back.display().to_string();
    show.json(&["get", name, "-o", &out, "--force"]).await?;
    let same = std::fs::read(victim)
        .ok()
        .zip(std::fs::read(&back).ok())
        .is_some_and(|(a, b)| a == b);
    if !same {
        return Err(format!(
            "{name} came back different after a bit was flipped in {}",
            damaged.display()
        ));
    }
    show.story.tell_step(
        "one bit flipped in one copy: the file still reads right, from the other replica",
    );

    let (code, found) = show.ended(&["check", "checksums", name]).await?;
    let first = found.lines().find(|line| line.contains("corrupt"));
    let first = first
        .filter(|_| code == 1)
        .ok_or_else(|| format!("the check did not find the damage: {found}"))?;
    show.story.tell_step(&format!(
        "the check reads every copy again and finds it: {}",
        first.trim()
    ));
    let repaired = show
        .json(&["repair", name, "--reason", "the demonstration"])
        .await?;
    let moved = repaired.get("bytes_moved").and_then(Value::as_u64);
    let (code, left) = show.ended(&["check", "checksums", name]).await?;
    if code != 0 {
        return Err(format!("the repair left damage: {left}"));
    }
    show.story.tell_step(&format!(
        "repaired: {} bytes came from the other replica, the replaced group is in the attic, and a second check finds nothing",
        moved.ok_or("the repair does not say what moved")?
    ));
    if let Some(processes) = processes {
        kill_a_part(&show, processes, name).await?;
    }
    show_sites(&show, prepared, &jobs).await
}

/// Prints where the crawled sites can be looked at, once their captures are found.
async fn show_sites(
    show: &Demonstration,
    prepared: &PreparedArchive,
    jobs: &[PathBuf],
) -> Result<(), String> {
    for job in jobs {
        let path = job.join("seeds.txt");
        let seeds = std::fs::read_to_string(&path)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        let seed = seeds.lines().map(str::trim).find(|line| !line.is_empty());
        let seed = seed.ok_or_else(|| format!("{} names no seed", path.display()))?;
        show.wait_for_capture(seed).await?;
        show.story.tell_step(&format!(
            "the crawled site, without its web server: {}",
            prepared.shown_address(seed)
        ));
    }
    Ok(())
}

/// Kills a node: its replica is silent, nothing is missing; and it comes back.
async fn kill_a_part(
    show: &Demonstration,
    processes: &Processes,
    name: &str,
) -> Result<(), String> {
    const PART: &str = "bitarchive-two";
    processes.kill_part(PART)?;
    let (_, said) = show.until(&["check", "files"], 1).await?;
    if said.contains("missing") {
        return Err(format!("a dead node made files missing: {said}"));
    }
    let out = show.directory.join("read-meanwhile.warc.gz");
    let out = out.display().to_string();
    show.json(&["get", name, "-o", &out, "--force"]).await?;
    show.story.tell_step(&format!(
        "{PART} killed: the check is partial and calls nothing missing, files are still read"
    ));
    processes.restart_part(PART)?;
    show.until(&["check", "files"], 0).await?;
    show.story.tell_step(&format!(
        "{PART} started again: the check is complete and finds nothing"
    ));
    Ok(())
}

/// The executable, the directories and the clock of a demonstration.
struct Demonstration {
    program: PathBuf,
    client: PathBuf,
    directory: PathBuf,
    volume: PathBuf,
    story: Story,
    clock: Clock,
}

impl Demonstration {
    fn new(prepared: &PreparedArchive, story: &Story) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let client = prepared.client_file();
        let directory = client.with_file_name("demo");
        archive_durable::directory::make_directory(&directory)
            .map_err(|error| error.to_string())?;
        Ok(Self {
            program,
            client,
            directory,
            volume: prepared.volume_path("one"),
            story: story.clone(),
            clock: Clock::system_clock(),
        })
    }

    /// Crawls documentation from a web server on loopback, with all that a harvest job leaves; gives the directories of
    /// the jobs.
    async fn crawl_sources(&self) -> Result<Vec<PathBuf>, String> {
        let mut jobs = Vec::new();
        let there = SOURCES.iter().filter(|source| Path::new(source).is_dir());
        for (number, source) in (1..).zip(there) {
            let base = self.directory.join(format!("crawl-{number}"));
            archive_durable::directory::make_directory(&base).map_err(|error| error.to_string())?;
            let begun = list(&base)?.pop();
            let job = match begun {
                Some(job) => job,
                None => self.crawl(source, number, &base).await?,
            };
            jobs.push(job);
        }
        if jobs.is_empty() {
            return Err(format!(
                "there is no documentation to harvest in {}",
                SOURCES.join(" or ")
            ));
        }
        Ok(jobs)
    }

    async fn crawl(&self, source: &str, number: u32, base: &Path) -> Result<PathBuf, String> {
        let mut server = Command::new("python3")
            .args(["-u", "-c", SERVER, source])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("python3: {error}; install it, or start without --demo"))?;
        let url = format!("http://127.0.0.1:{}/", port(&mut server).await?);
        let job = number.to_string();
        let base = base.display().to_string();
        let limits = ["--max-hops", "3", "--max-bytes", "60 MB", "--delay", "0"];
        let names = ["--collection", "demo", "--job", &job, "--keep", &base];
        let words = [&["crawl", &url, "--connections", "4"][..], &limits, &names].concat();
        let report = self.json(&words).await?;
        server.kill().await.map_err(|error| error.to_string())?;
        let number_of = |name: &str| report.get(name).and_then(Value::as_u64);
        let (Some(objects), Some(bytes)) = (number_of("objects"), number_of("bytes")) else {
            return Err(format!("the crawl does not say what it has: {report}"));
        };
        if report.get("status").and_then(Value::as_str) != Some("done") || objects == 0 {
            return Err(format!("the crawl is not done: {report}"));
        }
        self.story.tell_step(&format!(
            "crawled {source} from a web server: {objects} objects, {}; logs and reports are in the metadata file",
            size_text(bytes)
        ));
        let job = list(Path::new(&base))?.pop();
        job.ok_or_else(|| format!("the crawl has left no directory in {base}"))
    }

    /// Flips one bit in the middle of a stored file, behind the archive's back.
    fn flip_a_bit(&self, name: &str) -> Result<PathBuf, String> {
        use std::os::unix::fs::{FileExt, PermissionsExt};
        let name = FileName::new(name).map_err(|error| error.to_string())?;
        let path = archive_bitarchive::Layout::new(&self.volume)
            .target_paths(&name)
            .file;
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).map_err(failed)?;
        let file = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(&path)
            .map_err(failed)?;
        let middle = file.metadata().map_err(failed)?.len() / 2;
        let mut byte = [0];
        file.read_exact_at(&mut byte, middle).map_err(failed)?;
        let [old] = byte;
        file.write_all_at(&[old ^ 1], middle).map_err(failed)?;
        file.sync_all().map_err(failed)?;
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o444)).map_err(failed)?;
        Ok(path)
    }

    async fn json(&self, arguments: &[&str]) -> Result<Value, String> {
        let said = self.text(&with_json(arguments)).await?;
        serde_json::from_str(&said).map_err(|error| format!("{arguments:?}: {error}"))
    }

    /// Runs a command again until it ends with the wanted code: what a part does at its start takes a moment.
    async fn until(&self, arguments: &[&str], wanted: i32) -> Result<(i32, String), String> {
        let begun = self.clock.instant();
        loop {
            let (code, said) = self.ended(arguments).await?;
            if code == wanted {
                return Ok((code, said));
            }
            if self.clock.elapsed_since(begun) > PATIENCE {
                return Err(format!(
                    "holdfast {}: {code}, not {wanted}: {said}",
                    arguments.join(" ")
                ));
            }
            self.clock.sleep(PAUSE).await;
        }
    }

    /// Waits until the index has a capture of a URL.
    async fn wait_for_capture(&self, url: &str) -> Result<(), String> {
        let begun = self.clock.instant();
        while self
            .text(&["captures", url, "--limit", "1"])
            .await?
            .is_empty()
        {
            if self.clock.elapsed_since(begun) > PATIENCE {
                return Err(format!("the index has no capture of {url}"));
            }
            self.clock.sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Returns the exit code and the output of a command.
    async fn ended(&self, arguments: &[&str]) -> Result<(i32, String), String> {
        let output = Command::new(&self.program)
            .arg("--client")
            .arg(&self.client)
            .args(arguments)
            .output()
            .await
            .map_err(|error| error.to_string())?;
        let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
        said.push_str(&String::from_utf8_lossy(&output.stderr));
        Ok((output.status.code().unwrap_or(-1), said))
    }

    async fn text(&self, arguments: &[&str]) -> Result<String, String> {
        let output = Command::new(&self.program)
            .arg("--client")
            .arg(&self.client)
            .args(arguments)
            .output()
            .await
            .map_err(|error| error.to_string())?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(format!(
                "holdfast {}: {}: {why}",
                arguments.join(" "),
                output.status
            ));
        }
        String::from_utf8(output.stdout).map_err(|error| error.to_string())
    }

    /// Returns the checksums of files by `b3sum`, by their names; `None` where it is not installed.
    async fn b3sum(&self, files: &[PathBuf]) -> Result<Option<String>, String> {
        let mut lines = String::new();
        for file in files {
            let (Some(directory), Some(name)) = (file.parent(), file.file_name()) else {
                continue;
            };
            let output = Command::new("b3sum")
                .arg(name)
                .current_dir(directory)
                .output()
                .await;
            match output {
                Ok(output) => lines.push_str(&String::from_utf8_lossy(&output.stdout)),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(Some(lines))
    }
}

/// Serves the directory that is its argument on a free port, until its standard input ends: no longer than this process
/// lives.
const SERVER: &str = "\
import functools, http.server, os, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[1])
http.server.test(handler, http.server.ThreadingHTTPServer, port=0, bind='127.0.0.1')
";

/// Reads the port from what the web server says.
async fn port(server: &mut tokio::process::Child) -> Result<u16, String> {
    use tokio::io::{AsyncBufReadExt, BufReader};
    let output = server.stdout.take().ok_or("the web server says nothing")?;
    let mut line = String::new();
    BufReader::new(output)
        .read_line(&mut line)
        .await
        .map_err(|error| error.to_string())?;
    let mut words = line.split_whitespace().skip_while(|word| *word != "port");
    words
        .nth(1)
        .and_then(|port| port.parse().ok())
        .ok_or(format!("no port in {line:?}"))
}

fn with<'a>(arguments: &[&'a str], files: &'a [PathBuf]) -> Vec<&'a str> {
    arguments
        .iter()
        .copied()
        .chain(files.iter().filter_map(|file| file.to_str()))
        .collect()
}

fn with_json<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    std::iter::once("--json")
        .chain(arguments.iter().copied())
        .collect()
}

fn list(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let entries =
        archive_durable::directory::list_directory(directory).map_err(|error| error.to_string())?;
    Ok(entries
        .into_iter()
        .map(|entry| directory.join(entry.name))
        .collect())
}

fn sorted(lines: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = lines.lines().collect();
    lines.sort_unstable();
    lines
}
