//! The bytes of a job's file, piece by piece.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Take};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use tokio::task::spawn_blocking;

use super::folder::{FolderError, JobFile, JobFolder};

/// The longest piece, in bytes.
const PIECE: usize = 1 << 20;

/// The bytes of one file of a job, up to a length; cheap to clone.
#[derive(Clone, Debug)]
pub struct JobBytes {
    /// The folder of the job.
    pub folder: Arc<JobFolder>,
    /// The file of the job.
    pub name: JobFile,
    /// The offset of the first byte to read.
    pub offset: u64,
    /// The offset behind the last byte to read.
    pub length: u64,
}

impl JobBytes {
    /// Returns the bytes in pieces of at most 1 MiB.
    ///
    /// # Errors
    /// A [`ReadOutputError`] is the last item of the stream.
    pub fn into_pieces(self) -> BoxStream<'static, Result<Bytes, ReadOutputError>> {
        let pieces = stream::try_unfold(None, move |reader| {
            let own = self.clone();
            let read = spawn_blocking(move || own.next(reader));
            async { read.await? }
        });
        pieces.boxed()
    }

    /// Returns the pieces for a peer. A `None` is the last item: the rest cannot be read, as the log says.
    pub fn into_chunks(self) -> BoxStream<'static, Option<Bytes>> {
        self.into_pieces()
            .map(|piece| match piece {
                Ok(piece) => Some(piece),
                Err(error) => {
                    tracing::error!(%error, "cannot read a file of a batch job");
                    None
                }
            })
            .boxed()
    }

    fn next(&self, reader: Option<Take<File>>) -> Result<Option<Next>, ReadOutputError> {
        let mut reader = match reader {
            Some(reader) => reader,
            None if self.offset >= self.length => return Ok(None),
            None => {
                let mut reader = self.folder.read_file(self.name, self.length)?;
                reader.get_mut().seek(SeekFrom::Start(self.offset))?;
                reader.set_limit(self.length.saturating_sub(self.offset));
                reader
            }
        };
        let piece = piece(&mut reader)?;
        Ok((!piece.is_empty()).then_some((piece, Some(reader))))
    }
}

/// A piece, and where the next one comes from.
type Next = (Bytes, Option<Take<File>>);

/// The reason why the rest cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadOutputError {
    /// The folder of the job is damaged, or its disk fails.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A read failed.
    #[error(transparent)]
    Read(#[from] std::io::Error),
    /// The file became shorter while it was read.
    #[error("the file became {0} bytes shorter while it was read")]
    Short(u64),
    /// A bug: the reading panicked.
    #[error(transparent)]
    Join(#[from] tokio::task::JoinError),
}

/// Reads the next bytes; they are empty at the end.
///
/// # Errors
/// A read failed, or the file has become shorter.
fn piece(reader: &mut Take<File>) -> Result<Bytes, ReadOutputError> {
    let left = reader.limit();
    let mut piece = Vec::with_capacity(PIECE.min(usize::try_from(left).unwrap_or(PIECE)));
    let read = reader.by_ref().take(PIECE as u64).read_to_end(&mut piece)?;
    if read == 0 && left > 0 {
        return Err(ReadOutputError::Short(left));
    }
    Ok(piece.into())
}
