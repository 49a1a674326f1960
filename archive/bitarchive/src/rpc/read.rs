//! A range of a file over the wire, in segments that prove themselves.

use archive_daemon::Counter;
use archive_model::groups::GROUP_SIZE;
use archive_model::{FileName, Root};
use archive_proof::{EncodeError, encode};
use archive_rpc::{InvalidMessage, Kind};
use proto_archive::wire;
use tonic::Status;

use super::{Answers, convert, send};
use crate::node::Node;

/// How many bytes of file data one segment proves.
const SEGMENT: u64 = 64 * GROUP_SIZE;

/// Sends a range in segments. Each is read past the page cache and checked before it leaves.
pub(super) fn read(
    node: &Node,
    name: &FileName,
    root: Root,
    (start, end): (u64, u64),
    sent: &Counter,
    answers: &Answers<wire::Segment>,
) -> Result<(), Status> {
    let reading = node
        .open_file(name)
        .map_err(|error| convert::status(&error))?;
    let row = &reading.entry.row;
    if row.root != Some(root) {
        return Err(Kind::NotFound.status(format!("{name} with root {root} is not on this node")));
    }
    let end = if end == 0 { row.size } else { end };
    if start > end || end > row.size {
        let reason = format!("{start}–{end} is no range of a file of {} bytes", row.size);
        return Err(InvalidMessage::invalid("end", reason).into());
    }
    let end = end.next_multiple_of(GROUP_SIZE).min(row.size);
    let mut offset = start - start % GROUP_SIZE;
    loop {
        // Segments end at multiples of their size, so that the proofs are short.
        let next = (offset - offset % SEGMENT + SEGMENT).min(end);
        let mut encoded = Vec::new();
        let ranges = std::iter::once(offset..next).collect::<Vec<_>>();
        encode(
            &reading.data,
            reading.outboard.as_ref(),
            root,
            row.size,
            &ranges,
            &mut encoded,
        )
        .map_err(|error| damaged(name, &error))?;
        sent.inc_by(encoded.len() as u64);
        send(
            answers,
            wire::Segment {
                offset,
                length: next - offset,
                encoded: encoded.into(),
            },
        )?;
        offset = next;
        if offset >= end {
            return Ok(());
        }
    }
}

fn damaged(name: &FileName, error: &EncodeError) -> Status {
    tracing::warn!(file = %name, %error, "a read met damage");
    Kind::Damaged.status(format!("{name}: {error}"))
}
