//! A disk of the admin data that is full: what was under way is given up in memory, and taken up again from the admin
//! data once these can be written, as after a start.

use std::time::Duration;

use archive_ledger::admin::{AdminError, AuditLine};
use archive_model::ArchiveError;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::{Coordinator, Step};
use crate::depositor::{DepositReply, DepositRequest};
use crate::mail::CoordinatorMessage;

/// The time between two tries to write.
const AGAIN: Duration = Duration::from_secs(1);

impl Coordinator {
    /// Forgets all that is under way, and takes nothing new, until the admin data can be written. Returns `false` if
    /// the coordinator was stopped first.
    pub(super) fn wait_for_room(
        &mut self,
        full: &AdminError,
        runtime: &Handle,
        stop: &CancellationToken,
    ) -> Step<bool> {
        tracing::error!(%full, "the admin data cannot be written: nothing is stored until there is room on their disk");
        self.files.clear();
        self.timers.clear();
        // Whoever waits learns that what was asked for is not remembered.
        self.waiting.clear();
        self.followers = super::Followers::default();
        self.back.clear();
        for depositor in std::mem::take(&mut self.depositors).into_values() {
            refuse(&depositor);
        }
        let who = format!("repository/{}", self.parts.archive);
        loop {
            while let Ok(message) = self.parts.messages.try_recv() {
                if let CoordinatorMessage::Ask { depositor, .. } = message {
                    refuse(&depositor);
                }
            }
            let is_stopped = runtime.block_on(async {
                tokio::select! {
                    () = stop.cancelled() => true,
                    () = tokio::time::sleep(AGAIN) => false,
                }
            });
            if is_stopped {
                return Ok(false);
            }
            let line = AuditLine {
                at: self.parts.clock.now(),
                who: who.clone(),
                file: None,
                what: "the disk of the admin data was full; what was under way is taken up again"
                    .to_owned(),
            };
            match self.parts.admin.note_line(line) {
                Ok(()) => break,
                Err(error) if error.is_full_disk() => {}
                Err(error) => return Err(AdminError::from(error).into()),
            }
        }
        tracing::warn!("the admin data can be written again: stores go on");
        Ok(true)
    }
}

/// Tells a depositor that there is no room; one that does not listen has gone.
fn refuse(depositor: &DepositRequest) {
    let why = "the disk of the repository is full; try again when there is room";
    let full = DepositReply::Failed(ArchiveError::NoSpace(why.to_owned()));
    drop(depositor.replies.try_send(full));
}
