//! Tests of the cookies of a crawl.

use super::*;

/// A moment in 2026.
const NOW: i64 = 1_794_990_400;

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

/// Returns the field for a URI after another one has set cookies.
fn sent(from: &str, fields: &[&str], to: &str) -> String {
    let mut jar = CookieJar::default();
    for field in fields {
        jar.keep_cookie(&url(from), field.as_bytes(), NOW);
    }
    jar.cookie_field(&url(to), NOW).unwrap_or_default()
}

/// Fails if a cookie goes to a host, a path or a connection that it is not for, or stays away from one that it is for.
#[test]
fn cookie_goes_where_rfc_6265_says() {
    for (from, field, to, is_sent) in [
        ("http://a.dk/", "x=1", "http://a.dk/b", true),
        ("http://a.dk/", "x=1", "http://A.dk.:8080/b", true),
        ("http://a.dk/", "x=1", "https://a.dk/", true),
        ("http://a.dk/", "x=1", "http://www.a.dk/", false),
        ("http://www.a.dk/", "x=1", "http://a.dk/", false),
        ("http://www.a.dk/", "x=1; Domain=a.dk", "http://a.dk/", true),
        (
            "http://www.a.dk/",
            "x=1; Domain=.A.DK",
            "http://b.c.a.dk/",
            true,
        ),
        ("http://www.a.dk/", "x=1; domain=", "http://www.a.dk/", true),
        (
            "http://www.a.dk/",
            "x=1; Domain=a.dk",
            "http://ba.dk/",
            false,
        ),
        (
            "http://www.a.dk/",
            "x=1; Domain=b.dk",
            "http://b.dk/",
            false,
        ),
        (
            "http://www.a.dk/",
            "x=1; Domain=b.dk",
            "http://www.a.dk/",
            false,
        ),
        (
            "http://www.a.dk/",
            "x=1; Domain=c.www.a.dk",
            "http://c.www.a.dk/",
            false,
        ),
        ("http://www.a.dk/", "x=1; Domain=dk", "http://b.dk/", false),
        (
            "http://www.a.dk/",
            "x=1; Domain=dk",
            "http://www.a.dk/",
            false,
        ),
        (
            "http://a.co.uk/",
            "x=1; Domain=co.uk",
            "http://b.co.uk/",
            false,
        ),
        (
            "http://a.github.io/",
            "x=1; Domain=github.io",
            "http://b.github.io/",
            false,
        ),
        (
            "http://github.io/",
            "x=1; Domain=github.io",
            "http://b.github.io/",
            false,
        ),
        (
            "http://github.io/",
            "x=1; Domain=github.io",
            "http://github.io/",
            true,
        ),
        (
            "http://localhost/",
            "x=1; Domain=localhost",
            "http://localhost/",
            true,
        ),
        (
            "http://a.intranet/",
            "x=1; Domain=intranet",
            "http://b.intranet/",
            false,
        ),
        (
            "http://blåbær.dk/",
            "x=1; Domain=BLÅBÆR.dk",
            "http://www.xn--blbr-roah.dk/",
            true,
        ),
        ("http://127.0.0.1/", "x=1", "http://127.0.0.1:81/", true),
        (
            "http://127.0.0.1/",
            "x=1; Domain=127.0.0.1",
            "http://127.0.0.1/",
            true,
        ),
        (
            "http://127.0.0.1/",
            "x=1; Domain=0.0.1",
            "http://127.0.0.1/",
            false,
        ),
        (
            "http://1.127.0.0.1.dk/",
            "x=1; Domain=127.0.0.1.dk",
            "http://127.0.0.1/",
            false,
        ),
        ("http://[::1]/", "x=1", "http://[::1]/", true),
        ("http://a.dk/b/c", "x=1", "http://a.dk/b/d", true),
        ("http://a.dk/b/c", "x=1", "http://a.dk/b", true),
        ("http://a.dk/b/c", "x=1", "http://a.dk/bc", false),
        ("http://a.dk/b/c", "x=1; Path=/", "http://a.dk/", true),
        ("http://a.dk/b/c", "x=1; Path=d", "http://a.dk/d", false),
        ("http://a.dk/", "x=1; Path=/b", "http://a.dk/b/c?d", true),
        ("http://a.dk/", "x=1; Path=/b/", "http://a.dk/b", false),
        ("https://a.dk/", "x=1; Secure", "https://a.dk/", true),
        ("https://a.dk/", "x=1; Secure", "http://a.dk/", false),
        (
            "http://a.dk/",
            "x=1; HttpOnly; SameSite=Strict; Odd=1;;",
            "http://a.dk/",
            true,
        ),
        ("data:text/plain,a", "x=1", "data:text/plain,a", false),
    ] {
        let expected = if is_sent { "x=1" } else { "" };
        assert_eq!(sent(from, &[field], to), expected, "{from} {field} {to}");
    }
}

/// Fails if a cookie outlives its time, or one that has none is forgotten.
#[test]
fn cookie_ends_with_its_time() {
    for (field, age, is_sent) in [
        ("x=1", i64::MAX, true),
        ("x=1; Max-Age=60", 59, true),
        ("x=1; Max-Age=60", 60, false),
        ("x=1; Max-Age=0", 0, false),
        ("x=1; Max-Age=-5", 0, false),
        ("x=1; Max-Age=99999999999999999999999", 1 << 40, true),
        ("x=1; Max-Age=soon", i64::MAX, true),
        ("x=1; Expires=Wed, 18 Nov 2026 08:26:40 GMT", 0, true),
        ("x=1; Expires=Wed, 18-Nov-26 08:26:40 GMT", 1, false),
        ("x=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT", 0, false),
        (
            "x=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=9",
            0,
            true,
        ),
        ("x=1; Expires=some day", i64::MAX, true),
    ] {
        let mut jar = CookieJar::default();
        let host = url("http://a.dk/");
        jar.keep_cookie(&host, field.as_bytes(), NOW - 1);
        let later = (NOW - 1).saturating_add(age);
        assert_eq!(
            jar.cookie_field(&host, later).is_some(),
            is_sent,
            "{field} {age}"
        );
    }
}

/// Fails if a cookie that is set again stands twice, one that is taken back is sent, or the order is another one.
#[test]
fn later_cookie_replaces_earlier_one() {
    let page = "http://a.dk/b/c";
    assert_eq!(sent(page, &["x=1", "y=2", "x=3"], page), "x=3; y=2");
    assert_eq!(sent(page, &["x=1", "y=2", "x=; Max-Age=0"], page), "y=2");
    let fields = ["x=1; Path=/", "y=2; Path=/", "x=3", "X=4", "x=5; Path=/"];
    assert_eq!(sent(page, &fields, page), "x=3; X=4; x=5; y=2");
    let both = ["x=1; Domain=www.a.dk", "x=2"];
    assert_eq!(sent("http://www.a.dk/", &both, "http://www.a.dk/"), "x=2");
}

/// Fails if a cookie that no request can carry is kept, or a value is changed on its way.
#[test]
fn odd_cookies_are_harmless() {
    let page = "http://a.dk/";
    for field in [
        "",
        ";",
        "=",
        "=1",
        "x",
        ";x=1",
        "x=a\r\nHost: b.dk",
        "x=a\0b",
        "x\u{85}y=1",
        "x=\u{7f}",
        "x=1; Domain=a b",
        "x=1; Domain=[",
        "\u{feff}",
    ] {
        assert_eq!(sent(page, &[field], page), "", "{field:?}");
    }
    for (field, expected) in [
        ("x=", "x="),
        (" x = 1 ", "x=1"),
        ("x=\"a b\"", "x=\"a b\""),
        ("x=a=b==", "x=a=b=="),
        ("x=a%20b", "x=a%20b"),
        ("x=blåbær", "x=blåbær"),
        ("x=a,b; y=2", "x=a,b"),
    ] {
        assert_eq!(sent(page, &[field], page), expected, "{field:?}");
    }
    let mut jar = CookieJar::default();
    jar.keep_cookie(&url(page), b"x=\xff", NOW);
    assert_eq!(jar.cookie_field(&url(page), NOW), None);
    let fits = 4095;
    let long = 4096;
    assert_eq!(
        sent(page, &[&format!("x={}", "1".repeat(fits))], page).len(),
        4097
    );
    assert_eq!(sent(page, &[&format!("x={}", "1".repeat(long))], page), "");
}

/// Fails if a site that sets cookies without an end fills the memory, its requests, or pushes out those of another
/// site.
#[test]
fn cookies_are_bounded() {
    let mut jar = CookieJar::default();
    let quiet = url("http://quiet.dk/");
    let loud = url("http://loud.dk/");
    jar.keep_cookie(&quiet, b"x=1", NOW);
    for number in 0..10_000 {
        jar.keep_cookie(&loud, format!("n{number}=1").as_bytes(), NOW);
    }
    let field = jar.cookie_field(&loud, NOW).unwrap();
    assert_eq!(field.split("; ").count(), MAX_COUNT);
    assert!(field.starts_with("n9950=1; ") && field.ends_with("; n9999=1"));
    for number in 0..100 {
        let long = format!("n{number}={}", "1".repeat(4000));
        jar.keep_cookie(&loud, long.as_bytes(), NOW);
    }
    assert!(jar.cookie_field(&loud, NOW).unwrap().len() <= MAX_SITE);
    assert_eq!(jar.cookie_field(&quiet, NOW).as_deref(), Some("x=1"));
    let long = format!("x={}", "1".repeat(4000));
    for number in 0..5000 {
        let host = url(&format!("http://h{number}.dk/"));
        jar.keep_cookie(&host, long.as_bytes(), NOW);
        // A site in use is not forgotten.
        assert_eq!(jar.cookie_field(&quiet, NOW).as_deref(), Some("x=1"));
        assert!(jar.young_bytes <= MAX_YOUNG);
    }
    assert_eq!(jar.cookie_field(&url("http://h0.dk/"), NOW), None);
    assert!(jar.cookie_field(&url("http://h4999.dk/"), NOW).is_some());
}
