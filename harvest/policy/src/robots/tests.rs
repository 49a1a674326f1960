//! RFC 9309 by its examples, by what hosts write, and by the opinion of another implementation.

use std::time::Duration;

use super::*;

fn rules(file: &str) -> RobotsRules {
    RobotsRules::parse(file.as_bytes(), "holdfast")
}

fn check(file: &str, path: &str, allowed: bool) {
    assert_eq!(rules(file).allows_path(path), allowed, "{path} by {file:?}");
}

/// Fails if a group for another crawler is obeyed, or one of ours is not (RFC 9309 §5.1).
#[test]
fn group_of_the_product_is_obeyed() {
    let file = "User-agent: *\nDisallow: *.gif$\nDisallow: /example/\nAllow: /publications/\n\n\
        User-agent: foobot\nDisallow:/\nAllow:/example/page.html\nAllow:/example/allowed.gif\n\n\
        User-agent: barbot\nUser-agent: HOLDfast/1.0 (x)\nDisallow: /example/page.html\n\n\
        User-agent: quxbot\n";
    check(file, "/example/page.html", false);
    check(file, "/example/other.html", true);
    check(file, "/x.gif", true);
    let for_product = |product| RobotsRules::parse(file.as_bytes(), product);
    assert!(!for_product("nobody").allows_path("/x.gif"));
    assert!(!for_product("nobody").allows_path("/example/page.html"));
    assert!(for_product("foobot").allows_path("/example/allowed.gif"));
    assert!(!for_product("foobot").allows_path("/publications/"));
    // A group without rules allows all, and hides the one for all crawlers.
    assert!(for_product("quxbot").allows_path("/x.gif"));
}

/// Fails if groups of one crawler are not taken as one (RFC 9309 §2.2.1).
#[test]
fn groups_of_one_product_are_one() {
    let file = "User-agent: holdfast\nDisallow: /a\n\nUser-agent: *\nDisallow: /c\n\nUser-agent: holdfast\nDisallow: /b\n";
    check(file, "/a", false);
    check(file, "/b", false);
    check(file, "/c", true);
}

/// Fails if another than the longest pattern decides (RFC 9309 §2.2.2, §5.2).
#[test]
fn longest_pattern_decides() {
    let head = "User-agent: *\n";
    let longest = format!("{head}Allow: /example/page/\nDisallow: /example/page/disallowed.gif\n");
    check(&longest, "/example/page/disallowed.gif", false);
    check(&longest, "/example/page/other.gif", true);
    check(
        &format!("{head}Disallow: /page\nAllow: /page\n"),
        "/page",
        true,
    );
    check(&format!("{head}Disallow: /\nAllow: /$\n"), "/", true);
    check(&format!("{head}Disallow: /\nAllow: /$\n"), "/a", false);
    check(&format!("{head}Disallow:\n"), "/a", true);
    check(&format!("{head}Disallow: /\n"), "/robots.txt", true);
}

/// Fails if a star or a dollar sign is taken for itself, or the path is matched in the middle.
#[test]
fn stars_and_ends_are_matched() {
    let matches = |pattern: &str, path: &str| {
        PathPattern::parse(pattern.as_bytes())
            .unwrap()
            .matches(&normal_path(path.as_bytes()))
    };
    for (pattern, good, bad) in [
        (
            "/fish",
            ["/fish", "/fish.html", "/fishheads/yummy.html"],
            ["/Fish.asp", "/catfish", "/?id=fish"],
        ),
        (
            "/fish*",
            ["/fish", "/fish.html", "/fish/salmon.html"],
            ["/Fish.asp", "/catfish", "/?id=fish"],
        ),
        (
            "/fish/",
            ["/fish/", "/fish/?id=anything", "/fish/salmon.htm"],
            ["/fish", "/fish.html", "/animals/fish/"],
        ),
        (
            "/*.php",
            ["/index.php", "/folder/any.php?x=y", "/folder/any.php.file/"],
            ["/", "/windows.PHP", "/a.ph"],
        ),
        (
            "/*.php$",
            ["/filename.php", "/folder/filename.php", "/a.php.php"],
            ["/filename.php?x", "/filename.php/", "/filename.php5"],
        ),
        (
            "/fish*.php",
            [
                "/fish.php",
                "/fishheads/catfish.php?parameters",
                "/fish.php.php",
            ],
            ["/Fish.PHP", "/fish", "/.phpfish"],
        ),
        ("*a*b$", ["/ab", "/xaxbxb", "/aab"], ["/ba", "/abx", "/b"]),
        ("/a**b", ["/ab", "/axb", "/a/b"], ["/a", "/b", "/ba"]),
    ] {
        for path in good {
            assert!(matches(pattern, path), "{pattern} matches {path}");
        }
        for path in bad {
            assert!(!matches(pattern, path), "{pattern} does not match {path}");
        }
    }
}

/// Fails if an escape makes two spellings of one path two paths, or a reserved character loses its escape.
#[test]
fn escapes_are_compared_by_meaning() {
    for (pattern, path, same) in [
        ("/foo/bar/ツ", "/foo/bar/%E3%83%84", true),
        ("/foo/bar/%e3%83%84", "/foo/bar/ツ", true),
        ("/foo/%62%61%72", "/foo/bar", true),
        ("/~joe", "/%7Ejoe", true),
        ("/a%2Fb", "/a/b", false),
        ("/a/b", "/a%2fb", false),
        ("/a%3cd", "/a%3Cd", true),
        ("/file-%2A.html", "/file-*.html", true),
        ("/file-%2A.html", "/file-x.html", false),
        ("/price%24", "/price$", true),
        ("/price$/a", "/price%24/a", true),
        ("/100%", "/100%", true),
        ("/100%zz", "/100%zz", true),
    ] {
        check(&format!("User-agent: *\nDisallow: {pattern}"), path, !same);
    }
}

/// Fails if something that hosts write hides the rules behind it.
#[test]
fn any_writing_is_read() {
    for file in [
        "\u{feff}User-agent: *\nDisallow: /a",
        "USER-AGENT:*\rDISALLOW:/a\r",
        " user-agent \t: * # all\r\n\r\n  Disallow : /a # this\r\n",
        "junk\n\nUser-agent: *\nHost: x\nClean-param: y\n\nDisallow: /a\n",
        "Disallow: /b\nUser-agent: *\nDisallow: /a",
        "User-agent: x\nSitemap: http://a/s.xml\nUser-agent: *\nDisallow: /a",
    ] {
        check(file, "/a", false);
        check(file, "/b", true);
    }
    let binary: Vec<u8> = (0..=255).cycle().take(5000).collect();
    assert!(RobotsRules::parse(&binary, "holdfast").allows_path("/a"));
    assert!(RobotsRules::parse(b"<html>User-agent: no", "holdfast").allows_path("/a"));
    let sitemaps = rules("Sitemap: http://a/1.xml\nUser-agent: x\nsitemap:http://a/2.xml # second");
    assert_eq!(sitemaps.sitemaps(), ["http://a/1.xml", "http://a/2.xml"]);
}

/// Fails if a file without an end costs memory without one, or its last line is obeyed although it is cut.
#[test]
fn huge_file_is_read_to_the_limit() {
    let line = "Disallow: /abcdefghij\n";
    let mut file = format!(
        "User-agent: *\n{}",
        line.repeat(MAX_BYTES / line.len() + 10)
    );
    let start = file.len().min(MAX_BYTES - 12);
    file.replace_range(start.., "\nDisallow: /very/long/path\n");
    file.push_str("Disallow: /behind\n");
    check(&file, "/behind", true);
    check(&file, "/ver", true);
    check(&file, "/abcdefghij", false);
}

/// Fails if a pause is read wrongly, or nonsense in its place ends the reading.
#[test]
fn crawl_delay_is_read() {
    let delay = |value: &str| {
        rules(&format!(
            "User-agent: *\nCrawl-delay: {value}\nDisallow: /a"
        ))
        .crawl_delay()
    };
    assert_eq!(delay("10"), Some(Duration::from_secs(10)));
    assert_eq!(delay("0.5"), Some(Duration::from_millis(500)));
    assert_eq!(delay("1e99"), Some(MAX_DELAY));
    for nonsense in ["", "-1", "ten", "NaN"] {
        assert_eq!(delay(nonsense), None, "{nonsense}");
    }
}

/// Fails if a host that has no file is not crawled, or one that cannot say is.
#[test]
fn status_says_whether_rules_hold() {
    for (status, expected) in [
        (Some(200), RobotsAnswer::File),
        (Some(301), RobotsAnswer::Absent),
        (Some(404), RobotsAnswer::Absent),
        (Some(403), RobotsAnswer::Absent),
        (Some(429), RobotsAnswer::Unreachable),
        (Some(503), RobotsAnswer::Unreachable),
        (Some(999), RobotsAnswer::Unreachable),
        (Some(0), RobotsAnswer::Unreachable),
        (None, RobotsAnswer::Unreachable),
    ] {
        assert_eq!(RobotsAnswer::from_status(status), expected, "{status:?}");
    }
    assert!(!RobotsRules::forbid_all().allows_path("/"));
    assert!(RobotsRules::default().allows_path("/"));
}

/// Fails if the matcher and another implementation disagree about one of all short patterns and paths.
#[test]
fn another_matcher_agrees() {
    let mut words = vec![String::new()];
    for length in 0..4 {
        let longest: Vec<String> = words
            .iter()
            .filter(|w| w.len() == length)
            .cloned()
            .collect();
        for word in longest {
            words.extend(["/", "a", "*"].map(|next| format!("{word}{next}")));
        }
    }
    let paths: Vec<&String> = words
        .iter()
        .filter(|w| w.starts_with('/') && !w.contains('*'))
        .collect();
    let mut compared = 0;
    for pattern in words.iter().filter(|w| w.starts_with('/')) {
        for end in ["", "$"] {
            let file = format!("User-agent: *\nDisallow: {pattern}{end}\n");
            let ours = rules(&file);
            let theirs = texting_robots::Robot::new("holdfast", file.as_bytes()).unwrap();
            for path in &paths {
                let url = format!("http://a.b{path}");
                assert_eq!(
                    ours.allows_path(path),
                    theirs.allowed(&url),
                    "{path} by {pattern}{end}"
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 1000, "{compared}");
}
