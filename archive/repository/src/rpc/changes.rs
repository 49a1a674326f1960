//! The feed on the wire: a listing if it is needed, the changes since, and new decisions from then on.
//!
//! A follower costs a task and a few messages, however far behind it is: changes that it has not received stay in the
//! table, and are read from its position when there is room. No decision waits for a follower.

use std::time::Duration;

use archive_daemon::Clock;
use archive_decisions::store::FeedState;
use archive_ledger::admin::{Admin, FileWalk, WalkScope};
use archive_model::FeedPosition;
use archive_rpc::answers::{Outlet, WorkProgress, answer_from};
use archive_rpc::{CallErrorKind, Page};
use proto_archive::wire;
use proto_archive::wire::ChangesResponse;
use proto_archive::wire::changes_response::{Changes, Files, Listed, Step};
use tokio::sync::watch;
use tonic::Status;

use super::{Answers, Door, admin_failed, send_answer};
use crate::tables::with_tables;

/// The number of changes in one message.
const ENTRIES: usize = 1000;

/// The longest silence of the feed.
const BEAT: Duration = Duration::from_secs(10);

/// The most followers at once.
pub(super) const MOST_FOLLOWERS: usize = 16;

/// A request to follow the feed.
pub(super) struct FeedJob {
    after: Option<FeedPosition>,
}

impl FeedJob {
    /// Reads the request.
    pub(super) fn new(request: &wire::ChangesRequest) -> Self {
        let after = request.after.map(FeedPosition::from);
        Self { after }
    }

    /// Sends the feed until the follower goes away or the repository stops.
    pub(super) async fn run_feed(
        self,
        door: &Door,
        answers: &Answers<ChangesResponse>,
    ) -> Result<(), Status> {
        let _place = door.followers.try_acquire().map_err(|_none_left| {
            CallErrorKind::Busy.to_status(format!(
                "{MOST_FOLLOWERS} followers read the feed already; try again when one has gone"
            ))
        })?;
        let admin = door.archive.admin.clone();
        let clock = door.archive.calls.clock.clone();
        let follower = Follower {
            admin,
            clock,
            answers: answers.clone(),
        };
        let stop = door.archive.tasks.stop_token();
        tokio::select! {
            ended = follower.tell(self.after) => ended,
            () = stop.cancelled() => Err(CallErrorKind::Unavailable.to_status(
                "the repository is stopping; try again later with the last position",
            )),
        }
    }
}

/// A reader of the feed, and the admin data that it is read from.
struct Follower {
    admin: Admin,
    clock: Clock,
    answers: Answers<ChangesResponse>,
}

impl Follower {
    /// Sends the feed after a position, until the follower goes away.
    async fn tell(&self, after: Option<FeedPosition>) -> Result<(), Status> {
        // Taken before any file is listed: later decisions are sent as changes.
        let mut positions = self.admin.follow_feed();
        let listed = *positions.borrow_and_update();
        let mut position = if let Some(position) = self.known(after).await? {
            position
        } else {
            let mut listing = FeedListing::new(self.admin.clone(), listed);
            answer_from(&self.answers, move |outlet| listing.send(outlet)).await?;
            listed
        };
        loop {
            let end = *positions.borrow_and_update();
            if position.number < end.number {
                let mut span = FeedSpan::new(self.admin.clone(), position, end);
                answer_from(&self.answers, move |outlet| span.send(outlet)).await?;
                position = end;
            }
            send_answer(&self.answers, response(Step::CaughtUp(position.into()))).await?;
            if !self.wait(&mut positions).await {
                return Ok(());
            }
        }
    }

    /// Waits until there is something to send. Returns `false` if the follower has gone away.
    async fn wait(&self, positions: &mut watch::Receiver<FeedPosition>) -> bool {
        tokio::select! {
            () = self.answers.closed() => false,
            changed = positions.changed() => changed.is_ok(),
            () = self.clock.sleep(BEAT) => true,
        }
    }

    /// Returns `position` if the feed knows it.
    async fn known(&self, position: Option<FeedPosition>) -> Result<Option<FeedPosition>, Status> {
        let Some(position) = position else {
            return Ok(None);
        };
        let admin = self.admin.clone();
        let is_known = with_tables(move || admin.is_in_feed(position)).await?;
        Ok(is_known.then_some(position))
    }
}

const fn response(step: Step) -> ChangesResponse {
    ChangesResponse { step: Some(step) }
}

/// The outlet of blocking work.
type ChangesOutlet = Outlet<Result<ChangesResponse, Status>>;

/// The listing of all stored files, as it is sent to a follower.
struct FeedListing {
    admin: Admin,
    /// The position whose changes follow the listing.
    position: FeedPosition,
    walk: FileWalk,
    files: Page<wire::FeedFile>,
    count: u64,
}

impl FeedListing {
    const fn new(admin: Admin, position: FeedPosition) -> Self {
        Self {
            admin,
            position,
            walk: FileWalk::over_scope(WalkScope::Archive),
            files: Page::new(),
            count: 0,
        }
    }

    fn send(&mut self, to: &mut ChangesOutlet) -> Result<WorkProgress, Status> {
        let files = &mut self.files;
        let count = &mut self.count;
        let is_over = self.walk.walk_each(&self.admin, |row| {
            let FeedState::Standing(file) = FeedState::from_record(&row.record) else {
                return true;
            };
            *count += 1;
            files
                .push(file.into())
                .is_none_or(|files| to.send_message(Ok(response(Step::Files(Files { files })))))
        });
        if !is_over.map_err(|error| admin_failed(&error))? {
            return Ok(WorkProgress::Paused);
        }
        // The listing has decisions that were not announced yet: a power cut must not take them back now.
        let stamped = self.admin.write_stamp();
        stamped.map_err(|error| CallErrorKind::Storage.to_status(error.to_string()))?;
        if !self.files.is_empty() {
            let files = self.files.take_page();
            to.send_message(Ok(response(Step::Files(Files { files }))));
        }
        to.send_message(Ok(response(Step::Listed(Listed {
            count: self.count,
            position: Some(self.position.into()),
        }))));
        Ok(WorkProgress::Done)
    }
}

/// The changes behind one position up to another, as they are sent to a follower.
struct FeedSpan {
    admin: Admin,
    /// The position behind the last change that was sent.
    position: FeedPosition,
    end: FeedPosition,
}

impl FeedSpan {
    const fn new(admin: Admin, position: FeedPosition, end: FeedPosition) -> Self {
        Self {
            admin,
            position,
            end,
        }
    }

    fn send(&mut self, to: &mut ChangesOutlet) -> Result<WorkProgress, Status> {
        while self.position.number < self.end.number {
            let page = self.page()?;
            if !to.send_message(Ok(response(Step::Changes(page)))) {
                return Ok(WorkProgress::Paused);
            }
        }
        Ok(WorkProgress::Done)
    }

    /// Returns the next changes. A number without a row is an error: no change is skipped.
    fn page(&mut self) -> Result<Changes, Status> {
        let mut changes = Vec::new();
        let rows = self.admin.read_feed(self.position.number, self.end.number);
        for row in rows.map_err(|error| admin_failed(&error))?.take(ENTRIES) {
            let change = row.map_err(|error| admin_failed(&error))?;
            if self.position.number.checked_add(1) != Some(change.position.number) {
                return Err(self.hole());
            }
            self.position = change.position;
            changes.push(change.into());
        }
        if changes.is_empty()
            || (self.position.number == self.end.number && self.position != self.end)
        {
            return Err(self.hole());
        }
        Ok(Changes { changes })
    }

    fn hole(&self) -> Status {
        let number = self.position.number;
        tracing::error!(number, "the feed has a hole in the admin data");
        CallErrorKind::Storage.to_status(format!(
            "the admin data are damaged: the change after number {number} is missing; put them back from a backup, or \
             restore them by `holdfast admin restore`"
        ))
    }
}

#[cfg(test)]
mod tests;
