//! Scripts and JSON.

use super::*;
use crate::speculation::looks_like_url;

fn code(body: &str, expected: &[&str]) {
    check("text/javascript", body, expected);
}

/// Fails if the judge takes words for URLs, or misses plain ones.
#[test]
fn judge_tells_urls_from_words() {
    for text in [
        "http://b.dk",
        "https://b.dk/x?y=z&w",
        "HTTP://B.DK/",
        "http://127.0.0.1/x",
        "//cdn.b.dk/x.js",
        "/news/",
        "/about",
        "/a/b",
        "/x.html",
        "/søg/her",
        "/a?b=c#d",
        "index.html",
        "img/logo.png",
        "../x/y.php?z=1",
        "./main.js",
        "a/b.c/d.jpeg",
        "/api/v1/items",
        "https://b.dk/a%20b",
        "page.aspx?id=7&x=/y",
    ] {
        assert!(looks_like_url(text), "{text}");
    }
    for text in [
        "",
        "/",
        "//",
        "///",
        "http://",
        "https://b",
        "http://.b.dk/",
        "text/html",
        "application/json",
        "image/svg+xml",
        "12/31/2024",
        "31.12.2024",
        "1.2.3",
        "a.b.c",
        "foo",
        "foo.bar",
        "e.g.",
        "/g",
        "/i/",
        "/^a.*$/",
        "/[a-z]/",
        "//comment",
        "// x",
        "a b.html",
        "${x}/y.html",
        "{{x}}.html",
        "%s.html",
        "/user/:id",
        "/*",
        "*.html",
        ".html",
        ".class.js",
        "www.b.dk/x.html",
        "javascript:x.js",
        "mailto:a@b.dk",
        "<b>x.html</b>",
        "x,y.html",
        "/a,b;c",
        "a..b.html",
        "http://www.w3.org/2000/svg",
        "http://schema.org/Person",
        "http://b..dk/",
        "/a//b",
        "\u{0}/x.html",
        "#/route",
        "?x=y.html",
        "=/x/y",
    ] {
        assert!(!looks_like_url(text), "{text}");
    }
}

/// Fails if a literal is lost among comments, expressions and templates, or its escapes are kept.
#[test]
fn literals_are_found_among_other_code() {
    for (body, expected) in [
        (
            "var a='/one/x', b=\"/two/x\", c=`/three/x`",
            "X /one/x, X /two/x, X /three/x",
        ),
        (r#"u="http:\/\/b.dk\/x""#, "X http://b.dk/x"),
        (r"u='\u002Fa\x2fb\u{2f}c'", "X /a/b/c"),
        (r"u='it\'s /no/url'; v='/yes/x'", "X /yes/x"),
        ("// don't\nu='/after/comment'", "X /after/comment"),
        ("/* don't */u='/after/comment'", "X /after/comment"),
        ("r=/['\"]/; u='/after/regex'", "X /after/regex"),
        ("r=/[/']/.test(x); u='/after/class'", "X /after/class"),
        ("return/'/.test(x)||'/after/return'", "X /after/return"),
        ("a=b/c; u='/after/division'; d/e", "X /after/division"),
        (
            "u=`/with/${ {a:`x`}['/inner/x'] }/end`+'/behind/it'",
            "X /inner/x, X /behind/it",
        ),
        ("u='broken\n'/after/line'", "X /after/line"),
        ("u='/cut/off", ""),
        ("u=`/cut/off", ""),
        ("/* cut '/x/y'", ""),
        ("import './mod.js'", "X /d/mod.js"),
        ("t='text/javascript'; e='click'; d='2024/01/02'", ""),
    ] {
        let expected: Vec<&str> = expected.split(", ").filter(|it| !it.is_empty()).collect();
        code(body, &expected);
    }
}

/// Fails if strings of JSON are not read, or words among them are links.
#[test]
fn strings_of_json_are_links() {
    let body = r#"{"@context":"https://schema.org","url":"https:\/\/b.dk\/x","n":"text/html","i":["/img/a.png",1,null,"x"]}"#;
    let expected = ["X https://b.dk/x", "X /img/a.png"];
    for media in ["application/json", "application/activity+json", "text/json"] {
        check(media, body, &expected);
    }
}

/// Fails if the strings of a script are relative to the script and not to the page in which it runs.
#[test]
fn strings_are_relative_to_embedding_page() {
    let url = Url::parse("http://cdn.dk/lib/s.js").unwrap();
    let via = Url::parse("http://a.dk/d/p.html").unwrap();
    let body = b"load('x.html')";
    for (via, expected) in [
        (None, "http://cdn.dk/lib/x.html"),
        (Some(&via), "http://a.dk/d/x.html"),
    ] {
        let document = FetchedDocument {
            via,
            ..FetchedDocument::new(&url)
        };
        let extraction = extract_links(&document, &body[..], &ExtractionLimits::default());
        assert_eq!(extraction.links[0].url.as_str(), expected);
    }
}
