//! The end of a command: its exit code, and its words when it fails.

use std::fmt;
use std::io;
use std::process::ExitCode;

use archive_client::{ClientError, ClientFileError, ErrorClass};
use archive_daemon::settings::SettingsError;
use archive_rpc::CallErrorKind;
use index_client::IndexCallError;
use serde::Serialize;

/// The documented exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exit {
    /// 0: done, and nothing is wrong.
    Done,
    /// 1: done, and something is damaged, missing, partial or failed.
    Failed,
    /// 2: the command line is wrong, or a name.
    Usage,
    /// 3: the settings are wrong.
    Settings,
    /// 4: unreachable, stalled or timed out.
    Unreachable,
    /// 5: refused: role, conflict, checksum.
    Refused,
    /// 70: a bug.
    Bug,
    /// 130: a person pressed Ctrl-C.
    Interrupted,
}

/// The end of every command's long help.
pub const CODES: &str = "Exit codes: 0 done · 1 done, and something is damaged, missing, partial or failed · \
    2 usage · 3 settings · 4 unreachable, stalled or timed out · 5 refused (role, conflict, checksum) · \
    70 a bug · 130 Ctrl-C. A command about several files tries all of them: if all failures have one code, that is the \
    exit code, and otherwise it is 1.";

impl Exit {
    /// Returns the number of the exit code.
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Settings => 3,
            Self::Unreachable => 4,
            Self::Refused => 5,
            Self::Bug => 70,
            Self::Interrupted => 130,
        }
    }

    /// Returns the exit code of several files: what failed in one way gives its code, what failed in several gives 1.
    pub fn of_all(exits: impl IntoIterator<Item = Self>) -> Self {
        let mut failures = exits.into_iter().filter(|exit| *exit != Self::Done);
        let Some(first) = failures.next() else {
            return Self::Done;
        };
        if failures.all(|exit| exit == first) {
            first
        } else {
            Self::Failed
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

impl From<ErrorClass> for Exit {
    fn from(class: ErrorClass) -> Self {
        match class {
            ErrorClass::Failed => Self::Failed,
            ErrorClass::Usage => Self::Usage,
            ErrorClass::Settings => Self::Settings,
            ErrorClass::Unreachable => Self::Unreachable,
            ErrorClass::Refused => Self::Refused,
            ErrorClass::Bug => Self::Bug,
        }
    }
}

/// A failure of a command, in two parts: what happened; what to do next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The exit code that the failure gives.
    #[serde(rename = "class")]
    pub exit: Exit,
    /// The two parts as one text; empty if the reader of the output has gone.
    pub message: String,
}

impl Failure {
    /// Makes the end of a command that failed with this exit code, and says why.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { exit, message }
    }

    /// Makes the failure of a command line that is wrong.
    pub fn wrong_usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// Makes the failure of something that could not be done here.
    pub fn because_failed(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, message)
    }

    /// Names the file that the failure is about, where the message does not begin with it.
    #[must_use]
    pub fn about_file(self, name: &str) -> Self {
        if self.message.starts_with(name) {
            return self;
        }
        Self::new(self.exit, format!("{name}: {}", self.message))
    }

    /// Makes the failure of a file that was named on the command line and cannot be read.
    pub fn unreadable_file(path: &std::path::Path, error: &io::Error) -> Self {
        let path = path.display();
        if error.kind() == io::ErrorKind::NotFound {
            return Self::wrong_usage(format!("{path}: there is no such file; correct the path"));
        }
        Self::because_failed(format!("{path}: cannot be read: {error}"))
    }

    /// Makes the failure of an answer that cannot be written. The reader who closed the pipe has seen enough, but not
    /// everything.
    pub fn output_failed(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::because_failed("");
        }
        Self::because_failed(format!("the output cannot be written: {error}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        Self::new(error.class().into(), error.to_string())
    }
}

impl From<IndexCallError> for Failure {
    fn from(error: IndexCallError) -> Self {
        let exit = match error.kind {
            CallErrorKind::Invalid => Exit::Usage,
            CallErrorKind::NotFound
            | CallErrorKind::NotEnoughReplicas
            | CallErrorKind::Damaged
            | CallErrorKind::NoSpace
            | CallErrorKind::Storage => Exit::Failed,
            CallErrorKind::Busy | CallErrorKind::Unavailable | CallErrorKind::TimedOut => {
                Exit::Unreachable
            }
            CallErrorKind::Exists | CallErrorKind::Mismatch | CallErrorKind::Refused => {
                Exit::Refused
            }
            CallErrorKind::Internal => Exit::Bug,
        };
        Self::new(exit, error.message)
    }
}

impl From<ClientFileError> for Failure {
    fn from(error: ClientFileError) -> Self {
        Self::new(Exit::Settings, error.to_string())
    }
}

impl From<SettingsError> for Failure {
    fn from(error: SettingsError) -> Self {
        Self::new(Exit::Settings, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a command about several files exits with the code of one failure although others failed in another way.
    #[test]
    fn failures_of_several_classes_exit_with_one() {
        use Exit::{Bug, Done, Failed, Refused, Settings, Unreachable, Usage};
        let cases: [(&[Exit], u8); 8] = [
            (&[], 0),
            (&[Done, Done], 0),
            (&[Done, Unreachable, Unreachable], 4),
            (&[Usage, Done], 2),
            (&[Refused], 5),
            (&[Refused, Unreachable], 1),
            (&[Failed, Done, Failed], 1),
            (&[Bug, Settings, Bug], 1),
        ];
        for (exits, code) in cases {
            assert_eq!(
                Exit::of_all(exits.iter().copied()).code(),
                code,
                "{exits:?}"
            );
        }
    }

    /// Fails if a class of errors of the client gets another exit code than the help says, so that scripts decide
    /// wrongly.
    #[test]
    fn client_error_classes_match_documented_codes() {
        let codes = [
            (ErrorClass::Failed, 1),
            (ErrorClass::Usage, 2),
            (ErrorClass::Settings, 3),
            (ErrorClass::Unreachable, 4),
            (ErrorClass::Refused, 5),
            (ErrorClass::Bug, 70),
        ];
        for (class, code) in codes {
            assert_eq!(Exit::from(class).code(), code);
        }
    }
}
