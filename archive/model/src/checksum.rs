//! Checksums of whole archive files.
//!
//! [`Root`] decides: it is the BLAKE3 hash of the file and at the same time the root of the tree that locates damage.
//! [`Digests`] carries the digests that the field's other tools compare (SHA-256, MD5); they are recorded, never
//! believed over the root.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The BLAKE3 root of an archive file: 32 bytes, written as 64 lower-case hex digits.
///
/// ```
/// use archive_model::Root;
///
/// let text = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";
/// let root: Root = text.parse()?;
/// assert_eq!(root.to_string(), text);
/// assert!("af13".parse::<Root>().is_err());
/// # Ok::<(), archive_model::InvalidChecksum>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Root([u8; 32]);

impl Root {
    /// Makes a root from its 32 bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the 32 bytes of the root.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Root({self})")
    }
}

impl FromStr for Root {
    type Err = InvalidChecksum;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        decode_hex(text).map(Self)
    }
}

impl TryFrom<&[u8]> for Root {
    type Error = InvalidChecksum;

    fn try_from(bytes: &[u8]) -> Result<Self, Self::Error> {
        bytes.try_into().map(Self).or(Err(InvalidChecksum::Length {
            expected: 32,
            found: bytes.len(),
        }))
    }
}

impl Serialize for Root {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            self.0.serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for Root {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            String::deserialize(deserializer)?
                .parse()
                .map_err(serde::de::Error::custom)
        } else {
            <[u8; 32]>::deserialize(deserializer).map(Self)
        }
    }
}

/// The digests that are recorded of a file beside its root.
///
/// ```
/// use archive_model::Digests;
///
/// let digests = Digests { md5: Some([0xab; 16]), ..Digests::default() };
/// let json = serde_json::to_string(&digests)?;
/// assert_eq!(json, r#"{"md5":"abababababababababababababababab"}"#);
/// assert_eq!(serde_json::from_str::<Digests>(&json)?, digests);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digests {
    /// SHA-256 of the whole file, computed by the repository at ingest.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "optional_hex"
    )]
    pub sha256: Option<[u8; 32]>,
    /// MD5 of the whole file, only where the depositor gave it or the settings ask for it.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "optional_hex"
    )]
    pub md5: Option<[u8; 16]>,
}

mod optional_hex {
    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(
        clippy::ref_option,
        reason = "the signature that serde's `with` asks for"
    )]
    pub(super) fn serialize<S: Serializer, const N: usize>(
        bytes: &Option<[u8; N]>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match bytes {
            Some(bytes) => serializer.serialize_str(&hex::encode(bytes)),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>, const N: usize>(
        deserializer: D,
    ) -> Result<Option<[u8; N]>, D::Error> {
        Option::<String>::deserialize(deserializer)?
            .map(|text| super::decode_hex(&text).map_err(serde::de::Error::custom))
            .transpose()
    }
}

fn decode_hex<const N: usize>(text: &str) -> Result<[u8; N], InvalidChecksum> {
    let mut bytes = [0; N];
    hex::decode_to_slice(text, &mut bytes).map_err(|error| match error {
        hex::FromHexError::InvalidHexCharacter { .. } => InvalidChecksum::NotHex,
        hex::FromHexError::OddLength | hex::FromHexError::InvalidStringLength => {
            InvalidChecksum::Length {
                expected: N,
                found: text.len() / 2,
            }
        }
    })?;
    Ok(bytes)
}

/// The reason why a text is not a checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidChecksum {
    /// The text has another length than checksums of the algorithm.
    #[error("a checksum of {expected} bytes was expected, {found} were given")]
    Length {
        /// The length of the checksum that was expected, in bytes.
        expected: usize,
        /// The length of the checksum that was given, in bytes.
        found: usize,
    },
    /// The text has a character that is no hex digit.
    #[error("a checksum is written in hexadecimal digits")]
    NotHex,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a root is not read as it was written, or a short text or one that is not hex passes for a root.
    #[test]
    fn a_root_reads_what_it_writes() {
        let root = Root::from_bytes([0xa5; 32]);
        assert_eq!(root.to_string().parse(), Ok(root));
        assert_eq!(
            serde_json::from_str::<Root>(&serde_json::to_string(&root).unwrap()).unwrap(),
            root
        );
        assert_eq!(
            "a5".parse::<Root>(),
            Err(InvalidChecksum::Length {
                expected: 32,
                found: 1
            })
        );
        assert_eq!(
            "zz".repeat(32).parse::<Root>(),
            Err(InvalidChecksum::NotHex)
        );
    }

    /// Fails if an unknown digest is written as null or zeros, or a short digest is accepted.
    #[test]
    fn digests_leave_out_what_is_not_known() {
        let digests = Digests {
            sha256: None,
            md5: Some([1; 16]),
        };
        let text = serde_json::to_string(&digests).unwrap();
        assert_eq!(text, r#"{"md5":"01010101010101010101010101010101"}"#);
        assert_eq!(serde_json::from_str::<Digests>(&text).unwrap(), digests);
        assert!(serde_json::from_str::<Digests>(r#"{"md5":"01"}"#).is_err());
    }
}
