//! Memento as RFC 7089 has it, walked by curl: from the TimeGate by its links to the TimeMap, and from there to every
//! Memento.

use crate::support::chain::Chain;
use crate::support::curl::{Answer, curl};
use crate::support::links::{Link, links, links_of, only};
use crate::support::made::{Response, warc};

const URL: &str = "http://memento.example/page?a=1&b=2";

/// The dates of the captures, in the two spellings of the field, and as RFC 1123 has them.
const DATES: [(&str, &str, &str); 4] = [
    (
        "2016-02-29T12:00:00Z",
        "20160229120000",
        "Mon, 29 Feb 2016 12:00:00 GMT",
    ),
    (
        "2018-05-05T23:59:59Z",
        "20180505235959",
        "Sat, 05 May 2018 23:59:59 GMT",
    ),
    (
        "2020-01-01T00:00:00Z",
        "20200101000000",
        "Wed, 01 Jan 2020 00:00:00 GMT",
    ),
    (
        "2021-12-31T08:09:10Z",
        "20211231080910",
        "Fri, 31 Dec 2021 08:09:10 GMT",
    ),
];

fn started(settings: &[&str]) -> Chain {
    let chain = Chain::start(settings);
    let bodies = DATES.map(|(_, digits, _)| format!("<p>captured at {digits}</p>"));
    let captured: Vec<Response<'_>> = DATES
        .iter()
        .zip(&bodies)
        .map(|((date, ..), body)| Response {
            url: URL,
            date,
            fields: "Content-Type: text/html; charset=utf-8\r\nLast-Modified: Tue, 01 Jan 2013 00:00:00 GMT\r\n",
            body: body.as_bytes(),
        })
        .collect();
    chain.store_bytes("mementos.warc.gz", &warc(&captured));
    chain
}

/// Asks a TimeGate for a date.
fn gate(chain: &Chain, date: &str) -> Answer {
    let field = format!("Accept-Datetime: {date}");
    chain.ask(&format!("/all/{URL}"), &["--header", &field])
}

/// Fails if a capture does not say its date, or leads anywhere but to the captures beside it.
#[track_caller]
fn check_memento(answer: &Answer, at: usize, replay: &str) {
    assert_eq!(answer.status, 200);
    assert_eq!(answer.field("Memento-Datetime"), Some(DATES[at].2));
    let links = links_of(answer);
    assert_eq!(only(&links, "original").address, URL);
    assert_eq!(
        only(&links, "timegate").address,
        format!("{replay}/all/{URL}")
    );
    assert_eq!(
        only(&links, "timemap").address,
        format!("{replay}/all/timemap/link/{URL}")
    );
    let mut expected = vec![("first", 0), ("last", DATES.len() - 1)];
    expected.extend(at.checked_sub(1).map(|at| ("prev", at)));
    expected.extend((at + 1 < DATES.len()).then_some(("next", at + 1)));
    for (relation, at) in expected {
        let link = only(&links, relation);
        assert!(link.has("memento"), "{link:?}");
        assert_eq!(link.parameter("datetime"), Some(DATES[at].2), "{relation}");
    }
    assert_eq!(links.iter().any(|link| link.has("prev")), at > 0);
    assert_eq!(
        links.iter().any(|link| link.has("next")),
        at + 1 < DATES.len()
    );
    // The head of the capture comes under another name: it is not that of this answer.
    assert_eq!(answer.field("Last-Modified"), None);
    assert_eq!(
        answer.field("X-Archive-Orig-Last-Modified"),
        Some("Tue, 01 Jan 2013 00:00:00 GMT")
    );
}

/// Fails if a TimeGate takes another capture than the nearest one, or a link of it, of the TimeMap or of a Memento
/// leads astray.
#[test]
fn curl_walks_from_gate_to_every_memento() {
    let chain = started(&[]);
    for (wanted, at) in [
        ("Mon, 01 Jan 1990 00:00:00 GMT", 0),
        ("Mon, 29 Feb 2016 12:00:00 GMT", 0),
        ("Sun, 06 May 2018 00:00:00 GMT", 1),
        ("Tue, 31 Dec 2019 23:59:59 GMT", 2),
        ("Fri, 01 Jan 2038 00:00:00 GMT", 3),
    ] {
        let answer = gate(&chain, wanted);
        check_memento(&answer, at, &chain.replay);
        let vary = answer.field("Vary").expect("Vary");
        assert!(
            vary.to_ascii_lowercase().contains("accept-datetime"),
            "{vary}"
        );
        let place = answer
            .field("Content-Location")
            .expect("a Content-Location");
        assert_eq!(place, format!("{}/all/{}/{URL}", chain.replay, DATES[at].1));
    }
    // Without a date it is the latest one.
    check_memento(&chain.get(&format!("/all/{URL}")), 3, &chain.replay);

    let gate = gate(&chain, DATES[0].2);
    let map = curl(&only(&links_of(&gate), "timemap").address, &[]).expect(200);
    let media = map.field("Content-Type").unwrap();
    assert!(media.starts_with("application/link-format"), "{media}");
    assert_eq!(map.field("Memento-Datetime"), None);
    let listed = links(&map.text());
    assert_eq!(only(&listed, "original").address, URL);
    assert_eq!(
        only(&listed, "timegate").address,
        format!("{}/all/{URL}", chain.replay)
    );
    let own = only(&listed, "self");
    assert_eq!(
        own.address,
        format!("{}/all/timemap/link/{URL}", chain.replay)
    );
    assert_eq!(own.parameter("from"), Some(DATES[0].2));
    assert_eq!(own.parameter("until"), Some(DATES[3].2));
    let mementos: Vec<&Link> = listed.iter().filter(|link| link.has("memento")).collect();
    assert_eq!(mementos.len(), DATES.len());
    for (at, memento) in mementos.into_iter().enumerate() {
        assert_eq!(memento.parameter("datetime"), Some(DATES[at].2));
        let answer = curl(&memento.address, &[]);
        check_memento(&answer, at, &chain.replay);
        assert!(
            answer
                .text()
                .contains(&format!("captured at {}", DATES[at].1)),
            "{}",
            answer.text()
        );
        let raw = memento
            .address
            .replacen(DATES[at].1, &format!("{}id_", DATES[at].1), 1);
        let raw = curl(&raw, &[]).expect(200);
        assert_eq!(raw.text(), format!("<p>captured at {}</p>", DATES[at].1));
    }
    chain.archive.stop();
}

/// Fails if a TimeGate that redirects calls its answer a Memento, leads elsewhere, or takes words for a date.
#[test]
fn redirecting_gate_answers_by_the_letter() {
    let chain = started(&["replay.timegate=redirect"]);
    let answer = gate(&chain, "Sun, 06 May 2018 00:00:00 GMT").expect(302);
    assert_eq!(answer.field("Memento-Datetime"), None);
    let vary = answer.field("Vary").expect("Vary");
    assert!(
        vary.to_ascii_lowercase().contains("accept-datetime"),
        "{vary}"
    );
    let links = links_of(&answer);
    assert_eq!(only(&links, "original").address, URL);
    only(&links, "timemap");
    let place = answer.field("Location").expect("a Location");
    check_memento(&curl(place, &[]), 1, &chain.replay);

    for date in ["yesterday", "2018-05-05", "Sun, 31 Feb 2018 00:00:00 GMT"] {
        let refused = gate(&chain, date).expect(400);
        assert_eq!(refused.field("Memento-Datetime"), None, "{date}");
    }
    let nothing = chain.get("/all/http://nothing.example/").expect(404);
    assert_eq!(nothing.field("Memento-Datetime"), None);
    assert_eq!(
        chain
            .get("/all/timemap/link/http://nothing.example/")
            .status,
        404
    );
    chain.archive.stop();
}
