//! The permissions of a file with a secret: a private key, or a password.
//!
//! Owns the rule, which is one for every part: only its owner may change the file, and nobody may read it but the owner
//! and one group. The group may, because operators share keys in that way, as Debian does with `ssl-cert`. Not
//! promised: that a copy of the file, or a backup, is closed as well.

use std::path::{Path, PathBuf};

/// The rights that a file with a secret may not give: its group may not write, and others may do nothing.
const REFUSED: u32 = 0o027;

/// The bits of a mode that are rights.
const RIGHTS: u32 = 0o777;

/// A file with a secret that too many accounts of its machine may use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "its mode is {mode:04o}: others on this machine can read or change the secret in it; run `chmod 600 {file}`, or \
     `chmod 640 {file}` if its group shall read it",
    file = .path.display()
)]
pub struct ExposedSecret {
    path: PathBuf,
    mode: u32,
}

/// Checks the mode of a file with a secret, as the system reports it of the opened file.
///
/// ```
/// use std::path::Path;
///
/// use archive_model::check_secret;
///
/// let key = Path::new("/etc/holdfast/node.key");
/// assert!(check_secret(key, 0o100_640).is_ok());
/// assert!(check_secret(key, 0o100_644).is_err());
/// ```
///
/// # Errors
///
/// [`ExposedSecret`] if others than the owner may change the file, or others than the owner and the group may use it.
pub fn check_secret(path: &Path, mode: u32) -> Result<(), ExposedSecret> {
    if mode & REFUSED == 0 {
        return Ok(());
    }
    Err(ExposedSecret {
        path: path.to_owned(),
        mode: mode & RIGHTS,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a secret is used that every account can read or that its group can change, if one is refused that a
    /// group may read, or if the operator does not learn the file, its mode and the remedy.
    #[test]
    fn secret_is_for_its_owner_and_group() {
        let path = Path::new("/etc/holdfast/node.key");
        for mode in [0o400, 0o600, 0o440, 0o640, 0o700] {
            assert_eq!(check_secret(path, 0o100_000 | mode), Ok(()), "{mode:o}");
        }
        for mode in [0o644, 0o604, 0o602, 0o601, 0o620, 0o660, 0o666] {
            let exposed = check_secret(path, 0o100_000 | mode).unwrap_err();
            let said = exposed.to_string();
            assert!(said.contains(&format!("{mode:04o}:")), "{said}");
            assert!(
                said.contains("`chmod 600 /etc/holdfast/node.key`"),
                "{said}"
            );
        }
    }
}
