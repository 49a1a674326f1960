//! Calls to the replicas, each within a time limit.
//!
//! Owns the limits: no call to a replica is waited for without one. What may take as long as a file is large takes its
//! limit from [`limits`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use archive_daemon::Clock;
use archive_daemon::clock::TimedOut;
use archive_model::{CopySelector, FileName, ReplicaId};
use archive_replicas::{LocatedCopies, Replicas, VerifiedCopy, VerifyAnswer};
use archive_rpc::{CallError, CallErrorKind};

use crate::limits;

/// The pause before a node is asked again that was busy with the same file.
const BUSY: Duration = Duration::from_millis(200);

/// The replicas, with the time that each call to them may take; cheap to clone.
#[derive(Clone, Debug)]
pub struct ReplicaCalls {
    /// The calls without limits.
    pub replicas: Arc<Replicas>,
    /// The clock.
    pub clock: Clock,
    /// The time that a part may be silent.
    pub stall: Duration,
}

impl ReplicaCalls {
    /// Awaits a call for at most `limit`.
    ///
    /// # Errors
    /// The call's own error, or `TimedOut`.
    pub fn within_limit<T, E: Into<CallError>>(
        &self,
        limit: Duration,
        call: impl Future<Output = Result<T, E>>,
    ) -> impl Future<Output = Result<T, CallError>> {
        self.within_or(limit, call, |late| {
            CallErrorKind::TimedOut.to_error(late.to_string())
        })
    }

    /// Awaits a call for at most `limit`. Where it is late, `late` makes the error.
    ///
    /// # Errors
    /// The call's own error, or that of `late`.
    pub async fn within_or<T, E: Into<F>, F>(
        &self,
        limit: Duration,
        call: impl Future<Output = Result<T, E>>,
        late: impl FnOnce(TimedOut) -> F,
    ) -> Result<T, F> {
        match self.clock.run_with_timeout(limit, call).await {
            Ok(answer) => answer.map_err(Into::into),
            Err(elapsed) => Err(late(elapsed)),
        }
    }

    /// Awaits a call for as long as a part may be silent.
    ///
    /// # Errors
    /// The call's own error, or `TimedOut`.
    pub fn answered_call<T, E: Into<CallError>>(
        &self,
        call: impl Future<Output = Result<T, E>>,
    ) -> impl Future<Output = Result<T, CallError>> {
        self.within_limit(self.stall, call)
    }

    /// Awaits a call for as long as a node may take to read `size` bytes of a copy.
    ///
    /// # Errors
    /// The call's own error, or `TimedOut`.
    pub fn reading_call<T, E: Into<CallError>>(
        &self,
        size: u64,
        call: impl Future<Output = Result<T, E>>,
    ) -> impl Future<Output = Result<T, CallError>> {
        self.within_limit(limits::read_limit(size), call)
    }

    /// Waits until a node takes bytes, for as long as a part may be silent.
    ///
    /// # Errors
    /// The call's own error, or `TimedOut`.
    pub fn taken_call(
        &self,
        sending: impl Future<Output = Result<(), CallError>>,
    ) -> impl Future<Output = Result<(), CallError>> {
        self.within_or(self.stall, sending, |late| {
            CallErrorKind::TimedOut.to_error(format!("the node takes no bytes: {late}"))
        })
    }

    /// Returns the time until which a busy node is asked again: nodes are waited for as long as a part may be silent.
    pub fn busy_until(&self) -> Instant {
        self.clock.instant() + self.stall
    }

    /// Pauses after `error` where it says that the node works on the file, perhaps for an earlier call of which it has
    /// not seen the end; the caller then asks again.
    ///
    /// # Errors
    /// `error` itself if it is of another kind, or if `until`, which is that of [`Self::busy_until`], has passed.
    pub async fn while_busy(&self, until: Instant, error: CallError) -> Result<(), CallError> {
        if error.kind != CallErrorKind::Busy || self.clock.instant() >= until {
            return Err(error);
        }
        self.clock.sleep(BUSY).await;
        Ok(())
    }

    /// Asks where a file is in a replica, by its catalogs.
    ///
    /// # Errors
    /// The error of the monitor, or `TimedOut`.
    pub async fn locate_copies(
        &self,
        replica: &ReplicaId,
        name: &FileName,
    ) -> Result<LocatedCopies, CallError> {
        self.answered_call(self.replicas.locate_copies(replica, name))
            .await
    }

    /// Asks where a file is in a replica, by its disks.
    ///
    /// # Errors
    /// The error of the monitor, or `TimedOut`.
    pub async fn locate_on_disk(
        &self,
        replica: &ReplicaId,
        name: &FileName,
    ) -> Result<LocatedCopies, CallError> {
        let locating = self.replicas.locate_on_disk(replica, name);
        self.answered_call(locating).await
    }

    /// Has a copy read again, whole, past the page cache. The node may be silent for `limit` while it reads; `progress`
    /// receives the number of bytes that were read so far.
    ///
    /// # Errors
    /// The error of the node, `Busy` where somebody else reads or mends the copy, or `TimedOut`.
    pub async fn verify_copy(
        &self,
        copy: CopySelector<'_>,
        name: &FileName,
        limit: Duration,
        mut progress: impl FnMut(u64) + Send,
    ) -> Result<VerifiedCopy, CallError> {
        let opening = self.replicas.verify_copy(copy, name);
        let mut verifying = self.answered_call(opening).await?;
        loop {
            match self.within_limit(limit, verifying.next()).await? {
                VerifyAnswer::Progress(bytes) => progress(bytes),
                VerifyAnswer::Done(verified) => return Ok(*verified),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use archive_daemon::clock::ManualClock;
    use archive_model::{Cause, Mode, Root, VolumeKey};
    use jiff::Timestamp;

    use super::*;
    use crate::scripted::{ScriptedReplicas, id};

    const ASIDE: &str = "one: put aside from v-1";

    async fn put_aside(scripted: &ScriptedReplicas) -> Result<(), CallError> {
        let volume = VolumeKey {
            replica: id("one"),
            node: "one-1".parse().unwrap(),
            volume: "v-1".parse().unwrap(),
        };
        let cause = Cause {
            who: "operator/otto".to_owned(),
            why: "a drain".to_owned(),
            approval: None,
        };
        let name = FileName::new("a").unwrap();
        let root = Root::from_bytes([7; 32]);
        let replicas = &scripted.replicas;
        let put = replicas.put_aside(&volume, &name, &root, &cause);
        put.await.map(drop)
    }

    async fn scripted() -> (ScriptedReplicas, ManualClock) {
        let hand = ManualClock::new(Timestamp::UNIX_EPOCH);
        (ScriptedReplicas::start_at(hand.clock()).await, hand)
    }

    /// Fails if a busy node is not asked again, is asked without a pause or after the time for it, or another error is
    /// hidden.
    #[tokio::test]
    async fn busy_node_is_asked_again_until_stall() {
        let scripted = ScriptedReplicas::start().await;
        let hand = ManualClock::new(Timestamp::UNIX_EPOCH);
        let (transfers, _messages) = scripted.transfers();
        let calls = ReplicaCalls {
            clock: hand.clock(),
            ..transfers.calls
        };
        let busy = CallErrorKind::Busy.to_error("in use");
        let until = calls.busy_until();
        let mut pauses = 0;
        let error = loop {
            let passing = async {
                // The last call does not sleep.
                if calls.clock.instant() < until {
                    hand.advance_sleepers(1, BUSY).await;
                }
            };
            let (pause, ()) = tokio::join!(calls.while_busy(until, busy.clone()), passing);
            match pause {
                Ok(()) => pauses += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(error, busy);
        assert_eq!(BUSY * pauses, calls.stall);
        let refused = CallErrorKind::Refused.to_error("no");
        let until = calls.busy_until();
        assert_eq!(calls.while_busy(until, refused.clone()).await, Err(refused));
    }

    /// Fails if each order of a drain asks the monitor, or an old answer is used without limit.
    #[tokio::test]
    async fn orders_ask_monitor_once_in_two_seconds() {
        let (scripted, hand) = scripted().await;
        for _ in 0..50 {
            put_aside(&scripted).await.unwrap();
        }
        assert_eq!(scripted.script().states, 1);
        hand.advance(Duration::from_secs(3));
        for _ in 0..50 {
            put_aside(&scripted).await.unwrap();
        }
        let script = scripted.script();
        assert_eq!((script.states, script.acts.len()), (2, 100));
    }

    /// Fails if a node that has moved is not found at once, or another node answers for it where it was.
    #[tokio::test]
    async fn moved_node_is_found_and_stranger_refused() {
        let (scripted, hand) = scripted().await;
        let replica = id("one");
        let node = "one-1".parse().unwrap();
        let other = scripted.replicas.nodes_state(&id("two")).await.unwrap();
        let stranger = other[0].endpoint.clone();
        let nobody = "127.0.0.1:1".to_owned();
        for (before, kind) in [
            (stranger, CallErrorKind::Refused),
            (nobody, CallErrorKind::Unavailable),
        ] {
            hand.advance(Duration::from_secs(3));
            let begin = scripted.script().states;
            scripted.script().endpoints.insert("one".to_owned(), before);
            let order = scripted.replicas.set_mode(&replica, &node, Mode::ReadOnly);
            let refused = order.await.unwrap_err();
            assert_eq!(refused.kind, kind, "{refused}");
            drop(scripted.replicas.nodes_state(&replica).await.unwrap());
            scripted.script().endpoints.clear();
            put_aside(&scripted).await.unwrap();
            let mut script = scripted.script();
            assert_eq!(script.states - begin, 3);
            assert_eq!(std::mem::take(&mut script.acts), [ASIDE]);
        }
    }

    /// Fails if an order reaches a node that is silent, or one that is alive again has to wait.
    #[tokio::test]
    async fn silent_node_is_refused_until_alive() {
        let (scripted, _hand) = scripted().await;
        let silent = ("one".to_owned(), String::new());
        scripted.script().endpoints = BTreeMap::from([silent]);
        let refused = put_aside(&scripted).await.unwrap_err();
        assert_eq!(refused.kind, CallErrorKind::Unavailable);
        assert_eq!(refused.reason, "node one-1 of replica one is silent");
        scripted.script().endpoints.clear();
        put_aside(&scripted).await.unwrap();
        assert_eq!(scripted.script().acts, [ASIDE]);
    }

    /// Fails if the state of a node before an order is shown after it.
    #[tokio::test]
    async fn state_after_order_is_asked_for() {
        let (scripted, _hand) = scripted().await;
        let replica = id("one");
        let node = "one-1".parse().unwrap();
        for _ in 0..2 {
            drop(scripted.replicas.nodes_state(&replica).await.unwrap());
        }
        assert_eq!(scripted.script().states, 1);
        // The script knows no modes: nobody knows whether the node has obeyed.
        let order = scripted.replicas.set_mode(&replica, &node, Mode::ReadOnly);
        assert_eq!(order.await.unwrap_err().kind, CallErrorKind::Invalid);
        drop(scripted.replicas.nodes_state(&replica).await.unwrap());
        assert_eq!(scripted.script().states, 2);
    }
}
