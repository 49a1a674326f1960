//! Compiling in a process of its own, which may fail, grow and hang without harm to anybody else.
//!
//! The process is the executable once more, with a verb of its own ([`VERB`]): it limits itself, reads a component, and
//! leaves the machine code in the cache of the process that started it. Owns both ends of that. Its result is in the
//! cache: the process that started it compiles again, and finds the code there.
//!
//! Not promised: anything against an executable that does not know the verb; it is refused like a compiler that fails.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use archive_batch::{InvalidJob, Stop, StopControl};
use archive_model::limits::LARGEST_COMPONENT;
use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};

use super::compile::Program;
use super::config::make_engine;
use super::{host, reason};

/// The verb with which the executable is called: `VERB CACHE MEMORY SECONDS`, with the component on its standard input.
pub const VERB: &str = "compile-component";

/// The time between two looks whether the compiler has ended, or has to.
const LOOK: Duration = Duration::from_millis(20);

/// The most threads that compile: each takes address space of its own.
const THREADS: usize = 4;

/// The exit code of a component that is refused; the reason is on standard output.
const REFUSED: u8 = 10;

/// The way in which a compiler in a process of its own is started, and the limits of what it may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiler {
    /// The executable, which knows [`VERB`].
    pub program: PathBuf,
    /// The most address space, in bytes.
    pub memory: u64,
    /// The most computing time of all its threads.
    pub time: Duration,
}

impl Compiler {
    /// Creates a compiler with limits of 4 GiB and 20 minutes of computing: several times what a component of Python of
    /// 40 MB takes.
    pub fn new(program: PathBuf) -> Self {
        Self {
            program,
            memory: 4 << 30,
            time: Duration::from_mins(20),
        }
    }
}

/// The reason why a component is not there to be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// The component is refused, and would be again.
    #[error(transparent)]
    Refused(#[from] InvalidJob),
    /// Nobody waits for the component any more.
    #[error("{0}")]
    Stopped(#[from] Stop),
    /// The machine could not try.
    #[error("{0}")]
    Untried(String),
}

fn refused(why: impl Into<String>) -> CompileError {
    CompileError::Refused(InvalidJob::Component(reason::shorten_text(why.into())))
}

fn untried(error: &io::Error) -> CompileError {
    CompileError::Untried(format!(
        "no process can compile components here: {error}; look at the memory and the limits of this machine"
    ))
}

impl Compiler {
    /// Compiles into the cache in another process, and waits until that has ended or `control` stops it.
    pub(super) fn compile_in_child(
        &self,
        cache: &Path,
        bytes: &[u8],
        control: &StopControl,
    ) -> Result<(), CompileError> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let child = Command::new(&self.program)
            .arg(VERB)
            .arg(cache)
            .arg(self.memory.to_string())
            .arg(self.time.as_secs().to_string())
            .env("RAYON_NUM_THREADS", cores.min(THREADS).to_string())
            .env("MALLOC_ARENA_MAX", "2")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .map_err(|error| untried(&error))?;
        let mut child = CompilerProcess(child);
        let input = child.0.stdin.take();
        // One that does not read its input has the same time as one that computes, and ends as that does.
        let status = thread::scope(|scope| {
            scope.spawn(move || {
                // A process that ended before it has read all says below why.
                _ = input.map(|mut input| input.write_all(bytes));
            });
            let ended = self.wait(&mut child.0, control);
            if ended.is_err() {
                // Its input is closed by that, and the writer ends.
                _ = child.0.kill();
            }
            ended
        })?;
        let mut said = String::new();
        if let Some(output) = child.0.stdout.take() {
            // Output that cannot be read says nothing; the exit code does.
            _ = output.take(16 << 10).read_to_string(&mut said);
        }
        match status.code() {
            Some(0) => Ok(()),
            Some(code) if code == i32::from(REFUSED) => Err(refused(said)),
            _ => Err(refused(self.why(status))),
        }
    }

    fn wait(&self, child: &mut Child, control: &StopControl) -> Result<ExitStatus, CompileError> {
        // The process computes on all of its threads, or hangs: then no limit of computing time ends it.
        let until = Instant::now() + self.time;
        loop {
            if let Some(status) = child.try_wait().map_err(|error| untried(&error))? {
                return Ok(status);
            }
            control.check_stop()?;
            if Instant::now() >= until {
                return Err(refused(self.late()));
            }
            thread::sleep(LOOK);
        }
    }

    fn late(&self) -> String {
        format!(
            "it takes longer than {} s to compile; make it smaller",
            self.time.as_secs()
        )
    }

    /// Returns the reason why a compiler that said nothing ended.
    fn why(&self, status: ExitStatus) -> String {
        let signal = status.signal();
        if signal == Some(Signal::XCPU.as_raw()) {
            return self.late();
        }
        let most = self.memory >> 20;
        format!(
            "the compiler ended ({status}): it takes more than {most} MiB of memory, or meets a bug; the log of the \
             node says what the compiler said last"
        )
    }
}

/// A process that is killed and reaped when this is dropped.
struct CompilerProcess(Child);

impl Drop for CompilerProcess {
    fn drop(&mut self) {
        // The process may have ended by itself.
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// Compiles a component from standard input, if `arguments` ask for it, and returns the exit code; otherwise returns
/// `None`.
///
/// The executable that a [`Compiler`] names calls this first, with all the arguments that it was started with.
pub fn compile_child(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    if arguments.next()? != VERB {
        return None;
    }
    let compiled = asked(arguments).and_then(|(cache, memory, seconds)| {
        limit(memory, seconds)
            .map_err(|error| format!("the compiler cannot limit itself: {error}"))?;
        compile(&cache)
    });
    let Err(why) = compiled else {
        return Some(ExitCode::SUCCESS);
    };
    // If nobody listens, the exit code says enough.
    _ = io::stdout().write_all(why.as_bytes());
    Some(ExitCode::from(REFUSED))
}

fn asked(mut arguments: impl Iterator<Item = OsString>) -> Result<(PathBuf, u64, u64), String> {
    let cache = arguments.next().map(PathBuf::from);
    let mut number = || arguments.next()?.to_str()?.parse().ok();
    let asked = (|| Some((cache?, number()?, number()?)))();
    asked.ok_or_else(|| format!("`{VERB}` is called by holdfast itself, with CACHE MEMORY SECONDS"))
}

fn limit(memory: u64, seconds: u64) -> rustix::io::Result<()> {
    let most = |value| Rlimit {
        current: Some(value),
        maximum: Some(value),
    };
    setrlimit(Resource::As, most(memory))?;
    setrlimit(Resource::Core, most(0))?;
    // At the soft limit a signal ends it that says why.
    let time = Rlimit {
        current: Some(seconds.max(1)),
        maximum: Some(seconds.saturating_add(10)),
    };
    setrlimit(Resource::Cpu, time)?;
    set_parent_process_death_signal(Some(Signal::KILL))
}

fn compile(cache: &Path) -> Result<(), String> {
    let mut bytes = Vec::new();
    io::stdin()
        .take(LARGEST_COMPONENT + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("it cannot be read: {error}"))?;
    let failed = |error: wasmtime::Error| format!("there is no engine for components: {error:#}");
    let engine = make_engine(Some(cache)).map_err(failed)?;
    let linker = host::make_linker(&engine).map_err(failed)?;
    match Program::compile_program(&engine, &linker, &bytes) {
        Ok(_program) => Ok(()),
        Err(InvalidJob::Component(why)) => Err(why),
        Err(other) => Err(other.to_string()),
    }
}
