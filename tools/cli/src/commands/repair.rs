//! `holdfast repair`: repair what is missing or damaged, from where it is good.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use archive_client::preservation::{Repair as Step, RepairOrder};
use archive_client::{ClientError, Preservation};
use archive_model::{FileName, RepairOutcome};
use clap::Args;
use serde::Serialize;
use tools_terminal::bars::{Bars, ProgressUnit};
use tools_terminal::context::CommandContext;
use tools_terminal::describe;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::items::Items;
use tools_terminal::list::file_name;
use tools_terminal::losses::{MOST_WAITING, RecordFinder, RecordLosses, damaged_ranges};
use tools_terminal::output::size_text;
use tools_terminal::reason::ReasonText;
use tools_terminal::session::Session;

/// Repair the anomalies that are filed
///
/// Files that are named are first looked for in every replica, so that a copy that has gone since the last check is
/// repaired too; their bytes are not read again: `holdfast check checksums` does that.
///
/// A missing file is copied from another replica; of a damaged file only the damaged groups are copied, each with its
/// proof. A donor is read again before it is believed. Replaced groups and files go to the attic. A file with bytes
/// that are intact in no replica is not touched, and these bytes are named. Needs the role officer.
///
/// The exit code is 0 if everything is repaired, and 1 if a file is lost, failed, or waits. If more files of one
/// replica would be repaired than the brake allows (`repair.brake_files` and `repair.brake_fraction` of the
/// repository), nothing is repaired and the exit code is 5, until --confirm gives the number of files.
///
/// With --records, the WARC and ARC records in the damaged bytes are listed at the end, as
/// `holdfast anomalies --records` does.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  holdfast repair 12-34-20260101-00001.warc.gz
  holdfast repair --all --dry-run
  holdfast repair --all --dry-run --records
  holdfast repair --all --confirm 31 --reason 'disk 4 of replica two was replaced'")]
pub(crate) struct Repair {
    /// Names of the files to repair
    #[arg(
        value_name = "NAME",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    names: Vec<String>,
    /// Repair every file that can be repaired
    #[arg(long)]
    all: bool,
    /// Repair nothing; print what would be done, and how many bytes it would move
    #[arg(long)]
    dry_run: bool,
    /// Also name the records in the damaged bytes: reads the damaged files
    #[arg(long)]
    records: bool,
    /// Number of files that you expect to be repaired; needed if it is more than the brake allows
    #[arg(long, value_name = "COUNT")]
    confirm: Option<NonZeroU64>,
    /// The reason; the audit trail keeps it
    #[arg(long, value_name = "TEXT")]
    reason: Option<ReasonText>,
}

/// The counts of outcomes, for programs.
#[derive(Debug, Default, Serialize)]
struct Outcomes {
    outcomes: BTreeMap<RepairOutcome, u64>,
    bytes_moved: u64,
}

impl Repair {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let names = self.names.iter().map(|text| file_name(text));
        let order = RepairOrder {
            names: names.collect::<Result<_, _>>()?,
            dry_run: self.dry_run,
            confirm: self.confirm.map(NonZeroU64::get),
            reason: self.reason.map(|reason| reason.as_str().to_owned()),
        };
        let session = Session::open(&context.global)?;
        let keeper = session.keeper();
        // The brake is the first answer, or comes instead of one: nothing is printed before it.
        let begun = match keeper.repair(&order).await {
            Ok(mut steps) => match steps.next().await {
                Ok(first) => Ok((first, steps)),
                Err(error) => Err(error),
            },
            Err(error) => Err(error),
        };
        let (first, mut steps) = match begun {
            Ok(begun) => begun,
            Err(ClientError::Precondition(said)) => return Err(braked(&order, &said)),
            Err(error) => return Err(session.failure(error)),
        };
        let mut items = Items::begin_items(&context.output, "repairs")?;
        let mut bars = Bars::new(!context.output.is_json());
        let mut outcomes = Outcomes::default();
        let mut damage = self.records.then(|| Damage::new(&session, !self.all));
        let mut next = first;
        let ended = loop {
            let Some(step) = next else { break Ok(()) };
            if step.outcome == RepairOutcome::Progress {
                bars.step_bar(
                    &subject(&step),
                    ProgressUnit::Bytes,
                    step.bytes_verified,
                    None,
                );
            } else {
                bars.end_bar(&subject(&step));
                outcomes.note(&step);
                if let Some(damage) = &mut damage {
                    bars.suspend(|| items.write_line(&line(&step)))?;
                    if let Err(failure) = damage.add(step) {
                        break Err(failure);
                    }
                } else {
                    bars.suspend(|| items.write_item(&step, || line(&step)))?;
                }
            }
            next = match steps.next().await {
                Ok(next) => next,
                Err(error) => break Err(error.into()),
            };
        };
        bars.finish_bars();
        items.write_line(&outcomes.summary())?;
        let mut exit = outcomes.exit();
        if let Some(damage) = damage
            && !damage.report(&mut items, context.output.is_json()).await?
        {
            exit = Exit::Failed;
        }
        items.end_items(true, outcomes, ended, exit)
    }
}

/// Returns the refusal of the brake, with the command that confirms what it would do.
fn braked(order: &RepairOrder, said: &str) -> Failure {
    let what = match order.names.as_slice() {
        [] => "--all".to_owned(),
        names => names.iter().map(quoted).collect::<Vec<_>>().join(" "),
    };
    let message = if said.contains("--confirm") {
        said.replace("NAME...", &what)
    } else {
        format!(
            "{said}; look at it with `holdfast repair {what} --dry-run`, then confirm how many files it is with \
             `holdfast repair {what} --confirm COUNT`"
        )
    };
    Failure::new(Exit::Refused, message)
}

/// Returns a name as a shell takes it.
fn quoted(name: &FileName) -> String {
    let plain = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'-' | b'_' | b'.' | b'+' | b',' | b'@' | b'%' | b'=')
    };
    let text = name.as_str();
    if text.bytes().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The repairs and failures, and the records that they concern. They are reported once the archive has done all of
/// them: reading the records takes long, and must not hold up the repairs.
struct Damage<'a> {
    finder: RecordFinder<'a>,
    steps: Vec<Step>,
}

impl<'a> Damage<'a> {
    fn new(session: &'a Session, is_named: bool) -> Self {
        Self {
            finder: RecordFinder::new(session, is_named),
            steps: Vec::new(),
        }
    }

    fn add(&mut self, step: Step) -> Result<(), Failure> {
        if self.steps.len() == MOST_WAITING {
            let message = format!(
                "{MOST_WAITING} anomalies were gone through, and there are more: continue with `holdfast repair --all`, \
                 without --records"
            );
            return Err(Failure::because_failed(message));
        }
        self.steps.push(step);
        Ok(())
    }

    /// Reports all steps with their records. Returns whether all records could be named.
    async fn report(mut self, items: &mut Items, is_json: bool) -> Result<bool, Failure> {
        let mut all_named = true;
        for step in &self.steps {
            let records = match &step.anomaly {
                Some(anomaly) => self.finder.look_for_records(anomaly).await,
                None => RecordLosses::default(),
            };
            all_named &= !records.is_failed();
            if is_json {
                items.write_item(&records.attach_to(step), String::new)?;
            } else if let Some(anomaly) = &step.anomaly
                && !damaged_ranges(anomaly).is_empty()
            {
                items.write_line(&records.below_line(describe::describe_anomaly(anomaly)))?;
            }
        }
        Ok(all_named)
    }
}

impl Outcomes {
    fn note(&mut self, step: &Step) {
        *self.outcomes.entry(step.outcome).or_default() += 1;
        self.bytes_moved = self.bytes_moved.saturating_add(step.bytes_moved);
    }

    fn exit(&self) -> Exit {
        let bad = |outcome: &RepairOutcome| match outcome {
            RepairOutcome::Lost
            | RepairOutcome::Waiting
            | RepairOutcome::Officer
            | RepairOutcome::Failed => true,
            RepairOutcome::Planned
            | RepairOutcome::Progress
            | RepairOutcome::Repaired
            | RepairOutcome::Nothing => false,
        };
        if self.outcomes.keys().any(bad) {
            Exit::Failed
        } else {
            Exit::Done
        }
    }

    fn summary(&self) -> String {
        if self.outcomes.is_empty() {
            return "nothing is filed that could be repaired".to_owned();
        }
        let counts: Vec<String> = self
            .outcomes
            .iter()
            .map(|(outcome, count)| format!("{count} {}", words(*outcome)))
            .collect();
        format!(
            "{}; {} moved",
            counts.join(", "),
            size_text(self.bytes_moved)
        )
    }
}

const fn words(outcome: RepairOutcome) -> &'static str {
    match outcome {
        RepairOutcome::Planned => "planned",
        RepairOutcome::Progress => "under way",
        RepairOutcome::Repaired => "repaired",
        RepairOutcome::Lost => "lost",
        RepairOutcome::Waiting => "waiting",
        RepairOutcome::Nothing => "with nothing to do",
        RepairOutcome::Officer => "for an officer to decide",
        RepairOutcome::Failed => "failed",
    }
}

fn subject(step: &Step) -> String {
    match &step.anomaly {
        Some(anomaly) => format!("{} in {}", anomaly.file, anomaly.replica),
        None => "repair".to_owned(),
    }
}

fn line(step: &Step) -> String {
    let outcome = step.outcome.as_str();
    let mut line = format!("{outcome:<8}");
    match (&step.anomaly, step.what.as_str()) {
        (Some(anomaly), "") => line = format!("{line}  {}", describe::describe_anomaly(anomaly)),
        (Some(anomaly), what) => {
            line = format!("{line}  {} -> {what}", describe::describe_anomaly(anomaly));
        }
        (None, what) => line = format!("{line}  {what}"),
    }
    if step.bytes_moved > 0 {
        line = format!("{line}, {} moved", size_text(step.bytes_moved));
    }
    if let Some(attic) = &step.attic {
        line = format!("{line}, replaced groups in attic {attic}");
    }
    line
}

#[cfg(test)]
mod tests {
    use archive_model::{AnomalyClass, AnomalyState};
    use tools_terminal::testing::filed_anomaly;

    use super::*;

    fn step(outcome: RepairOutcome) -> Step {
        Step {
            outcome,
            file: None,
            anomaly: Some(Box::new(filed_anomaly(
                AnomalyClass::Missing,
                AnomalyState::Open,
            ))),
            what: "copied from one".into(),
            bytes_moved: 160_000,
            bytes_verified: 0,
            attic: None,
        }
    }

    /// Fails if a repair exits with 0 although one file is lost, waits or failed, because the others were repaired.
    #[test]
    fn unrepaired_file_is_a_failure() {
        for (outcome, exit) in [
            (RepairOutcome::Repaired, Exit::Done),
            (RepairOutcome::Planned, Exit::Done),
            (RepairOutcome::Nothing, Exit::Done),
            (RepairOutcome::Lost, Exit::Failed),
            (RepairOutcome::Waiting, Exit::Failed),
            (RepairOutcome::Officer, Exit::Failed),
            (RepairOutcome::Failed, Exit::Failed),
        ] {
            let mut outcomes = Outcomes::default();
            outcomes.note(&step(RepairOutcome::Repaired));
            outcomes.note(&step(outcome));
            assert_eq!(outcomes.exit(), exit, "{outcome}");
        }
        assert_eq!(Outcomes::default().exit(), Exit::Done);
    }

    /// Fails if the summary of a repair leaves out an outcome, or the bytes that one of its steps moved.
    #[test]
    fn repair_outcome_is_reported() {
        let mut outcomes = Outcomes::default();
        outcomes.note(&step(RepairOutcome::Repaired));
        outcomes.note(&step(RepairOutcome::Lost));
        assert_eq!(outcomes.summary(), "1 repaired, 1 lost; 320.0 kB moved");
        assert_eq!(
            line(&step(RepairOutcome::Repaired)),
            "repaired  missing      a.warc.gz  two -> copied from one, 160.0 kB moved"
        );
    }

    /// Fails if the command that is shown to release the brake has `NAME...` in it, drops the names that
    /// were given, or shows one bare that the shell reads otherwise.
    #[test]
    fn the_brake_names_the_command_that_confirms() {
        let name = |text: &str| FileName::new(text).unwrap();
        let order = |names: &[&str]| RepairOrder {
            names: names.iter().map(|text| name(text)).collect(),
            ..RepairOrder::default()
        };
        let own = "21 files; look why, then `holdfast repair NAME... --confirm 21`";
        assert_eq!(
            braked(&order(&["a-1.warc.gz", "it's a"]), own).message,
            r"21 files; look why, then `holdfast repair a-1.warc.gz 'it'\''s a' --confirm 21`"
        );
        let said = braked(&order(&[]), "too many").message;
        assert!(
            said.starts_with("too many; look at it with `holdfast repair --all --dry-run`"),
            "{said}"
        );
        assert!(
            said.ends_with("`holdfast repair --all --confirm COUNT`"),
            "{said}"
        );
    }
}
