//! The names under which files may be archived.
//!
//! 1 to 240 bytes of UTF-8 in NFC; no separators, control, bidirectional-format or unassigned characters; no leading
//! dot, hyphen or space, no trailing dot or space. Wide enough for everything the field writes, narrow enough that a
//! name is the same name on every file system, in every terminal and in every manifest.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unicode_general_category::{GeneralCategory, get_general_category};
use unicode_normalization::is_nfc;

/// The longest name, in bytes of UTF-8: leaves room for `.json` and `.bao` in a 255-byte directory entry.
pub const MAX_LENGTH: usize = 240;

/// The name that every directory of files keeps for its manifest.
pub const MANIFEST_NAME: &str = "manifest-blake3.txt";

/// The name of an archive file: 1–240 bytes of UTF-8 in NFC, case-sensitive, safe as a path component.
///
/// ```
/// use archive_model::FileName;
///
/// let name = FileName::new("12-34-20260101-00001.warc.gz")?;
/// assert_eq!(name.as_str(), "12-34-20260101-00001.warc.gz");
/// assert!(FileName::new("crawls/12.warc.gz").is_err());
/// assert_eq!(FileName::new("A.warc")?.case_folded(), FileName::new("a.warc")?.case_folded());
/// # Ok::<(), archive_model::InvalidFileName>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FileName(Arc<str>);

/// The reason why a string is not a name for an archive file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidFileName {
    /// The name is empty.
    #[error("the name is empty")]
    Empty,
    /// The name has more than [`MAX_LENGTH`] bytes.
    #[error("the name is {0} bytes long; at most {MAX_LENGTH} are allowed")]
    TooLong(usize),
    /// The name is not in Unicode normalisation form C.
    #[error("the name is not in Unicode normal form NFC; rename the file to its composed form")]
    NotNfc,
    /// The name has a separator, control, bidirectional-format or unassigned character.
    #[error("the name contains {0:?}, which is not allowed in names")]
    Character(char),
    /// The name begins with `.`, `-` or a space.
    #[error("the name starts with {0:?}")]
    Start(char),
    /// The name ends with a space or dot.
    #[error("the name ends with {0:?}")]
    End(char),
    /// The name is one that the archive keeps for itself.
    #[error("the name `{MANIFEST_NAME}` is kept for the archive's own manifests")]
    Reserved,
}

impl FileName {
    /// Accepts `name` if it follows the rule of names.
    ///
    /// # Errors
    ///
    /// [`InvalidFileName`] with the first rule that the name breaks.
    pub fn new(name: &str) -> Result<Self, InvalidFileName> {
        check(name)?;
        Ok(Self(name.into()))
    }

    /// Returns the name as it is written on disk and on the wire.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name folded to lower case, to find names that differ only in case.
    pub fn case_folded(&self) -> String {
        self.0.to_lowercase()
    }
}

fn check(name: &str) -> Result<(), InvalidFileName> {
    let first = name.chars().next().ok_or(InvalidFileName::Empty)?;
    if name.len() > MAX_LENGTH {
        return Err(InvalidFileName::TooLong(name.len()));
    }
    if let Some(bad) = name.chars().find(|&c| is_forbidden(c)) {
        return Err(InvalidFileName::Character(bad));
    }
    // Nearly all names are ASCII, which is always in NFC; a listing checks each name several times.
    if !name.is_ascii() && !is_nfc(name) {
        return Err(InvalidFileName::NotNfc);
    }
    if matches!(first, '.' | '-' | ' ') {
        return Err(InvalidFileName::Start(first));
    }
    if let Some(last) = name.chars().next_back().filter(|c| matches!(c, '.' | ' ')) {
        return Err(InvalidFileName::End(last));
    }
    // No other character of NFC has one of these letters in lower case.
    if name.eq_ignore_ascii_case(MANIFEST_NAME) {
        return Err(InvalidFileName::Reserved);
    }
    Ok(())
}

/// Returns whether a name must not have this character: separators, controls, line separators, bidi and other format
/// characters, unassigned, private use.
fn is_forbidden(c: char) -> bool {
    if c.is_ascii() {
        return matches!(c, '/' | '\\') || c.is_ascii_control();
    }
    is_of_forbidden_category(c)
}

fn is_of_forbidden_category(c: char) -> bool {
    matches!(
        get_general_category(c),
        GeneralCategory::Control
            | GeneralCategory::Format
            | GeneralCategory::LineSeparator
            | GeneralCategory::ParagraphSeparator
            | GeneralCategory::PrivateUse
            | GeneralCategory::Surrogate
            | GeneralCategory::Unassigned
    )
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl FromStr for FileName {
    type Err = InvalidFileName;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::new(name)
    }
}

impl TryFrom<String> for FileName {
    type Error = InvalidFileName;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        Self::new(&name)
    }
}

impl From<FileName> for String {
    fn from(name: FileName) -> Self {
        name.0.as_ref().to_owned()
    }
}

impl AsRef<str> for FileName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a name is refused that harvesters give to their archive files.
    #[test]
    fn names_that_harvesters_give_are_accepted() {
        for name in [
            "1-metadata-1.warc.gz",
            "12-34-20260101120000123-00000-heritrix~host~8443.warc.gz",
            "a+b,c@d%e=(f).warc",
            "Måned og år 2026.warc.gz",
            "IAH-20080430204825-00000-blackbook.arc.gz",
            "x",
            &"n".repeat(240),
        ] {
            assert_eq!(FileName::new(name).map(String::from), Ok(name.to_owned()));
        }
    }

    /// Fails if a name passes that leaves its directory, is hidden, reads as an option, or has a second spelling in
    /// Unicode.
    #[test]
    fn each_part_of_the_rule_refuses() {
        use InvalidFileName as E;
        let long = "n".repeat(241);
        for (name, reason) in [
            ("", E::Empty),
            (long.as_str(), E::TooLong(241)),
            ("a/b", E::Character('/')),
            ("..", E::Start('.')),
            ("../x", E::Character('/')),
            ("a\\b", E::Character('\\')),
            ("a\0b", E::Character('\0')),
            ("a\nb", E::Character('\n')),
            ("a\u{202e}b", E::Character('\u{202e}')),
            ("a\u{2028}b", E::Character('\u{2028}')),
            ("a\u{378}b", E::Character('\u{378}')),
            ("a\u{e000}b", E::Character('\u{e000}')),
            ("u\u{308}ber.warc", E::NotNfc),
            (".hidden", E::Start('.')),
            ("-option", E::Start('-')),
            (" space", E::Start(' ')),
            ("dot.", E::End('.')),
            ("space ", E::End(' ')),
            ("manifest-blake3.txt", E::Reserved),
            ("Manifest-BLAKE3.txt", E::Reserved),
            ("manifest-bla\u{212a}e3.txt", E::NotNfc),
        ] {
            assert_eq!(FileName::new(name), Err(reason), "{name:?}");
        }
    }

    /// Fails if the short way for ASCII refuses another character than its category does, or the two separators pass.
    #[test]
    fn ascii_is_judged_as_its_categories() {
        for c in '\0'..='\u{7f}' {
            let expected = matches!(c, '/' | '\\') || is_of_forbidden_category(c);
            assert_eq!(is_forbidden(c), expected, "{c:?}");
        }
    }

    /// Fails if a name that arrives in JSON is not checked by the rule for file names.
    #[test]
    fn a_bad_name_in_json_is_refused() {
        assert!(serde_json::from_str::<FileName>("\"ok.warc\"").is_ok());
        assert!(serde_json::from_str::<FileName>("\"a/b\"").is_err());
    }
}
