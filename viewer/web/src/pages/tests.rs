//! Tests of the pages, over an index in memory.

mod hostile;
mod page_client;

use page_client::{TestPages, capture};

const PAGE: &str = "http://example.org/page";

fn five_captures() -> TestPages {
    TestPages::new([
        capture(PAGE, "20190704080000"),
        capture(PAGE, "20200301140509"),
        capture(PAGE, "20200301180000"),
        capture(PAGE, "20201224000000"),
        capture(PAGE, "20210101000000"),
        capture("http://example.org/other", "20220101000000"),
    ])
}

/// Fails if a calendar counts other captures than there are, or has no way to them.
#[tokio::test]
async fn calendar_counts_every_capture() {
    let pages = five_captures();
    let answer = pages.get("/all/*/http://example.org/page").await;
    assert_eq!(answer.status, 200);
    for part in [
        "<strong>5 captures</strong>",
        "First: 4 July 2019, 08:00:00 UTC",
        "Last: 1 January 2021, 00:00:00 UTC",
        "href=\"/all/2019*/http://example.org/page\"",
        "href=\"/all/2020*/http://example.org/page\"",
        // The last year is shown, and its day with one capture leads to it.
        "href=\"/replay/all/20210101000000/http://example.org/page\" aria-label=\"1 January 2021: 1 capture\"",
        "href=\"/all/*/http://example.org/page*\"",
    ] {
        assert!(answer.text.contains(part), "{part}: {}", answer.text);
    }
    assert!(!answer.text.contains("2022"), "captures of another URL");
    let year = pages.get("/all/2020*/http://example.org/page").await;
    assert!(year.text.contains(
        "href=\"/all/20200301*/http://example.org/page\" aria-label=\"1 March 2020: 2 captures\""
    ));
    assert!(
        year.text.contains("2020 <span class=\"count\">3 captures"),
        "{}",
        year.text
    );
    assert_eq!(year.text.matches("<table>").count(), 12);
    let day = pages.get("/all/20200301*/http://example.org/page").await;
    assert!(
        day.text
            .contains("<h2 id=\"list-heading\">1 March 2020</h2>"),
        "{}",
        day.text
    );
    assert!(
        day.text
            .contains("<time datetime=\"2020-03-01T18:00:00Z\">18:00:00</time>")
    );
    assert!(
        !day.text.contains("2020-12-24T"),
        "the list is that of the day"
    );
    let empty = pages.get("/all/20180101*/http://example.org/page").await;
    assert_eq!(empty.status, 200);
    assert!(empty.text.contains("Nothing was captured in this time."));
    assert!(empty.text.contains("<strong>5 captures</strong>"));
}

/// Fails if a list is cut without a word, or its pages repeat or lose captures.
#[tokio::test]
async fn long_lists_have_pages() {
    let stamps = (0..450).map(|at| format!("202003{:02}{:02}0000", at / 24 + 1, at % 24));
    let pages = TestPages::new(stamps.map(|stamp| capture(PAGE, &stamp)));
    let mut path = "/all/202003*/http://example.org/page".to_owned();
    let mut seen = Vec::new();
    for place in ["1 to 200 of 450", "201 to 400 of 450", "401 to 450 of 450"] {
        let answer = pages.get(&path).await;
        assert!(answer.text.contains(place), "{place}: {}", answer.text);
        let list = answer.text.split("<ol class=\"captures\">").nth(1).unwrap();
        let list = list.split("</ol>").next().unwrap();
        seen.extend(
            list.split("datetime=\"")
                .skip(1)
                .map(|at| at[..20].to_owned()),
        );
        path = answer.link("rel=\"next\"").unwrap_or_default();
    }
    assert_eq!(path, "", "the last page has no next one");
    assert_eq!(seen.len(), 450);
    assert!(seen.is_sorted() && seen[0] == "2020-03-01T00:00:00Z");
    for wrong in ["0", "4", "x", "-1", "99999999999999999999"] {
        let path = format!("/all/202003*/http%3A%2F%2Fexample.org%2Fpage?page={wrong}");
        let answer = pages.get(&path).await;
        assert!(
            answer.status == 404 && answer.text.contains("does not have this page"),
            "{wrong}"
        );
    }
}

/// Fails if browsing by prefix loses a URL between two pages, or counts its captures wrongly.
#[tokio::test]
async fn prefix_pages_list_every_url_once() {
    let urls = (0..250).map(|at| format!("http://example.org/a/{at:03}"));
    let captures = urls.flat_map(|url| {
        [
            capture(&url, "20200101000000"),
            capture(&url, "20210101000000"),
        ]
    });
    let other = [capture("http://example.org/b", "20200101000000")];
    let pages = TestPages::new(captures.chain(other));
    let mut path = "/all/*/http://example.org/a/*".to_owned();
    let mut seen = Vec::new();
    for count in ["first 100", "100 further", "last 50"] {
        let answer = pages.get(&path).await;
        assert_eq!(answer.status, 200);
        assert!(answer.text.contains(count), "{count}: {}", answer.text);
        let list = answer.text.split("<ol class=\"urls\">").nth(1).unwrap();
        let list = list.split("</ol>").next().unwrap();
        seen.extend(
            list.split("<bdi dir=\"ltr\">")
                .skip(1)
                .map(|at| at[..24].to_owned()),
        );
        assert!(list.contains(
            "2 captures · <time datetime=\"2020-01-01T00:00:00Z\">1 January 2020</time>"
        ));
        path = answer.link("rel=\"next\"").unwrap_or_default();
    }
    assert_eq!(path, "");
    let expected: Vec<String> = (0..250)
        .map(|at| format!("http://example.org/a/{at:03}"))
        .collect();
    assert_eq!(seen, expected);
    let domain = pages.get("/all/*/*.example.org").await;
    assert!(
        domain.text.contains("Addresses of the domain"),
        "{}",
        domain.text
    );
    let year = pages.get("/all/2021*/http://example.org/a/*").await;
    assert!(
        year.text.contains("1 capture ·")
            && year
                .text
                .contains("href=\"/all/2021*/http://example.org/a/000\"")
    );
    let outside = "/all/*/http%3A%2F%2Fexample.org%2Fa%2F*?after=org,example)/z";
    assert_eq!(pages.get(outside).await.status, 404);
    let none = pages.get("/all/*/http://example.org/zzz*").await;
    assert!(none.status == 404 && none.text.contains("no capture of any such address"));
}

/// Fails if a frame page shows another capture than its address says, or lets the frame load from elsewhere.
#[tokio::test]
async fn frame_page_frames_one_capture() {
    let pages = five_captures();
    let answer = pages
        .get("/replay/all/20200301140509/http://example.org/page")
        .await;
    assert_eq!(answer.status, 200);
    for part in [
        "<iframe sandbox=\"allow-scripts allow-same-origin allow-forms\" \
         src=\"http://127.0.0.1:8091/all/20200301140509mp_/http://example.org/page\"",
        "1 March 2020, 14:05:09 UTC",
        "href=\"/all/*/http://example.org/page\"",
        "rel=\"prev\" href=\"/replay/all/20190704080000/http://example.org/page\"",
        "rel=\"next\" href=\"/replay/all/20200301180000/http://example.org/page\"",
        "href=\"http://127.0.0.1:8091/all/20200301140509/http://example.org/page\"",
    ] {
        assert!(answer.text.contains(part), "{part}: {}", answer.text);
    }
    let policy = answer.field("content-security-policy").unwrap();
    assert_eq!(
        policy,
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; \
         base-uri 'none'; frame-src http://127.0.0.1:8091"
    );
    for (path, leads_to) in [
        (
            "/replay/all/2020/http://example.org/page",
            "/replay/all/20210101000000/http://example.org/page",
        ),
        (
            "/replay/all/http://example.org/page",
            "/replay/all/20210101000000/http://example.org/page",
        ),
        (
            "/replay/all/19990101000000/http://example.org/page",
            "/replay/all/20190704080000/http://example.org/page",
        ),
        (
            "/replay/all/1999/http%3A%2F%2Fexample.org%2Fpage?lang=da",
            "/replay/all/20190704080000/http%3A%2F%2Fexample.org%2Fpage?lang=da",
        ),
        (
            "/all/2020/http://example.org/page",
            "/replay/all/2020/http://example.org/page",
        ),
        (
            "/all/http://example.org/page?x=y",
            "/replay/all/http://example.org/page?x=y",
        ),
    ] {
        let answer = pages.get(path).await;
        assert_eq!(
            (answer.status, answer.field("location")),
            (302, Some(leads_to)),
            "{path}"
        );
    }
}

/// Fails if a redirect to itself is shown in a frame, where it would lead back for good.
#[tokio::test]
async fn self_redirects_are_passed_over() {
    let mut redirect = capture("http://example.org/page", "20200301140508");
    redirect.status = Some(301);
    redirect.redirect = Some("https://www.example.org/page".to_owned());
    let real = capture("https://www.example.org/page", "20200301140509");
    let pages = TestPages::new([redirect, real]);
    let answer = pages
        .get("/replay/all/20200301140508/http://example.org/page")
        .await;
    let expected = "/replay/all/20200301140509/https://www.example.org/page";
    assert_eq!(
        (answer.status, answer.field("location")),
        (302, Some(expected))
    );
    let shown = pages.get(expected).await;
    assert_eq!(
        (shown.status, shown.text.contains("rel=\"prev\"")),
        (200, false)
    );
}

/// Fails if the search does not lead to what was searched for.
#[tokio::test]
async fn search_leads_to_the_calendar() {
    let pages = five_captures();
    let home = pages.get("/").await;
    assert_eq!(home.status, 200);
    assert!(home.text.contains("<html lang=\"en\">") && home.text.contains("action=\"/\""));
    for (path, leads_to) in [
        ("/?url=example.org/page", "/all/*/http://example.org/page"),
        (
            "/?url=+http%3A%2F%2Fexample.org%2F%3Fa%3Db%26c&match=exact",
            "/all/*/http://example.org/?a=b&c",
        ),
        (
            "/?url=example.org/a&match=prefix&collection=all",
            "/all/*/http://example.org/a*",
        ),
        ("/?url=example.org/a*", "/all/*/http://example.org/a*"),
        ("/?url=example.org&match=domain", "/all/*/*.example.org"),
        ("/?url=*.example.org", "/all/*/*.example.org"),
        ("/all/?url=example.org", "/all/*/http://example.org"),
        (
            "/?url=example.org&lang=da",
            "/all/*/http%3A%2F%2Fexample.org?lang=da",
        ),
    ] {
        let answer = pages.get(path).await;
        assert_eq!(
            (answer.status, answer.field("location")),
            (303, Some(leads_to)),
            "{path}"
        );
    }
    let empty = pages.get("/?url=").await;
    assert!(empty.status == 400 && empty.text.contains("role=\"alert\""));
    let other = pages.get("/?url=a&collection=none").await;
    assert_eq!(other.status, 404);
}

/// Fails if a visitor gets a page in another language than was asked for, or loses it on the way.
#[tokio::test]
async fn pages_are_in_the_wanted_language() {
    let pages = five_captures();
    let path = "/all/*/http://example.org/page";
    let danish = pages
        .ask("GET", path, &[("accept-language", "da-DK, en;q=0.5")])
        .await;
    assert!(danish.text.contains("<html lang=\"da\">") && danish.text.contains("5 versioner"));
    assert_eq!(danish.field("content-language"), Some("da"));
    assert_eq!(danish.field("vary"), Some("accept-language"));
    let chosen = "/all/*/http%3A%2F%2Fexample.org%2Fpage?lang=da";
    assert!(
        danish.text.contains(&format!("href=\"{chosen}\"")),
        "{}",
        danish.text
    );
    let chosen = pages.ask("GET", chosen, &[("accept-language", "en")]).await;
    assert!(chosen.text.contains("5 versioner"));
    assert!(
        chosen
            .text
            .contains("href=\"/all/2020*/http%3A%2F%2Fexample.org%2Fpage?lang=da\"")
    );
    assert!(chosen.text.contains("name=\"lang\" value=\"da\""));
    let problem = pages.get("/?lang=da&collection=none").await;
    assert!(problem.status == 404 && problem.text.contains("Der er ingen samling"));
}

/// Fails if the style sheet is not where pages say, or browsers ask for it at each page.
#[tokio::test]
async fn style_sheet_is_kept_by_its_name() {
    let pages = five_captures();
    let home = pages.get("/").await;
    let at = home.text.find("/static/pages-").unwrap();
    let path = home.text[at..].split('"').next().unwrap();
    let style = pages.get(path).await;
    assert_eq!(
        (style.status, style.field("content-type")),
        (200, Some("text/css; charset=utf-8"))
    );
    assert!(style.field("cache-control").unwrap().contains("immutable"));
    assert_eq!(pages.get("/static/pages-0.css").await.status, 404);
    assert_eq!(pages.get("/static/../etc/passwd").await.status, 404);
}

/// Fails if the listener does not pass requests to the pages.
#[tokio::test]
async fn pages_are_served_over_tcp() {
    let served = five_captures().serve().await;
    let text = served
        .exchange("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .await;
    assert!(
        text.starts_with("HTTP/1.1 200 ") && text.contains("</html>"),
        "{text}"
    );
    let head = served
        .exchange("HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .await;
    assert!(
        head.starts_with("HTTP/1.1 200 ") && !head.contains("<html"),
        "{head}"
    );
}
