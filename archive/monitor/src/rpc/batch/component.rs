//! The component of a batch job, on its way from the caller to the nodes that want it.

use std::future::ready;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use archive_rpc::InvalidMessage;
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use proto_archive::wire::{self, batch_run_request};
use tokio::sync::{oneshot, watch};
use tokio::time::{Sleep, sleep};

/// The most bytes of a component in one message.
const LARGEST_PIECE: usize = 1 << 20;

/// Asked for once, kept as long as the job runs. Each node is sent what is here so far.
pub(super) struct Component {
    pieces: watch::Sender<Vec<Bytes>>,
    /// How many bytes are missing.
    missing: u64,
    is_asked: bool,
    /// Until when the caller has to send more.
    alarm: Option<Pin<Box<Sleep>>>,
    idle: Duration,
}

impl Component {
    /// Of so many bytes, of which the caller sends some within `idle`.
    pub(super) fn new(size: u64, idle: Duration) -> Self {
        Self {
            pieces: watch::Sender::new(Vec::new()),
            missing: size,
            is_asked: false,
            alarm: None,
            idle,
        }
    }

    /// What is here so far, and what comes.
    pub(super) fn pieces(&self) -> watch::Receiver<Vec<Bytes>> {
        self.pieces.subscribe()
    }

    /// Somebody wants it. Whether the caller is to be asked.
    pub(super) fn want(&mut self) -> bool {
        if self.is_asked {
            return false;
        }
        self.is_asked = true;
        self.alarm = Some(Box::pin(sleep(self.idle)));
        true
    }

    /// Whether it was asked for, and some of it is missing.
    pub(super) const fn is_coming(&self) -> bool {
        self.alarm.is_some()
    }

    /// The caller sends some of it.
    pub(super) fn receive(&mut self, piece: Bytes) -> Result<(), InvalidMessage> {
        self.missing = rest_of_component(self.missing, &piece)?;
        self.pieces.send_modify(|pieces| pieces.push(piece));
        self.alarm = (self.missing > 0).then(|| Box::pin(sleep(self.idle)));
        Ok(())
    }

    /// Whether the caller has sent nothing for too long.
    pub(super) fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.alarm {
            Some(alarm) => alarm.as_mut().poll(cx),
            None => Poll::Pending,
        }
    }
}

/// How many bytes of a component are missing after this piece.
pub(in crate::rpc) fn rest_of_component(
    missing: u64,
    piece: &Bytes,
) -> Result<u64, InvalidMessage> {
    if piece.is_empty() || piece.len() > LARGEST_PIECE {
        let reason = format!("has a message of {} bytes", piece.len());
        return Err(InvalidMessage::invalid("component", reason));
    }
    missing
        .checked_sub(piece.len() as u64)
        .ok_or_else(|| InvalidMessage::invalid("component", "is larger than it was announced"))
}

/// What a node is told: the job, and the component when it wants it. It ends when the job has ended here, which cancels
/// the job there: that nobody takes the answers any more is not told as long as there may be more to say.
pub(super) fn requests(
    open: batch_run_request::Open,
    wanted: oneshot::Receiver<()>,
    pieces: watch::Receiver<Vec<Bytes>>,
) -> impl Stream<Item = wire::BatchRunRequest> + Send + 'static {
    let request = |step| wire::BatchRunRequest { step: Some(step) };
    let open = request(batch_run_request::Step::Open(open));
    let mut end = pieces.clone();
    let until_the_end = stream::once(async move {
        // Fails when the job is gone, which has the sender.
        while end.changed().await.is_ok() {}
    });
    let until_the_end = until_the_end.filter_map(|()| ready(None));
    let component = stream::once(wanted)
        .filter_map(|wanted| ready(wanted.ok()))
        .flat_map(move |()| {
            let next = async |(mut pieces, index): (watch::Receiver<Vec<Bytes>>, usize)| {
                let here = pieces.wait_for(|pieces| pieces.len() > index).await.ok()?;
                let piece = here.get(index)?.clone();
                drop(here);
                Some((piece, (pieces, index + 1)))
            };
            Box::pin(stream::unfold((pieces.clone(), 0), next))
        })
        .map(move |piece| request(batch_run_request::Step::Component(piece)));
    stream::once(ready(open))
        .chain(component)
        .chain(until_the_end)
}
