//! Bodies with content encodings: raw answers keep them, and pages are decoded before they are rewritten.
//!
//! Bodies that decode into gigabytes end in a bounded answer, and the memory of the viewer stays bounded as well.

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::path::Path;

use crate::support::browser::{Browser, BrowserOptions, Programs};
use crate::support::chain::{Chain, authority, endpoint};
use crate::support::curl::{curl_into, curl_through, curl_undoes};
use crate::support::made::{Response, gzip, warc};
use crate::support::outside::Outside;

const DATE: &str = "2020-02-01T00:00:00Z";
const TIME: &str = "20200201000000";

/// A page, and the same page as `brotli --best` and `zstd -19` write it.
const PAGE: &str = include_str!("pages/encoded.html");
const PAGE_BROTLI: &[u8] = include_bytes!("pages/encoded.html.br");
const PAGE_ZSTD: &[u8] = include_bytes!("pages/encoded.html.zst");

/// The script of the page, encoded by `zstd -19`, and the style of the page.
const SCRIPT_ZSTD: &[u8] = include_bytes!("pages/encoded.js.zst");
const STYLE: &str = "#letters { color: rgb(1, 2, 3); }\n";

/// Letters of the page, most of which have several bytes.
const LETTERS: &str = "Rødgrød med fløde på Æblets dag";

/// The field by which the service worker asks for a framed page.
const OF_WORKER: [&str; 2] = ["--header", "X-Replay-Worker: iframe"];

/// A body as it is stored.
struct EncodedBody {
    /// The last part of the URL.
    name: &'static str,
    media: &'static str,
    /// The value of `Content-Encoding`.
    encoding: &'static str,
    body: Vec<u8>,
}

impl EncodedBody {
    fn url(&self) -> String {
        format!("http://encoded.example/{}", self.name)
    }

    fn path(&self, modifier: &str) -> String {
        format!("/all/{TIME}{modifier}/{}", self.url())
    }
}

/// Stores bodies in one file.
fn store(chain: &Chain, bodies: &[EncodedBody]) {
    let heads: Vec<(String, String)> = bodies
        .iter()
        .map(|own| {
            let media = own.media;
            let encoding = own.encoding;
            let fields = format!("Content-Type: {media}\r\nContent-Encoding: {encoding}\r\n");
            (own.url(), fields)
        })
        .collect();
    let responses: Vec<Response<'_>> = heads
        .iter()
        .zip(bodies)
        .map(|((url, fields), own)| Response {
            url,
            date: DATE,
            fields,
            body: &own.body,
        })
        .collect();
    chain.store_bytes("encoded.warc.gz", &warc(&responses));
}

/// Fails if a raw answer loses an encoding or a byte of it, or if a page is rewritten without being decoded.
#[test]
fn encoded_page_is_kept_and_decoded() {
    let page = |name, encoding, body| EncodedBody {
        name,
        media: "text/html; charset=utf-8",
        encoding,
        body,
    };
    let pages = [
        page("gzip", "gzip", gzip(PAGE.as_bytes())),
        page("brotli", "br", PAGE_BROTLI.to_vec()),
        page("zstd", "zstd", PAGE_ZSTD.to_vec()),
        page("both", "br, gzip", gzip(PAGE_BROTLI)),
    ];
    let chain = Chain::start(&[]);
    store(&chain, &pages);
    let proxy = endpoint(&chain.archive, "proxy");
    let can_judge = curl_undoes(&["brotli", "libz", "zstd"]);
    if !can_judge {
        tools_testing::skipped(
            "curl undoes not all of gzip, br and zstd, and judges no raw answer",
        );
    }
    for page in &pages {
        let name = page.name;
        let encoding = page.encoding;
        let raw_path = page.path("id_");
        let raw = chain.get(&raw_path).expect(200);
        assert_eq!(raw.body, page.body, "{name}");
        assert_eq!(raw.field("Content-Encoding"), Some(encoding), "{name}");
        let head = chain.ask(&raw_path, &["--head"]).expect(200);
        let length = page.body.len().to_string();
        assert_eq!(head.field("Content-Length"), Some(&*length), "{name}");
        assert_eq!(head.field("Content-Encoding"), Some(encoding), "{name}");
        let part = chain.ask(&raw_path, &["--range", "7-31"]).expect(206);
        assert_eq!(part.body, page.body[7..32], "{name}");
        let proxied = curl_through(&proxy, &page.url(), &[]).expect(200);
        assert_eq!(proxied.body, page.body, "{name}, by the proxy");
        assert_eq!(proxied.field("Content-Encoding"), Some(encoding), "{name}");
        if can_judge {
            // A client that undoes encodings by itself sees the page.
            let undone = chain.ask(&raw_path, &["--compressed"]).expect(200);
            assert_eq!(undone.text(), PAGE, "{name}");
        }

        let plain = chain.get(&page.path("")).expect(200);
        let framed = chain.ask(&page.path("mp_"), &OF_WORKER).expect(200);
        for (answer, way) in [(&plain, "without scripts"), (&framed, "framed")] {
            let shown = answer.text();
            assert!(shown.contains(LETTERS), "{name}, {way}: {shown}");
            assert!(!shown.contains("role=\"alert\""), "{name}, {way}: {shown}");
            assert_eq!(answer.field("Content-Encoding"), None, "{name}, {way}");
            let told = answer.field("X-Archive-Orig-Content-Encoding");
            assert_eq!(told, Some(encoding), "{name}, {way}");
        }
        let link = format!("href=\"/all/{TIME}/http://encoded.example/next.html\"");
        assert!(plain.text().contains(&link), "{name}: {}", plain.text());
    }
    chain.archive.stop();
}

/// Fails if a browser shows less of a site whose page, style and script are encoded, each in another way.
#[test]
fn encoded_site_is_shown_whole() {
    let Some(programs) = Programs::find() else {
        return;
    };
    let chain = Chain::start(&[]);
    let site = [
        EncodedBody {
            name: "",
            media: "text/html; charset=utf-8",
            encoding: "br",
            body: PAGE_BROTLI.to_vec(),
        },
        EncodedBody {
            name: "encoded.css",
            media: "text/css",
            encoding: "gzip",
            body: gzip(STYLE.as_bytes()),
        },
        EncodedBody {
            name: "encoded.js",
            media: "text/javascript",
            encoding: "zstd",
            body: SCRIPT_ZSTD.to_vec(),
        },
    ];
    store(&chain, &site);
    let web = endpoint(&chain.archive, "web");
    let outside = Outside::start();
    let options = BrowserOptions {
        hosts: &[authority(&web), authority(&chain.replay)],
        ..BrowserOptions::default()
    };
    let browser = Browser::start(&programs, &outside, &options);
    let colour = "return getComputedStyle(document.querySelector('#letters')).color";

    browser.open(&format!("{web}/replay{}", site[0].path("")));
    browser.enter_frame();
    let made = "const made = document.getElementById('made');
        return made && made.textContent === 'made by an encoded script'";
    browser.wait_for("the script", made);
    assert_eq!(browser.text_of("#letters"), LETTERS);
    assert_eq!(browser.evaluate(colour), "rgb(1, 2, 3)");
    browser.leave_frame();
    browser.picture("encoded-framed");

    // Without scripts the style sheet is rewritten as well, and so decoded.
    browser.open(&format!("{}{}", chain.replay, site[0].path("")));
    browser.wait_for("the page", "return document.readyState === 'complete'");
    assert_eq!(browser.text_of("#letters"), LETTERS);
    assert_eq!(browser.text_of("#made"), "no script has run");
    assert_eq!(browser.evaluate(colour), "rgb(1, 2, 3)");
    outside.check_quiet();
    chain.archive.stop();
}

/// The number of bytes that come out of each of the large bombs.
const GIBIBYTE: u64 = 1 << 30;

/// The most memory that the viewer may ever have had, in KiB: a quarter of what comes out of one bomb.
const MOST_MEMORY: u64 = 256 << 10;

/// The most bytes of an answer to a bomb. The viewer decodes 256 MiB, and adds words of its own.
const MOST_SENT: u64 = (256 << 20) + (64 << 10);

/// The bytes at the end of an answer in which its words are looked for.
const END: u64 = 4096;

/// Returns a gibibyte of zeros in `zstd`: blocks of 128 KiB of one byte, in a frame with a window of 8 MiB (RFC 8878).
fn zstd_zeros() -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x68];
    let blocks = GIBIBYTE / (128 << 10);
    for block in 1..=blocks {
        let is_last = u8::from(block == blocks);
        frame.extend([0x02 | is_last, 0x00, 0x10, 0x00]);
    }
    frame
}

/// Returns a gibibyte of zeros in `br`, as Google's encoder writes it at level 9. Eight blocks of 16 MiB take a whole
/// number of bytes, and the bytes of the next eight are the same.
fn brotli_zeros() -> Vec<u8> {
    let eight_blocks = hex::decode(
        "effff9ffff0f8004401c1680eefd3fffffff01900088c302d0bdffe7ffff3f001200715800baf7fffcffff07\
         4002200e0b40f7fe9fffffff004800c46101e8defff3ffff1f000980382c00ddfb7ffeffff032001108705a0\
         7bffcfffff7f002400e2b00074",
    );
    let eight_blocks = eight_blocks.unwrap();
    let mut stream = hex::decode("cfffff7f002400e2b14072").unwrap();
    stream.extend(eight_blocks.repeat(7));
    stream.extend_from_slice(&eight_blocks[..90]);
    stream.push(0x3f);
    stream
}

/// Pages that decode into far more than any page has, and a style sheet that does.
fn bombs() -> Vec<EncodedBody> {
    let zeros = gzip(io::repeat(0).take(GIBIBYTE));
    let begun = |start: &'static [u8]| gzip(start.chain(io::repeat(b'a').take(GIBIBYTE / 2)));
    let page = |name, encoding, body| EncodedBody {
        name,
        media: "text/html",
        encoding,
        body,
    };
    vec![
        EncodedBody {
            name: "sheet",
            media: "text/css",
            encoding: "gzip",
            body: zeros.clone(),
        },
        page("nested", "gzip, gzip", gzip(zeros.as_slice())),
        page("zeros", "gzip", zeros),
        page("zstd", "zstd", zstd_zeros()),
        page("brotli", "br", brotli_zeros()),
        // One tag, and the text of one style: the rewriter holds both in memory, up to a limit.
        page("tag", "gzip", begun(b"<p title='")),
        page("style", "gzip", begun(b"<style>p{color:red}")),
    ]
}

/// Returns the most memory that the process of the viewer has ever had, in KiB.
#[track_caller]
fn peak_memory(chain: &Chain) -> u64 {
    let pid = std::fs::read_to_string(chain.archive.data().join("run/viewer.pid"));
    tools_testing::peak_memory(pid.expect("a pid").trim())
}

/// Returns the length of a file, and the text at its end.
fn end_of(path: &Path) -> (u64, String) {
    let mut file = File::open(path).unwrap();
    let length = file.metadata().unwrap().len();
    file.seek(SeekFrom::Start(length.saturating_sub(END)))
        .unwrap();
    let mut end = Vec::new();
    file.read_to_end(&mut end).unwrap();
    (length, String::from_utf8_lossy(&end).into_owned())
}

/// Fails if a body that decodes into a gigabyte ends the viewer, takes its memory, is sent without a bound, or passes
/// for whole.
#[test]
fn bombs_end_in_bounded_answers() {
    let chain = Chain::processes();
    let bombs = bombs();
    store(&chain, &bombs);
    let before = peak_memory(&chain);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("answer");
    for bomb in &bombs {
        let name = bomb.name;
        let raw = chain.get(&bomb.path("id_")).expect(200);
        assert!(raw.body == bomb.body, "{name}: other bytes");
        assert_eq!(raw.field("Content-Encoding"), Some(bomb.encoding), "{name}");
        if name == "sheet" {
            for modifier in ["", "cs_"] {
                let refused = chain.get(&bomb.path(modifier)).expect(502).text();
                assert!(refused.contains("style sheet has more than"), "{refused}");
            }
            continue;
        }
        for (modifier, words) in [("", &[][..]), ("mp_", &OF_WORKER[..])] {
            let url = format!("{}{}", chain.replay, bomb.path(modifier));
            let status = curl_into(&file, &url, words);
            let (length, end) = end_of(&file);
            println!("{name} {modifier}: {status}, {length} bytes");
            assert_eq!(status, 200, "{name} {modifier}: {end}");
            assert!(length < MOST_SENT, "{name} {modifier}: {length} bytes");
            let is_told = end.contains("This page is not whole");
            assert!(is_told, "{name} {modifier} passes for whole: {end}");
        }
    }

    // Several visitors at once, each with a bomb.
    let nowhere = Path::new("/dev/null");
    std::thread::scope(|scope| {
        for name in ["zeros", "nested", "zstd", "tag", "style", "brotli"] {
            let bomb = bombs.iter().find(|bomb| bomb.name == name).unwrap();
            let url = format!("{}{}", chain.replay, bomb.path(""));
            scope.spawn(move || assert_eq!(curl_into(nowhere, &url, &[]), 200, "{url}"));
        }
    });
    assert!(
        chain.archive.is_running("viewer"),
        "a bomb ended the viewer"
    );
    let after = peak_memory(&chain);
    println!("the viewer had at most {before} KiB before, and {after} KiB after");
    assert!(after < MOST_MEMORY, "{after} KiB after, {before} before");
    chain.get("/").expect(200);
    chain.archive.stop();
}
