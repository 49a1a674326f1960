//! Requests to a job that is running, as files in its directory `action`.
//!
//! | File | Request |
//! |---|---|
//! | `pause`, `resume`, `terminate` | what the name says |
//! | `NAME.seeds` | further seeds, one a line |
//! | `NAME.reject` | URIs that are not fetched any more, one rule a line |
//! | `NAME.accept` | rules by which URIs were rejected and that hold no more, one a line |
//! | `NAME.free` | patterns that are freed from quarantine, one a line |
//! | `NAME.retry` | failures that are tried again, one rule a line |
//! | `NAME.order` | keys of the order that change, as TOML |
//! | `NAME.budget` | `QUEUE OBJECTS BYTES`, one queue a line; `-1` is no limit |
//!
//! Owns when a file is complete, and what becomes of it: one that was carried out lies in `done` under the time at
//! which it was; one that cannot be carried out lies there as well, with `.refused` behind its name and the reason in a
//! file `.reason` beside it. Requests that are there before the crawl begins go before its first fetch. A request is moved once what it asks for is durable, so that the end of a process loses no
//! request. Heritrix looks every 30 seconds; here it is a second.

mod parse;

use std::collections::HashMap;
use std::convert::Infallible;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use archive_daemon::clock::Clock;
use archive_durable::directory::EntryKind;
use archive_durable::{DiskError, directory, read_small, replace_file};
use harvest_crawler::crawl::{ControlAnswer, ControlRequest, CrawlCommand};
use harvest_crawler::recorder::CRAWL_LOG;
use harvest_model::CrawlOrder;
use harvest_model::order::JobActivity;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

use self::parse::ActionRequest;
use crate::directory::{JobDirectory, MAX_REQUEST, is_temporary};
use crate::failures::find_failures;
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

/// A request that was handed to the crawl.
struct SentRequest {
    answered: oneshot::Receiver<ControlAnswer>,
    /// The order that holds if the crawl takes it.
    order: Option<CrawlOrder>,
    /// The lines of the log that could not be read for it.
    unreadable: u64,
}

/// The watch of the directory of one job.
pub(crate) struct ActionWatch<'a> {
    job: &'a JobDirectory,
    clock: &'a Clock,
    requests: UnboundedSender<ControlRequest>,
    notify: NoticeHandler<'a>,
    seen: HashMap<OsString, SeenFile>,
    /// The order as it is now.
    order: CrawlOrder,
    /// The requests that were handed to the crawl before it began, by file.
    sent: Vec<(OsString, SentRequest)>,
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
            order: job.job().order.clone(),
            sent: Vec::new(),
        }
    }

    /// Hands those requests to the crawl that are there before it begins: they count before its first fetch. What is not
    /// whole, or wrong, or changes the order, is looked at while the crawl runs.
    pub(crate) async fn send_waiting(&mut self) {
        // A directory that cannot be read is told of once the crawl runs.
        for file in self.list_files().unwrap_or_default() {
            let name = file.to_string_lossy().into_owned();
            let request = match (self.entry(&file).ok().flatten(), parse::parse_name(&name)) {
                (None, _) => continue,
                (_, Some(command)) => Ok(ActionRequest::Command(command)),
                (Some(_), None) => match read_small(&self.path(&file), MAX_REQUEST) {
                    Ok(Some(bytes)) if ends_with_line(&bytes) => parse::parse_lines(&name, &bytes),
                    Ok(_) | Err(_) => continue,
                },
            };
            if let Ok(request) = request
                && !matches!(request, ActionRequest::Change(_))
                && let Ok(Some(sent)) = self.send(request).await
            {
                self.sent.push((file, sent));
            }
        }
    }

    /// Carries out requests as they come, for as long as it is polled. No state of the directory ends it: a crawl of
    /// weeks is not broken off for want of a place for requests.
    #[expect(clippy::infinite_loop, reason = "who polls it drops it")]
    pub(crate) async fn run_watch(mut self) -> Infallible {
        let mut told = None;
        loop {
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
            self.clock.sleep(PERIOD).await;
        }
    }

    async fn check_files(&mut self) -> Result<(), DiskError> {
        for (file, sent) in std::mem::take(&mut self.sent) {
            self.settle(&file, Ok(Some(sent))).await?;
        }
        let names = self.list_files()?;
        self.seen
            .retain(|name, _| names.binary_search(name).is_ok());
        for name in names {
            self.check_file(&name).await?;
        }
        Ok(())
    }

    fn list_files(&self) -> Result<Vec<OsString>, DiskError> {
        let mut names = match directory::list_names(&self.job.path_of("action")) {
            // A person took it away.
            Err(error) if error.is_absent() => {
                directory::make_unsynced(&self.job.path_of("action"))?;
                Vec::new()
            }
            names => names?,
        };
        names.sort();
        Ok(names)
    }

    fn path(&self, file: &OsString) -> PathBuf {
        self.job.path_of("action").join(file)
    }

    /// Returns the size of a file and the time of its last change; `None` of what is no request: a directory, a file
    /// that its writer has not finished.
    fn entry(&self, file: &OsString) -> Result<Option<(u64, i64)>, DiskError> {
        if is_temporary(&file.to_string_lossy()) {
            return Ok(None);
        }
        Ok(match directory::entry_kind(&self.path(file))? {
            Some(EntryKind::File { size, changed, .. }) => Some((size, changed)),
            _ => None,
        })
    }

    async fn check_file(&mut self, file: &OsString) -> Result<(), DiskError> {
        let Some((size, changed)) = self.entry(file)? else {
            return Ok(());
        };
        let name = file.to_string_lossy();
        let request = if let Some(command) = parse::parse_name(&name) {
            Ok(ActionRequest::Command(command))
        } else {
            let since = self.unchanged_since(file, size, changed);
            let quiet = self.clock.elapsed_since(since);
            if quiet < PERIOD {
                return Ok(());
            }
            match read_small(&self.path(file), MAX_REQUEST) {
                // The file was taken away meanwhile.
                Ok(None) => return Ok(()),
                Ok(Some(bytes)) if !ends_with_line(&bytes) && quiet < UNENDED => return Ok(()),
                Ok(Some(bytes)) => parse::parse_lines(&name, &bytes),
                Err(error) => Err(error.to_string()),
            }
        };
        let sent = match request {
            Ok(request) => self.send(request).await,
            Err(why) => Err(why),
        };
        self.settle(file, sent).await
    }

    /// Hands a request to the crawl; `None` if the crawl has ended. An error is why it cannot be one.
    async fn send(&self, request: ActionRequest) -> Result<Option<SentRequest>, String> {
        let mut order = None;
        let mut unreadable = 0;
        let control = match request {
            ActionRequest::Command(command) => command,
            ActionRequest::Retry(rules) => {
                let log = self.job.path_of("logs").join(CRAWL_LOG);
                let reading = tokio::task::spawn_blocking(move || {
                    find_failures(&log, &rules).map(|found| (rules, found))
                });
                let (rules, found) = reading.await.map_err(|error| error.to_string())??;
                unreadable = found.unreadable;
                let failed = found.failed;
                CrawlCommand::Retry { rules, failed }
            }
            ActionRequest::Change(text) => {
                let changed = self.order.changed_by(&text, JobActivity::Running);
                let changed = changed.map_err(|error| error.to_string())?;
                order = Some(changed.clone());
                CrawlCommand::Change(Box::new(changed))
            }
        };
        let (answer, answered) = oneshot::channel();
        let request = ControlRequest { control, answer };
        Ok(self.requests.send(request).is_ok().then_some(SentRequest {
            answered,
            order,
            unreadable,
        }))
    }

    /// Waits for the answer to a request, and puts its file away.
    async fn settle(
        &mut self,
        file: &OsString,
        sent: Result<Option<SentRequest>, String>,
    ) -> Result<(), DiskError> {
        let answer = match sent {
            // The crawl has ended: the file stays for the next one.
            Ok(None) => return Ok(()),
            Ok(Some(sent)) => match sent.answered.await {
                Ok(Ok(done)) if sent.unreadable > 0 => Ok(format!(
                    "{done}; {} lines of the crawl log cannot be read, and what failed by them is not tried again",
                    sent.unreadable
                )),
                Ok(Ok(done)) => match sent.order {
                    Some(order) => self.keep_order(order).map(|()| done),
                    None => Ok(done),
                },
                Ok(Err(why)) => Err(why),
                Err(_ended) => return Ok(()),
            },
            Err(why) => Err(why),
        };
        self.seen.remove(file);
        let name = file.to_string_lossy();
        let name = name.as_ref();
        match answer {
            Ok(done) => {
                self.move_to_done(&self.path(file), name, "")?;
                let done = done.as_str();
                (self.notify)(JobNotice::Action { name, done });
            }
            Err(why) => {
                let refused = self.move_to_done(&self.path(file), name, ".refused")?;
                let reason = refused.with_extension("reason");
                replace_file(&reason, format!("{why}\n").as_bytes())?;
                let why = why.as_str();
                (self.notify)(JobNotice::ActionRefused { name, why });
            }
        }
        Ok(())
    }

    /// Keeps an order that the crawl goes on by: a process that resumes the job begins with it.
    fn keep_order(&mut self, order: CrawlOrder) -> Result<(), String> {
        let kept = self.job.keep_order(order.clone());
        self.order = order;
        kept.map(drop).map_err(|error| {
            format!("the crawl goes on by it, but it is lost when the job is resumed: {error}")
        })
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

    /// Moves a file to `done`; returns its name there.
    fn move_to_done(&self, path: &Path, name: &str, ending: &str) -> Result<PathBuf, DiskError> {
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

fn ends_with_line(bytes: &[u8]) -> bool {
    bytes.is_empty() || bytes.ends_with(b"\n")
}
