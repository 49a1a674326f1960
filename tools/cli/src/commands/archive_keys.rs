//! The keys of an archive that begins: the key with which it signs, and the trust file by which nodes and clients
//! believe that key.
//!
//! Each is made once. One that is there stays as it is.

use std::path::Path;

use archive_daemon::Chance;
use archive_durable::{read_secret, read_state, replace_file, replace_secret};
use archive_proof::{SigningKey, TrustFile, TrustedKey};
use jiff::Timestamp;
use tools_terminal::exit::{Exit, Failure};

fn failed(error: &dyn std::error::Error) -> Failure {
    Failure::because_failed(error.to_string())
}

/// Returns the signing key, which is made if there is none.
pub(crate) fn keep_signing_key(path: &Path) -> Result<SigningKey, Failure> {
    let pem = read_secret(path).map_err(|error| failed(&error))?;
    if let Some(pem) = pem {
        let key = SigningKey::from_pem(&String::from_utf8_lossy(&pem));
        return key
            .map_err(|error| Failure::new(Exit::Settings, format!("{}: {error}", path.display())));
    }
    let seed = Chance::system_chance().random_bytes();
    let key = SigningKey::from_seed(seed.map_err(|error| failed(&error))?);
    let pem = key.to_pem().map_err(|error| failed(&error))?;
    replace_secret(path, pem.as_bytes()).map_err(|error| failed(&error))?;
    Ok(key)
}

/// Writes the trust file with the key of the archive, unless there is one.
pub(crate) fn keep_trust_file(path: &Path, archive: &str, key: &SigningKey) -> Result<(), Failure> {
    if read_state(path).map_err(|error| failed(&error))?.is_some() {
        return Ok(());
    }
    let trusted = TrustedKey {
        archive: archive.to_owned(),
        public_key: key.public_key(),
        from: Timestamp::UNIX_EPOCH,
        until: None,
    };
    let text = TrustFile::new(vec![trusted]).and_then(|trust| trust.to_json());
    let text = text.map_err(|error| failed(&error))?;
    replace_file(path, text.as_bytes()).map_err(|error| failed(&error))
}
