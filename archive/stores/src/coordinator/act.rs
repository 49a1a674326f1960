//! The consequences of decisions: remember them, then do them.

use std::sync::Arc;

use archive_decisions::store::{Effect, FileRecord, RecordedUpload, Requester};
use archive_ledger::admin::{AdminError, AdminRow, AuditLine};
use archive_ledger::custody::FileEvidence;
use archive_model::{ArchiveError, FileName, Groups, ReplicaId};
use archive_proof::Admission;
use jiff::Timestamp;

use super::{Active, Coordinator, CoordinatorError, Step};
use crate::assemble::Donor;
use crate::copier::CopyOrder;
use crate::depositor::{CustodyAnswer, DepositReply, DepositStream};
use crate::transfer::{DepositArrival, StoringFile, UploadVerdict};

/// A decision about a file: the effects that are to be carried out.
pub(super) struct FileDecision {
    pub(super) name: FileName,
    /// The person or part that caused the decision, as `role/name`; `None` if the archive decided by itself.
    pub(super) by: Option<String>,
    pub(super) effects: Vec<Effect>,
}

impl FileDecision {
    /// Whether nobody outside hears of the decision: after a power cut the file is as if its last news had not come.
    pub(super) fn is_quiet(&self) -> bool {
        self.effects
            .iter()
            .all(|effect| matches!(effect, Effect::Persist | Effect::SetTimer(_)))
    }

    pub(super) const fn by_itself(name: FileName, effects: Vec<Effect>) -> Self {
        Self {
            name,
            by: None,
            effects,
        }
    }
}

impl Coordinator {
    /// Remembers every decision of the round, in one synced batch; then does what was decided.
    pub(super) fn act_on_decisions(&mut self, all: Vec<FileDecision>) -> Step<()> {
        let now = self.parts.clock.now();
        let mut changes = self.parts.admin.begin_changes();
        let mut is_changed = false;
        let mut followed = Vec::new();
        // Callers that wait hear that their decision is remembered.
        let mut is_acknowledged = !self.waiting.is_empty();
        for FileDecision { name, by, effects } in &all {
            for effect in effects {
                match effect {
                    Effect::Persist => {
                        let (row, line) = self.row(name, by.as_deref(), now)?;
                        self.parts
                            .admin
                            .put_row(&mut changes, &row)
                            .map_err(AdminError::from)?;
                        if let Some(line) = line {
                            changes.note_line(line);
                        }
                        is_changed = true;
                        if self.followers.has_followers(name) {
                            followed.push(row.record);
                        }
                    }
                    Effect::Expire { .. } => {
                        self.parts
                            .admin
                            .forget_file(&mut changes, name)
                            .map_err(AdminError::from)?;
                        is_changed = true;
                        let active = self.files.get(name);
                        let active = active.filter(|_| self.followers.has_followers(name));
                        followed.extend(active.map(|active| active.state.record().clone()));
                    }
                    Effect::Source { .. }
                    | Effect::Compare { .. }
                    | Effect::BeginUpload { .. }
                    | Effect::Seal
                    | Effect::Probe { .. }
                    | Effect::CopyFrom { .. }
                    | Effect::SetTimer(_) => {}
                    Effect::Answer { requester, result } => {
                        is_acknowledged = true;
                        if let Some(line) = self.find_refusal(name, *requester, result, now) {
                            changes.note_line(line);
                            is_changed = true;
                        }
                    }
                }
            }
        }
        if is_changed {
            let committed = self.parts.admin.commit_unstamped(changes);
            committed.map_err(AdminError::from)?;
        }
        for record in &followed {
            self.followers.tell_followers(record);
        }
        if is_acknowledged {
            self.parts.admin.write_stamp().map_err(AdminError::from)?;
        }
        self.close_returned_copies()?;
        let names: Vec<FileName> = all.iter().map(|decided| decided.name.clone()).collect();
        for FileDecision { name, effects, .. } in all {
            self.perform(&name, effects, now)?;
        }
        for name in names {
            if let Some(active) = self.files.get(&name) {
                self.parts
                    .retries
                    .set_times(&name, active.state.retry_times());
            }
            self.let_go(&name, now);
        }
        Ok(())
    }

    /// Forgets a file that is no longer on its way, or that only waits while too many files are in memory.
    pub(super) fn let_go(&mut self, name: &FileName, now: Timestamp) {
        let is_idle = |active: &&Active| active.state.is_idle();
        if let Some(active) = self.files.get(name).filter(is_idle) {
            if let Some(upload) = &active.state.record().upload {
                self.parts.transfers.resume_points.forget_points(&upload.id);
            }
            self.forget_file(name);
        } else {
            self.leave_out(name, now);
        }
    }

    /// Returns the row of the file as it is now, with the admission signed as soon as the content is known, and its
    /// line of the trail, if that would say something new. The line names who caused the change; what the archive does
    /// by itself is its own doing, not the depositor's.
    fn row(
        &mut self,
        name: &FileName,
        by: Option<&str>,
        now: Timestamp,
    ) -> Step<(AdminRow, Option<AuditLine>)> {
        let absent = || CoordinatorError::Absent(name.clone());
        let active = self.files.get_mut(name).ok_or_else(absent)?;
        let record = active.state.record().clone();
        if active.admission.is_none()
            && let (Some(content), Some(upload)) = (&record.content, &record.upload)
        {
            let admission = Admission {
                archive: self.parts.archive.clone(),
                name: name.clone(),
                size: content.size,
                root: content.root,
                digests: content.digests.clone(),
                depositor: active.depositor.clone(),
                admitted: now,
                upload: upload.id.clone(),
            };
            let envelope = admission
                .sign(&self.parts.key)
                .map_err(|error| sign_error(name, &error))?;
            active.admission = Some(envelope.as_str().into());
        }
        let what = told_states(&record);
        let is_told = active.told.as_ref() == Some(&what);
        active.told = Some(what.clone());
        let line = (!is_told).then(|| AuditLine {
            at: now,
            who: by.map_or_else(
                || format!("repository/{}", self.parts.archive),
                str::to_owned,
            ),
            file: Some(name.clone()),
            what,
        });
        let admission = active.admission.as_deref().map(str::to_owned);
        let row = AdminRow {
            record,
            depositor: active.depositor.clone(),
            admission,
        };
        Ok((row, line))
    }

    fn perform(&mut self, name: &FileName, effects: Vec<Effect>, now: Timestamp) -> Step<()> {
        let mut source: Option<(Requester, Vec<ReplicaId>)> = None;
        for effect in effects {
            match effect {
                Effect::Persist => {}
                Effect::Expire { upload } => {
                    self.parts.transfers.resume_points.forget_points(&upload);
                }
                Effect::Source { requester } => source = Some((requester, Vec::new())),
                Effect::BeginUpload { replica, .. } => {
                    if let Some((_, targets)) = &mut source {
                        targets.push(replica);
                    }
                }
                Effect::Compare { requester } => {
                    if let Some((source, upload)) = self.take_source(name, requester) {
                        self.parts.transfers.compare_content(
                            name.clone(),
                            upload.id,
                            requester,
                            source,
                        );
                    }
                }
                Effect::Seal => {
                    let absent = || CoordinatorError::Absent(name.clone());
                    let active = self.files.get(name).ok_or_else(absent)?;
                    let admission = active.admission.clone().ok_or_else(absent)?;
                    let seal = active.seal.as_ref().ok_or_else(absent)?;
                    seal.send_replace(Some(UploadVerdict::Admitted(admission)));
                }
                Effect::Probe { replica } => {
                    self.parts
                        .copier
                        .probe_replica(name.clone(), replica, self.parts.limits.probe);
                }
                Effect::CopyFrom { replica, donor } => self.copy(name, replica, &donor),
                Effect::Answer { requester, result } => {
                    self.answer(name, requester, result, now)?;
                }
                Effect::SetTimer(at) => {
                    if let Some(active) = self.files.get_mut(name) {
                        if let Some(old) = active.timer.replace(at) {
                            self.timers.remove(&(old, name.clone()));
                        }
                        self.timers.insert((at, name.clone()));
                    }
                }
            }
        }
        let Some((requester, targets)) = source else {
            return Ok(());
        };
        let Some((source, upload)) = self.take_source(name, requester) else {
            return Ok(());
        };
        if let Some(depositor) = self.depositors.get_mut(&requester) {
            depositor.sent = true;
        }
        let Some(active) = self.files.get_mut(name) else {
            return Ok(());
        };
        let arrival = DepositArrival {
            item: StoringFile {
                name: name.clone(),
                upload: upload.id,
                size: upload.claim.size,
            },
            claim: upload.claim,
            requester,
            source,
        };
        active.source = Some(requester);
        active.seal = Some(self.parts.transfers.start_transfer(arrival, targets));
        Ok(())
    }

    /// Takes the stream of a depositor, and the upload that it belongs to. The transfer tells the depositor where to
    /// begin.
    fn take_source(
        &mut self,
        name: &FileName,
        requester: Requester,
    ) -> Option<(DepositStream, RecordedUpload)> {
        let depositor = self.depositors.get_mut(&requester)?;
        let upload = self.files.get(name)?.state.record().upload.clone()?;
        Some((depositor.source.take()?, upload))
    }

    fn copy(&self, name: &FileName, replica: ReplicaId, donor: &ReplicaId) {
        let Some(active) = self.files.get(name) else {
            return;
        };
        let record = active.state.record();
        if let (Some(content), Some(upload), Some(admission)) =
            (&record.content, &record.upload, &active.admission)
        {
            let item = StoringFile {
                name: name.clone(),
                upload: upload.id.clone(),
                size: content.size,
            };
            // All donors are named: a part that the first has damaged comes from another.
            let others = record.donors().filter(|other| *other != donor);
            let give = |id: &ReplicaId| Donor {
                replica: id.clone(),
                node: record.replicas.get(id).and_then(|copy| copy.node.clone()),
                bad: Groups::none(),
            };
            let donors = std::iter::once(donor).chain(others).map(give).collect();
            self.parts.copier.copy_file(CopyOrder {
                item,
                root: content.root,
                replica,
                donors,
                admission: Arc::clone(admission),
            });
        }
    }

    fn answer(
        &mut self,
        name: &FileName,
        requester: Requester,
        result: Result<(), ArchiveError>,
        now: Timestamp,
    ) -> Step<()> {
        let Some(depositor) = self.depositors.remove(&requester) else {
            return Ok(());
        };
        let reply = if let Err(error) = result {
            self.parts.transfers.stores.count_refusal(&error);
            DepositReply::Failed(error)
        } else {
            let absent = || CoordinatorError::Absent(name.clone());
            let active = self.files.get(name).ok_or_else(absent)?;
            let record = active.state.record().clone();
            let admission = active.admission.as_deref().unwrap_or_default();
            let filed = self
                .parts
                .anomalies
                .rows_of(name)
                .map_err(AdminError::from)?;
            let now_standing = self.parts.standing.current_snapshot();
            let vouched = FileEvidence {
                record: &now_standing.complete_record(&record),
                now: &now_standing,
                filed: &filed,
            };
            // The record says that every required replica has the file; anomalies and retired places may say otherwise.
            if vouched.missing_reason().is_none() {
                let receipt = vouched
                    .write_receipt(admission, now, &self.parts.key)
                    .map_err(|why| CoordinatorError::Sign(name.clone(), why))?;
                let already = !depositor.sent;
                self.parts.transfers.stores.acknowledged.inc();
                DepositReply::Stored(Box::new(CustodyAnswer {
                    receipt,
                    already,
                    record,
                }))
            } else {
                let lacking = vouched.lacking_replicas().into_iter();
                DepositReply::Failed(ArchiveError::NotEnoughReplicas {
                    name: name.clone(),
                    failures: lacking
                        .map(|(id, doubt)| (id.clone(), doubt.store_failure()))
                        .collect(),
                    again: None,
                })
            }
        };
        // The task waits for a depositor that does not read, so that the coordinator need not.
        self.parts.transfers.tasks.spawn_once("answer", async move {
            _ = depositor.replies.send(reply).await;
            // The task that watches the depositor ends, and with it the stream of answers.
            depositor.answered.cancel();
        });
        Ok(())
    }
}

/// Returns the states of a file in its replicas, as the audit trail tells them.
pub(super) fn told_states(record: &FileRecord) -> String {
    let copies = record.replicas.iter();
    let states = copies.map(|(id, copy)| format!("{id}: {}", copy.state));
    states.collect::<Vec<_>>().join("; ")
}

fn sign_error(name: &FileName, error: &dyn std::error::Error) -> CoordinatorError {
    CoordinatorError::Sign(name.clone(), error.to_string())
}
