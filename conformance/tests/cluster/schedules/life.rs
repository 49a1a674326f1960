//! The life of one file: what a seed lets people and disks do with it, and what must be true of it in the end.

use std::error::Error as _;
use std::fmt;
use std::fs::{self, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::PathBuf;
use std::time::Duration;

use archive_bitarchive::Layout;
use archive_client::{
    Access, ArchiveReader, ClientError, Depositor, FileRange, Ingest, ReplicaProgress, StoreEvent,
};
use archive_model::FileName;
use conformance::contract::{deposit, root};
use proto_archive::wire::ask_request::{Act as Asked, ReinstateCopy, Remove};
use proto_archive::wire::check_request::Kind;
use proto_archive::wire::request_state::State as RequestStage;
use proto_archive::wire::{
    AdoptFileRequest, AnomalyKind, AnomalyState, AskRequest, AtticsRef, AtticsRequest,
    CheckRequest, RepairRequest, RequestRef, RequestState, RequestsRequest,
};
use tokio::time::sleep;
use tonic::{Code, Response, Status};
use tools_testing::{Random, noise};

use super::super::people::{People, node_of, people};
use super::super::world::Cluster;

/// The replica with two nodes, on which the acts are; the others keep what they have.
const REPLICA: &str = "one";

/// The directories of its nodes.
const PLACES: [&str; 2] = ["one", "one-2"];

/// The longest pause between two acts, in milliseconds.
const PAUSE: u64 = 300;

/// One thing that befalls a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Store,
    Get,
    Flip,
    Lose,
    Check,
    Repair,
    Remove,
    Reinstate,
    AdoptAlone,
    RestoreAlone,
}

/// Several acts are there twice: these happen oftener.
const ACTS: [Act; 14] = [
    Act::Store,
    Act::Get,
    Act::Flip,
    Act::Flip,
    Act::Lose,
    Act::Check,
    Act::Repair,
    Act::Repair,
    Act::Remove,
    Act::Remove,
    Act::Reinstate,
    Act::Reinstate,
    Act::AdoptAlone,
    Act::RestoreAlone,
];

/// The doors and directories of an archive, as the lives need them.
pub(super) struct Doors {
    depositor: Depositor,
    reader: ArchiveReader,
    officer: People,
    custodians: [People; 2],
    /// The volumes of the replica.
    places: [Layout; 2],
}

impl Doors {
    pub(super) fn open(cluster: &Cluster) -> Self {
        Self {
            depositor: cluster.depositor(),
            reader: cluster.reader(),
            officer: people(cluster, "officer/olga"),
            custodians: ["custodian/anna", "custodian/bert"].map(|who| people(cluster, who)),
            places: PLACES.map(|place| Layout::new(&cluster.path(place).join("volume"))),
        }
    }

    /// Withdraws the requests that nobody approved. Fails while one that was approved is being done.
    pub(super) async fn close_requests(&self) -> Result<(), Vec<RequestState>> {
        let [mut anna, _] = self.custodians.clone();
        let asked = anna.requests(RequestsRequest::default()).await;
        let mut asked = asked.unwrap().into_inner().requests;
        for request in asked.extract_if(.., |request| request.state() == RequestStage::Open) {
            let withdraw = RequestRef { id: request.id };
            // One that has ended meanwhile is as good.
            drop(anna.withdraw(withdraw).await);
        }
        if asked.is_empty() { Ok(()) } else { Err(asked) }
    }

    /// Returns the places of the copies of a file in the replica.
    fn copies(&self, name: &FileName) -> Vec<PathBuf> {
        let places = self.places.iter();
        let copies = places.map(|layout| layout.target_paths(name).file);
        copies.filter(|copy| copy.try_exists().unwrap()).collect()
    }
}

/// What became of one act.
pub(super) enum Outcome {
    Done,
    /// It was refused, or is not possible now: nothing follows from it.
    Refused(String),
    /// It was decided, and not done as far as is known.
    Unclear(String),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::Refused(why) => write!(f, "refused ({why})"),
            Self::Unclear(why) => write!(f, "not done ({why})"),
        }
    }
}

/// What two persons have decided of the file in the replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Removal {
    Kept,
    Removed,
    /// What they decided last did not come to its end, as far as they know.
    Unclear,
}

pub(super) struct Life {
    pub(super) name: FileName,
    bytes: Vec<u8>,
    acts: Vec<Act>,
    random: Random,
    past: Vec<String>,
    is_acknowledged: bool,
    removal: Removal,
    /// Whether a copy that the archive had not looked at again was damaged.
    is_hurt: bool,
}

impl Life {
    pub(super) fn new(seed: u64, number: u64) -> Self {
        let mut random = Random::new(seed.wrapping_mul(1000).wrapping_add(number));
        let mut acts = vec![Act::Store];
        for _ in 0..3 + random.below(6) {
            acts.push(*random.pick(&ACTS));
        }
        let size = 1 + random.index(3 * 16384);
        Self {
            name: FileName::new(&format!("life-{number}")).unwrap(),
            bytes: noise(size, random.roll()),
            acts,
            random,
            past: Vec::new(),
            is_acknowledged: false,
            removal: Removal::Kept,
            is_hurt: false,
        }
    }

    /// Returns what befell the file.
    pub(super) fn past(&self) -> String {
        self.past.join(", ")
    }

    pub(super) async fn live(mut self, doors: &Doors) -> Self {
        for act in std::mem::take(&mut self.acts) {
            let pause = self.random.below(PAUSE);
            sleep(Duration::from_millis(pause)).await;
            self.pass(doors, act).await;
        }
        self
    }

    /// Lets all that is wrong be found and mended, as an officer does in the end, and ends what two persons began.
    pub(super) async fn settle(mut self, doors: &Doors) -> Self {
        self.past.push("in the end".to_owned());
        if !self.is_acknowledged {
            self.pass(doors, Act::Store).await;
        }
        if self.removal == Removal::Unclear {
            self.removal = Removal::Kept;
            if self.progress(doors).await == Some(ReplicaProgress::Withdrawn) {
                self.removal = Removal::Removed;
                self.pass(doors, Act::Remove).await;
            }
        }
        for act in [Act::Check, Act::Repair].repeat(3) {
            self.pass(doors, act).await;
        }
        self
    }

    async fn pass(&mut self, doors: &Doors, act: Act) {
        let outcome = self.befall(doors, act).await;
        self.past.push(format!("{act:?} {outcome}"));
    }

    /// Returns what the record says of the replica.
    async fn progress(&self, doors: &Doors) -> Option<ReplicaProgress> {
        let status = doors.depositor.stat(&self.name).await.unwrap();
        let mut replicas = status.replicas.iter();
        let one = replicas.find(|one| one.replica.as_str() == REPLICA);
        one.map(|one| one.progress)
    }

    async fn befall(&mut self, doors: &Doors, act: Act) -> Outcome {
        let name = self.name.to_string();
        match act {
            Act::Store => {
                let ignore = |_: StoreEvent<'_>| {};
                let deposit = deposit(&self.name, &self.bytes);
                match doors.depositor.store(&deposit, &ignore).await {
                    Ok(_stored) => {
                        self.is_acknowledged = true;
                        Outcome::Done
                    }
                    Err(error) => Outcome::Refused(error.to_string()),
                }
            }
            Act::Get => match self.read(doors).await {
                Ok(read) => {
                    assert!(read == self.bytes, "{name}: {}", self.past());
                    Outcome::Done
                }
                Err(error) if error.is_passing() || !self.is_acknowledged => {
                    Outcome::Refused(error.to_string())
                }
                Err(error) => panic!("{name} cannot be read: {error}; {}", self.past()),
            },
            Act::Flip | Act::Lose => {
                let Some(copy) = doors.copies(&self.name).pop() else {
                    return Outcome::Refused("there is none".to_owned());
                };
                let hurt = if act == Act::Flip {
                    self.flip(&copy)
                } else {
                    fs::remove_file(&copy)
                };
                match hurt {
                    // What has left meanwhile is in an attic: nobody reads it again.
                    Ok(()) => {
                        self.is_hurt = act == Act::Flip && copy.try_exists().unwrap();
                        Outcome::Done
                    }
                    Err(error) => Outcome::Refused(error.to_string()),
                }
            }
            Act::Check => {
                let request = CheckRequest {
                    names: vec![name],
                    kind: Kind::Checksums.into(),
                    ..CheckRequest::default()
                };
                let mut officer = doors.officer.clone();
                told(async {
                    let mut steps = officer.check(request).await?.into_inner();
                    while steps.message().await?.is_some() {}
                    Ok(())
                })
                .await
            }
            Act::Repair => {
                let (said, outcome) = self.repair(doors).await;
                self.past.push(said);
                outcome
            }
            Act::Remove => {
                let remove = Asked::Remove(Remove {
                    name,
                    replica: REPLICA.to_owned(),
                    checksum: root(&self.bytes).as_bytes().to_vec().into(),
                    last_copies: false,
                });
                self.decide(doors, remove, Removal::Removed).await
            }
            Act::Reinstate => {
                let reinstate = Asked::ReinstateCopy(ReinstateCopy {
                    name,
                    replica: REPLICA.to_owned(),
                });
                self.decide(doors, reinstate, Removal::Kept).await
            }
            Act::AdoptAlone => {
                let adopt = AdoptFileRequest {
                    name,
                    replica: REPLICA.to_owned(),
                };
                let mut officer = doors.officer.clone();
                told(async { officer.adopt(adopt).await.map(drop) }).await
            }
            Act::RestoreAlone => self.restore_alone(doors).await,
        }
    }

    /// Has one officer take what lies in an attic of the replica back.
    async fn restore_alone(&self, doors: &Doors) -> Outcome {
        let mut officer = doors.officer.clone();
        told(async {
            let mut attics = officer.attics(AtticsRequest::default()).await?.into_inner();
            while let Some(message) = attics.message().await? {
                let mut items = message.items.into_iter();
                let own = items.find_map(|entry| {
                    let item = entry.item?;
                    let is_own = entry.replica == REPLICA && item.name == self.name.as_str();
                    is_own.then_some(item)
                });
                if let Some(item) = own {
                    let back = AtticsRef {
                        replica: REPLICA.to_owned(),
                        node: item.node,
                        volume: item.volume,
                        id: item.id,
                        reason: "a test".to_owned(),
                        ..AtticsRef::default()
                    };
                    officer.restore(back).await?;
                }
            }
            Ok(())
        })
        .await
    }

    /// Has two persons decide whether the file is removed.
    async fn decide(&mut self, doors: &Doors, act: Asked, becomes: Removal) -> Outcome {
        let outcome = decided(doors, act).await;
        match &outcome {
            Outcome::Done => self.removal = becomes,
            Outcome::Unclear(_) => self.removal = Removal::Unclear,
            Outcome::Refused(_) => {}
        }
        outcome
    }

    /// Has an officer repair the file, and returns what that says.
    pub(super) async fn repair(&self, doors: &Doors) -> (String, Outcome) {
        let request = RepairRequest {
            names: vec![self.name.to_string()],
            reason: "a test".to_owned(),
            ..RepairRequest::default()
        };
        let mut officer = doors.officer.clone();
        let mut said = Vec::new();
        let repairing = told(async {
            let mut steps = officer.repair(request).await?.into_inner();
            while let Some(step) = steps.message().await? {
                said.push(step.what);
            }
            Ok(())
        });
        let outcome = repairing.await;
        (said.join(" and "), outcome)
    }

    /// Returns whether one of these findings is of the file.
    pub(super) fn is_among(&self, found: &[String]) -> bool {
        let own = format!(" {}", self.name);
        found.iter().any(|found| found.ends_with(&own))
    }

    async fn read(&self, doors: &Doors) -> Result<Vec<u8>, ClientError> {
        let wanted = FileRange::whole_file(self.name.clone());
        let mut reading = doors.reader.get(&wanted).await?;
        let mut bytes = Vec::new();
        while let Some(part) = reading.next().await? {
            bytes.extend_from_slice(&part);
        }
        Ok(bytes)
    }

    /// Flips a bit of a copy, which may leave its place at any moment.
    fn flip(&mut self, copy: &PathBuf) -> io::Result<()> {
        let at = self.random.index(self.bytes.len());
        fs::set_permissions(copy, Permissions::from_mode(0o644))?;
        let file = OpenOptions::new().write(true).open(copy)?;
        file.write_all_at(&[self.bytes[at] ^ 1], at as u64)?;
        file.set_permissions(Permissions::from_mode(0o444))
    }

    /// Returns what is not as it must be in the end.
    pub(super) async fn faults(&self, doors: &Doors, ever: &[AnomalyState]) -> Vec<String> {
        let mut faults = Vec::new();
        if !self.is_acknowledged {
            return faults;
        }
        match self.read(doors).await {
            Ok(read) if read == self.bytes => {}
            Ok(_other) => faults.push("other bytes are read".to_owned()),
            Err(error) => faults.push(format!("it cannot be read: {error}")),
        }
        let copies = doors.copies(&self.name);
        let is_removed = self.removal == Removal::Removed;
        let wanted = usize::from(!is_removed);
        if copies.len() != wanted {
            faults.push(format!("{copies:?} are there, and not {wanted}"));
        }
        for copy in &copies {
            if fs::read(copy).unwrap() != self.bytes {
                faults.push(format!("{} is damaged", copy.display()));
            }
        }
        let wanted = if is_removed {
            ReplicaProgress::Withdrawn
        } else {
            ReplicaProgress::UploadCompleted
        };
        let progress = self.progress(doors).await;
        if progress != Some(wanted) {
            faults.push(format!("the record says {progress:?}, not {wanted:?}"));
        }
        if !is_removed {
            let status = doors.depositor.stat(&self.name).await.unwrap();
            let node = node_of(&status, REPLICA).unwrap_or_default();
            let place = node.strip_suffix("-1").unwrap_or_default();
            let is_it = |copy: &PathBuf| copy.iter().any(|part| part == place);
            if !copies.iter().any(is_it) {
                faults.push(format!("recorded on {node}, and lies at {copies:?}"));
            }
        }
        let mut about = ever.iter().filter(|met| met.file == self.name.as_str());
        if self.is_hurt && !about.any(|met| met.kind() == AnomalyKind::Corrupt) {
            faults.push("nobody was told that it was damaged".to_owned());
        }
        faults
    }
}

/// Has two persons decide an act.
async fn decided(doors: &Doors, act: Asked) -> Outcome {
    let [mut anna, mut bert] = doors.custodians.clone();
    let request = AskRequest {
        act: Some(act),
        reason: "a test".to_owned(),
    };
    let asked = match anna.ask(request).await {
        Ok(asked) => asked.into_inner(),
        Err(status) => return refused(&status),
    };
    let request = RequestRef { id: asked.id };
    match bert.approve(request).await.map(Response::into_inner) {
        Ok(state) if state.state() == RequestStage::Done => Outcome::Done,
        Ok(RequestState { outcome, .. }) => Outcome::Unclear(outcome),
        Err(status) => Outcome::Unclear(status.message().to_owned()),
    }
}

/// Returns what became of a call.
async fn told(call: impl Future<Output = Result<(), Status>>) -> Outcome {
    match call.await {
        Ok(()) => Outcome::Done,
        Err(status) => refused(&status),
    }
}

fn refused(status: &Status) -> Outcome {
    let message = status.message();
    // What breaks with a connection is no answer of the repository.
    let is_answer = status.source().is_none();
    let is_bug = matches!(
        status.code(),
        Code::Internal | Code::Unknown | Code::DataLoss
    );
    assert!(!is_answer || !is_bug, "{message}");
    Outcome::Refused(message.to_owned())
}
