//! Requests to a job that is running, as files in its directory `action`.
//!
//! | File | Request |
//! |---|---|
//! | `pause`, `resume`, `terminate` | what the name says |
//! | `NAME.seeds` | further seeds, one a line |
//! | `NAME.reject` | URIs that are not fetched any more, one rule a line |
//! | `NAME.free` | patterns that are freed from quarantine, one a line |
//! | `NAME.budget` | `QUEUE OBJECTS BYTES`, one queue a line; `-1` is no limit |
//!
//! Owns when a file is complete, and what becomes of it: one that was carried out lies in `done` under the time at
//! which it was; one that cannot be carried out lies there as well, with `.refused` behind its name and the reason in a
//! file `.reason` beside it. It is moved once what it asks for is durable, so that the end of a process loses no
//! request. Heritrix looks every 30 seconds; here it is a second.

mod parse;

use std::collections::HashMap;
use std::convert::Infallible;
use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use archive_daemon::clock::Clock;
use archive_durable::directory::EntryKind;
use archive_durable::{DiskError, directory, read_small, replace_file};
use harvest_crawler::crawl::{ControlRequest, CrawlCommand};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

use crate::directory::{JobDirectory, MAX_REQUEST};
use crate::notice::{JobNotice, NoticeHandler};

/// The interval at which the directory is looked at.
const PERIOD: Duration = Duration::from_secs(1);

/// The time for which a file without a line end at its end has to stay as it is: its writer may not be done.
const UNENDED: Duration = Duration::from_secs(5);

/// The most bytes that are kept of the name of a request.
const LONGEST_NAME: usize = 200;

/// A file as it was seen last.
#[derive(Clone, Copy, Debug)]
struct SeenFile {
    size: u64,
    changed: i64,
    /// The moment since which the file has not changed.
    since: Instant,
}

/// The watch of the directory of one job.
pub(crate) struct ActionWatch<'a> {
    job: &'a JobDirectory,
    clock: &'a Clock,
    requests: UnboundedSender<ControlRequest>,
    notify: NoticeHandler<'a>,
    seen: HashMap<OsString, SeenFile>,
}

impl<'a> ActionWatch<'a> {
    /// Returns a watch that hands requests to a crawl.
    pub(crate) fn new(
        job: &'a JobDirectory,
        clock: &'a Clock,
        requests: UnboundedSender<ControlRequest>,
        notify: NoticeHandler<'a>,
    ) -> Self {
        Self {
            job,
            clock,
            requests,
            notify,
            seen: HashMap::new(),
        }
    }

    /// Carries out requests as they come, for as long as it is polled. No state of the directory ends it: a crawl of
    /// weeks is not broken off for want of a place for requests.
    #[expect(clippy::infinite_loop, reason = "who polls it drops it")]
    pub(crate) async fn run_watch(mut self) -> Infallible {
        let mut told = None;
        loop {
            self.clock.sleep(PERIOD).await;
            let trouble = match self.check_files().await {
                Ok(()) => None,
                Err(error) => Some(error.to_string()),
            };
            if let Some(why) = &trouble
                && trouble != told
            {
                (self.notify)(JobNotice::ActionsUnread(why));
            }
            told = trouble;
        }
    }

    async fn check_files(&mut self) -> Result<(), DiskError> {
        let mut names = match directory::list_names(&self.job.path_of("action")) {
            // A person took it away.
            Err(error) if error.is_absent() => {
                directory::make_unsynced(&self.job.path_of("action"))?;
                Vec::new()
            }
            names => names?,
        };
        names.sort();
        self.seen
            .retain(|name, _| names.binary_search(name).is_ok());
        for name in names {
            self.check_file(&name).await?;
        }
        Ok(())
    }

    async fn check_file(&mut self, file: &OsString) -> Result<(), DiskError> {
        let path = self.job.path_of("action").join(file);
        let name = file.to_string_lossy();
        if is_temporary(&name) {
            return Ok(());
        }
        let Some(EntryKind::File { size, changed, .. }) = directory::entry_kind(&path)? else {
            return Ok(());
        };
        let request = if let Some(control) = parse::parse_name(&name) {
            Ok(control)
        } else {
            let since = self.unchanged_since(file, size, changed);
            let quiet = self.clock.elapsed_since(since);
            if quiet < PERIOD {
                return Ok(());
            }
            match read_small(&path, MAX_REQUEST) {
                // The file was taken away meanwhile.
                Ok(None) => return Ok(()),
                Ok(Some(bytes)) if !ends_with_line(&bytes) && quiet < UNENDED => return Ok(()),
                Ok(Some(bytes)) => parse::parse_lines(&name, &bytes),
                Err(error) => Err(error.to_string()),
            }
        };
        let answer = match request {
            Ok(control) => match self.ask(control).await {
                Some(answer) => answer,
                // The crawl has ended: the file stays for the next one.
                None => return Ok(()),
            },
            Err(why) => Err(why),
        };
        self.seen.remove(file);
        match answer {
            Ok(done) => {
                self.move_to_done(&path, &name, "")?;
                let name = name.as_ref();
                let done = done.as_str();
                (self.notify)(JobNotice::Action { name, done });
            }
            Err(why) => {
                let refused = self.move_to_done(&path, &name, ".refused")?;
                let reason = refused.with_extension("reason");
                replace_file(&reason, format!("{why}\n").as_bytes())?;
                let name = name.as_ref();
                let why = why.as_str();
                (self.notify)(JobNotice::ActionRefused { name, why });
            }
        }
        Ok(())
    }

    /// Returns the moment since which a file has been as it is.
    fn unchanged_since(&mut self, file: &OsString, size: u64, changed: i64) -> Instant {
        let now = SeenFile {
            size,
            changed,
            since: self.clock.instant(),
        };
        let seen = self.seen.entry(file.clone()).or_insert(now);
        if (seen.size, seen.changed) != (size, changed) {
            *seen = now;
        }
        seen.since
    }

    /// Returns the answer of the crawl; `None` if it has ended.
    async fn ask(&self, control: CrawlCommand) -> Option<Result<String, String>> {
        let (answer, answered) = oneshot::channel();
        let request = ControlRequest { control, answer };
        self.requests.send(request).ok()?;
        answered.await.ok()
    }

    /// Moves a file to `done`; returns its name there.
    fn move_to_done(
        &self,
        path: &Path,
        name: &str,
        ending: &str,
    ) -> Result<std::path::PathBuf, DiskError> {
        directory::make_unsynced(&self.job.path_of("done"))?;
        let mut time = self.clock.now().as_millisecond();
        // With the time and an ending it is to fit into 255 bytes.
        let name = name
            .get(..name.floor_char_boundary(LONGEST_NAME))
            .unwrap_or(name);
        loop {
            let done = self
                .job
                .path_of("done")
                .join(format!("{time}-{name}{ending}"));
            match directory::move_new(path, &done) {
                // Two requests of one name within a millisecond.
                Err(error) if error.is_taken() => time = time.saturating_add(1),
                moved => return moved.map(|()| done),
            }
        }
    }
}

/// Returns whether a name is one of those that editors and copies give to files that they have not finished.
fn is_temporary(name: &str) -> bool {
    let extension = Path::new(name).extension();
    let extension = extension.and_then(|extension| extension.to_str());
    name.starts_with('.')
        || name.ends_with('~')
        || matches!(extension, Some("part" | "tmp" | "swp" | "new"))
}

fn ends_with_line(bytes: &[u8]) -> bool {
    bytes.is_empty() || bytes.ends_with(b"\n")
}
