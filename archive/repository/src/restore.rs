//! Restore of the admin data from the replicas: every node of every replica is asked for the admissions beside its
//! files.
//!
//! The nodes' answers are sorted by name and read in parallel, so that memory holds one page of each. The monitors say
//! which nodes there are; the report names them, because no other part remembers them. Removals by people are read
//! first, and kept in memory. Not promised: that a removal is found whose copy was also destroyed in the attic. An
//! export has it.
//!
//! # Errors
//! A [`RestoreError`]: the export is damaged, a setting or certificate cannot be used, or the admin data cannot be
//! written.

#![expect(
    clippy::result_large_err,
    reason = "a restore fails once, and reports all that is known"
)]

mod node_answers;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use archive_daemon::{Clock, StartError};
use archive_ledger::admin::{AdminRow, AuditLine, NodeRow};
use archive_ledger::restore::combine::{AdmissionRule, NameVerdict, RemovedCopy};
use archive_ledger::restore::{
    FromExport, PartialRestore, RestoreError, RestoreFindings, begin_export, refuse_if_there,
    restored_line, trust_file,
};
use archive_ledger::standing::StandingView;
use archive_model::{FileName, Gap, NodeId, NodeKey, NodeState, ReplicaId};
use archive_part::{PartSettings, read_credentials};
use archive_proof::TrustFile;
use archive_replicas::{Dialer, Replicas};
use archive_rpc::{CallError, RpcLimits};
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

use crate::settings::Settings;
use node_answers::NodeAnswers;

/// The longest silence of a monitor or node.
const PATIENCE: Duration = Duration::from_mins(1);

/// The gaps that a restore may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllowedGaps {
    /// Whether damaged lines of the export may be left out.
    pub skip_damaged: bool,
    /// Whether nodes and volumes that do not answer may be left out.
    pub partial: bool,
}

/// The report of a restore from the replicas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestoreReport {
    /// Every node that was asked.
    pub nodes: Vec<NodeKey>,
    /// The number of files that were restored.
    pub files: u64,
    /// The number of restored files that are not in every replica that shall have them.
    pub incomplete: u64,
    /// Copies that two persons had removed, as their nodes report without proof: they stay withdrawn.
    pub removed: RestoreFindings,
    /// Files with copies that were removed, as the audit log says that is still there: they stay withdrawn.
    pub logged: RestoreFindings,
    /// Names under which valid admissions contradict each other.
    pub contradicting: RestoreFindings,
    /// Names without any valid admission.
    pub unsigned: RestoreFindings,
    /// Parts that did not answer, or not completely.
    pub silent: RestoreFindings,
    /// Whether admin data were written.
    pub written: bool,
}

/// Restores the admin data of a stopped repository from its replicas. If a node or volume did not answer, nothing is
/// written unless `partial` is set.
pub async fn from_replicas(
    settings: &Settings,
    partial: bool,
    clock: Clock,
) -> Result<RestoreReport, RestoreError> {
    let work = Work::new(settings, clock)?;
    spawn_blocking(move || work.run(partial, None)).await?
}

/// Restores the admin data from an export, and then from the admissions in the replicas the files that the export
/// lacks. For a file that the export has, the export decides, except what two persons have removed since. Writes both
/// or nothing.
pub async fn from_both(
    settings: &Settings,
    export: &Path,
    allowed: AllowedGaps,
    clock: Clock,
) -> Result<(FromExport, RestoreReport), RestoreError> {
    let now = clock.now();
    let work = Work::new(settings, clock)?;
    let export = export.to_owned();
    let both = spawn_blocking(move || {
        let (mut report, begun) = begin_export(
            work.settings.repository.restore_target(),
            &export,
            allowed.skip_damaged,
            now,
        )?;
        let Some(begun) = begun else {
            return Ok((report, RestoreReport::default()));
        };
        let found = work.run(allowed.partial, Some(begun))?;
        report.written = found.written;
        Ok((report, found))
    });
    both.await?
}

struct Work {
    settings: Settings,
    trust: TrustFile,
    replicas: Arc<Replicas>,
    clock: Clock,
    runtime: Handle,
}

impl Work {
    fn new(settings: &Settings, clock: Clock) -> Result<Self, RestoreError> {
        let own = &settings.repository;
        refuse_if_there(&own.data)?;
        let refused = |error: StartError| RestoreError::Settings(error.to_string());
        settings
            .check_values()
            .map_err(|error| refused(error.into()))?;
        let trust = trust_file(&own.trust)?;
        let credentials = read_credentials(settings, clock.now()).map_err(refused)?;
        let dialer = Dialer::new(credentials, RpcLimits::default());
        let replicas = Replicas::new(
            &settings.replicas,
            dialer,
            StandingView::default(),
            clock.clone(),
        );
        let replicas =
            Arc::new(replicas.map_err(|error| RestoreError::Settings(error.to_string()))?);
        Ok(Self {
            settings: settings.clone(),
            trust,
            replicas,
            clock,
            runtime: Handle::current(),
        })
    }

    fn run(
        &self,
        partial: bool,
        begun: Option<PartialRestore>,
    ) -> Result<RestoreReport, RestoreError> {
        let own = &self.settings.repository;
        let mut begun = match begun {
            Some(begun) => begun,
            None => PartialRestore::begin_restore(&own.data)?,
        };
        begun.restoring.settle_load()?;
        let mut report = RestoreReport::default();
        let mut nodes = self.node_answers(&mut report);
        let removed = self.removed(&nodes, &mut report);
        let specs = self.settings.replica_specs();
        let rule = AdmissionRule {
            archive: &own.archive,
            trust: &self.trust,
            specs: &specs,
            now: self.clock.now(),
        };
        let merged = self.merge(&mut nodes, removed, rule, &mut begun, &mut report);
        let written =
            merged.and_then(|()| begun.withdraw_logged(&own.archive, rule.now, &mut report.logged));
        if written.is_err() || (report.silent.count > 0 && !partial) || report.nodes.is_empty() {
            begun.restoring.abandon_restore(&own.data)?;
            written?;
            return Ok(report);
        }
        for NodeKey { replica, node } in &report.nodes {
            if begun.restoring.has_node(replica, node)? {
                // The export knows whether it was retired.
                continue;
            }
            begun
                .restoring
                .restore_node(replica.clone(), node.clone(), &NodeRow::default())?;
        }
        let what = format!(
            "admin data re-established from the admissions of {} nodes: {} files; left out: {} contradicting, {} \
             without a valid admission; {} copies stay removed, unproven, and {} as the audit log says",
            report.nodes.len(),
            report.files,
            report.contradicting.count,
            report.unsigned.count,
            report.removed.count,
            report.logged.count
        );
        begun.add_line(&restored_line(&own.archive, self.clock.now(), what))?;
        begun.restoring.finish_restore(self.clock.now())?;
        report.written = true;
        Ok(report)
    }

    /// Asks every node of every replica.
    fn node_answers(&self, report: &mut RestoreReport) -> Vec<NodeAnswers> {
        let mut all = Vec::new();
        for spec in &self.settings.replicas {
            // No part knows any more which nodes to miss.
            self.replicas.set_members(&spec.id, Vec::new());
            let asked = self.replicas.nodes_in_service(&spec.id);
            let nodes = match self.wait(asked) {
                Ok(nodes) if !nodes.is_empty() => nodes,
                Ok(_) => {
                    let why =
                        "its monitor has heard of no node yet; start the nodes, then try again";
                    report
                        .silent
                        .add_finding(format!("replica {}", spec.id), why);
                    continue;
                }
                Err(why) => {
                    report
                        .silent
                        .add_finding(format!("replica {}", spec.id), why);
                    continue;
                }
            };
            for NodeState { node, .. } in nodes {
                let about = format!("node {node} of replica {}", spec.id);
                report.nodes.push(NodeKey {
                    replica: spec.id.clone(),
                    node: node.clone(),
                });
                match self.wait(self.replicas.read_admissions(&spec.id, &node)) {
                    Ok(stream) => all.push(NodeAnswers::new(spec.id.clone(), node, stream)),
                    Err(why) => report.silent.add_finding(about, why),
                }
            }
        }
        all
    }

    /// Asks every node that answers for the removals by people.
    fn removed(&self, nodes: &[NodeAnswers], report: &mut RestoreReport) -> RemovalsByName {
        let mut removed = RemovalsByName::new();
        for NodeAnswers { replica, node, .. } in nodes {
            let about = format!("attic of node {node} of replica {replica}");
            let mut tell = |why: String| report.silent.add_finding(about.as_str(), why);
            if let Err(why) = self.removed_from(replica, node, &mut removed, &mut tell) {
                tell(why);
            }
        }
        removed
    }

    fn removed_from(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
        removed: &mut RemovalsByName,
        tell: &mut dyn FnMut(String),
    ) -> Result<(), String> {
        let mut pages = self.wait(self.replicas.list_removals(replica, node))?;
        loop {
            let page = self.wait(pages.next())?.ok_or("its answer was cut off")?;
            for found in page.items {
                match found {
                    Ok(removal) => {
                        let of_name = removed.entry(removal.name.clone());
                        of_name.or_default().push(removal);
                    }
                    Err(why) => tell(why),
                }
            }
            if let Some(gaps) = page.end {
                gaps.iter().map(Gap::to_string).for_each(tell);
                return Ok(());
            }
        }
    }

    fn merge(
        &self,
        nodes: &mut [NodeAnswers],
        mut removed: RemovalsByName,
        rule: AdmissionRule<'_>,
        begun: &mut PartialRestore,
        report: &mut RestoreReport,
    ) -> Result<(), RestoreError> {
        loop {
            for answers in &mut *nodes {
                self.fill(answers, report);
            }
            let heads = nodes.iter().filter_map(|answers| answers.waiting.front());
            let heads = heads.map(|(name, _)| name).chain(removed.keys().next());
            let Some(name) = heads.min().cloned() else {
                return Ok(());
            };
            let removals = removed.remove(&name).unwrap_or_default();
            let mut sightings = Vec::new();
            for answers in &mut *nodes {
                while let Some((_, sighting)) =
                    answers.waiting.pop_front_if(|(head, _)| *head == name)
                {
                    sightings.push(sighting);
                    self.fill(answers, report);
                }
            }
            let known = begun.restoring.restored_row(&name)?;
            let known = known.filter(|row| row.record.content.is_some());
            if let Some(row) = &known {
                let mut row = row.clone();
                let stay = rule.withdraw_removed(&mut row, &sightings, &removals);
                for removal in &stay {
                    report.add_removed(removal);
                }
                if !stay.is_empty() {
                    add_file(begun, &row, rule, "as the export has it, and attics")?;
                }
            }
            let known = known.and_then(|row| row.record.content);
            match (rule.combine_admissions(&name, &sightings, &removals), known) {
                (NameVerdict::File(row), Some(known)) => {
                    let root = row.record.content.map(|content| content.root);
                    if root != Some(known.root) {
                        let root = root.map(|root| root.to_string()).unwrap_or_default();
                        let what = format!(
                            "its root is {} in the export and {root} in the replicas; the export was used",
                            known.root
                        );
                        report.contradicting.add_finding(name.as_str(), what);
                    }
                }
                // The export has decided where the replicas do not agree.
                (NameVerdict::Contradicting(_) | NameVerdict::Unsigned(_), Some(_)) => {}
                (NameVerdict::File(row), None) => {
                    report.files += 1;
                    for removal in &removals {
                        let copy = row.record.replicas.get(&removal.replica);
                        if copy.is_some_and(|copy| copy.state.is_withdrawn()) {
                            report.add_removed(removal);
                        }
                    }
                    let is_everywhere = row.record.open_replicas().next().is_none();
                    report.incomplete += u64::from(!is_everywhere);
                    let source = format!(
                        "from the admission of {} that the replicas keep",
                        row.depositor
                    );
                    add_file(begun, &row, rule, &source)?;
                }
                (NameVerdict::Contradicting(what), None) => {
                    report.contradicting.add_finding(name.as_str(), what);
                }
                (NameVerdict::Unsigned(what), None) => {
                    report.unsigned.add_finding(name.as_str(), what);
                }
            }
        }
    }

    /// Reads on until the next name of a node is known, or its end.
    fn fill(&self, answers: &mut NodeAnswers, report: &mut RestoreReport) {
        while answers.waiting.is_empty() && !answers.is_done {
            if let Err(why) = self.read(answers, report) {
                answers.is_done = true;
                report.silent.add_finding(answers.about(), why);
            }
        }
    }

    fn read(&self, answers: &mut NodeAnswers, report: &mut RestoreReport) -> Result<(), String> {
        let page = self.wait(answers.stream.next())?;
        let page = page.ok_or("its answer was cut off")?;
        for found in page.items {
            answers.count += 1;
            let (name, sighting) = match found {
                Ok(found) => found,
                Err(why) => {
                    report.unsigned.add_finding(answers.about(), why);
                    continue;
                }
            };
            let is_after = answers.last.as_ref().is_none_or(|last| *last <= name);
            if !is_after || sighting.replica != answers.replica || sighting.node != answers.node {
                return Err(format!("its answer is out of order at {name}"));
            }
            answers.last = Some(name.clone());
            answers.waiting.push_back((name, sighting));
        }
        if let Some(gaps) = page.end {
            answers.is_done = true;
            if let Some(count) = answers
                .stream
                .expected_count()
                .filter(|count| *count != answers.count)
            {
                return Err(format!("it sent {} of {count} admissions", answers.count));
            }
            for gap in gaps {
                report.silent.add_finding(answers.about(), gap.to_string());
            }
        }
        Ok(())
    }

    fn wait<T>(&self, asked: impl Future<Output = Result<T, CallError>>) -> Result<T, String> {
        let answered = self
            .runtime
            .block_on(self.clock.run_with_timeout(PATIENCE, asked));
        answered
            .map_err(|late| late.to_string())?
            .map_err(|error| error.reason)
    }
}

impl RestoreReport {
    fn add_removed(&mut self, removal: &RemovedCopy) {
        let what = format!(
            "from replica {}: {}",
            removal.replica,
            removal.unproven_finding()
        );
        self.removed.add_finding(removal.name.as_str(), what);
    }
}

/// Adds a file, with a line in the trail that names the source of its row.
fn add_file(
    begun: &mut PartialRestore,
    row: &AdminRow,
    rule: AdmissionRule<'_>,
    source: &str,
) -> Result<(), RestoreError> {
    let copies = row.record.replicas.iter().map(|(id, copy)| {
        let place = copy.node.as_ref().zip(copy.volume.as_ref());
        let place = place.map(|(node, volume)| format!(" on {node}/{volume}"));
        format!("{id}: {}{}", copy.state, place.unwrap_or_default())
    });
    let line = AuditLine {
        at: rule.now,
        who: format!("repository/{}", rule.archive),
        file: Some(row.record.name.clone()),
        // The states first: as in any other line about a file.
        what: format!(
            "{}; re-established {source}",
            copies.collect::<Vec<_>>().join("; ")
        ),
    };
    begun.restoring.restore_file(row)?;
    begun.add_line(&line)
}

/// The removals by people, by name.
type RemovalsByName = BTreeMap<FileName, Vec<RemovedCopy>>;
