//! Readers and writers that behave as disks and connections may: they fail, come in pieces, or have no room.

use std::io::{self, Read, Write};

/// A reader that gives its bytes, and then fails whenever it is asked.
///
/// ```
/// use std::io::Read;
///
/// let mut reader = tools_testing::FailingReader::new(b"abc", "bad sector");
/// let mut read = Vec::new();
/// assert_eq!(reader.read_to_end(&mut read).unwrap_err().to_string(), "bad sector");
/// assert_eq!(read, b"abc");
/// ```
#[derive(Clone, Debug)]
pub struct FailingReader<'a> {
    bytes: &'a [u8],
    message: &'a str,
}

impl<'a> FailingReader<'a> {
    /// Makes a reader that fails with this message behind its bytes.
    pub const fn new(bytes: &'a [u8], message: &'a str) -> Self {
        Self { bytes, message }
    }
}

impl Read for FailingReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.bytes.is_empty() {
            return Err(io::Error::other(self.message));
        }
        self.bytes.read(buffer)
    }
}

/// A reader that gives its bytes in pieces of a limited size.
#[derive(Clone, Debug)]
pub struct PieceReader<'a> {
    bytes: &'a [u8],
    piece: u64,
}

impl<'a> PieceReader<'a> {
    /// Makes a reader that gives at most `piece` bytes at once.
    pub const fn new(bytes: &'a [u8], piece: usize) -> Self {
        Self {
            bytes,
            piece: piece as u64,
        }
    }
}

impl Read for PieceReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Read::take(&mut self.bytes, self.piece).read(buffer)
    }
}

/// A writer with limited room. A write that does not fit fails as a whole.
///
/// ```
/// use std::io::Write;
///
/// let mut disk = tools_testing::FullDisk::with_room(3);
/// assert!(disk.write_all(b"ab").is_ok());
/// assert!(disk.write_all(b"cd").is_err());
/// ```
#[derive(Clone, Debug)]
pub struct FullDisk(usize);

impl FullDisk {
    /// Makes a writer with room for `room` bytes.
    pub const fn with_room(room: usize) -> Self {
        Self(room)
    }
}

impl Write for FullDisk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.0.checked_sub(bytes.len());
        self.0 = room.ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
