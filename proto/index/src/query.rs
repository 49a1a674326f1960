//! Queries between the wire and `archive_formats::cdx::query`.
//!
//! From the wire a query must pass the rules of its own types and [`CaptureQuery::validate`].

use archive_formats::cdx::query::{
    Anchoring, CaptureField, CaptureQuery, Collapse, Cursor, Filter, FilterTest, Keep, KeyMatch,
    KeyRange, Limit, MAX_COLLAPSES, MAX_FILTERS, Order, Pattern, TimeSpan,
};
use archive_formats::date::Stamp;
use archive_formats::surt::UrlKey;
use archive_rpc::InvalidMessage;

use crate::wire;
use crate::wire::filter::Test;
use crate::wire::query_request::{Keys, Limit as WireLimit};

/// The longest key, or text of a filter, in bytes.
const LONGEST_TEXT: usize = 256 * 1024;

/// Writes a query.
pub fn write(query: &CaptureQuery) -> wire::QueryRequest {
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
            set: cursor.set.clone(),
            line: cursor.line.clone(),
        }),
    }
}

/// Reads a query.
///
/// # Errors
///
/// Fails with the name of the field that is missing or breaks a rule.
pub fn read(message: wire::QueryRequest) -> Result<CaptureQuery, InvalidMessage> {
    let keys = match message.keys {
        Some(Keys::Exact(key)) if key.is_empty() => return Err(InvalidMessage::missing("exact")),
        Some(Keys::Exact(key)) => KeyMatch::Exact(UrlKey::from_index(&bounded("exact", key)?)),
        Some(Keys::Within(range)) => KeyMatch::Within(KeyRange {
            start: bounded("within.start", range.start)?,
            end: range
                .end
                .map(|end| bounded("within.end", end))
                .transpose()?,
        }),
        None => return Err(InvalidMessage::missing("keys")),
    };
    // Before anything is compiled.
    if message.filters.len() > MAX_FILTERS {
        let reason = format!(
            "has {} filters, more than {MAX_FILTERS}",
            message.filters.len()
        );
        return Err(InvalidMessage::invalid("filters", reason));
    }
    if message.collapse.len() > MAX_COLLAPSES {
        let reason = format!(
            "has {} fields, more than {MAX_COLLAPSES}",
            message.collapse.len()
        );
        return Err(InvalidMessage::invalid("collapse", reason));
    }
    let order = match wire::Order::try_from(message.order) {
        Ok(wire::Order::Ascending) => Order::Ascending,
        Ok(wire::Order::Descending) => Order::Descending,
        Ok(wire::Order::Closest) => Order::Closest(stamp("closest", &message.closest)?),
        Ok(wire::Order::Unspecified) => return Err(InvalidMessage::missing("order")),
        Err(_) => return Err(unknown("order", message.order)),
    };
    let query = CaptureQuery {
        span: TimeSpan {
            from: optional_stamp("from", &message.from)?,
            to: optional_stamp("to", &message.to)?,
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
        .validate()
        .map_err(|error| InvalidMessage::invalid("query", error.to_string()))?;
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
                Ok(WireAnchoring::Unspecified) => return Err(InvalidMessage::missing(field)),
                Err(_) => return Err(unknown(field, pattern.anchoring)),
            };
            let pattern = Pattern::new(&pattern.expression, anchoring);
            FilterTest::Matches(pattern.map_err(|error| {
                InvalidMessage::invalid("filters.matches.expression", error.to_string())
            })?)
        }
        None => return Err(InvalidMessage::missing("filters.test")),
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
        characters: collapse
            .characters
            .map(|count| u64::try_from(count).unwrap_or(u64::MAX)),
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
    let message = message.ok_or_else(|| InvalidMessage::missing(path))?;
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
            return Err(InvalidMessage::invalid(path, "names no extra field"));
        }
        Ok(Name::Extra) => CaptureField::Extra(bounded(path, message.extra)?),
        Ok(Name::Line) => CaptureField::Line,
        Ok(Name::Unspecified) => return Err(InvalidMessage::missing(path)),
        Err(_) => return Err(unknown(path, message.name)),
    })
}

fn read_cursor(message: wire::Cursor) -> Result<Cursor, InvalidMessage> {
    Ok(Cursor {
        key: bounded("cursor.key", message.key)?,
        timestamp: stamp("cursor.timestamp", &message.timestamp)?,
        file: bounded("cursor.file", message.file)?,
        offset: message.offset,
        set: bounded("cursor.set", message.set)?,
        line: bounded("cursor.line", message.line)?,
    })
}

fn optional_stamp(field: &'static str, text: &str) -> Result<Option<Stamp>, InvalidMessage> {
    if text.is_empty() {
        return Ok(None);
    }
    stamp(field, text).map(Some)
}

fn stamp(field: &'static str, text: &str) -> Result<Stamp, InvalidMessage> {
    if text.is_empty() {
        return Err(InvalidMessage::missing(field));
    }
    text.parse()
        .map_err(|error: archive_formats::date::InvalidDate| {
            InvalidMessage::invalid(field, error.to_string())
        })
}

fn bounded(field: &'static str, text: String) -> Result<String, InvalidMessage> {
    if text.len() > LONGEST_TEXT {
        let reason = format!("has {} bytes, more than {LONGEST_TEXT}", text.len());
        return Err(InvalidMessage::invalid(field, reason));
    }
    Ok(text)
}

fn unknown(field: &'static str, value: i32) -> InvalidMessage {
    InvalidMessage::invalid(field, format!("has the unknown value {value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields() -> Vec<CaptureField> {
        let mut fields = CaptureField::cdx11().to_vec();
        fields.extend([
            CaptureField::OriginalLength,
            CaptureField::OriginalOffset,
            CaptureField::OriginalFile,
            CaptureField::Extra("method".to_owned()),
            CaptureField::Line,
        ]);
        fields
    }

    fn exact() -> CaptureQuery {
        CaptureQuery::new(KeyMatch::Exact(UrlKey::of("http://www.example.org/a")))
    }

    /// A query in which everything is said.
    fn whole() -> CaptureQuery {
        let tests = |n: usize| match n % 5 {
            0 => FilterTest::Contains(String::new()),
            1 => FilterTest::Exact("200".to_owned()),
            2 => FilterTest::Matches(Pattern::new("a.*", Anchoring::Whole).unwrap()),
            3 => FilterTest::Matches(Pattern::new("a.*", Anchoring::Start).unwrap()),
            _ => FilterTest::Matches(Pattern::new("", Anchoring::Anywhere).unwrap()),
        };
        let filters = fields().into_iter().zip(0..).map(|(field, n)| Filter {
            field,
            negate: n % 2 == 0,
            test: tests(n),
        });
        CaptureQuery {
            keys: KeyMatch::Within(KeyRange::of_prefix("org,example)/")),
            span: TimeSpan::parse("2020", "20210506070809").unwrap(),
            filters: filters.collect(),
            order: Order::Descending,
            collapse: vec![
                Collapse {
                    field: CaptureField::Digest,
                    characters: None,
                },
                Collapse {
                    field: CaptureField::Timestamp,
                    characters: Some(0),
                },
            ],
            keep: Keep::Last,
            limit: Some(Limit::Last(7)),
            cursor: Some(Cursor {
                key: "org,example)/b".to_owned(),
                timestamp: "20200101000000123".parse().unwrap(),
                file: "a b.warc".to_owned(),
                offset: u64::MAX,
                set: "a set".to_owned(),
                line: "m.warc:17".to_owned(),
            }),
        }
    }

    /// Fails if a part of a query is lost, or becomes another one, on the way.
    #[test]
    fn queries_survive_the_wire() {
        let closest = CaptureQuery {
            order: Order::Closest("20200101000000".parse().unwrap()),
            limit: Some(Limit::First(0)),
            ..exact()
        };
        let everything = CaptureQuery::new(KeyMatch::Within(KeyRange {
            start: String::new(),
            end: None,
        }));
        for query in [exact(), closest, everything, whole()] {
            assert_eq!(read(write(&query)), Ok(query));
        }
    }

    /// Fails if a faulty query is run, or the error does not name its field.
    #[test]
    fn faulty_queries_name_their_field() {
        let refused = |field: &str, change: &dyn Fn(&mut wire::QueryRequest)| {
            let mut message = write(&whole());
            change(&mut message);
            let error = read(message).unwrap_err();
            assert_eq!(error.field, field, "{error}");
        };
        refused("keys", &|message| message.keys = None);
        refused("exact", &|message| {
            message.keys = Some(Keys::Exact(String::new()));
        });
        refused("exact", &|message| {
            message.keys = Some(Keys::Exact("a".repeat(LONGEST_TEXT + 1)));
        });
        refused("from", &|message| message.from = "2020".to_owned());
        refused("to", &|message| message.to = "20201301000000".to_owned());
        refused("order", &|message| message.order = 0);
        refused("order", &|message| message.order = 99);
        refused("closest", &|message| {
            message.order = wire::Order::Closest.into();
        });
        refused("query", &|message| {
            message.order = wire::Order::Closest.into();
            message.closest = "20200101000000".to_owned();
        });
        refused("query", &|message| {
            message.limit = Some(WireLimit::Last(u64::MAX));
        });
        refused("filters", &|message| {
            message.filters = vec![wire::Filter::default(); MAX_FILTERS + 1];
        });
        refused("collapse", &|message| {
            message.collapse = vec![wire::Collapse::default(); MAX_COLLAPSES + 1];
        });
        refused("filters.test", &|message| message.filters[0].test = None);
        refused("filters.field", &|message| message.filters[0].field = None);
        refused("filters.field", &|message| {
            message.filters[0].field = Some(wire::Field {
                name: wire::FieldName::Extra.into(),
                extra: String::new(),
            });
        });
        let pattern = |expression: &str, anchoring: i32| {
            let expression = expression.to_owned();
            Some(Test::Matches(wire::filter::Pattern {
                expression,
                anchoring,
            }))
        };
        for bad in ["(", "(?=a)", "((((a{99}){99}){99}){99}){99}"] {
            refused("filters.matches.expression", &|message| {
                message.filters[0].test = pattern(bad, 1);
            });
        }
        for bad in [0, 9] {
            refused("filters.matches.anchoring", &|message| {
                message.filters[0].test = pattern("a", bad);
            });
        }
        refused("collapse.field", &|message| {
            message.collapse[0].field = None;
        });
        refused("cursor.timestamp", &|message| {
            message.cursor.as_mut().unwrap().timestamp.clear();
        });
        let long = || "a".repeat(LONGEST_TEXT + 1);
        refused("cursor.set", &|message| {
            message.cursor.as_mut().unwrap().set = long();
        });
        refused("cursor.line", &|message| {
            message.cursor.as_mut().unwrap().line = long();
        });
    }
}
