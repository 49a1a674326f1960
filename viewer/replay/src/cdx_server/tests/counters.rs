//! Columns that are computed: duplicates, skipped captures, originals of revisits.

use super::*;

/// Fails if duplicates are counted wrongly, or a revisit keeps its type though its original is known.
#[test]
fn dupe_count_counts_equal_digests() {
    let expected = "text/html AAA 0\ntext/html BBB 0\ntext/html BBB 1\ntext/html CCC 0\n";
    let answer = serve(
        Dialect::Wayback,
        "url=example.org&fl=mimetype,digest&showDupeCount=true",
    );
    assert_eq!(answer, expected);
    let header = serve(
        Dialect::Wayback,
        "url=example.org&fl=digest&showDupeCount=true&output=json&limit=1",
    );
    assert_eq!(header, "[[\"digest\",\"dupecount\"],\n[\"AAA\",\"0\"]]\n");
}

/// Fails if skipped captures are lost from the count, whether collapsed or filtered.
#[test]
fn skip_count_counts_what_is_left_out() {
    let url = "url=example.org&fl=timestamp&showSkipCount=true";
    assert_eq!(
        serve(
            Dialect::Wayback,
            &format!("{url}&collapse=timestamp:4&lastSkipTimestamp=true")
        ),
        "20140101000000 1 20140102000000\n20150102000000 0 -\n20160102000000 0 -\n"
    );
    assert_eq!(
        serve(
            Dialect::Wayback,
            &format!("{url}&filter=!mimetype:warc/revisit")
        ),
        "20140101000000 0\n20140102000000 1\n20160102000000 0\n"
    );
}

/// Fails if a revisit does not have the place of its original, or another capture does.
#[test]
fn revisits_have_place_of_original() {
    let rows = serve(
        Dialect::Wayback,
        "url=example.org&resolveRevisits=true&from=20140102",
    );
    assert_eq!(
        rows,
        "org,example)/ 20140102000000 http://www.example.org/ text/html 200 BBB 500 - - -\n\
         org,example)/ 20150102000000 http://www.example.org/ warc/revisit 200 BBB 300 500 400 a.warc.gz\n\
         org,example)/ 20160102000000 http://www.example.org/ text/html 200 CCC 510 - - -\n"
    );
    let line = serve(
        Dialect::Pywb,
        "url=example.org&resolveRevisits=true&fl=status,orig.filename,orig.offset&filter=mime:revisit",
    );
    // The original was filtered out: nothing in the answer names it.
    assert_eq!(line, "org,example)/ 20150102000000 {\"status\": \"200\"}\n");
    let lines = serve(
        Dialect::Pywb,
        "url=example.org&resolveRevisits=true&to=2015",
    );
    let last = lines.lines().last().unwrap();
    assert!(
        last.ends_with(
            "\"orig.length\": \"500\", \"orig.offset\": \"400\", \"orig.filename\": \"a.warc.gz\"}"
        ),
        "{last}"
    );
    let first = lines.lines().next().unwrap();
    assert!(
        first
            .ends_with("\"orig.length\": \"-\", \"orig.offset\": \"-\", \"orig.filename\": \"-\"}"),
        "{first}"
    );
}

/// Fails if an answer with more digests than are remembered counts wrongly instead of breaking off.
#[test]
fn too_many_digests_break_answer_off() {
    let request = parse(Dialect::Wayback, "url=org/*&showDupeCount=true").unwrap();
    let mut writer = AnswerWriter::new(&request, &context(), std::io::sink());
    let mut capture = captures()[0].clone();
    for n in 0..MAX_DIGESTS {
        capture.digest = Some(n.to_string());
        writer.push_capture(capture.clone()).unwrap();
    }
    writer.push_capture(capture.clone()).unwrap();
    capture.digest = Some("one more".to_owned());
    assert!(matches!(
        writer.push_capture(capture),
        Err(AnswerError::TooManyDigests)
    ));
}

/// Fails if a capture that lacks a digest is taken for the duplicate of another.
#[test]
fn captures_without_digest_are_no_duplicates() {
    let mut all = captures();
    for capture in &mut all {
        capture.digest = None;
    }
    let query = "url=example.org&fl=digest&showDupeCount=true&limit=2";
    assert_eq!(
        serve_over(&all, Dialect::Wayback, query).unwrap(),
        "- 0\n- 0\n"
    );
}
