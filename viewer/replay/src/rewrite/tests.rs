//! Tests of rewriting.

use encoding_rs::{EUC_JP, UTF_8};

use super::*;

mod texts;

const PREFIX: &str = "/all/20200101000000";

fn options(mode: PageMode) -> PageOptions {
    PageOptions {
        addresses: Addresses::new("", "all"),
        time: "20200101000000".parse().unwrap(),
        url: "http://a.dk/x/y?z".parse().unwrap(),
        encoding: UTF_8,
        is_xml: false,
        mode,
        memory: 1 << 20,
    }
}

/// Fails if the text of a page of XML is shown as the content of an element that was over.
#[test]
fn page_of_xml_has_self_closed_tags() {
    let page = "<title/><a name='x'/><textarea/><p>text</p><img src='/i.png'/>";
    let expected = "<title></title><a name='x'></a><textarea></textarea><p>text</p>\
        <img src=\"/all/20200101000000im_/http://a.dk/i.png\" />";
    for length in 1..page.len() {
        let options = PageOptions {
            is_xml: true,
            ..options(no_script())
        };
        let shown = String::from_utf8(in_pieces(page.as_bytes(), options, length)).unwrap();
        assert_eq!(shown, expected, "in pieces of {length}");
    }
}

fn no_script() -> PageMode {
    PageMode::NoScript {
        banner: String::new(),
    }
}

fn guided() -> PageMode {
    PageMode::Guided {
        first: "<script src=/first.js></script>".to_owned(),
    }
}

/// Rewrites a page in pieces of a length.
fn in_pieces(page: &[u8], options: PageOptions, length: usize) -> Vec<u8> {
    let mut rewriter = PageRewriter::new(options);
    let mut out = Vec::new();
    for piece in page.chunks(length) {
        rewriter.write_bytes(piece, &mut out).unwrap();
    }
    rewriter.end_page(&mut out).unwrap();
    out
}

fn page(text: &str, mode: &PageMode) -> String {
    let whole = in_pieces(text.as_bytes(), options(mode.clone()), usize::MAX);
    for length in [1, 7] {
        let pieces = in_pieces(text.as_bytes(), options(mode.clone()), length);
        assert_eq!(pieces, whole, "pieces of {length} bytes");
    }
    String::from_utf8(whole).unwrap()
}

/// Checks pages against what becomes of them; `@` stands for the beginning of an address.
fn check(mode: &PageMode, cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        let expected = expected.replace('@', PREFIX);
        assert_eq!(page(text, mode), expected, "{text}");
    }
}

/// Fails if a reference of a page leads out of the archive, or one that leads nowhere is broken.
#[test]
fn references_lead_to_captures() {
    check(
        &no_script(),
        &[
            ("<a href=/n>", "<a href=\"@/http://a.dk/n\">"),
            (
                "<a href='n?a=1&amp;b=2#top'>",
                "<a href=\"@/http://a.dk/x/n?a=1&amp;b=2#top\">",
            ),
            ("<a href='#top'>", "<a href='#top'>"),
            ("<a href=''>", "<a href=''>"),
            (
                "<a href='mailto:a@b.dk'>".replace('@', "&commat;").leak(),
                "<a href='mailto:a&commat;b.dk'>",
            ),
            (
                "<A HREF=//b.dk/ TARGET=_top>",
                "<A HREF=\"@/http://b.dk/\" TARGET=_top>",
            ),
            (
                "<area href=https://b.dk:8443/>",
                "<area href=\"@/https://b.dk:8443/\">",
            ),
            (
                "<img src=i.png alt='<'>",
                "<img src=\"@im_/http://a.dk/x/i.png\" alt='<'>",
            ),
            (
                "<img src='data:image/png;base64,AA=='>",
                "<img src='data:image/png;base64,AA=='>",
            ),
            (
                "<iframe src='data:text/html,x'></iframe>",
                "<iframe></iframe>",
            ),
            (
                "<iframe src=f></iframe>",
                "<iframe src=\"@/http://a.dk/x/f\"></iframe>",
            ),
            (
                "<video src=v poster=p></video>",
                "<video src=\"@oe_/http://a.dk/x/v\" poster=\"@im_/http://a.dk/x/p\"></video>",
            ),
            (
                "<object data=o></object>",
                "<object data=\"@oe_/http://a.dk/x/o\"></object>",
            ),
            (
                "<form action=f method=post>",
                "<form action=\"@/http://a.dk/x/f\" method=post>",
            ),
            (
                "<button formaction=f>",
                "<button formaction=\"@/http://a.dk/x/f\">",
            ),
            (
                "<body background=b>",
                "<body background=\"@im_/http://a.dk/x/b\">",
            ),
            (
                "<link rel=stylesheet href=s.css integrity=x>",
                "<link rel=stylesheet href=\"@cs_/http://a.dk/x/s.css\">",
            ),
            (
                "<link rel='shortcut icon' href=i>",
                "<link rel='shortcut icon' href=\"@im_/http://a.dk/x/i\">",
            ),
            (
                "<link rel=canonical href=c>",
                "<link rel=canonical href=\"@/http://a.dk/x/c\">",
            ),
            (
                "<svg><use xlink:href=u#x /></svg>",
                "<svg><use xlink:href=\"@im_/http://a.dk/x/u#x\" /></svg>",
            ),
            ("<a href='http://'>x</a>", "<a>x</a>"),
            ("<a href='intent:x'>x</a>", "<a>x</a>"),
            (
                "<a href='/s&oslash;g'>",
                "<a href=\"@/http://a.dk/s%C3%B8g\">",
            ),
            (
                "<a href='&#x68;ttp&colon;//b.dk'>",
                "<a href=\"@/http://b.dk/\">",
            ),
        ],
    );
}

/// Fails if a candidate of a `srcset` is lost or cut.
#[test]
fn candidates_of_srcset_are_rewritten() {
    check(
        &no_script(),
        &[
            (
                "<img srcset='a.png 1x, b,c.png 2x,http://b.dk/d 3x'>",
                "<img srcset=\"@im_/http://a.dk/x/a.png 1x, @im_/http://a.dk/x/b%2Cc.png 2x, @im_/http://b.dk/d 3x\">",
            ),
            (
                "<source srcset='a, data:image/png;base64,AA== 2x, javascript:x 3x, c 100w'>",
                "<source srcset=\"@im_/http://a.dk/x/a, data:image/png;base64,AA== 2x, @im_/http://a.dk/x/c 100w\">",
            ),
            ("<img srcset=' , '>", "<img srcset=\"\">"),
        ],
    );
}

/// Fails if a script can run without scripts, in any of the places where one can stand.
#[test]
fn scripts_are_taken_away() {
    check(
        &no_script(),
        &[
            ("a<script>x('</a>')</script>b", "ab"),
            ("<script src=http://b.dk/x.js></script>b", "b"),
            ("<svg><script href=x>y</script></svg>", "<svg></svg>"),
            ("<p onclick=x() ONLOAD='y' id=i>", "<p id=i>"),
            ("<a href='javascript:x()'>y</a>", "<a>y</a>"),
            ("<a href='java&Tab;script&colon;x()'>y</a>", "<a>y</a>"),
            ("<a href=' JavaScript:x()'>y</a>", "<a>y</a>"),
            ("<iframe src=javascript:x></iframe>", "<iframe></iframe>"),
            ("<form action=javascript:x>", "<form>"),
            (
                "<applet code=x codebase=http://b.dk/>y</applet>",
                "<applet>y</applet>",
            ),
            ("<meta http-equiv=refresh content='0;url=javascript:x'>", ""),
        ],
    );
}

/// Fails if something that connects to hosts by itself stays in the page, in either form.
#[test]
fn connections_are_taken_away() {
    let cases = [
        ("<link rel=preconnect href=http://b.dk/>", ""),
        ("<link rel='DNS-Prefetch x' href=http://b.dk/>", ""),
        ("<link rel=prerender href=http://b.dk/>", ""),
        ("<meta http-equiv=x-dns-prefetch-control content=on>", ""),
        (
            "<meta http-equiv=Content-Security-Policy content=\"img-src 'none'\">",
            "",
        ),
        ("<script type=speculationrules>{}</script>", ""),
        ("<p ping=http://b.dk/>", "<p>"),
    ];
    check(&no_script(), &cases);
    check(
        &no_script(),
        &[
            ("<link rel=preload as=script href=x>", ""),
            ("<html manifest=m>", "<html>"),
        ],
    );
    for (text, expected) in cases {
        let rewritten = page(&format!("<head></head>{text}"), &guided());
        assert_eq!(
            rewritten,
            format!("<head><script src=/first.js></script></head>{expected}"),
            "{text}"
        );
    }
}

/// Fails if the base of a page is not that of its references, or itself leads out of the archive.
#[test]
fn base_counts_once() {
    check(
        &no_script(),
        &[
            (
                "<base href='/d/'><a href=n><base href=http://b.dk/><a href=m>",
                "<base href=\"@/http://a.dk/d/\"><a href=\"@/http://a.dk/d/n\"><base><a href=\"@/http://a.dk/d/m\">",
            ),
            (
                "<base href='javascript:x'><a href=n>",
                "<base href=\"@/http://a.dk/x/y?z\"><a href=\"@/http://a.dk/x/n\">",
            ),
            (
                "<base target=_top><a href=n>",
                "<base target=_top><a href=\"@/http://a.dk/x/n\">",
            ),
        ],
    );
}

/// Fails if a refresh leads out of the archive, in any form that browsers read.
#[test]
fn refreshes_stay_in_the_archive() {
    check(
        &no_script(),
        &[
            (
                "<meta http-equiv=Refresh content='5; url=n'>",
                "<meta http-equiv=Refresh content=\"5; url=@/http://a.dk/x/n\">",
            ),
            (
                "<meta http-equiv=refresh content=\"0;URL='http://b.dk/'x\">",
                "<meta http-equiv=refresh content=\"0; url=@/http://b.dk/\">",
            ),
            (
                "<meta http-equiv=refresh content='3 , n'>",
                "<meta http-equiv=refresh content=\"3; url=@/http://a.dk/x/n\">",
            ),
            (
                "<meta http-equiv=refresh content=7>",
                "<meta http-equiv=refresh content=\"7\">",
            ),
            (
                "<meta name=x content='0;url=n'>",
                "<meta name=x content='0;url=n'>",
            ),
        ],
    );
    let addresses = Addresses::new("", "all");
    let url = "http://a.dk/".parse().unwrap();
    let refresh = |value: &str, modifier| {
        let time = "20200101000000".parse().unwrap();
        refresh_value(value, &addresses, modifier, time, &url)
    };
    assert_eq!(
        refresh("1; url=n", None),
        Some(format!("1; url={PREFIX}/http://a.dk/n"))
    );
    assert_eq!(
        refresh("1; url=n", Some(Modifier::Main)),
        Some(format!("1; url={PREFIX}mp_/http://a.dk/n"))
    );
    assert_eq!(refresh("1; url=javascript:n", None), None);
}

/// Fails if a page within a page, or the page that readers without scripts see, is not rewritten.
#[test]
fn pages_within_pages_are_rewritten() {
    check(
        &no_script(),
        &[
            (
                "<noscript><img src=i></noscript>b",
                "<img src=\"@im_/http://a.dk/x/i\">b",
            ),
            ("<noscript></noscript><p>", "<p>"),
            (
                "<iframe srcdoc='<a href=&quot;n?a&amp;amp;b&quot;>'></iframe>",
                "<iframe srcdoc=\"<a href=&quot;@/http://a.dk/x/n?a&amp;amp;b&quot;>\"></iframe>",
            ),
        ],
    );
    let deep = |depth: usize| {
        (0..depth).fold("<script>x</script>".to_owned(), |inner, _| {
            let inner = inner.replace('&', "&amp;").replace('"', "&quot;");
            format!("<iframe srcdoc=\"{inner}\"></iframe>")
        })
    };
    for depth in 0..6 {
        assert!(
            !page(&deep(depth), &no_script()).contains("script"),
            "{depth}"
        );
    }
}

/// Fails if the worker's form of a page changes more than what navigates, or its script does not come first.
#[test]
fn guided_pages_change_where_they_navigate() {
    let first = "<script src=/first.js></script>";
    for (text, expected) in [
        (
            "<!doctype html><html><head><title>x</title>",
            "<!doctype html><html><head>!<title>x</title>",
        ),
        ("<script>x</script><head>", "!<script>x</script><head>"),
        (
            "<p>x<img src=i style='a:url(b)' onload=x>",
            "!<p>x<img src=i style='a:url(b)' onload=x>",
        ),
        ("text", "text!"),
        ("<html>", "<html>!"),
        ("<p><a href=n>", "!<p><a href=\"@mp_/http://a.dk/x/n\">"),
        (
            "<p><a href='javascript:void(0)'>",
            "!<p><a href='javascript:void(0)'>",
        ),
        (
            "<p><base href=/d/>",
            "!<p><base href=\"@mp_/http://a.dk/d/\">",
        ),
        (
            "<p><frame src=n>",
            "!<p><frame src=\"@mp_/http://a.dk/x/n\">",
        ),
        (
            "<p><iframe src=n sandbox=allow-scripts credentialless>",
            "!<p><iframe src=\"@mp_/http://a.dk/x/n\">",
        ),
        (
            "<p><object data=n></object><embed src=m>",
            "!<p><object data=\"@mp_/http://a.dk/x/n\"></object><embed src=\"@mp_/http://a.dk/x/m\">",
        ),
        (
            "<p><form action=n>",
            "!<p><form action=\"@mp_/http://a.dk/x/n\">",
        ),
        (
            "<p><meta http-equiv=refresh content='1;n'>",
            "!<p><meta http-equiv=refresh content=\"1; url=@mp_/http://a.dk/x/n\">",
        ),
        (
            "<p><link rel=stylesheet href=s>",
            "!<p><link rel=stylesheet href=s>",
        ),
        (
            "<p><link rel=preload href=s>",
            "!<p><link rel=preload href=s>",
        ),
        (
            "<p><noscript><img src=i></noscript>",
            "!<p><noscript><img src=i></noscript>",
        ),
        (
            "<p><style>a{b:url(c)}</style>",
            "!<p><style>a{b:url(c)}</style>",
        ),
        (
            "<p><iframe srcdoc='<b>x'></iframe>",
            "!<p><iframe srcdoc=\"!<b>x\"></iframe>",
        ),
    ] {
        let expected = expected
            .replace('!', "\u{1}")
            .replace("<\u{1}doctype", "<!doctype");
        let expected = expected.replace('\u{1}', first).replace('@', PREFIX);
        assert_eq!(page(text, &guided()), expected, "{text}");
    }
}

/// Fails if the banner is missing, or stands there twice.
#[test]
fn banner_stands_there_once() {
    let mode = PageMode::NoScript {
        banner: "<p>\u{e6}</p>".to_owned(),
    };
    let banner = "<p>\u{e6}</p>";
    assert_eq!(
        page("<body>a<body>b", &mode),
        format!("<body>{banner}a<body>b")
    );
    assert_eq!(page("a", &mode), format!("a{banner}"));
    assert_eq!(page("", &mode), banner);
    let mut old = options(mode);
    old.encoding = EUC_JP;
    let out = in_pieces(b"<body>", old, usize::MAX);
    let (text, _, _) = EUC_JP.decode(&out);
    assert_eq!(text, "<body><p>&#230;</p>");
}
