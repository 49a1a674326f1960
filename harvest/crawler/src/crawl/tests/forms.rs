//! Login forms in a crawl.

use super::requests::{blocks, page_with, requests_for, serve_requests};
use super::*;

/// Returns an order with a login form at the host of `base`.
fn order(base: &Url) -> String {
    format!(
        "
        [[credential]]
        host = \"127.0.0.1\"
        user = \"me & you\"
        password = \"h&u sh\"
        form = {{ action = \"{base}login?x=1\", user_field = \"u\", password_field = \"p\", fields = {{ stay = \"1\" }} }}
        "
    )
}

/// The body of the form.
const BODY: &str = "stay=1&u=me+%26+you&p=h%26u+sh";

/// Serves a site for members, whose login is answered so, and whose robots.txt excludes this path.
async fn members(login: &str, disallowed: &str) -> (Url, requests::Requests) {
    let login = login.to_owned();
    let robots = format!("User-agent: *\nDisallow: {disallowed}\n");
    serve_requests("127.0.0.1", move |request| {
        if request.starts_with("GET /robots.txt ") {
            page(&robots)
        } else if request.starts_with("POST /login?x=1 ") && request.ends_with(BODY) {
            login.clone()
        } else if request.contains("Cookie: session=7") {
            page("<a href=/a>a</a> <a href=/b>b</a>")
        } else {
            "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n".to_owned()
        }
    })
    .await
}

/// Fails if a form is not sent before the first page, is sent twice, its cookie is lost, or the password is written
/// anywhere.
#[tokio::test]
async fn login_form_opens_its_host() {
    let answer =
        "HTTP/1.1 303 Go\r\nSet-Cookie: session=7\r\nLocation: /home\r\nContent-Length: 0\r\n\r\n";
    let (base, told) = members(answer, "/private").await;
    let directory = tempfile::tempdir().unwrap();
    let order = order(&base);
    let seeds = std::slice::from_ref(&base);
    let outcome = crawl(settings(directory.path(), seeds, &order)).await;
    assert_eq!(outcome.end, CrawlEnd::Finished);
    let statuses = statuses(directory.path(), &base);
    let expected = [
        ("/", 200),
        ("/a", 200),
        ("/b", 200),
        ("/home", 200),
        ("/login?x=1", 303),
        ("/robots.txt", 200),
    ];
    assert_eq!(
        statuses,
        expected
            .map(|(path, status)| (path.to_owned(), status))
            .into()
    );
    let requests = told.lock().clone();
    let first: Vec<&str> = requests
        .iter()
        .map(|request| &request[..6])
        .take(3)
        .collect();
    assert_eq!(first, ["GET /r", "POST /", "GET / "]);
    let [post] = requests_for(&told, "/login?x=1").try_into().unwrap();
    assert!(
        post.contains("Content-Type: application/x-www-form-urlencoded\r\n"),
        "{post}"
    );
    let lines = log(directory.path());
    let login = lines
        .iter()
        .find(|line| line.uri.ends_with("login?x=1"))
        .unwrap();
    assert_eq!(
        (login.hops.as_str(), login.via.as_deref()),
        ("P", Some(base.as_str()))
    );
    assert!(login.annotations.contains(&"login".to_owned()), "{login}");
    let uri = format!("{base}login?x=1");
    let recorded = &blocks(directory.path(), WarcType::Request)[&uri];
    assert!(
        recorded.ends_with("\r\n\r\nstay=1&u=me+%26+you&p="),
        "{recorded}"
    );
    assert!(!recorded.contains("Content-Length"), "{recorded}");
    let metadata = &blocks(directory.path(), WarcType::Metadata)[&uri];
    let said = "requestLeftOut: Content-Length, the password in the body\r\n";
    assert!(metadata.contains(said), "{metadata}");
    for kind in [
        WarcType::Request,
        WarcType::Response,
        WarcType::Metadata,
        WarcType::Warcinfo,
    ] {
        for (uri, block) in blocks(directory.path(), kind) {
            assert!(
                !block.contains("h%26u") && !block.contains("h&u"),
                "{uri}: {block}"
            );
        }
    }
    let log = fs::read_to_string(directory.path().join("logs/crawl.log")).unwrap();
    assert!(!log.contains("h%26u") && !log.contains("h&u"), "{log}");
}

/// Fails if a login that fails ends the crawl, is tried again and again, or is not said to have failed.
#[tokio::test]
async fn failed_login_is_logged_and_crawl_continues() {
    let refused = "HTTP/1.1 403 Wrong\r\nContent-Length: 0\r\n\r\n";
    let open = page_with("", "come in");
    for (answer, disallowed, posts, status, annotation) in [
        (refused, "/private", 1, 403, "login:failed"),
        ("", "/private", 1, -4, "login:failed"),
        (open.as_str(), "/login", 0, -9998, "login:failed"),
        (open.as_str(), "/private", 1, 200, "login"),
    ] {
        let (base, told) = members(answer, disallowed).await;
        let directory = tempfile::tempdir().unwrap();
        let order = format!("limits.stall = \"1 s\"\n{}", order(&base));
        let seeds = std::slice::from_ref(&base);
        let outcome = crawl(settings(directory.path(), seeds, &order)).await;
        assert_eq!(outcome.end, CrawlEnd::Finished);
        let lines = log(directory.path());
        let login = lines
            .iter()
            .find(|line| line.uri.ends_with("login?x=1"))
            .unwrap();
        assert_eq!(login.status, status, "{login}");
        assert!(
            login.annotations.contains(&annotation.to_owned()),
            "{login}"
        );
        assert_eq!(requests_for(&told, "/login?x=1").len(), posts);
        assert_eq!(statuses(directory.path(), &base)["/"], 403);
    }
}

/// Fails if pages wait without an end for a login at a place whose robots.txt cannot be had.
#[tokio::test]
async fn login_without_robots_is_passed_by() {
    let (place, told) = serve_requests("127.0.0.1", |_| {
        "HTTP/1.1 503 Later\r\nContent-Length: 0\r\n\r\n".to_owned()
    })
    .await;
    let (base, _) = serve(&small_site()).await;
    let directory = tempfile::tempdir().unwrap();
    let seeds = std::slice::from_ref(&base);
    let outcome = crawl(settings(directory.path(), seeds, &order(&place))).await;
    assert_eq!(outcome.end, CrawlEnd::Finished);
    assert_eq!(statuses(directory.path(), &base)["/"], 200);
    assert!(requests_for(&told, "/login?x=1").is_empty());
    let lines = log(directory.path());
    let login = lines.iter().find(|line| line.uri.ends_with("login?x=1"));
    assert_eq!(login.unwrap().annotations, ["login:failed"]);
}
