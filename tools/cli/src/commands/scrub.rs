//! `holdfast scrub`: what the nodes read again of their own disks, and how fast.

use archive_client::Preservation;
use archive_client::preservation::{ScrubSelection, Scrubs};
use archive_daemon::{ByteSize, Period};
use archive_model::{NodeId, NodeScrub, ReplicaId, ScrubActivity, ScrubOrder};
use clap::{Args, Subcommand};
use tools_terminal::context::CommandContext;
use tools_terminal::describe;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::output::{Output, TableColumn, TextTable, size_text, tell_user};
use tools_terminal::session::Session;

/// Show, pause, resume or slow down scrubbing
///
/// Every node reads its own files again, the longest unread first, so that damage is found while there are good copies
/// to repair it from. Each verb prints the resulting state of scrubbing. `status` needs the role officer or operator,
/// the other verbs the role officer. The exit code is 1 if a node could not be asked.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  holdfast scrub status
  holdfast scrub pause --replica two --for '2 h'
  holdfast scrub throttle '20 MB' --node two-1
  holdfast scrub throttle")]
pub(crate) enum Scrub {
    Status(ScrubScope),
    Pause(Pause),
    Resume(Resume),
    Throttle(Throttle),
}

/// Show what scrubbing does on every node
///
/// RATE is the most that a node reads a second now: the rate that the deadline needs, or a lower limit of people or of
/// the settings. DUE is the number of copies to be read now, and NEXT the time at which the next one is due. OLDEST is
/// the last verification of the copy that has waited longest, and UNKNOWN the number of copies that were not verified
/// since the catalog was built. FILES, READ and FOUND count copies, bytes and damaged copies since the node started.
///
/// Needs the role officer or operator. The exit code is 1 if a node could not be asked.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast scrub status --replica two")]
pub(crate) struct ScrubScope {
    /// Only the nodes of this replica [default: every replica]
    #[arg(long, value_name = "ID")]
    replica: Option<ReplicaId>,
    /// Only this node [default: every node]
    #[arg(long, value_name = "ID")]
    node: Option<NodeId>,
}

/// Pause scrubbing; the pause ends itself
///
/// No damage is found during the pause. Needs the role officer. The exit code is 1 if a node could not be asked.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast scrub pause --for '2 h'")]
pub(crate) struct Pause {
    #[command(flatten)]
    scope: ScrubScope,
    /// Length of the pause, such as '90 min' or '2 h' [default and maximum: 24 h]
    #[arg(long = "for", value_name = "DURATION", value_parser = pause)]
    length: Option<Period>,
}

/// Resume scrubbing after a pause
///
/// Needs the role officer. The exit code is 1 if a node could not be asked.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast scrub resume --replica two")]
pub(crate) struct Resume {
    #[command(flatten)]
    scope: ScrubScope,
}

/// Limit how fast the nodes read
///
/// Without RATE, the nodes again read as fast as their deadline needs. With a lower rate, files are read later than the
/// deadline. Needs the role officer. The exit code is 1 if a node could not be asked.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast scrub throttle '20 MB' --replica two
  holdfast scrub throttle --replica two")]
pub(crate) struct Throttle {
    /// Most bytes to read a second, such as '20 MB' [default: as the deadline needs]
    #[arg(value_name = "RATE", value_parser = rate)]
    rate: Option<ByteSize>,
    #[command(flatten)]
    scope: ScrubScope,
}

/// Reads a pause. One of no length is refused: it would be one of a day.
fn pause(text: &str) -> Result<Period, String> {
    match text.parse::<Period>() {
        Ok(period) if period.is_zero() => {
            Err("a pause has a length; to end one, use `holdfast scrub resume`".to_owned())
        }
        Ok(period) => Ok(period),
        Err(error) => Err(error.to_string()),
    }
}

/// Reads a rate. One of 0 is refused: it would be no limit.
fn rate(text: &str) -> Result<ByteSize, String> {
    match text.strip_suffix("/s").unwrap_or(text).parse::<ByteSize>() {
        Ok(rate) if rate.is_zero() => {
            Err("nothing would be read; to stop for a while, use `holdfast scrub pause`".to_owned())
        }
        Ok(rate) => Ok(rate),
        Err(error) => Err(error.to_string()),
    }
}

impl Scrub {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let (scope, order) = match self {
            Self::Status(scope) => (scope, ScrubOrder::Tell),
            Self::Pause(Pause { scope, length }) => {
                (scope, ScrubOrder::Pause(length.map(Period::duration)))
            }
            Self::Resume(Resume { scope }) => (scope, ScrubOrder::Resume),
            Self::Throttle(Throttle { scope, rate }) => {
                (scope, ScrubOrder::Throttle(rate.map(ByteSize::bytes)))
            }
        };
        let selection = ScrubSelection {
            replica: scope.replica,
            node: scope.node,
        };
        let session = Session::open(&context.global)?;
        let scrubs = session.keeper().scrubs(&selection, order).await;
        let scrubs = scrubs.map_err(|error| session.failure(error))?;
        if context.output.is_json() {
            context.output.write_document(&scrubs)?;
        } else {
            show(&context.output, &scrubs)?;
        }
        for gap in &scrubs.gaps {
            tell_user(&format!(
                "not asked: {}; see `holdfast status`",
                describe::describe_gap(gap)
            ));
        }
        if scrubs.scrubs.is_empty() && scrubs.gaps.is_empty() {
            tell_user("there is no such node; see `holdfast node list`");
            return Ok(Exit::Failed);
        }
        Ok(if scrubs.gaps.is_empty() {
            Exit::Done
        } else {
            Exit::Failed
        })
    }
}

fn show(output: &Output, scrubs: &Scrubs) -> Result<(), Failure> {
    let mut table = TextTable::new(&[
        TableColumn::Left("REPLICA"),
        TableColumn::Left("NODE"),
        TableColumn::Left("STATE"),
        TableColumn::Right("RATE"),
        TableColumn::Right("DUE"),
        TableColumn::Left("NEXT"),
        TableColumn::Left("OLDEST"),
        TableColumn::Right("UNKNOWN"),
        TableColumn::Right("FILES"),
        TableColumn::Right("READ"),
        TableColumn::Right("FOUND"),
    ]);
    for scrub in &scrubs.scrubs {
        table.push([
            scrub.replica.to_string(),
            scrub.node.to_string(),
            state(scrub),
            scrub
                .bytes_per_second
                .map_or_else(|| "-".to_owned(), |rate| format!("{}/s", size_text(rate))),
            scrub.due.to_string(),
            describe::time_or_dash(scrub.next),
            describe::time_or_dash(scrub.oldest),
            scrub.unknown.to_string(),
            scrub.files.to_string(),
            size_text(scrub.bytes),
            scrub.found.to_string(),
        ]);
    }
    output.write_table(&table)
}

fn state(scrub: &NodeScrub) -> String {
    match (scrub.state, scrub.paused_until) {
        (ScrubActivity::Paused, Some(until)) => {
            format!("paused until {}", describe::describe_time(until))
        }
        (state, _) => state.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a rate of 0, a pause of 0, or a pause without a unit is accepted.
    #[test]
    fn nothing_is_neither_a_pause_nor_a_rate() {
        assert_eq!(rate("20 MB").unwrap().bytes(), 20_000_000);
        assert_eq!(rate("20 MB/s").unwrap().bytes(), 20_000_000);
        assert!(rate("0").is_err() && rate("fast").is_err());
        assert_eq!(pause("2 h").unwrap().duration().as_secs(), 7200);
        assert!(pause("0 s").is_err() && pause("2").is_err());
    }
}
