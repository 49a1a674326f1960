//! The host of a component, and the memory it may have: the side of the border that it sees.
//!
//! A request of it is answered by the thread that holds the file ([`super::guest`]): nothing borrowed can live in here.

use std::sync::mpsc::{Receiver, SyncSender};

use archive_batch::{BatchJobError, Stop};
use archive_formats::warc::Header;
use wasmtime::component::Linker;
use wasmtime::{Engine, ResourceLimiter, StoreContextMut};

use super::bounds;
use super::wit::{self, Fields, HttpMessage};

/// The interface that a component imports.
pub(super) const NAME: &str = "holdfast:batch/host@1.0.0";
/// The number of bytes of output that are gathered before they are passed on.
const GATHERED: usize = 64 << 10;
/// The most that a component may hand over in one call.
pub(super) const HANDED_OVER: usize = 16 << 20;
/// The most elements of all tables together.
const ELEMENTS: usize = 1 << 20;

/// A request of the component to the thread that holds the file.
#[derive(Debug)]
pub(super) enum Ask {
    Write(Vec<u8>),
    Read(u32),
    Http,
    Payload(u32),
    /// The call is over.
    Over(Result<String, BatchJobError>),
}

/// The answer to a request of the component.
#[derive(Debug)]
pub(super) enum Reply {
    Taken,
    Bytes(Result<Vec<u8>, String>),
    Http(Result<Option<HttpMessage>, String>),
    Stop(Stop),
}

/// The reason why a component has to end at once. Travels through it as a trap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Halt {
    #[error("{0}")]
    Stopped(Stop),
    #[error("it wants more than its {0} bytes of memory")]
    Memory(u64),
    #[error("it wants tables of more than {ELEMENTS} elements")]
    Tables,
    #[error("it computed longer than it may")]
    Time,
    #[error("nobody answers it any more")]
    Gone,
}

/// The state of one instance.
#[derive(Debug)]
pub(super) struct Host {
    asks: SyncSender<Ask>,
    replies: Receiver<Reply>,
    gathered: Vec<u8>,
    /// The header of the record that the component is shown.
    pub(super) header: Option<Header>,
    memory: u64,
    most_memory: u64,
    elements: usize,
}

impl Host {
    pub(super) fn new(asks: SyncSender<Ask>, replies: Receiver<Reply>, most_memory: u64) -> Self {
        Self {
            asks,
            replies,
            gathered: Vec::new(),
            header: None,
            memory: 0,
            most_memory,
            elements: 0,
        }
    }

    /// Reports that the call is over. Returns `false` if the other thread has ended.
    pub(super) fn is_over(&self, outcome: Result<String, BatchJobError>) -> bool {
        self.asks.send(Ask::Over(outcome)).is_ok()
    }

    fn ask(&self, ask: Ask) -> Result<Reply, Halt> {
        self.asks.send(ask).or(Err(Halt::Gone))?;
        match self.replies.recv() {
            Ok(Reply::Stop(stop)) => Err(Halt::Stopped(stop)),
            Ok(reply) => Ok(reply),
            Err(_) => Err(Halt::Gone),
        }
    }

    fn ask_bytes(&self, ask: Ask) -> Result<Result<Vec<u8>, String>, Halt> {
        match self.ask(ask)? {
            Reply::Bytes(bytes) => Ok(bytes),
            _ => Err(Halt::Gone),
        }
    }

    fn ask_http(&self) -> Result<Result<Option<HttpMessage>, String>, Halt> {
        match self.ask(Ask::Http)? {
            Reply::Http(message) => Ok(message),
            _ => Err(Halt::Gone),
        }
    }

    fn write(&mut self, bytes: Vec<u8>) -> Result<(), Halt> {
        if self.gathered.len() + bytes.len() > GATHERED {
            self.flush_output()?;
        }
        if self.gathered.is_empty() && bytes.len() >= GATHERED {
            self.ask(Ask::Write(bytes))?;
        } else {
            self.gathered.extend_from_slice(&bytes);
        }
        Ok(())
    }

    /// Passes on what is gathered.
    pub(super) fn flush_output(&mut self) -> Result<(), Halt> {
        if !self.gathered.is_empty() {
            let gathered = std::mem::take(&mut self.gathered);
            self.ask(Ask::Write(gathered))?;
        }
        Ok(())
    }
}

impl ResourceLimiter for Host {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let more = desired.saturating_sub(current) as u64;
        if self.memory.saturating_add(more) > self.most_memory {
            // A trap, and no refusal: what a program does without memory is anything but certain.
            return Err(Halt::Memory(self.most_memory).into());
        }
        self.memory += more;
        Ok(true)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let more = desired.saturating_sub(current);
        if self.elements.saturating_add(more) > ELEMENTS {
            return Err(Halt::Tables.into());
        }
        self.elements += more;
        Ok(true)
    }

    fn instances(&self) -> usize {
        bounds::INSTANCES
    }

    fn tables(&self) -> usize {
        1000
    }

    fn memories(&self) -> usize {
        100
    }
}

/// Returns the linker with all that a component can import.
pub(super) fn make_linker(engine: &Engine) -> wasmtime::Result<Linker<Host>> {
    type Cx<'a> = StoreContextMut<'a, Host>;
    let mut linker = Linker::new(engine);
    let mut host = linker.instance(NAME)?;
    host.func_wrap("write", |mut cx: Cx<'_>, (bytes,): (Vec<u8>,)| {
        Ok(cx.data_mut().write(bytes)?)
    })?;
    host.func_wrap("read", |cx: Cx<'_>, (most,): (u32,)| {
        Ok((cx.data().ask_bytes(Ask::Read(most))?,))
    })?;
    host.func_wrap("payload", |cx: Cx<'_>, (most,): (u32,)| {
        Ok((cx.data().ask_bytes(Ask::Payload(most))?,))
    })?;
    host.func_wrap("http", |cx: Cx<'_>, (): ()| Ok((cx.data().ask_http()?,)))?;
    host.func_wrap("header", |cx: Cx<'_>, (): ()| {
        let fields: Fields = cx
            .data()
            .header
            .as_ref()
            .map(wit::header_fields)
            .unwrap_or_default();
        Ok((fields,))
    })?;
    host.func_wrap("raw-header", |cx: Cx<'_>, (): ()| {
        let raw = cx
            .data()
            .header
            .as_ref()
            .map(Header::raw)
            .unwrap_or_default();
        Ok((raw.to_vec(),))
    })?;
    Ok(linker)
}
