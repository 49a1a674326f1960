//! The offset at which the replicas of a transfer go on: the last one up to which all of them have what was hashed.
//!
//! A node is believed only where it names one of the points and the root of the bytes before it. Not promised:
//! that all replicas come; one that comes too late, or not at all, is left out, and gets the file later by a copy.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use archive_daemon::Clock;
use archive_model::{NodeId, Root};
use archive_proof::Points;
use archive_rpc::{CallError, Kind};
use tokio::sync::oneshot;

use super::hash::State;

/// The replicas of a transfer, before it begins.
pub(super) struct Meeting {
    points: Points<State>,
    roots: Arc<BTreeMap<u64, Root>>,
    seats: Vec<(oneshot::Receiver<u64>, oneshot::Sender<u64>)>,
}

/// The offset at which a transfer begins, and the states of hashing up to it.
pub(super) struct Begin {
    pub(super) offset: u64,
    pub(super) points: Points<State>,
}

/// The place of one replica in a meeting.
#[derive(Debug)]
pub(super) struct Seat {
    roots: Arc<BTreeMap<u64, Root>>,
    says: oneshot::Sender<u64>,
    hears: oneshot::Receiver<u64>,
}

impl Meeting {
    pub(super) fn of(points: Points<State>) -> Self {
        let roots = points.iter().map(|(offset, state)| (offset, state.root()));
        Self {
            roots: Arc::new(roots.collect()),
            points,
            seats: Vec::new(),
        }
    }

    /// Returns the largest offset that a replica can have reached.
    pub(super) fn furthest(&self) -> u64 {
        self.roots.keys().next_back().copied().unwrap_or(0)
    }

    /// Adds a place for one more replica. Returns `None` if there is nothing to agree on.
    pub(super) fn seat(&mut self) -> Option<Seat> {
        if self.roots.is_empty() {
            return None;
        }
        let (says, said) = oneshot::channel();
        let (tells, hears) = oneshot::channel();
        self.seats.push((said, tells));
        Some(Seat {
            roots: Arc::clone(&self.roots),
            says,
            hears,
        })
    }

    /// Receives the offset of every replica that has not ended, and tells them the smallest, at which all go on. A replica
    /// that is silent for longer than `limit` is left out.
    pub(super) async fn agree(self, clock: &Clock, limit: Duration) -> Begin {
        let until = clock.instant() + limit;
        let mut heard = Vec::new();
        for (said, tells) in self.seats {
            let rest = until.saturating_duration_since(clock.instant());
            if let Ok(Ok(offset)) = clock.timeout(rest, said).await {
                heard.push((offset, tells));
            }
        }
        let offset = heard.iter().map(|(offset, _)| *offset).min().unwrap_or(0);
        for (_, tells) in heard {
            // A replica that has ended meanwhile says why.
            tells.send(offset).unwrap_or_default();
        }
        Begin {
            offset,
            points: self.points,
        }
    }
}

impl Seat {
    /// Returns the offsets at which the node may offer to go on.
    pub(super) fn points(&self) -> Vec<u64> {
        self.roots.keys().copied().collect()
    }

    /// Tells the meeting how much the node has, and returns the offset at which all go on. A node whose `root` is wrong
    /// counts as one that has nothing.
    pub(super) async fn agree(
        self,
        node: &NodeId,
        offset: u64,
        root: Root,
    ) -> Result<u64, CallError> {
        let is_true = offset == 0 || self.roots.get(&offset) == Some(&root);
        if !is_true {
            tracing::warn!(%node, offset, "what a node has of an upload is not what was sent to it");
        }
        let late = || Kind::TimedOut.error("the node was not ready when the others began");
        let said = if is_true { offset } else { 0 };
        self.says.send(said).map_err(|_gone| late())?;
        self.hears.await.map_err(|_gone| late())
    }
}

#[cfg(test)]
mod tests {
    use archive_proof::points::STRIDE;

    use super::super::hash::Hash;
    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    fn points() -> Points<State> {
        let mut hash = Hash::new(false);
        hash.update(&vec![7; 3 * 1024 * 1024 + 1]).unwrap();
        hash.into_points()
    }

    fn root(points: &Points<State>, offset: u64) -> Root {
        let found = points.iter().find(|(at, _)| *at == offset);
        found.unwrap().1.root()
    }

    /// Returns the offset at which all go on if the replicas say `says`, and the offset that each hears.
    async fn agreed(says: &[Option<(u64, Root)>]) -> (u64, Vec<Option<u64>>) {
        let manual = archive_daemon::clock::ManualClock::new(jiff::Timestamp::UNIX_EPOCH);
        let clock = manual.clock();
        let mut meeting = Meeting::of(points());
        let node = NodeId::new("n").unwrap();
        let seats: Vec<Seat> = says.iter().map(|_| meeting.seat().unwrap()).collect();
        let hearing = seats.into_iter().zip(says).map(|(seat, said)| {
            let node = &node;
            async move {
                match said {
                    None => {
                        drop(seat);
                        None
                    }
                    Some((offset, root)) => seat.agree(node, *offset, *root).await.ok(),
                }
            }
        });
        let hearing = futures_util::future::join_all(hearing);
        let (begin, heard) = tokio::join!(meeting.agree(&clock, LIMIT), hearing);
        (begin.offset, heard)
    }

    /// Fails if a transfer resumes beyond what one of its replicas has, or waits for a replica that has ended.
    #[tokio::test]
    async fn replicas_go_on_where_the_last_one_stands() {
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
    async fn liars_make_all_begin_anew_and_no_more() {
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
        let mut meeting = Meeting::of(points);
        let (first, late) = (meeting.seat().unwrap(), meeting.seat().unwrap());
        let node = NodeId::new("n").unwrap();
        let passing = async {
            manual.sleepers(1).await;
            manual.advance(LIMIT);
        };
        let (begin, heard, ()) = tokio::join!(
            meeting.agree(&clock, LIMIT),
            first.agree(&node, STRIDE, root),
            passing
        );
        assert_eq!((begin.offset, heard.unwrap()), (STRIDE, STRIDE));
        let error = late.agree(&node, STRIDE, root).await.unwrap_err();
        assert_eq!(error.kind, Kind::TimedOut);
    }

    /// Fails if the replicas of a new upload, which has nothing to resume, wait for each other.
    #[tokio::test]
    async fn without_anything_hashed_nobody_waits() {
        let mut meeting = Meeting::of(Points::default());
        assert!(meeting.seat().is_none());
        let manual = archive_daemon::clock::ManualClock::new(jiff::Timestamp::UNIX_EPOCH);
        let clock = manual.clock();
        let begin = tokio::select! {
            biased;
            begin = meeting.agree(&clock, LIMIT) => begin,
            () = std::future::ready(()) => panic!("the meeting waits"),
        };
        assert_eq!(begin.offset, 0);
    }
}
