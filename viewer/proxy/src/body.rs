//! Bodies of requests: forms of the control page, and bodies that are in the key of what they ask for.
//!
//! Owns their limits: of bytes and of time for each one, and of how many are read at once.

use std::time::Duration;

use archive_daemon::Clock;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::StatusCode;
use tokio::sync::Semaphore;

/// The longest time that a body may take to come, the wait for its turn included.
const BODY_TIME: Duration = Duration::from_secs(30);

/// The most bodies that are read at once. Further ones wait for their turn.
const MOST_BODIES: usize = 64;

/// The reason why a body is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidBody {
    #[error("the body broke off, or has more than {0} bytes")]
    Size(usize),
    #[error("the body did not come in time")]
    Late,
}

impl InvalidBody {
    pub(crate) const fn status(self) -> StatusCode {
        match self {
            Self::Size(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Late => StatusCode::REQUEST_TIMEOUT,
        }
    }
}

/// The reader of all bodies.
#[derive(Debug)]
pub(crate) struct BodyReader {
    turns: Semaphore,
}

impl BodyReader {
    pub(crate) const fn new() -> Self {
        Self {
            turns: Semaphore::const_new(MOST_BODIES),
        }
    }

    /// Reads a body to its end.
    pub(crate) async fn read_body(
        &self,
        clock: &Clock,
        body: Body,
        longest: usize,
    ) -> Result<Bytes, InvalidBody> {
        let read = async {
            let _turn = self.turns.acquire().await;
            to_bytes(body, longest).await
        };
        match clock.run_with_timeout(BODY_TIME, read).await {
            Ok(Ok(body)) => Ok(body),
            Ok(Err(_error)) => Err(InvalidBody::Size(longest)),
            Err(_elapsed) => Err(InvalidBody::Late),
        }
    }
}
