//! Logs on standard error or in a file: for people on a terminal and in a file, else one JSON object a line.
//!
//! Owner of: the one subscriber of the process, and the rotation of its file. Standard output is left to the results of
//! a command.

mod log_file;

use std::fmt;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::str::FromStr;
use std::sync::Mutex;

use serde::{Deserialize, Serialize};
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use log_file::LogFile;

/// The level of logging: one level, or levels by module: `info`, `warn,archive_rpc=debug`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LogFilter(String);

/// The error of a text that is neither a level nor a list of levels by module.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{0}` is no log filter: write error, warn, info, debug or trace, or levels by module: info,archive_rpc=debug"
)]
pub struct InvalidLogFilter(String);

/// The format of a log line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// The format `Human` on a terminal and in a file, else `Json`.
    #[default]
    Auto,
    /// A line for people, with colours on a terminal.
    Human,
    /// A JSON object.
    Json,
}

/// The error of a process that has a subscriber already.
#[derive(Debug, thiserror::Error)]
#[error("logging is already installed in this process; install it once, in `main`")]
pub struct AlreadyInstalled(#[from] tracing::subscriber::SetGlobalDefaultError);

impl LogFilter {
    fn parsed(&self) -> Result<EnvFilter, InvalidLogFilter> {
        EnvFilter::builder()
            .parse(&self.0)
            .or(Err(InvalidLogFilter(self.0.clone())))
    }
}

impl Default for LogFilter {
    fn default() -> Self {
        Self("info".to_owned())
    }
}

impl FromStr for LogFilter {
    type Err = InvalidLogFilter;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::try_from(text.to_owned())
    }
}

impl TryFrom<String> for LogFilter {
    type Error = InvalidLogFilter;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        // The reader of filters cuts between bytes, and panics within a letter of several bytes.
        if !text.is_ascii() {
            return Err(InvalidLogFilter(text));
        }
        // A misspelt level would be taken for a module, and silence everything else.
        let mut plain = text.split(',').filter(|piece| !piece.contains(['=', '[']));
        // The empty string parses as a level, too.
        if !plain
            .all(|level| !level.trim().is_empty() && level.trim().parse::<LevelFilter>().is_ok())
        {
            return Err(InvalidLogFilter(text));
        }
        let filter = Self(text);
        filter.parsed()?;
        Ok(filter)
    }
}

impl From<LogFilter> for String {
    fn from(filter: LogFilter) -> Self {
        filter.0
    }
}

impl fmt::Display for LogFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The size at which a log file is put aside, in bytes.
const LARGEST_FILE: u64 = 10_000_000;

/// Sends everything that is logged from now on to `file`, or to standard error if there is none. To be called once in a
/// process.
///
/// # Errors
///
/// [`InstallError`] if the filter cannot be read, the file cannot be written, or logging was installed before.
pub fn install_telemetry(
    filter: &LogFilter,
    format: LogFormat,
    file: Option<&Path>,
) -> Result<(), InstallError> {
    let is_terminal = file.is_none() && io::stderr().is_terminal();
    let is_json = match format {
        LogFormat::Auto => file.is_none() && !is_terminal,
        LogFormat::Human => false,
        LogFormat::Json => true,
    };
    let filter = filter.parsed()?;
    let subscriber = match file {
        Some(path) => {
            let file = LogFile::open(path, LARGEST_FILE).map_err(InstallError::File)?;
            subscriber(filter, is_json, false, Mutex::new(file))
        }
        None => subscriber(filter, is_json, is_terminal, io::stderr),
    };
    tracing::subscriber::set_global_default(subscriber).map_err(AlreadyInstalled)?;
    Ok(())
}

/// The reason why logging could not be installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The filter cannot be read.
    #[error(transparent)]
    Filter(#[from] InvalidLogFilter),
    /// The file cannot be written.
    #[error(transparent)]
    File(io::Error),
    /// The process has a subscriber already.
    #[error(transparent)]
    Twice(#[from] AlreadyInstalled),
}

fn subscriber(
    filter: EnvFilter,
    json: bool,
    colours: bool,
    writer: impl for<'w> MakeWriter<'w> + Send + Sync + 'static,
) -> Box<dyn Subscriber + Send + Sync> {
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer);
    if json {
        Box::new(builder.json().flatten_event(true).finish())
    } else {
        Box::new(builder.with_ansi(colours).finish())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;

    #[derive(Clone, Default)]
    struct Paper(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(filter: &str, json: bool) -> String {
        let paper = Paper::default();
        let writer = paper.clone();
        let filter = filter.parse::<LogFilter>().unwrap().parsed().unwrap();
        tracing::subscriber::with_default(
            subscriber(filter, json, false, move || writer.clone()),
            || {
                let span = tracing::info_span!("store", file = "a.warc");
                let _inside = span.enter();
                tracing::info!(size = 7, "stored\n{}", "here");
                tracing::debug!("detail");
            },
        );
        String::from_utf8(paper.0.lock().clone()).unwrap()
    }

    /// Fails if an event whose message has a newline takes two lines of the log, or a field of the event or its span is
    /// lost.
    #[test]
    fn json_is_one_object_a_line() {
        let text = logged("info", true);
        assert_eq!(text.lines().count(), 1);
        let line: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(line["level"], "INFO");
        assert_eq!(line["message"], "stored\nhere");
        assert_eq!(line["size"], 7);
        assert_eq!(line["span"]["file"], "a.warc");
    }

    /// Fails if the log for people lacks the span of an event, or has colour codes where colours are off.
    #[test]
    fn people_get_plain_text() {
        let text = logged("debug", false);
        assert!(text.contains("INFO store{file=\"a.warc\"}"), "{text}");
        assert!(text.contains("DEBUG") && !text.contains('\u{1b}'), "{text}");
    }

    /// Fails if an event below the level of its module is logged, or a misspelt filter is accepted and hides events.
    #[test]
    fn the_filter_decides() {
        assert_eq!(logged("warn", true), "");
        assert_eq!(logged("warn,archive_daemon=debug", true).lines().count(), 2);
        for bad in [
            "inof",
            "",
            "warn,",
            "archive_daemon=loud",
            "info,=x",
            "info;debug",
            "\u{3eb}=~",
        ] {
            let error = bad.parse::<LogFilter>().unwrap_err().to_string();
            assert!(error.contains("is no log filter"), "{bad}: {error}");
        }
    }
}
