//! Looks at one name in one replica, and files the result.
//!
//! Owns that a look is of one moment: the record is read before and after the replica is asked, and again when the
//! result is filed. So a copy that is stored in the meantime is filed as missing until the next look at most.

use archive_decisions::check::{AdminEntry, ExpectedCopy};
use archive_decisions::store::{FileRecord, StoringEvent};
use archive_ledger::anomalies::{AnomalyRow, Look, LookQuality, LookResult, is_damage};
use archive_ledger::standing::StandingSnapshot;
use archive_model::{AnomalyKind, CopyPlace, FileCopy, FileName, ReplicaId};
use archive_replicas::LocatedCopies;
use archive_rpc::CallError;
use futures_util::future::join_all;

use super::one_name::{compare_copies, damage_kinds, expected_entry, silent_copies};
use super::{LookContext, Preserver};

/// The most looks at a name whose record changes in the meantime.
const LOOKS: usize = 3;

/// The state of a file in a replica at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Observation {
    /// The anomalies that the look found.
    pub(crate) found: Vec<AnomalyKind>,
    pub(crate) quality: LookQuality,
    /// The place of the copy, if the admin data have another one.
    pub(crate) moved: Option<CopyPlace>,
    pub(crate) located: LocatedCopies,
    /// The place where the copy is, or should be.
    pub(crate) place: Option<CopyPlace>,
    pub(crate) size: u64,
    /// The expected entry, by which this was judged.
    entry: Option<AdminEntry>,
}

impl Observation {
    /// Returns the copies of the admitted content that the replica reports as damaged.
    fn damaged(&self) -> impl Iterator<Item = &FileCopy> {
        let root = match self.entry.as_ref().map(|entry| &entry.expected) {
            Some(ExpectedCopy::Present { root, .. } | ExpectedCopy::Incomplete { root, .. }) => {
                Some(*root)
            }
            Some(ExpectedCopy::InFlight { .. } | ExpectedCopy::Withdrawn) | None => None,
        };
        let copies = self.located.copies.iter();
        copies.filter(move |copy| root.is_some() && copy.root == root && copy.is_readable())
    }
}

impl Preserver {
    /// Looks where a file is in a replica now. Looks again if its record changes in the meantime.
    async fn look(&self, replica: &ReplicaId, name: &FileName) -> Result<Observation, CallError> {
        let mut row = self.file_record(name).await?;
        for _ in 0..LOOKS {
            let before = entry(row.as_ref(), replica);
            let located = self.archive.calls.locate_on_disk(replica, name).await;
            let located = located.unwrap_or_else(|error| silent_copies(&error.reason));
            row = self.file_record(name).await?;
            if before == entry(row.as_ref(), replica) {
                return Ok(self.judge(replica, row.as_ref(), located));
            }
        }
        let located = silent_copies("its record keeps changing");
        Ok(self.judge(replica, row.as_ref(), located))
    }

    /// Judges a file by its record and by the copies that were found.
    fn judge(
        &self,
        replica: &ReplicaId,
        row: Option<&FileRecord>,
        located: LocatedCopies,
    ) -> Observation {
        let entry = self::entry(row, replica);
        if entry.is_none() && row.is_some() {
            // The file is being stored for the first time: nothing is known of it yet.
            return Observation {
                found: Vec::new(),
                quality: LookQuality::Nothing,
                moved: None,
                located,
                place: None,
                size: 0,
                entry,
            };
        }
        let (mut found, moved) = compare_copies(entry.clone(), &located);
        excuse_moving_copy(
            &self.archive.standing.current_snapshot(),
            replica,
            &located.copies,
            &mut found,
        );
        let (size, place, root) = match entry.clone().map(|entry| entry.expected) {
            Some(ExpectedCopy::Present { root, size, place }) => (size, place, Some(root)),
            Some(ExpectedCopy::Incomplete { root, size }) => (size, None, Some(root)),
            Some(ExpectedCopy::InFlight { root }) => (0, None, root),
            Some(ExpectedCopy::Withdrawn) | None => (0, None, None),
        };
        // An unexpected file is filed at the place of that copy.
        let readable = located.copies.iter().find(|copy| copy.is_readable());
        let first = located
            .copies
            .iter()
            .find(|copy| copy.is_unexpected())
            .or(readable);
        let is_good = |copy: &&FileCopy| copy.is_readable() && copy.root == root && root.is_some();
        let quality = match &located.silent {
            // The copy is being stored: earlier anomalies may still be there.
            _ if found.contains(&AnomalyKind::Transient) => LookQuality::Nothing,
            None => LookQuality::Listing,
            Some(_) if located.copies.iter().any(|copy| is_good(&copy)) => LookQuality::Glimpse,
            Some(_) => LookQuality::Nothing,
        };
        let place = first.map(|copy| copy.place.clone()).or(place);
        Observation {
            found,
            quality,
            moved,
            located,
            place,
            size,
            entry,
        }
    }

    /// Looks, files the result, and tells the coordinator of a copy that is elsewhere. Looks again if the record
    /// changes before the result is filed: otherwise a copy that was just stored stays filed as missing. If the record
    /// keeps changing, nothing is filed.
    pub(crate) async fn look_and_file(
        &self,
        replica: &ReplicaId,
        name: &FileName,
        look_context: &LookContext,
    ) -> Result<(Observation, LookResult), CallError> {
        let mut looks = 1;
        loop {
            let (seen, found) = self.look_and_file_once(replica, name, look_context).await?;
            match found {
                Some(found) => {
                    let found = self.with_losses(name, found, look_context).await?;
                    return Ok((seen, found));
                }
                None if looks >= LOOKS => return Ok((seen, LookResult::default())),
                None => looks += 1,
            }
        }
    }

    /// Looks and files once. Returns no result if the record has changed in the meantime.
    async fn look_and_file_once(
        &self,
        replica: &ReplicaId,
        name: &FileName,
        look_context: &LookContext,
    ) -> Result<(Observation, Option<LookResult>), CallError> {
        let mut seen = self.look(replica, name).await?;
        self.dispute(name, &mut seen).await?;
        if let Some(CopyPlace { node, volume }) = seen.moved.clone() {
            let replica = replica.clone();
            let event = StoringEvent::Moved {
                replica,
                node,
                volume,
            };
            self.archive.mail.send_event(name.clone(), event).await;
        }
        let mut look = Look {
            found: seen.found.clone(),
            quality: seen.quality,
            by: look_context.finder,
            is_second: look_context.is_second,
            size: seen.size,
            place: seen.place.clone(),
        };
        // A file that is being stored is not filed; damage is filed of each copy by itself.
        look.found
            .retain(|kind| *kind != AnomalyKind::Transient && !is_damage(kind));
        let before = seen.entry.clone();
        let of = replica.clone();
        let is_so = move |record: Option<&FileRecord>, _: &[AnomalyRow]| {
            is_same(entry(record, &of).as_ref(), before.as_ref())
        };
        let filing = self.file_while(replica, name, look, look_context, is_so);
        let Some(mut found) = filing.await? else {
            return Ok((seen, None));
        };
        for copy in seen.damaged() {
            let look = Look {
                found: damage_kinds(copy, seen.size),
                quality: LookQuality::Nothing,
                by: look_context.finder,
                // The memory of a catalog is no second read.
                is_second: false,
                size: seen.size,
                place: Some(copy.place.clone()),
            };
            let more = self.file_look(replica, name, look, look_context).await?;
            found.open.extend(more.open);
            found.new += more.new;
        }
        self.close_absent(replica, name, &seen, look_context)
            .await?;
        Ok((seen, Some(found)))
    }

    /// Closes the damage of copies that were removed: drained, deleted by a person, moved into an attic.
    async fn close_absent(
        &self,
        replica: &ReplicaId,
        name: &FileName,
        seen: &Observation,
        look_context: &LookContext,
    ) -> Result<(), CallError> {
        if seen.quality != LookQuality::Listing {
            return Ok(());
        }
        for filed in self.filed_damage(replica, name).await? {
            let mut copies = seen.located.copies.iter();
            if copies.any(|copy| filed.is_at(&copy.place)) {
                continue;
            }
            let look = Look {
                found: Vec::new(),
                quality: LookQuality::Absent,
                by: look_context.finder,
                is_second: false,
                size: seen.size,
                place: filed.place(),
            };
            self.file_look(replica, name, look, look_context).await?;
        }
        Ok(())
    }

    /// Adds an anomaly for people if all reachable copies agree on another root than the admitted one.
    async fn dispute(&self, name: &FileName, seen: &mut Observation) -> Result<(), CallError> {
        let is_conflict = |kind: &AnomalyKind| matches!(kind, AnomalyKind::Conflicting(_));
        if !seen.found.iter().any(is_conflict) {
            return Ok(());
        }
        let admitted = self
            .file_record(name)
            .await?
            .and_then(|record| record.content);
        let mut ballots = Vec::new();
        let specs = self.archive.in_service();
        let locating = specs
            .iter()
            .map(|spec| self.archive.calls.locate_copies(&spec.id, name));
        for (spec, located) in specs.iter().zip(join_all(locating).await) {
            let Ok(located) = located else {
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
        if let archive_decisions::vote::RootVerdict::Disputed { copies, .. } =
            archive_decisions::vote::decide_root(&evidence)
        {
            seen.found.retain(|kind| !is_conflict(kind));
            seen.found.push(AnomalyKind::Disputed(copies));
        }
        Ok(())
    }
}

/// Returns whether the expected entry is the same as before; its place may have changed.
fn is_same(now: Option<&AdminEntry>, before: Option<&AdminEntry>) -> bool {
    let expected = |entry: Option<&AdminEntry>| {
        entry.map(|entry| match &entry.expected {
            ExpectedCopy::Present { root, size, .. } => ExpectedCopy::Present {
                root: *root,
                size: *size,
                place: None,
            },
            other => other.clone(),
        })
    };
    expected(now) == expected(before)
}

/// Returns the expected entry of a file in a replica, by its row.
fn entry(row: Option<&FileRecord>, replica: &ReplicaId) -> Option<AdminEntry> {
    row.and_then(|record| expected_entry(record, replica))
}

/// Removes the second copy of a file that moves within a replica from the findings: it is no anomaly.
fn excuse_moving_copy(
    now: &StandingSnapshot,
    replica: &ReplicaId,
    copies: &[FileCopy],
    found: &mut Vec<AnomalyKind>,
) {
    let stays = |copy: &&FileCopy| {
        let CopyPlace { node, volume } = &copy.place;
        copy.is_readable() && !now.leaves_copy(replica, node, volume)
    };
    if copies.iter().filter(stays).count() <= 1 && !now.draining.is_empty() {
        found.retain(|kind| !matches!(kind, AnomalyKind::Duplicate(_)));
    }
}
