//! A mend over the wire: open, segments, close; progress at least every second, and last the copy.

use std::time::Duration;

use archive_daemon::Clock;
use archive_rpc::{CallErrorKind, IdleTimeout, InvalidMessage};
use proto_archive::wire::mend_request::Step;
use proto_archive::{convert as fields, wire};
use tokio::runtime::Handle;
use tokio_stream::StreamExt;
use tonic::{Status, Streaming};

use super::verify::ProgressReport;
use super::{Answers, convert, send};
use crate::metrics::Instruments;
use crate::node::{MendReport, Node};

/// The sender's messages, read on a thread that may block.
pub(crate) struct MendSteps {
    stream: IdleTimeout<Streaming<wire::MendRequest>>,
    runtime: Handle,
}

impl MendSteps {
    /// Wraps the stream. Must be called within the runtime.
    pub(crate) fn new(stream: Streaming<wire::MendRequest>, idle: Duration) -> Self {
        Self {
            stream: IdleTimeout::new(stream, idle),
            runtime: Handle::current(),
        }
    }

    /// Waits for the next message. A stream that ends before `close` was cut.
    fn next(&mut self) -> Result<Step, Status> {
        let message = self.runtime.block_on(self.stream.next());
        let message = message.unwrap_or_else(|| {
            Err(CallErrorKind::Unavailable
                .to_status("the mend ended before `close`; the copy is as it was"))
        })?;
        Ok(message
            .step
            .ok_or_else(|| InvalidMessage::missing_field("step"))?)
    }

    /// Mends a copy as the steps say, and reports the progress to the caller.
    pub(crate) fn mend(
        &mut self,
        node: &Node,
        answers: &Answers<wire::MendResponse>,
        clock: &Clock,
        instruments: &Instruments,
    ) -> Result<(), Status> {
        let Step::Open(open) = self.next()? else {
            return Err(InvalidMessage::unexpected_step("open").into());
        };
        let order = fields::mend_order(open)?;
        let mut mend = node
            .files
            .begin_mend(order, clock.now())
            .map_err(|error| convert::error_status(&error))?;
        let mut news = ProgressReport::new(clock);
        let send_progress = |bytes| {
            let response = wire::MendResponse {
                bytes,
                ..wire::MendResponse::default()
            };
            send(answers, response)
        };
        loop {
            match self.next()? {
                Step::Segment(segment) => {
                    let taken = mend.write_segment(
                        segment.offset,
                        segment.length,
                        &segment.encoded,
                        // Reads of the old copy are not reported.
                        &mut |_| news.report_progress(0, send_progress),
                    );
                    news.end_report(taken.map_err(|error| convert::error_status(&error)))?;
                }
                Step::Close(_) => break,
                Step::Open(_) => {
                    return Err(InvalidMessage::unexpected_step("segment or close").into());
                }
            }
        }
        let mended = mend.close_mend(clock.now(), &mut |bytes| {
            news.report_progress(bytes, send_progress)
        });
        let MendReport {
            entry,
            attic,
            groups,
        } = news.end_report(mended.map_err(|error| convert::error_status(&error)))?;
        instruments.mended_groups.inc_by(groups);
        let response = wire::MendResponse {
            bytes: news.bytes,
            entry: Some(convert::wire_entry(node, entry)),
            attic: attic.unwrap_or_default(),
        };
        send(answers, response)
    }
}
