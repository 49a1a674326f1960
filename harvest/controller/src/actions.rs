//! Requests to a job that is running, as files in its directory `action`.
//!
//! `NAME.seeds` adds seeds, one a line; `NAME.free` frees patterns from quarantine, one a line; `pause`, `resume` and `terminate` are what they say. A file that was taken lies in `done`
//! afterwards, under the time at which it was; one that cannot be taken has `.refused` behind its name and the reason in it.
//! Heritrix looks every 30 seconds; here it is a second.

use std::path::Path;
use std::time::Duration;

use archive_daemon::clock::Clock;
use archive_durable::directory::EntryKind;
use archive_durable::{DiskError, directory, read_small, replace};
use harvest_crawler::crawl::Control;
use harvest_model::seed::parse_seeds;
use tokio::sync::mpsc::UnboundedSender;

use crate::directory::JobDirectory;
use crate::job::Notice;

/// How often it is looked.
const PERIOD: Duration = Duration::from_secs(1);

/// The longest request.
const MAX_REQUEST: u64 = 64 << 20;

/// The seeds that were taken from requests: a process that was killed may not have put them into the frontier. Those that it has
/// are not fetched again.
pub(crate) fn taken_seeds(job: &JobDirectory) -> Result<Vec<Control>, DiskError> {
    let mut requests = Vec::new();
    for name in directory::names(&job.path("done"))? {
        let path = job.path("done").join(&name);
        if path
            .extension()
            .is_some_and(|extension| extension == "seeds")
        {
            requests.extend(read(&path, &name.to_string_lossy())?.ok());
        }
    }
    Ok(requests)
}

/// Takes requests as they come, for as long as it is polled.
pub(crate) async fn watch(
    job: &JobDirectory,
    clock: &Clock,
    control: UnboundedSender<Control>,
    notify: &(dyn Fn(Notice<'_>) + Send + Sync),
) -> Result<(), DiskError> {
    loop {
        clock.sleep(PERIOD).await;
        for name in directory::names(&job.path("action"))? {
            let path = job.path("action").join(&name);
            let name = name.to_string_lossy();
            // An editor or a copy may still be writing it.
            if name.starts_with('.') || name.ends_with('~') || name.ends_with(".part") {
                continue;
            }
            if !matches!(directory::kind(&path)?, Some(EntryKind::File { .. })) {
                continue;
            }
            let request = read(&path, &name).unwrap_or_else(|error| Err(error.to_string()));
            let time = clock.now().as_millisecond();
            let done = job.path("done");
            match request {
                Ok(request) => {
                    notify(Notice::Action(&name));
                    // A crawl that has ended takes nothing: the file stays for the next one.
                    if control.send(request).is_ok() {
                        directory::move_new(&path, &done.join(format!("{time}-{name}")))?;
                    }
                }
                Err(why) => {
                    notify(Notice::ActionRefused {
                        name: &name,
                        why: &why,
                    });
                    let refused = done.join(format!("{time}-{name}.refused"));
                    replace(&refused, format!("{why}\n").as_bytes())?;
                    directory::remove_name(&path)?;
                }
            }
        }
    }
}

fn read(path: &Path, name: &str) -> Result<Result<Control, String>, DiskError> {
    let extension = Path::new(name).extension();
    let extension = extension.and_then(|extension| extension.to_str());
    Ok(match (name, extension) {
        ("pause", _) => Ok(Control::Pause),
        ("resume", _) => Ok(Control::Resume),
        ("terminate", _) => Ok(Control::Terminate),
        (_, Some("seeds")) => {
            let bytes = read_small(path, MAX_REQUEST)?.unwrap_or_default();
            let seeds = parse_seeds(&String::from_utf8_lossy(&bytes));
            seeds
                .map(Control::AddSeeds)
                .map_err(|error| error.to_string())
        }
        (_, Some("free")) => {
            let bytes = read_small(path, MAX_REQUEST)?.unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes);
            let patterns = text.lines().map(|line| line.trim().to_owned());
            let patterns = patterns.filter(|pattern| !pattern.is_empty());
            Ok(Control::Free(patterns.collect()))
        }
        _ => Err(format!(
            "{name} is no request: name the file pause, resume, terminate, NAME.seeds or NAME.free"
        )),
    })
}
