//! Pages: each capture on one page, whatever is walked and added in between.

use super::*;

const SIZES: PageSizes = PageSizes {
    block: 3,
    pywb: 2,
    wayback: 2,
    largest: 4,
};

fn many(count: usize) -> Vec<Capture> {
    let mut all: Vec<Capture> = (0..count)
        .map(|n| {
            let mut capture = captures()[0].clone();
            capture.offset = Some(u64::try_from(n).unwrap() * 10);
            capture.timestamp = format!("201401010000{:02}", n % 7).parse().unwrap();
            capture
        })
        .collect();
    all.sort_by(index_order);
    all
}

fn request(dialect: Dialect, query: &str) -> CdxRequest {
    CdxRequest::parse(dialect, query.as_bytes(), None, &SIZES).unwrap()
}

/// Returns the captures behind a place.
fn behind<'a>(all: &'a [Capture], place: Option<&Cursor>) -> &'a [Capture] {
    let at = place.map_or(0, |place| {
        1 + all
            .iter()
            .position(|c| Cursor::from_capture(c) == *place)
            .unwrap()
    });
    &all[at..]
}

/// Does what a shell does: walks as far as it has to, and reads a page. `None` behind the last one.
fn read_page(all: &[Capture], marks: &mut PageMarks, number: u64, size: u64) -> Option<Vec<u64>> {
    loop {
        match marks.page_place(number, size) {
            PagePlace::Beyond { .. } => return None,
            PagePlace::NotWalked { captures } => {
                let rest = behind(all, marks.walked_to());
                let wanted = usize::try_from(captures).unwrap();
                for capture in rest.iter().take(wanted) {
                    marks.push_capture(capture);
                }
                if rest.len() < wanted {
                    marks.finish_marks();
                }
            }
            place @ PagePlace::Known { .. } => {
                let query = format!("url=example.org&fl=offset&output=text&page={number}");
                let request = request(Dialect::Wayback, &query);
                let PagePlace::Known {
                    after,
                    extends_walk,
                    ..
                } = &place
                else {
                    unreachable!()
                };
                let rest = behind(all, after.as_ref());
                let writer = AnswerWriter::new(&request, &context(), Vec::new());
                let mut writer = writer.within_page(&request, &place);
                let mut rest = rest.iter();
                while !writer.is_complete() {
                    let Some(capture) = rest.next() else {
                        if *extends_walk {
                            marks.finish_marks();
                        }
                        break;
                    };
                    if *extends_walk {
                        marks.push_capture(capture);
                    }
                    writer.push_capture(capture.clone()).unwrap();
                }
                let (_, bytes) = writer.finish_answer().unwrap();
                let text = String::from_utf8(bytes).unwrap();
                let offsets: Vec<u64> = text.lines().map(|l| l.parse().unwrap()).collect();
                // The first page may be empty; any other that is has shown that it does not exist.
                if offsets.is_empty() && number > 0 {
                    return None;
                }
                return Some(offsets);
            }
        }
    }
}

fn offsets(all: &[Capture]) -> Vec<u64> {
    all.iter().map(|c| c.offset.unwrap()).collect()
}

/// Fails if pages in their order, or in any other, lose or repeat a capture, or one in between is empty.
#[test]
fn pages_hold_each_capture_once() {
    for count in 0..20 {
        let all = many(count);
        for size in 1..4 {
            let mut marks = PageMarks::new(&SIZES);
            let mut joined = Vec::new();
            let mut number = 0;
            while let Some(page) = read_page(&all, &mut marks, number, size) {
                assert!(!page.is_empty() || number == 0, "{count} {size} {number}");
                joined.extend(page);
                number += 1;
            }
            assert_eq!(joined, offsets(&all), "{count} {size}");
            let pages = marks.page_count(size).unwrap();
            assert_eq!(pages.pages, number, "{count} {size}");

            let mut fresh = PageMarks::new(&SIZES);
            let mut pages: Vec<Vec<u64>> = (0..number)
                .rev()
                .map(|n| read_page(&all, &mut fresh, n, size).unwrap())
                .collect();
            pages.reverse();
            assert_eq!(pages.concat(), offsets(&all), "backwards {count} {size}");
            assert_eq!(read_page(&all, &mut fresh, number, size), None);
        }
    }
}

/// Fails if captures that are added or withdrawn after a walk make pages lose others.
#[test]
fn pages_survive_changes_of_the_index() {
    for count in 1..16 {
        let before = many(count);
        let mut marks = PageMarks::new(&SIZES);
        for capture in &before {
            marks.push_capture(capture);
        }
        marks.finish_marks();
        let mut after = before.clone();
        let mut added = before[count / 2].clone();
        added.offset = Some(12_345);
        after.push(added);
        after.sort_by(index_order);
        let pages = marks.page_count(1).unwrap().pages;
        let mut joined = Vec::new();
        for number in 0..pages {
            joined.extend(read_page(&after, &mut marks, number, 1).unwrap());
        }
        assert_eq!(joined, offsets(&after), "{count}");
    }
}

/// Fails if a page whose last capture was withdrawn runs on to the end of the answer.
#[test]
fn page_without_its_end_still_ends() {
    let all = many(12);
    let mut marks = PageMarks::new(&SIZES);
    for capture in &all {
        marks.push_capture(capture);
    }
    marks.finish_marks();
    let PagePlace::Known {
        until: Some(end), ..
    } = marks.page_place(0, 1)
    else {
        panic!("the first page has an end")
    };
    let mut left = all.clone();
    left.retain(|c| Cursor::from_capture(c) != end);
    let page = read_page(&left, &mut marks, 0, 1).unwrap();
    let same_second = all.iter().filter(|c| c.timestamp == end.timestamp).count();
    assert!(page.len() <= 2 + same_second, "{page:?}");
}

/// Fails if a part of the pages passes for all of them, or captures that come later are not counted.
#[test]
fn unfinished_walk_has_no_page_count() {
    let all = many(10);
    let mut marks = PageMarks::new(&SIZES);
    for (walked, capture) in (1..).zip(&all) {
        assert_eq!(marks.page_count(1), None);
        marks.push_capture(capture);
        assert_eq!(marks.unfinished(), CdxRequestError::NotWalked { walked });
        assert_eq!(marks.unfinished().status(), 503);
    }
    let mut hidden = all[9].clone();
    hidden.offset = Some(12_345);
    marks.pass_over(&hidden);
    assert_eq!(marks.walked_to(), Some(&Cursor::from_capture(&hidden)));
    marks.finish_marks();
    assert_eq!(marks.page_count(1).unwrap().pages, 4);
    marks.reopen_marks();
    assert_eq!(marks.page_count(1), None);
    for capture in &all {
        marks.push_capture(capture);
    }
    marks.finish_marks();
    assert_eq!(marks.page_count(1).unwrap().pages, 7);
    let mut empty = PageMarks::new(&SIZES);
    empty.finish_marks();
    assert_eq!(empty.page_count(5).unwrap().pages, 1);
}

/// Fails if a question that has no room for its pages is counted without end, or has a number of pages.
#[test]
fn pages_beyond_their_room_are_refused() {
    let sizes = PageSizes { block: 1, ..SIZES };
    let mut marks = PageMarks::new(&sizes);
    let capture = &captures()[0];
    while !marks.is_full() {
        marks.push_capture(capture);
    }
    let walked = marks.walked_captures();
    marks.push_capture(capture);
    assert_eq!(
        (marks.walked_captures(), marks.page_count(1)),
        (walked, None)
    );
    assert_eq!(marks.unfinished(), CdxRequestError::TooManyPages { walked });
    assert_eq!(marks.unfinished().status(), 400);
}

/// Fails if the number of pages, or the refusal of a page behind the last one, has another form than its server's.
#[test]
fn page_answers_have_their_dialect() {
    let count = PageCount {
        pages: 85,
        size: 5,
        blocks: 423,
    };
    let pywb = count.answer_count(Dialect::Pywb);
    assert_eq!(
        pywb.body,
        "{\"pages\": 85, \"pageSize\": 5, \"blocks\": 423}\n"
    );
    assert_eq!(count.answer_count(Dialect::Wayback).body, "85\n");
    let asked = request(Dialect::Pywb, "url=a.org&page=85&pageSize=4");
    assert_eq!(
        asked.pages,
        PageRequest::Page {
            number: 85,
            size: 4
        }
    );
    let error = asked.page_beyond(85).unwrap();
    assert_eq!(error.status(), 400);
    assert_eq!(
        request(Dialect::Wayback, "url=a.org&page=85").page_beyond(85),
        None
    );
    let counted = request(Dialect::Wayback, "url=a.org&showNumPages=true&page=3");
    assert_eq!(counted.pages, PageRequest::Count { size: 2 });
    let ignored = request(Dialect::OutbackCdx, "url=a.org&page=x&pageSize=0");
    assert_eq!(ignored.pages, PageRequest::Whole);
    // cdx_toolkit reads a 404 of pywb's servers as no captures, and cannot read an empty body.
    let empty = request(Dialect::Pywb, "url=a.org&page=0")
        .empty_refusal()
        .unwrap();
    assert_eq!(
        (empty.status, empty.content_type),
        (404, "application/json")
    );
    assert_eq!(request(Dialect::Pywb, "url=a.org").empty_refusal(), None);
}

/// Fails if requests with other captures share their pages, or requests with other columns do not.
#[test]
fn page_keys_tell_questions_apart() {
    let key = |query: &str| request(Dialect::Wayback, query).page_key();
    let base = key("url=a.org&page=0");
    assert_eq!(
        base,
        key("url=http://www.a.org/&page=7&fl=digest&output=json&limit=5")
    );
    for other in [
        "url=b.org",
        "url=a.org/*",
        "url=a.org&from=2014",
        "url=a.org&filter=statuscode:200",
        "url=a.org&filter=!statuscode:200",
        "url=a.org&sort=reverse",
    ] {
        assert_ne!(base, key(other), "{other}");
    }
}
