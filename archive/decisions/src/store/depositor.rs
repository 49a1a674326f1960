//! Handles the acts of depositors: ask, send, break off. See [`super`] for the rule when two ask for one name.

use archive_model::{ArchiveError, UploadId};

use super::replicas::ReplicaActivity;
use super::{
    Agreement, Claim, Content, Effect, FileState, NamePhase, RecordedUpload, ReplicaRecord,
    Requester, Transition, WaitingDepositor,
};

impl FileState {
    /// Handles a depositor who asks for the name: answers them, or lets them wait.
    pub(super) fn admit_depositor(
        &mut self,
        requester: Requester,
        upload: UploadId,
        claim: Claim,
        transition: &mut Transition<'_>,
    ) {
        let known = match (&self.record.content, &self.record.upload) {
            (Some(content), _) => content.into(),
            (None, Some(upload)) => upload.claim.clone(),
            (None, None) => claim.clone(),
        };
        let agreement = claim.compare_claims(&known);
        match (self.record.phase, &self.record.content) {
            (NamePhase::Free, _) => {
                self.record.upload = Some(RecordedUpload { id: upload, claim });
                for replica in self.record.replicas.values_mut() {
                    *replica = ReplicaRecord::started_record(
                        replica.kind,
                        replica.required,
                        transition.now,
                    );
                }
            }
            (NamePhase::Bound | NamePhase::Complete | NamePhase::Incomplete, Some(content)) => {
                match agreement {
                    Agreement::Same | Agreement::Unknown if self.record.is_withdrawn() => {
                        let error = self.removal_error();
                        return transition.answer_requester(requester, Err(error));
                    }
                    Agreement::Same => return self.wait_for_rest(requester, true, transition),
                    Agreement::Unknown => {
                        self.comparing.insert(
                            requester,
                            (claim, transition.time_after(transition.limits.intent)),
                        );
                        return transition.effects.push(Effect::Compare { requester });
                    }
                    Agreement::Different => {
                        let error = ArchiveError::Exists {
                            name: self.record.name.clone(),
                            archived: content.root,
                        };
                        return transition.answer_requester(requester, Err(error));
                    }
                }
            }
            (
                NamePhase::Intent { .. }
                | NamePhase::Bound
                | NamePhase::Complete
                | NamePhase::Incomplete,
                _,
            ) => {
                // Before the content is fixed and with nobody there, the same depositor may continue with bytes that
                // only *may* be the same: the transfer compares the prefix, and everything said so far must hold of
                // what arrives.
                let resumes = self.record.content.is_none() && self.waiting.is_empty();
                if agreement == Agreement::Different
                    || (agreement == Agreement::Unknown && !resumes)
                {
                    return transition.answer_requester(
                        requester,
                        Err(ArchiveError::Busy(self.record.name.clone())),
                    );
                }
                if let Some(upload) = self.record.upload.as_mut().filter(|_| resumes) {
                    upload.claim = upload.claim.merge_claims(&claim);
                }
            }
        }
        self.renew(transition);
        self.waiting.push(WaitingDepositor {
            requester,
            unread: true,
        });
    }

    /// Lets a depositor that has the bytes of a bound name wait for the replicas that are still open, which are asked
    /// at once rather than when their pause is over.
    pub(super) fn wait_for_rest(
        &mut self,
        requester: Requester,
        unread: bool,
        transition: &mut Transition<'_>,
    ) {
        self.waiting.push(WaitingDepositor { requester, unread });
        if self.record.is_acknowledged() || self.record.donors().next().is_none() {
            return;
        }
        for id in self.open_replicas() {
            if !self.current_activity(&id).is_under_way() {
                self.probe_replica(&id, transition);
            }
        }
    }

    /// Handles the whole stream of a depositor: compares its content with the claim, and fixes it.
    pub(super) fn receive_content(
        &mut self,
        requester: Requester,
        content: Content,
        transition: &mut Transition<'_>,
    ) {
        let name = self.record.name.clone();
        if let Some((claim, _)) = self.comparing.remove(&requester) {
            let archived = self.record.content.as_ref().map(|content| content.root);
            return match (claim.verify_content(&name, &content), archived) {
                (Err(error), _) => transition.answer_requester(requester, Err(error)),
                (Ok(()), Some(archived)) if archived != content.root => {
                    transition
                        .answer_requester(requester, Err(ArchiveError::Exists { name, archived }));
                }
                (Ok(()), _) => self.wait_for_rest(requester, false, transition),
            };
        }
        let Some(upload) = self
            .record
            .upload
            .as_ref()
            .filter(|_| self.source == Some(requester))
        else {
            return;
        };
        let mut announced = upload.claim.clone();
        announced.root = self
            .record
            .content
            .as_ref()
            .map(|fixed| fixed.root)
            .or(announced.root);
        if let Err(error) = announced.verify_content(&name, &content) {
            self.waiting
                .retain(|waiting| waiting.requester != requester);
            transition.answer_requester(requester, Err(error));
            self.end_source(transition);
            if self.waiting.is_empty() && self.record.content.is_none() {
                self.forget();
            }
            return;
        }
        let until = transition.limits.verified_by(transition.now, content.size);
        self.record.content.get_or_insert(content);
        self.source = None;
        let mut sealed = false;
        for id in self.open_replicas() {
            match self.current_activity(&id) {
                ReplicaActivity::Uploading(_) => {
                    self.begin_activity(&id, ReplicaActivity::Verifying(until));
                    if let Some(replica) = self.record.replicas.get_mut(&id) {
                        replica.sealed = true;
                    }
                    sealed = true;
                }
                ReplicaActivity::Idle => self.rest_replica(&id, transition),
                ReplicaActivity::Verifying(_)
                | ReplicaActivity::Probing(_)
                | ReplicaActivity::Copying(_)
                | ReplicaActivity::Resting(_) => {}
            }
        }
        self.renew(transition);
        transition.effects.extend(sealed.then_some(Effect::Seal));
    }

    /// Answers a depositor whose stream broke off, and ends the upload if it was their bytes.
    pub(super) fn drop_depositor(&mut self, requester: Requester, transition: &mut Transition<'_>) {
        let waited = self
            .waiting
            .iter()
            .any(|waiting| waiting.requester == requester);
        if !waited && self.comparing.remove(&requester).is_none() {
            return;
        }
        self.waiting
            .retain(|waiting| waiting.requester != requester);
        let what = format!(
            "the stream of {} broke off; send it again",
            self.record.name
        );
        transition.answer_requester(requester, Err(ArchiveError::Unavailable(what)));
        if self.source == Some(requester) {
            self.end_source(transition);
            self.renew(transition);
        }
    }
}
