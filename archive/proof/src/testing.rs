//! Helpers of tests: a key, a file that trusts it, and admissions for it to sign.
//!
//! Owns the archive that tests speak of. Other crates see it with the feature `testing`. Not promised: that an
//! admission from here has ever been made by a repository.

#![expect(
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "helpers of tests"
)]

use archive_model::{Digests, FileName, Root, UploadId};
use jiff::Timestamp;

use crate::admission::Admission;
use crate::key::SigningKey;
use crate::trust::{TrustFile, TrustedKey};

#[cfg(test)]
mod trees;

#[cfg(test)]
pub(crate) use trees::{BadDisk, EDGES};

/// The archive that signs in tests.
pub const ARCHIVE: &str = "kb";

/// Returns the key that signs in tests.
pub fn signing_key() -> SigningKey {
    SigningKey::from_seed([1; 32])
}

/// Returns a trust file that trusts this key, for [`ARCHIVE`], from 1970 on.
pub fn trust_in(key: &SigningKey) -> TrustFile {
    let trusted = TrustedKey {
        archive: ARCHIVE.to_owned(),
        public_key: key.public_key(),
        from: Timestamp::UNIX_EPOCH,
        until: None,
    };
    TrustFile::new(vec![trusted]).expect("one key with an open term is good")
}

/// Returns the admission of a file with this content, uploaded as `u-1`.
///
/// ```
/// use archive_proof::Admission;
/// use archive_proof::testing::{admission, signing_key, trust_in};
///
/// let admission = admission("a.warc", b"abc");
/// let signed = admission.sign(&signing_key())?;
/// assert_eq!(Admission::verify(&signed, &trust_in(&signing_key()))?, admission);
/// # Ok::<(), archive_proof::AdmissionError>(())
/// ```
pub fn admission(name: &str, content: &[u8]) -> Admission {
    Admission {
        archive: ARCHIVE.to_owned(),
        name: FileName::new(name).expect("a test names a good file"),
        size: content.len() as u64,
        root: Root::from_bytes(*blake3::hash(content).as_bytes()),
        digests: Digests::default(),
        depositor: "harvester/h".to_owned(),
        admitted: Timestamp::from_second(1_767_225_600).expect("it is 2026"),
        upload: UploadId::new("u-1").expect("it is an id"),
    }
}
