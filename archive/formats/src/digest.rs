//! Labelled digests, `algorithm:value`, as `WARC-Payload-Digest` and CDX have them.
//!
//! Owns how digests are read, compared and computed. A [`Digest`] keeps the exact spelling and is compared by its
//! value: Base32 in either case, hex and Base64 of the same bytes are equal. An algorithm that this build does not know
//! is kept and cannot be checked. Does not say whether an algorithm is strong enough for anything.

use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;

use base64::Engine as _;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use data_encoding::{BASE32, BASE32_NOPAD, HEXLOWER, HEXLOWER_PERMISSIVE};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest as _, Sha256, Sha512};
use thiserror::Error;

/// The reason why a text is not a labelled digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InvalidDigest {
    /// The text has no colon between algorithm and value, or nothing before it.
    #[error("no algorithm; a digest is written algorithm:value")]
    NoAlgorithm,
    /// The text has nothing after the colon.
    #[error("no value after the algorithm")]
    NoValue,
    /// The value is neither hex, Base32 nor Base64 of as many bytes as the algorithm has.
    #[error("the value is not the hex, Base32 or Base64 of a {} digest ({} bytes)", .0.label(), .0.byte_length())]
    Value(Algorithm),
}

/// The algorithms that can be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// SHA-1: 20 bytes; in the field written as Base32.
    Sha1,
    /// SHA-256: 32 bytes.
    Sha256,
    /// SHA-512: 64 bytes.
    Sha512,
    /// MD5: 16 bytes.
    Md5,
    /// BLAKE3: 32 bytes.
    Blake3,
}

impl Algorithm {
    /// All algorithms.
    pub const ALL: [Self; 5] = [
        Self::Sha1,
        Self::Sha256,
        Self::Sha512,
        Self::Md5,
        Self::Blake3,
    ];

    /// Returns the label that this build writes.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
            Self::Md5 => "md5",
            Self::Blake3 => "blake3",
        }
    }

    /// Returns the number of bytes of a digest.
    pub const fn byte_length(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 | Self::Blake3 => 32,
            Self::Sha512 => 64,
            Self::Md5 => 16,
        }
    }

    /// Returns the algorithm of a label in any case, with or without hyphens or underscores: `sha1`, `SHA-1`,
    /// `Sha_256`.
    pub fn from_label(label: &str) -> Option<Self> {
        let plain = label.trim().bytes().filter(|b| !matches!(b, b'-' | b'_'));
        let mut name = [0_u8; 8];
        let mut length = 0;
        for byte in plain {
            *name.get_mut(length)? = byte.to_ascii_lowercase();
            length += 1;
        }
        let name = name.get(..length)?;
        Self::ALL.into_iter().find(|a| a.label().as_bytes() == name)
    }
}

/// A labelled digest: the exact text, and its value if the algorithm is known.
///
/// ```
/// use archive_formats::digest::{Algorithm, Digest};
///
/// let base32: Digest = "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ".parse()?;
/// let hex: Digest = "SHA-1:da39a3ee5e6b4b0d3255bfef95601890afd80709".parse()?;
/// assert_eq!(base32, hex);
/// assert_eq!(hex.algorithm(), Some(Algorithm::Sha1));
/// assert_eq!(hex.as_str(), "SHA-1:da39a3ee5e6b4b0d3255bfef95601890afd80709");
/// # Ok::<(), archive_formats::digest::InvalidDigest>(())
/// ```
#[derive(Clone, Debug)]
pub struct Digest {
    text: Box<str>,
    value: Option<DigestValue>,
}

/// The value of a digest: an algorithm, and the bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DigestValue {
    algorithm: Algorithm,
    bytes: Box<[u8]>,
}

impl Digest {
    /// Reads a digest without a label, as CDX files have them: an unlabelled digest is SHA-1 there.
    ///
    /// # Errors
    ///
    /// Fails if the text is not a value of this algorithm.
    pub fn parse_unlabelled(text: &str, algorithm: Algorithm) -> Result<Self, InvalidDigest> {
        let bytes = decode(algorithm, text).ok_or(InvalidDigest::Value(algorithm))?;
        Ok(Self {
            text: text.into(),
            value: Some(DigestValue { algorithm, bytes }),
        })
    }

    /// Returns the text as it was read.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the part before the colon, as it was read; empty for a digest without a label.
    pub fn label(&self) -> &str {
        self.text.split_once(':').map_or("", |(label, _)| label)
    }

    /// Returns the value; `None` if the algorithm is unknown, and the digest therefore cannot be checked.
    pub fn value(&self) -> Option<&DigestValue> {
        self.value.as_ref()
    }

    /// Returns the algorithm, if it is known.
    pub fn algorithm(&self) -> Option<Algorithm> {
        self.value.as_ref().map(DigestValue::algorithm)
    }
}

impl FromStr for Digest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        let (label, value) = text.split_once(':').ok_or(InvalidDigest::NoAlgorithm)?;
        let label = label.trim();
        let value = value.trim();
        if label.is_empty() {
            return Err(InvalidDigest::NoAlgorithm);
        }
        if value.is_empty() {
            return Err(InvalidDigest::NoValue);
        }
        let value = match Algorithm::from_label(label) {
            None => None,
            Some(algorithm) => Some(DigestValue {
                algorithm,
                bytes: decode(algorithm, value).ok_or(InvalidDigest::Value(algorithm))?,
            }),
        };
        Ok(Self {
            text: text.into(),
            value,
        })
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Compares digests by value; digests of unknown algorithms are equal if their texts are.
impl PartialEq for Digest {
    fn eq(&self, other: &Self) -> bool {
        match (&self.value, &other.value) {
            (Some(a), Some(b)) => a == b,
            (None, None) => self.text == other.text,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }
}

impl Eq for Digest {}

impl From<DigestValue> for Digest {
    fn from(value: DigestValue) -> Self {
        Self {
            text: value.to_string().into(),
            value: Some(value),
        }
    }
}

impl DigestValue {
    /// Makes a digest from its bytes; `None` if they are not as many as the algorithm has.
    pub fn new(algorithm: Algorithm, bytes: &[u8]) -> Option<Self> {
        (bytes.len() == algorithm.byte_length()).then(|| Self {
            algorithm,
            bytes: bytes.into(),
        })
    }

    /// Returns the algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Returns the bytes of the digest.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the digest without label: Base32 in capitals for SHA-1, small hex for all others.
    pub fn unlabelled_text(&self) -> String {
        match self.algorithm {
            Algorithm::Sha1 => BASE32.encode(&self.bytes),
            Algorithm::Sha256 | Algorithm::Sha512 | Algorithm::Md5 | Algorithm::Blake3 => {
                self.hex_text()
            }
        }
    }

    /// Returns the digest in small hex digits.
    pub fn hex_text(&self) -> String {
        HEXLOWER.encode(&self.bytes)
    }
}

/// Writes the field's usual spelling: `sha1:` with Base32 in capitals, all others in small hex.
impl fmt::Display for DigestValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.algorithm.label(), self.unlabelled_text())
    }
}

impl fmt::Debug for DigestValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Value({self})")
    }
}

/// Decodes hex, Base32 or Base64 (either alphabet), padded or not: the one that gives as many bytes as the algorithm
/// has.
///
/// The lengths of the three differ for each algorithm here, so that no text can be read in two ways. Hex digits of
/// another length are a hex digest that was cut, not another spelling: no digest consists of hex digits by chance.
fn decode(algorithm: Algorithm, text: &str) -> Option<Box<[u8]>> {
    let bytes = algorithm.byte_length();
    let bare = text.trim_end_matches('=').as_bytes();
    let decoded = if bare.len() == bytes * 2 {
        HEXLOWER_PERMISSIVE.decode(bare).ok()
    } else if bare.iter().all(u8::is_ascii_hexdigit) {
        None
    } else if bare.len() == (bytes * 8).div_ceil(5) {
        BASE32_NOPAD.decode(&bare.to_ascii_uppercase()).ok()
    } else if bare.len() == (bytes * 4).div_ceil(3) {
        let config =
            GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::RequireNone);
        let alphabet = if bare.iter().any(|b| matches!(b, b'-' | b'_')) {
            &URL_SAFE
        } else {
            &STANDARD
        };
        GeneralPurpose::new(alphabet, config).decode(bare).ok()
    } else {
        None
    };
    decoded
        .filter(|d| d.len() == bytes)
        .map(Vec::into_boxed_slice)
}

/// Computes digests while bytes stream through.
#[derive(Clone, Default)]
pub struct Hashers {
    sha1: Option<Sha1>,
    sha256: Option<Sha256>,
    sha512: Option<Sha512>,
    md5: Option<Md5>,
    blake3: Option<Box<blake3::Hasher>>,
    length: u64,
}

impl Hashers {
    /// Makes hashers for these algorithms; naming one twice changes nothing.
    pub fn new(algorithms: impl IntoIterator<Item = Algorithm>) -> Self {
        let mut hashers = Self::default();
        for algorithm in algorithms {
            match algorithm {
                Algorithm::Sha1 => hashers.sha1 = Some(Sha1::new()),
                Algorithm::Sha256 => hashers.sha256 = Some(Sha256::new()),
                Algorithm::Sha512 => hashers.sha512 = Some(Sha512::new()),
                Algorithm::Md5 => hashers.md5 = Some(Md5::new()),
                Algorithm::Blake3 => hashers.blake3 = Some(Box::new(blake3::Hasher::new())),
            }
        }
        hashers
    }

    /// Hashes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.length = self.length.saturating_add(bytes.len() as u64);
        if let Some(h) = &mut self.sha1 {
            h.update(bytes);
        }
        if let Some(h) = &mut self.sha256 {
            h.update(bytes);
        }
        if let Some(h) = &mut self.sha512 {
            h.update(bytes);
        }
        if let Some(h) = &mut self.md5 {
            h.update(bytes);
        }
        if let Some(h) = &mut self.blake3 {
            h.update(bytes);
        }
    }

    /// Returns the number of bytes that were hashed.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Returns the digests, in the order of [`Algorithm::ALL`].
    pub fn finish(self) -> Vec<DigestValue> {
        let value = |algorithm, bytes: &[u8]| DigestValue {
            algorithm,
            bytes: bytes.into(),
        };
        let mut values = Vec::new();
        values.extend(self.sha1.map(|h| value(Algorithm::Sha1, &h.finalize())));
        values.extend(self.sha256.map(|h| value(Algorithm::Sha256, &h.finalize())));
        values.extend(self.sha512.map(|h| value(Algorithm::Sha512, &h.finalize())));
        values.extend(self.md5.map(|h| value(Algorithm::Md5, &h.finalize())));
        values.extend(
            self.blake3
                .map(|h| value(Algorithm::Blake3, h.finalize().as_bytes())),
        );
        values
    }
}

impl Write for Hashers {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for Hashers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hashers")
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

/// Returns the digest of `bytes`.
pub fn digest_bytes(algorithm: Algorithm, bytes: &[u8]) -> DigestValue {
    let bytes: Box<[u8]> = match algorithm {
        Algorithm::Sha1 => Sha1::digest(bytes).as_slice().into(),
        Algorithm::Sha256 => Sha256::digest(bytes).as_slice().into(),
        Algorithm::Sha512 => Sha512::digest(bytes).as_slice().into(),
        Algorithm::Md5 => Md5::digest(bytes).as_slice().into(),
        Algorithm::Blake3 => blake3::hash(bytes).as_bytes().as_slice().into(),
    };
    DigestValue { algorithm, bytes }
}

#[cfg(test)]
mod tests;
