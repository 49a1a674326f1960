//! Every file is told what has become of its copies: a replica that is filled, a disk, node or replica that was retired.
//!
//! Owns the walk over the admin data, a bounded number of files at a time. What a file is told it remembers, and the
//! store core brings it where it is wanted; so a restart begins the walk again and finds only what is still to be done.
//! A walk ends when one whole pass has found nothing.
//!
//! Not promised: that a file which no replica can give is brought. It is waited for, as its record says why.

#[cfg(test)]
mod tests;
mod unbound;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use archive_daemon::{Step, Worker, WorkerError};
use archive_db::DbError;
use archive_decisions::store::{Event, FileRecord, ReplicaSpec};
use archive_ledger::admin::Admin;
use archive_ledger::standing::{Now, Task};
use archive_model::{FileCopy, FileName, NodeId, ReplicaId, ReplicaState, StoreFailure, VolumeId};

use crate::people::People;

/// How many files are brought at once.
const WINDOW: usize = 16;

/// How many more may wait for another try.
const MOST_WAITING: usize = 1000;

/// How many rows are looked at in one step.
const PAGE: usize = 2000;

/// The pause while nothing can be done.
const PAUSE: Duration = Duration::from_millis(500);

/// The pause before what waits for another try is looked for again.
const REST: Duration = Duration::from_mins(5);

/// In whose name the archive goes on with what people began.
const WHO: &str = "repository";

/// The worker.
pub(crate) struct Bring {
    people: Arc<People>,
    passes: BTreeMap<Task, Pass>,
}

/// One walk over the admin data.
#[derive(Debug, Default)]
struct Pass {
    /// Whether it is not the first since the start.
    later: bool,
    cursor: Option<FileName>,
    /// Files that were told and are not there yet.
    open: BTreeSet<FileName>,
    /// Files that could not be told yet.
    unbound: BTreeSet<FileName>,
    /// What this pass has found to do, or could not look at.
    found: u64,
    /// Until when the next pass waits for what is open.
    rests: Option<Instant>,
}

/// What a file is to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wanted {
    name: FileName,
    replica: ReplicaId,
    /// Where it is recorded, if it is.
    place: Option<(NodeId, VolumeId)>,
    /// Whether that place is known to be given up: else it is asked first.
    is_gone: bool,
}

impl Bring {
    pub(crate) fn new(people: Arc<People>) -> Self {
        Self {
            people,
            passes: BTreeMap::new(),
        }
    }

    /// Goes on with one task; how long it has nothing to do, or `None`.
    async fn go_on(&mut self, task: &Task) -> Result<Option<Duration>, WorkerError> {
        if !self.can_be_asked(task).await {
            return Ok(Some(PAUSE));
        }
        let pass = self.passes.entry(task.clone()).or_default();
        let (admin, task_of, open) = (
            self.people.admin.clone(),
            task.clone(),
            std::mem::take(&mut pass.open),
        );
        let looked = tokio::task::spawn_blocking(move || look(&admin, &task_of, open)).await??;
        pass.open = looked.open;
        let now = self.people.transfers.clock.instant();
        let (admin, task_of) = (self.people.admin.clone(), task.clone());
        let unbound = std::mem::take(&mut pass.unbound);
        let again = move || unbound::look(&admin, &task_of, unbound);
        let again = tokio::task::spawn_blocking(again).await??;
        pass.unbound = again.unbound;
        pass.told(&self.people, task, again.wanted).await?;
        let waits = !pass.open.is_empty() || !pass.unbound.is_empty();
        if waits && pass.rests.is_some_and(|until| now < until) {
            return Ok(Some(PAUSE));
        }
        pass.rests = None;
        let room = WINDOW.saturating_sub(looked.active);
        if room == 0 || pass.open.len() >= WINDOW + MOST_WAITING {
            return Ok(Some(PAUSE));
        }
        // What began before the walk is among the rows.
        if pass.cursor.is_none() && !self.people.transfers.mail.settled().await {
            return Ok(Some(PAUSE));
        }
        let (admin, task_of, open) = (self.people.admin.clone(), task.clone(), pass.open.clone());
        let (cursor, first) = (pass.cursor.clone(), !pass.later);
        let page = tokio::task::spawn_blocking(move || {
            let unbound = std::cell::RefCell::new(Vec::new());
            let page = page(&admin, &task_of, cursor.as_ref(), room, |record| {
                if open.contains(&record.name) {
                    return None;
                }
                let wanted = wanted(&task_of, record, first);
                if wanted.is_none() && unbound::may_still(&task_of, record) {
                    unbound.borrow_mut().push(record.name.clone());
                }
                wanted
            });
            page.map(|page| (page, unbound.into_inner()))
        });
        let (page, unbound) = page.await??;
        for name in unbound {
            if pass.unbound.len() < MOST_WAITING {
                pass.unbound.insert(name);
            } else {
                // A later pass comes upon it again.
                pass.found += 1;
            }
        }
        pass.told(&self.people, task, page.wanted).await?;
        pass.cursor = page.cursor;
        if !page.is_last {
            return Ok(None);
        }
        // What was given up is so once every file knows; what is filled, once every file is there.
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

    /// Whether the monitor answers, and so has been told what is out of service: before, every file would be told that
    /// nobody knows whether its copy is there.
    async fn can_be_asked(&self, task: &Task) -> bool {
        let replica = match task {
            Task::Fill(replica) | Task::Node(replica, _) => replica,
            Task::Volume(volume) => &volume.replica,
            // It is asked no more.
            Task::Replica(_) => return true,
        };
        let asking = self.people.transfers.replicas.state(replica);
        let limit = self.people.transfers.stall;
        let asked = self.people.transfers.clock.timeout(limit, asking).await;
        matches!(asked, Ok(Ok(_)))
    }

    async fn end(&mut self, task: &Task) -> Result<(), WorkerError> {
        let what = match task {
            Task::Fill(replica) => format!("replica {replica} is filled: it has every file"),
            Task::Volume(volume) => format!("every file has given up retired {volume}"),
            Task::Node(_, node) => format!("every file has given up retired node {node}"),
            Task::Replica(replica) => format!("every file has given up retired replica {replica}"),
        };
        tracing::info!(what, "a walk over the archive has ended");
        let line = self.people.line(WHO.to_owned(), None, what);
        let (standing, ended) = (Arc::clone(&self.people.standing), task.clone());
        tokio::task::spawn_blocking(move || standing.end(&ended, line)).await??;
        self.passes.remove(task);
        Ok(())
    }
}

impl Worker for Bring {
    const NAME: &'static str = "bring";

    async fn step(&mut self) -> Result<Step, WorkerError> {
        let tasks = self.people.standing.now().tasks();
        self.passes.retain(|task, _| tasks.contains(task));
        let mut rest = if tasks.is_empty() { Some(PAUSE) } else { None };
        let mut is_busy = false;
        for task in tasks {
            match self.go_on(&task).await? {
                None => is_busy = true,
                Some(pause) => rest = Some(rest.map_or(pause, |rest| rest.min(pause))),
            }
        }
        Ok(match rest {
            Some(rest) if !is_busy => Step::Idle(rest),
            Some(_) | None => Step::Again,
        })
    }
}

/// What came of telling a file.
enum Told {
    /// The copy is there after all.
    There,
    /// Nobody can say whether it is.
    Unknown,
    /// It knows now.
    Wanted,
}

async fn tell(people: &People, task: &Task, wanted: Wanted) -> Result<Told, WorkerError> {
    let Wanted {
        name,
        replica,
        place,
        is_gone,
    } = wanted;
    if let Task::Replica(_) = task {
        let why = format!("replica {replica} was retired");
        people
            .order(&name, Event::Withdrawn { replica, why }, WHO)
            .await?;
        return Ok(Told::Wanted);
    }
    if place.is_some() && !is_gone {
        // What is recorded there is asked for first: only what is not there is brought.
        let located = people.transfers.replicas.locate(&replica, &name);
        match people
            .transfers
            .clock
            .timeout(people.transfers.stall, located)
            .await
        {
            Ok(Ok(located)) if located.copies.iter().any(FileCopy::is_present) => {
                return Ok(Told::There);
            }
            Ok(Ok(located)) if located.silent.is_none() => {}
            Ok(Ok(_) | Err(_)) | Err(_) => return Ok(Told::Unknown),
        }
    }
    let spec = people.specs.iter().find(|spec| spec.id == replica);
    let Some(ReplicaSpec { kind, required, .. }) = spec.cloned() else {
        return Ok(Told::There);
    };
    let why = match task {
        Task::Fill(replica) => format!("replica {replica} lost it and is filled again"),
        Task::Volume(volume) => format!("{volume} was retired"),
        Task::Node(_, node) => format!("node {node} was retired"),
        Task::Replica(replica) => format!("replica {replica} was retired"),
    };
    let event = Event::Wanted {
        replica,
        kind,
        required,
        gone: place.map(|(node, volume)| (node, volume, why)),
    };
    people.order(&name, event, WHO).await?;
    Ok(Told::Wanted)
}

/// Which of the files that were told are still not there, and how many of them are being worked on.
struct Looked {
    open: BTreeSet<FileName>,
    active: usize,
}

fn look(admin: &Admin, task: &Task, open: BTreeSet<FileName>) -> Result<Looked, DbError> {
    let mut looked = Looked {
        open: BTreeSet::new(),
        active: 0,
    };
    for name in open {
        let Some(row) = admin.file(&name)? else {
            continue;
        };
        let replica = match task {
            Task::Fill(replica) | Task::Node(replica, _) | Task::Replica(replica) => replica,
            Task::Volume(volume) => &volume.replica,
        };
        let copy = row.record.replicas.get(replica);
        if let Some(copy) = copy.filter(|copy| copy.state.is_open()) {
            looked.active += usize::from(is_active(&copy.state));
            looked.open.insert(name);
        }
    }
    Ok(looked)
}

/// Whether something is being done about it; one that failed waits for its next try.
const fn is_active(state: &ReplicaState) -> bool {
    match state {
        ReplicaState::UploadStarted
        | ReplicaState::DataUploaded
        | ReplicaState::UploadFailed(StoreFailure::Gone(_)) => true,
        ReplicaState::UploadCompleted
        | ReplicaState::UploadFailed(_)
        | ReplicaState::Withdrawn(_) => false,
    }
}

/// The next files that are to be told.
struct Page {
    wanted: Vec<Wanted>,
    cursor: Option<FileName>,
    is_last: bool,
}

fn page(
    admin: &Admin,
    task: &Task,
    after: Option<&FileName>,
    room: usize,
    judge: impl Fn(&FileRecord) -> Option<Wanted>,
) -> Result<Page, DbError> {
    let mut page = Page {
        wanted: Vec::new(),
        cursor: after.cloned(),
        is_last: true,
    };
    let room = if matches!(task, Task::Replica(_)) {
        WINDOW * 4
    } else {
        room
    };
    for (count, row) in admin.files(after)?.enumerate() {
        let record = row?.record;
        if page.wanted.len() >= room || count >= PAGE {
            page.is_last = false;
            break;
        }
        page.wanted.extend(judge(&record));
        page.cursor = Some(record.name);
    }
    Ok(page)
}

/// What a file is to be told of a task; none: nothing any more. `first`: what is recorded is looked for as well.
fn wanted(task: &Task, record: &FileRecord, first: bool) -> Option<Wanted> {
    if !record.phase.is_bound() {
        return None;
    }
    let of = |replica: &ReplicaId, is_gone: bool| {
        let copy = record.replicas.get(replica);
        let copy = copy.filter(|copy| copy.state.is_completed());
        Wanted {
            name: record.name.clone(),
            replica: replica.clone(),
            place: copy.and_then(|copy| Some((copy.node.clone()?, copy.volume.clone()?))),
            is_gone,
        }
    };
    match task {
        Task::Fill(replica) => match record.replicas.get(replica) {
            Some(copy) if copy.state.is_withdrawn() => None,
            Some(copy) if copy.state.is_completed() => first.then(|| of(replica, false)),
            // What is on its way is: only what failed, or was on its way before a start, is followed.
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
        Task::Node(replica, node) => {
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

/// How many files, and bytes, a replica lacks as far as is recorded.
pub(crate) fn lacking(
    admin: &Admin,
    now: &Now,
    replica: &ReplicaId,
) -> Result<(u64, u64), DbError> {
    let (mut files, mut bytes) = (0_u64, 0_u64);
    for row in admin.files(None)? {
        let record = row?.record;
        let Some(content) = &record.content else {
            continue;
        };
        let copy = record.replicas.get(replica);
        if copy.is_none_or(|copy| !copy.state.is_withdrawn() && !now.counts(replica, copy)) {
            files += 1;
            bytes = bytes.saturating_add(content.size);
        }
    }
    Ok((files, bytes))
}
