//! The trust file, read from the disk.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use archive_proof::TrustFile;

use super::ClientFileError;

/// The longest trust file that is read, in bytes.
const LONGEST: u64 = 1 << 20;

/// Reads the trust file at `path`, which need not be the one of a client file.
///
/// # Errors
///
/// Fails if the file cannot be read, or is not a trust file.
pub fn read_trust_file(path: &Path) -> Result<TrustFile, ClientFileError> {
    let mut bytes = Vec::new();
    let read = File::open(path)
        .and_then(|file| file.take(LONGEST + 1).read_to_end(&mut bytes))
        .and_then(|_| {
            if bytes.len() as u64 > LONGEST {
                Err(io::ErrorKind::FileTooLarge.into())
            } else {
                Ok(())
            }
        });
    read.map_err(|source| ClientFileError::ReadTrust {
        path: path.to_owned(),
        source,
    })?;
    TrustFile::parse(&bytes).map_err(|source| ClientFileError::Trust {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Fails if a huge file is read into memory as a trust file, or the error for a missing or invalid one lacks its
    /// path and the reason.
    #[test]
    fn a_trust_file_that_is_none_names_itself() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let check = |path: &Path, reason: &str| {
            let error = read_trust_file(path).unwrap_err().to_string();
            let named = error.contains(&path.display().to_string());
            assert!(named && error.contains(reason), "{reason}: {error}");
        };
        check(&path("missing.json"), "get it from");
        check(directory.path(), "cannot be read");
        File::create_new(path("none.json"))
            .unwrap()
            .write_all(b"hello")
            .unwrap();
        check(&path("none.json"), "cannot be read");
        File::create_new(path("huge.json"))
            .unwrap()
            .set_len(1 << 40)
            .unwrap();
        check(&path("huge.json"), "too large");
    }
}
