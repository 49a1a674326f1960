//! Tests of the addresses that a crawl may connect to. Does not connect to any.

use super::*;

/// The first and last address of a block, its purpose, and the public neighbours on both sides.
type Block = (
    &'static str,
    &'static str,
    SpecialPurpose,
    Option<&'static str>,
    Option<&'static str>,
);

const BLOCKS: [Block; 25] = {
    use SpecialPurpose as P;
    [
        (
            "0.0.0.0",
            "0.255.255.255",
            P::Unspecified,
            None,
            Some("1.0.0.0"),
        ),
        (
            "10.0.0.0",
            "10.255.255.255",
            P::Private,
            Some("9.255.255.255"),
            Some("11.0.0.0"),
        ),
        (
            "100.64.0.0",
            "100.127.255.255",
            P::Shared,
            Some("100.63.255.255"),
            Some("100.128.0.0"),
        ),
        (
            "127.0.0.0",
            "127.255.255.255",
            P::Loopback,
            Some("126.255.255.255"),
            Some("128.0.0.0"),
        ),
        (
            "169.254.0.0",
            "169.254.255.255",
            P::LinkLocal,
            Some("169.253.255.255"),
            Some("169.255.0.0"),
        ),
        (
            "172.16.0.0",
            "172.31.255.255",
            P::Private,
            Some("172.15.255.255"),
            Some("172.32.0.0"),
        ),
        (
            "192.0.0.0",
            "192.0.0.255",
            P::Reserved,
            Some("191.255.255.255"),
            Some("192.0.1.0"),
        ),
        (
            "192.0.2.0",
            "192.0.2.255",
            P::Documentation,
            Some("192.0.1.255"),
            Some("192.0.3.0"),
        ),
        (
            "192.88.99.0",
            "192.88.99.255",
            P::Reserved,
            Some("192.88.98.255"),
            Some("192.88.100.0"),
        ),
        (
            "192.168.0.0",
            "192.168.255.255",
            P::Private,
            Some("192.167.255.255"),
            Some("192.169.0.0"),
        ),
        (
            "198.18.0.0",
            "198.19.255.255",
            P::Benchmarking,
            Some("198.17.255.255"),
            Some("198.20.0.0"),
        ),
        (
            "198.51.100.0",
            "198.51.100.255",
            P::Documentation,
            Some("198.51.99.255"),
            Some("198.51.101.0"),
        ),
        (
            "203.0.113.0",
            "203.0.113.255",
            P::Documentation,
            Some("203.0.112.255"),
            Some("203.0.114.0"),
        ),
        (
            "224.0.0.0",
            "233.251.255.255",
            P::Multicast,
            Some("223.255.255.255"),
            None,
        ),
        ("233.252.0.0", "233.252.0.255", P::Documentation, None, None),
        ("233.252.1.0", "239.255.255.255", P::Multicast, None, None),
        ("240.0.0.0", "255.255.255.254", P::Reserved, None, None),
        (
            "255.255.255.255",
            "255.255.255.255",
            P::Multicast,
            None,
            None,
        ),
        (
            "::2",
            "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            P::Reserved,
            None,
            Some("2000::"),
        ),
        (
            "2001::",
            "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff",
            P::Reserved,
            Some("2000:ffff::1"),
            Some("2001:200::"),
        ),
        (
            "2001:db8::",
            "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
            P::Documentation,
            Some("2001:db7:ffff::"),
            Some("2001:db9::"),
        ),
        (
            "3fff::",
            "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff",
            P::Documentation,
            Some("3ffe:ffff::"),
            Some("3fff:1000::"),
        ),
        (
            "fc00::",
            "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            P::Private,
            None,
            None,
        ),
        (
            "fe80::",
            "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            P::LinkLocal,
            None,
            None,
        ),
        (
            "ff00::",
            "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            P::Multicast,
            None,
            None,
        ),
    ]
};

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn purpose(text: &str) -> Option<SpecialPurpose> {
    decide_address(address(text), &[])
        .err()
        .map(|error| error.purpose)
}

/// Fails if a block begins or ends at another address than in its registry, or has another purpose.
#[test]
fn each_block_ends_where_its_registry_says() {
    for (first, last, expected, before, after) in BLOCKS {
        for text in [first, last] {
            assert_eq!(purpose(text), Some(expected), "{text}");
        }
        for text in [before, after].into_iter().flatten() {
            assert_eq!(purpose(text), None, "{text}");
        }
    }
    for (text, expected) in [
        ("::", SpecialPurpose::Unspecified),
        ("::1", SpecialPurpose::Loopback),
        ("::127.0.0.1", SpecialPurpose::Reserved),
        ("64:ff9b:1::1", SpecialPurpose::Reserved),
        ("100::1", SpecialPurpose::Reserved),
        ("4000::", SpecialPurpose::Reserved),
        ("5f00::1", SpecialPurpose::Reserved),
        ("fbff::", SpecialPurpose::Reserved),
        ("fe00::", SpecialPurpose::Reserved),
        ("fec0::1", SpecialPurpose::Private),
    ] {
        assert_eq!(purpose(text), Some(expected), "{text}");
    }
}

/// Fails if an IPv4 address of special purpose is reached by one of its IPv6 forms, or a public one is not.
#[test]
fn embedded_address_is_decided_as_itself() {
    for (first, last, expected, before, after) in BLOCKS {
        let forbidden = [first, last].map(|text| (text, Some(expected)));
        let public = [before, after]
            .into_iter()
            .flatten()
            .map(|text| (text, None));
        for (text, expected) in forbidden.into_iter().chain(public) {
            let IpAddr::V4(inner) = address(text) else {
                continue;
            };
            let [a, b, c, d] = inner.octets();
            let forms = [
                format!("::ffff:{inner}"),
                format!("64:ff9b::{inner}"),
                format!("2002:{a:02x}{b:02x}:{c:02x}{d:02x}::1"),
            ];
            for form in forms {
                assert_eq!(purpose(&form), expected, "{form}");
            }
        }
    }
}

/// Fails if an allowed network does not open its addresses, or opens others.
#[test]
fn allowed_network_opens_its_addresses_only() {
    let allowed = ["10.1.0.0/16", "127.0.0.1", "fd00::/8", "0.0.0.0/0"];
    let allowed: Vec<AddressNetwork> = allowed.iter().map(|text| text.parse().unwrap()).collect();
    let (all, some) = allowed.split_last().unwrap();
    for (text, is_allowed) in [
        ("10.1.0.0", true),
        ("10.1.255.255", true),
        ("10.0.255.255", false),
        ("10.2.0.0", false),
        ("127.0.0.1", true),
        ("127.0.0.2", false),
        ("::1", false),
        ("::ffff:10.1.2.3", true),
        ("::ffff:10.2.2.3", false),
        ("2002:a01:203::", true),
        ("fd12::1", true),
        ("fc12::1", false),
        ("8.8.8.8", true),
    ] {
        assert_eq!(
            decide_address(address(text), some).is_ok(),
            is_allowed,
            "{text}"
        );
    }
    assert!(decide_address(address("192.168.0.1"), &[*all]).is_ok());
    assert!(decide_address(address("fe80::1"), &[*all]).is_err());
    assert!(decide_address(address("fe80::1"), &["::/0".parse().unwrap()]).is_ok());
}

/// Fails if a network is guessed, or the error does not say what to write.
#[test]
fn unclear_network_is_refused() {
    for text in [
        "10.0.0.0/8",
        "0.0.0.0/0",
        "1.2.3.4/32",
        "fd00::/8",
        "::/0",
        "::1/128",
    ] {
        assert_eq!(text.parse::<AddressNetwork>().unwrap().to_string(), text);
    }
    assert_eq!(
        "1.2.3.4".parse::<AddressNetwork>().unwrap().to_string(),
        "1.2.3.4/32"
    );
    for (text, expected) in [
        ("10.0.0.1/8", "write `10.0.0.0/8`"),
        ("fd00::1/8", "write `fd00::/8`"),
        ("10.0.0.0/33", "from 0 to 32"),
        ("::/129", "from 0 to 128"),
        ("10.0.0.0/", "from 0 to 32"),
        ("10.0.0.0/-1", "from 0 to 32"),
        ("10.0.0/8", "for example"),
        ("localhost", "for example"),
        ("", "for example"),
        (" 10.0.0.0/8", "for example"),
    ] {
        let error = text.parse::<AddressNetwork>().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// Fails if the message of a refused address does not say what it is and what to do.
#[test]
fn refused_address_says_what_to_do() {
    let error = decide_address(address("127.0.0.1"), &[])
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "127.0.0.1 is a loopback address, where pages of the public web must not lead; allow its network in the order if it \
         shall be crawled"
    );
}
