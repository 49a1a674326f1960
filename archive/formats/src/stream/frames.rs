//! The frames of a zstd file: where each begins, and which are skipped.
//!
//! Owns the dictionary that comes as the first frame, and the check of the length of a frame that is skipped. Does not
//! decompress.

use std::io::{self, Read};

use super::{Codec, Next, Stream};
use crate::defect::Class;
use crate::zst::{self, Unzstd};

/// The longest frame that is skipped, with its header: as long as a dictionary may be.
const LONGEST: usize = 8 + zst::LARGEST_DICTIONARY;

impl<R: Read> Stream<R> {
    pub(super) fn begin_zstd(&mut self) -> io::Result<Next> {
        loop {
            if self.input.bytes().is_empty() && !self.input.read_more()? {
                return Ok(Next::End);
            }
            self.enter();
            match zst::read_zst_head(self.input.bytes()) {
                zst::Head::Frame { dictionary } => {
                    let Codec::Zstd(unzstd) = &mut self.codec else {
                        return Ok(Next::End);
                    };
                    if let Err((class, words)) = unzstd.begin_frame(dictionary) {
                        self.break_off(class, words);
                        return Ok(Next::Broken);
                    }
                    return Ok(Next::Member);
                }
                zst::Head::Skippable { dictionary, length } => {
                    if let Err((class, words)) = self.skip_frame(dictionary, length)? {
                        self.break_off(class, words);
                        return Ok(Next::Broken);
                    }
                }
                zst::Head::Partial => {
                    if !self.input.read_more()? {
                        self.break_off(
                            Class::Cut,
                            "the file ends within the header of a zstd frame".into(),
                        );
                        return Ok(Next::Broken);
                    }
                }
                zst::Head::No => {
                    self.break_off(Class::Garbage, "no zstd frame begins here".into());
                    return Ok(Next::Broken);
                }
            }
        }
    }

    /// Skips a frame, and takes the dictionary out of it when the file begins with it. A frame whose length nothing
    /// confirms is not skipped: records may lie in it.
    fn skip_frame(
        &mut self,
        dictionary: bool,
        length: u32,
    ) -> io::Result<Result<(), (Class, String)>> {
        let whole = usize::try_from(length).map_or(usize::MAX, |length| length.saturating_add(8));
        let is_first = dictionary && self.input.position() == 0;
        if whole > LONGEST {
            let (class, what) = if is_first {
                (Class::Dictionary, "dictionary")
            } else {
                (Class::Garbage, "skippable frame")
            };
            let words = format!("a {what} of {length} bytes is beyond the limit");
            return Ok(Err((class, words)));
        }
        if !self.input.want_bytes(whole)? {
            let words = "the file ends within a skippable frame".into();
            return Ok(Err((Class::Cut, words)));
        }
        if is_first {
            let content = self.input.bytes().get(8..whole).unwrap_or_default();
            match Unzstd::with_dictionary(content) {
                Ok(unzstd) => self.codec = Codec::Zstd(Box::new(unzstd)),
                Err(words) => return Ok(Err((Class::Dictionary, words))),
            }
        }
        self.input.peek_bytes(whole + zst::MAGIC.len());
        let behind = self.input.bytes().get(whole..).unwrap_or_default();
        if zst::read_zst_head(behind) == zst::Head::No {
            let words =
                format!("a skippable frame says {length} bytes, and no frame begins behind them");
            return Ok(Err((Class::Garbage, words)));
        }
        self.input.consume(whole);
        Ok(Ok(()))
    }
}
