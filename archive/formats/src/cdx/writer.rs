//! Writes captures as lines. Does not sort them: the caller does, with [`Sorter`](super::Sorter).

use std::io::{self, Write};

use super::{Capture, Format};

/// Writes a header, where the form has one, and a line for each capture.
#[derive(Debug)]
pub struct CdxWriter<W> {
    output: W,
    format: Format,
}

impl<W: Write> CdxWriter<W> {
    /// Begins a file: writes its header.
    ///
    /// # Errors
    ///
    /// Fails if the output cannot be written.
    pub fn new(mut output: W, format: Format) -> io::Result<Self> {
        if let Some(mut header) = format.header() {
            header.push('\n');
            output.write_all(header.as_bytes())?;
        }
        Ok(Self { output, format })
    }

    /// Writes one line.
    ///
    /// # Errors
    ///
    /// Fails if the output cannot be written.
    pub fn write(&mut self, capture: &Capture) -> io::Result<()> {
        let mut line = self.format.write_line(capture);
        line.push('\n');
        self.output.write_all(line.as_bytes())
    }

    /// Flushes, and returns the output.
    ///
    /// # Errors
    ///
    /// Fails if the output cannot be flushed.
    pub fn finish(mut self) -> io::Result<W> {
        self.output.flush()?;
        Ok(self.output)
    }
}
