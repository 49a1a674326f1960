//! The ends of a delivery: what is reported, and what a node commits.

use archive_daemon::clock::ManualClock;
use archive_model::{FileName, Root, UploadId};
use jiff::Timestamp;

use super::*;
use crate::assemble::WantedFile;
use crate::scripted::{ScriptedReplicas, UploadConduct, id};

/// The source of a delivery.
#[derive(Clone, Copy)]
enum TestSource {
    /// The source gives these pieces, and ends.
    Whole(&'static [&'static [u8]]),
    /// The source gives these pieces, and fails.
    Fails(&'static [&'static [u8]]),
    /// The source neither gives anything nor ends.
    Hangs,
}

impl TestSource {
    async fn read(self, sender: mpsc::Sender<Bytes>) -> Result<(), &'static str> {
        let (pieces, end) = match self {
            Self::Whole(pieces) => (pieces, Ok(())),
            Self::Fails(pieces) => (pieces, Err("the source broke")),
            Self::Hangs => std::future::pending().await,
        };
        for piece in pieces {
            sender.send(Bytes::from_static(piece)).await.unwrap();
        }
        end
    }
}

fn item(size: u64) -> StoringFile {
    StoringFile {
        name: FileName::new("a.warc").unwrap(),
        upload: UploadId::new("u1").unwrap(),
        size,
    }
}

/// Replicas whose nodes behave towards uploads in one way.
struct DeliveryFixture {
    scripted: ScriptedReplicas,
    transfers: Transfers,
    replica: ReplicaId,
    item: StoringFile,
}

impl DeliveryFixture {
    async fn start(conduct: UploadConduct) -> Self {
        let scripted = ScriptedReplicas::start().await;
        scripted.script().uploads = Some(conduct);
        let (transfers, _messages) = scripted.transfers();
        Self {
            scripted,
            transfers,
            replica: id("one"),
            item: item(7),
        }
    }

    fn delivery(&self) -> ReplicaDelivery<'_> {
        ReplicaDelivery {
            transfers: &self.transfers,
            replica: &self.replica,
            item: &self.item,
            route: Route::avoid_nodes(Vec::new()),
            admission: "the admission".into(),
        }
    }

    fn committed(&self) -> Vec<Vec<u8>> {
        self.scripted.script().committed.clone()
    }
}

/// Fails if a node commits a file whose source broke, a side that fails waits for the other one, the wrong side is
/// reported, or a source that fails at once hides that a node has the file already.
#[tokio::test]
async fn side_that_fails_first_ends_delivery() {
    use TestSource::{Fails, Hangs, Whole};
    use UploadConduct::{Commits, HasFile, RefusesAdmission, RefusesBytes, RefusesUpload};
    let nothing: &'static [&'static [u8]] = &[];
    for (source, conduct, expected) in [
        (Whole(&[b"abc", b"defg"]), Commits, "stored"),
        (Whole(nothing), Commits, "stored"),
        (Fails(nothing), Commits, "source: the source broke"),
        (Fails(&[b"abc"]), Commits, "source: the source broke"),
        (Hangs, RefusesUpload, "replica: it takes no upload"),
        (Whole(&[b"abc"]), RefusesBytes, "replica: it takes no bytes"),
        (
            Whole(&[b"abc"]),
            RefusesAdmission,
            "replica: the admission is of other bytes",
        ),
        (Fails(nothing), RefusesUpload, "source: the source broke"),
        (Fails(nothing), HasFile, "stored"),
        (Fails(&[b"abc"]), HasFile, "stored"),
        (Hangs, HasFile, "stored"),
    ] {
        let fixture = DeliveryFixture::start(conduct).await;
        let (sender, chunks) = mpsc::channel(WINDOW);
        let sending = fixture.delivery().send(chunks, source.read(sender));
        let outcome = match tools_testing::in_time(sending).await {
            Ok(Ok(_copy)) => "stored".to_owned(),
            Ok(Err(error)) => format!("replica: {error}"),
            Err(broken) => format!("source: {broken}"),
        };
        assert_eq!(outcome, expected);
        let committed = match (source, expected) {
            (Whole(pieces), "stored") => vec![pieces.concat()],
            _ => Vec::new(),
        };
        assert_eq!(fixture.committed(), committed, "{expected}");
    }
}

/// Lets the time pass of whatever waits, `step` by `step`.
async fn let_time_pass(clock: &ManualClock, step: std::time::Duration) -> ! {
    loop {
        clock.advance_sleepers(1, step).await;
        tokio::task::yield_now().await;
    }
}

/// Fails if a replica that takes no more bytes holds a delivery without end.
#[tokio::test]
async fn replica_that_stops_reading_is_given_up() {
    let mut fixture = DeliveryFixture::start(UploadConduct::ReadsNothing).await;
    let manual = ManualClock::new(Timestamp::UNIX_EPOCH);
    fixture.transfers.calls.clock = manual.clock();
    let (sender, chunks) = mpsc::channel(WINDOW);
    let (sent, mut count) = watch::channel(0);
    let reading = async move {
        let piece = Bytes::from(vec![7; 1 << 20]);
        while sender.send(piece.clone()).await.is_ok() {
            sent.send_modify(|sent| *sent += 1);
        }
        Err::<(), _>("the upload let go of its source")
    };
    let passing = async {
        // More pieces than the channel holds: the upload is open.
        let opened = count.wait_for(|sent| *sent > WINDOW).await;
        opened.map(drop).unwrap();
        let_time_pass(&manual, fixture.transfers.calls.stall).await
    };
    let sending = fixture.delivery().send(chunks, reading);
    let outcome = tools_testing::in_time(async {
        tokio::select! {
            outcome = sending => outcome,
            never = passing => never,
        }
    });
    let error = outcome.await.unwrap().unwrap_err();
    assert_eq!(error.kind, CallErrorKind::TimedOut, "{error}");
    assert!(error.reason.contains("takes no bytes"), "{error}");
    assert_eq!(fixture.committed(), Vec::<Vec<u8>>::new());
}

/// Fails if an empty file is not delivered, bytes of a file come otherwise than they stand on the disk, or one that
/// cannot be read is committed.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "a file that is only read")]
async fn file_is_delivered_as_on_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    for content in [Vec::new(), tools_testing::noise(600_000, 1)] {
        let fixture = DeliveryFixture::start(UploadConduct::Commits).await;
        let path = folder.path().join("spooled");
        std::fs::write(&path, &content).unwrap();
        let outcome = tools_testing::in_time(fixture.delivery().send_file(path)).await;
        assert_eq!(outcome.unwrap().unwrap().copy.size, content.len() as u64);
        assert_eq!(fixture.committed(), [content]);
    }
    let fixture = DeliveryFixture::start(UploadConduct::Commits).await;
    let absent = folder.path().join("absent");
    let outcome = tools_testing::in_time(fixture.delivery().send_file(absent)).await;
    assert_eq!(outcome.unwrap_err().kind, CallErrorKind::Storage);
    assert_eq!(fixture.committed(), Vec::<Vec<u8>>::new());
}

/// Fails if a file that no replica gives is committed, or an empty one, of which nothing has to be given, is not.
#[tokio::test]
async fn file_without_donor_is_never_committed() {
    for (size, committed) in [(7, Vec::<Vec<u8>>::new()), (0, vec![Vec::new()])] {
        let fixture = DeliveryFixture::start(UploadConduct::Commits).await;
        let wanted = WantedFile {
            name: fixture.item.name.clone(),
            root: Root::from_bytes([7; 32]),
            size,
        };
        let assembler = fixture.scripted.assembler();
        let reading = assembler.read_range(wanted, Vec::new(), std::iter::once(0..size));
        let mut reading = reading.with_bytes();
        let sending = fixture.delivery().send_assembly(&mut reading, None);
        let outcome = Box::pin(tools_testing::in_time(sending)).await;
        assert_eq!(outcome.is_ok(), size == 0, "{outcome:?}");
        assert_eq!(fixture.committed(), committed);
    }
}
