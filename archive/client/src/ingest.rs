//! Storing files in the archive. Harvesters hold this trait and only this; everybody else asks here how a
//! file stands.

mod depositor;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use archive_model::{FileName, Root};
use archive_proof::{Admission, ReadAt, Receipt};
use bytes::Bytes;

pub use depositor::Depositor;
pub(crate) use depositor::within_limit;

use crate::CallFuture;
use crate::error::ClientError;
use crate::file_status::{FileStatus, ReplicaStatus};

/// The number of bytes of a source that are read at once.
pub(crate) const CHUNK: u64 = 256 * 1024;

/// An archive that takes files.
pub trait Ingest: Send + Sync {
    /// Stores a file in every replica. Success means that every required replica has verified the file, and that the
    /// receipt says so: only then may the source be deleted. Storing the same content again is a success.
    ///
    /// A cut stream is resumed where it stood, as often as the limits allow. `watch` is called with each event.
    fn store<'a>(
        &'a self,
        deposit: &'a Deposit,
        watch: &'a (dyn Fn(StoreEvent<'_>) + Send + Sync),
    ) -> CallFuture<'a, StoredFile>;

    /// Returns the status of a file in each replica. A harvester sees its own files only.
    fn stat<'a>(&'a self, name: &'a FileName) -> CallFuture<'a, FileStatus>;
}

/// A file to store.
///
/// ```
/// use std::sync::Arc;
///
/// use archive_client::{AnnouncedDigests, ClientError, Deposit, Ingest};
/// use archive_model::{FileName, Root};
///
/// /// Stores bytes under a name; returns the receipt, after which the source may go.
/// async fn store(archive: &dyn Ingest, name: FileName, bytes: Vec<u8>) -> Result<String, ClientError> {
///     let deposit = Deposit {
///         name,
///         size: bytes.len() as u64,
///         announced: AnnouncedDigests {
///             blake3: Some(Root::from_bytes(*blake3::hash(&bytes).as_bytes())),
///             ..AnnouncedDigests::default()
///         },
///         source: Arc::new(bytes),
///         no_digest: false,
///     };
///     Ok(archive.store(&deposit, &|_event| {}).await?.envelope)
/// }
/// ```
#[derive(Clone)]
pub struct Deposit {
    /// The name under which the file is kept permanently.
    pub name: FileName,
    /// The size of the file in bytes.
    pub size: u64,
    /// The bytes of the file. They must not change while the file is stored; if they do, the archive refuses them.
    pub source: Arc<dyn ReadAt + Send + Sync>,
    /// The digests that the depositor knows of the content.
    pub announced: AnnouncedDigests,
    /// Whether to store without any digest: nothing then protects the way from the disk to the archive.
    pub no_digest: bool,
}

/// The digests that a depositor knows of the content of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnnouncedDigests {
    /// The BLAKE3 root of the content.
    pub blake3: Option<Root>,
    /// The SHA-256 of the content.
    pub sha256: Option<[u8; 32]>,
    /// The MD5 of the content.
    pub md5: Option<[u8; 16]>,
}

/// A file that is in every required replica.
#[derive(Clone, Debug)]
pub struct StoredFile {
    /// The custody receipt as it goes into a file: a DSSE envelope in JSON. It was verified.
    pub envelope: String,
    /// The content of the receipt.
    pub receipt: Receipt,
    /// The admission that the receipt contains.
    pub admission: Admission,
    /// Whether the archive had the file already.
    pub already: bool,
    /// The status of the file in every replica, required or not.
    pub replicas: Vec<ReplicaStatus>,
    /// The name of another file of the archive that differs only in case.
    pub similar_name: Option<String>,
}

/// An event while a file is stored.
#[derive(Clone, Copy, Debug)]
pub enum StoreEvent<'a> {
    /// The number of bytes of the file that are on their way or in the archive; fewer than before after a new attempt.
    Sent(u64),
    /// An attempt failed; the next begins after the pause.
    Retrying {
        /// The number of attempts that have failed without getting further.
        failed: u32,
        /// The time until the next attempt.
        pause: Duration,
        /// The reason why the attempt failed.
        error: &'a ClientError,
    },
}

/// The result of comparing announced digests with those of an admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DigestComparison {
    /// At least one digest is known to both sides, and none differs.
    Same,
    /// A digest differs: its name.
    Differs(&'static str),
    /// No digest is known to both sides.
    Unknown,
}

impl AnnouncedDigests {
    /// Returns whether no digest is known.
    pub const fn is_nothing(&self) -> bool {
        self.blake3.is_none() && self.sha256.is_none() && self.md5.is_none()
    }

    /// Compares the known digests with those of the admission.
    pub(crate) fn compare_digests(&self, admission: &Admission) -> DigestComparison {
        let digests = &admission.digests;
        let pairs = [
            ("blake3", self.blake3.map(|own| own == admission.root)),
            (
                "sha256",
                self.sha256.zip(digests.sha256).map(|(a, b)| a == b),
            ),
            ("md5", self.md5.zip(digests.md5).map(|(a, b)| a == b)),
        ];
        if let Some((which, _)) = pairs.iter().find(|(_, same)| *same == Some(false)) {
            return DigestComparison::Differs(which);
        }
        if pairs.iter().any(|(_, same)| *same == Some(true)) {
            DigestComparison::Same
        } else {
            DigestComparison::Unknown
        }
    }
}

impl Deposit {
    /// Refuses a deposit without any digest, unless `no_digest` is set.
    pub(crate) fn check_source(&self) -> Result<(), ClientError> {
        if self.announced.is_nothing() && !self.no_digest {
            let name = &self.name;
            return Err(ClientError::Invalid(format!(
                "{name}: no digest is announced; give one, or say that none is known"
            )));
        }
        Ok(())
    }

    /// Reads exactly `length` bytes of the source; fails if it has fewer.
    pub(crate) async fn read_block(&self, offset: u64, length: u64) -> Result<Bytes, ClientError> {
        let source = Arc::clone(&self.source);
        let read = tokio::task::spawn_blocking(move || {
            let mut bytes = vec![0; usize::try_from(length).expect("a chunk fits in memory")];
            source
                .read_exact_at(offset, &mut bytes)
                .map(|()| Bytes::from(bytes))
        });
        let name = &self.name;
        let read = read
            .await
            .map_err(|error| ClientError::Bug(format!("{name}: reading it: {error}")))?;
        read.map_err(|source| ClientError::Source {
            what: format!(
                "{name}: bytes {offset}-{} cannot be read",
                offset + length - 1
            ),
            source,
        })
    }
}

impl fmt::Debug for Deposit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deposit")
            .field("name", &self.name)
            .field("size", &self.size)
            .field("announced", &self.announced)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use archive_model::Digests;

    use super::*;

    fn admission(md5: Option<[u8; 16]>) -> Admission {
        Admission {
            root: Root::from_bytes([1; 32]),
            digests: Digests {
                sha256: Some([2; 32]),
                md5,
            },
            ..archive_proof::testing::admission("a", b"x")
        }
    }

    /// Fails if a file with the announced name and another checksum counts as the same, or a digest that only one side
    /// knows as a difference.
    #[test]
    fn digests_known_to_both_must_agree() {
        let root = |byte| Some(Root::from_bytes([byte; 32]));
        let sha256 = |byte| Some([byte; 32]);
        let md5 = |byte| Some([byte; 16]);
        let with = admission(md5(3));
        let without = admission(None);
        for (admission, announced, expected) in [
            (&with, (None, None, None), DigestComparison::Unknown),
            (&without, (None, None, md5(3)), DigestComparison::Unknown),
            (&without, (root(1), None, None), DigestComparison::Same),
            (&without, (None, sha256(2), md5(3)), DigestComparison::Same),
            (&with, (None, None, md5(3)), DigestComparison::Same),
            (
                &with,
                (root(9), sha256(2), None),
                DigestComparison::Differs("blake3"),
            ),
            (
                &with,
                (root(1), sha256(9), md5(3)),
                DigestComparison::Differs("sha256"),
            ),
            (
                &with,
                (root(1), sha256(2), md5(9)),
                DigestComparison::Differs("md5"),
            ),
        ] {
            let (blake3, sha256, md5) = announced;
            let announced = AnnouncedDigests {
                blake3,
                sha256,
                md5,
            };
            assert_eq!(
                announced.compare_digests(admission),
                expected,
                "{announced:?}"
            );
        }
    }
}
