//! The attic: replaced and removed files, replaced groups, and leftovers, which are moved there with the reason, never
//! deleted.
//!
//! Each item is a directory, named after the second and its content. A directory whose name begins with a dot is a move
//! that was cut off: `AtticMoves` completes or undoes it. What may go in, come back or be destroyed is decided above
//! this, by the attic of the node.
//!
//! # Errors
//!
//! Every function fails with a [`DiskError`] if a system call does.

mod item;
mod moves;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use archive_durable::{DiskError, directory, replace_file};
use archive_model::{Approval, AtticKind, Cause, FileName, NodeId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use item::{
    AtticId, InvalidAtticId, ItemPlace, ItemReference, LocalAtticItem, RemovalOrder, list_items,
    read_item,
};
pub(crate) use item::{latest_change, measure_item, read_reason};
pub(crate) use moves::{AtticMoves, MoveEnd, is_there, place_inside};

use crate::layout::{Layout, is_file};

/// The reason why an item lies in the attic: `why.json` in its directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtticReason {
    /// The format, `holdfast-attic/1`.
    pub format: String,
    /// The file that the item belongs to.
    pub name: FileName,
    /// The time at which the item was put aside.
    pub at: Timestamp,
    /// The person or part that asked to put the item aside.
    pub who: String,
    /// The reason that the person or part gave.
    pub why: String,
    /// The kind of the item.
    pub kind: AtticItemKind,
    /// The two persons who decided it, if two did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
}

/// The kind of an item, as `why.json` has it: every kind of an attic except a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AtticItemKind {
    /// A whole file with its sidecar and outboard: it can be taken back.
    File,
    /// Groups that were replaced by a repair, with their positions.
    Groups,
    /// The remains of an upload that was cut, or of a file that is missing.
    Leftover,
}

impl From<AtticItemKind> for AtticKind {
    fn from(kind: AtticItemKind) -> Self {
        match kind {
            AtticItemKind::File => Self::File,
            AtticItemKind::Groups => Self::Groups,
            AtticItemKind::Leftover => Self::Leftover,
        }
    }
}

pub(crate) const FORMAT: &str = "holdfast-attic/1";

/// The name of the file with the reason.
pub(crate) const REASON_NAME: &str = "why.json";

impl AtticReason {
    /// Makes the reason of an item that somebody asked for.
    pub fn new(kind: AtticItemKind, name: &FileName, at: Timestamp, cause: &Cause) -> Self {
        Self {
            format: FORMAT.to_owned(),
            name: name.clone(),
            at,
            who: cause.who.clone(),
            why: cause.why.clone(),
            kind,
            approval: cause.approval.clone(),
        }
    }

    /// Makes the reason of an item that a node puts aside by itself.
    pub(crate) fn of_leftover(name: &FileName, at: Timestamp, node: &NodeId, why: &str) -> Self {
        let cause = Cause {
            who: format!("node {node}"),
            why: why.to_owned(),
            approval: None,
        };
        Self::new(AtticItemKind::Leftover, name, at, &cause)
    }
}

/// Moves the `paths` that exist into a new directory of the attic, after the reason was written there. The directory
/// has a free name that contains `id`.
pub fn put_aside(
    layout: &Layout,
    id: &str,
    reason: &AtticReason,
    paths: &[&Path],
) -> Result<PathBuf, DiskError> {
    let place = make_place(layout, "", id, reason)?;
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

/// Puts aside what lies under the final names of an absent file: the leftovers of an upload that died between linking
/// the sidecar and linking the file, and anything else (a directory, a link) in the place of the file.
pub(crate) fn put_leftovers_aside(
    layout: &Layout,
    id: &str,
    name: &FileName,
    node: &NodeId,
    now: Timestamp,
) -> Result<(), DiskError> {
    let target = layout.target_paths(name);
    let paths = [&target.file, &target.sidecar, &target.outboard].map(PathBuf::as_path);
    let mut is_anything = false;
    for path in paths {
        is_anything |= is_there(path)?;
    }
    if is_file(&target.file)? || !is_anything {
        return Ok(());
    }
    let why = "leftover of an upload that was cut, or of a file that is missing";
    let reason = AtticReason::of_leftover(name, now, node, why);
    put_aside(layout, id, &reason, &paths).map(|_| ())
}

/// Makes a directory in the attic, with its reason. Its name is `prefix`, the second and `id`, and a number if that
/// name is taken: making a directory refuses an existing one, so that no two items ever share a name.
pub(crate) fn make_place(
    layout: &Layout,
    prefix: &str,
    id: &str,
    reason: &AtticReason,
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
    replace_file(&place.join(REASON_NAME), &text)?;
    Ok(place)
}

fn place_name(at: Timestamp, id: &str, number: u64) -> String {
    let at = at.strftime(item::TIME);
    match number {
        1 => format!("{at}-{id}"),
        _ => format!("{at}-{id}-{number}"),
    }
}

/// Returns the name of a file in its directory of the attic: as before, unless that is the name of the reason.
pub(crate) fn kept_name(name: &OsStr) -> OsString {
    if name == REASON_NAME {
        OsString::from("_why.json")
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests;
