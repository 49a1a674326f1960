//! The wait for the end of a job, with its progress.

use std::time::Duration;

use archive_client::batch::JobStatus;
use archive_client::{Batch, Researcher};
use archive_daemon::Clock;
use tools_terminal::bars::{Bars, Counted};
use tools_terminal::context::Context;
use tools_terminal::exit::Failure;
use tools_terminal::output::tell;
use tools_terminal::session::Session;

/// The time between two questions to the archive about the progress.
const LOOK: Duration = Duration::from_millis(250);

/// The time until the archive is asked again that could not be asked.
const SILENT_LOOK: Duration = Duration::from_secs(5);

/// Waits for the end of a job. While the archive cannot be asked, the job may go on: so does this, for a while.
pub(super) async fn watch(
    context: &Context,
    session: &Session,
    researcher: &Researcher,
    mut job: JobStatus,
) -> Result<JobStatus, Failure> {
    let mut bars = Bars::new(!context.output.is_json());
    let mut waits = String::new();
    let mut silent = 0;
    let clock = Clock::system();
    while !job.state.has_ended() {
        for node in &job.nodes {
            bars.step(
                node.node.as_str(),
                Counted::Files,
                node.files,
                node.files_total,
            );
        }
        let why = job.reason.clone().unwrap_or_default();
        if why != waits && !why.is_empty() {
            bars.suspend(|| tell(&format!("job {}: {why}", job.id)));
        }
        waits = why;
        clock.sleep(LOOK).await;
        job = match researcher.find(&job.id).await {
            Ok(job) => {
                silent = 0;
                job
            }
            Err(error) if error.is_passing() && silent < session.attempts() => {
                silent += 1;
                bars.suspend(|| tell(&format!("job {}: {error}", job.id)));
                clock.sleep(SILENT_LOOK).await;
                continue;
            }
            Err(error) => {
                bars.finish();
                return Err(session.failure(error));
            }
        };
    }
    bars.finish();
    Ok(job)
}
