//! Queries between the wire and `archive_formats::cdx::query`.
//!
//! From the wire a query must pass the rules of its own types and [`CaptureQuery::validate_query`].

use archive_formats::cdx::query::{
    Anchoring, CaptureField, CaptureQuery, Collapse, Cursor, CursorSource, Filter, FilterTest,
    Keep, KeyMatch, KeyRange, Limit, MAX_COLLAPSES, MAX_FILTERS, Order, Pattern, TimeSpan,
};
use archive_formats::date::Stamp;
use archive_formats::surt::UrlKey;
use archive_rpc::InvalidMessage;

use crate::fields;
use crate::wire;
use crate::wire::filter::Test;
use crate::wire::query_request::{Keys, Limit as WireLimit};

/// The longest key, or text of a filter, in bytes.
const LONGEST_TEXT: usize = 256 * 1024;

/// Writes a query.
pub fn write_query(query: &CaptureQuery) -> wire::QueryRequest {
    let keys = match &query.keys {
        KeyMatch::Exact(key) => Keys::Exact(key.to_string()),
        KeyMatch::Within(range) => Keys::Within(wire::query_request::KeyRange {
            start: range.start.clone(),
            end: range.end.clone(),
        }),
    };
    let (order, closest) = match query.order {
        Order::Ascending => (wire::Order::Ascending, String::new()),
        Order::Descending => (wire::Order::Descending, String::new()),
        Order::Closest(at) => (wire::Order::Closest, at.to_string()),
    };
    let stamp = |stamp: Option<Stamp>| stamp.map(|stamp| stamp.to_string()).unwrap_or_default();
    wire::QueryRequest {
        keys: Some(keys),
        from: stamp(query.span.from),
        to: stamp(query.span.to),
        filters: query.filters.iter().map(write_filter).collect(),
        order: order.into(),
        closest,
        collapse: query.collapse.iter().map(write_collapse).collect(),
        keep_last: query.keep == Keep::Last,
        limit: query.limit.map(|limit| match limit {
            Limit::First(count) => WireLimit::First(count),
            Limit::Last(count) => WireLimit::Last(count),
        }),
        cursor: query.cursor.as_ref().map(|cursor| wire::Cursor {
            key: cursor.key.clone(),
            timestamp: cursor.timestamp.to_string(),
            file: cursor.file.clone(),
            offset: cursor.offset,
            set: source(cursor, |source| &source.set),
            line: source(cursor, |source| &source.line),
        }),
    }
}

/// Returns a part of the source of a cursor; an empty text if the cursor has no source.
fn source(cursor: &Cursor, part: impl Fn(&CursorSource) -> &String) -> String {
    let source = cursor.source.as_deref();
    source.map(part).cloned().unwrap_or_default()
}

/// Reads a query.
///
/// # Errors
///
/// Fails with the name of the field that is missing or breaks a rule.
pub fn read_query(message: wire::QueryRequest) -> Result<CaptureQuery, InvalidMessage> {
    let keys = match message.keys {
        Some(Keys::Exact(key)) if key.is_empty() => {
            return Err(InvalidMessage::missing_field("exact"));
        }
        Some(Keys::Exact(key)) => KeyMatch::Exact(UrlKey::from_index(&bounded("exact", key)?)),
        Some(Keys::Within(range)) => KeyMatch::Within(KeyRange {
            start: bounded("within.start", range.start)?,
            end: range
                .end
                .map(|end| bounded("within.end", end))
                .transpose()?,
        }),
        None => return Err(InvalidMessage::missing_field("keys")),
    };
    // The number is checked before anything is compiled.
    if message.filters.len() > MAX_FILTERS {
        let reason = format!(
            "has {} filters, more than {MAX_FILTERS}",
            message.filters.len()
        );
        return Err(InvalidMessage::invalid_field("filters", reason));
    }
    if message.collapse.len() > MAX_COLLAPSES {
        let reason = format!(
            "has {} fields, more than {MAX_COLLAPSES}",
            message.collapse.len()
        );
        return Err(InvalidMessage::invalid_field("collapse", reason));
    }
    let order = match wire::Order::try_from(message.order) {
        Ok(wire::Order::Ascending) => Order::Ascending,
        Ok(wire::Order::Descending) => Order::Descending,
        Ok(wire::Order::Closest) => {
            Order::Closest(fields::parse_field("closest", &message.closest)?)
        }
        Ok(wire::Order::Unspecified) => return Err(InvalidMessage::missing_field("order")),
        Err(_) => return Err(unknown("order", message.order)),
    };
    let query = CaptureQuery {
        span: TimeSpan {
            from: fields::parse_optional("from", &message.from)?,
            to: fields::parse_optional("to", &message.to)?,
        },
        filters: message
            .filters
            .into_iter()
            .map(read_filter)
            .collect::<Result<_, _>>()?,
        order,
        collapse: message
            .collapse
            .into_iter()
            .map(read_collapse)
            .collect::<Result<_, _>>()?,
        keep: if message.keep_last {
            Keep::Last
        } else {
            Keep::First
        },
        limit: message.limit.map(|limit| match limit {
            WireLimit::First(count) => Limit::First(count),
            WireLimit::Last(count) => Limit::Last(count),
        }),
        cursor: message.cursor.map(read_cursor).transpose()?,
        ..CaptureQuery::new(keys)
    };
    query
        .validate_query()
        .map_err(|error| InvalidMessage::invalid_field("query", error.to_string()))?;
    Ok(query)
}

fn write_filter(filter: &Filter) -> wire::Filter {
    let test = match &filter.test {
        FilterTest::Contains(text) => Test::Contains(text.clone()),
        FilterTest::Exact(text) => Test::Exact(text.clone()),
        FilterTest::Matches(pattern) => {
            let anchoring = match pattern.anchoring() {
                Anchoring::Whole => wire::filter::Anchoring::Whole,
                Anchoring::Start => wire::filter::Anchoring::Start,
                Anchoring::Anywhere => wire::filter::Anchoring::Anywhere,
            };
            Test::Matches(wire::filter::Pattern {
                expression: pattern.expression().to_owned(),
                anchoring: anchoring.into(),
            })
        }
    };
    wire::Filter {
        field: Some(write_field(&filter.field)),
        negate: filter.negate,
        test: Some(test),
    }
}

fn read_filter(message: wire::Filter) -> Result<Filter, InvalidMessage> {
    use wire::filter::Anchoring as WireAnchoring;
    let test = match message.test {
        Some(Test::Contains(text)) => FilterTest::Contains(bounded("filters.contains", text)?),
        Some(Test::Exact(text)) => FilterTest::Exact(bounded("filters.exact", text)?),
        Some(Test::Matches(pattern)) => {
            let field = "filters.matches.anchoring";
            let anchoring = match WireAnchoring::try_from(pattern.anchoring) {
                Ok(WireAnchoring::Whole) => Anchoring::Whole,
                Ok(WireAnchoring::Start) => Anchoring::Start,
                Ok(WireAnchoring::Anywhere) => Anchoring::Anywhere,
                Ok(WireAnchoring::Unspecified) => return Err(InvalidMessage::missing_field(field)),
                Err(_) => return Err(unknown(field, pattern.anchoring)),
            };
            let pattern = Pattern::new(&pattern.expression, anchoring);
            FilterTest::Matches(pattern.map_err(|error| {
                InvalidMessage::invalid_field("filters.matches.expression", error.to_string())
            })?)
        }
        None => return Err(InvalidMessage::missing_field("filters.test")),
    };
    Ok(Filter {
        field: read_field("filters.field", message.field)?,
        negate: message.negate,
        test,
    })
}

fn write_collapse(collapse: &Collapse) -> wire::Collapse {
    wire::Collapse {
        field: Some(write_field(&collapse.field)),
        characters: collapse.characters.map(|count| count as u64),
    }
}

fn read_collapse(message: wire::Collapse) -> Result<Collapse, InvalidMessage> {
    Ok(Collapse {
        field: read_field("collapse.field", message.field)?,
        characters: message
            .characters
            .map(|count| usize::try_from(count).unwrap_or(usize::MAX)),
    })
}

fn write_field(field: &CaptureField) -> wire::Field {
    use wire::FieldName as Name;
    let (name, extra) = match field {
        CaptureField::Key => (Name::Key, ""),
        CaptureField::Timestamp => (Name::Timestamp, ""),
        CaptureField::Original => (Name::Original, ""),
        CaptureField::Mime => (Name::Mime, ""),
        CaptureField::Status => (Name::Status, ""),
        CaptureField::Digest => (Name::Digest, ""),
        CaptureField::Redirect => (Name::Redirect, ""),
        CaptureField::Robots => (Name::Robots, ""),
        CaptureField::Length => (Name::Length, ""),
        CaptureField::Offset => (Name::Offset, ""),
        CaptureField::File => (Name::File, ""),
        CaptureField::OriginalLength => (Name::OriginalLength, ""),
        CaptureField::OriginalOffset => (Name::OriginalOffset, ""),
        CaptureField::OriginalFile => (Name::OriginalFile, ""),
        CaptureField::Extra(name) => (Name::Extra, name.as_str()),
        CaptureField::Line => (Name::Line, ""),
    };
    wire::Field {
        name: name.into(),
        extra: extra.to_owned(),
    }
}

fn read_field(
    path: &'static str,
    message: Option<wire::Field>,
) -> Result<CaptureField, InvalidMessage> {
    use wire::FieldName as Name;
    let message = message.ok_or_else(|| InvalidMessage::missing_field(path))?;
    Ok(match Name::try_from(message.name) {
        Ok(Name::Key) => CaptureField::Key,
        Ok(Name::Timestamp) => CaptureField::Timestamp,
        Ok(Name::Original) => CaptureField::Original,
        Ok(Name::Mime) => CaptureField::Mime,
        Ok(Name::Status) => CaptureField::Status,
        Ok(Name::Digest) => CaptureField::Digest,
        Ok(Name::Redirect) => CaptureField::Redirect,
        Ok(Name::Robots) => CaptureField::Robots,
        Ok(Name::Length) => CaptureField::Length,
        Ok(Name::Offset) => CaptureField::Offset,
        Ok(Name::File) => CaptureField::File,
        Ok(Name::OriginalLength) => CaptureField::OriginalLength,
        Ok(Name::OriginalOffset) => CaptureField::OriginalOffset,
        Ok(Name::OriginalFile) => CaptureField::OriginalFile,
        Ok(Name::Extra) if message.extra.is_empty() => {
            return Err(InvalidMessage::invalid_field(path, "names no extra field"));
        }
        Ok(Name::Extra) => CaptureField::Extra(bounded(path, message.extra)?),
        Ok(Name::Line) => CaptureField::Line,
        Ok(Name::Unspecified) => return Err(InvalidMessage::missing_field(path)),
        Err(_) => return Err(unknown(path, message.name)),
    })
}

fn read_cursor(message: wire::Cursor) -> Result<Cursor, InvalidMessage> {
    Ok(Cursor {
        key: bounded("cursor.key", message.key)?,
        timestamp: fields::parse_field("cursor.timestamp", &message.timestamp)?,
        file: bounded("cursor.file", message.file)?,
        offset: message.offset,
        source: CursorSource {
            set: bounded("cursor.set", message.set)?,
            line: bounded("cursor.line", message.line)?,
        }
        .if_any(),
    })
}

fn bounded(field: &'static str, text: String) -> Result<String, InvalidMessage> {
    fields::bounded_text(field, text, LONGEST_TEXT)
}

fn unknown(field: &'static str, value: i32) -> InvalidMessage {
    InvalidMessage::invalid_field(field, format!("has the unknown value {value}"))
}

#[cfg(test)]
mod tests;
