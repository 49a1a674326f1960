//! One line after the other: number, content, and the hash of the line before.

use std::fmt;

use archive_model::FileName;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::rows::AuditLine;

/// The SHA-256 of a line, without its line feed.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineHash([u8; 32]);

impl LineHash {
    fn new(line: &[u8]) -> Self {
        Self(Sha256::digest(line).into())
    }

    /// Reads what [`fmt::Display`] wrote.
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        let is_plain = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        (is_plain && hex::decode_to_slice(text, &mut bytes).is_ok()).then_some(Self(bytes))
    }
}

impl fmt::Display for LineHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for LineHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LineHash({self})")
    }
}

/// The end of a chain: the number of the next line, and the hash that it must bear.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chain {
    next: u64,
    previous: LineHash,
}

/// A line as it stands in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrailLine {
    /// The number of the line.
    pub number: u64,
    /// The line itself.
    pub line: AuditLine,
    /// The hash of the line before it; none where it is not in the log yet.
    pub previous: Option<LineHash>,
}

/// The JSON of a line, which escapes control characters, so that a line of the trail is always one line of the file.
#[derive(Debug, Serialize, Deserialize)]
pub struct TrailLineJson {
    number: u64,
    at: Timestamp,
    who: String,
    file: Option<FileName>,
    what: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    previous: Option<String>,
}

impl TrailLineJson {
    /// Creates the written form of a line, without its place in the chain.
    pub fn new(number: u64, line: &AuditLine) -> Self {
        Self {
            number,
            at: line.at,
            who: line.who.clone(),
            file: line.file.clone(),
            what: line.what.clone(),
            previous: None,
        }
    }

    /// Returns everything of the line except its number, for comparisons.
    ///
    /// # Errors
    ///
    /// [`serde_json::Error`] if the line cannot be written as JSON.
    pub fn content(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(&(&self.at, &self.who, &self.file, &self.what))
    }

    /// Returns the number and the line.
    pub fn into_line(self) -> (u64, AuditLine) {
        let line = AuditLine {
            at: self.at,
            who: self.who,
            file: self.file,
            what: self.what,
        };
        (self.number, line)
    }
}

impl Chain {
    /// Returns the chain before the first line.
    pub const fn start_chain() -> Self {
        Self {
            next: 0,
            previous: LineHash([0; 32]),
        }
    }

    /// Returns the number of the next line.
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// Returns the hash of the line before the next one.
    pub const fn previous(&self) -> LineHash {
        self.previous
    }

    /// Writes a line, with its line feed, and advances the chain behind it. The number must be the next one.
    ///
    /// # Errors
    ///
    /// [`serde_json::Error`] if the number is not the next one, or the line cannot be written as JSON.
    pub fn chain_line(
        &mut self,
        number: u64,
        line: &AuditLine,
    ) -> Result<Vec<u8>, serde_json::Error> {
        if number != self.next {
            let why = format!("line {number} was to follow as line {}", self.next);
            return Err(serde::ser::Error::custom(why));
        }
        let next = following(number).map_err(serde::ser::Error::custom)?;
        let written = TrailLineJson {
            previous: Some(self.previous.to_string()),
            ..TrailLineJson::new(number, line)
        };
        let mut bytes = serde_json::to_vec(&written)?;
        self.previous = LineHash::new(&bytes);
        self.next = next;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Reads a line (without its line feed), which must be the next one, and advances the chain behind it.
    ///
    /// # Errors
    ///
    /// The reason why the line is not the next one of the chain, for people.
    pub fn accept_line(&mut self, bytes: &[u8]) -> Result<TrailLine, String> {
        let (entry, previous) = parse(bytes)?;
        if entry.number != self.next {
            return Err(format!(
                "line number {} stands where {} belongs",
                entry.number, self.next
            ));
        }
        if previous != self.previous {
            return Err("the line before it was changed: its hash is another".to_owned());
        }
        self.next = following(entry.number)?;
        self.previous = LineHash::new(bytes);
        Ok(entry)
    }

    /// Returns the chain that leads to a line, as the line itself says.
    pub(super) fn chain_before(bytes: &[u8]) -> Result<Self, String> {
        let (entry, previous) = parse(bytes)?;
        let next = entry.number;
        Ok(Self { next, previous })
    }
}

/// Returns the number of the line after `number`.
fn following(number: u64) -> Result<u64, &'static str> {
    number
        .checked_add(1)
        .ok_or("its number is the highest there is: no archive has written that many lines")
}

fn parse(bytes: &[u8]) -> Result<(TrailLine, LineHash), String> {
    let written: TrailLineJson = serde_json::from_slice(bytes)
        .map_err(|error| format!("it is no line of the log: {error}"))?;
    let previous = written.previous.as_deref().and_then(LineHash::parse);
    let previous = previous.ok_or("it bears no hash of the line before")?;
    let (number, line) = written.into_line();
    let entry = TrailLine {
        number,
        line,
        previous: Some(previous),
    };
    Ok((entry, previous))
}
