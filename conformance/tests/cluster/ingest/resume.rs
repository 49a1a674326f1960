//! Streams that are cut anywhere: they go on where every replica stands, and with the same bytes only.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use archive_client::{Deposit, FileRange, Ingest, StoreEvent};
use archive_durable::directory;
use archive_proof::ReadAt;
use proto_archive::wire::StoreRequest;
use proto_archive::wire::ingest_client::IngestClient;
use proto_archive::wire::store_request::{Open, Step};
use proto_archive::wire::store_response::Step as Answer;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::super::SIZE;
use super::super::visits::{deposit, get, name, noise, root, store};
use super::super::wire::Wire;
use super::super::world::{
    CHECKSUMS, Cluster, LONG, NODES, REPOSITORY, eventually, flip, on_a_cluster,
};
use super::open;

/// A source that counts the bytes that are read of it.
struct CountingSource {
    bytes: Vec<u8>,
    read: Arc<AtomicU64>,
}

impl ReadAt for CountingSource {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.bytes.read_at(offset, buffer)?;
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// Fails if a store whose connection was cut begins at the first byte again, resumes at a wrong offset, or leaves its
/// first part behind.
#[test]
fn cut_stream_resumes_where_it_stopped() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let wire = Wire::to(&cluster.address(REPOSITORY)).await;
        let depositor = cluster.depositor_at(&wire.address(), "harvester/h-1");
        let size = 40 * SIZE;
        let ignore = |_: StoreEvent<'_>| {};
        for (number, cut) in [1, 3, 11, 27, 39].into_iter().enumerate() {
            let bytes = noise(size, 40 + number as u64);
            let name = name(&format!("cut-{cut}"));
            let read = Arc::new(AtomicU64::new(0));
            let deposit = Deposit {
                source: Arc::new(CountingSource {
                    bytes: bytes.clone(),
                    read: Arc::clone(&read),
                }),
                ..deposit(&name, &bytes)
            };
            wire.cut_after(cut * i64::try_from(SIZE).unwrap());
            let before = wire.carried();
            let stored = depositor.store(&deposit, &ignore).await.unwrap();
            assert_eq!(stored.admission.root, root(&bytes), "cut at {cut}");
            assert_eq!(stored.receipt.replicas.len(), 3);
            // What was under way when it was cut, and no more, is sent again.
            let carried = wire.carried() - before;
            let read = read.load(Ordering::Relaxed);
            let most = (size + (12 << 20)) as u64;
            assert!(
                carried < most && read < most,
                "cut at {cut}: {carried}, {read}"
            );
            let (back, end) = get(cluster, &FileRange::whole_file(name)).await;
            end.unwrap();
            assert!(back == bytes, "cut at {cut}");
        }
        for replica in ["one", "two"] {
            let left = directory::list_directory(&cluster.incoming(replica)).unwrap();
            assert!(left.is_empty(), "{replica}: {left:?}");
        }
    });
}

/// Sends that number of bytes, breaks off, and waits until everybody has noticed.
async fn break_off(cluster: &Cluster, open: Open, bytes: &[u8]) {
    let (steps, requests) = mpsc::channel(2);
    let say = |step| StoreRequest { step: Some(step) };
    steps.send(say(Step::Open(open))).await.unwrap();
    let mut client = IngestClient::new(cluster.channel("harvester/h-1"));
    let answers = client.store(ReceiverStream::new(requests)).await.unwrap();
    let mut answers = answers.into_inner();
    let first = answers.message().await.unwrap().unwrap().step;
    assert!(matches!(first, Some(Answer::Ready(_))), "{first:?}");
    for piece in bytes.chunks(256 * 1024) {
        steps
            .send(say(Step::Data(piece.to_vec().into())))
            .await
            .unwrap();
    }
    eventually("the nodes have most of it", LONG, async || {
        let most = bytes.len() as u64 - (4 << 20);
        let there = ["one", "two"].iter().all(|replica| {
            let found = directory::list_directory(&cluster.incoming(replica)).unwrap();
            let path = |name| cluster.incoming(replica).join(name);
            let longest = found.into_iter().map(|entry| path(entry.name));
            longest
                .into_iter()
                .any(|path| std::fs::metadata(path).is_ok_and(|found| found.len() >= most))
        });
        there.then_some(())
    })
    .await;
}

/// A node that still ends the stream before is not waited for by the others; once it is there, it has nothing.
async fn from_the_beginning(cluster: &Cluster, why: &str, open: &Open) {
    eventually(why, LONG, async || match offset(cluster, open).await {
        0 => Ok(()),
        offset => Err(offset),
    })
    .await;
}

/// Opens a store: where it is to go on.
async fn offset(cluster: &Cluster, open: &Open) -> u64 {
    eventually("it is ready", LONG, async || {
        let (steps, requests) = mpsc::channel(2);
        let step = Some(Step::Open(open.clone()));
        steps.send(StoreRequest { step }).await.unwrap();
        let mut client = IngestClient::new(cluster.channel("harvester/h-1"));
        let answers = client.store(ReceiverStream::new(requests)).await;
        let message = answers.ok()?.into_inner().message().await.ok()??;
        match message.step {
            Some(Answer::Ready(ready)) => Some(ready.offset),
            _ => None,
        }
    })
    .await
}

/// Fails if a store resumes behind bytes that were sent without a strong digest, or that differ from those which it has
/// announced.
#[test]
fn no_other_bytes_sneak_in_before_the_offset() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let bytes = noise(16 * SIZE, 50);
        let other = noise(16 * SIZE, 51);
        let half = 8 * SIZE;
        // Who announces no strong digest is never taken for the one who broke off.
        let nameless = Open {
            blake3: Vec::new().into(),
            no_digest: true,
            ..open("a", &bytes)
        };
        break_off(cluster, nameless.clone(), &other[..half]).await;
        assert_eq!(offset(cluster, &nameless).await, 0);
        assert_eq!(offset(cluster, &open("a", &bytes)).await, 0);
        store(cluster, &name("a"), &bytes).await.unwrap();

        // Who announces one content and sends another spoils its own stream, and nobody else's.
        break_off(cluster, open("b", &bytes), &other[..half]).await;
        let stored = store(cluster, &name("b"), &bytes).await.unwrap();
        assert_eq!(stored.admission.root, root(&bytes));
        for file in ["a", "b"] {
            let (read, end) = get(cluster, &FileRange::whole_file(name(file))).await;
            end.unwrap();
            assert!(read == bytes, "{file}");
        }
    });
}

/// Fails if a store resumes behind bytes that one replica has lost in a restart, by a deletion or by a flipped bit.
#[test]
fn bytes_lost_by_replica_are_sent_again() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let bytes = noise(24 * SIZE, 52);
        let begun = |file: &str| open(file, &bytes);
        let half = &bytes[..12 * SIZE];

        break_off(cluster, begun("a"), half).await;
        let offset_a = offset(cluster, &begun("a")).await;
        assert!(offset_a >= 6 << 20 && offset_a % 16_384 == 0, "{offset_a}");
        store(cluster, &name("a"), &bytes).await.unwrap();

        for (file, restarted, is_kept) in [
            ("b", NODES[0], true),
            ("c", CHECKSUMS, false),
            ("d", REPOSITORY, false),
        ] {
            break_off(cluster, begun(file), half).await;
            cluster.stop(restarted).await;
            cluster.start(restarted).await;
            cluster.until_all_nodes_live().await;
            let offset = offset(cluster, &begun(file)).await;
            assert_eq!(offset > 0, is_kept, "{restarted} restarted: {offset}");
            store(cluster, &name(file), &bytes).await.unwrap();
        }

        break_off(cluster, begun("e"), half).await;
        let incoming = cluster.incoming("two");
        for entry in directory::list_directory(&incoming).unwrap() {
            directory::remove_name(&incoming.join(entry.name)).unwrap();
        }
        from_the_beginning(cluster, "a stage was lost", &begun("e")).await;

        break_off(cluster, begun("f"), half).await;
        for entry in directory::list_directory(&incoming).unwrap() {
            let path = incoming.join(entry.name);
            let length = std::fs::metadata(&path).unwrap().len();
            if length > 3 << 20 {
                flip(&path, 1 << 20);
            }
        }
        from_the_beginning(cluster, "a stage has rotted", &begun("f")).await;
        for file in ["e", "f"] {
            store(cluster, &name(file), &bytes).await.unwrap();
        }
        for file in ["a", "b", "c", "d", "e", "f"] {
            for replica in ["one", "two"] {
                let path = cluster.copy(replica, &name(file));
                assert!(std::fs::read(path).unwrap() == bytes, "{file} in {replica}");
            }
        }
    });
}
