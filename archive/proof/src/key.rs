//! Ed25519 keys: private ones that sign and public ones that verify.
//!
//! Owns the encodings: PKCS#8 and SPKI PEM, which `openssl` reads and writes, and the key id.
//!
//! Not promised: secrecy at rest. The caller who writes the PEM decides who may read it.

use std::fmt;

use ed25519_dalek::Signer as _;
use ed25519_dalek::ed25519::pkcs8::KeypairBytes;
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{
    DecodePrivateKey as _, DecodePublicKey as _, EncodePrivateKey as _, EncodePublicKey as _,
};

/// A private Ed25519 key. Its `Debug` form shows the key id only.
///
/// ```
/// use archive_proof::SigningKey;
///
/// let key = SigningKey::from_seed([7; 32]);
/// let read = SigningKey::from_pem(&key.to_pem()?)?;
/// assert_eq!(read.key_id(), key.public_key().key_id());
/// # Ok::<(), archive_proof::InvalidSigningKey>(())
/// ```
#[derive(Clone)]
pub struct SigningKey(ed25519_dalek::SigningKey);

impl SigningKey {
    /// Makes the key of a secret seed: 32 bytes from a generator fit for keys, which the caller provides.
    pub fn from_seed(seed: [u8; 32]) -> Self {
        Self(ed25519_dalek::SigningKey::from_bytes(&seed))
    }

    /// Reads PKCS#8 PEM (`-----BEGIN PRIVATE KEY-----`), as `openssl genpkey -algorithm ed25519` writes it.
    ///
    /// # Errors
    ///
    /// [`InvalidSigningKey`] if the text is not such a key; the error does not repeat the text.
    pub fn from_pem(pem: &str) -> Result<Self, InvalidSigningKey> {
        ed25519_dalek::SigningKey::from_pkcs8_pem(pem)
            .map(Self)
            .map_err(|error| InvalidSigningKey {
                kind: "a private Ed25519 key in PKCS#8 PEM",
                reason: error.to_string(),
            })
    }

    /// Writes PKCS#8 PEM, version 1 (without the public key), which every tool reads. The text is the secret.
    ///
    /// # Errors
    ///
    /// [`InvalidSigningKey`] if the key cannot be encoded.
    pub fn to_pem(&self) -> Result<String, InvalidSigningKey> {
        KeypairBytes {
            secret_key: self.0.to_bytes(),
            public_key: None,
        }
        .to_pkcs8_pem(LineEnding::LF)
        .map(|pem| pem.as_str().to_owned())
        .map_err(|error| InvalidSigningKey {
            kind: "an encodable private key",
            reason: error.to_string(),
        })
    }

    /// Returns the public half of the key.
    pub fn public_key(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    /// Returns the id of the public half.
    pub fn key_id(&self) -> String {
        self.public_key().key_id()
    }

    /// Returns the signature (64 bytes) over `message`.
    pub(crate) fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SigningKey").field(&self.key_id()).finish()
    }
}

/// A public Ed25519 key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(ed25519_dalek::VerifyingKey);

impl PublicKey {
    /// Reads SPKI PEM (`-----BEGIN PUBLIC KEY-----`), as `openssl pkey -pubout` writes it.
    ///
    /// A key of low order, under which almost anything verifies, is refused.
    ///
    /// # Errors
    ///
    /// [`InvalidSigningKey`] if the text is not such a key, or the key has low order.
    pub fn from_pem(pem: &str) -> Result<Self, InvalidSigningKey> {
        let invalid = |reason| InvalidSigningKey {
            kind: "a public Ed25519 key in PEM",
            reason,
        };
        let key = ed25519_dalek::VerifyingKey::from_public_key_pem(pem)
            .map_err(|error| invalid(error.to_string()))?;
        if key.is_weak() {
            Err(invalid("the key has low order".to_owned()))
        } else {
            Ok(Self(key))
        }
    }

    /// Writes SPKI PEM.
    ///
    /// # Errors
    ///
    /// [`InvalidSigningKey`] if the key cannot be encoded.
    pub fn to_pem(&self) -> Result<String, InvalidSigningKey> {
        self.0
            .to_public_key_pem(LineEnding::LF)
            .map_err(|error| InvalidSigningKey {
                kind: "an encodable public key",
                reason: error.to_string(),
            })
    }

    /// Returns the id: the first 16 bytes of the BLAKE3 hash of the 32 key bytes, as 32 lower-case hex digits.
    pub fn key_id(&self) -> String {
        let hash = blake3::hash(self.0.as_bytes());
        hash.to_hex().chars().take(32).collect()
    }

    /// Returns whether `signature` is this key's over `message`; strictly: one message and key have one signature.
    pub(crate) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        ed25519_dalek::Signature::from_slice(signature)
            .is_ok_and(|signature| self.0.verify_strict(message, &signature).is_ok())
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PublicKey").field(&self.key_id()).finish()
    }
}

/// The error of a text that is not a valid key. It never contains the key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not {kind}: {reason}")]
pub struct InvalidSigningKey {
    /// The kind of key that was expected.
    pub kind: &'static str,
    /// The reason why the text is not such a key.
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made once with `openssl genpkey -algorithm ed25519` and `openssl pkey -pubout`.
    const OPENSSL_PRIVATE: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIPLLV4MQKxkTKaVQOsHeERkGaUMt+aI7CtMAIEnAY9ir\n-----END PRIVATE KEY-----\n";
    const OPENSSL_PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA3mHD4w7NXLEZdA1kHLdEc1inxjAl1nOjsWBisKPczso=\n-----END PUBLIC KEY-----\n";

    /// Fails if a key is read or written in another form than that of `openssl`.
    #[test]
    fn openssl_key_is_read_and_written_alike() {
        let key = SigningKey::from_pem(OPENSSL_PRIVATE).unwrap();
        assert_eq!(key.to_pem().unwrap(), OPENSSL_PRIVATE);
        assert_eq!(key.public_key().to_pem().unwrap(), OPENSSL_PUBLIC);
        assert_eq!(
            PublicKey::from_pem(OPENSSL_PUBLIC).unwrap(),
            key.public_key()
        );
    }

    /// Fails if a signature is not that of Ed25519, or one that is short or of another message verifies.
    #[test]
    fn the_signature_is_that_of_rfc_8032() {
        // The vector is from RFC 8032, section 7.1, test 2.
        let mut seed = [0; 32];
        hex::decode_to_slice(
            "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
            &mut seed,
        )
        .unwrap();
        let signature = "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00";
        let key = SigningKey::from_seed(seed);
        assert_eq!(hex::encode(key.sign(&[0x72])), signature);
        let signature = hex::decode(signature).unwrap();
        assert!(key.public_key().verifies(&[0x72], &signature));
        assert!(!key.public_key().verifies(&[0x73], &signature));
        assert!(!key.public_key().verifies(&[0x72], &signature[..63]));
    }

    /// Fails if two keys share an id, or the debug output of a signing key shows its secret.
    #[test]
    fn ids_name_keys_and_nothing_shows_the_secret() {
        let one = SigningKey::from_seed([1; 32]);
        let two = SigningKey::from_seed([2; 32]);
        assert_ne!(one.key_id(), two.key_id());
        assert_eq!(
            one.key_id(),
            hex::encode(&blake3::hash(one.public_key().0.as_bytes()).as_bytes()[..16])
        );
        assert_eq!(
            format!("{one:?}"),
            format!("SigningKey({:?})", one.key_id())
        );
    }

    /// Fails if a damaged or public key is accepted as a private one, or the error shows a part of the secret.
    #[test]
    fn invalid_key_is_refused_without_being_shown() {
        let secret = SigningKey::from_seed([1; 32]).to_pem().unwrap();
        for bad in [
            "",
            "nonsense",
            OPENSSL_PUBLIC,
            &secret[..80],
            &secret.replacen("MC4CAQ", "MC4CAA", 1),
        ] {
            let error = SigningKey::from_pem(bad).unwrap_err().to_string();
            assert!(
                error.contains("private Ed25519 key") && !error.contains("AQEBAQ"),
                "{error}"
            );
        }
        assert!(PublicKey::from_pem(&secret).is_err());
    }

    /// Fails if a public key of low order is accepted, under which signatures verify that no private key has made.
    #[test]
    fn a_key_of_low_order_is_refused() {
        // The key is the neutral element, y = 1: every signature of a certain form verifies under it.
        let mut point = [0; 32];
        point[0] = 1;
        let weak = PublicKey(ed25519_dalek::VerifyingKey::from_bytes(&point).unwrap())
            .to_pem()
            .unwrap();
        assert!(
            PublicKey::from_pem(&weak)
                .unwrap_err()
                .reason
                .contains("low order")
        );
    }
}
