//! `holdfast notify`: would anybody hear of it?

use archive_client::Preservation;
use clap::Subcommand;

use super::Context;
use crate::exit::{Exit, Failure};
use crate::output::tell;
use crate::session::Session;

/// Try out notifications
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  holdfast notify test")]
pub(crate) enum Notify {
    /// Send a test notification through every way that is set
    ///
    /// Prints what was tried and what came of it. Needs the role operator. The exit code is 1 if a way failed, or if none
    /// is set: then nobody hears of damage.
    #[command(after_help = "Examples:
  holdfast notify test")]
    Test {},
}

impl Notify {
    pub(crate) async fn run(self, context: &Context) -> Result<Exit, Failure> {
        let Self::Test {} = self;
        let session = Session::open(&context.global)?;
        let outcome = session.keeper().notify_test().await;
        let outcome = outcome.map_err(|error| session.failure(error))?;
        if context.output.is_json() {
            context.output.document(&outcome)?;
        } else {
            outcome
                .outcomes
                .iter()
                .try_for_each(|line| context.output.line(line))?;
        }
        if outcome.outcomes.is_empty() {
            tell("no way is set; set one in the section [notify] of the repository's settings");
            return Ok(Exit::Failed);
        }
        Ok(if outcome.failed {
            Exit::Failed
        } else {
            Exit::Done
        })
    }
}
