//! A name whose store was refused, or whose stream was cut, is stored at once: a depositor that comes again need not
//! wait until the nodes have seen the end of what was before.

use std::sync::Arc;

use archive_client::{ClientError, Deposit, Ingest, StoreEvent};
use conformance::contract::ingest::CutSource;
use proto_archive::wire::StoreRequest;
use proto_archive::wire::ingest_client::IngestClient;
use proto_archive::wire::store_request::Step;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::super::SIZE;
use super::super::visits::{deposit, name, noise, root};
use super::super::world::{Cluster, on_a_cluster};
use super::open;

/// In a row, of each kind.
const TIMES: u64 = 200;

/// Returns the bytes of a deposit. Every tenth deposit has more bytes than one point to go on from.
fn bytes_of(time: u64) -> Vec<u8> {
    noise(if time.is_multiple_of(10) { SIZE } else { 3000 }, time)
}

/// Stores `bad`, which fails as it should, and then what it should have been.
async fn again(cluster: &Cluster, time: u64, bad: impl Fn(&Deposit) -> Deposit) -> ClientError {
    let name = name(&format!("again-{time}"));
    let bytes = bytes_of(time);
    let depositor = cluster.depositor();
    let ignore = |_: StoreEvent<'_>| {};
    let good = deposit(&name, &bytes);
    let error = depositor.store(&bad(&good), &ignore).await.unwrap_err();
    let stored = depositor.store(&good, &ignore).await;
    let stored = stored.map_err(|why| format!("{time}: {error}; and then: {why}"));
    let stored = stored.unwrap();
    assert_eq!(stored.admission.root, root(&bytes), "{time}");
    assert_eq!(stored.receipt.replicas.len(), 3, "{time}");
    error
}

/// Fails if the nodes still hold what they refused when the depositor sends the right bytes at once, and refuse these
/// too.
#[test]
fn refused_name_can_be_stored_at_once() {
    on_a_cluster(async |cluster: &mut Cluster| {
        for time in 0..TIMES {
            let wrong = |good: &Deposit| {
                let mut bad = good.clone();
                bad.announced.blake3 = Some(root(b"other bytes"));
                bad
            };
            let error = again(cluster, time, wrong).await;
            assert!(matches!(error, ClientError::Mismatch(_)), "{time}: {error}");
        }
    });
}

/// Fails if a stream that its client has cut still holds the name when the same client stores the file at once.
#[test]
fn name_of_cut_stream_can_be_stored() {
    on_a_cluster(async |cluster: &mut Cluster| {
        for time in 0..TIMES {
            let cut = |good: &Deposit| {
                let bytes = bytes_of(time);
                let (half, _) = bytes.split_at(bytes.len() / 2);
                Deposit {
                    source: Arc::new(CutSource(half.to_vec())),
                    ..good.clone()
                }
            };
            let error = again(cluster, time, cut).await;
            let is_it = matches!(error, ClientError::Source { .. });
            assert!(is_it, "{time}: {error}");
        }
    });
}

/// Fails if a depositor who vanished holds the name until the repository has seen that the connection ended.
#[test]
fn name_of_vanished_depositor_can_be_stored() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let depositor = cluster.depositor();
        for time in 0..TIMES {
            let name = name(&format!("vanished-{time}"));
            let bytes = bytes_of(time);
            let (steps, requests) = mpsc::channel(2);
            let say = |step| StoreRequest { step: Some(step) };
            let opening = Step::Open(open(name.as_str(), &bytes));
            steps.send(say(opening)).await.unwrap();
            let mut client = IngestClient::new(cluster.channel("harvester/h-1"));
            let answers = client.store(ReceiverStream::new(requests)).await.unwrap();
            let mut answers = answers.into_inner();
            answers.message().await.unwrap().unwrap();
            let (half, _) = bytes.split_at(bytes.len() / 2);
            let half = Step::Data(half.to_vec().into());
            steps.send(say(half)).await.unwrap();
            drop((steps, answers, client));
            let ignore = |_: StoreEvent<'_>| {};
            let stored = depositor.store(&deposit(&name, &bytes), &ignore).await;
            let stored = stored.unwrap_or_else(|why| panic!("{time}: {why}"));
            assert_eq!(stored.receipt.replicas.len(), 3, "{time}");
        }
    });
}
