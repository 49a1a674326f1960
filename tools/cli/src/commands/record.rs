//! `holdfast record`: one WARC or ARC record out of an archived file, and the proof of it.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use archive_client::{ClientError, fetch_record, prove_record};
use archive_formats::record_end::RecordKind;
use archive_model::{FileName, ReplicaId, Root};
use clap::Args;
use serde::Serialize;
use tools_terminal::context::CommandContext;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::list::file_name;
use tools_terminal::output::size_text;
use tools_terminal::save::{Destination, Partial, is_stdout};
use tools_terminal::session::Session;

/// Read one record: a gzip member, or a plain WARC or ARC record
///
/// The record is found by the offset of its first byte, as an index gives it; its length need not be known. The bytes
/// are written as they are archived, a gzip member compressed. With --proof, a second file proves to anyone who has the
/// trust file that these bytes stand at this place of this archive file: see `holdfast verify proof`. Needs the role
/// reader. The exit code is 2 if no record begins at the offset, and 1 if the record is intact in no replica.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast record 12-34-20260101-00001.warc.gz 43321
  holdfast record 12-34-20260101-00001.warc.gz 43321 -o - | zcat
  holdfast record 12-34-20260101-00001.warc.gz 43321 --proof record.proof")]
pub(crate) struct Record {
    /// The file's name in the archive
    name: String,
    /// The offset of the record's first byte, counted from 0
    offset: u64,
    /// Output file or directory; `-` is stdout [default: OFFSET-NAME in this directory]
    #[arg(short, long, value_name = "PATH|-")]
    output: Option<PathBuf>,
    /// Output file of a proof of the record [default: no proof is written]
    #[arg(long, value_name = "PATH")]
    proof: Option<PathBuf>,
    /// Read from this replica only [default: from any]
    #[arg(long, value_name = "ID")]
    replica: Option<ReplicaId>,
    /// Replace the output files if they exist
    #[arg(long)]
    force: bool,
}

/// The result of reading, for programs.
#[derive(Debug, Serialize)]
struct Report<'a> {
    name: &'a FileName,
    root: Root,
    /// The kind of the record.
    kind: &'static str,
    /// The offset of the first byte that was written.
    start: u64,
    /// The offset behind the last byte that was written.
    end: u64,
    path: &'a Path,
    #[serde(skip_serializing_if = "Option::is_none")]
    proof: Option<&'a Path>,
}

impl Record {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let name = file_name(&self.name)?;
        let path = self.path(&name);
        let is_stdout = is_stdout(&path, &context.output)?;
        let session = Session::open(&context.global)?;
        let reader = session.reader();
        let mut record = fetch_record(&reader, &name, self.offset, self.replica.clone()).await?;
        let mut destination = Destination::open(&path, self.force, &context.output)?;
        // Made first: a proof that has no place must not be found out after the transfer.
        let proof = self.proof.as_deref();
        let proof_file = proof.map(|path| Partial::create(path, self.force));
        let proof_file = proof_file.transpose()?;
        while let Some(bytes) = record.next().await? {
            destination.write(&bytes)?;
        }
        if let Some(file) = proof_file {
            let out = BufWriter::new(file.writer()?);
            let written: Result<BufWriter<File>, ClientError> =
                prove_record(&reader, &name, record.range(), out).await;
            drop(written?);
            destination.finish()?;
            file.keep()?;
        } else {
            destination.finish()?;
        }
        if !is_stdout {
            let range = record.range();
            let kind = record.kind().map_or("", RecordKind::word);
            let report = Report {
                name: &name,
                root: record.admission().root,
                kind,
                start: range.start,
                end: range.end,
                path: &path,
                proof,
            };
            if context.output.is_json() {
                context.output.write_document(&report)?;
            } else {
                let shown = path.display();
                let what = size_text(range.end - range.start);
                context.output.write_line(&format!(
                    "{shown}  {kind} record of {what}, verified  {name} bytes {}-{}",
                    range.start,
                    range.end - 1
                ))?;
                if let Some(proof) = proof {
                    let shown = proof.display();
                    let line = format!("{shown}  its proof; check it with `holdfast verify proof`");
                    context.output.write_line(&line)?;
                }
            }
        }
        Ok(Exit::Done)
    }

    fn path(&self, name: &FileName) -> PathBuf {
        let own = format!("{}-{name}", self.offset);
        match &self.output {
            None => PathBuf::from(own),
            Some(path) if path.is_dir() => path.join(own),
            Some(path) => path.clone(),
        }
    }
}
