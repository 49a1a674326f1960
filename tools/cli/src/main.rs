//! The executable `holdfast`: where the archive's parts and clients are put together.
//!
//! Owns the command line: what can be asked, what is answered, and with which exit code it ends. A verb is a file in
//! `commands`, whose head draws the map. Not promised: anything that a part or a client does not promise.

mod commands;

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use clap::Parser;
use tools_terminal::context::CommandContext;
use tools_terminal::exit::{Exit, Failure};
use tools_terminal::output::{Output, tell_user};

use crate::commands::Cli;

fn main() -> ExitCode {
    // A node runs its own executable again to compile components.
    if let Some(exit) = archive_component::compile_child(std::env::args_os()) {
        return exit;
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error, std::env::args_os()).into(),
    };
    let context = CommandContext::new(cli.global);
    // A panic has been reported on stderr; what is left is the exit code.
    let ended = catch_unwind(AssertUnwindSafe(|| cli.command.run(&context)));
    match ended {
        Ok(Ok(exit)) => exit.into(),
        Ok(Err(failure)) => failed(&context, &failure).into(),
        Err(_panic) => Exit::Bug.into(),
    }
}

/// Prints help to stdout, and what is wrong with the command line to stderr: to programs that listen, too.
fn usage(error: &clap::Error, arguments: impl Iterator<Item = OsString>) -> Exit {
    let exit = if error.use_stderr() {
        Exit::Usage
    } else {
        Exit::Done
    };
    if error.print().is_err() {
        return Exit::Failed;
    }
    // What is wrong may come before the option, and hide it.
    let mut options = arguments.take_while(|argument| argument != "--");
    if exit == Exit::Usage && options.any(|argument| argument == "--json") {
        let failure = Failure::wrong_usage(error.to_string().trim_end());
        return document(&Output::new(true), &failure);
    }
    exit
}

/// Prints for programs why nothing was answered.
fn document(output: &Output, failure: &Failure) -> Exit {
    let written = output.write_document(&serde_json::json!({ "error": failure }));
    written.map_or(Exit::Failed, |()| failure.exit)
}

/// Prints for people why nothing was answered, and for programs if they asked for JSON.
fn failed(context: &CommandContext, failure: &Failure) -> Exit {
    if failure.message.is_empty() {
        return failure.exit;
    }
    tell_user(&failure.message);
    if context.output.is_json() {
        return document(&context.output, failure);
    }
    failure.exit
}
