//! One sorted listing, merged from many. Pure: the door feeds the messages of nodes, and takes the merged entries.
//!
//! Each node lists its files sorted by name, then by volume, each once. The merge yields an entry only when every node
//! that is still listing has one waiting, so that the output is sorted, and entries of one name are adjacent whichever
//! nodes they come from: its reader sees duplicates. Nothing is remembered of the output, and the door asks a node for
//! more only when its entries are used up: memory does not grow with the archive.
//!
//! A node whose listing breaks off, stalls, is out of order or miscounts is a gap. The entries that it has sent so far
//! are still listed.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use std::fmt;

use archive_model::limits::MOST_GAPS;
use archive_model::{FileName, NodeId, VolumeId};

use crate::gap::ReplicaGap;

/// An entry for a file on a volume of a node. The merge looks only at its place in the order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedFile<E> {
    /// The file.
    pub name: FileName,
    /// The volume that has the file.
    pub volume: VolumeId,
    /// The entry about it.
    pub entry: E,
}

/// A merge of many listings into one.
#[derive(Debug)]
pub struct Merge<E> {
    sources: Vec<Source<E>>,
    /// The name after which all entries come.
    after: Option<FileName>,
    /// The first name of each source that has one waiting.
    heads: BinaryHeap<Reverse<(FileName, usize)>>,
    /// The sources that are still listing and have nothing waiting.
    hungry: BTreeSet<usize>,
    gaps: Vec<ReplicaGap>,
    count: u64,
}

#[derive(Debug)]
struct Source<E> {
    node: NodeId,
    listing: bool,
    waiting: VecDeque<ListedFile<E>>,
    received: u64,
    last: Option<(FileName, VolumeId)>,
}

impl<E> Merge<E> {
    /// Creates the merge of the listings of `nodes`, of which nothing has come yet; a listing is named by its index.
    /// `gaps` are known already.
    pub fn new(
        nodes: impl IntoIterator<Item = NodeId>,
        after: Option<FileName>,
        gaps: Vec<ReplicaGap>,
    ) -> Self {
        let source = |node| Source {
            node,
            listing: true,
            waiting: VecDeque::new(),
            received: 0,
            last: None,
        };
        let sources: Vec<Source<E>> = nodes.into_iter().map(source).collect();
        let hungry = (0..sources.len()).collect();
        Self {
            sources,
            after,
            heads: BinaryHeap::new(),
            hungry,
            gaps,
            count: 0,
        }
    }

    /// Returns the listings of which more is needed before the next entry can come out.
    pub fn hungry_nodes(&self) -> &BTreeSet<usize> {
        &self.hungry
    }

    /// Takes the entries of a message of a node. An error, or an entry out of order, ends its listing. So does an empty
    /// message: a node could send those without end.
    pub fn feed_entries<X: fmt::Display>(
        &mut self,
        index: usize,
        entries: impl IntoIterator<Item = Result<ListedFile<E>, X>>,
    ) {
        let Some(source) = self.sources.get_mut(index).filter(|source| source.listing) else {
            return;
        };
        let was_empty = source.waiting.is_empty();
        let mut failure = None;
        for entry in entries {
            match entry {
                Ok(entry) if source.is_next(&entry, self.after.as_ref()) => source.take(entry),
                Ok(entry) => {
                    failure = Some(format!("its listing is out of order at {}", entry.name));
                }
                Err(error) => failure = Some(error.to_string()),
            }
            if failure.is_some() {
                break;
            }
        }
        match source.waiting.front() {
            None if failure.is_none() => {
                failure = Some("it sent a message without entries".to_owned());
            }
            Some(head) if was_empty => {
                self.heads.push(Reverse((head.name.clone(), index)));
                self.hungry.remove(&index);
            }
            _ => {}
        }
        if let Some(reason) = failure {
            self.fail_node(index, &reason);
        }
    }

    /// Ends the listing of a node, which says that it has sent everything except `gaps`: `stated` entries. Another
    /// number is a gap.
    pub fn end_node(&mut self, index: usize, stated: u64, gaps: Vec<ReplicaGap>) {
        let Some(source) = self.sources.get_mut(index).filter(|source| source.listing) else {
            return;
        };
        if source.received != stated {
            let reason = format!("it lists {stated} entries and sent {}", source.received);
            return self.fail_node(index, &reason);
        }
        if gaps.len() > MOST_GAPS {
            let reason = format!("{} of its volumes could not be asked", gaps.len());
            return self.fail_node(index, &reason);
        }
        source.listing = false;
        self.hungry.remove(&index);
        self.gaps.extend(gaps);
    }

    /// Notes that a node's listing broke off before its end: a gap.
    pub fn fail_node(&mut self, index: usize, reason: &impl fmt::Display) {
        let Some(source) = self.sources.get_mut(index).filter(|source| source.listing) else {
            return;
        };
        source.listing = false;
        self.hungry.remove(&index);
        let gap = match &source.last {
            Some((name, _)) => ReplicaGap::node_gap(
                &source.node,
                &format_args!("{reason} (it listed up to {name})"),
            ),
            None => ReplicaGap::node_gap(&source.node, reason),
        };
        self.gaps.push(gap);
    }

    /// Returns the next entry; `None` while a listing is hungry, and at the end.
    pub fn pull_entry(&mut self) -> Option<E> {
        if !self.hungry.is_empty() {
            return None;
        }
        let Reverse((_, index)) = self.heads.pop()?;
        let source = self.sources.get_mut(index)?;
        let taken = source.waiting.pop_front()?;
        if let Some(head) = source.waiting.front() {
            self.heads.push(Reverse((head.name.clone(), index)));
        } else if source.listing {
            self.hungry.insert(index);
        }
        self.count += 1;
        Some(taken.entry)
    }

    /// Whether everything has come out.
    pub fn is_finished(&self) -> bool {
        self.hungry.is_empty() && self.heads.is_empty()
    }

    /// Returns the number of entries that have come out.
    pub fn count_entries(&self) -> u64 {
        self.count
    }

    /// Returns the gaps of the listing, as far as they are known by now.
    pub fn gaps(&self) -> &[ReplicaGap] {
        &self.gaps
    }
}

impl<E> Source<E> {
    fn is_next(&self, entry: &ListedFile<E>, after: Option<&FileName>) -> bool {
        match &self.last {
            Some((name, volume)) => (name, volume) < (&entry.name, &entry.volume),
            None => after.is_none_or(|after| *after < entry.name),
        }
    }

    fn take(&mut self, entry: ListedFile<E>) {
        self.last = Some((entry.name.clone(), entry.volume.clone()));
        self.received += 1;
        self.waiting.push_back(entry);
    }
}

#[cfg(test)]
mod tests;
