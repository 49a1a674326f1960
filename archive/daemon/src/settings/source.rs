//! The sources of settings: a file, the environment, the command line.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::document::Override;
use super::{MAX_FILE, PREFIX, Place, SettingsError};

/// Returns the variables of this process that are settings, sorted by name. The only place that reads the environment.
///
/// # Errors
///
/// [`SettingsError`] if a variable with the prefix of settings is not Unicode.
pub fn read_environment() -> Result<Vec<(String, String)>, SettingsError> {
    let mut variables = Vec::new();
    for (name, value) in std::env::vars_os() {
        if !name.as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
            continue;
        }
        let place = Place::Environment(name.to_string_lossy().into_owned());
        match (name.into_string(), value.into_string()) {
            (Ok(name), Ok(value)) => variables.push((name, value)),
            _ => {
                return Err(SettingsError::Invalid {
                    place,
                    message: "not UTF-8".to_owned(),
                });
            }
        }
    }
    variables.sort();
    Ok(variables)
}

pub(super) fn read_settings_file(path: &Path) -> Result<String, SettingsError> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_FILE + 1).read_to_end(&mut bytes))
        .map_err(|source| SettingsError::Read {
            path: path.to_owned(),
            source,
        })?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > MAX_FILE) {
        return Err(SettingsError::TooLarge(path.to_owned()));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = error
            .as_bytes()
            .iter()
            .take(error.utf8_error().valid_up_to());
        let line = 1 + good.filter(|byte| **byte == b'\n').count();
        SettingsError::Invalid {
            place: Place::File(path.to_owned(), Some(line)),
            message: "not UTF-8".to_owned(),
        }
    })
}

pub(super) fn from_variable(name: &str, value: &str) -> Result<Override, SettingsError> {
    let key = name.strip_prefix(PREFIX).unwrap_or_default();
    let place = Place::Environment(name.to_owned());
    if key.split("__").any(str::is_empty) || key.contains(|c: char| c.is_lowercase()) {
        let message = format!("write it as {PREFIX}SECTION__KEY, in capitals");
        return Err(SettingsError::Invalid { place, message });
    }
    let path = key.split("__").map(str::to_lowercase).collect();
    Ok(Override {
        place,
        path,
        text: value.to_owned(),
    })
}

pub(super) fn from_argument(argument: &str) -> Result<Override, SettingsError> {
    let place = Place::Set(argument.to_owned());
    match argument.split_once('=') {
        Some((key, value)) if !key.split('.').any(|piece| piece.trim().is_empty()) => {
            let path = key
                .split('.')
                .map(|piece| piece.trim().to_owned())
                .collect();
            Ok(Override {
                place,
                path,
                text: value.to_owned(),
            })
        }
        _ => Err(SettingsError::Invalid {
            place,
            message: "write it as SECTION.KEY=VALUE".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Write};

    use super::*;

    fn file(bytes: &[u8]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    /// Fails if settings are read from a file that is too large or not UTF-8, or the error does not name the line.
    #[test]
    fn a_file_that_is_none_is_refused() {
        let kind = |path: &Path| match read_settings_file(path).unwrap_err() {
            SettingsError::Read { source, .. } => source.kind(),
            error @ (SettingsError::TooLarge(_) | SettingsError::Invalid { .. }) => {
                panic!("{error}")
            }
        };
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(
            kind(&directory.path().join("none.toml")),
            ErrorKind::NotFound
        );
        assert_eq!(kind(directory.path()), ErrorKind::IsADirectory);
        let latin = file(b"name = 'a'\n# caf\xe9\n");
        let error = read_settings_file(latin.path()).unwrap_err().to_string();
        assert_eq!(error, format!("{}:2: not UTF-8", latin.path().display()));
        let mut just = file(&vec![b'#'; 1 << 20]);
        assert_eq!(read_settings_file(just.path()).unwrap().len(), 1 << 20);
        just.write_all(b"#").unwrap();
        assert!(matches!(
            read_settings_file(just.path()),
            Err(SettingsError::TooLarge(_))
        ));
    }

    /// Fails if a variable or an argument sets another key than the one that it spells, or an invalid spelling is
    /// accepted.
    #[test]
    fn names_become_paths() {
        let path =
            |parsed: Result<Override, SettingsError>| parsed.map(|found| found.path.join("/")).ok();
        let variable = |name: &str| path(from_variable(name, ""));
        let argument = |argument: &str| path(from_argument(argument));
        assert_eq!(
            variable("HOLDFAST__SCRUB__FULL_PASS").as_deref(),
            Some("scrub/full_pass")
        );
        assert_eq!(
            variable("HOLDFAST__REPLICA__0__ID").as_deref(),
            Some("replica/0/id")
        );
        for bad in [
            "HOLDFAST__",
            "HOLDFAST____A",
            "HOLDFAST__A__",
            "HOLDFAST__a",
        ] {
            assert_eq!(variable(bad), None, "{bad}");
        }
        assert_eq!(argument(" a . b = c=d").as_deref(), Some("a/b"));
        for bad in ["", "a", "=1", "a..b=1", ".=1"] {
            assert_eq!(argument(bad), None, "{bad}");
        }
    }
}
