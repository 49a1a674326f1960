//! `holdfast receipt`: the custody receipt of a file, again.

use std::path::{Path, PathBuf};

use archive_client::{Access, HeldReceipt};
use archive_model::{FileName, ReplicaId, Root};
use clap::Args;
use serde::Serialize;
use tools_terminal::context::CommandContext;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::list::file_name;
use tools_terminal::output::tell_user;
use tools_terminal::session::Session;

/// Get the custody receipts of files, as they stand now
///
/// The archive signs in a receipt the name, size and root of a file, and which replicas hold it. The receipt is
/// verified when it arrives, and `holdfast verify receipt` checks it without the archive. Needs the role reader; a
/// harvester gets the receipts of its own files.
///
/// The exit code is 0 if every receipt was fetched and is good.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast receipt 12-34-20260101-00001.warc.gz > one.receipt.json
  holdfast receipt 12-34-20260101-00001.warc.gz --receipts /crawls/34-receipts")]
pub(crate) struct Receipt {
    /// Names of files in the archive
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Output directory of the receipts, as NAME.receipt.json [default: stdout]
    #[arg(long, value_name = "DIR")]
    receipts: Option<PathBuf>,
}

/// A receipt, and where it is.
#[derive(Debug, Serialize)]
struct ReceiptReport {
    name: FileName,
    size: u64,
    root: Root,
    /// The replicas that hold the file.
    replicas: Vec<ReplicaId>,
    /// The file that the receipt was written to.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<PathBuf>,
    /// The envelope, byte for byte, where it was not written to a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Answer {
    Receipt(Box<ReceiptReport>),
    Failed { name: String, error: Failure },
}

impl Receipt {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let session = Session::open(&context.global)?;
        let reader = session.reader();
        if let Some(directory) = &self.receipts {
            super::store::make_directory(directory)?;
        }
        let mut answers = Vec::new();
        let mut exits = Vec::new();
        for text in self.names {
            let got = async {
                let name = file_name(&text)?;
                let receipt = reader.receipt(&name).await;
                let receipt = receipt.map_err(|error| session.failure(error))?;
                keep(receipt, self.receipts.as_deref())
            };
            match got.await {
                Ok(held) => {
                    if !context.output.is_json() {
                        context.output.write_line(&shown(&held))?;
                    }
                    exits.push(Exit::Done);
                    if context.output.is_json() {
                        answers.push(Answer::Receipt(Box::new(held)));
                    }
                }
                Err(error) => {
                    let error = error.about_file(&text);
                    tell_user(&error.message);
                    exits.push(error.exit);
                    answers.push(Answer::Failed { name: text, error });
                }
            }
        }
        if context.output.is_json() {
            context
                .output
                .write_document(&serde_json::json!({ "receipts": answers }))?;
        }
        Ok(Exit::of_all(exits))
    }
}

/// Returns the envelope as it is, or where it was written.
fn shown(held: &ReceiptReport) -> String {
    match (&held.receipt, &held.path) {
        (Some(receipt), _) => receipt.trim_end().to_owned(),
        (None, path) => {
            let path = path.as_deref().unwrap_or(Path::new("-")).display();
            format!("{}  receipt in {path}", held.name)
        }
    }
}

fn keep(receipt: HeldReceipt, directory: Option<&Path>) -> Result<ReceiptReport, Failure> {
    let HeldReceipt {
        envelope,
        receipt,
        admission,
    } = receipt;
    let name = admission.name;
    let path = directory.map(|directory| directory.join(format!("{name}.receipt.json")));
    if let Some(path) = &path {
        archive_durable::replace_file(path, envelope.as_bytes()).map_err(|error| {
            Failure::because_failed(format!(
                "{name}: {error}; choose another place with --receipts"
            ))
        })?;
    }
    Ok(ReceiptReport {
        name,
        size: admission.size,
        root: admission.root,
        replicas: receipt
            .replicas
            .into_iter()
            .map(|custody| custody.replica)
            .collect(),
        receipt: path.is_none().then_some(envelope),
        path,
    })
}
