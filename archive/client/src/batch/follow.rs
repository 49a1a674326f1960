//! Follows a job from its submission to its end, and reads its outputs line by line: for programs that run jobs, such
//! as the index.
//!
//! Owns how often the archive is asked for the status of a job. Does not decide what an incomplete job is worth: the
//! caller reads its state, and its failures.

use std::time::Duration;

use archive_model::{FailureKind, FileName, JobId, NodeId};
use bytes::{Buf, Bytes, BytesMut};
use serde::Deserialize;
use tokio::time::{Instant, sleep};

use super::{Batch, JobOutput, JobStatus, Submission};
use crate::error::ClientError;
use crate::limits::ClientLimits;
use crate::retry::Retry;
use crate::steps::Steps;

/// The first pause before a job is looked at again; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(25);

/// The longest pause before a job is looked at again.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The longest line that is read, in bytes: no built-in job writes a longer one.
const LONGEST_LINE: usize = 1 << 20;

/// Submits a job and waits for its end. Called again after a crash, under the same id, it waits for the same job.
///
/// # Errors
/// As those of [`Batch::submit`] and [`wait`].
pub async fn run(
    batch: &dyn Batch,
    submission: &Submission,
    limits: ClientLimits,
) -> Result<JobStatus, ClientError> {
    let job = batch.submit(submission).await?;
    if job.state.has_ended() {
        return Ok(job);
    }
    wait(batch, &job.id, limits).await
}

/// Waits until a job has ended, however long that takes; gives up when the archive does not answer for as long as
/// `limits` say.
///
/// # Errors
/// The archive has no such job, or keeps it no longer; or it does not answer.
pub async fn wait(
    batch: &dyn Batch,
    id: &JobId,
    limits: ClientLimits,
) -> Result<JobStatus, ClientError> {
    wait_while(batch, id, limits, |_open| true).await
}

/// Waits until a job has ended, or until `goes_on` returns `false` for its status.
///
/// # Errors
/// As those of [`wait`].
pub async fn wait_while(
    batch: &dyn Batch,
    id: &JobId,
    limits: ClientLimits,
    mut goes_on: impl FnMut(&JobStatus) -> bool,
) -> Result<JobStatus, ClientError> {
    let begin = Instant::now();
    let mut retry = Retry::new(limits);
    let mut pause = FIRST_PAUSE;
    loop {
        match batch.find(id).await {
            Ok(job) if job.state.has_ended() => return Ok(job),
            Ok(open) if !goes_on(&open) => return Ok(open),
            Ok(_open) => {
                retry.progress(begin.elapsed());
                sleep(pause).await;
                pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
            }
            Err(error) if error.is_passing() => match retry.pause(begin.elapsed()) {
                Some(pause) => sleep(pause).await,
                None => return Err(error),
            },
            Err(error) => return Err(error),
        }
    }
}

/// Reads an output of a job that has ended, line by line.
///
/// # Errors
/// The archive has no such job, the job has not ended, or it is another caller's.
pub async fn lines(batch: &dyn Batch, id: &JobId, left: JobOutput) -> Result<Lines, ClientError> {
    batch.output(id, left, 0).await.map(Lines::new)
}

/// The lines of an output, without their ends. They end only when the archive has sent all of them.
#[derive(Debug)]
pub struct Lines {
    pieces: Steps<Bytes>,
    /// The rest of the last piece that came.
    piece: Bytes,
    /// The beginning of a line that came in an earlier piece.
    begun: BytesMut,
}

impl Lines {
    fn new(pieces: Steps<Bytes>) -> Self {
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
    pub fn read(line: &[u8]) -> Result<Self, ClientError> {
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
    use super::*;

    async fn read(pieces: &[&'static [u8]]) -> (Vec<Bytes>, Result<(), ClientError>) {
        let pieces: Vec<_> = pieces
            .iter()
            .map(|piece| Ok(Bytes::from_static(piece)))
            .collect();
        let mut lines = Lines::new(Steps::new(tokio_stream::iter(pieces)));
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
        let failure = JobFailure::read(line).unwrap();
        assert_eq!((failure.file.as_str(), failure.offset), ("a.warc", Some(7)));
        assert!(!failure.is_unread());
        assert_eq!(failure.node(), NodeId::new("n-1").ok());
        let line = br#"{"file":"b.warc","node":"","offset":null,"kind":"unread","reason":"y"}"#;
        let unread = JobFailure::read(line).unwrap();
        assert!(unread.is_unread() && unread.node().is_none());
        for bad in [
            &b""[..],
            b"{}",
            br#"{"file":"../x","node":"","offset":null,"kind":"job","reason":""}"#,
            br#"{"file":"x","node":"","offset":null,"kind":"tired","reason":""}"#,
        ] {
            assert!(JobFailure::read(bad).is_err());
        }
    }
}
