//! The wait for the end of a job, with its progress.

use std::time::Duration;

use archive_client::batch::{self, JobStatus, WatchPace};
use archive_client::{ClientLimits, Researcher};
use archive_model::Backoff;
use tools_terminal::bars::{Bars, ProgressUnit};
use tools_terminal::context::CommandContext;
use tools_terminal::exit::Failure;
use tools_terminal::output::tell_user;
use tools_terminal::session::Session;

/// The time between two questions to the archive about the progress.
const LOOK: Duration = Duration::from_millis(250);

/// The time until the archive is asked again that could not be asked, in milliseconds.
const SILENT_LOOK_MS: u64 = 5000;

/// Waits for the end of a job. While the archive cannot be asked, the job may still run: the wait continues, for a
/// while.
pub(super) async fn watch_job(
    context: &CommandContext,
    session: &Session,
    researcher: &Researcher,
    job: JobStatus,
) -> Result<JobStatus, Failure> {
    if job.state.has_ended() {
        return Ok(job);
    }
    let mut bars = Bars::new(!context.output.is_json());
    let mut waits = String::new();
    let ended = batch::watch_job(researcher, &job.id, pace(session.limits()), |look| {
        match look {
            Ok(open) => show(open, &mut bars, &mut waits),
            Err(error) => bars.suspend(|| tell_user(&format!("job {}: {error}", job.id))),
        }
        true
    });
    let ended = ended.await;
    bars.finish_bars();
    ended.map_err(|error| session.failure(error))
}

/// Returns a steady pace, and the patience of the client file with an archive that cannot be asked.
fn pace(limits: ClientLimits) -> WatchPace {
    WatchPace {
        look: Backoff::new(LOOK, LOOK),
        limits: ClientLimits {
            attempts: limits.attempts.saturating_add(1),
            patience_seconds: u64::MAX,
            first_pause_ms: SILENT_LOOK_MS,
            longest_pause_ms: SILENT_LOOK_MS,
            ..limits
        },
    }
}

/// Shows how far a job is, and a new reason why it waits.
fn show(open: &JobStatus, bars: &mut Bars, waits: &mut String) {
    for node in &open.nodes {
        bars.step_bar(
            node.node.as_str(),
            ProgressUnit::Files,
            node.files,
            node.files_total,
        );
    }
    let why = open.reason.clone().unwrap_or_default();
    if why != *waits && !why.is_empty() {
        bars.suspend(|| tell_user(&format!("job {}: {why}", open.id)));
    }
    *waits = why;
}
