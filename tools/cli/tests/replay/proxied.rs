//! The archive in place of the web: curl and a browser ask its proxy for all hosts, and nothing else is reached.

use crate::hostile::{SETTLED, archived, leaks, pages};
use crate::support::browser::{Browser, BrowserOptions, Programs};
use crate::support::chain::{Chain, endpoint};
use crate::support::curl::{Answer, curl_through};
use crate::support::made::{Response, warc};
use crate::support::outside::Outside;

/// The host of the proxy's commands.
const CONTROL: &str = "http://viewerproxy.invalid";

const NEVER: &str = "http://never.example/page";

/// Gives a command to the proxy as a program does.
#[track_caller]
fn command(proxy: &str, path: &str) -> Answer {
    curl_through(proxy, &format!("{CONTROL}{path}"), &[])
}

/// Returns the URLs that the proxy has recorded as missing.
fn missing(proxy: &str) -> String {
    command(proxy, "/getRecordedURIs").expect(200).text()
}

/// Fails if one date is shown for another, by http or https, or a URL that was never harvested is not in the list of
/// those.
#[test]
fn pages_are_shown_at_chosen_dates() {
    let chain = Chain::start(&[]);
    let shown = |date: &str| format!("<!DOCTYPE html><p id=date>shown {date}</p>").into_bytes();
    let bodies = ["2019", "2021"].map(shown);
    let urls = ["http://dated.example/", "https://dated.example/"];
    let mut captured = Vec::new();
    for url in urls {
        for (date, body) in ["2019-05-05T00:00:00Z", "2021-05-05T00:00:00Z"]
            .iter()
            .zip(&bodies)
        {
            captured.push(Response {
                url,
                date,
                fields: "Content-Type: text/html\r\n",
                body,
            });
        }
    }
    chain.store_bytes("dated.warc.gz", &warc(&captured));
    let proxy = endpoint(&chain.archive, "proxy");
    command(&proxy, "/startRecordingURIs").expect(200);
    for url in urls {
        for (wanted, body) in [
            "Sun, 05 May 2019 00:00:00 GMT",
            "Wed, 05 May 2021 00:00:00 GMT",
        ]
        .iter()
        .zip(&bodies)
        {
            let header = format!("Accept-Datetime: {wanted}");
            let answer = curl_through(&proxy, url, &["--header", &header]).expect(200);
            assert_eq!(answer.body, *body, "{url} {wanted}");
            assert_eq!(answer.field("Memento-Datetime"), Some(*wanted), "{url}");
        }
    }
    assert_eq!(missing(&proxy).trim(), "");
    curl_through(&proxy, NEVER, &[]).expect(404);
    assert!(missing(&proxy).contains(NEVER), "{}", missing(&proxy));

    let Some(programs) = Programs::find() else {
        return;
    };
    let outside = Outside::start();
    let options = BrowserOptions {
        proxy: Some(&proxy),
        ..BrowserOptions::default()
    };
    let browser = Browser::start(&programs, &outside, &options);
    for (date, year) in [("2019-06-01", "2019"), ("2021-06-01", "2021")] {
        command(&proxy, &format!("/changeView?date={date}")).expect(200);
        for url in urls {
            browser.open(url);
            assert_eq!(browser.text_of("#date"), format!("shown {year}"), "{url}");
        }
    }
    outside.check_quiet();
    chain.archive.stop();
}

/// Fails if an archived page that a browser gets from the proxy reaches a host past it, has its commands obeyed, or
/// reaches the pages of the archive for people.
#[test]
fn proxied_page_reaches_nothing() {
    let Some(programs) = Programs::find() else {
        return;
    };
    let outside = Outside::start();
    let chain = archived(&outside);
    let proxy = endpoint(&chain.archive, "proxy");
    let web = endpoint(&chain.archive, "web");
    command(&proxy, "/startRecordingURIs").expect(200);
    curl_through(&proxy, NEVER, &[]).expect(404);
    let options = BrowserOptions {
        proxy: Some(&proxy),
        ..BrowserOptions::default()
    };
    let browser = Browser::start(&programs, &outside, &options);
    let before = command(&proxy, "/getStatus").expect(200).text();
    let mut faults = Vec::new();
    let plain = pages(&outside).into_iter().map(|page| page.name);
    let plain = plain.map(|name| format!("http://hostile.example/{name}"));
    for url in plain.chain(["https://hostile.example/hostile".to_owned()]) {
        outside.forget();
        browser.open(&url);
        if url.ends_with("/hostile") {
            browser.wait_for("the attempts", "return window.attempted");
            let attempts = browser.evaluate("return window.attempts");
            println!("{url}: {attempts:#}");
        }
        // Nothing more is awaited. The pause is for contacts that are on their way and must not come.
        std::thread::sleep(SETTLED);
        faults.extend(leaks(&url, &outside.contacts()));
    }
    assert!(faults.is_empty(), "{faults:#?}");
    // Had they been obeyed, the list would be empty, or the view another one.
    assert!(missing(&proxy).contains(NEVER), "{}", missing(&proxy));
    let view = |status: &str| {
        let lines = status.lines().filter(|line| !line.contains("issing"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let after = command(&proxy, "/getStatus").expect(200).text();
    assert_eq!(view(&before), view(&after));
    // To a visitor of the proxy the page host is a host that was never harvested.
    let asked = curl_through(&proxy, &format!("{web}/"), &[]);
    assert_eq!(asked.status, 404, "{asked:?}");
    chain.archive.stop();
}
