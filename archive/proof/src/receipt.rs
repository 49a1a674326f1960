//! The custody receipt: the signed statement to a depositor which replicas hold a file.
//!
//! Owns `holdfast-receipt/1`. A receipt carries the signed admission verbatim, so that one file, a trust file and the
//! bytes are enough to prove, offline, what was deposited, when, and where it was durable.
//!
//! Not promised: that the copies are still there. A receipt states what was true when it was issued.

use archive_model::{NodeId, ReplicaId, ReplicaKind, VolumeId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::admission::{Admission, AdmissionError};
use crate::envelope::Envelope;
use crate::key::SigningKey;
use crate::trust::{TrustFile, VerifyError};
use crate::version::{self, UnknownVersion};

/// The payload type of a receipt in its envelope.
pub const PAYLOAD_TYPE: &str = "application/vnd.holdfast.receipt+json";

const VERSION: &str = "holdfast-receipt/1";

/// The statement of which replicas hold a file.
///
/// ```
/// use archive_proof::{Envelope, Receipt, ReceiptError, TrustFile};
///
/// /// Returns the number of replicas that hold the file of a receipt.
/// fn copies(receipt: &Envelope, trust: &TrustFile) -> Result<usize, ReceiptError> {
///     let (receipt, admission) = Receipt::verify(receipt, trust)?;
///     println!("{}: {}", admission.name, admission.root);
///     Ok(receipt.replicas.len())
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The signed admission, byte for byte; in JSON a string.
    pub admission: Envelope,
    /// Every replica that holds the file, each once.
    pub replicas: Vec<CustodyStatement>,
    /// When the receipt was issued.
    pub issued: Timestamp,
}

/// The statement of one replica that it holds the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CustodyStatement {
    /// The id of the replica.
    pub replica: ReplicaId,
    /// The kind of copy that it keeps: the bytes, or the checksum only.
    pub kind: ReplicaKind,
    /// When the copy was read back, equal and durable.
    pub completed: Timestamp,
    /// The node that has the copy.
    pub node: NodeId,
    /// The volume that has the copy; absent for a checksum replica.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<VolumeId>,
}

/// The payload as it is signed.
#[derive(Serialize)]
struct Payload<'a> {
    version: &'static str,
    #[serde(flatten)]
    receipt: &'a Receipt,
}

impl Receipt {
    /// Signs the receipt.
    ///
    /// # Errors
    ///
    /// [`ReceiptError::Json`] if the receipt cannot be written as JSON.
    pub fn sign(&self, key: &SigningKey) -> Result<Envelope, ReceiptError> {
        let payload = serde_json::to_vec(&Payload {
            version: VERSION,
            receipt: self,
        })?;
        Ok(Envelope::sign(PAYLOAD_TYPE, &payload, key))
    }

    /// Verifies `envelope`, and reads its receipt and the admission in that. Trusted keys of one and the same archive
    /// must have signed both.
    ///
    /// # Errors
    ///
    /// [`ReceiptError`]: no trusted key signed both, the payload is not a receipt of this version, or it names no
    /// replica, or one twice.
    pub fn verify(
        envelope: &Envelope,
        trust: &TrustFile,
    ) -> Result<(Self, Admission), ReceiptError> {
        let verified = trust.verify_envelope(envelope, PAYLOAD_TYPE)?;
        let receipt: Self = version::parse_versioned::<_, ReceiptError>(verified.payload, VERSION)?;
        let admission = Admission::verify(&receipt.admission, trust)?;
        verified.accept_for(&admission.archive, receipt.issued)?;
        if receipt.replicas.is_empty() {
            return Err(ReceiptError::NoReplica);
        }
        for (index, custody) in receipt.replicas.iter().enumerate() {
            if receipt
                .replicas
                .iter()
                .skip(index + 1)
                .any(|other| other.replica == custody.replica)
            {
                return Err(ReceiptError::Twice(custody.replica.clone()));
            }
        }
        Ok((receipt, admission))
    }
}

/// The reason why an envelope is not a valid receipt.
#[derive(Debug, thiserror::Error)]
pub enum ReceiptError {
    /// The signature does not count.
    #[error("the receipt is not valid: {0}")]
    Signature(#[from] VerifyError),
    /// The admission in the receipt does not count.
    #[error("in the receipt, {0}")]
    Admission(#[from] AdmissionError),
    /// The receipt was written by a newer archive.
    #[error("the receipt cannot be read: {0}")]
    Version(#[from] UnknownVersion),
    /// The payload is signed, but is not a receipt.
    #[error("the receipt cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    /// The receipt names no replica.
    #[error("the receipt names no replica: keep the source, and ask the archive for a new receipt")]
    NoReplica,
    /// The receipt names a replica twice.
    #[error(
        "the receipt names replica {0} twice: keep the source, and ask the archive for a new receipt"
    )]
    Twice(ReplicaId),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::tests::{admission, key, trust};

    fn custody(replica: &str) -> CustodyStatement {
        CustodyStatement {
            replica: ReplicaId::new(replica).unwrap(),
            kind: ReplicaKind::Bitarchive,
            completed: "2026-03-04T05:06:09Z".parse().unwrap(),
            node: NodeId::new("node-1").unwrap(),
            volume: Some(VolumeId::new("volume-1").unwrap()),
        }
    }

    fn receipt() -> Receipt {
        let three = CustodyStatement {
            kind: ReplicaKind::Checksum,
            volume: None,
            ..custody("three")
        };
        Receipt {
            admission: admission().sign(&key()).unwrap(),
            replicas: vec![custody("one"), custody("two"), three],
            issued: "2026-03-04T05:06:10Z".parse().unwrap(),
        }
    }

    /// Fails if a receipt that was written to a file does not verify, or gives another admission.
    #[test]
    fn a_receipt_proves_itself_and_its_admission() {
        let envelope = receipt().sign(&key()).unwrap();
        let file = Envelope::parse(envelope.as_str().as_bytes()).unwrap();
        assert_eq!(
            Receipt::verify(&file, &trust()).unwrap(),
            (receipt(), admission())
        );
    }

    /// Fails if a receipt verifies after one of its bits was changed.
    #[test]
    fn receipt_with_a_changed_bit_is_refused() {
        let trust = trust();
        let bytes = receipt().sign(&key()).unwrap().as_str().as_bytes().to_vec();
        for position in 0..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[position] ^= 1 << bit;
                let Ok(envelope) = Envelope::parse(&changed) else {
                    continue;
                };
                assert!(
                    Receipt::verify(&envelope, &trust).is_err(),
                    "in the form we write, not one bit is free: byte {position}, bit {bit}"
                );
            }
        }
    }

    /// Fails if a receipt counts whose admission was signed by another archive, or with an unknown key.
    #[test]
    fn both_signatures_must_be_of_one_archive() {
        let other = SigningKey::from_seed([2; 32]);
        let error = Receipt::verify(&receipt().sign(&other).unwrap(), &trust()).unwrap_err();
        assert!(matches!(
            error,
            ReceiptError::Signature(VerifyError::OtherArchive { .. })
        ));
        let foreign = Receipt {
            admission: admission().sign(&other).unwrap(),
            ..receipt()
        };
        let error = Receipt::verify(&foreign.sign(&key()).unwrap(), &trust()).unwrap_err();
        assert!(matches!(
            error,
            ReceiptError::Admission(AdmissionError::Signature(VerifyError::OtherArchive { .. }))
        ));
        let stranger = Receipt {
            admission: admission().sign(&SigningKey::from_seed([9; 32])).unwrap(),
            ..receipt()
        };
        let error = Receipt::verify(&stranger.sign(&key()).unwrap(), &trust()).unwrap_err();
        assert!(matches!(
            error,
            ReceiptError::Admission(AdmissionError::Signature(VerifyError::UnknownKey { .. }))
        ));
    }

    /// Fails if a receipt without a replica, or one that counts a replica twice, passes, or an admission passes for a
    /// receipt.
    #[test]
    fn receipt_with_empty_or_repeated_promises_is_refused() {
        let none = Receipt {
            replicas: Vec::new(),
            ..receipt()
        };
        let error = Receipt::verify(&none.sign(&key()).unwrap(), &trust()).unwrap_err();
        assert!(matches!(error, ReceiptError::NoReplica));
        let twice = Receipt {
            replicas: vec![custody("one"), custody("two"), custody("one")],
            ..receipt()
        };
        let error = Receipt::verify(&twice.sign(&key()).unwrap(), &trust()).unwrap_err();
        assert!(matches!(error, ReceiptError::Twice(_)));
        let admission_only = admission().sign(&key()).unwrap();
        assert!(matches!(
            Receipt::verify(&admission_only, &trust()),
            Err(ReceiptError::Signature(_))
        ));
    }
}
