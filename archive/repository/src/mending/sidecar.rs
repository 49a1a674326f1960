//! Rewriting of damaged sidecars: a known file without a readable sidecar gets its admission back from the admin data.
//!
//! The node reads the file whole first: only a file with the admitted root and size becomes a copy again. Other bytes
//! are left as they are, for people.

use archive_decisions::store::StoringEvent;
use archive_ledger::admin::AdminRow;
use archive_model::{AnomalyKind, FileContent, FileCopy, FileName, ReplicaId};
use archive_replicas::admitted_content;
use archive_rpc::{CallError, CallErrorKind};

use super::{RepairContext, RepairOutcome, RepairReport};
use crate::preserver::Preserver;
use crate::tables::with_tables;

impl Preserver {
    /// Returns whether the archive expects a copy where an unexpected file was found.
    pub(crate) fn is_wanted(
        &self,
        file: &FileName,
        replica: &ReplicaId,
    ) -> Result<bool, archive_db::DbError> {
        let row = self.archive.admin.file(file)?;
        Ok(row.is_some_and(|row| admission(&row, replica).is_some()))
    }

    /// Gives an unexpected file its admission, if the bytes match the admission.
    pub(super) async fn give_admission(
        &self,
        file: &FileName,
        replica: &ReplicaId,
        content: FileContent,
        repair_context: &RepairContext,
    ) -> Result<RepairReport, CallError> {
        let admin = self.archive.admin.clone();
        let name = file.clone();
        let known = with_tables(move || admin.file(&name)).await?;
        let admission = known.and_then(|row| admission(&row, replica).map(str::to_owned));
        let Some(admission) = admission else {
            let what = "the archive expects no copy there; `adopt` or `remove` it";
            return Ok(RepairReport::new(RepairOutcome::Officer, what));
        };
        let look_context = self.look_context(repair_context);
        let (seen, _) = self.look_and_file(replica, file, &look_context).await?;
        if !seen.found.contains(&AnomalyKind::Unexpected) {
            return Ok(RepairReport::new(
                RepairOutcome::Nothing,
                "the replica has no unexpected file under this name any more",
            ));
        }
        let Some(stranger) = only_stranger(&seen.located.copies, content) else {
            let what = "the replica has several files under this name; `remove` the superfluous ones by their checksums";
            return Ok(RepairReport::new(RepairOutcome::Officer, what));
        };
        if repair_context.is_dry {
            let what = format!(
                "{file}: {replica}: unexpected: would give it its admission, if it has the admitted root"
            );
            return Ok(RepairReport::new(RepairOutcome::Planned, what));
        }
        let volume = stranger.place.in_replica(replica);
        let what = format!(
            "the sidecar in {replica}, volume {}, to be rewritten from the admin data if the bytes are what was admitted",
            stranger.place.volume
        );
        // Recorded before it is done: no act may be missing from the trail.
        self.note_repair(file, repair_context, what).await?;
        let adopting = self
            .archive
            .calls
            .replicas
            .adopt_file(&volume, file, &admission);
        let copy = match self
            .archive
            .calls
            .reading_call(content.size, adopting)
            .await
        {
            Ok(copy) => copy,
            Err(error) => return Ok(refused(&error)),
        };
        let what = format!(
            "the sidecar in {replica}, volume {}, was rewritten from the admin data; the bytes are what was admitted",
            copy.place.volume
        );
        self.note_repair(file, repair_context, what.clone()).await?;
        self.count_adopted(file, replica, copy).await?;
        let (_, found) = self.look_and_file(replica, file, &look_context).await?;
        let outcome = if found.open.is_empty() {
            RepairOutcome::Repaired
        } else {
            RepairOutcome::Failed
        };
        Ok(RepairReport::new(outcome, what))
    }

    /// Tells the coordinator of a copy that has its admission back, and waits until its record says so.
    async fn count_adopted(
        &self,
        file: &FileName,
        replica: &ReplicaId,
        copy: FileCopy,
    ) -> Result<(), CallError> {
        let (root, at) = admitted_content(&copy)?;
        let event = StoringEvent::Completed {
            replica: replica.clone(),
            node: copy.place.node,
            volume: copy.place.volume,
            root,
            at,
            read_back: true,
        };
        self.archive.mail.send_event(file.clone(), event).await;
        if !self.archive.mail.wait_settled().await {
            return Err(CallErrorKind::Unavailable.to_error("the repository is stopping"));
        }
        Ok(())
    }
}

/// Returns the unexpected file, if it is the only one of its name and there is no copy of the content beside it.
fn only_stranger(copies: &[FileCopy], content: FileContent) -> Option<&FileCopy> {
    let is_copy = |copy: &FileCopy| copy.is_readable() && copy.root == Some(content.root);
    let mut strangers = copies.iter().filter(|copy| copy.is_unexpected());
    let only = strangers.next()?;
    let is_only = strangers.next().is_none() && !copies.iter().any(is_copy);
    is_only.then_some(only)
}

/// Reports that the node did not give the file its admission.
fn refused(error: &CallError) -> RepairReport {
    if error.kind == CallErrorKind::Mismatch {
        let what = "its bytes are not what was admitted; `remove` it by its own checksum, and the right ones will be stored";
        return RepairReport::new(RepairOutcome::Officer, what);
    }
    let what = format!("the node did not accept the admission: {}", error.reason);
    RepairReport::new(RepairOutcome::Waiting, what)
}

/// Returns the admission of the expected copy, or `None` if no copy is expected.
fn admission<'a>(row: &'a AdminRow, replica: &ReplicaId) -> Option<&'a str> {
    let copy = row.record.replicas.get(replica)?;
    let is_wanted = row.record.content.is_some() && !copy.state.is_withdrawn();
    row.admission.as_deref().filter(|_| is_wanted)
}
