//! The error of a call to the index, sorted by what the caller does next.

use archive_rpc::text::visible_text;
use archive_rpc::{CallError, CallErrorKind, CallFailure, InvalidMessage, Peer};
use tonic::Status;

/// The index, as the texts of errors name it.
const INDEX: Peer = Peer::new("index");

/// The reason why there is no answer, or no answer that counts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct IndexCallError {
    /// The kind of error, which says what the caller does next.
    pub kind: CallErrorKind,
    /// The text for people: the failed act, its reason, and what to do.
    pub message: String,
}

impl IndexCallError {
    /// Makes an error.
    pub fn new(kind: CallErrorKind, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { kind, message }
    }

    /// Returns whether the same request may succeed in a moment.
    pub const fn is_passing(&self) -> bool {
        self.kind.is_passing()
    }

    /// Reads the status of a call that failed.
    pub(crate) fn from_status(status: &Status) -> Self {
        <Self as CallFailure>::read(status, None)
    }

    /// Makes the error for an answer that was cut.
    pub(crate) fn cut_answer() -> Self {
        Self::new(
            CallErrorKind::Unavailable,
            "the answer of the index was cut; try again",
        )
    }

    /// Makes the error for an answer that continues after its end.
    pub(crate) fn endless_answer() -> Self {
        Self::new(
            CallErrorKind::Damaged,
            "the index sends more after its last message; tell its operator",
        )
    }

    /// Makes the error for a limit that passed.
    pub(crate) fn silent_index(limit: std::time::Duration) -> Self {
        Self::new(
            CallErrorKind::TimedOut,
            INDEX.advise_caller(CallErrorKind::TimedOut, &INDEX.silence_text(limit)),
        )
    }
}

impl CallFailure for IndexCallError {
    fn read(status: &Status, call: Option<&'static str>) -> Self {
        match INDEX.read_status(status) {
            Some(CallError { kind, reason }) => Self::new(kind, INDEX.advise_caller(kind, &reason)),
            None => Self::new(
                CallErrorKind::NotFound,
                INDEX.lacks_call(call.unwrap_or("what was asked for")),
            ),
        }
    }
}

impl From<InvalidMessage> for IndexCallError {
    fn from(error: InvalidMessage) -> Self {
        let said = visible_text(&error.to_string());
        Self::new(
            CallErrorKind::Damaged,
            format!("cannot read the answer of the index: {said}; tell its operator"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if an error loses its kind, or what to do about it.
    #[test]
    fn errors_keep_their_kind() {
        for kind in CallErrorKind::ALL {
            let error = IndexCallError::from_status(&kind.to_status("the query is too long"));
            assert_eq!(error.kind, kind);
            assert!(
                error.message.starts_with("the query is too long"),
                "{error}"
            );
            let passing = matches!(
                kind,
                CallErrorKind::Busy | CallErrorKind::Unavailable | CallErrorKind::TimedOut
            );
            assert_eq!(error.is_passing(), passing, "{kind}");
        }
        let older = IndexCallError::from_status(&Status::unimplemented(""));
        assert!(older.message.contains("older version"), "{older}");
    }

    /// Fails if a server can move the cursor of a terminal, or fill it.
    #[test]
    fn texts_of_servers_are_tamed() {
        let status =
            CallErrorKind::NotFound.to_status(format!("a\u{1b}[2J\r\nb{}", "x".repeat(100_000)));
        let error = IndexCallError::from_status(&status);
        assert!(error.message.starts_with("a [2J  bxxx"), "{error}");
        assert!(error.message.len() < 3000);
    }
}
