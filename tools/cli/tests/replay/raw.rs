//! Raw replay: the bytes of every sample are those that warcio reads, and letters of an older charset stay what they
//! are.

use crate::support::chain::Chain;
use crate::support::judge::{CDXJ_INDEXER, Judge, WARCIO};
use crate::support::made::{Response, warc};
use crate::support::samples::{samples, stored, words};

/// Fails if the payload of a response in the samples is not handed out byte for byte, or if a payload without the
/// digest of its record is not called one.
#[test]
fn samples_have_the_digests_of_their_records() {
    let Some(judge) = Judge::find(&[WARCIO, CDXJ_INDEXER]) else {
        return;
    };
    let Some(samples) = samples() else { return };
    let chain = stored(&samples);
    let pairs = words(&samples);
    let mut all = vec![chain.replay.as_str()];
    all.extend(pairs.iter().map(String::as_str));
    let judged = judge.run("raw.py", &all);
    println!("{judged}");
    let count = |name: &str| judged[name].as_u64().unwrap_or_default();
    assert!(count("answers") >= 1300, "{judged}");
    assert!(count("with their digest") >= 850, "{judged}");
    chain.archive.stop();
}

/// Fails if a page in ISO-8859-1 is decoded, or loses the charset that its server or its author named.
#[test]
fn latin_page_keeps_its_letters() {
    let chain = Chain::start(&[]);
    let page = |meta: &str| {
        let mut page =
            format!("<!DOCTYPE html><html><head>{meta}<title>Letters</title><p>").into_bytes();
        page.extend_from_slice(b"R\xf8dgr\xf8d med fl\xf8de p\xe5 \xc6blets dag");
        page
    };
    let told = page("");
    let meant = page("<meta charset='iso-8859-1'>");
    let urls = [
        "http://letters.example/told",
        "http://letters.example/meant",
    ];
    let date = "2020-02-01T00:00:00Z";
    let file = warc(&[
        Response {
            url: urls[0],
            date,
            fields: "Content-Type: text/html; charset=ISO-8859-1\r\n",
            body: &told,
        },
        Response {
            url: urls[1],
            date,
            fields: "Content-Type: text/html\r\n",
            body: &meant,
        },
    ]);
    chain.store_bytes("letters.warc.gz", &file);
    for (url, page, media) in [
        (urls[0], &told, "text/html; charset=ISO-8859-1"),
        (urls[1], &meant, "text/html"),
    ] {
        let raw = chain
            .get(&format!("/all/20200201000000id_/{url}"))
            .expect(200);
        assert_eq!(&raw.body, page, "{url}");
        assert_eq!(raw.field("Content-Type"), Some(media), "{url}");
        // Also where links are rewritten, for people without scripts.
        let shown = chain.get(&format!("/all/20200201000000/{url}")).expect(200);
        let letters = b"R\xf8dgr\xf8d med fl\xf8de p\xe5 \xc6blets dag";
        let has_letters = shown
            .body
            .windows(letters.len())
            .any(|part| part == letters);
        assert!(has_letters, "{url}: {}", shown.text());
    }
    chain.archive.stop();
}
