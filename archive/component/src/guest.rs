//! A component at work, on a thread of its own.
//!
//! Two threads take turns: one holds the file and the output, which are borrowed; the other holds the component, which
//! can hold nothing borrowed. The thread of its own also makes computing time easy to tell: waiting for the disk, for
//! the sink or for other threads does not count.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use archive_batch::{BatchJobError, Sink, StopControl};
use archive_formats::warc::Header;
use archive_model::JobLimits;
use rustix::time::{ClockId, clock_gettime};
use wasmtime::{Store, UpdateDeadline};

use super::block::Block;
use super::compile::{Functions, Program};
use super::host::{Ask, HANDED_OVER, Halt, Host, Reply};
use super::reason;
use super::wit::{ArchiveRecord, Arguments, CallResult, File};

/// The stack of the thread of a component: its own, and room for what the host does on top of it.
const STACK: usize = super::config::STACK + (2 << 20);
/// The most handles of resources; a component has no use for any.
const HANDLES: usize = 100;

/// A call of a function that the component exports.
#[derive(Debug)]
pub(super) enum Call {
    Describe,
    Begin(File, Arguments),
    Record(ArchiveRecord, Header),
    More(Vec<u8>),
    End,
    Reduce(Arguments),
}

/// An instance of a component, as the thread sees it that holds the file.
#[derive(Debug)]
pub(super) struct Guest {
    /// The channels to the thread; `None` once the thread has to end.
    calls: Option<(Sender<Call>, SyncSender<Reply>)>,
    asks: Receiver<Ask>,
    thread: Option<JoinHandle<()>>,
    control: StopControl,
}

impl Guest {
    /// Begins a thread; the component is not touched before the first call.
    pub(super) fn start_guest(
        program: &Arc<Program>,
        limits: JobLimits,
        control: &StopControl,
    ) -> Result<Self, BatchJobError> {
        let (calls, orders) = channel();
        let (asks, questions) = sync_channel(1);
        let (replies, answers) = sync_channel(1);
        let host = Host::new(asks, answers, limits.memory);
        let program = Arc::clone(program);
        let told = control.clone();
        let thread = thread::Builder::new()
            .name("component".to_owned())
            .stack_size(STACK)
            .spawn(move || {
                // After a panic nobody answers any more: the call ends as one of a broken component.
                let mut host = Some(host);
                program.spare_work(|| {
                    if let Some(host) = host.take() {
                        ComponentInstance::new(&program, host, limits, told.clone()).serve(&orders);
                    }
                });
            })
            .map_err(|error| {
                BatchJobError::Broken(format!(
                    "no thread for the component: {error}; raise the limits"
                ))
            })?;
        Ok(Self {
            calls: Some((calls, replies)),
            asks: questions,
            thread: Some(thread),
            control: control.clone(),
        })
    }

    /// Calls a function and answers what it asks for, until it is over.
    pub(super) fn call_guest(
        &mut self,
        call: Call,
        block: &mut Block<'_>,
        out: &mut dyn Sink,
    ) -> Result<String, BatchJobError> {
        self.control.check_stop()?;
        let gone = || {
            BatchJobError::Broken(
                "its thread panicked; that is a bug of this archive, please report it".to_owned(),
            )
        };
        let (calls, replies) = self.calls.as_ref().ok_or_else(gone)?;
        calls.send(call).or(Err(gone()))?;
        loop {
            let reply = match self.asks.recv().or(Err(gone()))? {
                Ask::Over(outcome) => return outcome,
                Ask::Write(bytes) => out
                    .write(&bytes)
                    .map_or_else(Reply::Stop, |()| Reply::Taken),
                Ask::Read(most) => Reply::Bytes(block.read_bytes(most)),
                Ask::Payload(most) => Reply::Bytes(block.read_payload(most)),
                Ask::Http => Reply::Http(block.read_http()),
            };
            let reply = self.control.stop_reason().map_or(reply, Reply::Stop);
            replies.send(reply).or(Err(gone()))?;
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // The thread ends when nobody calls any more; until then its memory is in use.
        drop(self.calls.take());
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
    }
}

/// An instance of a component, on its own thread.
struct ComponentInstance<'a> {
    program: &'a Program,
    store: Store<Host>,
    limits: JobLimits,
    functions: Option<Functions>,
    /// The reason why it cannot be called any more.
    broken: Option<String>,
}

impl<'a> ComponentInstance<'a> {
    fn new(program: &'a Program, host: Host, limits: JobLimits, control: StopControl) -> Self {
        let mut store = Store::new(program.engine(), host);
        store.limiter(|host| host);
        store.set_hostcall_fuel(HANDED_OVER);
        store.set_max_component_handles(HANDLES);
        store.set_epoch_deadline(1);
        let most = limits.file_time;
        store.epoch_deadline_callback(move |_| {
            if let Some(stop) = control.stop_reason() {
                return Err(Halt::Stopped(stop).into());
            }
            if computed() > most {
                return Err(Halt::Time.into());
            }
            Ok(UpdateDeadline::Continue(1))
        });
        Self {
            program,
            store,
            limits,
            functions: None,
            broken: None,
        }
    }

    fn serve(mut self, calls: &Receiver<Call>) {
        while let Ok(call) = calls.recv() {
            let outcome = self.answer(call);
            if !self.store.data().is_over(outcome) {
                return;
            }
        }
    }

    fn answer(&mut self, call: Call) -> Result<String, BatchJobError> {
        if let Some(reason) = &self.broken {
            return Err(BatchJobError::Broken(reason.clone()));
        }
        let ended = self
            .invoke(call)
            .map_err(|error| reason::job_error(&error, &self.limits));
        if let Err(error) = &ended {
            self.broken = Some(error.to_string());
        }
        if let Err(stopped @ BatchJobError::Stopped(_)) = ended {
            return Err(stopped);
        }
        // Output from before a trap stays written.
        let flushed = self.store.data_mut().flush_output();
        let ended = ended?;
        flushed.map_err(|halt| reason::job_error(&halt.into(), &self.limits))?;
        ended.map_err(reason::guest_failed)
    }

    /// Calls a function of the component. The outer error is a trap, the inner one the component's own.
    fn invoke(&mut self, call: Call) -> wasmtime::Result<Result<String, String>> {
        if self.functions.is_none() {
            self.functions = Some(self.program.instantiate_functions(&mut self.store)?);
        }
        let Some(functions) = &self.functions else {
            return Err(Halt::Gone.into());
        };
        let store = &mut self.store;
        let (ended,): (CallResult,) = match call {
            Call::Describe => {
                let (text,) = functions.describe.call(store, ())?;
                return Ok(Ok(text));
            }
            Call::Begin(file, arguments) => functions.begin.call(store, (file, arguments))?,
            Call::Record(record, header) => {
                store.data_mut().header = Some(header);
                let ended = functions.record_function()?.call(&mut *store, (record,))?;
                store.data_mut().header = None;
                ended
            }
            Call::More(bytes) => functions.more_function()?.call(store, (bytes,))?,
            Call::End => functions.end.call(store, ())?,
            Call::Reduce(arguments) => functions.reduce_function()?.call(store, (arguments,))?,
        };
        Ok(ended.map(|()| String::new()))
    }
}

/// Returns the time for which this thread has computed.
fn computed() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("a thread has computed for no negative time")
}
