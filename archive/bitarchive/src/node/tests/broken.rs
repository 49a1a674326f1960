//! Ways to break a file, and the segments that a good copy elsewhere would send.

use std::ops::{ControlFlow, Range};

use archive_model::{Groups, MendOrder};
use archive_proof::{CopyBytes, TreeBuilder, encode_ranges};

use super::*;

/// The size of a file of eleven groups, the last one short.
pub(super) const SIZE: usize = 10 * 16_384 + 123;

/// Continues the work.
pub(super) fn on(_bytes: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Changes the bytes of a file behind the node's back.
pub(super) fn spoil(path: &Path, spoil: impl FnOnce(&mut Vec<u8>)) {
    make_writable(path);
    let mut content = std::fs::read(path).unwrap();
    spoil(&mut content);
    std::fs::write(path, content).unwrap();
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o444)).unwrap();
}

impl NodeMachine {
    /// Makes a node with one good file.
    pub(super) fn with_file(&self, file: &str) -> Node {
        let (node, _) = self.start();
        self.store(&node, file, &bytes(SIZE)).unwrap();
        node
    }

    /// Flips one bit of the file in each of the given groups.
    pub(super) fn flip(&self, file: &str, groups: &[usize]) {
        spoil(&self.target(file).file, |content| {
            for group in groups {
                content[group * 16_384 + 7] ^= 8;
            }
        });
    }

    pub(super) fn content(&self, file: &str) -> Vec<u8> {
        std::fs::read(self.target(file).file).unwrap()
    }

    /// Lists the directories of the attic, sorted.
    pub(super) fn attic(&self) -> Vec<PathBuf> {
        let listed = std::fs::read_dir(self.path("disk/attic")).unwrap();
        let mut paths: Vec<_> = listed.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    }
}

pub(super) fn set(groups: &[u64]) -> Groups {
    groups.iter().copied().collect()
}

pub(super) fn verify(node: &Node, file: &str) -> CatalogEntry {
    node.files
        .verify_copy(&name(file), None, now(), &mut on)
        .unwrap()
}

/// Returns the corrupt and the unreadable groups.
pub(super) fn damage(entry: &CatalogEntry) -> (Groups, Groups) {
    match &entry.row.condition {
        Condition::Damaged {
            corrupt,
            unreadable,
            ..
        } => (corrupt.clone(), unreadable.clone()),
        other @ (Condition::Present | Condition::Missing { .. } | Condition::Unexpected { .. }) => {
            panic!("not damaged: {other:?}")
        }
    }
}

pub(super) fn order(file: &str, content: &[u8], groups: Groups) -> MendOrder {
    MendOrder {
        name: name(file),
        volume: None,
        root: Root::from_bytes(*blake3::hash(content).as_bytes()),
        groups,
        who: "officer/anna".to_owned(),
        why: "found by the scrub".to_owned(),
    }
}

/// A segment that is sent: its offset, its length, and the encoded range.
pub(super) type Segment = (u64, u64, Vec<u8>);

/// Makes the segment that a donor sends for a range of `content`.
pub(super) fn slice(content: &[u8], range: Range<u64>) -> Vec<u8> {
    let mut builder = TreeBuilder::new(Vec::new());
    builder.update(content).unwrap();
    let tree = builder.finish().unwrap();
    let mut encoded = Vec::new();
    let copy = CopyBytes {
        data: &content,
        outboard: Some(&tree.sink),
    };
    encode_ranges(copy, tree.content(), &[range], &mut encoded).unwrap();
    encoded
}

/// Makes the segments with `groups`, at most two groups each.
pub(super) fn segments(content: &[u8], groups: &Groups) -> Vec<Segment> {
    let mut segments = Vec::new();
    for range in groups.byte_ranges(content.len() as u64) {
        let mut offset = range.start;
        while offset < range.end {
            let end = range.end.min(offset + 32_768);
            segments.push((offset, end - offset, slice(content, offset..end)));
            offset = end;
        }
    }
    segments
}

pub(super) fn mend(
    node: &Node,
    file: &str,
    content: &[u8],
    groups: &Groups,
) -> Result<crate::MendReport, NodeError> {
    let mut mend = node
        .files
        .begin_mend(order(file, content, groups.clone()), now())?;
    for (offset, length, encoded) in segments(content, groups) {
        mend.write_segment(offset, length, &encoded, &mut on)?;
    }
    mend.close_mend(now(), &mut on)
}
