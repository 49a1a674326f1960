//! The drains under way, for the status of the archive.

use archive_model::Drain;
use proto_archive::convert::drain_message;
use proto_archive::wire::status_response;

use super::Door;

impl Door {
    pub(super) fn drains(&self) -> Vec<status_response::Drain> {
        let standing = self.archive.standing.now();
        let drains = standing.draining.iter().map(|(source, row)| {
            let progress = self.drains.of(source);
            drain_message(Drain {
                replica: source.replica.clone(),
                node: source.node.clone(),
                volume: source.volume.clone(),
                since: row.since,
                left: progress.left,
                drained: row.drained,
                held: Some(progress.held).filter(|held| !held.is_empty()),
            })
        });
        drains.collect()
    }
}
