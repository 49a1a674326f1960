//! Tests of the policies that an order becomes.

use std::time::Duration;

use harvest_policy::hops::HopPath;
use harvest_policy::scope::ScopeRule;

use super::*;
use crate::order::tests::FULL;

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

fn parse(text: &str) -> CrawlOrder {
    CrawlOrder::parse(text).unwrap()
}

/// Fails if a default of the order differs from that of the policy it becomes.
#[test]
fn defaults_are_those_of_the_policies() {
    let order = CrawlOrder::default();
    assert_eq!(order.queue_limits("a.dk"), QueueLimits::default());
    assert_eq!(
        order.politeness_for(&url("http://a.dk/")),
        Politeness::default()
    );
    assert_eq!(order.retry_rules(), RetryRules::default());
    let own = order.scope_for(&[], &SuffixList::default()).unwrap();
    let usual = Scope::default();
    assert_eq!(format!("{own:?}"), format!("{usual:?}"));
}

/// Fails if a seed opens more of the web than its kind says, or less.
#[test]
fn seeds_open_their_part_of_the_web() {
    let seeds = [
        url("https://www.example.co.uk:8443/d/page"),
        url("http://10.0.0.1/d/"),
        url("http://github.io/d/"),
    ];
    let cases: [(&str, &[&str], &[&str]); 3] = [
        (
            "domain",
            &[
                "http://example.co.uk/",
                "http://a.b.example.co.uk:81/",
                "http://10.0.0.1/x",
            ],
            &[
                "http://other.co.uk/",
                "http://10.0.0.10/",
                "http://user.github.io/",
                "http://10.0.0.1:81/",
            ],
        ),
        (
            "host",
            &["https://www.example.co.uk:8443/x", "http://10.0.0.1/x"],
            &["http://www.example.co.uk/", "http://example.co.uk/"],
        ),
        (
            "prefix",
            &["https://www.example.co.uk:8443/d/x", "http://10.0.0.1/d/x"],
            &["https://www.example.co.uk:8443/x", "http://10.0.0.1/"],
        ),
    ];
    for (kind, inside, outside) in cases {
        let order = parse(&format!(
            "[scope]\nkind = {kind:?}\nreject = [\"http://(uk,co,example,www,:8443)/d/no\"]"
        ));
        let scope = order.scope_for(&seeds, &SuffixList::default()).unwrap();
        let hops: HopPath = "L".parse().unwrap();
        for text in inside {
            assert!(
                scope.decide_scope(&url(text), &hops).is_accepted(),
                "{kind} {text}"
            );
        }
        for text in outside {
            assert_eq!(
                scope.decide_scope(&url(text), &hops).rule,
                ScopeRule::Outside,
                "{kind} {text}"
            );
        }
        let rejected = scope.decide_scope(&url("https://www.example.co.uk:8443/d/no"), &hops);
        assert_eq!(rejected.rule, ScopeRule::RejectedPrefix, "{kind}");
    }
}

/// Fails if objects are counted by both rules, by none, or against the looser of two limits.
#[test]
fn objects_are_counted_by_quota_or_budget() {
    for (text, successes, total) in [
        ("max_objects = 5", Some(5), None),
        ("max_objects = 5\nobjects_by_quota = false", None, Some(5)),
        (
            "max_objects = 5\ntotal_budget = 3\nobjects_by_quota = false",
            None,
            Some(3),
        ),
        (
            "max_objects = 5\ntotal_budget = 9\nobjects_by_quota = false",
            None,
            Some(5),
        ),
        ("max_objects = 5\ntotal_budget = 9", Some(5), Some(9)),
        ("total_budget = 9", None, Some(9)),
    ] {
        let limits = parse(&format!("[queues]\n{text}")).queue_limits("a.dk");
        assert_eq!(
            (limits.successes, limits.total),
            (successes, total),
            "{text}"
        );
    }
}

/// Fails if an overlay reaches too far, one of several is passed by, or the first one stands.
#[test]
fn last_overlay_of_a_key_stands() {
    let order = parse(FULL);
    let min = |text: &str| order.politeness_for(&url(text)).min_delay;
    assert_eq!(min("http://other.dk/"), Duration::from_millis(300));
    assert_eq!(min("http://example.dk/"), Duration::from_secs(5));
    assert_eq!(min("https://www.example.dk/x"), Duration::from_secs(7));
    let limits = |name| order.queue_limits(name);
    assert_eq!(limits("other.dk").session, 10);
    assert_eq!(limits("example.dk").session, 20);
    assert_eq!(
        (limits("example.dk").total, limits("www.example.dk").total),
        (Some(7), Some(3))
    );
    assert_eq!(limits("example.dk").bytes, Some(1_000_000));
    assert_eq!(
        (
            limits("[::1]").session,
            limits("mailto").session,
            limits("").session
        ),
        (10, 10, 10)
    );
    let scope = order.scope_for(&[], &SuffixList::default()).unwrap();
    assert_eq!(scope.overlays.len(), 2);
    assert_eq!(scope.overlays[0].max_repeats, Some(6));
    assert!(scope.overlays[0].traps.catches_uri("a pit"));
    let both = order.politeness_for(&url("https://www.example.dk/x"));
    assert_eq!(both.max_delay, Duration::from_secs(50));
    assert_eq!(both.max_bytes_per_second, Some(1000));
    for (text, policy, body) in [
        ("http://other.dk/", RobotsPolicy::Ignore, 2 << 20),
        ("http://www.example.dk/", RobotsPolicy::Obey, 3 << 20),
    ] {
        assert_eq!(order.robots_policy_for(&url(text)), policy, "{text}");
        assert_eq!(order.max_body_for(&url(text)), Some(body), "{text}");
    }
}

/// Fails if a password is offered to another host than its own.
#[test]
fn credentials_are_for_their_host_only() {
    let order = parse(FULL);
    let count = |text: &str| order.credentials_for(&url(text)).count();
    assert_eq!(count("https://WWW.example.dk:8443/x"), 1);
    assert_eq!(count("https://login.example.dk/"), 1);
    let answers = |text: &str, realm| {
        order
            .credentials_for(&url(text))
            .any(|own| own.answers_realm(realm))
    };
    assert!(answers("https://www.example.dk/", "members"));
    assert!(!answers("https://www.example.dk/", "others"));
    assert!(!answers("https://login.example.dk/", "members"));
    for text in [
        "https://example.dk/",
        "https://www.example.dk.evil.dk/",
        "https://awww.example.dk/",
    ] {
        assert_eq!(count(text), 0, "{text}");
    }
}

/// Fails if a crawl leaves this machine without a contact, or needs one to stay on it.
#[test]
fn contact_is_wanted_off_this_machine() {
    let silent = CrawlOrder::default();
    let full = parse(FULL);
    for text in [
        "http://127.0.0.1:8080/",
        "http://[::1]/",
        "http://localhost/",
        "http://a.localhost/",
    ] {
        assert_eq!(silent.check_contact(&[url(text)]), Ok(()), "{text}");
    }
    for text in [
        "http://example.dk/",
        "http://10.0.0.1/",
        "http://localhost.dk/",
    ] {
        let seeds = [url("http://localhost/"), url(text)];
        let error = silent.check_contact(&seeds).unwrap_err();
        assert_eq!(error.key.as_deref(), Some("http.contact"));
        assert!(error.message.contains(text), "{error}");
        assert_eq!(full.check_contact(&seeds), Ok(()));
    }
    assert_eq!(
        full.user_agent("1.2"),
        "netarkivet/1.2 (+https://example.dk/about)"
    );
    assert!(
        silent
            .user_agent("1.2")
            .contains("holdfast/1.2; +no contact")
    );
}

/// Fails if a seed that is an address cannot be fetched, or opens its neighbours.
#[test]
fn seed_addresses_are_allowed() {
    let seeds = [
        "http://127.0.0.1:8080/",
        "http://127.0.0.1/",
        "http://localhost/",
        "http://a.dk/",
    ];
    let allowed = CrawlOrder::default().allowed_networks(&seeds.map(url));
    let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
    assert_eq!(allowed, ["127.0.0.1/32", "::1/128"]);
    assert_eq!(parse(FULL).allowed_networks(&[]).len(), 2);
}

/// Fails if the address of a name server is read as another one.
#[test]
fn name_server_has_port_53_by_itself() {
    let servers: Vec<String> = parse(FULL)
        .dns
        .servers
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(servers, ["127.0.0.1:53", "[::1]:5353"]);
}
