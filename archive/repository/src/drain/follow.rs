//! Compares the modes of nodes with the known drains. Pure.
//!
//! The drain of a silent node continues. A retired part is not drained any more.

use archive_ledger::standing::DrainSource;
use archive_model::{Mode, NodeState, ReplicaId, VolumeId, VolumeState};

/// A change of the known drains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Begin(DrainSource),
    End(DrainSource),
}

/// Returns the changes that follow from the modes of the nodes of one replica.
pub(super) fn follow_move(
    known: &[DrainSource],
    replica: &ReplicaId,
    nodes: &[NodeState],
) -> Vec<Change> {
    let mut changes = Vec::new();
    for said in nodes {
        let source = |volume: Option<&VolumeId>| DrainSource {
            replica: replica.clone(),
            node: said.node.clone(),
            volume: volume.cloned(),
        };
        let own = |source: &&DrainSource| source.replica == *replica && source.node == said.node;
        for old in known.iter().filter(own) {
            let mode = match &old.volume {
                _ if said.is_retired() => Some(Mode::Retired),
                None => said.mode,
                Some(volume) => {
                    let mut volumes = said.volumes.iter();
                    let found = volumes.find(|one| one.volume.as_ref() == Some(volume));
                    found.map(mode_in_force)
                }
            };
            let is_over = match mode {
                Some(Mode::Retired) => true,
                Some(Mode::ReadWrite | Mode::ReadOnly) | None => said.alive,
                Some(Mode::Draining) => false,
            };
            if is_over {
                changes.push(Change::End(old.clone()));
            }
        }
        if !said.alive || said.is_retired() {
            continue;
        }
        let whole = (said.mode == Some(Mode::Draining)).then(|| source(None));
        let volumes = said.volumes.iter();
        let volumes = volumes.filter(|one| mode_in_force(one) == Mode::Draining);
        let volumes = volumes.filter_map(|one| one.volume.as_ref());
        let drained = whole.into_iter().chain(volumes.map(|id| source(Some(id))));
        changes.extend(
            drained
                .filter(|new| !known.contains(new))
                .map(Change::Begin),
        );
    }
    changes
}

/// Returns the mode of a volume; a retired one has no other mode.
fn mode_in_force(volume: &VolumeState) -> Mode {
    if volume.retired {
        Mode::Retired
    } else {
        volume.mode
    }
}

#[cfg(test)]
mod tests {
    use archive_model::NodeId;

    use super::*;

    fn node() -> NodeId {
        "n".parse().unwrap()
    }

    fn replica() -> ReplicaId {
        "one".parse().unwrap()
    }

    fn source(volume: Option<&str>) -> DrainSource {
        DrainSource {
            replica: replica(),
            node: node(),
            volume: volume.map(|id| id.parse().unwrap()),
        }
    }

    /// Returns the state of a volume in a mode. A volume that is drained and then retired keeps the mode that it had.
    fn volume_in(mode: Mode) -> VolumeState {
        let is_retired = mode == Mode::Retired;
        VolumeState {
            volume: Some("v".parse().unwrap()),
            mode: if is_retired { Mode::Draining } else { mode },
            retired: is_retired,
            ..VolumeState::default()
        }
    }

    /// Every mode of a node and of its volume, alive or silent, with every drain known before.
    ///
    /// Fails if a drain ends because its node is silent, the drain of a retired volume continues, or one begins twice.
    #[test]
    fn drain_follows_modes_of_live_nodes() {
        let modes = [Mode::ReadOnly, Mode::Draining, Mode::Retired];
        let volumes = [None, Some(modes[0]), Some(modes[1]), Some(modes[2])];
        let all = [source(None), source(Some("v"))];
        for known in 0..4_usize {
            let known: Vec<DrainSource> = (0..2)
                .filter(|at| known & (1 << at) != 0)
                .map(|at| all[at].clone())
                .collect();
            for mode in modes {
                for volume in volumes {
                    for is_alive in [false, true] {
                        let said = NodeState {
                            alive: is_alive,
                            mode: Some(mode),
                            volumes: volume.map(volume_in).into_iter().collect(),
                            ..NodeState::unheard_node(node())
                        };
                        let changes = follow_move(&known, &replica(), &[said]);
                        let own = [Some(mode), volume];
                        for (at, source) in all.iter().enumerate() {
                            let is_known = known.contains(source);
                            let is_retired =
                                mode == Mode::Retired || own[at] == Some(Mode::Retired);
                            let drains = match (is_retired, is_alive) {
                                (true, _) => false,
                                (false, true) => own[at] == Some(Mode::Draining),
                                (false, false) => is_known,
                            };
                            let begins = changes.contains(&Change::Begin(source.clone()));
                            let ends = changes.contains(&Change::End(source.clone()));
                            assert_eq!(
                                (begins, ends),
                                (!is_known && drains, is_known && !drains),
                                "{known:?} {mode:?} {volume:?} {is_alive}"
                            );
                        }
                    }
                }
            }
        }
        let other = follow_move(&all, &"two".parse().unwrap(), &[]);
        assert_eq!(other, []);
    }
}
