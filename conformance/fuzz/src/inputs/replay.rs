//! Requests of strangers, rule files of operators, and archived heads and pages, as the viewer reads them.

use archive_formats::date::Stamp;
use archive_formats::http::Head;
use archive_formats::surt::UrlKey;
use jiff::Timestamp;
use viewer_replay::access::{AccessPolicy, AccessSubject, RuleFile, RuleSet, Visitor};
use viewer_replay::memento;
use viewer_replay::request::{Addresses, ReplayRequest};
use viewer_replay::response::{Redirects, ReplyHead, ReplyOptions};
use viewer_replay::rewrite::{PageMode, PageOptions, PageRewriter, page_encoding};

/// Paths of each kind.
pub(super) fn replay_request_seeds() -> Vec<Vec<u8>> {
    [
        "/all/20200102030405mp_/http:/a.dk/x?y=%C3%A6&z=http://b/",
        "/all/2020*/a.dk:8080/x*",
        "/all/timemap/link/2/http%3A%2F%2Fa.dk%2F%2520",
        "/all/id_/https://user@xn--blbr-roah.dk/;a?b#c",
        "/cdx/search/cdx?url=a.dk/*",
        "/all?url=http://a.dk/",
        "/all/getRecord?arcFile=a.warc.gz&arcOffset=12",
        "/replay/all/20200102030405006/dns:a.dk",
    ]
    .map(|path| path.as_bytes().to_vec())
    .into()
}

/// A URL has no control characters; a refusal is one of the client's faults; an address reads back as what it was made
/// from.
pub(super) fn replay_request(input: &[u8]) {
    let dates = memento::accept_datetime([input]);
    assert!(dates.is_err() || input.is_ascii());
    let Ok(path) = str::from_utf8(input) else {
        return;
    };
    let target = match ReplayRequest::parse(path) {
        Ok(
            ReplayRequest::TimeMap { target, .. }
            | ReplayRequest::TimeGate { target, .. }
            | ReplayRequest::Memento { target, .. }
            | ReplayRequest::Calendar { target, .. }
            | ReplayRequest::Page { target, .. },
        ) => target,
        Ok(_) => return,
        Err(error) => {
            assert!((400..500).contains(&error.status()), "{error}");
            assert!(!error.to_string().contains(char::is_control), "{error:?}");
            return;
        }
    };
    assert!(!target.url().contains(char::is_control));
    let time: Stamp = "20200102030405".parse().unwrap();
    let address = Addresses::new("", "all").memento_address(time, None, target.url());
    assert!(address.bytes().all(|byte| byte.is_ascii_graphic()));
    // Blanks around a URL are no part of it, until they are escaped.
    if target.url().bytes().all(|byte| byte.is_ascii_graphic())
        && let Ok(ReplayRequest::Memento {
            time: found,
            target: again,
            ..
        }) = ReplayRequest::parse(&address)
    {
        assert_eq!(found.stamp(), time);
        assert_eq!(again.key(), target.key(), "{address}");
    }
}

/// Returns rule files with every field.
pub(super) fn access_rules_seeds() -> Vec<Vec<u8>> {
    [
        "com,a)/x### - {\"access\": \"allow\", \"user\": \"staff\", \"url\": \"http://a.com/x\"}\ncom,a)/ - {\"access\": \"block\", \"before\": \"2010\", \"after\": 2001}\n",
        "com,a)/ - {\"access\": \"exclude\", \"newer\": {\"years\": 1, \"months\": 2}}\r\n*, - {\"access\": \"allow_ignore_embargo\", \"older\": {\"weeks\": 3, \"days\": 4}}",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}

/// Rules decide in the same way in whichever order their lines stand; faults name their lines.
pub(super) fn access_rules(input: &[u8]) {
    let lines: Vec<&[u8]> = input.split(|byte| *byte == b'\n').collect();
    let policy = |text: &[u8]| {
        let name = "rules.aclj";
        RuleSet::parse([RuleFile { name, text }]).map(|rules| AccessPolicy {
            rules,
            ..AccessPolicy::default()
        })
    };
    let policy_forwards = match policy(input) {
        Ok(policy) => policy,
        Err(faults) => {
            assert!((1..=lines.len()).contains(&faults.first.place.line));
            assert!(faults.to_string().starts_with("rules.aclj:"), "{faults}");
            return;
        }
    };
    let backwards: Vec<&[u8]> = lines.iter().rev().copied().collect();
    let policy_backwards = policy(&backwards.join(&b'\n')).unwrap();
    let now = Timestamp::from_second(1_700_000_000).unwrap();
    let visitors = [
        Visitor::anonymous(),
        Visitor::of_groups(["staff".parse().unwrap()]),
    ];
    for line in lines {
        let key = line.split(|byte| *byte == b' ').next().unwrap_or_default();
        let key = String::from_utf8_lossy(key);
        let key = UrlKey::from_index(key.strip_suffix("###").unwrap_or(&key));
        for visitor in &visitors {
            for time in ["20050101000000", "20231101000000"] {
                let subject = AccessSubject::Capture {
                    key: key.as_str(),
                    time: time.parse().unwrap(),
                };
                let one = policy_forwards.decide_access(visitor, subject, now);
                let other = policy_backwards.decide_access(visitor, subject, now);
                assert_eq!(one.verdict, other.verdict, "{key}: {one}, {other}");
            }
        }
    }
}

/// Heads and pages.
pub(super) fn archived_page_seeds() -> Vec<Vec<u8>> {
    [
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nSet-Cookie: a\r\n\r\n<base href=/b/><img srcset='a 1x, b'><noscript><i></noscript><a href='?x&amp;y'>",
        "HTTP/1.1 302 Found\r\nLocation: //b.dk/\r\n\r\n<meta http-equiv=refresh content='1;url=/r'><style>@import 'a';b{c:url(\\64)}</style>",
        "HTTP/1.1 200\r\nContent-Type: text/html; charset=utf-16\r\n\r\n<iframe srcdoc='&lt;p style=&quot;a:url(b)'></iframe><link rel=preconnect href=x>",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}

/// No field of an answer can end its line, and a page is rewritten in the same way however its bytes are cut.
pub(super) fn archived_page(input: &[u8]) {
    let mut body = input;
    let Ok(head) = Head::read_head(&mut body, 1 << 12) else {
        return;
    };
    let addresses = Addresses::new("", "all");
    let time: Stamp = "20200102030405".parse().unwrap();
    let in_archive = Redirects::InArchive {
        addresses: &addresses,
        modifier: None,
    };
    for redirects in [Redirects::Reported, in_archive, Redirects::ToWorker] {
        let reply = ReplyHead::new(
            Some(&head),
            &ReplyOptions {
                url: "http://a.dk/",
                time,
                media: None,
                redirects,
                is_decoded: false,
            },
        );
        assert!((200..1000).contains(&reply.status));
        for (name, value) in &reply.fields {
            assert!(
                !name.is_empty()
                    && name
                        .bytes()
                        .all(|byte| byte.is_ascii_graphic() && byte != b':')
            );
            assert!(value.iter().all(|byte| *byte >= 0x20 && *byte != 0x7f));
        }
        if let Some(location) = reply.get("Location") {
            assert!(location.starts_with(b"/all/20200102030405/"));
        }
    }
    let encoding = page_encoding(head.get("content-type"), body);
    let banner = "<p>banner</p>".to_owned();
    for mode in [
        PageMode::NoScript { banner },
        PageMode::Guided {
            first: String::new(),
        },
    ] {
        let is_xml = body.len() % 2 == 1;
        let rewrite = |size: usize| {
            let mut rewriter = PageRewriter::new(PageOptions {
                addresses: addresses.clone(),
                time,
                url: "http://a.dk/x/".parse().unwrap(),
                encoding,
                is_xml,
                mode: mode.clone(),
                memory: 1 << 20,
            });
            let mut out = Vec::new();
            for piece in body.chunks(size) {
                rewriter.write_bytes(piece, &mut out).ok()?;
            }
            rewriter.end_page(&mut out).ok()?;
            Some(out)
        };
        let size = usize::from(input.last().copied().unwrap_or(0) % 7) + 1;
        assert_eq!(rewrite(size), rewrite(1 << 20), "pieces of {size} bytes");
    }
}
