//! The promises to every reader through a [`ReadAt`], whatever is behind it.
//!
//! # Errors
//!
//! A promise fails if it is broken, or if the source cannot be read.

use std::any::type_name;

use anyhow::{Context, Result, bail, ensure};
use archive_proof::ReadAt;

use super::Outcome;

/// A page, and what is read at once: where reading past a cache could be cut.
const EDGES: [u64; 4] = [4096, 16 * 1024, 1 << 20, 1 << 21];

/// Lengths of one read.
const LENGTHS: [usize; 8] = [1, 511, 512, 4095, 4096, 4097, 1 << 20, (1 << 20) + 1];

/// Holds one source, which has exactly these `bytes`, to every promise.
pub fn all(source: &dyn ReadAt, bytes: &[u8]) -> Outcome {
    fn name<F>(_promise: F) -> &'static str {
        type_name::<F>().rsplit("::").next().unwrap_or_default()
    }
    let mut outcome = Outcome::default();
    let said = a_read_returns_bytes_at_its_offset(source, bytes);
    outcome.note(name(a_read_returns_bytes_at_its_offset), said);
    let said = a_read_is_short_at_the_end_only(source, bytes);
    outcome.note(name(a_read_is_short_at_the_end_only), said);
    let said = past_the_end_there_is_nothing(source, bytes);
    outcome.note(name(past_the_end_there_is_nothing), said);
    let said = an_empty_buffer_is_full(source, bytes);
    outcome.note(name(an_empty_buffer_is_full), said);
    let said = all_or_an_error_is_read_exactly(source, bytes);
    outcome.note(name(all_or_an_error_is_read_exactly), said);
    let said = reads_share_no_position(source, bytes);
    outcome.note(name(reads_share_no_position), said);
    outcome
}

/// A read returns the bytes at its offset, aligned or not, across every edge.
pub fn a_read_returns_bytes_at_its_offset(source: &dyn ReadAt, bytes: &[u8]) -> Result<()> {
    for offset in offsets(bytes) {
        for length in LENGTHS {
            let mut buffer = vec![0xa5; length];
            let read = source.read_at(offset, &mut buffer)?;
            let expected = there(bytes, offset, read);
            let is_same = buffer.get(..read) == expected;
            ensure!(is_same, "{read} of {length} bytes at {offset} differ");
            let rest = buffer
                .get(read..)
                .with_context(|| format!("{read} of {length} bytes at {offset} are too many"))?;
            ensure!(
                rest.iter().all(|byte| *byte == 0xa5),
                "{read} of {length} bytes at {offset}: what was not read was written"
            );
        }
    }
    Ok(())
}

/// Less than what was asked for comes at the end only: of files and memory nothing else cuts a read.
pub fn a_read_is_short_at_the_end_only(source: &dyn ReadAt, bytes: &[u8]) -> Result<()> {
    for offset in offsets(bytes) {
        for length in LENGTHS {
            let read = source.read_at(offset, &mut vec![0; length])? as u64;
            let left = (bytes.len() as u64).saturating_sub(offset);
            let due = left.min(length as u64);
            ensure!(read == due, "{read} of {due} bytes at {offset}");
        }
    }
    Ok(())
}

/// At and past the end nothing is read, however far.
pub fn past_the_end_there_is_nothing(source: &dyn ReadAt, bytes: &[u8]) -> Result<()> {
    let end = bytes.len() as u64;
    let far = i64::MAX.unsigned_abs();
    // Offsets that no file has; in between the system counts the end of a read, and refuses it.
    let beyond = [far - (1 << 20), far + 1, u64::MAX];
    let near = [end, end + 1, end + 4096, 1 << 40];
    for offset in near.into_iter().chain(beyond) {
        for length in [1, 4096, 1 << 20] {
            let read = source.read_at(offset, &mut vec![0; length]);
            let read = read.with_context(|| format!("{length} bytes at {offset}"))?;
            ensure!(read == 0, "{read} bytes at {offset}");
        }
    }
    Ok(())
}

/// Of no bytes all are read, anywhere.
pub fn an_empty_buffer_is_full(source: &dyn ReadAt, bytes: &[u8]) -> Result<()> {
    for offset in [0, 1, bytes.len() as u64, bytes.len() as u64 + 1] {
        ensure!(source.read_at(offset, &mut [])? == 0, "at {offset}");
        source.read_exact_at(offset, &mut [])?;
    }
    Ok(())
}

/// An exact read has all of it, or says that the bytes end before.
pub fn all_or_an_error_is_read_exactly(source: &dyn ReadAt, bytes: &[u8]) -> Result<()> {
    let mut whole = vec![0; bytes.len()];
    source.read_exact_at(0, &mut whole)?;
    ensure!(whole == bytes, "the whole differs");
    whole.push(0);
    for offset in [0, 1, bytes.len() as u64] {
        match source.read_exact_at(offset, &mut whole) {
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {}
            other => bail!("past the end, from {offset}: {other:?}"),
        }
    }
    Ok(())
}

/// Where a read ended is nothing to the next read.
pub fn reads_share_no_position(source: &dyn ReadAt, bytes: &[u8]) -> Result<()> {
    for offset in offsets(bytes).into_iter().rev() {
        let mut one = [0];
        let read = source.read_at(offset, &mut one)?;
        let is_there = offset < bytes.len() as u64;
        ensure!(read == usize::from(is_there), "{read} bytes at {offset}");
        ensure!(one.get(..read) == there(bytes, offset, read), "at {offset}");
    }
    Ok(())
}

/// Before, at and after every edge, the beginning and the end.
fn offsets(bytes: &[u8]) -> Vec<u64> {
    let edges = EDGES.iter().chain([&0, &512]).copied();
    let edges = edges.chain([bytes.len() as u64]);
    let around = edges.flat_map(|edge| [edge.saturating_sub(1), edge, edge + 1]);
    around.collect()
}

/// Returns `count` of the bytes at an offset; `None` if they are not there.
fn there(bytes: &[u8], offset: u64, count: usize) -> Option<&[u8]> {
    let start = usize::try_from(offset).ok()?.min(bytes.len());
    bytes.get(start..start.checked_add(count)?)
}
