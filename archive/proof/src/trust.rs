//! The trust file: whose signatures count, for which archive, and when.
//!
//! Owns `holdfast-trust/1`, the one file that someone who checks a receipt offline must have from a source they trust:
//!
//! ```json
//! {"version": "holdfast-trust/1",
//!  "keys": [{"archive": "kb", "key_id": "f6d0…", "public_key": "-----BEGIN PUBLIC KEY-----\n…",
//!            "from": "2026-01-01T00:00:00Z", "until": "2031-01-01T00:00:00Z"}]}
//! ```
//!
//! It is read strictly: an unknown field, a key id that is not the key's, or a key listed twice is refused.
//!
//! Not promised: protection from a stolen key within its term. The time that is compared with the term is the one in
//! the payload, which its signer wrote.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::envelope::Envelope;
use crate::key::{InvalidSigningKey, PublicKey};
use crate::version::{self, UnknownVersion};

const VERSION: &str = "holdfast-trust/1";

/// A key that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedKey {
    /// The archive that the key signs for.
    pub archive: String,
    /// The public half of the key.
    pub public_key: PublicKey,
    /// The time from which signatures of the key count.
    pub from: Timestamp,
    /// The time from which signatures of the key no longer count; absent: its term is open.
    pub until: Option<Timestamp>,
}

/// The keys that count.
///
/// ```
/// use archive_proof::{SigningKey, TrustFile, TrustedKey};
///
/// let key = TrustedKey {
///     archive: "kb".to_owned(),
///     public_key: SigningKey::from_seed([7; 32]).public_key(),
///     from: "2026-01-01T00:00:00Z".parse()?,
///     until: None,
/// };
/// let trust = TrustFile::new(vec![key.clone()])?;
/// assert_eq!(TrustFile::parse(trust.to_json()?.as_bytes())?, trust);
/// assert!(TrustFile::new(vec![key.clone(), key]).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustFile {
    keys: Vec<(String, TrustedKey)>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    version: String,
    keys: Vec<WireKey>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireKey {
    archive: String,
    key_id: String,
    public_key: String,
    from: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<Timestamp>,
}

impl TrustFile {
    /// Makes a trust file of these keys, each listed once and with a term that is not empty.
    ///
    /// # Errors
    ///
    /// [`InvalidTrustFile`] if a key is listed twice, or its term is empty.
    pub fn new(keys: Vec<TrustedKey>) -> Result<Self, InvalidTrustFile> {
        let mut file = Self::default();
        for key in keys {
            let key_id = key.public_key.key_id();
            if key.until.is_some_and(|until| until <= key.from) {
                return Err(InvalidTrustFile::EmptyTerm { key_id });
            }
            if file.key(&key_id).is_some() {
                return Err(InvalidTrustFile::Twice { key_id });
            }
            file.keys.push((key_id, key));
        }
        Ok(file)
    }

    /// Reads a trust file.
    ///
    /// # Errors
    ///
    /// [`InvalidTrustFile`] if the text is not a trust file of this version, or one of its keys cannot be trusted.
    pub fn parse(json: &[u8]) -> Result<Self, InvalidTrustFile> {
        let wire: Wire = version::parse_versioned::<_, InvalidTrustFile>(json, VERSION)?;
        let mut keys = Vec::new();
        for WireKey {
            archive,
            key_id,
            public_key,
            from,
            until,
        } in wire.keys
        {
            let public_key = match PublicKey::from_pem(&public_key) {
                Ok(key) => key,
                Err(source) => return Err(InvalidTrustFile::Key { key_id, source }),
            };
            if public_key.key_id() != key_id {
                return Err(InvalidTrustFile::OtherId {
                    key_id,
                    found: public_key.key_id(),
                });
            }
            keys.push(TrustedKey {
                archive,
                public_key,
                from,
                until,
            });
        }
        Self::new(keys)
    }

    /// Writes the file, indented, for people.
    ///
    /// # Errors
    ///
    /// [`InvalidTrustFile`] if a key cannot be encoded.
    pub fn to_json(&self) -> Result<String, InvalidTrustFile> {
        let mut keys = Vec::new();
        for (key_id, key) in &self.keys {
            let public_key = match key.public_key.to_pem() {
                Ok(pem) => pem,
                Err(source) => {
                    return Err(InvalidTrustFile::Key {
                        key_id: key_id.clone(),
                        source,
                    });
                }
            };
            let archive = key.archive.clone();
            let key_id = key_id.clone();
            keys.push(WireKey {
                archive,
                key_id,
                public_key,
                from: key.from,
                until: key.until,
            });
        }
        Ok(serde_json::to_string_pretty(&Wire {
            version: VERSION.to_owned(),
            keys,
        })?)
    }

    /// Returns the keys, in the order of the file.
    pub fn keys(&self) -> impl Iterator<Item = &TrustedKey> {
        self.keys.iter().map(|(_, key)| key)
    }

    /// Checks that a trusted key signed `envelope`, and that its payload is of `payload_type`.
    ///
    /// Payload bytes are returned only then. One good signature of a trusted key is enough; signatures of unknown keys
    /// count for nothing. Check the term and the archive of the key against the payload with
    /// [`VerifiedPayload::accept_for`].
    ///
    /// # Errors
    ///
    /// [`VerifyError`] if the envelope holds another type of payload, or no trusted key signed it.
    pub fn verify_envelope<'a>(
        &'a self,
        envelope: &'a Envelope,
        payload_type: &str,
    ) -> Result<VerifiedPayload<'a>, VerifyError> {
        if envelope.payload_type() != payload_type {
            return Err(VerifyError::OtherType {
                expected: payload_type.to_owned(),
                found: envelope.payload_type().chars().take(80).collect(),
            });
        }
        let message = envelope.signed_bytes();
        let mut error = VerifyError::UnknownKey {
            key_ids: envelope.key_ids().map(str::to_owned).collect(),
        };
        for signature in envelope.signatures() {
            let Some(key) = self.key(&signature.key_id) else {
                continue;
            };
            if key.public_key.verifies(&message, &signature.bytes) {
                return Ok(VerifiedPayload {
                    payload: envelope.payload(),
                    key,
                });
            }
            error = VerifyError::BadSignature {
                key_id: signature.key_id.clone(),
            };
        }
        Err(error)
    }

    fn key(&self, key_id: &str) -> Option<&TrustedKey> {
        self.keys
            .iter()
            .find(|(id, _)| id == key_id)
            .map(|(_, key)| key)
    }
}

/// A payload whose signature a trusted key made.
#[derive(Clone, Copy, Debug)]
pub struct VerifiedPayload<'a> {
    /// The exact bytes that were signed.
    pub payload: &'a [u8],
    /// The key that signed the payload.
    pub key: &'a TrustedKey,
}

impl VerifiedPayload<'_> {
    /// Checks that the key signs for `archive` and did so within its term; `time` is when the payload says it was
    /// signed.
    ///
    /// # Errors
    ///
    /// [`VerifyError`] if the key signs for another archive, or did so outside of its term.
    pub fn accept_for(&self, archive: &str, time: Timestamp) -> Result<(), VerifyError> {
        let key = self.key;
        if key.archive != archive {
            return Err(VerifyError::OtherArchive {
                key_id: key.public_key.key_id(),
                trusted: key.archive.clone(),
                found: archive.to_owned(),
            });
        }
        if time < key.from || key.until.is_some_and(|until| time >= until) {
            return Err(VerifyError::OutsideTerm {
                key_id: key.public_key.key_id(),
                time,
            });
        }
        Ok(())
    }
}

/// The reason why an envelope does not count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// The payload has another type than was asked for.
    #[error("the envelope holds `{found}`, not `{expected}`: give the right kind of file")]
    OtherType {
        /// The type that was asked for.
        expected: String,
        /// The type of the payload; at most 80 characters of it.
        found: String,
    },
    /// No key of the trust file signed the envelope.
    #[error("no trusted key signed this (signed by {}): add the archive's key to the trust file, or distrust it", list(.key_ids))]
    UnknownKey {
        /// The ids of the keys that claim to have signed.
        key_ids: Vec<String>,
    },
    /// A trusted key is named, but did not sign these bytes: they were changed.
    #[error(
        "the signature of key {key_id} is not over these bytes: they were changed after signing"
    )]
    BadSignature {
        /// The id of the key that is named.
        key_id: String,
    },
    /// The key signs for another archive.
    #[error("key {key_id} signs for the archive `{trusted}`, not for `{found}`: distrust it")]
    OtherArchive {
        /// The id of the key.
        key_id: String,
        /// The archive in the trust file.
        trusted: String,
        /// The archive in the payload.
        found: String,
    },
    /// The payload was signed before or after the term of the key.
    #[error(
        "signed at {time}, outside the term of key {key_id}: look at the trust file, or distrust it"
    )]
    OutsideTerm {
        /// The id of the key.
        key_id: String,
        /// When the payload was signed, as it says itself.
        time: Timestamp,
    },
}

fn list(key_ids: &[String]) -> String {
    if key_ids.is_empty() {
        "nobody".to_owned()
    } else {
        key_ids.join(", ")
    }
}

/// The reason why a trust file is refused.
#[derive(Debug, thiserror::Error)]
pub enum InvalidTrustFile {
    /// The text is not the JSON of a trust file.
    #[error("the trust file cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    /// The document is of another kind or version.
    #[error("the trust file cannot be read: {0}")]
    Version(#[from] UnknownVersion),
    /// A listed key is not a key.
    #[error("the trust file's key {key_id}: {source}")]
    Key {
        /// The id of the key, as it is listed.
        key_id: String,
        /// The reason why it is not a key.
        source: InvalidSigningKey,
    },
    /// A listed id is not that of the key beside it.
    #[error("the trust file lists key {found} as {key_id}: correct one of the two")]
    OtherId {
        /// The id of the key, as it is listed.
        key_id: String,
        /// The id of the key that is given.
        found: String,
    },
    /// A key is listed twice.
    #[error("the trust file lists key {key_id} twice: leave one")]
    Twice {
        /// The id of the key.
        key_id: String,
    },
    /// The term of a key is empty: `until` is not after `from`.
    #[error("the trust file's key {key_id} ends before it begins: correct `from` or `until`")]
    EmptyTerm {
        /// The id of the key.
        key_id: String,
    },
}

#[cfg(test)]
mod tests;
