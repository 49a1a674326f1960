//! Reading on in the middle of a file, behind bytes that cannot be read.
//!
//! Owns what has to be known of a file for that. Does not know where bytes can be read again.

use std::io::{self, Read};

use super::{Options, Reader};
use crate::stream::Compression;
use crate::warc::resync::Dialect;
use crate::zst::{self, Unzstd};

/// What is known of a file that was read before: how it is compressed, and which format it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    compression: Compression,
    dialect: Dialect,
}

impl Known {
    /// Of a file of which only the compression is known, or guessed.
    pub fn compressed(compression: Compression) -> Self {
        Self {
            compression,
            dialect: Dialect::Unknown,
        }
    }

    /// How it is compressed.
    pub fn compression(self) -> Compression {
        self.compression
    }
}

impl<R: Read> Reader<R> {
    /// What reading has shown of the file; nothing before its first bytes were read.
    pub fn known(&self) -> Option<Known> {
        self.stream.is_open().then(|| Known {
            compression: self.stream.compression(),
            dialect: self.dialect,
        })
    }

    /// Reads on behind bytes that cannot be read: `source` stands at the offset that the options name.
    ///
    /// Looks for the next place where a record begins: in a compressed file the beginning of a member, else a line. What
    /// comes before it is of a record that nobody has the beginning of, and no defect; so is a rest without a record.
    pub fn resume(
        source: R,
        options: Options,
        known: Known,
        dictionary: Option<Dictionary>,
    ) -> io::Result<Self> {
        let offset = options.offset;
        let mut reader = Self::with_options(source, options);
        let unzstd = match (known.compression, dictionary) {
            (Compression::Zstd, Some(Dictionary(unzstd))) => Some(unzstd),
            // Frames that want a dictionary will say that there is none.
            (Compression::Zstd, None) => Some(Unzstd::new()?),
            (Compression::Plain | Compression::Gzip, _) => None,
        };
        reader.stream.resume(offset, known.compression, unzstd);
        reader.dialect = known.dialect;
        reader.sure = false;
        reader.resumed = true;
        Ok(reader)
    }
}

/// The dictionary that a zstd file begins with.
#[derive(Debug)]
pub struct Dictionary(pub(super) Unzstd);

impl Dictionary {
    /// Reads it from the first bytes of a file; nothing when the file has none, or none that can be used.
    pub fn read(mut beginning: impl Read) -> io::Result<Option<Self>> {
        let mut first = Vec::new();
        beginning.by_ref().take(8).read_to_end(&mut first)?;
        let zst::Head::Skippable {
            dictionary: true,
            length,
        } = zst::head(&first)
        else {
            return Ok(None);
        };
        if usize::try_from(length).map_or(true, |length| length > zst::LARGEST_DICTIONARY) {
            return Ok(None);
        }
        let mut content = Vec::new();
        beginning
            .take(u64::from(length))
            .read_to_end(&mut content)?;
        Ok(Unzstd::with_dictionary(&content).ok().map(Self))
    }
}
