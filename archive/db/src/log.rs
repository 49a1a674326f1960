//! RocksDB's write-ahead log, read up to its first damage: finds whether a power cut tore its tail.
//!
//! ```text
//! blocks of 32 KiB, and in them records:
//! masked CRC-32C of type and payload, 4 bytes | length of the payload, 2 | type, 1 | payload       little-endian
//! type 1: a whole write; 2, 3, 4: its first, middle and last part
//! a write begins with its sequence number, 8 bytes, and how many changes it makes, 4
//! ```
//!
//! Fewer than 7 bytes at the end of a block are padding. Other types (of recycled and compressed logs) are not written
//! with our options; a log that has one is left to RocksDB.
//!
//! A file system may record the new length of a file before it writes the appended bytes. After a power cut the append
//! then has its whole length, and zeros in the place of its bytes. RocksDB takes that for damage, as it must: it cannot
//! know that the write was never acknowledged. A user that keeps a stamp knows. Nothing here writes.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The length of a block.
const BLOCK: usize = 32 << 10;

/// The length of the head of a record.
const HEAD: usize = 7;

/// The unit that a disk writes whole or not at all.
const SECTOR: u64 = 512;

/// The longest tail that may be torn: one commit is shorter.
const LONGEST_TAIL: u64 = 16 << 20;

/// A log, with the part of it that is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Log {
    /// The path of the file.
    pub(crate) path: PathBuf,
    /// The offset at which the last whole write ends, in bytes.
    pub(crate) whole: u64,
    /// The sequence number of the last whole write; `None` if the log has none.
    pub(crate) sequence: Option<u64>,
    /// The length of the file.
    pub(crate) length: u64,
    /// The state of the bytes behind the last whole write.
    pub(crate) tail: Tail,
}

/// The state of the bytes behind the last whole write, up to the end of a log or its first damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    /// No bytes, or the beginning of a write that the file is too short for: RocksDB leaves it out.
    Short,
    /// A write with zeros in some of its sectors, and nothing behind it: it was never completed.
    Torn,
    /// Damage before the tail, other damage of the tail, or a log of an unknown form.
    Damaged,
}

/// Lists the logs of the database in the directory `path`, oldest first.
pub(crate) fn list_logs(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(path)? {
        let file = entry?.path();
        let is_log = file.extension().is_some_and(|kind| kind == "log");
        let number = file.file_stem().and_then(|stem| stem.to_str());
        if let (true, Some(Ok(number))) = (is_log, number.map(str::parse::<u64>)) {
            found.push((number, file));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, file)| file).collect())
}

/// Reads a log.
pub(crate) fn read_log(path: &Path) -> io::Result<Log> {
    let mut file = File::open(path)?;
    let mut reading = LogScan::default();
    let mut block = Vec::with_capacity(BLOCK);
    let mut start = 0;
    let stop = loop {
        block.clear();
        file.by_ref().take(BLOCK as u64).read_to_end(&mut block)?;
        if let Some(stop) = reading.block(&block, start) {
            break Some(stop);
        }
        if block.len() < BLOCK {
            break None;
        }
        start += BLOCK as u64;
    };
    let length = file.metadata()?.len();
    let tail = match stop {
        None | Some(Stop::Short) => Tail::Short,
        Some(Stop::Bad(at)) if length.saturating_sub(at) <= LONGEST_TAIL => {
            let mut bytes = Vec::new();
            file.seek(SeekFrom::Start(at))?;
            file.read_to_end(&mut bytes)?;
            judge(&bytes, at)
        }
        Some(Stop::Bad(_) | Stop::Unknown) => Tail::Damaged,
    };
    Ok(Log {
        path: path.to_path_buf(),
        whole: reading.whole,
        sequence: reading.sequence,
        length,
        tail,
    })
}

/// The reason why the reading of a log ends before its last byte.
enum Stop {
    /// The file ends within a record.
    Short,
    /// The record at this offset is damaged.
    Bad(u64),
    /// The record is whole, and of an unknown type.
    Unknown,
}

/// The state of reading a log.
#[derive(Default)]
struct LogScan {
    whole: u64,
    sequence: Option<u64>,
    /// The first bytes of a write whose last part is still to come.
    begun: Option<Vec<u8>>,
}

impl LogScan {
    /// Reads the records of a block that begins at the offset `start`.
    fn block(&mut self, block: &[u8], start: u64) -> Option<Stop> {
        let mut rest = block;
        while let Some(record) = Record::first(rest) {
            let at = start + (block.len() - rest.len()) as u64;
            let Some((payload, after)) = record.split(rest) else {
                // RocksDB believes the length if the file ends before its block does.
                let is_end = block.len() < BLOCK;
                return Some(if is_end { Stop::Short } else { Stop::Bad(at) });
            };
            if !record.is_whole(payload) {
                return Some(Stop::Bad(at));
            }
            let head = &payload[..payload.len().min(12)];
            let write = match (record.kind, self.begun.take()) {
                (1, None) => Some(head.to_vec()),
                (2, None) => {
                    self.begun = Some(head.to_vec());
                    None
                }
                (kind @ (3 | 4), Some(mut begun)) => {
                    begun.extend_from_slice(head);
                    if kind == 3 {
                        self.begun = Some(begun);
                        None
                    } else {
                        Some(begun)
                    }
                }
                (1..=4, _) => return Some(Stop::Bad(at)),
                _ => return Some(Stop::Unknown),
            };
            rest = after;
            if let Some(write) = write {
                let Some(reached) = reached(&write) else {
                    return Some(Stop::Bad(at));
                };
                self.sequence = self.sequence.max(Some(reached));
                self.whole = start + (block.len() - rest.len()) as u64;
            }
        }
        None
    }
}

/// Returns the sequence number of the last change of a write.
fn reached(write: &[u8]) -> Option<u64> {
    let (sequence, rest) = write.split_first_chunk()?;
    let (count, _) = rest.split_first_chunk()?;
    let count = u64::from(u32::from_le_bytes(*count));
    let sequence = u64::from_le_bytes(*sequence);
    Some(sequence.saturating_add(count).saturating_sub(1))
}

/// The head of a record.
struct Record {
    sum: u32,
    length: usize,
    kind: u8,
}

impl Record {
    /// Reads the head at the beginning of `bytes`. Returns `None` if they are too few for one.
    fn first(bytes: &[u8]) -> Option<Self> {
        let (sum, rest) = bytes.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        Some(Self {
            sum: u32::from_le_bytes(*sum),
            length: u16::from_le_bytes(*length).into(),
            kind: *rest.first()?,
        })
    }

    /// Returns the payload of the record and the bytes behind it in the same block, or `None` if `bytes`, which begin
    /// with the head, end before the payload does.
    fn split<'a>(&self, bytes: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        bytes.get(HEAD..)?.split_at_checked(self.length)
    }

    fn is_whole(&self, payload: &[u8]) -> bool {
        let sum = crc32c(crc32c(!0, &[self.kind]), payload);
        (!sum).rotate_right(15).wrapping_add(0xa282_ead8) == self.sum
    }
}

/// Classifies the bytes of a log from its first damage, at the offset `at`, to its end.
fn judge(bytes: &[u8], at: u64) -> Tail {
    let in_block = |offset: usize| {
        let before = usize::try_from((at + offset as u64) % BLOCK as u64)
            .expect("an offset in a block fits in memory");
        let end = offset.saturating_add(BLOCK - before).min(bytes.len());
        &bytes[offset..end]
    };
    // Parts of the damaged write itself may be whole; a record that begins a write is of another one.
    let begins_a_write = |offset: usize| {
        let rest = in_block(offset);
        let record = Record::first(rest).filter(|record| matches!(record.kind, 1 | 2));
        record.is_some_and(|record| {
            let split = record.split(rest);
            split.is_some_and(|(payload, _)| payload.len() >= 12 && record.is_whole(payload))
        })
    };
    if (1..bytes.len()).any(begins_a_write) {
        return Tail::Damaged;
    }
    let mut rest = bytes;
    let mut offset = at;
    while !rest.is_empty() {
        let to_next = usize::try_from(SECTOR - offset % SECTOR).expect("a sector fits in memory");
        let (sector, after) = rest.split_at(to_next.min(rest.len()));
        if sector.iter().all(|byte| *byte == 0) {
            return Tail::Torn;
        }
        offset += sector.len() as u64;
        rest = after;
    }
    Tail::Damaged
}

/// Continues a CRC-32C, which begins with all ones and is inverted at the end.
fn crc32c(sum: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(sum, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            (sum >> 1) ^ if sum & 1 == 1 { 0x82f6_3b78 } else { 0 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if the polynomial or the order of the bits is another one: the sum that every description of it gives.
    #[test]
    fn crc32c_is_the_published_one() {
        assert_eq!(!crc32c(!0, b"123456789"), 0xe306_9283);
    }

    fn record(kind: u8, payload: &[u8]) -> Vec<u8> {
        let sum = !crc32c(crc32c(!0, &[kind]), payload);
        let sum = sum.rotate_right(15).wrapping_add(0xa282_ead8);
        let length = u16::try_from(payload.len()).unwrap();
        let mut bytes = sum.to_le_bytes().to_vec();
        bytes.extend(length.to_le_bytes());
        bytes.push(kind);
        bytes.extend(payload);
        bytes
    }

    fn write(sequence: u64, length: usize) -> Vec<u8> {
        let mut payload = sequence.to_le_bytes().to_vec();
        payload.extend(2_u32.to_le_bytes());
        payload.resize(length, b'x');
        payload
    }

    fn read_bytes(bytes: &[u8]) -> Log {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        io::Write::write_all(&mut file, bytes).unwrap();
        read_log(file.path()).unwrap()
    }

    /// Fails if a write in parts, a cut, zeros or a flipped bit is taken for something else.
    #[test]
    fn cut_and_damaged_tails_are_distinguished() {
        let one = record(1, &write(7, 100));
        let parts = write(9, 70_000);
        let room = BLOCK - one.len() - HEAD;
        let (first, rest) = parts.split_at(room);
        let (middle, last) = rest.split_at(BLOCK - HEAD);
        let parts = [record(2, first), record(3, middle), record(4, last)].concat();
        let whole = [one.clone(), parts.clone()].concat();
        let log = read_bytes(&whole);
        assert_eq!((log.whole, log.sequence), (whole.len() as u64, Some(10)));
        assert_eq!(log.tail, Tail::Short);

        let after = |bytes: &[u8]| {
            let log = read_bytes(bytes);
            assert_eq!((log.whole, log.sequence), (one.len() as u64, Some(8)));
            log.tail
        };
        assert_eq!(after(&whole[..whole.len() - 5000]), Tail::Short);
        // Any sector of the write may be missing on the disk; the last part of the write is whole, or not.
        for zeros in [1024..1536, 40_448..40_960, 61_440..whole.len()] {
            let mut torn = whole.clone();
            torn[zeros].fill(0);
            assert_eq!(after(&torn), Tail::Torn);
            let behind = [torn, record(1, &write(11, 100))].concat();
            assert_eq!(after(&behind), Tail::Damaged);
        }
        let mut flipped = whole.clone();
        flipped[2000] ^= 1;
        assert_eq!(after(&flipped), Tail::Damaged);
        let mut head = [one.clone(), vec![0; 300], one.clone()].concat();
        assert_eq!(after(&head), Tail::Damaged);
        head.truncate(one.len() + 300);
        assert_eq!(after(&head), Tail::Torn);
        let unknown = [one.clone(), record(10, b"another type")].concat();
        assert_eq!(after(&unknown), Tail::Damaged);
    }
}
