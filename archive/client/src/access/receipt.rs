//! The custody receipt of a file, verified before it is handed out.

use archive_model::FileName;
use archive_proof::{Admission, Envelope, Receipt, TrustFile};

use crate::error::ClientError;

/// A receipt that a trusted key signed, for the file that was asked for.
#[derive(Clone, Debug)]
pub struct HeldReceipt {
    /// The receipt as it goes into a file: a DSSE envelope in JSON.
    pub envelope: String,
    /// The content of the receipt.
    pub receipt: Receipt,
    /// The admission that the receipt contains.
    pub admission: Admission,
}

impl HeldReceipt {
    /// Verifies a receipt: a trusted key must have signed it, for the file `name`.
    pub(crate) fn believe_receipt(
        envelope: String,
        name: &FileName,
        trust: &TrustFile,
    ) -> Result<Self, ClientError> {
        let untrusted = |reason: String| ClientError::Untrusted(format!("{name}: {reason}"));
        let parsed =
            Envelope::parse(envelope.as_bytes()).map_err(|error| untrusted(error.to_string()))?;
        let (receipt, admission) =
            Receipt::verify(&parsed, trust).map_err(|error| untrusted(error.to_string()))?;
        if admission.name != *name {
            let found = admission.name;
            return Err(untrusted(format!("the receipt is for {found}")));
        }
        Ok(Self {
            envelope,
            receipt,
            admission,
        })
    }
}
