//! Sets of imported captures, and the outcome of an import.

use std::fmt;
use std::str::FromStr;

use archive_rpc::InvalidMessage;
use serde::Serialize;

use crate::fields;
use crate::wire;

/// The longest name of a set, in bytes.
const LONGEST_NAME: usize = 64;

/// The most bad lines that an answer names.
pub const MOST_BAD_LINES: usize = 1000;

/// The name of a set.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct SetName(String);

/// The reason why a text is no name of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidSetName(String);

impl fmt::Display for InvalidSetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is not the name of a set; use 1 to {LONGEST_NAME} of a-z, 0-9, `.`, `_` and `-`, beginning with a letter \
             or digit",
            self.0
        )
    }
}

impl std::error::Error for InvalidSetName {}

impl SetName {
    /// Makes the name of a set.
    ///
    /// # Errors
    ///
    /// Fails when the text is empty, too long, or has other characters than small letters, digits, `.`, `_` and `-`.
    pub fn new(text: &str) -> Result<Self, InvalidSetName> {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let begins_well = text.bytes().next().is_some_and(is_plain);
        let is_name = begins_well
            && text.len() <= LONGEST_NAME
            && text
                .bytes()
                .all(|byte| is_plain(byte) || matches!(byte, b'.' | b'_' | b'-'));
        if is_name {
            return Ok(Self(text.to_owned()));
        }
        Err(InvalidSetName(text.chars().take(LONGEST_NAME).collect()))
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reads a field that holds the name of a set.
    ///
    /// # Errors
    ///
    /// Fails when the field is empty, or no such name.
    pub fn read_set(field: &'static str, text: &str) -> Result<Self, InvalidMessage> {
        fields::parse_field(field, text)
    }
}

impl fmt::Display for SetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for SetName {
    type Err = InvalidSetName;

    fn from_str(text: &str) -> Result<Self, InvalidSetName> {
        Self::new(text)
    }
}

/// The outcome of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ImportOutcome {
    /// The number of captures that were taken.
    pub captures: u64,
    /// The number of lines that were not taken.
    pub bad_lines: u64,
    /// The first lines that were not taken, at most [`MOST_BAD_LINES`].
    pub bad: Vec<ImportFault>,
    /// The number of captures that the set had before, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaced: Option<u64>,
}

/// A line that was not imported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImportFault {
    /// The name of the input.
    pub input: String,
    /// The number of the line, counted from 1.
    pub number: u64,
    /// The offset of the line in the file.
    pub offset: u64,
    /// The reason why the line was not imported.
    pub reason: String,
}

impl From<ImportOutcome> for wire::ImportResponse {
    fn from(imported: ImportOutcome) -> Self {
        let bad = imported.bad.into_iter().take(MOST_BAD_LINES);
        Self {
            captures: imported.captures,
            bad_lines: imported.bad_lines,
            bad: bad
                .map(|fault| wire::import_response::BadLine {
                    input: fault.input,
                    number: fault.number,
                    offset: fault.offset,
                    reason: fault.reason,
                })
                .collect(),
            replaced: imported.replaced,
        }
    }
}

impl TryFrom<wire::ImportResponse> for ImportOutcome {
    type Error = InvalidMessage;

    fn try_from(message: wire::ImportResponse) -> Result<Self, InvalidMessage> {
        if message.bad.len() > MOST_BAD_LINES {
            let reason = format!("has more than {MOST_BAD_LINES} lines");
            return Err(InvalidMessage::invalid_field("bad", reason));
        }
        Ok(Self {
            captures: message.captures,
            bad_lines: message.bad_lines,
            bad: message
                .bad
                .into_iter()
                .map(|fault| ImportFault {
                    input: fault.input,
                    number: fault.number,
                    offset: fault.offset,
                    reason: fault.reason,
                })
                .collect(),
            replaced: message.replaced,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a name could be taken for an option or a path, or a good one is refused.
    #[test]
    fn set_names_are_plain() {
        let longest = "a".repeat(LONGEST_NAME);
        for good in ["a", "0", "old-2019.v1_b", longest.as_str()] {
            assert_eq!(SetName::new(good).unwrap().as_str(), good);
        }
        let long = "a".repeat(LONGEST_NAME + 1);
        for bad in ["", "-a", ".a", "_a", "A", "a b", "a/b", "å", long.as_str()] {
            let error = SetName::new(bad).unwrap_err().to_string();
            assert!(error.contains("use 1 to 64"), "{error}");
        }
    }

    /// Fails if the outcome of an import is lost on the way, or an endless list of faults is believed.
    #[test]
    fn outcomes_of_imports_survive_the_wire() {
        let fault = ImportFault {
            input: "a.cdx".to_owned(),
            number: 7,
            offset: 70,
            reason: "why".to_owned(),
        };
        let imported = ImportOutcome {
            captures: 9,
            bad_lines: 1,
            bad: vec![fault; 2],
            replaced: Some(0),
        };
        let mut message = wire::ImportResponse::from(imported.clone());
        assert_eq!(ImportOutcome::try_from(message.clone()), Ok(imported));
        message.bad = vec![message.bad[0].clone(); MOST_BAD_LINES + 1];
        assert_eq!(ImportOutcome::try_from(message).unwrap_err().field, "bad");
    }
}
