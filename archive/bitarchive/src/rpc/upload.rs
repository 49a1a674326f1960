//! One upload over the wire: open, ready, start, data, close, stored.

use std::time::Duration;

use archive_daemon::Clock;
use archive_model::{FileName, UploadId};
use archive_proof::Envelope;
use archive_rpc::{Idle, InvalidMessage, Kind};
use bytes::Bytes;
use proto_archive::wire::upload_request::Step;
use proto_archive::{convert as fields, wire};
use tokio::runtime::Handle;
use tokio_stream::StreamExt;
use tonic::{Status, Streaming};

use super::{Answers, convert, send};
use crate::catalog::{Condition, Entry};
use crate::error::NodeError;
use crate::node::Node;

/// The sender's messages, waited for on a thread that may block.
pub(crate) struct Steps {
    stream: Idle<Streaming<wire::UploadRequest>>,
    runtime: Handle,
}

impl Steps {
    /// To be made within the runtime.
    pub(crate) fn new(stream: Streaming<wire::UploadRequest>, idle: Duration) -> Self {
        Self {
            stream: Idle::new(stream, idle),
            runtime: Handle::current(),
        }
    }

    /// The next message; a stream that ends before `close` was cut.
    fn next(&mut self) -> Result<Step, Status> {
        let message = self.runtime.block_on(self.stream.next());
        let message = message
            .unwrap_or_else(|| Err(Kind::Unavailable.status("the upload ended before `close`")))?;
        Ok(message
            .step
            .ok_or_else(|| InvalidMessage::missing("step"))?)
    }
}

/// Receives one file. What was received when the sender goes away stays, for the same upload to go on with.
pub(crate) fn receive(
    node: &Node,
    steps: &mut Steps,
    answers: &Answers<wire::UploadResponse>,
    clock: &Clock,
) -> Result<(), Status> {
    let Step::Open(open) = steps.next()? else {
        return Err(unexpected("open"));
    };
    let name = fields::file_name("name", &open.name)?;
    let id = fields::upload_id(&open.upload)?;
    let upload = match begin(node, &open, &id, &name) {
        Err(NodeError::Taken { .. }) if let Some(entry) = earlier(node, &name)? => {
            return send(answers, stored(node, entry));
        }
        other => other.map_err(|error| convert::status(&error))?,
    };
    let ready = wire::upload_response::Ready {
        offset: upload.received(),
        root: fields::root_bytes(&upload.root_so_far()),
    };
    send(
        answers,
        wire::UploadResponse {
            step: Some(wire::upload_response::Step::Ready(ready)),
        },
    )?;
    let Step::Start(start) = steps.next()? else {
        return Err(unexpected("start"));
    };
    let mut upload = if start.offset < upload.received() {
        upload
            .keep(start.offset)
            .map_err(|error| convert::status(&error))?
    } else {
        upload
    };
    if start.offset != upload.received() {
        let reason = format!(
            "is {}, where whole groups up to {} are here",
            start.offset,
            upload.received()
        );
        return Err(InvalidMessage::invalid("offset", reason).into());
    }
    let admission = loop {
        match steps.next()? {
            Step::Data(bytes) => {
                take(&mut upload, &bytes, &id, open.size)
                    .map_err(|error| convert::status(&error))?;
            }
            Step::Close(close) => break close.admission,
            Step::Open(_) | Step::Start(_) => return Err(unexpected("data or close")),
        }
    };
    let admission = Envelope::parse(admission.as_bytes())
        .map_err(|error| InvalidMessage::invalid("admission", error.to_string()))?;
    let entry = upload
        .commit(&admission, clock.now())
        .map_err(|error| convert::status(&error))?;
    send(answers, stored(node, entry))
}

fn begin<'a>(
    node: &'a Node,
    open: &wire::upload_request::Open,
    id: &UploadId,
    name: &FileName,
) -> Result<crate::Upload<'a>, NodeError> {
    if open.from_start {
        node.begin_anew(id, name, open.size)
    } else {
        node.begin(id, name, open.size)
    }
}

/// A sender that sends more than it announced is stopped at the first byte too many.
fn take(
    upload: &mut crate::Upload<'_>,
    bytes: &Bytes,
    id: &UploadId,
    announced: u64,
) -> Result<(), NodeError> {
    let total = upload.received().saturating_add(bytes.len() as u64);
    if total > announced {
        return Err(NodeError::Mismatch {
            name: upload.name().clone(),
            what: "size",
            admitted: announced.to_string(),
            received: format!("{total} bytes or more in upload {id}"),
        });
    }
    upload.write_all(bytes)
}

/// The file as an earlier upload left it, if it is whole: a sender that lost the answer gets it again.
fn earlier(node: &Node, name: &FileName) -> Result<Option<Entry>, Status> {
    let entries = node.find(name).map_err(|error| convert::status(&error))?;
    Ok(entries.into_iter().find(|entry| {
        entry.row.condition == Condition::Present
            && entry.row.root.is_some()
            && node.is_online(&entry.volume)
    }))
}

fn stored(node: &Node, entry: Entry) -> wire::UploadResponse {
    let entry = convert::entry(node, entry);
    wire::UploadResponse {
        step: Some(wire::upload_response::Step::Stored(entry)),
    }
}

fn unexpected(expected: &str) -> Status {
    InvalidMessage::invalid("step", format!("is not {expected}")).into()
}
