//! The reason why a part does not start, with what a person has to mend.

use std::error::Error;
use std::fmt;
use std::path::Path;
use std::pin::Pin;

use tokio::task::JoinError;

use crate::metrics::MetricError;
use crate::settings::InvalidSettings;
use crate::tasks::{AnyError, with_causes};
use crate::worker::DuplicateWorker;

/// A start under way. It is boxed, so that the crate of a part compiles it, and not each crate that starts the part.
pub type Starting<T> = Pin<Box<dyn Future<Output = Result<T, StartError>> + Send>>;

/// The reason why a part does not start. Its text is whole: it has all causes, each once.
#[derive(Debug)]
pub struct StartError {
    text: String,
    cause: AnyError,
    is_of_settings: bool,
}

impl StartError {
    /// Makes the error of a setting, or of the file that it names: people mend the settings, and start again.
    pub fn of_setting(setting: &str, cause: impl Into<AnyError>) -> Self {
        let cause = cause.into();
        Self {
            text: format!("{setting}: {}", with_causes(cause.as_ref())),
            cause,
            is_of_settings: true,
        }
    }

    /// Makes the error of something that settings do not mend. `doing` says what could not be done: `open the catalog`.
    pub fn failed(doing: &str, cause: impl Into<AnyError>) -> Self {
        let cause = cause.into();
        Self {
            text: format!("cannot {doing}: {}", with_causes(cause.as_ref())),
            cause,
            is_of_settings: false,
        }
    }

    /// Names the settings file that the error is about.
    #[must_use]
    pub fn in_file(self, file: &Path) -> Self {
        if !self.is_of_settings {
            return self;
        }
        let text = format!("{}: {}", file.display(), self.text);
        Self { text, ..self }
    }

    /// Returns whether the settings are wrong, or a certificate, key or trust file that they name.
    pub fn is_of_settings(&self) -> bool {
        self.is_of_settings
    }

    /// Returns the error behind this one, if it is an `E`.
    pub fn find_cause<E: Error + 'static>(&self) -> Option<&E> {
        self.cause.downcast_ref()
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for StartError {}

impl From<InvalidSettings> for StartError {
    fn from(invalid: InvalidSettings) -> Self {
        Self {
            text: invalid.to_string(),
            cause: invalid.into(),
            is_of_settings: true,
        }
    }
}

impl From<MetricError> for StartError {
    fn from(error: MetricError) -> Self {
        Self::failed("make its instruments", error)
    }
}

impl From<DuplicateWorker> for StartError {
    fn from(error: DuplicateWorker) -> Self {
        Self::failed("start its workers", error)
    }
}

impl From<JoinError> for StartError {
    fn from(error: JoinError) -> Self {
        Self::failed("finish its start", error)
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    enum Cause {
        #[error("the disk is gone: {0}")]
        Quoted(#[source] io::Error),
        #[error("the disk is gone")]
        Silent(#[source] io::Error),
    }

    /// Fails if a cause is told twice, or not at all, or is not to be found.
    #[test]
    fn causes_are_told_once() {
        let broken = || io::Error::other("EIO");
        for cause in [Cause::Quoted(broken()), Cause::Silent(broken())] {
            let error = StartError::failed("open the catalog", cause);
            assert_eq!(
                error.to_string(),
                "cannot open the catalog: the disk is gone: EIO"
            );
            assert!(!error.is_of_settings());
            assert!(error.find_cause::<Cause>().is_some());
        }
    }

    /// Fails if the error of a setting does not begin with the setting, or does not ask for other settings.
    #[test]
    fn error_of_a_setting_names_it() {
        let error = StartError::of_setting("rpc.key", Cause::Quoted(io::Error::other("EACCES")));
        assert_eq!(error.to_string(), "rpc.key: the disk is gone: EACCES");
        assert!(error.is_of_settings());
    }
}
