//! One file on its way off a volume or node that is drained: look, decide, do one step, and again.

use std::sync::Arc;
use std::time::Duration;

use archive_decisions::drain::{CopyContent, CopyState, Recorded, Side, Step, decide};
use archive_decisions::store::Event;
use archive_ledger::admin::AdminRow;
use archive_ledger::standing::Source;
use archive_model::{CopyCondition, CopyPlace, FileCopy, FileName, Finder, Groups, Root};
use archive_replicas::{Cause, Located};
use archive_rpc::{CallError, Kind};
use archive_stores::assemble::{Donor, WantedFile};
use archive_stores::heal::send_all;
use archive_stores::transfer::{Item, Route, UploadVerdict};
use tokio::sync::{mpsc, watch};

use super::Hands;
use crate::preserver::Errand;

/// So many steps are done for one file, one after another.
const STEPS: usize = 8;

/// The pause before a file that its node is at work on is looked at again.
const BUSY: Duration = Duration::from_millis(200);

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// Nothing of it is there any more.
    Left,
    /// Not now.
    Waits(String),
    /// It has moved, and its node does not let go of the old copy before the next hour.
    Braked(String),
    /// Something of it stays there for good, on which the archive does not count.
    Stays(String),
}

/// What was found out on the way.
#[derive(Default)]
struct Way {
    /// The copy that was read whole just now.
    proven: Option<CopyPlace>,
    /// The old copy was damaged, or not there.
    is_hurt: bool,
}

impl Hands {
    /// Has one file leave.
    pub(super) async fn leave(&self, source: &Source, name: &FileName) -> Ended {
        let clock = &self.own.clock;
        let until = clock.instant() + self.own.stall;
        loop {
            match self.try_leave(source, name).await {
                Ok(ended) => return ended,
                // Its node has not yet seen the end of what went before: of a move that was cut, perhaps.
                Err(error) if error.kind == Kind::Busy && clock.instant() < until => {
                    clock.sleep(BUSY).await;
                }
                Err(error) if error.kind == Kind::Refused => {
                    return Ended::Braked(error.reason);
                }
                Err(error) => return Ended::Waits(error.reason),
            }
        }
    }

    async fn try_leave(&self, source: &Source, name: &FileName) -> Result<Ended, CallError> {
        let Some(_claim) = self.own.repairing.claim(name, usize::MAX) else {
            return Ok(Ended::Waits("it is being repaired".to_owned()));
        };
        let mut way = Way::default();
        for _ in 0..STEPS {
            if !self.is_drained_still(source) {
                return Ok(Ended::Waits("it is drained no more".to_owned()));
            }
            let located = self.located(source, name).await?;
            // Asked after the replica: what was stored meanwhile is known here.
            let row = self.people.row(name).await?;
            let copies = self.seen(source, row.as_ref(), &located);
            let recorded = self.recorded(source, row.as_ref());
            let step = decide(&recorded, &copies, located.silent.is_some());
            let row = match (step, row) {
                (Step::Nothing, row) => {
                    self.told(source, name, row.as_ref(), &way).await?;
                    return Ok(Ended::Left);
                }
                (Step::Wait(why), _) => return Ok(Ended::Waits(why.to_string())),
                (Step::Leave(why), _) => return Ok(Ended::Stays(why.to_string())),
                (_, None) => return Ok(Ended::Waits("it is not in the archive".to_owned())),
                (step, Some(row)) => (step, row),
            };
            match row {
                (Step::Bring, row) => self.bring(source, &row, &located, &mut way).await?,
                (Step::Record(place), row) => {
                    self.prove(source, &row, &place, &mut way).await?;
                    let event = Event::Moved {
                        replica: source.replica.clone(),
                        node: place.node,
                        volume: place.volume,
                    };
                    self.people.order(name, event, &self.own.own).await?;
                    if let Recorded::At(_, Side::Source) = recorded {
                        let size = row.record.content.map_or(0, |content| content.size);
                        self.board.left(source, size);
                    }
                }
                (Step::PutAside { old, kept }, row) => {
                    self.prove(source, &row, &kept, &mut way).await?;
                    let (root, size) = content(&row)?;
                    self.put_aside(source, name, (&old, root, size), &kept)
                        .await?;
                }
                (Step::PutDamagedAside { old, kept }, row) => {
                    way.is_hurt = true;
                    self.prove(source, &row, &kept, &mut way).await?;
                    let (_, size) = content(&row)?;
                    let Some(found) = self.judged(source, name, &old).await? else {
                        return Ok(Ended::Stays(format!(
                            "it cannot be read whole there; a whole copy is on {kept}"
                        )));
                    };
                    self.put_aside(source, name, (&old, found, size), &kept)
                        .await?;
                }
                (Step::Nothing | Step::Wait(_) | Step::Leave(_), _) => {}
            }
        }
        Ok(Ended::Waits(
            "it changes all the time; it is looked at again".to_owned(),
        ))
    }

    async fn located(&self, source: &Source, name: &FileName) -> Result<Located, CallError> {
        let locating = self.own.replicas.locate(&source.replica, name);
        let located = self.own.clock.timeout(self.own.stall, locating).await;
        located.map_err(|late| Kind::TimedOut.error(late.to_string()))?
    }

    fn side(&self, source: &Source, CopyPlace { node, volume }: &CopyPlace) -> Side {
        let replica = &source.replica;
        if source.holds(replica, node, volume) {
            Side::Source
        } else if self.now().leaves(replica, node, volume) {
            Side::Leaving
        } else {
            Side::Stays
        }
    }

    fn seen(&self, source: &Source, row: Option<&AdminRow>, located: &Located) -> Vec<CopyState> {
        let content = row.and_then(|row| row.record.content.as_ref());
        let admitted = content.map(|content| content.root);
        let copies = located.copies.iter().map(|copy| CopyState {
            place: copy.place.clone(),
            side: self.side(source, &copy.place),
            content: match &copy.condition {
                CopyCondition::Missing => CopyContent::Missing,
                CopyCondition::Present if copy.root == admitted => CopyContent::Whole,
                CopyCondition::Damaged { .. } if copy.root == admitted => CopyContent::Damaged,
                CopyCondition::Present
                | CopyCondition::Damaged { .. }
                | CopyCondition::Unexpected => CopyContent::Foreign,
            },
        });
        copies.collect()
    }

    fn recorded(&self, source: &Source, row: Option<&AdminRow>) -> Recorded {
        let Some(record) = row.map(|row| &row.record) else {
            return Recorded::Nothing;
        };
        if !record.phase.is_bound() {
            return Recorded::OnItsWay;
        }
        match record.replicas.get(&source.replica) {
            None => Recorded::Nothing,
            Some(copy) if copy.state.is_withdrawn() => Recorded::Nothing,
            Some(copy) => match (&copy.node, &copy.volume) {
                (Some(node), Some(volume)) if copy.state.is_completed() => {
                    let place = CopyPlace {
                        node: node.clone(),
                        volume: volume.clone(),
                    };
                    let side = self.side(source, &place);
                    Recorded::At(place, side)
                }
                _ => Recorded::OnItsWay,
            },
        }
    }

    /// Brings a copy to where it may stay, out of whichever copies have each part intact; the one that leaves first.
    async fn bring(
        &self,
        source: &Source,
        row: &AdminRow,
        located: &Located,
        way: &mut Way,
    ) -> Result<(), CallError> {
        let record = &row.record;
        let name = &record.name;
        let (root, size) = content(row)?;
        let (Some(upload), Some(admission)) = (&record.upload, &row.admission) else {
            return Err(Kind::Storage.error("it has no admission"));
        };
        let is_old = |copy: &&FileCopy| {
            self.side(source, &copy.place) == Side::Source && copy.root == Some(root)
        };
        let old = located.copies.iter().find(is_old);
        if !old.is_some_and(FileCopy::is_present) && located.silent.is_none() {
            // What is wrong with it is filed before anything is done about it.
            way.is_hurt = true;
            let errand = self.errand();
            let looking = self.own.look_and_file(&source.replica, name, &errand);
            Box::pin(looking).await?;
        }
        let own = located.copies.iter().filter(|copy| copy.is_readable());
        let own = own
            .filter(|copy| copy.root == Some(root))
            .map(|copy| Donor {
                replica: source.replica.clone(),
                node: Some(copy.place.node.clone()),
                bad: copy.located_damage(),
            });
        let others = record.donors().filter(|id| **id != source.replica);
        let others = others.map(|id| Donor {
            replica: id.clone(),
            node: record.replicas.get(id).and_then(|copy| copy.node.clone()),
            bad: Groups::none(),
        });
        let donors: Vec<Donor> = own.take(1).chain(others).collect();
        let wanted = WantedFile {
            name: name.clone(),
            root,
            size,
        };
        let item = Item {
            name: name.clone(),
            upload: upload.id.clone(),
            size,
        };
        let route = Route::quiet(self.now().leaving_nodes(&source.replica));
        let (lane, mut chunks) = mpsc::channel(4);
        let (seal, sealed) = watch::channel(None);
        let mut reading = self
            .own
            .assembler
            .read(wanted, donors, std::iter::once(0..size))
            .with_bytes();
        let filling = async {
            let transfers = &self.people.transfers;
            let filled = transfers.upload(&source.replica, &item, &mut chunks, sealed, route);
            let filled = filled.await;
            // Whoever still sends is told so.
            drop(chunks);
            filled
        };
        let sending = async {
            let sent = send_all(&mut reading, &lane, Some(&self.pace)).await;
            drop(lane);
            if sent.is_ok() {
                let admission: Arc<str> = admission.as_str().into();
                seal.send_replace(Some(UploadVerdict::Admitted(admission)));
            }
            drop(seal);
            sent
        };
        let (filled, sent) = tokio::join!(Box::pin(filling), Box::pin(sending));
        for (replica, node) in reading.damaged() {
            if replica == source.replica {
                way.is_hurt = true;
                self.read_again(source, name, old, size).await;
            } else {
                self.own.suspect(name, &replica, node.as_ref());
            }
        }
        sent.map_err(|reason| Kind::Unavailable.error(reason.to_string()))?;
        let ended = || Kind::Unavailable.error("the transfer ended without an answer");
        let copy = filled?.ok_or_else(ended)?.copy;
        let is_elsewhere = self.side(source, &copy.place) == Side::Stays;
        if !is_elsewhere || !copy.is_present() || copy.root != Some(root) {
            let said = "its node did not store it elsewhere; it is tried again";
            return Err(Kind::Unavailable.error(said));
        }
        way.proven = Some(copy.place);
        Ok(())
    }

    /// The old copy showed damage: it is read whole, and what is found is filed.
    async fn read_again(
        &self,
        source: &Source,
        name: &FileName,
        old: Option<&FileCopy>,
        size: u64,
    ) {
        let Some(old) = old else {
            return;
        };
        let place = (&source.replica, &old.place.node, Some(&old.place.volume));
        let verified = self.own.verify(place, name, size, |_| {}).await;
        let filed = match verified {
            Ok(copy) => {
                let errand = self.errand();
                let filing = self
                    .own
                    .file_verified(&source.replica, name, &copy, &errand);
                Box::pin(filing).await.map(drop)
            }
            Err(error) => Err(error),
        };
        if let Err(error) = filed {
            tracing::warn!(file = %name, %source, %error, "a damaged copy cannot be looked at");
        }
    }

    /// Reads a copy on which a step relies, unless it was read just now.
    async fn prove(
        &self,
        source: &Source,
        row: &AdminRow,
        place: &CopyPlace,
        way: &mut Way,
    ) -> Result<(), CallError> {
        if way.proven.as_ref() == Some(place) {
            return Ok(());
        }
        let (root, size) = content(row)?;
        let name = &row.record.name;
        let at = (&source.replica, &place.node, Some(&place.volume));
        let copy = self.own.verify(at, name, size, |_| {}).await?;
        if copy.is_present() && copy.root == Some(root) {
            way.proven = Some(place.clone());
            return Ok(());
        }
        let errand = self.errand();
        let filing = self
            .own
            .file_verified(&source.replica, name, &copy, &errand);
        Box::pin(filing).await?;
        Err(Kind::Damaged.error(format!("its copy on {place} is damaged")))
    }

    /// The root of a damaged copy as it is read now; none: it cannot be read whole.
    async fn judged(
        &self,
        source: &Source,
        name: &FileName,
        old: &CopyPlace,
    ) -> Result<Option<Root>, CallError> {
        let place = (&old.node, Some(&old.volume));
        let reading = self.people.read_again(&source.replica, name, place);
        Ok(reading.await?.root)
    }

    async fn put_aside(
        &self,
        source: &Source,
        name: &FileName,
        (old, root, size): (&CopyPlace, Root, u64),
        kept: &CopyPlace,
    ) -> Result<(), CallError> {
        let cause = Cause {
            approval: None,
            who: self.own.own.to_string(),
            why: format!("{source} is drained; a whole copy is on {kept}"),
        };
        let what = format!(
            "moved in replica {} from {old} to {kept}; the old copy goes to the attic there",
            source.replica
        );
        // Before it is done: an act that the trail does not name must not be.
        self.people
            .note(cause.who.clone(), Some(name.clone()), what)
            .await?;
        let place = (&old.node, &old.volume);
        let replicas = &self.people.transfers.replicas;
        let moving = replicas.put_aside(&source.replica, name, place, &root, &cause);
        self.people.within(size, moving).await.map(drop)
    }

    /// What was filed of the old copy is closed: the replica has a whole one.
    async fn told(
        &self,
        source: &Source,
        name: &FileName,
        row: Option<&AdminRow>,
        way: &Way,
    ) -> Result<(), CallError> {
        let (Some(place), Some(row), true) = (&way.proven, row, way.is_hurt) else {
            return Ok(());
        };
        let (_, size) = content(row)?;
        let at = (&source.replica, &place.node, Some(&place.volume));
        let copy = self.own.verify(at, name, size, |_| {}).await?;
        let errand = self.errand();
        let filing = self
            .own
            .file_verified(&source.replica, name, &copy, &errand);
        Box::pin(filing).await.map(drop)
    }

    fn errand(&self) -> Errand {
        Errand {
            who: Arc::clone(&self.own.own),
            finder: Finder::Read,
            is_second: false,
        }
    }
}

fn content(row: &AdminRow) -> Result<(Root, u64), CallError> {
    let content = row.record.content.as_ref();
    let content = content.map(|content| (content.root, content.size));
    content.ok_or_else(|| Kind::NotFound.error(format!("{} has no content", row.record.name)))
}
