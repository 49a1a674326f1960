//! The question of Wayback's remote collections: `q=type:urlquery url:http%3A%2F%2Fexample.org%2F`.

use archive_formats::cdx::query::{KeyMatch, MatchKind, TimeSpan};
use archive_formats::date::{Fill, Stamp};

use super::CdxRequestError;
use super::parameters::{Parameters, decode_percent};
use super::target::Target;

/// The number of results without `count`, and the most results that are counted.
const RESULTS: u64 = 10_000;

/// A question in the notation of Wayback's remote collections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XmlQuery {
    /// The type of the question.
    pub kind: XmlQueryKind,
    /// The number of results to leave out at the beginning.
    pub skip: u64,
    /// The number of results to give.
    pub results: u64,
    /// The most results that are counted.
    pub counted: u64,
}

/// A type of such a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum XmlQueryKind {
    /// The captures of a URL.
    Url,
    /// The URLs with a prefix, each with its number of captures.
    Prefix,
    /// A type that is not known; the answer says so.
    Unknown(String),
}

impl XmlQuery {
    /// Reads `q`: the question, the captures that it is about, and the time that it asks for.
    pub(super) fn read_query(
        parameters: &Parameters,
    ) -> Result<(Self, Target, TimeSpan), CdxRequestError> {
        let words = QueryTerms::parse(parameters.first("q").unwrap_or_default());
        let kind = match words.text("type")?.to_ascii_lowercase().as_str() {
            "" | "urlquery" => XmlQueryKind::Url,
            "prefixquery" => XmlQueryKind::Prefix,
            other => XmlQueryKind::Unknown(super::request_error::excerpt(other)),
        };
        let url = words.first("url").filter(|url| !url.is_empty());
        let url = url.ok_or(CdxRequestError::Missing("q=url:"))?;
        let results = match parameters.count("count")? {
            Some(results) => results,
            None => words.count("limit")?.unwrap_or(RESULTS),
        };
        let skip = match parameters.number("start_page")? {
            Some(page) => {
                let before = u64::try_from(page.saturating_sub(1)).unwrap_or(0);
                results.saturating_mul(before)
            }
            None => words.count("offset")?.unwrap_or(0),
        };
        let match_kind = match kind {
            XmlQueryKind::Prefix => MatchKind::Prefix,
            XmlQueryKind::Url | XmlQueryKind::Unknown(_) => MatchKind::Exact,
        };
        let target = Target {
            url: url.to_vec(),
            kind: match_kind,
            keys: KeyMatch::for_url(match_kind, url)?,
        };
        let span = TimeSpan {
            from: words.bound("startdate", Fill::First)?,
            to: words.bound("enddate", Fill::Last)?,
        };
        let question = Self {
            kind,
            skip,
            results,
            counted: skip.saturating_add(results).max(RESULTS),
        };
        Ok((question, target, span))
    }
}

/// The words of a question: `name:value`, both encoded as in a form.
struct QueryTerms(Vec<(Vec<u8>, Vec<u8>)>);

impl QueryTerms {
    fn parse(question: &[u8]) -> Self {
        let words = question.split(|b| *b == b' ').filter_map(|word| {
            let colon = word.iter().position(|b| *b == b':')?;
            let name = word.get(..colon)?;
            let value = word.get(colon + 1..)?;
            Some((decode_percent(name), decode_percent(value)))
        });
        Self(words.collect())
    }

    fn first(&self, name: &str) -> Option<&[u8]> {
        let mut words = self.0.iter();
        words
            .find(|(n, _)| n == name.as_bytes())
            .map(|(_, value)| value.as_slice())
    }

    fn text(&self, name: &'static str) -> Result<&str, CdxRequestError> {
        let value = self.first(name).unwrap_or_default();
        str::from_utf8(value)
            .ok()
            .ok_or(CdxRequestError::NotText("q"))
    }

    fn count(&self, name: &'static str) -> Result<Option<u64>, CdxRequestError> {
        let text = self.text(name)?;
        if text.is_empty() {
            return Ok(None);
        }
        let digits = text.bytes().all(|b| b.is_ascii_digit());
        let number = text.parse().ok().filter(|_| digits);
        let wanted = "a number that is not negative";
        number
            .map(Some)
            .ok_or_else(|| CdxRequestError::wrong_value(name, text, wanted))
    }

    fn bound(&self, parameter: &'static str, fill: Fill) -> Result<Option<Stamp>, CdxRequestError> {
        let text = self.text(parameter)?;
        if text.is_empty() {
            return Ok(None);
        }
        let stamp = Stamp::from_query(text, fill);
        stamp
            .map(Some)
            .map_err(|why| CdxRequestError::Date { parameter, why })
    }
}
