//! Keys, spans, filters and cursors, and thinning held against models that do it the long way.

use super::*;

/// Fails if a match kind selects other keys than the field's servers do.
#[test]
fn match_kinds_select_their_keys() {
    let keys = [
        "com,example",
        "com,example)/",
        "com,example)/a",
        "com,example)/a/b",
        "com,example)/ab",
        "com,example,www2)/a",
        "com,example-two)/",
        "com,example:8080)/a",
        "com,examples)/a",
        "org,example)/",
    ];
    let check = |kind: MatchKind, url: &str, expected: &[&str]| {
        let keys_of_url = KeyMatch::of(kind, url).unwrap();
        let found: Vec<&str> = keys
            .into_iter()
            .filter(|k| keys_of_url.matches(k))
            .collect();
        assert_eq!(found, expected, "{kind} {url}");
    };
    use MatchKind::{Domain, Exact, Host, Prefix, Range};
    check(Exact, "http://example.com/a", &["com,example)/a"]);
    check(
        Prefix,
        "http://example.com/a",
        &["com,example)/a", "com,example)/a/b", "com,example)/ab"],
    );
    check(Prefix, "http://example.com/a/", &["com,example)/a/b"]);
    let host = [
        "com,example)/",
        "com,example)/a",
        "com,example)/a/b",
        "com,example)/ab",
    ];
    check(Host, "https://www.example.com/z?q", &host);
    check(Host, "example.com:8080/", &["com,example:8080)/a"]);
    let domain: Vec<&str> = host.into_iter().chain(["com,example,www2)/a"]).collect();
    check(Domain, "example.com", &domain);
    check(Domain, "com", &keys[..9]);
    check(Range, "example.com:8080/", &keys[7..]);
}
