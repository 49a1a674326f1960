//! Sources of bytes that break a promise each.

use std::cell::Cell;
use std::io;

use archive_proof::ReadAt;
use conformance::contract::read_at;
use tools_testing::noise;

/// A seeded bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    /// Behind the first page, the byte before is read.
    Shifts,
    /// A read ends with a page.
    CutsAtPages,
    /// Offsets that no file has are refused.
    RefusesFarOffsets,
    /// A read into an empty buffer is refused.
    RefusesEmptyBuffers,
    /// An exact read past the end is a success.
    FillsUp,
    /// A read goes on where the last one ended.
    GoesOn,
}

struct SeededBytes<'a> {
    bytes: &'a [u8],
    bug: Bug,
    /// The end of the last read.
    position: Cell<u64>,
}

impl ReadAt for SeededBytes<'_> {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let refuses = match self.bug {
            Bug::RefusesFarOffsets => offset > i64::MAX.unsigned_abs(),
            Bug::RefusesEmptyBuffers => buffer.is_empty(),
            Bug::Shifts | Bug::CutsAtPages | Bug::FillsUp | Bug::GoesOn => false,
        };
        if refuses {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let most = if self.bug == Bug::CutsAtPages {
            4096
        } else {
            buffer.len()
        };
        let start = match self.bug {
            Bug::Shifts if offset > 4096 => offset - 1,
            Bug::GoesOn => self.position.get(),
            _ => offset,
        };
        let length = buffer.len().min(most);
        let read = self.bytes.read_at(start, &mut buffer[..length])?;
        self.position.set(start.saturating_add(read as u64));
        Ok(read)
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        if self.bug == Bug::FillsUp {
            return self.read_at(offset, buffer).map(drop);
        }
        self.bytes.read_exact_at(offset, buffer)
    }
}

/// Fails if the suite of `ReadAt` passes a source that breaks one of its promises, or does not name that promise.
#[test]
fn broken_promise_of_source_is_found_and_named() {
    let bytes = noise((1 << 20) + 513, 1);
    for (bug, expected) in [
        (Bug::Shifts, "a_read_returns_bytes_at_its_offset"),
        (Bug::CutsAtPages, "a_read_is_short_at_the_end_only"),
        (Bug::RefusesFarOffsets, "past_the_end_there_is_nothing"),
        (Bug::RefusesEmptyBuffers, "an_empty_buffer_is_full"),
        (Bug::FillsUp, "all_or_an_error_is_read_exactly"),
        (Bug::GoesOn, "reads_share_no_position"),
    ] {
        let source = SeededBytes {
            bytes: &bytes,
            bug,
            position: Cell::new(0),
        };
        let outcome = read_at::all(&source, &bytes);
        super::assert_named(&bug, outcome.broken(), expected);
    }
}
