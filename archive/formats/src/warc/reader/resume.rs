//! Reading on in the middle of a file, behind bytes that cannot be read.
//!
//! Owns the facts about a file that this needs. Does not know where bytes can be read again.

use std::io::{self, Read};

use super::{ReaderOptions, WarcReader};
use crate::stream::Compression;
use crate::warc::resync::Dialect;
use crate::zst::{self, Unzstd};

/// The facts that are known of a file that was read before: its compression and its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownFormat {
    compression: Compression,
    dialect: Dialect,
}

impl KnownFormat {
    /// Makes the facts about a file of which only the compression is known, or guessed.
    pub fn known_compressed(compression: Compression) -> Self {
        Self {
            compression,
            dialect: Dialect::Unknown,
        }
    }

    /// Returns the compression.
    pub fn compression(self) -> Compression {
        self.compression
    }
}

impl<R: Read> WarcReader<R> {
    /// Returns the facts that reading has shown of the file; `None` before its first bytes were read.
    pub fn known_format(&self) -> Option<KnownFormat> {
        self.stream.is_open().then(|| KnownFormat {
            compression: self.stream.compression(),
            dialect: self.dialect,
        })
    }

    /// Reads on behind bytes that cannot be read: `source` stands at the offset in the options.
    ///
    /// Looks for the next place where a record begins: in a compressed file the beginning of a member, else a line. The
    /// bytes before it are of a record whose beginning is lost, and no defect; so is a rest without a record.
    ///
    /// # Errors
    ///
    /// Fails if the decoder of a compressed file cannot be made.
    pub fn resume_at(
        source: R,
        options: ReaderOptions,
        known: KnownFormat,
        dictionary: Option<Dictionary>,
    ) -> io::Result<Self> {
        let offset = options.offset;
        let mut reader = Self::with_options(source, options);
        let unzstd = match (known.compression, dictionary) {
            (Compression::Zstd, Some(Dictionary(unzstd))) => Some(unzstd),
            // Frames that need a dictionary will report that it is missing.
            (Compression::Zstd, None) => Some(Unzstd::new()?),
            (Compression::Plain | Compression::Gzip, _) => None,
        };
        reader.stream.resume_at(offset, known.compression, unzstd);
        reader.dialect = known.dialect;
        reader.sure = false;
        reader.resumed = true;
        Ok(reader)
    }
}

/// The dictionary with which a zstd file begins.
#[derive(Debug)]
pub struct Dictionary(pub(super) Unzstd);

impl Dictionary {
    /// Reads the dictionary from the first bytes of a file; `None` if the file has none, or an unusable one.
    ///
    /// # Errors
    ///
    /// Fails if the beginning of the file cannot be read.
    pub fn read_dictionary(mut beginning: impl Read) -> io::Result<Option<Self>> {
        let mut first = Vec::new();
        beginning.by_ref().take(8).read_to_end(&mut first)?;
        let zst::Head::Skippable {
            dictionary: true,
            length,
        } = zst::read_zst_head(&first)
        else {
            return Ok(None);
        };
        if !usize::try_from(length).is_ok_and(|length| length <= zst::LARGEST_DICTIONARY) {
            return Ok(None);
        }
        let mut content = Vec::new();
        beginning
            .take(u64::from(length))
            .read_to_end(&mut content)?;
        Ok(Unzstd::with_dictionary(&content).ok().map(Self))
    }
}
