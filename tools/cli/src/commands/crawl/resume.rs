//! A job that a person takes up again: what is left of it, and by which order it goes on.

use std::path::Path;

use archive_model::ByteSize;
use harvest_controller::lock::JobLock;
use harvest_controller::{HarvestJobError, JobDirectory, JobDirectoryError, JobRemains};
use harvest_crawler::crawl::CrawlEnd;
use harvest_model::CrawlOrder;
use harvest_model::order::{JobActivity, OrderChangeError};
use tools_terminal::exit::{Exit, Failure};

use super::{Crawl, broken_off};

/// Takes a job up again. Returns it with the words for what it goes on with.
pub(super) fn take_up(path: &Path, crawl: &Crawl) -> Result<(JobDirectory, String), Failure> {
    let failed = |error: JobDirectoryError| Failure::because_failed(error.to_string());
    let directory = JobDirectory::open(path).map_err(failed)?;
    let lock = JobLock::acquire(&directory).map_err(HarvestJobError::from);
    let _lock = lock.map_err(|error| broken_off(&error, &directory))?;
    let directory = change_order(directory, crawl)?;
    let id = directory.job().id;
    let stores_nothing = crawl.no_store || directory.run_settings().map_err(failed)?.stores_nothing;
    let job = format!("job {id} in {}", path.display());
    let over = format!("{job}: its crawl is over");
    let words = match directory.remains(stores_nothing).map_err(failed)? {
        JobRemains::Crawl => format!("{job}: resuming its crawl"),
        JobRemains::Storing => {
            let retry = if crawl.retry_failed.is_some() {
                "; what failed can be tried again after that"
            } else {
                ""
            };
            format!("{over}; what is left of its documents is written and stored{retry}")
        }
        JobRemains::Uris { end, remaining } => {
            check_limit(&directory, end)?;
            check_passwords(&directory.job().order)?;
            let with_failures = crawl.retry_failed.is_some();
            directory.reopen_crawl(with_failures).map_err(failed)?;
            let also = if with_failures {
                ", and with what failed"
            } else {
                ""
            };
            format!("{job}: its crawl goes on with {remaining} URIs that were left{also}")
        }
        JobRemains::Failures(count) if crawl.retry_failed.is_some() => {
            check_passwords(&directory.job().order)?;
            directory.reopen_crawl(true).map_err(failed)?;
            format!("{job}: its crawl goes on with what failed; {count} URIs could not be had")
        }
        JobRemains::Failures(count) => format!(
            "{over}, and nothing is left; {count} URIs could not be had: `holdfast crawl --retry-failed {}` tries them again",
            path.display()
        ),
        JobRemains::Nothing if crawl.retry_failed.is_some() => {
            return Err(Failure::because_failed(format!(
                "{over}, and it has no failures that could be tried again"
            )));
        }
        JobRemains::Nothing => format!("{over}, and nothing is left of it"),
    };
    Ok((directory, words))
}

/// Changes the order of a job by what the command line says.
fn change_order(mut directory: JobDirectory, crawl: &Crawl) -> Result<JobDirectory, Failure> {
    let mut changes = Vec::new();
    if let Some(path) = &crawl.order {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::unreadable_file(path, &error))?;
        changes.push(text);
    }
    changes.extend(crawl.delay.map(|delay| {
        format!(
            "[politeness]\ndelay_factor = 0.0\nmin_delay = \"{delay}\"\nmax_delay = \"{delay}\"\n"
        )
    }));
    let limits = [
        crawl
            .max_objects
            .map(|most| format!("max_objects = {most}\n")),
        crawl
            .max_bytes
            .map(|most| format!("max_bytes = \"{most}\"\n")),
        crawl
            .max_time
            .map(|most| format!("max_time = \"{most}\"\n")),
    ];
    changes.extend(
        limits
            .into_iter()
            .flatten()
            .map(|limit| format!("[limits]\n{limit}")),
    );
    for text in changes {
        let order = match directory.changed_order(&text, JobActivity::Stopped) {
            Ok(order) => order,
            Err(OrderChangeError::Nothing) => continue,
            Err(error) => return Err(Failure::new(Exit::Settings, error.to_string())),
        };
        let kept = directory.keep_order(order);
        directory = kept.map_err(|error| Failure::because_failed(error.to_string()))?;
    }
    Ok(directory)
}

/// Refuses to go on with a crawl that would end again at once.
fn check_limit(directory: &JobDirectory, end: CrawlEnd) -> Result<(), Failure> {
    let outcome = directory.read_outcome();
    let outcome = outcome.map_err(|error| Failure::because_failed(error.to_string()))?;
    let Some(outcome) = outcome else {
        return Ok(());
    };
    let limits = &directory.job().order.limits;
    let reached = match end {
        CrawlEnd::ObjectLimit => limits
            .max_objects
            .filter(|most| *most <= outcome.progress.fetched)
            .map(|most| format!("{most} objects; give a higher one by --max-objects")),
        CrawlEnd::DataLimit => limits
            .max_bytes
            .filter(|most| most.bytes() <= outcome.progress.bytes)
            .map(|most: ByteSize| format!("{most}; give a higher one by --max-bytes")),
        CrawlEnd::TimeLimit => limits
            .max_time
            .filter(|most| most.duration() <= outcome.duration)
            .map(|most| format!("{most}; give a longer one by --max-time")),
        _ => None,
    };
    match reached {
        Some(limit) => Err(Failure::wrong_usage(format!(
            "the crawl of {} has ended at its limit of {limit}",
            directory.root().display()
        ))),
        None => Ok(()),
    }
}

/// Refuses to go on without the passwords of the order, which went with the end of the job.
fn check_passwords(order: &CrawlOrder) -> Result<(), Failure> {
    let mut forgotten = order
        .credentials
        .iter()
        .filter(|credential| credential.password.is_forgotten());
    match forgotten.next() {
        Some(credential) => Err(Failure::wrong_usage(format!(
            "the passwords of the job were forgotten when it ended, that for {} among them; give --order FILE with the \
             [[credential]] sections again, or with `credential = []` to go on without",
            credential.host
        ))),
        None => Ok(()),
    }
}
