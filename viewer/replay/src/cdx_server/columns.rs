//! The columns of an answer: fields of captures, and what is computed beside them.

use std::borrow::Cow;

use archive_formats::cdx::Capture;
use archive_formats::cdx::query::{CaptureField, CollapsedRun};

use super::{CdxRequestError, Dialect, Extra, Extras};

/// The name of the column that counts captures with one digest. Such a capture has it as an extra field.
pub(super) const DUPE_COUNT: &str = "dupecount";

/// A column of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerColumn {
    /// The name of the column, as the client spelled it.
    pub name: String,
    /// The source of the values of the column.
    pub value: ColumnValue,
}

/// The source of the values of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnValue {
    /// A field of the capture.
    Field(CaptureField),
    /// The number of captures that were left out for this one.
    SkipCount,
    /// The time of the last capture that was left out for this one.
    EndTimestamp,
    /// The bytes of the record in its file, as an HTTP range.
    ByteRange,
}

/// The columns of an answer without `fl`.
const WAYBACK: [&str; 7] = [
    "urlkey",
    "timestamp",
    "original",
    "mimetype",
    "statuscode",
    "digest",
    "length",
];
const OUTBACK: [&str; 11] = [
    "urlkey",
    "timestamp",
    "original",
    "mimetype",
    "statuscode",
    "digest",
    "redirecturl",
    "robotflags",
    "length",
    "offset",
    "filename",
];
const PYWB_TEXT: [&str; 9] = [
    "urlkey",
    "timestamp",
    "url",
    "mime",
    "status",
    "digest",
    "length",
    "offset",
    "filename",
];

/// The columns of a revisit whose original is known.
const ORIGINAL: [&str; 3] = ["orig.length", "orig.offset", "orig.filename"];

impl AnswerColumn {
    fn of_name(dialect: Dialect, name: &str) -> Option<Self> {
        let field = CaptureField::of_name(name).map(ColumnValue::Field);
        let value = field.or_else(|| match (dialect, name) {
            (Dialect::OutbackCdx, "range") => Some(ColumnValue::ByteRange),
            // Lines of CDXJ may have any field.
            (Dialect::Pywb, _) => Some(ColumnValue::Field(CaptureField::Extra(name.to_owned()))),
            (Dialect::Wayback | Dialect::OutbackCdx, "method" | "requestBody" | "recordDigest") => {
                Some(ColumnValue::Field(CaptureField::Extra(name.to_owned())))
            }
            (Dialect::Wayback | Dialect::OutbackCdx, _) => None,
        })?;
        Some(Self {
            name: name.to_owned(),
            value,
        })
    }

    fn known(names: &[&str]) -> Vec<Self> {
        let columns = names.iter();
        columns
            .filter_map(|name| Self::of_name(Dialect::Wayback, name))
            .collect()
    }

    fn computed(name: &str, value: ColumnValue) -> Self {
        Self {
            name: name.to_owned(),
            value,
        }
    }

    /// Returns the value for a row, if it has one.
    pub(super) fn value<'a>(&self, run: &'a CollapsedRun, to_second: bool) -> Option<Cow<'a, str>> {
        let value = match &self.value {
            ColumnValue::Field(CaptureField::Timestamp) => {
                let mut text = run.capture.timestamp.to_string();
                if to_second {
                    text.truncate(14);
                }
                Some(Cow::Owned(text))
            }
            ColumnValue::Field(field) => field.value(&run.capture),
            ColumnValue::SkipCount => Some(Cow::Owned(run.skipped.to_string())),
            ColumnValue::EndTimestamp => {
                let mut text = run.last_skipped?.to_string();
                text.truncate(14);
                Some(Cow::Owned(text))
            }
            ColumnValue::ByteRange => Some(Cow::Owned(byte_range(&run.capture)?)),
        };
        value.filter(|value| !value.is_empty())
    }
}

fn byte_range(capture: &Capture) -> Option<String> {
    let start = capture.offset?;
    let last = capture
        .length
        .and_then(|length| start.checked_add(length)?.checked_sub(1));
    Some(match last {
        Some(last) => format!("bytes={start}-{last}"),
        None => format!("bytes={start}-"),
    })
}

/// The columns of an answer, by the names that a client gave; `None` means each capture's own fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct ColumnChoice<'a> {
    pub(super) dialect: Dialect,
    pub(super) parameter: &'static str,
    pub(super) names: Option<&'a str>,
    pub(super) own_fields: bool,
    pub(super) extras: Extras,
}

impl ColumnChoice<'_> {
    pub(super) fn chosen_columns(self) -> Result<Option<Vec<AnswerColumn>>, CdxRequestError> {
        let mut columns = match (self.names, self.dialect) {
            (Some(names), dialect) => {
                let names = names.split(',').map(str::trim).filter(|n| !n.is_empty());
                let columns = names.map(|name| {
                    AnswerColumn::of_name(dialect, name)
                        .ok_or_else(|| CdxRequestError::wrong_field(self.parameter, name))
                });
                columns.collect::<Result<Vec<_>, _>>()?
            }
            (None, Dialect::Pywb) if self.own_fields => return Ok(None),
            (None, Dialect::Pywb) => AnswerColumn::known(&PYWB_TEXT),
            (None, Dialect::Wayback) => AnswerColumn::known(&WAYBACK),
            (None, Dialect::OutbackCdx) => AnswerColumn::known(&OUTBACK),
        };
        if self.extras.contains(Extra::ResolveRevisits) && self.names.is_none() {
            columns.extend(AnswerColumn::known(&ORIGINAL));
        }
        if self.extras.contains(Extra::DupeCount) {
            let field = CaptureField::Extra(DUPE_COUNT.to_owned());
            columns.push(AnswerColumn::computed(
                DUPE_COUNT,
                ColumnValue::Field(field),
            ));
        }
        if self.extras.contains(Extra::SkipCount) {
            columns.push(AnswerColumn::computed("skipcount", ColumnValue::SkipCount));
        }
        if self.extras.contains(Extra::LastSkipTimestamp) {
            columns.push(AnswerColumn::computed(
                "endtimestamp",
                ColumnValue::EndTimestamp,
            ));
        }
        Ok(Some(columns))
    }
}
