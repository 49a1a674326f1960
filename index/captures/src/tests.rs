//! The index as its users see it, held against a list in memory.

mod changes;
mod exports;
mod files;
mod imports;
mod opening;
mod queries;

use archive_formats::cdx::Capture;
use archive_formats::cdx::query::{CaptureQuery, KeyMatch, KeyRange, LINE_FIELD, SET_FIELD};
use archive_formats::surt::UrlKey;

use crate::{CaptureIndex, MemoryPlace, OpenOptions};

/// Returns an index in memory, and the place that it can be opened in again.
pub(crate) fn empty() -> (MemoryPlace, CaptureIndex) {
    let memory = MemoryPlace::new().unwrap();
    let captures = open(&memory);
    (memory, captures)
}

pub(crate) fn open(memory: &MemoryPlace) -> CaptureIndex {
    let options = OpenOptions::default();
    CaptureIndex::open_in_memory(memory, &options)
        .unwrap()
        .captures
}

/// Returns a capture of a URL.
pub(crate) fn capture(url: &str, time: &str, offset: u64) -> Capture {
    let mut capture = Capture::new(UrlKey::parse(url).as_str(), time.parse().unwrap());
    capture.original = Some(url.to_owned());
    capture.mime = Some("text/html".to_owned());
    capture.status = Some(200);
    capture.digest = Some("sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ".to_owned());
    capture.offset = Some(offset);
    capture
}

/// Returns the captures of file `name`, as they come out of the index.
pub(crate) fn of_file(name: &str, count: u64) -> Vec<Capture> {
    let in_file = |number: u64| {
        let mut capture = capture(
            &format!("http://a.dk/{}", number % 7),
            &format!("2020010100{:02}{:02}", number / 60 % 60, number % 60),
            number * 100,
        );
        capture.file = Some(name.to_owned());
        capture
    };
    (0..count).map(in_file).collect()
}

/// Adds a file.
pub(crate) fn add(captures: &CaptureIndex, name: &str, all: &[Capture]) {
    let mut writer = captures.begin_file(name).unwrap();
    for capture in all {
        writer.push_capture(capture).unwrap();
    }
    assert_eq!(writer.complete_file(None), Ok(all.len() as u64));
}

/// Asks for the captures of a URL.
pub(crate) fn of_url(url: &str) -> CaptureQuery {
    CaptureQuery::new(KeyMatch::Exact(UrlKey::parse(url)))
}

/// Returns the query for all captures.
pub(crate) fn of_all() -> CaptureQuery {
    CaptureQuery::new(KeyMatch::Within(KeyRange::all()))
}

/// Returns all captures that a query gives, in the order of the answer.
#[track_caller]
pub(crate) fn answer_with_sources(captures: &CaptureIndex, query: &CaptureQuery) -> Vec<Capture> {
    let matches = captures.query_captures(query).unwrap();
    matches.map(|found| found.unwrap()).collect()
}

/// Returns all captures that a query gives, as they were given to the index.
#[track_caller]
pub(crate) fn answer(captures: &CaptureIndex, query: &CaptureQuery) -> Vec<Capture> {
    let mut all = answer_with_sources(captures, query);
    for capture in &mut all {
        let is_own = |name: &str| name != SET_FIELD && name != LINE_FIELD;
        capture.extra.retain(|(name, _)| is_own(name));
    }
    all
}

/// Returns everything that is shown.
#[track_caller]
pub(crate) fn everything(captures: &CaptureIndex) -> Vec<Capture> {
    answer(captures, &of_all())
}

/// Sorts captures into the order of an index that read the files in the order of their names.
pub(crate) fn sorted(mut all: Vec<Capture>) -> Vec<Capture> {
    all.sort_by_key(|c| (c.key.clone(), c.timestamp, c.file.clone(), c.offset));
    all
}
