//! Tests of charsets, style sheets and limits.

use encoding_rs::{ISO_2022_JP, UTF_16LE, WINDOWS_1252};

use super::*;

/// Fails if the letters of a page in an old charset change, or its queries are escaped in another one.
#[test]
fn letters_of_old_charsets_are_kept() {
    let mut old = options(no_script());
    old.encoding = WINDOWS_1252;
    let text = b"<title>bl\xe5b\xe6r</title><a href='/\xe6?q=\xf8' title='\xe5'>\xc6</a>";
    let out = in_pieces(text, old, 5);
    let expected = b"<title>bl\xe5b\xe6r</title><a href=\"/all/20200101000000/http://a.dk/%C3%A6?q=%F8\" title='\xe5'>\xc6</a>";
    assert_eq!(out, expected);
    for encoding in [UTF_16LE, ISO_2022_JP] {
        let mut other = options(no_script());
        other.encoding = encoding;
        let text = "<a href=n>\u{65e5}\u{672c}";
        let bytes: Vec<u8> = if encoding == UTF_16LE {
            text.encode_utf16().flat_map(u16::to_le_bytes).collect()
        } else {
            encoding.encode(text).0.into_owned()
        };
        assert_eq!(PageRewriter::new(other.clone()).encoding(), UTF_8);
        let out = in_pieces(&bytes, other, 3);
        let expected = format!("<a href=\"{PREFIX}/http://a.dk/x/n\">\u{65e5}\u{672c}");
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}

/// Fails if a weaker witness of the charset is believed before a stronger one.
#[test]
fn charset_has_witnesses() {
    for (header, start, expected) in [
        (Some("text/html; charset=koi8-r"), "\u{feff}x", "UTF-8"),
        (
            Some("text/html; charset=koi8-r"),
            "<meta charset=utf-8>",
            "KOI8-R",
        ),
        (
            Some("text/html; charset=klingon"),
            "<meta charset='koi8-r'>",
            "KOI8-R",
        ),
        (
            Some("text/html"),
            "<META content='text/html; CHARSET = koi8-r'>",
            "KOI8-R",
        ),
        (None, "<meta charset=utf-16>", "UTF-8"),
        (None, "<p>\u{e6}", "UTF-8"),
        (None, "charset", "UTF-8"),
    ] {
        let found = page_encoding(header.map(str::as_bytes), start.as_bytes());
        assert_eq!(found.name(), expected, "{header:?} {start}");
    }
    assert_eq!(page_encoding(None, b"<p>\xe6 x").name(), "windows-1252");
    assert_eq!(page_encoding(None, b"<p>\xc3").name(), "UTF-8");
}

/// Fails if a URL of a style sheet leads out of the archive, or text that is no URL is changed.
#[test]
fn style_sheets_lead_to_captures() {
    let addresses = Addresses::new("", "all");
    let url = "http://a.dk/x/y".parse().unwrap();
    let style = |text: &str| style_sheet(text, &addresses, "20200101000000".parse().unwrap(), &url);
    for (text, expected) in [
        ("a{b:url(c)}", "a{b:url(\"@oe_/http://a.dk/x/c\")}"),
        (
            "a{b:URL( 'c d' )}",
            "a{b:url(\"@oe_/http://a.dk/x/c%20d\")}",
        ),
        (
            "a{b:u\\72l(http://b.dk/)}",
            "a{b:url(\"@oe_/http://b.dk/\")}",
        ),
        ("a{b:\\75 rl(c)}", "a{b:url(\"@oe_/http://a.dk/x/c\")}"),
        (
            "a{b:url(h\\74tp://b.dk/)}",
            "a{b:url(\"@oe_/http://b.dk/\")}",
        ),
        (
            "a{b:url(data:image/png;base64,AA==)}",
            "a{b:url(\"data:image/png;base64,AA==\")}",
        ),
        ("a{b:url(#x)}", "a{b:url(\"#x\")}"),
        ("a{b:url(javascript:x)}", "a{b:url(\"\")}"),
        (
            "@import 'c';a{b:'d'}",
            "@import \"@cs_/http://a.dk/x/c\";a{b:'d'}",
        ),
        (
            "@import url(c) screen;",
            "@import url(\"@cs_/http://a.dk/x/c\") screen;",
        ),
        ("@IMPORT/**/\"c\"", "@IMPORT/**/\"@cs_/http://a.dk/x/c\""),
        ("@import 'data:text/css,x'", "@import \"\""),
        (
            "@namespace url(http://b.dk/);",
            "@namespace url(http://b.dk/);",
        ),
        (
            "@font-face{src:url(f.woff2) format('woff2')}",
            "@font-face{src:url(\"@oe_/http://a.dk/x/f.woff2\") format('woff2')}",
        ),
        (
            "a{b:image-set('c' 1x,url(d) 2x)}",
            "a{b:image-set(\"@oe_/http://a.dk/x/c\" 1x,url(\"@oe_/http://a.dk/x/d\") 2x)}",
        ),
        (
            "/* url(c) */a{content:'url(c)'}",
            "/* url(c) */a{content:'url(c)'}",
        ),
        ("a{b:curl(c)}", "a{b:curl(c)}"),
        ("a{b:url(c d)}", "a{b:url(c d)}"),
        ("a{b:url('c\nd')}", "a{b:url('c\nd')}"),
        ("a{b:url(c", "a{b:url(\"@oe_/http://a.dk/x/c\")"),
        ("a{b:url('c", "a{b:url(\"@oe_/http://a.dk/x/c\")"),
        (
            "a{b:url(\\3c /style>)}",
            "a{b:url(\"@oe_/http://a.dk/x/%3C/style%3E\")}",
        ),
        ("\u{e6}{b:'\u{e6}\\", "\u{e6}{b:'\u{e6}\\"),
        ("a{b:\\\nc}", "a{b:\\\nc}"),
        ("a)}@;/*", "a)}@;/*"),
    ] {
        assert_eq!(
            style(text),
            expected
                .replace('@', PREFIX)
                .replace(&format!("{PREFIX}import"), "@import")
                .replace(&format!("{PREFIX}IMPORT"), "@IMPORT")
                .replace(&format!("{PREFIX}namespace"), "@namespace")
                .replace(&format!("{PREFIX}font"), "@font")
                .replace(&format!("{PREFIX};"), "@;"),
            "{text}"
        );
    }
    check(
        &no_script(),
        &[
            (
                "<p style='a:url(b)'>",
                "<p style=\"a:url(&quot;@oe_/http://a.dk/x/b&quot;)\">",
            ),
            (
                "<style>a{b:url(c)}</style>d",
                "<style>a{b:url(\"@oe_/http://a.dk/x/c\")}</style>d",
            ),
            (
                "<style></style><style>url(a)</style>",
                "<style></style><style>url(\"@oe_/http://a.dk/x/a\")</style>",
            ),
        ],
    );
}

/// Fails if a page that needs too much memory is not ended, or a style sheet that is too large is shown in part.
#[test]
fn memory_is_bounded() {
    let small = |text: &[u8]| {
        let mut options = options(no_script());
        options.memory = 1;
        let mut rewriter = PageRewriter::new(options);
        let mut out = Vec::new();
        let result = text
            .chunks(1000)
            .try_for_each(|piece| rewriter.write_bytes(piece, &mut out));
        (result, rewriter.write_bytes(b"x", &mut out), out)
    };
    let huge = format!("<p>a</p><a title='{}'>", "x".repeat(100_000));
    let (result, next, out) = small(huge.as_bytes());
    assert_eq!(result, Err(RewriteError::Memory(LEAST_MEMORY)));
    assert_eq!(next, Err(RewriteError::Ended));
    assert!(
        out.starts_with(b"<p>a</p>") && out.len() < 100,
        "{}",
        out.len()
    );
    let style = format!(
        "<style>{}</style><p>after</p>",
        "a{b:url(c)}".repeat(10_000)
    );
    let (result, _, out) = small(style.as_bytes());
    assert_eq!(result, Ok(()));
    let text = String::from_utf8(out).unwrap();
    assert!(
        !text.contains("url") && text.contains("<p>after</p>"),
        "{}",
        text.len()
    );
    let text = format!("<p>{}</p>", "long text ".repeat(100_000));
    assert_eq!(small(text.as_bytes()).0, Ok(()));
}

/// Fails if a cut or mutated page panics, or an address of the live web comes through in an attribute that is followed.
#[test]
fn no_page_is_too_odd() {
    let seed = "<!doctype html><base href=//b.dk/><body><a href='http://c.dk/'><img srcset='a 1x,b' style='b:url(\"c\")'><noscript><i></noscript><style>@import 'x';\\</style><iframe srcdoc='&lt;p&gt;'></iframe><meta http-equiv=refresh content=0;x>&amp;";
    for at in 0..=seed.len() {
        for middle in ["", "<", "'", "\\", "\u{0}", "</style>", "&#x;"] {
            let text = format!("{}{middle}{}", &seed[..at], &seed[at..]);
            for mode in [no_script(), guided()] {
                let _whole = in_pieces(text.as_bytes(), options(mode.clone()), 11);
                let _start = in_pieces(&seed.as_bytes()[..at], options(mode), usize::MAX);
            }
        }
    }
}

/// Fails if the letters of a style sheet are read in another charset than it names.
#[test]
fn sheets_are_read_in_their_charset() {
    for (content_type, bytes, expected) in [
        (None, b"a{b:'\xe6'}".as_slice(), "a{b:'\u{e6}'}"),
        (None, b"a{b:'\xc3\xa6'}", "a{b:'\u{e6}'}"),
        (Some("text/css; charset=koi8-r"), b"\xc1", "\u{430}"),
        (
            None,
            b"@charset \"koi8-r\";\xc1",
            "@charset \"koi8-r\";\u{430}",
        ),
        (None, b"@charset \"utf-16\";x", "@charset \"utf-16\";x"),
        (
            Some("text/css; charset=koi8-r"),
            b"\xef\xbb\xbf\xc3\xa6",
            "\u{e6}",
        ),
    ] {
        let text = sheet_text(content_type.map(str::as_bytes), bytes);
        assert_eq!(text, expected, "{content_type:?} {bytes:?}");
    }
}
