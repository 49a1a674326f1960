//! The form of a settings file: its sections, the keys in them with their comments, and an example.

use documented::DocumentedFields;

use super::ZeroSetting;

/// The form of one kind of settings file.
#[derive(Clone, Copy, Debug)]
pub struct SettingsForm {
    /// The section that no other kind of file has.
    pub section: &'static str,
    /// The sections. The first is the top of the file.
    pub sections: &'static [Section],
    /// A file with every key that has no default, also of the sections that may be left out.
    pub example: &'static str,
}

/// A section with its keys, in the order in which they are declared.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// The names with dots between them; empty for the top of the file. That of a list of sections is the same.
    pub path: &'static str,
    /// The keys, those of sections within this one included.
    pub keys: &'static [&'static str],
    /// The comment of each key.
    pub comments: &'static [&'static str],
}

impl Section {
    /// Returns the section whose keys are the fields of `T`.
    pub const fn section_of<T: DocumentedFields>(path: &'static str) -> Self {
        Self {
            path,
            keys: T::FIELD_NAMES,
            comments: T::FIELD_DOCS,
        }
    }
}

impl SettingsForm {
    /// Returns the section at a path.
    pub fn find_section(&self, path: &str) -> Option<&'static Section> {
        self.sections.iter().find(|section| section.path == path)
    }
}

/// Settings that cannot work, alone or together: which, why, and what would.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidSettings(String);

impl InvalidSettings {
    /// Makes the error of this text, which names the setting and says what would work.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl From<ZeroSetting> for InvalidSettings {
    fn from(zero: ZeroSetting) -> Self {
        Self(zero.to_string())
    }
}
