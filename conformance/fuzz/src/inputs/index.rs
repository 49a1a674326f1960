//! Lines of indexes, and what stands in them: keys, dates, digests, bodies of requests.

use archive_formats::cdx::{CdxReader, Format};
use archive_formats::date::{DateReading, Fill, Stamp, WarcDate};
use archive_formats::digest::{Algorithm, Digest};
use archive_formats::post;
use archive_formats::surt::UrlKey;

pub(super) fn cdx_seeds() -> Vec<Vec<u8>> {
    [
        " CDX N b a m s k r M S V g\ncom,example)/ 20140216050221 http://example.com/ text/html 302 3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ http://b/ AF 1656 151 example.arc\n",
        "com,example)/ 20140216050221 http://example.com/ warc/revisit - 3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ - - 586 2621 b.warc.gz 1656 151 a.warc.gz\n",
        "org,httpbin)/post?__wb_method=post&foo=bar 20140610000859123 {\"url\": \"http://httpbin.org/post\", \"mime\": \"application/json\", \"status\": \"200\", \"digest\": \"sha1:M532K5WS4GY2H4OVZO6HRPOP47A7KDWU\", \"length\": 720, \"offset\": \"0\", \"filename\": \"post-test.warc.gz\", \"requestBody\": \"foo=b\\u00e4r&x=\\ud83d\\ude00\\\"\\\\\\n\", \"method\": \"POST\", \"n\": null, \"m\": [1, 2.5, {\"a\": true}]}\n",
        "http://www.kb.dk/a 130.226.231.3 20080430204825 text/html 1234 1-2-20080430-00000.arc 5678 d41d8cd98f00b204e9800998ecf8427e\n",
        " CDX a b a m s k r M V g u\nhttp://www.example.com/ 20140216050221 http://www.example.com/ text/html 200 3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ - - 151 a.warc.gz <urn:uuid:1>\n",
        "!meta 0 {\"format\": \"cdxj-gzip-1.0\", \"filename\": \"index.cdx.gz\"}\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}

/// Writes every line that reads, which must read back the same.
pub(super) fn cdx(input: &[u8]) {
    let mut reader = CdxReader::new(input, 1 << 16);
    let captures: Vec<_> = reader.by_ref().filter_map(Result::ok).collect();
    if let Some(format) = reader.format() {
        for capture in &captures {
            again(format, capture);
        }
    }
    let forms = [
        Format::Cdxj,
        Format::cdx9(),
        Format::cdx11(),
        Format::cdx14(),
        Format::netarchive_suite(true),
    ];
    for capture in &captures {
        for format in &forms {
            again(format, capture);
        }
    }
    let text = String::from_utf8_lossy(input);
    for line in text.lines() {
        for format in &forms {
            if let Ok(capture) = format.read_line(line) {
                again(format, &capture);
            }
        }
    }
}

fn again(format: &Format, capture: &archive_formats::cdx::Capture) {
    let line = format.write_line(capture);
    assert!(!line.contains(['\n', '\r']), "one line: {line:?}");
    // A form that has no place for a field leaves it out; what it wrote once it writes again.
    if let Ok(read) = format.read_line(&line) {
        assert_eq!(format.write_line(&read), line, "{format:?}");
    }
}

pub(super) fn surt_seeds() -> Vec<Vec<u8>> {
    [
        "http://www1.Example.COM:80/a//b/../%7Ec;jsessionid=1?b=2&a=1&PHPSESSID=0123456789abcdef0123456789abcdef#f",
        "https://user:pass@127.0.0.1:9202/a b?x=%252f",
        "dns:example.org",
        "http://\u{e6}\u{f8}\u{e5}.dk/\u{1f600}?q=\u{fffd}",
        "http://[::1]:80/",
        "http://0x7f.1/(S(abcdefghijklmnopqrstuvwx))/a.aspx?",
        "mailto:a@b.c",
        "filedesc://a.arc",
        "urn:uuid:1",
        "a.b:8080/c",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}

/// Any bytes give a key that stands in a line; spelling that does not matter does not matter.
pub(super) fn surt(input: &[u8]) {
    let key = UrlKey::parse(input);
    assert!(!key.as_str().is_empty());
    assert!(
        key.as_str().bytes().all(|byte| byte.is_ascii_graphic()),
        "{key}"
    );
    assert_eq!(UrlKey::parse(input), key, "repeatable");
    let around = [b" \t", input, b"\r\n"].concat();
    assert_eq!(UrlKey::parse(around), key, "blanks around do not count");
}

pub(super) fn date_seeds() -> Vec<Vec<u8>> {
    [
        "2026-11-21T19:14:09.123456Z",
        "2016",
        "2016-02-29",
        "2016-12-31T23:59:60Z",
        "9999-12-31T23:59:59.999999999Z",
        "2026-11-21 19:14:09+01:00",
        "20080430204825",
        "20080430204825123",
        "200804302048",
        "20161",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}

pub(super) fn date(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let strict = WarcDate::read_date(&text, DateReading::Strict);
    let lenient = WarcDate::read_date(&text, DateReading::Lenient);
    if let Ok(date) = &strict {
        assert_eq!(date.as_str(), text, "kept as it is");
        assert_eq!(
            lenient.as_ref(),
            Ok(date),
            "what is right reads the same everywhere"
        );
        // The last day of the year 9999 has no moment of its own.
        if *text < *"9999-12-30" {
            let written = WarcDate::from_time(date.time(), date.precision());
            assert_eq!(
                (written.time(), written.precision()),
                (date.time(), date.precision())
            );
        }
    }
    if let Ok(date) = &lenient {
        let stamp = date.stamp();
        assert_eq!(stamp.to_string().parse::<Stamp>(), Ok(stamp));
    }
    if let (Ok(first), Ok(last)) = (
        Stamp::from_query(&text, Fill::First),
        Stamp::from_query(&text, Fill::Last),
    ) {
        assert!(first <= last, "{first} {last}");
    }
    let _old = Stamp::from_arc(&text);
}

pub(super) fn digest_seeds() -> Vec<Vec<u8>> {
    [
        "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ",
        "sha1:da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "sha256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
        "sha-512:cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e",
        "md5:1B2M2Y8AsgTpgAmY7PhCfg==",
        "blake3:af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
        "x:y",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}

pub(super) fn digest(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    if let Ok(digest) = text.parse::<Digest>() {
        assert_eq!(digest.as_str(), text, "kept as it is");
        if let Some(value) = digest.value() {
            let again: Digest = value.to_string().parse().unwrap();
            assert_eq!(again.value(), Some(value));
            let hex = Digest::parse_unlabelled(&value.hex_text(), value.algorithm()).unwrap();
            assert_eq!(hex.value(), Some(value));
        }
    }
    for algorithm in Algorithm::ALL {
        if let Ok(digest) = Digest::parse_unlabelled(&text, algorithm) {
            assert_eq!(digest.algorithm(), Some(algorithm));
        }
    }
}

const TYPES: [&str; 6] = [
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=b",
    "application/json",
    "text/plain",
    "application/x-amf",
    "",
];

pub(super) fn post_seeds() -> Vec<Vec<u8>> {
    [
        "\0a b+c=d%20e&x",
        "\u{1}--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nvalue\r\n--b\r\nContent-Disposition: form-data; name=f; filename=x\r\n\r\n\0\r\n--b--\r\n",
        "\u{2}{\"a\": [1, -0, 1e400, true, null, {\"b\": \"c\", \"a\": 2.50}], \"a\": \"\\ud800\"}",
        "\u{3}{\"a\": 1}\n{\"b\": 2}",
        "\u{4}any",
        "\u{5}[[[[]]]]",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}

/// The first byte chooses the type of the body.
pub(super) fn post(input: &[u8]) {
    let (&kind, body) = input.split_first().unwrap_or((&0, &[]));
    let kind = TYPES[usize::from(kind) % TYPES.len()];
    let url = "http://a.b/c?d#e";
    let appended = post::append_post_query(url, "POST", Some(kind.as_bytes()), body).unwrap();
    assert!(appended.body.chars().count() <= post::MAX_QUERY);
    assert!(appended.url.starts_with("http://a.b/c?d&__wb_method=POST"));
    assert!(appended.url.ends_with("#e"));
    let key = UrlKey::parse(&appended.url);
    assert!(key.as_str().contains("__wb_method=post"), "{key}");
    let text = String::from_utf8_lossy(body);
    for method in ["GET", "", "PUT", "HEAD", &text] {
        let _appended = post::append_post_query(&text, method, Some(body), body);
    }
}
