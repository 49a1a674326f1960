//! A verification over the wire: progress at least every second, and last the copy as it was found.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use archive_daemon::Clock;
use archive_model::{FileName, VolumeId};
use proto_archive::{convert as fields, wire};
use tonic::Status;

use super::{Answers, convert, send};
use crate::node::Node;

/// The time between two reports of progress.
const EVERY: Duration = Duration::from_secs(1);

pub(crate) fn verify_files(
    node: &Node,
    name: &FileName,
    volume: Option<&VolumeId>,
    clock: &Clock,
    answers: &Answers<wire::VerifyResponse>,
) -> Result<(), Status> {
    let mut news = ProgressReport::new(clock);
    let far = |bytes| wire::VerifyResponse {
        bytes,
        ..wire::VerifyResponse::default()
    };
    let judged = node
        .files
        .verify_copy(name, volume, clock.now(), &mut |bytes| {
            news.report_progress(bytes, |bytes| send(answers, far(bytes)))
        })
        .and_then(|entry| {
            let found = node.files.read_root_now(&entry, &mut |_again| {
                news.report_progress(0, |bytes| send(answers, far(bytes)))
            })?;
            Ok((entry, found))
        });
    let (entry, found) = news.end_report(judged.map_err(|error| convert::error_status(&error)))?;
    send(
        answers,
        wire::VerifyResponse {
            bytes: news.bytes,
            entry: Some(convert::wire_entry(node, entry)),
            found: found.as_ref().map(fields::root_bytes).unwrap_or_default(),
        },
    )
}

/// The progress of a work, reported to the caller not too often. A caller that has gone away stops the work.
pub(super) struct ProgressReport<'a> {
    clock: &'a Clock,
    last: Instant,
    pub(super) bytes: u64,
    gone: Option<Status>,
}

impl<'a> ProgressReport<'a> {
    pub(super) fn new(clock: &'a Clock) -> Self {
        Self {
            clock,
            last: clock.instant(),
            bytes: 0,
            gone: None,
        }
    }

    pub(super) fn report_progress(
        &mut self,
        bytes: u64,
        send: impl FnOnce(u64) -> Result<(), Status>,
    ) -> ControlFlow<()> {
        self.bytes = self.bytes.saturating_add(bytes);
        let now = self.clock.instant();
        if now.saturating_duration_since(self.last) < EVERY {
            return ControlFlow::Continue(());
        }
        self.last = now;
        match send(self.bytes) {
            Ok(()) => ControlFlow::Continue(()),
            Err(status) => {
                self.gone = Some(status);
                ControlFlow::Break(())
            }
        }
    }

    /// Returns the end of the work. If the caller has gone away, that is the reason of any error.
    pub(super) fn end_report<T>(&mut self, ended: Result<T, Status>) -> Result<T, Status> {
        match self.gone.take() {
            Some(gone) => Err(gone),
            None => ended,
        }
    }
}

#[cfg(test)]
mod tests {
    use archive_daemon::clock::ManualClock;
    use jiff::Timestamp;

    use super::*;

    /// Fails if a caller hears nothing for longer than a second, or the work continues without it.
    #[test]
    fn progress_comes_every_second_until_caller_goes() {
        let hand = ManualClock::new(Timestamp::UNIX_EPOCH);
        let clock = hand.clock();
        let mut news = ProgressReport::new(&clock);
        let mut sent = Vec::new();
        for _ in 0..25 {
            hand.advance(EVERY / 10);
            let flow = news.report_progress(10, |bytes| {
                sent.push(bytes);
                Ok(())
            });
            assert!(flow.is_continue());
        }
        assert_eq!(sent, [100, 200]);
        assert_eq!(news.end_report(Ok(7)).unwrap(), 7);
        hand.advance(EVERY);
        let flow = news.report_progress(10, |_| Err(Status::cancelled("the caller has gone away")));
        assert!(flow.is_break());
        let why = news
            .end_report::<()>(Err(Status::unavailable("stopped")))
            .unwrap_err();
        assert_eq!(why.code(), tonic::Code::Cancelled, "why it was stopped");
    }
}
