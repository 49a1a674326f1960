//! Zstandard streams in HTTP (RFC 8878, RFC 9659): one frame after the other, with a window that is bounded.

use std::io::{self, BufRead, Read};

use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer, get_error_name};

/// The largest window, as a power of two: 8 MiB (RFC 9659).
const WINDOW: u32 = 23;

/// A reader of the data in the frames. A stream that ends within a frame is an [`io::ErrorKind::UnexpectedEof`].
pub(super) struct Frames<R> {
    context: DCtx<'static>,
    input: R,
    is_within: bool,
}

impl<R: BufRead> Frames<R> {
    pub(super) fn new(input: R) -> io::Result<Self> {
        let mut context = DCtx::try_create().ok_or(io::ErrorKind::OutOfMemory)?;
        context
            .set_parameter(DParameter::WindowLogMax(WINDOW))
            .map_err(zstd_error)?;
        Ok(Self {
            context,
            input,
            is_within: false,
        })
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            let encoded = self.input.fill_buf()?;
            let is_end = encoded.is_empty();
            if is_end && !self.is_within {
                return Ok(0);
            }
            let mut from = InBuffer::around(encoded);
            let mut to = OutBuffer::around(&mut *out);
            let left = self.context.decompress_stream(&mut to, &mut from);
            let taken = from.pos;
            let made = to.pos();
            self.is_within = left.map_err(zstd_error)? != 0;
            self.input.consume(taken);
            if made > 0 {
                return Ok(made);
            }
            if is_end {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

fn zstd_error(code: usize) -> io::Error {
    io::Error::other(get_error_name(code))
}
