//! `holdfast anomalies`: what is wrong, and what must be lived with.

use archive_client::Preservation;
use archive_client::preservation::AnomalySelection;
use archive_model::{Act, AnomalyState, FiledAnomaly};
use clap::{Args, Subcommand};
use serde::Serialize;
use tools_terminal::context::CommandContext;
use tools_terminal::describe;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::items::Items;
use tools_terminal::list::file_name;
use tools_terminal::losses::{MOST_WAITING, RecordFinder};
use tools_terminal::reason::ReasonText;
use tools_terminal::session::Session;

use super::requests::ask_for_act;

/// List what is wrong with the archive, or accept what must be lived with
///
/// Prints one line for each anomaly: its id, the time since when it is known, what found it, its kind, file and
/// replica, and the problem. No replica is asked: these are the findings of checks, scrubs and reads. Needs the role
/// officer, custodian or operator.
///
/// With --records, each damaged file is read up to its last damaged byte, from any replica and proven. Under each
/// anomaly the WARC and ARC records in the damaged bytes are listed: whether they are damaged wholly or partly, offset,
/// type, date, URL, identifier. A record whose header is lost cannot be named; its bytes are listed as unknown. At most
/// 64 GiB are read if no file is named. Needs the role officer.
///
/// The exit code is 1 if an anomaly is open, and 0 if no anomaly is open.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast anomalies
  holdfast anomalies --all --file 12-34-20260101-00001.warc.gz
  holdfast anomalies --file 12-34-20260101-00001.warc.gz --records
  holdfast anomalies --records --json | jq -r '.anomalies[].records[].url'
  holdfast anomalies accept a17 --reason 'the donor has no other copy either' --as custodian/custodian-1")]
pub(crate) struct Anomalies {
    #[command(subcommand)]
    accept: Option<AnomaliesCommand>,
    /// Also list anomalies that are closed or accepted
    #[arg(long)]
    all: bool,
    /// Only anomalies of this file
    #[arg(long, value_name = "NAME")]
    file: Option<String>,
    /// Also name the records in the damaged bytes: reads the damaged files
    #[arg(long)]
    records: bool,
}

#[derive(Debug, Subcommand)]
enum AnomaliesCommand {
    Accept(Accept),
}

/// Ask for an anomaly to be accepted
///
/// An accepted anomaly is no longer counted; nothing changes in any replica. A second person must approve; the command
/// is printed. Needs the role custodian or officer. The exit code is 0 if the request is recorded.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast anomalies accept a17 --reason 'lost in the flood of 2024' --as custodian/custodian-1")]
struct Accept {
    /// The id of the anomaly, as `holdfast anomalies` prints it
    #[arg(value_name = "ID")]
    id: String,
    /// The reason; the audit trail keeps it
    #[arg(long, value_name = "TEXT")]
    reason: ReasonText,
}

/// The end of the list.
#[derive(Debug, Serialize)]
struct End {
    open: u64,
}

impl Anomalies {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        if let Some(AnomaliesCommand::Accept(Accept { id, reason })) = self.accept {
            if self.all || self.file.is_some() || self.records {
                return Err(Failure::wrong_usage(
                    "--all, --file and --records are of the list; leave them out to accept an anomaly",
                ));
            }
            return ask_for_act(context, &Act::Accept { anomaly: id }, &reason).await;
        }
        let file = self.file.as_deref().map(file_name).transpose()?;
        let session = Session::open(&context.global)?;
        let mut finder = (self.records).then(|| RecordFinder::new(&session, file.is_some()));
        let mut waiting = Vec::new();
        let keeper = session.keeper();
        let selection = AnomalySelection {
            all: self.all,
            file,
        };
        let steps = keeper.anomalies(&selection).await;
        let mut steps = steps.map_err(|error| session.failure(error))?;
        let mut items = Items::begin_items(&context.output, "anomalies")?;
        let mut open = 0;
        let ended = loop {
            match steps.next().await {
                Ok(Some(_)) if waiting.len() == MOST_WAITING => break Err(too_many()),
                Ok(Some(anomaly)) => {
                    open += u64::from(anomaly.state == AnomalyState::Open);
                    if finder.is_some() {
                        waiting.push(anomaly);
                    } else {
                        items.write_item(&anomaly, || line(&anomaly))?;
                    }
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(error.into()),
            }
        };
        let mut exit = if open == 0 { Exit::Done } else { Exit::Failed };
        if let Some(finder) = &mut finder {
            for anomaly in &waiting {
                let records = finder.look_for_records(anomaly).await;
                items.write_item(&records.attach_to(anomaly), || {
                    records.below_line(line(anomaly))
                })?;
                if records.is_failed() {
                    exit = Exit::Failed;
                }
            }
        }
        items.end_items(true, End { open }, ended, exit)
    }
}

fn too_many() -> Failure {
    let message = format!(
        "the first {MOST_WAITING} anomalies are listed, and there are more: name a file with --file, or leave out --records"
    );
    Failure::because_failed(message)
}

fn line(anomaly: &FiledAnomaly) -> String {
    let FiledAnomaly {
        id,
        since,
        found_by,
        state,
        ..
    } = anomaly;
    let line = format!(
        "{id}  {}  {found_by}  {}",
        describe::describe_time(*since),
        describe::describe_anomaly(anomaly)
    );
    if *state == AnomalyState::Open {
        return line;
    }
    let why = anomaly
        .ended_why
        .as_deref()
        .map_or_else(String::new, |why| format!(": {why}"));
    format!(
        "{line} [{state} {}{why}]",
        describe::time_or_dash(anomaly.ended)
    )
}

#[cfg(test)]
mod tests {
    use archive_model::AnomalyClass;
    use tools_terminal::testing::filed_anomaly;

    use super::*;

    /// Fails if an anomaly that was closed is shown like an open one, without when and why it ended.
    #[test]
    fn a_line_says_whether_it_still_is_so() {
        let open = filed_anomaly(AnomalyClass::Missing, AnomalyState::Open);
        let begin = "17  2026-01-02T03:04:06Z  scrub  missing      a.warc.gz  two";
        assert_eq!(line(&open), begin);
        let closed = FiledAnomaly {
            state: AnomalyState::Closed,
            ended: Some("2026-01-03T00:00:00Z".parse().unwrap()),
            ended_why: Some("repaired from one".into()),
            ..open
        };
        let end = " [closed 2026-01-03T00:00:00Z: repaired from one]";
        assert_eq!(line(&closed), format!("{begin}{end}"));
    }
}
