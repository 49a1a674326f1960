//! A failed call, in words for the person who made it.
//!
//! Owns the sentences that every client shows, and what they advise to do.

use std::time::Duration;

use tonic::{Code, Status};

use crate::call_error::CallError;
use crate::connect::ConnectError;
use crate::kind::Kind;
use crate::text::plain;

/// The other end of the calls of a client, by the name that its users know.
///
/// ```
/// use archive_rpc::{Kind, Peer};
/// use tonic::Status;
///
/// let archive = Peer::new("archive");
/// let error = archive.read(&Kind::Storage.status("disk 3 fails"));
/// let text = error.map(|error| archive.advise(error.kind, &error.reason));
/// assert_eq!(text.as_deref(), Some("disk 3 fails; an operator of the archive must look at it"));
/// assert_eq!(archive.read(&Status::unimplemented("no such call")), None);
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
    pub fn read(self, status: &Status) -> Option<CallError> {
        if status.code() == Code::Unimplemented {
            return None;
        }
        let reason = match ConnectError::within(status) {
            Some(error) => plain(&error.to_string()),
            None if status.message().is_empty() => {
                format!("the {} says {:?}", self.0, status.code())
            }
            None => plain(status.message()),
        };
        Some(Kind::from_status(status).error(reason))
    }

    /// Returns a reason, and behind it what to do about an error of this kind if the reason does not say that.
    pub fn advise(self, kind: Kind, reason: &str) -> String {
        let peer = self.0;
        match kind {
            Kind::Unavailable => {
                format!("{reason}; see that the {peer} is running, then try again")
            }
            Kind::TimedOut => format!("{reason}; try again"),
            Kind::Refused => format!("{reason}; use an identity that may do this"),
            Kind::Storage => format!("{reason}; an operator of the {peer} must look at it"),
            Kind::Internal => format!("{reason}; this is a bug, please report it"),
            _ => reason.to_owned(),
        }
    }

    /// Returns the text about a call that the peer does not know. `call` names what was asked for.
    pub fn lacks(self, call: &str) -> String {
        let peer = self.0;
        format!(
            "this {peer} does not offer {call}; it runs an older version: ask its operator to upgrade it"
        )
    }

    /// Returns the reason of a call that the peer has not answered within a limit.
    pub fn silence(self, limit: Duration) -> String {
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
        for kind in Kind::ALL {
            let error = PEER.read(&kind.status("a.warc: said why")).unwrap();
            assert_eq!(error, kind.error("a.warc: said why"));
            let text = PEER.advise(error.kind, &error.reason);
            assert!(text.starts_with("a.warc: said why"), "{text}");
        }
    }

    /// Fails if a peer can move the cursor of a terminal, or fill it, or if a status without a text says nothing.
    #[test]
    fn texts_of_peers_are_tamed() {
        let status = Kind::NotFound.status(format!("a\u{1b}[2J\r\nb{}", "x".repeat(100_000)));
        let reason = PEER.read(&status).unwrap().reason;
        assert!(reason.starts_with("a [2J  bxxx"), "{reason}");
        assert!(reason.len() < 3000);
        let silent = PEER.read(&Status::unavailable("")).unwrap();
        assert_eq!(silent.reason, "the index says Unavailable");
    }

    /// Fails if a call of a later version is taken for a wrong request.
    #[test]
    fn unknown_call_is_no_error_of_request() {
        assert_eq!(PEER.read(&Status::unimplemented("")), None);
        assert!(PEER.lacks("repairs").contains("does not offer repairs"));
    }
}
