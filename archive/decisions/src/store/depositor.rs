//! Handles the acts of depositors: ask, send, break off. See [`super`] for the rule when two ask for one name.

use archive_model::{ArchiveError, UploadId};

use super::replicas::Doing;
use super::{
    Agreement, Claim, Content, Effect, FileState, Phase, ReplicaRecord, Requester, Turn, Upload,
    Waiting,
};

impl FileState {
    pub(super) fn asked(
        &mut self,
        requester: Requester,
        upload: UploadId,
        claim: Claim,
        turn: &mut Turn<'_>,
    ) {
        let known = match (&self.record.content, &self.record.upload) {
            (Some(content), _) => content.into(),
            (None, Some(upload)) => upload.claim.clone(),
            (None, None) => claim.clone(),
        };
        let agreement = claim.compare(&known);
        match (self.record.phase, &self.record.content) {
            (Phase::Free, _) => {
                self.record.upload = Some(Upload { id: upload, claim });
                for replica in self.record.replicas.values_mut() {
                    *replica = ReplicaRecord::started(replica.kind, replica.required, turn.now);
                }
            }
            (Phase::Bound | Phase::Complete | Phase::Incomplete, Some(content)) => {
                match agreement {
                    Agreement::Same | Agreement::Unknown if self.record.is_withdrawn() => {
                        let error = self.removed();
                        return turn.answer(requester, Err(error));
                    }
                    Agreement::Same => return self.wait_for_rest(requester, true, turn),
                    Agreement::Unknown => {
                        self.comparing
                            .insert(requester, (claim, turn.later(turn.limits.intent)));
                        return turn.effects.push(Effect::Compare { requester });
                    }
                    Agreement::Different => {
                        let error = ArchiveError::Exists {
                            name: self.record.name.clone(),
                            archived: content.root,
                        };
                        return turn.answer(requester, Err(error));
                    }
                }
            }
            (Phase::Intent { .. } | Phase::Bound | Phase::Complete | Phase::Incomplete, _) => {
                // Before the content is fixed and with nobody there, the same depositor may go on with bytes that only
                // *may* be the same: the transfer compares the prefix, and everything said so far must hold of what
                // arrives.
                let resumes = self.record.content.is_none() && self.waiting.is_empty();
                if agreement == Agreement::Different
                    || (agreement == Agreement::Unknown && !resumes)
                {
                    return turn
                        .answer(requester, Err(ArchiveError::Busy(self.record.name.clone())));
                }
                if let Some(upload) = self.record.upload.as_mut().filter(|_| resumes) {
                    upload.claim = upload.claim.merged(&claim);
                }
            }
        }
        self.renew(turn);
        self.waiting.push(Waiting {
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
        turn: &mut Turn<'_>,
    ) {
        self.waiting.push(Waiting { requester, unread });
        if self.record.is_acknowledged() || self.record.donors().next().is_none() {
            return;
        }
        for id in self.open() {
            if !self.doing(&id).is_under_way() {
                self.probe(&id, turn);
            }
        }
    }

    pub(super) fn received(&mut self, requester: Requester, content: Content, turn: &mut Turn<'_>) {
        let name = self.record.name.clone();
        if let Some((claim, _)) = self.comparing.remove(&requester) {
            let archived = self.record.content.as_ref().map(|content| content.root);
            return match (claim.verify(&name, &content), archived) {
                (Err(error), _) => turn.answer(requester, Err(error)),
                (Ok(()), Some(archived)) if archived != content.root => {
                    turn.answer(requester, Err(ArchiveError::Exists { name, archived }));
                }
                (Ok(()), _) => self.wait_for_rest(requester, false, turn),
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
        if let Err(error) = announced.verify(&name, &content) {
            self.waiting
                .retain(|waiting| waiting.requester != requester);
            turn.answer(requester, Err(error));
            self.end_source(turn);
            if self.waiting.is_empty() && self.record.content.is_none() {
                self.forget();
            }
            return;
        }
        let until = turn.limits.verified_by(turn.now, content.size);
        self.record.content.get_or_insert(content);
        self.source = None;
        let mut sealed = false;
        for id in self.open() {
            match self.doing(&id) {
                Doing::Uploading(_) => {
                    self.begin(&id, Doing::Verifying(until));
                    if let Some(replica) = self.record.replicas.get_mut(&id) {
                        replica.sealed = true;
                    }
                    sealed = true;
                }
                Doing::Idle => self.rest(&id, turn),
                Doing::Verifying(_) | Doing::Probing(_) | Doing::Copying(_) | Doing::Resting(_) => {
                }
            }
        }
        self.renew(turn);
        turn.effects.extend(sealed.then_some(Effect::Seal));
    }

    pub(super) fn source_gone(&mut self, requester: Requester, turn: &mut Turn<'_>) {
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
        turn.answer(requester, Err(ArchiveError::Unavailable(what)));
        if self.source == Some(requester) {
            self.end_source(turn);
            self.renew(turn);
        }
    }
}
