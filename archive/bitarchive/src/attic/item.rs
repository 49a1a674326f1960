//! Items of the attic, read with care: a rotten item is listed as far as it can still be read, and never hidden.
//!
//! # Errors
//!
//! A name is refused with the error that says what is wrong with it; a listing fails with a [`DiskError`].

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use archive_durable::DiskError;
use archive_durable::directory::{self, EntryKind};
use archive_model::limits::LONGEST_ID;
use archive_model::{Approval, Cause, FileName, Root, VolumeId};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::{AtticItemKind, AtticReason, FORMAT, REASON_NAME};
use crate::layout::Layout;

/// The format in which the name of an item begins.
pub(super) const TIME: &str = "%Y%m%dT%H%M%SZ";

/// The length of that beginning.
const TIME_LENGTH: usize = 16;

/// The longest reason that is read, in bytes.
const MAX_REASON: u64 = 1024 * 1024;

/// Names one item in the attic of a volume; safe as part of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtticId(String);

/// The error about a text that is not the id of an item.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "it is not the id of an item in an attic: 1 to {LONGEST_ID} letters, digits and `-`, as `holdfast attic list` prints them; a directory with another name was not made by a node: look at it on the disk"
)]
pub struct InvalidAtticId;

impl AtticId {
    /// Accepts 1 to [`LONGEST_ID`] ASCII letters, digits and inner `-`.
    pub fn new(text: &str) -> Result<Self, InvalidAtticId> {
        let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        let is_id = (1..=LONGEST_ID).contains(&text.len())
            && text.bytes().all(is_inner)
            && !text.starts_with('-');
        is_id.then(|| Self(text.to_owned())).ok_or(InvalidAtticId)
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AtticId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// An order to put one copy aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovalOrder {
    /// The file.
    pub name: FileName,
    /// The volume of the copy.
    pub volume: VolumeId,
    /// The root that the copy must have on the medium: a removal names the content, not only the place.
    pub checksum: Root,
    /// The person who asked, and the reason.
    pub cause: Cause,
}

/// An order about one item of an attic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemReference {
    /// The volume of the attic.
    pub volume: VolumeId,
    /// The item.
    pub id: AtticId,
    /// The root of the whole file in the item, if that has to be named.
    pub checksum: Option<Root>,
    /// The person who asked, and the reason.
    pub cause: Cause,
}

/// The place of an item, and the time at which the item was put there: all that a listing keeps of an item until its
/// turn comes. Places sort by time, then id, then volume.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ItemPlace {
    pub(crate) at: Timestamp,
    pub(crate) name: OsString,
    /// The volume.
    pub volume: VolumeId,
}

/// An item of an attic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalAtticItem {
    /// The name of the item's directory.
    pub id: String,
    /// The volume whose attic has the item.
    pub volume: VolumeId,
    /// The kind of the item.
    pub kind: AtticItemKind,
    /// The file that the item belongs to, if that is known.
    pub name: Option<FileName>,
    /// The time at which the item was put aside, as far as is known.
    pub at: Timestamp,
    /// The person or part that asked to put the item aside.
    pub who: String,
    /// The reason that the person or part gave, or why the reason cannot be read.
    pub why: String,
    /// The size of the item in bytes, without its reason.
    pub bytes: u64,
    /// The two persons who decided the act, if two did, as the reason of the item says.
    pub approval: Option<Approval>,
    /// The problem.
    pub damaged: Option<String>,
}

/// Lists everything in the attic of a volume, in no order.
pub fn list_items(layout: &Layout, volume: &VolumeId) -> Result<Vec<ItemPlace>, DiskError> {
    let attic = layout.attic();
    let look = |name: OsString| ItemPlace {
        at: time_of(&name).unwrap_or_else(|| changed(&attic.join(&name))),
        name,
        volume: volume.clone(),
    };
    Ok(directory::list_names(&attic)?
        .into_iter()
        .map(look)
        .collect())
}

/// Reads an item. Damage of the item is reported in the item itself.
pub fn read_item(layout: &Layout, listed: &ItemPlace) -> LocalAtticItem {
    let place = layout.attic().join(&listed.name);
    let reason = read_reason(&place);
    let bytes = measure_item(&place);
    let damaged = match (&reason, &bytes) {
        (Err(why), _) => Some(why.clone()),
        (Ok(_), Err(error)) => Some(error.to_string()),
        (Ok(_), Ok(_)) => None,
    };
    let (kind, name, at, who, why, approval) = match reason {
        Ok(reason) => (
            reason.kind,
            Some(reason.name),
            reason.at,
            reason.who,
            reason.why,
            reason.approval,
        ),
        Err(why) => (
            AtticItemKind::Leftover,
            None,
            listed.at,
            String::new(),
            why,
            None,
        ),
    };
    LocalAtticItem {
        id: listed.name.to_string_lossy().into_owned(),
        volume: listed.volume.clone(),
        kind,
        name,
        at,
        who,
        why,
        bytes: bytes.unwrap_or_default(),
        approval,
        damaged,
    }
}

/// Returns the time at which an item was put aside: the later of those in its name and its reason, so that damage or a
/// forged reason makes no item older. If the name has no time, the last change of the directory counts too.
pub(crate) fn latest_change(place: &Path) -> Timestamp {
    let name = place
        .file_name()
        .and_then(time_of)
        .unwrap_or_else(|| changed(place));
    read_reason(place).map_or(name, |reason| reason.at.max(name))
}

/// Reads the reason of an item; the error is for people.
pub(crate) fn read_reason(place: &Path) -> Result<AtticReason, String> {
    match place.symlink_metadata() {
        Ok(found) if !found.is_dir() => {
            return Err("this is not a directory; a node did not put it here".to_owned());
        }
        Ok(_) => {}
        Err(error) => return Err(DiskError::new("lstat", place, error).to_string()),
    }
    let path = place.join(REASON_NAME);
    let mut text = Vec::new();
    match directory::open_directory(&path) {
        Err(error) if error.is_absent() => return Err(format!("there is no {REASON_NAME}")),
        Err(error) => return Err(error.to_string()),
        Ok(file) => file
            .take(MAX_REASON + 1)
            .read_to_end(&mut text)
            .map_err(|error| DiskError::new("read", &path, error).to_string())?,
    };
    if text.len() as u64 > MAX_REASON {
        return Err(format!("{REASON_NAME} is damaged: it is too long"));
    }
    let reason: AtticReason = serde_json::from_slice(&text)
        .map_err(|error| format!("{REASON_NAME} is damaged: {error}"))?;
    if reason.format != FORMAT {
        return Err(format!(
            "{REASON_NAME} has the format {}; this build reads {FORMAT}",
            reason.format
        ));
    }
    Ok(reason)
}

/// Returns the number of bytes at `place`, in files of any depth. Links are not followed; the reason does not count.
pub(crate) fn measure_item(place: &Path) -> Result<u64, DiskError> {
    let found = place
        .symlink_metadata()
        .map_err(|error| DiskError::new("lstat", place, error))?;
    if !found.is_dir() {
        return Ok(if found.is_file() { found.len() } else { 0 });
    }
    let mut bytes: u64 = 0;
    let mut pending = vec![place.to_owned()];
    while let Some(path) = pending.pop() {
        for entry in directory::list_directory(&path)? {
            match entry.kind {
                EntryKind::File { size, .. } if path != place || entry.name != REASON_NAME => {
                    bytes = bytes.saturating_add(size);
                }
                EntryKind::Directory => pending.push(path.join(entry.name)),
                EntryKind::File { .. } | EntryKind::Other => {}
            }
        }
    }
    Ok(bytes)
}

/// Reads the time that begins the name of an item.
fn time_of(name: &OsStr) -> Option<Timestamp> {
    let text = name.to_str()?;
    let time = text.strip_prefix('.').unwrap_or(text).get(..TIME_LENGTH)?;
    let time = DateTime::strptime(TIME, time).ok()?;
    Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

/// Returns the last change of a name in the attic, or the epoch if that cannot be read.
fn changed(path: &Path) -> Timestamp {
    let seconds = path.symlink_metadata().map_or(0, |found| found.mtime());
    Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH)
}
