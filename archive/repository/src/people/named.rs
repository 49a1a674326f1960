//! Selection of the node or volume that a person means: an id alone is enough as long as only one has it.

use std::collections::BTreeSet;
use std::fmt;

use archive_model::{
    NodeKey, NodeSelector, ReplicaId, ReplicaKind, VolumeId, VolumeKey, VolumeSelector,
};
use archive_replicas::volumes_in_service;
use archive_rpc::{CallError, CallErrorKind};
use futures_util::future::join_all;

use super::People;
use super::refusal::changed_meanwhile;
use crate::tables::with_tables;

/// Returns the only volume that is meant; one in service goes before those that are retired.
fn only(
    named: &VolumeSelector,
    all: BTreeSet<VolumeKey>,
    is_retired: impl Fn(&VolumeKey) -> bool,
) -> Result<VolumeKey, CallError> {
    let meant = all.into_iter().filter(|key| named.selects_volume(key));
    let (retired, in_service): (Vec<_>, Vec<_>) = meant.partition(|key| is_retired(key));
    let mut meant = if in_service.is_empty() {
        retired
    } else {
        in_service
    };
    match (meant.pop(), meant.as_slice()) {
        (None, _) => Err(CallErrorKind::NotFound.to_error(format!(
            "there is no {named}: no node reports it, and no copy is recorded on it"
        ))),
        (Some(one), []) => Ok(one),
        (Some(last), others) => {
            let all = others.iter().chain([&last]).map(ToString::to_string);
            let all = all.collect::<Vec<_>>().join(", ");
            Err(changed_meanwhile(format!(
                "more than one volume is meant by {named}: {all}; name one with --node and --replica"
            )))
        }
    }
}

impl People {
    /// Returns the volume that `named` means, among those that nodes report or on which a copy is recorded. Refuses the
    /// table of a checksum replica.
    pub(crate) async fn named_volume(
        &self,
        named: &VolumeSelector,
    ) -> Result<VolumeKey, CallError> {
        let retired = self.archive.standing.current_snapshot();
        let is_retired = |key: &VolumeKey| retired.volumes.contains_key(key);
        let volume = only(named, self.known_volumes().await?, is_retired)?;
        self.keeps_bytes(&volume.replica, &volume)?;
        Ok(volume)
    }

    /// Returns every known volume of the archive: recorded, reported or retired.
    pub(crate) async fn known_volumes(&self) -> Result<BTreeSet<VolumeKey>, CallError> {
        let admin = self.archive.admin.clone();
        let mut volumes = with_tables(move || admin.known_volumes()).await?;
        volumes.extend(
            self.archive
                .standing
                .current_snapshot()
                .volumes
                .keys()
                .cloned(),
        );
        let specs = self.archive.standing.in_service(&self.specs);
        let calls = &self.archive.calls;
        let asking = specs
            .iter()
            .map(|spec| calls.answered_call(calls.replicas.reported_nodes(&spec.id)));
        for (spec, heard) in specs.iter().zip(join_all(asking).await) {
            // The volumes of a monitor that does not answer are recorded, except empty ones.
            if let Ok(heard) = heard {
                volumes.extend(volumes_in_service(&spec.id, &heard));
            }
        }
        volumes.retain(|volume| self.check_configured(&volume.replica).is_ok());
        Ok(volumes)
    }

    /// Checks that no volume of the archive has this id, or had it until it was retired.
    pub(crate) async fn is_new_volume(&self, id: &VolumeId) -> Result<(), CallError> {
        let all = self.known_volumes().await?;
        match all.iter().find(|known| known.volume == *id) {
            None => Ok(()),
            Some(known) => Err(changed_meanwhile(format!(
                "there is a {known} already; give the new volume another id"
            ))),
        }
    }

    /// Checks that a part of a replica can be changed or retired by itself. A checksum replica has one node, and
    /// reports its table as if it were a volume: if it were out of service, nothing in that replica would count.
    pub(super) fn keeps_bytes(
        &self,
        replica: &ReplicaId,
        part: &impl fmt::Display,
    ) -> Result<(), CallError> {
        let spec = self.specs.iter().find(|spec| spec.id == *replica);
        if spec.is_some_and(|spec| spec.kind == ReplicaKind::Checksum) {
            return Err(changed_meanwhile(format!(
                "{part} is all that checksum replica {replica} has: it cannot be retired, drained or set by itself; \
                 `holdfast replica retire {replica}` takes the replica out of service"
            )));
        }
        Ok(())
    }

    /// Returns the node that is meant: it was heard in its replica, and is not retired.
    pub(crate) async fn named_node(&self, named: &NodeSelector) -> Result<NodeKey, CallError> {
        let admin = self.archive.admin.clone();
        let specs = self.specs.clone();
        let of = named.clone();
        let wanted = named.node.clone();
        let remembered = with_tables(move || {
            let mut found = Vec::new();
            for spec in specs {
                if of.selects_node(&spec.id, &wanted)
                    && admin.list_nodes(&spec.id)?.contains(&wanted)
                {
                    found.push(spec.id);
                }
            }
            Ok(found)
        });
        let mut found = remembered.await?;
        if found.is_empty() {
            for spec in &self.specs {
                let is_meant = named.selects_node(&spec.id, &named.node);
                if is_meant && self.nodes_of(&spec.id).await?.contains(&named.node) {
                    found.push(spec.id.clone());
                }
            }
        }
        match found.as_slice() {
            [replica] => Ok(NodeKey {
                replica: replica.clone(),
                node: named.node.clone(),
            }),
            [] => {
                let now = self.archive.standing.current_snapshot();
                let mut retired = now.nodes.keys();
                if retired.any(|key| named.selects_node(&key.replica, &key.node)) {
                    return Err(changed_meanwhile(format!("{named} is retired already")));
                }
                Err(CallErrorKind::NotFound.to_error(format!("no replica has a {named}")))
            }
            _ => {
                let all: Vec<_> = found.iter().map(ToString::to_string).collect();
                Err(changed_meanwhile(format!(
                    "more than one node is meant by {named}: those of the replicas {}; name one with --replica",
                    all.join(", ")
                )))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(place: &str) -> VolumeKey {
        let mut parts = place.split('/');
        let mut part = || parts.next().unwrap();
        VolumeKey {
            replica: part().parse().unwrap(),
            node: part().parse().unwrap(),
            volume: part().parse().unwrap(),
        }
    }

    /// Fails if one of two volumes that bear the same id is taken for the other, or a retired namesake makes the one in
    /// service ambiguous.
    #[test]
    fn volume_named_twice_is_refused_without_its_node() {
        let all = || ["one/a/disk-1", "one/b/disk-1", "two/c/disk-1", "two/c/x"].map(key);
        let named = |replica: Option<&str>, node: Option<&str>, volume: &str| VolumeSelector {
            replica: replica.map(|id| id.parse().unwrap()),
            node: node.map(|id| id.parse().unwrap()),
            volume: volume.parse().unwrap(),
        };
        let chosen = |named: VolumeSelector, retired: &[VolumeKey]| {
            only(&named, all().into(), |key| retired.contains(key))
        };
        assert_eq!(chosen(named(None, None, "x"), &[]).unwrap(), key("two/c/x"));
        let twice = chosen(named(None, None, "disk-1"), &[]).unwrap_err();
        assert_eq!(twice.kind, CallErrorKind::Mismatch);
        for part in ["node a of replica one", "node c of replica two", "--node"] {
            assert!(twice.reason.contains(part), "{part}: {twice}");
        }
        let in_one = named(Some("one"), None, "disk-1");
        assert_eq!(
            chosen(in_one.clone(), &[]).unwrap_err().kind,
            CallErrorKind::Mismatch
        );
        for (named, expected) in [
            (named(Some("two"), None, "disk-1"), "two/c/disk-1"),
            (named(None, Some("b"), "disk-1"), "one/b/disk-1"),
            (named(Some("one"), Some("a"), "disk-1"), "one/a/disk-1"),
        ] {
            assert_eq!(chosen(named, &[]).unwrap(), key(expected));
        }
        let out = [key("one/a/disk-1")];
        assert_eq!(chosen(in_one, &out).unwrap(), key("one/b/disk-1"));
        let retired = chosen(named(None, Some("a"), "disk-1"), &out);
        assert_eq!(retired.unwrap(), key("one/a/disk-1"));
        for absent in [named(None, None, "y"), named(Some("two"), Some("a"), "x")] {
            assert_eq!(
                chosen(absent, &[]).unwrap_err().kind,
                CallErrorKind::NotFound
            );
        }
    }
}
