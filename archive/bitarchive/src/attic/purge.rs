//! Destroying what lies in the attic: only what is old enough, only so much an hour, and never without a trace.

use std::path::Path;

use archive_durable::DiskError;
use archive_durable::directory::{self, EntryKind};
use archive_model::VolumeId;
use jiff::{SignedDuration, Timestamp};

use super::REASON_NAME;
use super::item::{self, AtticId, Cause};
use crate::error::NodeError;
use crate::node::Node;

impl Node {
    /// Destroys one item; returns how many bytes that were. Refused for what is younger than `attic.min_age`. What a
    /// crash leaves of it is an item still, with its reason, and can be purged again.
    pub fn purge(
        &self,
        volume: &VolumeId,
        id: &AtticId,
        cause: &Cause,
        now: Timestamp,
    ) -> Result<u64, NodeError> {
        let layout = self.layout(volume)?;
        let place = layout.attic().join(id.as_str());
        let refused = |why: &str| NodeError::Attic {
            volume: volume.clone(),
            id: id.to_string(),
            why: why.to_owned(),
        };
        match place.symlink_metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(NodeError::NoItem {
                    volume: volume.clone(),
                    id: id.to_string(),
                });
            }
            Err(error) => return Err(DiskError::new("lstat", &place, error).into()),
            Ok(found) if !found.is_dir() => {
                return Err(refused("no node put this there; look at it on the disk"));
            }
            Ok(_) => {}
        }
        let min_age = SignedDuration::try_from(self.attic_settings().min_age.duration())
            .unwrap_or(SignedDuration::MAX);
        let until = item::latest(&place)
            .checked_add(min_age)
            .unwrap_or(Timestamp::MAX);
        if now < until {
            tracing::error!(%volume, item = %id, who = cause.who, "a purge was refused: the item is too young");
            return Err(NodeError::TooYoung {
                volume: volume.clone(),
                id: id.to_string(),
                until,
            });
        }
        let _moving = self.moving();
        let refuse_odd = || refused("it holds a directory; look at it on the disk");
        if directory::list(&place)?.iter().any(is_directory) {
            return Err(refuse_odd());
        }
        let bytes = item::size(&place)?;
        let name = item::read_reason(&place).map(|reason| reason.name.to_string());
        self.brake().count(now)?;
        tracing::warn!(%volume, item = %id, file = ?name, bytes, who = cause.who, why = cause.why, "purged");
        if destroy(&place).map_err(|error| self.blame(volume, error))? {
            Ok(bytes)
        } else {
            Err(refuse_odd())
        }
    }
}

/// Removes an item, its reason last: what a crash leaves of it still says what it is. `false`: it holds a directory,
/// and nothing was removed.
pub(super) fn destroy(place: &Path) -> Result<bool, DiskError> {
    let entries = directory::list(place)?;
    if entries.iter().any(is_directory) {
        return Ok(false);
    }
    let (reason, rest): (Vec<_>, Vec<_>) = entries
        .into_iter()
        .partition(|entry| entry.name == REASON_NAME);
    for entry in rest.iter().chain(&reason) {
        directory::remove_name(&place.join(&entry.name))?;
    }
    directory::remove_empty(place)?;
    Ok(true)
}

fn is_directory(entry: &directory::Entry) -> bool {
    entry.kind == EntryKind::Directory
}
