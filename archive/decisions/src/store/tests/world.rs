//! A file's state machine and everything around it: what the disk remembers, who asked, what time it is.

use archive_model::{
    CopyPlace, Digests, FileName, NodeId, ReplicaKind, Root, StoreFailure, UploadId, VolumeId,
    time_after,
};
use jiff::SignedDuration;

use super::super::*;

pub(super) const ADMITTED: u8 = 1;
pub(super) const OTHER: u8 = 2;

pub(super) fn content(byte: u8) -> Content {
    let digests = Digests {
        sha256: Some([byte; 32]),
        md5: None,
    };
    Content {
        root: Root::from_bytes([byte; 32]),
        size: 1_000_000,
        digests,
    }
}

pub(super) fn claim(byte: u8) -> Claim {
    Claim {
        digests: Digests::default(),
        ..Claim::from(&content(byte))
    }
}

pub(super) const BARE: Claim = Claim {
    size: 1_000_000,
    root: None,
    digests: Digests {
        sha256: None,
        md5: None,
    },
};

/// Returns the record of a free name in the replicas of `set`: `B` and `C` stand for a required bitarchive and checksum
/// replica, `b` and `c` for replicas that are not required.
pub(super) fn record(set: &str) -> FileRecord {
    let specs = set
        .chars()
        .zip(["one", "two", "three", "four"])
        .map(|(letter, id)| ReplicaSpec {
            id: ReplicaId::new(id).unwrap(),
            kind: if letter.eq_ignore_ascii_case(&'b') {
                ReplicaKind::Bitarchive
            } else {
                ReplicaKind::Checksum
            },
            required: letter.is_ascii_uppercase(),
        });
    FileRecord::free_name(FileName::new("a.warc").unwrap(), &specs.collect::<Vec<_>>()).unwrap()
}

/// An event, without the ids that the test archive makes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    AskSame,
    AskOther,
    AskBare,
    ReceivedSame,
    ReceivedOther,
    SourceGone,
    Minutes(i64),
    Restart,
    Placed(usize),
    Progress(usize),
    DataUploaded(usize),
    Completed(usize),
    CompletedOther(usize),
    Absent(usize),
    Silent(usize),
    Failed(usize),
    /// The copy is wanted again: here at its recorded place, in `WantedElsewhere` at another one.
    Wanted(usize),
    WantedElsewhere(usize),
    Replacing(usize),
    Withdrawn(usize),
    Reinstated(usize),
    /// A replica that the file does not know is wanted: bytes, required.
    Joins,
    Readmitted,
    Gone(usize),
    Moved(usize),
}

pub(super) fn depositor_steps() -> Vec<Step> {
    use Step::{
        AskBare, AskOther, AskSame, Minutes, ReceivedOther, ReceivedSame, Restart, SourceGone,
    };
    vec![
        AskSame,
        AskOther,
        AskBare,
        ReceivedSame,
        ReceivedOther,
        SourceGone,
        Minutes(6),
        Minutes(1500),
        Restart,
    ]
}

pub(super) fn steps(replicas: usize, of_a_replica: &[fn(usize) -> Step]) -> Vec<Step> {
    let each = (0..replicas).flat_map(|replica| of_a_replica.iter().map(move |step| step(replica)));
    depositor_steps().into_iter().chain(each).collect()
}

/// The claim and the bytes of a depositor, by the first byte of the root.
#[derive(Clone, Copy, Debug)]
pub(super) struct Depositor {
    pub(super) claims: Option<u8>,
    pub(super) sent: Option<u8>,
}

const fn is_order(event: &StoringEvent) -> bool {
    matches!(
        event,
        StoringEvent::Wanted { .. }
            | StoringEvent::Replacing { .. }
            | StoringEvent::Withdrawn { .. }
            | StoringEvent::Reinstated { .. }
            | StoringEvent::Readmitted { .. }
    )
}

#[derive(Clone)]
pub(super) struct TestArchive {
    pub(super) state: FileState,
    /// The record that survives a crash: only what a `Persist` or `Expire` told to write.
    pub(super) disk: FileRecord,
    pub(super) timer: Option<Timestamp>,
    pub(super) now: Timestamp,
    pub(super) ids: Vec<ReplicaId>,
    limits: StoreLimits,
    asked: u64,
    pub(super) unanswered: BTreeMap<Requester, Depositor>,
    pub(super) bound_to: Option<Root>,
    /// Whether the file was in every required replica once.
    pub(super) was_acknowledged: bool,
    /// The replica of which the last event said that its copy is lost, or elsewhere (then it still counts).
    pub(super) not_counted: Option<(ReplicaId, bool)>,
    pub(super) trail: Vec<Step>,
    /// Whether the last event said that somebody in a replica is silent.
    pub(super) is_silent: bool,
    /// The order that people give at this moment; `None` if something happens by itself.
    pub(super) order: Option<Step>,
}

impl TestArchive {
    pub(super) fn new(set: &str) -> Self {
        let record = record(set);
        Self {
            ids: record.replicas.keys().cloned().collect(),
            state: FileState::new(record.clone()),
            disk: record,
            timer: None,
            now: Timestamp::from_second(1_000_000_000).unwrap(),
            limits: StoreLimits::default(),
            asked: 0,
            unanswered: BTreeMap::new(),
            bound_to: None,
            was_acknowledged: false,
            not_counted: None,
            trail: Vec::new(),
            is_silent: false,
            order: None,
        }
    }

    pub(super) fn ask(&mut self, claim: Claim) -> StoringEvent {
        self.asked += 1;
        let upload = UploadId::new(&format!("up-{}", self.asked)).unwrap();
        StoringEvent::Asked {
            requester: Requester(self.asked),
            upload,
            claim,
            resumes: true,
        }
    }

    /// Returns the depositor whose stream is read, or else the last that asked.
    fn sender(&self) -> Requester {
        let comparing = self.state.comparing.keys().next().copied();
        self.state
            .source
            .or(comparing)
            .unwrap_or(Requester(self.asked))
    }

    fn event(&mut self, step: Step) -> StoringEvent {
        let replica = |index: usize| self.ids[index].clone();
        match step {
            Step::AskSame => self.ask(claim(ADMITTED)),
            Step::AskOther => self.ask(claim(OTHER)),
            Step::AskBare => self.ask(BARE),
            Step::ReceivedSame => StoringEvent::Received {
                requester: self.sender(),
                content: content(ADMITTED),
            },
            Step::ReceivedOther => StoringEvent::Received {
                requester: self.sender(),
                content: content(OTHER),
            },
            Step::SourceGone => StoringEvent::SourceGone {
                requester: self.sender(),
            },
            Step::Minutes(_) | Step::Restart => StoringEvent::Tick,
            Step::Placed(r) => StoringEvent::Placed {
                replica: replica(r),
                node: NodeId::new("node").unwrap(),
            },
            Step::Progress(r) => StoringEvent::Progress {
                replica: replica(r),
            },
            Step::DataUploaded(r) => StoringEvent::DataUploaded {
                replica: replica(r),
            },
            Step::Completed(r) => self.completion(replica(r), ADMITTED),
            Step::CompletedOther(r) => self.completion(replica(r), OTHER),
            Step::Absent(r) => StoringEvent::Absent {
                replica: replica(r),
            },
            Step::Silent(r) => StoringEvent::Silent {
                replica: replica(r),
                reason: "a volume is offline".to_owned(),
            },
            Step::Failed(r) => StoringEvent::Failed {
                replica: replica(r),
                reason: StoreFailure::NoSpace,
            },
            Step::Wanted(r) => Self::wanted(replica(r), "volume"),
            Step::WantedElsewhere(r) => Self::wanted(replica(r), "volume-2"),
            Step::Joins => {
                let joins = ReplicaId::new("zero").unwrap();
                if self.state.record.phase != NamePhase::Free && !self.ids.contains(&joins) {
                    self.ids.push(joins.clone());
                }
                Self::wanted(joins, "volume")
            }
            Step::Replacing(r) => StoringEvent::Replacing {
                replica: replica(r),
                why: "replaced".to_owned(),
            },
            Step::Withdrawn(r) => StoringEvent::Withdrawn {
                replica: replica(r),
                why: "removed".to_owned(),
            },
            Step::Reinstated(r) => StoringEvent::Reinstated {
                replica: replica(r),
            },
            Step::Readmitted => {
                self.asked += 1;
                let upload = UploadId::new(&format!("up-{}", self.asked)).unwrap();
                StoringEvent::Readmitted {
                    upload,
                    content: content(OTHER),
                }
            }
            Step::Gone(r) => StoringEvent::Gone {
                replica: replica(r),
            },
            Step::Moved(r) => StoringEvent::Moved {
                replica: replica(r),
                node: NodeId::new("node").unwrap(),
                volume: VolumeId::new("elsewhere").unwrap(),
            },
        }
    }

    fn wanted(replica: ReplicaId, volume: &str) -> StoringEvent {
        let place = CopyPlace {
            node: NodeId::new("node").unwrap(),
            volume: VolumeId::new(volume).unwrap(),
        };
        StoringEvent::Wanted {
            replica,
            kind: ReplicaKind::Bitarchive,
            required: true,
            gone: Some((place, "retired".to_owned())),
        }
    }

    pub(super) fn completion(&self, replica: ReplicaId, byte: u8) -> StoringEvent {
        let node = NodeId::new("node").unwrap();
        let volume = VolumeId::new("volume").unwrap();
        StoringEvent::Completed {
            replica,
            node,
            volume,
            root: Root::from_bytes([byte; 32]),
            at: self.now,
            read_back: true,
        }
    }

    /// Returns what is under way with a replica, by its place in the set.
    pub(super) fn activity(&self, replica: usize) -> ReplicaActivity {
        self.state.current_activity(&self.ids[replica])
    }

    /// Lets the step happen, and checks every promise. Returns whether the step had an effect.
    pub(super) fn step(&mut self, step: Step) -> bool {
        self.trail.push(step);
        if let Step::Minutes(minutes) = step {
            self.now = time_after(self.now, SignedDuration::from_mins(minutes));
        }
        if step == Step::Restart {
            return self.restart();
        }
        let before = self.state.clone();
        let event = self.event(step);
        let asked = matches!(event, StoringEvent::Asked { .. });
        self.order = is_order(&event).then_some(step);
        self.apply(event);
        self.order = None;
        asked || self.state != before
    }

    /// Kills the process: depositors lose their connections, and the state is read from the disk.
    fn restart(&mut self) -> bool {
        let before = self.state.clone();
        let json = serde_json::to_string(&self.disk).unwrap();
        let row: FileRecord =
            postcard::from_bytes(&postcard::to_stdvec(&self.disk).unwrap()).unwrap();
        assert_eq!(
            serde_json::from_str::<FileRecord>(&json).unwrap(),
            row,
            "both formats read what they write"
        );
        let (state, effects) = FileState::restore_state(row, self.now, &self.limits);
        assert_eq!(
            state.record, before.record,
            "something changed without Persist"
        );
        let probed = effects
            .iter()
            .filter(|effect| matches!(effect, Effect::Probe { .. }))
            .count();
        let open = if state.record.is_final() {
            0
        } else {
            state.record.open_replicas().count()
        };
        assert_eq!(probed, open, "after a restart every open replica is asked");
        self.unanswered.clear();
        self.timer = None;
        self.state = state;
        self.check(false, &before, &effects);
        self.state != before
    }

    pub(super) fn apply(&mut self, event: StoringEvent) {
        let byte = |root: &Root| root.as_bytes()[0];
        if let StoringEvent::Asked {
            requester, claim, ..
        } = &event
        {
            let claims = claim.root.as_ref().map(byte);
            self.unanswered
                .insert(*requester, Depositor { claims, sent: None });
        }
        // Only a stream that is being read can end.
        if let StoringEvent::Received { requester, content } = &event
            && (self.state.source == Some(*requester)
                || self.state.comparing.contains_key(requester))
            && let Some(depositor) = self.unanswered.get_mut(requester)
        {
            depositor.sent = Some(byte(&content.root));
        }
        let before = self.state.clone();
        let ticked = event == StoringEvent::Tick;
        self.is_silent = matches!(event, StoringEvent::Silent { .. });
        self.not_counted = if let StoringEvent::Gone { replica } = &event {
            Some((replica.clone(), false))
        } else if let StoringEvent::Moved { replica, .. } = &event {
            Some((replica.clone(), true))
        } else {
            None
        };
        let effects = self.state.apply_event(event, self.now, &self.limits);
        self.check(ticked, &before, &effects);
    }
}
