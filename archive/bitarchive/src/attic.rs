//! What is put aside: replaced and removed files, replaced groups, leftovers. Moved, never deleted, with the reason.
//!
//! One directory an item, named after the second and what it is. A directory whose name begins with a dot is a move
//! that was not ended: `moves` brings it to one end or the other. Only `purge` destroys, and only what is
//! old; the evidence of repairs ends by itself.

mod allowance;
mod evidence;
mod item;
mod leftovers;
mod moves;
mod purge;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use archive_durable::{DiskError, directory, replace};
use archive_model::{Approval, AtticKind, FileName};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

#[doc(hidden)]
pub(crate) use evidence::EvidenceWorker;
pub use item::{AtticId, Cause, InvalidAtticId, InvalidCause, Item, ItemPlace, item, list};
pub(crate) use leftovers::put_leftovers_aside;
pub(crate) use moves::settle_all;

use crate::layout::Layout;

/// Why something lies in the attic: `why.json` in each of its directories.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// `holdfast-attic/1`.
    pub format: String,
    /// The file it belongs to.
    pub name: FileName,
    /// When it was put aside.
    pub at: Timestamp,
    /// Who asked for it.
    pub who: String,
    /// Why.
    pub why: String,
    /// What it is; absent in old ones, which are leftovers.
    #[serde(default)]
    pub kind: Kind,
    /// The two persons who decided it, if two did; absent in old ones, whose `who` names both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
}

/// What was put aside, as `why.json` has it. Of the kinds of an attic only a row never stands there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A whole file with its sidecar and outboard: it can be taken back.
    File,
    /// Groups that were replaced by a repair, with their positions.
    Groups,
    /// What an upload that was cut, or a file that is missing, left.
    #[default]
    Leftover,
}

impl From<Kind> for AtticKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::File => Self::File,
            Kind::Groups => Self::Groups,
            Kind::Leftover => Self::Leftover,
        }
    }
}

pub(crate) const FORMAT: &str = "holdfast-attic/1";

/// The reason beside what was put aside.
pub(crate) const REASON_NAME: &str = "why.json";

/// Moves `paths` (those of them that are there) into a new directory of the attic, the reason first. `id` says what
/// they are; the directory gets a name that nothing has.
pub fn put_aside(
    layout: &Layout,
    id: &str,
    reason: (&FileName, Timestamp, &str, &str),
    paths: &[&Path],
) -> Result<PathBuf, DiskError> {
    put_aside_as(Kind::Leftover, layout, id, reason, paths)
}

/// The same, of any kind.
pub fn put_aside_as(
    kind: Kind,
    layout: &Layout,
    id: &str,
    reason: (&FileName, Timestamp, &str, &str),
    paths: &[&Path],
) -> Result<PathBuf, DiskError> {
    let (name, at, who, why) = reason;
    let reason = Reason {
        format: FORMAT.to_owned(),
        name: name.clone(),
        at,
        who: who.to_owned(),
        why: why.to_owned(),
        kind,
        approval: None,
    };
    let place = make_place(layout, "", id, &reason)?;
    for path in paths {
        let Some(last) = path.file_name() else {
            continue;
        };
        match directory::move_new(path, &place.join(kept_name(last))) {
            Err(error) if error.is_absent() => {}
            other => other?,
        }
    }
    Ok(place)
}

/// Makes a directory in the attic, with its reason. Its name is `prefix`, the second and `id`, and a number where that
/// is taken: making a directory refuses what is there, so that no two ever get the same.
pub(crate) fn make_place(
    layout: &Layout,
    prefix: &str,
    id: &str,
    reason: &Reason,
) -> Result<PathBuf, DiskError> {
    let mut number = 1_u64;
    let place = loop {
        let place = layout
            .attic()
            .join(format!("{prefix}{}", place_name(reason.at, id, number)));
        match directory::make_new(&place) {
            Err(error) if error.is_taken() => number += 1,
            made => break made.map(|()| place)?,
        }
    };
    let text = serde_json::to_vec_pretty(reason)
        .map_err(|error| DiskError::new("write", &place, std::io::Error::other(error)))?;
    replace(&place.join(REASON_NAME), &text)?;
    Ok(place)
}

fn place_name(at: Timestamp, id: &str, number: u64) -> String {
    let at = at.strftime(item::TIME);
    match number {
        1 => format!("{at}-{id}"),
        _ => format!("{at}-{id}-{number}"),
    }
}

/// What a file is called in its directory of the attic: as before, except where that is the name of the reason.
pub(crate) fn kept_name(name: &OsStr) -> OsString {
    if name == REASON_NAME {
        OsString::from("_why.json")
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests;
