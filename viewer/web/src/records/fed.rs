//! The end of a thread that is fed: what the thread hands out, and the work that feeds it bytes.
//!
//! Owns that the work needs no task: it continues while a caller waits for the thread, and ends when this end is
//! dropped.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::{mpsc, oneshot};

use super::RecordError;

/// The pieces of a thread, and the work that feeds it. Dropping it ends that work.
pub(crate) struct FedReceiver<T> {
    /// The work that feeds the thread. It is absent once it has ended, because it cannot be asked again then.
    feed: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    from: mpsc::Receiver<T>,
}

impl<T> FedReceiver<T> {
    /// Makes the end of a thread that sends to `from`, and is fed by `feed`.
    pub(crate) fn new(
        feed: impl Future<Output = ()> + Send + 'static,
        from: mpsc::Receiver<T>,
    ) -> Self {
        Self {
            feed: Some(Box::pin(feed)),
            from,
        }
    }

    /// Waits for the first answer of the thread, and feeds it meanwhile. The thread ends without one only with the
    /// runtime.
    pub(crate) async fn first_answer<A>(
        &mut self,
        mut answer: oneshot::Receiver<Result<A, RecordError>>,
    ) -> Result<A, RecordError> {
        let answer = match &mut self.feed {
            Some(feed) => tokio::select! {
                biased;
                answer = &mut answer => answer,
                () = feed => {
                    self.feed = None;
                    answer.await
                }
            },
            None => answer.await,
        };
        answer.map_err(|_gone| RecordError::Stopped)?
    }

    /// Returns the next piece of the thread, and feeds it meanwhile.
    pub(crate) fn poll_next_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        if let Some(feed) = &mut self.feed
            && feed.as_mut().poll(cx).is_ready()
        {
            self.feed = None;
        }
        self.from.poll_recv(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, poll_fn, ready};

    use super::*;

    /// Fails if a thread that answers only once all bytes have come is not waited for, or the work is asked again then.
    #[tokio::test]
    async fn answer_may_come_after_all_bytes() {
        let (to, from) = mpsc::channel(1);
        let (answered, answer) = oneshot::channel();
        let feed = async move {
            answered.send(Ok(7)).unwrap();
            to.send(8).await.unwrap();
        };
        let mut thread = FedReceiver::new(feed, from);
        assert_eq!(thread.first_answer(answer).await.unwrap(), 7);
        let next = poll_fn(|cx| thread.poll_next_piece(cx)).await;
        assert_eq!(next, Some(8));
        let end = poll_fn(|cx| thread.poll_next_piece(cx)).await;
        assert_eq!(end, None);
    }

    /// Fails if a thread that ends without a word is waited for without end, with or without bytes for it.
    #[tokio::test]
    async fn silent_end_of_thread_is_a_stop() {
        for is_fed in [true, false] {
            let (_to, from) = mpsc::channel::<u8>(1);
            let (answered, answer) = oneshot::channel::<Result<u8, RecordError>>();
            drop(answered);
            let mut thread = if is_fed {
                FedReceiver::new(pending(), from)
            } else {
                FedReceiver::new(ready(()), from)
            };
            let error = thread.first_answer(answer).await.unwrap_err();
            assert!(matches!(error, RecordError::Stopped), "{error}");
        }
    }
}
