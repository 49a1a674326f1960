//! Answers on their way to a caller who may read slowly, or never.
//!
//! Owns the patience with such a caller. Waiting for one costs no thread: [`feed_messages`] runs blocking work only while its
//! answers are taken, and takes the thread away from it otherwise. Each wait for the caller has a limit, [`UNREAD`].
//!
//! # Errors
//!
//! Every function that sends fails if the caller has gone away or has read nothing for the limit; [`feed_messages`] and
//! [`answer_from`] also if their work does.

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::{SendTimeoutError, TrySendError};
use tokio::task::spawn_blocking;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use crate::kind::CallErrorKind;

/// The time that a caller may leave an answer unread.
pub const UNREAD: Duration = Duration::from_mins(2);

/// The time that blocking work keeps its thread while its answers are not taken.
const LAG: Duration = Duration::from_millis(20);

/// The sender of answers. When the caller has gone away, sending fails and the work ends.
pub type Answers<T> = mpsc::Sender<Result<T, Status>>;

/// The receiving end of [`Answers`], as tonic needs it.
pub type AnswerStream<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// The number of answers that usually wait to be read.
pub const ROOM: usize = 4;

/// Opens a stream in which `room` answers may wait to be read, and the task that fills it: the caller starts the task
/// among its own. The error that `work` ends with is the last answer.
pub fn open_answers<T, F>(
    room: usize,
    work: impl FnOnce(Answers<T>) -> F,
) -> (AnswerStream<T>, impl Future<Output = ()> + Send + 'static)
where
    T: Send + 'static,
    F: Future<Output = Result<(), Status>> + Send + 'static,
{
    let (answers, stream) = channel(room);
    let work = Box::pin(work(answers.clone()));
    let task = async move {
        if let Err(status) = work.await {
            fail(&answers, status).await;
        }
    };
    (stream, task)
}

/// Opens a stream as [`open_answers`] does, for work that blocks; the task needs a thread that may.
pub fn open_blocking<T: Send + 'static>(
    room: usize,
    work: impl FnOnce(&Answers<T>) -> Result<(), Status> + Send + 'static,
) -> (AnswerStream<T>, impl FnOnce() + Send + 'static) {
    let (answers, stream) = channel(room);
    let task = move || {
        if let Err(status) = work(&answers) {
            Handle::current().block_on(fail(&answers, status));
        }
    };
    (stream, task)
}

fn channel<T: Send + 'static>(room: usize) -> (Answers<T>, AnswerStream<T>) {
    let (answers, stream) = mpsc::channel(room);
    (answers, Box::pin(ReceiverStream::new(stream)))
}

/// Sends one answer. Fails if the caller has gone away, or leaves it unread for [`UNREAD`].
pub async fn send_answer<T>(answers: &Answers<T>, answer: T) -> Result<(), Status> {
    deliver(answers, Ok(answer), UNREAD).await
}

/// Sends one answer, or returns it if the caller leaves it unread for `patience`.
pub async fn send_within<T>(
    answers: &Answers<T>,
    answer: T,
    patience: Duration,
) -> Result<Option<T>, Status> {
    match answers.send_timeout(Ok(answer), patience).await {
        Ok(()) => Ok(None),
        Err(SendTimeoutError::Closed(_)) => Err(caller_gone()),
        Err(SendTimeoutError::Timeout(unsent)) => unsent.map(Some),
    }
}

/// Sends one answer from a thread that may block. The thread waits for the caller, at most for [`UNREAD`]: where many
/// answers go to unknown callers, use [`answer_from`].
pub fn send_blocking<T>(answers: &Answers<T>, answer: T) -> Result<(), Status> {
    Handle::current().block_on(send_answer(answers, answer))
}

/// Sends the error that ends the answers. A caller that has gone away, or does not read within [`UNREAD`], does not get
/// it.
async fn fail<T>(answers: &Answers<T>, error: Status) {
    _ = deliver(answers, Err(error), UNREAD).await;
}

async fn deliver<T>(
    answers: &Answers<T>,
    answer: Result<T, Status>,
    patience: Duration,
) -> Result<(), Status> {
    match answers.send_timeout(answer, patience).await {
        Ok(()) => Ok(()),
        Err(SendTimeoutError::Closed(_)) => Err(caller_gone()),
        Err(SendTimeoutError::Timeout(_)) => Err(unread_answer()),
    }
}

fn caller_gone() -> Status {
    Status::cancelled("the caller has gone away")
}

fn unread_answer() -> Status {
    CallErrorKind::TimedOut.to_status("the caller does not read; ask again, and read what comes")
}

/// The state of blocking work after a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkProgress {
    /// The work has sent everything.
    Done,
    /// [`Outlet::send_message`] returned `false`: the work is called again once its messages were taken.
    Paused,
}

/// The outlet into which blocking work sends while [`feed_messages`] runs it.
#[derive(Debug)]
pub struct Outlet<M> {
    to: mpsc::Sender<M>,
    runtime: Handle,
    /// The messages that found no room.
    parked: VecDeque<M>,
}

impl<M> Outlet<M> {
    /// Sends one message, which is never lost while a receiver exists. Returns `false` if it is not taken now. The work
    /// should then remember its place and return [`WorkProgress::Paused`], so that its thread is free.
    pub fn send_message(&mut self, message: M) -> bool {
        if !self.parked.is_empty() {
            self.parked.push_back(message);
            return false;
        }
        let message = match self.to.try_send(message) {
            Ok(()) => return true,
            Err(TrySendError::Closed(_)) => return false,
            Err(TrySendError::Full(message)) => message,
        };
        match self.runtime.block_on(self.to.send_timeout(message, LAG)) {
            Ok(()) => true,
            Err(SendTimeoutError::Closed(_)) => false,
            Err(SendTimeoutError::Timeout(message)) => {
                self.parked.push_back(message);
                false
            }
        }
    }
}

/// The error of [`feed_messages`].
#[derive(Debug, thiserror::Error)]
pub enum FeedError<E> {
    /// The work failed.
    #[error(transparent)]
    Work(E),
    /// The runtime ended before the work was done.
    #[error("this part is stopping; ask again once it has started")]
    Stopped,
}

/// The end of [`feed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FeedEnd {
    /// The work is done, and all its messages were taken.
    Whole,
    /// The receiver was dropped.
    Gone,
    /// A message was not taken within the limit.
    Unread,
}

/// Runs `work` on threads that may block, while its messages are taken, and until it is done. While they are not, no
/// thread waits. A dropped receiver is no error: the work is then not called again.
///
/// # Errors
///
/// [`FeedError`] if the work fails, or is not done when the runtime ends.
pub async fn feed_messages<M, E>(
    to: &mpsc::Sender<M>,
    work: impl FnMut(&mut Outlet<M>) -> Result<WorkProgress, E> + Send + 'static,
) -> Result<(), FeedError<E>>
where
    M: Send + 'static,
    E: Send + 'static,
{
    feed_within(to, Duration::MAX, work).await.map(drop)
}

/// Runs `work` as [`feed_messages`] does, for a caller, who may leave an answer unread for [`UNREAD`].
pub async fn answer_from<T>(
    answers: &Answers<T>,
    mut work: impl FnMut(&mut Outlet<Result<T, Status>>) -> Result<WorkProgress, Status>
    + Send
    + 'static,
) -> Result<(), Status>
where
    T: Send + 'static,
{
    match feed_within(answers, UNREAD, move |outlet| work(outlet)).await {
        Ok(FeedEnd::Whole) => Ok(()),
        Ok(FeedEnd::Gone) => Err(caller_gone()),
        Ok(FeedEnd::Unread) => Err(unread_answer()),
        Err(FeedError::Work(status)) => Err(status),
        Err(stopped @ FeedError::Stopped) => {
            Err(CallErrorKind::Unavailable.to_status(stopped.to_string()))
        }
    }
}

async fn feed_within<M, E>(
    to: &mpsc::Sender<M>,
    patience: Duration,
    mut work: impl FnMut(&mut Outlet<M>) -> Result<WorkProgress, E> + Send + 'static,
) -> Result<FeedEnd, FeedError<E>>
where
    M: Send + 'static,
    E: Send + 'static,
{
    loop {
        let mut outlet = Outlet {
            to: to.clone(),
            runtime: Handle::current(),
            parked: VecDeque::new(),
        };
        let turn = spawn_blocking(move || {
            let progress = work(&mut outlet);
            (work, outlet.parked, progress)
        });
        let (back, parked, progress) = match turn.await {
            Ok(turn) => turn,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                Err(_cancelled) => return Err(FeedError::Stopped),
            },
        };
        work = back;
        for message in parked {
            match to.send_timeout(message, patience).await {
                Ok(()) => {}
                Err(SendTimeoutError::Closed(_)) => return Ok(FeedEnd::Gone),
                Err(SendTimeoutError::Timeout(_)) => return Ok(FeedEnd::Unread),
            }
        }
        match progress.map_err(FeedError::Work)? {
            WorkProgress::Done => return Ok(FeedEnd::Whole),
            WorkProgress::Paused if to.is_closed() => return Ok(FeedEnd::Gone),
            WorkProgress::Paused => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Builder;
    use tokio::time::timeout;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    /// Runs `test` where a single thread may block.
    fn with_one_blocking_thread(test: impl Future<Output = ()>) {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(1)
            .build()
            .unwrap();
        runtime.block_on(async { timeout(PATIENCE, test).await.unwrap() });
    }

    /// Sends the numbers from 0 up to `end`.
    fn count_to(
        end: u32,
    ) -> impl FnMut(&mut Outlet<Result<u32, Status>>) -> Result<WorkProgress, Status> {
        let mut next = 0;
        move |outlet| {
            while next < end {
                next += 1;
                if !outlet.send_message(Ok(next - 1)) {
                    return Ok(WorkProgress::Paused);
                }
            }
            Ok(WorkProgress::Done)
        }
    }

    /// Fails if work whose answers nobody reads keeps its thread.
    #[test]
    fn unread_answers_hold_no_blocking_thread() {
        with_one_blocking_thread(async {
            let (answers, mut stream) = mpsc::channel::<Result<u32, Status>>(1);
            let feeding = answer_from(&answers, count_to(10));
            let others = async {
                for _ in 0..3 {
                    spawn_blocking(|| ()).await.unwrap();
                }
            };
            tokio::select! {
                biased;
                ended = feeding => panic!("nobody read, and it ended: {ended:?}"),
                () = others => {}
            }
            assert_eq!(stream.recv().await.unwrap().unwrap(), 0);
        });
    }

    /// Fails if a message that found no room is lost, sent twice or sent out of order.
    #[test]
    fn slow_reader_gets_every_answer_once() {
        with_one_blocking_thread(async {
            let (answers, mut stream) = mpsc::channel::<Result<u32, Status>>(1);
            let reading = async {
                let mut seen = Vec::new();
                while let Some(number) = stream.recv().await {
                    if seen.len() % 4 == 1 {
                        tokio::time::sleep(LAG * 3).await;
                    }
                    seen.push(number.unwrap());
                }
                seen
            };
            let feeding = async {
                answer_from(&answers, count_to(12)).await.unwrap();
                drop(answers);
            };
            let ((), seen) = tokio::join!(feeding, reading);
            assert_eq!(seen, (0..12).collect::<Vec<_>>());
        });
    }

    /// Fails if work that ignores the answer of `send` loses what it sends.
    #[test]
    fn heedless_work_loses_nothing() {
        with_one_blocking_thread(async {
            let (numbers, mut taken) = mpsc::channel(1);
            let feeding = async {
                let all = feed_messages(&numbers, |outlet: &mut Outlet<u32>| {
                    for number in 0..5 {
                        outlet.send_message(number);
                    }
                    Ok::<_, Status>(WorkProgress::Done)
                });
                all.await.unwrap();
                drop(numbers);
            };
            let taking = async {
                tokio::time::sleep(LAG * 3).await;
                let mut seen = Vec::new();
                while let Some(number) = taken.recv().await {
                    seen.push(number);
                }
                seen
            };
            let ((), seen) = tokio::join!(feeding, taking);
            assert_eq!(seen, [0, 1, 2, 3, 4]);
        });
    }

    /// Fails if work that was never called, because the runtime had ended, passes for done.
    #[test]
    fn work_under_ended_runtime_fails() {
        let runtime = Builder::new_current_thread().build().unwrap();
        let handle = runtime.handle().clone();
        runtime.shutdown_background();
        let (numbers, _taken) = mpsc::channel(1);
        let feeding = feed_messages(&numbers, |_outlet: &mut Outlet<u32>| {
            Ok::<_, Status>(WorkProgress::Done)
        });
        let fed = handle.block_on(feeding);
        assert!(matches!(fed, Err(FeedError::Stopped)), "{fed:?}");
    }

    /// Fails if a caller that never reads is waited for without a limit, also with the last word.
    #[tokio::test]
    async fn unread_answer_is_given_up() {
        let (answers, _unread) = mpsc::channel::<Result<u32, Status>>(1);
        answers.try_send(Ok(1)).unwrap();
        let short = Duration::from_millis(20);
        let last = Err(Status::internal("the last word"));
        let late = timeout(PATIENCE, deliver(&answers, last, short)).await;
        assert_eq!(
            CallErrorKind::from_status(&late.unwrap().unwrap_err()),
            CallErrorKind::TimedOut
        );
        let fed = timeout(PATIENCE, feed_within(&answers, short, count_to(1))).await;
        assert_eq!(fed.unwrap().unwrap(), FeedEnd::Unread);
    }

    /// Fails if a stream ends as if it were whole when its work failed.
    #[tokio::test]
    async fn failed_work_ends_stream_with_error() {
        let (stream, task) = open_answers(1, |answers| async move {
            send_answer(&answers, 1).await?;
            Err(CallErrorKind::Storage.to_status("the disk"))
        });
        let all = tokio_stream::StreamExt::collect::<Vec<_>>(stream);
        let ((), all) = timeout(PATIENCE, async { tokio::join!(task, all) })
            .await
            .unwrap();
        let answers = all
            .into_iter()
            .map(|answer| answer.map_err(|status| CallErrorKind::from_status(&status)));
        assert!(answers.eq([Ok(1), Err(CallErrorKind::Storage)]));
    }

    /// Fails if work continues for a caller that has gone away.
    #[tokio::test]
    async fn absent_caller_ends_the_work() {
        let (answers, stream) = mpsc::channel::<Result<u32, Status>>(1);
        drop(stream);
        let endless = answer_from(&answers, count_to(u32::MAX));
        let ended = timeout(PATIENCE, endless).await.unwrap().unwrap_err();
        assert_eq!(ended.code(), tonic::Code::Cancelled);
    }
}
