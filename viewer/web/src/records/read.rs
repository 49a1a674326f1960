//! The thread that reads a record.
//!
//! Owns the order of its work: it reads the head and the beginning of the body, hands out what it found, and then does
//! with the body what it is told.

use std::io;

use archive_formats::http::HeadError;
use archive_formats::warc::WarcReader;
use tokio::sync::oneshot;
use viewer_replay::response::StoredMessage;

use super::answer::{AnswerPart, AnswerSender, RecordOpening};
use super::archive_chunks::ArchiveChunks;
use super::body::StoredBody;
use super::{PayloadVerdict, RecordError};

/// The longest head of an HTTP message that is read, in bytes.
const LONGEST_HEAD: usize = 1 << 20;

/// The work that makes an answer of a body: it sends the bytes, and returns what the digest of the payload is worth.
pub(super) type BodyWork =
    Box<dyn FnOnce(StoredBody<'_>, &AnswerSender) -> Result<PayloadVerdict, RecordError> + Send>;

/// Reads a record, and answers with its head, then with what the work makes of its body. If no work comes, the head was
/// all that was wanted.
pub(super) fn read_record(
    chunks: ArchiveChunks,
    work_rx: oneshot::Receiver<BodyWork>,
    answer: &AnswerSender,
) {
    if let Err(error) = answer_with_record(chunks, work_rx, answer) {
        answer.send_error(error);
    }
}

fn answer_with_record(
    chunks: ArchiveChunks,
    work_rx: oneshot::Receiver<BodyWork>,
    answer: &AnswerSender,
) -> Result<(), RecordError> {
    let mut reader = WarcReader::new(chunks);
    let mut record = reader
        .next_record()
        .map_err(io::Error::from)?
        .ok_or_else(|| {
            let nothing = "no record begins there; the index may be of another file";
            RecordError::Broken(nothing.to_owned())
        })?;
    let kind = record.kind();
    let header = record.header().clone();
    let message =
        StoredMessage::read_message(kind, &header, &mut record, LONGEST_HEAD).map_err(|error| {
            match error {
                HeadError::Io(error) => error.into(),
                HeadError::TooLarge { .. } => RecordError::Broken(error.to_string()),
            }
        })?;
    let body = StoredBody::begin_body(&message, record)?;
    let opening = RecordOpening {
        kind,
        header,
        message,
        whole: body.whole(),
        length: body.length(),
    };
    answer.send_part(AnswerPart::Opening(Box::new(opening)))?;
    let Ok(work) = work_rx.blocking_recv() else {
        return Ok(());
    };
    let verdict = work(body, answer)?;
    answer.send_part(AnswerPart::End(verdict))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use archive_formats::warc::{Builder, WarcType};
    use bytes::Bytes;
    use tokio::sync::mpsc;
    use tokio::task::spawn_blocking;

    use super::*;

    /// Returns a record with a body that is longer than all that waits between the thread and its client.
    fn long_record() -> Bytes {
        let block = vec![b'x'; 2 << 20];
        let id = "urn:uuid:00000000-0000-4000-8000-000000000001";
        let record = Builder::new(WarcType::Resource, id, "2020-01-01T00:00:00Z")
            .target_uri("http://example.org/")
            .content_type("text/plain");
        let head = record.render_head(block.len() as u64).unwrap();
        [head.as_slice(), &block, b"\r\n\r\n"].concat().into()
    }

    /// Fails if a client that wants nothing of a body, or does not read what it wanted, holds a thread.
    #[tokio::test]
    async fn thread_ends_without_its_client() {
        for is_wanted in [false, true] {
            let (chunk_tx, chunk_rx) = mpsc::channel(1);
            let (part_tx, mut part_rx) = mpsc::channel(1);
            let (work_tx, work_rx) = oneshot::channel::<BodyWork>();
            chunk_tx.send(Ok(long_record())).await.unwrap();
            let chunks = ArchiveChunks::new(chunk_rx);
            let answer = AnswerSender::new(part_tx, Duration::from_millis(50));
            let thread = spawn_blocking(move || read_record(chunks, work_rx, &answer));
            let opening = part_rx.recv().await.unwrap().unwrap();
            assert!(matches!(opening, AnswerPart::Opening(_)));
            if is_wanted {
                let work = Box::new(|body: StoredBody<'_>, answer: &AnswerSender| {
                    body.send_range(&(0..u64::MAX), answer)
                });
                assert!(work_tx.send(work).is_ok(), "the thread takes work");
            } else {
                drop(work_tx);
            }
            tools_testing::in_time(thread).await.unwrap();
            // What was sent before the thread gave up can still be read, and has no end.
            let mut is_ended = false;
            while let Some(part) = part_rx.recv().await {
                is_ended |= matches!(part, Ok(AnswerPart::End(_)));
            }
            assert!(!is_ended);
        }
    }
}
