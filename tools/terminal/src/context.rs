//! The context of a command: the options that every command takes, and where its answer goes.
//!
//! Owns [`Global`] and [`CommandContext`]. It knows no verb, so that verbs and sessions both build on it. Not owned: the
//! command line itself, which is in `commands`, and the connection, which `session` opens from these options.

use std::path::PathBuf;

use archive_client::IdentityName;
use clap::Args;

use crate::output::Output;

/// The options that every command takes.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Options of every command")]
pub struct Global {
    /// Print one JSON document on stdout and nothing else; `warc list`, `warc check` and `captures` print one on each
    /// line
    #[arg(long, global = true)]
    pub json: bool,
    /// The client file, with the addresses of the archive, the trust file and your certificates [default:
    /// holdfast-data/client.toml]
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "HOLDFAST_CLIENT",
        hide_env_values = true
    )]
    pub client: Option<PathBuf>,
    /// Act in this role, with an identity of the client file [default: the default identity of that file]
    #[arg(long = "as", global = true, value_name = "ROLE[/NAME]")]
    pub who: Option<IdentityName>,
    /// Override a setting of the file that the command reads; may be given several times
    #[arg(long, global = true, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

/// The options of every command, and the output that the answer is written to.
#[derive(Debug)]
pub struct CommandContext {
    /// The options of every command, as they were given.
    pub global: Global,
    /// The output that the answer is written to.
    pub output: Output,
}

impl CommandContext {
    /// Makes the context of the command that was given these options.
    #[must_use]
    pub const fn new(global: Global) -> Self {
        let output = Output::new(global.json);
        Self { global, output }
    }
}
