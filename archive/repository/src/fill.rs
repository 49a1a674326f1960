//! Updates the row of every file after a decision about a part: a replica to be filled, a retired volume, node or
//! replica.
//!
//! Owns the walk over the admin data, a bounded number of files at a time. Each row remembers the decision, and the
//! coordinator stores the file where it is needed; so a restart begins the walk again and finds only what is still to
//! be done. A walk ends after one whole pass without a finding.
//!
//! Not promised: that a file which no replica has is stored. The walk waits for it; its record says why.

mod followed;
#[cfg(test)]
mod tests;
mod unbound;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use archive_daemon::{Worker, WorkerStep, WorkerStepError};
use archive_db::DbError;
use archive_decisions::store::{FileRecord, ReplicaRecord, ReplicaSpec, StoringEvent};
use archive_ledger::admin::{Admin, FileWalk, PageLimits};
use archive_ledger::standing::{StandingSnapshot, Task};
use archive_model::{
    CopyPlace, FileCopy, FileName, NodeKey, ReplicaId, ReplicaState, StoreFailure,
};
use archive_stores::mail::RecordChanges;

use crate::people::People;
use crate::tables::with_tables;
use followed::FollowedFiles;

/// The most files that are stored at once.
const WINDOW: usize = 16;

/// The most files beyond those that may wait for another try.
const MOST_WAITING: usize = 1000;

/// The number of rows that are read in one step.
const PAGE: usize = 2000;

/// The pause while nothing can be done. Decisions in the meantime come from the coordinator, so that no table is read
/// for them.
const PAUSE: Duration = Duration::from_millis(500);

/// The pause before files that wait for another try are looked at again.
const REST: Duration = Duration::from_mins(5);

/// The name under which the archive continues the acts of people.
const WHO: &str = "repository";

/// The worker that walks over the admin data.
pub(crate) struct FillWorker {
    people: Arc<People>,
    passes: BTreeMap<Task, Pass>,
}

/// A walk over the admin data.
#[derive(Debug, Default)]
struct Pass {
    /// Whether the pass is not the first since the start.
    later: bool,
    /// The progress of the pass; `None` before it begins.
    walk: Option<FileWalk>,
    /// The files that were requested and are not there yet.
    open: FollowedFiles,
    /// The files whose rows could not be updated yet.
    unbound: FollowedFiles,
    /// The number of files that this pass has found, or could not look at.
    found: u64,
    /// The time until which the next pass waits for open files.
    rests: Option<Instant>,
}

/// An update for the row of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FileUpdate {
    name: FileName,
    replica: ReplicaId,
    /// The recorded place of the copy.
    place: Option<CopyPlace>,
    /// Whether that place is known to be given up: otherwise it is asked first.
    is_gone: bool,
}

impl FillWorker {
    pub(crate) fn new(people: Arc<People>) -> Self {
        Self {
            people,
            passes: BTreeMap::new(),
        }
    }

    /// Continues a task. Returns the pause until the task has something to do, or `None` if it has something now.
    async fn advance(&mut self, task: &Task) -> Result<Option<Duration>, WorkerStepError> {
        let pass = self.passes.entry(task.clone()).or_default();
        let room = WINDOW.saturating_sub(keep_open(task, &mut pass.open));
        let updates = unbound::file_updates(task, &mut pass.unbound);
        let now = self.people.archive.calls.clock.instant();
        if updates.is_empty() && pass.must_wait(room, now) {
            return Ok(Some(PAUSE));
        }
        if !can_be_asked(&self.people, task).await {
            return Ok(Some(PAUSE));
        }
        pass.update_pass(&self.people, task, updates).await?;
        if pass.must_wait(room, now) {
            return Ok(Some(PAUSE));
        }
        pass.rests = None;
        // Stores that began before the walk are among the rows.
        if pass.walk.is_none() && !self.people.archive.mail.wait_settled().await {
            return Ok(Some(PAUSE));
        }
        let admin = self.people.archive.admin.clone();
        let task_of = task.clone();
        let open = pass.open.names();
        let begun = pass.walk.take();
        let mut walk = begun.unwrap_or_else(|| FileWalk::over_scope(task.walk_scope()));
        let first = !pass.later;
        let page = with_tables(move || {
            let mut unbound = Vec::new();
            let page = walk.next_page(&admin, limits(&task_of, room), |row| {
                let record = row.record;
                if open.contains(&record.name) {
                    return None;
                }
                let wanted = wanted(&task_of, &record, first);
                if wanted.is_none() && unbound::may_still(&task_of, &record) {
                    unbound.push(record.name);
                }
                wanted
            });
            page.map(|page| (page, unbound, walk))
        });
        let (page, unbound, walk) = page.await?;
        pass.follow_unbound(&self.people, unbound).await?;
        pass.update_pass(&self.people, task, page.picked).await?;
        pass.walk = Some(walk);
        if !page.is_last {
            return Ok(None);
        }
        // A retirement ends once every row has it; a filling, once every file is there.
        let is_there = !matches!(task, Task::Fill(_)) || pass.open.is_empty();
        let is_done = pass.found == 0 && is_there && pass.unbound.is_empty();
        *pass = Pass {
            later: true,
            open: std::mem::take(&mut pass.open),
            unbound: std::mem::take(&mut pass.unbound),
            rests: Some(now + REST),
            ..Pass::default()
        };
        if is_done {
            self.end(task).await?;
            return Ok(None);
        }
        Ok(Some(PAUSE))
    }

    async fn end(&mut self, task: &Task) -> Result<(), WorkerStepError> {
        let what = match task {
            Task::Fill(replica) => format!("replica {replica} is filled: it has every file"),
            Task::Volume(volume) => format!("no file counts on retired {volume} any more"),
            Task::Node(NodeKey { node, .. }) => {
                format!("no file counts on retired node {node} any more")
            }
            Task::Replica(replica) => {
                format!("no file counts on retired replica {replica} any more")
            }
        };
        tracing::info!(what, "a walk over the archive has ended");
        let line = self.people.archive.audit_line(WHO.to_owned(), None, what);
        let standing = Arc::clone(&self.people.archive.standing);
        let ended = task.clone();
        with_tables(move || standing.end_task(&ended, line)).await?;
        self.passes.remove(task);
        Ok(())
    }
}

impl Worker for FillWorker {
    const NAME: &'static str = "fill";

    async fn step(&mut self) -> Result<WorkerStep, WorkerStepError> {
        let tasks = self.people.archive.standing.current_snapshot().list_tasks();
        self.passes.retain(|task, _| tasks.contains(task));
        let mut rest = if tasks.is_empty() { Some(PAUSE) } else { None };
        let mut is_busy = false;
        for task in tasks {
            match self.advance(&task).await? {
                None => is_busy = true,
                Some(pause) => rest = Some(rest.map_or(pause, |rest| rest.min(pause))),
            }
        }
        Ok(match rest {
            Some(rest) if !is_busy => WorkerStep::Idle(rest),
            _ => WorkerStep::Again,
        })
    }
}

impl Pass {
    /// Returns whether no row can be read now: with so much room for files that are being worked on, at this time.
    fn must_wait(&self, room: usize, now: Instant) -> bool {
        let waits = !self.open.is_empty() || !self.unbound.is_empty();
        let rests = waits && self.rests.is_some_and(|until| now < until);
        rests || room == 0 || self.open.len() >= WINDOW + MOST_WAITING
    }
}

/// Returns whether the monitor has answered of late, and so knows what is out of service: before, every copy would be
/// unknown.
async fn can_be_asked(people: &People, task: &Task) -> bool {
    let replica = match task {
        Task::Fill(replica) | Task::Node(NodeKey { replica, .. }) => replica,
        Task::Volume(volume) => &volume.replica,
        // A retired replica is not asked any more.
        Task::Replica(_) => return true,
    };
    let calls = &people.archive.calls;
    calls
        .answered_call(calls.replicas.nodes_state(replica))
        .await
        .is_ok()
}

/// The outcome of an update.
enum UpdateOutcome {
    /// The copy is there after all.
    There,
    /// The replica did not tell whether the copy is there.
    Unknown,
    /// The row has the update now. A file that is to be stored was followed before.
    Updated(Option<RecordChanges>),
}

async fn tell(
    people: &People,
    task: &Task,
    wanted: FileUpdate,
) -> Result<UpdateOutcome, WorkerStepError> {
    let FileUpdate {
        name,
        replica,
        place,
        is_gone,
    } = wanted;
    if let Task::Replica(_) = task {
        let why = format!("replica {replica} was retired");
        people
            .order_event(&name, StoringEvent::Withdrawn { replica, why }, WHO)
            .await?;
        return Ok(UpdateOutcome::Updated(None));
    }
    if place.is_some() && !is_gone {
        // The recorded copy is looked for first: only a missing one is stored again.
        match people.archive.calls.locate_copies(&replica, &name).await {
            Ok(located) if located.copies.iter().any(FileCopy::is_present) => {
                return Ok(UpdateOutcome::There);
            }
            Ok(located) if located.silent.is_none() => {}
            _ => return Ok(UpdateOutcome::Unknown),
        }
    }
    let spec = people.specs.iter().find(|spec| spec.id == replica);
    let Some(ReplicaSpec { kind, required, .. }) = spec.cloned() else {
        return Ok(UpdateOutcome::There);
    };
    let why = match task {
        Task::Fill(replica) => format!("replica {replica} lost it and is filled again"),
        Task::Volume(volume) => format!("{volume} was retired"),
        Task::Node(NodeKey { node, .. }) => format!("node {node} was retired"),
        Task::Replica(replica) => format!("replica {replica} was retired"),
    };
    let event = StoringEvent::Wanted {
        replica,
        kind,
        required,
        gone: place.map(|place| (place, why)),
    };
    let changes = people.follow_record(&name).await?;
    people.order_event(&name, event, WHO).await?;
    Ok(UpdateOutcome::Updated(Some(changes)))
}

/// Keeps the requested files that are not there yet. Returns how many of them are being worked on.
fn keep_open(task: &Task, open: &mut FollowedFiles) -> usize {
    let replica = match task {
        Task::Fill(replica) | Task::Node(NodeKey { replica, .. }) | Task::Replica(replica) => {
            replica
        }
        Task::Volume(volume) => &volume.replica,
    };
    let mut active = 0;
    open.retain(|record| {
        let copy = record.replicas.get(replica);
        let copy = copy.filter(|copy| copy.state.is_open());
        active += usize::from(copy.is_some_and(|copy| is_active(&copy.state)));
        copy.is_some()
    });
    active
}

/// Returns whether the copy is being worked on; a failed one waits for its next try.
const fn is_active(state: &ReplicaState) -> bool {
    matches!(
        state,
        ReplicaState::UploadStarted
            | ReplicaState::DataUploaded
            | ReplicaState::UploadFailed(StoreFailure::Gone(_))
    )
}

/// Returns the limits of a page of a task. A withdrawal takes no bytes, so that more of them go at once.
const fn limits(task: &Task, room: usize) -> PageLimits {
    let picks = match task {
        Task::Replica(_) => WINDOW * 4,
        Task::Fill(_) | Task::Volume(_) | Task::Node(_) => room,
    };
    PageLimits { rows: PAGE, picks }
}

/// Returns the update of a file for a task, or `None` if it needs no update. If `first`, recorded copies are looked for
/// as well.
fn wanted(task: &Task, record: &FileRecord, first: bool) -> Option<FileUpdate> {
    if !record.phase.is_bound() {
        return None;
    }
    let of = |replica: &ReplicaId, is_gone: bool| {
        let copy = record.replicas.get(replica);
        let copy = copy.filter(|copy| copy.state.is_completed());
        FileUpdate {
            name: record.name.clone(),
            replica: replica.clone(),
            place: copy.and_then(ReplicaRecord::copy_place),
            is_gone,
        }
    };
    match task {
        Task::Fill(replica) => match record.replicas.get(replica) {
            Some(copy) if copy.state.is_withdrawn() => None,
            Some(copy) if copy.state.is_completed() => first.then(|| of(replica, false)),
            // A copy that is being stored is followed only if it failed, or was begun before a start.
            Some(copy) => {
                let failed = matches!(copy.state, ReplicaState::UploadFailed(_));
                (first || failed).then(|| of(replica, false))
            }
            None => Some(of(replica, false)),
        },
        Task::Volume(volume) => {
            let copy = record.replicas.get(&volume.replica)?;
            let is_on_it = copy.volume_key(&volume.replica).as_ref() == Some(volume);
            (copy.state.is_completed() && is_on_it).then(|| of(&volume.replica, true))
        }
        Task::Node(NodeKey { replica, node }) => {
            let copy = record.replicas.get(replica)?;
            let is_on_it = copy.state.is_completed() && copy.node.as_ref() == Some(node);
            is_on_it.then(|| of(replica, true))
        }
        Task::Replica(replica) => {
            let copy = record.replicas.get(replica)?;
            (!copy.state.is_withdrawn()).then(|| of(replica, true))
        }
    }
}

/// Counts the files, and bytes, that a replica lacks according to the rows.
pub(crate) fn lacking_files(
    admin: &Admin,
    now: &StandingSnapshot,
    replica: &ReplicaId,
) -> Result<(u64, u64), DbError> {
    let mut files = 0_u64;
    let mut bytes = 0_u64;
    for row in admin.list_files(None)? {
        let record = row?.record;
        let Some(content) = &record.content else {
            continue;
        };
        let copy = record.replicas.get(replica);
        if copy.is_none_or(|copy| !copy.state.is_withdrawn() && !now.copy_counts(replica, copy)) {
            files += 1;
            bytes = bytes.saturating_add(content.size);
        }
    }
    Ok((files, bytes))
}
