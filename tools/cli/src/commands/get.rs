//! `holdfast get`: a file out of the archive, every byte proven before it is written.

mod salvage;

use std::io::{BufWriter, Stdout, Write};
use std::path::{Path, PathBuf};

use archive_client::{Access, FileRange, Reading};
use archive_model::{FileName, ReplicaId, Root};
use clap::Args;
use serde::Serialize;

use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::output::{Output, size};
use crate::progress::Progress;
use crate::range::ByteRange;
use crate::save::{Partial, to_stdout};
use crate::session::Session;

/// Read a file, or a range of it, verified while it comes
///
/// Every byte is verified against the signed admission before it is written. What is damaged in one replica comes from
/// another. The file gets its name when it is whole and synced; an existing file is never touched without --force.
/// Where no replica has some bytes intact it fails with exit code 1; --salvage writes all the others, and tells the WARC
/// and ARC records in the holes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast get 12-34-20260101-00001.warc.gz
  holdfast get 12-34-20260101-00001.warc.gz -o /tmp/one.warc.gz --replica two
  holdfast get 12-34-20260101-00001.warc.gz --range 0-1023 -o - | xxd
  holdfast get 12-34-20260101-00001.warc.gz --salvage --map holes.jsonl")]
pub(crate) struct Get {
    /// The file's name in the archive
    name: String,
    /// Output: a file, a directory, or `-` for stdout [default: NAME in this directory]
    #[arg(short, long, value_name = "PATH|-")]
    output: Option<PathBuf>,
    /// Read from this replica only [default: from any]
    #[arg(long, value_name = "ID")]
    replica: Option<ReplicaId>,
    /// Only these bytes, first and last included, counted from 0; `A-`: all from A on
    #[arg(long, value_name = "A-B")]
    range: Option<ByteRange>,
    /// Write what is good in any replica, and zeros where nothing is; exit code 1 if there is such a hole
    #[arg(long)]
    salvage: bool,
    /// Where the map of the holes and the records in them goes, one a line as JSON [default: PATH.holes.jsonl, if there are any]
    #[arg(long, value_name = "PATH", requires = "salvage")]
    map: Option<PathBuf>,
    /// Replace a file that is there already
    #[arg(long)]
    force: bool,
}

/// The result of reading, for programs.
#[derive(Debug, Serialize)]
struct Report<'a> {
    name: &'a FileName,
    /// Of the whole file.
    size: u64,
    root: Root,
    /// The first byte that was written.
    start: u64,
    /// One past the last.
    end: u64,
    #[serde(serialize_with = "crate::shown_path::one")]
    path: &'a Path,
}

/// Where the bytes go.
#[derive(Debug)]
pub(super) enum Destination {
    Stdout(BufWriter<Stdout>),
    File(Partial),
}

impl Destination {
    /// `-` is stdout.
    pub(super) fn open(path: &Path, force: bool, output: &Output) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Ok(Self::Stdout(output.writer()));
        }
        Ok(Self::File(Partial::create(path, force)?))
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match self {
            Self::Stdout(out) => out
                .write_all(bytes)
                .map_err(|error| Failure::output(&error)),
            Self::File(partial) => partial.write(bytes),
        }
    }

    /// All of it has come.
    pub(super) fn finish(self) -> Result<(), Failure> {
        match self {
            Self::Stdout(mut out) => out.flush().map_err(|error| Failure::output(&error)),
            Self::File(partial) => partial.keep(),
        }
    }
}

impl Get {
    pub(crate) async fn run(self, context: &Context) -> Result<Exit, Failure> {
        let name = name(&self.name)?;
        let path = self.path(&name);
        let is_stdout = to_stdout(&path, &context.output)?;
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
            return salvage::run(places, wanted, context).await;
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

/// Reads the name of an archive file.
pub(super) fn name(text: &str) -> Result<FileName, Failure> {
    FileName::new(text).map_err(|error| {
        Failure::usage(format!(
            "{text:?} is not a name of an archive file: {error}; correct it"
        ))
    })
}

async fn receive(reading: &mut Reading, mut destination: Destination) -> Result<(), Failure> {
    let progress = Progress::bytes(reading.range.end - reading.range.start);
    let mut received = 0;
    while let Some(bytes) = reading.next().await? {
        destination.write(&bytes)?;
        let before = received;
        received += bytes.len() as u64;
        progress.step(before, received);
    }
    progress.finish();
    destination.finish()
}

fn report(output: &Output, reading: &Reading, path: &Path) -> Result<(), Failure> {
    let Reading {
        admission, range, ..
    } = reading;
    if output.is_json() {
        return output.document(&Report {
            name: &admission.name,
            size: admission.size,
            root: admission.root,
            start: range.start,
            end: range.end,
            path,
        });
    }
    let what = size(range.end - range.start);
    output.line(&format!(
        "{}  {what} verified  {}",
        path.display(),
        admission.root
    ))
}
