//! The moves of a plan into a damaged copy: groups from other replicas.

use std::sync::Arc;

use archive_decisions::repair::{ContentState, RepairPlan, ReplicaContent};
use archive_model::{
    AnomalyKind, CopyPlace, CopySelector, FileContent, FileCopy, FileName, Finder, Groups,
    MendOrder, NodeId, NodeKey, ReplicaId,
};
use archive_replicas::{MendAnswer, MendCall};
use archive_rpc::{CallError, CallErrorKind};
use archive_stores::assemble::{AssembledPart, Assembly, Donor};
use archive_stores::limits;

use super::{RepairCase, RepairContext, RepairOutcome, RepairReport};
use crate::preserver::{LookContext, Preserver};

/// The outcome of sending groups.
enum SendOutcome {
    /// The node has read the mended copy back.
    Mended { copy: FileCopy, attic: String },
    /// No donor gives these bytes. The copy is as it was.
    Refused { is_unknown: bool, said: String },
}

impl Preserver {
    /// Moves groups into the damaged copy. Returns `None` if donors were not as expected: plan again.
    pub(super) async fn copy_groups(
        &self,
        case: &RepairCase,
        plan: &RepairPlan,
        copies: &[(ReplicaContent, Option<NodeId>)],
        repair_context: &RepairContext,
        progress: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<Option<RepairReport>, CallError> {
        let Some(place) = &case.place else {
            return Ok(None);
        };
        let size = case.wanted.size;
        let order = mend_order(case, place, plan, repair_context);
        let ranges: Vec<_> = order.groups.byte_ranges(size).collect();
        let donors = donors(plan, copies, size);
        let mut reading = self
            .archive
            .assembler
            .read_range(case.wanted.clone(), donors, ranges);
        let sent = self.send(place, &order, &mut reading, case, repair_context, progress);
        let sent = sent.await;
        for (donor, bytes) in reading.sent() {
            self.instruments.count_moved(donor, *bytes);
        }
        let damaged = reading.damaged_copies();
        for (donor, node) in &damaged {
            self.look_at_donor(case, donor, node.as_ref(), repair_context)
                .await?;
        }
        let report = match sent {
            Err(error) => refused(&error),
            Ok(SendOutcome::Refused {
                is_unknown: false, ..
            }) if !damaged.is_empty() => return Ok(None),
            Ok(SendOutcome::Refused { is_unknown, said }) => without_donor(is_unknown, &said),
            Ok(SendOutcome::Mended { copy, attic }) => {
                let what = format!(
                    "{}; the replaced ones are in the attic as {attic}",
                    given(&case.patient.replica, &order, &reading)
                );
                let outcome = self
                    .file_mended(case, &order, &copy, &what, repair_context)
                    .await?;
                RepairReport {
                    attic,
                    ..RepairReport::new(outcome, what)
                }
            }
        };
        Ok(Some(RepairReport {
            moved: reading.sent().values().sum(),
            ..report
        }))
    }

    /// Notes and files the copy that a node has mended and read back. Returns the outcome of the repair.
    async fn file_mended(
        &self,
        case: &RepairCase,
        order: &MendOrder,
        copy: &FileCopy,
        what: &str,
        repair_context: &RepairContext,
    ) -> Result<RepairOutcome, CallError> {
        let replica = &case.patient.replica;
        let file = &case.patient.file;
        self.note_repair(file, repair_context, format!("repaired {what}"))
            .await?;
        self.instruments.repaired_groups.inc_by(order.groups.len());
        let look_context = self.look_context(repair_context);
        self.file_verified(replica, file, copy, &look_context)
            .await?;
        if copy.is_unexpected() {
            // Its sidecar is another file's, or cannot be read.
            let content = FileContent {
                root: order.root,
                size: case.patient.size,
            };
            let giving = self.give_admission(file, replica, content, repair_context);
            return Ok(Box::pin(giving).await?.outcome);
        }
        Ok(if copy.is_present() {
            RepairOutcome::Repaired
        } else {
            RepairOutcome::Failed
        })
    }

    /// Reads groups and sends them on, has the node put them into the copy, and waits until it has read them back.
    async fn send(
        &self,
        place: &CopyPlace,
        order: &MendOrder,
        reading: &mut Assembly,
        case: &RepairCase,
        repair_context: &RepairContext,
        progress: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<SendOutcome, CallError> {
        let at = NodeKey {
            replica: case.patient.replica.clone(),
            node: place.node.clone(),
        };
        let opening = self.archive.calls.replicas.begin_mend(&at, order);
        let (mut mending, call) = self.archive.calls.answered_call(opening).await?;
        let exchange = async {
            match self.send_groups(reading, &mending).await {
                Ok(None) => {}
                Ok(Some(refused)) => return Ok(refused),
                Err(broken) => return Err(self.reason(&mut mending, broken).await),
            }
            let what = format!(
                "to be repaired on volume {} of node {}: {}",
                place.volume,
                place.node,
                given(&at.replica, order, reading)
            );
            // Recorded before it is done: no act may be missing from the trail. Until the end of the groups the node
            // changes nothing.
            self.note_repair(&order.name, repair_context, what).await?;
            if let Err(broken) = self.archive.calls.taken_call(mending.close_mend()).await {
                return Err(self.reason(&mut mending, broken).await);
            }
            let limit = limits::write_limit(case.wanted.size);
            loop {
                match self
                    .archive
                    .calls
                    .within_limit(limit, mending.next())
                    .await?
                {
                    MendAnswer::Progress(bytes) => progress(bytes),
                    MendAnswer::Done { copy, attic } => {
                        return Ok(SendOutcome::Mended { copy, attic });
                    }
                }
            }
        };
        tokio::pin!(call);
        let mut exchange = Box::pin(exchange);
        tokio::select! {
            biased;
            ended = &mut exchange => return ended,
            () = &mut call => {}
        }
        // The call has ended, and its answer has come.
        exchange.await
    }

    /// Returns why a node ended a repair before it had everything: its answer, or else `broken`, if no answer comes.
    async fn reason(&self, mending: &mut MendCall, broken: CallError) -> CallError {
        let calls = &self.archive.calls;
        let said = calls
            .clock
            .run_with_timeout(calls.stall, mending.next())
            .await;
        said.ok().and_then(Result::err).unwrap_or(broken)
    }

    /// Sends every group to the node. A group that no donor gives ends the repair before anything was changed.
    async fn send_groups(
        &self,
        reading: &mut Assembly,
        mending: &MendCall,
    ) -> Result<Option<SendOutcome>, CallError> {
        while let Some(part) = reading.next().await {
            match part {
                AssembledPart::Proven(proven) => {
                    let sending =
                        mending.send_segment(proven.offset, proven.length, proven.encoded);
                    self.archive.calls.taken_call(sending).await?;
                }
                AssembledPart::Refused(group) => {
                    return Ok(Some(SendOutcome::Refused {
                        is_unknown: !group.unknown.is_empty(),
                        said: group.said,
                    }));
                }
            }
        }
        Ok(None)
    }

    /// Has the copy of a donor that showed damage read whole, and files the result before the next plan.
    async fn look_at_donor(
        &self,
        case: &RepairCase,
        donor: &ReplicaId,
        node: Option<&NodeId>,
        repair_context: &RepairContext,
    ) -> Result<(), CallError> {
        let Some(node) = node else {
            return Ok(());
        };
        let selector = CopySelector {
            replica: donor,
            node,
            volume: None,
        };
        let file = &case.wanted.name;
        let size = case.wanted.size;
        let look_context = self.look_context(repair_context);
        let reading = self.verify_and_file(selector, file, size, &look_context, |_| {});
        if let Err(error) = reading.await? {
            tracing::warn!(%file, %donor, %node, %error, "cannot look at a damaged donor");
        }
        Ok(())
    }

    pub(super) fn look_context(&self, repair_context: &RepairContext) -> LookContext {
        let is_own = repair_context.who == self.who;
        LookContext {
            who: Arc::clone(&repair_context.who),
            finder: if is_own {
                Finder::ScheduledCheck
            } else {
                Finder::Check
            },
            is_second: false,
        }
    }

    /// Adds a line about a repair to the audit trail, with the reason of its order.
    pub(super) async fn note_repair(
        &self,
        file: &FileName,
        repair_context: &RepairContext,
        what: String,
    ) -> Result<(), CallError> {
        let RepairContext { who, why, .. } = repair_context;
        let who = who.to_string();
        let file = Some(file.clone());
        self.archive
            .note_line(who, file, format!("{what}; {why}"))
            .await
    }
}

/// Returns the order to put the groups of a plan into the damaged copy.
fn mend_order(
    case: &RepairCase,
    place: &CopyPlace,
    plan: &RepairPlan,
    repair_context: &RepairContext,
) -> MendOrder {
    let pieces = plan.to_verify(case.wanted.size);
    let groups = pieces
        .iter()
        .fold(Groups::none(), |all, (_, groups)| all.union(groups));
    MendOrder {
        name: case.patient.file.clone(),
        volume: Some(place.volume.clone()),
        root: case.wanted.root,
        groups,
        who: repair_context.who.to_string(),
        why: repair_context.why.clone(),
    }
}

/// Reports that the node did not accept the groups.
fn refused(error: &CallError) -> RepairReport {
    let outcome = if error.kind == CallErrorKind::Busy {
        RepairOutcome::Waiting
    } else {
        RepairOutcome::Failed
    };
    let what = format!("the node did not accept the groups: {}", error.reason);
    RepairReport::new(outcome, what)
}

/// Reports that no donor gave some group; `is_unknown` if one that could not be asked may have it.
fn without_donor(is_unknown: bool, said: &str) -> RepairReport {
    let outcome = if is_unknown {
        RepairOutcome::Waiting
    } else {
        RepairOutcome::Failed
    };
    let what = format!("no donor gives the needed groups: {said}");
    RepairReport::new(outcome, what)
}

/// Describes which groups of a copy are replaced, and how many bytes came from each donor.
fn given(replica: &ReplicaId, order: &MendOrder, reading: &Assembly) -> String {
    let given = reading.sent().iter();
    let given: Vec<String> = given
        .map(|(donor, bytes)| format!("{bytes} bytes from {donor}"))
        .collect();
    let groups = AnomalyKind::Corrupt(order.groups.clone()).to_string();
    format!(
        "{} of {replica}: {}",
        groups.replacen("corrupt ", "", 1),
        given.join(", ")
    )
}

/// Returns the donors of the groups in the order of the plan, and then all others that have the file, for groups that
/// the planned donors lack.
fn donors(plan: &RepairPlan, copies: &[(ReplicaContent, Option<NodeId>)], size: u64) -> Vec<Donor> {
    let planned: Vec<_> = plan
        .to_verify(size)
        .into_iter()
        .map(|(id, _)| id.clone())
        .collect();
    let place = |id| planned.iter().position(|planned| planned == id);
    let mut known: Vec<_> = copies
        .iter()
        .filter_map(|(copy, node)| {
            let bad = match &copy.state {
                ContentState::Intact => Groups::none(),
                ContentState::Damaged(bad) => bad.clone(),
                ContentState::Absent | ContentState::Other(_) | ContentState::Unreachable => {
                    return None;
                }
            };
            let rank = place(&copy.replica).unwrap_or(usize::MAX);
            Some((rank, copy.replica.clone(), node.clone(), bad))
        })
        .collect();
    known.sort_by_key(|(rank, ..)| *rank);
    known
        .into_iter()
        .map(|(_, replica, node, bad)| Donor { replica, node, bad })
        .collect()
}
