//! Keys that were compared with the Python package `surt` 0.3.1, and those that differ on purpose.
use super::*;

/// Compares with a table of `URL TAB key` lines that an oracle made, where one is named.
#[test]
fn judged() {
    let Ok(table) = std::fs::read_to_string("/tmp/keys/judge.tsv") else {
        return;
    };
    let mut differ = 0;
    for line in table.lines() {
        let (url, expected) = line.split_once('\t').unwrap();
        let url: String = serde_json::from_str(url).unwrap();
        let key = UrlKey::of(&url);
        if key.as_str() != expected {
            differ += 1;
            println!("{url:?}\n   ours {key}\n   surt {expected}");
        }
    }
    println!("{} urls, {differ} differ", table.lines().count());
}

#[test]
fn placeholder() {
    assert_eq!(authority::dotted("127.1").as_deref(), Some("127.0.0.1"));
}
