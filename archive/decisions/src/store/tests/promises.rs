//! Asserts what must hold after every event. Beside each assertion stands the mistake that makes it fail.

use std::collections::BTreeSet;

use super::super::*;
use super::world::{Depositor, Step, TestArchive};

impl TestArchive {
    pub(super) fn check(&mut self, ticked: bool, before: &FileState, effects: &[Effect]) {
        let record = &self.state.record;
        let story = || {
            format!(
                "\n{:?}\nbefore {before:#?}\nafter {:#?}\neffects {effects:#?}",
                self.trail, self.state
            )
        };
        // Fails if it acts before it remembers, remembers what did not change, or expires without anything to forget.
        let remembers = |effect: &Effect| matches!(effect, Effect::Persist | Effect::Expire { .. });
        assert_eq!(
            effects.first().is_some_and(remembers),
            *record != before.record,
            "{}",
            story()
        );
        assert!(!effects.iter().skip(1).any(remembers), "{}", story());
        for effect in effects {
            match effect {
                Effect::Persist => self.disk = record.clone(),
                Effect::Expire { upload } => {
                    // Fails if a name is forgotten that a replica holds or may still commit.
                    let may_hold =
                        |replica: &ReplicaRecord| replica.sealed || replica.state.is_completed();
                    assert!(
                        !before.record.replicas.values().any(may_hold),
                        "{}",
                        story()
                    );
                    assert_eq!(
                        Some(upload),
                        before.record.upload.as_ref().map(|upload| &upload.id)
                    );
                    self.disk = record.clone();
                }
                Effect::SetTimer(at) => self.timer = Some(*at),
                Effect::Answer { requester, result } => {
                    // Fails if somebody is answered twice, or an answer goes to nobody.
                    let depositor = self.unanswered.remove(requester);
                    assert!(depositor.is_some(), "{}", story());
                    self.check_answer(before, depositor, result, effects, &story);
                }
                Effect::CopyFrom { replica, donor } => {
                    // Fails if the donor is a checksum replica, an unverified copy or the patient, or if what was
                    // withdrawn is copied.
                    assert!(
                        record.donors().any(|id| id == donor) && donor != replica,
                        "{}",
                        story()
                    );
                    assert!(record.replicas[replica].state.is_open(), "{}", story());
                    // Fails if silence passes for absence where a copy may lie.
                    let may_hold = before.record.replicas[replica].sealed;
                    assert!(!self.is_silent || !may_hold, "{}", story());
                }
                Effect::Seal => {
                    let sealed = |id| {
                        matches!(
                            self.state.current_activity(id),
                            ReplicaActivity::Verifying(_)
                        )
                    };
                    assert!(
                        record.content.is_some() && self.ids.iter().any(sealed),
                        "{}",
                        story()
                    );
                }
                Effect::Source { requester } => {
                    // Fails if a depositor is asked for bytes that the archive has, and can give.
                    let mut failures = self.state.failures.values();
                    let is_starved = failures.any(|one| one.is_starved);
                    let has_donor = record.donors().next().is_some();
                    assert!(!has_donor || is_starved, "{}", story());
                    assert_eq!(self.state.source, Some(*requester), "{}", story());
                }
                Effect::Compare { requester } => {
                    assert!(self.state.comparing.contains_key(requester), "{}", story());
                }
                Effect::BeginUpload { replica, .. } | Effect::Probe { replica } => {
                    // Fails if a replica is bothered that has the file or shall not have it.
                    assert!(record.replicas[replica].state.is_open(), "{}", story());
                }
            }
        }
        // Fails if a requester is lost: one that asked and was not answered is still known.
        let waiting = self.state.waiting.iter().map(|waiting| waiting.requester);
        let known = waiting
            .chain(self.state.comparing.keys().copied())
            .collect::<BTreeSet<_>>();
        assert!(known.iter().eq(self.unanswered.keys()), "{}", story());
        assert_eq!(
            known.len(),
            self.state.waiting.len() + self.state.comparing.len(),
            "{}",
            story()
        );
        assert!(
            self.state
                .source
                .is_none_or(|source| known.contains(&source)),
            "{}",
            story()
        );
        // Fails if a state is stuck: whatever waits has a timer, the shell has set it, and a tick moves it on.
        assert_eq!(
            self.state.next_deadline().is_none(),
            self.state.is_idle(),
            "{}",
            story()
        );
        if let Some(deadline) = self.state.next_deadline() {
            assert_eq!(self.timer, Some(deadline), "{}", story());
            assert!(!ticked || deadline > self.now, "{}", story());
        }
        // Fails if somebody waits for a replica that is not required, or for one with which nothing is under way.
        if !self.state.waiting.is_empty() {
            let any_will_do = !record.open_replicas().any(|(_, replica)| replica.required);
            let awaited = |(id, replica): (&ReplicaId, &ReplicaRecord)| {
                (replica.required || any_will_do) && self.state.current_activity(id).is_under_way()
            };
            assert!(record.open_replicas().any(awaited), "{}", story());
        }
        if self.order == Some(Step::Readmitted) && before.record != *record {
            // Fails if a copy of the old content counts as one of the new.
            let is_counted = |replica: &ReplicaRecord| replica.state.is_completed();
            assert!(!record.replicas.values().any(is_counted), "{}", story());
            self.bound_to = record.content.as_ref().map(|content| content.root);
        }
        // Fails if one name has two contents, a binding is undone, or a copy stops counting.
        if let Some(root) = self.bound_to {
            assert_eq!(
                record.content.as_ref().map(|content| content.root),
                Some(root),
                "{}",
                story()
            );
        }
        for (id, replica) in &before.record.replicas {
            // Fails if a copy is given up, or a withdrawn one counts again, without people, or if an order touches
            // another replica.
            let may_change = match self.order {
                Some(Step::Readmitted) => !replica.state.is_withdrawn(),
                Some(Step::Wanted(r) | Step::Replacing(r)) => {
                    *id == self.ids[r] && !replica.state.is_withdrawn()
                }
                Some(Step::Withdrawn(r)) => *id == self.ids[r],
                Some(Step::Reinstated(r)) => *id == self.ids[r] && replica.state.is_withdrawn(),
                _ => false,
            };
            let is_said = matches!(
                &self.not_counted,
                Some((said, still))
                    if said == id && record.replicas[id].state.is_completed() == *still
            );
            assert!(
                replica.state.is_open() || may_change || is_said || record.replicas[id] == *replica,
                "{}",
                story()
            );
        }
        // Fails if a copy counts without anybody knowing where it is.
        let placed = |replica: &ReplicaRecord| replica.node.is_some() && replica.volume.is_some();
        for replica in record
            .replicas
            .values()
            .filter(|replica| replica.state.is_completed())
        {
            assert!(placed(replica) && !replica.sealed, "{}", story());
        }
        let completed = record
            .replicas
            .values()
            .filter(|replica| replica.state.is_completed())
            .count();
        // Fails if a name becomes free because its copies are withdrawn or lost, a file is kept of which nothing is
        // left to do, one with work left is forgotten, or one that was acknowledged to no depositor passes for one that
        // was.
        self.was_acknowledged |=
            record.is_acknowledged() || record.open_replicas().next().is_none();
        let phase = match (completed, record.open_replicas().count()) {
            (_, 0) => record.phase == NamePhase::Complete,
            (0, _) if self.bound_to.is_none() => {
                matches!(record.phase, NamePhase::Free | NamePhase::Intent { .. })
            }
            _ if self.was_acknowledged => record.phase == NamePhase::Bound,
            _ => record.phase == NamePhase::Incomplete,
        };
        assert!(phase, "{}", story());
        // Fails if there is work on what people have withdrawn.
        for (id, _) in record
            .replicas
            .iter()
            .filter(|(_, replica)| replica.state.is_withdrawn())
        {
            assert_eq!(
                self.state.current_activity(id),
                ReplicaActivity::Idle,
                "{}",
                story()
            );
        }
        if completed > 0 {
            self.bound_to = record.content.as_ref().map(|content| content.root);
            assert!(self.bound_to.is_some(), "{}", story());
        }
    }

    fn check_answer(
        &self,
        before: &FileState,
        depositor: Option<Depositor>,
        result: &Result<(), ArchiveError>,
        effects: &[Effect],
        story: &dyn Fn() -> String,
    ) {
        let record = &self.state.record;
        let open = || {
            record
                .replicas
                .iter()
                .filter(|(_, replica)| replica.required && replica.state.is_open())
        };
        match result {
            // Fails if a store is acknowledged with a required replica open, with checksums only, or to a depositor of
            // other bytes.
            Ok(()) => {
                assert!(
                    open().next().is_none() && record.donors().next().is_some(),
                    "{}",
                    story()
                );
                let archived = record
                    .content
                    .as_ref()
                    .map(|content| content.root.as_bytes()[0]);
                let proof = depositor.and_then(|depositor| depositor.claims.or(depositor.sent));
                assert!(
                    proof.is_some() && proof == archived,
                    "{depositor:?} {}",
                    story()
                );
            }
            // Fails if a removed file is stored again, or refused while a copy is left.
            Err(ArchiveError::Refused(_)) => assert!(record.is_withdrawn(), "{}", story()),
            // Fails if a failure is reported without its reason.
            Err(ArchiveError::NotEnoughReplicas {
                failures, again, ..
            }) => {
                // Fails if a depositor does not learn when the archive tries again by itself, or learns a time where it
                // cannot.
                assert_eq!(
                    again.is_some(),
                    record.donors().next().is_some(),
                    "{}",
                    story()
                );
                assert!(again.is_none_or(|again| again > self.now), "{}", story());
                let is_copy = || record.donors().next().is_some();
                assert!(open().next().is_some() || !is_copy(), "{}", story());
                assert!(
                    open().all(|(id, _)| failures.iter().any(|(failed, _)| failed == id)),
                    "{}",
                    story()
                );
            }
            // People have decided anew what the name means: those who waited did so for the old content.
            Err(ArchiveError::Busy(_)) if self.order == Some(Step::Readmitted) => {}
            // Fails if a refusal disturbs the running upload. Only a depositor who was compared until now leaves a
            // trace.
            Err(ArchiveError::Exists { .. } | ArchiveError::Busy(_)) => {
                let mut undisturbed = before.clone();
                undisturbed.comparing = self.state.comparing.clone();
                assert_eq!(undisturbed, self.state, "{}", story());
                assert!(
                    effects
                        .iter()
                        .all(|e| matches!(e, Effect::Answer { .. } | Effect::SetTimer(_))),
                    "{}",
                    story()
                );
            }
            Err(
                ArchiveError::Mismatch { .. }
                | ArchiveError::Unavailable(_)
                | ArchiveError::TimedOut(_),
            ) => {}
            // Fails if a depositor is sent to an officer about a file that the archive knows.
            Err(ArchiveError::Storage(_)) => {
                assert!(before.record.content.is_none(), "{}", story());
            }
            Err(error) => panic!("no such answer: {error}{}", story()),
        }
    }
}
