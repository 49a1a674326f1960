//! PEM text, read with errors that tell a person what is wrong with it.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use archive_model::check_secret;
use rustls::pki_types::pem::{Error, PemObject};

/// The largest PEM file that is read: none of ours is larger, so that the path of an archive file is noticed.
const LARGEST_FILE: u64 = 4 << 20;

/// Reads a file of PEM text.
pub(crate) fn read_pem(path: &Path) -> io::Result<String> {
    read_open(File::open(path)?)
}

/// Reads a file of PEM text with a private key. A file that others on this machine can use is refused.
pub(crate) fn read_secret(path: &Path) -> io::Result<String> {
    let file = File::open(path)?;
    check_secret(path, file.metadata()?.mode()).map_err(io::Error::other)?;
    read_open(file)
}

fn read_open(file: File) -> io::Result<String> {
    let mut text = String::new();
    file.take(LARGEST_FILE + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LARGEST_FILE {
        let kind = io::ErrorKind::FileTooLarge;
        return Err(io::Error::new(kind, "too large to be PEM"));
    }
    Ok(text)
}

/// Reads all sections of one kind, and at least one. Sections of other kinds are skipped.
pub(crate) fn pem_sections<T: PemObject>(text: &str) -> Result<Vec<T>, String> {
    let found = T::pem_slice_iter(text.as_bytes()).collect::<Result<Vec<T>, _>>();
    let found = found.map_err(|error| reason(&error))?;
    if found.is_empty() {
        Err(reason(&Error::NoItemsFound))
    } else {
        Ok(found)
    }
}

/// Reads the first section of one kind.
pub(crate) fn first_section<T: PemObject>(text: &str) -> Result<T, String> {
    T::from_pem_slice(text.as_bytes()).map_err(|error| reason(&error))
}

fn reason(error: &Error) -> String {
    if matches!(error, Error::MissingSectionEnd { .. }) {
        "it is cut: the END line is missing".to_owned()
    } else if matches!(error, Error::NoItemsFound) {
        "nothing of the kind is in it".to_owned()
    } else {
        error.to_string()
    }
}
