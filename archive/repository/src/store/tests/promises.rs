//! What must hold after every event. Beside each assertion stands the mutation it kills.

use std::collections::BTreeSet;

use super::super::*;
use super::world::{Depositor, World};

impl World {
    pub(super) fn check(&mut self, ticked: bool, before: &FileState, effects: &[Effect]) {
        let record = &self.state.record;
        let story = || {
            format!(
                "\n{:?}\nbefore {before:#?}\nafter {:#?}\neffects {effects:#?}",
                self.trail, self.state
            )
        };
        // Kills: acting before remembering; remembering what did not change; Expire without anything to forget.
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
                    // Kills: forgetting a name that a replica holds, or may still commit.
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
                    // Kills: a second answer, an answer to nobody.
                    let depositor = self.unanswered.remove(requester);
                    assert!(depositor.is_some(), "{}", story());
                    self.check_answer(before, depositor, result, effects, &story);
                }
                Effect::HealFrom { replica, donor } => {
                    // Kills: a checksum replica, an unverified copy or the patient as donor.
                    assert!(
                        record.donors().any(|id| id == donor) && donor != replica,
                        "{}",
                        story()
                    );
                    assert!(
                        !record.replicas[replica].state.is_completed(),
                        "{}",
                        story()
                    );
                }
                Effect::Seal => {
                    let sealed = |id| matches!(self.state.doing(id), Doing::Verifying(_));
                    assert!(
                        record.content.is_some() && self.ids.iter().any(sealed),
                        "{}",
                        story()
                    );
                }
                Effect::Source { requester } => {
                    // Kills: asking a depositor for bytes that the archive has.
                    assert!(record.donors().next().is_none(), "{}", story());
                    assert_eq!(self.state.source, Some(*requester), "{}", story());
                }
                Effect::Compare { requester } => {
                    assert!(self.state.comparing.contains_key(requester), "{}", story());
                }
                Effect::BeginUpload { replica, .. } | Effect::Probe { replica } => {
                    // Kills: bothering a replica that has the file.
                    assert!(
                        !record.replicas[replica].state.is_completed(),
                        "{}",
                        story()
                    );
                }
            }
        }
        // Kills: a lost requester. Whoever asked and was not answered is still known.
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
        // Kills: a stuck state. Whatever waits has a timer, the shell was told of it, and a tick moves it on.
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
        // Kills: waiting for a replica that is not required, or for one with which nothing is under way.
        if !self.state.waiting.is_empty() {
            let awaited = |(id, replica): (&ReplicaId, &ReplicaRecord)| {
                replica.required && self.state.doing(id).is_under_way()
            };
            assert!(record.open().any(awaited), "{}", story());
        }
        // Kills: two contents under one name, a binding undone, a copy uncounted.
        if let Some(root) = self.bound_to {
            assert_eq!(
                record.content.as_ref().map(|content| content.root),
                Some(root),
                "{}",
                story()
            );
        }
        for (id, replica) in &before.record.replicas {
            let counts = match &self.not_counted {
                Some((said, still)) if said == id => {
                    record.replicas[id].state.is_completed() == *still
                }
                _ => record.replicas[id] == *replica,
            };
            assert!(!replica.state.is_completed() || counts, "{}", story());
        }
        // Kills: a copy that is counted without knowing where it is.
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
        let phase = match (completed, record.replicas.len() - completed) {
            // Kills: a name that is given away when its last copy is gone.
            (0, _) if self.bound_to.is_some() => record.phase == Phase::Bound,
            (0, _) => matches!(record.phase, Phase::Free | Phase::Intent { .. }),
            (_, 0) => record.phase == Phase::Complete,
            _ => record.phase == Phase::Bound,
        };
        assert!(phase, "{}", story());
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
                .filter(|(_, replica)| replica.required && !replica.state.is_completed())
        };
        match result {
            // Kills: acknowledging with a required replica open, with checksums only, or to a depositor of other bytes.
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
            // Kills: a failure without its reason.
            Err(ArchiveError::NotEnoughReplicas { failures, .. }) => {
                assert!(open().next().is_some(), "{}", story());
                assert!(
                    open().all(|(id, _)| failures.iter().any(|(failed, _)| failed == id)),
                    "{}",
                    story()
                );
            }
            // Kills: a refusal that disturbs the running upload. Only a depositor compared until now leaves a trace.
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
            Err(error) => panic!("no such answer: {error}{}", story()),
        }
    }
}
