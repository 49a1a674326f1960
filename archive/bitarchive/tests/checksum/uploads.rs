//! Uploads to a checksum replica, allowed and refused ones.

use archive_proof::points::STRIDE;
use archive_rpc::CallErrorKind;
use proto_archive::wire::FindRequest;
use proto_archive::wire::upload_request::{Start, Step};
use tools_testing::noise;

use crate::replica::{PATIENCE, TRUSTED, TestReplica, admission, root, say, signed};

const SIZE: usize = 1_000_003;

/// Fails if the root of a row is not that of the bytes that were sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn upload_is_recorded_with_its_computed_root() {
    let test = TestReplica::new();
    let running = test.start().await;
    for (n, size) in [0, 1, 16 * 1024, 16 * 1024 + 1, SIZE]
        .into_iter()
        .enumerate()
    {
        let name = format!("f-{n}");
        let bytes = noise(size, n as u64);
        let entry = test.store(&running, &name, &bytes).await.unwrap();
        assert_eq!(entry.root, root(&bytes).as_bytes()[..]);
        assert_eq!((entry.size, entry.volume.as_str()), (size as u64, "table"));
        assert_eq!((entry.node.as_str(), entry.condition), ("three-1", 1));
    }
    assert_eq!(running.names().await, ["f-0", "f-1", "f-2", "f-3", "f-4"]);
    running.stop().await;
}

/// Fails if an upload that is repeated fails, or other content replaces a row.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn same_content_succeeds_and_other_is_refused() {
    let test = TestReplica::new();
    let running = test.start().await;
    let bytes = noise(SIZE, 1);
    let other = noise(SIZE, 2);
    let first = test.store(&running, "a", &bytes).await.unwrap();
    let again = test.store(&running, "a", &bytes).await.unwrap();
    assert_eq!(again, first);
    // As every node does, the replica says at once which root it has: the sender sees that it is not the same.
    let said = test.store(&running, "a", &other).await.unwrap();
    assert_eq!(said.root, root(&bytes).as_bytes()[..]);
    assert_eq!(test.store(&running, "a", &bytes).await.unwrap(), first);
    running.stop().await;
}

/// Fails if bytes that were not admitted are recorded, or block the name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn upload_unlike_its_admission_leaves_nothing() {
    let test = TestReplica::new();
    let running = test.start().await;
    let bytes = noise(SIZE, 1);
    let shorter = &bytes[..SIZE - 1];
    let upload = test.upload();
    let right = admission("a", &upload, &bytes);
    let foreign = signed(&right, [2; 32]);
    let mut flipped = bytes.clone();
    flipped[SIZE / 2] ^= 1;
    let elsewhere = |name, upload| signed(&admission(name, upload, &bytes), TRUSTED);
    let right = signed(&right, TRUSTED);
    for (why, sent, envelope) in [
        ("a byte is missing", shorter, right.clone()),
        ("a bit has flipped", &flipped, right.clone()),
        ("a key that is not trusted", &bytes, foreign),
        ("another name", &bytes, elsewhere("b", &upload)),
        ("another upload", &bytes, elsewhere("a", "u-of-others")),
    ] {
        let sending = running.open(&upload, "a", SIZE as u64).await.unwrap();
        let sending = sending.expect(why);
        let error = sending.send(sent, envelope).await.unwrap_err();
        assert_eq!(
            CallErrorKind::from_status(&error),
            CallErrorKind::Mismatch,
            "{why}: {error}"
        );
        assert!(running.names().await.is_empty(), "{why}");
    }
    for envelope in ["", "{}", "admitted"] {
        let sending = running.open(&upload, "a", SIZE as u64).await.unwrap();
        let sending = sending.expect("ready");
        let error = sending.send(&bytes, envelope.to_owned()).await.unwrap_err();
        assert_eq!(
            CallErrorKind::from_status(&error),
            CallErrorKind::Invalid,
            "{error}"
        );
    }
    let sending = running.open(&upload, "a", SIZE as u64).await.unwrap();
    let entry = sending.expect("ready").send(&bytes, right).await;
    assert_eq!(entry.unwrap().root, root(&bytes).as_bytes()[..]);
    running.stop().await;
}

/// Fails if a sender that sends more than announced is read on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn surplus_byte_ends_the_upload() {
    let test = TestReplica::new();
    let running = test.start().await;
    let upload = test.upload();
    let sending = running.open(&upload, "a", 10).await.unwrap();
    let sending = sending.expect("ready");
    say(&sending.steps, Step::Data(vec![0; 11].into())).await;
    let error = sending.refusal().await;
    assert_eq!(
        CallErrorKind::from_status(&error),
        CallErrorKind::Mismatch,
        "{error}"
    );
    running.stop().await;
}

/// Fails if a stream that was cut is recorded, or keeps its name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_stream_releases_its_name() {
    let test = TestReplica::new();
    let running = test.start().await;
    let bytes = noise(SIZE, 1);
    let upload = test.upload();
    let sending = running.open(&upload, "a", SIZE as u64).await.unwrap();
    let sending = sending.expect("ready");
    say(
        &sending.steps,
        Step::Data(bytes[..SIZE / 2].to_vec().into()),
    )
    .await;

    let busy = test.store(&running, "a", &bytes).await.unwrap_err();
    assert_eq!(
        CallErrorKind::from_status(&busy),
        CallErrorKind::Busy,
        "{busy}"
    );
    let find = FindRequest {
        name: "a".to_owned(),
        on_disk: false,
    };
    let found = running.replica.clone().locate(find.clone()).await.unwrap();
    let found = found.into_inner();
    assert!(found.entries.is_empty());
    assert!(found.gaps[0].reason.contains("being received"), "{found:?}");

    drop(sending);
    let again = async {
        loop {
            match test.store(&running, "a", &bytes).await {
                Err(busy) if CallErrorKind::from_status(&busy) == CallErrorKind::Busy => {}
                other => return other,
            }
        }
    };
    let entry = tokio::time::timeout(PATIENCE, again).await.unwrap();
    assert_eq!(entry.unwrap().root, root(&bytes).as_bytes()[..]);
    let found = running.replica.clone().locate(find).await.unwrap();
    assert_eq!(found.into_inner().gaps, []);
    running.stop().await;
}

/// Fails if a stream that was cut has to begin again, or resumes with another hash.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_stream_resumes_from_hashed_bytes() {
    let test = TestReplica::new();
    let running = test.start().await;
    let size = 12 * STRIDE + 5;
    let bytes = noise(usize::try_from(size).unwrap(), 1);
    let prefix = |strides: u64| &bytes[..usize::try_from(strides * STRIDE).unwrap()];
    let upload = test.upload();
    let ready = async |points: Vec<u64>| {
        let opening = async {
            loop {
                match running.open_at(&upload, "a", size, points.clone()).await {
                    Err(busy) if CallErrorKind::from_status(&busy) == CallErrorKind::Busy => {}
                    other => return other.unwrap().expect("it is not stored yet"),
                }
            }
        };
        tokio::time::timeout(PATIENCE, opening).await.unwrap()
    };
    let sending = running.open(&upload, "a", size).await.unwrap();
    let sending = sending.expect("ready");
    for chunk in prefix(8).chunks(100_000) {
        say(&sending.steps, Step::Data(chunk.to_vec().into())).await;
    }
    // The replica has hashed all bytes once it waits for more: `open` of the next stream says how many.
    drop(sending);
    let all: Vec<u64> = (1..=12).map(|number| number * STRIDE).collect();
    let (sending, offered) = ready(all.clone()).await;
    let reached = offered.offset / STRIDE;
    assert!((1..=8).contains(&reached), "{offered:?}");
    assert_eq!(offered.root, root(prefix(reached)).as_bytes()[..]);
    drop(sending);

    // The stream does not begin at a point that the sender lacks, and goes back to that of the others.
    let (sending, offered) = ready(vec![5, STRIDE, 11 * STRIDE]).await;
    assert_eq!(offered.offset, STRIDE);
    let offset = STRIDE;
    say(&sending.steps, Step::Start(Start { offset })).await;
    let envelope = signed(&admission("a", &upload, &bytes), TRUSTED);
    let rest = &bytes[prefix(1).len()..];
    let entry = sending.send(rest, envelope).await.unwrap();
    assert_eq!(entry.root, root(&bytes).as_bytes()[..]);
    running.stop().await;
}

/// Fails if bytes that were not admitted are kept, or the sender of them is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forgotten_upload_begins_again() {
    let test = TestReplica::new();
    let running = test.start().await;
    let size = 3 * STRIDE;
    let bytes = noise(usize::try_from(size).unwrap(), 1);
    let upload = test.upload();
    let sending = running.open(&upload, "a", size).await.unwrap();
    let sending = sending.expect("ready");
    for chunk in bytes.chunks(100_000) {
        say(&sending.steps, Step::Data(chunk.to_vec().into())).await;
    }
    sending.forget().await;
    let points = vec![STRIDE, 2 * STRIDE];
    let opened = running.open_at(&upload, "a", size, points).await.unwrap();
    let (_sending, offered) = opened.expect("it is not stored");
    assert_eq!(offered.offset, 0);
    running.stop().await;
}

/// Fails if an upload whose sender is silent stays open, and its name taken, without end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_sender_is_not_waited_for() {
    let test = TestReplica::new();
    let running = test.start().await;
    let sending = running.open(&test.upload(), "a", 10).await.unwrap();
    let error = sending.expect("ready").refusal().await;
    assert_eq!(
        CallErrorKind::from_status(&error),
        CallErrorKind::TimedOut,
        "{error}"
    );
    running.stop().await;
}

/// Fails if an upload among many at the same time is refused, stalls, or is recorded with the root of another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_come_at_once() {
    let test = TestReplica::new();
    let running = test.start().await;
    let names: Vec<String> = (0..24).map(|n| format!("f-{n:02}")).collect();
    let contents: Vec<Vec<u8>> = (0..24).map(|n| noise(200_000, n)).collect();
    let files = names.iter().zip(&contents);
    let stores = files
        .clone()
        .map(|(name, bytes)| test.store(&running, name, bytes));
    let entries = futures_util::future::join_all(stores).await;
    assert_eq!(entries.len(), 24);
    for (entry, (name, bytes)) in entries.into_iter().zip(files) {
        let entry = entry.unwrap();
        assert_eq!(entry.name, *name);
        assert_eq!(entry.root, root(bytes).as_bytes()[..], "{name}");
    }
    assert_eq!(running.names().await, names);
    running.stop().await;
}

/// Fails if a checksum replica keeps the bytes of a large upload in memory while it hashes them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_upload_is_not_kept_in_memory() {
    let test = TestReplica::new();
    let running = test.start().await;
    let chunk: bytes::Bytes = noise(1 << 20, 1).into();
    let count: u64 = 1024;
    let mut hasher = blake3::Hasher::new();
    (0..count).for_each(|_| {
        hasher.update(&chunk);
    });
    let upload = test.upload();
    let admitted = archive_proof::Admission {
        size: count << 20,
        root: archive_model::Root::from_bytes(*hasher.finalize().as_bytes()),
        ..admission("a", &upload, b"")
    };
    let sending = running.open(&upload, "a", count << 20).await.unwrap();
    let sending = sending.expect("ready");
    for _ in 0..count {
        say(&sending.steps, Step::Data(chunk.clone())).await;
    }
    let entry = sending.send(b"", signed(&admitted, TRUSTED)).await.unwrap();
    assert_eq!(entry.size, count << 20);
    let peak = tools_testing::peak_memory("self");
    assert!(peak < 600 << 10, "{peak} KiB at most");
    running.stop().await;
}
