//! `holdfast admin export`: admin data and audit trail as lines of JSON.

use std::path::{Path, PathBuf};

use archive_client::Preservation;
use archive_client::preservation::ArchiveSteps;
use clap::Args;
use tools_terminal::context::CommandContext;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::output::size_text;
use tools_terminal::save::Destination;
use tools_terminal::session::Session;

/// Export admin data and audit trail as lines of JSON
///
/// Writes them as they stand at one moment: all that `holdfast admin restore` needs. The archive stays in service
/// meanwhile. The output file gets its name when it is whole and synced. Needs the role operator. The exit code is 0
/// only if the export is whole.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast admin export -o admin.jsonl
  holdfast admin export | zstd > admin.jsonl.zst")]
pub(crate) struct Export {
    /// Output file; `-` is stdout [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the output file if it exists
    #[arg(long)]
    force: bool,
}

impl Export {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let path = self.output.filter(|path| path != Path::new("-"));
        if path.is_none() && context.output.is_json() {
            return Err(Failure::wrong_usage(
                "the export on stdout is lines of JSON, not one document; leave --json out, or name a file with -o",
            ));
        }
        if let Some(path) = path
            .as_ref()
            .filter(|path| path.extension().is_some_and(|kind| kind == "gz"))
        {
            return Err(Failure::wrong_usage(format!(
                "{}: the export is not compressed; leave out .gz, and compress it afterwards",
                path.display()
            )));
        }
        let session = Session::open(&context.global)?;
        let keeper = session.keeper();
        let steps = keeper.export().await;
        let mut steps = steps.map_err(|error| session.failure(error))?;
        let place = path.as_deref().unwrap_or(Path::new("-"));
        let mut destination = Destination::open(place, self.force, &context.output)?;
        let (lines, bytes) = receive(&mut steps, &mut destination).await?;
        destination.finish()?;
        let Some(path) = path else {
            return Ok(Exit::Done);
        };
        if context.output.is_json() {
            context
                .output
                .write_document(&serde_json::json!({ "path": path.display().to_string(), "lines": lines, "bytes": bytes }))?;
        } else {
            let path = path.display();
            let size = size_text(bytes);
            context
                .output
                .write_line(&format!("{path}  {lines} lines, {size}"))?;
        }
        Ok(Exit::Done)
    }
}

async fn receive(
    steps: &mut ArchiveSteps<impl AsRef<[u8]>>,
    destination: &mut Destination,
) -> Result<(u64, u64), Failure> {
    let mut lines = 0;
    let mut bytes = 0;
    while let Some(part) = steps.next().await? {
        let part = part.as_ref();
        lines += part.split(|byte| *byte == b'\n').skip(1).count() as u64;
        bytes += part.len() as u64;
        destination.write(part)?;
    }
    Ok((lines, bytes))
}
