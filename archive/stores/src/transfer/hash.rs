//! All that is computed of a depositor's bytes while they pass, and the states from which hashing can be resumed.

use archive_decisions::store::Content;
use archive_model::{Digests, Root};
use archive_proof::points::split_groups;
use archive_proof::{Points, Prefix, TreeBuilder};
use md5::{Digest, Md5};
use sha2::Sha256;

/// The state of hashing the first bytes of a file.
#[derive(Clone, Debug)]
pub(super) struct HashState {
    prefix: Prefix,
    sha256: Sha256,
    md5: Option<Md5>,
}

impl HashState {
    /// Returns the root of the bytes that were hashed.
    pub(super) fn root(&self) -> Root {
        self.prefix.root()
    }

    /// Whether the MD5 of the bytes was computed.
    pub(super) const fn has_md5(&self) -> bool {
        self.md5.is_some()
    }
}

/// The computation over the bytes while they pass. It takes the memory of a hundred groups, whatever the size.
#[derive(Debug)]
pub(super) struct Hash {
    tree: TreeBuilder<std::io::Sink>,
    sha256: Sha256,
    md5: Option<Md5>,
    points: Points<HashState>,
}

impl Hash {
    pub(super) fn new(md5: bool) -> Self {
        Self {
            tree: TreeBuilder::new(std::io::sink()),
            sha256: Sha256::new(),
            md5: md5.then(Md5::new),
            points: Points::default(),
        }
    }

    /// Goes on after the first `offset` bytes, with the state that `points` has of them; without one, begins anew.
    pub(super) fn after_offset(offset: u64, mut points: Points<HashState>, md5: bool) -> Self {
        match points.back_to(offset).cloned() {
            None => Self::new(md5),
            Some(state) => Self {
                tree: TreeBuilder::after_prefix(state.prefix),
                sha256: state.sha256,
                md5: state.md5,
                points,
            },
        }
    }

    /// Returns the number of bytes that have passed, including those before the point at which hashing went on.
    pub(super) const fn size(&self) -> u64 {
        self.tree.size()
    }

    /// Hashes `bytes`. Never returns `None`, because a sink takes everything.
    pub(super) fn update(&mut self, mut bytes: &[u8]) -> Option<()> {
        while !bytes.is_empty() {
            let (piece, rest) = split_groups(self.size(), bytes);
            self.sha256.update(piece);
            if let Some(md5) = &mut self.md5 {
                md5.update(piece);
            }
            self.tree.update(piece).ok()?;
            self.points.keep_state(self.tree.size(), || HashState {
                prefix: self.tree.prefix_state(),
                sha256: self.sha256.clone(),
                md5: self.md5.clone(),
            });
            bytes = rest;
        }
        Some(())
    }

    /// Returns the root, the size and the digests of the bytes that have passed, as if they were all.
    pub(super) fn content(&self) -> Content {
        let digests = Digests {
            sha256: Some(self.sha256.clone().finalize().into()),
            md5: self.md5.clone().map(|md5| md5.finalize().into()),
        };
        Content {
            root: self.tree.root_so_far(),
            size: self.size(),
            digests,
        }
    }

    /// Returns the states from which hashing can be resumed.
    pub(super) fn into_points(self) -> Points<HashState> {
        self.points
    }
}

#[cfg(test)]
mod tests {
    use archive_proof::points::STRIDE;
    use tools_testing::noise;

    use super::*;

    /// Fails if the root or a digest of a resumed upload depends on where it was cut or resumed.
    #[test]
    fn whatever_was_cut_the_content_is_the_same() {
        let bytes = noise(5 * 1024 * 1024 + 77, 1);
        let mut whole = Hash::new(true);
        whole.update(&bytes).unwrap();
        let content = whole.content();
        assert_eq!(content.root.as_bytes(), blake3::hash(&bytes).as_bytes());
        assert_eq!(content.digests.sha256, Some(Sha256::digest(&bytes).into()));
        assert_eq!(content.digests.md5, Some(Md5::digest(&bytes).into()));
        for cut in [
            1,
            1024 * 1024 - 1,
            1024 * 1024,
            3 * 1024 * 1024 + 5,
            bytes.len(),
        ] {
            let mut first = Hash::new(true);
            for piece in bytes[..cut].chunks(100_003) {
                first.update(piece).unwrap();
            }
            let points = first.into_points();
            let offsets: Vec<u64> = points.iter().map(|(offset, _)| offset).collect();
            assert_eq!(offsets.len(), cut / 1024 / 1024);
            for offset in offsets.into_iter().chain([0]) {
                let at = usize::try_from(offset).unwrap();
                let mut second = Hash::after_offset(offset, points.clone(), true);
                assert_eq!(second.size(), offset);
                second.update(&bytes[at..]).unwrap();
                assert_eq!(second.content(), content, "cut at {cut}, from {offset}");
            }
        }
    }

    /// Fails if the state of bytes behind the resume point is kept, so that other bytes sent there get the hashes of
    /// the first ones.
    #[test]
    fn other_bytes_after_the_cut_are_other_content() {
        let bytes = noise(2 * 1024 * 1024, 1);
        let mut first = Hash::new(false);
        first.update(&bytes).unwrap();
        let content = first.content();
        let mut second = Hash::after_offset(STRIDE, first.into_points(), false);
        assert_eq!(
            second.points.iter().map(|(at, _)| at).collect::<Vec<_>>(),
            [STRIDE],
            "what was computed of other bytes is forgotten"
        );
        second.update(&vec![0; 1024 * 1024]).unwrap();
        assert_eq!(second.content().size, content.size);
        assert_ne!(second.content().root, content.root);
    }
}
