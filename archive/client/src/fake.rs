//! An archive in memory, for the tests of users of [`Ingest`] and [`Access`]: it passes the same contract as a
//! real one (`conformance/src/contract`).
//!
//! It has two bitarchive replicas, `one` and `two`, and the checksum replica `three`. Everything that it hands out is
//! signed with a real key and proves itself. At its door for deposits stands a harvester
//! ([`FakeArchive::depositing_as`]), at its door for readers a reader.
//!
//! Time is an argument elsewhere; here it stands still, and every signature is a second later than the one before. The
//! key is made of a well-known seed.
//!
//! Not promised: faults of disks and machines. Every byte stays in memory, nothing is ever damaged, missing or silent,
//! and no caller is refused for its role. Files are withdrawn and restored by one call ([`FakeArchive::withdraw_file`]),
//! so that the feed can report it. The fake is no [`Preservation`](crate::Preservation): volumes, attics, repairs and
//! second persons that are only played would prove nothing to those who hold one.

mod feed;
mod reading;
mod replica;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use archive_model::{ArchiveError, ChangeKind, Digests, FileName, UploadId};
use archive_proof::{Admission, Envelope, Receipt, SigningKey, TreeBuilder, TrustFile, TrustedKey};
use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use md5::Md5;
use parking_lot::{Mutex, MutexGuard};
use sha2::{Digest as _, Sha256};

use self::replica::{Replica, parse_id};
use crate::CallFuture;
use crate::access::HeldReceipt;
use crate::error::ClientError;
use crate::file_status::FileStatus;
use crate::ingest::{CHUNK, Deposit, DigestComparison, Ingest, StoreEvent, StoredFile};

/// The archive in whose name the fake signs.
const ARCHIVE: &str = "fake";

/// The time at which the fake archive begins: 2026-01-01T00:00:00Z.
const BEGIN: Timestamp = Timestamp::constant(1_767_225_600, 0);

/// An archive in memory. Its clones are doors of the same archive.
///
/// ```
/// use std::sync::Arc;
///
/// use archive_client::{Access, AnnouncedDigests, Deposit, FakeArchive, FileRange, Ingest};
/// use archive_model::FileName;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let archive = FakeArchive::new();
/// let name = FileName::new("a.warc")?;
/// let deposit = Deposit {
///     name: name.clone(),
///     size: 5,
///     source: Arc::new(b"hello".to_vec()),
///     announced: AnnouncedDigests::default(),
///     no_digest: true,
/// };
/// archive.store(&deposit, &|_event| {}).await?;
///
/// let mut reading = archive.get(&FileRange::whole_file(name)).await?;
/// assert_eq!(reading.next().await?.as_deref(), Some(&b"hello"[..]));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct FakeArchive {
    who: String,
    shared: Arc<SharedFake>,
}

struct SharedFake {
    key: SigningKey,
    trust: TrustFile,
    replicas: Vec<Replica>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    files: BTreeMap<FileName, Arc<KeptFile>>,
    /// The files that people have withdrawn.
    withdrawn: BTreeSet<FileName>,
    feed: feed::Feed,
    /// The number of seconds that have passed.
    seconds: i64,
}

/// A file that the archive keeps.
struct KeptFile {
    admission: Admission,
    envelope: Envelope,
    bytes: Bytes,
    outboard: Vec<u8>,
    completed: Timestamp,
}

/// A file that arrived whole, and what was computed while its bytes passed.
struct ReceivedFile {
    admission: Admission,
    bytes: Bytes,
    outboard: Vec<u8>,
}

impl FakeArchive {
    /// Makes an empty archive.
    pub fn new() -> Self {
        let key = SigningKey::from_seed([7; 32]);
        let shared = SharedFake {
            trust: trust(&key),
            key,
            replicas: Replica::all_replicas(),
            state: Mutex::default(),
        };
        Self {
            who: "harvester/fake".to_owned(),
            shared: Arc::new(shared),
        }
    }

    /// Returns a door of the same archive at which `who` deposits, as `role/name`: others do not see these files by
    /// `stat`.
    #[must_use]
    pub fn depositing_as(&self, who: &str) -> Self {
        Self {
            who: who.to_owned(),
            shared: Arc::clone(&self.shared),
        }
    }

    /// Returns the keys whose signatures count.
    pub fn trust(&self) -> &TrustFile {
        &self.shared.trust
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock()
    }

    fn find(&self, name: &FileName) -> Option<Arc<KeptFile>> {
        self.state().files.get(name).cloned()
    }

    async fn keep(
        &self,
        deposit: &Deposit,
        watch: &(dyn Fn(StoreEvent<'_>) + Send + Sync),
    ) -> Result<StoredFile, ClientError> {
        deposit.check_source()?;
        if self.state().is_withdrawn(&deposit.name) {
            return Err(Self::removed_error(&deposit.name));
        }
        if let Some(kept) = self.find(&deposit.name)
            && kept.is_the_content_of(deposit)?
        {
            return self.acknowledge(&kept, true);
        }
        let received = self.receive(deposit, watch).await?;
        let (kept, already) = self.bind(received)?;
        self.acknowledge(&kept, already)
    }

    /// Reads the bytes of a deposit, and compares them with what was announced.
    async fn receive(
        &self,
        deposit: &Deposit,
        watch: &(dyn Fn(StoreEvent<'_>) + Send + Sync),
    ) -> Result<ReceivedFile, ClientError> {
        let Deposit {
            name,
            size,
            announced,
            ..
        } = deposit;
        let mut tree = TreeBuilder::new(Vec::new());
        let mut bytes = Vec::new();
        let mut at = 0;
        watch(StoreEvent::Sent(at));
        while at < *size {
            let piece = deposit.read_block(at, CHUNK.min(size - at)).await?;
            tree.update(&piece).map_err(|error| bug(&error))?;
            bytes.extend_from_slice(&piece);
            at += piece.len() as u64;
            watch(StoreEvent::Sent(at));
        }
        let tree = tree.finish().map_err(|error| bug(&error))?;
        let admitted = self.state().now();
        let admission = Admission {
            archive: ARCHIVE.to_owned(),
            name: name.clone(),
            size: tree.size,
            root: tree.root,
            digests: Digests {
                sha256: Some(Sha256::digest(&bytes).into()),
                md5: announced.md5.map(|_| Md5::digest(&bytes).into()),
            },
            depositor: self.who.clone(),
            admitted,
            upload: parse_id::<UploadId>(&format!("upload-{}", admitted.as_second())),
        };
        if let DigestComparison::Differs(which) = announced.compare_digests(&admission) {
            return Err(ClientError::Mismatch(format!(
                "{name}: the {which} of what was received is not what was announced"
            )));
        }
        Ok(ReceivedFile {
            admission,
            bytes: bytes.into(),
            outboard: tree.sink,
        })
    }

    /// Binds the name to these bytes, unless it is bound to others. Returns whether it was bound to them before.
    fn bind(&self, received: ReceivedFile) -> Result<(Arc<KeptFile>, bool), ClientError> {
        let mut state = self.state();
        if let Some(kept) = state.files.get(&received.admission.name) {
            if kept.admission.root != received.admission.root {
                return Err(kept.exists());
            }
            return Ok((Arc::clone(kept), true));
        }
        let kept = received.keep(&self.shared.key, state.now())?;
        state.tell_followers(ChangeKind::Stored, &kept);
        let name = kept.admission.name.clone();
        state.files.insert(name, Arc::clone(&kept));
        Ok((kept, false))
    }

    fn acknowledge(&self, kept: &KeptFile, already: bool) -> Result<StoredFile, ClientError> {
        let HeldReceipt {
            envelope,
            receipt,
            admission,
        } = self.vouch(kept)?;
        Ok(StoredFile {
            envelope,
            receipt,
            similar_name: self.state().similar(&admission.name),
            admission,
            already,
            replicas: self.statuses(kept),
        })
    }

    /// Signs the custody receipt of a file, as it stands now.
    fn vouch(&self, kept: &KeptFile) -> Result<HeldReceipt, ClientError> {
        let replicas = self.shared.replicas.iter();
        let receipt = Receipt {
            admission: kept.envelope.clone(),
            replicas: replicas
                .map(|replica| replica.custody_statement(kept.completed))
                .collect(),
            issued: self.state().now(),
        };
        let envelope = receipt
            .sign(&self.shared.key)
            .map_err(|error| bug(&error))?;
        let text = envelope.as_str().to_owned();
        let name = &kept.admission.name;
        HeldReceipt::believe_receipt(text, name, &self.shared.trust)
    }

    fn status_of(&self, name: &FileName) -> Result<FileStatus, ClientError> {
        let kept = self.find(name);
        let kept = kept.filter(|kept| kept.admission.depositor == self.who);
        let kept = kept.ok_or_else(|| unknown(name))?;
        let admission = &kept.admission;
        Ok(FileStatus {
            name: name.clone(),
            size: admission.size,
            root: admission.root,
            digests: admission.digests.clone(),
            depositor: admission.depositor.clone(),
            admitted: admission.admitted,
            replicas: self.statuses(&kept),
        })
    }

    fn statuses(&self, kept: &KeptFile) -> Vec<crate::ReplicaStatus> {
        let replicas = self.shared.replicas.iter();
        replicas
            .map(|replica| replica.replica_status(kept.completed))
            .collect()
    }
}

impl ReceivedFile {
    /// Signs the admission and returns the file as it is kept.
    fn keep(self, key: &SigningKey, completed: Timestamp) -> Result<Arc<KeptFile>, ClientError> {
        let envelope = self.admission.sign(key);
        Ok(Arc::new(KeptFile {
            envelope: envelope.map_err(|error| bug(&error))?,
            bytes: self.bytes,
            outboard: self.outboard,
            completed,
            admission: self.admission,
        }))
    }
}

impl State {
    fn now(&mut self) -> Timestamp {
        self.seconds += 1;
        BEGIN + SignedDuration::from_secs(self.seconds)
    }

    /// Returns another name that differs only in case.
    fn similar(&self, name: &FileName) -> Option<String> {
        let folded = name.case_folded();
        let mut others = self.files.keys();
        let other = others.find(|other| *other != name && other.case_folded() == folded);
        other.map(ToString::to_string)
    }
}

impl KeptFile {
    /// Returns whether the announced digests say that the deposit is this content; `false`: only the bytes can tell.
    /// MD5 is not enough: its collisions are made on purpose.
    fn is_the_content_of(&self, deposit: &Deposit) -> Result<bool, ClientError> {
        let announced = &deposit.announced;
        match announced.compare_digests(&self.admission) {
            DigestComparison::Differs(_) => Err(self.exists()),
            DigestComparison::Same | DigestComparison::Unknown
                if deposit.size != self.admission.size =>
            {
                Err(self.exists())
            }
            DigestComparison::Same => Ok(announced.blake3.is_some() || announced.sha256.is_some()),
            DigestComparison::Unknown => Ok(false),
        }
    }

    fn exists(&self) -> ClientError {
        let Admission { name, root, .. } = &self.admission;
        let error = ArchiveError::Exists {
            name: name.clone(),
            archived: *root,
        };
        ClientError::Exists(error.to_string())
    }
}

impl Default for FakeArchive {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for FakeArchive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeArchive")
            .field("who", &self.who)
            .finish_non_exhaustive()
    }
}

impl Ingest for FakeArchive {
    fn store<'a>(
        &'a self,
        deposit: &'a Deposit,
        watch: &'a (dyn Fn(StoreEvent<'_>) + Send + Sync),
    ) -> CallFuture<'a, StoredFile> {
        Box::pin(self.keep(deposit, watch))
    }

    fn stat<'a>(&'a self, name: &'a FileName) -> CallFuture<'a, FileStatus> {
        Box::pin(async move { self.status_of(name) })
    }
}

#[expect(clippy::expect_used, reason = "one key with an open term is good")]
fn trust(key: &SigningKey) -> TrustFile {
    let trusted = TrustedKey {
        archive: ARCHIVE.to_owned(),
        public_key: key.public_key(),
        from: BEGIN,
        until: None,
    };
    TrustFile::new(vec![trusted]).expect("a trust file")
}

fn unknown(name: &FileName) -> ClientError {
    ClientError::NotFound(ArchiveError::NotFound(name.to_string()).to_string())
}

/// Returns an error of the fake itself: memory does not fail, so that any error is a bug.
fn bug(error: &impl fmt::Display) -> ClientError {
    ClientError::Bug(format!("the fake archive: {error}"))
}
