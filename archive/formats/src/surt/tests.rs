//! Keys that were compared with the Python package `surt` 0.3.1, and those that differ on purpose.

use super::*;

/// A URL as a JSON string, a tab, and the key that `surt` 0.3.1 makes of it.
const JUDGED: &str = include_str!("judged.tsv");

/// The keys in which this crate differs on purpose; the table at the top of `surt.rs` says why.
const DIFFERENT: &[(&str, &str)] = &[
    ("http://example.com/..", "com,example)/"),
    ("http://example.com/../", "com,example)/"),
    ("http://example.com/../a/..", "com,example)/"),
    ("http://example.com/a/../..", "com,example)/"),
    ("example.com:8080/a", "com,example:8080)/a"),
    ("example.com:80/", "com,example)/"),
    ("http://example.com:abc/", "com,example:abc)/"),
    ("http://example.com:99999/", "com,example:99999)/"),
    ("http://example.com:80:80/", "com:80:80,example)/"),
    ("http://example.com:+80/", "com,example:+80)/"),
    ("http://example.com: 80/", "com,example:%2080)/"),
    ("http://example.com:8 0/", "com,example:8%200)/"),
    ("1foo:bar", "1foo:bar)/"),
    ("foo_bar:baz", "foo_bar:baz)/"),
    ("http://::1/", "::1)/"),
    ("http://a[b]c/", "a[b]c)/"),
    ("DNS:Example.COM", "dns:example.com"),
    ("WARCINFO:Foo", "warcinfo:foo"),
    ("METADATA:foo", "metadata:foo"),
    ("HTTPS:EXAMPLE.com", "com,example)/"),
    ("http://ex%e4mple.de/", "de,ex%e4mple)/"),
    ("http://aé..com/", "com,xn--a-bga)/"),
    ("http://.é", "xn--9ca)/"),
    (".", "http:/"),
    ("?", "http:/"),
    ("#", "http:/"),
    (":", "http:/"),
    ("http:", "http:/"),
    ("http://", "http:/"),
    ("http://?", "http:/"),
    ("http://#", "http:/"),
    ("file:///A/b/../c", "file:/a/c"),
    ("http:://example.com/", "http:/example.com"),
];

pub(super) fn judged() -> Vec<(String, &'static str)> {
    let row = |line: &'static str| {
        let (url, key) = line.split_once('\t').unwrap();
        (serde_json::from_str(url).unwrap(), key)
    };
    JUDGED.lines().map(row).collect()
}

/// Fails if a URL gets another key than the Python package `surt` makes, so that other indexes do not find its
/// captures.
#[test]
fn keys_are_those_of_the_field() {
    let wrong: Vec<String> = judged()
        .into_iter()
        .filter(|(url, key)| UrlKey::parse(url).as_str() != *key)
        .map(|(url, key)| format!("{url:?}: {} and not {key}", UrlKey::parse(&url)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(judged().len() > 350);
}

/// Fails if a documented difference from `surt` 0.3.1 is lost, for example that `..` never climbs above the host.
#[test]
fn documented_surt_differences_are_kept() {
    for (url, key) in DIFFERENT {
        assert_eq!(UrlKey::parse(url).as_str(), *key, "{url}");
    }
}

/// Fails if arbitrary bytes for a URL give a key that is empty, or that has a blank, a line end or a byte beyond ASCII.
#[test]
fn any_bytes_give_key_of_one_line() {
    let mut seed = 3_u64;
    let alphabet = b"htp:/wW.@[]?&#=%25aFe\xc3\xa9\xff \t\n\0();-0129sid";
    for round in 0..200_000_usize {
        let url: Vec<u8> = (0..round % 40)
            .map(|_| {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                alphabet[usize::try_from(seed % 1000).unwrap() % alphabet.len()]
            })
            .collect();
        let key = UrlKey::parse(&url);
        let fits = key.as_str().bytes().all(|b| b > 0x20 && b < 0x7f);
        assert!(
            fits && !key.as_str().is_empty(),
            "{:?} {key}",
            url.escape_ascii().to_string()
        );
    }
}

/// Fails if a cut or changed URL makes the parser panic, or gives an empty key.
#[test]
fn every_prefix_and_changed_byte_gives_key() {
    for (url, _) in judged() {
        let url = url.as_bytes();
        for at in 0..url.len() {
            assert!(!UrlKey::parse(&url[..at]).as_str().is_empty());
            let mut changed = url.to_vec();
            for byte in [0, b' ', b'%', b':', b'/', b'?', 0xff] {
                changed[at] = byte;
                assert!(!UrlKey::parse(&changed).as_str().is_empty());
            }
        }
    }
}

/// Fails if a URL with a short part repeated takes time in the square of its length, which here is many minutes.
#[test]
fn long_urls_get_keys_in_proportion() {
    /// The length of the URLs, in bytes.
    const LENGTH: usize = 4 << 20;
    let parts = [
        "%25",
        "a/../",
        "/(",
        "&sid=",
        "cfid=1&cftoken=2&",
        "cfid=",
        "&cftoken=",
        "/(4hqa0555fwsecu455xqckv45)",
        "http://",
        ".",
        "é",
        "?",
        "&b=1&a=2",
        "(S(",
    ];
    for part in parts {
        let keys = tools_testing::in_time_blocking(move || {
            let long = part.repeat(LENGTH / part.len());
            [
                format!("http://a.b/?{long}"),
                format!("http://{long}/x.aspx"),
                format!("http://a.b/{long}x.aspx"),
            ]
            .map(UrlKey::parse)
        });
        assert!(keys.iter().all(|key| !key.as_str().is_empty()), "{part}");
    }
}

/// Fails if the host of a key loses its port, or a key without a host has one.
#[test]
fn keys_have_hosts() {
    assert_eq!(
        UrlKey::parse("http://www.a.b:8080/c").host(),
        Some("b,a:8080")
    );
    assert_eq!(UrlKey::parse("dns:a.b").host(), None);
}

/// Fails if an address with fewer than four numbers is not filled with zeros, or a number above 255 passes for a part
/// of one.
#[test]
fn old_numbers_are_addresses() {
    assert_eq!(
        authority::dotted_address("127.1").as_deref(),
        Some("127.0.0.1")
    );
    assert_eq!(authority::dotted_address("1.2.3.256"), None);
}
