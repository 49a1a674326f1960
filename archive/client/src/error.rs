//! The reasons why the archive refused or failed a request, by what the caller does next.

use std::io;

use archive_rpc::{CallError, CallErrorKind, CallFailure, InvalidMessage, Peer};
pub(crate) use proto_archive::convert::visible_text;
use tonic::{Code, Status};

/// The archive, as the texts of errors name it.
pub(crate) const ARCHIVE: Peer = Peer::new("archive");

/// The reason why an answer is missing or does not count.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The request breaks a rule: correct it.
    #[error("{0}")]
    Invalid(String),
    /// The archive does not have what was asked for.
    #[error("{0}")]
    NotFound(String),
    /// The name is permanently bound to other content.
    #[error("{0}; store it under another name")]
    Exists(String),
    /// The work is under way for another caller: try again.
    #[error("{0}")]
    Busy(String),
    /// The bytes are not what was announced.
    #[error("{0}; read the source again, or correct what was announced")]
    Mismatch(String),
    /// The file is not in every required replica yet.
    #[error(
        "{0}; keep the source until `holdfast stat` shows it in every required replica, or store it again later"
    )]
    NotEnoughReplicas(String),
    /// The bytes are intact in no replica.
    #[error("{0}")]
    Damaged(String),
    /// The certificate does not carry a role that may do this.
    #[error("{}", ARCHIVE.advise_caller(CallErrorKind::Refused, .0))]
    Refused(String),
    /// The archive is older than this client.
    #[error("{}", ARCHIVE.lacks_call(.0))]
    NotOffered(String),
    /// The state of the archive does not allow the request.
    #[error("{0}")]
    Precondition(String),
    /// The archive has no room.
    #[error("{0}; free some room in the archive, then try again")]
    NoSpace(String),
    /// The archive does not answer, or the answer was cut.
    #[error("{}", ARCHIVE.advise_caller(CallErrorKind::Unavailable, .0))]
    Unavailable(String),
    /// A time limit passed.
    #[error("{}", ARCHIVE.advise_caller(CallErrorKind::TimedOut, .0))]
    TimedOut(String),
    /// A disk of the archive failed.
    #[error("{}", ARCHIVE.advise_caller(CallErrorKind::Storage, .0))]
    Storage(String),
    /// The answer does not prove itself, or is not what was asked for.
    #[error("{0}; do not believe this answer, and tell an operator of the archive")]
    Untrusted(String),
    /// The source of a store cannot be read, or has changed.
    #[error("{what}: {source}")]
    Source {
        /// The source, and how far it was read.
        what: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A bug, in this client or in the archive.
    #[error("{}", ARCHIVE.advise_caller(CallErrorKind::Internal, .0))]
    Bug(String),
}

/// The meaning of an error for the caller: the classes of the executable's exit codes.
///
/// ```
/// use archive_client::{ClientError, ErrorClass};
///
/// let class = |error: fn(String) -> ClientError| error("why".to_owned()).class();
/// assert_eq!(class(ClientError::Invalid), ErrorClass::Usage);
/// assert_eq!(class(ClientError::NotFound), ErrorClass::Failed);
/// assert_eq!(class(ClientError::Busy), ErrorClass::Unreachable);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorClass {
    /// Something is damaged, missing, partial or failed.
    Failed,
    /// The request was wrong.
    Usage,
    /// The settings are wrong.
    Settings,
    /// The archive is unreachable, stalled or timed out.
    Unreachable,
    /// The archive refused: the role, a conflict, or a checksum.
    Refused,
    /// A bug.
    Bug,
}

impl ClientError {
    /// Reads the status of a call that failed.
    pub fn from_status(status: &Status) -> Self {
        let Some(CallError { kind, reason }) = ARCHIVE.read_status(status) else {
            return Self::NotOffered("what was asked for".to_owned());
        };
        match kind {
            CallErrorKind::Invalid => Self::Invalid(reason),
            CallErrorKind::NotFound => Self::NotFound(reason),
            CallErrorKind::Exists => Self::Exists(reason),
            CallErrorKind::Busy => Self::Busy(reason),
            CallErrorKind::Mismatch => Self::Mismatch(reason),
            CallErrorKind::NotEnoughReplicas => Self::NotEnoughReplicas(reason),
            CallErrorKind::Damaged => Self::Damaged(reason),
            CallErrorKind::Refused => Self::Refused(reason),
            CallErrorKind::NoSpace => Self::NoSpace(reason),
            CallErrorKind::Unavailable => Self::Unavailable(reason),
            CallErrorKind::TimedOut => Self::TimedOut(reason),
            CallErrorKind::Storage => Self::Storage(reason),
            CallErrorKind::Internal => Self::Bug(reason),
        }
    }

    /// Returns the meaning of the error for the caller.
    pub const fn class(&self) -> ErrorClass {
        match self {
            Self::Invalid(_) => ErrorClass::Usage,
            Self::NotFound(_)
            | Self::NotEnoughReplicas(_)
            | Self::Damaged(_)
            | Self::NoSpace(_)
            | Self::NotOffered(_)
            | Self::Storage(_)
            | Self::Untrusted(_)
            | Self::Source { .. } => ErrorClass::Failed,
            Self::Busy(_) | Self::Unavailable(_) | Self::TimedOut(_) => ErrorClass::Unreachable,
            Self::Exists(_) | Self::Mismatch(_) | Self::Refused(_) | Self::Precondition(_) => {
                ErrorClass::Refused
            }
            Self::Bug(_) => ErrorClass::Bug,
        }
    }

    /// Returns whether the same request may succeed in a moment.
    pub const fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::Busy(_) | Self::Unavailable(_) | Self::TimedOut(_)
        )
    }
}

impl CallFailure for ClientError {
    fn read(status: &Status, call: Option<&'static str>) -> Self {
        match call {
            Some(what) => call_failed(what, status),
            None => Self::from_status(status),
        }
    }
}

/// Reads a message of the archive that breaks the rules of the wire as an untrusted answer.
impl From<InvalidMessage> for ClientError {
    fn from(error: InvalidMessage) -> Self {
        let said = visible_text(&error.to_string());
        Self::Untrusted(format!("the archive's answer cannot be read: {said}"))
    }
}

/// Reads the status of a call that failed. `what` names the call, for an archive that does not offer it.
pub(crate) fn call_failed(what: &'static str, status: &Status) -> ClientError {
    match status.code() {
        Code::Unimplemented => ClientError::NotOffered(what.to_owned()),
        // In these calls the precondition is about what the archive has, not about what is sent.
        Code::FailedPrecondition => ClientError::Precondition(visible_text(status.message())),
        Code::OutOfRange => ClientError::Untrusted(format!(
            "the archive's answer cannot be read: {}",
            visible_text(status.message())
        )),
        _ => ClientError::from_status(status),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a call that an older archive lacks is reported as a wrong request, without the reason that the archive
    /// is older.
    #[test]
    fn call_of_newer_archive_is_not_offered() {
        let error = call_failed("repairs", &Status::unimplemented("Not yet implemented"));
        assert_eq!(error.class(), ErrorClass::Failed);
        let text = error.to_string();
        assert!(
            text.contains("does not offer repairs") && text.contains("older"),
            "{text}"
        );
    }

    /// Fails if the client adds words to a precondition of the archive, passes its control characters to a terminal, or
    /// takes a refused role for a precondition.
    #[test]
    fn a_precondition_speaks_for_itself() {
        let error = call_failed(
            "repairs",
            &CallErrorKind::Mismatch.to_status("31 files are too many\u{1b}"),
        );
        assert_eq!(error.class(), ErrorClass::Refused);
        assert_eq!(error.to_string(), "31 files are too many ");
        let refused = call_failed("repairs", &CallErrorKind::Refused.to_status("for officer"));
        assert!(matches!(refused, ClientError::Refused(_)));
    }

    /// Fails if an error of the archive gets the exit code of another class, or a refusal counts as something that will
    /// pass.
    #[test]
    fn every_kind_has_its_class() {
        for kind in CallErrorKind::ALL {
            let error = ClientError::from_status(&kind.to_status("a.warc: said why"));
            let expected = match kind {
                CallErrorKind::Invalid => ErrorClass::Usage,
                CallErrorKind::NotFound
                | CallErrorKind::NotEnoughReplicas
                | CallErrorKind::Damaged
                | CallErrorKind::NoSpace
                | CallErrorKind::Storage => ErrorClass::Failed,
                CallErrorKind::Busy | CallErrorKind::Unavailable | CallErrorKind::TimedOut => {
                    ErrorClass::Unreachable
                }
                CallErrorKind::Exists | CallErrorKind::Mismatch | CallErrorKind::Refused => {
                    ErrorClass::Refused
                }
                CallErrorKind::Internal => ErrorClass::Bug,
            };
            assert_eq!(error.class(), expected, "{kind}");
            assert!(
                error.to_string().starts_with("a.warc: said why"),
                "{kind}: {error}"
            );
            assert_eq!(
                error.is_passing(),
                expected == ErrorClass::Unreachable,
                "{kind}: what is unreachable now may be reachable soon, and nothing else"
            );
        }
    }

    /// Fails if a message of the archive controls the terminal or floods it, or an empty message leaves an error
    /// without a reason.
    #[test]
    fn peer_message_is_escaped() {
        let status =
            CallErrorKind::NotFound.to_status(format!("a\u{1b}[2J\r\nb{}", "x".repeat(100_000)));
        let text = ClientError::from_status(&status).to_string();
        assert!(text.starts_with("a [2J  bxxx"), "{text:?}");
        assert!(text.len() < 3000);
        let silent = ClientError::from_status(&Status::unavailable("")).to_string();
        assert!(silent.contains("Unavailable"), "{silent}");
    }
}
