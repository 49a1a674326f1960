//! Repair of a missing copy. Only the coordinator decides about uploads: it receives the order, and is followed until
//! the copy is there.

use archive_decisions::repair::RepairPlan;
use archive_decisions::store::{ReplicaRecord, StoringEvent};
use archive_model::{ReplicaState, StoreFailure};
use archive_rpc::{CallError, CallErrorKind};
use archive_stores::limits;
use jiff::Timestamp;

use super::{RepairCase, RepairContext, RepairOutcome, RepairReport};
use crate::preserver::Preserver;

/// The fate of a copy that the coordinator was asked to store.
#[derive(Debug)]
enum CopyFate {
    /// The replica has the copy.
    There,
    /// The copy will not be stored now.
    Ended(RepairReport),
}

impl Preserver {
    /// Has the coordinator store the file in the replica that lacks it, and waits until the copy is there.
    pub(super) async fn request_copy(
        &self,
        case: &RepairCase,
        plan: &RepairPlan,
        repair_context: &RepairContext,
    ) -> Result<RepairReport, CallError> {
        let file = &case.patient.file;
        let replica = &case.patient.replica;
        let donors: Vec<String> = plan
            .to_verify(case.wanted.size)
            .iter()
            .map(|(donor, _)| donor.to_string())
            .collect();
        let donors = donors.join(", ");
        self.note_repair(
            &case.patient.file,
            repair_context,
            format!("missing in {replica}: to be copied from {donors}"),
        )
        .await?;
        let before = self.file_record(file).await?;
        let Some(before) = before.and_then(|record| record.replicas.get(replica).cloned()) else {
            let what = format!(
                "{replica} was added after the file; `replica bootstrap {replica}` fills it"
            );
            return Ok(RepairReport::new(RepairOutcome::Officer, what));
        };
        let stopping = || CallErrorKind::Unavailable.to_error("the repository is stopping");
        let changes = self.archive.mail.follow_file(file.clone()).await;
        let mut changes = changes.ok_or_else(stopping)?;
        let event = StoringEvent::Gone {
            replica: replica.clone(),
        };
        self.archive.mail.send_event(file.clone(), event).await;
        if !self.archive.mail.wait_settled().await {
            return Err(stopping());
        }
        // A copy that counts from here on was stored, or found after all.
        let settling = async {
            let mut record = self.file_record(file).await?;
            loop {
                let copy = record.as_ref().and_then(|now| now.replicas.get(replica));
                if let Some(fate) = fate(copy, before.since) {
                    return Ok::<_, CallError>(fate);
                }
                record = Some(changes.next().await.ok_or_else(stopping)?);
            }
        };
        let limit = limits::write_limit(case.wanted.size);
        match self
            .archive
            .calls
            .clock
            .run_with_timeout(limit, settling)
            .await
        {
            Ok(fate) => {
                if let CopyFate::Ended(done) = fate? {
                    return Ok(done);
                }
            }
            Err(_late) => {
                let what = "the file is still being stored; the archive continues";
                return Ok(RepairReport::new(RepairOutcome::Waiting, what));
            }
        }
        let (_, found) = self
            .look_and_file(replica, file, &self.look_context(repair_context))
            .await?;
        let what = format!(
            "copied {} bytes into {replica}, from {donors}",
            case.wanted.size
        );
        self.note_repair(&case.patient.file, repair_context, what.clone())
            .await?;
        let outcome = if found.open.is_empty() {
            RepairOutcome::Repaired
        } else {
            RepairOutcome::Failed
        };
        Ok(RepairReport {
            outcome,
            what,
            moved: case.wanted.size,
            attic: String::new(),
        })
    }
}

/// Returns the fate of a copy that was requested when its state was of `before`; `None` while it is being stored. Pure.
fn fate(copy: Option<&ReplicaRecord>, before: Timestamp) -> Option<CopyFate> {
    let copy = copy?;
    match &copy.state {
        ReplicaState::UploadCompleted => Some(CopyFate::There),
        // A request is a state of its own, so a repeated failure is a later one.
        ReplicaState::UploadFailed(reason)
            if !matches!(reason, StoreFailure::Gone(_)) && copy.since != before =>
        {
            let what = format!("{reason}; the archive tries again");
            Some(CopyFate::Ended(RepairReport::new(
                RepairOutcome::Waiting,
                what,
            )))
        }
        ReplicaState::Withdrawn(why) => {
            let what = format!("people have withdrawn the copy in the meantime: {why}");
            Some(CopyFate::Ended(RepairReport::new(
                RepairOutcome::Nothing,
                what,
            )))
        }
        ReplicaState::UploadFailed(_)
        | ReplicaState::UploadStarted
        | ReplicaState::DataUploaded => None,
    }
}

#[cfg(test)]
mod tests {
    use archive_model::ReplicaKind;

    use super::*;

    /// Fails if a repair waits for a copy that will not be stored now, or gives up one that is being stored.
    #[test]
    fn awaited_copy_ends_with_what_became_of_it() {
        let asked = Timestamp::UNIX_EPOCH;
        let later = Timestamp::from_second(1).unwrap();
        let gone = || ReplicaState::UploadFailed(StoreFailure::Gone("it was lost".to_owned()));
        let failed = || ReplicaState::UploadFailed(StoreFailure::NoSpace);
        let withdrawn = ReplicaState::Withdrawn("r1".to_owned());
        for (state, since, expected) in [
            (ReplicaState::UploadStarted, later, None),
            (ReplicaState::DataUploaded, later, None),
            (gone(), asked, None),
            (gone(), later, None),
            (failed(), asked, None),
            (failed(), later, Some(Some(RepairOutcome::Waiting))),
            (withdrawn, later, Some(Some(RepairOutcome::Nothing))),
            (ReplicaState::UploadCompleted, later, Some(None)),
        ] {
            let copy = ReplicaRecord {
                kind: ReplicaKind::Bitarchive,
                required: true,
                state,
                since,
                node: None,
                volume: None,
                sealed: false,
            };
            let ended = fate(Some(&copy), asked).map(|fate| match fate {
                CopyFate::There => None,
                CopyFate::Ended(done) => Some(done.outcome),
            });
            assert_eq!(ended, expected, "{copy:?}");
        }
        assert!(fate(None, asked).is_none());
    }
}
