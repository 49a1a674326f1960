//! Looking at one name in one replica, and filing what was seen.
//!
//! Owns that a look is of one moment: what is recorded is read before and after the replica is asked, and again once it is
//! filed. So a copy that is brought meanwhile is never filed as missing for longer than one more look.

use archive_decisions::check::{AdminEntry, Expected};
use archive_decisions::store::{Event, FileRecord};
use archive_ledger::anomalies::{AnomalyRow, Look, LookQuality, LookResult, is_damage};
use archive_ledger::standing::Now;
use archive_model::{AnomalyKind, CopyPlace, FileCopy, FileName, ReplicaId};
use archive_replicas::Located;
use archive_rpc::CallError;

use super::one_name::{compare, damage, expected, silent};
use super::{Errand, Preserver};

/// So often a name is looked at when what is recorded of it changes meanwhile.
const LOOKS: usize = 3;

/// One file in one replica, as it was just now.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// What is wrong with it.
    pub(crate) found: Vec<AnomalyKind>,
    pub(crate) quality: LookQuality,
    /// Where it is, if the admin data says otherwise.
    pub(crate) moved: Option<CopyPlace>,
    pub(crate) located: Located,
    /// Where it is, or should be.
    pub(crate) place: Option<CopyPlace>,
    pub(crate) size: u64,
    /// What the replica should have, by which this was judged.
    entry: Option<AdminEntry>,
}

impl Seen {
    /// The copies of the admitted content of which the replica says that they are damaged.
    fn damaged(&self) -> impl Iterator<Item = &FileCopy> {
        let root = match self.entry.as_ref().map(|entry| &entry.expected) {
            Some(Expected::Present { root, .. } | Expected::Incomplete { root, .. }) => Some(*root),
            Some(Expected::InFlight { .. } | Expected::Withdrawn) | None => None,
        };
        let copies = self.located.copies.iter();
        copies.filter(move |copy| root.is_some() && copy.root == root && copy.is_readable())
    }
}

impl Preserver {
    /// Looks where a file is in a replica, now. What comes or goes meanwhile is looked at again.
    async fn look(&self, replica: &ReplicaId, name: &FileName) -> Result<Seen, CallError> {
        let mut row = self.record(name).await?;
        for _ in 0..LOOKS {
            let before = entry(row.as_ref(), replica);
            let located = self.locate(replica, name).await;
            row = self.record(name).await?;
            if before == entry(row.as_ref(), replica) {
                return Ok(self.judge(replica, row.as_ref(), located));
            }
        }
        let located = silent("what is recorded of it changes all the time");
        Ok(self.judge(replica, row.as_ref(), located))
    }

    async fn locate(&self, replica: &ReplicaId, name: &FileName) -> Located {
        let locating = self.replicas.locate_on_disk(replica, name);
        let located = self.clock.timeout(self.stall, locating).await;
        match located {
            Ok(Ok(located)) => located,
            Ok(Err(error)) => silent(&error.reason),
            Err(late) => silent(&late.to_string()),
        }
    }

    /// What is wrong with a file that is recorded so, and was found so.
    fn judge(&self, replica: &ReplicaId, row: Option<&FileRecord>, located: Located) -> Seen {
        let entry = self::entry(row, replica);
        if entry.is_none() && row.is_some() {
            // On its way for the first time: nothing can be said of it.
            return Seen {
                found: Vec::new(),
                quality: LookQuality::Nothing,
                moved: None,
                located,
                place: None,
                size: 0,
                entry,
            };
        }
        let (mut found, moved) = compare(entry.clone(), &located);
        excuse_moving_copy(&self.standing.now(), replica, &located.copies, &mut found);
        let (size, place, root) = match entry.clone().map(|entry| entry.expected) {
            Some(Expected::Present { root, size, place }) => (size, place, Some(root)),
            Some(Expected::Incomplete { root, size }) => (size, None, Some(root)),
            Some(Expected::InFlight { root }) => (0, None, root),
            Some(Expected::Withdrawn) | None => (0, None, None),
        };
        // What is unexpected is said of the copy that is so.
        let readable = located.copies.iter().find(|copy| copy.is_readable());
        let first = located
            .copies
            .iter()
            .find(|copy| copy.is_unexpected())
            .or(readable);
        let is_good = |copy: &&FileCopy| copy.is_readable() && copy.root == root && root.is_some();
        let quality = match &located.silent {
            // On its way: what it lacked before it may lack still.
            _ if found.contains(&AnomalyKind::Transient) => LookQuality::Nothing,
            None => LookQuality::Listing,
            Some(_) if located.copies.iter().any(|copy| is_good(&copy)) => LookQuality::Glimpse,
            Some(_) => LookQuality::Nothing,
        };
        let place = first.map(|copy| copy.place.clone()).or(place);
        Seen {
            found,
            quality,
            moved,
            located,
            place,
            size,
            entry,
        }
    }

    /// Looks, files what is found, tells the coordinator of a copy that is elsewhere. What comes or goes before it is
    /// filed is looked at again: else a copy that was just brought stays filed as missing. What changes all the time is
    /// not filed.
    pub(crate) async fn look_and_file(
        &self,
        replica: &ReplicaId,
        name: &FileName,
        errand: &Errand,
    ) -> Result<(Seen, LookResult), CallError> {
        let mut looks = 1;
        loop {
            let (seen, found) = self.look_and_file_once(replica, name, errand).await?;
            match found {
                Some(found) => {
                    let found = self.with_losses(name, found, errand).await?;
                    return Ok((seen, found));
                }
                None if looks >= LOOKS => return Ok((seen, LookResult::default())),
                None => looks += 1,
            }
        }
    }

    /// `None`: what is recorded has changed meanwhile.
    async fn look_and_file_once(
        &self,
        replica: &ReplicaId,
        name: &FileName,
        errand: &Errand,
    ) -> Result<(Seen, Option<LookResult>), CallError> {
        let mut seen = self.look(replica, name).await?;
        self.dispute(name, &mut seen).await?;
        if let Some(CopyPlace { node, volume }) = seen.moved.clone() {
            let replica = replica.clone();
            let event = Event::Moved {
                replica,
                node,
                volume,
            };
            self.mail.happened(name.clone(), event).await;
        }
        let mut look = Look {
            found: seen.found.clone(),
            quality: seen.quality,
            by: errand.finder,
            is_second: errand.is_second,
            size: seen.size,
            place: seen
                .place
                .clone()
                .map(|CopyPlace { node, volume }| (node, volume)),
        };
        // What is on its way is nothing to file; damage is filed of each copy by itself.
        look.found
            .retain(|kind| *kind != AnomalyKind::Transient && !is_damage(kind));
        let (before, of) = (seen.entry.clone(), replica.clone());
        let is_so = move |record: Option<&FileRecord>, _: &[AnomalyRow]| {
            is_same(entry(record, &of).as_ref(), before.as_ref())
        };
        let filing = self.file_while((replica, name), look, errand, is_so);
        let Some(mut found) = filing.await? else {
            return Ok((seen, None));
        };
        for copy in seen.damaged() {
            let look = Look {
                found: damage(copy, seen.size),
                quality: LookQuality::Nothing,
                by: errand.finder,
                // What a catalog remembers is no second reading.
                is_second: false,
                size: seen.size,
                place: Some((copy.place.node.clone(), copy.place.volume.clone())),
            };
            let more = self.file(replica, name, look, errand).await?;
            found.open.extend(more.open);
            found.new += more.new;
        }
        self.close_absent(replica, name, &seen, errand).await?;
        Ok((seen, Some(found)))
    }

    /// Closes the damage of copies that are not there any more: drained, deleted by a person, put aside.
    async fn close_absent(
        &self,
        replica: &ReplicaId,
        name: &FileName,
        seen: &Seen,
        errand: &Errand,
    ) -> Result<(), CallError> {
        if seen.quality != LookQuality::Listing {
            return Ok(());
        }
        for filed in self.filed_damage(replica, name).await? {
            let mut copies = seen.located.copies.iter();
            if copies.any(|copy| filed.is_at(&copy.place.node, &copy.place.volume)) {
                continue;
            }
            let look = Look {
                found: Vec::new(),
                quality: LookQuality::Absent,
                by: errand.finder,
                is_second: false,
                size: seen.size,
                place: filed.node.zip(filed.volume),
            };
            self.file(replica, name, look, errand).await?;
        }
        Ok(())
    }

    /// All reachable copies agree on another root than the admitted one: that is for people.
    async fn dispute(&self, name: &FileName, seen: &mut Seen) -> Result<(), CallError> {
        let is_conflict = |kind: &AnomalyKind| matches!(kind, AnomalyKind::Conflicting(_));
        if !seen.found.iter().any(is_conflict) {
            return Ok(());
        }
        let admitted = self.record(name).await?.and_then(|record| record.content);
        let mut ballots = Vec::new();
        for spec in self.in_service() {
            let locating = self.replicas.locate(&spec.id, name);
            let Ok(Ok(located)) = self.clock.timeout(self.stall, locating).await else {
                continue;
            };
            let roots = located.copies.iter().filter(|copy| copy.is_readable());
            ballots.extend(roots.filter_map(|copy| {
                Some(archive_decisions::vote::Ballot {
                    replica: spec.id.clone(),
                    root: copy.root?,
                })
            }));
        }
        let evidence = archive_decisions::vote::Evidence {
            admin: admitted.map(|content| content.root),
            admissions: Vec::new(),
            ballots,
        };
        if let archive_decisions::vote::Verdict::Disputed { copies, .. } =
            archive_decisions::vote::decide(&evidence)
        {
            seen.found.retain(|kind| !is_conflict(kind));
            seen.found.push(AnomalyKind::Disputed(copies));
        }
        Ok(())
    }
}

/// Whether a replica should have the same of a file as before; where it is may have been told meanwhile.
fn is_same(now: Option<&AdminEntry>, before: Option<&AdminEntry>) -> bool {
    let expected = |entry: Option<&AdminEntry>| {
        entry.map(|entry| match &entry.expected {
            Expected::Present { root, size, .. } => Expected::Present {
                root: *root,
                size: *size,
                place: None,
            },
            other @ (Expected::Incomplete { .. }
            | Expected::InFlight { .. }
            | Expected::Withdrawn) => other.clone(),
        })
    };
    expected(now) == expected(before)
}

/// What a replica should have of a file, as its row says.
fn entry(row: Option<&FileRecord>, replica: &ReplicaId) -> Option<AdminEntry> {
    row.and_then(|record| expected(record, replica))
}

/// Takes the second copy of a file that moves within a replica away from what was found: it is no anomaly.
fn excuse_moving_copy(
    now: &Now,
    replica: &ReplicaId,
    copies: &[FileCopy],
    found: &mut Vec<AnomalyKind>,
) {
    let stays = |copy: &&FileCopy| {
        let CopyPlace { node, volume } = &copy.place;
        copy.is_readable() && !now.leaves(replica, node, volume)
    };
    if copies.iter().filter(stays).count() <= 1 && !now.draining.is_empty() {
        found.retain(|kind| !matches!(kind, AnomalyKind::Duplicate(_)));
    }
}
