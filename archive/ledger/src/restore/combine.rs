//! Pure: what the sidecars of all replicas say of one name, put together into one row of the admin data.
//!
//! Only what a trusted key signed counts. Two valid admissions of different content under one name are for people to
//! decide; a name without any valid admission is for a vote of re-hashed bytes. Both are left out, and named.
//!
//! A replica that has no copy, and says that two persons had it removed, has none from then on too: what a court had
//! taken away does not come back with a restore. But nobody has signed what an attic says, and the admin data that knew
//! the request are gone; so such a removal is called *unproven*, in the report and in the state of the copy, until
//! people have looked at it. A name that is nowhere but in such attics stays taken, and removed everywhere.

use std::collections::BTreeMap;

use archive_decisions::store::{
    Claim, Content, FileRecord, NamePhase, RecordedUpload, ReplicaRecord, ReplicaSpec,
};
use archive_model::{Approval, FileName, NodeId, ReplicaId, ReplicaState, StoreFailure, VolumeId};
use archive_proof::{Admission, Envelope, TrustFile};
use jiff::Timestamp;

use super::logged::withdraw_copy;
use crate::admin::AdminRow;

/// The text of a sidecar, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The replica.
    pub replica: ReplicaId,
    /// The node.
    pub node: NodeId,
    /// The volume.
    pub volume: VolumeId,
    /// The time when the copy was stored there.
    pub stored: Timestamp,
    /// Whether the node sees the file beside the sidecar, in whatever condition.
    pub is_there: bool,
    /// The admission, verbatim; empty where none can be read.
    pub admission: String,
}

/// A copy that two persons had removed, as its replica says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovedCopy {
    /// The replica.
    pub replica: ReplicaId,
    /// The node.
    pub node: NodeId,
    /// The volume.
    pub volume: VolumeId,
    /// The file.
    pub name: FileName,
    /// The time of the removal.
    pub at: Timestamp,
    /// The persons who asked and approved.
    pub approval: Approval,
    /// The request and its reason.
    pub why: String,
    /// The admission, verbatim; empty where none can be read.
    pub admission: String,
}

/// The decision about a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameVerdict {
    /// The row of the file, restored from its admissions.
    File(Box<AdminRow>),
    /// Valid admissions contradict each other: they are described here.
    Contradicting(String),
    /// No admission of the name is valid, for these reasons.
    Unsigned(String),
}

/// The keys whose admissions count, and for what.
#[derive(Clone, Copy, Debug)]
pub struct AdmissionRule<'a> {
    /// The archive.
    pub archive: &'a str,
    /// The keys whose signatures count.
    pub trust: &'a TrustFile,
    /// The replicas of the settings.
    pub specs: &'a [ReplicaSpec],
    /// The time of the restore.
    pub now: Timestamp,
}

impl AdmissionRule<'_> {
    /// Combines all sightings and removals of `name` into a verdict.
    pub fn combine_admissions(
        &self,
        name: &FileName,
        sightings: &[Sighting],
        removals: &[RemovedCopy],
    ) -> NameVerdict {
        let read = |sighting| (sighting, self.read(name, sighting));
        let mut all: Vec<_> = sightings.iter().map(read).collect();
        let has_copies = all.iter().any(|(_, admission)| admission.is_ok());
        let kept: Vec<Sighting> = removals.iter().map(RemovedCopy::sighting).collect();
        if !has_copies {
            // A removed copy was admitted too, although it is no copy any more.
            all.extend(kept.iter().map(read));
        }
        let read = all;
        let mut contents: BTreeMap<_, Vec<(&Sighting, &Admission)>> = BTreeMap::new();
        for (sighting, admission) in &read {
            if let Ok(admission) = admission {
                let content = (admission.root, admission.size);
                contents
                    .entry(content)
                    .or_default()
                    .push((sighting, admission));
            }
        }
        let mut contents = contents.into_iter();
        let Some((_, agreed)) = contents.next() else {
            return NameVerdict::Unsigned(reasons(&read));
        };
        let mut others = contents.peekable();
        if others.peek().is_some() {
            let all = std::iter::once(agreed).chain(others.map(|(_, those)| those));
            return NameVerdict::Contradicting(
                all.map(|those| described(&those))
                    .collect::<Vec<_>>()
                    .join("; "),
            );
        }
        // Of several admissions of the same content the earliest counts.
        let first = agreed
            .iter()
            .min_by_key(|(sighting, admission)| (admission.admitted, sighting.admission.as_str()));
        match first {
            Some((sighting, admission)) => {
                let world = NameSightings {
                    copies: if has_copies { &agreed } else { &[] },
                    sightings,
                    removals,
                };
                NameVerdict::File(Box::new(self.row(sighting, admission, world)))
            }
            None => NameVerdict::Unsigned(reasons(&read)),
        }
    }

    /// Withdraws in a row that an export has what was removed since, as only attics say: copies of replicas that have
    /// none. Returns the removals that count.
    pub fn withdraw_removed<'b>(
        &self,
        row: &mut AdminRow,
        sightings: &[Sighting],
        removals: &'b [RemovedCopy],
    ) -> Vec<&'b RemovedCopy> {
        let root = row.record.content.as_ref().map(|content| content.root);
        let is_of_it = |removal: &RemovedCopy| {
            let admission = self.read(&removal.name, &removal.sighting());
            admission.is_ok_and(|admission| Some(admission.root) == root)
        };
        let has_any = |replica: &ReplicaId| {
            sightings
                .iter()
                .any(|sighting| sighting.replica == *replica)
        };
        let mut newest: Vec<&RemovedCopy> = removals
            .iter()
            .filter(|removal| !has_any(&removal.replica) && is_of_it(removal))
            .collect();
        newest.sort_by_key(|removal| std::cmp::Reverse(removal.at));
        newest.retain(|removal| {
            let why = removal.unproven_finding();
            withdraw_copy(&mut row.record, &removal.replica, removal.at, why)
        });
        newest
    }

    fn read(&self, name: &FileName, sighting: &Sighting) -> Result<Admission, String> {
        if sighting.admission.is_empty() {
            return Err("no sidecar can be read".to_owned());
        }
        let envelope =
            Envelope::parse(sighting.admission.as_bytes()).map_err(|error| error.to_string())?;
        let admission =
            Admission::verify(&envelope, self.trust).map_err(|error| error.to_string())?;
        if admission.name != *name || admission.archive != self.archive {
            return Err(format!(
                "the admission is of {} in the archive {:?}",
                admission.name, admission.archive
            ));
        }
        Ok(admission)
    }

    fn row(&self, first: &Sighting, admission: &Admission, world: NameSightings<'_>) -> AdminRow {
        let content = Content {
            root: admission.root,
            size: admission.size,
            digests: admission.digests.clone(),
        };
        let replicas: BTreeMap<_, _> = self
            .specs
            .iter()
            .map(|spec| (spec.id.clone(), self.replica(spec, world)))
            .collect();
        let is_everywhere = replicas.values().all(|copy| !copy.state.is_open());
        let record = FileRecord {
            name: admission.name.clone(),
            phase: if is_everywhere {
                NamePhase::Complete
            } else {
                NamePhase::Bound
            },
            upload: Some(RecordedUpload {
                id: admission.upload.clone(),
                claim: Claim::from(&content),
            }),
            content: Some(content),
            replicas,
        };
        AdminRow {
            record,
            depositor: admission.depositor.clone(),
            admission: Some(first.admission.clone()),
        }
    }

    /// Returns the record of the file in a replica. A replica that has the sidecar had the file: if that is gone now,
    /// the next check finds it missing.
    fn replica(&self, spec: &ReplicaSpec, world: NameSightings<'_>) -> ReplicaRecord {
        let is_own = |sighting: &Sighting| sighting.replica == spec.id;
        let own = world.copies.iter().map(|(sighting, _)| *sighting);
        let best = own
            .filter(|sighting| is_own(sighting))
            .min_by_key(|sighting| (!sighting.is_there, sighting.stored));
        let has_any = world.sightings.iter().any(is_own);
        let removed = world.removals.iter();
        let removed = removed.filter(|removal| removal.replica == spec.id && !has_any);
        let last = removed.max_by_key(|removal| removal.at);
        let started = ReplicaRecord::started_record(spec.kind, spec.required, self.now);
        match (best, last) {
            (Some(sighting), _) => ReplicaRecord {
                state: ReplicaState::UploadCompleted,
                since: sighting.stored,
                node: Some(sighting.node.clone()),
                volume: Some(sighting.volume.clone()),
                ..started
            },
            (None, Some(removal)) => ReplicaRecord {
                state: ReplicaState::Withdrawn(removal.unproven_finding()),
                since: removal.at,
                ..started
            },
            (None, None) if world.sightings.is_empty() => ReplicaRecord {
                state: ReplicaState::Withdrawn(
                    "unproven: every replica that knows it says that it was removed".to_owned(),
                ),
                ..started
            },
            (None, None) => ReplicaRecord {
                state: ReplicaState::UploadFailed(StoreFailure::Unreachable(
                    "no admitted copy was found when the admin data were re-established".to_owned(),
                )),
                sealed: true,
                ..started
            },
        }
    }
}

/// The statements of the replicas about one name.
#[derive(Clone, Copy)]
struct NameSightings<'a> {
    /// The copies that are admitted, all alike.
    copies: &'a [(&'a Sighting, &'a Admission)],
    sightings: &'a [Sighting],
    removals: &'a [RemovedCopy],
}

impl RemovedCopy {
    /// Describes the removal for people: who is said to have decided it, and that only one volume says so.
    pub fn unproven_finding(&self) -> String {
        let Self {
            node,
            volume,
            approval,
            why,
            ..
        } = self;
        format!(
            "unproven, only volume {volume} of node {node} says so: {why} (by {approval}); if it is not so, `holdfast reinstate`"
        )
    }

    /// Returns the place where the admission was found, as if it were that of a copy.
    fn sighting(&self) -> Sighting {
        Sighting {
            replica: self.replica.clone(),
            node: self.node.clone(),
            volume: self.volume.clone(),
            stored: self.at,
            is_there: false,
            admission: self.admission.clone(),
        }
    }
}

fn place(sighting: &Sighting) -> String {
    format!("{}/{}/{}", sighting.replica, sighting.node, sighting.volume)
}

fn described(those: &[(&Sighting, &Admission)]) -> String {
    let places = those.iter().map(|(sighting, _)| place(sighting));
    let places = places.collect::<Vec<_>>().join(", ");
    let root = those
        .first()
        .map(|(_, admission)| admission.root.to_string());
    format!("root {} in {places}", root.unwrap_or_default())
}

fn reasons(read: &[(&Sighting, Result<Admission, String>)]) -> String {
    let said = read.iter().filter_map(|(sighting, read)| {
        let why = read.as_ref().err()?;
        Some(format!("{}: {why}", place(sighting)))
    });
    said.collect::<Vec<_>>().join("; ")
}
