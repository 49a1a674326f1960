//! Ctrl-C and SIGTERM while a crawl runs: the first ends the job, which can be resumed; the second ends the process.

use harvest_crawler::crawl::CrawlCommand;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::UnboundedSender;
use tools_terminal::exit::Exit;
use tools_terminal::progress::TransferProgress;

/// The signals, which do not end the process by themselves any more.
#[derive(Debug)]
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Takes the signals over.
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Ends the job at the first signal, so that it can be resumed. Returns at the second one.
    pub(super) async fn watch_signals(
        mut self,
        bar: &TransferProgress,
        control: &UnboundedSender<CrawlCommand>,
    ) -> Exit {
        self.next().await;
        bar.tell_user(
            "ending the crawl; fetches under way have 10 seconds; once more to end at once",
        );
        // A job that has ended is not waited for.
        _ = control.send(CrawlCommand::Suspend);
        self.next().await;
        Exit::Interrupted
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
