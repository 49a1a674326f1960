//! Tests of the settings: what is refused, and what must be said beyond loopback.

use archive_daemon::settings::{Sources, load_settings, print_settings};

use viewer_replay::access::Embargo;

use super::*;

const LEAST: [&str; 7] = [
    "rpc.listen=127.0.0.1:0",
    "rpc.certificate=c.pem",
    "rpc.key=k.pem",
    "rpc.authorities=a.pem",
    "viewer.repository=127.0.0.1:1",
    "viewer.index=127.0.0.1:2",
    "viewer.trust=trust.json",
];

/// Loads the least settings with these.
pub(crate) fn settings(set: &[&str]) -> Settings {
    let sources = Sources::from_set(LEAST.iter().chain(set).copied());
    load_settings(&sources).unwrap()
}

fn refusal(set: &[&str]) -> String {
    settings(set).check().unwrap_err().to_string()
}

/// Fails if a viewer with the least settings is reachable from elsewhere, or has no collection.
#[test]
fn least_settings_listen_on_loopback_with_one_collection() {
    let least = settings(&[]);
    least.check().unwrap();
    assert!(least.replay.listen.ip().is_loopback());
    let collections = least.all_collections();
    assert_eq!(collections.len(), 1);
    assert_eq!(collections[0].name, "all");
    let printed = print_settings(&least).unwrap();
    assert!(printed.contains("longest_url = "), "{printed}");
}

/// Fails if other machines reach a listener without TLS, or one for which no access was decided.
#[test]
fn beyond_loopback_needs_tls_and_explicit_access() {
    let open = "replay.listen=0.0.0.0:80";
    let tls = ["replay.certificate=c.pem", "replay.key=k.pem"];
    let access = "access={ trusted_proxies = [] }";
    let named = "collection=[{ name = \"a\" }]";
    let decided = "collection=[{ name = \"a\", default_access = \"block\" }]";
    assert!(refusal(&[open]).contains("replay.certificate"));
    assert!(refusal(&["replay.listen=[2001:db8::1]:80"]).contains("replay.certificate"));
    assert!(refusal(&[open, tls[0], tls[1]]).contains("[access]"));
    assert!(refusal(&[open, tls[0], tls[1], access]).contains("[access]"));
    assert!(refusal(&[open, tls[0], tls[1], access, named]).contains("default_access"));
    settings(&[open, tls[0], tls[1], access, decided])
        .check()
        .unwrap();
    settings(&["replay.listen=[::1]:80"]).check().unwrap();
    settings(&["replay.listen=[::ffff:127.0.0.1]:80"])
        .check()
        .unwrap();
}

/// Fails if archived pages and pages for people can share the cookies of one host.
#[test]
fn one_host_for_pages_and_replay_is_refused() {
    let local = "web.url=http://localhost:8080";
    for set in [
        &["web={}"][..],
        &["web.listen=127.0.0.1:81", "replay.listen=127.0.0.1:80"],
        &[
            "web.listen=127.0.0.1:81",
            "replay.listen=[::ffff:127.0.0.1]:80",
        ],
        &[local, "replay.url=http://LOCALHOST:8081"],
        &[
            "web.url=https://a.example",
            "replay.url=https://a.example.:8443",
        ],
    ] {
        let error = refusal(set);
        assert!(
            error.contains("cookies") && error.contains("web.url"),
            "{error}"
        );
    }
    for set in [
        &[local, "web.listen=127.0.0.1:81"][..],
        &["web.listen=[::1]:81", "replay.listen=127.0.0.1:80"],
        &["web.url=https://a.example", "replay.url=https://b.example"],
    ] {
        settings(set).check().unwrap();
    }
    assert_eq!(settings(&[]).web, None);
}

/// Fails if the page host is reachable without TLS, or before anybody decided about access.
#[test]
fn pages_beyond_loopback_need_what_replay_needs() {
    let url = "web.url=https://archive.example.org";
    let open = "web.listen=0.0.0.0:80";
    let tls = ["web.certificate=c.pem", "web.key=k.pem"];
    let access = "access={ trusted_proxies = [] }";
    let decided = "collection=[{ name = \"a\", default_access = \"block\" }]";
    assert!(refusal(&[open]).contains("web.url"));
    assert!(refusal(&[url, open]).contains("web.certificate"));
    assert!(refusal(&[url, open, tls[0], tls[1]]).contains("[access]"));
    let all = [url, open, tls[0], tls[1], access, decided];
    settings(&all).check().unwrap();
    assert!(refusal(&[url, "web.key=k.pem"]).contains("web.certificate and web.key"));
    assert!(refusal(&[url, "web.answer_time=0 s"]).contains("web.answer_time"));
    assert!(refusal(&["web.url=https://a;b"]).contains("web.url"));
}

/// Fails if a setting that cannot work is found out by a visitor.
#[test]
fn unusable_settings_are_refused_with_their_name() {
    for (set, says) in [
        ("replay.answer_time=0 s", "answer_time"),
        ("replay.longest_url=0 B", "longest_url"),
        ("replay.key=k.pem", "belong together"),
        ("replay.url=replay.example.org", "replay.example.org"),
        ("replay.url=https://example.org/path", "/path"),
        ("replay.url=https://u:p@example.org", "u:p@"),
        ("collection=[{ name = \"cdx\" }]", "\"cdx\""),
        ("collection=[{ name = \"a/b\" }]", "\"a/b\""),
        (
            "collection=[{ name = \"a\" }, { name = \"a\" }]",
            "two collections",
        ),
        ("collection=[{ name = \"a\", files = \"(\" }]", "files"),
        (
            "collection=[{ name = \"a\", embargo = {} }]",
            "no condition",
        ),
        (
            "collection=[{ name = \"a\", embargo = { newer = {} } }]",
            "embargo",
        ),
        (
            "collection=[{ name = \"a\", embargo = { before = \"20261399\" } }]",
            "embargo",
        ),
        (
            "collection=[{ name = \"a\", file_groups = [\"\"] }]",
            "file_groups",
        ),
        ("access.trusted_proxies=[\"10.0.0.1/8\"]", "access"),
        (
            "access.network=[{ network = \"x\", group = \"g\" }]",
            "access",
        ),
    ] {
        let error = refusal(&[set]);
        assert!(error.contains(says), "{set}: {error}");
    }
    settings(&["replay.url=https://replay.example.org:8443"])
        .check()
        .unwrap();
}

/// Fails if an embargo or a pattern does not become what it says.
#[test]
fn collection_settings_become_a_policy() {
    let set = "collection=[{ name = \"a\", files = \"x-.*\", jobs = [1, 2], \
               embargo = { access = \"block\", newer = { years = 1 } } }]";
    let settings = settings(&[set]);
    settings.check().unwrap();
    let collection = &settings.collections[0];
    assert!(collection.pattern().unwrap().unwrap().is_match("x-1.warc"));
    assert_ne!(collection.embargo().unwrap(), Embargo::default());
}
