//! Lines of every form, read and written; bad lines, with their places.

use super::*;

const CDX9: &str = "com,example)/ 20140216050221 http://example.com/ text/html 200 3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ - 151 example.arc";
const CDX11: &str = "com,example)/ 20140216050221 http://example.com/ text/html 302 3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ http://b/ AF 1656 151 example.arc";
const CDX14: &str = "com,example)/ 20140216050221 http://example.com/ warc/revisit - 3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ - - 586 2621 b.warc.gz 1656 151 a.warc.gz";
const CDXJ: &str = r#"com,example)/ 20170306040206 {"url": "http://example.com/", "mime": "text/html", "status": "200", "digest": "sha1:G7HRM7BGOKSKMSXZAHMUQTTV53QOFSMK", "length": "1228", "offset": "784", "filename": "example.warc.gz"}"#;
const CDXJ_POST: &str = r#"org,httpbin)/post?__wb_method=post&foo=bar 20140610000859123 {"url": "http://httpbin.org/post", "mime": "application/json", "status": "200", "digest": "sha1:M532K5WS4GY2H4OVZO6HRPOP47A7KDWU", "length": "720", "offset": "0", "filename": "post-test.warc.gz", "requestBody": "foo=b\u00e4r&x=\ud83d\ude00\"\\\n", "method": "POST"}"#;
const NAS8: &str = "http://www.kb.dk/a 130.226.231.3 20080430204825 text/html 1234 1-2-20080430-00000.arc 5678 d41d8cd98f00b204e9800998ecf8427e";
const WGET: &str = "http://www.example.com/ 20140216050221 http://www.example.com/ text/html 200 3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ - - 151 a.warc.gz <urn:uuid:1>";

fn forms() -> Vec<(Format, &'static str)> {
    let wget = Format::sniff_line(" CDX a b a m s k r M V g u").unwrap();
    let nas7 = NAS8.rsplit_once(' ').unwrap().0;
    vec![
        (Format::cdx9(), CDX9),
        (Format::cdx11(), CDX11),
        (Format::cdx14(), CDX14),
        (Format::Cdxj, CDXJ),
        (Format::Cdxj, CDXJ_POST),
        (Format::netarchive_suite(true), NAS8),
        (Format::netarchive_suite(false), nas7),
        (wget, WGET),
    ]
}

fn captures(text: &str) -> Vec<Result<Capture, String>> {
    CdxReader::new(text.as_bytes(), 1 << 20)
        .map(|c| c.map_err(|e| e.to_string()))
        .collect()
}

/// Fails if a line of an index changes when it is read and written in the same form.
#[test]
fn index_line_is_written_as_read() {
    for (format, line) in forms() {
        let capture = format.read_line(line).unwrap();
        assert_eq!(format.write_line(&capture), line);
        let mut file = Vec::new();
        let mut writer = CdxWriter::new(&mut file, format.clone()).unwrap();
        writer.write(&capture).unwrap();
        writer.finish().unwrap();
        let read: Vec<_> = CdxReader::new(file.as_slice(), 1 << 20)
            .map(Result::unwrap)
            .collect();
        assert_eq!(read, [capture], "{line}");
    }
}

/// Fails if one form of index is taken for another, or the delimiter that the header names is ignored.
#[test]
fn first_line_decides_the_form() {
    for (format, line) in forms() {
        let sniffed = match format.header() {
            Some(header) => Format::sniff_line(&header).unwrap(),
            None => Format::sniff_line(line).unwrap(),
        };
        assert_eq!(sniffed, format, "{line}");
    }
    assert_eq!(Format::sniff_line("!meta {\"a\": 1}"), Ok(Format::Cdxj));
    assert_eq!(
        Format::sniff_line("a b c"),
        Err(InvalidLine::Unknown { fields: 3 })
    );
    let twelve = Format::sniff_line("\tCDX\tN\tb\ta").unwrap();
    assert_eq!(twelve.header().as_deref(), Some("\tCDX\tN\tb\ta"));
    assert_eq!(
        twelve
            .read_line("k\t20140216050221\thttp://a b/")
            .unwrap()
            .original
            .as_deref(),
        Some("http://a b/")
    );
}

/// Fails if a CDX header with a wrong letter or delimiter is accepted, or one without a key or a date.
#[test]
fn headers_that_are_none_say_why() {
    let check = |line, why| {
        assert_eq!(
            Format::sniff_line(line),
            Err(InvalidLine::Legend(why)),
            "{line}"
        );
    };
    check(" CDX N b bb", InvalidLegend::NoLetter("bb".into()));
    check(" CDX N b  a", InvalidLegend::NoLetter(String::new()));
    check(" CDX N a", InvalidLegend::Missing("date (b)"));
    check(" CDX b m", InvalidLegend::Missing("key (N) and no URL (a)"));
    check("xCDXxNxb", InvalidLegend::Delimiter('x'));
    check(
        &format!(" CDX{}", " N".repeat(65)),
        InvalidLegend::TooMany(65),
    );
}

/// Fails if a field goes into the place of another one when a capture is read, or is lost when it is written in another
/// form.
#[test]
fn fields_go_where_they_belong() {
    let capture = Format::cdx14().read_line(CDX14).unwrap();
    assert_eq!(
        (capture.status, capture.length, capture.offset),
        (None, Some(586), Some(2621))
    );
    let original = capture.original_record.clone().unwrap();
    assert_eq!(
        (original.length, original.offset, original.file.as_deref()),
        (Some(1656), Some(151), Some("a.warc.gz"))
    );
    let json = Format::Cdxj.write_line(&capture);
    assert!(json.contains(r#""filename": "b.warc.gz", "orig.length": "1656", "orig.offset": "151", "orig.filename": "a.warc.gz""#));
    assert_eq!(Format::Cdxj.read_line(&json), Ok(capture));

    let capture = Format::netarchive_suite(true).read_line(NAS8).unwrap();
    assert_eq!(capture.key, "dk,kb)/a");
    assert_eq!(
        capture.digest.as_deref(),
        Some("md5:d41d8cd98f00b204e9800998ecf8427e")
    );
    assert_eq!(capture.extra("e"), Some("130.226.231.3"));

    let capture = Format::Cdxj.read_line(CDXJ_POST).unwrap();
    assert_eq!(
        (capture.extra("method"), capture.timestamp.has_millis()),
        (Some("POST"), true)
    );
    assert_eq!(
        capture.extra("requestBody"),
        Some("foo=b\u{e4}r&x=\u{1f600}\"\\\n")
    );

    let capture = Format::Cdxj.read_line(CDXJ).unwrap();
    assert_eq!(
        Format::cdx11().write_line(&capture),
        "com,example)/ 20170306040206 http://example.com/ text/html 200 G7HRM7BGOKSKMSXZAHMUQTTV53QOFSMK - - 1228 784 example.warc.gz"
    );
}

/// Fails if a blank or a line end in a value splits a CDX line, or an empty value leaves its column out.
#[test]
fn blanks_in_fields_are_escaped() {
    let mut capture = Capture::new("a b", "20140216050221".parse().unwrap());
    capture.original = Some("http://a/b c\td\ne\u{e9}".into());
    capture.file = Some(String::new());
    assert_eq!(
        Format::cdx9().write_line(&capture),
        "a%20b 20140216050221 http://a/b%20c%09d%0Ae\u{e9} - - - - - -"
    );
}

/// Fails if a JSON number is refused because most indexes write a string, or a null becomes a value.
#[test]
fn numbers_in_json_are_read_too() {
    let line = r#"a 20140216050221 {"url": "u", "status": 200, "length": 5, "offset": 0, "x": [1, null], "y": null}"#;
    let capture = Format::Cdxj.read_line(line).unwrap();
    assert_eq!(
        (capture.status, capture.length, capture.offset),
        (Some(200), Some(5), Some(0))
    );
    assert_eq!(
        (capture.extra("x"), capture.extra("y")),
        (Some("[1,null]"), None)
    );
}

/// Fails if a bad line ends the reading of an index, or is reported with another number or offset.
#[test]
fn bad_lines_are_located_and_others_read() {
    let file = format!(
        " CDX N b a m s k r V g\n{CDX9}\nshort\n{CDX9} more\n{}\n\n{}\r\n{CDX9}",
        CDX9.replace("0216", "0231"),
        CDX9.replace("151", "-5")
    );
    let read = captures(&file);
    assert_eq!(read.len(), 6);
    assert!(read[0].is_ok() && read[5].is_ok());
    let messages: Vec<_> = read.into_iter().filter_map(Result::err).collect();
    let place = |n: usize| file.match_indices('\n').nth(n).unwrap().0 + 1;
    assert_eq!(
        messages[0],
        format!("line 3 (byte {}): 1 fields where the form has 9", place(1))
    );
    assert_eq!(
        messages[1],
        format!("line 4 (byte {}): 10 fields where the form has 9", place(2))
    );
    assert_eq!(
        messages[2],
        format!(
            "line 5 (byte {}): timestamp: day 31 does not exist",
            place(3)
        )
    );
    assert_eq!(
        messages[3],
        format!("line 7 (byte {}): offset is no number: \"-5\"", place(5))
    );
}

/// Fails if a line of exactly the limit is refused, a longer one is read, or the line behind that is lost.
#[test]
fn only_lines_beyond_the_limit_are_lost() {
    let file = format!("{CDX9}\n{}\n{CDX9}\n", "x".repeat(1 << 20));
    let read: Vec<_> = CdxReader::with_format(file.as_bytes(), 200, Format::cdx9()).collect();
    assert_eq!(read.len(), 3);
    assert!(matches!(
        &read[1],
        Err(ReadLineError::Line(BadLine {
            number: 2,
            why: InvalidLine::TooLong { limit: 200 },
            ..
        }))
    ));
    assert!(read[2].is_ok());
    let exact: Vec<_> =
        CdxReader::with_format(CDX9.as_bytes(), CDX9.len(), Format::cdx9()).collect();
    assert!(exact[0].is_ok());
    let short: Vec<_> =
        CdxReader::with_format(CDX9.as_bytes(), CDX9.len() - 1, Format::cdx9()).collect();
    assert!(short[0].is_err() && short.len() == 1);
}

/// Fails if an index line that is not UTF-8 is repaired silently, or the error names another byte.
#[test]
fn non_utf8_line_is_refused_with_position() {
    let mut file = CDX9.as_bytes().to_vec();
    file[20] = 0xff;
    let read: Vec<_> = CdxReader::with_format(file.as_slice(), 1000, Format::cdx9()).collect();
    assert!(matches!(
        &read[0],
        Err(ReadLineError::Line(BadLine {
            why: InvalidLine::NotUtf8 { at: 20 },
            ..
        }))
    ));
}

/// Fails if a cut or changed index line makes the reader panic, or gives a capture that changes when it is written and
/// read.
#[test]
fn cut_and_changed_lines_never_panic() {
    for (format, line) in forms() {
        let bytes = line.as_bytes();
        for cut in 0..=bytes.len() {
            let _taken = captures(&line[..cut]).len();
            for byte in [0, b' ', b'-', b'{', b'"', b'\\', b'9', b'!', b'\n', 0x7f] {
                let mut changed = bytes.to_vec();
                if let Some(place) = changed.get_mut(cut) {
                    *place = byte;
                }
                let text = String::from_utf8(changed).unwrap();
                let _taken = captures(&text).len();
                let Ok(capture) = format.read_line(&text) else {
                    continue;
                };
                let written = format.write_line(&capture);
                assert_eq!(
                    format.read_line(&written).map(|c| format.write_line(&c)),
                    Ok(written),
                    "{text}"
                );
            }
        }
    }
}

/// Fails if a line of an index that another project published is refused, or changes when it is written again.
#[test]
fn samples_of_the_field_go_round() {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let data = here.ancestors().map(|a| a.join("shared/data"));
    let Some(root) = data.into_iter().find(|place| place.is_dir()) else {
        tools_testing::skipped("no folder shared/data with sample files is above this one");
        return;
    };
    let check = |name: &str, good: usize| {
        let text = std::fs::read(root.join(name)).unwrap();
        let mut reader = CdxReader::new(text.as_slice(), 1 << 20);
        let read: Vec<_> = reader.by_ref().collect();
        let bad: Vec<_> = read
            .iter()
            .filter_map(|r| r.as_ref().err())
            .map(ToString::to_string)
            .collect();
        assert!(bad.is_empty(), "{name}: {bad:?}");
        assert_eq!(read.len(), good, "{name}");
        let format = reader.format().unwrap();
        let written: Vec<_> = read
            .iter()
            .flatten()
            .map(|c| format.write_line(c))
            .collect();
        let text = str::from_utf8(&text).unwrap();
        let is_capture = |line: &&str| !line.starts_with(['!', ' ']);
        let lines: Vec<_> = text.lines().filter(is_capture).collect();
        assert_eq!(written, lines, "{name}");
    };
    check(
        "netarchivesuite_solrwayback/IAH-20080430204825-00000-blackbook.warc.gz.cdx",
        822,
    );
    check("oduwsdl_ipwb/sample-1.cdxj", 65);
    check("oduwsdl_ipwb/salam-home.cdxj", 1);
}
