//! The error of work that could not be done, away from the wire.
//!
//! Doors speak in [`Status`]; the code between them decides by the kind, and reads neither headers nor sentences for
//! that. A status becomes a [`CallError`] where it comes in, and a call error a status where it goes out.

use tonic::{Code, Status};

use crate::kind::CallErrorKind;

/// The error of a call, or a part of it, that could not be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct CallError {
    /// The kind of error, which says what the caller does next.
    pub kind: CallErrorKind,
    /// The reason for people.
    pub reason: String,
}

impl CallErrorKind {
    /// Makes an error of this kind.
    pub fn to_error(self, reason: impl Into<String>) -> CallError {
        CallError {
            kind: self,
            reason: reason.into(),
        }
    }
}

impl From<Status> for CallError {
    fn from(status: Status) -> Self {
        let kind = CallErrorKind::from_status(&status);
        // Only the transport itself uses this code.
        if status.code() == Code::Unimplemented && kind == CallErrorKind::Invalid {
            return kind.to_error("it is of an older version, which cannot do this; upgrade it");
        }
        kind.to_error(status.message())
    }
}

impl From<CallError> for Status {
    fn from(error: CallError) -> Self {
        error.kind.to_status(error.reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if an error that becomes a status and is read back has another kind or reason.
    #[test]
    fn kind_and_reason_pass_both_doors() {
        for kind in CallErrorKind::ALL {
            let error = kind.to_error("ä reason\nof two lines");
            assert_eq!(CallError::from(Status::from(error.clone())), error);
            assert_eq!(error.to_string(), "ä reason\nof two lines");
        }
    }

    /// Fails if a call that an older server does not know is reported without that reason, or a wrong request is blamed
    /// on the version.
    #[test]
    fn unknown_call_is_distinguished_from_wrong_request() {
        let unknown = CallError::from(Status::unimplemented(""));
        assert_eq!(unknown.kind, CallErrorKind::Invalid);
        assert!(unknown.reason.contains("older version"), "{unknown}");
        let wrong = CallError::from(Status::invalid_argument("no name"));
        assert_eq!(wrong, CallErrorKind::Invalid.to_error("no name"));
    }
}
