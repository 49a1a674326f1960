//! `holdfast get`: a file out of the archive, every byte proven before it is written.

use std::io::{BufWriter, Stdout, Write};
use std::path::{Path, PathBuf};

use archive_client::{Access, Reading, Wanted};
use archive_model::{FileName, ReplicaId, Root};
use clap::Args;
use serde::Serialize;

use super::Context;
use crate::exit::{Exit, Failure};
use crate::output::{Output, size};
use crate::progress::Progress;
use crate::range::ByteRange;
use crate::save::Partial;
use crate::session::Session;

/// Read a file, or a range of it, verified while it comes
///
/// Every byte is verified against the signed admission before it is written. What is damaged in one replica comes from
/// another. The file gets its name when it is whole and synced; an existing file is never touched without --force.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast get 12-34-20260101-00001.warc.gz
  holdfast get 12-34-20260101-00001.warc.gz -o /tmp/one.warc.gz --replica two
  holdfast get 12-34-20260101-00001.warc.gz --range 0-1023 -o - | xxd")]
pub(crate) struct Get {
    /// The file's name in the archive
    name: String,
    /// Where it goes: a file, a directory, or `-` for stdout [default: NAME in this directory]
    #[arg(short, long, value_name = "PATH|-")]
    output: Option<PathBuf>,
    /// Read from this replica only [default: from any]
    #[arg(long, value_name = "ID")]
    replica: Option<ReplicaId>,
    /// Only these bytes, first and last included, counted from 0; `A-`: all from A on
    #[arg(long, value_name = "A-B")]
    range: Option<ByteRange>,
    /// Replace a file that is there already
    #[arg(long)]
    force: bool,
}

/// What was read.
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
    path: &'a Path,
}

/// Where the bytes go.
enum Destination {
    Stdout(BufWriter<Stdout>),
    File(Partial),
}

impl Get {
    pub(crate) async fn run(self, context: &Context) -> Result<Exit, Failure> {
        let name = name(&self.name)?;
        let path = self.path(&name);
        let to_stdout = path == Path::new("-");
        if to_stdout && context.output.is_json() {
            return Err(Failure::usage(
                "--json and -o - both want stdout; leave one of them out",
            ));
        }
        let session = Session::open(&context.global)?;
        let wanted = Wanted {
            start: self.range.map_or(0, |range| range.start),
            end: self.range.and_then(|range| range.end),
            replica: self.replica,
            name,
        };
        let mut reading = session.reader().get(&wanted).await?;
        let destination = if to_stdout {
            Destination::Stdout(context.output.writer())
        } else {
            Destination::File(Partial::create(&path, self.force)?)
        };
        receive(&mut reading, destination).await?;
        if !to_stdout {
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
            "{text:?} is no name of an archive file: {error}; correct it"
        ))
    })
}

async fn receive(reading: &mut Reading, mut destination: Destination) -> Result<(), Failure> {
    let progress = Progress::bytes(reading.range.end - reading.range.start);
    let mut received = 0;
    while let Some(bytes) = reading.next().await? {
        match &mut destination {
            Destination::Stdout(out) => out
                .write_all(&bytes)
                .map_err(|error| Failure::output(&error))?,
            Destination::File(partial) => partial.write(&bytes)?,
        }
        let before = received;
        received += bytes.len() as u64;
        progress.step(before, received);
    }
    progress.finish();
    match destination {
        Destination::Stdout(mut out) => out.flush().map_err(|error| Failure::output(&error)),
        Destination::File(partial) => partial.keep(),
    }
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
