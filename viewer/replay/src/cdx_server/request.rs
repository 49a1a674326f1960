//! A request to a CDX server, read in its dialect.

use archive_formats::cdx::query::{
    CaptureField, CaptureQuery, Collapse, Cursor, InvalidQuery, Keep, KeyMatch, Limit, MatchKind,
    Order, TimeSpan,
};
use archive_formats::date::Fill;

use super::columns::ColumnChoice;
use super::extras::{Extra, Extras};
use super::pages::{PageRequest, PageSizes};
use super::parameters::Parameters;
use super::request_error::{dialect_refusal, excerpt};
use super::target::Target;
use super::xml_query::XmlQuery;
use super::{AnswerColumn, CdxRequestError, Dialect, DialectRefusal, filters};

/// The form of the rows of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerForm {
    /// `key timestamp {json}`.
    Cdxj,
    /// An object of JSON in each line.
    JsonLines,
    /// Values with blanks between them.
    Text,
    /// A TimeMap in `application/link-format`.
    Link,
    /// An array of arrays: strings below a header in [`Dialect::Wayback`], with numbers in [`Dialect::OutbackCdx`].
    JsonRows,
    /// An array of objects.
    JsonObjects,
    /// The XML of Wayback's remote collections.
    Xml(XmlQuery),
}

/// A request to a CDX server.
#[derive(Clone, Debug, PartialEq)]
pub struct CdxRequest {
    /// The dialect in which the request was asked, and is answered.
    pub dialect: Dialect,
    /// The URL, without the wildcard that made it a pattern.
    pub url: Vec<u8>,
    /// The way in which the URL selects keys.
    pub kind: MatchKind,
    /// The question, with all that was asked for. [`CdxRequest::index_query`] has the part that an index answers.
    pub query: CaptureQuery,
    /// The number of rows to leave out at the beginning.
    pub skip: u64,
    /// The form of the rows.
    pub form: AnswerForm,
    /// The columns; `None` means that each capture shows all fields that it has.
    pub columns: Option<Vec<AnswerColumn>>,
    /// The switches of the request.
    pub extras: Extras,
    /// The part of the answer that is asked for: all of it, a page, or the number of pages.
    pub pages: PageRequest,
}

impl CdxRequest {
    /// Reads a query string, without its `?`, and the body of a posted form.
    ///
    /// # Errors
    ///
    /// When a value makes no sense, or the URL is missing: [`CdxRequestError::refusal`] is the response then.
    pub fn parse(
        dialect: Dialect,
        query: &[u8],
        form: Option<&[u8]>,
        sizes: &PageSizes,
    ) -> Result<Self, CdxRequestError> {
        let parameters = Parameters::decode_query(query, form)?;
        let request = if dialect == Dialect::OutbackCdx && parameters.first("q").is_some() {
            read_xml(&parameters)?
        } else {
            read(dialect, &parameters, sizes)?
        };
        request.query.validate_query()?;
        Ok(request)
    }

    /// Returns the part of the question that an index answers: keys, span, filters, order and cursor.
    ///
    /// Its order is [`Order::Descending`] where only the last rows are wanted, which the writer turns round.
    pub fn index_query(&self) -> CaptureQuery {
        let mut query = CaptureQuery::new(self.query.keys.clone());
        query.span = self.query.span;
        query.cursor.clone_from(&self.query.cursor);
        // Captures that a filter leaves out are counted where the rows are made.
        if !self.counts_skipped() {
            query.filters.clone_from(&self.query.filters);
        }
        query.order = if self.reads_backwards() {
            Order::Descending
        } else {
            self.query.order
        };
        query
    }

    /// Returns how many captures the answer will take from the index, if the limit alone decides that: a hint for its
    /// first batch.
    pub fn row_hint(&self) -> Option<u64> {
        let is_simple = self.query.collapse.is_empty() && !self.counts_skipped();
        match self.query.limit {
            Some(Limit::First(rows) | Limit::Last(rows)) if is_simple => {
                Some(rows.saturating_add(self.skip).saturating_add(1))
            }
            _ => None,
        }
    }

    /// Returns the response to an answer without rows, where that is not an answer without rows: pywb's servers say 404
    /// for a page on which nothing was found.
    pub fn empty_refusal(&self) -> Option<DialectRefusal> {
        let is_page = matches!(self.pages, PageRequest::Page { .. });
        (self.dialect == Dialect::Pywb && is_page).then(|| {
            let url = excerpt(&String::from_utf8_lossy(&self.url));
            dialect_refusal(self.dialect, 404, &format!("No Captures found for: {url}"))
        })
    }

    /// Returns the key that OutbackCDX names in the header field `outbackcdx-urlkey`.
    pub fn url_key(&self) -> &str {
        match &self.query.keys {
            KeyMatch::Exact(key) => key.as_str(),
            KeyMatch::Within(range) => &range.start,
        }
    }

    /// Returns the error for a page behind the last one: pywb's servers refuse it, and Wayback's answer without rows.
    pub fn page_beyond(&self, pages: u64) -> Option<CdxRequestError> {
        match (self.dialect, self.pages) {
            (Dialect::Pywb, PageRequest::Page { number, .. }) => Some(CdxRequestError::Page {
                page: number,
                pages,
            }),
            _ => None,
        }
    }

    /// Returns the name of the question whose pages are asked for: equal for requests with equal pages. The client is
    /// not in it.
    pub fn page_key(&self) -> String {
        let query = &self.query;
        format!(
            "{:?} {:?} {:?} {:?} {:?} {}",
            query.keys,
            query.span,
            query.filters,
            query.order,
            query.cursor,
            self.extras.contains(Extra::OmitSelfRedirects),
        )
    }

    /// Returns whether the last rows are wanted, and can be read from the end.
    pub(super) fn reads_backwards(&self) -> bool {
        matches!(self.query.limit, Some(Limit::Last(_)))
            && self.query.order == Order::Ascending
            && self.query.collapse.is_empty()
            && self.query.cursor.is_none()
            && self.skip == 0
            && self.pages == PageRequest::Whole
            && !self.counts_skipped()
            && !self.extras.contains(Extra::DupeCount)
            && !self.extras.contains(Extra::ResolveRevisits)
    }

    pub(super) fn counts_skipped(&self) -> bool {
        self.extras.contains(Extra::SkipCount) || self.extras.contains(Extra::LastSkipTimestamp)
    }
}

/// Reads a question in the notation of Wayback's remote collections.
fn read_xml(parameters: &Parameters) -> Result<CdxRequest, CdxRequestError> {
    let (question, target, span) = XmlQuery::read_query(parameters)?;
    let mut query = CaptureQuery::new(target.keys);
    query.span = span;
    Ok(CdxRequest {
        dialect: Dialect::OutbackCdx,
        url: target.url,
        kind: target.kind,
        query,
        skip: 0,
        form: AnswerForm::Xml(question),
        columns: None,
        extras: Extras::default(),
        pages: PageRequest::Whole,
    })
}

fn read(
    dialect: Dialect,
    parameters: &Parameters,
    sizes: &PageSizes,
) -> Result<CdxRequest, CdxRequestError> {
    let target = Target::read_target(dialect, parameters)?;
    let mut query = CaptureQuery::new(target.keys);
    query.span = TimeSpan {
        from: parameters.bounded_number("from", Fill::First)?,
        to: parameters.bounded_number("to", Fill::Last)?,
    };
    for filter in parameters.texts("filter")? {
        query.filters.push(filters::read_filter(dialect, filter)?);
    }
    query.order = order(dialect, parameters)?;
    query.limit = limit(dialect, parameters)?;
    (query.collapse, query.keep) = collapse(dialect, parameters)?;
    let pages = PageRequest::read_page(dialect, parameters, sizes)?;
    let mut extras = Extras::default();
    let mut switch = |extra, name| -> Result<(), CdxRequestError> {
        extras.set(extra, parameters.switch(name)?.unwrap_or(false));
        Ok(())
    };
    switch(Extra::ResolveRevisits, "resolveRevisits")?;
    let mut skip = 0;
    match dialect {
        Dialect::Pywb => {
            // pywb sorts by closeness whenever a time is given. Here that is possible for the captures of one URL, in
            // one piece.
            let is_unsorted = parameters.text("sort")?.is_none();
            let is_sortable = pages == PageRequest::Whole && target.kind == MatchKind::Exact;
            if is_unsorted && is_sortable {
                let closest = parameters.bounded_number("closest", Fill::First)?;
                query.order = closest.map_or(Order::Ascending, Order::Closest);
            }
        }
        Dialect::Wayback => {
            switch(Extra::DupeCount, "showDupeCount")?;
            switch(Extra::SkipCount, "showSkipCount")?;
            switch(Extra::LastSkipTimestamp, "lastSkipTimestamp")?;
            switch(Extra::ResumeKey, "showResumeKey")?;
            let resume = parameters.text("resumeKey")?;
            query.cursor = resume.map(str::parse::<Cursor>).transpose()?;
            skip = parameters.count("offset")?.unwrap_or(0);
            let latest = parameters.switch("fastLatest")? == Some(true);
            if latest && target.kind == MatchKind::Exact {
                query.limit = Some(match query.limit {
                    Some(Limit::First(rows) | Limit::Last(rows)) => Limit::Last(rows),
                    None => Limit::Last(1),
                });
            }
        }
        Dialect::OutbackCdx => switch(Extra::OmitSelfRedirects, "omitSelfRedirects")?,
    }
    let form = form(dialect, parameters)?;
    let (parameter, names) = match parameters.text("fl")? {
        Some(names) => ("fl", Some(names)),
        None => ("fields", parameters.text("fields")?),
    };
    let columns = ColumnChoice {
        dialect,
        parameter,
        names,
        own_fields: matches!(form, AnswerForm::Cdxj | AnswerForm::JsonLines),
        extras,
    };
    if pages != PageRequest::Whole && matches!(query.order, Order::Closest(_)) {
        return Err(InvalidQuery::ClosestCursor.into());
    }
    Ok(CdxRequest {
        dialect,
        url: target.url,
        kind: target.kind,
        query,
        skip,
        columns: columns.chosen_columns()?,
        form,
        extras,
        pages,
    })
}

fn order(dialect: Dialect, parameters: &Parameters) -> Result<Order, CdxRequestError> {
    let Some(text) = parameters.text("sort")? else {
        return Ok(Order::Ascending);
    };
    let sort = match dialect {
        Dialect::OutbackCdx => text.to_ascii_lowercase(),
        Dialect::Pywb | Dialect::Wayback => text.to_owned(),
    };
    match sort.as_str() {
        "default" | "regular" => Ok(Order::Ascending),
        "reverse" => Ok(Order::Descending),
        "closest" => match parameters.bounded_number("closest", Fill::First)? {
            Some(closest) => Ok(Order::Closest(closest)),
            // pywb asks OutbackCDX like this when it wants any order.
            None if dialect == Dialect::OutbackCdx && parameters.first("closest").is_some() => {
                Ok(Order::Ascending)
            }
            None => Err(CdxRequestError::Missing("closest")),
        },
        _ => {
            let wanted = "reverse or closest";
            Err(CdxRequestError::wrong_value("sort", text, wanted))
        }
    }
}

fn limit(dialect: Dialect, parameters: &Parameters) -> Result<Option<Limit>, CdxRequestError> {
    let Some(number) = parameters.number("limit")? else {
        return Ok(None);
    };
    let refuse = |wanted| {
        Err(CdxRequestError::wrong_value(
            "limit",
            &number.to_string(),
            wanted,
        ))
    };
    match (dialect, number) {
        (Dialect::Pywb, ..=0) => refuse("a positive number"),
        (Dialect::OutbackCdx, ..=-1) => refuse("a number that is not negative"),
        (Dialect::Wayback, 0) => Ok(None),
        (Dialect::Wayback, ..=-1) => Ok(Some(Limit::Last(number.unsigned_abs()))),
        (_, rows) => Ok(Some(Limit::First(rows.unsigned_abs()))),
    }
}

fn collapse(
    dialect: Dialect,
    parameters: &Parameters,
) -> Result<(Vec<Collapse>, Keep), CdxRequestError> {
    let first = |name| -> Result<Option<Collapse>, CdxRequestError> {
        let text = parameters.text(name)?;
        text.map(|text| one_collapse(name, text)).transpose()
    };
    match dialect {
        Dialect::Pywb => Ok((Vec::new(), Keep::First)),
        Dialect::Wayback => {
            let texts = parameters.texts("collapse")?.into_iter();
            let all = texts.map(|text| one_collapse("collapse", text));
            Ok((all.collect::<Result<_, _>>()?, Keep::First))
        }
        Dialect::OutbackCdx => {
            let to_first = match first("collapseToFirst")? {
                Some(collapse) => Some(collapse),
                None => first("collapse")?,
            };
            match to_first {
                Some(collapse) => Ok((vec![collapse], Keep::First)),
                None => Ok((first("collapseToLast")?.into_iter().collect(), Keep::Last)),
            }
        }
    }
}

fn one_collapse(parameter: &'static str, text: &str) -> Result<Collapse, CdxRequestError> {
    let (name, characters) = match text.split_once(':') {
        Some((name, count)) => (name, Some(count)),
        None => (text, None),
    };
    let wanted = "a field, or a field with a colon and a positive number of characters";
    let refuse = || CdxRequestError::wrong_value(parameter, text, wanted);
    let characters = match characters {
        None => None,
        Some(count) => {
            let digits = count.bytes().all(|b| b.is_ascii_digit());
            let number: Option<usize> = count.parse().ok().filter(|n| digits && *n > 0);
            Some(number.ok_or_else(refuse)?)
        }
    };
    let field =
        CaptureField::of_name(name).ok_or_else(|| CdxRequestError::wrong_field(parameter, name))?;
    Ok(Collapse { field, characters })
}

fn form(dialect: Dialect, parameters: &Parameters) -> Result<AnswerForm, CdxRequestError> {
    let text = parameters.text("output")?;
    let form = match (dialect, text) {
        (Dialect::Pywb, None | Some("cdxj")) => AnswerForm::Cdxj,
        (Dialect::Pywb, Some("json")) => AnswerForm::JsonLines,
        (Dialect::Pywb, Some("link")) => AnswerForm::Link,
        (Dialect::Wayback | Dialect::OutbackCdx, None) | (_, Some("text")) => AnswerForm::Text,
        (Dialect::Wayback | Dialect::OutbackCdx, Some("json")) => AnswerForm::JsonRows,
        (Dialect::OutbackCdx, Some("jsondict")) => AnswerForm::JsonObjects,
        (_, Some(other)) => {
            let wanted = match dialect {
                Dialect::Pywb => "cdxj, json, link or text",
                Dialect::Wayback => "text or json",
                Dialect::OutbackCdx => "text, json or jsondict",
            };
            return Err(CdxRequestError::wrong_value("output", other, wanted));
        }
    };
    Ok(form)
}
