//! Requests to CDX servers, in all dialects.

use std::convert::Infallible;

use archive_formats::cdx::query::{Cursor, MAX_FILTERS};
use archive_formats::cdx::{Capture, Format};
use viewer_replay::cdx_server::{
    AnswerContext, AnswerForm, CdxRequest, DEFAULT_PAGE_SIZES, Dialect, write_answer,
};

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let cursor = Cursor::from_capture(&captures()[0]);
    let resumed = format!("url=example.org&limit=1&showResumeKey=true&resumeKey={cursor}");
    [
        "url=http%3A%2F%2Fexample.org%2F%3Fa%3D1%26b&matchType=exact&from=2014&to=20151231235959",
        "url=*.example.org&filter=!statuscode:2..&filter=mimetype:text/.*&collapse=timestamp:10&output=json",
        "url=example.org/*&filter==mime:text/html&filter=!~url:.*x$&fields=urlkey,timestamp,url&output=cdxj",
        "url=example.org&sort=closest&closest=20150102&limit=3&output=link&allowFuzzy=false",
        "url=example.org&limit=-2&fastLatest=true&showDupeCount=true&showSkipCount=true&lastSkipTimestamp=true&gzip=false",
        "url=example.org&page=3&pageSize=2&showNumPages=true&resolveRevisits=true&offset=1",
        "url=example.org/post&method=POST&requestBody=a%3Db&omitSelfRedirects=true&collapseToLast=digest&output=jsondict",
        "q=type:prefixquery+url:http%253A%252F%252Fexample.org%252F+limit:2+offset:1&count=5&start_page=2",
        resumed.as_str(),
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}

fn captures() -> Vec<Capture> {
    [
        "org,example)/ 20140101000000 http://example.org/ text/html 301 AAA https://example.org/ - 400 0 a.warc.gz",
        "org,example)/ 20150102000000 http://example.org/?\u{e6}\"<&> warc/revisit - AAA - A - - b c.warc.gz",
        "org,example)/x 20150102000001 http://example.org/x - 200 - - - 1 2 b.warc.gz",
    ]
    .iter()
    .filter_map(|line| Format::cdx11().read_line(line).ok())
    .collect()
}

/// A request that is read can be asked and answered: in whole rows of text, in an array that is closed, or in XML.
pub(super) fn cdx_request(input: &[u8]) {
    let context = AnswerContext {
        memento_prefix: "https://archive.example/all/".to_owned(),
        now: captures()[0].timestamp,
    };
    for dialect in [Dialect::Pywb, Dialect::Wayback, Dialect::OutbackCdx] {
        let request = match CdxRequest::parse(dialect, input, Some(input), &DEFAULT_PAGE_SIZES) {
            Ok(request) => request,
            Err(error) => {
                let refusal = error.refusal(dialect);
                assert!((400..500).contains(&refusal.status), "{error}");
                assert!(refusal.body.len() < 8_192, "{}", refusal.body);
                continue;
            }
        };
        assert_eq!(request.query.validate_query(), Ok(()));
        let index = request.index_query();
        assert_eq!(index.validate_query(), Ok(()));
        assert!(index.collapse.is_empty() && index.limit.is_none());
        assert!(index.filters.len() <= MAX_FILTERS);
        let found = captures().into_iter().filter(|c| index.accepts_capture(c));
        let found = found.map(Ok::<_, Infallible>);
        let (_, bytes) = write_answer(&request, &context, found, Vec::new()).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let end = match request.form {
            AnswerForm::JsonRows | AnswerForm::JsonObjects => "]\n",
            AnswerForm::Xml(_) => "</wayback>\n",
            AnswerForm::Cdxj | AnswerForm::JsonLines | AnswerForm::Text | AnswerForm::Link => "\n",
        };
        assert!(text.is_empty() || text.ends_with(end), "{text:?}");
    }
}
