//! An index byte for byte, and which lines of metadata make it.

use super::*;

const CAPTURE: &str = r#"dk,b)/ 20260102030507 {"url": "http://b.dk/æ b", "mime": "image/png", "status": "200", "digest": "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ", "length": 812, "offset": "4711", "filename": "2-1.warc.gz", "record-id": "urn:uuid:1", "etag": "\"7\"", "last-modified": "Fri, 02 Jan 2026 03:04:05 GMT", "new": {"a": [1]}}"#;

/// Fails if the file is not what `FORMAT.md` says, or a key of a captures record gets lost.
#[test]
fn index_is_byte_for_byte_as_documented() {
    let nas = Metadata::job(1)
        .log(&[
            log_line("http://a.dk/", 4, "one", "3t"),
            log_line("dns:a.dk", 4, "one", "-"),
        ])
        .cdx(&[cdx_line("http://a.dk/", 4, "1-1.arc", 77)]);
    let ours = Metadata::job(2).captures(&[CAPTURE.to_owned()]);
    let built = BuiltIndex::new(&[nas.plain(), ours.gzip()]);
    built.assert_no_problem();
    assert_eq!((built.report.files, built.report.lines), (2, 4));
    let text = built.text();
    let (body, seal) = text.split_at(text.len() - 73);
    assert_eq!(
        body,
        r#"!holdfast-dedup/1
http://a.dk/ 20260102030004 {"url": "http://a.dk/", "mime": "text/html", "status": "200", "digest": "sha1:7YC3ZXG4JEUACJ4BUXY2FJ34XNJZRYIG", "length": "99", "offset": "77", "filename": "1-1.arc"}
http://b.dk/æ%20b 20260102030507 {"url": "http://b.dk/\u00e6 b", "mime": "image/png", "status": "200", "digest": "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ", "length": "812", "offset": "4711", "filename": "2-1.warc.gz", "record-id": "urn:uuid:1", "etag": "\"7\"", "last-modified": "Fri, 02 Jan 2026 03:04:05 GMT"}
sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ ac8a554fc78d8b71 20260102030507 00000000000000000214
sha1:7YC3ZXG4JEUACJ4BUXY2FJ34XNJZRYIG b47d50945c5e25f0 20260102030004 00000000000000000018
example.org 00000000000000000001
example.org 00000000000000000002
!by-url 00000000000000000018 00000000000000000002
!by-digest 00000000000000000525 00000000000000000002
!of-jobs 00000000000000000707 00000000000000000002
!end 00000000000000001026
"#
    );
    assert_eq!(seal, format!("!blake3 {}\n", blake3::hash(body.as_bytes())));
    let index = built.index();
    assert_eq!(index.list_jobs().unwrap(), [1, 2]);
    let earlier = index.latest_by_url("http://b.dk/æ b").unwrap().unwrap();
    assert_eq!(earlier.uri, "http://b.dk/æ b");
    assert_eq!(earlier.time.to_string(), "20260102030507");
    assert_eq!(earlier.record_id.as_deref(), Some("urn:uuid:1"));
    assert_eq!(earlier.etag.as_deref(), Some("\"7\""));
    let modified = earlier.last_modified.as_deref();
    assert_eq!(modified, Some("Fri, 02 Jan 2026 03:04:05 GMT"));
    assert_eq!((earlier.status, earlier.offset), (Some(200), 4711));
}

/// Fails if two captures of a URL in one job get one place, as NetarchiveSuite gave them.
#[test]
fn captures_of_one_url_keep_their_seconds() {
    let url = "http://a.dk/";
    let metadata = Metadata::job(1)
        .log(&[log_line(url, 9, "two", "-"), log_line(url, 4, "one", "-")])
        .cdx(&[cdx_line(url, 4, "f", 1), cdx_line(url, 9, "f", 2)]);
    let built = BuiltIndex::new(&[metadata.plain()]);
    assert_eq!(built.place(url, "one"), Some(("f".to_owned(), 1)));
    assert_eq!(built.place(url, "two"), Some(("f".to_owned(), 2)));
    let latest = built.index().latest_by_url(url).unwrap().unwrap();
    assert_eq!(latest.offset, 2);
}

/// Fails if a line without a record of its second takes one that another line has, or that of another job.
#[test]
fn other_seconds_take_latest_free_record() {
    let url = "http://a.dk/";
    let metadata = Metadata::job(1)
        .log(&[
            log_line(url, 2, "early", "-"),
            log_line(url, 4, "exact", "-"),
            log_line(url, 7, "late", "-"),
        ])
        .cdx(&[
            cdx_line(url, 3, "f", 3),
            cdx_line(url, 4, "f", 4),
            cdx_line(url, 6, "f", 6),
        ]);
    let alone = Metadata::job(2).log(&[log_line(url, 5, "alone", "-")]);
    let built = BuiltIndex::new(&[metadata.plain(), alone.plain()]);
    for (payload, offset) in [("early", 3), ("exact", 4), ("late", 6)] {
        let place = Some(("f".to_owned(), offset));
        assert_eq!(built.place(url, payload), place, "{payload}");
    }
    assert_eq!(built.place(url, "alone"), None);
    assert_eq!(built.report.without_record, 1);
}

/// Fails if a log is read although the captures of its job are there, whose places are certain.
#[test]
fn captures_record_replaces_log_and_cdx() {
    let url = "http://b.dk/other";
    let metadata = Metadata::job(2)
        .log(&[log_line(url, 4, "one", "-")])
        .cdx(&[cdx_line(url, 4, "f", 1)])
        .captures(&[CAPTURE.to_owned()]);
    let built = BuiltIndex::new(&[metadata.plain()]);
    built.assert_no_problem();
    assert_eq!(built.place(url, "one"), None);
    assert_eq!(built.report.captures, 1);
}

/// Fails if the fields that our crawls write are not read in each spelling.
#[test]
fn spellings_of_captures_fields_are_read() {
    let line = CAPTURE.replace("record-id", "recordId");
    let line = line.replace("last-modified", "lastModified");
    let spelled = BuiltIndex::new(&[Metadata::job(1).captures(&[line]).plain()]);
    let documented = Metadata::job(1).captures(&[CAPTURE.to_owned()]);
    assert_eq!(
        spelled.text(),
        BuiltIndex::new(&[documented.plain()]).text()
    );
}

/// Fails if one whole captures record hides the log of a job whose other one is damaged or cut off.
#[test]
fn log_is_read_unless_all_captures_are_whole() {
    let url = "http://a.dk/";
    let whole = Metadata::job(1)
        .log(&[log_line(url, 4, "one", "-")])
        .cdx(&[cdx_line(url, 4, "f", 1)])
        .captures(&[CAPTURE.to_owned()])
        .captures(&[CAPTURE.replace("4711", "4712")]);
    let (name, bytes) = whole.plain();
    let built = BuiltIndex::new(&[(name.clone(), bytes.clone())]);
    assert_eq!(built.place(url, "one"), None);
    let mut changed = bytes.clone();
    let at = bytes.windows(4).rposition(|part| part == b"4712").unwrap();
    changed[at] = b'5';
    for damaged in [changed, bytes[..at].to_vec()] {
        let built = BuiltIndex::new(&[(name.clone(), damaged)]);
        assert_eq!(built.place(url, "one"), Some(("f".to_owned(), 1)));
        let ours = built.index().latest_by_url("http://b.dk/æ b").unwrap();
        assert_eq!(ours.unwrap().offset, 4711);
    }
}

/// Fails if a revisit or a line without a digest gets into the index, by whatever sign it is known.
#[test]
fn revisits_are_never_in_index() {
    let place = |offset: &str| CAPTURE.replace("4711", offset).replace("b.dk/", offset);
    let revisit = place("1").replace("image/png", "warc/revisit");
    let referring = place("2").replace("\"new\"", "\"orig.filename\": \"x\", \"new\"");
    let unmodified = place("3").replace("\"200\"", "\"304\"");
    let url = "http://a.dk/";
    let other = "http://a.dk/2";
    let nas = Metadata::job(1)
        .log(&[
            log_line(url, 4, "one", "duplicate:digest"),
            log_line(other, 5, "two", "2t,warcRevisit:digest"),
            log_line("http://a.dk/3", 6, "three", "-").replace(" 200 ", " 304 "),
        ])
        .cdx(&[
            cdx_line(url, 4, "f", 1),
            cdx_line(other, 5, "f", 2),
            cdx_line("http://a.dk/3", 6, "f", 3),
        ]);
    let undigested = place("4").replace("3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ", "-");
    let ours = Metadata::job(2).captures(&[revisit, referring, unmodified, undigested]);
    let built = BuiltIndex::new(&[nas.plain(), ours.plain()]);
    built.assert_no_problem();
    assert_eq!(built.report.captures, 0, "{}", built.text());
}

/// Fails if an index of nothing cannot be read, or answers.
#[test]
fn empty_index_answers_nothing() {
    let built = BuiltIndex::new(&[]);
    let index = built.index();
    assert_eq!(index.count_captures(), 0);
    assert_eq!(index.latest_by_url("http://a.dk/").unwrap(), None);
    assert_eq!(index.by_digest(&sha1("x")).unwrap(), None);
    let found = index.by_url_and_digest("http://a.dk/", &sha1("x"));
    assert_eq!(found.unwrap(), None);
}

/// Fails if ARC metadata of old jobs is not read.
#[test]
fn arc_metadata_is_read() {
    let about = "1 0 Test\nURL IP-address Archive-date Content-type Archive-length\n";
    let head = format!(
        "filedesc://1.arc 0.0.0.0 20260102030000 text/plain {}\n",
        about.len()
    );
    let mut file = (head + about + "\n").into_bytes();
    let mut add = |path: &str, text: String| {
        let uri = format!("metadata://example.org/crawl/{path}&jobid=1");
        let head = format!("{uri} 127.0.0.1 20260102030000 text/plain {}\n", text.len());
        file.extend_from_slice(head.as_bytes());
        file.extend_from_slice(text.as_bytes());
        file.push(b'\n');
    };
    let url = "http://a.dk/";
    add(
        "logs/crawl.log?harvestid=1",
        log_line(url, 4, "one", "-") + "\n",
    );
    add("index/cdx?harvestid=1", cdx_line(url, 4, "f", 1) + "\n");
    let built = BuiltIndex::new(&[("1-metadata-1.arc".to_owned(), file)]);
    built.assert_no_problem();
    assert_eq!(built.place(url, "one"), Some(("f".to_owned(), 1)));
}
