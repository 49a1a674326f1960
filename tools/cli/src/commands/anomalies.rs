//! `holdfast anomalies`: what is wrong, and what must be lived with.

use archive_client::Preservation;
use archive_client::preservation::{Act, AnomalySelection, AnomalyState, FiledAnomaly};
use clap::{Args, Subcommand};
use serde::Serialize;

use super::Context;
use super::get::name;
use super::requests::ask;
use crate::exit::{Exit, Failure};
use crate::items::Items;
use crate::reason::Reason;
use crate::said;
use crate::session::Session;

/// List what is wrong with the archive, or accept what must be lived with
///
/// One line for each anomaly: its id, since when, who found it, then kind, file, replica, what. Nothing is asked of any
/// replica: these are the findings of checks, scrubs and reads. Needs one of the roles officer, custodian, operator.
///
/// The exit code is 1 if an anomaly is open, and 0 if there is none.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast anomalies
  holdfast anomalies --all --file 12-34-20260101-00001.warc.gz
  holdfast anomalies accept a17 --reason 'the donor has no other copy either' --as custodian/custodian-1")]
pub(crate) struct Anomalies {
    #[command(subcommand)]
    accept: Option<AnomaliesCommand>,
    /// Also those that are closed or accepted
    #[arg(long)]
    all: bool,
    /// Only those of this file
    #[arg(long, value_name = "NAME")]
    file: Option<String>,
}

#[derive(Debug, Subcommand)]
enum AnomaliesCommand {
    Accept(Accept),
}

/// Ask for an anomaly to be accepted
///
/// It is lived with then, and counted no more. Nothing changes in any replica. It happens when a second person approves; how is printed. Needs one of the
/// roles custodian, officer.
/// The exit code is 0 when the request is recorded.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast anomalies accept a17 --reason 'lost in the flood of 2024' --as custodian/custodian-1")]
struct Accept {
    /// The id of the anomaly, as `holdfast anomalies` prints it
    #[arg(value_name = "ID")]
    id: String,
    /// Why; the audit trail keeps it
    #[arg(long, value_name = "TEXT")]
    reason: Reason,
}

/// The end of the list.
#[derive(Debug, Serialize)]
struct End {
    open: u64,
}

impl Anomalies {
    pub(crate) async fn run(self, context: &Context) -> Result<Exit, Failure> {
        if let Some(AnomaliesCommand::Accept(Accept { id, reason })) = self.accept {
            if self.all || self.file.is_some() {
                return Err(Failure::usage(
                    "--all and --file are of the list; leave them out to accept an anomaly",
                ));
            }
            return ask(context, &Act::Accept { anomaly: id }, &reason).await;
        }
        let file = self.file.as_deref().map(name).transpose()?;
        let session = Session::open(&context.global)?;
        let keeper = session.keeper();
        let selection = AnomalySelection {
            all: self.all,
            file,
        };
        let steps = keeper.anomalies(&selection).await;
        let mut steps = steps.map_err(|error| session.failure(error))?;
        let mut items = Items::begin(&context.output, "anomalies")?;
        let mut open = 0;
        let ended = loop {
            match steps.next().await {
                Ok(Some(anomaly)) => {
                    open += u64::from(anomaly.state == AnomalyState::Open);
                    items.item(&anomaly, || line(&anomaly))?;
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(error.into()),
            }
        };
        let exit = if open == 0 { Exit::Done } else { Exit::Failed };
        items.end(true, End { open }, ended, exit)
    }
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
        said::time(*since),
        said::anomaly(anomaly)
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
        said::time_or_dash(anomaly.ended)
    )
}

#[cfg(test)]
mod tests {
    use archive_client::preservation::AnomalyWord;

    use super::*;
    use crate::said::tests::filed;

    #[test]
    fn a_line_says_whether_it_still_is_so() {
        let open = filed(AnomalyWord::Missing, AnomalyState::Open);
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
