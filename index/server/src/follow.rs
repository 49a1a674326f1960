//! The two loops that keep the index behind the archive: one reads the feed, the other has waiting files read.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use archive_client::{Access, ClientError};
use archive_daemon::Clock;
use archive_db::DbError;
use archive_model::Backoff;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::Notify;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;

use crate::batch_error::BatchError;
use crate::blocking::run_blocking;
use crate::board::StatusBoard;
use crate::extract::Extractor;
use crate::follower::Follower;
use crate::health::Health;
use crate::metrics::Instruments;

/// The pause before the archive is asked again; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// The longest pause before the archive is asked again: so short that an archive which is back is followed within
/// seconds.
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// The most steps of the feed that are taken at once.
const STEPS: usize = 1000;

/// The reason why a loop ends: the part then ends, too.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FollowError {
    /// The database fails.
    #[error(transparent)]
    Database(#[from] DbError),
    /// A bug: blocking work panicked.
    #[error(transparent)]
    Join(#[from] JoinError),
}

impl FollowError {
    /// Reports an error of the database to its health.
    pub(crate) fn report_to(&self, health: &Health) {
        match self {
            Self::Database(error) => health.check_error(error),
            Self::Join(_) => {}
        }
    }
}

/// The reason why one reading of the feed ended.
enum FeedEnd {
    Archive(ClientError),
    Fatal(FollowError),
    /// Everything was forgotten: it is begun anew at once.
    Forgotten,
}

/// The reading of the feed.
pub(crate) struct FeedTask {
    pub(crate) access: Arc<dyn Access>,
    pub(crate) follower: Arc<Follower>,
    pub(crate) board: Arc<StatusBoard>,
    pub(crate) instruments: Instruments,
    pub(crate) clock: Clock,
    pub(crate) stop: CancellationToken,
    /// Woken when files may have come.
    pub(crate) wake: Arc<Notify>,
    /// Woken when everything was forgotten.
    pub(crate) forgotten: Arc<Notify>,
}

impl FeedTask {
    /// Follows the archive until the stop.
    pub(crate) async fn run_feed(self) -> Result<(), FollowError> {
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        loop {
            let ended = tokio::select! {
                ended = self.read(&mut backoff) => ended,
                () = self.forgotten.notified() => FeedEnd::Forgotten,
                () = self.stop.cancelled() => return Ok(()),
            };
            match ended {
                FeedEnd::Fatal(error) => return Err(error),
                FeedEnd::Forgotten => {}
                FeedEnd::Archive(error) => {
                    self.board.note_feed_problem(error.to_string());
                    tokio::select! {
                        () = self.clock.sleep(backoff.next_pause()) => {}
                        () = self.stop.cancelled() => return Ok(()),
                    }
                }
            }
        }
    }

    async fn read(&self, backoff: &mut Backoff) -> FeedEnd {
        match self.read_steps(backoff).await {
            Ok(never) => match never {},
            Err(ended) => ended,
        }
    }

    async fn read_steps(&self, backoff: &mut Backoff) -> Result<Infallible, FeedEnd> {
        let follower = Arc::clone(&self.follower);
        let begun = run_blocking(move || follower.begin_reading(), FollowError::Join).await;
        let (mut reading, after) = begun.map_err(FeedEnd::Fatal)?;
        let steps = self.access.changes(after.as_ref()).await;
        let mut steps = steps.map_err(FeedEnd::Archive)?.ready_chunks(STEPS);
        loop {
            let Some(chunk) = steps.next().await else {
                let cut = "the feed of the archive ended".to_owned();
                return Err(FeedEnd::Archive(ClientError::Unavailable(cut)));
            };
            let mut good = Vec::with_capacity(chunk.len());
            let mut failed = None;
            for step in chunk {
                match step {
                    Ok(step) => good.push(step),
                    Err(error) => failed = Some(error),
                }
            }
            if !good.is_empty() {
                backoff.reset();
            }
            let follower = Arc::clone(&self.follower);
            let applying = move || {
                let counts = follower.apply_changes(good, &mut reading)?;
                Ok::<_, DbError>((counts, reading))
            };
            let applied = run_blocking(applying, FollowError::Join).await;
            let (counts, after) = applied.map_err(FeedEnd::Fatal)?;
            reading = after;
            self.instruments.show_counts(&self.follower.counts());
            self.wake.notify_one();
            if !counts {
                return Err(FeedEnd::Forgotten);
            }
            self.board.note_feed(reading.is_listing());
            if let Some(error) = failed {
                return Err(FeedEnd::Archive(error));
            }
        }
    }
}

/// The reading of files that wait.
pub(crate) struct DispatchTask {
    pub(crate) extractor: Extractor,
    pub(crate) follower: Arc<Follower>,
    pub(crate) board: Arc<StatusBoard>,
    pub(crate) clock: Clock,
    pub(crate) stop: CancellationToken,
    pub(crate) wake: Arc<Notify>,
}

impl DispatchTask {
    /// Dispatches waiting files until the stop. A batch is made of what waits as soon as there is room for one.
    pub(crate) async fn run_dispatch(self) -> Result<(), FollowError> {
        let mut under_way = FuturesUnordered::new();
        // Nothing is begun before `pause_end`, however often it is looked.
        let mut pause_end = None::<Instant>;
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        loop {
            let now = self.clock.instant();
            pause_end = pause_end.filter(|end| *end > now);
            while pause_end.is_none() {
                let follower = Arc::clone(&self.follower);
                let next = run_blocking(move || follower.next_batch(), FollowError::Join);
                let Some(batch) = next.await? else { break };
                let extractor = self.extractor.clone();
                under_way.push(async move { extractor.read_batch(batch).await });
            }
            let turn = match pause_end {
                Some(end) => Some(end.saturating_duration_since(now)),
                None => self.follower.next_turn(),
            };
            let sleep = async {
                match turn {
                    Some(turn) => self.clock.sleep(turn).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                Some(ended) = under_way.next() => match ended {
                    Ok(()) => {
                        backoff.reset();
                        pause_end = None;
                        self.board.note_job_problem(None);
                    }
                    Err(BatchError::Database(error)) => return Err(error.into()),
                    Err(error @ (BatchError::Archive(_) | BatchError::System(_))) => {
                        self.board.note_job_problem(Some(error.to_string()));
                        pause_end = Some(self.clock.instant() + backoff.next_pause());
                    }
                },
                () = sleep => {}
                () = self.wake.notified() => {}
                () = self.stop.cancelled() => return Ok(()),
            }
        }
    }
}
