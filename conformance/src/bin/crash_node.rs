//! A node that dies on command: the child process of the crash tests.
//!
//! It says what it acknowledged, one flushed line each, so that the test that kills it knows what must be there
//! afterwards: `ready`, `acknowledged NAME ROOT`, `refused NAME WHY`, `doing ACT`, `did ACT`, and at its end `calls N`
//! and, if it is so, `poisoned WHY`.

use std::io::{self, Write};
use std::path::PathBuf;
use std::thread;

use anyhow::Result;
use archive_bitarchive::Node;
use archive_durable::fault::{self, FaultPlan, InjectedFault};
use archive_model::FileName;
use clap::{Parser, ValueEnum};
use conformance::machine::acts::{self, ActOutput};
use conformance::machine::{self, CrashMachine};
use rustix::io::Errno;

/// The number of threads that store in `--endless`.
const THREADS: usize = 4;

#[derive(Debug, Parser)]
struct Arguments {
    /// The machine's directory.
    #[arg(long)]
    directory: PathBuf,
    /// The time, in seconds since 1970.
    #[arg(long)]
    now: i64,
    /// The fault at the call `--at`, counted from 0 when the node has started.
    #[arg(long, requires = "at")]
    fault: Option<Kind>,
    #[arg(long, requires = "fault")]
    at: Option<u64>,
    /// Counts only calls of this name.
    #[arg(long)]
    operation: Option<String>,
    /// Faults are counted from before the node starts.
    #[arg(long)]
    from_start: bool,
    /// Stores small files, named so, from several threads until it is killed or refused.
    #[arg(long)]
    endless: Option<String>,
    /// Mends, puts aside, takes back and adopts, with files named so, until it is killed or refused.
    #[arg(long)]
    acts: Option<String>,
    /// Leaves no room for second copies, so that the node mends in place.
    #[arg(long)]
    in_place: bool,
    /// Files to store; what is refused is tried once more, and begun once more.
    names: Vec<FileName>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    Abort,
    Torn,
    Eio,
    EioFrom,
    Enospc,
    EnospcFrom,
}

impl From<Kind> for InjectedFault {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Abort => Self::Abort,
            Kind::Torn => Self::Torn,
            Kind::Eio => Self::Fail(Errno::IO),
            Kind::EioFrom => Self::FailFromHere(Errno::IO),
            Kind::Enospc => Self::Fail(Errno::NOSPC),
            Kind::EnospcFrom => Self::FailFromHere(Errno::NOSPC),
        }
    }
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let operation = arguments.operation.map(|name| &*name.leak());
    let plan = match (arguments.fault, arguments.at) {
        (Some(kind), Some(at)) => Some(FaultPlan {
            at,
            operation,
            fault: kind.into(),
        }),
        // Only counts.
        _ => operation.map(|_| FaultPlan {
            at: u64::MAX,
            operation,
            fault: InjectedFault::Abort,
        }),
    };
    let machine = CrashMachine::at(&arguments.directory);
    if arguments.from_start {
        fault::arm_fault(plan.clone());
    }
    let reserve = if arguments.in_place { u64::MAX } else { 0 };
    let node = machine.start_with(arguments.now, reserve)?;
    if !arguments.from_start {
        fault::arm_fault(plan);
    }
    say("ready")?;
    if let Some(prefix) = &arguments.acts {
        act(&machine, &node, prefix, arguments.now)?;
    }
    if let Some(prefix) = &arguments.endless {
        let node = &node;
        thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| scope.spawn(move || store_on(node, prefix, thread, arguments.now)))
                .collect();
            threads
                .into_iter()
                .filter_map(|thread| thread.join().ok())
                .collect::<Result<()>>()
        })?;
    }
    let mut refused = Vec::new();
    for name in arguments.names {
        if !store(&node, &name, arguments.now)? {
            refused.push(name);
        }
    }
    for name in refused {
        let is_stored = store(&node, &name, arguments.now)?;
        if !is_stored && let Err(why) = machine::come_back(&node, &name)? {
            say(&format!("refused {name} {why}"))?;
        }
    }
    if let Some(why) = machine::poison(&node) {
        say(&format!("poisoned {why}"))?;
    }
    say(&format!("calls {}", fault::matched_calls()))
}

/// Standard output.
struct StandardOutput;

impl ActOutput for StandardOutput {
    fn write_line(&self, line: &str) -> Result<()> {
        say(line)
    }
}

/// Does all at once until it is refused.
fn act(machine: &CrashMachine, node: &Node, prefix: &str, now: i64) -> Result<()> {
    let ends = thread::scope(|scope| {
        let all = [
            scope.spawn(|| acts::mend_on(machine, node, now, &StandardOutput)),
            scope.spawn(|| acts::move_on(node, now, &StandardOutput)),
            scope.spawn(|| acts::adopt_on(machine, node, prefix, now, &StandardOutput)),
        ];
        all.map(thread::ScopedJoinHandle::join)
    });
    for end in ends {
        match end {
            Ok(Ok(())) => {}
            Ok(Err(why)) => say(&format!("refused act {why:#}"))?,
            Err(_panic) => say("refused act it panicked")?,
        }
    }
    Ok(())
}

/// Stores until something is refused.
fn store_on(node: &Node, prefix: &str, thread: usize, now: i64) -> Result<()> {
    for (number, size) in [100, 0, 16_384, 3000, 20_000, 1]
        .into_iter()
        .cycle()
        .enumerate()
    {
        let name = FileName::new(&format!("{prefix}-{thread}-{number}-{size}"))?;
        if !store(node, &name, now)? {
            break;
        }
    }
    Ok(())
}

fn store(node: &Node, name: &FileName, now: i64) -> Result<bool> {
    let result = machine::store(node, name, now)?;
    match &result {
        Ok(entry) => {
            let root = entry.row.root.map(|root| root.to_string());
            say(&format!("acknowledged {name} {}", root.unwrap_or_default()))?;
        }
        Err(why) => say(&format!("refused {name} {why}"))?,
    }
    Ok(result.is_ok())
}

/// Prints a line at once: a line that waits in a buffer would die with the process.
fn say(line: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes())?;
    Ok(out.flush()?)
}
