//! The control hosts: what programs and people can change, and archived pages cannot.

use super::super::test_archive::{OK, TestArchive, Warc};
use super::super::{FIRST, PAGE, SECOND, three_pages};
use super::Proxy;

const CONTROL: &str = "http://viewerproxy.invalid";

/// The fields of a browser.
const MOZILLA: (&str, &str) = ("User-Agent", "Mozilla/5.0 (X11; Linux x86_64)");

fn at(path: &str) -> String {
    format!("{CONTROL}{path}")
}

async fn text(proxy: &Proxy, path: &str) -> String {
    proxy.get(&at(path)).await.text()
}

/// Fails if a URL that was never harvested is not in the list, or another client's is.
#[tokio::test]
async fn missing_urls_are_listed_cleared_exported() {
    let proxy = Proxy::over(three_pages().await).await;
    assert_eq!(proxy.get("http://never.example/early").await.status, 404);
    let begun = text(&proxy, "/startRecordingURIs").await;
    assert!(begun.contains("Missing URLs are being recorded"), "{begun}");
    for url in [
        "http://never.example/b?x=1",
        "http://never.example/a",
        "http://never.example/a",
        PAGE,
    ] {
        let answer = proxy.get(url).await;
        let is_known = url == PAGE;
        assert_eq!(answer.status == 200, is_known, "{url}");
        assert_eq!(answer.text().contains("in your list"), !is_known, "{url}");
    }
    let other = [("Proxy-Authorization", "Basic YW5uYTpwdw==")];
    let url = "http://never.example/other";
    assert_eq!(proxy.served.ask("GET", url, &other).await.status, 404);
    let list = "http://never.example/a\nhttp://never.example/b?x=1\n";
    let nas = "http://netarchivesuite.viewerproxy.invalid/getRecordedURIs";
    assert_eq!(proxy.get(nas).await.text(), list);
    let seeds = proxy.get(&at("/seeds.txt")).await;
    assert!(seeds.field("content-disposition").is_some());
    assert!(seeds.text().starts_with("# ") && seeds.text().ends_with(list));
    assert!(
        text(&proxy, "/getStatus?locale=da")
            .await
            .contains("; 2 are in the list")
    );
    let stopped = proxy
        .get(&at("/stopRecordingURIs?returnURL=/getStatus"))
        .await;
    assert_eq!(
        (stopped.status, stopped.field("location")),
        (303, Some("/getStatus"))
    );
    proxy.get("http://never.example/late").await;
    assert_eq!(text(&proxy, "/getRecordedURIs").await, list);
    let foreign = at("/clearRecordedURIs?returnURL=http://evil.example/");
    let cleared = proxy.get(&foreign).await;
    assert_eq!((cleared.status, cleared.field("location")), (200, None));
    assert_eq!(text(&proxy, "/getRecordedURIs").await, "");
}

/// Fails if captures of other jobs are shown, or jobs without data are not named.
#[tokio::test]
async fn change_index_shows_chosen_jobs() {
    let page = |date, body| Warc::new().response(PAGE, date, OK, body);
    let archive = TestArchive::new()
        .with("17-1-a.warc.gz", page(FIRST, b"seventeen"))
        .await
        .with("18-1-a.warc.gz", page(SECOND, b"eighteen"))
        .await;
    let proxy = Proxy::over(archive).await;
    assert_eq!(proxy.get(PAGE).await.text(), "eighteen");
    let path = "/changeIndex?jobID=17&jobID=99&label=Mine";
    let answer = text(&proxy, path).await;
    assert!(answer.contains("no files of these jobs: 99."), "{answer}");
    assert!(answer.contains("jobs 17 99 Mine"), "{answer}");
    assert_eq!(proxy.get(PAGE).await.text(), "seventeen");
    let status = text(&proxy, "/getStatus").await;
    assert!(status.contains("no files of these jobs: 99."), "{status}");
    text(&proxy, "/changeIndex?jobID=99").await;
    assert_eq!(proxy.get(PAGE).await.status, 404);
    let wrong = proxy.get(&at("/changeIndex?jobID=17x")).await;
    assert_eq!(wrong.status, 400);
    assert_eq!(proxy.get(PAGE).await.status, 404, "nothing has changed");
    let form = proxy
        .served
        .post(
            &at("/changeIndex"),
            "application/x-www-form-urlencoded",
            "jobID=18",
        )
        .await;
    assert_eq!(form.status, 200);
    assert_eq!(proxy.get(PAGE).await.text(), "eighteen");
    text(&proxy, "/changeIndex").await;
    let early = [("Accept-Datetime", "Wed, 01 Jan 2020 00:00:00 GMT")];
    let all = proxy.served.ask("GET", PAGE, &early).await;
    assert_eq!(all.text(), "seventeen");
}

/// Fails if an archived page can call a command by any request that a browser sends for it.
#[tokio::test]
async fn archived_pages_cannot_command() {
    let proxy = Proxy::over(three_pages().await).await;
    text(&proxy, "/startRecordingURIs").await;
    proxy.get("http://never.example/").await;
    let hostile = "http://example.org";
    for method in ["GET", "POST", "HEAD"] {
        for path in [
            "/clearRecordedURIs",
            "/changeView?date=1999",
            "/changeIndex?jobID=1",
        ] {
            for fields in [
                [MOZILLA, ("Origin", hostile)],
                [MOZILLA, ("Origin", "null")],
                [MOZILLA, ("Referer", "http://example.org/page")],
                [MOZILLA, ("Sec-Fetch-Site", "cross-site")],
                [MOZILLA, ("Sec-Fetch-Dest", "image")],
                [MOZILLA, ("Sec-Purpose", "prefetch")],
            ] {
                let answer = proxy.served.ask(method, &at(path), &fields).await;
                assert_eq!(answer.status, 403, "{method} {path} {fields:?}");
            }
            // An image that hides where it is from: a browser is asked to say yes.
            let fields = [MOZILLA, ("Accept", "text/html")];
            let answer = proxy.served.ask(method, &at(path), &fields).await;
            assert_eq!(answer.status, 200, "{method} {path}");
            let is_framed = answer.field("x-frame-options") != Some("DENY");
            assert!(!is_framed, "{method} {path}");
        }
    }
    let asked = [MOZILLA, ("Accept", "text/html")];
    let question = proxy
        .served
        .ask("GET", &at("/clearRecordedURIs"), &asked)
        .await;
    assert!(
        question
            .text()
            .contains("<form method=\"post\" action=\"/clearRecordedURIs\">")
    );
    assert_eq!(
        text(&proxy, "/getRecordedURIs").await,
        "http://never.example/\n"
    );
    assert_eq!(proxy.get(PAGE).await.text(), "<p>three</p>");
    let own = [MOZILLA, ("Origin", CONTROL)];
    let cleared = proxy
        .served
        .ask("POST", &at("/clearRecordedURIs"), &own)
        .await;
    assert_eq!(cleared.status, 200);
    assert_eq!(text(&proxy, "/getRecordedURIs").await, "");
    for path in ["/clearRecordedUris", "/..", "/page"] {
        assert_eq!(proxy.get(&at(path)).await.status, 404, "{path}");
    }
}

/// Fails if people cannot get the certificate that they have to install, or it is not that of the proxy.
#[tokio::test]
async fn certificate_can_be_had_with_words() {
    let proxy = Proxy::over(three_pages().await).await;
    let answer = proxy.get(&at("/ca.pem")).await;
    let kept = std::fs::read_to_string(proxy.authority()).unwrap();
    assert_eq!(answer.text(), kept);
    assert_eq!(
        answer.field("content-type"),
        Some("application/x-x509-ca-cert")
    );
    let asked = [MOZILLA, ("Accept", "text/html")];
    let home = proxy.served.ask("GET", &at("/"), &asked).await.text();
    assert!(
        home.contains("/ca.pem") && home.contains("disable_non_proxied_udp"),
        "{home}"
    );
    assert!(!home.contains("<script"), "{home}");
    let Some(secure) = proxy.curl(&["https://viewerproxy.invalid/getStatus"]).await else {
        return;
    };
    assert!(
        secure.text().contains("collection all"),
        "{}",
        secure.text()
    );
}

/// Fails if stored files, records and metadata cannot be had where tools of NetarchiveSuite ask for them.
#[tokio::test]
async fn stored_records_are_handed_out() {
    let archive = three_pages().await;
    let offset = archive.captures[0].offset.unwrap();
    let proxy = Proxy::over(archive).await;
    let record = at(&format!(
        "/getRecord?arcFile=1-1-a.warc.gz&arcOffset={offset}"
    ));
    let answer = proxy.get(&record).await;
    assert_eq!((answer.status, &answer.body[..2]), (200, &b"\x1f\x8b"[..]));
    let file = proxy.get(&at("/getFile?arcFile=1-1-a.warc.gz")).await;
    assert_eq!(file.status, 451, "whole files are for named groups");
    let metadata = proxy.get(&at("/getMetadata?jobID=1")).await;
    assert_eq!(metadata.status, 404);
}
