//! Approved acts, one function each: checks that nothing has changed, carries the act out, and stores it.
//!
//! Each can be repeated after a restart: the result of an earlier try is found, and not done twice. No error reveals
//! the checksum of a copy: the person who destroys it must know it.

use std::sync::Arc;

use archive_decisions::store::{Content, FileRecord, ReplicaRecord, StoringEvent};
use archive_decisions::vote::{Ballot, Evidence, RootAuthority, RootVerdict, decide_root};
use archive_ledger::admin::AdminRow;
use archive_ledger::requests::{PersonRequest, RequestStatus, RequestedAct};
use archive_model::{
    Act, Approval, AtticItem, Cause, CopyPlace, Digests, FileContent, FileCopy, FileName, NodeId,
    ReplicaId, ReplicaKind, ReplicaState, Root, UploadId, VolumeKey,
};
use archive_replicas::admitted_content;
use archive_rpc::{CallError, CallErrorKind, run_blocking};

use super::People;
use super::accept::accept_anomaly;
use super::purge::PurgeTerms;
use super::refusal::{changed_meanwhile, recorded_content};

/// The copies of a file, each read whole, so that their replicas can vote on the root of the file.
#[derive(Default)]
struct ReadCopies {
    ballots: Vec<Ballot>,
    /// The places of the copies with the new root.
    holders: Vec<VolumeKey>,
    /// The size of these copies.
    size: u64,
    /// The places on checksum replicas.
    records: Vec<VolumeKey>,
    /// Whether a copy has the recorded root.
    has_recorded: bool,
}

/// A copy that is to be removed, with the content that is read there now.
pub(super) struct RemovedCopy {
    pub(super) place: CopyPlace,
    pub(super) content: FileContent,
}

impl People {
    /// Checks that an act is possible now; asked before a request is accepted, and again before it is carried out.
    pub(super) async fn check_possible(&self, of: &RequestedAct) -> Result<(), CallError> {
        match &of.act {
            Act::Remove {
                name,
                replica,
                checksum,
                last_copies,
            } => {
                let row = self.row_of(name).await?;
                self.removable(row.as_ref(), name, replica, checksum, *last_copies)
                    .await
                    .map(drop)
            }
            Act::Purge {
                place,
                checksum,
                last_copies,
            } => {
                let terms = PurgeTerms {
                    checksum: checksum.as_ref(),
                    last_copies: *last_copies,
                };
                self.check_destroyable(place, terms, of.subject.item())
                    .await
            }
            Act::RetireVolume {
                volume,
                last_copies,
            } => {
                let volume = self.named_volume(volume).await?;
                self.volume_can_go(&volume, *last_copies).await
            }
            Act::RetireNode { node, last_copies } => {
                let node = self.named_node(node).await?;
                self.node_can_go(&node, *last_copies).await
            }
            Act::RetireReplica(replica) => self.check_expendable(replica).await,
            Act::ReinstateCopy { name, replica } => self.check_withdrawn(name, replica).await,
            Act::ReinstateVolume(volume) => self.retired_volume(volume).map(drop),
            Act::ReinstateNode(node) => self.retired_node(node).map(drop),
            Act::Accept { .. } => Ok(()),
            Act::NewRoot {
                name,
                replica,
                root,
            } => {
                let row = self.known_row(name).await?;
                self.check_configured(replica)?;
                if recorded_content(&row.record)?.root == *root {
                    return Err(changed_meanwhile(format!("{name} has that root already")));
                }
                Ok(())
            }
        }
    }

    /// Carries out an approved act, and returns what was done, for people.
    pub(super) async fn perform_act(&self, request: &PersonRequest) -> Result<String, CallError> {
        let RequestStatus::Approved { by, .. } = &request.state else {
            return Err(CallErrorKind::Internal.to_error("the request is not approved"));
        };
        let approval = Approval {
            request: request.id(),
            asked_by: request.asked_by.clone(),
            approved_by: by.clone(),
        };
        let cause = Cause {
            who: approval.to_string(),
            why: format!("{}: {}", request.id(), request.reason),
            approval: Some(approval),
        };
        match &request.act.act {
            Act::Remove {
                name,
                replica,
                checksum,
                last_copies,
            } => {
                self.remove(request, &cause, name, replica, checksum, *last_copies)
                    .await
            }
            Act::Purge {
                place,
                checksum,
                last_copies,
            } => {
                let terms = PurgeTerms {
                    checksum: checksum.as_ref(),
                    last_copies: *last_copies,
                };
                self.destroy_item(place, terms, request.act.subject.item(), &cause)
                    .await
            }
            Act::RetireVolume {
                volume,
                last_copies,
            } => {
                self.retire_volume(volume, *last_copies, request, &cause)
                    .await
            }
            Act::RetireNode { node, last_copies } => {
                self.retire_node(node, *last_copies, request, &cause).await
            }
            Act::RetireReplica(replica) => self.retire_replica(replica, request, &cause).await,
            Act::ReinstateCopy { name, replica } => {
                self.reinstate_copy(name, replica, &cause).await
            }
            Act::ReinstateVolume(volume) => self.reinstate_volume(volume, &cause).await,
            Act::ReinstateNode(node) => self.reinstate_node(node, &cause).await,
            Act::Accept { anomaly } => {
                let anomalies = Arc::clone(&self.archive.anomalies);
                let id = anomaly.clone();
                let of = request.act.subject.anomaly().cloned();
                run_blocking(move || accept_anomaly(&anomalies, &id, of, &cause)).await?
            }
            Act::NewRoot {
                name,
                replica,
                root,
            } => self.new_root(name, replica, root, &cause).await,
        }
    }

    async fn remove(
        &self,
        request: &PersonRequest,
        cause: &Cause,
        name: &FileName,
        replica: &ReplicaId,
        checksum: &Root,
        last_copies: bool,
    ) -> Result<String, CallError> {
        let row = self.row_of(name).await?;
        let mine = request.id();
        let copy = row
            .as_ref()
            .and_then(|row| row.record.replicas.get(replica));
        if copy.is_some_and(|copy| copy.state == ReplicaState::Withdrawn(cause.why.clone())) {
            return self
                .remove_others(&mine, cause, name, replica, checksum, Vec::new())
                .await;
        }
        let removable = self.removable(row.as_ref(), name, replica, checksum, last_copies);
        let copies = match removable.await {
            Ok(copies) => copies,
            // The act was done before a restart: the wrong copy was moved already.
            Err(error) if error.kind == CallErrorKind::NotFound => {
                if !self.is_aside(name, replica, &mine).await? {
                    return Err(error);
                }
                self.make_room(row.as_ref(), name, replica, cause).await?;
                return Ok("it lies in the attic".to_owned());
            }
            Err(error) => return Err(error),
        };
        let admitted = row
            .as_ref()
            .map(|row| recorded_content(&row.record))
            .transpose()?;
        let is_wrong = admitted.is_none_or(|content| content.root != *checksum);
        let mut aside = Vec::new();
        for copy in &copies {
            aside.push(self.put_aside(&mine, cause, name, replica, copy).await?);
        }
        if is_wrong {
            self.make_room(row.as_ref(), name, replica, cause).await?;
            return Ok(format!("it is {}", aside.join(", and ")));
        }
        let withdrawn = StoringEvent::Withdrawn {
            replica: replica.clone(),
            why: cause.why.clone(),
        };
        self.order_event(name, withdrawn, &cause.who).await?;
        self.remove_others(&mine, cause, name, replica, checksum, aside)
            .await
    }

    /// Puts into the attic what a replica still has of a withdrawn file, as a drain leaves it that was interrupted;
    /// `aside` is where the recorded copy is. Returns what was done.
    async fn remove_others(
        &self,
        mine: &str,
        cause: &Cause,
        name: &FileName,
        replica: &ReplicaId,
        checksum: &Root,
        mut aside: Vec<String>,
    ) -> Result<String, CallError> {
        let unknown = |error: CallError| {
            let said = format!(
                "it is withdrawn; whether the replica has another copy is not known: {}; remove that one as well \
                 when it is",
                error.reason
            );
            error.kind.to_error(said)
        };
        let others = self.existing_copies(replica, name).await;
        for copy in others.map_err(unknown)? {
            if copy.root != Some(*checksum) {
                continue;
            }
            let root = if copy.is_present() {
                Some(*checksum)
            } else {
                let verified = self.verify_copies(replica, name, &copy).await;
                verified.map_err(unknown)?.root
            };
            let root = root.ok_or_else(|| {
                let said = format!("the one on {} cannot be read completely", copy.place);
                unknown(CallErrorKind::Storage.to_error(said))
            })?;
            let other = RemovedCopy {
                content: FileContent {
                    root,
                    size: copy.size,
                },
                place: copy.place,
            };
            let moved = self.put_aside(mine, cause, name, replica, &other).await;
            aside.push(moved.map_err(unknown)?);
        }
        if aside.is_empty() {
            return Ok("it is withdrawn".to_owned());
        }
        Ok(format!("it is {}", aside.join(", and ")))
    }

    /// Puts a copy into the attic, unless an earlier try of the request `mine` has done so. Returns where it is.
    async fn put_aside(
        &self,
        mine: &str,
        cause: &Cause,
        name: &FileName,
        replica: &ReplicaId,
        RemovedCopy { place, content }: &RemovedCopy,
    ) -> Result<String, CallError> {
        let volume = place.in_replica(replica);
        let replicas = &self.archive.calls.replicas;
        let moving = replicas.put_aside(&volume, name, &content.root, cause);
        let id = match self.archive.calls.reading_call(content.size, moving).await {
            Ok(aside) => aside.place.id,
            // An earlier try may have come so far: the attic tells.
            Err(error) if error.kind == CallErrorKind::NotFound => {
                let node = &place.node;
                let found = self.set_aside_before(replica, node, name, mine).await?;
                found.ok_or(error)?
            }
            Err(error) => return Err(error),
        };
        Ok(format!("in the attic of {place} as {id}"))
    }

    /// Finds the copies to be removed: the recorded one, or those that are not what was admitted, or are not known at
    /// all, which are named by their own checksum.
    ///
    /// # Errors
    /// The reason why it may not be removed.
    async fn removable(
        &self,
        row: Option<&AdminRow>,
        name: &FileName,
        replica: &ReplicaId,
        checksum: &Root,
        last_copies: bool,
    ) -> Result<Vec<RemovedCopy>, CallError> {
        self.check_configured(replica)?;
        let copy = row.and_then(|row| row.record.replicas.get(replica));
        let copy = copy.filter(|copy| copy.state.is_completed());
        let place = copy.and_then(ReplicaRecord::copy_place);
        let admitted = row.map(|row| recorded_content(&row.record)).transpose()?;
        let copies = match (place, admitted) {
            (Some(place), Some(admitted)) if admitted.root == *checksum => {
                vec![RemovedCopy {
                    place,
                    content: admitted.into(),
                }]
            }
            _ => self.wrong_copies(row, name, replica, checksum).await?,
        };
        if let Some(row) = row.filter(|_| !last_copies) {
            self.check_other_copy(row, Some(replica)).await?;
        }
        Ok(copies)
    }

    /// Finds the attic items of an earlier try of the request `mine`.
    pub(super) async fn set_aside_before(
        &self,
        replica: &ReplicaId,
        node: &NodeId,
        name: &FileName,
        mine: &str,
    ) -> Result<Option<String>, CallError> {
        let calls = &self.archive.calls;
        let opening = calls.replicas.list_attic(replica, node, Some(name));
        let mut attic = calls.answered_call(opening).await?;
        while let Some(page) = calls.reading_call(0, attic.next()).await? {
            let mut items = page.items.into_iter().filter_map(Result::ok);
            let is_mine =
                |item: &AtticItem| item.approval.as_ref().is_some_and(|by| by.request == mine);
            if let Some(item) = items.find(is_mine) {
                return Ok(Some(item.place.id));
            }
        }
        Ok(None)
    }

    /// Gives a name other content: that of which most replicas have a copy, if no replica has the recorded one. A
    /// checksum replica has a vote, and no copy: its record keeps no bytes, and is written anew.
    async fn new_root(
        &self,
        name: &FileName,
        replica: &ReplicaId,
        root: &Root,
        cause: &Cause,
    ) -> Result<String, CallError> {
        let row = self.known_row(name).await?;
        let recorded = recorded_content(&row.record)?.root;
        let copies = self.read_copies(&row.record, recorded, *root).await?;
        if recorded != *root && copies.has_recorded {
            return Err(changed_meanwhile(format!(
                "a copy of {name} is what was admitted; repair the others from it"
            )));
        }
        if !copies.holders.iter().any(|place| place.replica == *replica) {
            return Err(changed_meanwhile(format!(
                "replica {replica} has no copy of that root"
            )));
        }
        let evidence = Evidence {
            ballots: copies.ballots.clone(),
            ..Evidence::default()
        };
        if decide_root(&evidence) != RootVerdict::Right(*root, RootAuthority::Vote) {
            return Err(changed_meanwhile(
                "no majority of the replicas has that root".to_owned(),
            ));
        }
        if recorded != *root {
            let upload = self.upload_id()?;
            let content = Content {
                root: *root,
                size: copies.size,
                digests: Digests::default(),
            };
            let event = StoringEvent::Readmitted { upload, content };
            self.order_event(name, event, &cause.who).await?;
        }
        let adopted = self.adopt_copies(name, root, copies, &cause.who).await?;
        Ok(format!(
            "it was signed anew, and adopted in {}",
            adopted.join(", ")
        ))
    }

    /// Reads every copy of a file whole, and sorts them by the `recorded` root and the new one. Fails if one cannot be
    /// read: it may be right.
    async fn read_copies(
        &self,
        record: &FileRecord,
        recorded: Root,
        root: Root,
    ) -> Result<ReadCopies, CallError> {
        let name = &record.name;
        let mut copies = ReadCopies::default();
        for (id, kept) in record
            .replicas
            .iter()
            .filter(|(_, copy)| !copy.state.is_withdrawn())
        {
            for copy in &self.existing_copies(id, name).await? {
                let verified = self.verify_copies(id, name, copy).await?;
                let Some(found) = verified.root else {
                    let said =
                        format!("cannot read the copy of replica {id} completely: it may be right");
                    return Err(changed_meanwhile(said));
                };
                copies.ballots.push(Ballot {
                    replica: id.clone(),
                    root: found,
                });
                let place = copy.place.in_replica(id);
                if kept.kind == ReplicaKind::Checksum {
                    copies.records.push(place);
                    continue;
                }
                copies.has_recorded |= found == recorded;
                if found == root {
                    copies.size = verified.copy.size;
                    copies.holders.push(place);
                }
            }
        }
        Ok(copies)
    }

    /// Gives the copies of a root the admission of the file: first every copy with this root; then the replicas that
    /// only record the admission. Returns the replicas.
    async fn adopt_copies(
        &self,
        name: &FileName,
        root: &Root,
        copies: ReadCopies,
        who: &str,
    ) -> Result<Vec<String>, CallError> {
        let row = self.known_row(name).await?;
        let content = row.record.content.as_ref();
        let is_admitted = content.is_some_and(|content| content.root == *root);
        let admission = row.admission.filter(|_| is_admitted);
        let admission =
            admission.ok_or_else(|| changed_meanwhile(format!("{name} changed meanwhile")))?;
        let mut adopted = Vec::new();
        for volume in copies.holders.into_iter().chain(copies.records) {
            let adopting = self
                .archive
                .calls
                .replicas
                .adopt_file(&volume, name, &admission);
            let copy = self
                .archive
                .calls
                .reading_call(copies.size, adopting)
                .await?;
            self.await_restored(name, &volume.replica, &copy, who)
                .await?;
            adopted.push(volume.replica.to_string());
        }
        Ok(adopted)
    }

    /// Tells the coordinator of a copy that people have restored.
    pub(crate) async fn await_restored(
        &self,
        name: &FileName,
        replica: &ReplicaId,
        copy: &FileCopy,
        who: &str,
    ) -> Result<(), CallError> {
        let (root, at) = admitted_content(copy)?;
        let event = StoringEvent::Completed {
            replica: replica.clone(),
            node: copy.place.node.clone(),
            volume: copy.place.volume.clone(),
            root,
            at,
            // A node accepts only what it has read whole.
            read_back: true,
        };
        self.order_event(name, event, who).await
    }

    /// Returns the row of a file whose content is known, or `None`.
    pub(crate) async fn row_of(&self, name: &FileName) -> Result<Option<AdminRow>, CallError> {
        let row = self.archive.admin_row(name).await?;
        Ok(row.filter(|row| row.record.content.is_some()))
    }

    /// Returns the row of a file that the archive has, or had.
    pub(crate) async fn known_row(&self, name: &FileName) -> Result<AdminRow, CallError> {
        let row = self.row_of(name).await?;
        row.ok_or_else(|| CallErrorKind::NotFound.to_error(format!("{name} is not in the archive")))
    }

    pub(crate) fn check_configured(&self, replica: &ReplicaId) -> Result<(), CallError> {
        let is_known = self.specs.iter().any(|spec| spec.id == *replica);
        let unknown = || {
            CallErrorKind::NotFound.to_error(format!("replica {replica} is not in the settings"))
        };
        is_known.then_some(()).ok_or_else(unknown)
    }

    pub(crate) fn upload_id(&self) -> Result<UploadId, CallError> {
        let failed = |why: String| {
            CallErrorKind::Internal.to_error(format!(
                "cannot make an id for an upload: {why}; nothing was changed: order it again"
            ))
        };
        let bytes = self
            .archive
            .chance
            .random_bytes::<16>()
            .map_err(|error| failed(error.to_string()))?;
        UploadId::new(&hex::encode(bytes)).map_err(|error| failed(error.to_string()))
    }
}
