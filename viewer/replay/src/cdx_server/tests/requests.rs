//! The captures that each dialect selects, their order, and the requests that it refuses.

use super::*;

const FIRST: &str = "20140101000000";
const SECOND: &str = "20140102000000";
const THIRD: &str = "20150102000000";
const FOURTH: &str = "20160102000000";
const IMAGE: &str = "20140102000001";
const MISSING: &str = "20140102000002";
const STAR: &str = "20140102000003";
const SUB: &str = "20140102000004";

const ALL: [Dialect; 3] = [Dialect::Pywb, Dialect::Wayback, Dialect::OutbackCdx];

/// Fails if a parameter that all dialects have selects or orders differently in one of them.
#[test]
fn shared_parameters_mean_one_thing() {
    let home = [FIRST, SECOND, THIRD, FOURTH];
    let host = [FIRST, SECOND, THIRD, FOURTH, IMAGE, MISSING, STAR];
    let domain = [FIRST, SECOND, THIRD, FOURTH, IMAGE, MISSING, STAR, SUB];
    let rows: &[(&str, &[&str])] = &[
        ("url=example.org", &home),
        ("url=https%3A%2F%2Fwww.example.org%3A443%2F%23x", &home),
        ("url=example.org&matchType=exact", &home),
        ("url=example.org/a*", &[IMAGE, MISSING]),
        ("url=example.org/a&matchType=prefix", &[IMAGE, MISSING]),
        ("url=example.org/a/&matchType=prefix", &[MISSING]),
        ("url=example.org/*", &host),
        ("url=example.org/zzz&matchType=host", &host),
        ("url=*.example.org", &domain),
        ("url=example.org&matchType=domain", &domain),
        ("url=example.org/x*&matchType=exact", &[STAR]),
        ("url=example.org&from=2014&to=2014", &[FIRST, SECOND]),
        (
            "url=example.org&from=20140101000001",
            &[SECOND, THIRD, FOURTH],
        ),
        ("url=example.org&to=20140102000000", &[FIRST, SECOND]),
        ("url=example.org&to=201401", &[FIRST, SECOND]),
        ("url=example.org&from=&to=", &home),
        ("url=example.org&from=2016&to=2014", &[]),
        ("url=example.org&limit=2", &[FIRST, SECOND]),
        ("url=example.org&limit=100", &home),
        (
            "url=example.org&sort=reverse",
            &[FOURTH, THIRD, SECOND, FIRST],
        ),
        ("url=example.org&sort=reverse&limit=1", &[FOURTH]),
        ("url=example.org&sort=default", &home),
        (
            "url=example.org&sort=closest&closest=2015",
            &[THIRD, SECOND, FIRST, FOURTH],
        ),
        (
            "url=example.org&sort=closest&closest=20150101&limit=1",
            &[THIRD],
        ),
        ("url=nothing.org", &[]),
        ("url=example.org&unheard=of&page_size=x", &home),
    ];
    for dialect in ALL {
        for (query, expected) in rows {
            assert_eq!(timestamps(dialect, query), *expected, "{dialect:?} {query}");
        }
    }
}

/// Fails if a parameter that one dialect alone has is lost, or a filter passes the wrong captures.
#[test]
fn own_parameters_select_their_captures() {
    use Dialect::{OutbackCdx, Pywb, Wayback};
    let rows: &[(Dialect, &str, &[&str])] = &[
        (
            Pywb,
            "url=example.org&filter=mime:html",
            &[FIRST, SECOND, FOURTH],
        ),
        (
            Pywb,
            "url=example.org&filter==status:200",
            &[SECOND, THIRD, FOURTH],
        ),
        (Pywb, "url=example.org&filter=!=status:200", &[FIRST]),
        (Pywb, "url=example.org&closest=20150101&limit=1", &[THIRD]),
        (
            Pywb,
            "url=example.org&sort=&closest=20150101&limit=1",
            &[THIRD],
        ),
        (Pywb, "url=example.org&closest=&limit=1", &[FIRST]),
        (
            Pywb,
            "url=example.org&closest=20150101&sort=reverse&limit=1",
            &[FOURTH],
        ),
        (
            Pywb,
            "url=example.org/a*&closest=20150101",
            &[IMAGE, MISSING],
        ),
        (Pywb, "url=example.org&allowFuzzy=false&limit=1", &[FIRST]),
        (Wayback, "url=example.org&gzip=false&limit=1", &[FIRST]),
        (Wayback, "url=example.org&closest=2015&limit=1", &[FIRST]),
        (
            Pywb,
            "url=example.org&filter=~timestamp:201[56]",
            &[THIRD, FOURTH],
        ),
        (
            Pywb,
            "url=example.org&filter=mime:html&filter=!~status:3",
            &[SECOND, FOURTH],
        ),
        (
            Pywb,
            "url=example.org&collapse=digest&limit=3",
            &[FIRST, SECOND, THIRD],
        ),
        (
            Wayback,
            "url=example.org&filter=statuscode:2..",
            &[SECOND, THIRD, FOURTH],
        ),
        (
            Wayback,
            "url=example.org&filter=!mimetype:warc/revisit&limit=2",
            &[FIRST, SECOND],
        ),
        (Wayback, "url=example.org&limit=-2", &[THIRD, FOURTH]),
        (
            Wayback,
            "url=example.org/*&limit=-1&filter=statuscode:200",
            &[STAR],
        ),
        (
            Wayback,
            "url=example.org&limit=-1&collapse=digest",
            &[FOURTH],
        ),
        (
            Wayback,
            "url=example.org&limit=0",
            &[FIRST, SECOND, THIRD, FOURTH],
        ),
        (Wayback, "url=example.org&fastLatest=true", &[FOURTH]),
        (
            Wayback,
            "url=example.org&fastLatest=true&limit=-3",
            &[SECOND, THIRD, FOURTH],
        ),
        (
            Wayback,
            "url=example.org/*&fastLatest=true&limit=1",
            &[FIRST],
        ),
        (
            Wayback,
            "url=example.org&offset=1&limit=2",
            &[SECOND, THIRD],
        ),
        (
            Wayback,
            "url=example.org&collapse=timestamp:4",
            &[FIRST, THIRD, FOURTH],
        ),
        (
            Wayback,
            "url=example.org&collapse=digest",
            &[FIRST, SECOND, FOURTH],
        ),
        (
            Wayback,
            "url=example.org/*&collapse=urlkey&limit=2",
            &[FIRST, IMAGE],
        ),
        (
            Wayback,
            "url=example.org&collapse=digest&collapse=mimetype",
            &[FIRST, SECOND, THIRD, FOURTH],
        ),
        (Wayback, "url=example.org&page=-1&limit=1", &[FIRST]),
        (OutbackCdx, "url=example.org&filter=status:30.", &[FIRST]),
        (OutbackCdx, "url=example.org&filter=~mime:revisit", &[THIRD]),
        (
            OutbackCdx,
            "url=example.org&collapse=digest",
            &[FIRST, SECOND, FOURTH],
        ),
        (
            OutbackCdx,
            "url=example.org&collapseToFirst=digest",
            &[FIRST, SECOND, FOURTH],
        ),
        (
            OutbackCdx,
            "url=example.org&collapseToLast=digest",
            &[FIRST, THIRD, FOURTH],
        ),
        (
            OutbackCdx,
            "url=example.org&collapseToLast=timestamp:4",
            &[SECOND, THIRD, FOURTH],
        ),
        (
            OutbackCdx,
            "url=example.org&omitSelfRedirects=true",
            &[SECOND, THIRD, FOURTH],
        ),
        (OutbackCdx, "url=example.org&limit=0", &[]),
        (
            OutbackCdx,
            "url=example.org&sort=closest&closest=",
            &[FIRST, SECOND, THIRD, FOURTH],
        ),
        (
            OutbackCdx,
            "url=example.org&sort=REVERSE&limit=1",
            &[FOURTH],
        ),
        (OutbackCdx, "urlkey=org,example)/a", &[IMAGE]),
        (
            OutbackCdx,
            "url=sub.example.org&matchType=range&limit=1",
            &[SUB],
        ),
    ];
    for (dialect, query, expected) in rows {
        assert_eq!(
            timestamps(*dialect, query),
            *expected,
            "{dialect:?} {query}"
        );
    }
}

/// Fails if nonsense gets an answer, or a refusal has another code than its server's.
#[test]
fn nonsense_is_refused_with_its_code() {
    let everywhere = [
        "",
        "url=",
        "limit=1",
        "url=a.org&limit=x",
        "url=a.org&from=20x4",
        "url=a.org&from=20140230",
        "url=a.org&to=201413",
        "url=a.org&to=201401010000000",
        "url=a.org&matchType=regex",
        "url=a.org&sort=size",
        "url=a.org&sort=closest",
        "url=a.org&sort=closest&closest=soon",
        "url=a.org/*&sort=closest&closest=2014",
        "url=a.org&output=xml",
        "url=a.org&filter=mime",
        "url=a.org&filter=%FF:x",
        "url=urn:x&matchType=domain",
        "url=a.org&resolveRevisits=perhaps",
    ];
    for dialect in ALL {
        for query in everywhere {
            let error = match parse(dialect, query) {
                // The line of a whole capture has no field.
                Ok(_) if query.ends_with("filter=mime") && dialect == Dialect::Wayback => continue,
                other => other.expect_err(query),
            };
            assert_eq!(error.refusal(dialect).status, 400, "{dialect:?} {query}");
        }
    }
    for (dialect, query) in [
        (Dialect::Pywb, "url=a.org&limit=0"),
        (Dialect::Pywb, "url=a.org&limit=-5"),
        (Dialect::Pywb, "url=a.org&page=-1"),
        (Dialect::Pywb, "url=a.org&pageSize=0"),
        (Dialect::Pywb, "url=a.org&showPagedIndex=true"),
        (Dialect::Pywb, "url=a.org&page=0&sort=closest&closest=2014"),
        (Dialect::Wayback, "url=a.org&limit=-10001"),
        (Dialect::Wayback, "url=a.org&offset=-1"),
        (Dialect::Wayback, "url=a.org&collapse=colour"),
        (Dialect::Wayback, "url=a.org&collapse=digest:0"),
        (Dialect::Wayback, "url=a.org&collapse=digest:x"),
        (Dialect::Wayback, "url=a.org&fl=urlkey,colour"),
        (Dialect::Wayback, "url=a.org&resumeKey=org%2Ca%29%2F+2014"),
        (Dialect::Wayback, "url=a.org&pageSize=51"),
        (Dialect::Wayback, "url=a.org&showPagedIndex=true"),
        (Dialect::OutbackCdx, "url=a.org&limit=-1"),
        (Dialect::OutbackCdx, "url=a.org&fl=colour"),
        (Dialect::OutbackCdx, "url=a.org&omitSelfRedirects=2"),
        (Dialect::OutbackCdx, "q=type:urlquery"),
        (Dialect::OutbackCdx, "q=url:a.org+limit:many"),
        (Dialect::OutbackCdx, "q=url:a.org&count=-1"),
        (Dialect::OutbackCdx, "q=url:a.org+startdate:20140230"),
    ] {
        let error = parse(dialect, query).expect_err(query);
        assert_eq!(error.status(), 400, "{query}");
    }
}

/// Fails if a refusal repeats all of a long value, or has not the form of its dialect.
#[test]
fn refusals_say_what_is_wrong() {
    let query = format!("url=a.org&sort={}%0a\"", "x".repeat(5_000));
    let error = parse(Dialect::Pywb, &query).unwrap_err();
    let refusal = error.refusal(Dialect::Pywb);
    assert_eq!(refusal.content_type, "application/json");
    assert!(
        refusal.body.starts_with("{\"message\": \"`sort` is "),
        "{}",
        refusal.body
    );
    assert!(refusal.body.len() < 1_000 && refusal.body.ends_with("\"}\n"));
    let refusal = parse(Dialect::Wayback, "")
        .unwrap_err()
        .refusal(Dialect::Wayback);
    assert_eq!(refusal.body, "the parameter `url` is missing\n");
    let long = format!("url={}", "x".repeat(MAX_REQUEST));
    assert_eq!(parse(Dialect::Wayback, &long).unwrap_err().status(), 414);
}

/// Fails if a posted form is not read, or 10,000 characters are too many for a URL.
#[test]
fn posted_forms_are_requests() {
    let form = b"url=example.org%2F*&limit=2";
    let request = CdxRequest::parse(
        Dialect::Pywb,
        b"output=json",
        Some(form),
        &DEFAULT_PAGE_SIZES,
    );
    let request = request.unwrap();
    assert_eq!(request.url, b"example.org/");
    assert_eq!(request.form, AnswerForm::JsonLines);
    assert_eq!(request.row_hint(), Some(3));
    let long = format!("url=example.org/{}", "a%2Cb/".repeat(2_000));
    for dialect in ALL {
        assert!(parse(dialect, &long).is_ok());
    }
}

/// Fails if switches of a dialect are lost, or another dialect has them.
#[test]
fn switches_are_of_their_dialect() {
    let rows = [
        (Dialect::Wayback, "showDupeCount=true", Extra::DupeCount),
        (Dialect::Wayback, "showSkipCount=true", Extra::SkipCount),
        (
            Dialect::Wayback,
            "lastSkipTimestamp=true",
            Extra::LastSkipTimestamp,
        ),
        (Dialect::Wayback, "showResumeKey=true", Extra::ResumeKey),
        (
            Dialect::OutbackCdx,
            "omitSelfRedirects=true",
            Extra::OmitSelfRedirects,
        ),
    ];
    for (dialect, switch, extra) in rows {
        for other in ALL {
            let request = parse(other, &format!("url=a.org&{switch}")).unwrap();
            let has = request.extras.contains(extra);
            assert_eq!(has, other == dialect, "{other:?} {switch}");
        }
    }
    for dialect in ALL {
        let request = parse(dialect, "url=a.org&resolveRevisits=true").unwrap();
        assert!(request.extras.contains(Extra::ResolveRevisits));
    }
}
