//! Positioned reads: how this crate sees a file.
//!
//! Owns the one trait through which stored bytes are read, and what a copy of a file is to this crate. The caller who
//! opens the file decides how it is read (through the page cache or past it); nothing here opens, writes or remembers a
//! position.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes that can be read at any offset, without a shared position.
///
/// ```
/// use archive_proof::ReadAt;
///
/// let bytes = b"hello".to_vec();
/// let mut buffer = [0; 3];
/// bytes.read_exact_at(1, &mut buffer)?;
/// assert_eq!(&buffer, b"ell");
/// assert!(bytes.read_exact_at(3, &mut buffer).is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait ReadAt {
    /// Reads at `offset` (bytes from the start) into `buffer` and returns the number of bytes read.
    ///
    /// May read less than asked; 0 for a non-empty buffer means that the end was reached.
    ///
    /// # Errors
    /// Not one byte can be read there.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Fills `buffer` from `offset`.
    ///
    /// # Errors
    /// [`io::ErrorKind::UnexpectedEof`] where the bytes end before, or the error of [`Self::read_at`].
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        match fill_buffer(self, offset, buffer) {
            (filled, None) if filled == buffer.len() => Ok(()),
            (_, None) => Err(io::ErrorKind::UnexpectedEof.into()),
            (_, Some(error)) => Err(error),
        }
    }
}

/// The bytes of one copy of a file, good or bad, and of the outboard that lies beside it.
#[derive(Clone, Copy)]
pub struct CopyBytes<'a> {
    /// The bytes of the file.
    pub data: &'a dyn ReadAt,
    /// The tree over them, if it has one.
    pub outboard: Option<&'a dyn ReadAt>,
}

impl fmt::Debug for CopyBytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CopyBytes")
            .field("has_outboard", &self.outboard.is_some())
            .finish_non_exhaustive()
    }
}

/// Reads until `buffer` is full, the bytes end, or a read fails; returns the number of good bytes in each case.
pub(crate) fn fill_buffer<R: ReadAt + ?Sized>(
    source: &R,
    offset: u64,
    buffer: &mut [u8],
) -> (usize, Option<io::Error>) {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match source.read_at(offset + filled as u64, rest) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (filled, Some(error)),
        }
    }
    (filled, None)
}

impl ReadAt for [u8] {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(offset)
            .ok()
            .and_then(|start| self.get(start..))
            .unwrap_or_default();
        let count = rest.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..count), rest.get(..count)) {
            to.copy_from_slice(from);
        }
        Ok(count)
    }
}

impl ReadAt for Vec<u8> {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.as_slice().read_at(offset, buffer)
    }
}

impl ReadAt for File {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        // The system refuses offsets that no file can reach; there is nothing to read there.
        if i64::try_from(offset).is_err() {
            return Ok(0);
        }
        FileExt::read_at(self, buffer, offset)
    }
}

impl<T: ReadAt + ?Sized> ReadAt for &T {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        (**self).read_at(offset, buffer)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io::Write as _;

    use super::*;

    fn check(source: &dyn ReadAt) {
        let mut buffer = [0; 4];
        source.read_exact_at(3, &mut buffer).unwrap();
        assert_eq!(&buffer, b"defg");
        assert_eq!(source.read_at(8, &mut buffer).unwrap(), 2);
        assert_eq!(&buffer[..2], b"ij");
        assert_eq!(source.read_at(10, &mut buffer).unwrap(), 0);
        assert_eq!(source.read_at(1 << 40, &mut buffer).unwrap(), 0);
        assert_eq!(source.read_at(u64::MAX, &mut buffer).unwrap(), 0);
        assert_eq!(
            source.read_exact_at(8, &mut buffer).unwrap_err().kind(),
            io::ErrorKind::UnexpectedEof
        );
        source.read_exact_at(10, &mut []).unwrap();
    }

    /// Fails if a read at or behind the end of a slice, vector or file is an error, or returns bytes.
    #[test]
    fn slices_vectors_and_files_read_alike() {
        let bytes = b"abcdefghij";
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        check(&bytes.as_slice());
        check(&bytes.to_vec());
        check(&file);
        check(&&file);
    }

    /// Reads one byte at a time, is interrupted before each, and fails at `bad`.
    struct Reluctant {
        bad: u64,
        interrupted: Cell<bool>,
    }

    impl ReadAt for Reluctant {
        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
            if !self.interrupted.replace(!self.interrupted.get()) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            if offset == self.bad {
                return Err(io::Error::other("bad sector"));
            }
            buffer[..1].fill(7);
            Ok(1)
        }
    }

    /// Fails if a short or interrupted read ends the reading, or a bad sector costs the bytes that were read before it.
    #[test]
    fn short_reads_continue_and_errors_keep_read_bytes() {
        let source = Reluctant {
            bad: 5,
            interrupted: Cell::new(false),
        };
        let mut buffer = [0; 8];
        source.read_exact_at(0, &mut buffer[..5]).unwrap();
        let (filled, error) = fill_buffer(&source, 2, &mut buffer);
        assert_eq!(
            (filled, error.unwrap().to_string().as_str()),
            (3, "bad sector")
        );
    }
}
