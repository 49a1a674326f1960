//! A real browser behind the proxy: Chromium, which has to be installed for this.

use std::process::{Command, Stdio};

use tokio::task::spawn_blocking;

use super::super::test_archive::{OK, TestArchive, Warc};
use super::super::{FIRST, SECOND};
use super::Proxy;

/// Loads a page, and returns what its scripts have made of it; `None` where there is no Chromium.
async fn dom(proxy: &Proxy, url: &str) -> Option<String> {
    let profile = tempfile::tempdir_in(proxy.directory.path()).unwrap();
    let mut chromium = Command::new("chromium");
    chromium
        .args(["--headless", "--no-sandbox", "--disable-gpu"])
        .args(["--no-first-run", "--disable-background-networking"])
        .args(["--ignore-certificate-errors", "--timeout=20000"])
        .arg("--proxy-bypass-list=<-loopback>")
        .arg("--webrtc-ip-handling-policy=disable_non_proxied_udp")
        .arg(format!("--proxy-server={}", proxy.served.address))
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(["--dump-dom", url])
        .stdin(Stdio::null());
    let output = match spawn_blocking(move || chromium.output()).await.unwrap() {
        Ok(output) => output,
        Err(error) => {
            tools_testing::skipped(&format!("chromium: {error}"));
            return None;
        }
    };
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Fails if a browser sees another date than was chosen, or an archived script reaches the commands of the proxy.
#[tokio::test]
async fn chromium_sees_chosen_date_and_commands_nothing() {
    let page = "<!doctype html><title>x</title><p id=\"a\">before</p>\
                <img referrerpolicy=\"no-referrer\" src=\"http://viewerproxy.invalid/clearRecordedURIs\">\
                <script src=\"/s.js\"></script>\
                <script>fetch('http://viewerproxy.invalid/clearRecordedURIs', {mode: 'no-cors', method: 'POST'})</script>";
    let script = |date: &str| format!("document.getElementById('a').textContent = 'shown {date}';");
    let js =
        "HTTP/1.1 200 OK\r\nContent-Type: text/javascript\r\nCache-Control: max-age=99999\r\n\r\n";
    let mut warc = Warc::new();
    for date in [FIRST, SECOND] {
        let script = script(date);
        for site in ["http://example.org", "https://secure.example.org"] {
            warc = warc
                .response(&format!("{site}/"), date, OK, page.as_bytes())
                .response(&format!("{site}/s.js"), date, js, script.as_bytes());
        }
    }
    let archive = TestArchive::new().with("1-1-a.warc.gz", warc).await;
    let proxy = Proxy::over(archive).await;
    let ask = |path: &str| {
        let url = format!("http://viewerproxy.invalid{path}");
        let served = &proxy.served;
        async move { served.get(&url).await.text() }
    };
    ask("/startRecordingURIs").await;
    proxy.get("http://never.example/").await;
    for (date, shown) in [("2020-01-01", FIRST), ("2021-06-01", SECOND)] {
        ask(&format!("/changeView?date={date}")).await;
        for url in ["http://example.org/", "https://secure.example.org/"] {
            let Some(dom) = dom(&proxy, url).await else {
                return;
            };
            assert!(dom.contains(&format!("shown {shown}")), "{url}: {dom}");
        }
    }
    let list = ask("/getRecordedURIs").await;
    assert!(list.contains("http://never.example/\n"), "{list}");
}
