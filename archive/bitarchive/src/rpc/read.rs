//! A range of a file over the wire, in segments that prove themselves.

use std::sync::Arc;

use archive_daemon::Counter;
use archive_model::groups::GROUP_SIZE;
use archive_model::{FileContent, FileName, Root};
use archive_proof::{EncodeError, encode_ranges};
use archive_rpc::answers::{Outlet, WorkProgress};
use archive_rpc::{CallErrorKind, InvalidMessage};
use proto_archive::wire;
use tonic::Status;

use super::convert;
use crate::node::{Node, OpenFile};

/// The number of bytes of file data that one segment proves.
const SEGMENT: u64 = 64 * GROUP_SIZE;

/// A range on its way to a caller. Each segment is read past the page cache and checked before it leaves.
pub(super) struct SegmentReader {
    node: Arc<Node>,
    wanted: WantedRange,
    sent: Counter,
    open: Option<OpenRange>,
}

/// The bytes that a caller asks for.
pub(super) struct WantedRange {
    pub(super) name: FileName,
    pub(super) root: Root,
    pub(super) start: u64,
    /// 0 is the end of the file.
    pub(super) end: u64,
}

/// The rest of the range, once the file is open.
struct OpenRange {
    reading: OpenFile,
    offset: u64,
    end: u64,
}

impl SegmentReader {
    pub(super) const fn new(node: Arc<Node>, wanted: WantedRange, sent: Counter) -> Self {
        Self {
            node,
            wanted,
            sent,
            open: None,
        }
    }

    /// Sends the rest, for as long as it is taken.
    pub(super) fn send_on(
        &mut self,
        outlet: &mut Outlet<Result<wire::Segment, Status>>,
    ) -> Result<WorkProgress, Status> {
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.open()?,
        };
        loop {
            let segment = self.segment(&mut open)?;
            let is_last = open.offset >= open.end;
            let is_taken = outlet.send_message(Ok(segment));
            if is_last {
                return Ok(WorkProgress::Done);
            }
            if !is_taken {
                self.open = Some(open);
                return Ok(WorkProgress::Paused);
            }
        }
    }

    fn open(&self) -> Result<OpenRange, Status> {
        let WantedRange {
            name,
            root,
            start,
            end,
        } = &self.wanted;
        let root = *root;
        let start = *start;
        let end = *end;
        let reading = self
            .node
            .files
            .open_file(name)
            .map_err(|error| convert::error_status(&error))?;
        let row = &reading.entry.row;
        if row.root != Some(root) {
            return Err(CallErrorKind::NotFound
                .to_status(format!("{name} with root {root} is not on this node")));
        }
        let end = if end == 0 { row.size } else { end };
        if start > end || end > row.size {
            let reason = format!(
                "{start}–{end} is not a range of a file of {} bytes",
                row.size
            );
            return Err(InvalidMessage::invalid_field("end", reason).into());
        }
        let end = end.next_multiple_of(GROUP_SIZE).min(row.size);
        Ok(OpenRange {
            offset: start - start % GROUP_SIZE,
            end,
            reading,
        })
    }

    /// Reads the next segment. Segments end at multiples of their size, so that the proofs are short.
    fn segment(&self, open: &mut OpenRange) -> Result<wire::Segment, Status> {
        let OpenRange {
            reading,
            offset,
            end,
        } = open;
        let next = (*offset - *offset % SEGMENT + SEGMENT).min(*end);
        let mut encoded = Vec::new();
        let ranges = std::iter::once(*offset..next).collect::<Vec<_>>();
        let content = FileContent {
            root: self.wanted.root,
            size: reading.entry.row.size,
        };
        encode_ranges(reading.copy(), content, &ranges, &mut encoded)
            .map_err(|error| damaged(&self.wanted.name, &error))?;
        self.sent.inc_by(encoded.len() as u64);
        let segment = wire::Segment {
            offset: *offset,
            length: next - *offset,
            encoded: encoded.into(),
        };
        *offset = next;
        Ok(segment)
    }
}

fn damaged(name: &FileName, error: &EncodeError) -> Status {
    tracing::warn!(file = %name, %error, "a read met damage");
    CallErrorKind::Damaged.to_status(format!("{name}: {error}"))
}
