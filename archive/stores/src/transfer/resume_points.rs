//! The points at which streams broke off: the states of their hashing, in memory, bounded, until the file is stored or
//! its intent has expired. A repository that was restarted has none, and depositors begin with the first byte.

use std::sync::Arc;

use archive_decisions::store::{Agreement, Claim};
use archive_model::UploadId;
use archive_proof::{Points, ResumeStates};
use parking_lot::{Mutex, MutexGuard};

use super::hash::{Hash, HashState};
use crate::depositor::DepositStream;

/// The most states that are kept of all streams: some 35 MB.
const MOST: usize = 2048;

/// An announcement, and how far its stream came.
type ResumePoint = (Claim, Points<HashState>);

/// The points at which streams broke off, by their upload. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ResumePoints(Arc<Mutex<ResumeStates<ResumePoint>>>);

impl Default for ResumePoints {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(ResumeStates::new(MOST))))
    }
}

impl ResumePoints {
    /// Takes the states from which this depositor's stream can be resumed. There are none unless the depositor
    /// announces, by a strong digest, the same content as the depositor that left them.
    pub(super) fn take_points(
        &self,
        upload: &UploadId,
        source: &DepositStream,
        md5: bool,
    ) -> Points<HashState> {
        let left = self.states().take_states(upload);
        let is_same = |claim: &Claim| source.claim.compare_claims(claim) == Agreement::Same;
        let has_md5 = |points: &Points<HashState>| points.iter().all(|(_, state)| state.has_md5());
        match left {
            Some((claim, points))
                if source.can_resume && is_same(&claim) && (!md5 || has_md5(&points)) =>
            {
                points
            }
            _ => Points::default(),
        }
    }

    /// Keeps the states of a stream that has ended.
    pub(super) fn put_points(&self, upload: &UploadId, source: &DepositStream, hash: Hash) {
        let points = hash.into_points();
        if !points.is_empty() {
            let left = (source.claim.clone(), points);
            self.states().put_states(upload.clone(), left.1.len(), left);
        }
    }

    /// Forgets the states that the streams of an upload left.
    pub fn forget_points(&self, upload: &UploadId) {
        drop(self.states().take_states(upload));
    }

    /// Keeps the states of the first bytes of a stream, as if it had broken off.
    #[cfg(test)]
    pub(crate) fn put_some(&self, upload: &UploadId) {
        let (replies, _) = tokio::sync::mpsc::channel(1);
        let claim = Claim {
            size: 1 << 40,
            root: None,
            digests: archive_model::Digests::default(),
        };
        let source = DepositStream::new(tokio_stream::empty(), replies, claim);
        let mut hash = Hash::new(false);
        hash.update(&vec![0; 1 << 20]).unwrap();
        self.put_points(upload, &source, hash);
    }

    /// Takes what the streams of an upload left, and returns whether there was anything.
    #[cfg(test)]
    pub(crate) fn had_points(&self, upload: &UploadId) -> bool {
        self.states().take_states(upload).is_some()
    }

    fn states(&self) -> MutexGuard<'_, ResumeStates<ResumePoint>> {
        self.0.lock()
    }
}
