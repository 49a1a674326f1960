//! A coordinator that is driven by hand over more files than it keeps in memory, with a replica that never answers.

use std::collections::BTreeMap;

use std::time::Duration;

use archive_daemon::clock::ManualClock;
use archive_decisions::store::{
    Claim, Content, Effect, FileRecord, NamePhase, RecordedUpload, ReplicaRecord, StoringEvent,
};
use archive_ledger::admin::{Admin, AdminRow};
use archive_model::{Digests, ReplicaId, ReplicaKind, ReplicaState, Root, StoreFailure, UploadId};

use super::super::undriven::coordinator;
use super::super::{CoordinatorError, Wake};
use super::*;
use crate::mail::CoordinatorMessage;

fn id(text: &str) -> ReplicaId {
    ReplicaId::new(text).unwrap()
}

/// Returns the row of a file that one replica has and the other does not.
fn bound(name: &str) -> AdminRow {
    let copy = |state| ReplicaRecord {
        state,
        ..ReplicaRecord::started_record(ReplicaKind::Bitarchive, true, Timestamp::UNIX_EPOCH)
    };
    let failed = StoreFailure::Unreachable("node two-1 is silent".to_owned());
    let content = Content {
        root: Root::from_bytes([1; 32]),
        size: 7,
        digests: Digests::default(),
    };
    let record = FileRecord {
        name: FileName::new(name).unwrap(),
        phase: NamePhase::Bound,
        upload: Some(RecordedUpload {
            id: UploadId::new("u").unwrap(),
            claim: Claim::from(&content),
        }),
        content: Some(content),
        replicas: BTreeMap::from([
            (id("one"), copy(ReplicaState::UploadCompleted)),
            (id("two"), copy(ReplicaState::UploadFailed(failed))),
        ]),
    };
    AdminRow {
        record,
        depositor: "harvester/h".to_owned(),
        admission: None,
    }
}

/// Fails if every file that is on its way is read into memory, those for which there was no room are forgotten, or
/// those that gave up their place never have another turn.
#[test]
fn paged_files_each_get_a_bounded_turn() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _inside = runtime.enter();
    let directory = tempfile::tempdir().unwrap();
    let admin = Admin::init(directory.path()).unwrap();
    let count = 3 * MOST + 7;
    let mut changes = admin.begin_changes();
    for number in 0..count {
        admin
            .put_row(&mut changes, &bound(&format!("f-{number:05}")))
            .unwrap();
    }
    admin.commit_changes(changes).unwrap();
    let hand = ManualClock::new(Timestamp::from_second(1_000_000_000).unwrap());
    let mut coordinator = coordinator(&admin, &hand);
    coordinator.resume_files().unwrap();
    assert!(coordinator.files.is_empty());
    assert_eq!(admin.counts().unwrap().files, count as u64);

    let mut asked: BTreeMap<FileName, u32> = BTreeMap::new();
    let mut rounds = 0;
    while asked.len() < count || asked.values().any(|times| *times < 2) {
        rounds += 1;
        assert!(rounds < 1000, "{} of {count} were asked for", asked.len());
        hand.advance(Duration::from_secs(2));
        let now = hand.clock().now();
        let mut decided = Vec::new();
        if coordinator.paging.is_due(now) {
            coordinator.page_in(now, &mut decided).unwrap();
        }
        assert!(coordinator.files.len() <= MOST);
        let due = coordinator.timers.iter().take_while(|(at, _)| *at <= now);
        let due: Vec<_> = due.map(|(_, name)| name.clone()).collect();
        for name in due {
            coordinator.decide(Wake::Timer(name), &mut decided).unwrap();
        }
        for done in decided {
            let probes = |effect: &&Effect| matches!(effect, Effect::Probe { .. });
            if done.effects.iter().find(probes).is_none() {
                continue;
            }
            *asked.entry(done.name.clone()).or_default() += 1;
            let event = StoringEvent::Failed {
                replica: id("two"),
                reason: StoreFailure::Unreachable("node two-1 is silent".to_owned()),
            };
            let name = done.name.clone();
            let message = Wake::Message(CoordinatorMessage::Happened { name, event });
            let mut answered = Vec::new();
            coordinator.decide(message, &mut answered).unwrap();
            let is_news = |decided: &FileDecision| decided.effects.contains(&Effect::Persist);
            assert!(!answered.iter().any(is_news), "said before");
            coordinator.let_go(&done.name, now);
        }
    }
    assert_eq!(asked.len(), count);
}

/// Fails if a few files are not all in memory, or if they are looked for again.
#[test]
fn few_files_stay_in_memory() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _inside = runtime.enter();
    let directory = tempfile::tempdir().unwrap();
    let admin = Admin::init(directory.path()).unwrap();
    let mut changes = admin.begin_changes();
    for name in ["a", "b", "c"] {
        admin.put_row(&mut changes, &bound(name)).unwrap();
    }
    admin.commit_changes(changes).unwrap();
    let hand = ManualClock::new(Timestamp::from_second(1_000_000_000).unwrap());
    let mut coordinator = coordinator(&admin, &hand);
    coordinator.resume_files().unwrap();
    let now = hand.clock().now();
    assert!(coordinator.paging.is_due(now));
    let mut decided = Vec::new();
    coordinator.page_in(now, &mut decided).unwrap();
    assert_eq!((decided.len(), coordinator.files.len()), (3, 3));
    assert_eq!(coordinator.paging.next_due(), None);
}

/// Fails if a file gives up its place in memory between the decision about it and the batch that remembers it.
#[test]
fn order_in_full_memory_reaches_the_row() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _inside = runtime.enter();
    let directory = tempfile::tempdir().unwrap();
    let admin = Admin::init(directory.path()).unwrap();
    let mut complete = bound("x");
    complete.record.phase = NamePhase::Complete;
    for copy in complete.record.replicas.values_mut() {
        copy.state = ReplicaState::UploadCompleted;
    }
    let mut changes = admin.begin_changes();
    admin.put_row(&mut changes, &complete).unwrap();
    admin.commit_changes(changes).unwrap();
    let hand = ManualClock::new(Timestamp::from_second(1_000_000_000).unwrap());
    let mut coordinator = coordinator(&admin, &hand);
    coordinator.resume_files().unwrap();
    let now = hand.clock().now();
    for number in 0..MOST {
        let row = bound(&format!("f-{number:05}"));
        let name = row.record.name.clone();
        let (active, _) = Active::restore(row, now, &coordinator.parts.limits);
        coordinator.files.insert(name, active);
    }
    assert!(coordinator.paging.is_due(now));

    let (done, is_done) = tokio::sync::oneshot::channel();
    let order = CoordinatorMessage::Ordered {
        name: complete.record.name.clone(),
        event: StoringEvent::Withdrawn {
            replica: id("one"),
            why: "r1: not ours".to_owned(),
        },
        who: "custodian/c, approved by custodian/d".to_owned(),
        done,
    };
    let deferred = coordinator
        .do_round(vec![Wake::Message(order)], None)
        .unwrap();
    assert!(deferred.is_none(), "somebody waits for it");
    is_done.blocking_recv().unwrap();
    let stamp =
        || archive_ledger::admin::stamp::read_stamp(&directory.path().join("admin.stamp")).unwrap();
    let told = stamp();
    admin.write_stamp().unwrap();
    assert_eq!(stamp(), told, "stamped before anybody was told");
    let row = admin.file(&complete.record.name).unwrap().unwrap();
    let state = &row.record.replicas[&id("one")].state;
    assert!(state.is_withdrawn(), "{state}");
    let line = admin.audit_rows(0).unwrap().last().unwrap().unwrap().1;
    assert!(line.who.starts_with("custodian/c"), "{line:?}");
}

/// Fails if what was decided about a file that is not in memory is passed over.
#[test]
fn decision_about_an_absent_file_is_an_error() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _inside = runtime.enter();
    let directory = tempfile::tempdir().unwrap();
    let admin = Admin::init(directory.path()).unwrap();
    let hand = ManualClock::new(Timestamp::from_second(1_000_000_000).unwrap());
    let mut coordinator = coordinator(&admin, &hand);
    let name = FileName::new("x").unwrap();
    let decided = FileDecision::by_itself(name.clone(), vec![Effect::Persist]);
    let acted = coordinator.act_on_decisions(vec![decided]);
    assert!(
        matches!(&acted, Err(CoordinatorError::Absent(absent)) if *absent == name),
        "{acted:?}"
    );
}

/// Fails if each piece of news costs a sync by itself, or if what was deferred is lost.
#[test]
fn unawaited_news_is_written_with_the_next() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _inside = runtime.enter();
    let directory = tempfile::tempdir().unwrap();
    let admin = Admin::init(directory.path()).unwrap();
    let hand = ManualClock::new(Timestamp::from_second(1_000_000_000).unwrap());
    let mut coordinator = coordinator(&admin, &hand);
    let now = hand.clock().now();
    let mut changes = admin.begin_changes();
    for name in ["a", "b"] {
        let row = bound(name);
        admin.put_row(&mut changes, &row).unwrap();
        let (active, _) = Active::restore(row, now, &coordinator.parts.limits);
        coordinator
            .files
            .insert(FileName::new(name).unwrap(), active);
    }
    admin.commit_changes(changes).unwrap();
    let reason = StoreFailure::Unreachable("just now".to_owned());
    let news = |name: &str| {
        Wake::Message(CoordinatorMessage::Happened {
            name: FileName::new(name).unwrap(),
            event: StoringEvent::Failed {
                replica: id("two"),
                reason: reason.clone(),
            },
        })
    };
    let has = |name: &str| {
        let row = admin.file(&FileName::new(name).unwrap()).unwrap().unwrap();
        row.record.replicas[&id("two")].state == ReplicaState::UploadFailed(reason.clone())
    };
    let over = tokio::time::Instant::now();
    let later = over + Duration::from_hours(1);

    let deferred = coordinator.do_round(vec![news("a")], Some((Vec::new(), later)));
    let deferred = deferred.unwrap();
    assert!(deferred.is_some() && !has("a"));
    let deferred = coordinator.do_round(vec![news("b")], deferred).unwrap();
    assert!(deferred.is_some() && !has("b"));
    let (settled, is_settled) = tokio::sync::oneshot::channel();
    let settle = Wake::Message(CoordinatorMessage::Settle(settled));
    assert!(
        coordinator
            .do_round(vec![settle], deferred)
            .unwrap()
            .is_none()
    );
    is_settled.blocking_recv().unwrap();
    assert!(has("a") && has("b"), "written with what somebody waits for");

    let deferred = coordinator.do_round(vec![news("a")], Some((Vec::new(), over)));
    assert!(deferred.unwrap().is_none(), "it was deferred long enough");
}

/// Fails if the time at which a failed copy is tried again is not shown, or is still shown after the copy was
/// stored.
#[test]
fn failed_copy_shows_retry_until_stored() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _inside = runtime.enter();
    let directory = tempfile::tempdir().unwrap();
    let admin = Admin::init(directory.path()).unwrap();
    let hand = ManualClock::new(Timestamp::from_second(1_000_000_000).unwrap());
    let mut coordinator = coordinator(&admin, &hand);
    let row = bound("a");
    let now = hand.clock().now();
    let name = row.record.name.clone();
    let content = row.record.content.clone().unwrap();
    let mut changes = admin.begin_changes();
    admin.put_row(&mut changes, &row).unwrap();
    admin.commit_changes(changes).unwrap();
    let (active, _) = Active::restore(row, now, &coordinator.parts.limits);
    coordinator.files.insert(name.clone(), active);
    let mut hears = |event| {
        let name = name.clone();
        let message = Wake::Message(CoordinatorMessage::Happened { name, event });
        let over = Some((Vec::new(), tokio::time::Instant::now()));
        assert!(coordinator.do_round(vec![message], over).unwrap().is_none());
        coordinator
            .parts
            .retries
            .retry_times(&FileName::new("a").unwrap())
    };
    let times = hears(StoringEvent::Failed {
        replica: id("two"),
        reason: StoreFailure::Unreachable("just now".to_owned()),
    });
    assert!(times.keys().eq([&id("two")]), "{times:?}");
    assert!(times[&id("two")] > now, "{times:?}");
    let times = hears(StoringEvent::Completed {
        replica: id("two"),
        node: "two-1".parse().unwrap(),
        volume: "v".parse().unwrap(),
        root: content.root,
        at: now,
        read_back: true,
    });
    assert!(times.is_empty(), "{times:?}");
}
