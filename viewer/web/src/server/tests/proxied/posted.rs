//! Requests with bodies: each finds the capture of one like it, and nothing else.

use archive_formats::post::MAX_BODY;

use super::super::test_archive::{Answer, OK, TestArchive, Warc};
use super::super::{FIRST, SECOND};
use super::Proxy;

const URL: &str = "http://example.org/form";
const FORM: &str = "application/x-www-form-urlencoded";

/// Returns a proxy over captures of a GET, and of a POST and a PUT with a form.
async fn forms() -> Proxy {
    let warc = Warc::new()
        .response(URL, FIRST, OK, b"got")
        .response(URL, SECOND, OK, b"posted")
        .response(URL, SECOND, OK, b"put");
    let mut archive = TestArchive::new().with("1-1-a.warc.gz", warc).await;
    for (capture, method) in archive.captures.iter_mut().skip(1).zip(["post", "put"]) {
        capture.key = format!("org,example)/form?__wb_method={method}&q=1");
    }
    Proxy::over(archive).await
}

async fn send(proxy: &Proxy, method: &str, media: &str, body: &str) -> Answer {
    let request = format!(
        "{method} {URL} HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Type: {media}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = proxy.served.exchange(request.as_bytes()).await.unwrap();
    Answer::read(&answer, false)
}

/// Fails if a form finds the capture of another form, method or type, or of the page that has no body.
#[tokio::test]
async fn requests_with_bodies_find_their_captures() {
    let proxy = forms().await;
    for (method, media, body, expected) in [
        ("POST", FORM, "q=1", Some("posted")),
        (
            "POST",
            "Application/X-WWW-Form-Urlencoded; x=y",
            "q=%31",
            Some("posted"),
        ),
        ("PUT", FORM, "q=1", Some("put")),
        ("GET", FORM, "q=1", Some("got")),
        ("POST", FORM, "q=2", None),
        ("POST", FORM, "", None),
        ("POST", "text/plain", "q=1", None),
        ("PATCH", FORM, "q=1", None),
    ] {
        let answer = send(&proxy, method, media, body).await;
        let status = if expected.is_some() { 200 } else { 404 };
        assert_eq!(answer.status, status, "{method} {media} {body}: {answer:?}");
        match expected {
            Some(text) => assert_eq!(answer.text(), text, "{method} {media} {body}"),
            None => assert!(answer.text().contains("this method and this body")),
        }
    }
    let tunnelled = ["--proxytunnel", "--data", "q=1", URL];
    if let Some(answer) = proxy.curl(&tunnelled).await {
        assert_eq!((answer.status, answer.text().as_str()), (200, "posted"));
    }
}

/// Fails if the URL of a form is taken for a page that was never harvested.
#[tokio::test]
async fn missing_posts_are_not_listed() {
    let proxy = forms().await;
    let begin = "http://viewerproxy.invalid/startRecordingURIs";
    assert_eq!(proxy.get(begin).await.status, 200);
    assert_eq!(send(&proxy, "POST", FORM, "q=2").await.status, 404);
    let list = "http://viewerproxy.invalid/getRecordedURIs";
    assert_eq!(proxy.get(list).await.text(), "");
}

/// Fails if a body is read without a limit, cut off in silence, or refused without a word about its limit.
#[tokio::test]
async fn too_large_body_is_413() {
    let proxy = forms().await;
    let largest = "x".repeat(MAX_BODY);
    assert_eq!(send(&proxy, "POST", FORM, &largest).await.status, 404);
    let larger = "x".repeat(MAX_BODY + 1);
    let answer = send(&proxy, "POST", FORM, &larger).await;
    assert_eq!(answer.status, 413, "{answer:?}");
    let limit = format!("more than {MAX_BODY} bytes");
    assert!(answer.text().contains(&limit), "{}", answer.text());
    assert_eq!(proxy.get(URL).await.text(), "got", "it still serves");
}
