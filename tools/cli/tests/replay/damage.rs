//! A record whose bytes are damaged on the disk of a node, and that somebody looks at.

use crate::archive::content;
use crate::support::chain::Chain;
use crate::support::made::{Response, warc};

/// Fails if a damaged byte reaches a visitor, or if it is not reported that one was met.
#[test]
fn flipped_bit_is_replayed_good_and_reported() {
    let chain = Chain::start(&["repair.automatic=off", "scrub.enabled=false"]);
    // The copy that a read asks first is the archive's choice: each of two files is damaged in another replica.
    let pages = ["one", "two"].map(|replica| (replica, content(replica, 100_000)));
    for (replica, page) in &pages {
        let url = format!("http://{replica}.example/");
        let file = warc(&[Response {
            url: &url,
            date: "2020-02-01T00:00:00Z",
            fields: "Content-Type: application/octet-stream\r\n",
            body: page,
        }]);
        let name = format!("{replica}.warc.gz");
        chain.store_bytes(&name, &file);
        chain.archive.flip(replica, &name, 50_000);
    }
    chain.archive.run(&["anomalies"]).expect(0);
    for (replica, page) in &pages {
        let shown = chain.get(&format!("/all/20200201id_/http://{replica}.example/"));
        assert!(&shown.expect(200).body == page, "{replica}: other bytes");
    }
    let told = chain.archive.json(&["anomalies"], 1);
    let anomalies = told["anomalies"].as_array().unwrap();
    assert!(!anomalies.is_empty(), "{told}");
    for anomaly in anomalies {
        let replica = anomaly["replica"].as_str().unwrap();
        assert_eq!(anomaly["file"], format!("{replica}.warc.gz"), "{told}");
    }
    println!("{told:#}");
    chain.archive.stop();
}
