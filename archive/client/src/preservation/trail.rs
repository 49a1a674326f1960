//! The audit trail, and the export of admin data.

use std::collections::VecDeque;

use archive_model::FileName;
use archive_rpc::{InvalidMessage, StepReader};
use bytes::Bytes;
use jiff::Timestamp;
use proto_archive::{convert, wire};
use serde::Serialize;

use crate::error::{ClientError, visible_text};
use crate::file_status::read_optional;

/// The lines of the audit trail to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditSelection {
    /// Only lines about this file.
    pub file: Option<FileName>,
    /// Only lines from this time on.
    pub since: Option<Timestamp>,
}

/// A line of the audit trail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HeldAuditLine {
    /// The number of the line: ascending, without holes in the whole trail.
    pub number: u64,
    /// When the act was done.
    pub at: Timestamp,
    /// The person or part that did the act, as `role/name`.
    pub who: String,
    /// The file that the act is about, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<FileName>,
    /// The act that was done.
    pub what: String,
    /// The SHA-256 of the line before in the log, in hex; absent while the line is not in the log yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous: Option<String>,
}

impl From<&AuditSelection> for wire::AuditRequest {
    fn from(selection: &AuditSelection) -> Self {
        let AuditSelection { file, since } = selection;
        Self {
            file: file.as_ref().map(ToString::to_string).unwrap_or_default(),
            since: since.as_ref().map(ToString::to_string).unwrap_or_default(),
        }
    }
}

impl TryFrom<wire::AuditLineState> for HeldAuditLine {
    type Error = InvalidMessage;

    fn try_from(message: wire::AuditLineState) -> Result<Self, InvalidMessage> {
        let hash = |text: &str| {
            let is_hash = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            if is_hash {
                Ok(text.to_owned())
            } else {
                Err(InvalidMessage::invalid_field(
                    "previous",
                    "is no SHA-256 in hex",
                ))
            }
        };
        Ok(Self {
            number: message.number,
            at: convert::read_time("at", &message.at)?,
            who: visible_text(&message.who),
            file: read_optional(&message.file, |text| convert::file_name("file", text))?,
            what: visible_text(&message.what),
            previous: read_optional(&message.previous, hash)?,
        })
    }
}

/// Reads lines of the trail: ascending, and without holes where all files are asked for.
pub(super) struct AuditLines {
    selection: AuditSelection,
    last: Option<u64>,
}

impl AuditLines {
    pub(super) fn new(selection: &AuditSelection) -> Self {
        Self {
            selection: selection.clone(),
            last: None,
        }
    }
}

impl StepReader for AuditLines {
    type Message = wire::AuditResponse;
    type Item = HeldAuditLine;
    type Error = ClientError;

    fn read(
        &mut self,
        message: wire::AuditResponse,
        out: &mut VecDeque<HeldAuditLine>,
    ) -> Result<(), ClientError> {
        for line in message.lines {
            let line = HeldAuditLine::try_from(line)?;
            let file = self.selection.file.as_ref();
            if file.is_some() && file != line.file.as_ref() {
                let number = line.number;
                return Err(ClientError::Untrusted(format!(
                    "line {number} of the audit trail is about another file than was asked for"
                )));
            }
            // A clock that was set back makes holes among the lines after a time.
            let whole = file.is_none() && self.selection.since.is_none();
            let follows = self.last.is_none_or(|last| {
                let next = last.checked_add(1) == Some(line.number);
                next || (!whole && last < line.number)
            });
            if !follows {
                let number = line.number;
                let last = self.last.unwrap_or_default();
                return Err(ClientError::Untrusted(format!(
                    "the audit trail has a hole: line {number} follows line {last}"
                )));
            }
            self.last = Some(line.number);
            out.push_back(line);
        }
        Ok(())
    }
}

/// Reads an export, which ends with the end of a line.
#[derive(Default)]
pub(super) struct Export {
    last: Option<u8>,
}

impl StepReader for Export {
    type Message = wire::ExportResponse;
    type Item = Bytes;
    type Error = ClientError;

    fn read(
        &mut self,
        message: wire::ExportResponse,
        out: &mut VecDeque<Bytes>,
    ) -> Result<(), ClientError> {
        self.last = message.lines.last().copied().or(self.last);
        out.push_back(message.lines);
        Ok(())
    }

    fn end(&mut self, _out: &mut VecDeque<Bytes>) -> Result<(), ClientError> {
        let what = match self.last {
            Some(b'\n') => return Ok(()),
            Some(_) => "ended within a line",
            None => "ended before its first line",
        };
        Err(ClientError::Unavailable(format!(
            "the export {what}; it is not complete"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archive_rpc::testing::read_steps;

    fn line(number: u64, file: &str) -> wire::AuditLineState {
        wire::AuditLineState {
            number,
            at: "2026-01-02T03:04:05Z".into(),
            who: "officer/anna".into(),
            file: file.into(),
            what: "did it".into(),
            previous: String::new(),
        }
    }

    async fn ends(file: Option<&str>, lines: Vec<wire::AuditLineState>) -> Result<(), String> {
        let selection = AuditSelection {
            file: file.map(|name| FileName::new(name).unwrap()),
            since: None,
        };
        let messages = vec![Ok(wire::AuditResponse { lines })];
        read_steps(AuditLines::new(&selection), messages).await.1
    }

    /// Fails if an audit trail that lacks a line, repeats one or has one of another file is accepted, or the numbers
    /// between the lines of one file count as missing.
    #[tokio::test]
    async fn a_trail_with_a_hole_is_no_trail() {
        for (file, lines, error) in [
            (None, vec![line(7, "a"), line(8, ""), line(9, "b")], None),
            (Some("a"), vec![line(7, "a"), line(12, "a")], None),
            (None, vec![line(7, "a"), line(9, "a")], Some("hole")),
            (None, vec![line(u64::MAX, "a"), line(0, "a")], Some("hole")),
            (Some("a"), vec![line(7, "a"), line(7, "a")], Some("hole")),
            (Some("a"), vec![line(7, "b")], Some("another file")),
            (Some("a"), vec![line(7, "")], Some("another file")),
        ] {
            match (ends(file, lines).await, error) {
                (Ok(()), None) => {}
                (Err(said), Some(reason)) => assert!(said.contains(reason), "{reason}: {said}"),
                (ended, expected) => panic!("{ended:?}, not {expected:?}"),
            }
        }
        let bad = wire::AuditLineState {
            previous: "abc".into(),
            ..line(1, "a")
        };
        assert!(
            ends(None, vec![bad])
                .await
                .unwrap_err()
                .contains("`previous`")
        );
    }

    /// Fails if an export that ends within a line or before its first one counts as complete, or a line that comes in
    /// two parts does not.
    #[tokio::test]
    async fn an_export_is_whole_lines() {
        for (parts, error) in [
            (vec!["{}\n{}\n", "{}\n"], None),
            (vec!["{}\n", "{"], Some("within a line")),
            (vec!["{", "}\n"], None),
            (vec![""], Some("not complete")),
            (vec![], Some("not complete")),
        ] {
            let messages = parts.iter().map(|lines| {
                let lines = Bytes::copy_from_slice(lines.as_bytes());
                Ok(wire::ExportResponse { lines })
            });
            let (_, end) = read_steps(Export::default(), messages.collect()).await;
            match error {
                None => assert_eq!(end, Ok(())),
                Some(reason) => assert!(end.unwrap_err().contains(reason)),
            }
        }
    }
}
