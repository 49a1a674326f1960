//! One pass over what is recorded on a volume or node that is drained; when nothing is, over what its node lists there.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use archive_db::DbError;
use archive_decisions::store::FileRecord;
use archive_ledger::admin::Admin;
use archive_ledger::standing::Source;
use archive_model::{FileName, Gap};
use archive_rpc::{CallError, Kind};
use futures_util::{StreamExt, stream};
use tokio::sync::oneshot;

use super::Hands;
use super::one::Ended;
use crate::tables::with_tables;

/// How many files of one drain move at once.
const AT_ONCE: usize = 4;

/// How many rows are looked at before the files among them move.
const PAGE: usize = 2000;

/// So many files that cannot leave end a pass: the next goes on behind them.
const MOST_WAITING: u64 = 32;

/// What came of a pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Passed {
    /// Nothing is recorded there, and nothing lies there that has still to leave.
    pub(super) is_empty: bool,
    /// Files of which nothing is there any more.
    pub(super) left: u64,
    /// Files that could not leave.
    pub(super) waits: u64,
    /// The node lets go of no more old copies within this hour, and that is all that is left to do.
    pub(super) is_braked: bool,
    /// Behind which file the next pass begins; none: at the first.
    pub(super) cursor: Option<FileName>,
    /// How long it took to count.
    pub(super) took: Duration,
}

/// Starts a pass in a task of its own.
pub(super) fn start(
    hands: &Arc<Hands>,
    source: &Source,
    cursor: Option<FileName>,
) -> oneshot::Receiver<Passed> {
    let (tell, told) = oneshot::channel();
    let (hands, source) = (Arc::clone(hands), source.clone());
    let stop = hands.own.tasks.stop();
    let tasks = hands.own.tasks.clone();
    tasks.spawn_once("drain", async move {
        let pass = Box::pin(hands.pass(&source, cursor));
        let passed = tokio::select! {
            () = stop.cancelled() => return,
            passed = pass => passed,
        };
        let passed = passed.unwrap_or_else(|error| {
            tracing::warn!(%source, %error, "a drain does not go on");
            hands.board.hold(&source, error.reason);
            Passed {
                waits: 1,
                ..Passed::default()
            }
        });
        // One that was ended meanwhile is not asked for.
        drop(tell.send(passed));
    });
    told
}

/// Files that left, cannot leave, or stay behind, while a pass lasts.
struct Held<'a> {
    hands: &'a Hands,
    source: &'a Source,
    left: AtomicU64,
    waits: AtomicU64,
    braked: AtomicU64,
    stays: AtomicU64,
}

impl Held<'_> {
    fn add(&self, name: &FileName, ended: Ended) {
        let text = match ended {
            Ended::Left => {
                self.left.fetch_add(1, Ordering::Relaxed);
                return;
            }
            Ended::Waits(why) => {
                let count = self.waits.fetch_add(1, Ordering::Relaxed) + 1;
                tracing::debug!(file = %name, source = %self.source, why, "a file cannot leave yet");
                format!("{count} file(s) cannot leave yet; {name}: {why}")
            }
            Ended::Braked(why) => {
                let count = self.braked.fetch_add(1, Ordering::Relaxed) + 1;
                if self.waits() > 0 {
                    return;
                }
                format!("{count} or more old copies are still to go to the attic: {why}")
            }
            Ended::Stays(why) => {
                let count = self.stays.fetch_add(1, Ordering::Relaxed) + 1;
                if self.waits() + self.braked() > 0 {
                    return;
                }
                format!("{count} file(s) stay behind; {name}: {why}")
            }
        };
        self.hands.board.hold(self.source, text);
    }

    fn waits(&self) -> u64 {
        self.waits.load(Ordering::Relaxed)
    }

    fn braked(&self) -> u64 {
        self.braked.load(Ordering::Relaxed)
    }
}

impl Hands {
    async fn pass(&self, source: &Source, cursor: Option<FileName>) -> Result<Passed, CallError> {
        let begin = self.own.clock.instant();
        let (admin, of) = (self.own.admin.clone(), source.clone());
        let (files, bytes) = with_tables(move || count(&admin, &of)).await?;
        let took = self.own.clock.instant().saturating_duration_since(begin);
        self.board.counted(source, files, bytes);
        let held = Held {
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
                self.board.hold(source, String::new());
            }
            return Ok(Passed {
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
            self.board.hold(source, String::new());
        }
        Ok(Passed {
            is_empty: false,
            left: held.left.load(Ordering::Relaxed),
            waits: held.waits(),
            is_braked: false,
            cursor,
            took,
        })
    }

    /// Every file that is recorded there.
    async fn walk(
        &self,
        source: &Source,
        held: &Held<'_>,
        mut cursor: Option<FileName>,
    ) -> Result<Option<FileName>, CallError> {
        loop {
            let (admin, of, after) = (self.own.admin.clone(), source.clone(), cursor);
            let page = with_tables(move || page(&admin, &of, after.as_ref())).await?;
            self.each(source, page.names, held).await;
            cursor = page.cursor;
            if page.is_last || !self.is_drained_still(source) {
                return Ok(None);
            }
            if held.waits() >= MOST_WAITING {
                return Ok(cursor);
            }
        }
    }

    async fn each(&self, source: &Source, names: Vec<FileName>, held: &Held<'_>) {
        let move_one = |name: FileName| -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + '_>> {
            Box::pin(async move {
                let ended = self.leave(source, &name).await;
                held.add(&name, ended);
            })
        };
        stream::iter(names)
            .map(move_one)
            .buffer_unordered(AT_ONCE)
            .for_each(|()| std::future::ready(()))
            .await;
    }

    /// What its node lists there, though nothing is recorded there: what cut moves have left, and what nobody knows.
    async fn sweep(&self, source: &Source, held: &Held<'_>) -> Result<(), CallError> {
        if let Err(error) = self.try_sweep(source, held).await {
            // Disk or node may be dead for ever; what the archive has is elsewhere.
            let why = format!("nobody can look what else lies there: {}", error.reason);
            self.board.hold(source, why);
            held.stays.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    async fn try_sweep(&self, source: &Source, held: &Held<'_>) -> Result<(), CallError> {
        let (clock, stall) = (&self.own.clock, self.own.stall);
        let late = |late: archive_daemon::clock::TimedOut| Kind::TimedOut.error(late.to_string());
        let opening = self.own.replicas.copies_of(&source.replica, &source.node);
        let mut pages = clock.timeout(stall, opening).await.map_err(late)??;
        loop {
            let page = clock.timeout(stall, pages.next()).await.map_err(late)??;
            let there = page.copies.into_iter().filter(|copy| {
                source.holds(&source.replica, &copy.place.node, &copy.place.volume)
                    && !copy.is_missing()
            });
            let names: Vec<FileName> = there.map(|copy| copy.name).collect();
            // Each file is read before its old copy is asked to go: not all of them, only to hear of the brake again.
            for some in names.chunks(AT_ONCE) {
                self.each(source, some.to_vec(), held).await;
                if held.braked() > 0 {
                    return Ok(());
                }
            }
            let Some(end) = page.end else {
                continue;
            };
            // What names no node may be anywhere; what names one of another volume is nobody's business here.
            let is_own = |gap: &Gap| {
                let volume = gap.volume_id();
                let own = source.volume.as_ref();
                gap.node.is_none() || own.is_none() || volume.is_none() || volume == own
            };
            return match end.into_iter().find(is_own).map(|gap| gap.reason) {
                None => Ok(()),
                Some(why) => Err(Kind::Unavailable.error(why)),
            };
        }
    }
}

/// Whether a file is recorded there, or is brought there.
fn is_recorded(source: &Source, record: &FileRecord) -> bool {
    let copy = record.replicas.get(&source.replica);
    copy.filter(|copy| copy.state.is_completed())
        .and_then(|copy| copy.node.as_ref().zip(copy.volume.as_ref()))
        .is_some_and(|(node, volume)| source.holds(&source.replica, node, volume))
}

/// How many files are recorded there, and their bytes.
fn count(admin: &Admin, source: &Source) -> Result<(u64, u64), DbError> {
    let (mut files, mut bytes) = (0_u64, 0_u64);
    for row in admin.files(None)? {
        let record = row?.record;
        if is_recorded(source, &record) {
            files += 1;
            bytes = bytes.saturating_add(record.content.map_or(0, |content| content.size));
        }
    }
    Ok((files, bytes))
}

/// The next files that are recorded there.
struct Page {
    names: Vec<FileName>,
    cursor: Option<FileName>,
    is_last: bool,
}

fn page(admin: &Admin, source: &Source, after: Option<&FileName>) -> Result<Page, DbError> {
    let mut page = Page {
        names: Vec::new(),
        cursor: after.cloned(),
        is_last: true,
    };
    for (count, row) in admin.files(after)?.enumerate() {
        let record = row?.record;
        if count >= PAGE {
            page.is_last = false;
            break;
        }
        if is_recorded(source, &record) {
            page.names.push(record.name.clone());
        }
        page.cursor = Some(record.name);
    }
    Ok(page)
}
