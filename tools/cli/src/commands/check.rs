//! `holdfast check`: is everything there, is it intact.

use std::collections::BTreeMap;
use std::path::PathBuf;

use archive_client::Preservation;
use archive_client::preservation::{ArchiveSteps, CheckKind, CheckOrder};
use archive_model::{
    AnomalyState, CheckProgress, CheckStep, FiledAnomaly, NamePattern, ReplicaId, ReplicaReport,
};
use clap::{Args, Subcommand};
use serde::Serialize;
use tools_terminal::bars::{Bars, ProgressUnit};
use tools_terminal::context::CommandContext;
use tools_terminal::describe;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::items::Items;
use tools_terminal::list::{file_name, read_names};
use tools_terminal::output::tell_user;
use tools_terminal::session::Session;

/// Compare the replicas with what was admitted
///
/// Prints every anomaly as it is found (kind, file, replica, problem), then a summary of each replica. Anomalies are
/// filed (see `holdfast anomalies`). Nothing is repaired: a check that a person asks for never starts a repair. Needs
/// the role officer.
///
/// The exit code is 0 if every replica answered and nothing is wrong, and 1 if there are anomalies, or if a node or
/// volume could not be asked, which is then named.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  holdfast check files
  holdfast check files --replica two --match '12-.*'
  holdfast check checksums 12-34-20260101-00001.warc.gz --challenge
  holdfast check checksums --names suspects.txt --json")]
pub(crate) enum Check {
    /// Compare what the replicas list
    ///
    /// Compares names, sizes, and what the nodes know of each file. Reads no file. Needs the role officer. The exit
    /// code is 1 if something is wrong, or if a node or volume could not be asked.
    #[command(after_help = "Examples:
  holdfast check files
  holdfast check files --replica two --challenge")]
    Files(Selection),
    /// Compare the bytes too
    ///
    /// Every copy is read again from the disk of its node, past the page cache. This takes as long as reading the
    /// files. Needs the role officer. The exit code is 1 if something is wrong, or if a node or volume could not be
    /// asked.
    #[command(after_help = "Examples:
  holdfast check checksums --replica two
  holdfast check checksums 12-34-20260101-00001.warc.gz")]
    Checksums(Selection),
}

/// The files and replicas that a check looks at.
#[derive(Debug, Args)]
pub(crate) struct Selection {
    /// Only these files [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Only the files that this list names, one on each line
    #[arg(long = "names", value_name = "FILE")]
    list: Option<PathBuf>,
    /// Only this replica [default: every replica]
    #[arg(long, value_name = "ID")]
    replica: Option<ReplicaId>,
    /// Only files whose whole name matches this regular expression [default: every file]
    #[arg(long = "match", value_name = "REGEX")]
    matching: Option<NamePattern>,
    /// Also ask every copy for random groups with their proofs: a node has to read them from its disk
    #[arg(long)]
    challenge: bool,
}

/// The result of a check, without the anomalies.
#[derive(Debug, Default, Serialize)]
struct CheckSummary {
    replicas: Vec<ReplicaReport>,
    /// Anomalies that were shown and that are not accepted.
    open: u64,
    /// Anomalies that were shown, of each replica.
    #[serde(skip)]
    shown: BTreeMap<ReplicaId, u64>,
}

impl Check {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let (kind, unit, selection) = match self {
            Self::Files(selection) => (CheckKind::Files, ProgressUnit::Files, selection),
            Self::Checksums(selection) => (CheckKind::Checksums, ProgressUnit::Bytes, selection),
        };
        let order = selection.order(kind)?;
        let session = Session::open(&context.global)?;
        let keeper = session.keeper();
        let steps = keeper.check(&order).await;
        let mut steps = steps.map_err(|error| session.failure(error))?;
        let mut items = Items::begin_items(&context.output, "anomalies")?;
        let mut summary = CheckSummary::default();
        let mut bars = Bars::new(!context.output.is_json());
        let ended = summary
            .follow(&mut steps, &mut items, &mut bars, unit)
            .await;
        bars.finish_bars();
        let ended = ended?;
        summary.summarise(&mut items)?;
        let exit = summary.exit();
        let complete = summary.is_complete();
        items.end_items(complete, summary, ended, exit)
    }
}

impl Selection {
    fn order(self, kind: CheckKind) -> Result<CheckOrder, Failure> {
        let mut names = self
            .names
            .iter()
            .map(|text| file_name(text))
            .collect::<Result<Vec<_>, _>>()?;
        if let Some(path) = &self.list {
            names.extend(read_names(path)?);
        }
        Ok(CheckOrder {
            kind,
            names,
            matching: self.matching.map(|pattern| pattern.to_string()),
            replica: self.replica,
            challenge: self.challenge,
        })
    }
}

impl CheckSummary {
    /// Follows a check to its end. The outer failure: nothing can be written any more.
    async fn follow(
        &mut self,
        steps: &mut ArchiveSteps<CheckStep>,
        items: &mut Items,
        bars: &mut Bars,
        unit: ProgressUnit,
    ) -> Result<Result<(), Failure>, Failure> {
        loop {
            match steps.next().await {
                Ok(Some(CheckStep::Progress(progress))) => show(bars, unit, &progress),
                Ok(Some(CheckStep::Anomaly(anomaly))) => {
                    self.note(&anomaly);
                    bars.suspend(|| items.write_item(&anomaly, || line(&anomaly)))?;
                }
                Ok(Some(CheckStep::Report(report))) => {
                    bars.end_bar(report.replica.as_str());
                    self.replicas.push(report);
                }
                Ok(None) => return Ok(Ok(())),
                Err(error) => return Ok(Err(error.into())),
            }
        }
    }

    fn note(&mut self, anomaly: &FiledAnomaly) {
        if anomaly.state == AnomalyState::Open {
            self.open += 1;
        }
        *self.shown.entry(anomaly.replica.clone()).or_default() += 1;
    }

    /// Returns the replicas whose report counts more anomalies than were shown, and how many more.
    fn unshown(&self) -> impl Iterator<Item = (&ReplicaReport, u64)> {
        self.replicas.iter().filter_map(|report| {
            let counted = report
                .anomalies
                .values()
                .fold(0, |sum: u64, n| sum.saturating_add(*n));
            let shown = self.shown.get(&report.replica).copied().unwrap_or_default();
            counted
                .checked_sub(shown)
                .filter(|unshown| *unshown > 0)
                .map(|unshown| (report, unshown))
        })
    }

    fn is_complete(&self) -> bool {
        self.replicas.iter().all(|report| report.gaps.is_empty())
    }

    fn exit(&self) -> Exit {
        let is_all_stored = self.replicas.iter().all(|report| report.not_stored == 0);
        let is_all_shown = self.unshown().next().is_none();
        if self.open == 0 && self.is_complete() && is_all_shown && is_all_stored {
            Exit::Done
        } else {
            Exit::Failed
        }
    }

    fn summarise(&self, items: &mut Items) -> Result<(), Failure> {
        for report in &self.replicas {
            items.write_line(&summary(report))?;
        }
        for gap in self.replicas.iter().flat_map(|report| &report.gaps) {
            tell_user(&format!(
                "not checked: {}; see `holdfast status`",
                describe::describe_gap(gap)
            ));
        }
        for (report, unshown) in self.unshown() {
            let replica = &report.replica;
            tell_user(&format!(
                "replica {replica} has {unshown} further anomalies that were not shown; see `holdfast anomalies --all`"
            ));
        }
        Ok(())
    }
}

fn show(bars: &mut Bars, unit: ProgressUnit, progress: &CheckProgress) {
    let (done, total) = match unit {
        ProgressUnit::Files => (progress.files, progress.files_total),
        ProgressUnit::Bytes => (progress.bytes, progress.bytes_total),
    };
    bars.step_bar(progress.replica.as_str(), unit, done, total);
}

fn line(anomaly: &FiledAnomaly) -> String {
    let line = describe::describe_anomaly(anomaly);
    match anomaly.state {
        AnomalyState::Open => line,
        AnomalyState::Accepted | AnomalyState::Closed => format!("{line} [{}]", anomaly.state),
    }
}

/// Returns the line of a replica: `replica one: 300 files, 298 intact, 1 withdrawn; 1 missing`.
fn summary(report: &ReplicaReport) -> String {
    let ReplicaReport {
        replica,
        files,
        intact,
        withdrawn,
        not_stored,
        anomalies,
        gaps,
    } = report;
    let mut said = format!("replica {replica}: {files} files, {intact} intact");
    if *withdrawn > 0 {
        said = format!("{said}, {withdrawn} withdrawn");
    }
    if *not_stored > 0 {
        said = format!("{said}, {not_stored} not stored here");
    }
    let wrong: Vec<String> = anomalies
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    if !wrong.is_empty() {
        said = format!("{said}; {}", wrong.join(", "));
    }
    if !gaps.is_empty() {
        said = format!("{said}; NOT COMPLETE");
    }
    said
}

#[cfg(test)]
mod tests {
    use archive_model::{AnomalyClass, Gap};
    use tools_terminal::testing::filed_anomaly;

    use super::*;

    fn report(anomalies: &[(AnomalyClass, u64)], gaps: Vec<Gap>) -> ReplicaReport {
        ReplicaReport {
            replica: "two".parse().unwrap(),
            files: 3,
            intact: 2,
            withdrawn: 0,
            not_stored: 0,
            anomalies: anomalies.iter().copied().collect(),
            gaps,
        }
    }

    fn check_summary(shown: &[AnomalyState], reports: Vec<ReplicaReport>) -> CheckSummary {
        let mut summary = CheckSummary::default();
        for state in shown {
            summary.note(&filed_anomaly(AnomalyClass::Missing, *state));
        }
        summary.replicas = reports;
        summary
    }

    /// Fails if a check exits with 0 although a replica has a gap, or although its report counts more anomalies than
    /// were listed.
    #[test]
    fn zero_means_nothing_wrong_and_nothing_unknown() {
        let gap = || Gap {
            replica: "two".parse().unwrap(),
            node: None,
            volume: None,
            reason: "silent".into(),
        };
        let one = [(AnomalyClass::Missing, 1)];
        let not_stored = ReplicaReport {
            not_stored: 1,
            ..report(&[], vec![])
        };
        assert_eq!(
            summary(&not_stored),
            "replica two: 3 files, 2 intact, 1 not stored here"
        );
        for (shown, report, exit) in [
            (&[] as &[_], report(&[], vec![]), Exit::Done),
            (&[AnomalyState::Accepted], report(&one, vec![]), Exit::Done),
            (&[AnomalyState::Open], report(&one, vec![]), Exit::Failed),
            (&[], report(&one, vec![]), Exit::Failed),
            (&[], report(&[], vec![gap()]), Exit::Failed),
            (&[], not_stored, Exit::Failed),
        ] {
            assert_eq!(
                check_summary(shown, vec![report.clone()]).exit(),
                exit,
                "{shown:?} {report:?}"
            );
        }
    }

    /// Fails if the summary of a replica with a gap reads like a complete one, or does not count withdrawn files apart.
    #[test]
    fn a_summary_says_whether_it_is_all() {
        let whole = report(
            &[(AnomalyClass::Missing, 1), (AnomalyClass::Lost, 0)],
            vec![],
        );
        assert_eq!(summary(&whole), "replica two: 3 files, 2 intact; 1 missing");
        let withdrawn = ReplicaReport {
            withdrawn: 1,
            gaps: vec![Gap {
                replica: "two".parse().unwrap(),
                node: None,
                volume: None,
                reason: String::new(),
            }],
            ..report(&[], vec![])
        };
        assert_eq!(
            summary(&withdrawn),
            "replica two: 3 files, 2 intact, 1 withdrawn; NOT COMPLETE"
        );
    }
}
