//! The state of a job as it is reported: what follows from its row for people and programs.
//!
//! Owns which of a job's files is its result. The row itself is not reported: it has the counts by which a job
//! continues.

use archive_decisions::batch::life::{JobEnding, JobGap, JobLife, JobPhase};
use archive_model::{Gap, JobNode, JobOutput, JobState, JobStatus, NodeId, ReplicaId, VolumeName};

use crate::folder::JobFile;
use crate::table::JobRow;

impl JobRow {
    /// Returns the state of the job; `nodes` is the progress of each node.
    pub(crate) fn to_status(&self, nodes: Vec<JobNode>) -> JobStatus {
        let life = &self.life;
        let checkpoint = &self.checkpoint;
        let gaps = life.gaps.iter();
        JobStatus {
            id: self.id.clone(),
            spec: self.spec.clone(),
            state: state(life),
            reason: Some(life.reason.clone()).filter(|reason| !reason.is_empty()),
            who: self.who.clone(),
            submitted: self.submitted,
            started: self.started,
            ended: self.ended,
            expires: self.expires,
            files: checkpoint.files,
            failed: checkpoint.failed,
            unread: life.unread,
            records: checkpoint.records,
            bytes: checkpoint.bytes,
            output_bytes: checkpoint.output,
            result_bytes: if self.has_result() {
                self.output_file(JobOutput::Result).1
            } else {
                0
            },
            error_bytes: checkpoint.errors,
            manifest_bytes: checkpoint.manifest,
            gaps: gaps.map(|one| gap(&self.spec.replica, one)).collect(),
            nodes,
            restarts: life.restarts,
        }
    }

    /// Returns the file in which an output of the job is, and its length. Without a result that is the output itself.
    pub fn output_file(&self, output: JobOutput) -> (JobFile, u64) {
        match (output, self.result) {
            (JobOutput::Errors, _) => (JobFile::Errors, self.checkpoint.errors),
            (JobOutput::Manifest, _) => (JobFile::Manifest, self.checkpoint.manifest),
            (JobOutput::Result, Some(length)) if self.has_result() => (JobFile::Result, length),
            (JobOutput::Result, _) => (JobFile::Output, self.checkpoint.output),
        }
    }

    const fn has_result(&self) -> bool {
        match self.life.ending() {
            Some(JobEnding::Done | JobEnding::Partial) => true,
            Some(JobEnding::Failed | JobEnding::Cancelled) | None => false,
        }
    }
}

/// Returns the stage that a job has reached. A job whose monitor is silent waits, whatever it has read.
const fn state(life: &JobLife) -> JobState {
    match life.phase {
        JobPhase::Waiting => JobState::Queued,
        JobPhase::Reading if life.silent => JobState::Queued,
        JobPhase::Reading | JobPhase::Comparing => JobState::Running,
        JobPhase::Reducing => JobState::Reducing,
        JobPhase::Closing(_) => JobState::Closing,
        JobPhase::Ended(JobEnding::Done) => JobState::Done,
        JobPhase::Ended(JobEnding::Partial) => JobState::Partial,
        JobPhase::Ended(JobEnding::Failed) => JobState::Failed,
        JobPhase::Ended(JobEnding::Cancelled) => JobState::Cancelled,
    }
}

/// Returns a gap of a row, which names no replica: it is that of the job.
fn gap(replica: &ReplicaId, gap: &JobGap) -> Gap {
    Gap {
        replica: replica.clone(),
        node: NodeId::new(&gap.node).ok(),
        volume: (!gap.volume.is_empty()).then(|| VolumeName::new(&gap.volume)),
        reason: gap.reason.clone(),
    }
}
