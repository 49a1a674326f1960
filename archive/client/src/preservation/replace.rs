//! Replacing a wrong copy by the right bytes.

use std::fmt;
use std::sync::Arc;

use archive_model::{AtticItem, FileCopy, FileName, ReplicaId, Root};
use archive_proof::ReadAt;
use bytes::Bytes;
use proto_archive::convert;
use proto_archive::wire::ReplaceRequest;
use proto_archive::wire::replace_request::{Open, Step};
use tokio::sync::mpsc;

use crate::error::ClientError;
use crate::ingest::within_limit;
use crate::limits::ClientLimits;

/// The most bytes of file data in one message.
const CHUNK: u64 = 256 * 1024;

/// A copy that is to be replaced.
#[derive(Clone)]
pub struct CopyReplacement {
    /// The name of the file.
    pub name: FileName,
    /// The replica whose copy is wrong.
    pub replica: ReplicaId,
    /// The BLAKE3 root of the copy that is replaced.
    pub checksum: Root,
    /// The reason, for the audit trail.
    pub reason: String,
    /// The source of the right bytes.
    pub source: Arc<dyn ReadAt + Send + Sync>,
    /// The size of the right bytes.
    pub size: u64,
}

/// A copy that was replaced.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ReplacedCopy {
    /// The copy as it is now.
    pub entry: FileCopy,
    /// The item of the attic in which the wrong copy lies.
    pub attic: AtticItem,
}

impl fmt::Debug for CopyReplacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replacement")
            .field("name", &self.name)
            .field("replica", &self.replica)
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

impl CopyReplacement {
    /// Sends the whole replacement. Ends early, without an error, when the archive takes no more: its answer says why.
    pub(super) async fn send_bytes(
        &self,
        requests: mpsc::Sender<ReplaceRequest>,
        limits: &ClientLimits,
        watch: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<(), ClientError> {
        let mut step = Step::Open(Open {
            name: self.name.to_string(),
            replica: self.replica.to_string(),
            checksum: convert::root_bytes(&self.checksum),
            reason: self.reason.clone(),
        });
        let mut sent = 0;
        loop {
            let request = ReplaceRequest { step: Some(step) };
            let doing = format!("sending {} (byte {sent} of {})", self.name, self.size);
            if within_limit(limits.stall_limit(), &doing, requests.send(request))
                .await?
                .is_err()
            {
                return Ok(());
            }
            watch(sent);
            let length = (self.size - sent).min(CHUNK);
            if length == 0 {
                return Ok(());
            }
            step = Step::Data(self.read(sent, length).await?);
            sent += length;
        }
    }

    async fn read(&self, offset: u64, length: u64) -> Result<Bytes, ClientError> {
        let source = Arc::clone(&self.source);
        let name = &self.name;
        let read = tokio::task::spawn_blocking(move || {
            let mut bytes = vec![0; usize::try_from(length).expect("a chunk fits in memory")];
            source
                .read_exact_at(offset, &mut bytes)
                .map(|()| Bytes::from(bytes))
        });
        let read = read
            .await
            .map_err(|error| ClientError::Bug(format!("{name}: reading it: {error}")))?;
        let last = offset + length - 1;
        read.map_err(|source| ClientError::Source {
            what: format!("{name}: bytes {offset}-{last} cannot be read"),
            source,
        })
    }
}
