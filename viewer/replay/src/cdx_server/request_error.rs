//! Refusals of a request to a CDX server, in the words of each dialect.

use archive_formats::cdx::query::{InvalidCursor, InvalidExpression, InvalidQuery, NoHost};
use archive_formats::date::InvalidDate;
use thiserror::Error;

use super::Dialect;

/// The most characters of a refused value that a message repeats.
const SHOWN: usize = 80;

/// The reason why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CdxRequestError {
    /// The parameter without which there is no question.
    #[error("the parameter `{0}` is missing")]
    Missing(&'static str),
    /// Two parameters that exclude each other.
    #[error("give either `{0}` or `{1}`, not both")]
    Both(&'static str, &'static str),
    /// A longer request than [`MAX_REQUEST`](super::MAX_REQUEST).
    #[error("the request has {0} bytes; at most {max} are read", max = super::MAX_REQUEST)]
    TooLong(usize),
    /// More parameters than [`MAX_PARAMETERS`](super::MAX_PARAMETERS).
    #[error("the request has more than {max} parameters", max = super::MAX_PARAMETERS)]
    TooManyParameters,
    /// Bytes where text is wanted.
    #[error("the parameter `{0}` is not UTF-8")]
    NotText(&'static str),
    /// A value that the parameter cannot have.
    #[error("`{parameter}` is {value:?}; it must be {wanted}")]
    Value {
        /// The name of the parameter.
        parameter: &'static str,
        /// The value of the parameter, cut to what a message can show.
        value: String,
        /// The values that the parameter can have.
        wanted: &'static str,
    },
    /// A timestamp of no day or time.
    #[error("`{parameter}` is not a timestamp of 1 to 14 digits: {why}")]
    Date {
        /// The name of the parameter.
        parameter: &'static str,
        /// The reason why the value is no date.
        why: InvalidDate,
    },
    /// A field that captures do not have.
    #[error("`{parameter}` names the field {name:?}, which captures do not have")]
    Field {
        /// The name of the parameter.
        parameter: &'static str,
        /// The name, cut to what a message can show.
        name: String,
    },
    /// A filter without a colon, or without a field before it.
    #[error("the filter {0:?} does not have the form field:expression")]
    FilterForm(String),
    /// A filter whose expression cannot be used.
    #[error("cannot use the filter on {field:?}: {why}")]
    Pattern {
        /// The field that the filter is on.
        field: String,
        /// The reason why the expression cannot be used.
        why: InvalidExpression,
    },
    /// A URL that cannot select what was asked for.
    #[error(transparent)]
    NoHost(#[from] NoHost),
    /// A combination that has no answer.
    #[error(transparent)]
    Query(#[from] InvalidQuery),
    /// A resume key from elsewhere.
    #[error(transparent)]
    Cursor(#[from] InvalidCursor),
    /// A page behind the last one.
    #[error("page {page} does not exist: there are {pages}, numbered from 0")]
    Page {
        /// The page that was asked for.
        page: u64,
        /// The number of pages that there are.
        pages: u64,
    },
    /// The number of pages, or a page, for which more captures have to be counted than one request may.
    #[error(
        "the pages are being counted, and {walked} captures have been so far; ask again, and the count continues"
    )]
    NotWalked {
        /// The number of captures that were counted.
        walked: u64,
    },
    /// More captures than pages are made of.
    #[error(
        "there are more than {walked} captures, too many for pages; ask for fewer, or use resume keys"
    )]
    TooManyPages {
        /// The number of captures that were counted.
        walked: u64,
    },
    /// A secondary index was asked for.
    #[error("this server has no secondary index; use `page` and `showNumPages`")]
    NoSecondaryIndex,
}

/// A refusal as the clients of a dialect expect it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DialectRefusal {
    /// The status of the response.
    pub status: u16,
    /// The media type of the body.
    pub content_type: &'static str,
    /// The body of the response.
    pub body: String,
}

impl CdxRequestError {
    pub(super) fn wrong_value(parameter: &'static str, value: &str, wanted: &'static str) -> Self {
        Self::Value {
            parameter,
            value: excerpt(value),
            wanted,
        }
    }

    pub(super) fn wrong_field(parameter: &'static str, name: &str) -> Self {
        Self::Field {
            parameter,
            name: excerpt(name),
        }
    }

    /// Returns the status of the response: 414 for a request that is too long, 503 for one that can be answered later,
    /// 400 for all others.
    pub fn status(&self) -> u16 {
        match self {
            Self::TooLong(_) => 414,
            Self::NotWalked { .. } => 503,
            _ => 400,
        }
    }

    /// Returns the refusal in a dialect: JSON with a message from pywb, plain text from the others.
    pub fn refusal(&self, dialect: Dialect) -> DialectRefusal {
        dialect_refusal(dialect, self.status(), &self.to_string())
    }
}

/// Returns an answer of words only.
pub(super) fn dialect_refusal(dialect: Dialect, status: u16, message: &str) -> DialectRefusal {
    match dialect {
        Dialect::Pywb => {
            let mut text = Vec::new();
            super::json::write_string(&mut text, message);
            let text = String::from_utf8_lossy(&text);
            // Clients know one name or the other.
            DialectRefusal {
                status,
                content_type: "application/json",
                body: format!("{{\"message\": {text}, \"error\": {text}}}\n"),
            }
        }
        Dialect::Wayback | Dialect::OutbackCdx => DialectRefusal {
            status,
            content_type: "text/plain; charset=utf-8",
            body: format!("{message}\n"),
        },
    }
}

/// Returns as much of a text as a message repeats.
pub(super) fn excerpt(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => {
            let shown = &text[..end];
            format!("{shown}…")
        }
        None => text.to_owned(),
    }
}
