//! Tests of Memento, by the letter of RFC 7089.

use archive_formats::cdx::Capture;

use super::*;

fn stamp(text: &str) -> Stamp {
    text.parse().unwrap()
}

fn addresses() -> Addresses {
    Addresses::new("https://r.example.org", "all")
}

/// Fails if a date is written or read otherwise than RFC 1123 says.
#[test]
fn dates_are_those_of_rfc_1123() {
    for (text, digits) in [
        ("Thu, 31 May 2007 20:35:00 GMT", "20070531203500"),
        ("Tue, 11 Sep 2001 20:30:51 GMT", "20010911203051"),
        ("Thu, 29 Feb 2024 23:59:59 GMT", "20240229235959"),
        ("Sun, 06 Nov 1994 08:49:37 GMT", "19941106084937"),
        ("Sat, 01 Jan 0001 00:00:00 GMT", "00010101000000"),
    ] {
        let parsed = accept_datetime([text.as_bytes()]).unwrap().unwrap();
        assert_eq!(parsed, stamp(digits), "{text}");
        if digits > "1000" {
            assert_eq!(http_date(parsed), text);
        }
    }
    let lenient = b"  mon, 6 NOV 1994 08:49:37 gmt ";
    assert_eq!(
        accept_datetime([&lenient[..]]).unwrap(),
        Some(stamp("19941106084937"))
    );
    assert_eq!(accept_datetime([]).unwrap(), None);
    let twice = [&b"Sun, 06 Nov 1994 08:49:37 GMT"[..]; 2];
    assert_eq!(
        accept_datetime(twice).unwrap(),
        Some(stamp("19941106084937"))
    );
}

/// Fails if something that is no date is taken for one, so that a client gets a capture that it did not ask for.
#[test]
fn impossible_dates_are_refused() {
    for wrong in [
        "",
        "2007",
        "2007-05-31T20:35:00Z",
        "Thu, 31 May 2007 20:35:00",
        "Thu, 31 May 2007 20:35:00 CET",
        "Thu, 31 May 2007 20:35:00 +0000",
        "Thu, 31 May 07 20:35:00 GMT",
        "Thursday, 31-May-07 20:35:00 GMT",
        "Thu May 31 20:35:00 2007",
        "Xyz, 31 May 2007 20:35:00 GMT",
        "Thu, 31 Mai 2007 20:35:00 GMT",
        "Thu, 31 Jun 2007 20:35:00 GMT",
        "Thu, 29 Feb 2023 20:35:00 GMT",
        "Thu, 31 May 2007 24:00:00 GMT",
        "Thu, 31 May 2007 20:35:60 GMT",
        "Thu, 31 May 2007 20:35 GMT",
        "Thu, 31 May 2007 20:35:00:00 GMT",
        "Thu, 31 May 2007 20:35:00 GMT now",
        "Thu, +1 May 2007 20:35:00 GMT",
    ] {
        assert!(accept_datetime([wrong.as_bytes()]).is_err(), "{wrong}");
    }
    assert!(accept_datetime([&b"\xff\xfe"[..]]).is_err());
    assert!(accept_datetime([vec![b'x'; 100_000].as_slice()]).is_err());
    let differing = [
        &b"Sun, 06 Nov 1994 08:49:37 GMT"[..],
        b"Sun, 06 Nov 1994 08:49:38 GMT",
    ];
    assert_eq!(accept_datetime(differing), Err(InvalidDatetime::Several));
}

/// Fails if another capture than the nearest is chosen, for any wanted time around few captures.
#[test]
fn nearest_capture_is_nearest_everywhere() {
    let second =
        |n: i64| Stamp::from_time(jiff::Timestamp::from_second(1_000_000_000 + n).unwrap());
    for chosen in 1_u32..1 << 6 {
        let times: Vec<i64> = (0..6)
            .filter(|at| chosen >> at & 1 == 1)
            .map(|at| at * 3)
            .collect();
        let captures: Vec<Stamp> = times.iter().map(|time| second(*time)).collect();
        for wanted in -2..20 {
            let expected = *times
                .iter()
                .min_by_key(|time| ((*time - wanted).abs(), **time))
                .unwrap();
            let found = nearest_capture(&captures, Some(second(wanted))).unwrap();
            let at = times.iter().position(|time| *time == expected).unwrap();
            assert_eq!(
                (found.index, found.neighbours.this),
                (at, second(expected)),
                "{wanted} of {times:?}"
            );
            let neighbour = |at: Option<usize>| at.and_then(|at| captures.get(at)).copied();
            assert_eq!(found.neighbours.previous, neighbour(at.checked_sub(1)));
            assert_eq!(found.neighbours.next, neighbour(Some(at + 1)));
        }
        assert_eq!(
            nearest_capture(&captures, None).unwrap().neighbours.this,
            *captures.last().unwrap()
        );
    }
    assert_eq!(nearest_capture(&[], None), None);
    let double = [second(0), second(1), second(1), second(2)];
    let found = nearest_capture(&double, Some(second(1))).unwrap();
    assert_eq!((found.index, found.neighbours.next), (1, Some(second(2))));
    assert_eq!(found.neighbours.previous, Some(second(0)));
}

/// Fails if the answer of a TimeGate lacks a field that RFC 7089 asks for, or has one that it forbids.
#[test]
fn time_gate_answers_to_the_letter() {
    let neighbours = Neighbours {
        this: stamp("20070601000000"),
        first: Some(stamp("20000101000000")),
        previous: Some(stamp("20000101000000")),
        next: None,
        last: Some(stamp("20070601000000")),
    };
    let url = "http://a.dk/\u{e6}?x=<y>";
    let link = "<http://a.dk/%C3%A6?x=%3Cy%3E>; rel=\"original\", \
        <https://r.example.org/all/http://a.dk/%C3%A6?x=%3Cy%3E>; rel=\"timegate\", \
        <https://r.example.org/all/timemap/link/http://a.dk/%C3%A6?x=%3Cy%3E>; rel=\"timemap\"; type=\"application/link-format\"";
    let full = format!(
        "{link}, <https://r.example.org/all/20000101000000/http://a.dk/%C3%A6?x=%3Cy%3E>; rel=\"first prev memento\"; datetime=\"Sat, 01 Jan 2000 00:00:00 GMT\", \
         <https://r.example.org/all/20070601000000/http://a.dk/%C3%A6?x=%3Cy%3E>; rel=\"last memento\"; datetime=\"Fri, 01 Jun 2007 00:00:00 GMT\""
    );
    let vary = ("Vary", "accept-datetime, prefer".to_owned());
    let gate = TimeGate {
        style: TimeGateStyle::Direct,
        modifier: Some(Modifier::Identity),
    };
    let direct = gate.gate_fields(&addresses(), url, &neighbours);
    assert_eq!(
        direct,
        [
            (
                "Content-Location",
                "https://r.example.org/all/20070601000000id_/http://a.dk/%C3%A6?x=%3Cy%3E"
                    .to_owned()
            ),
            (
                "Memento-Datetime",
                "Fri, 01 Jun 2007 00:00:00 GMT".to_owned()
            ),
            vary.clone(),
            ("Link", full.clone()),
        ]
    );
    let gate = TimeGate {
        style: TimeGateStyle::Redirect,
        modifier: None,
    };
    let redirect = gate.gate_fields(&addresses(), url, &neighbours);
    assert_eq!(
        redirect,
        [
            (
                "Location",
                "https://r.example.org/all/20070601000000/http://a.dk/%C3%A6?x=%3Cy%3E".to_owned()
            ),
            vary.clone(),
            ("Link", full.clone()),
        ]
    );
    assert_eq!(TimeGateStyle::Redirect.status(), Some(302));
    assert_eq!(
        empty_time_gate(&addresses(), url),
        [vary, ("Link", link.to_owned())]
    );
    assert_eq!(
        memento_fields(&addresses(), url, &neighbours),
        [
            (
                "Memento-Datetime",
                "Fri, 01 Jun 2007 00:00:00 GMT".to_owned()
            ),
            ("Link", full)
        ]
    );
}

/// Fails if one capture alone is not all of its relations at once.
#[test]
fn only_capture_has_all_relations() {
    let this = stamp("20070601000000");
    let only = Neighbours {
        first: Some(this),
        last: Some(this),
        ..Neighbours::alone(this)
    };
    assert_eq!(only.relations(), [(this, "first last memento".to_owned())]);
    assert_eq!(
        Neighbours::alone(this).relations(),
        [(this, "memento".to_owned())]
    );
}

fn captures() -> Vec<Capture> {
    ["20000101000000", "20050101000000", "20070601000000"]
        .map(|time| {
            let mut capture = Capture::new("dk,a)/", stamp(time));
            capture.original = Some("http://www.a.dk/".to_owned());
            capture.mime = Some("text/html".to_owned());
            capture.status = Some(200);
            capture.file = Some("x.warc.gz".to_owned());
            capture.offset = Some(7);
            capture
        })
        .into()
}

fn time_map(format: TimeMapFormat, page: Option<TimeMapPage>, captures: &[Capture]) -> String {
    let addresses = addresses();
    let scope = TimeMapScope {
        first: stamp("20000101000000"),
        last: stamp("20070601000000"),
        page,
    };
    let mut out = String::new();
    let mut writer = TimeMapWriter::new(TimeMap {
        addresses: &addresses,
        collection: "all",
        url: "http://a.dk/",
        format,
        scope,
    });
    writer.begin_map(&mut out);
    for capture in captures {
        writer.write_capture(capture, &mut out);
    }
    writer.end_map(&mut out);
    out
}

/// Fails if a TimeMap is not the link-format that Memento clients read.
#[test]
fn link_time_map_has_all_relations() {
    let expected = "<http://a.dk/>; rel=\"original\",\n\
        <https://r.example.org/all/timemap/link/http://a.dk/>; rel=\"self\"; type=\"application/link-format\"; from=\"Sat, 01 Jan 2000 00:00:00 GMT\"; until=\"Fri, 01 Jun 2007 00:00:00 GMT\",\n\
        <https://r.example.org/all/http://a.dk/>; rel=\"timegate\",\n\
        <https://r.example.org/all/20000101000000/http://www.a.dk/>; rel=\"first memento\"; datetime=\"Sat, 01 Jan 2000 00:00:00 GMT\"; collection=\"all\",\n\
        <https://r.example.org/all/20050101000000/http://www.a.dk/>; rel=\"memento\"; datetime=\"Sat, 01 Jan 2005 00:00:00 GMT\"; collection=\"all\",\n\
        <https://r.example.org/all/20070601000000/http://www.a.dk/>; rel=\"last memento\"; datetime=\"Fri, 01 Jun 2007 00:00:00 GMT\"; collection=\"all\"\n";
    assert_eq!(time_map(TimeMapFormat::Link, None, &captures()), expected);
}

/// Fails if the pages of a TimeMap lose or repeat a capture, or do not name each other.
#[test]
fn pages_partition_a_time_map() {
    let times: Vec<Stamp> = captures().iter().map(|capture| capture.timestamp).collect();
    for (size, expected) in [
        (1, vec![1, 1, 1]),
        (2, vec![2, 1]),
        (3, vec![3]),
        (9, vec![3]),
        (0, vec![1, 1, 1]),
    ] {
        let pages = split_pages(times.clone(), size);
        let counts: Vec<u64> = pages.iter().map(|page| page.captures).collect();
        assert_eq!(counts, expected, "{size}");
        assert!(
            pages
                .iter()
                .zip(1..)
                .all(|(page, number)| page.number == number)
        );
        assert_eq!(
            (pages[0].from, pages[pages.len() - 1].until),
            (times[0], times[2])
        );
    }
    assert!(split_pages([], 3).is_empty());
    let all = split_pages(times, 2);
    let second = time_map(TimeMapFormat::Link, Some(all[1]), &captures()[2..]);
    assert!(
        second.contains("timemap/link/2/http://a.dk/>; rel=\"self\""),
        "{second}"
    );
    assert!(
        second.contains("from=\"Fri, 01 Jun 2007 00:00:00 GMT\"; until=\"Fri, 01 Jun 2007"),
        "{second}"
    );
    assert!(
        second.contains("rel=\"last memento\"") && !second.contains("first"),
        "{second}"
    );
    let addresses = addresses();
    let scope = TimeMapScope {
        first: all[0].from,
        last: all[1].until,
        page: None,
    };
    let mut index = String::new();
    let mut writer = TimeMapWriter::new(TimeMap {
        addresses: &addresses,
        collection: "all",
        url: "http://a.dk/",
        format: TimeMapFormat::Link,
        scope,
    });
    writer.begin_map(&mut index);
    for page in &all {
        writer.write_page(page, &mut index);
    }
    writer.end_map(&mut index);
    assert!(index.ends_with("timemap/link/2/http://a.dk/>; rel=\"timemap\"; type=\"application/link-format\"; from=\"Fri, 01 Jun 2007 00:00:00 GMT\"; until=\"Fri, 01 Jun 2007 00:00:00 GMT\"\n"), "{index}");
}

/// Fails if the other forms of TimeMaps are not those of pywb.
#[test]
fn json_and_cdxj_are_lines() {
    let one = &captures()[..1];
    assert_eq!(
        time_map(TimeMapFormat::Json, None, one),
        "{\"urlkey\":\"dk,a)/\",\"timestamp\":\"20000101000000\",\"url\":\"http://www.a.dk/\",\"mime\":\"text/html\",\"status\":\"200\",\"offset\":\"7\",\"filename\":\"x.warc.gz\",\"source-coll\":\"all\"}\n"
    );
    let cdxj = time_map(TimeMapFormat::Cdxj, None, one);
    assert!(cdxj.starts_with("dk,a)/ 20000101000000 {"), "{cdxj}");
    let read = archive_formats::cdx::Format::Cdxj
        .read_line(cdxj.trim_end())
        .unwrap();
    assert_eq!(read, one[0]);
}

/// Fails if a preference is not found among others, or an unknown one is claimed to be met.
#[test]
fn preferences_are_found_and_named() {
    for (value, expected) in [
        ("raw", Some(Preference::Raw)),
        ("respond-async, RAW; q=1", Some(Preference::Raw)),
        ("banner-only", Some(Preference::BannerOnly)),
        ("rewritten", Some(Preference::Rewritten)),
        (
            "original-content, original-links, original-headers",
            Some(Preference::OriginalContent),
        ),
        ("rawish", None),
        ("", None),
    ] {
        assert_eq!(
            Preference::read_preference([value.as_bytes()]),
            expected,
            "{value}"
        );
    }
    assert_eq!(Preference::read_preference([]), None);
    assert_eq!(
        Preference::Raw.applied_field(),
        ("Preference-Applied", "raw".to_owned())
    );
    assert_eq!(Preference::BannerOnly.modifier(), Modifier::Banner);
}

/// Fails if the line for a long URL is longer than clients read, or lacks more than the other captures.
#[test]
fn link_of_long_url_stays_readable() {
    let neighbours = Neighbours {
        this: stamp("20070601000000"),
        first: Some(stamp("20000101000000")),
        previous: Some(stamp("20010101000000")),
        next: Some(stamp("20080101000000")),
        last: Some(stamp("20090101000000")),
    };
    for (length, has_others) in [(100, true), (9_900, false)] {
        let url = format!("http://a.dk/{}", "x".repeat(length));
        let fields = memento_fields(&addresses(), &url, &neighbours);
        let (_, link) = fields.iter().find(|(name, _)| *name == "Link").unwrap();
        assert!(link.len() < 60 << 10, "{}", link.len());
        for relation in ["original", "timegate", "timemap", "memento"] {
            assert!(link.contains(&format!("rel=\"{relation}\"")), "{relation}");
        }
        for relation in ["first", "prev", "next", "last"] {
            let is_there = link.contains(&format!("rel=\"{relation} memento\""));
            assert_eq!(is_there, has_others, "{length} {relation}");
        }
    }
}

/// Fails if the line for a URL of escapes is longer than clients read, or names nothing.
#[test]
fn link_of_escaped_url_names_original() {
    let neighbours = Neighbours::alone(stamp("20070601000000"));
    for (count, has_gate) in [(3_000, true), (5_500, true), (9_980, false)] {
        let url = format!("http://a.dk/{}", "%C3".repeat(count));
        let original = format!("<{url}>; rel=\"original\"");
        let of_capture = memento_fields(&addresses(), &url, &neighbours);
        let of_nothing = empty_time_gate(&addresses(), &url);
        for fields in [&of_capture, &of_nothing] {
            let (_, link) = fields.iter().find(|(name, _)| *name == "Link").unwrap();
            assert!(link.len() <= 60 << 10, "{count}: {}", link.len());
            assert!(link.starts_with(&original), "{count}");
            assert_eq!(link.contains("rel=\"timegate\""), has_gate, "{count}");
        }
    }
}
