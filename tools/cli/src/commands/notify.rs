//! `holdfast notify`: would anybody hear of it?

use archive_client::Preservation;
use clap::Subcommand;
use tools_terminal::context::CommandContext;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::output::tell_user;
use tools_terminal::session::Session;

/// Test the notifications of the repository
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  holdfast notify test")]
pub(crate) enum Notify {
    /// Send a test notification through every configured channel: the command, and the mail server
    ///
    /// The repository sends it as it sends every notification: by `notify.command` and `[notify.smtp]` of its settings.
    /// Prints one line for each channel: its kind, its target, and the result. A channel that hangs is abandoned after
    /// `notify.limit`. Needs the role operator. The exit code is 1 if a channel failed, if the mail server refused one
    /// of the recipients, or if no channel is configured: damage then reaches nobody.
    #[command(after_help = "Examples:
  holdfast notify test")]
    Test {},
}

impl Notify {
    pub(crate) async fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        let Self::Test {} = self;
        let session = Session::open(&context.global)?;
        let outcome = session.keeper().notify_test().await;
        let outcome = outcome.map_err(|error| session.failure(error))?;
        if context.output.is_json() {
            context.output.write_document(&outcome)?;
        } else {
            outcome
                .outcomes
                .iter()
                .try_for_each(|line| context.output.write_line(line))?;
        }
        if outcome.outcomes.is_empty() {
            tell_user(
                "no notification channel is configured: set `notify.command` or `notify.smtp` in the \
                 repository's settings",
            );
            return Ok(Exit::Failed);
        }
        Ok(if outcome.failed {
            Exit::Failed
        } else {
            Exit::Done
        })
    }
}
