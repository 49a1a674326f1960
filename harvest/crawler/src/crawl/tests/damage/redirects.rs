//! Hosts that lead the crawler on and on, or to nowhere.

use super::*;

/// Fails if a chain of redirects has no end, or a target that is no URI is not asked for as browsers do.
#[tokio::test]
async fn redirects_end_and_targets_are_mended() {
    let moved = |to: &str| vec![sent(&redirect(to)), Next];
    check(
        vec![
            page_case("to itself", moved("/"), &["/ 302 content-size:54 whole"]),
            case(
                "in a loop",
                move |path| match path {
                    "/robots.txt" => only_page(path, &[]),
                    "/" => moved("/a"),
                    _ => moved("/"),
                },
                &["/ 302 content-size:55 whole", "/a 302 content-size:54 whole"],
            ),
            case(
                "without an end",
                move |path| match path.trim_start_matches('/') {
                    "robots.txt" => only_page(path, &[]),
                    number => {
                        let next = number.parse().unwrap_or(0) + 1;
                        moved(&format!("/{next:03}"))
                    }
                },
                &["/ 302 content-size:57 whole", "/001 302 content-size:57 whole", "/002 302 content-size:57 whole", "/003 302 content-size:57 whole", "/004 302 content-size:57 whole", "/005 302 content-size:57 whole", "/006 302 content-size:57 whole", "/007 302 content-size:57 whole", "/008 302 content-size:57 whole", "/009 302 content-size:57 whole", "/010 302 content-size:57 whole", "/011 302 content-size:57 whole", "/012 302 content-size:57 whole", "/013 302 content-size:57 whole", "/014 302 content-size:57 whole", "/015 302 content-size:57 whole", "/016 302 content-size:57 whole", "/017 302 content-size:57 whole", "/018 302 content-size:57 whole", "/019 302 content-size:57 whole", "/020 302 content-size:57 whole"],
            ),
            page_case("blanks and letters", moved("/a b/\u{e6}\u{f8}?\u{e5} c"), &["/ 302 content-size:67 whole", "/a%20b/%C3%A6%C3%B8?%C3%A5%20c 404 content-size:45 whole"]),
            page_case("folded", vec![sent("HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: /fol\r\n ded\r\n\r\n"), Next], &["/ 302 content-size:63 whole", "/fol%20ded 404 content-size:45 whole"]),
            page_case("bare line end", vec![sent("HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: /a\nX: y\r\n\r\n"), Next], &["/ 302 content-size:60 whole", "/a 404 content-size:45 whole"]),
            page_case("Latin-1", vec![Send(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: /\xe6\r\n\r\n".to_vec()), Next], &["/ 302 content-size:55 whole", "/%C3%A6 404 content-size:45 whole"]),
            page_case("script", moved("javascript:alert(1)"), &["/ 302 content-size:72 whole"]),
            page_case("data", moved("data:text/html,x"), &["/ 302 content-size:69 whole"]),
            page_case("no URI", moved("http://[::1"), &["/ 302 content-size:64 whole"]),
            page_case("empty", moved(""), &["/ 302 content-size:53 whole"]),
            page_case("two", vec![sent("HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: /a\r\nLocation: /b\r\n\r\n"), Next], &["/ 302 content-size:69 whole", "/a 404 content-size:45 whole", "/b 404 content-size:45 whole"]),
        ],
        "",
    )
    .await;
}
