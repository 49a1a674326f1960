//! `holdfast stat`: how files stand in each replica.

mod history;

use archive_client::{FileStatus, Ingest, ReplicaStatus};
use archive_model::{CopyDoubt, CopyStanding};
use clap::Args;
use serde::Serialize;
use tools_terminal::context::CommandContext;
use tools_terminal::describe;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::list::file_name;
use tools_terminal::output::{Output, TableColumn, TextTable, or_dash, size_text, tell_user};
use tools_terminal::session::Session;

use self::history::{Moment, file_history, moment_line};

/// Show the state of files in each replica
///
/// The condition of a copy says whether it counts: `good`, or the kind of its anomaly (`corrupt`, `missing`, `lost`,
/// …), or `retired`. Needs the role reader, officer or custodian; a harvester sees its own files.
///
/// With --history, also prints the audit trail and the anomalies of each file, open and ended, oldest first. That needs
/// the role officer.
///
/// The exit code is 1 if a file is not in the archive, or if a copy is neither completed nor withdrawn, or is damaged,
/// missing or lost, unless people have accepted that.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast stat 12-34-20260101-00001.warc.gz
  holdfast stat --history 12-34-20260101-00001.warc.gz --as officer
  holdfast stat 12-34-20260101-00001.warc.gz 12-34-20260101-00002.warc.gz --json")]
pub(crate) struct Stat {
    /// Names of files in the archive
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Also print the audit trail and the anomalies of each file
    #[arg(long)]
    history: bool,
}

/// All that the archive knows of a file.
#[derive(Debug, Serialize)]
struct FileReport {
    #[serde(flatten)]
    status: FileStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    history: Option<Vec<Moment>>,
}

/// The answer about one name.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Answer {
    File(Box<FileReport>),
    Failed { name: String, error: Failure },
}

impl Answer {
    fn exit(&self) -> Exit {
        match self {
            Self::File(known) if known.status.is_whole() => Exit::Done,
            Self::File(_) => Exit::Failed,
            Self::Failed { error, .. } => error.exit,
        }
    }
}

impl Stat {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let session = Session::open(&context.global)?;
        let depositor = session.depositor();
        let keeper = session.keeper();
        let mut answers = Vec::new();
        for text in self.names {
            let asked = async {
                let status = depositor.stat(&file_name(&text)?).await?;
                let history = if self.history {
                    let asked = file_history(&keeper, &status.name).await;
                    Some(asked.map_err(|error| session.failure(error))?)
                } else {
                    None
                };
                Ok::<_, Failure>(FileReport { status, history })
            };
            answers.push(match asked.await {
                Ok(known) => Answer::File(Box::new(known)),
                Err(error) => {
                    let error = error.about_file(&text);
                    tell_user(&error.message);
                    Answer::Failed { name: text, error }
                }
            });
        }
        if context.output.is_json() {
            context
                .output
                .write_document(&serde_json::json!({ "files": answers }))?;
        } else {
            for answer in &answers {
                if let Answer::File(known) = answer {
                    show(&context.output, &known.status)?;
                    for moment in known.history.iter().flatten() {
                        context.output.write_line(&moment_line(moment))?;
                    }
                }
            }
        }
        Ok(Exit::of_all(answers.iter().map(Answer::exit)))
    }
}

fn show(output: &Output, status: &FileStatus) -> Result<(), Failure> {
    let FileStatus {
        name,
        root,
        digests,
        depositor,
        admitted,
        ..
    } = status;
    output.write_line(&format!(
        "{name}\n  {} bytes ({})  blake3 {root}",
        status.size,
        size_text(status.size)
    ))?;
    if let Some(sha256) = &digests.sha256 {
        output.write_line(&format!("  sha256 {}", hex::encode(sha256)))?;
    }
    if let Some(md5) = &digests.md5 {
        output.write_line(&format!("  md5 {}", hex::encode(md5)))?;
    }
    let admitted = describe::describe_time(*admitted);
    output.write_line(&format!("  admitted {admitted} from {depositor}"))?;
    let mut table = TextTable::new(&[
        TableColumn::Left("  REPLICA"),
        TableColumn::Left("STATE"),
        TableColumn::Left("CONDITION"),
        TableColumn::Left("COMPLETED"),
        TableColumn::Left("NODE"),
        TableColumn::Left("VOLUME"),
        TableColumn::Left("REASON"),
    ]);
    for replica in &status.replicas {
        table.push([
            format!("  {}", replica.replica),
            replica.progress.words().to_owned(),
            condition(replica),
            describe::time_or_dash(replica.completed),
            or_dash(replica.node.as_ref()),
            or_dash(replica.volume.as_ref()),
            replica.reason.clone().unwrap_or_default(),
        ]);
    }
    output.write_table(&table)
}

/// Returns the words for whether a copy counts.
fn condition(replica: &ReplicaStatus) -> String {
    let doubt = replica.doubt.map_or("bad", CopyDoubt::as_str);
    match replica.standing {
        None => "-".to_owned(),
        Some(standing @ (CopyStanding::Good | CopyStanding::Unverified)) => standing.to_string(),
        Some(CopyStanding::Bad) => doubt.to_owned(),
        Some(CopyStanding::Accepted) => format!("{doubt}, accepted"),
    }
}
