//! A file, or parts of it, out of whichever replicas have each part intact: one reader for all who want proven bytes.
//!
//! Owns the order in which replicas are asked and what their refusals mean. A part that one replica has damaged, cannot
//! read or does not send comes from another, if need be group by group; what nobody gives is a [`RefusedGroup`], which
//! says whether every copy was asked and is bad there, or whether somebody could not be asked. Its caller draws it:
//! nothing runs while nobody asks for more, and no more than one segment is held.
//!
//! Not promised: that a donor is intact elsewhere. Only what was asked for was proven.

mod donors;
mod parts;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::time::Duration;

use archive_model::groups::GROUP_SIZE;
use archive_model::{FileContent, FileCopy, Groups, NodeId, ReplicaId};
use archive_proof::decode_ranges;
use archive_replicas::{ReadSegments, Segment};
use archive_rpc::{CallError, CallErrorKind};

use crate::calls::ReplicaCalls;

pub use self::donors::DonorLoad;
use self::donors::{Candidate, CountedRead, Refusal};
pub use self::parts::{AssembledPart, Donor, Proven, RefusedGroup, WantedFile};

/// The longest segment that is believed, in bytes.
const LONGEST_SEGMENT: u64 = 16 << 20;

/// The time that a donor may keep a reader waiting before another one is asked.
const HEDGE: Duration = Duration::from_secs(1);

/// The means to read files out of the replicas.
#[derive(Clone, Debug)]
pub struct Assembler {
    /// The calls to the replicas where bytes come from.
    pub calls: ReplicaCalls,
    /// The load of each replica with giving.
    pub load: DonorLoad,
}

/// A reading under way.
#[derive(Debug)]
pub struct Assembly {
    of: Assembler,
    wanted: WantedFile,
    candidates: Vec<Candidate>,
    /// The indexes of the candidates, in the order in which they are asked.
    order: Vec<usize>,
    left: VecDeque<Range<u64>>,
    open: Option<Open>,
    /// Whether one group is asked for at a time: no donor gave the whole range, and each may be damaged in other
    /// groups.
    is_narrow: bool,
    with_bytes: bool,
    sent: BTreeMap<ReplicaId, u64>,
}

#[derive(Debug)]
struct Open {
    index: usize,
    until: u64,
    segments: ReadSegments,
    _counted: CountedRead,
}

/// The reason why a donor gave nothing.
enum Failure {
    /// The donor takes long, and another one can be asked.
    Slow,
    Refused(CallError),
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        Self::Refused(error)
    }
}

impl Assembler {
    /// Sorts the donors into the order in which they are to be asked: those that are not silent first, then those that
    /// kept no reader waiting lately, then those with the fewest reads under way.
    pub fn by_load(&self, donors: Vec<Donor>) -> Vec<Donor> {
        let is_silent = |donor: &Donor| {
            let node = donor.node.as_ref();
            node.is_some_and(|node| self.calls.replicas.is_silent(&donor.replica, node))
        };
        self.load
            .order_donors(donors, is_silent, self.calls.clock.instant())
    }

    /// Reads the groups that `ranges` touch, ascending, from `donors`, the first of them preferred.
    pub fn read_range(
        &self,
        wanted: WantedFile,
        donors: Vec<Donor>,
        ranges: impl IntoIterator<Item = Range<u64>>,
    ) -> Assembly {
        let size = wanted.size;
        let groups = Groups::groups_touching(ranges);
        let left = groups.byte_ranges(size).filter(|range| !range.is_empty());
        Assembly {
            of: self.clone(),
            left: left.collect(),
            order: (0..donors.len()).collect(),
            candidates: donors.into_iter().map(Candidate::new).collect(),
            wanted,
            open: None,
            is_narrow: false,
            with_bytes: false,
            sent: BTreeMap::new(),
        }
    }
}

impl Assembly {
    /// Makes the reading also return the bytes without their proof.
    #[must_use]
    pub const fn with_bytes(mut self) -> Self {
        self.with_bytes = true;
        self
    }

    /// Returns the number of bytes that each replica has sent and that were used, proofs included.
    pub const fn sent(&self) -> &BTreeMap<ReplicaId, u64> {
        &self.sent
    }

    /// Returns the replicas that reported damage, with their nodes as far as they are known: these copies are to be
    /// looked at.
    pub fn damaged_copies(&self) -> Vec<(ReplicaId, Option<NodeId>)> {
        self.candidates
            .iter()
            .filter(|candidate| candidate.is_damaged)
            .map(|candidate| {
                (
                    candidate.donor.replica.clone(),
                    candidate.donor.node.clone(),
                )
            })
            .collect()
    }

    /// Releases the donor that is being read: the caller that wants the bytes does not take them now. The rest is asked
    /// for anew.
    pub fn pause_reading(&mut self) {
        self.open = None;
    }

    /// Returns the next part, or `None` once all that was asked for has been returned, proven or refused.
    pub async fn next(&mut self) -> Option<AssembledPart> {
        loop {
            let range = self.left.front()?.clone();
            if let Some(mut open) = self.open.take() {
                match self.receive(&mut open, range.start).await {
                    Ok(proven) => {
                        self.advance(proven.offset + proven.length);
                        let used = self.candidate(open.index).donor.replica.clone();
                        *self.sent.entry(used).or_default() += proven.encoded.len() as u64;
                        if proven.offset + proven.length < open.until {
                            self.open = Some(open);
                        }
                        return Some(AssembledPart::Proven(proven));
                    }
                    Err(failure) => self.failed(open.index, open.until, failure),
                }
            } else if let Some((index, until)) = self.choose(&range) {
                match self.ask(index, range.start..until).await {
                    Ok(open) => self.open = Some(open),
                    Err(failure) => self.failed(index, until, failure),
                }
            } else if !self.is_narrow {
                self.narrow(range.start);
            } else {
                return Some(AssembledPart::Refused(self.refused_group(&range)));
            }
        }
    }

    /// Chooses the candidate to ask for the bytes from the start of `range` on, and the offset up to which to ask it.
    /// Returns `None` if no candidate may be asked.
    fn choose(&self, range: &Range<u64>) -> Option<(usize, u64)> {
        let group = range.start / GROUP_SIZE;
        let one = (group + 1).saturating_mul(GROUP_SIZE).min(range.end);
        let askable = |index: &&usize| self.candidate(**index).is_askable();
        let is_good = |index: &&usize| !self.candidate(**index).donor.bad.contains_group(group);
        let is_quick = |index: &&usize| !self.candidate(**index).is_slow;
        let mut good = self.order.iter().filter(askable).filter(is_good);
        let good = good.clone().find(is_quick).or_else(|| good.next());
        let index = good.or_else(|| self.order.iter().find(askable)).copied()?;
        if self.is_narrow || good.is_none() {
            return Some((index, one));
        }
        // Only up to the next group that is known to be bad there.
        let bad = self.candidate(index).donor.bad.ranges();
        let next_bad = bad.map(|bad| bad.start).find(|start| *start > group);
        let until = next_bad.map_or(range.end, |start| start.saturating_mul(GROUP_SIZE));
        Some((index, until.min(range.end)))
    }

    /// Returns the time that a donor may take: little, where another one can give the same bytes.
    fn patience(&self, index: usize, offset: u64) -> Duration {
        let group = offset / GROUP_SIZE;
        let is_other = |other: &&usize| {
            let candidate = self.candidate(**other);
            let is_quick = candidate.is_askable() && !candidate.is_slow;
            **other != index && is_quick && !candidate.donor.bad.contains_group(group)
        };
        let is_hedged = !self.candidate(index).is_slow && self.order.iter().any(|it| is_other(&it));
        if is_hedged {
            HEDGE.min(self.of.calls.stall)
        } else {
            self.of.calls.stall
        }
    }

    /// Awaits `doing` for at most `patience`. Fails with [`Failure::Slow`] if that is less than a part may be silent.
    async fn within<T>(
        &self,
        patience: Duration,
        doing: impl Future<Output = Result<T, CallError>>,
    ) -> Result<T, Failure> {
        let calls = &self.of.calls;
        let is_hurried = patience < calls.stall;
        calls
            .within_or(patience, doing, |late| {
                if is_hurried {
                    Failure::Slow
                } else {
                    CallErrorKind::TimedOut.to_error(late.to_string()).into()
                }
            })
            .await
    }

    /// Opens a read of `range` from a donor. If its node is not known, the monitor of its replica is asked for it
    /// first.
    async fn ask(&mut self, index: usize, range: Range<u64>) -> Result<Open, Failure> {
        let patience = self.patience(index, range.start);
        let name = self.wanted.name.clone();
        let donor = &self.candidate(index).donor;
        let replica = donor.replica.clone();
        let node = if let Some(node) = &donor.node {
            node.clone()
        } else {
            let node = self.within(patience, self.locate(&replica)).await?;
            if let Some(candidate) = self.candidates.get_mut(index) {
                candidate.is_located = true;
                candidate.donor.node = Some(node.clone());
            }
            node
        };
        let reading = self.of.calls.replicas.read_copy(
            &replica,
            &node,
            &name,
            &self.wanted.root,
            range.clone(),
        );
        Ok(Open {
            index,
            until: range.end,
            segments: self.within(patience, reading).await?,
            _counted: self.of.load.begin_read(&replica),
        })
    }

    async fn locate(&self, replica: &ReplicaId) -> Result<NodeId, CallError> {
        let located = self
            .of
            .calls
            .replicas
            .locate_copies(replica, &self.wanted.name)
            .await?;
        let right = |copy: &&FileCopy| copy.is_readable() && copy.root == Some(self.wanted.root);
        let copies = || located.copies.iter().filter(right);
        let best = copies()
            .find(|copy| copy.is_present())
            .or_else(|| copies().next());
        match (best, &located.silent) {
            (Some(copy), _) => Ok(copy.place.node.clone()),
            (None, Some(silent)) => Err(CallErrorKind::Unavailable.to_error(silent.clone())),
            (None, None) => Err(CallErrorKind::NotFound.to_error("it has no copy")),
        }
    }

    /// Receives the next segment of a donor's stream, and verifies it against the root.
    async fn receive(&self, open: &mut Open, offset: u64) -> Result<Proven, Failure> {
        let patience = self.patience(open.index, offset);
        let message = self.within(patience, open.segments.next()).await?;
        let ended = || CallErrorKind::Unavailable.to_error("the node ended before the range did");
        let Segment {
            offset: begin,
            length,
            encoded,
        } = message.ok_or_else(ended)?;
        let end = begin.saturating_add(length);
        if begin != offset || length == 0 || end > open.until || length > LONGEST_SEGMENT {
            let said = "the node sent another range than asked for";
            return Err(CallErrorKind::Internal.to_error(said).into());
        }
        let mut bytes = Vec::new();
        let content = FileContent {
            root: self.wanted.root,
            size: self.wanted.size,
        };
        let range = begin..end;
        let ranges = std::slice::from_ref(&range);
        let proven = decode_ranges(&encoded[..], content, ranges, |_, part| {
            if self.with_bytes {
                bytes.extend_from_slice(part);
            }
            Ok(())
        });
        // An honest node checks what it sends: damage of its disk is reported, not sent.
        proven.map_err(|error| {
            CallErrorKind::Internal.to_error(format!("what the node sent: {error}"))
        })?;
        Ok(Proven {
            offset,
            length,
            encoded,
            bytes: bytes.into(),
        })
    }

    /// Notes that a donor refused a read or took long, so that another one is asked.
    fn failed(&mut self, index: usize, until: u64, failure: Failure) {
        match failure {
            Failure::Refused(error) => self.note_refusal(index, until, &error),
            Failure::Slow => {
                let now = self.of.calls.clock.instant();
                if let Some(candidate) = self.candidates.get_mut(index) {
                    candidate.is_slow = true;
                    let file = &self.wanted.name;
                    let replica = &candidate.donor.replica;
                    tracing::info!(%file, %replica, "a read does not wait, and continues from another replica");
                    self.of.load.note_slow(replica, now);
                }
            }
        }
    }

    /// Notes why a donor refused a read. It is asked last from now on, unless its node is to be looked up again.
    fn note_refusal(&mut self, index: usize, until: u64, error: &CallError) {
        let offset = self.left.front().map_or(0, |range| range.start);
        let Some(candidate) = self.candidates.get_mut(index) else {
            return;
        };
        let donor = &mut candidate.donor;
        let file = &self.wanted.name;
        let replica = &donor.replica;
        tracing::warn!(%file, %replica, node = donor.node.as_ref().map(tracing::field::display), offset, %error, "a read continues from another replica");
        let said = format!("{replica}: {}", error.reason);
        let refusal = match error.kind {
            CallErrorKind::NotFound if donor.node.is_some() && !candidate.is_located => {
                // The file is not on that node any more; perhaps it is elsewhere in the replica.
                donor.node = None;
                return;
            }
            CallErrorKind::NotFound => Refusal::Bad(said),
            CallErrorKind::Damaged => {
                candidate.is_damaged = true;
                if until <= offset + GROUP_SIZE {
                    donor.bad.insert_one(offset / GROUP_SIZE);
                }
                Refusal::Bad(said)
            }
            CallErrorKind::TimedOut => {
                candidate.has_stalled = true;
                let now = self.of.calls.clock.instant();
                self.of.load.note_slow(&donor.replica, now);
                Refusal::Silent(said)
            }
            CallErrorKind::Internal => Refusal::Lies(said),
            CallErrorKind::Invalid
            | CallErrorKind::Exists
            | CallErrorKind::Busy
            | CallErrorKind::Mismatch
            | CallErrorKind::NotEnoughReplicas
            | CallErrorKind::Refused
            | CallErrorKind::NoSpace
            | CallErrorKind::Unavailable
            | CallErrorKind::Storage => Refusal::Silent(said),
        };
        candidate.refusal = Some((refusal, until));
        // The donor that failed is asked last from now on.
        self.order.retain(|other| *other != index);
        self.order.push(index);
    }

    /// Goes on group by group, because no donor gave the whole range. Donors that refused more than the group at
    /// `offset` may be asked again, except those that were silent.
    fn narrow(&mut self, offset: u64) {
        self.is_narrow = true;
        for candidate in &mut self.candidates {
            let is_said = |(refusal, until): &(Refusal, u64)| {
                *until <= offset + GROUP_SIZE || matches!(refusal, Refusal::Silent(_))
            };
            candidate.refusal = candidate.refusal.take().filter(is_said);
        }
    }

    /// Goes on at `offset`: a donor that refused what lay before may have what follows.
    fn advance(&mut self, offset: u64) {
        self.is_narrow = false;
        for candidate in &mut self.candidates {
            candidate.refusal = candidate.refusal.take().filter(|_| candidate.has_stalled);
        }
        if let Some(range) = self.left.front_mut() {
            range.start = offset;
            if range.is_empty() {
                self.left.pop_front();
            }
        }
    }

    fn refused_group(&mut self, range: &Range<u64>) -> RefusedGroup {
        let end = (range.start - range.start % GROUP_SIZE + GROUP_SIZE).min(range.end);
        let mut unknown = Vec::new();
        let mut said = Vec::new();
        let mut is_silence = true;
        for candidate in &self.candidates {
            match &candidate.refusal {
                Some((Refusal::Bad(why), _)) => said.push(why.as_str()),
                Some((Refusal::Silent(why) | Refusal::Lies(why), _)) => {
                    is_silence &= matches!(candidate.refusal, Some((Refusal::Silent(_), _)));
                    unknown.push(candidate.donor.replica.clone());
                    said.push(why);
                }
                None => unknown.push(candidate.donor.replica.clone()),
            }
        }
        let said = said.join("; ");
        self.advance(end);
        RefusedGroup {
            range: range.start..end,
            is_silence: is_silence && !unknown.is_empty(),
            unknown,
            said,
        }
    }

    fn candidate(&self, index: usize) -> &Candidate {
        // Indexes come from `order`, which has those of the candidates and no others.
        #[expect(clippy::indexing_slicing, reason = "see above")]
        &self.candidates[index]
    }
}
