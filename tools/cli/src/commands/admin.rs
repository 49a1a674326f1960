//! `holdfast admin`: what the archive has decided, taken out of it.

mod export;

use clap::Subcommand;

use super::Context;
use crate::exit::{Exit, Failure};

/// Export what the archive has decided about every file
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  holdfast admin export -o admin.jsonl")]
pub(crate) enum Admin {
    Export(export::Export),
}

impl Admin {
    pub(crate) async fn run(self, context: &Context) -> Result<Exit, Failure> {
        match self {
            Self::Export(export) => export.run(context).await,
        }
    }
}
