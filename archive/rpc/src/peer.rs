//! A failed call, in words for the person who made it.
//!
//! Owns the sentences that every client shows, and what they advise to do.

use std::time::Duration;

use tonic::{Code, Status};

use crate::call_error::CallError;
use crate::connect::ConnectError;
use crate::kind::CallErrorKind;
use crate::text::visible_text;

/// The other end of the calls of a client, by the name that its users know.
///
/// ```
/// use archive_rpc::{CallErrorKind, Peer};
/// use tonic::Status;
///
/// let archive = Peer::new("archive");
/// let error = archive.read_status(&CallErrorKind::Storage.to_status("disk 3 fails"));
/// let text = error.map(|error| archive.advise_caller(error.kind, &error.reason));
/// assert_eq!(text.as_deref(), Some("disk 3 fails; an operator of the archive must look at it"));
/// assert_eq!(archive.read_status(&Status::unimplemented("no such call")), None);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Peer(&'static str);

impl Peer {
    /// Names the other end, such as `archive`.
    pub const fn new(name: &'static str) -> Self {
        Self(name)
    }

    /// Reads the status of a call that failed: its kind, and a reason that is fit for a terminal. Returns `None` if the
    /// peer does not know the call.
    pub fn read_status(self, status: &Status) -> Option<CallError> {
        if status.code() == Code::Unimplemented {
            return None;
        }
        let reason = match ConnectError::within(status) {
            Some(error) => visible_text(&error.to_string()),
            None if status.message().is_empty() => {
                format!("the {} says {:?}", self.0, status.code())
            }
            None => visible_text(status.message()),
        };
        Some(CallErrorKind::from_status(status).to_error(reason))
    }

    /// Returns a reason, and behind it what to do about an error of this kind if the reason does not say that.
    pub fn advise_caller(self, kind: CallErrorKind, reason: &str) -> String {
        let peer = self.0;
        match kind {
            CallErrorKind::Unavailable => {
                format!("{reason}; see that the {peer} is running, then try again")
            }
            CallErrorKind::TimedOut => format!("{reason}; try again"),
            CallErrorKind::Refused => format!("{reason}; use an identity that may do this"),
            CallErrorKind::Storage => {
                format!("{reason}; an operator of the {peer} must look at it")
            }
            CallErrorKind::Internal => format!("{reason}; this is a bug, please report it"),
            _ => reason.to_owned(),
        }
    }

    /// Returns the text about a call that the peer does not know. `call` names what was asked for.
    pub fn lacks_call(self, call: &str) -> String {
        let peer = self.0;
        format!(
            "this {peer} does not offer {call}; it runs an older version: ask its operator to upgrade it"
        )
    }

    /// Returns the reason of a call that the peer has not answered within a limit.
    pub fn silence_text(self, limit: Duration) -> String {
        format!("the {} did not answer for {limit:?}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: Peer = Peer::new("index");

    /// Fails if an error loses its kind or its reason, or if the reason is not at the beginning.
    #[test]
    fn kind_and_reason_come_before_advice() {
        for kind in CallErrorKind::ALL {
            let error = PEER
                .read_status(&kind.to_status("a.warc: said why"))
                .unwrap();
            assert_eq!(error, kind.to_error("a.warc: said why"));
            let text = PEER.advise_caller(error.kind, &error.reason);
            assert!(text.starts_with("a.warc: said why"), "{text}");
        }
    }

    /// Fails if a peer can move the cursor of a terminal, or fill it, or if a status without a text says nothing.
    #[test]
    fn texts_of_peers_are_tamed() {
        let status =
            CallErrorKind::NotFound.to_status(format!("a\u{1b}[2J\r\nb{}", "x".repeat(100_000)));
        let reason = PEER.read_status(&status).unwrap().reason;
        assert!(reason.starts_with("a [2J  bxxx"), "{reason}");
        assert!(reason.len() < 3000);
        let silent = PEER.read_status(&Status::unavailable("")).unwrap();
        assert_eq!(silent.reason, "the index says Unavailable");
    }

    /// Fails if a call of a later version is taken for a wrong request.
    #[test]
    fn unknown_call_is_no_error_of_request() {
        assert_eq!(PEER.read_status(&Status::unimplemented("")), None);
        assert!(
            PEER.lacks_call("repairs")
                .contains("does not offer repairs")
        );
    }
}
