//! The three dialects of CDX servers, over the files of other projects: the captures that cdxj-indexer sees, and
//! `cdx_toolkit` as the client.

use std::fmt::Write as _;

use crate::support::chain::{Chain, text};
use crate::support::judge::{CDX_TOOLKIT, CDXJ_INDEXER, Judge, WARCIO};
use crate::support::made::{Response, warc};
use crate::support::samples::{samples, stored, words};

/// Fails if a capture that cdxj-indexer sees is missing in a dialect, has other fields there, or one is found that is
/// in no file.
#[test]
fn samples_are_found_in_every_dialect() {
    let Some(judge) = Judge::find(&[WARCIO, CDXJ_INDEXER]) else {
        return;
    };
    let Some(samples) = samples() else { return };
    let chain = stored(&samples);
    let pairs = words(&samples);
    let mut all = vec![chain.replay.as_str()];
    all.extend(pairs.iter().map(String::as_str));
    let judged = judge.run("captures.py", &all);
    println!("{judged}");
    for (dialect, least) in [("pywb", 1500), ("outback", 1500), ("wayback", 900)] {
        let compared = judged["compared"][dialect].as_u64().unwrap();
        assert!(compared >= least, "{dialect}: {judged}");
    }
    // The judge gives up on damaged files; `cli::index_judges` says why for each.
    let given_up = judged["given_up"].as_array().unwrap();
    assert!(given_up.len() <= 10, "{judged}");
    chain.archive.stop();
}

/// The captures of many.example.
const MANY: usize = 10_000;

/// Returns an index of captures of one host, over ten years.
fn many_captures() -> String {
    let mut lines: Vec<String> = (0..MANY)
        .map(|number| {
            let year = 2000 + number % 10;
            let month = 1 + number / 10 % 12;
            let status = if number % 7 == 0 { 404 } else { 200 };
            format!(
                "example,many)/{number:05} {year}{month:02}01000000 {{\"url\": \"http://many.example/{number:05}\", \
                 \"mime\": \"text/html\", \"status\": \"{status}\", \"digest\": \"sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ\", \
                 \"length\": \"500\", \"offset\": \"{}\", \"filename\": \"many.warc.gz\"}}",
                number * 500
            )
        })
        .collect();
    lines.sort();
    let mut text = String::new();
    for line in lines {
        writeln!(text, "{line}").unwrap();
    }
    text
}

/// Fails if `cdx_toolkit` cannot read all pages of a long answer, gets a capture twice, or does not get the content of
/// one.
#[test]
fn cdx_toolkit_iterates_over_every_page() {
    let Some(judge) = Judge::find(&[CDX_TOOLKIT]) else {
        return;
    };
    let chain = Chain::start(&[]);
    let index = chain.archive.path("many.cdxj");
    std::fs::write(&index, many_captures()).unwrap();
    let words = ["index", "import", text(&index), "--set", "many"];
    chain.archive.run(&words).expect(0);
    let url = "http://letters.example/one?a=1&b=2";
    let body = b"<p>\xe6\xf8\xe5".as_slice();
    let file = warc(&[Response {
        url,
        date: "2020-02-01T00:00:00Z",
        fields: "Content-Type: text/html; charset=iso-8859-1\r\n",
        body,
    }]);
    chain.store_bytes("letters.warc.gz", &file);
    let words = [&chain.replay, &MANY.to_string(), url, &hex::encode(body)];
    let judged = judge.run("toolkit.py", &words);
    println!("{judged}");
    assert_eq!(judged["pywb, pageSize 1"], MANY, "{judged}");
    assert_eq!(judged["wayback, pageSize 1"], MANY, "{judged}");
    chain.archive.stop();
}
