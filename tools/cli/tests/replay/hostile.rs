//! Archived pages that try to reach the web: a browser shows them, and nothing but the hosts of the archive is asked.
//!
//! That the counting counts is a test of its own: the same pages, served live, are seen trying everything.

use std::time::Duration;

use crate::support::browser::{Browser, BrowserOptions, Programs};
use crate::support::chain::{Chain, authority, endpoint};
use crate::support::made::{Response, warc};
use crate::support::nginx::Nginx;
use crate::support::outside::{Contact, Outside};
use crate::support::tools::nginx;

/// The time that a page may still try something after it has said that it is done. Nothing must happen, so that there
/// is nothing to wait for.
pub(crate) const SETTLED: Duration = Duration::from_millis(700);

const DATE: &str = "2020-02-01T00:00:00Z";
const TIME: &str = "20200201000000";

/// A page that tries to reach the web.
pub(crate) struct HostilePage {
    pub(crate) name: &'static str,
    /// Fields of its head beside the media type.
    fields: &'static str,
    html: String,
}

/// Returns a page with one attempt at a navigation.
fn navigating(name: &'static str, body: &str) -> HostilePage {
    HostilePage {
        name,
        fields: "",
        html: format!(
            "<!DOCTYPE html><html><head><title>Hostile</title></head><body><p>Hostile.</p>{body}</body></html>"
        ),
    }
}

/// Returns the pages. Each names hosts of its own.
pub(crate) fn pages(outside: &Outside) -> Vec<HostilePage> {
    let script = |text: &str| format!("<script>{text}</script>");
    let of_file = |name, text: &str| HostilePage {
        name,
        fields: "",
        html: text
            .replace("{STUN}", &outside.udp.to_string())
            .replace("{TRAP}", &outside.tcp.to_string())
            .replace("{CONTROL}", "viewerproxy.invalid"),
    };
    vec![
        of_file("hostile", include_str!("pages/hostile.html")),
        HostilePage {
            name: "head",
            fields: "Link: <http://head-preconnect.leak.example>; rel=preconnect, <http://head-preload.leak.example/>; rel=preload; as=image\r\n\
                     Link: <http://head-style.leak.example/>; rel=stylesheet\r\n\
                     Set-Cookie: hostile=1; Path=/\r\n\
                     Clear-Site-Data: \"*\"\r\n\
                     Content-Security-Policy-Report-Only: default-src 'none'; report-uri http://head-report.leak.example/\r\n\
                     Report-To: {\"group\":\"default\",\"max_age\":10,\"endpoints\":[{\"url\":\"http://head-report-to.leak.example/\"}]}\r\n\
                     Service-Worker-Allowed: /\r\nX-Frame-Options: DENY\r\n",
            html: "<!DOCTYPE html><title>Hostile</title><p>Hostile.<img src='http://reported.leak.example/'>".to_owned(),
        },
        HostilePage {
            name: "head-refresh",
            fields: "Refresh: 0; url=http://head-refresh.leak.example/\r\n",
            html: "<!DOCTYPE html><title>Hostile</title><p>Hostile.".to_owned(),
        },
        navigating(
            "base",
            "<base href='http://base.leak.example/'><img src='relative.png'><script src='relative.js'></script>",
        ),
        navigating("meta-refresh", "<meta http-equiv=refresh content='0; url=http://meta-refresh.leak.example/'>"),
        navigating("top", &script("top.location = 'http://top.leak.example/';")),
        navigating("top-replace", &script("window.top.location.replace('http://top-replace.leak.example/');")),
        navigating("parent", &script("parent.location.href = 'http://parent.leak.example/';")),
        navigating("itself", &script("location.href = 'http://itself.leak.example/';")),
        navigating("open-top", &script("window.open('http://open-top.leak.example/', '_top');")),
        navigating("open-alone", &script("window.open('http://open-alone.leak.example/', '_blank', 'noopener');")),
        navigating(
            "link-top",
            &format!("<a id=a target=_top href='http://link-top.leak.example/'>a</a>{}", script("a.click();")),
        ),
        navigating(
            "form-top",
            &format!(
                "<form id=f target=_top method=post action='http://form-top.leak.example/'><input name=a></form>{}",
                script("f.submit();")
            ),
        ),
        navigating(
            "rewritten",
            &script(
                "onload = () => { document.open(); document.write('<img src=http://rewritten.leak.example/><link rel=preconnect href=https://rewritten-early.leak.example>'); document.close(); };",
            ),
        ),
        navigating("framing", "<iframe src='/top'></iframe><iframe src='/meta-refresh'></iframe>"),
    ]
}

/// Returns an archive with the pages.
pub(crate) fn archived(outside: &Outside) -> Chain {
    let chain = Chain::start(&[]);
    let pages = pages(outside);
    let frames = include_str!("pages/blank-frame.html").replace("{STUN}", &outside.udp.to_string());
    let worker = "fetch('http://own-worker.leak.example/'); onfetch = (event) => event.respondWith(fetch('http://own-worker-fetch.leak.example/'));";
    let mut captured: Vec<(String, String, &[u8])> = pages
        .iter()
        .map(|page| {
            let fields = format!("Content-Type: text/html; charset=utf-8\r\n{}", page.fields);
            (
                format!("http://hostile.example/{}", page.name),
                fields,
                page.html.as_bytes(),
            )
        })
        .collect();
    let (_, fields, body) = captured[0].clone();
    captured.push(("https://hostile.example/hostile".to_owned(), fields, body));
    captured.push((
        "http://hostile.example/hostile-worker.js".to_owned(),
        "Content-Type: text/javascript\r\nService-Worker-Allowed: /\r\n".to_owned(),
        worker.as_bytes(),
    ));
    captured.push((
        "http://hostile.example/blank-frame".to_owned(),
        "Content-Type: text/html\r\n".to_owned(),
        frames.as_bytes(),
    ));
    let captured: Vec<Response<'_>> = captured
        .iter()
        .map(|(url, fields, body)| Response {
            url,
            date: DATE,
            fields,
            body,
        })
        .collect();
    chain.store_bytes("hostile.warc.gz", &warc(&captured));
    chain
}

/// Returns the contacts of a page, as lines.
pub(crate) fn leaks(page: &str, contacts: &[Contact]) -> Vec<String> {
    let lines = contacts.iter();
    lines
        .map(|contact| format!("{page}: {} {}", contact.way, contact.what))
        .collect()
}

/// The attempts that a live page succeeds with, which are counted one by one.
const COUNTED: [&str; 41] = [
    "audio",
    "background",
    "beacon",
    "blob-frame",
    "css-font",
    "css-import",
    "css-url",
    "data-frame",
    "embed",
    "events",
    "fetch",
    "fetch-keepalive",
    "fetch-opaque",
    "fetch-post",
    "form",
    "icon",
    "iframe",
    "image",
    "img",
    "manifest",
    "module",
    "modulepreload",
    "object",
    "picture",
    "ping",
    "poster",
    "prefetch",
    "preload",
    "script",
    "script-frame",
    "shared-worker",
    "srcdoc",
    "srcset",
    "stylesheet",
    "svg-image",
    "video",
    "websocket",
    "worker",
    "worker-import",
    "xhr",
    "xhr-sync",
];

/// Fails if the counting misses a way out: then the other tests here prove nothing.
#[test]
fn live_page_is_counted_everywhere() {
    let (Some(programs), Some(nginx)) = (Programs::find(), nginx()) else {
        return;
    };
    let outside = Outside::start();
    let root = tempfile::tempdir().unwrap();
    for page in pages(&outside) {
        std::fs::write(root.path().join(format!("{}.html", page.name)), page.html).unwrap();
    }
    let frames = include_str!("pages/blank-frame.html").replace("{STUN}", &outside.udp.to_string());
    std::fs::write(root.path().join("blank-frame.html"), frames).unwrap();
    std::fs::write(root.path().join("quiet.html"), "<!DOCTYPE html><p>Quiet.").unwrap();
    let site = Nginx::serve(&nginx, root.path());
    let base = site.base();
    let own = authority(base.trim_end_matches('/'));
    let options = BrowserOptions {
        hosts: &[own],
        ..BrowserOptions::default()
    };
    let browser = Browser::start(&programs, &outside, &options);
    browser.open(&format!("{base}quiet.html"));
    // Nothing is awaited: the time is for contacts that must not come, and a slow machine only makes the test laxer.
    std::thread::sleep(SETTLED);
    outside.check_quiet();

    browser.open(&format!("{base}hostile.html"));
    browser.wait_for("the attempts", "return window.attempted");
    let contacts = outside.contacts();
    let is_seen = |label: &str| {
        let host = format!("{label}.leak.example");
        let mut seen = contacts.iter();
        seen.any(|contact| {
            let words = contact.what.split([' ', '/', ':']);
            contact.way == "proxy" && words.into_iter().any(|word| word == host)
        })
    };
    let missed: Vec<_> = COUNTED.iter().filter(|label| !is_seen(label)).collect();
    assert!(missed.is_empty(), "{missed:?} of {contacts:#?}");
    assert!(is_seen("preconnect-tls"), "{contacts:#?}");
    let silent = contacts
        .iter()
        .filter(|contact| contact.what == "a connection");
    assert!(silent.count() >= 1, "early connections: {contacts:#?}");
    let control = contacts
        .iter()
        .filter(|contact| contact.what.contains("viewerproxy.invalid"));
    assert!(control.count() >= 2, "{contacts:#?}");
    let loopback = outside.tcp.to_string();
    assert!(
        contacts
            .iter()
            .any(|contact| contact.what.contains(&loopback)),
        "{contacts:#?}"
    );
    assert!(outside.datagrams() > 0, "{contacts:#?}");

    // Pages that go elsewhere get there.
    for name in [
        "base",
        "meta-refresh",
        "top",
        "parent",
        "itself",
        "open-top",
        "link-top",
        "form-top",
        "rewritten",
    ] {
        outside.forget();
        browser.open(&format!("{base}{name}.html"));
        let host = format!("{name}.leak.example");
        crate::archive::wait("the page goes", || {
            let contacts = outside.contacts();
            let is_there = contacts.iter().any(|contact| contact.what.contains(&host));
            if is_there {
                Ok(())
            } else {
                Err((name, contacts))
            }
        });
    }
    outside.forget();
    browser.open(&format!("{base}blank-frame.html"));
    browser.wait_for("the attempts", "return window.attempted");
    assert!(outside.datagrams() > 0, "{:#?}", outside.contacts());
}

/// Returns the attempts that the frame of a page reports at its end; nothing of a page that left or runs no scripts.
fn attempts(browser: &Browser, name: &str) -> serde_json::Value {
    if name != "hostile" && name != "blank-frame" {
        return serde_json::Value::Null;
    }
    browser.enter_frame();
    browser.wait_for("the attempts", "return window.attempted");
    let attempts = browser.evaluate("return window.attempts");
    browser.leave_frame();
    attempts
}

/// Fails if an archived page that is framed reaches anything but the two hosts of the archive, leaves its frame, or
/// touches the page around it.
#[test]
fn framed_page_reaches_nothing() {
    let Some(programs) = Programs::find() else {
        return;
    };
    let outside = Outside::start();
    let chain = archived(&outside);
    let web = endpoint(&chain.archive, "web");
    let hosts = [authority(&web), authority(&chain.replay)];
    let options = BrowserOptions {
        hosts: &hosts,
        ..BrowserOptions::default()
    };
    let browser = Browser::start(&programs, &outside, &options);
    let mut faults = Vec::new();
    for page in pages(&outside) {
        outside.forget();
        let name = page.name;
        let address = format!("{web}/replay/all/{TIME}/http://hostile.example/{name}");
        browser.open(&address);
        let attempts = attempts(&browser, name);
        // The attempts are over. The pause is for contacts that are still on their way and must not come.
        std::thread::sleep(SETTLED);
        faults.extend(leaks(name, &outside.contacts()));
        if browser.address() != address {
            faults.push(format!("{name}: the window is at {}", browser.address()));
        }
        if browser.windows() != 1 {
            faults.push(format!("{name}: {} windows", browser.windows()));
        }
        let around =
            browser.evaluate("return [document.title, document.cookie, localStorage.length]");
        let title = around[0].as_str().unwrap_or_default();
        if title == "Hostile" || around[1] != "" || around[2] != 0 {
            faults.push(format!("{name}: the page around is {around}"));
        }
        if name == "hostile" {
            println!("{attempts:#}");
            for attempt in ["parent-document", "parent-cookie", "parent-storage"] {
                let said = attempts[attempt].as_str().unwrap_or_default();
                if !said.contains("SecurityError") {
                    faults.push(format!("{attempt}: {said}"));
                }
            }
            browser.picture("hostile-framed");
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");

    // A fresh blank frame has constructors of its own: the test says what they still let out.
    outside.forget();
    browser.open(&format!(
        "{web}/replay/all/{TIME}/http://hostile.example/blank-frame"
    ));
    let attempts = attempts(&browser, "blank-frame");
    // The attempts are over. The pause is for contacts that are still on their way and must not come.
    std::thread::sleep(SETTLED);
    println!(
        "a fresh blank frame lets out: {:#?} {attempts:#}",
        outside.contacts()
    );
    let beyond: Vec<Contact> = outside
        .contacts()
        .into_iter()
        .filter(|contact| contact.way != "udp")
        .collect();
    assert_eq!(beyond, [], "only WebRTC is known to");
    chain.archive.stop();
}

/// Fails if an archived page without its frame runs a script or reaches anything: as it is shown without scripts, as
/// raw bytes, and at the address that only the frame has a use for.
#[test]
fn unframed_page_reaches_nothing() {
    let Some(programs) = Programs::find() else {
        return;
    };
    let outside = Outside::start();
    let chain = archived(&outside);
    let web = endpoint(&chain.archive, "web");
    let hosts = [authority(&web), authority(&chain.replay)];
    let options = BrowserOptions {
        hosts: &hosts,
        ..BrowserOptions::default()
    };
    let browser = Browser::start(&programs, &outside, &options);
    let mut faults = Vec::new();
    let pages = pages(&outside);
    let names = pages.iter().map(|page| page.name).chain(["blank-frame"]);
    for name in names {
        // Pages that only navigate do so in the same way wherever their scripts run.
        let modifiers: &[&str] = match name {
            "hostile" | "head" | "blank-frame" => &["", "id_", "mp_", "if_"],
            _ => &["", "mp_"],
        };
        for modifier in modifiers {
            outside.forget();
            let path = format!("/all/{TIME}{modifier}/http://hostile.example/{name}");
            browser.open(&format!("{}{path}", chain.replay));
            // No script runs that could be awaited. The pause is for contacts that must not come.
            std::thread::sleep(SETTLED / 2);
            let way = format!("{name} {modifier}");
            faults.extend(leaks(&way, &outside.contacts()));
            // A page that only makes sense within a frame leads to the page host, which frames it.
            let address = browser.address();
            if !address.starts_with(&chain.replay) && !address.starts_with(&web) {
                faults.push(format!("{way}: the window is at {address}"));
            }
            let attempts = browser.try_evaluate("return window.attempts || null");
            if attempts.is_ok_and(|attempts| !attempts.is_null()) {
                faults.push(format!("{way}: its scripts ran"));
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    chain.archive.stop();
}

/// Fails if an answer of the replay host sets a cookie, or hands on a field that acts upon the host.
#[test]
fn archived_head_acts_upon_nothing() {
    let outside = Outside::start();
    let chain = archived(&outside);
    for modifier in ["", "id_", "ir_", "mp_", "if_", "js_", "im_"] {
        let path = format!("/all/{TIME}{modifier}/http://hostile.example/head");
        for words in [&[][..], &["--header", "X-ServiceWorker: 1"], &["--head"]] {
            let answer = chain.ask(&path, words);
            for field in [
                "Set-Cookie",
                "Clear-Site-Data",
                "Content-Security-Policy-Report-Only",
                "Report-To",
                "Service-Worker-Allowed",
                "Refresh",
            ] {
                let own = answer
                    .fields
                    .iter()
                    .find(|(name, _)| name.eq_ignore_ascii_case(field));
                assert_eq!(own, None, "{path} {words:?}");
            }
            let links = answer
                .fields
                .iter()
                .filter(|(name, _)| name.eq_ignore_ascii_case("Link"));
            for (_, link) in links {
                assert!(!link.contains("leak.example"), "{path} {words:?}: {link}");
            }
        }
    }
    chain.archive.stop();
}
