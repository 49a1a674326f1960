//! Merges the messages of many nodes in one run of a job into one sequence. Pure: the shell feeds messages of nodes,
//! and pulls merged items.
//!
//! Each node announces the next file, sends the output of the job for it, and ends it with `done`, in the order of the
//! names. The merge emits a file once every node that still runs has announced its next file, and this one is the first
//! of them, so that its output is in order. Of a node whose turn has not come one message is held, and no more is read
//! from it: memory does not grow with the output.
//!
//! A file that two nodes have is emitted once. The first node, by id, whose job has written output for the file, or has
//! ended the file without a failure, is chosen; if all of them ended it with nothing but failures, the first one. Later
//! messages are not known without keeping all of them, so that a failure in the middle does not make another node's
//! output count.
//!
//! A node that fails ends the merge where its next file would come, after all that lies before. A node that violates
//! the protocol, or sends a file that the job has not selected, is a gap from there on; unless half a file of it was
//! emitted already, which ends the merge too.

use std::fmt;

use archive_decisions::batch::life::JobGap;
use archive_model::limits::MOST_GAPS;
use archive_model::{BatchFileOutcome, FileName, FileSelection, NodeId};
use bytes::Bytes;

/// The most bytes of output in one message.
pub(crate) const LARGEST_OUTPUT: usize = 1 << 20;

/// The runs of one job on many nodes, merged into one. `E` is the reason why a run failed.
#[derive(Debug)]
pub(crate) struct Merge<E> {
    sources: Vec<Source<E>>,
    /// The name after which all files of the run come.
    after: Option<FileName>,
    /// The files of the job.
    selection: FileSelection,
    /// The source whose file is being emitted.
    turn: Option<usize>,
    gaps: Vec<JobGap>,
}

#[derive(Debug)]
struct Source<E> {
    node: NodeId,
    state: SourceState<E>,
    /// The file that the node announced last.
    last: Option<FileName>,
    /// The bytes of output since that announcement.
    output: u64,
    /// The number of files that the node has ended.
    files: u64,
}

#[derive(Debug)]
enum SourceState<E> {
    /// The next file is not known yet.
    Unknown,
    /// The next file is known.
    Begun(FileName),
    /// A message about the file waits for its turn.
    Held(FileName, PendingPiece),
    /// The file is ignored: another node has it too, and was chosen.
    Ignored,
    /// The node failed, in this file or before it was known.
    Broken(Option<FileName>, SourceError<E>),
    /// No more messages follow.
    Over,
}

#[derive(Debug)]
enum PendingPiece {
    Output(Bytes),
    Done(Box<BatchFileOutcome>),
}

/// The reason why the run of a node ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SourceError<E> {
    /// The run failed.
    Failed(E),
    /// The node violated the protocol, and half a file of it was emitted.
    Lied(String),
}

/// An item of the merged sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MergeItem<E> {
    /// The next bytes about a file.
    Output(Bytes),
    /// The end of a file.
    Done(Box<BatchFileOutcome>),
    /// The end of the merge: all that follows would come after what this node has not sent.
    Broken(NodeId, SourceError<E>),
}

impl<E> Merge<E> {
    /// Creates a merge of runs on `nodes`, sorted, which are called by their index. `gaps` are known already.
    pub(crate) fn new(
        nodes: impl IntoIterator<Item = NodeId>,
        after: Option<FileName>,
        selection: FileSelection,
        gaps: Vec<JobGap>,
    ) -> Self {
        let source = |node| Source {
            node,
            state: SourceState::Unknown,
            last: None,
            output: 0,
            files: 0,
        };
        Self {
            sources: nodes.into_iter().map(source).collect(),
            after,
            selection,
            turn: None,
            gaps,
        }
    }

    /// Returns the runs whose next message may be fed now.
    pub(crate) fn hungry_replicas(&self) -> impl Iterator<Item = usize> + '_ {
        let hungry = |state: &SourceState<E>| match state {
            SourceState::Unknown | SourceState::Begun(_) | SourceState::Ignored => true,
            SourceState::Held(..) | SourceState::Broken(..) | SourceState::Over => false,
        };
        let sources = self.sources.iter().enumerate();
        sources
            .filter(move |(_, source)| hungry(&source.state))
            .map(|(index, _)| index)
    }

    /// Adds the announcement of a node's next file.
    pub(crate) fn begin_file(&mut self, index: usize, name: FileName) {
        let Some(source) = self.sources.get_mut(index) else {
            return;
        };
        let last = source.last.as_ref().or(self.after.as_ref());
        let wrong = if last.is_some_and(|last| name <= *last) {
            Some(format!("its files are out of order at {name}"))
        } else if source.output > 0 {
            Some(format!("it begins {name} before it ended a file"))
        } else if !self.selection.matches(&name) {
            Some(format!("it begins {name}, which the job has not selected"))
        } else {
            None
        };
        if let Some(wrong) = wrong {
            return self.accuse_replica(index, wrong);
        }
        if source.may_send() {
            source.last = Some(name.clone());
            source.state = SourceState::Begun(name);
        }
    }

    /// Adds output of the file that a node began.
    pub(crate) fn push_output(&mut self, index: usize, bytes: Bytes) {
        let Some(source) = self.sources.get_mut(index) else {
            return;
        };
        if bytes.is_empty() || bytes.len() > LARGEST_OUTPUT {
            let reason = format!("it sent {} bytes of output in one message", bytes.len());
            return self.accuse_replica(index, reason);
        }
        source.output = source.output.saturating_add(bytes.len() as u64);
        match &source.state {
            SourceState::Begun(name) => {
                source.state = SourceState::Held(name.clone(), PendingPiece::Output(bytes));
            }
            SourceState::Ignored => {}
            _ => {
                self.accuse_replica(
                    index,
                    "it sent output of a file that it did not begin".to_owned(),
                );
            }
        }
    }

    /// Adds the end of a file of a node.
    pub(crate) fn end_file(&mut self, index: usize, done: Box<BatchFileOutcome>) {
        let Some(source) = self.sources.get_mut(index) else {
            return;
        };
        let wrong = if source.last.as_ref() != Some(&done.name) {
            Some(format!("it ended {}, which it did not begin", done.name))
        } else if done.node != source.node {
            Some(format!("it reports for node {}", done.node))
        } else if done.output != source.output {
            Some(format!(
                "for {} it sent {} bytes and reports {}",
                done.name, source.output, done.output
            ))
        } else {
            None
        };
        if let Some(wrong) = wrong {
            return self.accuse_replica(index, wrong);
        }
        let next = match &source.state {
            SourceState::Begun(name) => SourceState::Held(name.clone(), PendingPiece::Done(done)),
            SourceState::Ignored => SourceState::Unknown,
            _ => {
                return self.accuse_replica(index, format!("it ended {} twice", done.name));
            }
        };
        source.state = next;
        source.output = 0;
        source.files += 1;
    }

    /// Adds the end of a node's run, with the number of files that it reports, and its gaps.
    pub(crate) fn end_replica(&mut self, index: usize, files: u64, gaps: Vec<JobGap>) {
        let Some(source) = self.sources.get_mut(index) else {
            return;
        };
        let wrong = if source.output > 0 {
            Some("it ended in the middle of a file".to_owned())
        } else if source.files != files {
            Some(format!(
                "it ended {} files and reports {files}",
                source.files
            ))
        } else if gaps.len() > MOST_GAPS {
            Some(format!("it names {} gaps", gaps.len()))
        } else {
            None
        };
        if let Some(wrong) = wrong {
            return self.accuse_replica(index, wrong);
        }
        if source.may_send() {
            source.state = SourceState::Over;
            self.gaps.extend(gaps);
        }
    }

    /// Marks the run of a node as failed.
    pub(crate) fn fail_replica(&mut self, index: usize, why: E) {
        self.break_off(index, SourceError::Failed(why));
    }

    /// Marks a node that violates the protocol: it is a gap from here on. If half a file of it was emitted, the merge
    /// ends.
    pub(crate) fn accuse_replica(&mut self, index: usize, reason: String) {
        if self.turn == Some(index) {
            return self.break_off(index, SourceError::Lied(reason));
        }
        let Some(source) = self.sources.get_mut(index) else {
            return;
        };
        source.state = SourceState::Over;
        let reason = format!("the node violates the protocol: {reason}");
        let gap = match &source.last {
            Some(last) => JobGap::node_gap(
                &source.node,
                format!("{reason} (its files before {last} were read)"),
            ),
            None => JobGap::node_gap(&source.node, reason),
        };
        self.gaps.push(gap);
    }

    fn break_off(&mut self, index: usize, why: SourceError<E>) {
        let Some(source) = self.sources.get_mut(index) else {
            return;
        };
        let name = match std::mem::replace(&mut source.state, SourceState::Over) {
            SourceState::Begun(name) | SourceState::Held(name, _) => Some(name),
            SourceState::Unknown | SourceState::Ignored => None,
            over @ (SourceState::Broken(..) | SourceState::Over) => {
                source.state = over;
                return;
            }
        };
        source.state = SourceState::Broken(name, why);
    }

    /// Returns the next item, or `None` at the end and while a message is missing on which it depends.
    pub(crate) fn pull_item(&mut self) -> Option<MergeItem<E>> {
        let turn = match self.turn {
            Some(turn) => turn,
            None => self.choose()?,
        };
        let source = self.sources.get_mut(turn)?;
        match std::mem::replace(&mut source.state, SourceState::Over) {
            SourceState::Held(name, PendingPiece::Output(bytes)) => {
                source.state = SourceState::Begun(name);
                self.turn = Some(turn);
                Some(MergeItem::Output(bytes))
            }
            SourceState::Held(_, PendingPiece::Done(done)) => {
                source.state = SourceState::Unknown;
                self.turn = None;
                Some(MergeItem::Done(done))
            }
            SourceState::Broken(_, why) => Some(MergeItem::Broken(source.node.clone(), why)),
            other => {
                source.state = other;
                None
            }
        }
    }

    /// Chooses the source of the next file, as soon as it is certain. The same file of other nodes is ignored from then
    /// on.
    fn choose(&mut self) -> Option<usize> {
        let is_broken = |source: &Source<E>| matches!(source.state, SourceState::Broken(None, _));
        if let Some(broken) = self.sources.iter().position(is_broken) {
            return Some(broken);
        }
        // The next file of an open source may come before all others.
        let is_open = |source: &Source<E>| {
            matches!(source.state, SourceState::Unknown | SourceState::Ignored)
        };
        if self.sources.iter().any(is_open) {
            return None;
        }
        let first = self.sources.iter().filter_map(Source::next).min()?.clone();
        let has_it = |source: &Source<E>| source.next() == Some(&first);
        let mut chosen = None;
        let mut only_failures = None;
        for (index, source) in self.sources.iter().enumerate() {
            if !has_it(source) || chosen.is_some() {
                continue;
            }
            match &source.state {
                SourceState::Broken(..) => return Some(index),
                SourceState::Held(_, PendingPiece::Done(done)) if !is_whole(done) => {
                    only_failures.get_or_insert(index);
                }
                SourceState::Held(..) => chosen = Some(index),
                SourceState::Begun(_) => return None,
                SourceState::Unknown | SourceState::Ignored | SourceState::Over => {}
            }
        }
        let chosen = chosen.or(only_failures)?;
        for (index, source) in self.sources.iter_mut().enumerate() {
            if index == chosen || !has_it(source) {
                continue;
            }
            match &source.state {
                SourceState::Held(_, PendingPiece::Done(_)) => source.state = SourceState::Unknown,
                SourceState::Begun(_) | SourceState::Held(_, PendingPiece::Output(_)) => {
                    source.state = SourceState::Ignored;
                }
                _ => {}
            }
        }
        Some(chosen)
    }

    /// Returns whether everything was emitted.
    pub(crate) fn is_finished(&self) -> bool {
        self.sources
            .iter()
            .all(|source| matches!(source.state, SourceState::Over))
    }

    /// Returns the gaps of the output that are known by now.
    pub(crate) fn gaps(&self) -> &[JobGap] {
        &self.gaps
    }
}

impl<E> Source<E> {
    /// Returns the file that the source has begun.
    fn next(&self) -> Option<&FileName> {
        match &self.state {
            SourceState::Begun(name) | SourceState::Held(name, _) => Some(name),
            SourceState::Broken(name, _) => name.as_ref(),
            SourceState::Unknown | SourceState::Ignored | SourceState::Over => None,
        }
    }

    fn may_send(&self) -> bool {
        match self.state {
            SourceState::Unknown | SourceState::Begun(_) | SourceState::Ignored => true,
            SourceState::Held(..) | SourceState::Broken(..) | SourceState::Over => false,
        }
    }
}

/// Returns whether nothing of the file failed.
fn is_whole(done: &BatchFileOutcome) -> bool {
    done.failures.is_empty() && done.more_failures == 0
}

impl<E: fmt::Display> fmt::Display for SourceError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(why) => why.fmt(f),
            Self::Lied(reason) => write!(f, "the node violates the protocol: {reason}"),
        }
    }
}

#[cfg(test)]
mod tests;
