//! The life of a batch job: a function from what happened to what to do next.
//!
//! Owns when a run is asked for again, how long who went away is waited for, who is left out, and how a job ends. Awaits nothing and reads
//! no clock: the shell writes a [`Life`] down whenever it has changed, and only then does the [`Step`].
//!
//! Not promised: that the step is done. After a restart the shell says [`Event::Turn`] again, and is told the same step.

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

pub use gaps::Gap;
pub use nodes::NodeLiveness;
use nodes::{Blame, Nodes};

/// So many runs in a row broke off and brought no file more, and no node can be left out for it: the job fails.
pub(crate) const MOST_ATTEMPTS: u32 = 20;

/// The most characters of what is kept of a node's last words.
const LONGEST_WORDS: usize = 300;

/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// What is remembered of a job's life.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Life {
    pub phase: Phase,
    /// Why it waits, failed or was cancelled; else empty.
    pub reason: String,
    /// The monitor of its replica does not answer.
    pub silent: bool,
    /// How often it was begun again.
    pub restarts: u64,
    /// Runs in a row that brought no file more, and were not ended by a node that can be left out.
    attempts: u32,
    /// Pauses in a row: each is longer.
    pauses: u32,
    nodes: Nodes,
    /// Whether the run has brought a file: then it lacks those of the nodes that it began without.
    went_on: bool,
    /// Whose files were not read, all of them or from some name on.
    pub gaps: Vec<Gap>,
    /// Files that the replica has, and nobody has read.
    pub unread: u64,
}

/// Where a job is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// It waits for its turn.
    #[default]
    Waiting,
    /// Nodes read files for it, or will.
    Reading,
    /// All is read; what nobody has read is looked for.
    Comparing,
    /// The result is made.
    Reducing,
    /// Nothing becomes of it any more.
    Ended(Ending),
    /// It ends early, in this way; what nobody has read is counted and named first.
    Closing(Ending),
}

/// How a job has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// Every file that it is about was read.
    Done,
    /// Some were not.
    Partial,
    /// It could not go to its end.
    Failed,
    /// Somebody ended it.
    Cancelled,
}

/// The files of a replica that nobody has read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnreadFiles {
    /// All of them.
    pub total: u64,
    /// Those that were counted now, by the node that has them as far as the admin data know.
    pub by_node: BTreeMap<NodeId, u64>,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Its turn has come, or come again after a restart of the repository.
    Turn,
    /// The repository was started again.
    Restarted,
    /// The monitor says how the nodes are.
    Looked(NodeLiveness),
    /// The monitor does not answer.
    Silent(String),
    /// A node has no room for the job now.
    Busy(String),
    /// A pause is over.
    Woke,
    /// A file more is on disk.
    Progress,
    /// The run, or the reduce step, broke off.
    Broke(String),
    /// The run broke off because of this node, and no other.
    NodeBroke(NodeId, String),
    /// The run went to its end.
    Finished(Vec<Gap>),
    /// The files that nobody has read were counted.
    Compared(UnreadFiles),
    /// The files that nobody has read cannot be counted, of a job that ends early.
    Uncounted(String),
    /// The result is on disk.
    Reduced,
    /// It cannot go on.
    Failed(String),
    /// Its time is over.
    TimeOver,
    /// Somebody, by `role/name`, ends it.
    Cancelled(String),
}

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing: its turn has not come.
    Wait,
    /// Ask the monitor which nodes are alive.
    Look,
    /// Run it after the last file that is on disk; when it runs already, go on.
    Run,
    /// Wait so long.
    Pause(Duration),
    /// Look for files that nobody has read.
    Compare,
    /// Look for files that nobody has read, of a job that ends early: neither its time nor a person ends that.
    Close,
    /// Make the result.
    Reduce,
    /// Nothing any more.
    Stop,
}

/// What is known beside the event.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    pub now: Timestamp,
    /// How long a node is waited for that went away, was not heard of yet, or breaks off each time.
    pub patience: Duration,
    /// The last file whose output is on disk.
    pub after: Option<&'a FileName>,
    /// It is about files by their names. Each that nobody has read is counted then, whoever should have it.
    pub is_by_name: bool,
}

impl Life {
    /// Whether nothing becomes of it any more.
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

    /// The nodes that were alive when it was last looked.
    pub fn present(&self) -> impl Iterator<Item = &NodeId> {
        self.nodes.present()
    }

    /// The nodes that are not to be asked any more.
    pub fn left_out(&self) -> impl Iterator<Item = &NodeId> {
        self.nodes.left_out()
    }

    /// What follows from what happened. An event that is late, or has no meaning where the job is, changes nothing.
    pub fn apply(&mut self, event: Event, context: Context<'_>) -> Step {
        if self.ending().is_some() {
            return Step::Stop;
        }
        match (event, self.phase) {
            // How it ends was decided before.
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
                    reason => format!(", after it had waited: {reason}"),
                };
                return self.end_early(Ending::Failed, format!("its time is over{waited}"));
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
                // What the nodes do is not known: nobody's patience with them runs.
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
                // What a run that went to its end lacks, it says itself.
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
                // Whether a node that was silent has files of an expression, nobody knows. Names are known.
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

    /// What is to be done where it is.
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

    fn looked(&mut self, look: NodeLiveness, context: Context<'_>) -> Step {
        self.silent = false;
        let missed = self.nodes.look(look, context);
        if !missed.is_empty() {
            return self.pause(format!("it waits for {}, silent now", missed.join(", ")));
        }
        self.reason.clear();
        Step::Run
    }

    /// A run broke off because of a node. When it is the node's doing again and again, the job goes on without it.
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
        let (place, words) = (place(context.after), shortened(&reason));
        let said = format!(
            "it broke off {count} times in a row {place}, and the job goes on without it; its last words: {words}"
        );
        self.reason = format!("node {node}: {said}");
        self.add_words(node, said);
        // Without it, all begins anew.
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
            format!("its reduce step broke off {MOST_ATTEMPTS} times; the last time: {reason}")
        } else {
            let place = place(after);
            format!(
                "its run broke off {MOST_ATTEMPTS} times in a row {place}; the last time: {reason}; mend that and submit \
                 it again, or look at the file that follows there if that names no cause"
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

    /// A run is over without saying what it lacks: if it went on, then without the nodes that were silent.
    fn settle(&mut self) {
        let (absent, lacks) = (self.nodes.settle(), self.went_on);
        for node in absent.into_iter().filter(|_| lacks) {
            let reason = "it was silent while others were read".to_owned();
            self.add(Gap::node(&node, reason));
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

/// Behind which file, in words.
fn place(after: Option<&FileName>) -> String {
    after.map_or("at the beginning".to_owned(), |after| {
        format!("after {after}")
    })
}

/// Words that come from elsewhere, as many as are kept.
pub(crate) fn shortened(words: &str) -> String {
    words.chars().take(LONGEST_WORDS).collect()
}
