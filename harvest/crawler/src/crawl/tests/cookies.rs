//! Cookies in a crawl.

use super::requests::{blocks, page_with, requests_for, serve_requests};
use super::*;

/// Fails if a site that expects its cookie does not get it, another host gets it, an odd cookie ends the crawl, or the
/// order has no say.
#[tokio::test]
async fn cookies_go_back_to_their_host() {
    let (other, told_elsewhere) = serve_requests("127.0.0.2", |_| page("elsewhere")).await;
    let links = format!("<a href=/members/>m</a> <img src='{other}i.png'>");
    let fields = "Set-Cookie: session=7; Path=/members; HttpOnly\r\nSet-Cookie: =\r\nSet-Cookie: a=b; Domain=1\r\n\
        Set-Cookie: gone=1; Max-Age=0\r\nset-cookie: x\x01=\x02\r\n";
    let (base, told) = serve_requests("127.0.0.1", move |request| {
        if request.starts_with("GET / ") {
            page_with(fields, &links)
        } else if request.contains("session=7") {
            page("welcome")
        } else {
            "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n".to_owned()
        }
    })
    .await;
    for (order, status) in [("", 200), ("http.cookies = false", 403)] {
        let directory = tempfile::tempdir().unwrap();
        let order = format!("{order}\nnetworks.allow = [\"127.0.0.2/32\"]");
        let seeds = std::slice::from_ref(&base);
        crawl(settings(directory.path(), seeds, &order)).await;
        let statuses = statuses(directory.path(), &base);
        assert_eq!(statuses["/members/"], status);
        let members = requests_for(&told, "/members/");
        let has_cookie = status == 200;
        let sent = members.last().unwrap();
        assert_eq!(
            sent.contains("\r\nCookie: session=7\r\n"),
            has_cookie,
            "{sent}"
        );
        // The request went over the wire with its cookie, and is recorded so.
        let recorded = blocks(directory.path(), WarcType::Request);
        assert_eq!(&recorded[&format!("{base}members/")], sent);
    }
    let told = told.lock();
    let elsewhere = told_elsewhere.lock();
    assert_eq!(elsewhere.len(), 4);
    let with_cookie = told.iter().chain(elsewhere.iter());
    let with_cookie = with_cookie.filter(|request| request.contains("Cookie"));
    assert_eq!(with_cookie.count(), 1);
}
