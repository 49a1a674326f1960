//! The replica that reads for a job: the one that it names, or one that has the files and answers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use archive_decisions::batch::choice::{Choice, MonitorAnswer, ReplicaCandidate, choose_replica};
use archive_decisions::batch::life::NodeSets;
use archive_model::{NameList, NodeId, ReplicaId, ReplicaKind};
use archive_rpc::CallErrorKind;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use proto_archive::convert as fields;
use tonic::Status;

use crate::rpc::Door;
use crate::tables::with_tables;

/// The time in which a replica must answer.
const LOOK: Duration = Duration::from_secs(5);

/// The time to wait for a replica if another one has the files, too.
const SOON: Duration = Duration::from_millis(500);

/// The number of files of a job on each node of a replica.
type FilesByNode = BTreeMap<NodeId, u64>;

impl Door {
    /// Reads the replica that a job names.
    pub(super) fn named_replica(&self, named: &str) -> Result<ReplicaId, Status> {
        let id = fields::replica_id(named)?;
        let spec = self.archive.specs.iter().find(|spec| spec.id == id);
        let missing = || {
            CallErrorKind::NotFound.to_status(format!(
                "replica {id} is not in the settings of this archive"
            ))
        };
        if spec.ok_or_else(missing)?.kind != ReplicaKind::Bitarchive {
            let said = format!("replica {id} keeps checksums and no bytes; name another one");
            return Err(CallErrorKind::Mismatch.to_status(said));
        }
        if self.archive.standing.current_snapshot().is_retired(&id) {
            return Err(CallErrorKind::NotFound.to_status(format!("replica {id} is retired")));
        }
        Ok(id)
    }

    /// Chooses the replica for a job that does not name one. All replicas are asked at once, so that one that is down
    /// delays no job whose files another replica has.
    pub(super) async fn choose_replica(
        &self,
        names: Option<NameList>,
        avoided: &BTreeSet<ReplicaId>,
    ) -> Result<ReplicaId, Status> {
        let standing = self.archive.standing.current_snapshot();
        let keep =
            self.archive.specs.iter().filter(|spec| {
                spec.kind == ReplicaKind::Bitarchive && !standing.is_excused(&spec.id)
            });
        let replicas: Vec<ReplicaId> = keep.map(|spec| spec.id.clone()).collect();
        let mut candidates: Vec<ReplicaCandidate> = replicas
            .iter()
            .map(|replica| ReplicaCandidate {
                is_avoided: avoided.contains(replica),
                answer: MonitorAnswer::Awaited,
            })
            .collect();
        let files = match names {
            Some(names) => Some(self.files_by_node(names, replicas.clone()).await?),
            None => None,
        };
        let mut asked = FuturesUnordered::new();
        for (place, replica) in replicas.iter().enumerate() {
            let own = files.as_ref().and_then(|files| {
                let by_node = files.replicas.get(place)?;
                Some((files.wanted, by_node))
            });
            let asking = self.answer_of(replica, own);
            asked.push(async move { (place, asking.await) });
        }
        let nobody = || {
            let said = "no replica that keeps bytes answers; name one to submit the job, which then waits for it";
            CallErrorKind::Unavailable.to_status(said)
        };
        let late = self.archive.calls.clock.sleep(SOON);
        tokio::pin!(late);
        let mut is_late = false;
        loop {
            match choose_replica(&candidates, is_late) {
                Choice::Taken(place) => {
                    return replicas.get(place).cloned().ok_or_else(nobody);
                }
                Choice::Nobody => return Err(nobody()),
                Choice::Wait => {}
            }
            tokio::select! {
                answered = asked.next() => {
                    let (place, answer) = answered.ok_or_else(nobody)?;
                    if let Some(candidate) = candidates.get_mut(place) {
                        candidate.answer = answer;
                    }
                }
                () = &mut late, if !is_late => is_late = true,
            }
        }
    }

    /// Asks a monitor, and counts the files on the nodes that are alive: the named ones, if the job names files.
    async fn answer_of(
        &self,
        replica: &ReplicaId,
        files: Option<(u64, &FilesByNode)>,
    ) -> MonitorAnswer {
        let calls = &self.archive.calls;
        let asking = calls.replicas.nodes_in_service(replica);
        let Ok(nodes) = calls.within_limit(LOOK, asking).await else {
            return MonitorAnswer::Failed;
        };
        let look: NodeSets = nodes.into_iter().collect();
        let Some((wanted, by_node)) = files else {
            return MonitorAnswer::Nodes {
                found: look.alive.len() as u64,
                is_whole: !look.alive.is_empty()
                    && look.silent.is_empty()
                    && look.unheard.is_empty(),
            };
        };
        let alive = by_node
            .iter()
            .filter(|(node, _)| look.alive.contains(*node));
        let found = alive.map(|(_, files)| *files).sum();
        MonitorAnswer::Nodes {
            found,
            is_whole: found >= wanted,
        }
    }

    /// Counts the files of a job on each node of each replica, according to the admin data.
    async fn files_by_node(
        &self,
        names: NameList,
        replicas: Vec<ReplicaId>,
    ) -> Result<FilesOfJob, Status> {
        let admin = self.archive.admin.clone();
        let standing = self.archive.standing.current_snapshot();
        let counted = with_tables(move || {
            let mut files = FilesOfJob {
                wanted: names.as_slice().len() as u64,
                replicas: vec![FilesByNode::new(); replicas.len()],
            };
            for name in names.as_slice() {
                let Some(row) = admin.file(name)? else {
                    continue;
                };
                for (replica, by_node) in replicas.iter().zip(&mut files.replicas) {
                    let copy = row.record.replicas.get(replica);
                    let copy = copy.filter(|copy| standing.copy_counts(replica, copy));
                    if let Some(node) = copy.and_then(|copy| copy.node.clone()) {
                        let count = by_node.entry(node).or_default();
                        *count = count.saturating_add(1);
                    }
                }
            }
            Ok(files)
        });
        Ok(counted.await?)
    }
}

/// The files that a job names, by their nodes.
struct FilesOfJob {
    /// The number of files that the job names.
    wanted: u64,
    /// The counts for each replica that was asked about.
    replicas: Vec<FilesByNode>,
}
