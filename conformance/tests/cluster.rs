//! The whole archive as its users see it, while its parts work, stop, come back and lose bits.

mod batch;
mod captures;
mod checksums;
mod contracts;
mod counts;
mod damage;
mod doors;
mod drain;
mod feed;
mod index_jobs;
mod ingest;
mod ledger;
mod lines;
mod patience;
mod people;
mod preservation;
mod roles;
mod salvage;
mod schedules;
mod visits;
mod volumes;
mod waits;
mod walks;
mod wire;
mod world;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use archive_client::{
    ClientError, Deposit, ErrorClass, FileRange, FileStatus, Ingest, ReplicaProgress, StoreEvent,
};
use archive_durable::directory;
use archive_model::{FileName, GROUP_SIZE, NodeId};
use archive_proof::{Envelope, ReadAt, Receipt};
use parking_lot::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, timeout};

use self::visits::{deposit, get, list, name, noise, root, store};
use self::world::{
    Cluster, LONG, MONITORS, NODES, REPOSITORY, eventually, flip, on_a_cluster,
    on_a_patient_cluster,
};

const SIZE: usize = 1024 * 1024 + 7;

const SOON: Duration = Duration::from_secs(15);

/// The listings: that of the archive, and that of each replica.
const EVERYWHERE: [Option<&str>; 4] = [None, Some("one"), Some("two"), Some("three")];

/// Returns the number of replicas that have a file.
fn completed(status: &FileStatus) -> usize {
    let is_there = |progress| progress == ReplicaProgress::UploadCompleted;
    let replicas = status.replicas.iter();
    replicas
        .filter(|replica| is_there(replica.progress))
        .count()
}

/// Fails if a receipt names a replica that cannot list and deliver the file, or if other bytes under the same name are
/// stored over it.
#[test]
fn stored_file_is_everywhere_and_never_replaced() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let name = name("a.warc.gz");
        let bytes = noise(SIZE, 1);
        let first = store(cluster, &name, &bytes).await.unwrap();
        assert!(!first.already);
        let envelope = Envelope::parse(first.envelope.as_bytes()).unwrap();
        let (receipt, admission) = Receipt::verify(&envelope, cluster.trust()).unwrap();
        assert_eq!(
            (admission.name, admission.root),
            (name.clone(), root(&bytes))
        );
        let holders: Vec<_> = receipt
            .replicas
            .iter()
            .map(|custody| (custody.replica.as_str(), custody.node.as_str()))
            .collect();
        assert_eq!(
            holders,
            [("one", "one-1"), ("three", "three-1"), ("two", "two-1")]
        );

        for replica in [None, Some("one"), Some("two")] {
            let wanted = FileRange {
                replica: replica.map(|id| id.parse().unwrap()),
                ..FileRange::whole_file(name.clone())
            };
            let (read, end) = get(cluster, &wanted).await;
            end.unwrap();
            assert!(read == bytes, "{replica:?}");
        }
        for replica in EVERYWHERE {
            let (entries, end) = list(&cluster.reader(), replica).await.unwrap();
            let said: Vec<_> = entries
                .iter()
                .map(|entry| (&entry.name, entry.size, entry.root))
                .collect();
            assert_eq!(said, [(&name, SIZE as u64, Some(root(&bytes)))]);
            assert_eq!(end.gaps, [], "{replica:?}");
        }

        let again = timeout(SOON, store(cluster, &name, &bytes)).await;
        let again = again
            .expect("what is there already is said at once")
            .unwrap();
        assert!(again.already);
        assert_eq!(again.admission, first.admission);

        let other = store(cluster, &name, &noise(SIZE, 2)).await.unwrap_err();
        assert!(matches!(other, ClientError::Exists(_)), "{other}");
        assert_eq!(other.class(), ErrorClass::Refused);
        let (read, _) = get(cluster, &FileRange::whole_file(name)).await;
        assert!(read == bytes);
    });
}

/// Fails if a store is acknowledged without a required node, if the files of that node are then listed as missing, or
/// if its copy is not made unasked when the node is back.
#[test]
fn absent_node_is_named_and_later_made_good() {
    on_a_patient_cluster(async |cluster: &mut Cluster| {
        let before = name("before");
        let during = name("during");
        let bytes = noise(SIZE, 3);
        store(cluster, &before, &bytes).await.unwrap();
        cluster.stop(NODES[1]).await;

        let error = store(cluster, &during, &bytes).await.unwrap_err();
        let said = error.to_string();
        assert!(matches!(error, ClientError::NotEnoughReplicas(_)), "{said}");
        let (_, reasons) = said.split_once(": ").unwrap();
        assert!(reasons.contains("two"), "{said}");
        assert!(
            !reasons.contains("one:")
                && !reasons.contains("three:")
                && reasons.len() > "two: ".len(),
            "{said}"
        );
        for name in [&before, &during] {
            let (read, end) = get(cluster, &FileRange::whole_file(name.clone())).await;
            end.unwrap();
            assert!(read == bytes, "{name}");
        }

        let reader = cluster.reader();
        let (entries, end) = list(&reader, Some("two")).await.unwrap();
        let silent: Vec<_> = end
            .gaps
            .iter()
            .filter_map(|gap| gap.node.as_ref())
            .map(NodeId::as_str)
            .collect();
        assert_eq!(silent, ["two-1"], "{end:?}");
        let is_missing = |entry: &archive_client::ListEntry| {
            let found = entry.found.as_ref();
            found.is_none_or(archive_model::FileCopy::is_missing)
        };
        assert!(!entries.iter().any(is_missing), "{entries:?}");
        let (_, end) = list(&reader, Some("one")).await.unwrap();
        assert_eq!((end.count, end.gaps), (2, vec![]));

        cluster.start(NODES[1]).await;
        cluster.until_all_nodes_live().await;
        let depositor = cluster.depositor();
        let what = "in all, unasked";
        let stored = cluster.eventually_retried(what, async || {
            let status = depositor.stat(&during).await.unwrap();
            (completed(&status) == 3).then_some(()).ok_or(status)
        });
        stored.await;
        let again = store(cluster, &during, &bytes).await.unwrap();
        assert_eq!(again.receipt.replicas.len(), 3);
    });
}

/// Fails if a depositor who stores a file again has to wait out the pause that the repository makes between its own
/// attempts.
#[test]
fn repeated_store_does_not_wait_for_the_pause() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let name = name("a");
        let bytes = noise(SIZE, 4);
        cluster.stop(NODES[1]).await;
        store(cluster, &name, &bytes).await.unwrap_err();
        cluster.start(NODES[1]).await;
        cluster.until_all_nodes_live().await;
        let begin = Instant::now();
        let stored = store(cluster, &name, &bytes).await.unwrap();
        assert_eq!(stored.receipt.replicas.len(), 3);
        assert!(
            begin.elapsed() < Duration::from_secs(30),
            "{:?}",
            begin.elapsed()
        );
    });
}

/// Fails if a reader gets a damaged byte, if two copies with damage in different groups do not make a whole one, or if
/// a lost group takes the bytes around it along.
#[test]
fn flipped_bits_are_harmless_unless_in_both_copies() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let name = name("a");
        let bytes = noise(SIZE, 5);
        store(cluster, &name, &bytes).await.unwrap();
        let whole = FileRange::whole_file(name.clone());
        let here = 10 * GROUP_SIZE;
        let there = 40 * GROUP_SIZE;

        flip(&cluster.copy("one", &name), here + 3);
        let (read, end) = get(cluster, &whole).await;
        end.unwrap();
        assert!(read == bytes, "damaged in one copy");

        flip(&cluster.copy("two", &name), there);
        let (read, end) = get(cluster, &whole).await;
        end.unwrap();
        assert!(read == bytes, "damaged in both, in different groups");

        flip(&cluster.copy("two", &name), here + GROUP_SIZE - 1);
        let (read, end) = get(cluster, &whole).await;
        let error = end.unwrap_err();
        assert!(matches!(error, ClientError::Damaged(_)), "{error}");
        assert_eq!(error.class(), ErrorClass::Failed);
        let exact = format!("bytes {here}-{} ", here + GROUP_SIZE - 1);
        assert!(error.to_string().contains(&exact), "{error}");
        let from = usize::try_from(here).unwrap();
        let to = usize::try_from(here + GROUP_SIZE).unwrap();
        assert!(read == bytes[..from], "{} bytes came first", read.len());

        let before = FileRange {
            end: Some(here),
            ..whole.clone()
        };
        let (read, end) = get(cluster, &before).await;
        end.unwrap();
        assert!(read == bytes[..from]);
        let after = FileRange {
            start: here + GROUP_SIZE,
            ..whole
        };
        let (read, end) = get(cluster, &after).await;
        end.unwrap();
        assert!(read == bytes[to..], "what lies after the damage");
    });
}

/// Fails if a monitor that has just started, and knows none of its nodes yet, gives a listing without their files and
/// calls it complete.
#[test]
fn monitor_restart_never_makes_a_file_disappear() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let names: Vec<FileName> = (0..5).map(|n| name(&format!("f-{n}"))).collect();
        for name in &names {
            store(cluster, name, &noise(1000, 6)).await.unwrap();
        }
        let reader = cluster.reader();
        // Whether the listing says that it is complete; then it has to be.
        let complete = async || match list(&reader, Some("one")).await {
            Err(error) => {
                assert!(error.is_passing(), "{error}");
                false
            }
            Ok((_, end)) if !end.gaps.is_empty() => false,
            Ok((entries, _)) => {
                let listed: Vec<_> = entries.into_iter().map(|entry| entry.name).collect();
                assert_eq!(listed, names, "short, and says that it is complete");
                true
            }
        };
        assert!(complete().await);
        cluster.stop(MONITORS[0]).await;
        assert!(!complete().await, "nobody was there to ask");
        cluster.start(MONITORS[0]).await;
        let begin = Instant::now();
        let mut asked = 0;
        while !complete().await {
            asked += 1;
            assert!(begin.elapsed() < SOON, "asked {asked} times");
        }
        assert!(complete().await);
    });
}

/// A source that waits in its middle, once, until it may go on.
struct PausingSource {
    bytes: Vec<u8>,
    has_waited: AtomicBool,
    reached: UnboundedSender<()>,
    go_on: Mutex<mpsc::Receiver<()>>,
}

/// Returns a deposit of `bytes` that waits in its middle, with the end that hears of it and the end that says go on.
fn waiting(name: &FileName, bytes: &[u8]) -> (Deposit, UnboundedReceiver<()>, mpsc::Sender<()>) {
    let (reached, is_reached) = unbounded_channel();
    let (go, go_on) = mpsc::channel();
    let source = PausingSource {
        bytes: bytes.to_vec(),
        has_waited: AtomicBool::new(false),
        reached,
        go_on: Mutex::new(go_on),
    };
    let deposit = Deposit {
        source: Arc::new(source),
        ..deposit(name, bytes)
    };
    (deposit, is_reached, go)
}

impl ReadAt for PausingSource {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let is_middle = offset >= self.bytes.len() as u64 / 2;
        if is_middle && !self.has_waited.swap(true, Ordering::Relaxed) {
            self.reached.send(()).map_err(io::Error::other)?;
            let go_on = self.go_on.lock();
            go_on.recv().map_err(io::Error::other)?;
        }
        self.bytes.read_at(offset, buffer)
    }
}

/// Every listing has this file and nothing else, it reads right, and nothing is left of other attempts.
async fn assert_only(cluster: &Cluster, name: &FileName, bytes: &[u8]) {
    for replica in EVERYWHERE {
        let (entries, end) = list(&cluster.reader(), replica).await.unwrap();
        let said: Vec<_> = entries
            .iter()
            .map(|entry| (&entry.name, entry.root))
            .collect();
        assert_eq!(said, [(name, Some(root(bytes)))], "{replica:?}");
        assert_eq!(end.gaps, []);
    }
    let (read, end) = get(cluster, &FileRange::whole_file(name.clone())).await;
    end.unwrap();
    assert!(read == bytes);
    // What was refused is forgotten soon.
    eventually("nothing is left", LONG, async || {
        let left = |replica| directory::list_directory(&cluster.incoming(replica)).unwrap();
        let left = ["one", "two"].map(left);
        left.iter().all(Vec::is_empty).then_some(()).ok_or(left)
    })
    .await;
}

/// Fails if a client gives up a store because the repository restarts in its middle, or if the broken stream leaves
/// bytes behind.
#[test]
fn store_survives_restart_of_the_repository() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let name = name("a");
        let bytes = noise(16 * SIZE, 7);
        let (deposit, mut is_reached, go) = waiting(&name, &bytes);
        let failed = Mutex::new(0);
        let watch = |event: StoreEvent<'_>| match event {
            StoreEvent::Retrying { .. } => *failed.lock() += 1,
            StoreEvent::Sent(_) => {}
        };
        let depositor = cluster.depositor();
        let restarting = async {
            is_reached.recv().await.unwrap();
            cluster.stop(REPOSITORY).await;
            cluster.start(REPOSITORY).await;
            go.send(()).unwrap();
        };
        let (stored, ()) = tokio::join!(depositor.store(&deposit, &watch), restarting);
        assert_eq!(stored.unwrap().admission.root, root(&bytes));
        assert!(failed.into_inner() > 0, "nothing was cut");
        assert_only(cluster, &name, &bytes).await;
    });
}

/// Fails if a file whose depositor gave up is listed or can be read, or if its name cannot be stored afterwards.
#[test]
fn abandoned_store_shows_nothing_and_can_be_repeated() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let name = name("a");
        let bytes = noise(16 * SIZE, 8);
        let (deposit, mut is_reached, go) = waiting(&name, &bytes);
        let depositor = cluster.depositor();
        let ignore = |_: StoreEvent<'_>| {};
        tokio::select! {
            ended = depositor.store(&deposit, &ignore) => panic!("not given up: {ended:?}"),
            reached = is_reached.recv() => reached.unwrap(),
        }
        drop(go);
        for replica in EVERYWHERE {
            let (entries, _) = list(&cluster.reader(), replica).await.unwrap();
            assert_eq!(entries, [], "{replica:?}");
        }
        let (read, end) = get(cluster, &FileRange::whole_file(name.clone())).await;
        let error = end.unwrap_err();
        assert!(matches!(error, ClientError::NotFound(_)), "{error}");
        assert!(read.is_empty());
        store(cluster, &name, &bytes).await.unwrap();
        assert_only(cluster, &name, &bytes).await;
    });
}
