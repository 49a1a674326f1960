//! `holdfast batch`: one program over many files, where their bytes are.

mod check;

use clap::Subcommand;

use super::Context;
use crate::exit::{Exit, Failure};

/// Run jobs over archived files, on the machines where they are
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  holdfast batch check titles.wasm")]
pub(crate) enum Batch {
    Check(check::Check),
}

impl Batch {
    pub(crate) fn run(self, context: &Context) -> Result<Exit, Failure> {
        match self {
            Self::Check(check) => check.run(context),
        }
    }
}
