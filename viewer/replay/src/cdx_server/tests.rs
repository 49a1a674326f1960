//! The dialects, table by table: requests, answers, pages, and sample files of the field.
//!
//! The index is a sorted list that answers a [`CaptureQuery`](archive_formats::cdx::query::CaptureQuery) by looking at
//! every capture.

mod answers;
mod counters;
mod pages;
mod requests;
mod samples;
mod xml;

use std::cmp::Ordering;
use std::convert::Infallible;

use archive_formats::cdx::query::{CaptureQuery, Cursor, Order};
use archive_formats::cdx::{Capture, Format};

use super::*;

/// Captures of a small archive, as lines of CDX in the order of an index.
const LINES: [&str; 9] = [
    "org,example)/ 20140101000000 http://example.org/ text/html 301 AAA http://www.example.org/ - 400 0 a.warc.gz",
    "org,example)/ 20140102000000 http://www.example.org/ text/html 200 BBB - - 500 400 a.warc.gz",
    "org,example)/ 20150102000000 http://www.example.org/ warc/revisit 200 BBB - - 300 0 b.warc.gz",
    "org,example)/ 20160102000000 http://www.example.org/ text/html 200 CCC - - 510 300 b.warc.gz",
    "org,example)/a 20140102000001 http://example.org/a image/png 200 DDD - - 600 900 a.warc.gz",
    "org,example)/a/b 20140102000002 http://example.org/a/b text/html 404 EEE - - 200 1500 a.warc.gz",
    "org,example)/x* 20140102000003 http://example.org/x* text/plain 200 FFF - A 210 1700 a.warc.gz",
    "org,example,sub)/ 20140102000004 http://sub.example.org/ text/html 200 GGG - - - 1910 a.warc.gz",
    "org,other)/ 20140102000005 http://other.org/ - - - - - - - -",
];

fn captures() -> Vec<Capture> {
    let format = Format::cdx11();
    LINES
        .iter()
        .map(|line| format.read_line(line).unwrap())
        .collect()
}

fn context() -> AnswerContext {
    AnswerContext {
        memento_prefix: "https://archive.example/all/".to_owned(),
        now: "20261123220000".parse().unwrap(),
    }
}

fn parse(dialect: Dialect, query: &str) -> Result<CdxRequest, CdxRequestError> {
    CdxRequest::parse(dialect, query.as_bytes(), None, &DEFAULT_PAGE_SIZES)
}

/// Answers a question as an index does.
fn answer_of_index(captures: &[Capture], query: &CaptureQuery) -> Vec<Capture> {
    assert!(query.collapse.is_empty() && query.limit.is_none());
    let mut found: Vec<Capture> = captures
        .iter()
        .filter(|capture| query.accepts_capture(capture))
        .cloned()
        .collect();
    match query.order {
        Order::Ascending => {}
        Order::Descending => found.reverse(),
        Order::Closest(_) => found.sort_by(|a, b| query.order.compare_captures(a, b)),
    }
    if let Some(cursor) = &query.cursor {
        let at = found
            .iter()
            .position(|c| Cursor::from_capture(c) == *cursor);
        found.drain(..=at.expect("the place is one of the answer"));
    }
    found
}

fn serve_over(
    captures: &[Capture],
    dialect: Dialect,
    query: &str,
) -> Result<String, CdxRequestError> {
    let request = parse(dialect, query)?;
    let found = answer_of_index(captures, &request.index_query());
    let found = found.into_iter().map(Ok::<_, Infallible>);
    let (_, bytes) = write_answer(&request, &context(), found, Vec::new()).unwrap();
    Ok(String::from_utf8(bytes).unwrap())
}

fn serve(dialect: Dialect, query: &str) -> String {
    serve_over(&captures(), dialect, query).unwrap()
}

/// Returns the timestamps of an answer in text, which begin its lines.
fn timestamps(dialect: Dialect, query: &str) -> Vec<String> {
    let answer = serve(dialect, &format!("{query}&output=text&fl=timestamp"));
    answer.lines().map(str::to_owned).collect()
}

/// Compares captures by the order that an index has.
fn index_order(one: &Capture, other: &Capture) -> Ordering {
    let place = |c: &Capture| (c.key.clone(), c.timestamp, c.file.clone(), c.offset);
    place(one).cmp(&place(other))
}
