//! CDX servers: one question about captures, asked and answered in three dialects.
//!
//! Owns the reading of a request ([`CdxRequest::parse`]) into an [`archive_formats::cdx::query::CaptureQuery`], the
//! writing of the answer ([`AnswerWriter`]), and the model of pages ([`PageMarks`]). Knows no socket and no clock: a
//! shell asks the index [`CdxRequest::index_query`], asks [`access`](crate::access) about each capture, and pushes the
//! visible ones into the writer until [`AnswerWriter::is_complete`]. Collapsing and limits come behind the access
//! decision, so that a capture that no visitor may see never hides one that everybody may see, and an answer has as
//! many rows as it was asked for.
//!
//! An answer that cannot be finished is never closed: the writer is dropped, and the shell has to break the connection
//! off (a chunked body without its last chunk). Then JSON and XML also lack their ends; lines have no other sign.
//!
//! | Dialect | Served at | What differs |
//! |---|---|---|
//! | [`Dialect::Pywb`] | `/<coll>/cdx`, `/<coll>/index` | CDXJ and lines of JSON; filters contain, equal or match |
//! | [`Dialect::Wayback`] | `/cdx/search/cdx` | text and rows of JSON with a header, resume keys, counters, pages |
//! | [`Dialect::OutbackCdx`] | `/<coll>` | text and rows of JSON with numbers, range match, XML for `q=` |
//!
//! Both spellings of the fields are known in all of them (`original`, `mimetype`, `statuscode`; `url`, `mime`,
//! `status`), and the letters of a CDX legend. Unknown parameters are ignored; a value that makes no sense is a
//! [`CdxRequestError`].

mod answer;
mod columns;
mod duplicates;
mod extras;
mod filters;
mod json;
mod pages;
mod parameters;
mod redirects;
mod request;
mod request_error;
mod rows;
mod target;
mod xml;
mod xml_query;

#[cfg(test)]
mod tests;

pub use answer::{AnswerError, AnswerSummary, AnswerWriter, BrokenAnswer, write_answer};
pub use columns::{AnswerColumn, ColumnValue};
pub use duplicates::MAX_DIGESTS;
pub use extras::{Extra, Extras};
pub use pages::{
    DEFAULT_PAGE_SIZES, PageCount, PageMarks, PagePlace, PageRequest, PageSizes, WalkLimit,
};
pub use request::{AnswerForm, CdxRequest};
pub use request_error::{CdxRequestError, DialectRefusal};
pub use rows::AnswerContext;
pub use xml_query::{XmlQuery, XmlQueryKind};

/// The most bytes of a query string and of a form, together.
pub const MAX_REQUEST: usize = 256 * 1024;

/// The most parameters of a request.
pub const MAX_PARAMETERS: usize = 256;

/// The server for which the client was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// pywb's CDXJ server API.
    Pywb,
    /// The Internet Archive's wayback-cdx-server.
    Wayback,
    /// OutbackCDX.
    OutbackCdx,
}
