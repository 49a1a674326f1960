//! `holdfast warc recompress`: one gzip member for each record.

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use archive_formats::warc::{WarcReader, WarcWriter};
use clap::Args;
use tools_terminal::context::CommandContext;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::save::{Partial, is_stdout};

use super::{FileReport, open_input, read_step};

/// Write an archive file anew, with one gzip member for each record
///
/// Every decompressed record stays as it is, byte for byte; the same input gives the same output. A file in which
/// anything is damaged is refused, and nothing is written; the exit code is then 1. Oddities that are no damage are
/// reported and kept.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast warc recompress whole-file.warc.gz -o records.warc.gz
  holdfast warc recompress --plain crawl.warc.gz -o - | grep -a '^WARC-Target-URI'")]
pub(crate) struct Recompress {
    /// An archive file; `-` is stdin
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Output file; `-` is stdout
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Replace the output file if it exists
    #[arg(long)]
    force: bool,
    /// Level of the compression, from 0 (uncompressed) to 9 (smallest and slowest)
    #[arg(long, value_name = "0..9", default_value_t = 6, value_parser = clap::value_parser!(u32).range(0..=9))]
    level: u32,
    /// Write the file without compression
    #[arg(long, conflicts_with = "level")]
    plain: bool,
}

impl Recompress {
    pub(super) fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        if is_stdout(&self.output, &context.output)? {
            let mut out = context.output.writer();
            self.copy(&mut out)?;
            out.flush()
                .map_err(|error| Failure::output_failed(&error))?;
            return Ok(Exit::Done);
        }
        let to = Partial::create(&self.output, self.force)?;
        let mut out = BufWriter::new(to.writer()?);
        let (records, bytes) = self.copy(&mut out)?;
        out.flush()
            .map_err(|error| Failure::output_failed(&error))?;
        drop(out);
        to.keep()?;
        if context.output.is_json() {
            context
                .output
                .write_document(&serde_json::json!({"records": records, "bytes": bytes}))?;
        } else {
            let to = self.output.display();
            context
                .output
                .write_line(&format!("{to}: {records} records, {bytes} bytes"))?;
        }
        Ok(Exit::Done)
    }

    fn copy(&self, out: &mut impl Write) -> Result<(u64, u64), Failure> {
        let path = &self.file;
        let mut reader = WarcReader::new(open_input(path)?);
        let mut writer = if self.plain {
            WarcWriter::plain_writer(out)
        } else {
            WarcWriter::gzip_writer(out, self.level)
        };
        let mut report = FileReport::new(path);
        let mut records = 0_u64;
        while let Some(record) = read_step(path, reader.next_record())? {
            let copied = writer.copy_record(record);
            let copied = copied.map_err(|error| {
                Failure::because_failed(format!(
                    "{}: {error}; see `holdfast warc check`",
                    path.display()
                ))
            });
            report.say_defects(&copied?.1.defects);
            records += 1;
        }
        report.skip_rest(&mut reader);
        if report.exit_code() == Exit::Done {
            return Ok((records, writer.position()));
        }
        Err(Failure::because_failed(format!(
            "{}: not written anew, for it is not in order; see `holdfast warc check`",
            path.display()
        )))
    }
}
