//! The feed of the archive in memory, and the acts of people that only a feed shows.
//!
//! Not promised: that a reader learns more than once that it has caught up. It learns it once after each change.

use std::collections::VecDeque;

use archive_model::{ArchiveError, ChangeKind, FeedChange, FeedFile, FeedPosition, FileName};
use futures_util::stream;
use tokio::sync::watch;

use super::{FakeArchive, KeptFile, State, unknown};
use crate::access::FeedStep;
use crate::error::ClientError;
use crate::ingest::Deposit;
use crate::steps::ArchiveSteps;

/// Every change since the feed began.
pub(super) struct Feed {
    changes: Vec<FeedChange>,
    /// The lineage of this feed: the feed before it was lost with the admin data.
    lineage: u64,
    /// The end of the feed, which wakes its followers: its lineage, and its last number.
    end: watch::Sender<FeedPosition>,
}

impl Default for Feed {
    fn default() -> Self {
        let begin = FeedPosition {
            number: 0,
            lineage: 1,
        };
        Self {
            changes: Vec::new(),
            lineage: begin.lineage,
            end: watch::Sender::new(begin),
        }
    }
}

impl Feed {
    fn end(&self) -> FeedPosition {
        FeedPosition {
            number: self.changes.len() as u64,
            lineage: self.lineage,
        }
    }

    fn add(&mut self, kind: ChangeKind, file: FeedFile) {
        let mut position = self.end();
        position.number += 1;
        self.changes.push(FeedChange {
            position,
            kind,
            file,
        });
        self.end.send_replace(position);
    }

    /// Returns the change after this position; fails if the position is of another feed by now.
    fn next(&self, position: FeedPosition) -> Result<Option<FeedChange>, ClientError> {
        if position.lineage != self.lineage {
            return Err(ClientError::Unavailable("the feed was cut".to_owned()));
        }
        let index = usize::try_from(position.number).ok();
        Ok(index.and_then(|index| self.changes.get(index)).cloned())
    }
}

impl State {
    /// Adds a change of a file to the feed.
    pub(super) fn tell_followers(&mut self, kind: ChangeKind, kept: &KeptFile) {
        self.feed.add(kind, kept.in_feed());
    }

    /// Returns the steps that a reader gets first, and the position that changes follow.
    fn begin_feed(&self, after: Option<&FeedPosition>) -> (VecDeque<FeedStep>, FeedPosition) {
        let end = self.feed.end();
        let is_known =
            |after: &&FeedPosition| after.lineage == end.lineage && after.number <= end.number;
        if let Some(position) = after.filter(is_known) {
            return (VecDeque::new(), *position);
        }
        let files = self.files.values();
        let visible = files.filter(|kept| !self.is_withdrawn(&kept.admission.name));
        let listed = visible.map(|kept| FeedStep::File(kept.in_feed()));
        let steps = std::iter::once(FeedStep::Listing).chain(listed);
        (steps.chain([FeedStep::Listed(end)]).collect(), end)
    }

    pub(super) fn is_withdrawn(&self, name: &FileName) -> bool {
        self.withdrawn.contains(name)
    }
}

impl KeptFile {
    fn in_feed(&self) -> FeedFile {
        FeedFile {
            name: self.admission.name.clone(),
            size: self.admission.size,
            root: self.admission.root,
        }
    }
}

impl FakeArchive {
    /// Withdraws a file from every replica, as two persons may decide. Reading it is refused from then on.
    ///
    /// # Errors
    ///
    /// [`ClientError::NotFound`] if the archive does not have the file, or it is withdrawn already.
    pub fn withdraw_file(&self, name: &FileName) -> Result<(), ClientError> {
        let kept = self.find(name).ok_or_else(|| unknown(name))?;
        let mut state = self.state();
        if !state.withdrawn.insert(name.clone()) {
            return Err(unknown(name));
        }
        state.tell_followers(ChangeKind::Withdrawn, &kept);
        Ok(())
    }

    /// Puts a withdrawn file back.
    ///
    /// # Errors
    ///
    /// [`ClientError::NotFound`] if no such file is withdrawn.
    pub fn restore_file(&self, name: &FileName) -> Result<(), ClientError> {
        let kept = self.find(name).ok_or_else(|| unknown(name))?;
        let mut state = self.state();
        if !state.withdrawn.remove(name) {
            return Err(unknown(name));
        }
        state.tell_followers(ChangeKind::Restored, &kept);
        Ok(())
    }

    /// Binds the name of a file to other content, as two persons may decide.
    ///
    /// # Errors
    ///
    /// [`ClientError::NotFound`] if the archive does not have the file, [`ClientError::Exists`] if it has this content.
    pub async fn adopt_new_root(&self, deposit: &Deposit) -> Result<(), ClientError> {
        let name = &deposit.name;
        let kept = self.find(name).ok_or_else(|| unknown(name))?;
        let received = self.receive(deposit, &|_| ()).await?;
        if received.admission.root == kept.admission.root {
            return Err(kept.exists());
        }
        let mut state = self.state();
        if state.is_withdrawn(name) {
            return Err(unknown(name));
        }
        let kept = received.keep(&self.shared.key, state.now())?;
        state.tell_followers(ChangeKind::NewRoot, &kept);
        state.files.insert(name.clone(), kept);
        Ok(())
    }

    /// Loses the feed, as an archive does whose admin data are restored: the files stay, positions of before are
    /// unknown, and every follower is cut off.
    pub fn lose_feed(&self) {
        let mut state = self.state();
        state.feed.lineage += 1;
        state.feed.changes.clear();
        let end = state.feed.end();
        state.feed.end.send_replace(end);
    }

    /// Returns the error for a store of a file that people have removed.
    pub(super) fn removed_error(name: &FileName) -> ClientError {
        let error = ArchiveError::Refused(format!(
            "{name} was removed from the archive; its name stays taken, so store it under another"
        ));
        ClientError::Refused(error.to_string())
    }

    pub(super) fn begin_changes(&self, after: Option<&FeedPosition>) -> ArchiveSteps<FeedStep> {
        let state = self.state();
        let (first, position) = state.begin_feed(after);
        let follower = Follower {
            archive: self.clone(),
            first,
            position,
            end: state.feed.end.subscribe(),
            has_caught_up: false,
            is_over: false,
        };
        ArchiveSteps::new(stream::unfold(follower, Follower::step))
    }
}

/// A reader of the feed.
struct Follower {
    archive: FakeArchive,
    /// The steps of the listing that have not come yet.
    first: VecDeque<FeedStep>,
    position: FeedPosition,
    end: watch::Receiver<FeedPosition>,
    /// Whether the reader has learned that it has caught up at this position.
    has_caught_up: bool,
    is_over: bool,
}

impl Follower {
    /// Waits for the next step. Returns `None` after an error.
    async fn step(mut self) -> Option<(Result<FeedStep, ClientError>, Self)> {
        if self.is_over {
            return None;
        }
        if let Some(step) = self.first.pop_front() {
            return Some((Ok(step), self));
        }
        loop {
            self.end.mark_unchanged();
            let next = self.archive.state().feed.next(self.position);
            let step = match next {
                Ok(Some(change)) => {
                    self.position = change.position;
                    self.has_caught_up = false;
                    Ok(FeedStep::Change(change))
                }
                Ok(None) if !self.has_caught_up => {
                    self.has_caught_up = true;
                    Ok(FeedStep::CaughtUp(self.position))
                }
                Ok(None) => {
                    // The sender lives in the archive, of which the follower holds a clone.
                    self.end.changed().await.ok()?;
                    continue;
                }
                Err(error) => {
                    self.is_over = true;
                    Err(error)
                }
            };
            return Some((step, self));
        }
    }
}
