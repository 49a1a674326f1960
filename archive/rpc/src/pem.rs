//! PEM text, read so that a person learns what is wrong with it.

use rustls::pki_types::pem::{Error, PemObject};

/// All sections of one kind, and at least one. Sections of other kinds are passed over.
pub(crate) fn sections<T: PemObject>(text: &str) -> Result<Vec<T>, String> {
    let found = T::pem_slice_iter(text.as_bytes()).collect::<Result<Vec<T>, _>>();
    let found = found.map_err(|error| reason(&error))?;
    if found.is_empty() {
        Err(reason(&Error::NoItemsFound))
    } else {
        Ok(found)
    }
}

/// The first section of one kind.
pub(crate) fn first<T: PemObject>(text: &str) -> Result<T, String> {
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
