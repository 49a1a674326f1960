//! The ends of a thread that reads a body: bytes in up to the first fault, and pieces out for as long as the client
//! takes them.

use std::io::{self, Read};
use std::time::Duration;

use archive_client::ClientError;
use archive_formats::http::BodyError;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::SendTimeoutError;

use super::RecordError;

/// The way of pieces from a thread to its client.
pub(crate) struct ClientOutlet<T> {
    to: mpsc::Sender<Result<T, RecordError>>,
    unread: Duration,
}

impl<T> ClientOutlet<T> {
    /// Makes an outlet to a client, which may leave a piece unread for the time `unread`.
    pub(crate) const fn new(to: mpsc::Sender<Result<T, RecordError>>, unread: Duration) -> Self {
        Self { to, unread }
    }

    /// Sends a piece, and waits for the client as long as the limit says.
    pub(crate) fn send(&self, piece: T) -> Result<(), RecordError> {
        let sending = self.to.send_timeout(Ok(piece), self.unread);
        Handle::current()
            .block_on(sending)
            .map_err(|error| match error {
                SendTimeoutError::Timeout(_) => RecordError::Unread(self.unread),
                SendTimeoutError::Closed(_) => RecordError::Stopped,
            })
    }

    /// Sends the reason why nothing more comes. A client that has left, or does not read, does not get it.
    pub(crate) fn fail(&self, error: RecordError) {
        _ = self.to.try_send(Err(error));
    }
}

/// Reads up to a number of bytes; fewer come only at the end, or before a fault of the body, which is returned.
pub(crate) fn fill(
    body: &mut dyn Read,
    out: &mut Vec<u8>,
    most: usize,
) -> Result<Option<String>, RecordError> {
    match body.take(most as u64).read_to_end(out) {
        Ok(_) => Ok(None),
        Err(error) => match BodyError::within(&error) {
            Some(fault) => Ok(Some(fault.to_string())),
            None => Err(error.into()),
        },
    }
}

/// The meaning of an error of reading: the words of the archive or of the record, where they are in it.
impl From<io::Error> for RecordError {
    fn from(error: io::Error) -> Self {
        let archive = |error: io::Error| error.downcast::<ClientError>().map(Self::Archive);
        error
            .downcast::<Self>()
            .or_else(archive)
            .unwrap_or_else(|error| Self::Broken(format!("cannot read the record: {error}")))
    }
}
