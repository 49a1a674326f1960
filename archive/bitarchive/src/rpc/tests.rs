//! The door of a node: what it refuses before anything is touched, and what it reports.
#![expect(clippy::disallowed_methods, reason = "tests make and damage files")]

use std::path::PathBuf;

use archive_daemon::Metrics;
use archive_model::{FileName, Root, VolumeId};
use archive_rpc::CallErrorKind;
use proto_archive::wire::attic_item::Kind as AtticKind;
use proto_archive::wire::set_volume_request::Order;
use tokio_stream::StreamExt;

use super::*;
use crate::metrics::Instruments;
use crate::scrub::ScrubControl;
use crate::settings::ScrubSettings;
use crate::testing::NodeMachine;

mod bounds;
mod hostile;
mod notifier;

struct TestDoor {
    machine: NodeMachine,
    door: Door,
}

/// A runner that takes no job: jobs have tests of their own.
struct NoJobs;

impl JobRunner for NoJobs {
    fn run(
        &self,
        _steps: Streaming<wire::BatchRunRequest>,
        _idle: Duration,
    ) -> Response<AnswerStream<wire::BatchRunResponse>> {
        unreachable!("no test of the door runs a job")
    }

    fn reduce(
        &self,
        _steps: Streaming<wire::BatchReduceRequest>,
        _idle: Duration,
    ) -> Response<AnswerStream<wire::BatchReduceResponse>> {
        unreachable!("no test of the door runs a job")
    }
}

impl TestDoor {
    fn new() -> Self {
        let clock = Clock::system_clock();
        let mut machine = NodeMachine::with_disks(&["one", "two"]);
        machine.now = clock.now();
        let options = &machine.options;
        let scrub = ScrubControl::open(&options.data, ScrubSettings::default(), clock.now());
        let instruments = Instruments::new(&Metrics::new(), &options.node).unwrap();
        let (node, _) = machine.start();
        let node = Arc::new(node);
        let tasks = Tasks::new();
        let notifier = Arc::new(notifier::unheard(&node, &clock));
        let door = Door {
            notifier,
            scrub: Arc::new(scrub),
            jobs: Box::new(NoJobs),
            instruments,
            node,
            clock,
            tasks,
            idle: Duration::from_mins(1),
        };
        Self { machine, door }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.machine.path(name)
    }

    async fn order(
        &self,
        order: Order,
        volume: &str,
        path: &str,
    ) -> Result<wire::NodeStatus, Status> {
        let request = wire::SetVolumeRequest {
            order: order.into(),
            volume: volume.to_owned(),
            path: path.to_owned(),
        };
        Ok(self
            .door
            .set_volume(Request::new(request))
            .await?
            .into_inner())
    }

    async fn with_two() -> Self {
        let test = Self::new();
        for (volume, place) in [("v1", "one"), ("v2", "two")] {
            let path = test.path(place);
            test.order(Order::Init, volume, path.to_str().unwrap())
                .await
                .unwrap();
        }
        test
    }

    /// Stores a file and returns its admission.
    fn store(&self, name: &str, bytes: &[u8]) -> String {
        let entry = self.machine.store(&self.door.node, name, bytes).unwrap();
        self.door.node.files.read_admission(&entry).unwrap()
    }

    async fn attic(&self, name: &str) -> (Vec<wire::AtticItem>, wire::files_response::End) {
        let request = wire::AtticRequest {
            name: name.to_owned(),
        };
        let answers = self
            .door
            .attic(Request::new(request))
            .await
            .unwrap()
            .into_inner();
        let answers: Vec<_> = answers.collect::<Result<_, _>>().await.unwrap();
        let end = answers.last().unwrap().end.clone().unwrap();
        let items: Vec<_> = answers
            .into_iter()
            .flat_map(|answer| answer.items)
            .collect();
        assert_eq!(end.count, items.len() as u64);
        (items, end)
    }

    async fn admissions(
        &self,
        after: &str,
        only_findings: bool,
    ) -> (Vec<(String, String)>, wire::files_response::End) {
        let request = wire::FilesRequest {
            after: after.to_owned(),
            only_findings,
            on_disk: false,
        };
        let answers = self
            .door
            .admissions(Request::new(request))
            .await
            .unwrap()
            .into_inner();
        let answers: Vec<_> = answers.collect::<Result<_, _>>().await.unwrap();
        let end = answers.last().unwrap().end.clone().unwrap();
        let all = answers.into_iter().flat_map(|answer| answer.admissions);
        let all: Vec<_> = all
            .map(|one| (one.entry.unwrap().name, one.admission))
            .collect();
        assert_eq!(end.count, all.len() as u64);
        (all, end)
    }

    fn removal(volume: &str, name: &str, bytes: &[u8]) -> wire::PutAsideRequest {
        wire::PutAsideRequest {
            name: name.to_owned(),
            volume: volume.to_owned(),
            checksum: fields::root_bytes(&root(bytes)),
            who: "officer/o-1".to_owned(),
            why: "a test".to_owned(),
            approval: None,
        }
    }
}

fn root(bytes: &[u8]) -> Root {
    Root::from_bytes(*blake3::hash(bytes).as_bytes())
}

fn field(status: &Status) -> String {
    assert_eq!(
        CallErrorKind::from_status(status),
        CallErrorKind::Invalid,
        "{status:?}"
    );
    status.message().split('`').nth(1).unwrap().to_owned()
}

/// Fails if a drain or a retired volume is not in the status, a read-only node offers room, an offline volume is no gap
/// of the attic's list, or a retired one is.
#[tokio::test]
async fn node_reports_the_state_of_its_volumes() {
    let test = TestDoor::with_two().await;
    test.store("a", b"one");
    let status = test.order(Order::Drain, "v1", "").await.unwrap();
    let of = |status: &wire::NodeStatus, volume: &str| {
        let found = status.volumes.iter().find(|one| one.volume == volume);
        found.cloned().unwrap()
    };
    assert_eq!(
        (of(&status, "v1").mode(), of(&status, "v2").mode()),
        (wire::Mode::Draining, wire::Mode::ReadWrite)
    );
    assert_eq!(status.mode(), wire::Mode::ReadWrite);
    assert!(status.usable > 0);
    let mode = wire::SetModeRequest {
        mode: wire::Mode::ReadOnly.into(),
    };
    let status = test
        .door
        .set_mode(Request::new(mode))
        .await
        .unwrap()
        .into_inner();
    assert_eq!((status.mode(), status.usable), (wire::Mode::ReadOnly, 0));

    let status = test.order(Order::Retire, "v1", "").await.unwrap();
    let retired = of(&status, "v1");
    assert!(
        retired.retired && retired.problem.contains("retired"),
        "{retired:?}"
    );
    assert!(!of(&status, "v2").retired);
    assert!(
        test.attic("").await.1.gaps.is_empty(),
        "a retired volume is no gap"
    );
    std::fs::rename(test.path("two"), test.path("away")).unwrap();
    test.door
        .node
        .disks
        .refresh_volumes(test.door.clock.now())
        .unwrap();
    let gaps = test.attic("").await.1.gaps;
    assert_eq!(
        (gaps.len(), gaps[0].volume.as_str()),
        (1, "v2"),
        "one that is offline is"
    );

    let refused = test.order(Order::Drain, "v1", "").await.unwrap_err();
    assert_eq!(
        CallErrorKind::from_status(&refused),
        CallErrorKind::Mismatch
    );
    let refused = test.order(Order::Drain, "v9", "").await.unwrap_err();
    assert_eq!(
        CallErrorKind::from_status(&refused),
        CallErrorKind::NotFound
    );
}

/// Fails if a node says how much room its best volume has, and leaves out the others that take files.
#[tokio::test]
async fn report_names_room_of_other_volumes() {
    let test = TestDoor::with_two().await;
    let status = convert::node_report(&test.door.node);
    assert!(status.usable > 0);
    assert_eq!(status.usable_elsewhere.len(), 1);
    assert!(status.usable_elsewhere[0] > 0);
    let status = test.order(Order::ReadOnly, "v2", "").await.unwrap();
    assert!(status.usable > 0);
    assert!(status.usable_elsewhere.is_empty());
}

/// Fails if items of several volumes are not listed by time, or some are left out.
#[tokio::test]
async fn attics_of_all_volumes_are_one_list() {
    let test = TestDoor::with_two().await;
    let mut expected = Vec::new();
    for number in 0_u16..600 {
        // Two a second, on both disks.
        let (place, volume) = [("one", "v1"), ("two", "v2")][usize::from(number % 2)];
        let at = Timestamp::from_second(1_700_000_000 + i64::from(number) / 2).unwrap();
        let id = format!("{}-x", at.strftime("%Y%m%dT%H%M%SZ"));
        let path = test.path(place).join("attic").join(&id);
        std::fs::create_dir(&path).unwrap();
        let file = if number % 3 == 0 { "a" } else { "b" };
        let why = format!(
            r#"{{"format":"holdfast-attic/1","kind":"leftover","name":"{file}","at":"{at}","who":"w","why":"y","later":1}}"#
        );
        std::fs::write(path.join("why.json"), why).unwrap();
        expected.push((id, volume.to_owned()));
    }
    let (items, _) = test.attic("").await;
    let listed: Vec<_> = items
        .into_iter()
        .map(|item| (item.id, item.volume))
        .collect();
    assert_eq!(listed, expected);
    let (items, _) = test.attic("a").await;
    assert_eq!(items.len(), 200);
    assert!(
        items
            .iter()
            .all(|item| item.kind() == AtticKind::Leftover && item.who == "w")
    );
}

/// Fails if a copy is put aside by another checksum than its own, or the refusal reveals the right one.
#[tokio::test]
async fn refused_removal_does_not_reveal_the_checksum() {
    let test = TestDoor::with_two().await;
    test.store("a", b"one");
    let volume = test
        .door
        .node
        .files
        .find_copies(&FileName::new("a").unwrap())
        .unwrap()[0]
        .volume
        .to_string();
    let refused = test
        .door
        .put_aside(Request::new(TestDoor::removal(&volume, "a", b"two")))
        .await
        .unwrap_err();
    assert_eq!(
        CallErrorKind::from_status(&refused),
        CallErrorKind::Mismatch
    );
    assert!(!refused.message().contains(&root(b"one").to_string()));
    let (items, _) = test.attic("").await;
    assert!(items.is_empty());
}

/// Fails if an item of the attic can be purged as soon as it was put aside, or cannot be restored.
#[tokio::test]
async fn young_item_is_restored_and_not_purged() {
    let test = TestDoor::with_two().await;
    test.store("a", b"one");
    let volume = test
        .door
        .node
        .files
        .find_copies(&FileName::new("a").unwrap())
        .unwrap()[0]
        .volume
        .to_string();
    let item = test
        .door
        .put_aside(Request::new(TestDoor::removal(&volume, "a", b"one")))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(
        (item.kind(), item.name.as_str(), item.node.as_str()),
        (AtticKind::File, "a", "n1")
    );
    let of = wire::AtticRef {
        volume,
        id: item.id,
        who: "custodian/c".to_owned(),
        why: "x".to_owned(),
        checksum: Vec::new().into(),
    };
    let refused = test.door.purge(Request::new(of.clone())).await.unwrap_err();
    assert_eq!(CallErrorKind::from_status(&refused), CallErrorKind::Refused);
    let entry = test
        .door
        .restore_item(Request::new(of))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(entry.condition, i32::from(wire::CopyCondition::Present));
}

/// Fails if a damaged sidecar ends the listing of admissions, or hides its file.
#[tokio::test]
async fn admissions_come_sorted_with_blanks_for_damage() {
    let test = TestDoor::with_two().await;
    let mut expected = Vec::new();
    for number in 0..270 {
        let name = format!("f{number:03}");
        let mut admission = test.store(&name, name.as_bytes());
        if number % 100 == 7 {
            let found = FileName::new(&name).unwrap();
            let volume: VolumeId = test.door.node.files.find_copies(&found).unwrap()[0]
                .volume
                .clone();
            let layout = test.door.node.disks.find_layout(&volume).unwrap();
            let sidecar = layout.target_paths(&found).sidecar;
            std::fs::remove_file(&sidecar).unwrap();
            if number != 7 {
                std::fs::write(&sidecar, "{}").unwrap();
            }
            admission.clear();
        }
        expected.push((name, admission));
    }
    let (all, end) = test.admissions("", false).await;
    assert_eq!(all, expected);
    assert!(end.gaps.is_empty());
    assert_eq!(test.admissions("f199", false).await.0, expected[200..]);
    assert!(test.admissions("", true).await.0.is_empty());
    std::fs::rename(test.path("one"), test.path("away")).unwrap();
    test.door
        .node
        .disks
        .refresh_volumes(test.door.clock.now())
        .unwrap();
    let (all, end) = test.admissions("", false).await;
    assert_eq!(
        (all.len(), end.gaps.len()),
        (270, 1),
        "their names are known, and nobody looked"
    );
}
