//! The sidecar: the facts about a file, in a file beside it, as `holdfast-sidecar/1`.
//!
//! Plain JSON, written once. The admission is kept verbatim, because its signature covers its exact bytes; fields that
//! this build does not know are kept. The checksum over the body distinguishes a rotten sidecar from a good one; it
//! proves nothing about the file: only the signed admission does.
//!
//! ```json
//! {"format":"holdfast-sidecar/1","checksum":"<BLAKE3 of the exact text of body>","body":{"admission":{…},…}}
//! ```

use std::collections::BTreeMap;

use archive_model::{Root, VolumeId};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

const FORMAT: &str = "holdfast-sidecar/1";

/// The longest sidecar that is written or read, in bytes: twice the longest envelope.
pub const MAX_SIDECAR: u64 = 2 * 1024 * 1024;

/// The outboard of a file, as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutboardRecord {
    /// The size of the outboard in bytes.
    pub size: u64,
    /// The BLAKE3 hash of the bytes of the outboard.
    pub digest: Root,
}

/// A sidecar.
#[derive(Clone, Debug)]
pub struct Sidecar {
    /// The signed admission: a DSSE envelope, verbatim.
    pub admission: Box<RawValue>,
    /// The outboard; `None` for a file of at most one group.
    pub outboard: Option<OutboardRecord>,
    /// The volume that the file was stored on.
    pub volume: VolumeId,
    /// When the file was stored on that volume.
    pub stored: Timestamp,
    /// The fields of a later build that this one does not know.
    pub unknown: BTreeMap<String, Box<RawValue>>,
}

#[derive(Serialize, Deserialize)]
struct Document<'a> {
    format: &'a str,
    checksum: Root,
    #[serde(borrow)]
    body: &'a RawValue,
}

/// The reason why a sidecar cannot be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SidecarError {
    /// The text is cut, has flipped bits, or is not a sidecar at all.
    #[error("the sidecar is damaged: {0}")]
    Damaged(String),
    /// The sidecar is longer than any reader accepts.
    #[error("the sidecar would have {0} bytes; at most {MAX_SIDECAR} are read")]
    TooLong(usize),
    /// The sidecar has a format that this build does not read.
    #[error("the sidecar has the format {0}; this build reads {FORMAT}")]
    UnknownFormat(String),
}

impl Sidecar {
    /// Writes the sidecar as text.
    ///
    /// # Errors
    ///
    /// Returns [`SidecarError`] if the text could not be read again.
    pub fn to_json(&self) -> Result<Vec<u8>, SidecarError> {
        let mut fields = self.unknown.clone();
        fields.insert("admission".to_owned(), self.admission.clone());
        fields.insert("stored".to_owned(), to_raw_value(&self.stored)?);
        fields.insert("volume".to_owned(), to_raw_value(&self.volume)?);
        if let Some(outboard) = &self.outboard {
            fields.insert("outboard".to_owned(), to_raw_value(outboard)?);
        }
        let body = to_raw_value(&fields)?;
        let mut text = serde_json::to_vec(&Document {
            format: FORMAT,
            checksum: hash(&body),
            body: &body,
        })?;
        text.push(b'\n');
        if text.len() as u64 > MAX_SIDECAR {
            return Err(SidecarError::TooLong(text.len()));
        }
        Ok(text)
    }

    /// Reads a text that [`Sidecar::to_json`] wrote; any other byte is damage.
    ///
    /// # Errors
    ///
    /// Returns [`SidecarError`] if the text is damaged, or has a format that this build does not read.
    pub fn from_json(text: &[u8]) -> Result<Self, SidecarError> {
        let document: Document<'_> = serde_json::from_slice(text)?;
        if document.format != FORMAT {
            return Err(if document.format.starts_with("holdfast-sidecar/") {
                SidecarError::UnknownFormat(document.format.to_owned())
            } else {
                SidecarError::Damaged(format!("format {:?}", document.format))
            });
        }
        if hash(document.body) != document.checksum {
            return Err(SidecarError::Damaged(
                "its checksum does not match".to_owned(),
            ));
        }
        let mut fields: BTreeMap<String, Box<RawValue>> =
            serde_json::from_str(document.body.get())?;
        Ok(Self {
            admission: fields
                .remove("admission")
                .ok_or_else(|| SidecarError::Damaged("it has no admission".to_owned()))?,
            outboard: take(&mut fields, "outboard")?,
            volume: take(&mut fields, "volume")?,
            stored: take(&mut fields, "stored")?,
            unknown: fields,
        })
    }
}

fn hash(body: &RawValue) -> Root {
    Root::from_bytes(*blake3::hash(body.get().as_bytes()).as_bytes())
}

/// Takes a field out; an absent field reads as `null`.
fn take<T: DeserializeOwned>(
    fields: &mut BTreeMap<String, Box<RawValue>>,
    name: &str,
) -> Result<T, SidecarError> {
    let value = fields.remove(name);
    Ok(serde_json::from_str(
        value.as_deref().map_or("null", RawValue::get),
    )?)
}

impl From<serde_json::Error> for SidecarError {
    fn from(error: serde_json::Error) -> Self {
        Self::Damaged(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sidecar() -> Sidecar {
        Sidecar {
            admission: RawValue::from_string(r#"{ "payload" : "e30=" ,"n":1.0}"#.to_owned())
                .unwrap(),
            outboard: Some(OutboardRecord {
                size: 64,
                digest: Root::from_bytes([1; 32]),
            }),
            volume: VolumeId::new("v1").unwrap(),
            stored: Timestamp::UNIX_EPOCH,
            unknown: BTreeMap::from_iter([("colour".to_owned(), to_raw_value("blue").unwrap())]),
        }
    }

    /// Fails if a sidecar that is written anew has the signed admission in another format, or loses the fields of a
    /// later release.
    #[test]
    fn sidecar_is_read_back_with_its_unknown_fields() {
        let text = sidecar().to_json().unwrap();
        let read = Sidecar::from_json(&text).unwrap();
        assert_eq!(read.admission.get(), sidecar().admission.get(), "verbatim");
        assert_eq!(read.unknown["colour"].get(), "\"blue\"");
        assert_eq!(read.to_json().unwrap(), text);
    }

    /// Fails if a sidecar is written that is too long to be read, or the longest envelope does not fit into one.
    #[test]
    fn unreadable_sidecar_is_not_written() {
        let with = |length: usize| Sidecar {
            admission: to_raw_value(&"x".repeat(length)).unwrap(),
            ..sidecar()
        };
        let longest_envelope = archive_proof::envelope::MAX_LENGTH;
        let text = with(longest_envelope).to_json().unwrap();
        assert!(text.len() > longest_envelope);
        Sidecar::from_json(&text).unwrap();
        assert!(matches!(
            with(2 * longest_envelope).to_json(),
            Err(SidecarError::TooLong(_))
        ));
    }

    /// Fails if a flipped bit or a cut changes what a sidecar says, and the sidecar is read nevertheless.
    #[test]
    fn every_flip_and_every_cut_is_noticed() {
        let text = sidecar().to_json().unwrap();
        for at in 0..text.len() - 1 {
            assert!(Sidecar::from_json(&text[..at]).is_err(), "cut at {at}");
            for bit in 0..8 {
                let mut flipped = text.clone();
                flipped[at] ^= 1 << bit;
                let same =
                    Sidecar::from_json(&flipped).is_ok_and(|read| read.to_json().unwrap() == text);
                assert!(
                    same || Sidecar::from_json(&flipped).is_err(),
                    "flip of bit {bit} at {at} passed"
                );
            }
        }
    }

    /// Fails if a sidecar of a later format is called damaged instead of unknown.
    #[test]
    fn a_later_format_is_refused_by_name() {
        let text = r#"{"format":"holdfast-sidecar/2","checksum":"0000000000000000000000000000000000000000000000000000000000000000","body":{}}"#;
        assert_eq!(
            Sidecar::from_json(text.as_bytes()).unwrap_err(),
            SidecarError::UnknownFormat("holdfast-sidecar/2".to_owned())
        );
    }
}
