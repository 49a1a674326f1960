//! Settings: one TOML file → strict parse → overrides → typed.
//!
//! The order of precedence is: `--set KEY=VALUE` > environment `HOLDFAST__SECTION__KEY` > file > the type's own
//! defaults. An unknown key, a wrong type and a bad unit are refused with the place they stand at; nothing is
//! guessed. The text of an override is read as a TOML value if it can be, else as a string: `--set name=42` is
//! a number, `--set 'name="42"'` a string. An override replaces the whole value of its key, also when that is a
//! section. A number in a key picks an element of a list: `--set replica.0.site=Aarhus`.
//!
//! Owner of: the reading of the file and of the environment. Not promised: that a value makes sense (that a path
//! exists, that a port is free); the part that uses it checks that.
//!
//! Settings types should have `#[serde(deny_unknown_fields)]`: unknown keys are refused anyway, but only then does the
//! error name the key that was probably meant.

mod document;
mod form;
mod problems;
mod source;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

pub use archive_model::quantity::{ByteSize, InvalidQuantity, Period, ZeroSetting};
use serde::Serialize;
use serde::de::DeserializeOwned;

use document::{Document, Override};
pub use form::{InvalidSettings, Section, SettingsForm};
pub use source::read_environment;

/// The largest settings file that is read, in bytes.
pub const MAX_FILE: u64 = 1 << 20;

/// The prefix of environment variables that are settings.
pub const PREFIX: &str = "HOLDFAST__";

/// The sources of the settings of one process.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The TOML file; without it there are only defaults and overrides.
    pub file: Option<PathBuf>,
    /// Variables as [`read_environment`] returns them; others than `HOLDFAST__…` are skipped.
    pub environment: Vec<(String, String)>,
    /// Overrides `KEY=VALUE` as given to `--set`, KEY with dots; of several for one key the last counts.
    pub set: Vec<String>,
}

impl Sources {
    /// Makes sources of `KEY=VALUE` texts alone, as they are given to `--set`.
    pub fn from_set(set: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            set: set.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }
}

/// The place where a setting was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// No place: the setting is missing, and there is no file.
    Nowhere,
    /// A file, and the line in it, from 1, where that is known.
    File(PathBuf, Option<usize>),
    /// An environment variable.
    Environment(String),
    /// An argument of `--set`.
    Set(String),
}

/// The reason why there are no settings: correct the named place, and start again.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The file is missing, is a directory, or may not be read.
    #[error("{}: the settings file cannot be read; name another with --settings", .path.display())]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The reason of the system.
        source: io::Error,
    },
    /// The file is longer than [`MAX_FILE`].
    #[error("{}: longer than {MAX_FILE} bytes; this is not a settings file", .0.display())]
    TooLarge(PathBuf),
    /// A source has something wrong in it.
    #[error("{place}: {message}")]
    Invalid {
        /// The place of the problem.
        place: Place,
        /// The problem, with the key.
        message: String,
    },
}

/// Reads the settings from `sources`.
///
/// # Errors
///
/// [`SettingsError`] with the first problem, and its place.
pub fn load_settings<T: DeserializeOwned>(sources: &Sources) -> Result<T, SettingsError> {
    let (file, text) = file(sources)?;
    Document::new(file, &text, &overrides(sources)?)?.read_document()
}

/// Returns all problems of the settings in `sources`, by their lines; [`load_settings`] returns the first only.
///
/// # Errors
///
/// [`SettingsError`] if there is nothing to check: the file cannot be read, or an override cannot.
pub fn list_problems<T: DeserializeOwned>(
    form: &SettingsForm,
    sources: &Sources,
) -> Result<Vec<SettingsError>, SettingsError> {
    let (file, text) = file(sources)?;
    problems::list_problems::<T>(form, &file, &text, &overrides(sources)?)
}

/// Returns the lines of a settings file that are not TOML.
///
/// # Errors
///
/// [`SettingsError`] if the file cannot be read or is too large.
pub fn list_torn_lines(path: &Path) -> Result<Vec<SettingsError>, SettingsError> {
    let text = source::read_settings_file(path)?;
    let file = Place::File(path.to_owned(), None);
    Ok(problems::list_torn_lines(&file, &text))
}

/// Returns the sections and single keys at the top of a settings file, as far as it can be read.
///
/// # Errors
///
/// [`SettingsError`] if the file cannot be read or is too large.
pub fn list_top_names(path: &Path) -> Result<Vec<String>, SettingsError> {
    Ok(problems::list_top_names(&source::read_settings_file(path)?))
}

fn file(sources: &Sources) -> Result<(Place, String), SettingsError> {
    Ok(match &sources.file {
        Some(path) => (
            Place::File(path.clone(), None),
            source::read_settings_file(path)?,
        ),
        None => (Place::Nowhere, String::new()),
    })
}

fn overrides(sources: &Sources) -> Result<Vec<Override>, SettingsError> {
    let variables = sources
        .environment
        .iter()
        .filter(|(name, _)| name.starts_with(PREFIX));
    variables
        .map(|(name, value)| source::from_variable(name, value))
        .chain(
            sources
                .set
                .iter()
                .map(|argument| source::from_argument(argument)),
        )
        .collect()
}

/// Returns settings as the TOML text that [`load_settings`] reads back.
///
/// # Errors
///
/// [`PrintSettingsError`] if TOML cannot express a value.
pub fn print_settings<T: Serialize>(settings: &T) -> Result<String, PrintSettingsError> {
    Ok(toml::to_string_pretty(settings)?)
}

/// The error of a value that TOML cannot express, such as an integer above 2⁶³ − 1.
#[derive(Debug, thiserror::Error)]
#[error("the settings cannot be written as TOML")]
pub struct PrintSettingsError(#[from] toml::ser::Error);

impl Place {
    /// Returns the line in the file, where it is known.
    fn line(&self) -> Option<usize> {
        match self {
            Self::File(_, line) => *line,
            Self::Nowhere | Self::Environment(_) | Self::Set(_) => None,
        }
    }

    fn at_line(&self, line: Option<usize>) -> Self {
        match self {
            Self::File(path, _) => Self::File(path.clone(), line),
            Self::Nowhere | Self::Environment(_) | Self::Set(_) => self.clone(),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nowhere => f.write_str("settings"),
            Self::File(path, None) => write!(f, "{}", path.display()),
            Self::File(path, Some(line)) => write!(f, "{}:{line}", path.display()),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::Set(argument) => write!(f, "--set {argument}"),
        }
    }
}

#[cfg(test)]
mod tests;
