//! One pass over the recorded copies on a drained volume or node; if there are none, over the listing of its node.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use archive_db::DbError;
use archive_decisions::store::{FileRecord, ReplicaRecord};
use archive_ledger::admin::{Admin, AdminRow, FileWalk, PageLimits};
use archive_ledger::standing::DrainSource;
use archive_model::{FileName, Gap};
use archive_rpc::{CallError, CallErrorKind};
use futures_util::{StreamExt, stream};
use tokio::sync::oneshot;

use super::DrainContext;
use super::one::LeaveOutcome;
use crate::tables::with_tables;

/// The most files of one drain that move at once.
const AT_ONCE: usize = 4;

/// The number of rows that are read before the files among them move.
const PAGE: PageLimits = PageLimits {
    rows: 2000,
    picks: 2000,
};

/// The number of files that cannot leave which ends a pass: the next one continues behind them.
const MOST_WAITING: u64 = 32;

/// The outcome of a pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PassOutcome {
    /// Whether no copy is recorded there, and no file there has still to leave.
    pub(super) is_empty: bool,
    /// The number of files that have left.
    pub(super) left: u64,
    /// The number of files that could not leave.
    pub(super) waits: u64,
    /// Whether the node releases no more old copies within this hour, and nothing else is left to do.
    pub(super) is_braked: bool,
    /// The file behind which the next pass begins; `None` for the first.
    pub(super) cursor: Option<FileName>,
    /// The time that the pass took to count.
    pub(super) took: Duration,
}

/// Starts a pass in a task of its own.
pub(super) fn start_pass(
    hands: &Arc<DrainContext>,
    source: &DrainSource,
    cursor: Option<FileName>,
) -> oneshot::Receiver<PassOutcome> {
    let (tell, told) = oneshot::channel();
    let hands = Arc::clone(hands);
    let source = source.clone();
    let stop = hands.own.archive.tasks.stop_token();
    let tasks = hands.own.archive.tasks.clone();
    tasks.spawn_once("drain", async move {
        let pass = Box::pin(hands.pass(&source, cursor));
        let passed = tokio::select! {
            () = stop.cancelled() => return,
            passed = pass => passed,
        };
        let passed = passed.unwrap_or_else(|error| {
            tracing::warn!(%source, %error, "a drain cannot continue");
            hands.board.note_hold(&source, error.reason);
            PassOutcome {
                waits: 1,
                ..PassOutcome::default()
            }
        });
        // A drain that has ended in the meantime needs no outcome.
        _ = tell.send(passed);
    });
    told
}

/// The files of a pass that left, cannot leave, or stay behind.
struct PassTally<'a> {
    hands: &'a DrainContext,
    source: &'a DrainSource,
    left: AtomicU64,
    waits: AtomicU64,
    braked: AtomicU64,
    stays: AtomicU64,
}

impl PassTally<'_> {
    fn add(&self, name: &FileName, ended: LeaveOutcome) {
        let text = match ended {
            LeaveOutcome::Left => {
                self.left.fetch_add(1, Ordering::Relaxed);
                return;
            }
            LeaveOutcome::Waits(why) => {
                let count = self.waits.fetch_add(1, Ordering::Relaxed) + 1;
                tracing::debug!(file = %name, source = %self.source, why, "a file cannot leave yet");
                format!("{count} file(s) cannot leave yet; {name}: {why}")
            }
            LeaveOutcome::Braked(why) => {
                let count = self.braked.fetch_add(1, Ordering::Relaxed) + 1;
                if self.waits() > 0 {
                    return;
                }
                format!("{count} or more old copies have still to be moved into the attic: {why}")
            }
            LeaveOutcome::Stays(why) => {
                let count = self.stays.fetch_add(1, Ordering::Relaxed) + 1;
                if self.waits() + self.braked() > 0 {
                    return;
                }
                format!("{count} file(s) stay behind; {name}: {why}")
            }
        };
        self.hands.board.note_hold(self.source, text);
    }

    fn waits(&self) -> u64 {
        self.waits.load(Ordering::Relaxed)
    }

    fn braked(&self) -> u64 {
        self.braked.load(Ordering::Relaxed)
    }
}

impl DrainContext {
    async fn pass(
        &self,
        source: &DrainSource,
        cursor: Option<FileName>,
    ) -> Result<PassOutcome, CallError> {
        let begin = self.own.archive.calls.clock.instant();
        let admin = self.own.archive.admin.clone();
        let of = source.clone();
        let (files, bytes) = with_tables(move || count(&admin, &of)).await?;
        let took = self.own.archive.calls.clock.elapsed_since(begin);
        self.board.note_counted(source, files, bytes);
        let held = PassTally {
            hands: self,
            source,
            left: AtomicU64::new(0),
            waits: AtomicU64::new(0),
            braked: AtomicU64::new(0),
            stays: AtomicU64::new(0),
        };
        if files == 0 {
            self.sweep(source, &held).await?;
            let waits = held.waits() + held.braked();
            if waits + held.stays.load(Ordering::Relaxed) == 0 {
                self.board.note_hold(source, String::new());
            }
            return Ok(PassOutcome {
                is_empty: waits == 0,
                left: held.left.load(Ordering::Relaxed),
                waits,
                is_braked: held.braked() > 0,
                cursor: None,
                took,
            });
        }
        let cursor = self.walk(source, &held, cursor).await?;
        if held.waits() + held.braked() == 0 {
            self.board.note_hold(source, String::new());
        }
        Ok(PassOutcome {
            is_empty: false,
            left: held.left.load(Ordering::Relaxed),
            waits: held.waits(),
            is_braked: false,
            cursor,
            took,
        })
    }

    /// Moves every file that is recorded at the source.
    async fn walk(
        &self,
        source: &DrainSource,
        held: &PassTally<'_>,
        cursor: Option<FileName>,
    ) -> Result<Option<FileName>, CallError> {
        let mut walk = FileWalk::over_scope(source.walk_scope()).after_name(cursor);
        loop {
            let admin = self.own.archive.admin.clone();
            let of = source.clone();
            let (page, at) = with_tables(move || {
                let pick = |row: AdminRow| is_recorded(&of, &row.record).then_some(row.record.name);
                let page = walk.next_page(&admin, PAGE, pick)?;
                Ok((page, walk))
            })
            .await?;
            walk = at;
            self.each(source, page.picked, held).await;
            if page.is_last || !self.is_drained_still(source) {
                return Ok(None);
            }
            if held.waits() >= MOST_WAITING {
                return Ok(walk.cursor().cloned());
            }
        }
    }

    async fn each(&self, source: &DrainSource, names: Vec<FileName>, held: &PassTally<'_>) {
        let move_one = |name: FileName| -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + '_>> {
            Box::pin(async move {
                let ended = self.leave_volume(source, &name).await;
                held.add(&name, ended);
            })
        };
        stream::iter(names)
            .map(move_one)
            .buffer_unordered(AT_ONCE)
            .for_each(|()| std::future::ready(()))
            .await;
    }

    /// Handles files that the node lists there without a record: the rest of interrupted moves, and unknown files.
    async fn sweep(&self, source: &DrainSource, held: &PassTally<'_>) -> Result<(), CallError> {
        if let Err(error) = self.try_sweep(source, held).await {
            // Disk or node may never come back; the archive has its copies elsewhere.
            let why = format!("cannot list what else lies there: {}", error.reason);
            self.board.note_hold(source, why);
            held.stays.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    async fn try_sweep(&self, source: &DrainSource, held: &PassTally<'_>) -> Result<(), CallError> {
        let calls = &self.own.archive.calls;
        let opening = calls.replicas.copies_of(&source.replica, &source.node);
        let mut pages = calls.answered_call(opening).await?;
        loop {
            let page = calls.answered_call(pages.next()).await?;
            let there = page.items.into_iter().filter(|copy| {
                source.holds_copy(&source.replica, &copy.place.node, &copy.place.volume)
                    && !copy.is_missing()
            });
            let names: Vec<FileName> = there.map(|copy| copy.name).collect();
            // Each file is read before its old copy is moved: not all of them, only to hit the brake again.
            for some in names.chunks(AT_ONCE) {
                self.each(source, some.to_vec(), held).await;
                if held.braked() > 0 {
                    return Ok(());
                }
            }
            let Some(end) = page.end else {
                continue;
            };
            // A gap without a node may be anywhere; a gap of another volume does not concern this drain.
            let is_own = |gap: &Gap| {
                let volume = gap.volume_id();
                let own = source.volume.as_ref();
                gap.node.is_none() || own.is_none() || volume.is_none() || volume == own
            };
            return match end.into_iter().find(is_own).map(|gap| gap.reason) {
                None => Ok(()),
                Some(why) => Err(CallErrorKind::Unavailable.to_error(why)),
            };
        }
    }
}

/// Returns whether a file is recorded there, or is being stored there.
fn is_recorded(source: &DrainSource, record: &FileRecord) -> bool {
    let copy = record.replicas.get(&source.replica);
    copy.filter(|copy| copy.state.is_completed())
        .and_then(ReplicaRecord::copy_place)
        .is_some_and(|place| source.holds_copy(&source.replica, &place.node, &place.volume))
}

/// Counts the files that are recorded at the source of a drain, and their bytes.
fn count(admin: &Admin, source: &DrainSource) -> Result<(u64, u64), DbError> {
    let mut files = 0_u64;
    let mut bytes = 0_u64;
    for row in admin.files_in(&source.walk_scope(), None)? {
        let record = row?.record;
        if is_recorded(source, &record) {
            files += 1;
            bytes = bytes.saturating_add(record.content.map_or(0, |content| content.size));
        }
    }
    Ok((files, bytes))
}
