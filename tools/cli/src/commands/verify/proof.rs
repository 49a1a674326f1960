//! `holdfast verify proof`: record proofs, checked without any network.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use archive_client::client_file::read_trust_file;
use archive_model::{FileName, Root};
use archive_proof::ranges::DecodeError;
use archive_proof::{RecordProofError, TrustFile, record_proof};
use clap::Args;
use jiff::Timestamp;
use serde::Serialize;
use tools_terminal::context::CommandContext;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::output::{Output, size_text, tell_user};
use tools_terminal::save::{Destination, is_stdout};
use tools_terminal::session::client_file;

use super::RejectedFile;

/// Verify record proofs: which bytes they prove, of which archive file
///
/// Needs the proof and a trust file, and neither the archive nor the archive file. The exit code is 1 if a proof is not
/// good.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast verify proof record.proof --trust trust.json
  holdfast verify proof record.proof -o - | zcat")]
pub(crate) struct VerifyProof {
    /// Record proofs, as `holdfast record --proof` wrote them
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The trust file, with the keys whose signatures count [default: the one that the client file names]
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
    /// Output file of the proven bytes, for one proof only; `-` is stdout [default: they are not written]
    #[arg(short, long, value_name = "PATH|-")]
    output: Option<PathBuf>,
    /// Replace the output file if it exists
    #[arg(long)]
    force: bool,
}

/// The statement of a proof, for programs.
#[derive(Debug, Serialize)]
struct ProofStatement {
    #[serde(serialize_with = "tools_terminal::shown_path::one")]
    file: PathBuf,
    valid: bool,
    archive: String,
    name: FileName,
    size: u64,
    root: Root,
    depositor: String,
    admitted: Timestamp,
    /// The first byte that is proven.
    start: u64,
    /// The offset behind the last byte that is proven.
    end: u64,
    /// The BLAKE3 hash of the proven bytes.
    blake3: String,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Verdict {
    Good(Box<ProofStatement>),
    Bad(RejectedFile),
}

impl VerifyProof {
    pub(super) fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        if self.output.is_some() && self.files.len() > 1 {
            return Err(Failure::wrong_usage(
                "-o writes the bytes of one proof; name one FILE",
            ));
        }
        let shows = match &self.output {
            Some(path) => !is_stdout(path, &context.output)?,
            None => true,
        };
        let trust = match &self.trust {
            Some(path) => read_trust_file(path)?,
            None => client_file(&context.global)?.trust_file()?,
        };
        let mut verdicts = Vec::new();
        let mut exits = Vec::new();
        for file in &self.files {
            match self.check(file, &trust, &context.output) {
                Ok(said) => {
                    if shows && !context.output.is_json() {
                        show(&context.output, &said)?;
                    }
                    exits.push(Exit::Done);
                    verdicts.push(Verdict::Good(Box::new(said)));
                }
                Err(error) => {
                    if !error.message.is_empty() {
                        tell_user(&error.message);
                    }
                    exits.push(error.exit);
                    verdicts.push(Verdict::Bad(RejectedFile::new(file.clone(), error)));
                }
            }
        }
        if context.output.is_json() {
            context
                .output
                .write_document(&serde_json::json!({ "proofs": verdicts }))?;
        }
        Ok(Exit::of_all(exits))
    }

    fn check(
        &self,
        path: &Path,
        trust: &TrustFile,
        output: &Output,
    ) -> Result<ProofStatement, Failure> {
        let input = File::open(path).map_err(|error| Failure::unreadable_file(path, &error))?;
        let destination = self.output.as_deref();
        let destination = destination.map(|path| Destination::open(path, self.force, output));
        let mut destination = destination.transpose()?;
        let mut hash = blake3::Hasher::new();
        let mut unwritten = None;
        let proven = record_proof::verify_record_proof(BufReader::new(input), trust, |bytes| {
            hash.update(bytes);
            let written = destination.as_mut().map_or(Ok(()), |to| to.write(bytes));
            written.map_err(|failure| {
                unwritten = Some(failure);
                io::ErrorKind::Other.into()
            })
        });
        let proven = match (proven, unwritten) {
            (_, Some(failure)) => return Err(failure),
            (Ok(proven), None) => proven,
            (Err(RecordProofError::Slice(DecodeError::Read(error))), None) => {
                return Err(Failure::unreadable_file(path, &error));
            }
            (Err(error), None) => {
                return Err(Failure::because_failed(format!(
                    "{}: {error}",
                    path.display()
                )));
            }
        };
        if let Some(destination) = destination {
            destination.finish()?;
        }
        let admission = proven.admission;
        Ok(ProofStatement {
            file: path.to_owned(),
            valid: true,
            archive: admission.archive,
            name: admission.name,
            size: admission.size,
            root: admission.root,
            depositor: admission.depositor,
            admitted: admission.admitted,
            start: proven.range.start,
            end: proven.range.end,
            blake3: hash.finalize().to_string(),
        })
    }
}

fn show(output: &Output, said: &ProofStatement) -> Result<(), Failure> {
    let ProofStatement {
        name,
        archive,
        root,
        depositor,
        admitted,
        start,
        end,
        blake3,
        ..
    } = said;
    output.write_line(&format!("{}: good", said.file.display()))?;
    output.write_line(&format!(
        "  bytes {start}-{} ({})  blake3 {blake3}",
        end - 1,
        size_text(end - start)
    ))?;
    output.write_line(&format!(
        "  of {name}  {} bytes ({})  blake3 {root}",
        said.size,
        size_text(said.size)
    ))?;
    output.write_line(&format!(
        "  admitted {admitted} from {depositor}; signed by archive {archive}"
    ))
}
