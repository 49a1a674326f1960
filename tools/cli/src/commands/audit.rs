//! `holdfast audit`: who did what to which file, and why.

use archive_client::Preservation;
use archive_client::preservation::{AuditSelection, HeldAuditLine};
use clap::Args;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::Serialize;
use tools_terminal::context::CommandContext;
use tools_terminal::describe;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::items::Items;
use tools_terminal::list::file_name;
use tools_terminal::session::Session;

/// Show the audit trail: who did what to which file, and why
///
/// Prints one line for each act, oldest first: number, time, person or part, file, act. A trail with a hole in it is
/// refused. Needs the role officer. The exit code is 0 if the trail is whole.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast audit --since 2026-01-31
  holdfast audit --file 12-34-20260101-00001.warc.gz --json")]
pub(crate) struct Audit {
    /// Only acts on this file
    #[arg(long, value_name = "NAME")]
    file: Option<String>,
    /// Only acts from this time on: `2026-01-31` (in UTC) or `2026-01-31T12:00:00+01:00`
    #[arg(long, value_name = "TIME", value_parser = moment)]
    since: Option<Timestamp>,
}

/// The end of the trail.
#[derive(Debug, Serialize)]
struct End {
    count: u64,
}

/// Reads a day, or a time with its zone.
fn moment(text: &str) -> Result<Timestamp, String> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at);
    }
    // A time without a zone is no day; only ten characters are.
    let day = if text.len() == 10 {
        text.parse::<Date>().ok()
    } else {
        None
    };
    day.and_then(|day| day.to_zoned(TimeZone::UTC).ok())
        .map(|zoned| zoned.timestamp())
        .ok_or_else(|| {
            "write a day, 2026-01-31, or a time with its zone, 2026-01-31T12:00:00Z".to_owned()
        })
}

impl Audit {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let selection = AuditSelection {
            file: self.file.as_deref().map(file_name).transpose()?,
            since: self.since,
        };
        let session = Session::open(&context.global)?;
        let keeper = session.keeper();
        let steps = keeper.audit(&selection).await;
        let mut steps = steps.map_err(|error| session.failure(error))?;
        let mut items = Items::begin_items(&context.output, "lines")?;
        let mut count = 0;
        let ended = loop {
            match steps.next().await {
                Ok(Some(one)) => {
                    count += 1;
                    items.write_item(&one, || line(&one))?;
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(error.into()),
            }
        };
        items.end_items(true, End { count }, ended, Exit::Done)
    }
}

fn line(line: &HeldAuditLine) -> String {
    let HeldAuditLine {
        number,
        at,
        who,
        what,
        ..
    } = line;
    let file = line.file.as_ref().map_or("-", |file| file.as_str());
    format!(
        "{number}  {}  {who}  {file}  {what}",
        describe::describe_time(*at)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a date is taken for midnight elsewhere than in UTC, or if the zone of a time is guessed.
    #[test]
    fn date_is_utc_midnight_and_time_needs_zone() {
        for (text, at) in [
            ("2026-01-31", "2026-01-31T00:00:00Z"),
            ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z"),
            ("2026-01-31T12:00:00+01:00", "2026-01-31T11:00:00Z"),
        ] {
            assert_eq!(moment(text).unwrap().to_string(), at);
        }
        for bad in [
            "",
            "yesterday",
            "2026-02-30",
            "2026-01-31T12:00:00",
            "20260131",
        ] {
            assert!(moment(bad).is_err(), "{bad:?}");
        }
    }
}
