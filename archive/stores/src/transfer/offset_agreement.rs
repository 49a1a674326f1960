//! The offset at which the replicas of a transfer resume: the last one up to which all of them have what was hashed.
//!
//! A node is believed only where it names one of the points and the root of the bytes before it. Not promised:
//! that all replicas come; one that comes too late, or not at all, is left out, and gets the file later by a copy.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use archive_daemon::Clock;
use archive_model::{NodeId, Root};
use archive_proof::Points;
use archive_rpc::{CallError, CallErrorKind};
use tokio::sync::oneshot;

use super::hash::HashState;

/// The agreement of the replicas of a transfer on the offset at which it begins.
pub(super) struct OffsetAgreement {
    points: Points<HashState>,
    roots: Arc<BTreeMap<u64, Root>>,
    bids: Vec<(oneshot::Receiver<u64>, oneshot::Sender<u64>)>,
}

/// The offset at which a transfer begins, and the states of hashing up to it.
pub(super) struct TransferStart {
    pub(super) offset: u64,
    pub(super) points: Points<HashState>,
}

/// The bid of one replica: the offset up to which its node has the bytes.
#[derive(Debug)]
pub(super) struct OffsetBid {
    roots: Arc<BTreeMap<u64, Root>>,
    offset: oneshot::Sender<u64>,
    agreed: oneshot::Receiver<u64>,
}

impl OffsetAgreement {
    pub(super) fn new(points: Points<HashState>) -> Self {
        let roots = points.iter().map(|(offset, state)| (offset, state.root()));
        Self {
            roots: Arc::new(roots.collect()),
            points,
            bids: Vec::new(),
        }
    }

    /// Returns the largest offset that a replica can have reached.
    pub(super) fn furthest_offset(&self) -> u64 {
        self.roots.keys().next_back().copied().unwrap_or(0)
    }

    /// Adds the bid of one more replica. Returns `None` if there is nothing to agree on.
    pub(super) fn add_bid(&mut self) -> Option<OffsetBid> {
        if self.roots.is_empty() {
            return None;
        }
        let (offset, offers) = oneshot::channel();
        let (answer, agreed) = oneshot::channel();
        self.bids.push((offers, answer));
        Some(OffsetBid {
            roots: Arc::clone(&self.roots),
            offset,
            agreed,
        })
    }

    /// Receives the offset of every replica that has not ended, and answers with the smallest, at which all resume. A
    /// replica that is silent for longer than `limit` is left out.
    pub(super) async fn agree_start(self, clock: &Clock, limit: Duration) -> TransferStart {
        let until = clock.instant() + limit;
        let mut offers = Vec::new();
        for (offer, answer) in self.bids {
            let rest = until.saturating_duration_since(clock.instant());
            if let Ok(Ok(offset)) = clock.run_with_timeout(rest, offer).await {
                offers.push((offset, answer));
            }
        }
        let offset = offers.iter().map(|(offset, _)| *offset).min().unwrap_or(0);
        for (_, answer) in offers {
            // A replica that has ended meanwhile says why.
            _ = answer.send(offset);
        }
        TransferStart {
            offset,
            points: self.points,
        }
    }
}

impl OffsetBid {
    /// Returns the offsets at which the node may offer to resume.
    pub(super) fn bid_points(&self) -> Vec<u64> {
        self.roots.keys().copied().collect()
    }

    /// Bids the offset that the node has reached, and returns the offset at which all resume. A node whose `root` is
    /// wrong counts as one that has nothing.
    pub(super) async fn agree_bid(
        self,
        node: &NodeId,
        offset: u64,
        root: Root,
    ) -> Result<u64, CallError> {
        let is_true = offset == 0 || self.roots.get(&offset) == Some(&root);
        if !is_true {
            tracing::warn!(%node, offset, "a node offers to resume an upload with other bytes than were sent to it");
        }
        let late =
            || CallErrorKind::TimedOut.to_error("the node was not ready when the others began");
        let offered = if is_true { offset } else { 0 };
        self.offset.send(offered).map_err(|_gone| late())?;
        self.agreed.await.map_err(|_gone| late())
    }
}

#[cfg(test)]
mod tests {
    use archive_proof::points::STRIDE;

    use super::super::hash::Hash;
    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    fn points() -> Points<HashState> {
        let mut hash = Hash::new(false);
        hash.update(&vec![7; 3 * 1024 * 1024 + 1]).unwrap();
        hash.into_points()
    }

    fn root(points: &Points<HashState>, offset: u64) -> Root {
        let found = points.iter().find(|(at, _)| *at == offset);
        found.unwrap().1.root()
    }

    /// Returns the offset at which all resume if the replicas say `says`, and the offset that each hears.
    async fn agreed(says: &[Option<(u64, Root)>]) -> (u64, Vec<Option<u64>>) {
        let manual = archive_daemon::clock::ManualClock::new(jiff::Timestamp::UNIX_EPOCH);
        let clock = manual.clock();
        let mut agreement = OffsetAgreement::new(points());
        let node = NodeId::new("n").unwrap();
        let bids: Vec<OffsetBid> = says.iter().map(|_| agreement.add_bid().unwrap()).collect();
        let hearing = bids.into_iter().zip(says).map(|(bid, said)| {
            let node = &node;
            async move {
                match said {
                    None => {
                        drop(bid);
                        None
                    }
                    Some((offset, root)) => bid.agree_bid(node, *offset, *root).await.ok(),
                }
            }
        });
        let hearing = futures_util::future::join_all(hearing);
        let (begin, heard) = tokio::join!(agreement.agree_start(&clock, LIMIT), hearing);
        (begin.offset, heard)
    }

    /// Fails if a transfer resumes beyond what one of its replicas has, or waits for a replica that has ended.
    #[tokio::test]
    async fn transfer_resumes_at_the_smallest_offset() {
        let points = points();
        let at = |strides| Some((strides * STRIDE, root(&points, strides * STRIDE)));
        let nothing = Some((0, Root::from_bytes([0; 32])));
        assert_eq!(
            agreed(&[at(3), at(2), at(3)]).await,
            (2 * STRIDE, vec![Some(2 * STRIDE); 3])
        );
        assert_eq!(agreed(&[at(3), nothing]).await, (0, vec![Some(0); 2]));
        assert_eq!(
            agreed(&[None, at(1)]).await,
            (STRIDE, vec![None, Some(STRIDE)]),
            "one that has ended is not waited for"
        );
        assert_eq!(agreed(&[None, None]).await, (0, vec![None, None]));
    }

    /// Fails if a node is believed that names an offset which is no point, or the wrong root of the bytes before it.
    #[tokio::test]
    async fn false_resume_offset_restarts_transfer() {
        let points = points();
        let honest = Some((3 * STRIDE, root(&points, 3 * STRIDE)));
        let wrong = Root::from_bytes([9; 32]);
        let early = root(&points, STRIDE);
        for lie in [
            (3 * STRIDE, wrong),
            (2 * STRIDE, early),
            (STRIDE + 1, early),
            (4 * STRIDE, early),
            (u64::MAX, wrong),
        ] {
            let (offset, heard) = agreed(&[honest, Some(lie)]).await;
            assert_eq!((offset, heard), (0, vec![Some(0); 2]), "{lie:?}");
        }
    }

    /// Fails if a transfer waits without end for a replica that is silent, or a late one joins at an offset where the
    /// others have passed.
    #[tokio::test]
    async fn late_replica_is_left_out() {
        let manual = archive_daemon::clock::ManualClock::new(jiff::Timestamp::UNIX_EPOCH);
        let clock = manual.clock();
        let points = points();
        let root = root(&points, STRIDE);
        let mut agreement = OffsetAgreement::new(points);
        let first = agreement.add_bid().unwrap();
        let late = agreement.add_bid().unwrap();
        let node = NodeId::new("n").unwrap();
        let passing = async {
            manual.wait_for_sleepers(1).await;
            manual.advance(LIMIT);
        };
        let (begin, heard, ()) = tokio::join!(
            agreement.agree_start(&clock, LIMIT),
            first.agree_bid(&node, STRIDE, root),
            passing
        );
        assert_eq!((begin.offset, heard.unwrap()), (STRIDE, STRIDE));
        let error = late.agree_bid(&node, STRIDE, root).await.unwrap_err();
        assert_eq!(error.kind, CallErrorKind::TimedOut);
    }

    /// Fails if the replicas of a new upload, which has nothing to resume, wait for each other.
    #[tokio::test]
    async fn new_upload_waits_for_no_other_replica() {
        let mut agreement = OffsetAgreement::new(Points::default());
        assert!(agreement.add_bid().is_none());
        let manual = archive_daemon::clock::ManualClock::new(jiff::Timestamp::UNIX_EPOCH);
        let clock = manual.clock();
        let begin = tokio::select! {
            biased;
            begin = agreement.agree_start(&clock, LIMIT) => begin,
            () = std::future::ready(()) => panic!("the agreement waits"),
        };
        assert_eq!(begin.offset, 0);
    }
}
