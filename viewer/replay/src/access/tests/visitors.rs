//! Visitors and what they say of themselves.

use super::*;

fn settings() -> VisitorSettings {
    let group = |name: &str| name.parse::<Group>().unwrap();
    VisitorSettings {
        networks: vec![
            ("192.0.2.0/24".parse().unwrap(), group("reading-room")),
            ("2001:db8::/32".parse().unwrap(), group("reading-room")),
            ("10.0.0.0/8".parse().unwrap(), group("house")),
        ],
        trusted_proxies: vec!["10.0.0.1".parse().unwrap(), "10.0.0.2/31".parse().unwrap()],
    }
}

fn groups(peer: &str, acl_user: &[&[u8]], forwarded_for: &[&[u8]]) -> Vec<String> {
    let facts = PeerFacts {
        address: Some(peer.parse::<IpAddr>().unwrap()),
        acl_user,
        forwarded_for,
    };
    let visitor = settings().identify_visitor(&facts);
    visitor.groups().map(ToString::to_string).collect()
}

/// Fails if a stranger gets a group by a header, or a proxy lends its own network to its clients.
#[test]
fn headers_of_strangers_mean_nothing() {
    let none: &[&str] = &[];
    assert_eq!(groups("198.51.100.1", &[b"staff"], &[b"192.0.2.7"]), none);
    assert_eq!(groups("192.0.2.7", &[b"staff"], &[]), ["reading-room"]);
    assert_eq!(groups("10.0.0.9", &[b"staff"], &[b"192.0.2.7"]), ["house"]);
    assert_eq!(groups("10.0.0.1", &[], &[]), none);
    assert_eq!(groups("10.0.0.1", &[], &[b"198.51.100.1"]), none);
    let unknown = PeerFacts {
        acl_user: &[b"staff"],
        ..PeerFacts::default()
    };
    assert_eq!(settings().identify_visitor(&unknown), Visitor::anonymous());
}

/// Fails if a trusted proxy is not believed, or a client behind it can put an address or a user in front.
#[test]
fn trusted_proxy_speaks_for_client() {
    let none: &[&str] = &[];
    assert_eq!(
        groups("10.0.0.1", &[b" staff "], &[b"192.0.2.7"]),
        ["reading-room", "staff"]
    );
    assert_eq!(groups("10.0.0.3", &[b"staff", b"staff"], &[]), ["staff"]);
    assert_eq!(groups("10.0.0.1", &[b"staff", b"admin"], &[]), none);
    assert_eq!(groups("10.0.0.1", &[b""], &[]), none);
    assert_eq!(groups("10.0.0.1", &[b"a\x00b"], &[]), none);
    // The client wrote the first address, the proxies the others.
    assert_eq!(
        groups("10.0.0.1", &[], &[b"192.0.2.7, 198.51.100.1, 10.0.0.2"]),
        none
    );
    assert_eq!(
        groups(
            "10.0.0.1",
            &[],
            &[b"198.51.100.1", b"192.0.2.7:4711,10.0.0.2"]
        ),
        ["reading-room"]
    );
    assert_eq!(groups("10.0.0.1", &[], &[b"192.0.2.7, unknown"]), none);
    assert_eq!(
        groups("10.0.0.1", &[], &[b"[2001:db8::1]:80"]),
        ["reading-room"]
    );
    assert_eq!(
        groups("::ffff:10.0.0.1", &[b"staff"], &[b"::ffff:192.0.2.7"]),
        ["reading-room", "staff"]
    );
}

/// Fails if a network has wrong ends, or another text is taken for one.
#[test]
fn networks_have_right_ends() {
    for (network, inside, outside) in [
        ("192.0.2.0/24", "192.0.2.255", "192.0.3.0"),
        ("192.0.2.4/30", "192.0.2.7", "192.0.2.8"),
        ("192.0.2.1", "192.0.2.1", "192.0.2.2"),
        ("0.0.0.0/0", "255.255.255.255", "::1"),
        ("::/0", "ffff::1", "1.2.3.4"),
        ("2001:db8::/127", "2001:db8::1", "2001:db8::2"),
    ] {
        let network: VisitorNetwork = network.parse().unwrap();
        assert!(
            network.contains(inside.parse().unwrap()),
            "{network:?} {inside}"
        );
        assert!(
            !network.contains(outside.parse().unwrap()),
            "{network:?} {outside}"
        );
    }
    for wrong in [
        "",
        "192.0.2.0/33",
        "192.0.2.1/24",
        "192.0.2.0/",
        "192.0.2.0/+8",
        "a/8",
        "::/129",
        "192.0.2.0/8/8",
    ] {
        assert!(wrong.parse::<VisitorNetwork>().is_err(), "{wrong}");
    }
}

/// Fails if a name is taken for a group that a header or a log could break on.
#[test]
fn group_names_are_plain() {
    for good in ["staff", "læsesal 2", &"x".repeat(100)] {
        assert!(good.parse::<Group>().is_ok(), "{good}");
    }
    for wrong in ["", " a", "a ", "a\nb", "a\u{0}", &"x".repeat(101)] {
        assert!(wrong.parse::<Group>().is_err(), "{wrong:?}");
    }
}

/// Fails if a network is taken that no client can ever be in.
#[test]
fn mapped_networks_are_refused() {
    for text in ["::ffff:10.0.0.0/104", "::ffff:10.0.0.1"] {
        let error = text.parse::<VisitorNetwork>().unwrap_err().to_string();
        assert!(error.contains("write it as IPv4"), "{error}");
    }
}
