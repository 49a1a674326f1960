//! The result of a check: how much was compared, the findings, and the silent nodes.

use std::collections::{BTreeMap, BTreeSet};

use archive_model::{AnomalyClass, AnomalyKind, CopyPlace, FileName, SilentPart};

use super::error::CheckError;

/// More silent volumes than any replica has.
const MOST_SILENT: usize = 65_536;

/// A finding of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Something is wrong.
    Anomaly {
        /// The file.
        file: FileName,
        /// The kind of the anomaly.
        kind: AnomalyKind,
    },
    /// Nothing is wrong, but the admin data does not know where the copy is.
    Moved {
        /// The file.
        file: FileName,
        /// The place of the copy.
        place: CopyPlace,
    },
}

/// The sides of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckSide {
    /// The admin data.
    Admin,
    /// The replica's listing.
    Replica,
}

/// An input that is not believed from some name on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputCut {
    /// The input.
    pub side: CheckSide,
    /// The last name that the input listed well; `None` if it listed none.
    pub after: Option<FileName>,
    /// The reason why the input is not believed.
    pub reason: String,
}

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Names in the admin data that were compared.
    pub names: u64,
    /// Entries of the listing.
    pub listed: u64,
    /// Files that are there, with the admitted root and size.
    pub intact: u64,
    /// Files that were removed on purpose, and are not there.
    pub withdrawn: u64,
    /// Files that are elsewhere than the admin data says.
    pub moved: u64,
    /// Anomalies by kind.
    pub anomalies: BTreeMap<AnomalyClass, u64>,
    /// Absent files whose place was not recorded, so that no node can be named for their absence.
    pub unplaced: u64,
    /// Inputs that were not whole.
    pub cuts: Vec<InputCut>,
    pub(super) silent: BTreeMap<SilentPart, Option<FileName>>,
    pub(super) last: Option<FileName>,
    pub(super) listing_ended: bool,
    pub(super) ended: bool,
}

impl CheckReport {
    /// Whether every name of the admin data was compared with the word of every volume.
    pub fn is_complete(&self) -> bool {
        self.ended && self.listing_ended && self.silent.is_empty() && self.cuts.is_empty()
    }

    /// Lists the nodes and volumes that were not heard, or not to the end.
    pub fn silent_parts(&self) -> impl Iterator<Item = &SilentPart> {
        self.silent.keys()
    }

    pub(super) fn count_finding(&mut self, finding: &Finding) {
        match finding {
            Finding::Anomaly { kind, .. } => *self.anomalies.entry(kind.class()).or_default() += 1,
            Finding::Moved { .. } => self.moved += 1,
        }
    }

    pub(super) fn cut_side(&mut self, side: CheckSide, reason: String) {
        let after = match side {
            CheckSide::Admin => None,
            CheckSide::Replica => self.last.clone(),
        };
        self.cuts.push(InputCut {
            side,
            after,
            reason,
        });
    }

    pub(super) fn note_silence(&mut self, part: SilentPart) -> Result<(), CheckError> {
        let last = self.last.clone();
        self.silent.entry(part).or_insert(last);
        if self.silent.len() > MOST_SILENT {
            Err(CheckError::TooManySilent)
        } else {
            Ok(())
        }
    }

    /// Judges the absence of `name`, which should be at `place`, from the listing.
    pub(super) fn judge_absence(&self, name: &FileName, place: Option<&CopyPlace>) -> Absence {
        // An input's word holds up to, and with, the last name before it fell silent.
        let silent = self
            .silent
            .iter()
            .filter(|(_, after)| after.as_ref() < Some(name))
            .map(|(who, _)| who);
        let silent = silent.collect::<BTreeSet<_>>();
        let cut = self.cuts.iter().any(|cut| cut.after.as_ref() < Some(name));
        if silent.is_empty() && !cut {
            return Absence::Proven;
        }
        let own = place.map(|place| {
            [None, Some(place.volume.clone())].map(|volume| SilentPart {
                node: place.node.clone(),
                volume,
            })
        });
        let own_silent = own.iter().flatten().find(|who| silent.contains(who));
        let own_cut = own.iter().flatten().next_back().filter(|_| cut);
        Absence::Doubtful(
            own_silent
                .or(own_cut)
                .or_else(|| silent.first().copied())
                .cloned(),
        )
    }
}

/// The meaning of a name that was not listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Absence {
    /// Every volume has looked, and none has the file.
    Proven,
    /// The named node, or the named volume of it, was not heard; `None` if no node can be named.
    Doubtful(Option<SilentPart>),
}
