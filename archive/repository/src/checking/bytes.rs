//! Second reads of the copies of a replica: whole, or random groups of them with their proofs.
//!
//! Each node goes through its own copies, two at a time, in parallel with the others. A volume with a copy that cannot
//! be read is a gap of the report, and after a few such copies it is not asked again.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};

use archive_ledger::admin::{AdminRow, FileWalk, WalkScope};
use archive_ledger::anomalies::{Look, LookQuality};
use archive_model::groups::GROUP_SIZE;
use archive_model::{
    AnomalyKind, CopyPlace, FileCopy, FileName, Groups, NodeId, NodeKey, Root, SilentPart, groups,
};
use archive_replicas::LocatedCopies;
use archive_rpc::answers::WorkProgress;
use archive_rpc::{CallError, CallErrorKind};
use archive_stores::assemble::{AssembledPart, Donor, WantedFile};
use futures_util::future::try_join_all;
use tokio::sync::{Mutex, mpsc};

use super::{CheckFuture, Pass, WINDOW};
use crate::tables::{feed_rows, with_tables};

/// The number of unreadable copies of a volume after which the others are not asked for.
const PATIENCE: u32 = 3;

/// The number of random groups that a copy is asked for: 1 % of damage is found with a probability of 4 % in each
/// check, and in 459 copies of one disk with one of more than 99 %.
const CHALLENGES: u32 = 4;

/// A copy, as the admin data have it.
#[derive(Clone, Debug)]
struct Target {
    name: FileName,
    root: Root,
    size: u64,
    place: CopyPlace,
    /// Whether the copy was found at this place, after it was not at the one that the admin data have.
    is_moved: bool,
}

impl Pass<'_> {
    /// Reads every selected copy again.
    pub(super) async fn read_all(&self) -> Result<(), CallError> {
        let admin = self.own.archive.admin.clone();
        let replica = self.replica.clone();
        let nodes = with_tables(move || admin.list_nodes(&replica)).await?;
        let mut walks: Vec<CheckFuture<'_>> = Vec::new();
        for node in nodes {
            walks.push(Box::pin(self.walk(node)));
        }
        try_join_all(walks).await.map(|_| ())
    }

    async fn walk(&self, node: NodeId) -> Result<(), CallError> {
        let (targets, next) = mpsc::channel(WINDOW);
        let next = Mutex::new(next);
        // Two at once.
        tokio::try_join!(
            self.targets(node, targets),
            self.read_each(&next),
            self.read_each(&next),
        )
        .map(|_| ())
    }

    async fn read_each(&self, next: &Mutex<mpsc::Receiver<Target>>) -> Result<(), CallError> {
        loop {
            let target = next.lock().await.recv().await;
            match target {
                None => return Ok(()),
                Some(target) => self.visit(target).await?,
            }
        }
    }

    /// Sends every selected copy of a node.
    async fn targets(&self, node: NodeId, targets: mpsc::Sender<Target>) -> Result<(), CallError> {
        let admin = self.own.archive.admin.clone();
        let replica = self.replica.clone();
        let selection = self.scope.selection.clone();
        let mut names = selection.names.clone();
        let is_all = names.is_empty();
        let mut walk = FileWalk::over_scope(WalkScope::Node(NodeKey {
            replica: replica.clone(),
            node: node.clone(),
        }));
        feed_rows(&targets, move |outlet| {
            let target = |row: AdminRow| {
                let record = row.record;
                let copy = record.replicas.get(&replica)?;
                let is_wanted = copy.state.is_completed()
                    && copy.node.as_ref() == Some(&node)
                    && selection.has(&record.name);
                let content = record.content.as_ref().filter(|_| is_wanted)?;
                Some(Target {
                    root: content.root,
                    size: content.size,
                    place: copy.copy_place()?,
                    name: record.name,
                    is_moved: false,
                })
            };
            if is_all {
                let send = |row| target(row).is_none_or(|target| outlet.send_message(target));
                let is_over = walk.walk_each(&admin, send)?;
                return Ok(if is_over {
                    WorkProgress::Done
                } else {
                    WorkProgress::Paused
                });
            }
            while let Some(name) = names.pop_first() {
                if let Some(target) = admin.file(&name)?.and_then(target)
                    && !outlet.send_message(target)
                {
                    return Ok(WorkProgress::Paused);
                }
            }
            Ok(WorkProgress::Done)
        })
        .await
    }

    /// Reads one copy again, as ordered; if it has moved in the meantime, at its new place.
    async fn visit(&self, target: Target) -> Result<(), CallError> {
        let mut next = Some(target);
        while let Some(target) = next {
            next = self.read_copy(&target).await?;
        }
        Ok(())
    }

    /// Reads one copy again; returns its new place, if it has moved. A node that cannot prove its groups has to read
    /// the copy whole; if the node then reports no damage, it is not believed.
    async fn read_copy(&self, target: &Target) -> Result<Option<Target>, CallError> {
        let refusals = self.tally().refusals.get(&target.place).copied();
        if refusals.unwrap_or_default() >= PATIENCE {
            self.tally().unverified += 1;
            return Ok(None);
        }
        let proves = if self.scope.challenges {
            self.proves(target).await
        } else {
            Ok(true)
        };
        let proves = match proves {
            Ok(true) if !self.scope.reads_bytes() => return Ok(None),
            Ok(proves) => proves,
            Err(error) => return self.refused(target, &error).await,
        };
        let before = AtomicU64::new(0);
        let progress = |bytes: u64| {
            let more = bytes.saturating_sub(before.swap(bytes, Ordering::Relaxed));
            self.read.fetch_add(more, Ordering::Relaxed);
        };
        let selector = target.place.copy_selector(&self.replica);
        let look_context = &self.scope.look_context;
        let name = &target.name;
        let size = target.size;
        let verifying = self
            .own
            .verify_and_file(selector, name, size, look_context, progress);
        let found = match verifying.await? {
            Ok((_copy, found)) => found,
            Err(error) => return self.refused(target, &error).await,
        };
        let rest = target.size.saturating_sub(before.load(Ordering::Relaxed));
        self.read.fetch_add(rest, Ordering::Relaxed);
        if proves || !found.open.is_empty() {
            self.tell(found).await?;
            return Ok(None);
        }
        let CopyPlace { node, volume } = &target.place;
        tracing::warn!(file = %target.name, %node, "a node cannot prove the copy that it reports");
        let look = Look {
            found: vec![AnomalyKind::Unverified {
                node: node.clone(),
                volume: Some(volume.clone()),
            }],
            quality: LookQuality::Nothing,
            by: look_context.finder,
            is_second: false,
            size: target.size,
            place: Some(target.place.clone()),
        };
        let filing = self
            .own
            .file_look(&self.replica, &target.name, look, look_context);
        self.tell(filing.await?).await?;
        Ok(None)
    }

    /// Handles a copy that was not read. A copy that is not in its place may be elsewhere; otherwise its volume is a
    /// gap.
    async fn refused(
        &self,
        target: &Target,
        error: &CallError,
    ) -> Result<Option<Target>, CallError> {
        if error.kind == CallErrorKind::NotFound {
            let located = self.look(&target.name).await?;
            match elsewhere(target, &located) {
                // The copy has moved since it was listed: it is read at its new place.
                Some(moved) if !target.is_moved => return Ok(Some(moved)),
                Some(_) => self.unread(target, error),
                None if is_listed(target, &located) => self.unread(target, error),
                // The copy is missing, which was reported, or it was removed.
                None => {}
            }
            return Ok(None);
        }
        self.unread(target, error);
        if error.kind != CallErrorKind::Busy {
            let place = target.place.clone();
            *self.tally().refusals.entry(place).or_default() += 1;
        }
        Ok(None)
    }

    /// Counts a copy that was listed and not read: it is not intact, and its volume is a gap.
    fn unread(&self, target: &Target, error: &CallError) {
        self.tally().not_intact.insert(target.name.clone());
        let reason = format!("{}: {}", target.name, error.reason);
        let CopyPlace { node, volume } = target.place.clone();
        let volume = Some(volume);
        self.gap(Some(SilentPart { node, volume }), reason);
    }

    /// Returns whether the node proves some random groups.
    async fn proves(&self, target: &Target) -> Result<bool, CallError> {
        let Some(count) = NonZeroU64::new(groups::group_count(target.size)) else {
            return Ok(true);
        };
        let mut chosen = Groups::none();
        for _ in 0..CHALLENGES {
            let group = self.own.archive.chance.random_below(count);
            chosen.insert_one(
                group.map_err(|error| CallErrorKind::Internal.to_error(error.to_string()))?,
            );
        }
        let wanted = WantedFile {
            name: target.name.clone(),
            root: target.root,
            size: target.size,
        };
        let donor = Donor {
            replica: self.replica.clone(),
            node: Some(target.place.node.clone()),
            bad: Groups::none(),
        };
        let ranges: Vec<_> = chosen.byte_ranges(target.size).collect();
        let mut reading = self
            .own
            .archive
            .assembler
            .read_range(wanted, vec![donor], ranges);
        while let Some(part) = reading.next().await {
            match part {
                AssembledPart::Proven(proven) => {
                    debug_assert!(proven.length <= u64::from(CHALLENGES) * GROUP_SIZE);
                }
                AssembledPart::Refused(group) if group.is_silence => {
                    return Err(CallErrorKind::Unavailable.to_error(group.said));
                }
                AssembledPart::Refused(_) => return Ok(false),
            }
        }
        Ok(true)
    }
}

/// Returns the same file at another place of the replica, as it was just found.
fn elsewhere(target: &Target, located: &LocatedCopies) -> Option<Target> {
    let is_other = |copy: &&FileCopy| copy.place != target.place;
    let mut others = located.copies.iter().filter(is_other);
    let moved = others.find(|copy| copy.is_readable() && copy.root == Some(target.root))?;
    Some(Target {
        place: moved.place.clone(),
        is_moved: true,
        ..target.clone()
    })
}

/// Returns whether the monitor lists the copy where its node did not find it.
fn is_listed(target: &Target, located: &LocatedCopies) -> bool {
    let mut copies = located.copies.iter();
    copies.any(|copy| copy.place == target.place && copy.is_readable())
}

#[cfg(test)]
mod tests {
    use archive_model::CopyCondition;

    use super::*;

    /// Fails if a copy that moved while the check ran is not read where it is now, or one that its node does not find
    /// passes for intact because the monitor lists it.
    #[test]
    fn missing_copy_is_looked_for_where_listed() {
        let root = Root::from_bytes([1; 32]);
        let copy = |node: &str, root, condition| FileCopy {
            name: "a".parse().unwrap(),
            place: CopyPlace {
                node: node.parse().unwrap(),
                volume: "v".parse().unwrap(),
            },
            size: 1,
            root: Some(root),
            stored: jiff::Timestamp::UNIX_EPOCH,
            verified: None,
            condition,
        };
        let target = Target {
            name: FileName::new("a").unwrap(),
            root,
            size: 1,
            place: CopyPlace {
                node: "n-1".parse().unwrap(),
                volume: "v".parse().unwrap(),
            },
            is_moved: false,
        };
        let judged = |copies: Vec<FileCopy>| {
            let located = LocatedCopies {
                copies,
                silent: None,
                gaps: Vec::new(),
            };
            let moved = elsewhere(&target, &located).map(|moved| moved.place.node.to_string());
            (moved, is_listed(&target, &located))
        };
        let there = CopyCondition::Present;
        let other = Root::from_bytes([2; 32]);
        let moved = |node: &str| Some(node.to_owned());
        assert_eq!(judged(vec![]), (None, false), "missing, or removed");
        assert_eq!(judged(vec![copy("n-1", root, there.clone())]), (None, true));
        assert_eq!(
            judged(vec![copy("n-2", root, there.clone())]),
            (moved("n-2"), false)
        );
        assert_eq!(judged(vec![copy("n-2", other, there)]), (None, false));
        let gone = vec![copy("n-1", root, CopyCondition::Missing)];
        assert_eq!(judged(gone), (None, false));
    }
}
