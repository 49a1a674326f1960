//! Compares a depositor's statement about the bytes with the bytes that arrived, and two of these with each other.
//!
//! SHA-256 or BLAKE3 can prove sameness; size and MD5 can only disprove it: MD5 collisions are made on purpose.

use archive_model::{ArchiveError, Digests, FileContent, FileName, Root};
use serde::{Deserialize, Serialize};

/// A statement about bytes that the archive has not seen yet: the announced size and the digests given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Announced size in bytes.
    pub size: u64,
    /// BLAKE3, if given.
    pub root: Option<Root>,
    /// SHA-256 and MD5, where given.
    #[serde(with = "compact")]
    pub digests: Digests,
}

/// The content of bytes that arrived whole, as the repository computed it while they passed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// The BLAKE3 root, which decides.
    pub root: Root,
    /// Size in bytes.
    pub size: u64,
    /// SHA-256 always, MD5 where the depositor gave one or the settings ask for it.
    #[serde(with = "compact")]
    pub digests: Digests,
}

impl From<&Content> for FileContent {
    fn from(Content { root, size, .. }: &Content) -> Self {
        Self {
            root: *root,
            size: *size,
        }
    }
}

/// Whether two descriptions are of the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// A strong digest is equal and nothing contradicts it.
    Same,
    /// The size or a digest differs.
    Different,
    /// No digest differs and no strong one is equal: only the bytes can tell.
    Unknown,
}

impl Claim {
    /// Whether `self` and `other` are of the same bytes.
    pub fn compare_claims(&self, other: &Self) -> Agreement {
        let root = equal(self.root.as_ref(), other.root.as_ref());
        let sha256 = equal(self.digests.sha256.as_ref(), other.digests.sha256.as_ref());
        let md5 = equal(self.digests.md5.as_ref(), other.digests.md5.as_ref());
        if self.size != other.size || [root, sha256, md5].contains(&Some(false)) {
            Agreement::Different
        } else if root == Some(true) || sha256 == Some(true) {
            Agreement::Same
        } else {
            Agreement::Unknown
        }
    }

    /// Returns this claim with the digests that `other` adds to it. Only sensible if the two are not
    /// [`Agreement::Different`].
    #[must_use]
    pub fn merge_claims(&self, other: &Self) -> Self {
        Self {
            size: self.size,
            root: self.root.or(other.root),
            digests: Digests {
                sha256: self.digests.sha256.or(other.digests.sha256),
                md5: self.digests.md5.or(other.digests.md5),
            },
        }
    }

    /// Compares the content that arrived with every part of the claim.
    ///
    /// # Errors
    ///
    /// [`ArchiveError::Mismatch`] with the first part that differs. A digest that was given and not computed counts as
    /// differing: what was not compared is not acknowledged.
    pub fn verify_content(&self, name: &FileName, received: &Content) -> Result<(), ArchiveError> {
        let mismatch = |what, announced: String, received: Option<String>| {
            let received = received.unwrap_or_else(|| "nothing: it was not computed".to_owned());
            Err(ArchiveError::Mismatch {
                name: name.clone(),
                what,
                announced,
                received,
            })
        };
        if self.size != received.size {
            return mismatch(
                "size",
                self.size.to_string(),
                Some(received.size.to_string()),
            );
        }
        if let Some(root) = self.root.filter(|root| *root != received.root) {
            return mismatch("blake3", root.to_string(), Some(received.root.to_string()));
        }
        if let Some(sha256) = self
            .digests
            .sha256
            .filter(|sha256| Some(*sha256) != received.digests.sha256)
        {
            return mismatch(
                "sha256",
                hex(&sha256),
                received.digests.sha256.map(|digest| hex(&digest)),
            );
        }
        if let Some(md5) = self
            .digests
            .md5
            .filter(|md5| Some(*md5) != received.digests.md5)
        {
            return mismatch(
                "md5",
                hex(&md5),
                received.digests.md5.map(|digest| hex(&digest)),
            );
        }
        Ok(())
    }
}

impl From<&Content> for Claim {
    fn from(content: &Content) -> Self {
        Self {
            size: content.size,
            root: Some(content.root),
            digests: content.digests.clone(),
        }
    }
}

fn equal<T: PartialEq>(a: Option<&T>, b: Option<&T>) -> Option<bool> {
    a.zip(b).map(|(a, b)| a == b)
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// The model leaves unknown digests out, which a format without field names (the admin table's) cannot read back.
mod compact {
    use archive_model::Digests;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        digests: &Digests,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            return digests.serialize(serializer);
        }
        (digests.sha256, digests.md5).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Digests, D::Error> {
        if deserializer.is_human_readable() {
            return Digests::deserialize(deserializer);
        }
        <(Option<[u8; 32]>, Option<[u8; 16]>)>::deserialize(deserializer)
            .map(|(sha256, md5)| Digests { sha256, md5 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(size: u64, root: Option<u8>, sha256: Option<u8>, md5: Option<u8>) -> Claim {
        Claim {
            size,
            root: root.map(|byte| Root::from_bytes([byte; 32])),
            digests: Digests {
                sha256: sha256.map(|byte| [byte; 32]),
                md5: md5.map(|byte| [byte; 16]),
            },
        }
    }

    /// Fails if MD5 is believed, the size is ignored, or a contradiction beside an equal root is ignored.
    #[test]
    fn only_a_strong_digest_proves_sameness() {
        use Agreement::{Different, Same, Unknown};
        for (a, b, expected) in [
            (
                claim(1, Some(1), None, None),
                claim(1, Some(1), None, None),
                Same,
            ),
            (
                claim(1, None, Some(1), None),
                claim(1, Some(9), Some(1), None),
                Same,
            ),
            (
                claim(1, Some(1), Some(1), None),
                claim(1, Some(1), Some(2), None),
                Different,
            ),
            (
                claim(1, Some(1), None, Some(1)),
                claim(1, Some(1), None, Some(2)),
                Different,
            ),
            (
                claim(1, Some(1), None, None),
                claim(2, Some(1), None, None),
                Different,
            ),
            (
                claim(1, None, None, Some(1)),
                claim(1, None, None, Some(1)),
                Unknown,
            ),
            (
                claim(1, Some(1), None, None),
                claim(1, None, Some(1), None),
                Unknown,
            ),
            (
                claim(1, None, None, None),
                claim(1, None, None, None),
                Unknown,
            ),
        ] {
            assert_eq!(a.compare_claims(&b), expected, "{a:?} {b:?}");
            assert_eq!(b.compare_claims(&a), expected, "both ways: {a:?} {b:?}");
        }
    }

    /// Fails if bytes are accepted whose size, root or digest contradicts the claim, or of which a claimed digest was
    /// not computed.
    #[test]
    fn received_bytes_are_compared_with_the_whole_claim() {
        let name = FileName::new("a.warc").unwrap();
        let content = Content {
            root: Root::from_bytes([1; 32]),
            size: 7,
            digests: Digests {
                sha256: Some([1; 32]),
                md5: None,
            },
        };
        assert_eq!(
            claim(7, Some(1), Some(1), None).verify_content(&name, &content),
            Ok(())
        );
        assert_eq!(
            claim(7, None, None, None).verify_content(&name, &content),
            Ok(())
        );
        for (claim, part) in [
            (claim(8, Some(1), None, None), "size"),
            (claim(7, Some(2), None, None), "blake3"),
            (claim(7, Some(1), Some(2), None), "sha256"),
            (claim(7, Some(1), None, Some(1)), "md5"), // given, and nobody computed it
        ] {
            let error = claim.verify_content(&name, &content).unwrap_err();
            assert!(
                matches!(&error, ArchiveError::Mismatch { what, .. } if *what == part),
                "{error}"
            );
        }
    }

    /// Fails if merging two claims loses a digest that only one of them has.
    #[test]
    fn merged_claim_has_digests_of_both() {
        let merged = claim(1, Some(1), None, None).merge_claims(&claim(1, None, Some(2), Some(3)));
        assert_eq!(merged, claim(1, Some(1), Some(2), Some(3)));
    }
}
