//! Style sheets.

use super::*;

fn style(body: &str, expected: &[&str]) {
    check("text/css", body, expected);
}

/// Fails if a way to write a URL is not read, or its escapes are kept.
#[test]
fn urls_are_read_however_written() {
    for (value, expected) in [
        ("url(x.png)", "E /d/x.png"),
        ("URL( 'x.png' )", "E /d/x.png"),
        ("url(\"x y.png\")", "E /d/x%20y.png"),
        ("url(\n x.png\t)", "E /d/x.png"),
        ("url(x\\(1\\).png)", "E /d/x(1).png"),
        ("url('x\\'y.png')", "E /d/x'y.png"),
        ("url('\\78 .png')", "E /d/x.png"),
        ("url(\\000078.png)", "E /d/x.png"),
        ("url(\\78 \\79 .png)", "E /d/xy.png"),
        ("url('x\\\ny.png')", "E /d/xy.png"),
        ("url(/* no comment */x.png)", ""),
        ("url(data:image/png;base64,AA==)", ""),
        ("url(#id)", ""),
        ("url()", ""),
        ("url(a b)", ""),
        ("'url(x.png)'", ""),
        (
            "image-set('a.png' 1x, url(b.png) 2x, 'c.avif' type('image/avif'))",
            "E /d/a.png, E /d/b.png, E /d/c.avif",
        ),
        ("-webkit-image-set('a.png' 1x)", "E /d/a.png"),
        ("curl(x.png)", ""),
    ] {
        let expected: Vec<&str> = expected.split(", ").filter(|it| !it.is_empty()).collect();
        style(
            &format!("a {{ background: {value}; color: red }}"),
            &expected,
        );
    }
}

/// Fails if imports are lost, or strings of other rules are taken for imports.
#[test]
fn imports_are_links_and_names_not() {
    style(
        "@import 'a.css' screen; @IMPORT url(b.css);",
        &["E /d/a.css", "E /d/b.css"],
    );
    style(
        "@charset 'x.css'; @namespace url(http://b.dk/n); a{content:'x.css'}",
        &[],
    );
    style("@import screen; a{content:'x.css'}", &[]);
}

/// Fails if comments are read, or text behind a broken string is lost.
#[test]
fn comments_and_broken_strings_are_passed() {
    style(
        "/* url(a.png) */ a{b:url(b.png)} /* url(c.png)",
        &["E /d/b.png"],
    );
    style("a{content:'broken\n} b{c:url(d.png)}", &["E /d/d.png"]);
    style("a{b:url(cut.png", &[]);
    style("a{b:url('cut.png", &[]);
}
