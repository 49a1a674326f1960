//! A site with traps: a calendar without an end, session ids in paths and queries, paths that grow. The crawl ends by
//! itself.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::job::crawl;

/// The sections of the site, and the articles in each.
const SECTIONS: usize = 10;
const ARTICLES: usize = 15;

/// The requests after which the site gives up: a crawl that gets here does not end by itself.
const TOO_MANY: usize = 20_000;

/// Serves the site on a free port; gives the port and the number of requests so far.
fn serve() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let count = Arc::clone(&counted);
            std::thread::spawn(move || answer(stream.expect("a connection"), &count));
        }
    });
    (port, count)
}

fn answer(stream: TcpStream, count: &AtomicUsize) {
    let mut reader = BufReader::new(stream.try_clone().expect("clone"));
    let mut writer = stream;
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).unwrap_or(0) == 0 {
                return;
            }
        }
        let number = count.fetch_add(1, Ordering::Relaxed);
        let path = head.split(' ').nth(1).expect("a path");
        let body = page(path, number).filter(|_| number < TOO_MANY);
        let status = if body.is_some() {
            "200 OK"
        } else {
            "404 Not Found"
        };
        let body = body.unwrap_or_default();
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {length}\r\n\r\n"
        );
        if writer.write_all((head + &body).as_bytes()).is_err() {
            return;
        }
    }
}

/// Returns a page of the site as it is at this request. Real pages have a text of their own; traps repeat themselves.
fn page(path: &str, number: usize) -> Option<String> {
    let without_query = path.split(['?', ';']).next()?;
    let links = match without_query
        .trim_matches('/')
        .split('/')
        .collect::<Vec<_>>()[..]
    {
        [""] => {
            let sections = (0..SECTIONS).map(|section| format!("/section{section}/"));
            sections.collect::<Vec<_>>()
        }
        // The calendar: each month leads to the next and the one before, as far as one goes.
        ["calendar", year, month] => {
            let months: i64 = year.parse::<i64>().ok()? * 12 + month.parse::<i64>().ok()? - 1;
            let beside = [months - 1, months + 1, months + 12];
            let of = |months: i64| {
                format!(
                    "/calendar/{}/{}",
                    months.div_euclid(12),
                    months.rem_euclid(12) + 1
                )
            };
            beside.map(of).to_vec()
        }
        // A shop that gives each visit a session.
        ["shop"] => vec![
            format!("/shop?session={:032x}", number * 7919),
            format!("/shop;visit={:016x}", number * 104_729),
        ],
        // A link that lacks its first slash.
        ["more", .., "again"] | ["more"] => {
            vec![format!("{}/again", without_query.trim_end_matches('/'))]
        }
        ["archive", .., "old" | "new"] | ["archive"] => {
            let path = without_query.trim_end_matches('/');
            vec![format!("{path}/old"), format!("{path}/new")]
        }
        [section] => {
            let section = section.strip_prefix("section")?;
            let articles = (0..ARTICLES)
                .map(|article| format!("/section{section}/{}", title(section, article)));
            articles.collect()
        }
        [section, article] => {
            let section = section.strip_prefix("section")?;
            (0..ARTICLES).find(|number| title(section, *number) == article)?;
            Vec::new()
        }
        _ => return None,
    };
    let traps = ["/calendar/2026/11", "/shop", "/more/", "/archive/"].map(str::to_owned);
    let links = links.iter().chain(&traps);
    let links = links.map(|link| format!("<a href='{link}'>{link}</a>\n"));
    let text = format!("<p>This is {without_query}.</p>");
    Some(text + &links.collect::<String>())
}

/// Returns the name of an article.
fn title(section: &str, article: usize) -> String {
    const WORDS: [&str; 15] = [
        "harbour", "meadow", "lantern", "orchard", "granite", "willow", "compass", "thunder",
        "velvet", "saddle", "pepper", "marble", "candle", "feather", "bridge",
    ];
    format!("{}-{section}.html", WORDS[article % WORDS.len()])
}

/// Fails if a crawl without limits stays in traps for longer than it takes to see them, or leaves out real pages for
/// them.
#[test]
fn site_of_traps_ends_by_itself() {
    let (port, count) = serve();
    let base = format!("http://127.0.0.1:{port}");
    let directory = tempfile::tempdir().unwrap();
    let seed = format!("{base}/");
    let words = [&seed, "--delay", "0", "--connections", "4"];
    let (job, report) = crawl(directory.path(), &words);
    assert_eq!(
        (&report["status"], &report["stop_reason"]),
        (&"done".into(), &"Finished".into())
    );
    let asked = count.load(Ordering::Relaxed);
    assert!(asked < TOO_MANY, "{asked} requests");

    let mut real = BTreeSet::from([seed.clone()]);
    for section in 0..SECTIONS {
        real.insert(format!("{base}/section{section}/"));
        let articles = (0..ARTICLES).map(|article| title(&section.to_string(), article));
        real.extend(articles.map(|title| format!("{base}/section{section}/{title}")));
    }
    let fetched = job.log().into_iter().filter(|line| line.status == 200);
    let fetched: BTreeSet<String> = fetched.map(|line| line.uri).collect();
    let reached = real.intersection(&fetched).count();
    assert!(
        reached * 100 >= real.len() * 95,
        "{reached} of {} real pages; {report}",
        real.len()
    );
    println!("{reached} of {} real pages in {asked} requests", real.len());
    assert!(
        !report["quarantined"].as_array().unwrap().is_empty(),
        "{report}"
    );
}
