//! The error of a call to the index, sorted by what the caller does next.

use archive_rpc::text::plain;
use archive_rpc::{CallError, CallFailure, InvalidMessage, Kind, Peer};
use tonic::Status;

/// The index, as the texts of errors name it.
const INDEX: Peer = Peer::new("index");

/// The reason why there is no answer, or no answer that counts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct IndexError {
    /// The kind of error, which says what the caller does next.
    pub kind: Kind,
    /// The text for people: the failed act, its reason, and what to do.
    pub message: String,
}

impl IndexError {
    /// Makes an error.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
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
    pub(crate) fn cut() -> Self {
        Self::new(
            Kind::Unavailable,
            "the answer of the index was cut; try again",
        )
    }

    /// Makes the error for an answer that continues after its end.
    pub(crate) fn endless() -> Self {
        Self::new(
            Kind::Damaged,
            "the index sends more after its last message; tell its operator",
        )
    }

    /// Makes the error for a limit that passed.
    pub(crate) fn silent(limit: std::time::Duration) -> Self {
        Self::new(
            Kind::TimedOut,
            INDEX.advise(Kind::TimedOut, &INDEX.silence(limit)),
        )
    }
}

impl CallFailure for IndexError {
    fn read(status: &Status, call: Option<&'static str>) -> Self {
        match INDEX.read(status) {
            Some(CallError { kind, reason }) => Self::new(kind, INDEX.advise(kind, &reason)),
            None => Self::new(
                Kind::NotFound,
                INDEX.lacks(call.unwrap_or("what was asked for")),
            ),
        }
    }
}

impl From<InvalidMessage> for IndexError {
    fn from(error: InvalidMessage) -> Self {
        let said = plain(&error.to_string());
        Self::new(
            Kind::Damaged,
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
        for kind in Kind::ALL {
            let error = IndexError::from_status(&kind.status("the query is too long"));
            assert_eq!(error.kind, kind);
            assert!(
                error.message.starts_with("the query is too long"),
                "{error}"
            );
            let passing = matches!(kind, Kind::Busy | Kind::Unavailable | Kind::TimedOut);
            assert_eq!(error.is_passing(), passing, "{kind}");
        }
        let older = IndexError::from_status(&Status::unimplemented(""));
        assert!(older.message.contains("older version"), "{older}");
    }

    /// Fails if a server can move the cursor of a terminal, or fill it.
    #[test]
    fn texts_of_servers_are_tamed() {
        let status = Kind::NotFound.status(format!("a\u{1b}[2J\r\nb{}", "x".repeat(100_000)));
        let error = IndexError::from_status(&status);
        assert!(error.message.starts_with("a [2J  bxxx"), "{error}");
        assert!(error.message.len() < 3000);
    }
}
