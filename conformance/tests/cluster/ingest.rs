//! Depositors at the door: right, wrong and twice at once.

mod again;
mod resume;
mod way;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use archive_client::{ClientError, FileRange};
use proto_archive::wire::ingest_client::IngestClient;
use proto_archive::wire::preservation_client::PreservationClient;
use proto_archive::wire::store_request::{Close, Open, Step};
use proto_archive::wire::store_response::Step as Answer;
use proto_archive::wire::{AuditRequest, StoreRequest};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status};

use super::visits::{get, list, name, noise, root, store};
use super::world::{Cluster, REPOSITORY, on_a_cluster};
use super::{EVERYWHERE, SIZE, assert_only};

const SOON: Duration = Duration::from_mins(1);

fn open(name: &str, bytes: &[u8]) -> Open {
    Open {
        name: name.to_owned(),
        size: bytes.len() as u64,
        blake3: root(bytes).as_bytes().to_vec().into(),
        ..Open::default()
    }
}

/// Stores a file message by message: `open`, then `data` as often as `pieces` says, then `close`. Returns the last
/// answer.
async fn by_hand(
    cluster: &Cluster,
    open: Open,
    pieces: impl Iterator<Item = Vec<u8>> + Send + 'static,
) -> Result<Answer, Status> {
    let (steps, requests) = mpsc::channel(2);
    let say = |step| StoreRequest { step: Some(step) };
    steps.send(say(Step::Open(open))).await.unwrap();
    let mut client = IngestClient::new(cluster.channel("harvester/h-1"));
    let mut answers = client
        .store(ReceiverStream::new(requests))
        .await?
        .into_inner();
    let first = answers.message().await?.and_then(|message| message.step);
    let Some(Answer::Ready(_)) = first else {
        return Ok(first.unwrap());
    };
    let sending = async move {
        for piece in pieces {
            if steps.send(say(Step::Data(piece.into()))).await.is_err() {
                return;
            }
        }
        _ = steps.send(say(Step::Close(Close {}))).await;
    };
    let hearing = async {
        loop {
            let message = answers.message().await?;
            match message.and_then(|message| message.step) {
                Some(Answer::Taken(_)) => {}
                Some(last) => return Ok(last),
                None => return Err(Status::unknown("no answer")),
            }
        }
    };
    tokio::select! {
        biased;
        heard = hearing => heard,
        () = async { sending.await; std::future::pending().await } => unreachable!(),
    }
}

/// Nothing of a refused store is anywhere.
async fn assert_nothing(cluster: &Cluster) {
    for replica in EVERYWHERE {
        let (entries, _) = list(&cluster.reader(), replica).await.unwrap();
        assert_eq!(entries, [], "{replica:?}");
    }
}

/// Fails if bytes that differ from the announced size or digest are stored, or if their refusal keeps the name from the
/// right bytes.
#[test]
fn mismatched_upload_is_refused_and_leaves_nothing() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let bytes = noise(SIZE, 30);
        let pieces = |bytes: &[u8]| {
            let pieces: Vec<Vec<u8>> = bytes.chunks(100_000).map(<[u8]>::to_vec).collect();
            pieces.into_iter()
        };
        let right = open("a", &bytes);
        let with = |change: fn(&mut Open)| {
            let mut open = right.clone();
            change(&mut open);
            open
        };
        let mut longer = bytes.clone();
        longer.push(0);
        let mut flipped = bytes.clone();
        flipped[SIZE / 2] ^= 1;
        for (why, open, sent, named) in [
            ("one byte less", right.clone(), &bytes[..SIZE - 1], "size"),
            ("nothing at all", right.clone(), &[], "size"),
            ("one byte more", right.clone(), &longer, "size"),
            ("a bit has flipped", right.clone(), &flipped, "blake3"),
            (
                "another SHA-256",
                with(|open| open.sha256 = vec![1; 32].into()),
                &bytes,
                "sha256",
            ),
            (
                "another MD5",
                with(|open| open.md5 = vec![1; 16].into()),
                &bytes,
                "md5",
            ),
        ] {
            let answer = timeout(SOON, by_hand(cluster, open, pieces(sent))).await;
            let refused = answer
                .unwrap_or_else(|_| panic!("{why}: no answer"))
                .unwrap_err();
            assert_eq!(refused.code(), Code::FailedPrecondition, "{why}: {refused}");
            assert!(refused.message().contains(named), "{why}: {refused}");
            assert_nothing(cluster).await;
        }

        let none = with(|open| open.blake3 = Vec::new().into());
        let refused = by_hand(cluster, none, pieces(&bytes)).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
        for (bad, field) in [
            (with(|open| open.blake3 = vec![1; 31].into()), "blake3"),
            (with(|open| open.md5 = vec![1; 17].into()), "md5"),
            (with(|open| open.name = "../a".to_owned()), "name"),
            (with(|open| open.name = String::new()), "name"),
        ] {
            let refused = by_hand(cluster, bad, pieces(&bytes)).await.unwrap_err();
            assert_eq!(refused.code(), Code::InvalidArgument, "{field}: {refused}");
        }
        assert_nothing(cluster).await;

        let stored = by_hand(cluster, right.clone(), pieces(&bytes))
            .await
            .unwrap();
        assert!(matches!(stored, Answer::Stored(_)), "{stored:?}");
        assert_only(cluster, &name("a"), &bytes).await;
        let page = cluster.page(REPOSITORY);
        for line in [
            "repository_stores_refused_total{reason=\"size\"} 3",
            "repository_stores_refused_total{reason=\"digest\"} 3",
            "repository_stores_refused_total{reason=\"invalid\"} 5",
            "repository_stores_acknowledged_total{} 1",
        ] {
            assert!(page.contains(line), "{line} is not in\n{page}");
        }
    });
}

/// Fails if a depositor who goes on sending beyond the announced size is listened to.
#[test]
fn an_endless_stream_is_ended() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let bytes = noise(SIZE, 31);
        let sent = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&sent);
        let endless = std::iter::repeat_with(move || {
            counted.fetch_add(100_000, Ordering::Relaxed);
            vec![7; 100_000]
        });
        let answer = timeout(SOON, by_hand(cluster, open("a", &bytes), endless)).await;
        let refused = answer.expect("it is ended").unwrap_err();
        assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
        let sent = sent.load(Ordering::Relaxed);
        assert!(sent < SIZE as u64 + (64 << 20), "{sent} bytes were taken");
        assert_nothing(cluster).await;
        store(cluster, &name("a"), &bytes).await.unwrap();
        assert_only(cluster, &name("a"), &bytes).await;
    });
}

/// Fails if a file of no bytes cannot be stored and read, or if nobody is told of a name that differs in case only.
#[test]
fn empty_file_is_stored_and_similar_names_reported() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let stored = store(cluster, &name("empty"), b"").await.unwrap();
        assert_eq!((stored.admission.size, stored.similar_name), (0, None));
        assert_only(cluster, &name("empty"), b"").await;
        let stored = store(cluster, &name("Empty"), b"x").await.unwrap();
        assert_eq!(stored.similar_name.as_deref(), Some("empty"));
        let again = store(cluster, &name("empty"), b"").await.unwrap();
        assert_eq!(again.similar_name.as_deref(), Some("Empty"));
        let (read, end) = get(cluster, &FileRange::whole_file(name("empty"))).await;
        end.unwrap();
        assert_eq!(read, b"");
    });
}

async fn trail(cluster: &Cluster, file: &str) -> Vec<String> {
    let mut client = PreservationClient::new(cluster.channel("officer/o"));
    let request = AuditRequest {
        file: file.to_owned(),
        since: String::new(),
    };
    let mut stream = client.audit(request).await.unwrap().into_inner();
    let mut lines = Vec::new();
    while let Some(message) = stream.message().await.unwrap() {
        lines.extend(message.lines.into_iter().map(|line| line.what));
    }
    lines
}

/// Fails if two depositors at once can both store other bytes under one name, or if the trail does not tell of the one
/// who lost.
#[test]
fn one_name_twice_at_once_is_bound_once() {
    on_a_cluster(async |cluster: &mut Cluster| {
        let first = noise(4 * SIZE, 32);
        let second = noise(4 * SIZE, 33);
        let same = name("same");
        let (a, b) = tokio::join!(store(cluster, &same, &first), store(cluster, &same, &first));
        let a = a.unwrap();
        let b = b.unwrap();
        assert_eq!(a.admission, b.admission);
        assert_only(cluster, &same, &first).await;

        let other = name("other");
        let (a, b) = tokio::join!(
            store(cluster, &other, &first),
            store(cluster, &other, &second)
        );
        let (bound, told, refused) = match (a, b) {
            (Ok(stored), Err(error)) => (stored, error, &second),
            (Err(error), Ok(stored)) => (stored, error, &first),
            both => panic!("one must be bound and one refused: {both:?}"),
        };
        assert!(matches!(told, ClientError::Exists(_)), "{told}");
        let (read, end) = get(cluster, &FileRange::whole_file(other)).await;
        end.unwrap();
        assert_eq!(root(&read), bound.admission.root);
        let lines = trail(cluster, "other").await;
        let kept = bound.admission.root;
        let given = root(refused);
        let conflict =
            |line: &&String| line.contains(&kept.to_string()) && line.contains(&given.to_string());
        assert_eq!(lines.iter().filter(conflict).count(), 1, "{lines:#?}");
    });
}
