//! The feed of a whole archive: live, after restarts, and when people take files away, restore them or decide anew.

use std::collections::{BTreeMap, BTreeSet};

use archive_client::{Access, ArchiveSteps, ClientError, FeedStep, Ingest, StoreEvent};
use archive_daemon::Clock;
use archive_model::{ChangeKind, FeedChange, FeedPosition, FileName};
use archive_repository::restore::from_replicas;
use proto_archive::wire::ask_request::{Act, NewRoot, ReinstateCopy, Remove};
use proto_archive::wire::request_state::State as RequestStage;
use proto_archive::wire::{AtticsRef, AtticsRequest};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::people::{approve, ask, people};
use super::visits::{deposit, name, noise, root, store};
use super::world::{Cluster, LONG, NODES, REPOSITORY, eventually, flip, on_a_cluster};

/// A follower of the feed, with the files and changes that it has heard of.
struct Follower {
    steps: ArchiveSteps<FeedStep>,
    position: Option<FeedPosition>,
    /// Whether a listing has come.
    is_listed: bool,
    standing: BTreeSet<FileName>,
    changes: Vec<FeedChange>,
}

async fn follow(cluster: &Cluster, after: Option<FeedPosition>) -> Follower {
    let index = cluster.reader_as("index/i-1");
    Follower {
        steps: index.changes(after.as_ref()).await.unwrap(),
        position: after,
        is_listed: false,
        standing: BTreeSet::new(),
        changes: Vec::new(),
    }
}

impl Follower {
    async fn catch_up(&mut self) -> Result<FeedPosition, ClientError> {
        loop {
            let step = timeout(LONG, self.steps.next()).await;
            match step.unwrap()?.unwrap() {
                FeedStep::Listing => self.standing.clear(),
                FeedStep::File(file) => {
                    self.standing.insert(file.name);
                }
                FeedStep::Listed(position) => {
                    self.is_listed = true;
                    self.position = Some(position);
                }
                FeedStep::Change(change) => {
                    self.position = Some(change.position);
                    match change.kind {
                        ChangeKind::Withdrawn => self.standing.remove(&change.file.name),
                        ChangeKind::Stored | ChangeKind::Restored | ChangeKind::NewRoot => {
                            self.standing.insert(change.file.name.clone())
                        }
                    };
                    self.changes.push(change);
                }
                FeedStep::CaughtUp(position) => {
                    assert_eq!(self.position, Some(position));
                    return Ok(position);
                }
            }
        }
    }

    /// Returns the next change, whenever it comes.
    async fn next(&mut self) -> FeedChange {
        let count = self.changes.len();
        while self.changes.len() == count {
            self.catch_up().await.unwrap();
        }
        assert_eq!(self.changes.len(), count + 1, "{:?}", self.changes);
        self.changes[count].clone()
    }
}

/// Returns the position behind the newest change.
async fn newest(cluster: &Cluster) -> FeedPosition {
    follow(cluster, None).await.catch_up().await.unwrap()
}

async fn decide(cluster: &Cluster, act: Act) {
    let asked = ask(cluster, "custodian/anna", act, "a court order").await;
    let id = asked.unwrap().id;
    let ended = approve(cluster, "custodian/bert", &id).await.unwrap();
    assert_eq!(ended.state(), RequestStage::Done, "{ended:?}");
}

pub(super) async fn remove(cluster: &Cluster, name: &FileName, replica: &str, bytes: &[u8]) {
    let remove = Act::Remove(Remove {
        name: name.to_string(),
        replica: replica.to_owned(),
        checksum: root(bytes).as_bytes().to_vec().into(),
        last_copies: true,
    });
    decide(cluster, remove).await;
}

/// Has a replica keep a removed file again.
pub(super) async fn reinstate(cluster: &Cluster, name: &FileName, replica: &str) {
    let act = Act::ReinstateCopy(ReinstateCopy {
        name: name.to_string(),
        replica: replica.to_owned(),
    });
    decide(cluster, act).await;
}

/// Puts back what was removed, and lies in the attic of a replica.
pub(super) async fn restore(cluster: &Cluster, of: &str) {
    let mut olga = people(cluster, "officer/olga");
    let attics = olga.attics(AtticsRequest::default()).await;
    let mut attics = attics.unwrap().into_inner();
    while let Some(message) = attics.message().await.unwrap() {
        for entry in message
            .items
            .into_iter()
            .filter(|entry| entry.replica == of)
        {
            let item = entry.item.unwrap();
            reinstate(cluster, &name(&item.name), of).await;
            let back = AtticsRef {
                replica: entry.replica,
                node: item.node,
                volume: item.volume,
                id: item.id,
                reason: "the court has changed its mind".to_owned(),
                ..AtticsRef::default()
            };
            olga.clone().restore(back).await.unwrap();
        }
    }
}

/// Fails if a file is told before it is in every required replica, twice, or not at all after a restart.
#[test]
fn feed_names_file_when_required_replicas_have_it() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let mut index = follow(cluster, None).await;
        index.catch_up().await.unwrap();
        assert!(index.is_listed && index.standing.is_empty());
        cluster.stop(NODES[1]).await;
        let late = name("late");
        let bytes = noise(20_000, 61);
        store(cluster, &late, &bytes).await.unwrap_err();
        assert_eq!(newest(cluster).await.number, 0, "no receipt");
        cluster.start(NODES[1]).await;
        cluster.until_all_nodes_live().await;
        store(cluster, &late, &bytes).await.unwrap();
        let told = index.next().await;
        assert_eq!((told.kind, &told.file.name), (ChangeKind::Stored, &late));
        assert_eq!(
            (told.file.root, told.file.size),
            (root(&bytes), bytes.len() as u64)
        );

        cluster.stop(REPOSITORY).await;
        let cut = loop {
            if let Err(error) = index.catch_up().await {
                break error;
            }
        };
        assert!(cut.is_passing(), "{cut}");
        cluster.start(REPOSITORY).await;
        cluster.until_all_nodes_live().await;
        store(cluster, &name("after"), &bytes).await.unwrap();
        let mut again = follow(cluster, index.position).await;
        again.catch_up().await.unwrap();
        assert!(!again.is_listed, "the position is known");
        let names: Vec<_> = again
            .changes
            .iter()
            .map(|change| &change.file.name)
            .collect();
        assert_eq!(names, [&name("after")]);
    });
}

/// Fails if an index keeps what a court has taken away, or does not hear that it may have it again.
#[test]
fn withdrawal_and_restoration_are_in_the_feed() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let name = name("a");
        let bytes = noise(100_000, 62);
        store(cluster, &name, &bytes).await.unwrap();
        let mut index = follow(cluster, None).await;
        let begin = index.catch_up().await.unwrap();
        remove(cluster, &name, "one", &bytes).await;
        assert_eq!(newest(cluster).await, begin, "two still has it");
        remove(cluster, &name, "two", &bytes).await;
        let told = index.next().await;
        assert_eq!((told.kind, &told.file.name), (ChangeKind::Withdrawn, &name));
        let mut newcomer = follow(cluster, None).await;
        newcomer.catch_up().await.unwrap();
        assert!(newcomer.standing.is_empty(), "{:?}", newcomer.standing);

        restore(cluster, "one").await;
        let told = index.next().await;
        assert_eq!(told.kind, ChangeKind::Restored);
        assert_eq!(told.file.root, root(&bytes));
        reinstate(cluster, &name, "two").await;
        let bytes_are_there = || cluster.copy("two", &name).try_exists().unwrap();
        eventually("two has it too", LONG, async || {
            bytes_are_there().then_some(()).ok_or("not yet")
        })
        .await;
        assert_eq!(newest(cluster).await, told.position, "it stood already");
        assert!(index.standing.contains(&name));
    });
}

/// Fails if an index is not told that a name means other content.
#[test]
fn new_root_is_told() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let name = name("a");
        let mut bytes = noise(100_000, 63);
        store(cluster, &name, &bytes).await.unwrap();
        let mut index = follow(cluster, None).await;
        index.catch_up().await.unwrap();
        for replica in ["one", "two"] {
            flip(&cluster.copy(replica, &name), 50_000);
        }
        bytes[50_000] ^= 1;
        let act = Act::NewRoot(NewRoot {
            name: name.to_string(),
            replica: "one".to_owned(),
            root: root(&bytes).as_bytes().to_vec().into(),
        });
        decide(cluster, act).await;
        let told = index.next().await;
        assert_eq!(told.kind, ChangeKind::NewRoot);
        assert_eq!((told.file.name, told.file.root), (name, root(&bytes)));
    });
}

/// Fails if an index that followed lost admin data goes on as if nothing had happened, or if it misses a file.
#[test]
fn restored_archive_begins_with_a_listing() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let bytes = noise(10_000, 64);
        let kept: Vec<_> = ["a", "b", "c"].map(name).into();
        for name in &kept {
            store(cluster, name, &bytes).await.unwrap();
        }
        let mut index = follow(cluster, None).await;
        let begin = index.catch_up().await.unwrap();
        store(cluster, &name("d"), &bytes).await.unwrap();
        let position = index.next().await.position;
        remove(cluster, &kept[1], "one", &bytes).await;
        remove(cluster, &kept[1], "two", &bytes).await;
        cluster.stop(REPOSITORY).await;
        for lost in ["admin", "audit"] {
            std::fs::remove_dir_all(cluster.path("repository").join(lost)).unwrap();
        }
        let settings = toml::from_str(&cluster.settings(REPOSITORY)).unwrap();
        from_replicas(&settings, false, Clock::system_clock())
            .await
            .unwrap();
        cluster.start(REPOSITORY).await;
        cluster.until_all_nodes_live().await;
        for before in [begin, position] {
            let mut again = follow(cluster, Some(before)).await;
            again.catch_up().await.unwrap();
            assert!(again.is_listed, "{before} is of the lost feed");
            let standing: Vec<_> = again.standing.iter().map(FileName::as_str).collect();
            assert_eq!(standing, ["a", "c", "d"]);
        }
        let mut again = follow(cluster, Some(position)).await;
        again.catch_up().await.unwrap();
        store(cluster, &name("e"), &bytes).await.unwrap();
        assert_eq!(again.next().await.file.name, name("e"));
    });
}

/// Fails if concurrent stores leave a hole, tell a file twice, or if two followers hear them in different orders.
#[test]
fn concurrent_stores_are_told_without_holes() {
    const EACH: usize = 8;
    on_a_cluster(async |cluster: &mut Cluster| {
        let mut first = follow(cluster, None).await;
        let begin = first.catch_up().await.unwrap();
        let storing = (0..4).map(|depositor| {
            let depositor_door = cluster.depositor();
            async move {
                for number in 0..EACH {
                    let name = name(&format!("f-{depositor}-{number}"));
                    let bytes = noise(5000, (depositor * EACH + number) as u64);
                    let ignore = |_: StoreEvent<'_>| {};
                    let deposit = deposit(&name, &bytes);
                    depositor_door.store(&deposit, &ignore).await.unwrap();
                }
            }
        });
        let mut tasks: JoinSet<()> = storing.collect();
        while first.changes.len() < 4 * EACH {
            first.catch_up().await.unwrap();
        }
        while let Some(ended) = tasks.join_next().await {
            ended.unwrap();
        }
        let numbers = first.changes.iter().map(|change| change.position.number);
        assert!(numbers.eq(begin.number + 1..=begin.number + 4 * EACH as u64));
        let names: BTreeMap<_, _> = first
            .changes
            .iter()
            .map(|change| (change.file.name.clone(), change.file.root))
            .collect();
        assert_eq!(names.len(), 4 * EACH);
        let mut second = follow(cluster, Some(begin)).await;
        second.catch_up().await.unwrap();
        assert_eq!(second.changes, first.changes);
    });
}
