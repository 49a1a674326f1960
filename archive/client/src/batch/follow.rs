//! Follows a job from its submission to its end, and reads its outputs line by line: for programs that run jobs, such
//! as the index.
//!
//! Owns how often the archive is asked for the status of a job, unless the caller sets the pace. Does not decide what
//! an incomplete job is worth: the caller reads its state, and its failures.

use std::time::Duration;

use archive_model::{Backoff, FailureKind, FileName, JobId, NodeId};
use bytes::{Buf, Bytes, BytesMut};
use serde::Deserialize;
use tokio::time::{Instant, sleep};

use super::{Batch, JobOutput, JobStatus, JobSubmission};
use crate::error::ClientError;
use crate::limits::ClientLimits;
use crate::retry::Retry;
use crate::steps::ArchiveSteps;

/// The first pause before a job is looked at again; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(25);

/// The longest pause before a job is looked at again.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The longest line that is read, in bytes: no built-in job writes a longer one.
const LONGEST_LINE: usize = 1 << 20;

/// The pace at which a job is watched.
#[derive(Clone, Copy, Debug)]
pub struct WatchPace {
    /// The pauses between two looks at a job, while the archive answers.
    pub look: Backoff,
    /// The pauses while the archive does not answer, and how often and how long it is asked then.
    pub limits: ClientLimits,
}

impl WatchPace {
    /// Returns the usual pace: often at first, then once a second, and as patient as `limits`.
    pub const fn new(limits: ClientLimits) -> Self {
        Self {
            look: Backoff::new(FIRST_PAUSE, LONGEST_PAUSE),
            limits,
        }
    }
}

/// Submits a job and waits for its end. Called again after a crash, under the same id, it waits for the same job.
///
/// # Errors
/// As those of [`Batch::submit`] and [`wait_for_job`].
pub async fn run_job(
    batch: &dyn Batch,
    submission: &JobSubmission,
    limits: ClientLimits,
) -> Result<JobStatus, ClientError> {
    let job = batch.submit(submission).await?;
    if job.state.has_ended() {
        return Ok(job);
    }
    wait_for_job(batch, &job.id, limits).await
}

/// Waits until a job has ended, however long that takes; gives up when the archive does not answer for as long as
/// `limits` say.
///
/// # Errors
/// The archive has no such job, or keeps it no longer; or it does not answer.
pub async fn wait_for_job(
    batch: &dyn Batch,
    id: &JobId,
    limits: ClientLimits,
) -> Result<JobStatus, ClientError> {
    wait_while(batch, id, limits, |_open| true).await
}

/// Waits until a job has ended, or until `goes_on` returns `false` for its status.
///
/// # Errors
/// As those of [`wait_for_job`].
pub async fn wait_while(
    batch: &dyn Batch,
    id: &JobId,
    limits: ClientLimits,
    mut goes_on: impl FnMut(&JobStatus) -> bool,
) -> Result<JobStatus, ClientError> {
    let pace = WatchPace::new(limits);
    watch_job(batch, id, pace, |look| {
        look.is_err() || look.is_ok_and(&mut goes_on)
    })
    .await
}

/// Watches a job until it has ended, or until `goes_on` returns `false`. `goes_on` sees the status of the open job at
/// each look, and each error after which the archive is asked again.
///
/// # Errors
/// As those of [`wait_for_job`].
pub async fn watch_job(
    batch: &dyn Batch,
    id: &JobId,
    pace: WatchPace,
    mut goes_on: impl FnMut(Result<&JobStatus, &ClientError>) -> bool,
) -> Result<JobStatus, ClientError> {
    let begin = Instant::now();
    let mut retry = Retry::new(pace.limits);
    let mut look = pace.look;
    loop {
        match batch.find(id).await {
            Ok(job) if job.state.has_ended() => return Ok(job),
            Ok(open) if !goes_on(Ok(&open)) => return Ok(open),
            Ok(_open) => {
                retry.note_progress(begin.elapsed());
                sleep(look.next_pause()).await;
            }
            Err(error) if error.is_passing() => match retry.next_pause(begin.elapsed()) {
                Some(pause) if goes_on(Err(&error)) => sleep(pause).await,
                _ => return Err(error),
            },
            Err(error) => return Err(error),
        }
    }
}

/// Reads an output of a job that has ended, line by line.
///
/// # Errors
/// The archive has no such job, the job has not ended, or it is another caller's.
pub async fn read_output_lines(
    batch: &dyn Batch,
    id: &JobId,
    left: JobOutput,
) -> Result<JobLines, ClientError> {
    batch.output(id, left, 0).await.map(JobLines::new)
}

/// The lines of an output, without their ends. They end only when the archive has sent all of them.
#[derive(Debug)]
pub struct JobLines {
    pieces: ArchiveSteps<Bytes>,
    /// The rest of the last piece that came.
    piece: Bytes,
    /// The beginning of a line that came in an earlier piece.
    begun: BytesMut,
}

impl JobLines {
    fn new(pieces: ArchiveSteps<Bytes>) -> Self {
        Self {
            pieces,
            piece: Bytes::new(),
            begun: BytesMut::new(),
        }
    }

    /// Returns the next line; `None` behind the last.
    ///
    /// # Errors
    /// The answer was cut, or a line is longer than any job writes.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        loop {
            let end = self.piece.iter().position(|byte| *byte == b'\n');
            let part = self.piece.split_to(end.unwrap_or(self.piece.len()));
            if self.begun.len().saturating_add(part.len()) > LONGEST_LINE {
                return Err(ClientError::Untrusted(format!(
                    "the archive sent a line of more than {LONGEST_LINE} bytes"
                )));
            }
            if end.is_some() {
                self.piece.advance(1);
                if self.begun.is_empty() {
                    return Ok(Some(part));
                }
                self.begun.extend_from_slice(&part);
                return Ok(Some(self.begun.split().freeze()));
            }
            self.begun.extend_from_slice(&part);
            match self.pieces.next().await? {
                Some(piece) => self.piece = piece,
                None if self.begun.is_empty() => return Ok(None),
                None => return Ok(Some(self.begun.split().freeze())),
            }
        }
    }
}

/// A line of the list of errors of a job: why something of a file is not in its result.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct JobFailure {
    /// The file that failed.
    pub file: FileName,
    /// The node that reported the failure, or that should have the file; empty if it is not known.
    pub node: String,
    /// The offset of the failure in the file, in bytes; absent: it is about the file as a whole.
    pub offset: Option<u64>,
    /// The kind of failure.
    pub kind: FailureKind,
    /// The reason for people.
    pub reason: String,
}

impl JobFailure {
    /// Reads a line of [`JobOutput::Errors`].
    ///
    /// # Errors
    /// The line is not one of the list of errors.
    pub fn read_line(line: &[u8]) -> Result<Self, ClientError> {
        serde_json::from_slice(line).map_err(|error| {
            ClientError::Untrusted(format!("cannot read a line of the list of errors: {error}"))
        })
    }

    /// Returns whether no node has read the file.
    pub fn is_unread(&self) -> bool {
        self.kind == FailureKind::Unread
    }

    /// Returns the id of the node, where it is known.
    pub fn node(&self) -> Option<NodeId> {
        NodeId::new(&self.node).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::future::ready;

    use parking_lot::Mutex;
    use proto_archive::wire::batch_status::State;
    use proto_archive::{convert, wire};

    use super::*;
    use crate::CallFuture;
    use crate::batch::JobDescription;

    /// An archive that answers questions for a job as its script says, and nothing else.
    struct ScriptedBatch(Mutex<VecDeque<Result<JobStatus, ClientError>>>);

    fn nothing<T: Send + 'static>() -> CallFuture<'static, T> {
        Box::pin(ready(Err(ClientError::NotOffered("this".to_owned()))))
    }

    impl Batch for ScriptedBatch {
        fn jobs(&self) -> CallFuture<'_, Vec<JobDescription>> {
            nothing()
        }

        fn submit<'a>(&'a self, _submission: &'a JobSubmission) -> CallFuture<'a, JobStatus> {
            nothing()
        }

        fn list(&self, _own: bool, _open: bool) -> CallFuture<'_, ArchiveSteps<JobStatus>> {
            nothing()
        }

        fn find<'a>(&'a self, _id: &'a JobId) -> CallFuture<'a, JobStatus> {
            let next = self.0.lock().pop_front();
            Box::pin(ready(next.unwrap()))
        }

        fn cancel<'a>(&'a self, _id: &'a JobId) -> CallFuture<'a, JobStatus> {
            nothing()
        }

        fn output<'a>(
            &'a self,
            _id: &'a JobId,
            _left: JobOutput,
            _offset: u64,
        ) -> CallFuture<'a, ArchiveSteps<Bytes>> {
            nothing()
        }
    }

    fn status(state: State) -> JobStatus {
        let message = wire::BatchStatus {
            id: "j-1".to_owned(),
            spec: Some(wire::BatchSpec {
                job: "file-list".to_owned(),
                replica: "one".to_owned(),
                ..wire::BatchSpec::default()
            }),
            state: state.into(),
            who: "researcher/rita".to_owned(),
            submitted: "2026-01-02T03:04:05Z".to_owned(),
            ..wire::BatchStatus::default()
        };
        convert::job_status(message).unwrap()
    }

    fn silence() -> Result<JobStatus, ClientError> {
        Err(ClientError::Unavailable("gone".to_owned()))
    }

    /// Watches a job without pauses. Returns what was seen of it, and how the watch ended.
    async fn watched(
        script: Vec<Result<JobStatus, ClientError>>,
        most_looks: usize,
    ) -> (Vec<&'static str>, Result<JobStatus, ClientError>) {
        let batch = ScriptedBatch(Mutex::new(script.into()));
        let pace = WatchPace {
            look: Backoff::new(Duration::ZERO, Duration::ZERO),
            limits: ClientLimits {
                attempts: 3,
                first_pause_ms: 0,
                ..ClientLimits::default()
            },
        };
        let mut seen = Vec::new();
        let id = JobId::new("j-1").unwrap();
        let ended = watch_job(&batch, &id, pace, |look| {
            seen.push(if look.is_ok() { "open" } else { "silent" });
            seen.len() < most_looks
        });
        let ended = ended.await;
        (seen, ended)
    }

    /// Fails if a watch hides an error that passes, counts it after an answer, or ends before the job.
    #[tokio::test]
    async fn watch_outlasts_errors_that_pass() {
        let script = vec![
            silence(),
            silence(),
            Ok(status(State::Running)),
            silence(),
            silence(),
            Ok(status(State::Done)),
        ];
        let (seen, ended) = watched(script, usize::MAX).await;
        assert_eq!(seen, ["silent", "silent", "open", "silent", "silent"]);
        assert!(ended.unwrap().state.has_ended());
    }

    /// Fails if a silent archive is asked without end, or an error that does not pass is asked about again.
    #[tokio::test]
    async fn watch_gives_up_after_attempts() {
        let (seen, ended) = watched(vec![silence(), silence(), silence()], usize::MAX).await;
        assert_eq!((seen.len(), ended.is_err()), (2, true));
        let refused = Err(ClientError::Refused("no".to_owned()));
        let (seen, ended) = watched(vec![refused], usize::MAX).await;
        assert_eq!((seen.len(), ended.is_err()), (0, true));
    }

    /// Fails if a watch continues although its caller has seen enough.
    #[tokio::test]
    async fn caller_ends_watch_of_open_job() {
        let script = || vec![Ok(status(State::Running)), Ok(status(State::Running))];
        let (seen, ended) = watched(script(), 2).await;
        assert_eq!((seen.len(), ended.unwrap().state.has_ended()), (2, false));
        let (seen, ended) = watched(vec![silence()], 1).await;
        assert_eq!((seen.len(), ended.is_err()), (1, true));
    }

    async fn read(pieces: &[&'static [u8]]) -> (Vec<Bytes>, Result<(), ClientError>) {
        let pieces: Vec<_> = pieces
            .iter()
            .map(|piece| Ok(Bytes::from_static(piece)))
            .collect();
        let mut lines = JobLines::new(ArchiveSteps::new(tokio_stream::iter(pieces)));
        let mut all = Vec::new();
        loop {
            match lines.next().await {
                Ok(Some(line)) => all.push(line),
                Ok(None) => return (all, Ok(())),
                Err(error) => return (all, Err(error)),
            }
        }
    }

    /// Fails if a line is lost, split or joined where one piece ends and the next begins.
    #[tokio::test]
    async fn lines_are_same_however_pieces_are_cut() {
        let text: &[u8] = b"one\n\ntwo three\nfour\n";
        let expected: Vec<_> = text[..text.len() - 1]
            .split(|byte| *byte == b'\n')
            .collect();
        for first in 0..=text.len() {
            for second in first..=text.len() {
                let pieces = [&text[..first], &text[first..second], &text[second..]];
                let pieces = pieces.map(|piece| &*piece.to_vec().leak());
                let (lines, ended) = read(&pieces).await;
                ended.unwrap();
                assert_eq!(lines, expected, "{first} {second}");
            }
        }
        let (lines, _) = read(&[b"one\ntw", b"o"]).await;
        assert_eq!(lines, [&b"one"[..], b"two"], "the last one has no end");
        assert_eq!(read(&[]).await.0, Vec::<Bytes>::new());
    }

    /// Fails if an archive that sends no end of a line fills the memory of its caller.
    #[tokio::test]
    async fn endless_line_is_refused() {
        let piece: &'static [u8] = vec![b'x'; LONGEST_LINE].leak();
        let (lines, ended) = read(&[piece, b"\n"]).await;
        assert_eq!((lines.len(), ended.is_ok()), (1, true));
        let (lines, ended) = read(&[piece, b"x\n"]).await;
        assert!(lines.is_empty());
        assert!(matches!(ended, Err(ClientError::Untrusted(_))), "{ended:?}");
    }

    /// Fails if a failure is read as another one, or nonsense as a failure.
    #[test]
    fn failure_is_read_as_archive_writes_it() {
        let line = br#"{"file":"a.warc","node":"n-1","offset":7,"kind":"damaged","reason":"x"}"#;
        let failure = JobFailure::read_line(line).unwrap();
        assert_eq!((failure.file.as_str(), failure.offset), ("a.warc", Some(7)));
        assert!(!failure.is_unread());
        assert_eq!(failure.node(), NodeId::new("n-1").ok());
        let line = br#"{"file":"b.warc","node":"","offset":null,"kind":"unread","reason":"y"}"#;
        let unread = JobFailure::read_line(line).unwrap();
        assert!(unread.is_unread() && unread.node().is_none());
        for bad in [
            &b""[..],
            b"{}",
            br#"{"file":"../x","node":"","offset":null,"kind":"job","reason":""}"#,
            br#"{"file":"x","node":"","offset":null,"kind":"tired","reason":""}"#,
        ] {
            assert!(JobFailure::read_line(bad).is_err());
        }
    }
}
