//! Acts and lists, against an archive that lies or breaks off.

use std::sync::Arc;

use archive_client::preservation::{
    AtticEntry, AtticSelection, AuditSelection, CopyReplacement, ScrubSelection, VolumeOrder,
};
use archive_client::{Access, ClientError, ErrorClass, Preservation};
use archive_model::{Act, DiskOrder, Mode, NodeSelector, Root, ScrubOrder};
use archive_proof::testing::admission;
use archive_rpc::CallErrorKind;
use parking_lot::Mutex;
use proto_archive::convert;
use proto_archive::wire::replace_request::Step as Replace;
use proto_archive::wire::{
    AdoptFileResponse, AtticItem, AtticsResponse, CopyCondition, ExportResponse, FileEntry, Gap,
    NodeStatus, ReplaceResponse, RequestState, Role, ScrubsResponse, attic_item, attics_response,
    request_state,
};
use tonic::Status;
use tools_testing::noise;

use crate::archive::receipt;
use crate::keep::{OFFICER, checked, name, order};
use crate::world::{ServedArchive, key};

fn entry(file: &str) -> FileEntry {
    FileEntry {
        name: file.into(),
        node: "n-1".into(),
        volume: "v".into(),
        size: 3,
        root: vec![1; 32].into(),
        condition: CopyCondition::Present.into(),
        stored: "2026-01-01T00:00:01Z".parse().ok(),
        ..FileEntry::default()
    }
}

fn put_aside(file: &str) -> AtticItem {
    AtticItem {
        node: "n-1".into(),
        volume: "v".into(),
        id: "x-1".into(),
        name: file.into(),
        at: "2026-01-02T03:04:05Z".into(),
        kind: attic_item::Kind::File.into(),
        bytes: 3,
        ..AtticItem::default()
    }
}

fn request(id: &str, act: request_state::Act) -> RequestState {
    RequestState {
        id: id.into(),
        act: act.into(),
        asked: "2026-01-02T03:04:05Z".into(),
        expires: "2026-01-09T03:04:05Z".into(),
        state: request_state::State::Open.into(),
        approvers: vec![Role::Custodian.into()],
        ..RequestState::default()
    }
}

fn replacement(bytes: &[u8], size: usize) -> CopyReplacement {
    CopyReplacement {
        name: name("a"),
        replica: "one".parse().expect("id"),
        checksum: Root::from_bytes([9; 32]),
        reason: "the disk lied".into(),
        source: Arc::new(bytes.to_vec()),
        size: size as u64,
    }
}

/// Fails if a replacement loses bytes at the edge of a message, or its replica, reason or checksum is not sent.
#[tokio::test]
async fn a_replacement_carries_every_byte() {
    let world = ServedArchive::new().await;
    let keeper = world.keeper(OFFICER);
    let replaced = ReplaceResponse {
        attic: Some(put_aside("a")),
        entry: Some(entry("a")),
    };
    for size in [0, 1, 262_144, 700_001] {
        world
            .archive
            .state()
            .keeping
            .replace
            .say([replaced.clone()]);
        let bytes = noise(size, 1);
        let sent = Mutex::new(Vec::new());
        let watch = |now| sent.lock().push(now);
        let done = keeper
            .replace(&replacement(&bytes, size), &watch)
            .await
            .unwrap();
        assert_eq!(done.attic.place.to_string(), "one/n-1/v/x-1");
        assert_eq!(done.entry.name, name("a"));
        assert_eq!(sent.lock().last(), Some(&(size as u64)));
        let mut state = world.archive.state();
        assert_eq!(state.keeping.replaced, bytes);
        let open = state.keeping.replace.asked.pop().unwrap().step;
        let Some(Replace::Open(open)) = open else {
            panic!("{open:?}");
        };
        assert_eq!(
            (open.replica.as_str(), open.reason.as_str()),
            ("one", "the disk lied")
        );
        assert_eq!(open.checksum, vec![9; 32]);
    }
}

/// Fails if the reason of a refusal that comes while bytes are still sent is lost, or all bytes are sent to an
/// archive that reads none.
#[tokio::test]
async fn refused_replacement_is_not_sent_whole() {
    let world = ServedArchive::new().await;
    let keeper = world.keeper(OFFICER);
    let bytes = noise(20 << 20, 2);
    let refusal = CallErrorKind::Mismatch.to_status("a in replica one has another checksum");
    {
        let mut state = world.archive.state();
        state.keeping.replace.fail([], refusal);
        state.keeping.replace_early = true;
    }
    let sent = Mutex::new(0);
    let watch = |now| *sent.lock() = now;
    let error = keeper
        .replace(&replacement(&bytes, bytes.len()), &watch)
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "a in replica one has another checksum");
    // The server reads none of the bytes: no more are sent than the window of a stream and the buffers hold.
    let sent = *sent.lock();
    assert!(sent < bytes.len() as u64 / 2, "{sent} bytes were sent");
}

/// Fails if a source that is shorter than announced goes unnoticed.
#[tokio::test]
async fn replacement_from_short_source_is_refused() {
    let world = ServedArchive::new().await;
    let bytes = noise(400_000, 2);
    let error = world
        .keeper(OFFICER)
        .replace(&replacement(&bytes, bytes.len() + 1), &|_| ())
        .await
        .unwrap_err();
    assert!(matches!(error, ClientError::Source { .. }), "{error}");
}

/// Fails if an answer about another file counts as a replaced copy, or an answer that lacks the copy or the item of
/// the attic.
#[tokio::test]
async fn replacement_of_another_file_is_untrusted() {
    let world = ServedArchive::new().await;
    let keeper = world.keeper(OFFICER);
    for (attic, answer) in [
        (Some(put_aside("a")), Some(entry("b"))),
        (None, Some(entry("a"))),
        (Some(put_aside("a")), None),
    ] {
        let answer = ReplaceResponse {
            attic,
            entry: answer,
        };
        world.archive.state().keeping.replace.say([answer]);
        let error = keeper
            .replace(&replacement(b"abc", 3), &|_| ())
            .await
            .unwrap_err();
        assert!(matches!(error, ClientError::Untrusted(_)), "{error}");
    }
}

/// Fails if an answer about another file, request, act or node counts as the act that was asked for.
#[tokio::test]
async fn an_answer_about_something_else_is_not_believed() {
    let world = ServedArchive::new().await;
    let officer = world.keeper(OFFICER);
    let custodian = world.keeper("custodian/c-1");
    let operator = world.keeper("operator/opa");
    let a = name("a");
    let one = "one".parse().unwrap();
    let believed = |result: Result<(), ClientError>, good: bool| match result {
        Ok(()) => assert!(good),
        Err(error) => assert!(
            !good && matches!(error, ClientError::Untrusted(_)),
            "{error}"
        ),
    };
    for (file, good) in [("a", true), ("b", false)] {
        let answer = AdoptFileResponse {
            entry: Some(entry(file)),
        };
        world.archive.state().keeping.adopt.say([answer]);
        believed(officer.adopt(&a, &one).await.map(drop), good);
    }
    for (id, good) in [("17", true), ("18", false)] {
        world
            .archive
            .state()
            .keeping
            .approve
            .say([request(id, request_state::Act::Purge)]);
        world
            .archive
            .state()
            .keeping
            .withdraw
            .say([request(id, request_state::Act::Purge)]);
        believed(custodian.approve("17").await.map(drop), good);
        believed(custodian.withdraw("17").await.map(drop), good);
    }
    for (act, good) in [
        (request_state::Act::Accept, true),
        (request_state::Act::Purge, false),
    ] {
        world.archive.state().keeping.ask.say([request("17", act)]);
        let accept = Act::Accept {
            anomaly: "3".into(),
        };
        believed(custodian.ask(&accept, "why").await.map(drop), good);
    }
    for (node, good) in [("n-1", true), ("n-2", false)] {
        let status = NodeStatus {
            node: node.into(),
            mode: convert::wire_mode(Mode::Draining).into(),
            ..NodeStatus::default()
        };
        world.archive.state().keeping.node.say([status.clone()]);
        let asked = NodeSelector {
            node: "n-1".parse().unwrap(),
            replica: None,
        };
        believed(operator.node(&asked, Mode::Draining).await.map(drop), good);
        world.archive.state().keeping.volume.say([status]);
        let clear = VolumeOrder {
            order: DiskOrder::Clear("v".parse().unwrap()),
            node: None,
            replica: None,
        };
        operator.volume(&clear).await.unwrap();
    }
    let asked = world.archive.state().keeping.node.asked.pop().unwrap();
    let sent = convert::read_mode("mode", asked.order.unwrap().mode);
    assert_eq!(sent, Ok(Some(Mode::Draining)));
}

/// Fails if an attic listing that broke off counts as complete or loses a gap, or an empty audit trail counts as cut.
#[tokio::test]
async fn lists_end_well_or_with_an_error() {
    let world = ServedArchive::new().await;
    let officer = world.keeper(OFFICER);
    let one = attics_response::One {
        replica: "one".into(),
        item: Some(put_aside("a")),
    };
    // A disk that bears no id is named by its path.
    let gap = Gap {
        replica: "two".into(),
        node: "n-2".into(),
        volume: "/disks/1".into(),
        reason: "not labelled".into(),
    };
    let parts = [
        AtticsResponse {
            items: vec![one.clone(), one],
            gaps: vec![],
        },
        AtticsResponse {
            items: vec![],
            gaps: vec![gap],
        },
    ];
    world.archive.state().keeping.attics.say(parts.clone());
    let selection = AtticSelection::default();
    let mut steps = officer.attics(&selection).await.unwrap();
    let mut count = (0, 0);
    while let Some(entry) = steps.next().await.unwrap() {
        match entry {
            AtticEntry::Item(_) => count.0 += 1,
            AtticEntry::Gap(_) => count.1 += 1,
        }
    }
    assert_eq!(count, (2, 1));
    let [first, _] = parts;
    world
        .archive
        .state()
        .keeping
        .attics
        .fail([first], Status::internal("oh"));
    let mut steps = officer.attics(&selection).await.unwrap();
    assert!(steps.next().await.unwrap().is_some());
    assert!(steps.next().await.unwrap().is_some());
    assert_eq!(steps.next().await.unwrap_err().class(), ErrorClass::Bug);

    let export = ExportResponse {
        lines: b"{}\n".as_slice().into(),
    };
    world.archive.state().keeping.export.say([export]);
    let mut steps = world.keeper("operator/opa").export().await.unwrap();
    assert_eq!(steps.next().await.unwrap().unwrap().as_ref(), b"{}\n");
    assert!(steps.next().await.unwrap().is_none());
    world.archive.state().keeping.audit.say([]);
    let mut steps = officer.audit(&AuditSelection::default()).await.unwrap();
    assert!(
        steps.next().await.unwrap().is_none(),
        "an empty trail is whole"
    );

    world
        .archive
        .state()
        .keeping
        .scrubs
        .say([ScrubsResponse::default()]);
    let selection = ScrubSelection::default();
    let scrubs = officer.scrubs(&selection, ScrubOrder::Tell).await.unwrap();
    assert!(scrubs.scrubs.is_empty() && scrubs.gaps.is_empty());
}

/// Fails if a check whose server dies after the last report counts as complete.
#[tokio::test]
async fn dying_server_cuts_calls() {
    let mut world = ServedArchive::new().await;
    {
        let mut state = world.archive.state();
        state.keeping.check.say(checked());
        state.keeping.check.then_silent = true;
    }
    let keeper = world.keeper(OFFICER);
    let order = order();
    let mut steps = keeper.check(&order).await.unwrap();
    for _ in 0..3 {
        steps.next().await.unwrap().unwrap();
    }
    world.kill().await;
    let error = steps.next().await.unwrap_err();
    assert_eq!(
        error.class(),
        ErrorClass::Unreachable,
        "all reports came, and no end: {error}"
    );
}

/// Fails if a custody receipt of an untrusted key, of another file or without a replica is handed out.
#[tokio::test]
async fn receipt_is_verified_before_handed_out() {
    let world = ServedArchive::new().await;
    let good = admission("a", b"abc");
    let reader = world.reader();
    world.archive.state().receipt = Some(receipt(&good, 2, &key(1)));
    let held = reader.receipt(&name("a")).await.unwrap();
    assert_eq!((held.receipt.replicas.len(), held.admission.size), (2, 3));
    for bad in [
        receipt(&good, 2, &key(2)),
        receipt(&good, 0, &key(1)),
        receipt(&admission("b", b"abc"), 2, &key(1)),
        "{}".to_owned(),
        String::new(),
    ] {
        world.archive.state().receipt = Some(bad);
        let error = reader.receipt(&name("a")).await.unwrap_err();
        assert!(matches!(error, ClientError::Untrusted(_)), "{error}");
    }
    world.archive.state().receipt = None;
    let error = reader.receipt(&name("a")).await.unwrap_err();
    assert!(matches!(error, ClientError::NotFound(_)), "{error}");
}
