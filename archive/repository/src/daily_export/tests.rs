//! An export that a crash cut is stored again, or was never begun.

use archive_daemon::clock::ManualClock;
use archive_decisions::store::{FileRecord, NamePhase};
use archive_model::{ReplicaState, StoreFailure};

use super::*;
use archive_ledger::restore::testing::row;
use archive_stores::depositor::CustodyAnswer;
use archive_stores::mail::CoordinatorMessage;

const NAME: &str = "holdfast-admin-kb-20260101T000000Z.jsonl.gz";

struct ExportFixture {
    daily: AdminExportWorker,
    messages: mpsc::Receiver<CoordinatorMessage>,
    clock: ManualClock,
    _directory: tempfile::TempDir,
}

impl ExportFixture {
    /// Creates an archive whose last export was made just now.
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let clock = ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap());
        let (mail, messages) = Mail::new();
        let admin = Admin::init(directory.path()).unwrap();
        let tasks = Tasks::new();
        let daily = AdminExportWorker {
            admin,
            archive: "kb".to_owned(),
            data: directory.path().to_owned(),
            period: Duration::from_hours(24),
            mail,
            notifier: Notifier::silent_notifier(),
            clock: clock.clock(),
            stop: tasks.stop_token(),
            tasks,
        };
        let row = ExportRow::new(clock.clock().now(), None, String::new());
        daily.book().write(0, row).unwrap();
        Self {
            daily,
            messages,
            clock,
            _directory: directory,
        }
    }

    /// Puts an export on the disk, as a crash leaves it.
    fn spool(&self, bytes: &[u8]) -> PathBuf {
        let folder = self.daily.data.join("export");
        directory::make_directory(&folder).unwrap();
        let path = folder.join(NAME);
        let mut file = archive_durable::AppendFile::open(&path).unwrap();
        file.append(bytes).unwrap();
        path
    }

    /// Begins the store of the export in the archive; one replica lacks it.
    fn begin(&self) -> FileRecord {
        let mut row = row(NAME, 7);
        row.record.phase = NamePhase::Incomplete;
        let copy = row.record.replicas.values_mut().next().unwrap();
        copy.state = ReplicaState::UploadFailed(StoreFailure::NoSpace);
        let mut changes = self.daily.admin.begin_changes();
        self.daily.admin.put_row(&mut changes, &row).unwrap();
        self.daily.admin.commit_changes(changes).unwrap();
        row.record
    }
}

/// Fails if an export that a crash cut is left to people, is stored under another name or with other bytes, or is
/// forgotten before the archive has it.
#[tokio::test]
async fn export_cut_by_crash_is_stored_again() {
    let mut fixture = ExportFixture::new();
    let path = fixture.spool(b"rows");
    let record = fixture.begin();
    for is_stored in [false, true] {
        let ExportFixture {
            daily, messages, ..
        } = &mut fixture;
        let mut step = Box::pin(daily.step());
        let message = tokio::select! {
            message = messages.recv() => message.unwrap(),
            done = &mut step => panic!("nothing was stored: {done:?}"),
        };
        let CoordinatorMessage::Ask {
            name,
            claim,
            depositor,
        } = message
        else {
            panic!("the archive is asked to store it")
        };
        assert_eq!(name.as_str(), NAME);
        let root: [u8; 32] = blake3::hash(b"rows").into();
        assert_eq!(claim.root.map(|root| *root.as_bytes()), Some(root));
        assert_eq!(depositor.who, "repository/kb");
        let reply = if is_stored {
            DepositReply::Stored(Box::new(CustodyAnswer {
                receipt: String::new(),
                already: false,
                record: record.clone(),
            }))
        } else {
            DepositReply::Failed(archive_model::ArchiveError::Busy(name))
        };
        depositor.replies.send(reply).await.unwrap();
        step.await.unwrap();
        assert_eq!(path.try_exists().unwrap(), !is_stored);
    }
    let (_, last) = fixture.daily.book().last().unwrap().unwrap();
    assert_eq!(
        last.name.map(|name| name.to_string()).as_deref(),
        Some(NAME)
    );
}

/// Fails if what the archive was never asked to store is stored, or lies on the disk permanently.
#[tokio::test]
async fn export_that_was_never_begun_is_removed() {
    let mut fixture = ExportFixture::new();
    let path = fixture.spool(b"half a li");
    fixture.daily.step().await.unwrap();
    assert!(!path.try_exists().unwrap());
    assert!(fixture.messages.try_recv().is_err(), "nothing is stored");
}

/// Fails if the worker reads its table every minute while no export is due, or sleeps beyond the time of the next one.
#[tokio::test]
async fn worker_sleeps_until_export_is_due() {
    let mut fixture = ExportFixture::new();
    let hour = Duration::from_hours(1);
    assert_eq!(fixture.daily.step().await.unwrap(), WorkerStep::Idle(hour));
    let before_due = Duration::from_mins(24 * 60 - 10);
    fixture.clock.advance(before_due);
    let rest = Duration::from_mins(10);
    assert_eq!(fixture.daily.step().await.unwrap(), WorkerStep::Idle(rest));
}
