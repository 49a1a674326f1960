//! `holdfast warc cat`: what is in records.

use std::io::{self, Read, Write};
use std::path::PathBuf;

use archive_formats::http::{Body, DecodeLimits, Head};
use archive_formats::warc::{Record, WarcReader};
use clap::Args;
use tools_terminal::context::CommandContext;
use tools_terminal::exit::{Exit, Failure};

use super::{FileReport, file, open_input, read_step};

/// The longest head of an HTTP message.
const HEAD_LIMIT: usize = 1 << 20;

/// Print the records of a file, decompressed
///
/// Prints all records, or the one at an offset; as they stand in the file, or one part of each. `warc list` and indexes
/// give offsets. The exit code is 1 if the file is damaged.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast warc cat crawl.warc.gz | less
  holdfast warc cat --offset 1234 --payload crawl.warc.gz > page.html")]
pub(crate) struct Cat {
    /// An archive file; `-` is stdin
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Only the record at this offset of the file [default: all records]
    #[arg(long, value_name = "BYTES")]
    offset: Option<u64>,
    /// Only the header of the record
    #[arg(long, conflicts_with_all = ["block", "payload"])]
    header: bool,
    /// Only the block: an HTTP message as it was received
    #[arg(long, conflicts_with = "payload")]
    block: bool,
    /// Only the payload: the body of an HTTP message with its encodings undone (at most 1 GiB), or the block
    #[arg(long)]
    payload: bool,
}

impl Cat {
    pub(super) fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        if context.output.is_json() {
            return Err(Failure::wrong_usage(
                "records are not JSON; leave --json out, or use `warc list`",
            ));
        }
        let path = &self.file;
        let mut out = context.output.writer();
        let mut report = FileReport::new(path);
        let Some(offset) = self.offset else {
            let mut reader = WarcReader::new(open_input(path)?);
            while let Some(record) = read_step(path, reader.next_record())? {
                self.print(record, &mut report, &mut out)?;
            }
            report.skip_rest(&mut reader);
            out.flush()
                .map_err(|error| Failure::output_failed(&error))?;
            return Ok(report.exit_code());
        };
        let mut reader = read_step(path, WarcReader::open_at(file(path)?, offset))?;
        match read_step(path, reader.next_record())? {
            Some(record) if record.offset() == offset => {
                self.print(record, &mut report, &mut out)?;
            }
            _ => {
                return Err(Failure::wrong_usage(format!(
                    "{}: no record begins at offset {offset}; see `holdfast warc list`",
                    path.display()
                )));
            }
        }
        out.flush()
            .map_err(|error| Failure::output_failed(&error))?;
        Ok(report.exit_code())
    }

    fn print<R: Read>(
        &self,
        mut record: Record<'_, R>,
        report: &mut FileReport,
        out: &mut impl Write,
    ) -> Result<(), Failure> {
        let whole = !self.header && !self.block && !self.payload;
        if whole || self.header {
            put(out, record.header().raw())?;
        }
        if self.payload {
            payload(&mut record, report, out)?;
        } else if !self.header {
            copy(&mut record, report, out)?;
        }
        let end = read_step(&self.file, record.read_end())?;
        if whole {
            put(out, end.trailer.bytes().unwrap_or(b"\r\n\r\n"))?;
            if end.trailer.bytes().is_none() {
                report.say_line(&format!(
                    "offset {}: the {} bytes of line ends after the record are printed as CR LF CR LF",
                    end.offset,
                    end.trailer.length()
                ));
            }
        }
        report.say_defects(&end.defects);
        Ok(())
    }
}

fn payload<R: Read>(
    record: &mut Record<'_, R>,
    report: &mut FileReport,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let media = record.header().get("Content-Type").unwrap_or_default();
    let is_message = media
        .get(..16)
        .is_some_and(|start| start.eq_ignore_ascii_case(b"application/http"));
    if !is_message {
        return copy(record, report, out);
    }
    let offset = record.offset();
    match Head::read_head(record, HEAD_LIMIT) {
        Ok(head) => {
            put(out, head.unread_bytes())?;
            let mut body = Body::decoded_body(&head, record, DecodeLimits::default());
            copy_from(&mut body, offset, report, out)
        }
        Err(error) => {
            report.say_line(&format!("offset {offset}: {error}"));
            Ok(())
        }
    }
}

fn copy<R: Read>(
    record: &mut Record<'_, R>,
    report: &mut FileReport,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let offset = record.offset();
    copy_from(record, offset, report, out)
}

/// Copies what can be read; that the rest cannot is said.
fn copy_from(
    from: &mut impl Read,
    offset: u64,
    report: &mut FileReport,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => put(out, &buffer[..count])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                report.say_line(&format!("offset {offset}: {error}"));
                return Ok(());
            }
        }
    }
}

fn put(out: &mut impl Write, bytes: &[u8]) -> Result<(), Failure> {
    out.write_all(bytes)
        .map_err(|error| Failure::output_failed(&error))
}
