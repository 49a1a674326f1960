//! `uri-errors.log` and `runtime-errors.log`: the URIs that are none that can be fetched, and those at which the
//! crawler failed.
//!
//! Both are made from the crawl log once a crawl is over, as Heritrix has them; they are there also when there is
//! nothing to tell.

use archive_durable::{AppendFile, DiskError};
use archive_formats::crawl_log::CrawlLogLine;
use harvest_policy::status::FetchStatus;

use crate::directory::JobDirectory;

/// The log of URIs that cannot be fetched: `time uri "message" annotations`.
const URI_ERRORS: &str = "uri-errors.log";

/// The log of URIs at which the crawler failed: their lines of the crawl log.
const RUNTIME_ERRORS: &str = "runtime-errors.log";

/// The two logs, while they are written.
#[derive(Debug)]
pub(crate) struct ErrorLogs {
    uris: AppendFile,
    failures: AppendFile,
}

impl ErrorLogs {
    /// Begins both anew.
    ///
    /// # Errors
    ///
    /// [`DiskError`] if they cannot be written.
    pub(crate) fn begin_logs(job: &JobDirectory) -> Result<Self, DiskError> {
        let begin = |name: &str| {
            let mut log = AppendFile::open(&job.path_of("logs").join(name))?;
            log.cut(0)?;
            Ok::<_, DiskError>(log)
        };
        Ok(Self {
            uris: begin(URI_ERRORS)?,
            failures: begin(RUNTIME_ERRORS)?,
        })
    }

    /// Adds a line of the crawl log to the log that it belongs into, if any.
    ///
    /// # Errors
    ///
    /// [`DiskError`] if it cannot be written.
    pub(crate) fn add(&mut self, line: &CrawlLogLine) -> Result<(), DiskError> {
        let status = FetchStatus::from_number(line.status);
        if status == FetchStatus::UNFETCHABLE {
            let time = line.time;
            let uri = &line.uri;
            let annotations = line.annotations.join(",");
            let text = format!("{time} {uri} \"{}\" {annotations}\n", status.reason());
            self.uris.append(text.as_bytes())
        } else if status == FetchStatus::RUNTIME_EXCEPTION {
            self.failures.append(format!("{line}\n").as_bytes())
        } else {
            Ok(())
        }
    }

    /// Makes both durable.
    ///
    /// # Errors
    ///
    /// [`DiskError`] if they cannot be synced.
    pub(crate) fn finish(self) -> Result<(), DiskError> {
        self.uris.sync()?;
        self.failures.sync()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use harvest_model::HarvestJob;

    use super::*;

    /// Fails if a line is in the wrong log, or in one though it tells no error.
    #[test]
    fn errors_are_written_to_their_logs() {
        let base = tempfile::tempdir().unwrap();
        let time = "2026-11-23T00:00:00Z".parse().unwrap();
        let seed = "http://a.dk/".parse().unwrap();
        let job = HarvestJob::new(12, 34, time).with_seeds(vec![seed]);
        let job = JobDirectory::create_directory(base.path(), job, time).unwrap();
        let line = |status: &str, uri: &str| -> CrawlLogLine {
            let text = format!("2026-11-23T00:00:01.000Z {status} - {uri} L - - #000 - - - x");
            text.parse().unwrap()
        };
        let mut logs = ErrorLogs::begin_logs(&job).unwrap();
        for line in [
            line("200", "http://a.dk/"),
            line("-7", "gopher://a.dk/"),
            line("-5", "http://a.dk/b"),
        ] {
            logs.add(&line).unwrap();
        }
        logs.finish().unwrap();
        let read = |name: &str| fs::read_to_string(job.path_of("logs").join(name)).unwrap();
        assert_eq!(
            read(URI_ERRORS),
            format!(
                "2026-11-23T00:00:01Z gopher://a.dk/ \"{}\" x\n",
                FetchStatus::UNFETCHABLE.reason()
            )
        );
        assert!(read(RUNTIME_ERRORS).contains(" -5 ") && read(RUNTIME_ERRORS).lines().count() == 1);
    }
}
