//! The requests to a node in a call that takes a stream.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Messages to a node. A type of its own: within a call, the compiler loses sight of the lifetime of a bare boxed
/// stream.
pub(crate) struct Requests<T>(BoxStream<'static, T>);

impl<T: Send + 'static> Requests<T> {
    /// Sends the messages until the guard is dropped, which ends the work of the node: a peer does not notice that its
    /// answers are no longer read.
    pub(crate) fn until_dropped(messages: BoxStream<'static, T>) -> (Self, DropGuard) {
        let open = CancellationToken::new();
        let until = open.clone().cancelled_owned();
        let requests = messages.take_until(until).boxed();
        (Self(requests), open.drop_guard())
    }
}

impl<T> Stream for Requests<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.0.as_mut().poll_next(cx)
    }
}
