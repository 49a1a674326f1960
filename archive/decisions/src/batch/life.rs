//! The life of a batch job: a function from what happened to what to do next.
//!
//! Owns when a run is repeated, how long an absent node is waited for, which node is left out, and how a job ends.
//! Awaits nothing and reads no clock: the shell stores a [`JobLife`] whenever it has changed, and only then performs the
//! [`JobStep`].
//!
//! Not promised: that the step is performed. After a restart the shell applies [`JobEvent::Turn`] again, and gets the same
//! step.

mod early;
mod gaps;
mod nodes;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use archive_model::{FileName, NodeId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use gaps::JobGap;
pub use nodes::NodeSets;
use nodes::{Blame, Nodes};

/// The number of failed runs in a row without a new file after which the job fails, if no node can be left out.
const MOST_ATTEMPTS: u32 = 20;

/// The most characters of a node's last message that are kept.
const LONGEST_WORDS: usize = 300;

/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// The state of a job, as its row remembers it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobLife {
    /// The phase that the job has reached.
    pub phase: JobPhase,
    /// The reason why the job waits, failed or was cancelled; otherwise empty.
    pub reason: String,
    /// Whether the monitor of the job's replica does not answer.
    pub silent: bool,
    /// The number of times that the job was restarted.
    pub restarts: u64,
    /// The number of runs in a row without a new file that were not ended by a node that can be left out.
    attempts: u32,
    /// The number of pauses in a row, each longer than the one before.
    pauses: u32,
    nodes: Nodes,
    /// Whether the run has read a file: it then lacks the files of the nodes that it began without.
    went_on: bool,
    /// The places whose files were not read, all of them or from some name on.
    pub gaps: Vec<JobGap>,
    /// The number of files that the replica has, and nobody has read.
    pub unread: u64,
}

/// The phase of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobPhase {
    /// The job waits for its turn.
    #[default]
    Waiting,
    /// Nodes read files for the job, or will.
    Reading,
    /// All nodes have finished; files that nobody has read are searched for.
    Comparing,
    /// The result is being made.
    Reducing,
    /// The job has ended, permanently.
    Ended(JobEnding),
    /// The job ends early, in this way; files that nobody has read are counted and named first.
    Closing(JobEnding),
}

/// The way in which a job has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobEnding {
    /// Every file that was selected was read.
    Done,
    /// Some files were not read.
    Partial,
    /// The job could not be completed.
    Failed,
    /// A person cancelled the job.
    Cancelled,
}

/// The files of a replica that nobody has read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnreadFiles {
    /// The number of all of them.
    pub total: u64,
    /// The number of files counted now, by the node that has them according to the admin data.
    pub by_node: BTreeMap<NodeId, u64>,
}

/// An event in the life of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobEvent {
    /// The turn of the job has come, also after a restart of the repository.
    Turn,
    /// The repository was started again.
    Restarted,
    /// The monitor reported the state of the nodes.
    Looked(NodeSets),
    /// The monitor does not answer.
    Silent(String),
    /// A node has no place for the job now.
    Busy(String),
    /// A pause is over.
    Woke,
    /// The output of one more file is on disk.
    Progress,
    /// The run, or the reduce step, failed.
    Broke(String),
    /// The run failed because of this node, and no other.
    NodeBroke(NodeId, String),
    /// The run was completed.
    Finished(Vec<JobGap>),
    /// The files that nobody has read were counted.
    Compared(UnreadFiles),
    /// The files that nobody has read cannot be counted, of a job that ends early.
    Uncounted(String),
    /// The result is on disk.
    Reduced,
    /// The job cannot continue.
    Failed(String),
    /// The time limit of the job has passed.
    TimeOver,
    /// A person, given as `role/name`, cancels the job.
    Cancelled(String),
}

/// The next action of the shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobStep {
    /// Do nothing: the turn of the job has not come.
    Wait,
    /// Ask the monitor which nodes are alive.
    Look,
    /// Run the job after the last file whose output is on disk; if it runs already, continue.
    Run,
    /// Wait for this time.
    Pause(Duration),
    /// Search for files that nobody has read.
    Compare,
    /// Search for files that nobody has read, for a job that ends early: neither the time limit nor a person stops the
    /// search.
    Close,
    /// Make the result.
    Reduce,
    /// Do nothing: the job has ended.
    Stop,
}

/// The facts beside the event.
#[derive(Clone, Copy, Debug)]
pub struct JobSurroundings<'a> {
    /// The time of the event.
    pub now: Timestamp,
    /// The time to wait for a node that went away, was not heard of yet, or fails each time.
    pub patience: Duration,
    /// The last file whose output is on disk.
    pub after: Option<&'a FileName>,
    /// Whether the job names its files. Then each file that nobody has read is counted, on whichever node it should be.
    pub is_by_name: bool,
}

impl JobLife {
    /// Returns how the job has ended, or `None` if it has not.
    pub const fn ending(&self) -> Option<JobEnding> {
        match self.phase {
            JobPhase::Ended(ending) => Some(ending),
            JobPhase::Waiting
            | JobPhase::Reading
            | JobPhase::Comparing
            | JobPhase::Reducing
            | JobPhase::Closing(_) => None,
        }
    }

    /// Returns the nodes that were alive in the last report.
    pub fn present_nodes(&self) -> impl Iterator<Item = &NodeId> {
        self.nodes.present_nodes()
    }

    /// Returns the nodes that are not asked any more.
    pub fn left_out(&self) -> impl Iterator<Item = &NodeId> {
        self.nodes.left_out()
    }

    /// Applies an event and returns the next step. An event that is late, or has no meaning in this phase, changes
    /// nothing.
    pub fn apply_event(&mut self, event: JobEvent, context: JobSurroundings<'_>) -> JobStep {
        if self.ending().is_some() {
            return JobStep::Stop;
        }
        match (event, self.phase) {
            // The ending was decided before.
            (JobEvent::Cancelled(_) | JobEvent::Failed(_), JobPhase::Closing(_)) => {}
            (JobEvent::Cancelled(who), _) => {
                return self.end_early(JobEnding::Cancelled, format!("cancelled by {who}"));
            }
            (JobEvent::Uncounted(why), JobPhase::Closing(ending)) => {
                return self.end_uncounted(ending, &why);
            }
            (JobEvent::Failed(reason), _) => return self.end_early(JobEnding::Failed, reason),
            (JobEvent::TimeOver, JobPhase::Reading | JobPhase::Comparing | JobPhase::Reducing) => {
                let waited = match self.reason.as_str() {
                    "" => String::new(),
                    reason => format!(", after the job had waited: {reason}"),
                };
                return self.end_early(
                    JobEnding::Failed,
                    format!("the time limit of the job has passed{waited}"),
                );
            }
            (JobEvent::Restarted, JobPhase::Reading | JobPhase::Comparing | JobPhase::Reducing) => {
                self.begin_again();
                self.nodes.forgive_nodes();
                self.pauses = 0;
            }
            (JobEvent::Turn, JobPhase::Waiting) => self.phase = JobPhase::Reading,
            (JobEvent::Looked(look), JobPhase::Reading) => return self.looked(look, context),
            (JobEvent::Silent(reason), JobPhase::Reading | JobPhase::Reducing) => {
                self.silent = true;
                // The state of the nodes is unknown: no time is counted against them.
                self.nodes.forgive_nodes();
                return self.pause(reason);
            }
            (JobEvent::Busy(reason), JobPhase::Reading | JobPhase::Reducing) => {
                self.silent = false;
                return self.pause(reason);
            }
            (JobEvent::NodeBroke(node, reason), JobPhase::Reading) => {
                self.silent = false;
                return self.node_broke(&node, reason, context);
            }
            (
                JobEvent::Broke(reason) | JobEvent::NodeBroke(_, reason),
                JobPhase::Reading | JobPhase::Reducing,
            ) => {
                self.silent = false;
                return self.broke(reason, context.after);
            }
            (JobEvent::Progress, JobPhase::Reading) => {
                self.progressed();
                return JobStep::Run;
            }
            (JobEvent::Finished(gaps), JobPhase::Reading) => {
                // A completed run reports itself the gaps that it has.
                self.went_on = false;
                self.settle();
                for gap in gaps {
                    self.add_gap(gap);
                }
                self.calm(JobPhase::Comparing);
            }
            (JobEvent::Compared(unread), JobPhase::Comparing) => {
                self.unread = unread.total;
                self.calm(JobPhase::Reducing);
            }
            (JobEvent::Compared(unread), JobPhase::Closing(ending)) => {
                return self.close_early(ending, unread, context.after);
            }
            (JobEvent::Reduced, JobPhase::Reducing) => {
                // A silent node may have files that match an expression. Named files are known.
                let is_whole = self.unread == 0 && (self.gaps.is_empty() || context.is_by_name);
                let ending = if is_whole {
                    JobEnding::Done
                } else {
                    JobEnding::Partial
                };
                return self.end(ending, String::new());
            }
            (
                JobEvent::Turn
                | JobEvent::Restarted
                | JobEvent::Looked { .. }
                | JobEvent::Silent(_)
                | JobEvent::Busy(_)
                | JobEvent::Woke
                | JobEvent::Progress
                | JobEvent::Broke(_)
                | JobEvent::NodeBroke(..)
                | JobEvent::Finished(_)
                | JobEvent::Compared(_)
                | JobEvent::Uncounted(_)
                | JobEvent::Reduced
                | JobEvent::TimeOver,
                _,
            ) => {}
        }
        self.step()
    }

    /// Returns the step of the current phase.
    const fn step(&self) -> JobStep {
        match self.phase {
            JobPhase::Waiting => JobStep::Wait,
            JobPhase::Reading => JobStep::Look,
            JobPhase::Comparing => JobStep::Compare,
            JobPhase::Reducing => JobStep::Reduce,
            JobPhase::Closing(_) => JobStep::Close,
            JobPhase::Ended(_) => JobStep::Stop,
        }
    }

    fn looked(&mut self, look: NodeSets, context: JobSurroundings<'_>) -> JobStep {
        self.silent = false;
        let missed = self.nodes.look_at_nodes(look, context);
        if !missed.is_empty() {
            return self.pause(format!("waiting for {}, silent now", missed.join(", ")));
        }
        self.reason.clear();
        JobStep::Run
    }

    /// Handles a run that failed because of a node. If the node has ended many runs, the job continues without it.
    fn node_broke(
        &mut self,
        node: &NodeId,
        reason: String,
        context: JobSurroundings<'_>,
    ) -> JobStep {
        let count = match self.nodes.node_broke(node, context) {
            Blame::Job => return self.broke(reason, context.after),
            Blame::Node => {
                self.begin_again();
                return self.pause(reason);
            }
            Blame::LeftOut(count) => count,
        };
        self.begin_again();
        let place = place(context.after);
        let words = shorten_words(&reason);
        let said = format!(
            "the node failed {count} times in a row {place}, and the job continues without it; its last error: {words}"
        );
        self.reason = format!("node {node}: {said}");
        self.add_words(node, said);
        // Without the node, all counts begin anew.
        self.attempts = 0;
        self.pauses = 0;
        JobStep::Look
    }

    fn broke(&mut self, reason: String, after: Option<&FileName>) -> JobStep {
        self.begin_again();
        self.attempts = self.attempts.saturating_add(1);
        if self.attempts < MOST_ATTEMPTS {
            return self.pause(reason);
        }
        let said = if self.phase == JobPhase::Reducing {
            format!("the reduce step failed {MOST_ATTEMPTS} times; the last error: {reason}")
        } else {
            let place = place(after);
            format!(
                "the run failed {MOST_ATTEMPTS} times in a row {place}; the last error: {reason}; fix its cause and submit the \
                 job again, or inspect the file that follows there if the error names no cause"
            )
        };
        self.end_early(JobEnding::Failed, said)
    }

    fn begin_again(&mut self) {
        self.settle();
        self.restarts = self.restarts.saturating_add(1);
    }

    fn progressed(&mut self) {
        self.went_on = true;
        self.attempts = 0;
        self.pauses = 0;
        self.nodes.forgive_nodes();
    }

    /// Closes a run that did not report its gaps: if it read a file, it lacks the files of the nodes that were silent.
    fn settle(&mut self) {
        let absent = self.nodes.settle_nodes();
        let lacks = self.went_on;
        for node in absent.into_iter().filter(|_| lacks) {
            let reason = "the node was silent while others were read".to_owned();
            self.add_gap(JobGap::node_gap(&node, reason));
        }
        self.went_on = false;
    }

    fn calm(&mut self, phase: JobPhase) {
        self.phase = phase;
        self.reason.clear();
        self.silent = false;
        self.attempts = 0;
        self.pauses = 0;
        self.nodes.forgive_nodes();
    }

    fn pause(&mut self, reason: String) -> JobStep {
        self.reason = reason;
        let seconds = 1_u64 << self.pauses.min(10);
        self.pauses = self.pauses.saturating_add(1);
        JobStep::Pause(Duration::from_secs(seconds).min(LONGEST_PAUSE))
    }

    fn end(&mut self, ending: JobEnding, reason: String) -> JobStep {
        self.settle();
        self.phase = JobPhase::Ended(ending);
        self.reason = reason;
        self.silent = false;
        JobStep::Stop
    }
}

/// Describes the place in the output, for a message.
fn place(after: Option<&FileName>) -> String {
    after.map_or("at the beginning".to_owned(), |after| {
        format!("after {after}")
    })
}

/// Shortens a message of another part to the length that is kept.
pub fn shorten_words(words: &str) -> String {
    words.chars().take(LONGEST_WORDS).collect()
}
