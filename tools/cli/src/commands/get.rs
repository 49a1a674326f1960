//! `holdfast get`: a file out of the archive, every byte proven before it is written.

mod salvage;

use std::path::{Path, PathBuf};

use archive_client::{Access, FileRange, FileStream};
use archive_model::{FileName, ReplicaId, Root};
use clap::Args;
use serde::Serialize;
use tools_terminal::context::CommandContext;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::list::file_name;
use tools_terminal::output::{Output, size_text};
use tools_terminal::progress::TransferProgress;
use tools_terminal::range::ByteRange;
use tools_terminal::save::{Destination, is_stdout};
use tools_terminal::session::Session;

/// Read a file, or a range of it, and verify every byte
///
/// Every byte is verified against the signed admission before it is written. Bytes that are damaged in one replica are
/// read from another. The output file gets its name when it is whole and synced. Needs the role reader.
///
/// If some bytes are intact in no replica, the exit code is 1; with --salvage all other bytes are written, and the WARC
/// and ARC records in the holes are named. The exit code is 4 if bytes may be intact in a replica that does not answer.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast get 12-34-20260101-00001.warc.gz
  holdfast get 12-34-20260101-00001.warc.gz -o /tmp/one.warc.gz --replica two
  holdfast get 12-34-20260101-00001.warc.gz --range 0-1023 -o - | xxd
  holdfast get 12-34-20260101-00001.warc.gz --salvage --map holes.jsonl")]
pub(crate) struct Get {
    /// The file's name in the archive
    name: String,
    /// Output file or directory; `-` is stdout [default: NAME in this directory]
    #[arg(short, long, value_name = "PATH|-")]
    output: Option<PathBuf>,
    /// Read from this replica only [default: from any]
    #[arg(long, value_name = "ID")]
    replica: Option<ReplicaId>,
    /// Only these bytes, first and last included, counted from 0; `A-` is everything from A on
    #[arg(long, value_name = "A-B")]
    range: Option<ByteRange>,
    /// Write the bytes that are good in any replica, and zeros in the holes between; the exit code is 1 if there are
    /// holes
    #[arg(long)]
    salvage: bool,
    /// Output file of the holes and the records in them, one JSON document on each line [default: PATH.holes.jsonl, if
    /// there are holes]
    #[arg(long, value_name = "PATH", requires = "salvage")]
    map: Option<PathBuf>,
    /// Replace the output files if they exist
    #[arg(long)]
    force: bool,
}

/// The result of reading, for programs.
#[derive(Debug, Serialize)]
struct Report<'a> {
    name: &'a FileName,
    /// The size of the whole file.
    size: u64,
    root: Root,
    /// The first byte that was written.
    start: u64,
    /// The offset behind the last byte that was written.
    end: u64,
    #[serde(serialize_with = "tools_terminal::shown_path::one")]
    path: &'a Path,
}

impl Get {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let name = file_name(&self.name)?;
        let path = self.path(&name);
        let is_stdout = is_stdout(&path, &context.output)?;
        let wanted = FileRange {
            start: self.range.map_or(0, |range| range.start),
            end: self.range.and_then(|range| range.end),
            replica: self.replica,
            name,
        };
        if self.salvage {
            let places = salvage::Places {
                path,
                map: self.map,
                force: self.force,
                is_stdout,
            };
            return salvage::run_salvage(places, wanted, context).await;
        }
        let session = Session::open(&context.global)?;
        let mut reading = session.reader().get(&wanted).await?;
        let destination = Destination::open(&path, self.force, &context.output)?;
        receive(&mut reading, destination).await?;
        if !is_stdout {
            report(&context.output, &reading, &path)?;
        }
        Ok(Exit::Done)
    }

    fn path(&self, name: &FileName) -> PathBuf {
        match &self.output {
            None => PathBuf::from(name.as_str()),
            Some(path) if path.is_dir() => path.join(name.as_str()),
            Some(path) => path.clone(),
        }
    }
}

async fn receive(reading: &mut FileStream, mut destination: Destination) -> Result<(), Failure> {
    let progress = TransferProgress::of_bytes(reading.range.end - reading.range.start);
    let mut received = 0;
    while let Some(bytes) = reading.next().await? {
        destination.write(&bytes)?;
        let before = received;
        received += bytes.len() as u64;
        progress.step_bytes(before, received);
    }
    progress.finish();
    destination.finish()
}

fn report(output: &Output, reading: &FileStream, path: &Path) -> Result<(), Failure> {
    let FileStream {
        admission, range, ..
    } = reading;
    if output.is_json() {
        return output.write_document(&Report {
            name: &admission.name,
            size: admission.size,
            root: admission.root,
            start: range.start,
            end: range.end,
            path,
        });
    }
    let what = size_text(range.end - range.start);
    output.write_line(&format!(
        "{}  {what} verified  {}",
        path.display(),
        admission.root
    ))
}
