//! A site that was harvested, and whose server has ended: a browser shows all of it from the archive.

use std::path::Path;

use crate::support::browser::{Browser, BrowserOptions, Programs};
use crate::support::chain::{Chain, authority, endpoint, text};
use crate::support::nginx::Nginx;
use crate::support::outside::Outside;
use crate::support::tools::nginx;

/// Returns an image of one colour that every browser decodes.
fn bitmap(width: u32, height: u32, colour: [u8; 3]) -> Vec<u8> {
    let row = (width * 3).next_multiple_of(4);
    let size = 54 + row * height;
    let mut bytes = b"BM".to_vec();
    for number in [
        size,
        0,
        54,
        40,
        width,
        height,
        1 | 24 << 16,
        0,
        0,
        0,
        0,
        0,
        0,
    ] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    for _ in 0..height {
        let line = bytes.len();
        for _ in 0..width {
            bytes.extend_from_slice(&colour);
        }
        bytes.resize(line + usize::try_from(row).expect("small"), 0);
    }
    bytes
}

const PAGE: &str = r#"<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>A harvested site</title>
<link rel="stylesheet" href="/style/main.css">
<link rel="icon" href="icon.bmp">
</head><body>
<h1>A harvested site</h1>
<p id="styled">The background of this page is an image.</p>
<img src="images/plain.bmp" alt="plain">
<img src="images/small.bmp" srcset="images/small.bmp 1x, images/large.bmp 2x" alt="of a set">
<picture><source srcset="images/picture.bmp"><img src="images/plain.bmp" alt="of a picture"></picture>
<img src="/images/vector.svg" alt="vector" width="40" height="40">
<img src="{BASE}images/absolute.bmp" alt="absolute">
<p id="fetched">nothing was fetched</p>
<p id="asked">nothing was asked</p>
<iframe src="inner.html" width="300" height="80"></iframe>
<p><a id="next" href="second.html">The second page</a></p>
<p><a id="letters" href="letters.html">Letters</a></p>
<script src="app.js"></script>
</body></html>
"#;

const SCRIPT: &str = r#"
fetch("data/fetched.json").then((answer) => answer.json()).then((data) => {
  document.getElementById("fetched").textContent = data.text;
});
const request = new XMLHttpRequest();
request.onload = () => { document.getElementById("asked").textContent = JSON.parse(request.responseText).text; };
request.open("GET", "{BASE}data/asked.json");
request.send();
const late = document.createElement("img");
late.src = "/images/late.bmp";
late.alt = "made by a script";
document.body.append(late);
"#;

const STYLE: &str = "@import url('more.css');\nbody { background: url('../images/back.bmp'); }\nh1 { color: rgb(1, 2, 3); }\n";

/// Writes the site, with its own address where a page names it.
fn write_site(root: &Path, base: &str) {
    for folder in ["images", "style", "data"] {
        std::fs::create_dir(root.join(folder)).unwrap();
    }
    let put = |name: &str, bytes: &[u8]| std::fs::write(root.join(name), bytes).unwrap();
    put("index.html", PAGE.replace("{BASE}", base).as_bytes());
    put("app.js", SCRIPT.replace("{BASE}", base).as_bytes());
    put("style/main.css", STYLE.as_bytes());
    put("style/more.css", b"#styled { font-size: 31px; }\n");
    put("data/fetched.json", br#"{"text": "fetched by a script"}"#);
    put("data/asked.json", br#"{"text": "asked by a script"}"#);
    put(
        "inner.html",
        b"<!DOCTYPE html><title>Inner</title><p>Within a frame.<img src='images/inner.bmp'>",
    );
    put("second.html", b"<!DOCTYPE html><title>Second</title><h1>The second page</h1><img src='images/second.bmp'>");
    put("letters.html", b"<!DOCTYPE html><meta charset='iso-8859-1'><title>Letters</title><p id='letters'>R\xf8dgr\xf8d p\xe5 \xc6bler</p>");
    put("images/vector.svg", b"<svg xmlns='http://www.w3.org/2000/svg' width='40' height='40'><circle cx='20' cy='20' r='18' fill='green'/></svg>");
    put("icon.bmp", &bitmap(16, 16, [0, 0, 0]));
    let images = [
        "plain", "small", "large", "picture", "absolute", "late", "back", "inner", "second",
    ];
    for (number, name) in images.iter().enumerate() {
        let shade = u8::try_from(number * 25).unwrap();
        put(
            &format!("images/{name}.bmp"),
            &bitmap(40, 30, [255 - shade, 160, shade]),
        );
    }
}

/// The images of a page that are not there: `alt` and address of each.
const UNDECODED: &str = "return Array.from(document.images).filter((image) => !image.complete || image.naturalWidth === 0)
    .map((image) => image.alt + ' ' + image.currentSrc)";

/// Whether every image has been decoded or given up.
const COMPLETE: &str = "return document.readyState === 'complete' && Array.from(document.images).every((image) => image.complete)";

/// Fails if a harvested page is not shown whole while its server is off, or if anything is asked of the live web for
/// it.
#[test]
fn harvested_site_is_shown_without_its_server() {
    let (Some(programs), Some(nginx)) = (Programs::find(), nginx()) else {
        return;
    };
    let root = tempfile::tempdir().unwrap();
    let site = Nginx::serve(&nginx, root.path());
    let base = site.base();
    write_site(root.path(), &base);
    let chain = Chain::start(&[]);
    let jobs = chain.archive.path("jobs");
    let words = [
        "crawl",
        &base,
        "--delay",
        "0",
        "--job",
        "7",
        "--keep",
        text(&jobs),
    ];
    chain.archive.run(&words).expect(0);
    drop(site);
    chain.wait_for_index();

    let web = endpoint(&chain.archive, "web");
    let hosts = [authority(&web), authority(&chain.replay)];
    let outside = Outside::start();
    let options = BrowserOptions {
        hosts: &hosts,
        ..BrowserOptions::default()
    };
    let browser = Browser::start(&programs, &outside, &options);
    let year = "2038";
    browser.open(&format!("{web}/replay/all/{year}/{base}"));
    browser.enter_frame();
    let script_made = "return document.getElementById('fetched') && document.images.length === 6 && document.getElementById('fetched').textContent !== 'nothing was fetched'
        && document.getElementById('asked').textContent !== 'nothing was asked'";
    browser.wait_for("what the script asked for", script_made);
    browser.wait_for("the images", COMPLETE);
    assert_eq!(browser.evaluate(UNDECODED), serde_json::json!([]));
    assert_eq!(browser.text_of("#fetched"), "fetched by a script");
    assert_eq!(browser.text_of("#asked"), "asked by a script");
    let style = browser.evaluate(
        "const of = (selector) => getComputedStyle(document.querySelector(selector));
         return [of('h1').color, of('#styled').fontSize, of('body').backgroundImage]",
    );
    assert_eq!(
        (&style[0], &style[1]),
        (&"rgb(1, 2, 3)".into(), &"31px".into()),
        "{style}"
    );
    // The background is no element that could be asked: an image of that address is.
    let background = "const done = arguments[arguments.length - 1]; return (async () => {
        const image = new Image(); image.src = getComputedStyle(document.body).backgroundImage.slice(5, -2);
        try { await image.decode(); } catch (error) { return String(error); } return image.naturalWidth; })()";
    assert_eq!(browser.evaluate(background), 40);
    browser.leave_frame();
    browser.picture("harvested-site");
    outside.check_quiet();

    // Links lead on within the archive, also to a page in an older charset.
    browser.enter_frame();
    browser.click("#next");
    browser.wait_for("the second page", "return document.title === 'Second'");
    browser.wait_for("its image", COMPLETE);
    assert_eq!(browser.evaluate(UNDECODED), serde_json::json!([]));
    browser.leave_frame();
    browser.open(&format!("{web}/replay/all/{year}/{base}letters.html"));
    browser.enter_frame();
    browser.wait_for("the letters", "return document.title === 'Letters'");
    assert_eq!(browser.text_of("#letters"), "Rødgrød på Æbler");
    browser.leave_frame();
    browser.picture("harvested-letters");

    // Without scripts: links, style and images, from the replay host alone.
    browser.open(&format!("{}/all/{year}/{base}", chain.replay));
    browser.wait_for("the images", COMPLETE);
    let undecoded = browser.evaluate(UNDECODED);
    assert_eq!(undecoded, serde_json::json!([]));
    assert_eq!(browser.text_of("#fetched"), "nothing was fetched");
    browser.picture("harvested-scriptless");
    browser.click("#next");
    browser.wait_for("the second page", "return document.title === 'Second'");
    assert!(
        browser.address().starts_with(&chain.replay),
        "{}",
        browser.address()
    );
    outside.check_quiet();
    chain.archive.stop();
}
