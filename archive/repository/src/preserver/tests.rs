//! Tests of looks at copies and their anomalies, over scripted replicas.

use archive_daemon::Chance;
use archive_decisions::store::Content;
use archive_ledger::admin::{Admin, AdminRow};
use archive_ledger::anomalies::Anomalies;
use archive_ledger::restore::testing::row;
use archive_ledger::standing::Standing;
use archive_model::{AnomalyKind, CopyPlace, Digests, Root};
use archive_stores::mail::CoordinatorMessage;
use archive_stores::scripted::{ScriptedReplicas, damaged, good, id};
use tokio::sync::mpsc;

use super::*;
use crate::settings::RepairSettings;

/// A preserver over two scripted replicas.
pub(crate) struct PreserverFixture {
    pub(crate) own: Preserver,
    pub(crate) scripted: ScriptedReplicas,
    /// The messages to the coordinator, which are not read.
    _letters: mpsc::Receiver<CoordinatorMessage>,
    _directory: tempfile::TempDir,
}

impl PreserverFixture {
    /// Creates the fixture; both replicas have the files according to their rows.
    pub(crate) async fn start(names: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let admin = Admin::init(directory.path()).unwrap();
        for name in names {
            put(&admin, &row(name, 7));
        }
        let scripted = ScriptedReplicas::start().await;
        let (transfers, messages) = scripted.transfers();
        let metrics = archive_daemon::Metrics::new();
        let clock = transfers.calls.clock.clone();
        let archive = Archive {
            anomalies: Arc::new(Anomalies::open(&admin, clock).unwrap()),
            standing: Arc::new(Standing::open(admin.clone()).unwrap()),
            admin,
            specs: Arc::new(scripted.specs.clone()),
            calls: transfers.calls,
            assembler: scripted.assembler(),
            mail: transfers.mail,
            claims: NameClaims::default(),
            tasks: transfers.tasks,
            chance: Chance::system_chance(),
        };
        let own = Preserver {
            archive,
            instruments: Instruments::new(&metrics).unwrap(),
            policy: Arc::new(RepairSettings::default().repair_policy()),
            who: "repository/kb".into(),
            suspected: NameClaims::default(),
        };
        Self {
            own,
            scripted,
            _letters: messages,
            _directory: directory,
        }
    }

    /// Damages both copies in the same group, and files that of replica `one`.
    async fn damages(&self, name: &FileName) {
        for replica in ["one", "two"] {
            let volume = format!("volume-{replica}");
            self.scripted
                .lists(replica, vec![damaged(replica, &volume, 7)]);
        }
        let look = look(&[AnomalyKind::Corrupt(Groups::all(7))]);
        let replica = id("one");
        let look_context = look_context();
        let filing = self.own.file_look(&replica, name, look, &look_context);
        filing.await.unwrap();
    }

    /// Reads the copy in a replica again, and files the result.
    async fn reads(&self, replica: &str, name: &FileName) {
        let node = format!("{replica}-1").parse().unwrap();
        let volume = format!("volume-{replica}").parse().unwrap();
        let replica = id(replica);
        let look_context = look_context();
        let place = CopyPlace { node, volume };
        let selector = place.copy_selector(&replica);
        let copy = self
            .own
            .verify_file(selector, name, 7, |_| {})
            .await
            .unwrap();
        let filing = self.own.file_verified(&replica, name, &copy, &look_context);
        filing.await.unwrap();
    }

    async fn looks(&self, replica: &str, name: &FileName) {
        let replica = id(replica);
        let look_context = look_context();
        let looking = self.own.look_and_file(&replica, name, &look_context);
        looking.await.unwrap();
    }

    /// Returns the kinds of the anomalies of a file, by replica.
    pub(crate) async fn filed(&self, name: &FileName) -> Vec<String> {
        let rows = self.own.filed_anomalies(name).await.unwrap().into_iter();
        rows.map(|row| format!("{}: {}", row.replica, row.filed.kind.class()))
            .collect()
    }

    /// Has the row of a file changed while a replica is asked.
    fn changes_meanwhile(&self, changed: AdminRow) {
        let admin = self.own.archive.admin.clone();
        self.scripted.script().at_locate = Some(Box::new(move || put(&admin, &changed)));
    }
}

/// Returns a look at the copy in replica `one` with these findings.
fn look(found: &[AnomalyKind]) -> Look {
    Look {
        found: found.to_vec(),
        quality: LookQuality::Bytes,
        by: Finder::Scrub,
        is_second: false,
        size: 7,
        place: Some(CopyPlace {
            node: "one-1".parse().unwrap(),
            volume: "volume-one".parse().unwrap(),
        }),
    }
}

fn put(admin: &Admin, row: &AdminRow) {
    let mut changes = admin.begin_changes();
    admin.put_row(&mut changes, row).unwrap();
    admin.commit_changes(changes).unwrap();
}

fn name(text: &str) -> FileName {
    FileName::new(text).unwrap()
}

pub(crate) fn look_context() -> LookContext {
    LookContext {
        who: "officer/olga".into(),
        finder: Finder::Check,
        is_second: false,
    }
}

const LOST: [&str; 4] = ["one: corrupt", "one: lost", "two: corrupt", "two: lost"];

/// Fails if a look at the last copy does not file that bytes are lost, before any repair is tried.
#[tokio::test]
async fn look_at_last_bad_copy_files_loss() {
    let fixture = PreserverFixture::start(&["a"]).await;
    let file = name("a");
    fixture.damages(&file).await;
    assert_eq!(fixture.filed(&file).await, ["one: corrupt"]);
    fixture.looks("two", &file).await;
    assert_eq!(fixture.filed(&file).await, LOST);
}

/// Fails if a read of the last copy does not file that bytes are lost, before any repair is tried.
#[tokio::test]
async fn read_of_last_bad_copy_files_loss() {
    let fixture = PreserverFixture::start(&["a"]).await;
    let file = name("a");
    fixture.damages(&file).await;
    fixture.reads("two", &file).await;
    assert_eq!(fixture.filed(&file).await, LOST);
}

/// Fails if a loss is filed although a copy was stored while the other copies were asked.
#[tokio::test]
async fn copy_stored_meanwhile_files_no_loss() {
    for is_stored in [false, true] {
        let fixture = PreserverFixture::start(&["a"]).await;
        let file = name("a");
        fixture.damages(&file).await;
        if is_stored {
            let mut stored = row("a", 7);
            let copy = stored.record.replicas.get_mut(&id("two")).unwrap();
            copy.since = "2026-01-02T00:00:00Z".parse().unwrap();
            fixture.changes_meanwhile(stored);
        }
        fixture.looks("two", &file).await;
        let is_lost = fixture.filed(&file).await.contains(&LOST[1].to_owned());
        assert_eq!(is_lost, !is_stored);
    }
}

/// Fails if bytes are filed as lost although a copy of them was read again, and found good, while the others were
/// asked.
#[tokio::test]
async fn copy_read_well_meanwhile_files_no_loss() {
    for is_good in [false, true] {
        let fixture = PreserverFixture::start(&["a"]).await;
        let file = name("a");
        fixture.damages(&file).await;
        let anomalies = Arc::clone(&fixture.own.archive.anomalies);
        let read = look(&[]);
        let of = file.clone();
        if is_good {
            fixture.scripted.script().at_locate = Some(Box::new(move || {
                let filing = Filing {
                    file: &of,
                    replica: &id("one"),
                    who: "officer/olga",
                };
                anomalies.file_look(filing, &read).unwrap();
            }));
        }
        fixture.reads("two", &file).await;
        let expected: &[&str] = if is_good { &["two: corrupt"] } else { &LOST };
        assert_eq!(fixture.filed(&file).await, expected);
    }
}

/// Fails if a look is filed by the record before it, although that has changed in the meantime.
#[tokio::test]
async fn look_at_record_changed_meanwhile_is_repeated() {
    for is_admitted in [false, true] {
        let fixture = PreserverFixture::start(&["a"]).await;
        let file = name("a");
        fixture
            .scripted
            .lists("one", vec![good("one", "volume-one", 9)]);
        fixture
            .scripted
            .lists("two", vec![good("two", "volume-two", 7)]);
        if is_admitted {
            // People admit the file, after the look and before it is filed.
            let mut admitted = row("a", 7);
            admitted.record.content = Some(Content {
                root: Root::from_bytes([9; 32]),
                size: 9,
                digests: Digests::default(),
            });
            fixture.changes_meanwhile(admitted);
        }
        fixture.looks("one", &file).await;
        let filed = fixture.filed(&file).await;
        assert_eq!(filed.is_empty(), is_admitted, "{filed:?}");
    }
}
