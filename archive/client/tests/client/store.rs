//! Storing: cut at each message, resumed, and believed only with a receipt.

use std::sync::Arc;

use archive_client::{
    AnnouncedDigests, ClientError, ClientLimits, Deposit, Depositor, ErrorClass, Ingest,
    StoreEvent, StoredFile,
};
use archive_model::{FileName, Root};
use archive_rpc::CallErrorKind;
use parking_lot::Mutex;
use tools_testing::noise;

use crate::archive::{Fault, Instead, Wrong};
use crate::world::{ServedArchive, limits, trust};

/// Five messages of data.
const SIZE: usize = 1024 * 1024 + 7;

/// The open, the data, the close.
const MESSAGES: usize = 7;

fn deposit(bytes: &[u8]) -> Deposit {
    Deposit {
        name: FileName::new("a.warc.gz").unwrap(),
        size: bytes.len() as u64,
        source: Arc::new(bytes.to_vec()),
        announced: AnnouncedDigests {
            blake3: Some(Root::from_bytes(*blake3::hash(bytes).as_bytes())),
            ..AnnouncedDigests::default()
        },
        no_digest: false,
    }
}

async fn store(depositor: &Depositor, deposit: &Deposit) -> Result<StoredFile, ClientError> {
    depositor.store(deposit, &|_| {}).await
}

/// Fails if a store that succeeds left other bytes in the archive or returned no custody receipt, for an empty file or
/// one of several messages.
#[tokio::test]
async fn a_file_is_stored_and_receipted() {
    let world = ServedArchive::new().await;
    for size in [0, 1, 16384, 262_144, SIZE] {
        let bytes = noise(size, 1);
        let deposit = Deposit {
            name: FileName::new(&format!("f{size}")).unwrap(),
            ..deposit(&bytes)
        };
        let sent = Mutex::new(Vec::new());
        let watch = |event: StoreEvent<'_>| match event {
            StoreEvent::Sent(bytes) => sent.lock().push(bytes),
            StoreEvent::Retrying { .. } => panic!("nothing is wrong"),
        };
        let stored = world.depositor().store(&deposit, &watch).await.unwrap();
        assert_eq!(stored.admission.name, deposit.name);
        assert_eq!(Some(stored.admission.root), deposit.announced.blake3);
        assert_eq!(stored.receipt.replicas.len(), 2);
        assert!(
            stored
                .envelope
                .contains("application/vnd.holdfast.receipt+json")
        );
        assert_eq!(world.archive.state().files[deposit.name.as_str()], bytes);
        let sent = sent.lock();
        assert_eq!(sent.last(), Some(&(size as u64)));
        assert!(sent.is_sorted());
    }
}

/// Fails if a store that was cut at some message sends bytes again that the archive has, or leaves out bytes that it
/// lacks.
#[tokio::test]
async fn cut_store_continues_where_it_stood() {
    let world = ServedArchive::new().await;
    let bytes = noise(SIZE, 2);
    for after in 1..=MESSAGES {
        for fault in [
            Fault::EndAfter(after),
            Fault::FailAfter(after, CallErrorKind::Unavailable),
            Fault::FailAfter(after, CallErrorKind::Busy),
            Fault::FailAfter(after, CallErrorKind::TimedOut),
        ] {
            world.archive.state().files.clear();
            world.archive.state().seen.clear();
            world.archive.fault(&[fault]);
            let stored = store(&world.depositor(), &deposit(&bytes)).await;
            stored.unwrap_or_else(|error| panic!("{fault:?}: {error}"));
            let state = world.archive.state();
            assert_eq!(state.files["a.warc.gz"], bytes, "{fault:?}");
            let [first, second] = state.seen.as_slice() else {
                panic!("{fault:?}: {} calls", state.seen.len())
            };
            assert_eq!(first.open, second.open, "{fault:?}");
            assert_eq!(second.offset, first.received / 16384 * 16384, "{fault:?}");
            assert_eq!(
                second.received,
                bytes.len() as u64 - second.offset,
                "{fault:?}: only what was missing is sent again"
            );
        }
    }
}

/// Fails if a store gives up when the repository dies and comes back, or continues with wrong bytes.
#[tokio::test]
async fn a_repository_that_dies_anywhere_is_waited_for() {
    let mut world = ServedArchive::new().await;
    let bytes = noise(SIZE, 3);
    for after in [1, 3, MESSAGES] {
        world.archive = crate::archive::Archive::default();
        world.kill().await;
        world.start("repository/main").await;
        world.archive.fault(&[Fault::DieAfter(after)]);
        let depositor = world.depositor();
        let deposit = deposit(&bytes);
        let storing = store(&depositor, &deposit);
        let death = async {
            world.archive.death().await;
            world.kill().await;
            world.start("repository/main").await;
        };
        let (stored, ()) = tokio::join!(storing, death);
        stored.unwrap_or_else(|error| panic!("{after}: {error}"));
        assert_eq!(world.archive.state().files["a.warc.gz"], bytes, "{after}");
    }
}

/// Fails if a store without progress is tried without end, or attempts that made progress count as failed ones.
#[tokio::test]
async fn attempts_end_and_progress_begins_them_anew() {
    let world = ServedArchive::new().await;
    let bytes = noise(SIZE, 4);
    world.archive.fault(&[Fault::EndAfter(1); 20]);
    let error = store(&world.depositor(), &deposit(&bytes))
        .await
        .unwrap_err();
    assert!(matches!(error, ClientError::Unavailable(_)), "{error}");
    assert_eq!(
        world.archive.state().seen.len(),
        4,
        "as many as the limits allow"
    );

    // Each stream gets one message further than the last: five failures, and still no four without progress.
    world.archive.state().seen.clear();
    world.archive.fault(&[Fault::EndAfter(2); 5]);
    let limits = ClientLimits {
        attempts: 2,
        ..limits()
    };
    let depositor = Depositor::new(world.channel("harvester/h-1"), trust(), limits);
    store(&depositor, &deposit(&bytes)).await.unwrap();
    assert_eq!(world.archive.state().seen.len(), 6);
}

/// Fails if a refusal that no further attempt can change is tried again, or loses its class or reason.
#[tokio::test]
async fn permanent_refusal_is_not_tried_again() {
    let world = ServedArchive::new().await;
    let bytes = noise(SIZE, 5);
    for (kind, class) in [
        (CallErrorKind::Exists, ErrorClass::Refused),
        (CallErrorKind::Mismatch, ErrorClass::Refused),
        (CallErrorKind::NotEnoughReplicas, ErrorClass::Failed),
        (CallErrorKind::NoSpace, ErrorClass::Failed),
        (CallErrorKind::Invalid, ErrorClass::Usage),
        (CallErrorKind::Internal, ErrorClass::Bug),
    ] {
        for after in [1, 3, MESSAGES] {
            world.archive.state().files.clear();
            world.archive.state().seen.clear();
            world.archive.fault(&[Fault::FailAfter(after, kind); 9]);
            let error = store(&world.depositor(), &deposit(&bytes))
                .await
                .unwrap_err();
            assert_eq!(error.class(), class, "{kind} {after}: {error}");
            assert!(
                error.to_string().contains("as the test wants it"),
                "{error}"
            );
            assert_eq!(world.archive.state().seen.len(), 1, "{kind}");
        }
    }
}

/// Fails if a store succeeds with a custody receipt of another key, name, size or root, or asks again after such a
/// receipt.
#[tokio::test]
async fn a_receipt_that_is_wrong_is_no_success() {
    let world = ServedArchive::new().await;
    let bytes = noise(1000, 6);
    for wrong in [
        Wrong::Key,
        Wrong::Name,
        Wrong::Size,
        Wrong::Root,
        Wrong::Garbage,
        Wrong::Flipped,
        Wrong::NoReplica,
    ] {
        world.archive.fault(&[Fault::Receipt(wrong); 9]);
        world.archive.state().seen.clear();
        world.archive.state().files.clear();
        let error = store(&world.depositor(), &deposit(&bytes))
            .await
            .unwrap_err();
        assert!(
            matches!(error, ClientError::Untrusted(_)),
            "{wrong:?}: {error}"
        );
        assert_eq!(error.class(), ErrorClass::Failed);
        assert_eq!(
            world.archive.state().seen.len(),
            1,
            "a liar is not asked again"
        );
    }
}

/// Fails if an archive is believed that claims more bytes than the file has, or sends a custody receipt for content
/// that was not announced.
#[tokio::test]
async fn an_answer_out_of_turn_is_no_success() {
    let world = ServedArchive::new().await;
    let bytes = noise(1000, 7);
    for fault in [
        Fault::Ready(1001),
        Fault::Ready(u64::MAX),
        Fault::Instead(Instead::Nothing),
        Fault::Instead(Instead::Taken),
        Fault::Instead(Instead::OtherContent),
    ] {
        world.archive.fault(&[fault]);
        let error = store(&world.depositor(), &deposit(&bytes))
            .await
            .unwrap_err();
        assert!(
            matches!(error, ClientError::Untrusted(_)),
            "{fault:?}: {error}"
        );
    }
    // Without a digest, a receipt at once could be for anything.
    let unknown = Deposit {
        announced: AnnouncedDigests::default(),
        no_digest: true,
        ..deposit(&bytes)
    };
    world
        .archive
        .fault(&[Fault::Instead(Instead::OtherContent)]);
    let error = store(&world.depositor(), &unknown).await.unwrap_err();
    assert!(matches!(error, ClientError::Untrusted(_)), "{error}");
    store(&world.depositor(), &unknown).await.unwrap();
}

/// Fails if an archive that stops answering, or stops taking bytes, holds a store without end.
#[tokio::test]
async fn store_to_silent_archive_times_out() {
    let world = ServedArchive::new().await;
    let bytes = noise(SIZE, 8);
    let limits = ClientLimits {
        answer_seconds: 1,
        stall_seconds: 1,
        verify_seconds: 1,
        attempts: 1,
        ..limits()
    };
    let depositor = Depositor::new(world.channel("harvester/h-1"), trust(), limits);
    for after in [1, 2, MESSAGES] {
        world.archive.state().files.clear();
        world.archive.fault(&[Fault::SilentAfter(after)]);
        let error = store(&depositor, &deposit(&bytes)).await.unwrap_err();
        assert!(
            matches!(error, ClientError::TimedOut(_)),
            "{after}: {error}"
        );
    }
    let large = noise(16 << 20, 8);
    world.archive.state().files.clear();
    world.archive.fault(&[Fault::SilentAfter(2)]);
    let error = store(&depositor, &deposit(&large)).await.unwrap_err();
    assert!(
        matches!(error, ClientError::TimedOut(_)),
        "back-pressure: {error}"
    );
}

/// Fails if a source that is shorter than announced or has another checksum is stored, or a deposit may leave out every
/// digest unasked.
#[tokio::test]
async fn source_unlike_its_announcement_is_noticed() {
    let world = ServedArchive::new().await;
    let bytes = noise(SIZE, 9);
    let short = Deposit {
        size: bytes.len() as u64 + 1,
        ..deposit(&bytes)
    };
    let error = store(&world.depositor(), &short).await.unwrap_err();
    assert!(matches!(error, ClientError::Source { .. }), "{error}");
    let other = Deposit {
        source: Arc::new(noise(SIZE, 10)),
        ..deposit(&bytes)
    };
    world.archive.state().files.clear();
    let error = store(&world.depositor(), &other).await.unwrap_err();
    assert!(matches!(error, ClientError::Mismatch(_)), "{error}");
    let nothing = Deposit {
        announced: AnnouncedDigests::default(),
        ..deposit(&bytes)
    };
    let error = store(&world.depositor(), &nothing).await.unwrap_err();
    assert!(matches!(error, ClientError::Invalid(_)), "{error}");
}

/// Fails if a caller in a wrong role, or a server that is no repository, is reported as unreachable rather than
/// refused, or a second attempt follows.
#[tokio::test]
async fn wrong_role_or_peer_is_refused_at_once() {
    let mut world = ServedArchive::new().await;
    let bytes = noise(10, 11);
    let deposit = deposit(&bytes);
    let watch = |event: StoreEvent<'_>| {
        let is_retry = matches!(event, StoreEvent::Retrying { .. });
        assert!(!is_retry, "no attempt can end otherwise: {event:?}");
    };
    let reader = Depositor::new(world.channel("reader/anna"), trust(), limits());
    let error = reader.store(&deposit, &watch).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Refused, "{error}");
    world.kill().await;
    world.start("monitor/one").await;
    let error = world.depositor().store(&deposit, &watch).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Refused, "{error}");
    assert!(error.to_string().contains("monitor/one"), "{error}");
}

/// Fails if an archive at whose address no server listens is not reported as unreachable, or the error lacks the
/// address.
#[tokio::test]
async fn absent_server_is_unreachable_and_named() {
    let mut world = ServedArchive::new().await;
    world.kill().await;
    let error = store(&world.depositor(), &deposit(b"x")).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Unreachable, "{error}");
    assert!(
        error.to_string().contains(&world.address.to_string()),
        "{error}"
    );
}
