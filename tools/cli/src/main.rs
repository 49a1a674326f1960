//! The executable `holdfast`: where the archive's parts and clients are put together.
//!
//! Owns the command line: what can be asked, what is said, and with which exit code it ends. A verb is a file in
//! `commands`. Not promised: anything that a part or a client does not promise.

mod bars;
mod checksums;
mod commands;
mod exit;
mod items;
mod output;
mod progress;
mod range;
mod reason;
mod said;
mod save;
mod session;
mod shown_path;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use clap::Parser;

use crate::commands::{Cli, Context};
use crate::exit::{Exit, Failure};
use crate::output::tell;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error).into(),
    };
    let context = Context::new(cli.global);
    // A panic has been told on stderr; what is left is the exit code.
    let ended = catch_unwind(AssertUnwindSafe(|| cli.command.run(&context)));
    match ended {
        Ok(Ok(exit)) => exit.into(),
        Ok(Err(failure)) => failed(&context, &failure).into(),
        Err(_panic) => Exit::Bug.into(),
    }
}

/// Prints help to stdout, and what is wrong with the command line to stderr.
fn usage(error: &clap::Error) -> Exit {
    let exit = if error.use_stderr() {
        Exit::Usage
    } else {
        Exit::Done
    };
    match error.print() {
        Ok(()) => exit,
        Err(_closed) => Exit::Failed,
    }
}

/// Nothing was answered: says why to people, and to programs if they listen.
fn failed(context: &Context, failure: &Failure) -> Exit {
    if failure.message.is_empty() {
        return failure.exit;
    }
    tell(&failure.message);
    if context.output.is_json()
        && context
            .output
            .document(&serde_json::json!({ "error": failure }))
            .is_err()
    {
        return Exit::Failed;
    }
    failure.exit
}
