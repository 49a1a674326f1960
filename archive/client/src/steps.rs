//! Steps of an answer that come one by one: read, checked, and ended only when they are complete.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio_stream::{Stream, StreamExt};
use tonic::Status;

use crate::error::{ClientError, failed};

/// Steps as they come. They end only when they are complete: a cut is an error, and after an error nothing comes.
///
/// ```
/// use archive_client::Steps;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), archive_client::ClientError> {
/// let mut steps = Steps::new(tokio_stream::iter([Ok(1), Ok(2)]));
/// let mut sum = 0;
/// while let Some(step) = steps.next().await? {
///     sum += step;
/// }
/// assert_eq!(sum, 3);
/// # Ok(())
/// # }
/// ```
pub struct Steps<T>(Pin<Box<dyn Stream<Item = Result<T, ClientError>> + Send>>);

impl<T> Steps<T> {
    /// Makes steps that end when they are complete, or with an error.
    pub fn new(steps: impl Stream<Item = Result<T, ClientError>> + Send + 'static) -> Self {
        Self(Box::pin(steps))
    }

    /// Returns the next step; `None` behind the last.
    ///
    /// # Errors
    ///
    /// Fails if the call fails, or if the steps break the rules or are cut.
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

/// A reader of the messages of one call, which turns them into steps.
pub(crate) trait StepReader: Send + Unpin + 'static {
    /// A message as it comes over the wire.
    type Message: Send + 'static;
    /// A step as it is handed out.
    type Item: Send + Unpin + 'static;

    /// Whether the steps of a message that come before an error in it are handed out. If not, they are trusted as
    /// little as the rest of the message.
    const KEEPS_STEPS_BEFORE_ERROR: bool = false;

    /// Reads the steps of a message.
    fn read(
        &mut self,
        message: Self::Message,
        out: &mut VecDeque<Self::Item>,
    ) -> Result<(), ClientError>;

    /// Ends the steps where the stream has ended without an error: fails if they are not complete.
    fn end(&mut self, _out: &mut VecDeque<Self::Item>) -> Result<(), ClientError> {
        Ok(())
    }
}

/// A stream of messages, read as steps.
pub(crate) struct StepStream<S, T: StepReader> {
    stream: Option<S>,
    reader: T,
    pending: VecDeque<T::Item>,
    /// The error that follows the pending steps.
    error: Option<ClientError>,
    /// The name of the call, if an archive may not offer it.
    what: Option<&'static str>,
}

impl<S, T: StepReader> StepStream<S, T> {
    /// Reads the messages of a call that every archive offers.
    pub(crate) fn new(stream: S, reader: T) -> Self {
        Self {
            stream: Some(stream),
            reader,
            pending: VecDeque::new(),
            error: None,
            what: None,
        }
    }

    /// Reads the messages of a call that an archive may not offer: `what` names it in the error.
    pub(crate) fn of_optional_call(stream: S, reader: T, what: &'static str) -> Self {
        Self {
            what: Some(what),
            ..Self::new(stream, reader)
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
            if let Some(error) = this.error.take() {
                return Poll::Ready(Some(Err(error)));
            }
            let Some(stream) = &mut this.stream else {
                return Poll::Ready(None);
            };
            let outcome = match ready!(Pin::new(stream).poll_next(cx)) {
                Some(Ok(message)) => this.reader.read(message, &mut this.pending),
                Some(Err(status)) => Err(match this.what {
                    Some(what) => failed(what, &status),
                    None => ClientError::from_status(&status),
                }),
                None => {
                    this.stream = None;
                    this.reader.end(&mut this.pending)
                }
            };
            if let Err(error) = outcome {
                this.stream = None;
                this.error = Some(error);
                if !T::KEEPS_STEPS_BEFORE_ERROR {
                    this.pending.clear();
                }
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns the steps that come of messages, and how they ended.
    pub(crate) async fn read<T: StepReader>(
        reader: T,
        messages: Vec<Result<T::Message, Status>>,
    ) -> (Vec<T::Item>, Result<(), String>) {
        let mut steps = StepStream::of_optional_call(tokio_stream::iter(messages), reader, "this");
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

    /// A reader of numbers, which must not be 13 and must end with 0.
    #[derive(Default)]
    struct Numbers<const KEEPS: bool>(u32);

    impl<const KEEPS: bool> StepReader for Numbers<KEEPS> {
        const KEEPS_STEPS_BEFORE_ERROR: bool = KEEPS;
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

        fn end(&mut self, _out: &mut VecDeque<u32>) -> Result<(), ClientError> {
            if self.0 == 0 {
                return Ok(());
            }
            Err(ClientError::Unavailable("cut".to_owned()))
        }
    }

    /// Fails if a stream that breaks off ends as if it were complete, a step follows an error, or a message with an
    /// error is handed out in part.
    #[tokio::test]
    async fn steps_are_whole_or_an_error() {
        let check = |messages, expected: &[u32], end: Option<&'static str>| {
            let expected = expected.to_vec();
            async move {
                let (items, ended) = read(Numbers::<false>::default(), messages).await;
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

    /// Fails if a reader that keeps the steps before an error loses them, or if something follows the error.
    #[tokio::test]
    async fn steps_before_error_are_kept_where_asked() {
        let messages = || vec![Ok(vec![1]), Ok(vec![2, 13, 3]), Ok(vec![0])];
        let (items, ended) = read(Numbers::<true>::default(), messages()).await;
        assert_eq!(items, [1, 2]);
        assert!(ended.unwrap_err().contains("thirteen"));
        let (items, _) = read(Numbers::<false>::default(), messages()).await;
        assert_eq!(items, [1]);
    }

    /// Fails if the name of a call takes the place of what the archive said, or is not said where the call is not offered.
    #[tokio::test]
    async fn optional_call_is_named_when_not_offered() {
        for (status, optional, plain) in [
            (Status::unimplemented(""), "this", "what was asked for"),
            (Status::unavailable("gone"), "gone", "gone"),
        ] {
            let reader = Numbers::<false>::default;
            let messages = || tokio_stream::iter([Err(status.clone())]);
            let mut steps = StepStream::of_optional_call(messages(), reader(), "this");
            let error = steps.next().await.unwrap().unwrap_err().to_string();
            assert!(error.contains(optional), "{error}");
            let mut steps = StepStream::new(messages(), reader());
            let error = steps.next().await.unwrap().unwrap_err().to_string();
            assert!(error.contains(plain), "{error}");
        }
    }
}
