//! The findings of nodes: what is filed of them already, and when they are read again.
//!
//! Not promised: that nothing is filed twice. After a restart everything is filed again, which changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use archive_model::{CopyCondition, FileCopy, NodeKey};
use archive_rpc::CallError;
use jiff::Timestamp;
use parking_lot::Mutex;

use crate::preserver::{LookContext, Preserver};

/// The findings of a node that are filed, each as eight bytes that stand for it: there may be very many.
pub(super) type FiledFindings = BTreeSet<u64>;

/// What is filed of each node.
#[derive(Debug, Default)]
pub(super) struct NodeFindings(Mutex<BTreeMap<NodeKey, FindingsOfNode>>);

#[derive(Debug, Default)]
struct FindingsOfNode {
    filed: FiledFindings,
    /// The stamp of the node's findings when all of them were filed.
    stamp: Option<u64>,
    is_under_way: bool,
    /// The time before which they are not read again.
    rests_until: Option<Timestamp>,
}

impl NodeFindings {
    /// Returns what is filed of a node if there may be something new, and nobody is filing it now.
    pub(super) fn take_turn(
        &self,
        key: &NodeKey,
        stamp: u64,
        now: Timestamp,
    ) -> Option<FiledFindings> {
        let mut nodes = self.0.lock();
        let node = nodes.entry(key.clone()).or_default();
        let is_resting = node.rests_until.is_some_and(|until| until > now);
        if node.is_under_way || is_resting || node.stamp == Some(stamp) {
            return None;
        }
        node.is_under_way = true;
        Some(std::mem::take(&mut node.filed))
    }

    /// Ends a turn: with the stamp if all findings are filed.
    pub(super) fn end_turn(
        &self,
        key: NodeKey,
        filed: FiledFindings,
        stamp: Option<u64>,
        rests_until: Timestamp,
    ) {
        let ended = FindingsOfNode {
            filed,
            stamp,
            is_under_way: false,
            rests_until: Some(rests_until),
        };
        self.0.lock().insert(key, ended);
    }
}

impl Preserver {
    /// Files the findings of a node that are not filed yet. Files that seem missing or unexpected are looked at a second
    /// time. Returns those that are filed now, of which the node still says so, also if it fails on its way.
    pub(super) async fn file_findings(
        &self,
        key: &NodeKey,
        mut filed: FiledFindings,
        look_context: &LookContext,
    ) -> (FiledFindings, Result<(), CallError>) {
        let mut said = FiledFindings::new();
        let filing = Box::pin(self.file_pages(key, &filed, &mut said, look_context));
        let ended = filing.await;
        if ended.is_ok() {
            (said, ended)
        } else {
            filed.append(&mut said);
            (filed, ended)
        }
    }

    async fn file_pages(
        &self,
        NodeKey { replica, node }: &NodeKey,
        filed: &FiledFindings,
        said: &mut FiledFindings,
        look_context: &LookContext,
    ) -> Result<(), CallError> {
        let calls = &self.archive.calls;
        let opening = calls.replicas.list_findings(replica, node);
        let mut pages = calls.answered_call(opening).await?;
        loop {
            let page = calls.answered_call(pages.next()).await?;
            for found in page.items {
                let print = fingerprint(&found);
                if !filed.contains(&print) {
                    match found.condition {
                        CopyCondition::Present => {}
                        CopyCondition::Damaged { .. } => {
                            let name = &found.name;
                            let filing = self.file_verified(replica, name, &found, look_context);
                            Box::pin(filing).await?;
                        }
                        CopyCondition::Missing | CopyCondition::Unexpected => {
                            let looking = self.look_and_file(replica, &found.name, look_context);
                            Box::pin(looking).await?;
                        }
                    }
                }
                said.insert(print);
            }
            if page.end.is_some() {
                return Ok(());
            }
        }
    }
}

/// Returns eight bytes that stand for a finding.
fn fingerprint(found: &FileCopy) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{found:?}").hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if the findings of a node are read while they are being filed, or again without news, or if a pass that
    /// failed counts as one to its end or forgets what it has filed.
    #[test]
    fn findings_have_one_turn_at_a_time() {
        let findings = NodeFindings::default();
        let key = NodeKey {
            replica: "one".parse().unwrap(),
            node: "n-1".parse().unwrap(),
        };
        let at = |second| Timestamp::from_second(second).unwrap();
        let filed = findings.take_turn(&key, 7, at(0)).unwrap();
        assert!(filed.is_empty());
        assert!(findings.take_turn(&key, 8, at(0)).is_none());
        findings.end_turn(key.clone(), [1].into(), None, at(10));
        assert!(findings.take_turn(&key, 8, at(9)).is_none());
        assert_eq!(findings.take_turn(&key, 8, at(10)), Some([1].into()));
        findings.end_turn(key.clone(), [1, 2].into(), Some(8), at(20));
        assert!(findings.take_turn(&key, 8, at(99)).is_none());
        assert_eq!(findings.take_turn(&key, 9, at(99)), Some([1, 2].into()));
    }
}
