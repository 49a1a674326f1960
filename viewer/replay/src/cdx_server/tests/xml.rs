//! The XML of Wayback's remote collections.

use super::*;

/// Fails if the results of a URL, or what is said about them, change for Wayback's clients.
#[test]
fn url_query_lists_captures() {
    let answer = serve(
        Dialect::OutbackCdx,
        "q=type:urlquery+url:http%253A%252F%252Fexample.org%252Fa",
    );
    assert_eq!(
        answer,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<wayback>\n<results>\n\
         <result><compressedoffset>900</compressedoffset><compressedendoffset>600</compressedendoffset>\
         <mimetype>image/png</mimetype><file>a.warc.gz</file><redirecturl>-</redirecturl>\
         <urlkey>org,example)/a</urlkey><digest>DDD</digest><httpresponsecode>200</httpresponsecode>\
         <robotflags>-</robotflags><url>http://example.org/a</url><capturedate>20140102000001</capturedate></result>\n\
         </results>\n\
         <request><startdate>19960101000000</startdate><enddate>20261123220000</enddate><type>urlquery</type>\
         <firstreturned>0</firstreturned><url>org,example)/a</url><resultsrequested>10000</resultsrequested>\
         <resultstype>resultstypecapture</resultstype><numreturned>1</numreturned><numresults>1</numresults></request>\n\
         </wayback>\n"
    );
}

/// Fails if URLs with a prefix are not grouped, or their captures and versions are miscounted.
#[test]
fn prefix_query_lists_urls() {
    let answer = serve(
        Dialect::OutbackCdx,
        "q=type:prefixquery+url:example.org/&count=1",
    );
    let results: Vec<&str> = answer
        .lines()
        .filter(|l| l.starts_with("<result>"))
        .collect();
    assert_eq!(
        results,
        [
            "<result><urlkey>org,example)/</urlkey><originalurl>http://www.example.org/</originalurl>\
          <numversions>3</numversions><numcaptures>4</numcaptures>\
          <firstcapturets>20140101000000</firstcapturets><lastcapturets>20160102000000</lastcapturets></result>"
        ]
    );
    assert!(
        answer.contains("<numreturned>1</numreturned><numresults>4</numresults>"),
        "{answer}"
    );
    assert!(answer.contains("<resultstype>resultstypeurl</resultstype>"));
}

/// Fails if a page of results begins or ends at the wrong capture, or the total is of the page.
#[test]
fn pages_of_results_are_cut_out() {
    let dates = |query: &str| -> (Vec<String>, String) {
        let answer = serve(Dialect::OutbackCdx, query);
        let dates = answer.split("<capturedate>").skip(1);
        let dates = dates.map(|rest| rest[..14].to_owned()).collect();
        let total = answer.split("<numresults>").nth(1).unwrap();
        (dates, total.split('<').next().unwrap().to_owned())
    };
    for query in [
        "q=url:example.org&count=2&start_page=2",
        "q=url:example.org+limit:2+offset:2",
    ] {
        let expected = ["20150102000000", "20160102000000"]
            .map(str::to_owned)
            .to_vec();
        assert_eq!(dates(query), (expected, "4".to_owned()), "{query}");
    }
    let (first, _) = dates("q=url:example.org&count=1&start_page=-3");
    assert_eq!(first, ["20140101000000"]);
    let (dated, total) = dates("q=url:example.org+startdate:2015+enddate:2015");
    assert_eq!((dated.len(), total.as_str()), (1, "1"));
}

/// Fails if nothing found, or an unknown type, looks like an empty list.
#[test]
fn nothing_found_is_an_error_element() {
    let nothing = serve(Dialect::OutbackCdx, "q=url:nothing.org");
    assert!(
        nothing.contains("<error><title>Resource Not In Archive</title>"),
        "{nothing}"
    );
    assert!(!nothing.contains("<results>") && nothing.ends_with("</wayback>\n"));
    let unknown = serve(Dialect::OutbackCdx, "q=type:pathquery+url:example.org");
    assert!(
        unknown.contains("<title>Unsupported query type</title>"),
        "{unknown}"
    );
}

/// Fails if a character that XML does not have, or has for itself, comes through.
#[test]
fn any_capture_is_well_formed() {
    let mut capture = Capture::new("org,a)/", "20140102030405".parse().unwrap());
    capture.original = Some("http://a.org/?a&b<c>\u{0}\u{1b}]]>\u{ffff}\u{e6}".to_owned());
    capture.file = Some("<b>.warc".to_owned());
    let answer = serve_over(&[capture], Dialect::OutbackCdx, "q=url:a.org").unwrap();
    assert!(
        answer.contains("<url>http://a.org/?a&amp;b&lt;c&gt;%00%1B]]&gt;\u{fffd}\u{e6}</url>"),
        "{answer}"
    );
    assert!(answer.contains("<file>&lt;b&gt;.warc</file>"));
}
