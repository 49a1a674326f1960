//! `holdfast verify`: signed documents and the audit log, checked without any network.

mod audit;
mod proof;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use archive_client::client_file::read_trust_file;
use archive_model::{Digests, FileName, Root};
use archive_proof::{CustodyStatement, Envelope, Receipt, TrustFile};
use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde::Serialize;
use tools_terminal::context::CommandContext;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::output::{Output, TableColumn, TextTable, or_dash, size_text, tell_user};
use tools_terminal::session::client_file;

/// Verify signed documents and the audit log, without any network
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  holdfast verify receipt one.warc.gz.receipt.json --trust trust.json
  holdfast verify proof record.proof --trust trust.json
  holdfast verify audit backup/audit")]
pub(crate) enum Verify {
    Receipt(VerifyReceipt),
    Proof(proof::VerifyProof),
    Audit(audit::VerifyAudit),
}

impl Verify {
    pub(crate) fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        match self {
            Self::Receipt(receipt) => receipt.run(context),
            Self::Proof(proof) => proof.run(context),
            Self::Audit(audit) => audit.run(context),
        }
    }
}

/// Verify custody receipts: who signed them, and what they promise
///
/// Needs the receipt and a trust file, and no archive. The exit code is 1 if a receipt is not good.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast verify receipt one.warc.gz.receipt.json
  holdfast verify receipt one.warc.gz.receipt.json --trust trust.json --json")]
pub(crate) struct VerifyReceipt {
    /// Receipts, as `holdfast store --receipts` or `holdfast receipt` wrote them
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The trust file, with the keys whose signatures count [default: the one that the client file names]
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
}

/// The statement of a receipt, for programs.
#[derive(Debug, Serialize)]
struct ReceiptStatement {
    #[serde(serialize_with = "tools_terminal::shown_path::one")]
    file: PathBuf,
    valid: bool,
    archive: String,
    name: FileName,
    size: u64,
    root: Root,
    digests: Digests,
    depositor: String,
    admitted: Timestamp,
    issued: Timestamp,
    replicas: Vec<CustodyStatement>,
}

/// A receipt or proof that is not good, and the reason, for programs.
#[derive(Debug, Serialize)]
struct RejectedFile {
    #[serde(serialize_with = "tools_terminal::shown_path::one")]
    file: PathBuf,
    valid: bool,
    error: Failure,
}

impl RejectedFile {
    const fn new(file: PathBuf, error: Failure) -> Self {
        Self {
            file,
            valid: false,
            error,
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Verdict {
    Good(Box<ReceiptStatement>),
    Bad(RejectedFile),
}

impl VerifyReceipt {
    fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let trust = match &self.trust {
            Some(path) => read_trust_file(path)?,
            None => client_file(&context.global)?.trust_file()?,
        };
        let verdicts: Vec<Verdict> = self
            .files
            .into_iter()
            .map(|file| match check(&file, &trust) {
                Ok(said) => Verdict::Good(Box::new(said)),
                Err(error) => {
                    tell_user(&error.message);
                    Verdict::Bad(RejectedFile::new(file, error))
                }
            })
            .collect();
        if context.output.is_json() {
            context
                .output
                .write_document(&serde_json::json!({ "receipts": verdicts }))?;
        }
        let mut exits = Vec::new();
        for verdict in &verdicts {
            exits.push(match verdict {
                Verdict::Good(said) => {
                    if !context.output.is_json() {
                        show(&context.output, said)?;
                    }
                    Exit::Done
                }
                Verdict::Bad(refused) => refused.error.exit,
            });
        }
        Ok(Exit::of_all(exits))
    }
}

fn check(path: &Path, trust: &TrustFile) -> Result<ReceiptStatement, Failure> {
    let longest = archive_proof::envelope::MAX_LENGTH as u64 + 1;
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(longest).read_to_end(&mut bytes))
        .map_err(|error| Failure::unreadable_file(path, &error))?;
    let bad = |reason: String| Failure::because_failed(format!("{}: {reason}", path.display()));
    let envelope = Envelope::parse(bytes.trim_ascii()).map_err(|error| bad(error.to_string()))?;
    let (receipt, admission) =
        Receipt::verify(&envelope, trust).map_err(|error| bad(error.to_string()))?;
    Ok(ReceiptStatement {
        file: path.to_owned(),
        valid: true,
        archive: admission.archive,
        name: admission.name,
        size: admission.size,
        root: admission.root,
        digests: admission.digests,
        depositor: admission.depositor,
        admitted: admission.admitted,
        issued: receipt.issued,
        replicas: receipt.replicas,
    })
}

fn show(output: &Output, said: &ReceiptStatement) -> Result<(), Failure> {
    let ReceiptStatement {
        name,
        archive,
        root,
        depositor,
        admitted,
        issued,
        ..
    } = said;
    output.write_line(&format!("{}: good", said.file.display()))?;
    output.write_line(&format!(
        "  {name}  {} bytes ({})  blake3 {root}",
        said.size,
        size_text(said.size)
    ))?;
    output.write_line(&format!(
        "  admitted {admitted} from {depositor}; signed by archive {archive}, {issued}"
    ))?;
    let mut table = TextTable::new(&[
        TableColumn::Left("  REPLICA"),
        TableColumn::Left("KEEPS"),
        TableColumn::Left("COMPLETED"),
        TableColumn::Left("NODE"),
        TableColumn::Left("VOLUME"),
    ]);
    for custody in &said.replicas {
        table.push([
            format!("  {}", custody.replica),
            custody.kind.to_string(),
            custody.completed.to_string(),
            custody.node.to_string(),
            or_dash(custody.volume.as_ref()),
        ]);
    }
    output.write_table(&table)
}
