//! Tests of the path space.

mod odd;

use super::*;

fn target(url: &str) -> ReplayTarget {
    ReplayTarget::parse(url).unwrap()
}

fn read(path: &str) -> ReplayRequest {
    ReplayRequest::parse(path).unwrap()
}

fn time(digits: &str) -> RequestedTime {
    RequestedTime::parse(digits).unwrap()
}

fn memento(digits: &str, modifier: Option<Modifier>, url: &str) -> ReplayRequest {
    ReplayRequest::Memento {
        collection: "all".to_owned(),
        time: time(digits),
        modifier,
        target: target(url),
    }
}

fn gate(modifier: Option<Modifier>, url: &str) -> ReplayRequest {
    ReplayRequest::TimeGate {
        collection: "all".to_owned(),
        modifier,
        target: target(url),
    }
}

/// Fails if a path of the documented space is read as another request.
#[test]
fn paths_are_distinguished() {
    let all = || "all".to_owned();
    let lookup = |collection: Option<&str>, dialect, query: &str| ReplayRequest::Lookup {
        collection: collection.map(ToOwned::to_owned),
        dialect,
        query: query.to_owned(),
    };
    let time_map = |format, page, url| ReplayRequest::TimeMap {
        collection: all(),
        format,
        page: NonZeroU32::new(page),
        target: target(url),
    };
    let url = "http://example.org/a?b=c&d";
    for (path, expected) in [
        ("/", ReplayRequest::Home),
        ("/?x", ReplayRequest::Home),
        ("/all", ReplayRequest::Collection { collection: all() }),
        ("/all/", ReplayRequest::Collection { collection: all() }),
        (
            "/all/?lang=da",
            ReplayRequest::Collection { collection: all() },
        ),
        (
            "/all/cdx?url=x&a=b",
            lookup(Some("all"), LookupDialect::Pywb, "url=x&a=b"),
        ),
        (
            "/all/index?url=x",
            lookup(Some("all"), LookupDialect::Pywb, "url=x"),
        ),
        ("/all/cdx", lookup(Some("all"), LookupDialect::Pywb, "")),
        (
            "/cdx/search/cdx?url=x",
            lookup(None, LookupDialect::InternetArchive, "url=x"),
        ),
        (
            "/all?url=http://a/b",
            lookup(Some("all"), LookupDialect::Outback, "url=http://a/b"),
        ),
        (
            "/all/timemap/link/http://example.org/a?b=c&d",
            time_map(TimeMapFormat::Link, 0, url),
        ),
        (
            "/all/timemap/json/http://example.org/a?b=c&d",
            time_map(TimeMapFormat::Json, 0, url),
        ),
        (
            "/all/timemap/cdxj/12/http://example.org/a?b=c&d",
            time_map(TimeMapFormat::Cdxj, 12, url),
        ),
        (
            "/all/timemap/link/example.org/a?b=c&d",
            time_map(TimeMapFormat::Link, 0, url),
        ),
        ("/all/http://example.org/a?b=c&d", gate(None, url)),
        (
            "/all/id_/http://example.org/a?b=c&d",
            gate(Some(Modifier::Identity), url),
        ),
        ("/all/cdx/", gate(None, "http://cdx/")),
        (
            "/all/2020/http://example.org/a?b=c&d",
            memento("2020", None, url),
        ),
        (
            "/all/20200102030405mp_/http://example.org/a?b=c&d",
            memento("20200102030405", Some(Modifier::Main), url),
        ),
        (
            "/all/20200102030405006id_/http://a/",
            memento("20200102030405006", Some(Modifier::Identity), "http://a/"),
        ),
        ("/all/1und1.de/x", gate(None, "http://1und1.de/x")),
        ("/all/360.cn", gate(None, "http://360.cn")),
        ("/all/xx_/y", gate(None, "http://xx_/y")),
        (
            "/all/getFile?arcFile=a%20b.warc.gz",
            ReplayRequest::File {
                collection: all(),
                file: "a b.warc.gz".to_owned(),
            },
        ),
        (
            "/all/getRecord?arcFile=a&arcOffset=12",
            ReplayRequest::Record {
                collection: all(),
                file: "a".to_owned(),
                offset: 12,
            },
        ),
        (
            "/all/getMetadata?jobID=7",
            ReplayRequest::Metadata {
                collection: all(),
                job: "7".to_owned(),
            },
        ),
        (
            "/replay/all/2020/http://example.org/a?b=c&d",
            ReplayRequest::Page {
                collection: all(),
                time: Some(time("2020")),
                target: target(url),
            },
        ),
        (
            "/replay/all/example.org/a?b=c&d",
            ReplayRequest::Page {
                collection: all(),
                time: None,
                target: target(url),
            },
        ),
    ] {
        assert_eq!(read(path), expected, "{path}");
    }
}

/// Fails if a modifier is not known, or not read back as itself.
#[test]
fn all_modifiers_are_read() {
    for name in Modifier::NAMES {
        let modifier = Modifier::from_name(name);
        assert_eq!(modifier.map(Modifier::name), Some(name));
        assert_eq!(
            read(&format!("/all/2020{name}/http://a/")),
            memento("2020", modifier, "http://a/")
        );
    }
    assert_eq!(Modifier::NAMES.len(), 11);
}

/// Fails if the span of a calendar is cut or filled wrongly, or patterns are not distinguished from URLs.
#[test]
fn calendars_have_spans_and_patterns() {
    let calendar = |path: &str| {
        let ReplayRequest::Calendar {
            span,
            target,
            matching,
            ..
        } = read(path)
        else {
            panic!("{path} is no calendar");
        };
        let bounds = span.bounds();
        let bounds = bounds.map(|(first, last)| format!("{first}-{last}"));
        let url = target.url().to_owned();
        (
            span.digits().to_owned(),
            bounds.unwrap_or_default(),
            url,
            matching,
        )
    };
    let url = "http://example.org/a".to_owned();
    assert_eq!(
        calendar("/all/*/http://example.org/a"),
        (
            String::new(),
            String::new(),
            url.clone(),
            TargetMatch::Exact
        )
    );
    assert_eq!(
        calendar("/all/202002*/example.org/a*"),
        (
            "202002".to_owned(),
            "20200201000000-20200229235959".to_owned(),
            url,
            TargetMatch::Prefix
        )
    );
    assert_eq!(
        calendar("/all/*/*.example.org"),
        (
            String::new(),
            String::new(),
            "http://example.org".to_owned(),
            TargetMatch::Domain
        )
    );
    assert_eq!(
        read("/all/2020/http://a/*"),
        memento("2020", None, "http://a/*")
    );
}

/// Fails if a URL is not mended where proxies and people break it, or is changed where it need not be.
#[test]
fn urls_are_mended_and_otherwise_kept() {
    let long = format!("http://a/{}", "x".repeat(LONGEST_URL - 9));
    for (raw, url, key) in [
        (
            "http:/example.org/a",
            "http://example.org/a",
            "org,example)/a",
        ),
        (
            "https:///example.org",
            "https://example.org",
            "org,example)/",
        ),
        (
            "HTTP://Example.org/A",
            "http://Example.org/A",
            "org,example)/a",
        ),
        ("http:example.org", "http://example.org", "org,example)/"),
        ("//example.org/a", "http://example.org/a", "org,example)/a"),
        (
            "example.org:8080/a",
            "http://example.org:8080/a",
            "org,example:8080)/a",
        ),
        (
            "localhost:8080",
            "http://localhost:8080",
            "localhost:8080)/",
        ),
        (
            "example.org/a%2Fb%20c?d=%C3%A6",
            "http://example.org/a%2Fb%20c?d=%C3%A6",
            "org,example)/a/b%20c?d=%c3%a6",
        ),
        (
            "http%3A%2F%2Fexample.org%2Fa%2520b%3Fc%3D%C3%A6%0d%0a",
            "http://example.org/a%20b?c=%C3%A6%0d%0a",
            "org,example)/a%20b?c=%c3%a6%0d%0a",
        ),
        (
            "http://blåbær.dk/æ",
            "http://blåbær.dk/æ",
            "dk,xn--blbr-roah)/%c3%a6",
        ),
        (
            "http://user:secret@a.dk/",
            "http://user:secret@a.dk/",
            "dk,a)/",
        ),
        (
            "http://a.dk/x?u=http://b.dk/#top",
            "http://a.dk/x?u=http://b.dk/",
            "dk,a)/x?u=http://b.dk/",
        ),
        ("dns:a.dk", "dns:a.dk", "dns:a.dk"),
        ("urn:uuid:6f6e", "urn:uuid:6f6e", "urn:uuid:6f6e"),
        (
            "screenshot:http://a.dk/",
            "screenshot:http://a.dk/",
            "screenshot:http://a.dk",
        ),
        (&long, &long, &key_of(&long)),
    ] {
        let target = target(raw);
        assert_eq!(target.url(), url, "{raw}");
        assert_eq!(target.key().as_str(), key, "{raw}");
    }
    // What is counted is the URL, and not its escapes.
    let escaped = format!("http%3A%2F%2Fa%2F{}", "%78".repeat(LONGEST_URL - 9));
    assert_eq!(target(&escaped).url(), long);
}

/// Returns the key of a URL, for a table of texts.
fn key_of(url: &str) -> String {
    archive_formats::surt::UrlKey::parse(url).to_string()
}

/// Fails if nonsense is taken for a request, has the wrong status, or words that do not name it.
#[test]
fn nonsense_is_refused_in_words() {
    let long = format!("/all/2020/http://a/{}", "x".repeat(LONGEST_URL));
    for (path, status, words) in [
        ("", 404, "nothing at this path"),
        ("*", 404, "nothing at this path"),
        ("/.well-known/x", 404, "`.well-known`"),
        ("/a%20b/http://a/", 404, "`a%20b`"),
        ("/cdx/http://a/", 404, "`cdx`"),
        ("/replay/all", 404, "nothing at this path"),
        ("/all/20201301/http://a/", 400, "month 13 does not exist"),
        (
            "/all/20210229000000id_/http://a/",
            400,
            "day 29 does not exist",
        ),
        ("/all/2020010203040506/http://a/", 400, "16 digits"),
        ("/all/20209*/http://a/", 400, "is not a time"),
        (
            "/all/99999999999999999999999999999/http://a/",
            400,
            "is not a time",
        ),
        (
            "/all/2020zz_/http://a/",
            400,
            "`zz_` is not a modifier; use one of id_, ir_,",
        ),
        (
            "/replay/all/2020id_/http://a/",
            400,
            "`id_` is not a modifier",
        ),
        ("/all/2020", 400, "there is no URL"),
        ("/all/2020/", 400, "there is no URL"),
        ("/all/2020/http://", 400, "there is no URL"),
        ("/all/2020/http:", 400, "there is no URL"),
        ("/all/2020/?x", 400, "there is no URL"),
        ("/all/2020/#x", 400, "there is no URL"),
        (
            "/all/2020/http://a/\r\nSet-Cookie: x",
            400,
            "control character",
        ),
        ("/all/2020/http://a/\u{85}", 400, "control character"),
        ("/all/timemap/rdf/http://a/", 400, "`rdf`"),
        (
            "/all/timemap/link/0/http://a/",
            400,
            "`0` is not the number of a page",
        ),
        (
            "/all/timemap/link/99999999999/http://a/",
            400,
            "is not the number of a page",
        ),
        ("/all/timemap/link", 400, "there is no URL"),
        ("/all/getFile", 400, "`arcFile`"),
        ("/all/getFile?arcFile=a&arcFile=b", 400, "`arcFile`"),
        ("/all/getRecord?arcFile=a", 400, "`arcOffset`"),
        (
            "/all/getRecord?arcFile=a&arcOffset=-1",
            400,
            "must be a number, and is `-1`",
        ),
        ("/all/getMetadata?jobID=", 400, "`jobID`"),
        (&long, 414, "longer than 10000 bytes"),
    ] {
        let error = ReplayRequest::parse(path).unwrap_err();
        assert!(error.to_string().contains(words), "{path}: {error}");
        assert_eq!(error.status(), status, "{path}: {error}");
    }
}

/// Fails if an address is read as something else than it was made from, or has a byte that a header must not have.
#[test]
fn addresses_read_back() {
    let addresses = Addresses::new("http://127.0.0.1:8091/", "all");
    let at = time("20200102030405").stamp();
    let paths = Addresses::new("", "all");
    assert_eq!(paths.time_gate("http://a/"), "/all/http://a/");
    for url in [
        "http://a/",
        "http://a.dk/x?y=http://b/&z=%2520",
        "http://a.dk/<b>\"\\c d\u{e6}",
        "http://a.dk/%23?#",
        "dns:a.dk",
    ] {
        let memento = addresses.memento_address(at, Some(Modifier::Image), url);
        let gate = addresses.time_gate(url);
        let map = addresses.time_map(TimeMapFormat::Link, Some(3), url);
        for address in [&memento, &gate, &map] {
            assert!(
                address
                    .bytes()
                    .all(|byte| byte.is_ascii_graphic() && !b"<>\"".contains(&byte)),
                "{address}"
            );
            let path = address.strip_prefix("http://127.0.0.1:8091").unwrap();
            let request = read(path);
            let target = if let ReplayRequest::Memento {
                target,
                modifier: Some(Modifier::Image),
                time,
                ..
            } = &request
            {
                assert_eq!(time.stamp(), at);
                target
            } else if let ReplayRequest::TimeGate {
                target,
                modifier: None,
                ..
            } = &request
            {
                target
            } else if let ReplayRequest::TimeMap {
                target,
                page: Some(page),
                ..
            } = &request
            {
                assert_eq!(page.get(), 3);
                target
            } else {
                panic!("{address}: {request:?}");
            };
            let expected = archive_formats::surt::UrlKey::parse(url.split('#').next().unwrap());
            if !url.contains('#') {
                assert_eq!(target.key(), &expected, "{address}");
            }
        }
    }
}
