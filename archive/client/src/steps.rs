//! What comes step by step: read, held against rules, ended only when it is whole.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio_stream::{Stream, StreamExt};
use tonic::Status;

use crate::error::{ClientError, failed};

/// Steps as they come. They end only when they are whole: a cut is an error, and after an error nothing comes.
pub struct Steps<T>(Pin<Box<dyn Stream<Item = Result<T, ClientError>> + Send>>);

impl<T> Steps<T> {
    /// Steps that end when they are whole, or with an error.
    pub fn new(steps: impl Stream<Item = Result<T, ClientError>> + Send + 'static) -> Self {
        Self(Box::pin(steps))
    }

    /// The next step; none: that was all of them.
    pub async fn next(&mut self) -> Result<Option<T>, ClientError> {
        self.0.next().await.transpose()
    }
}

impl<T> Stream for Steps<T> {
    type Item = Result<T, ClientError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(cx)
    }
}

impl<T> fmt::Debug for Steps<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Steps").finish_non_exhaustive()
    }
}

/// How the messages of one call become steps.
pub(crate) trait StepReader: Send + Unpin + 'static {
    /// What comes over the wire.
    type Message: Send + 'static;
    /// What is handed out.
    type Item: Send + Unpin + 'static;

    /// Reads the items of a message.
    fn read(
        &mut self,
        message: Self::Message,
        out: &mut VecDeque<Self::Item>,
    ) -> Result<(), ClientError>;

    /// The stream has ended well: is that all of it?
    fn end(&mut self) -> Result<(), ClientError> {
        Ok(())
    }
}

/// A stream of messages, read as steps.
pub(crate) struct StepStream<S, T: StepReader> {
    stream: Option<S>,
    reader: T,
    pending: VecDeque<T::Item>,
    what: &'static str,
}

impl<S, T: StepReader> StepStream<S, T> {
    /// `what` is said of an archive that does not offer it.
    pub(crate) fn new(stream: S, reader: T, what: &'static str) -> Self {
        Self {
            stream: Some(stream),
            reader,
            pending: VecDeque::new(),
            what,
        }
    }
}

impl<S, T> Stream for StepStream<S, T>
where
    S: Stream<Item = Result<T::Message, Status>> + Unpin,
    T: StepReader,
{
    type Item = Result<T::Item, ClientError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some(item) = this.pending.pop_front() {
                return Poll::Ready(Some(Ok(item)));
            }
            let Some(stream) = &mut this.stream else {
                return Poll::Ready(None);
            };
            let error = match ready!(Pin::new(stream).poll_next(cx)) {
                Some(Ok(message)) => match this.reader.read(message, &mut this.pending) {
                    Ok(()) => continue,
                    Err(error) => error,
                },
                Some(Err(status)) => failed(this.what, &status),
                None => {
                    this.stream = None;
                    match this.reader.end() {
                        Ok(()) => continue,
                        Err(error) => error,
                    }
                }
            };
            this.stream = None;
            // What came before it in the same message is as untrue as the rest of it.
            this.pending.clear();
            return Poll::Ready(Some(Err(error)));
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The steps that come of messages, and how it ended.
    pub(crate) async fn read<T: StepReader>(
        reader: T,
        messages: Vec<Result<T::Message, Status>>,
    ) -> (Vec<T::Item>, Result<(), String>) {
        let mut steps = StepStream::new(tokio_stream::iter(messages), reader, "this");
        let mut items = Vec::new();
        while let Some(item) = steps.next().await {
            match item {
                Ok(item) => items.push(item),
                Err(error) => {
                    assert!(steps.next().await.is_none(), "nothing follows an error");
                    return (items, Err(error.to_string()));
                }
            }
        }
        assert!(steps.next().await.is_none());
        (items, Ok(()))
    }

    /// Numbers that must not be 13, and that must end with 0.
    #[derive(Default)]
    struct Numbers(u32);

    impl StepReader for Numbers {
        type Message = Vec<u32>;
        type Item = u32;

        fn read(&mut self, message: Vec<u32>, out: &mut VecDeque<u32>) -> Result<(), ClientError> {
            for number in message {
                if number == 13 {
                    return Err(ClientError::Untrusted("thirteen".to_owned()));
                }
                self.0 = number;
                out.push_back(number);
            }
            Ok(())
        }

        fn end(&mut self) -> Result<(), ClientError> {
            if self.0 == 0 {
                return Ok(());
            }
            Err(ClientError::Unavailable("cut".to_owned()))
        }
    }

    #[tokio::test]
    async fn steps_are_whole_or_an_error() {
        let check = |messages, expected: &[u32], end: Option<&'static str>| {
            let expected = expected.to_vec();
            async move {
                let (items, ended) = read(Numbers::default(), messages).await;
                assert_eq!(items, expected);
                match end {
                    None => assert_eq!(ended, Ok(())),
                    Some(reason) => assert!(ended.unwrap_err().contains(reason)),
                }
            }
        };
        check(vec![], &[], None).await;
        check(
            vec![Ok(vec![1, 2]), Ok(vec![]), Ok(vec![0])],
            &[1, 2, 0],
            None,
        )
        .await;
        check(vec![Ok(vec![1])], &[1], Some("cut")).await;
        check(
            vec![Ok(vec![1]), Ok(vec![2, 13, 3])],
            &[1],
            Some("thirteen"),
        )
        .await;
        let broken = Status::unavailable("gone");
        check(vec![Ok(vec![0]), Err(broken)], &[0], Some("gone")).await;
    }
}
