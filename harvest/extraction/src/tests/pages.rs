//! Pages of HTML.

use super::*;

fn page(body: &str, expected: &[&str]) {
    check("text/html; charset=utf-8", body, expected);
}

/// Fails if an attribute is not read, or leads on by the wrong hop.
#[test]
fn attributes_lead_on_by_their_hops() {
    for (body, expected) in [
        ("<a href=x.html>", "L /d/x.html"),
        ("<A HREF = 'X.html' >", "L /d/X.html"),
        ("<area href=/x>", "L /x"),
        ("<a href=x ping='/p'>", "L /d/x, L /p"),
        ("<img src=i.png>", "E /d/i.png"),
        ("<img lowsrc=i.png dynsrc=i.avi>", "E /d/i.png, E /d/i.avi"),
        ("<input type=image src=i.gif>", "E /d/i.gif"),
        ("<iframe src=/f></iframe>", "E /f"),
        (
            "<frameset><frame src=f.html longdesc=l.html>",
            "E /d/f.html, L /d/l.html",
        ),
        (
            "<video poster=p.jpg src=v.mp4><source src=w.webm><track src=t.vtt></video>",
            "E /d/p.jpg, E /d/v.mp4, E /d/w.webm, E /d/t.vtt",
        ),
        (
            "<audio src=a.ogg></audio><embed src=e.swf>",
            "E /d/a.ogg, E /d/e.swf",
        ),
        ("<object data=o.swf codebase=/c/>", "E /d/o.swf, E /c/"),
        (
            "<body background=b.gif><table><td background=c.gif>",
            "E /d/b.gif, E /d/c.gif",
        ),
        (
            "<blockquote cite=q></blockquote><q cite=r></q>",
            "L /d/q, L /d/r",
        ),
        ("<script src=s.js></script>", "E /d/s.js"),
        (
            "<svg><image href=a.svg /><use xlink:href='b.svg#i' /><a xlink:href=c></a></svg>",
            "E /d/a.svg, E /d/b.svg, L /d/c",
        ),
        ("<form action=/search>", "L /search"),
        ("<form action=/order method=POST>", ""),
        (
            "<option value=/to/there.html><option value=blue>",
            "X /to/there.html",
        ),
        (
            "<a href='javascript:open(\"/pop/up.html\")'>",
            "X /pop/up.html",
        ),
        ("<a onclick=\"location='/clicked/on'\">", "X /clicked/on"),
        ("<div style='background:url(b.png)'>", "E /d/b.png"),
        (
            "<iframe srcdoc='&lt;img src=i.png&gt;'></iframe>",
            "E /d/i.png",
        ),
        ("<html manifest=app.cache>", "E /d/app.cache"),
    ] {
        let expected: Vec<&str> = expected.split(", ").filter(|it| !it.is_empty()).collect();
        page(body, &expected);
    }
}

/// Fails if links that only `rel` or `meta` explain have the wrong hop.
#[test]
fn relations_and_names_decide_hops() {
    for (body, expected) in [
        ("<link rel=stylesheet href=s.css>", "E /d/s.css"),
        ("<link rel='shortcut ICON' href=f.ico>", "E /d/f.ico"),
        (
            "<link rel=preload imagesrcset='a.png 1x, b.png 2x'>",
            "E /d/a.png, E /d/b.png",
        ),
        ("<link rel=alternate href=feed>", "L /d/feed"),
        ("<link href=x>", "L /d/x"),
        ("<link rel=preconnect href=https://cdn.dk/>", ""),
        (
            "<meta http-equiv=Refresh content='5; URL=\"n.html\"'>",
            "R /d/n.html",
        ),
        (
            "<meta http-equiv=refresh content='0;n.html'>",
            "R /d/n.html",
        ),
        ("<meta http-equiv=refresh content=30>", ""),
        (
            "<meta property=og:image content=http://b.dk/i.jpg>",
            "E http://b.dk/i.jpg",
        ),
        ("<meta name=twitter:image content=/i.jpg>", "E /i.jpg"),
        ("<meta property=og:url content=http://a.dk/u>", "L /u"),
        ("<meta name=description content='see /x.html'>", ""),
    ] {
        let expected: Vec<&str> = expected.split(", ").filter(|it| !it.is_empty()).collect();
        page(body, &expected);
    }
}

/// Fails if a candidate of a `srcset` is lost, or its size is read as a URL.
#[test]
fn all_candidates_of_image_sets_are_links() {
    for (set, expected) in [
        (
            "a.png, b.png 2x,c.png 300w",
            &["E /d/a.png", "E /d/b.png", "E /d/c.png"][..],
        ),
        ("a,b.png 1x", &["E /d/a,b.png"]),
        ("a.png,  b.png", &["E /d/a.png", "E /d/b.png"]),
        ("data:image/png;base64,AAAA 1x, b.png 2x", &["E /d/b.png"]),
        ("a.png calc(1, 2), b.png", &["E /d/a.png", "E /d/b.png"]),
        (" , ,", &[]),
    ] {
        page(&format!("<img srcset='{set}'>"), expected);
        page(&format!("<img data-srcset='{set}'>"), expected);
    }
}

/// Fails if images that a script loads later are lost, or values that are no references become links.
#[test]
fn lazy_attributes_are_read_with_care() {
    page(
        "<img src='data:image/gif;base64,R0lGOD' data-src=a.jpg data-original=b.jpg data-lazy-src=/c>",
        &["E /d/a.jpg", "E /d/b.jpg", "E /c"],
    );
    for value in ["slider", "1.5", "{{ image }}/x.png", "two words.png", ""] {
        page(&format!("<div data-src='{value}'>"), &[]);
    }
    page("<div data-href=/to/page data-url=x>", &["X /to/page"]);
}

/// Fails if references are not resolved as browsers do: entities, blanks, line ends, fragments, schemes.
#[test]
fn references_are_resolved_like_browsers_do() {
    for (reference, expected) in [
        ("?a=1&amp;b=2", "L /d/p.html?a=1&b=2"),
        (
            "?a=1&b=2&copy=3&lang=da",
            "L /d/p.html?a=1&b=2&copy=3&lang=da",
        ),
        ("x&#47;y&#x2f;z", "L /d/x/y/z"),
        ("bl&aring;b&aelig;r", "L /d/bl%C3%A5b%C3%A6r"),
        ("&#150;", "L /d/%E2%80%93"),
        ("&bogus;&;&", "L /d/&bogus;&;&"),
        (" \t\n x.html \n", "L /d/x.html"),
        ("/a\n/b\t/c", "L /a/b/c"),
        ("../../../x", "L /x"),
        ("//b.dk/x", "L http://b.dk/x"),
        ("HTTPS://B.dk", "L https://b.dk/"),
        ("x.html#y", "L /d/x.html"),
        ("ftp://b.dk/f", "L ftp://b.dk/f"),
        ("#top", ""),
        ("p.html#top", ""),
        ("", ""),
        ("mailto:a@a.dk", ""),
        ("tel:112", ""),
        ("data:text/html,x", ""),
        ("about:blank", ""),
        ("blob:http://a.dk/1", ""),
        ("http://[", ""),
        ("{{url}}", ""),
    ] {
        let expected: Vec<&str> = Some(expected)
            .filter(|it| !it.is_empty())
            .into_iter()
            .collect();
        page(&format!("<a href=\"{reference}\">"), &expected);
    }
}

/// Fails if links are relative to the document although it names a base, or a second base counts; or if what a browser
/// has asked for before the base is looked for elsewhere.
#[test]
fn first_base_holds_for_all_links() {
    page(
        "<a href=x><img src=0><base href=/b/><a href=y><base href=/c/>",
        &["L /b/x", "E /d/0", "L /b/y"],
    );
    page(
        "<img src=0><base target=_top><base href=/b/><img src=1><base href=/c/><img src=2>",
        &["E /d/0", "E /b/1", "E /b/2"],
    );
    page("<base href='//b.dk'><a href=x>", &["L http://b.dk/x"]);
    page("<base href='data:x'><a href=x>", &["L /d/x"]);
}

/// Fails if scripts, styles, data or pages for old browsers within a page are not read, or comments are.
#[test]
fn texts_within_pages_are_read() {
    for (body, expected) in [
        ("<script>go('/in/script')</script>", "X /in/script"),
        (
            "<script type=module>go('/in/module')</script>",
            "X /in/module",
        ),
        (
            "<script type=application/ld+json>{\"url\":\"https://a.dk/ld\"}</script>",
            "X https://a.dk/ld",
        ),
        ("<script type=text/template><a href='/t'></script>", ""),
        (
            "<style>@import 's.css'; a{background:url(b.png)}</style>",
            "E /d/s.css, E /d/b.png",
        ),
        ("<noscript><img src=n.png></noscript>", "E /d/n.png"),
        (
            "<noscript><noscript><img src=n.png></noscript></noscript>",
            "",
        ),
        (
            "<frameset></frameset><noframes><a href=n.html></noframes>",
            "L /d/n.html",
        ),
        (
            "<!-- <a href=x> --><!--[if IE]><img src=ie.png><![endif]-->",
            "E /d/ie.png",
        ),
        ("<template><img src=t.png></template>", "E /d/t.png"),
        (
            "<textarea><a href=x></textarea><title><a href=y></title>",
            "",
        ),
        ("<script>'/cut/off", ""),
    ] {
        let expected: Vec<&str> = expected.split(", ").filter(|it| !it.is_empty()).collect();
        page(body, &expected);
    }
}

/// Fails if a link is given twice, or is lost because it has another hop as well.
#[test]
fn links_are_given_once_for_each_hop() {
    page(
        "<a href=x><img src=x><a href='x#y'><a href=/d/x>",
        &["L /d/x", "E /d/x"],
    );
}

/// Fails if the links beyond the limit are kept, or not counted.
#[test]
fn links_beyond_limit_are_counted() {
    let url = Url::parse("http://a.dk/").unwrap();
    let limits = ExtractionLimits {
        max_links: 2,
        ..ExtractionLimits::default()
    };
    let body = b"<html><a href=1><a href=2><a href=1><a href=3><a href=4>";
    let extraction = extract_links(&FetchedDocument::new(&url), &body[..], &limits);
    assert_eq!(extraction.links.len(), 2);
    assert_eq!(extraction.annotations, ["dol:2"]);
}

/// Fails if a page under another type is not read as one, or other files are read as pages.
#[test]
fn pages_are_known_by_type_or_start() {
    let body = "<!DOCTYPE html><a href=x>";
    for (media, is_page) in [
        ("text/html", true),
        ("application/xhtml+xml", true),
        ("text/plain", true),
        ("application/octet-stream", true),
        ("text/xml", true),
        ("image/png", false),
        ("text/css", false),
        ("video/mp4", false),
    ] {
        check(media, body, if is_page { &["L /d/x"] } else { &[] });
    }
    check("text/plain", "see http://a.dk/x", &[]);
    check(
        "application/xhtml+xml",
        "<?xml version='1.0'?><html><img src='x'/></html>",
        &["E /d/x"],
    );
}

/// Fails if a page of XML is read as if its self-closed tags were open, or one of HTML as if they were not.
#[test]
fn pages_of_xml_have_self_closed_tags() {
    let body = "<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><head><title/><script src='/a.js'/>\
        <link rel='stylesheet' href='/a.css'/></head><body><a href='/b.html'>b</a></body></html>";
    let all = ["E /a.js", "E /a.css", "L /b.html"];
    check("application/xhtml+xml", body, &all);
    check(
        "application/xml",
        &body.replace("?>", "?><!DOCTYPE html>"),
        &all,
    );
    check("text/html", body, &[]);
}

/// Fails if values of forms that look like addresses of pages are no guesses, or other values are.
#[test]
fn values_of_forms_may_be_links() {
    page(
        "<form><input type=hidden value='/next/page.html'><input value=name><button value='http://b.dk/x'>",
        &["X /next/page.html", "X http://b.dk/x"],
    );
}

/// Fails if what Internet Explorer reads of a comment is lost, or a plain comment is read.
#[test]
fn conditional_comments_are_read() {
    page(
        "<p><!--[if IE]><link rel=stylesheet href=/ie.css><![endif]-->\
         <!--[IF lt IE 9]><script src=/shiv.js></script><![endif]-->\
         <!--[if !IE]><!--><img src=/all.png><!--<![endif]-->\
         <!-- <img src=/no.png> --><!--[if IE no.png-->",
        &["E /ie.css", "E /shiv.js", "E /all.png"],
    );
}
