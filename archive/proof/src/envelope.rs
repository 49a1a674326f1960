//! DSSE envelopes: exact bytes, their type, and who signed them.
//!
//! Owns the outer JSON of everything the archive signs: `{"payload": base64, "payloadType": …, "signatures": [{"keyid",
//! "sig"}]}` (Dead Simple Signing Envelope 1.0), and the bytes that are signed: `DSSEv1 <length> <type> <length>
//! <payload>`. The text is kept as it was read, so an envelope is written back byte for byte.
//!
//! Not promised: anything about the payload. Only [`crate::TrustFile::verify_envelope`] hands it out.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::key::SigningKey;

/// The longest envelope that is read, in bytes. Ours are a few kilobytes.
pub const MAX_LENGTH: usize = 1024 * 1024;

/// The most signatures that are read.
const MAX_SIGNATURES: usize = 16;

/// A signed payload, not yet verified. In JSON it is a string: its verbatim text.
///
/// ```
/// use archive_proof::{Envelope, SigningKey};
///
/// let key = SigningKey::from_seed([7; 32]);
/// let signed = Envelope::sign("text/plain", b"hello", &key);
/// let read = Envelope::parse(signed.as_str().as_bytes())?;
/// assert_eq!(read.payload_type(), "text/plain");
/// assert_eq!(read.key_ids().collect::<Vec<_>>(), [key.key_id()]);
/// # Ok::<(), archive_proof::InvalidEnvelope>(())
/// ```
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Envelope {
    text: String,
    payload_type: String,
    payload: Vec<u8>,
    signatures: Vec<Signature>,
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Signature {
    pub(crate) key_id: String,
    pub(crate) bytes: Vec<u8>,
}

/// The JSON of an envelope, as it is written.
#[derive(Serialize, Deserialize)]
struct Wire {
    payload: String,
    #[serde(rename = "payloadType")]
    payload_type: String,
    signatures: Vec<WireSignature>,
}

#[derive(Serialize, Deserialize)]
struct WireSignature {
    keyid: String,
    sig: String,
}

impl Envelope {
    /// Signs the exact bytes of `payload`, which are of `payload_type` (a media type).
    pub fn sign(payload_type: &str, payload: &[u8], key: &SigningKey) -> Self {
        let signature = Signature {
            key_id: key.key_id(),
            bytes: key.sign(&signed_bytes(payload_type, payload)).to_vec(),
        };
        let wire = serde_json::json!({
            "payload": STANDARD.encode(payload),
            "payloadType": payload_type,
            "signatures": [{ "keyid": signature.key_id, "sig": STANDARD.encode(&signature.bytes) }],
        });
        Self {
            text: wire.to_string(),
            payload_type: payload_type.to_owned(),
            payload: payload.to_vec(),
            signatures: vec![signature],
        }
    }

    /// Reads an envelope. Unknown fields are tolerated, as DSSE asks; base64 must be canonical, with padding.
    ///
    /// # Errors
    ///
    /// [`InvalidEnvelope`] if the bytes are too long, or not a DSSE envelope.
    pub fn parse(bytes: &[u8]) -> Result<Self, InvalidEnvelope> {
        if bytes.len() > MAX_LENGTH {
            return Err(InvalidEnvelope::TooLong(bytes.len()));
        }
        let text = str::from_utf8(bytes)?;
        let wire: Wire = serde_json::from_str(text)?;
        if wire.signatures.len() > MAX_SIGNATURES {
            return Err(InvalidEnvelope::TooManySignatures(wire.signatures.len()));
        }
        let decode = |field, text: &str| {
            STANDARD
                .decode(text)
                .map_err(|source| InvalidEnvelope::Base64 { field, source })
        };
        let signature = |wire: WireSignature| {
            decode("sig", &wire.sig).map(|bytes| Signature {
                key_id: wire.keyid,
                bytes,
            })
        };
        Ok(Self {
            text: text.to_owned(),
            payload: decode("payload", &wire.payload)?,
            payload_type: wire.payload_type,
            signatures: wire
                .signatures
                .into_iter()
                .map(signature)
                .collect::<Result<_, _>>()?,
        })
    }

    /// Returns the text, byte for byte as it was read or first written, for a file.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the type that the payload claims to be; signed, but not yet verified.
    pub fn payload_type(&self) -> &str {
        &self.payload_type
    }

    /// Returns the ids of the keys that claim to have signed; the claim itself is not signed.
    pub fn key_ids(&self) -> impl Iterator<Item = &str> {
        self.signatures
            .iter()
            .map(|signature| signature.key_id.as_str())
    }

    pub(crate) fn signatures(&self) -> &[Signature] {
        &self.signatures
    }

    pub(crate) fn payload(&self) -> &[u8] {
        &self.payload
    }

    pub(crate) fn signed_bytes(&self) -> Vec<u8> {
        signed_bytes(&self.payload_type, &self.payload)
    }
}

/// Returns DSSE's pre-authentication encoding: no other type and payload give the same bytes.
fn signed_bytes(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let mut bytes = format!(
        "DSSEv1 {} {payload_type} {} ",
        payload_type.len(),
        payload.len()
    )
    .into_bytes();
    bytes.extend_from_slice(payload);
    bytes
}

impl fmt::Debug for Envelope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Envelope").field(&self.text).finish()
    }
}

impl TryFrom<String> for Envelope {
    type Error = InvalidEnvelope;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(text.as_bytes())
    }
}

impl From<Envelope> for String {
    fn from(envelope: Envelope) -> Self {
        envelope.text
    }
}

/// The reason why bytes are not an envelope.
#[derive(Debug, thiserror::Error)]
pub enum InvalidEnvelope {
    /// The bytes are more than an envelope may have.
    #[error("{0} bytes are too long for an envelope; at most {MAX_LENGTH} are read")]
    TooLong(usize),
    /// The bytes are not text.
    #[error("the envelope is not UTF-8 text: {0}")]
    Text(#[from] std::str::Utf8Error),
    /// The text is not the JSON of an envelope.
    #[error("the envelope is not DSSE: {0}")]
    Json(#[from] serde_json::Error),
    /// A field is base64 with other characters, padding or trailing bits than a writer makes.
    #[error("the envelope's `{field}` is not canonical base64: {source}")]
    Base64 {
        /// The name of the field: `payload` or `sig`.
        field: &'static str,
        /// The reason of the decoder.
        source: base64::DecodeError,
    },
    /// The envelope has more signatures than any signer has reason to make.
    #[error("the envelope has {0} signatures; at most {MAX_SIGNATURES} are read")]
    TooManySignatures(usize),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> SigningKey {
        SigningKey::from_seed([3; 32])
    }

    /// Fails if the signed bytes are not those of DSSE, so that no other tool can verify a signature.
    #[test]
    fn signed_bytes_follow_the_dsse_protocol() {
        // The example comes from the DSSE specification (secure-systems-lab/dsse, `protocol.md`).
        let expected = b"DSSEv1 29 http://example.com/HelloWorld 11 hello world";
        assert_eq!(
            signed_bytes("http://example.com/HelloWorld", b"hello world"),
            expected
        );
    }

    /// Fails if an envelope is formatted anew when it is read, although files keep it verbatim.
    #[test]
    fn an_envelope_is_written_back_byte_for_byte() {
        let envelope = Envelope::sign("text/plain", b"hello \xff", &key());
        let text = envelope.as_str();
        assert_eq!(Envelope::parse(text.as_bytes()).unwrap(), envelope);
        let odd = format!(
            " \n{}\n",
            text.replace(',', " ,\t")
                .replacen('{', "{\"extra\":[1,{}],", 1)
        );
        let read = Envelope::parse(odd.as_bytes()).unwrap();
        assert_eq!(read.as_str(), odd);
        assert_eq!(
            (read.payload(), read.payload_type()),
            (envelope.payload(), "text/plain")
        );
        let json = serde_json::to_string(&read).unwrap();
        assert_eq!(
            serde_json::from_str::<Envelope>(&json).unwrap().as_str(),
            odd
        );
    }

    /// Fails if an envelope is read from two spellings of one Base64 text, from a repeated field, or from bytes without
    /// a limit.
    #[test]
    fn malformed_envelope_is_refused() {
        let text = Envelope::sign("text/plain", b"hello", &key())
            .as_str()
            .to_owned();
        let sig = text
            .split("\"sig\":\"")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap();
        // 64 bytes end in `==` after a character whose last four bits are not used.
        let last = sig.as_bytes()[sig.len() - 3];
        let dirty = [
            &sig[..sig.len() - 3],
            std::str::from_utf8(&[last + 1]).unwrap(),
            "==",
        ]
        .concat();
        let cases = [
            text.replace(sig, &dirty),
            text.replace(sig, sig.trim_end_matches('=')),
            text.replace("aGVsbG8=", "aGVsbG9="),
            text.replace("aGVsbG8=", "aGVs\\nbG8="),
            text.replace("\"payload\":\"aGVsbG8=\"", "\"payload\":null"),
            text.replace("\"payload\":", "\"payloae\":"),
            text.replace("\"payload\":\"", "\"payload\":\"\",\"payload\":\""),
            text.replace("keyid", "keyie"),
            text.replace("text/plain", "text/\\x"),
            format!("{text}x"),
            "[".repeat(100_000),
            " ".repeat(MAX_LENGTH + 1),
            format!(
                r#"{{"payload":"","payloadType":"","signatures":[{}]}}"#,
                [r#"{"keyid":"","sig":""}"#; 17].join(",")
            ),
        ];
        for (index, bad) in cases.iter().enumerate() {
            assert!(
                Envelope::parse(bad.as_bytes()).is_err(),
                "case {index}: {bad:.300}"
            );
        }
        for length in 0..text.len() {
            assert!(
                Envelope::parse(&text.as_bytes()[..length]).is_err(),
                "cut at {length}"
            );
        }
        assert!(matches!(
            Envelope::parse(b"\"\xff\""),
            Err(InvalidEnvelope::Text(_))
        ));
    }
}
