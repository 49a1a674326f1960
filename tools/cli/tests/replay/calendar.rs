//! The pages for people, in a browser that runs no scripts.

use crate::support::browser::{Browser, BrowserOptions, Programs};
use crate::support::chain::{Chain, authority, endpoint};
use crate::support::made::{Response, warc};
use crate::support::outside::Outside;

const URL: &str = "http://calendar.example/page";

/// Fails if the calendar needs a script, misses a capture, or asks the outside for anything.
#[test]
fn calendar_needs_no_script() {
    let Some(programs) = Programs::find() else {
        return;
    };
    let chain = Chain::start(&[]);
    let dates = [
        "2018-03-04T05:06:07Z",
        "2020-02-29T12:00:00Z",
        "2020-02-29T13:00:00Z",
    ];
    let captured = dates.map(|date| Response {
        url: URL,
        date,
        fields: "Content-Type: text/html\r\n",
        body: b"<p>captured",
    });
    chain.store_bytes("calendar.warc.gz", &warc(&captured));
    let web = endpoint(&chain.archive, "web");
    let outside = Outside::start();
    let options = BrowserOptions {
        hosts: &[authority(&web)],
        is_scriptless: true,
        ..BrowserOptions::default()
    };
    let browser = Browser::start(&programs, &outside, &options);
    for (path, least) in [
        ("/", None),
        (&*format!("/all/*/{URL}"), Some("20180304050607")),
        (&*format!("/all/2020*/{URL}"), Some("20200229130000")),
        (
            "/all/*/http://calendar.example/*",
            Some("calendar.example/page"),
        ),
    ] {
        browser.open(&format!("{web}{path}"));
        let links = browser.evaluate("return Array.from(document.querySelectorAll('a[href]')).map((a) => a.href).join('\\n')");
        let links = links.as_str().unwrap_or_default().to_owned();
        if let Some(least) = least {
            assert!(links.contains(least), "{path}: {links}");
        }
        let name: String = path
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .collect();
        browser.picture(&format!("calendar{name}"));
    }
    outside.check_quiet();
    chain.archive.stop();
}
