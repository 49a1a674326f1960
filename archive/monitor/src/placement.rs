//! The choice of the node that takes a file. Pure: nodes, holders and the time are arguments.
//!
//! In this order, among the nodes that are alive and not to be avoided:
//! 1. the one that has the file, whatever its room: it answers that it has the file;
//! 2. the one that receives or moves the file just now: it answers that it is busy, until it is known what comes of it;
//! 3. the one that has its unfinished upload, so that the upload continues where it stands;
//! 4. of those that take files and have room for it: the one that misses it (it will miss it no longer), else the one
//!    with most room; of equals the first by id.
//!
//! Unfinished uploads are remembered for [`KEPT`], the newest [`MOST`]. Not promised: anything over a restart; an
//! upload that was forgotten begins anew, elsewhere perhaps, and the node clears away what was left.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::{Duration, Instant};

use archive_model::{NodeId, UploadId};

/// The time for which an upload is remembered: as long as the repository's intent lives.
pub const KEPT: Duration = Duration::from_hours(24);

/// The most uploads that are remembered.
pub const MOST: usize = 100_000;

/// A node that is alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeCandidate {
    /// The node.
    pub node: NodeId,
    /// The endpoint at which the node takes calls.
    pub endpoint: String,
    /// Whether the node has a volume that takes new files.
    pub takes_files: bool,
    /// The room on the volume with most room, in bytes.
    pub room: u64,
}

/// The knowledge that a node already has of the file; the more it is its home, the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Home {
    /// The node should have the file, and does not.
    Misses,
    /// The node receives or moves the file just now.
    Receives,
    /// The node has bytes under this name, good or not.
    Has,
}

/// A file that is to go somewhere.
#[derive(Clone, Copy, Debug)]
pub struct PlacementRequest<'a> {
    /// The upload, the same one at each attempt.
    pub upload: &'a UploadId,
    /// The size of the file in bytes.
    pub size: u64,
    /// Nodes that were tried and could not.
    pub avoid: &'a BTreeSet<NodeId>,
    /// The nodes that know the file.
    pub homes: &'a BTreeMap<NodeId, Home>,
}

/// The node to which a file goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenPlace {
    /// The node.
    pub node: NodeId,
    /// The endpoint at which the node takes calls.
    pub endpoint: String,
    /// The room that the node's own report does not show as taken yet, in bytes.
    pub promised: u64,
}

/// The reason why a file goes nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPlace {
    /// No node is alive.
    #[error("no node of the replica is alive; start one")]
    NoneAlive,
    /// All nodes that are alive were tried, or could not be asked for the file.
    #[error("every node that is alive was tried; see why they could not")]
    AllTried,
    /// The nodes left have no volume that is online and in read-write mode.
    #[error("no other node takes new files; put a volume into read-write mode, or add one")]
    NotAccepting,
    /// The nodes left that take files have no room for this one.
    #[error("no other node has room for {size} bytes; the most on one volume is {most}")]
    NoRoom {
        /// The size of the file.
        size: u64,
        /// The most room there is.
        most: u64,
    },
}

/// The nodes that have unfinished uploads.
#[derive(Clone, Debug, Default)]
pub struct Placements {
    at: HashMap<UploadId, (NodeId, Instant)>,
    /// The uploads by the time of their placement, oldest first. An upload that was placed again is here twice, and
    /// only the newer entry counts.
    order: VecDeque<(Instant, UploadId)>,
}

impl Placements {
    /// Decides where a file goes, and remembers the decision.
    ///
    /// # Errors
    ///
    /// [`NoPlace`] if no node may take the file.
    pub fn place_file(
        &mut self,
        request: &PlacementRequest<'_>,
        candidates: &[NodeCandidate],
        now: Instant,
    ) -> Result<ChosenPlace, NoPlace> {
        self.forget(now);
        if candidates.is_empty() {
            return Err(NoPlace::NoneAlive);
        }
        let left: Vec<&NodeCandidate> = candidates
            .iter()
            .filter(|c| !request.avoid.contains(&c.node))
            .collect();
        if left.is_empty() {
            return Err(NoPlace::AllTried);
        }
        let home = |c: &NodeCandidate| request.homes.get(&c.node).copied();
        for known in [Home::Has, Home::Receives] {
            let there = left.iter().filter(|c| home(c) == Some(known));
            if let Some(candidate) = there.min_by_key(|c| &c.node) {
                return Ok(candidate.placed(0));
            }
        }
        let begun = self.at.get(request.upload).map(|(node, _)| node);
        if let Some(candidate) = left
            .iter()
            .find(|c| c.takes_files && begun == Some(&c.node))
        {
            return Ok(candidate.placed(0));
        }
        let taking = left.iter().filter(|c| c.takes_files);
        let best = taking.max_by(|a, b| {
            let rank = |c: &NodeCandidate| {
                (
                    c.room >= request.size,
                    home(c) == Some(Home::Misses),
                    c.room,
                )
            };
            rank(a).cmp(&rank(b)).then_with(|| b.node.cmp(&a.node))
        });
        match best {
            None => Err(NoPlace::NotAccepting),
            Some(candidate) if candidate.room < request.size => {
                let most = left
                    .iter()
                    .filter(|c| c.takes_files)
                    .map(|c| c.room)
                    .max()
                    .unwrap_or(0);
                Err(NoPlace::NoRoom {
                    size: request.size,
                    most,
                })
            }
            Some(candidate) => {
                self.remember(request.upload, &candidate.node, now);
                Ok(candidate.placed(request.size))
            }
        }
    }

    fn remember(&mut self, upload: &UploadId, node: &NodeId, now: Instant) {
        self.at.insert(upload.clone(), (node.clone(), now));
        self.order.push_back((now, upload.clone()));
        if self.order.len() > MOST {
            self.forget_oldest();
        }
    }

    fn forget(&mut self, now: Instant) {
        while self
            .order
            .front()
            .is_some_and(|(then, _)| now.saturating_duration_since(*then) > KEPT)
        {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((then, upload)) = self.order.pop_front()
            && self
                .at
                .get(&upload)
                .is_some_and(|(_, placed)| *placed == then)
        {
            self.at.remove(&upload);
        }
    }
}

impl NodeCandidate {
    fn placed(&self, promised: u64) -> ChosenPlace {
        ChosenPlace {
            node: self.node.clone(),
            endpoint: self.endpoint.clone(),
            promised,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 3] = ["a", "b", "c"];

    fn id(name: &str) -> NodeId {
        NodeId::new(name).unwrap()
    }

    fn candidate(name: &str, takes_files: bool, room: u64) -> NodeCandidate {
        NodeCandidate {
            node: id(name),
            endpoint: format!("{name}:1"),
            takes_files,
            room,
        }
    }

    fn upload(name: &str) -> UploadId {
        UploadId::new(name).unwrap()
    }

    /// Fails if a file goes to another node than the rule prefers, to none though one has room, or elsewhere on a
    /// second try. Tries every state, avoidance, home and begun upload of three nodes: 768 000 requests.
    #[test]
    fn every_small_replica_is_served_by_the_rule() {
        let states = [
            None,
            Some((false, 10)),
            Some((true, 0)),
            Some((true, 5)),
            Some((true, 10)),
        ];
        let now = Instant::now();
        let mut seen = 0;
        for state in 0..125 {
            let candidates: Vec<NodeCandidate> = NAMES
                .iter()
                .zip([state % 5, state / 5 % 5, state / 25])
                .filter_map(|(name, i)| states[i].map(|(takes, room)| candidate(name, takes, room)))
                .collect();
            for avoid in 0..8 {
                let avoid: BTreeSet<NodeId> = (0..3)
                    .filter(|i| avoid & (1 << i) != 0)
                    .map(|i| id(NAMES[i]))
                    .collect();
                for homes in 0..64 {
                    let kinds = [
                        None,
                        Some(Home::Has),
                        Some(Home::Receives),
                        Some(Home::Misses),
                    ];
                    let homes: BTreeMap<NodeId, Home> = NAMES
                        .iter()
                        .zip([homes % 4, homes / 4 % 4, homes / 16])
                        .filter_map(|(name, i)| Some((id(name), kinds[i]?)))
                        .collect();
                    for begun in [None, Some("a"), Some("b"), Some("c")] {
                        for size in [0, 5, 11] {
                            let mut placements = Placements::default();
                            if let Some(begun) = begun {
                                placements.remember(&upload("u"), &id(begun), now);
                            }
                            let request = PlacementRequest {
                                upload: &upload("u"),
                                size,
                                avoid: &avoid,
                                homes: &homes,
                            };
                            let placed = placements.place_file(&request, &candidates, now);
                            check(&request, &candidates, begun, &placed);
                            let again = placements.place_file(&request, &candidates, now);
                            assert_eq!(
                                again.map(|p| p.node),
                                placed.map(|p| p.node),
                                "sticky: {request:?}"
                            );
                            seen += 1;
                        }
                    }
                }
            }
        }
        assert_eq!(seen, 125 * 8 * 64 * 4 * 3);
    }

    /// Checks the rule in another form: which node comes before which.
    fn check(
        request: &PlacementRequest<'_>,
        candidates: &[NodeCandidate],
        begun: Option<&str>,
        placed: &Result<ChosenPlace, NoPlace>,
    ) {
        let say = || format!("{request:?} {candidates:?} begun {begun:?}: {placed:?}");
        let left: Vec<&NodeCandidate> = candidates
            .iter()
            .filter(|c| !request.avoid.contains(&c.node))
            .collect();
        let has = |c: &NodeCandidate| request.homes.get(&c.node) == Some(&Home::Has);
        let receives = |c: &NodeCandidate| request.homes.get(&c.node) == Some(&Home::Receives);
        let goes_on =
            |c: &NodeCandidate| begun.is_some_and(|b| c.node.as_str() == b) && c.takes_files;
        let misses = |c: &NodeCandidate| request.homes.get(&c.node) == Some(&Home::Misses);
        let fits = |c: &NodeCandidate| c.takes_files && c.room >= request.size;
        let possible: Vec<&&NodeCandidate> = left
            .iter()
            .filter(|c| has(c) || receives(c) || goes_on(c) || fits(c))
            .collect();
        match placed {
            Err(error) => {
                assert!(possible.is_empty(), "{}", say());
                let expected = match left.iter().filter(|c| c.takes_files).map(|c| c.room).max() {
                    _ if candidates.is_empty() => NoPlace::NoneAlive,
                    _ if left.is_empty() => NoPlace::AllTried,
                    None => NoPlace::NotAccepting,
                    Some(most) => NoPlace::NoRoom {
                        size: request.size,
                        most,
                    },
                };
                assert_eq!(*error, expected, "{}", say());
            }
            Ok(placed) => {
                let chosen = possible.iter().find(|c| c.node == placed.node);
                let chosen = chosen.unwrap_or_else(|| panic!("{}", say()));
                for other in possible.iter().filter(|c| c.node != chosen.node) {
                    let rank = |c: &NodeCandidate| {
                        if has(c) {
                            (4, 0)
                        } else if receives(c) {
                            (3, 0)
                        } else if goes_on(c) {
                            (2, 0)
                        } else {
                            (u8::from(misses(c)), c.room)
                        }
                    };
                    let best = rank(chosen);
                    let beaten = rank(other);
                    assert!(
                        best > beaten || (best == beaten && chosen.node < other.node),
                        "{}",
                        say()
                    );
                }
                let new = !has(chosen) && !receives(chosen) && !goes_on(chosen);
                assert_eq!(
                    placed.promised,
                    if new { request.size } else { 0 },
                    "{}",
                    say()
                );
            }
        }
    }

    /// Fails if an upload goes back to a node that it has left, waits for a silent one, leaves the node that has its
    /// bytes because that one reports to be full, or is remembered longer than its time.
    #[test]
    fn upload_moves_on_when_its_node_fails() {
        let now = Instant::now();
        let homes = BTreeMap::new();
        let candidates = [candidate("a", true, 9), candidate("b", true, 8)];
        let mut placements = Placements::default();
        let mut place = |avoid: &[&str], candidates: &[NodeCandidate], now| {
            let avoid = avoid.iter().map(|name| id(name)).collect();
            let request = PlacementRequest {
                upload: &upload("u"),
                size: 5,
                avoid: &avoid,
                homes: &homes,
            };
            placements
                .place_file(&request, candidates, now)
                .map(|placed| placed.node.to_string())
        };
        assert_eq!(place(&[], &candidates, now).unwrap(), "a");
        assert_eq!(place(&["a"], &candidates, now).unwrap(), "b");
        assert_eq!(
            place(&[], &candidates, now).unwrap(),
            "b",
            "the bytes are there now"
        );
        assert_eq!(
            place(&[], &candidates[..1], now).unwrap(),
            "a",
            "b is silent"
        );
        assert_eq!(place(&["a", "b"], &candidates, now), Err(NoPlace::AllTried));
        // Its node is full by its own report, because the upload has its room already.
        let full = [candidate("a", true, 0), candidate("b", true, 8)];
        assert_eq!(place(&[], &full, now + KEPT).unwrap(), "a");
        assert_eq!(
            place(&[], &full, now + KEPT + Duration::from_secs(1)).unwrap(),
            "b",
            "forgotten"
        );
    }

    /// Fails if remembered uploads grow without bound, if the newest are forgotten first, or if an upload that was
    /// placed again is forgotten with its first placement.
    #[test]
    fn memory_is_bounded_and_keeps_the_newest() {
        let now = Instant::now();
        let avoid = BTreeSet::new();
        let homes = BTreeMap::new();
        let candidates = [candidate("a", true, 9)];
        let mut placements = Placements::default();
        for i in 0..MOST + 10 {
            let upload = upload(&format!("u{i}"));
            let request = PlacementRequest {
                upload: &upload,
                size: 1,
                avoid: &avoid,
                homes: &homes,
            };
            placements
                .place_file(
                    &request,
                    &candidates,
                    now + Duration::from_millis(1) * u32::try_from(i).unwrap(),
                )
                .unwrap();
        }
        assert_eq!((placements.at.len(), placements.order.len()), (MOST, MOST));
        assert!(
            !placements.at.contains_key(&upload("u9"))
                && placements.at.contains_key(&upload("u10"))
        );
        // A single upload that goes from node to node cannot push the bound either, and stays known.
        for i in 0..MOST {
            placements.remember(&upload("u"), &id(NAMES[i % 3]), now);
        }
        assert_eq!((placements.at.len(), placements.order.len()), (1, MOST));
        placements.forget(now + KEPT + Duration::from_secs(1));
        assert_eq!((placements.at.len(), placements.order.len()), (0, 0));
    }
}
