//! `holdfast admin`: what was decided about every file, exported and restored.

mod export;
mod restore;

use clap::Subcommand;
use tools_terminal::context::CommandContext;
use tools_terminal::exit::{Exit, Failure};

use super::talk;

/// Export the admin data and the audit trail, and restore them
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  holdfast admin export -o admin.jsonl
  holdfast admin restore --settings repository.toml --from admin.jsonl
  holdfast admin restore --settings repository.toml --from-replicas")]
pub(crate) enum Admin {
    Export(export::Export),
    Restore(restore::Restore),
}

impl Admin {
    pub(crate) fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        match self {
            Self::Export(export) => talk(export.run(context)),
            Self::Restore(restore) => restore.run(context),
        }
    }
}
