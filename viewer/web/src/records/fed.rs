//! The end of a channel whose sender has to be fed: what comes through it, and the work that feeds the sender.
//!
//! Owns that the work needs no task: it continues while a caller waits for what comes, and ends when this end is
//! dropped.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::mpsc;

/// The receiver of a channel, and the work that feeds its sender. Dropping it ends that work.
pub(super) struct FedReceiver<T> {
    /// The work. It is absent once it has ended, because it cannot be asked again then.
    feed: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    receiver: mpsc::Receiver<T>,
}

impl<T> FedReceiver<T> {
    pub(super) fn new(
        feed: impl Future<Output = ()> + Send + 'static,
        receiver: mpsc::Receiver<T>,
    ) -> Self {
        Self {
            feed: Some(Box::pin(feed)),
            receiver,
        }
    }

    /// Ends the work; what the sender has already is enough for it.
    pub(super) fn stop_feed(&mut self) {
        self.feed = None;
    }

    /// Returns what comes next, and feeds the sender meanwhile. `None` once the sender was dropped.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        if let Some(feed) = &mut self.feed
            && feed.as_mut().poll(cx).is_ready()
        {
            self.feed = None;
        }
        self.receiver.poll_recv(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, poll_fn};

    use super::*;

    /// Fails if a sender that sends only once all bytes have come is not waited for, or the work is asked again then.
    #[tokio::test]
    async fn answer_may_come_after_all_bytes() {
        let (sender, receiver) = mpsc::channel(1);
        let work = async move {
            sender.send(8).await.unwrap();
        };
        let mut fed = FedReceiver::new(work, receiver);
        assert_eq!(poll_fn(|cx| fed.poll_next(cx)).await, Some(8));
        assert_eq!(poll_fn(|cx| fed.poll_next(cx)).await, None);
    }

    /// Fails if a sender that is dropped without a word is waited for while there is work left.
    #[tokio::test]
    async fn dropped_sender_is_an_end() {
        let (sender, receiver) = mpsc::channel::<u8>(1);
        drop(sender);
        let mut fed = FedReceiver::new(pending(), receiver);
        assert_eq!(poll_fn(|cx| fed.poll_next(cx)).await, None);
    }
}
