//! Steps of an answer that come one by one: read, checked, and ended only when they are complete.
//!
//! # Errors
//!
//! Reading fails if the call fails, or if the steps break the rules of their reader or are cut.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio_stream::{Stream, StreamExt};
use tonic::Status;

/// Steps as they come. They end only when they are complete: a cut is an error, and after an error nothing comes.
///
/// ```
/// use archive_rpc::{CallError, CallSteps};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), CallError> {
/// let mut steps = CallSteps::<u32, CallError>::new(tokio_stream::iter([Ok(1), Ok(2)]));
/// let mut sum = 0;
/// while let Some(step) = steps.next().await? {
///     sum += step;
/// }
/// assert_eq!(sum, 3);
/// # Ok(())
/// # }
/// ```
pub struct CallSteps<T, E>(Pin<Box<dyn Stream<Item = Result<T, E>> + Send>>);

impl<T, E> CallSteps<T, E> {
    /// Makes steps that end when they are complete, or with an error.
    pub fn new(steps: impl Stream<Item = Result<T, E>> + Send + 'static) -> Self {
        Self(Box::pin(steps))
    }

    /// Returns the next step; `None` behind the last.
    pub async fn next(&mut self) -> Result<Option<T>, E> {
        self.0.next().await.transpose()
    }
}

impl<T, E> Stream for CallSteps<T, E> {
    type Item = Result<T, E>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(cx)
    }
}

impl<T, E> fmt::Debug for CallSteps<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Steps").finish_non_exhaustive()
    }
}

/// An error of a client, which says why a call failed.
pub trait CallFailure: Send + Unpin + 'static {
    /// Reads the status of a call that failed. `call` names the call, if the peer may not offer it.
    fn read(status: &Status, call: Option<&'static str>) -> Self;
}

/// A reader of the messages of one call, which turns them into steps.
pub trait StepReader: Send + Unpin + 'static {
    /// A message as it comes over the wire.
    type Message: Send + 'static;
    /// A step as it is handed out.
    type Item: Send + Unpin + 'static;
    /// The reason why the steps end early.
    type Error: CallFailure;

    /// Whether the steps of a message that come before an error in it are handed out. If not, they are trusted as
    /// little as the rest of the message.
    const KEEPS_STEPS_BEFORE_ERROR: bool = false;

    /// Reads the steps of a message.
    ///
    /// # Errors
    /// The message is not one of this call, or says that the call failed.
    fn read(
        &mut self,
        message: Self::Message,
        out: &mut VecDeque<Self::Item>,
    ) -> Result<(), Self::Error>;

    /// Ends the steps where the stream has ended without an error.
    ///
    /// # Errors
    /// The steps are not complete.
    fn end(&mut self, _out: &mut VecDeque<Self::Item>) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// A stream of messages, read as steps.
pub struct StepStream<S, T: StepReader> {
    stream: Option<S>,
    reader: T,
    pending: VecDeque<T::Item>,
    /// The error that follows the pending steps.
    error: Option<T::Error>,
    /// The name of the call, if the peer may not offer it.
    call: Option<&'static str>,
}

impl<S, T: StepReader> StepStream<S, T> {
    /// Reads the messages of a call that every peer offers.
    pub fn new(stream: S, reader: T) -> Self {
        Self {
            stream: Some(stream),
            reader,
            pending: VecDeque::new(),
            error: None,
            call: None,
        }
    }

    /// Reads the messages of a call that a peer may not offer: `call` names it in the error.
    pub fn of_optional_call(stream: S, reader: T, call: &'static str) -> Self {
        Self {
            call: Some(call),
            ..Self::new(stream, reader)
        }
    }

    /// Returns the reader, which may know more than its steps say.
    pub const fn reader(&self) -> &T {
        &self.reader
    }
}

impl<S, T: StepReader> fmt::Debug for StepStream<S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepStream")
            .field("call", &self.call)
            .finish_non_exhaustive()
    }
}

impl<S, T> Stream for StepStream<S, T>
where
    S: Stream<Item = Result<T::Message, Status>> + Unpin,
    T: StepReader,
{
    type Item = Result<T::Item, T::Error>;

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
                Some(Err(status)) => Err(T::Error::read(&status, this.call)),
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
mod tests {
    use super::*;
    use crate::testing::read_steps;

    #[derive(Debug)]
    struct Failure(String);

    impl CallFailure for Failure {
        fn read(status: &Status, call: Option<&'static str>) -> Self {
            Self(format!("{}: {}", call.unwrap_or("-"), status.message()))
        }
    }

    impl fmt::Display for Failure {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(&self.0)
        }
    }

    /// A reader of numbers, which must not be 13 and must end with 0.
    #[derive(Default)]
    struct Numbers<const KEEPS: bool>(u32);

    impl<const KEEPS: bool> StepReader for Numbers<KEEPS> {
        const KEEPS_STEPS_BEFORE_ERROR: bool = KEEPS;
        type Message = Vec<u32>;
        type Item = u32;
        type Error = Failure;

        fn read(&mut self, message: Vec<u32>, out: &mut VecDeque<u32>) -> Result<(), Failure> {
            for number in message {
                if number == 13 {
                    return Err(Failure("thirteen".to_owned()));
                }
                self.0 = number;
                out.push_back(number);
            }
            Ok(())
        }

        fn end(&mut self, _out: &mut VecDeque<u32>) -> Result<(), Failure> {
            if self.0 == 0 {
                return Ok(());
            }
            Err(Failure("cut".to_owned()))
        }
    }

    /// Fails if a stream that breaks off ends as if it were complete, a step follows an error, or a message with an
    /// error is handed out in part.
    #[tokio::test]
    async fn steps_are_whole_or_an_error() {
        let check = |messages, expected: &[u32], end: Option<&'static str>| {
            let expected = expected.to_vec();
            async move {
                let (items, ended) = read_steps(Numbers::<false>::default(), messages).await;
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
        let (items, ended) = read_steps(Numbers::<true>::default(), messages()).await;
        assert_eq!(items, [1, 2]);
        assert!(ended.unwrap_err().contains("thirteen"));
        let (items, _) = read_steps(Numbers::<false>::default(), messages()).await;
        assert_eq!(items, [1]);
    }

    /// Fails if the error of a call that a peer may not offer does not learn which call it was, or any other one does.
    #[tokio::test]
    async fn optional_call_is_named_to_error() {
        let messages = || tokio_stream::iter([Err(Status::unimplemented("no"))]);
        let reader = Numbers::<false>::default;
        let mut steps = StepStream::of_optional_call(messages(), reader(), "this");
        assert_eq!(steps.next().await.unwrap().unwrap_err().0, "this: no");
        let mut steps = StepStream::new(messages(), reader());
        assert_eq!(steps.next().await.unwrap().unwrap_err().0, "-: no");
    }
}
