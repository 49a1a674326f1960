//! The admission: the statement of what the archive took in, made once and signed.
//!
//! Owns `holdfast-admission/1`, the payload that fixes the root of a file permanently. It is signed by the repository
//! when the last byte has passed, and kept verbatim beside every copy.
//!
//! Not promised: that any copy exists. That is the [receipt](crate::receipt).

use archive_model::{Digests, FileContent, FileName, Root, UploadId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::envelope::Envelope;
use crate::key::SigningKey;
use crate::trust::{TrustFile, VerifyError};
use crate::version::{self, UnknownVersion};

/// The payload type of an admission in its envelope.
pub const PAYLOAD_TYPE: &str = "application/vnd.holdfast.admission+json";

const VERSION: &str = "holdfast-admission/1";

/// The admission of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admission {
    /// The archive that admits the file.
    pub archive: String,
    /// The name of the file, bound permanently to these bytes.
    pub name: FileName,
    /// The size of the file in bytes.
    pub size: u64,
    /// The BLAKE3 root of the file, which decides about every copy.
    pub root: Root,
    /// The digests of the file that other tools compare.
    pub digests: Digests,
    /// The name in the depositor's certificate.
    pub depositor: String,
    /// When the file was admitted.
    pub admitted: Timestamp,
    /// The upload that sent the bytes.
    pub upload: UploadId,
}

/// The payload as it is signed.
#[derive(Serialize)]
struct Payload<'a> {
    version: &'static str,
    #[serde(flatten)]
    admission: &'a Admission,
}

impl Admission {
    /// Returns the admitted content.
    pub fn content(&self) -> FileContent {
        FileContent {
            root: self.root,
            size: self.size,
        }
    }

    /// Signs the admission.
    ///
    /// # Errors
    ///
    /// [`AdmissionError::Json`] if the admission cannot be written as JSON.
    pub fn sign(&self, key: &SigningKey) -> Result<Envelope, AdmissionError> {
        let payload = serde_json::to_vec(&Payload {
            version: VERSION,
            admission: self,
        })?;
        Ok(Envelope::sign(PAYLOAD_TYPE, &payload, key))
    }

    /// Verifies `envelope` and reads its admission. A key that `trust` lists for its archive and its time must have
    /// signed it.
    ///
    /// Unknown fields are tolerated; an unknown major version is refused.
    ///
    /// # Errors
    ///
    /// [`AdmissionError`]: no trusted key signed it, or the payload is not an admission of this version.
    pub fn verify(envelope: &Envelope, trust: &TrustFile) -> Result<Self, AdmissionError> {
        let verified = trust.verify_envelope(envelope, PAYLOAD_TYPE)?;
        let admission: Self =
            version::parse_versioned::<_, AdmissionError>(verified.payload, VERSION)?;
        verified.accept_for(&admission.archive, admission.admitted)?;
        Ok(admission)
    }
}

/// The reason why an envelope is not a valid admission.
#[derive(Debug, thiserror::Error)]
pub enum AdmissionError {
    /// The signature does not count.
    #[error("the admission is not valid: {0}")]
    Signature(#[from] VerifyError),
    /// The admission was written by a newer archive.
    #[error("the admission cannot be read: {0}")]
    Version(#[from] UnknownVersion),
    /// The payload is signed, but is not an admission.
    #[error("the admission cannot be read: {0}")]
    Json(#[from] serde_json::Error),
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::trust::TrustedKey;

    pub(crate) fn key() -> SigningKey {
        SigningKey::from_seed([1; 32])
    }

    pub(crate) fn trust() -> TrustFile {
        let from = "2026-01-01T00:00:00Z".parse().unwrap();
        let key = |archive: &str, seed| TrustedKey {
            archive: archive.to_owned(),
            public_key: SigningKey::from_seed([seed; 32]).public_key(),
            from,
            until: None,
        };
        TrustFile::new(vec![key("kb", 1), key("sb", 2)]).unwrap()
    }

    pub(crate) fn admission() -> Admission {
        Admission {
            archive: "kb".to_owned(),
            name: FileName::new("Måned-1.warc.gz").unwrap(),
            size: u64::MAX,
            root: Root::from_bytes([0xab; 32]),
            digests: Digests {
                sha256: Some([0xcd; 32]),
                md5: None,
            },
            depositor: "harvester-1".to_owned(),
            admitted: "2026-03-04T05:06:07.123456789Z".parse().unwrap(),
            upload: UploadId::new("u-17").unwrap(),
        }
    }

    fn signed(json: &str) -> Envelope {
        Envelope::sign(PAYLOAD_TYPE, json.as_bytes(), &key())
    }

    fn json() -> String {
        let envelope = admission().sign(&key()).unwrap();
        String::from_utf8(
            trust()
                .verify_envelope(&envelope, PAYLOAD_TYPE)
                .unwrap()
                .payload
                .to_vec(),
        )
        .unwrap()
    }

    /// Fails if the signed payload differs from its documentation, by which other programs read it.
    #[test]
    fn the_payload_is_what_is_documented() {
        let ab = "ab".repeat(32);
        let cd = "cd".repeat(32);
        let expected = format!(
            r#"{{"version":"holdfast-admission/1","archive":"kb","name":"Måned-1.warc.gz","size":18446744073709551615,"root":"{ab}","digests":{{"sha256":"{cd}"}},"depositor":"harvester-1","admitted":"2026-03-04T05:06:07.123456789Z","upload":"u-17"}}"#
        );
        assert_eq!(json(), expected);
    }

    /// Fails if a field of an admission is lost or changed between signing and verifying.
    #[test]
    fn admission_reads_back_as_signed() {
        let envelope = admission().sign(&key()).unwrap();
        assert_eq!(Admission::verify(&envelope, &trust()).unwrap(), admission());
    }

    /// Fails if an admission with a new field is refused, or one of another major version or kind is read as if it were
    /// known.
    #[test]
    fn newer_fields_pass_and_newer_versions_fail() {
        let newer = json().replace("admission/1\"", "admission/1.4\",\"more\":{\"a\":[1]}");
        assert_eq!(
            Admission::verify(&signed(&newer), &trust()).unwrap(),
            admission()
        );
        for version in [
            "holdfast-admission/2",
            "holdfast-admission/10",
            "holdfast-admission/1.",
            "holdfast-admission/1.x",
            "holdfast-receipt/1",
            "",
        ] {
            let other = json().replace("holdfast-admission/1", version);
            let error = Admission::verify(&signed(&other), &trust()).unwrap_err();
            assert!(
                matches!(error, AdmissionError::Version(_)),
                "{version}: {error}"
            );
        }
    }

    /// Fails if a trusted signature lets a name that leaves its directory, an impossible size or a repeated field pass.
    #[test]
    fn signed_payload_breaking_a_rule_is_refused() {
        for (good, bad) in [
            ("Måned-1.warc.gz", "../escape"),
            ("18446744073709551615", "-1"),
            ("18446744073709551615", "18446744073709551616"),
            ("\"u-17\"", "\"U 17\""),
            ("abab", "ab"),
            ("2026-03-04T05:06:07.123456789Z", "yesterday"),
            ("\"depositor\":", "\"deposited\":"),
            ("\"size\":", "\"size\":1,\"size\":"),
        ] {
            let error =
                Admission::verify(&signed(&json().replacen(good, bad, 1)), &trust()).unwrap_err();
            assert!(matches!(error, AdmissionError::Json(_)), "{bad}: {error}");
        }
    }

    /// Fails if a key is believed for another archive, before its term, or for a payload of another type.
    #[test]
    fn signature_for_other_archive_or_time_is_ignored() {
        let other = admission().sign(&SigningKey::from_seed([2; 32])).unwrap();
        let error = Admission::verify(&other, &trust()).unwrap_err();
        assert!(matches!(
            error,
            AdmissionError::Signature(VerifyError::OtherArchive { .. })
        ));
        let early = Admission {
            admitted: "2025-12-31T00:00:00Z".parse().unwrap(),
            ..admission()
        };
        let error = Admission::verify(&early.sign(&key()).unwrap(), &trust()).unwrap_err();
        assert!(matches!(
            error,
            AdmissionError::Signature(VerifyError::OutsideTerm { .. })
        ));
        let receipt = Envelope::sign(crate::receipt::PAYLOAD_TYPE, json().as_bytes(), &key());
        let error = Admission::verify(&receipt, &trust()).unwrap_err();
        assert!(matches!(
            error,
            AdmissionError::Signature(VerifyError::OtherType { .. })
        ));
    }
}
