//! In whose name a file is admitted, on a coordinator that is driven by hand.

use archive_daemon::clock::ManualClock;
use archive_model::{Digests, FileName, ReplicaId, ReplicaKind, Root};
use tokio_util::sync::CancellationToken;

use super::paging::tests::coordinator;
use super::*;
use crate::store::Content;

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

/// An announcement that says only how long the file is.
fn bare() -> Claim {
    let digests = Claim::from(&content());
    Claim {
        root: None,
        ..digests
    }
}

impl Coordinator {
    fn happens(&mut self, wake: Wake) {
        let mut decided = Vec::new();
        self.decide(wake, &mut decided).unwrap();
    }

    /// Somebody asks to store the file; who that is from then on.
    fn asks(&mut self, who: &str, claim: Claim) -> Requester {
        let (replies, _) = mpsc::channel(1);
        let depositor = Depositor {
            who: who.to_owned(),
            source: None,
            replies,
            sent: false,
            claim: claim.clone(),
            received: None,
            answered: CancellationToken::new(),
        };
        self.happens(Wake::Letter(Letter::Ask {
            name: name(),
            claim,
            depositor: Box::new(depositor),
        }));
        Requester(self.last_requester)
    }

    fn hears(&mut self, event: Event) {
        let name = name();
        self.happens(Wake::Letter(Letter::Happened { name, event }));
    }

    fn is_received(&mut self, requester: Requester) {
        self.hears(Event::Received {
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

fn on_a_coordinator(test: impl FnOnce(&mut Coordinator)) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _inside = runtime.enter();
    let directory = tempfile::tempdir().unwrap();
    let admin = Admin::init(directory.path()).unwrap();
    let hand = ManualClock::new(Timestamp::from_second(1_800_000_000).unwrap());
    let mut coordinator = coordinator(&admin, &hand);
    coordinator.specs = vec![ReplicaSpec {
        id: ReplicaId::new("one").unwrap(),
        kind: ReplicaKind::Bitarchive,
        required: true,
    }];
    test(&mut coordinator);
}

/// Fails if who goes on with an upload that another one left deposits in the other one's name.
#[test]
fn abandoned_upload_is_resumed_by_its_depositor_only() {
    on_a_coordinator(|coordinator| {
        let first = coordinator.asks(WHO[0], bare());
        let begun = coordinator.upload();
        coordinator.hears(Event::SourceGone { requester: first });
        let again = coordinator.asks(WHO[0], bare());
        assert_eq!(coordinator.upload(), begun, "the same one goes on");
        coordinator.hears(Event::SourceGone { requester: again });
        let second = coordinator.asks(WHO[1], bare());
        assert_ne!(coordinator.upload(), begun);
        coordinator.is_received(second);
        assert_eq!(coordinator.depositor(), WHO[1]);
    });
}

/// Fails if the admission names who announced the bytes, and not who sent them.
#[test]
fn depositor_is_whose_bytes_are_admitted() {
    on_a_coordinator(|coordinator| {
        let first = coordinator.asks(WHO[0], Claim::from(&content()));
        let second = coordinator.asks(WHO[1], Claim::from(&content()));
        assert_eq!(coordinator.depositor(), WHO[0]);
        coordinator.hears(Event::SourceGone { requester: first });
        coordinator.is_received(second);
        assert_eq!(coordinator.depositor(), WHO[1]);
    });
}
