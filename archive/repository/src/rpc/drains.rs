//! The drains under way, for the status of the archive.

use proto_archive::wire::status_response::Drain;

use super::Door;

impl Door {
    pub(super) fn drains(&self) -> Vec<Drain> {
        let standing = self.people.standing.now();
        let drains = standing.draining.iter().map(|(source, row)| {
            let shown = self.drains.of(source);
            let (files, bytes) = shown.left.unwrap_or_default();
            let volume = source.volume.as_ref().map(ToString::to_string);
            let drained = row.drained.map(|at| at.to_string());
            Drain {
                replica: source.replica.to_string(),
                node: source.node.to_string(),
                volume: volume.unwrap_or_default(),
                since: row.since.to_string(),
                counted: shown.left.is_some(),
                files,
                bytes,
                drained: drained.unwrap_or_default(),
                held: shown.held,
            }
        });
        drains.collect()
    }
}
