//! Each form, letter by letter; and how it breaks off.

use tools_testing::FullDisk;

use super::*;

fn check(dialect: Dialect, query: &str, expected: &str) {
    assert_eq!(serve(dialect, query), expected, "{dialect:?} {query}");
}

/// Fails if CDXJ, lines of JSON or text change for pywb's clients.
#[test]
fn pywb_forms_are_written() {
    let url = "url=example.org/a";
    check(
        Dialect::Pywb,
        url,
        "org,example)/a 20140102000001 {\"url\": \"http://example.org/a\", \"mime\": \"image/png\", \"status\": \"200\", \"digest\": \"DDD\", \"length\": \"600\", \"offset\": \"900\", \"filename\": \"a.warc.gz\"}\n",
    );
    check(
        Dialect::Pywb,
        &format!("{url}&output=json"),
        "{\"urlkey\": \"org,example)/a\", \"timestamp\": \"20140102000001\", \"url\": \"http://example.org/a\", \"mime\": \"image/png\", \"status\": \"200\", \"digest\": \"DDD\", \"length\": \"600\", \"offset\": \"900\", \"filename\": \"a.warc.gz\"}\n",
    );
    check(
        Dialect::Pywb,
        &format!("{url}&output=json&fl=timestamp,original,redirect,nothing"),
        "{\"timestamp\": \"20140102000001\", \"original\": \"http://example.org/a\"}\n",
    );
    check(
        Dialect::Pywb,
        &format!("{url}&fields=urlkey,status,s"),
        "org,example)/a 20140102000001 {\"status\": \"200\", \"s\": \"200\"}\n",
    );
    check(
        Dialect::Pywb,
        &format!("{url}&output=text"),
        "org,example)/a 20140102000001 http://example.org/a image/png 200 DDD 600 900 a.warc.gz\n",
    );
    check(
        Dialect::Pywb,
        "url=other.org&output=text&fl=timestamp,mime,status,nothing",
        "20140102000005 - - -\n",
    );
    check(Dialect::Pywb, "url=nothing.org&output=json", "");
}

/// Fails if a TimeMap of pywb's clients is no link format.
#[test]
fn link_form_is_a_timemap() {
    check(
        Dialect::Pywb,
        "url=http://example.org/a&output=link",
        "<http://example.org/a>; rel=\"original\",\n<https://archive.example/all/20140102000001/http://example.org/a>; rel=\"memento\"; datetime=\"Thu, 02 Jan 2014 00:00:01 GMT\"\n",
    );
    check(
        Dialect::Pywb,
        "url=http://a.org/%3Cb%3E%20%E6&output=link",
        "<http://a.org/%3Cb%3E%20%E6>; rel=\"original\"\n",
    );
}

/// Fails if text or JSON changes for the clients of the Wayback server.
#[test]
fn wayback_forms_are_written() {
    let url = "url=example.org&limit=2";
    check(
        Dialect::Wayback,
        url,
        "org,example)/ 20140101000000 http://example.org/ text/html 301 AAA 400\norg,example)/ 20140102000000 http://www.example.org/ text/html 200 BBB 500\n",
    );
    check(
        Dialect::Wayback,
        &format!("{url}&output=json"),
        "[[\"urlkey\",\"timestamp\",\"original\",\"mimetype\",\"statuscode\",\"digest\",\"length\"],\n[\"org,example)/\",\"20140101000000\",\"http://example.org/\",\"text/html\",\"301\",\"AAA\",\"400\"],\n[\"org,example)/\",\"20140102000000\",\"http://www.example.org/\",\"text/html\",\"200\",\"BBB\",\"500\"]]\n",
    );
    check(
        Dialect::Wayback,
        &format!("{url}&output=json&fl=timestamp,mime&limit=1"),
        "[[\"timestamp\",\"mime\"],\n[\"20140101000000\",\"text/html\"],\n[\"20140102000000\",\"text/html\"]]\n",
    );
    check(Dialect::Wayback, "url=nothing.org&output=json", "[]\n");
    check(Dialect::Wayback, "url=nothing.org", "");
    check(
        Dialect::Wayback,
        "url=other.org",
        "org,other)/ 20140102000005 http://other.org/ - - - -\n",
    );
}

/// Fails if a resume key is missing, comes without need, or stands in the wrong place.
#[test]
fn resume_key_follows_cut_answer() {
    let key = Cursor::from_capture(&captures()[0]);
    check(
        Dialect::Wayback,
        "url=example.org&fl=timestamp&limit=1&showResumeKey=true",
        &format!("20140101000000\n\n{key}\n"),
    );
    check(
        Dialect::Wayback,
        "url=example.org&fl=timestamp&limit=1&showResumeKey=true&output=json",
        &format!("[[\"timestamp\"],\n[\"20140101000000\"],\n[],\n[\"{key}\"]]\n"),
    );
    check(
        Dialect::Wayback,
        "url=example.org&fl=timestamp&limit=4&showResumeKey=true",
        "20140101000000\n20140102000000\n20150102000000\n20160102000000\n",
    );
    check(
        Dialect::Wayback,
        &format!("url=example.org&fl=timestamp&limit=1&resumeKey={key}"),
        "20140102000000\n",
    );
}

/// Fails if walking by resume key loses or repeats a capture, collapsed or not, in either direction.
#[test]
fn resume_keys_walk_all_captures() {
    for parameters in [
        "",
        "&collapse=digest",
        "&sort=reverse",
        "&filter=statuscode:2..",
    ] {
        let url = format!("url=*.example.org&fl=urlkey,timestamp{parameters}");
        let whole = serve(Dialect::Wayback, &url);
        for limit in 1..4 {
            let mut joined = String::new();
            let mut resume = String::new();
            loop {
                let query = format!("{url}&limit={limit}&showResumeKey=true{resume}");
                let answer = serve(Dialect::Wayback, &query);
                let Some((rows, key)) = answer.split_once("\n\n") else {
                    joined.push_str(&answer);
                    break;
                };
                joined.push_str(rows);
                joined.push('\n');
                resume = format!("&resumeKey={}", key.trim());
            }
            assert_eq!(joined, whole, "{parameters} {limit}");
        }
    }
}

/// Fails if text, arrays or objects change for the clients of OutbackCDX.
#[test]
fn outbackcdx_forms_are_written() {
    let url = "url=example.org/a";
    check(
        Dialect::OutbackCdx,
        url,
        "org,example)/a 20140102000001 http://example.org/a image/png 200 DDD - - 600 900 a.warc.gz\n",
    );
    check(
        Dialect::OutbackCdx,
        &format!("{url}&output=json"),
        "[[\"org,example)/a\",20140102000001,\"http://example.org/a\",\"image/png\",200,\"DDD\",\"-\",\"-\",600,900,\"a.warc.gz\"]]\n",
    );
    check(
        Dialect::OutbackCdx,
        "url=other.org&output=json&fl=status,length,mime,originalLength",
        "[[0,null,\"-\",null]]\n",
    );
    check(
        Dialect::OutbackCdx,
        &format!("{url}&output=jsondict&fl=url,status,range"),
        "[{\"url\": \"http://example.org/a\", \"status\": 200, \"range\": \"bytes=900-1499\"}]\n",
    );
    check(Dialect::OutbackCdx, "url=nothing.org&output=json", "[]\n");
    check(
        Dialect::OutbackCdx,
        &format!("{url}&fl=offset,mimetype"),
        "900 image/png\n",
    );
    assert_eq!(
        parse(Dialect::OutbackCdx, url).unwrap().url_key(),
        "org,example)/a"
    );
}

/// Fails if a value can end its field, its line or its string, or a timestamp has more digits than its clients read.
#[test]
fn hostile_values_stay_in_their_field() {
    let mut capture = Capture::new("org,a)/", "20140102030405678".parse().unwrap());
    capture.original = Some("http://a.org/\" \n\t<x>&\u{7f}\u{1f600}".to_owned());
    capture.mime = Some(String::new());
    capture.digest = Some("sha1:ABC".to_owned());
    let captures = [capture];
    let check = |dialect, query: &str, expected: &str| {
        let query = format!("url=a.org&fl=timestamp,url,mime,digest{query}");
        assert_eq!(serve_over(&captures, dialect, &query).unwrap(), expected);
    };
    check(
        Dialect::Wayback,
        "",
        "20140102030405 http://a.org/\"%20%0A%09<x>&%7F\u{1f600} - ABC\n",
    );
    check(
        Dialect::Wayback,
        "&output=json",
        "[[\"timestamp\",\"url\",\"mime\",\"digest\"],\n[\"20140102030405\",\"http://a.org/\\\" \\n\\t<x>&\\u007f\\ud83d\\ude00\",\"-\",\"ABC\"]]\n",
    );
    check(
        Dialect::Pywb,
        "&output=json",
        "{\"timestamp\": \"20140102030405678\", \"url\": \"http://a.org/\\\" \\n\\t<x>&\\u007f\\ud83d\\ude00\", \"digest\": \"sha1:ABC\"}\n",
    );
    let link = serve_over(&captures, Dialect::Pywb, "url=a.org&output=link").unwrap();
    let memento = link.lines().nth(1).unwrap();
    assert!(memento.starts_with(
        "<https://archive.example/all/20140102030405678/http://a.org/%22%20%0A%09%3Cx%3E&"
    ));
}

/// Fails if captures that break off leave an answer that looks complete.
#[test]
fn broken_captures_leave_no_end() {
    for (dialect, output) in [
        (Dialect::Wayback, "json"),
        (Dialect::OutbackCdx, "json"),
        (Dialect::OutbackCdx, "jsondict"),
    ] {
        let request = parse(dialect, &format!("url=example.org&output={output}")).unwrap();
        let mut captures: Vec<Result<Capture, &str>> = captures().into_iter().map(Ok).collect();
        captures[2] = Err("the index went away");
        let mut bytes = Vec::new();
        let broken = write_answer(&request, &context(), captures, &mut bytes);
        assert!(matches!(
            broken,
            Err(BrokenAnswer::Captures("the index went away"))
        ));
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.starts_with('[') && !text.ends_with("]]\n"), "{text}");
        assert!(!text.trim_end().ends_with("}]"), "{text}");
    }
    // Rows that are read from the end are written only when all of them are there.
    let request = parse(Dialect::Wayback, "url=example.org&limit=-3").unwrap();
    let mut bytes = Vec::new();
    let captures = vec![Ok(captures()[3].clone()), Err("gone")];
    assert!(write_answer(&request, &context(), captures, &mut bytes).is_err());
    assert!(bytes.is_empty());
}

/// Fails if an output that fails goes unnoticed, wherever it fails.
#[test]
fn failing_outputs_are_errors() {
    for query in ["output=json", "output=jsondict", "", "q=url:example.org"] {
        let query = match query.strip_prefix("q=") {
            Some(_) => query.to_owned(),
            None => format!("url=example.org&{query}"),
        };
        let request = parse(Dialect::OutbackCdx, &query).unwrap();
        let items = || {
            let found = answer_of_index(&captures(), &request.index_query());
            found.into_iter().map(Ok::<_, Infallible>)
        };
        let (_, whole) = write_answer(&request, &context(), items(), Vec::new()).unwrap();
        for room in 0..whole.len() {
            let failed = write_answer(&request, &context(), items(), FullDisk::with_room(room));
            assert!(failed.is_err(), "{query} {room}");
        }
        assert!(
            write_answer(
                &request,
                &context(),
                items(),
                FullDisk::with_room(whole.len())
            )
            .is_ok()
        );
    }
}

/// Fails if an answer reads on after its limit.
#[test]
fn complete_answers_read_no_further() {
    let request = parse(Dialect::Pywb, "url=example.org&limit=2").unwrap();
    let mut taken = 0;
    let endless = captures().into_iter().cycle().map(|capture| {
        taken += 1;
        Ok::<_, Infallible>(capture)
    });
    write_answer(&request, &context(), endless, Vec::new()).unwrap();
    assert_eq!(taken, 2);
}
