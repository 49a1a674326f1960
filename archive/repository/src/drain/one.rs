//! One file that leaves a drained volume or node: look, decide, do one step, and repeat.

use std::sync::Arc;

use archive_decisions::drain::{
    CopyContent, CopyState, DrainSide, DrainStep, RecordedCopy, decide_leave,
};
use archive_decisions::store::{Content, StoringEvent};
use archive_ledger::admin::AdminRow;
use archive_ledger::standing::DrainSource;
use archive_model::{
    Cause, CopyCondition, CopyPlace, FileContent, FileCopy, FileName, Finder, Groups, Root,
};
use archive_replicas::LocatedCopies;
use archive_rpc::{CallError, CallErrorKind};
use archive_stores::assemble::{Donor, WantedFile};
use archive_stores::delivery::ReplicaDelivery;
use archive_stores::transfer::{Route, StoringFile};

use super::DrainContext;
use crate::claims::NameAct;
use crate::people::refusal::recorded_content;
use crate::preserver::LookContext;

/// The most steps for one file in a row.
const STEPS: usize = 8;

/// The outcome for one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LeaveOutcome {
    /// No copy of the file is at the source any more.
    Left,
    /// The file cannot leave now, for this reason.
    Waits(String),
    /// The file has moved, and its node does not release the old copy before the next hour.
    Braked(String),
    /// A copy stays there permanently, on which the archive does not count.
    Stays(String),
}

/// The findings of a move.
#[derive(Default)]
struct MoveProgress {
    /// The copy that was just read whole.
    proven: Option<CopyPlace>,
    /// Whether the old copy was damaged, or missing.
    is_old_bad: bool,
    /// The line of the trail about the copy that was just put aside, until it is written.
    outcome: Option<String>,
}

impl DrainContext {
    /// Moves a file away from the source, step by step.
    pub(super) async fn leave_volume(&self, source: &DrainSource, name: &FileName) -> LeaveOutcome {
        let calls = &self.own.archive.calls;
        let until = calls.busy_until();
        loop {
            let error = match self.try_leave(source, name).await {
                Ok(ended) => return ended,
                Err(error) => error,
            };
            // The node may not yet have noticed the end of an earlier call, perhaps of an interrupted move.
            match calls.while_busy(until, error).await {
                Ok(()) => {}
                Err(error) if error.kind == CallErrorKind::Refused => {
                    return LeaveOutcome::Braked(error.reason);
                }
                Err(error) => return LeaveOutcome::Waits(error.reason),
            }
        }
    }

    async fn try_leave(
        &self,
        source: &DrainSource,
        name: &FileName,
    ) -> Result<LeaveOutcome, CallError> {
        let _claim = match self.own.archive.claims.claim_name(name, NameAct::Move) {
            Ok(claim) => claim,
            Err(busy) => return Ok(LeaveOutcome::Waits(busy.reason)),
        };
        let mut progress = MoveProgress::default();
        let ended = self.try_steps(source, name, &mut progress).await;
        self.note(name, progress.outcome.take()).await?;
        ended
    }

    async fn try_steps(
        &self,
        source: &DrainSource,
        name: &FileName,
        progress: &mut MoveProgress,
    ) -> Result<LeaveOutcome, CallError> {
        for _ in 0..STEPS {
            if !self.is_drained_still(source) {
                return Ok(LeaveOutcome::Waits("the drain was ended".to_owned()));
            }
            // The line about the last step is written while the replica looks: its syncs keep no file waiting.
            let locating = self.own.archive.calls.locate_copies(&source.replica, name);
            let noting = self.note(name, progress.outcome.take());
            let (located, noted) = tokio::join!(locating, noting);
            noted?;
            let located = located?;
            // Read after the replica was asked: a copy that was stored in the meantime is known here.
            let row = self.own.archive.admin_row(name).await?;
            let copies = self.seen(source, row.as_ref(), &located);
            let recorded = self.recorded(source, row.as_ref());
            let step = decide_leave(&recorded, &copies, located.silent.is_some());
            let row = match (step, row) {
                (DrainStep::Nothing, row) => {
                    self.close_anomalies(source, name, row.as_ref(), progress)
                        .await?;
                    return Ok(LeaveOutcome::Left);
                }
                (DrainStep::Wait(why), _) => return Ok(LeaveOutcome::Waits(why.to_string())),
                (DrainStep::Leave(why), _) => return Ok(LeaveOutcome::Stays(why.to_string())),
                (_, None) => return Ok(LeaveOutcome::Waits("it is not in the archive".to_owned())),
                (step, Some(row)) => (step, row),
            };
            match row {
                (DrainStep::Copy, row) => self.copy(source, &row, &located, progress).await?,
                (DrainStep::Record(place), row) => {
                    self.prove(source, &row, &place, progress).await?;
                    let event = StoringEvent::Moved {
                        replica: source.replica.clone(),
                        node: place.node,
                        volume: place.volume,
                    };
                    self.people.order_event(name, event, &self.own.who).await?;
                    if let RecordedCopy::At(_, DrainSide::Source) = recorded {
                        let size = row.record.content.map_or(0, |content| content.size);
                        self.board.note_left(source, size);
                    }
                }
                (DrainStep::PutAside { old, kept }, row) => {
                    self.prove(source, &row, &kept, progress).await?;
                    let admitted: FileContent = recorded_content(&row.record)?.into();
                    let aside = self.put_aside(source, name, (&old, admitted), &kept);
                    match aside.await {
                        Ok(said) => progress.outcome = Some(said),
                        // Its bytes have changed since its node last read them: the next step knows.
                        Err(error) if error.kind == CallErrorKind::Mismatch => {
                            progress.is_old_bad = true;
                            self.verify_old(source, name, &old, admitted.size).await;
                        }
                        Err(error) => return Err(error),
                    }
                }
                (DrainStep::PutDamagedAside { old, kept }, row) => {
                    progress.is_old_bad = true;
                    // Also where the node was the last to know: nobody finds a copy damaged that has left.
                    self.file_known_damage(source, name).await?;
                    self.prove(source, &row, &kept, progress).await?;
                    let size = recorded_content(&row.record)?.size;
                    let Some(root) = self.read_root(source, name, &old).await? else {
                        return Ok(LeaveOutcome::Stays(format!(
                            "it cannot be read completely there; a complete copy is on {kept}"
                        )));
                    };
                    let found = FileContent { root, size };
                    let aside = self.put_aside(source, name, (&old, found), &kept);
                    progress.outcome = Some(aside.await?);
                }
                (DrainStep::Nothing | DrainStep::Wait(_) | DrainStep::Leave(_), _) => {}
            }
        }
        Ok(LeaveOutcome::Waits(
            "it keeps changing; it is looked at again".to_owned(),
        ))
    }

    fn side(&self, source: &DrainSource, CopyPlace { node, volume }: &CopyPlace) -> DrainSide {
        let replica = &source.replica;
        if source.holds_copy(replica, node, volume) {
            DrainSide::Source
        } else if self.now().leaves_copy(replica, node, volume) {
            DrainSide::Leaving
        } else {
            DrainSide::Stays
        }
    }

    fn seen(
        &self,
        source: &DrainSource,
        row: Option<&AdminRow>,
        located: &LocatedCopies,
    ) -> Vec<CopyState> {
        let content = row.and_then(|row| row.record.content.as_ref());
        let admitted = content.map(|content| content.root);
        let copies = located.copies.iter().map(|copy| CopyState {
            place: copy.place.clone(),
            side: self.side(source, &copy.place),
            content: match &copy.condition {
                CopyCondition::Missing => CopyContent::Missing,
                CopyCondition::Present if copy.root == admitted => CopyContent::Whole,
                CopyCondition::Damaged { .. } if copy.root == admitted => CopyContent::Damaged,
                CopyCondition::Present
                | CopyCondition::Damaged { .. }
                | CopyCondition::Unexpected => CopyContent::Foreign,
            },
        });
        copies.collect()
    }

    fn recorded(&self, source: &DrainSource, row: Option<&AdminRow>) -> RecordedCopy {
        let Some(record) = row.map(|row| &row.record) else {
            return RecordedCopy::Nothing;
        };
        if !record.phase.is_bound() {
            return RecordedCopy::OnItsWay;
        }
        match record.replicas.get(&source.replica) {
            None => RecordedCopy::Nothing,
            Some(copy) if copy.state.is_withdrawn() => RecordedCopy::Nothing,
            Some(copy) => match copy.copy_place() {
                Some(place) if copy.state.is_completed() => {
                    let side = self.side(source, &place);
                    RecordedCopy::At(place, side)
                }
                _ => RecordedCopy::OnItsWay,
            },
        }
    }

    /// Stores a copy where it may stay, from any copies that have each part intact; the one that leaves is read first.
    async fn copy(
        &self,
        source: &DrainSource,
        row: &AdminRow,
        located: &LocatedCopies,
        progress: &mut MoveProgress,
    ) -> Result<(), CallError> {
        let record = &row.record;
        let name = &record.name;
        let Content { root, size, .. } = *recorded_content(&row.record)?;
        let (Some(upload), Some(admission)) = (&record.upload, &row.admission) else {
            return Err(CallErrorKind::Storage.to_error("the file has no admission"));
        };
        let is_old = |copy: &&FileCopy| {
            self.side(source, &copy.place) == DrainSide::Source && copy.root == Some(root)
        };
        let old = located.copies.iter().find(is_old);
        if !old.is_some_and(FileCopy::is_present) && located.silent.is_none() {
            // Its damage is filed before anything else is done.
            progress.is_old_bad = true;
            self.file_known_damage(source, name).await?;
        }
        let own = located.copies.iter().filter(|copy| copy.is_readable());
        let own = own
            .filter(|copy| copy.root == Some(root))
            .map(|copy| Donor {
                replica: source.replica.clone(),
                node: Some(copy.place.node.clone()),
                bad: copy.located_damage(),
            });
        let others = record.donors().filter(|id| **id != source.replica);
        let others = others.map(|id| Donor {
            replica: id.clone(),
            node: record.replicas.get(id).and_then(|copy| copy.node.clone()),
            bad: Groups::none(),
        });
        let donors: Vec<Donor> = own.take(1).chain(others).collect();
        let wanted = WantedFile {
            name: name.clone(),
            root,
            size,
        };
        let item = StoringFile {
            name: name.clone(),
            upload: upload.id.clone(),
            size,
        };
        let mut reading = self
            .own
            .archive
            .assembler
            .read_range(wanted, donors, std::iter::once(0..size))
            .with_bytes();
        let delivery = ReplicaDelivery {
            transfers: &self.people.transfers,
            replica: &source.replica,
            item: &item,
            route: Route::avoid_nodes(self.now().leaving_nodes(&source.replica)),
            admission: admission.as_str().into(),
        };
        let sending = delivery.send_assembly(&mut reading, Some(&self.pace));
        let sent = Box::pin(sending).await;
        for (replica, node) in reading.damaged_copies() {
            if replica == source.replica {
                progress.is_old_bad = true;
                if let Some(old) = old {
                    self.verify_old(source, name, &old.place, size).await;
                }
            } else {
                self.own.suspect_copy(name, &replica, node.as_ref());
            }
        }
        let sent =
            sent.map_err(|reason| CallErrorKind::Unavailable.to_error(reason.to_string()))?;
        let uploaded = sent?;
        let copy = &uploaded.copy;
        let is_elsewhere = self.side(source, &copy.place) == DrainSide::Stays;
        if !is_elsewhere || !copy.is_present() || copy.root != Some(root) {
            let said = "its node did not store it elsewhere; trying again";
            return Err(CallErrorKind::Unavailable.to_error(said));
        }
        // A copy that was there before is proven before a step that relies on it.
        progress.proven = uploaded.read_back.then_some(uploaded.copy.place);
        Ok(())
    }

    /// Files what the nodes know of the copies.
    async fn file_known_damage(
        &self,
        source: &DrainSource,
        name: &FileName,
    ) -> Result<(), CallError> {
        let look_context = self.look_context();
        let looking = self.own.look_and_file(&source.replica, name, &look_context);
        Box::pin(looking).await.map(drop)
    }

    /// Has the old copy read whole after a read of it showed damage, and files the result.
    async fn verify_old(&self, source: &DrainSource, name: &FileName, old: &CopyPlace, size: u64) {
        let selector = old.copy_selector(&source.replica);
        let look_context = self.look_context();
        let reading = self
            .own
            .verify_and_file(selector, name, size, &look_context, |_| {});
        if let Err(error) | Ok(Err(error)) = reading.await {
            tracing::warn!(file = %name, %source, %error, "cannot look at a damaged copy");
        }
    }

    /// Reads a copy on which a step relies, unless it was just read.
    async fn prove(
        &self,
        source: &DrainSource,
        row: &AdminRow,
        place: &CopyPlace,
        progress: &mut MoveProgress,
    ) -> Result<(), CallError> {
        if progress.proven.as_ref() == Some(place) {
            return Ok(());
        }
        let name = &row.record.name;
        let selector = place.copy_selector(&source.replica);
        let look_context = self.look_context();
        let reading = self.own.verify_or_file(
            selector,
            name,
            recorded_content(&row.record)?.into(),
            &look_context,
        );
        if !reading.await? {
            return Err(CallErrorKind::Damaged.to_error(format!("its copy on {place} is damaged")));
        }
        progress.proven = Some(place.clone());
        Ok(())
    }

    /// Returns the root of a damaged copy as it is read now, or `None` if it cannot be read completely.
    async fn read_root(
        &self,
        source: &DrainSource,
        name: &FileName,
        old: &CopyPlace,
    ) -> Result<Option<Root>, CallError> {
        let selector = old.copy_selector(&source.replica);
        let calls = &self.own.archive.calls;
        let read = calls
            .verify_copy(selector, name, calls.stall, |_| {})
            .await?;
        Ok(read.root)
    }

    /// Puts the old copy into the attic. Returns the line of the trail about it, which the caller writes.
    async fn put_aside(
        &self,
        source: &DrainSource,
        name: &FileName,
        (old, FileContent { root, size }): (&CopyPlace, FileContent),
        kept: &CopyPlace,
    ) -> Result<String, CallError> {
        let cause = Cause {
            approval: None,
            who: self.own.who.to_string(),
            why: format!("{source} is drained; a whole copy is on {kept}"),
        };
        let archive = &self.own.archive;
        let replica = &source.replica;
        let what = format!(
            "the copy in replica {replica} on {old} to be put into the attic there: {}",
            cause.why
        );
        // Recorded before it is done: no act may be missing from the trail. Once, however often it is tried.
        if !self.announced.lock().contains(name) {
            self.note(name, Some(what)).await?;
            self.announced.lock().insert(name.clone());
        }
        let volume = old.in_replica(replica);
        let moving = archive
            .calls
            .replicas
            .put_aside(&volume, name, &root, &cause);
        let aside = archive.calls.reading_call(size, moving).await?;
        self.announced.lock().remove(name);
        Ok(format!(
            "moved in replica {replica} from {old} to {kept}; the old copy is in the attic there as {}",
            aside.place.id
        ))
    }

    /// Writes a line about a file into the trail.
    async fn note(&self, name: &FileName, what: Option<String>) -> Result<(), CallError> {
        let Some(what) = what else {
            return Ok(());
        };
        let who = self.own.who.to_string();
        self.own
            .archive
            .note_line(who, Some(name.clone()), what)
            .await
    }

    /// Closes the anomalies of the old copy, if it was bad: the copy that replaces it is read and filed.
    async fn close_anomalies(
        &self,
        source: &DrainSource,
        name: &FileName,
        row: Option<&AdminRow>,
        progress: &MoveProgress,
    ) -> Result<(), CallError> {
        let (Some(place), Some(row), true) = (&progress.proven, row, progress.is_old_bad) else {
            return Ok(());
        };
        let size = recorded_content(&row.record)?.size;
        let selector = place.copy_selector(&source.replica);
        let look_context = self.look_context();
        let reading = self
            .own
            .verify_and_file(selector, name, size, &look_context, |_| {});
        reading.await?.map(drop)
    }

    fn look_context(&self) -> LookContext {
        LookContext {
            who: Arc::clone(&self.own.who),
            finder: Finder::Read,
            is_second: false,
        }
    }
}
