//! The crawl of a job: requests go to it, closed files and progress come from it.
//!
//! Owns what runs beside a crawl, and that its outcome is kept as soon as there is one.

use std::convert::Infallible;
use std::sync::Arc;

use harvest_crawler::crawl::{
    Crawl, CrawlCommand, CrawlEnd, CrawlError, CrawlOutcome, CrawlProgress, CrawlSettings, MIN_FREE,
};
use harvest_crawler::process::KnownCaptures;
use harvest_model::CrawlOrder;
use harvest_reports::progress::{CrawlState, EndMessage, FILE_NAME as PROGRESS_LOG};
use index_dedup::{DedupError, DedupIndex};
use tokio::sync::{mpsc, watch};

use crate::actions::ActionWatch;
use crate::error::HarvestJobError;
use crate::notice::JobNotice;
use crate::progress_log::{ProgressLog, end_message};
use crate::run::JobRun;
use crate::view_door::ViewDoor;

impl JobRun<'_> {
    /// Crawls to the end, or until it is suspended.
    pub(crate) async fn run_crawl(
        &self,
        mut requests: mpsc::UnboundedReceiver<CrawlCommand>,
        progress: watch::Sender<CrawlProgress>,
    ) -> Result<CrawlOutcome, HarvestJobError> {
        let Self {
            directory,
            environment,
            ..
        } = self;
        let (crawl, handle) = Crawl::new(
            self.settings()?,
            environment.clock.clone(),
            environment.chance.clone(),
        );
        let log_path = directory.path_of("logs").join(PROGRESS_LOG);
        let mut log = ProgressLog::open(&log_path, environment.clock.clone())?;
        // Requests that were there before it count from its start.
        while let Ok(request) = requests.try_recv() {
            _ = handle.control.send(request);
        }
        let pass_on = async {
            while let Some(request) = requests.recv().await {
                // The crawl may have ended meanwhile.
                _ = handle.control.send(request);
            }
            std::future::pending::<Infallible>().await
        };
        let mut watched = handle.progress.clone();
        let tell = async {
            while watched.changed().await.is_ok() {
                let current = watched.borrow_and_update().clone();
                progress.send_replace(current);
            }
        };
        let mut notices = handle.notices;
        let tell_notices = async {
            while let Some(notice) = notices.recv().await {
                (self.notify)(JobNotice::Crawl(&notice));
            }
        };
        let earlier = directory.closed_files(environment.clock.now())?;
        let mut opened = handle.opened;
        let mut closed = handle.closed;
        let closing = async {
            let mut first = Ok(());
            // A file that is stored may be deleted, and a frontier that still names it would pass for damaged.
            if opened.wait_for(|is_open| *is_open).await.is_ok() {
                first = self.close_all(earlier).await;
            }
            while let Some(file) = closed.recv().await {
                first = first.and(self.close_or_notify(file).await);
            }
            first
        };
        let mut actions =
            ActionWatch::new(directory, &environment.clock, handle.requests, self.notify);
        actions.send_waiting().await;
        let watching = async {
            match ViewDoor::open_door(directory) {
                Ok(door) => match door.serve(&environment.clock, handle.views).await {},
                // A crawl is not broken off because nobody can watch it.
                Err(error) => {
                    (self.notify)(JobNotice::NoViewDoor(&error.to_string()));
                    std::future::pending::<Infallible>().await
                }
            }
        };
        let crawling = async {
            let followed = log.follow_crawl(handle.progress);
            let (ended, (), (), followed) =
                tokio::join!(crawl.run_crawl(), tell, tell_notices, followed);
            match ended {
                Ok(outcome) => {
                    followed?;
                    self.keep_outcome(&mut log, &outcome)?;
                    Ok(outcome)
                }
                Err(error) => {
                    // A disk that takes no note is told by the error of the crawl, which came first.
                    drop(log.note_state(CrawlState::Ended(EndMessage::AbnormalExit)));
                    Err(self.crawl_error(error))
                }
            }
        };
        let (outcome, closed) = tokio::select! {
            biased;
            // A request that was answered is put away first, also where it has ended the crawl.
            never = actions.run_watch() => match never {},
            ended = async { tokio::join!(crawling, closing) } => ended,
            never = pass_on => match never {},
            never = watching => match never {},
        };
        let outcome = outcome?;
        closed?;
        Ok(outcome)
    }

    /// Ends the log, and keeps the outcome: the crawl is over from now on, whatever happens to its files.
    fn keep_outcome(
        &self,
        log: &mut ProgressLog,
        outcome: &CrawlOutcome,
    ) -> Result<(), HarvestJobError> {
        if outcome.taken_back > 0 {
            (self.notify)(JobNotice::TakenBack(outcome.taken_back));
        }
        let state = end_message(outcome.end).map_or(CrawlState::Checkpointed, CrawlState::Ended);
        log.end_log(&outcome.progress, state)?;
        if outcome.end != CrawlEnd::Suspended {
            self.directory.keep_outcome(outcome)?;
        }
        Ok(())
    }

    /// Returns the error of a crawl that has broken off. Where the frontier cannot be read, it says how the job can end
    /// without it.
    fn crawl_error(&self, source: CrawlError) -> HarvestJobError {
        if source.is_damage() {
            let state = self.directory.path_of("state");
            let source = Box::new(source);
            return HarvestJobError::Frontier { state, source };
        }
        HarvestJobError::Crawl(source)
    }

    fn settings(&self) -> Result<CrawlSettings, HarvestJobError> {
        let job = self.directory.job();
        let known = known_captures(&job.order)?;
        if let Some(known) = &known {
            // The index may be gone when the crawl is documented.
            let jobs = known.index.list_jobs()?;
            self.directory.keep_deduplicated_against(&jobs)?;
        }
        Ok(CrawlSettings {
            directory: self.directory.root().to_owned(),
            job: Arc::new(job.clone()),
            host: self.environment.host.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            warcinfo: self.warcinfo.render_block(),
            known,
            min_free: MIN_FREE,
        })
    }
}

/// Opens the index of earlier captures that an order names, and reads all of it once: a changed byte would give a wrong
/// place.
fn known_captures(order: &CrawlOrder) -> Result<Option<Arc<KnownCaptures>>, DedupError> {
    let Some(path) = &order.dedup.file else {
        return Ok(None);
    };
    let index = DedupIndex::open(path)?;
    index.verify_file()?;
    let with_text = order.dedup.all;
    Ok(Some(Arc::new(KnownCaptures { index, with_text })))
}
