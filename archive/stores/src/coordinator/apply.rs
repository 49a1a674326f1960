//! The application of an event to a file in memory: the store core decides, and the file's entry follows the decision.

use archive_decisions::store::{Effect, StoringEvent};
use archive_model::{FileName, UploadId};
use jiff::Timestamp;

use super::act::FileDecision;
use super::doubt::ReturnedCopy;
use super::{Active, Coordinator};
use crate::transfer::UploadVerdict;

/// An event of a file, and who caused it.
pub(super) struct FileEvent {
    pub(super) name: FileName,
    pub(super) event: StoringEvent,
    /// The person or part that caused the event, as `role/name`; `None` if the archive did it by itself.
    pub(super) by: Option<String>,
}

/// The request of a depositor to store a file that is in memory.
struct StoreRequest {
    who: String,
    /// The id that the upload gets if the request begins one.
    upload: UploadId,
    /// The upload that was on its way before.
    before: Option<UploadId>,
}

/// The facts about a file before an event that decide what its entry does after it.
struct BeforeEvent {
    /// Whether the event ends the stream that the file is taken from.
    is_source_end: bool,
    is_readmission: bool,
    /// Whether the content was known.
    was_fixed: bool,
    /// The copy that the event may make count again.
    back: Option<ReturnedCopy>,
}

impl BeforeEvent {
    fn new(active: &Active, event: &StoringEvent) -> Self {
        let record = active.state.record();
        let ended = event.ended_stream();
        Self {
            is_source_end: ended.is_some() && active.source == ended,
            is_readmission: matches!(event, StoringEvent::Readmitted { .. }),
            was_fixed: record.content.is_some(),
            back: ReturnedCopy::from_event(record, event),
        }
    }
}

impl Coordinator {
    /// Applies an event to its file. Returns what was decided, or `None` if the file is not in memory.
    pub(super) fn apply_event(
        &mut self,
        file_event: FileEvent,
        now: Timestamp,
    ) -> Option<FileDecision> {
        let FileEvent {
            name,
            mut event,
            by,
        } = file_event;
        let request = self.take_request(&name, &mut event);
        let active = self.files.get_mut(&name)?;
        let before = BeforeEvent::new(active, &event);
        let effects = active.state.apply_event(event, now, &self.parts.limits);
        if let Some(request) = request {
            if let Some(abandoned) = active.follow_request(request) {
                self.parts.transfers.resume_points.forget_points(&abandoned);
            }
        } else {
            active.follow_admission(&before, &effects, by.as_ref());
            if before.is_source_end {
                active.follow_source_end(&effects);
            }
            let back = before.back;
            self.back
                .extend(back.filter(|back| back.counts_now(active.state.record())));
        }
        Some(FileDecision { name, by, effects })
    }

    /// Takes the request of a depositor out of an event, and says in the event whether the depositor resumes an
    /// upload of its own. Returns `None` if the event is no request, or the depositor has gone away.
    fn take_request(&self, name: &FileName, event: &mut StoringEvent) -> Option<StoreRequest> {
        let StoringEvent::Asked {
            upload,
            requester,
            resumes,
            ..
        } = event
        else {
            return None;
        };
        let who = self.depositors.get(requester)?.who.clone();
        let active = self.files.get(name)?;
        *resumes = active.depositor == who;
        Some(StoreRequest {
            who,
            upload: upload.clone(),
            before: active.upload().cloned(),
        })
    }
}

impl Active {
    fn upload(&self) -> Option<&UploadId> {
        let upload = self.state.record().upload.as_ref();
        upload.map(|upload| &upload.id)
    }

    /// Gives the file to the depositor whose request began a new upload. Returns the upload that was abandoned for it.
    fn follow_request(&mut self, request: StoreRequest) -> Option<UploadId> {
        let StoreRequest {
            who,
            upload,
            before,
        } = request;
        let is_begun = self.upload() == Some(&upload) && before.as_ref() != Some(&upload);
        if !is_begun {
            return None;
        }
        self.depositor = who;
        self.admission = None;
        before
    }

    /// Names the depositor anew when an event fixed the content of the file, or had it admitted anew.
    fn follow_admission(&mut self, before: &BeforeEvent, effects: &[Effect], by: Option<&String>) {
        let Some(who) = by else {
            return;
        };
        if !before.was_fixed && self.state.record().content.is_some() {
            // The depositor is the one whose bytes are admitted, not the one that announced them first.
            self.depositor.clone_from(who);
        }
        if before.is_readmission && effects.first() == Some(&Effect::Persist) {
            // The admission is signed anew, in the name of the people who decided.
            self.depositor.clone_from(who);
            self.admission = None;
        }
    }

    /// Ends the uploads of a stream that has ended without an admission: they give up, and the nodes their claims.
    fn follow_source_end(&mut self, effects: &[Effect]) {
        self.source = None;
        if effects.contains(&Effect::Seal) {
            // Its admission is sent once it is remembered, whatever the depositor does meanwhile.
            return;
        }
        let is_forgotten = |effect: &Effect| matches!(effect, Effect::Expire { .. });
        if let Some(seal) = self.seal.take_if(|_| effects.iter().any(is_forgotten)) {
            // The stream will not be sent again either: the nodes need not keep what they have of it.
            seal.send_replace(Some(UploadVerdict::Forgotten));
        }
        self.seal = None;
    }
}
