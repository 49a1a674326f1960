//! Peers that do not answer and callers that do not read: nobody else waits for them, and disks that fail end their
//! part.

use std::pin::pin;
use std::time::Duration;

use archive_client::{Access, FileRange, Ingest, StoreEvent};
use archive_db::{DbError, fault};
use archive_ledger::admin::{Admin, AdminError};
use bytes::Bytes;
use proto_archive::wire::access_client::AccessClient;
use proto_archive::wire::check_request::Kind;
use proto_archive::wire::ingest_client::IngestClient;
use proto_archive::wire::store_request::{Open, Step};
use proto_archive::wire::store_response::Step as Answer;
use proto_archive::wire::{CheckRequest, GetRequest, ListRequest, StoreRequest, StoreResponse};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

use super::preservation::{check, of};
use super::visits::{deposit, get, name, noise, store};
use super::wire::Wire;
use super::world::{
    CHECKSUMS, Cluster, LONG, MONITORS, NODES, REPOSITORY, eventually, on_a_cluster,
    on_a_cluster_with_threads,
};

/// Fewer than the callers that do not read.
const THREADS: usize = 16;

/// The number of callers that do not read.
const UNREAD: usize = 24;

/// The number of uploads that send next to nothing: more than a connection carries calls, and than there are threads.
const SLOW: usize = 300;

/// Those of one caller.
const SLOW_CALLS: usize = 100;

/// More files than fit into what is sent before anybody has to read.
const FILES: usize = 12_000;

/// More bytes than fit into what is sent before anybody has to read.
const LARGE: usize = 20 << 20;

/// The time that a part may take to end.
const LAST_CALL: Duration = Duration::from_mins(1);

/// The time that a user waits who is not kept waiting by somebody else.
const BRISK: Duration = Duration::from_secs(2);

/// Waits until a part has ended by itself, and says why it has.
async fn failure(cluster: &mut Cluster, part: &str) -> String {
    let daemon = cluster.running.remove(part).unwrap();
    let ended = timeout(LONG, daemon.tasks.join_tasks(LAST_CALL)).await;
    let error = ended.unwrap_or_else(|_| panic!("{part} has not ended after {LONG:?}"));
    let error: &dyn std::error::Error = &error.unwrap_err();
    let causes = std::iter::successors(Some(error), |error| error.source());
    let causes: Vec<String> = causes.map(ToString::to_string).collect();
    causes.join(": ")
}

/// Lets a background job of a part have its turn now, and waits until it has had it.
async fn turn(cluster: &Cluster, part: &str, worker: &str) {
    let before = cluster.steps(part, worker);
    cluster.running[part].workers.resume_worker(worker).unwrap();
    eventually(worker, LONG, async || {
        (cluster.steps(part, worker) > before).then_some(())
    })
    .await;
}

/// Puts rows into the admin data that are like that of a file which is there, under other names.
async fn multiply(cluster: &mut Cluster, of: &str, count: usize) {
    cluster.stop(REPOSITORY).await;
    let path = cluster.path("repository");
    // The tasks of the repository have ended; a call on a blocking thread may hold the table for a moment longer.
    let opened = eventually("the table is free", LONG, async || {
        match Admin::open(&path) {
            Err(AdminError::Database(busy @ DbError::Busy { .. })) => Err(busy.to_string()),
            opened => Ok(opened),
        }
    });
    let admin = opened.await.unwrap();
    let row = admin.file(&name(of)).unwrap().unwrap();
    let mut changes = admin.begin_changes();
    for number in 0..count {
        let mut row = row.clone();
        row.record.name = name(&format!("many-{number:06}.warc.gz"));
        admin.put_row(&mut changes, &row).unwrap();
    }
    admin.commit_changes(changes).unwrap();
    admin.write_stamp().unwrap();
    drop(admin);
    cluster.start(REPOSITORY).await;
    cluster.until_all_nodes_live().await;
}

/// Fails if a caller that does not read keeps a thread, or if what cannot wait shares its threads with such callers.
#[test]
fn unread_answers_do_not_stop_the_archive() {
    on_a_cluster_with_threads(THREADS, async |cluster: &mut Cluster| {
        let first = name("a.warc.gz");
        let bytes = noise(LARGE, 1);
        store(cluster, &first, &bytes).await.unwrap();
        multiply(cluster, "a.warc.gz", FILES).await;
        let mut lists: Vec<Streaming<_>> = Vec::new();
        let mut reads: Vec<Streaming<_>> = Vec::new();
        for number in 0..UNREAD {
            let caller = cluster.channel(&format!("reader/slow-{}", number / 8));
            let mut access = AccessClient::new(caller);
            let list = access.list(ListRequest::default()).await.unwrap();
            lists.push(list.into_inner());
            let wanted = GetRequest {
                name: first.to_string(),
                ..GetRequest::default()
            };
            reads.push(access.get(wanted).await.unwrap().into_inner());
        }
        let second = name("b.warc.gz");
        let stored = timeout(LONG, store(cluster, &second, &bytes)).await;
        stored.expect("a store is answered").unwrap();
        for part in [REPOSITORY, NODES[0]] {
            let worker = match part {
                REPOSITORY => "credentials/kb".to_owned(),
                _ => "credentials/one-1".to_owned(),
            };
            turn(cluster, part, &worker).await;
        }
        turn(cluster, NODES[0], "heartbeat/one-1").await;
        let mut count = 0;
        let mut one = lists.pop().unwrap();
        while let Some(answer) = one.message().await.unwrap() {
            count += answer.entries.len();
        }
        assert!(count > FILES, "who reads late gets all: {count}");
        drop((lists, reads));
    });
}

/// Begins to store a file, sends a byte of it, and keeps the rest.
async fn begin_upload(
    cluster: &Cluster,
    number: usize,
) -> (mpsc::Sender<StoreRequest>, Streaming<StoreResponse>) {
    let (steps, requests) = mpsc::channel(2);
    let open = Open {
        name: format!("slow-{number}"),
        size: 1 << 20,
        no_digest: true,
        ..Open::default()
    };
    let step = |step| StoreRequest { step: Some(step) };
    steps.send(step(Step::Open(open))).await.unwrap();
    let caller = cluster.channel(&format!("harvester/slow-{}", number / SLOW_CALLS));
    let mut ingest = IngestClient::new(caller);
    let stored = ingest.store(ReceiverStream::new(requests)).await;
    let mut answers = stored.unwrap().into_inner();
    let ready = answers.message().await.unwrap().unwrap();
    assert!(matches!(ready.step, Some(Answer::Ready(_))), "{ready:?}");
    let byte = Step::Data(Bytes::from_static(b"x"));
    steps.send(step(byte)).await.unwrap();
    (steps, answers)
}

/// Fails if a depositor that sends next to nothing keeps a thread or a place on a connection that others need.
#[test]
fn slow_uploads_do_not_stop_the_archive() {
    on_a_cluster_with_threads(THREADS, async |cluster: &mut Cluster| {
        let first = name("a.warc.gz");
        let bytes = noise(1 << 20, 1);
        store(cluster, &first, &bytes).await.unwrap();
        let mut uploads = Vec::new();
        for number in 0..SLOW {
            uploads.push(begin_upload(cluster, number).await);
        }
        let others = async {
            for number in 0..4 {
                let second = name(&format!("b-{number}.warc.gz"));
                store(cluster, &second, &bytes).await.unwrap();
                let (read, ended) = get(cluster, &FileRange::whole_file(second.clone())).await;
                ended.unwrap();
                assert_eq!(read, bytes);
                let names = CheckRequest {
                    names: vec![second.to_string()],
                    ..of(Kind::Checksums)
                };
                let checked = check(cluster, names).await.unwrap();
                assert_eq!(checked.found(), [""; 0]);
            }
            turn(cluster, NODES[0], "heartbeat/one-1").await;
        };
        timeout(LONG, others).await.expect("the others are served");
        drop(uploads);
    });
}

/// Puts a wire before the first node, and stores a file of which it has a copy.
async fn wire_before_node(cluster: &mut Cluster) -> Wire {
    let wire = Wire::to(&cluster.address(NODES[0])).await;
    cluster.stop(NODES[0]).await;
    cluster
        .endpoints
        .insert(NODES[0].to_owned(), wire.address());
    cluster.start(NODES[0]).await;
    cluster.until_all_nodes_live().await;
    let mut number = 0;
    eventually("the wire is used", LONG, async || {
        number += 1;
        let file = name(&format!("wire-{number}"));
        store(cluster, &file, b"x").await.ok()?;
        (wire.carried() > 0).then_some(())
    })
    .await;
    wire
}

/// Fails if a reader waits for a node that hangs while another replica has the bytes.
#[test]
fn hanging_node_delays_no_reader() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let wire = wire_before_node(cluster).await;
        let file = name("a.warc.gz");
        let bytes = noise(3 << 20, 2);
        store(cluster, &file, &bytes).await.unwrap();
        wire.hold();
        for number in 0..4 {
            let begun = Instant::now();
            let (read, ended) = get(cluster, &FileRange::whole_file(file.clone())).await;
            ended.unwrap();
            assert_eq!(read, bytes);
            let took = begun.elapsed();
            assert!(took < BRISK, "read {number} took {took:?}");
        }
        wire.release();
    });
}

/// Fails if `status` waits for one monitor after the other, or for one that hangs as long as its connection lives.
#[test]
fn hanging_monitor_delays_status_within_its_limit() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let mut wires = Vec::new();
        for monitor in MONITORS {
            let wire = Wire::to(&cluster.address(monitor)).await;
            let way = (REPOSITORY.to_owned(), monitor.to_owned());
            cluster.detours.insert(way, wire.address());
            wires.push(wire);
        }
        cluster.stop(REPOSITORY).await;
        cluster.start(REPOSITORY).await;
        cluster.until_all_nodes_live().await;
        for wire in &wires {
            wire.hold();
        }
        let begun = Instant::now();
        let status = cluster.reader().status().await.unwrap();
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(8), "{took:?}");
        let problems = status.replicas.iter().filter(|replica| {
            let problem = replica.problem.as_deref().unwrap_or_default();
            problem.contains("did not answer within")
        });
        assert_eq!(problems.count(), 2, "{status:?}");
    });
}

/// Fails if a part goes on and takes files that it cannot record, or ends without saying what to do.
async fn ends_at_a_failing_table(cluster: &mut Cluster, part: &str, data: &str) {
    let first = name(&format!("{part}-1.warc.gz"));
    let bytes = noise(1000, 3);
    let data = cluster.path(data);
    fault::fail_commits_below(&data);
    let depositor = cluster.depositor();
    let deposit = deposit(&first, &bytes);
    let ignore = |_: StoreEvent<'_>| {};
    let failure = {
        let mut storing = pin!(timeout(LONG, depositor.store(&deposit, &ignore)));
        let mut ending = pin!(failure(cluster, part));
        let mut is_over = false;
        loop {
            tokio::select! {
                failure = &mut ending => break failure,
                stored = &mut storing, if !is_over => {
                    assert!(!matches!(stored, Ok(Ok(_))), "acknowledged: {stored:?}");
                    is_over = true;
                }
            }
        }
    };
    assert!(failure.contains("Input/output error"), "{failure}");
    assert!(failure.contains("start this part again"), "{failure}");
    fault::allow_commits_below(&data);
    cluster.start(part).await;
    cluster.until_all_nodes_live().await;
    eventually("the store is good after the start", LONG, async || {
        store(cluster, &first, &bytes).await.ok()
    })
    .await;
}

/// Fails if a node goes on that answers and cannot store.
#[test]
fn node_whose_catalog_fails_ends() {
    on_a_cluster(async |cluster: &mut Cluster| {
        ends_at_a_failing_table(cluster, NODES[0], "one/node").await;
    });
}

/// Fails if a checksum replica goes on that answers and cannot record.
#[test]
fn checksum_replica_whose_table_fails_ends() {
    on_a_cluster(async |cluster: &mut Cluster| {
        ends_at_a_failing_table(cluster, CHECKSUMS, "three").await;
    });
}
