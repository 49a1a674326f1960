//! The end of a gzip member: its header, its data and its trailer, as they are pushed.
//!
//! Owns the header while it comes, and a buffer for the data, which is thrown away. [`gzip`](crate::gzip) decodes both.

use super::RecordProgress;
use crate::gzip::{self, Gunzip, Head, HeadCursor, Then};

/// The size of the buffer that the data is decompressed into, in bytes.
const BUFFER: usize = 32 * 1024;

/// A member, as far as it has come.
#[derive(Debug)]
pub(super) struct Member {
    /// The header, while it is not complete.
    header: Option<(Vec<u8>, HeadCursor)>,
    gunzip: Gunzip,
    buffer: Vec<u8>,
}

impl Member {
    pub(super) fn new() -> Self {
        Self {
            header: Some((Vec::new(), HeadCursor::default())),
            gunzip: Gunzip::new(),
            buffer: vec![0; BUFFER],
        }
    }

    /// Takes the next bytes, from the first byte of the member on.
    ///
    /// # Errors
    ///
    /// Fails with the reason if no member has such bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<RecordProgress, String> {
        let mut used = 0;
        if let Some((header, cursor)) = &mut self.header {
            let before = header.len();
            let room = gzip::LONGEST_HEADER + 1 - before;
            header.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
            match gzip::resume_head(header, cursor) {
                Head::Complete(length) => used = length - before,
                Head::Partial => return Ok(RecordProgress::Continues),
                Head::No => return Err(refused(header)),
            }
            self.header = None;
        }
        loop {
            let rest = bytes.get(used..).unwrap_or_default();
            let step = self.gunzip.inflate_step(rest, &mut self.buffer);
            used += step.consumed;
            match step.then {
                Then::End => return Ok(RecordProgress::Ends(used)),
                Then::Broken(_, words) => return Err(words),
                Then::Continue if step.consumed + step.produced > 0 => {}
                Then::Continue if rest.is_empty() => return Ok(RecordProgress::Continues),
                Then::Continue => return Err("compressed data is damaged".to_owned()),
            }
        }
    }
}

/// Returns the reason why these bytes are not the header of a member.
fn refused(header: &[u8]) -> String {
    let fixed = header.get(..10).unwrap_or(header);
    if gzip::read_gzip_head(fixed) == Head::No {
        return "its header is not valid".to_owned();
    }
    format!(
        "its header does not end within {} bytes",
        gzip::LONGEST_HEADER
    )
}
