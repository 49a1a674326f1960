//! The command line: one file per verb.
//!
//! Owns the verbs, their arguments and their help. Sessions, output and exit codes, which all verbs share, are in
//! `tools-terminal`.
//!
//! A file has the arguments of its verb and their help, then `run`, then the lines and documents that `run` prints. The
//! rooms in reading order, from starting an archive to looking after it:
//!
//! - starting: `up` (a whole archive on this machine), `parts` (one part), `archive_keys` (with which an archive
//!   begins), `settings` (their settings files), `pki` (certificates);
//! - files: `store`, `get`, `list`, `stat` (where a file stands), `record` (one record of a file), `receipt` and
//!   `verify` (the proof that a file is archived);
//! - health: `status` (the archive at a glance), `check`, `anomalies`, `repair`, `scrub` (the reading of all copies),
//!   `notify` (a test of the notifications), `audit` (the log of all decisions);
//! - single copies: `replace`, `adopt`, `remove`, `attic` (copies that were put aside);
//! - machines: `replica`, `node`, `volume`; `requests` (acts that wait for a second person), `admin` (the admin data,
//!   exported and restored);
//! - harvests and captures: `crawl`, `warc` and `cdx` (files on this machine), `batch` (jobs over archived files),
//!   `captures` and `index` (captures by URL and time).

mod admin;
mod adopt;
mod anomalies;
mod archive_keys;
mod attic;
mod audit;
mod batch;
mod captures;
mod cdx;
mod check;
mod crawl;
mod get;
mod index;
mod list;
mod node;
mod notify;
mod parts;
mod pki;
mod receipt;
mod record;
mod reinstate;
mod remove;
mod repair;
mod replace;
mod replica;
mod requests;
mod scrub;
mod settings;
mod stat;
mod status;
mod store;
mod up;
mod verify;
mod volume;
mod warc;

use clap::{Parser, Subcommand};
use tools_terminal::context::{CommandContext, Global};
use tools_terminal::exit::{CODES, Exit, Failure};

/// The widest line of a help text, in characters.
const LINE: usize = 100;

/// A web archive that keeps every byte in several places, proves that it is still the one that was harvested, and
/// reads around what is damaged.
#[derive(Debug, Parser)]
#[command(name = "holdfast", version, after_long_help = CODES, max_term_width = LINE)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) global: Global,
}

/// A verb of the command line. The help of a verb stands beside its arguments.
///
/// A part (`repository`, `up`) has its own runtime and does not need [`talk`].
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a whole archive on this machine
    ///
    /// Starts two replicas, a checksum replica, the repository, the index and the viewer, in one process unless
    /// --processes is given, with certificates and settings of their own. An archive that is in the directory already
    /// is started again. Runs until Ctrl-C or SIGTERM. The exit code is 1 if the demonstration did not prove what it
    /// should, and 3 if the settings are wrong.
    Up(up::Up),
    /// Run the repository: the coordinator of the archive
    ///
    /// Runs until Ctrl-C or SIGTERM. The exit code is 3 if its settings are wrong, and 1 if it cannot continue.
    #[command(after_help = "Examples:
  holdfast repository --settings repository.toml --init      the first time
  holdfast repository --settings repository.toml")]
    Repository(parts::Repository),
    /// Run the monitor of one replica: which nodes live, and which has a file
    ///
    /// Runs until Ctrl-C or SIGTERM. The exit code is 3 if its settings are wrong, and 1 if it cannot continue.
    #[command(after_help = "Examples:
  holdfast monitor --settings monitor-one.toml")]
    Monitor(parts::Part),
    /// Run one node of a replica: a machine with its disks
    ///
    /// Runs until Ctrl-C or SIGTERM. The exit code is 3 if its settings are wrong, and 1 if it cannot continue.
    #[command(after_help = "Examples:
  holdfast bitarchive --settings bitarchive-one.toml")]
    Bitarchive(parts::Part),
    /// Run a replica that keeps names and checksums only
    ///
    /// Runs until Ctrl-C or SIGTERM. The exit code is 3 if its settings are wrong, and 1 if it cannot continue, for
    /// example because there is no record and --init is not given.
    #[command(after_help = "Examples:
  holdfast checksum-replica --settings checksum-replica-three.toml --init      the first time
  holdfast checksum-replica --settings checksum-replica-three.toml")]
    ChecksumReplica(parts::ChecksumReplica),
    /// Run the viewer: look up and replay captures in a browser
    ///
    /// Runs until Ctrl-C or SIGTERM. The exit code is 3 if its settings are wrong, and 1 if it cannot continue.
    #[command(after_help = "Examples:
  holdfast viewer --settings viewer.toml")]
    Viewer(parts::Part),
    Store(store::Store),
    Get(get::Get),
    List(list::List),
    Stat(stat::Stat),
    Receipt(receipt::Receipt),
    #[command(subcommand)]
    Verify(verify::Verify),
    Status(status::Status),
    #[command(subcommand)]
    Check(check::Check),
    Anomalies(anomalies::Anomalies),
    Repair(repair::Repair),
    Replace(replace::Replace),
    Adopt(adopt::Adopt),
    Remove(remove::Remove),
    Reinstate(reinstate::Reinstate),
    #[command(subcommand)]
    Attic(attic::Attic),
    Requests(requests::Requests),
    Approve(requests::Approve),
    Withdraw(requests::Withdraw),
    #[command(subcommand)]
    Scrub(scrub::Scrub),
    Audit(audit::Audit),
    #[command(subcommand)]
    Replica(replica::Replica),
    #[command(subcommand)]
    Node(node::Node),
    #[command(subcommand)]
    Volume(volume::Volume),
    #[command(subcommand)]
    Admin(admin::Admin),
    #[command(subcommand)]
    Notify(notify::Notify),
    Record(record::Record),
    #[command(subcommand)]
    Batch(batch::Batch),
    #[command(subcommand)]
    Warc(warc::Warc),
    Cdx(cdx::Cdx),
    Crawl(Box<crawl::Crawl>),
    Captures(captures::Captures),
    Index(Box<index::Index>),
    #[command(subcommand)]
    Settings(settings::Settings),
    #[command(subcommand)]
    Pki(pki::Pki),
}

impl Command {
    /// Runs the command. A failure means that nothing was answered yet.
    pub(crate) fn run(self, context: &CommandContext) -> Result<Exit, Failure> {
        match self {
            Self::Up(up) => up.run(context),
            Self::Repository(part) => part.run(context),
            Self::Monitor(part) => part.monitor(context),
            Self::Bitarchive(part) => part.bitarchive(context),
            Self::ChecksumReplica(part) => part.run(context),
            Self::Viewer(part) => part.viewer(context),
            Self::Store(store) => talk(store.run(context)),
            Self::Get(get) => talk(get.run(context)),
            Self::List(list) => talk(list.run(context)),
            Self::Stat(stat) => talk(stat.run(context)),
            Self::Receipt(receipt) => talk(receipt.run(context)),
            Self::Verify(verify) => verify.run(context),
            Self::Status(status) => talk(status.run(context)),
            Self::Check(check) => talk(check.run(context)),
            Self::Anomalies(anomalies) => talk(anomalies.run(context)),
            Self::Repair(repair) => talk(repair.run(context)),
            Self::Replace(replace) => talk(replace.run(context)),
            Self::Adopt(adopt) => talk(adopt.run(context)),
            Self::Remove(remove) => talk(remove.run(context)),
            Self::Reinstate(reinstate) => talk(reinstate.run(context)),
            Self::Attic(attic) => talk(attic.run(context)),
            Self::Requests(requests) => talk(requests.run(context)),
            Self::Approve(approve) => talk(approve.run(context)),
            Self::Withdraw(withdraw) => talk(withdraw.run(context)),
            Self::Scrub(scrub) => talk(scrub.run(context)),
            Self::Audit(audit) => talk(audit.run(context)),
            Self::Replica(replica) => talk(replica.run(context)),
            Self::Node(node) => talk(node.run(context)),
            Self::Volume(volume) => talk(volume.run(context)),
            Self::Admin(admin) => admin.run(context),
            Self::Notify(notify) => talk(notify.run(context)),
            Self::Record(record) => talk(record.run(context)),
            Self::Batch(batch) => talk(batch.run(context)),
            Self::Warc(warc) => warc.run(context),
            Self::Cdx(cdx) => cdx.run(context),
            Self::Crawl(crawl) => crawl.run(context),
            Self::Captures(captures) => talk(captures.run(context)),
            Self::Index(index) => index.run(context),
            Self::Settings(settings) => settings.run(context),
            Self::Pki(pki) => pki.run(context),
        }
    }
}

/// Runs a command that talks with the archive, until it is done or a person presses Ctrl-C.
fn talk(command: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| {
        Failure::because_failed(format!(
            "cannot start threads: {error}; raise the limits of the process"
        ))
    })?;
    let ended = runtime.block_on(async {
        tokio::select! {
            ended = command => ended,
            // Without the signal's handler there is nothing to wait for: the signal then ends the process itself.
            Ok(()) = tokio::signal::ctrl_c() => Ok(Exit::Interrupted),
        }
    });
    // Reads of the disk whose result is not needed any more must not hold up the end.
    runtime.shutdown_background();
    ended
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// The pages that show people what to type.
    const MANUALS: [(&str, &str); 6] = [
        ("README.md", include_str!("../../../README.md")),
        (
            "archive/README.md",
            include_str!("../../../archive/README.md"),
        ),
        (
            "archive/component/examples/README.md",
            include_str!("../../../archive/component/examples/README.md"),
        ),
        (
            "harvest/README.md",
            include_str!("../../../harvest/README.md"),
        ),
        ("index/README.md", include_str!("../../../index/README.md")),
        (
            "viewer/README.md",
            include_str!("../../../viewer/README.md"),
        ),
    ];

    fn each(command: &clap::Command, path: &str, visit: &mut impl FnMut(&clap::Command, &str)) {
        let path = format!("{path} {}", command.get_name());
        visit(command, &path);
        command
            .get_subcommands()
            .for_each(|sub| each(sub, &path, visit));
    }

    /// Fails if two options of a verb share a name or a letter, or if one requires an argument that does not exist.
    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    /// Fails if a verb or an option was added without help.
    #[test]
    fn every_command_and_option_has_help() {
        let mut root = Cli::command();
        root.build();
        each(&root, "", &mut |command, path| {
            if path.split(' ').any(|word| word == "help") {
                return;
            }
            assert!(
                command.get_about().is_some(),
                "{path}: it has no help; put a doc comment on its struct or variant"
            );
            for argument in command.get_arguments() {
                let id = argument.get_id();
                let help = argument
                    .get_help()
                    .map(ToString::to_string)
                    .unwrap_or_default();
                assert!(
                    help.len() >= 10,
                    "{path} {id}: it has no help; put a doc comment on its field"
                );
            }
        });
    }

    /// Fails if a script cannot learn from the help of a verb what its exit code means.
    #[test]
    fn every_verb_says_its_exit_codes() {
        each(&Cli::command(), "", &mut |command, path| {
            let help = command.get_long_about().map(ToString::to_string);
            let says = help.is_some_and(|help| help.contains("exit code"));
            assert!(
                says || command.has_subcommands(),
                "{path}: say in the sentences of its help when the exit code is not 0"
            );
        });
    }

    /// Returns the words of a line, as a shell splits them.
    fn words(line: &str) -> Vec<String> {
        let mut words = Vec::new();
        let mut word = String::new();
        let mut quoted = false;
        for c in line.chars() {
            match c {
                '\'' => quoted = !quoted,
                ' ' if !quoted => words.push(std::mem::take(&mut word)),
                c => word.push(c),
            }
        }
        words.push(word);
        words.into_iter().filter(|word| !word.is_empty()).collect()
    }

    /// Parses a line as people are shown it: up to its remark, and to where the shell takes the output.
    fn parsed(example: &str) -> Result<Cli, clap::Error> {
        let shown = example.split(['|', '>']).next().unwrap();
        // Remarks stand behind many spaces, or a `#`.
        let shown = shown.split("     ").next().unwrap();
        let shown = shown.split(" #").next().unwrap();
        let shown = shown.replace("9f0c…64-digits…", &"9f".repeat(32));
        Cli::try_parse_from(words(&shown))
    }

    /// Fails if the help of a verb has no example, or one that the verb does not accept any more.
    #[test]
    fn every_verb_shows_examples_and_only_good_ones() {
        let root = Cli::command();
        each(&root, "", &mut |command, path| {
            if path == " holdfast" {
                return;
            }
            let help = command
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            let examples: Vec<&str> = help
                .lines()
                .map(str::trim)
                .filter(|line| line.starts_with("holdfast "))
                .collect();
            assert!(
                !examples.is_empty(),
                "{path}: add `after_help` with lines that begin with `holdfast `"
            );
            for example in examples {
                let parsed = parsed(example);
                assert!(parsed.is_ok(), "{example}: {}", parsed.unwrap_err());
            }
        });
    }

    /// Fails if a page shows a command that is refused: a verb has another name, or an option is needed now.
    #[test]
    fn manuals_show_only_good_commands() {
        let mut count = 0;
        for (page, text) in MANUALS {
            for (line, number) in text.lines().zip(1..) {
                if line.starts_with("holdfast ") {
                    let parsed = parsed(line);
                    assert!(parsed.is_ok(), "{page}:{number}: {}", parsed.unwrap_err());
                    count += 1;
                }
            }
        }
        assert!(count > 40, "only {count} commands were found");
    }
}
