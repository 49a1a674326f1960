//! In whose name a file is admitted, when its depositor is answered, and what an abandoned upload leaves, on a
//! coordinator that is driven by hand.

use std::path::Path;

use archive_daemon::clock::ManualClock;
use archive_decisions::store::Content;
use archive_ledger::admin::stamp::{STAMP, read_stamp};
use archive_model::{Digests, FileName, ReplicaId, ReplicaKind, Root};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::undriven::coordinator;
use super::*;
use crate::depositor::{DepositReply, DepositStream};
use crate::transfer::UploadVerdict;

const WHO: [&str; 2] = ["depositor/anna", "depositor/bert"];

fn name() -> FileName {
    FileName::new("a").unwrap()
}

fn content() -> Content {
    Content {
        root: Root::from_bytes([1; 32]),
        size: 7,
        digests: Digests::default(),
    }
}

/// Returns an announcement that gives only the size of the file.
fn bare() -> Claim {
    let digests = Claim::from(&content());
    Claim {
        root: None,
        ..digests
    }
}

/// Returns the message of a depositor that asks to store the file, and the receiver of its answers.
fn ask(who: &str, claim: Claim) -> (Wake, mpsc::Receiver<DepositReply>) {
    let (replies, answers) = mpsc::channel(1);
    let (unheard, _) = mpsc::channel(1);
    let stream = DepositStream::new(tokio_stream::pending(), unheard, claim.clone());
    let depositor = DepositRequest {
        who: who.to_owned(),
        source: Some(stream),
        replies,
        sent: false,
        claim: claim.clone(),
        received: None,
        answered: CancellationToken::new(),
    };
    let message = CoordinatorMessage::Ask {
        name: name(),
        claim,
        depositor: Box::new(depositor),
    };
    (Wake::Message(message), answers)
}

fn happened(event: StoringEvent) -> Wake {
    let name = name();
    Wake::Message(CoordinatorMessage::Happened { name, event })
}

impl Coordinator {
    fn happens(&mut self, wake: Wake) {
        let mut decided = Vec::new();
        self.decide(wake, &mut decided).unwrap();
    }

    /// Has a depositor ask to store the file. Returns the number that the coordinator gave it.
    fn asks(&mut self, who: &str, claim: Claim) -> Requester {
        self.happens(ask(who, claim).0);
        Requester(self.last_requester)
    }

    /// Takes a whole round in which only `wake` happens.
    fn round_of(&mut self, wake: Wake) {
        let round = self.do_round(vec![wake], None).unwrap();
        if let Some((deferred, _)) = round {
            self.act_on_decisions(deferred).unwrap();
        }
    }

    fn hears(&mut self, event: StoringEvent) {
        self.happens(happened(event));
    }

    fn is_received(&mut self, requester: Requester) {
        self.hears(StoringEvent::Received {
            requester,
            content: content(),
        });
    }

    fn upload(&self) -> UploadId {
        let record = self.files[&name()].state.record();
        record.upload.as_ref().unwrap().id.clone()
    }

    fn depositor(&self) -> &str {
        &self.files[&name()].depositor
    }
}

fn on_a_coordinator(test: impl FnOnce(&mut Coordinator, &Path)) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _inside = runtime.enter();
    let directory = tempfile::tempdir().unwrap();
    let admin = Admin::init(directory.path()).unwrap();
    let hand = ManualClock::new(Timestamp::from_second(1_800_000_000).unwrap());
    let mut coordinator = coordinator(&admin, &hand);
    coordinator.parts.specs = vec![ReplicaSpec {
        id: ReplicaId::new("one").unwrap(),
        kind: ReplicaKind::Bitarchive,
        required: true,
    }];
    test(&mut coordinator, directory.path());
}

/// Fails if an id of an upload that cannot be used stops the repository as a fault of its signing key, or if the
/// operator is not told what to do.
#[test]
fn unusable_upload_id_is_no_fault_of_signing() {
    let error = upload_id(&name(), "../a").unwrap_err();
    assert!(matches!(error, CoordinatorError::Upload(..)), "{error:?}");
    let text = error.to_string();
    for said in [
        "an upload of a",
        "\"../a\"",
        "report it",
        "start the repository",
    ] {
        assert!(text.contains(said), "{text}");
    }
    assert!(!text.contains("signing"), "{text}");
}

/// Fails if a depositor who resumes the upload of another one deposits in the other one's name.
#[test]
fn abandoned_upload_is_resumed_by_its_depositor_only() {
    on_a_coordinator(|coordinator, _| {
        let first = coordinator.asks(WHO[0], bare());
        let begun = coordinator.upload();
        coordinator.hears(StoringEvent::SourceGone { requester: first });
        let again = coordinator.asks(WHO[0], bare());
        assert_eq!(coordinator.upload(), begun, "the same one is resumed");
        coordinator.hears(StoringEvent::SourceGone { requester: again });
        let second = coordinator.asks(WHO[1], bare());
        assert_ne!(coordinator.upload(), begun);
        coordinator.is_received(second);
        assert_eq!(coordinator.depositor(), WHO[1]);
    });
}

/// Fails if the admission names who announced the bytes, and not who sent them.
#[test]
fn depositor_is_whose_bytes_are_admitted() {
    on_a_coordinator(|coordinator, _| {
        let first = coordinator.asks(WHO[0], Claim::from(&content()));
        let second = coordinator.asks(WHO[1], Claim::from(&content()));
        assert_eq!(coordinator.depositor(), WHO[0]);
        coordinator.hears(StoringEvent::SourceGone { requester: first });
        coordinator.is_received(second);
        assert_eq!(coordinator.depositor(), WHO[1]);
    });
}

/// Fails if the nodes wait for an admission that was decided, because the depositor went away just after its last byte.
#[test]
fn depositor_who_goes_after_the_last_byte_leaves_an_admission() {
    on_a_coordinator(|coordinator, _| {
        coordinator.round_of(ask(WHO[0], Claim::from(&content())).0);
        let requester = Requester(coordinator.last_requester);
        let seal = coordinator.files[&name()].seal.as_ref().unwrap();
        let sealed = seal.subscribe();
        let received = StoringEvent::Received {
            requester,
            content: content(),
        };
        let gone = StoringEvent::SourceGone { requester };
        let round = vec![happened(received), happened(gone)];
        assert!(coordinator.do_round(round, None).unwrap().is_none());
        let verdict = sealed.borrow().clone();
        assert!(
            matches!(verdict, Some(UploadVerdict::Admitted(_))),
            "{verdict:?}"
        );
    });
}

/// Fails if a store is acknowledged while a power cut may still take the row away unnoticed.
#[test]
fn depositor_is_answered_after_the_stamp() {
    on_a_coordinator(|coordinator, data| {
        let (wake, mut answers) = ask(WHO[0], Claim::from(&content()));
        coordinator.round_of(wake);
        let received = StoringEvent::Received {
            requester: Requester(coordinator.last_requester),
            content: content(),
        };
        coordinator.round_of(happened(received));
        assert!(answers.try_recv().is_err(), "no replica has it yet");
        coordinator.round_of(happened(StoringEvent::Completed {
            replica: ReplicaId::new("one").unwrap(),
            node: "one-1".parse().unwrap(),
            volume: "v-1".parse().unwrap(),
            root: content().root,
            at: coordinator.parts.clock.now(),
            read_back: true,
        }));
        let stamp = || read_stamp(&data.join(STAMP)).unwrap();
        let told = stamp();
        coordinator.parts.admin.write_stamp().unwrap();
        assert_eq!(stamp(), told, "stamped before the depositor was told");
        let answer = answers.blocking_recv();
        assert!(
            matches!(answer, Some(DepositReply::Stored(_))),
            "{answer:?}"
        );
    });
}

/// Fails if a caller who waits for a file receives what may still be lost, or does not hear what became of it.
#[test]
fn follower_hears_what_is_remembered() {
    on_a_coordinator(|coordinator, _| {
        let requester = coordinator.asks(WHO[0], Claim::from(&content()));
        let (records, mut heard) = watch::channel(None);
        let name = name();
        coordinator.happens(Wake::Message(CoordinatorMessage::Follow { name, records }));
        coordinator.is_received(requester);
        assert!(!heard.has_changed().unwrap(), "nothing is remembered yet");
        coordinator.round_of(happened(StoringEvent::Completed {
            replica: ReplicaId::new("one").unwrap(),
            node: "one-1".parse().unwrap(),
            volume: "v-1".parse().unwrap(),
            root: content().root,
            at: coordinator.parts.clock.now(),
            read_back: true,
        }));
        let record = heard.borrow_and_update().clone().unwrap();
        let copy = record.replicas.values().next().unwrap();
        assert!(copy.state.is_completed(), "{record:?}");
    });
}

/// Fails if a caller who waits for a file does not hear that its name was given up.
#[test]
fn follower_hears_that_a_name_is_free() {
    on_a_coordinator(|coordinator, _| {
        let requester = coordinator.asks(WHO[0], bare());
        coordinator.round_of(happened(StoringEvent::SourceGone { requester }));
        let (records, mut heard) = watch::channel(None);
        let follow = CoordinatorMessage::Follow {
            name: name(),
            records,
        };
        coordinator.round_of(Wake::Message(follow));
        let later = ManualClock::new(Timestamp::from_second(1_900_000_000).unwrap());
        coordinator.parts.clock = later.clock();
        coordinator.round_of(Wake::Timer(name()));
        let record = heard.borrow_and_update().clone().unwrap();
        assert_eq!(record.phase, archive_decisions::store::NamePhase::Free);
        assert_eq!(coordinator.parts.admin.file(&name()).unwrap(), None);
    });
}

/// Fails if the states of an abandoned upload stay in memory when another depositor begins anew, or if its own
/// depositor loses them.
#[test]
fn upload_begun_anew_drops_the_abandoned_states() {
    on_a_coordinator(|coordinator, _| {
        let left = coordinator.parts.transfers.resume_points.clone();
        let first = coordinator.asks(WHO[0], bare());
        let begun = coordinator.upload();
        coordinator.hears(StoringEvent::SourceGone { requester: first });
        left.put_some(&begun);
        let again = coordinator.asks(WHO[0], bare());
        assert!(left.had_points(&begun), "its depositor resumes from them");
        coordinator.hears(StoringEvent::SourceGone { requester: again });
        left.put_some(&begun);
        coordinator.asks(WHO[1], bare());
        assert_ne!(coordinator.upload(), begun);
        assert!(!left.had_points(&begun), "nobody resumes from them");
    });
}
