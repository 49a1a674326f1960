//! Hosts whose robots.txt is damaged, endless, elsewhere or late.

use super::*;

/// Fails if a robots.txt that is damaged opens a host that is closed, or closes one that is open.
#[tokio::test]
async fn damaged_robots_txt_has_defined_meaning() {
    let answer = |head: &str, body: &str| {
        let length = body.len();
        let head = format!("HTTP/1.1 {head}\r\nContent-Length: {length}\r\n\r\n");
        vec![sent(&(head + body)), Next]
    };
    let moved = |to: &str| vec![sent(&redirect(to)), Next];
    // Behind 500 KiB of comments, and then of more than is taken of a body.
    let late = |rule: &str| ok(&format!("\r\n{}{rule}", "# a comment\n".repeat(45_000)));
    let closing = "User-agent: *\nDisallow: /\n";
    check(
        vec![
            robots_case(
                "closed",
                answer("200 OK", closing),
                &[
                    "/robots.txt 200 content-size:65 whole",
                    "/ -9998 robotExcluded none",
                ],
            ),
            robots_case(
                "50 MB",
                vec![late(closing), Flood("# more\n")],
                &[
                    "/robots.txt 200 lenTrunc,content-size:600019 length",
                    "/ 200 content-size:67 whole",
                ],
            ),
            robots_case(
                "50 MB, closed",
                vec![ok(&format!("\r\n{closing}")), Flood("# more\n")],
                &[
                    "/robots.txt 200 lenTrunc,content-size:600019 length",
                    "/ -9998 robotExcluded none",
                ],
            ),
            robots_case(
                "HTML",
                answer(
                    "200 OK\r\nContent-Type: text/html",
                    "<html>Disallow: /\n</html>",
                ),
                &[
                    "/robots.txt 200 content-size:89 whole",
                    "/ 200 content-size:67 whole",
                ],
            ),
            robots_case(
                "to itself",
                moved("/robots.txt"),
                &[
                    "/robots.txt 302 content-size:64 whole",
                    "/ 200 content-size:67 whole",
                ],
            ),
            robots_case(
                "redirected",
                moved("/other.txt"),
                &[
                    "/robots.txt 302 content-size:63 whole",
                    "/other.txt 200 content-size:67 whole",
                    "/ 200 content-size:67 whole",
                ],
            ),
            robots_case(
                "redirected to nowhere",
                moved("javascript:"),
                &[
                    "/robots.txt 302 content-size:64 whole",
                    "/ 200 content-size:67 whole",
                ],
            ),
            robots_case(
                "fails",
                answer("503 Service Unavailable", closing),
                &[
                    "/robots.txt 503 content-size:82 whole",
                    "/ -8 err=Robots none",
                ],
            ),
            robots_case(
                "fails with 500",
                answer("500 Error", ""),
                &[
                    "/robots.txt 500 content-size:41 whole",
                    "/ -8 err=Robots none",
                ],
            ),
            robots_case(
                "later",
                answer("429 Too Many Requests", ""),
                &[
                    "/robots.txt 429 content-size:53 whole",
                    "/ -8 err=Robots none",
                ],
            ),
            robots_case(
                "forbidden",
                answer("403 Forbidden", closing),
                &[
                    "/robots.txt 403 content-size:72 whole",
                    "/ 200 content-size:67 whole",
                ],
            ),
            robots_case(
                "no answer",
                vec![Reset],
                &["/robots.txt -3 err=NoResponse none", "/ -8 err=Robots none"],
            ),
            robots_case(
                "cut head",
                vec![ok("Content-")],
                &[
                    "/robots.txt -3 disconnectTrunc,content-size:25 none",
                    "/ -8 err=Robots none",
                ],
            ),
            robots_case(
                "cut",
                vec![ok(&format!("Content-Length: 99\r\n\r\n{closing}"))],
                &[
                    "/robots.txt 200 disconnectTrunc,content-size:65 disconnect",
                    "/ -8 err=Robots none",
                ],
            ),
            robots_case(
                "no status line",
                vec![sent(closing)],
                &[
                    "/robots.txt 200 content-size:26 whole",
                    "/ -9998 robotExcluded none",
                ],
            ),
        ],
        "limits.max_body = \"600 kB\"",
    )
    .await;
}
