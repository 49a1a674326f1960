//! The begin of a crawl in a process: what earlier ones have left, then the seeds.

use std::sync::Arc;

use super::CrawlOwner;
use crate::crawl::{CrawlEnd, CrawlError, CrawlNotice};
use crate::frontier::DesiredState;
use crate::recorder::RecorderError;

impl CrawlOwner {
    /// Restores what earlier processes have decided, and adds the seeds.
    pub(super) fn begin_crawl(&mut self) -> Result<(), CrawlError> {
        let frontier = self.recorder.frontier();
        let totals = frontier.queue_totals();
        (self.progress.fetched, self.progress.bytes) = (totals.successes, totals.bytes);
        self.progress.failed = totals.errors;
        let accepted = frontier.accepted_seeds().map_err(RecorderError::from)?;
        let added = frontier.added_seeds().map_err(RecorderError::from)?;
        for url in &accepted {
            self.accept_redirected_seed(url);
        }
        for url in &added {
            self.accept_seed(url);
        }
        self.allowed.extend(self.job.order.allowed_networks(&added));
        let wanted = frontier.desired_state().map_err(RecorderError::from)?;
        let queued = frontier.waiting_uris();
        if queued > 0 || totals.total > 0 {
            self.notify(CrawlNotice::Resumed {
                fetched: totals.successes,
                queued,
                running: frontier.running_time(),
                is_paused: wanted == DesiredState::Paused,
            });
        }
        match wanted {
            DesiredState::Running => {}
            DesiredState::Paused => self.progress.is_paused = true,
            DesiredState::Terminated => self.decide_end(CrawlEnd::Terminated),
        }
        self.check_conditions()?;
        self.schedule_seeds(&Arc::clone(&self.job).seeds)?;
        while let Ok(request) = self.channels.control.try_recv() {
            self.handle_command(request)?;
        }
        while let Ok(request) = self.channels.requests.try_recv() {
            self.handle_request(request)?;
        }
        Ok(())
    }
}
