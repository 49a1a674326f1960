//! The life of a batch job: a function from what happened to what to do next.
//!
//! Owns when a run is repeated, how long an absent node is waited for, which node is left out, and how a job ends.
//! Awaits nothing and reads no clock: the shell stores a [`Life`] whenever it has changed, and only then performs the
//! [`Step`].
//!
//! Not promised: that the step is performed. After a restart the shell applies [`Event::Turn`] again, and gets the same
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
pub struct Life {
    /// The phase that the job has reached.
    pub phase: Phase,
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
pub enum Phase {
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
    Ended(Ending),
    /// The job ends early, in this way; files that nobody has read are counted and named first.
    Closing(Ending),
}

/// The way in which a job has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
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
pub enum Event {
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
pub enum Step {
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
pub struct Context<'a> {
    /// The time of the event.
    pub now: Timestamp,
    /// The time to wait for a node that went away, was not heard of yet, or fails each time.
    pub patience: Duration,
    /// The last file whose output is on disk.
    pub after: Option<&'a FileName>,
    /// Whether the job names its files. Then each file that nobody has read is counted, on whichever node it should be.
    pub is_by_name: bool,
}

impl Life {
    /// Returns how the job has ended, or `None` if it has not.
    pub const fn ending(&self) -> Option<Ending> {
        match self.phase {
            Phase::Ended(ending) => Some(ending),
            Phase::Waiting
            | Phase::Reading
            | Phase::Comparing
            | Phase::Reducing
            | Phase::Closing(_) => None,
        }
    }

    /// Returns the nodes that were alive in the last report.
    pub fn present(&self) -> impl Iterator<Item = &NodeId> {
        self.nodes.present()
    }

    /// Returns the nodes that are not asked any more.
    pub fn left_out(&self) -> impl Iterator<Item = &NodeId> {
        self.nodes.left_out()
    }

    /// Applies an event and returns the next step. An event that is late, or has no meaning in this phase, changes
    /// nothing.
    pub fn apply(&mut self, event: Event, context: Context<'_>) -> Step {
        if self.ending().is_some() {
            return Step::Stop;
        }
        match (event, self.phase) {
            // The ending was decided before.
            (Event::Cancelled(_) | Event::Failed(_), Phase::Closing(_)) => {}
            (Event::Cancelled(who), _) => {
                return self.end_early(Ending::Cancelled, format!("cancelled by {who}"));
            }
            (Event::Uncounted(why), Phase::Closing(ending)) => {
                return self.end_uncounted(ending, &why);
            }
            (Event::Failed(reason), _) => return self.end_early(Ending::Failed, reason),
            (Event::TimeOver, Phase::Reading | Phase::Comparing | Phase::Reducing) => {
                let waited = match self.reason.as_str() {
                    "" => String::new(),
                    reason => format!(", after the job had waited: {reason}"),
                };
                return self.end_early(
                    Ending::Failed,
                    format!("the time limit of the job has passed{waited}"),
                );
            }
            (Event::Restarted, Phase::Reading | Phase::Comparing | Phase::Reducing) => {
                self.begin_again();
                self.nodes.forgive();
                self.pauses = 0;
            }
            (Event::Turn, Phase::Waiting) => self.phase = Phase::Reading,
            (Event::Looked(look), Phase::Reading) => return self.looked(look, context),
            (Event::Silent(reason), Phase::Reading | Phase::Reducing) => {
                self.silent = true;
                // The state of the nodes is unknown: no time is counted against them.
                self.nodes.forgive();
                return self.pause(reason);
            }
            (Event::Busy(reason), Phase::Reading | Phase::Reducing) => {
                self.silent = false;
                return self.pause(reason);
            }
            (Event::NodeBroke(node, reason), Phase::Reading) => {
                self.silent = false;
                return self.node_broke(&node, reason, context);
            }
            (
                Event::Broke(reason) | Event::NodeBroke(_, reason),
                Phase::Reading | Phase::Reducing,
            ) => {
                self.silent = false;
                return self.broke(reason, context.after);
            }
            (Event::Progress, Phase::Reading) => {
                self.progressed();
                return Step::Run;
            }
            (Event::Finished(gaps), Phase::Reading) => {
                // A completed run reports itself the gaps that it has.
                self.went_on = false;
                self.settle();
                for gap in gaps {
                    self.add(gap);
                }
                self.calm(Phase::Comparing);
            }
            (Event::Compared(unread), Phase::Comparing) => {
                self.unread = unread.total;
                self.calm(Phase::Reducing);
            }
            (Event::Compared(unread), Phase::Closing(ending)) => {
                return self.close(ending, unread, context.after);
            }
            (Event::Reduced, Phase::Reducing) => {
                // A silent node may have files that match an expression. Named files are known.
                let is_whole = self.unread == 0 && (self.gaps.is_empty() || context.is_by_name);
                let ending = if is_whole {
                    Ending::Done
                } else {
                    Ending::Partial
                };
                return self.end(ending, String::new());
            }
            (
                Event::Turn
                | Event::Restarted
                | Event::Looked { .. }
                | Event::Silent(_)
                | Event::Busy(_)
                | Event::Woke
                | Event::Progress
                | Event::Broke(_)
                | Event::NodeBroke(..)
                | Event::Finished(_)
                | Event::Compared(_)
                | Event::Uncounted(_)
                | Event::Reduced
                | Event::TimeOver,
                _,
            ) => {}
        }
        self.step()
    }

    /// Returns the step of the current phase.
    const fn step(&self) -> Step {
        match self.phase {
            Phase::Waiting => Step::Wait,
            Phase::Reading => Step::Look,
            Phase::Comparing => Step::Compare,
            Phase::Reducing => Step::Reduce,
            Phase::Closing(_) => Step::Close,
            Phase::Ended(_) => Step::Stop,
        }
    }

    fn looked(&mut self, look: NodeSets, context: Context<'_>) -> Step {
        self.silent = false;
        let missed = self.nodes.look(look, context);
        if !missed.is_empty() {
            return self.pause(format!("waiting for {}, silent now", missed.join(", ")));
        }
        self.reason.clear();
        Step::Run
    }

    /// Handles a run that failed because of a node. If the node has ended many runs, the job continues without it.
    fn node_broke(&mut self, node: &NodeId, reason: String, context: Context<'_>) -> Step {
        let count = match self.nodes.broke(node, context) {
            Blame::Job => return self.broke(reason, context.after),
            Blame::Node => {
                self.begin_again();
                return self.pause(reason);
            }
            Blame::LeftOut(count) => count,
        };
        self.begin_again();
        let place = place(context.after);
        let words = shortened(&reason);
        let said = format!(
            "the node failed {count} times in a row {place}, and the job continues without it; its last error: {words}"
        );
        self.reason = format!("node {node}: {said}");
        self.add_words(node, said);
        // Without the node, all counts begin anew.
        self.attempts = 0;
        self.pauses = 0;
        Step::Look
    }

    fn broke(&mut self, reason: String, after: Option<&FileName>) -> Step {
        self.begin_again();
        self.attempts = self.attempts.saturating_add(1);
        if self.attempts < MOST_ATTEMPTS {
            return self.pause(reason);
        }
        let said = if self.phase == Phase::Reducing {
            format!("the reduce step failed {MOST_ATTEMPTS} times; the last error: {reason}")
        } else {
            let place = place(after);
            format!(
                "the run failed {MOST_ATTEMPTS} times in a row {place}; the last error: {reason}; fix its cause and submit the \
                 job again, or inspect the file that follows there if the error names no cause"
            )
        };
        self.end_early(Ending::Failed, said)
    }

    fn begin_again(&mut self) {
        self.settle();
        self.restarts = self.restarts.saturating_add(1);
    }

    fn progressed(&mut self) {
        self.went_on = true;
        self.attempts = 0;
        self.pauses = 0;
        self.nodes.forgive();
    }

    /// Closes a run that did not report its gaps: if it read a file, it lacks the files of the nodes that were silent.
    fn settle(&mut self) {
        let absent = self.nodes.settle();
        let lacks = self.went_on;
        for node in absent.into_iter().filter(|_| lacks) {
            let reason = "the node was silent while others were read".to_owned();
            self.add(JobGap::node(&node, reason));
        }
        self.went_on = false;
    }

    fn calm(&mut self, phase: Phase) {
        self.phase = phase;
        self.reason.clear();
        self.silent = false;
        self.attempts = 0;
        self.pauses = 0;
        self.nodes.forgive();
    }

    fn pause(&mut self, reason: String) -> Step {
        self.reason = reason;
        let seconds = 1_u64 << self.pauses.min(10);
        self.pauses = self.pauses.saturating_add(1);
        Step::Pause(Duration::from_secs(seconds).min(LONGEST_PAUSE))
    }

    fn end(&mut self, ending: Ending, reason: String) -> Step {
        self.settle();
        self.phase = Phase::Ended(ending);
        self.reason = reason;
        self.silent = false;
        Step::Stop
    }
}

/// Describes the place in the output, for a message.
fn place(after: Option<&FileName>) -> String {
    after.map_or("at the beginning".to_owned(), |after| {
        format!("after {after}")
    })
}

/// Shortens a message of another part to the length that is kept.
pub fn shortened(words: &str) -> String {
    words.chars().take(LONGEST_WORDS).collect()
}
