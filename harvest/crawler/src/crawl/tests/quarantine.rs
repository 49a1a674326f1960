//! A site with a calendar without an end, beside real pages.

use super::*;

/// The number of articles of the site.
const ARTICLES: u32 = 120;

/// Returns a home page with lists of articles, and a calendar whose months lead to each other.
fn site(path: &str) -> Option<String> {
    let number = |prefix: &str| path.strip_prefix(prefix)?.parse::<u32>().ok();
    if path == "/" {
        let lists = (0..ARTICLES / 10).map(|list| format!("<a href=/list/{list}>more</a> "));
        return Some(page(
            &(lists.collect::<String>() + "<a href=/month/100>calendar</a>"),
        ));
    }
    if let Some(list) = number("/list/").filter(|list| *list < ARTICLES / 10) {
        let articles = (list * 10..list * 10 + 10)
            .map(|article| format!("<a href=/article/{article}>read</a> "));
        return Some(page(&articles.collect::<String>()));
    }
    if let Some(article) = number("/article/").filter(|article| *article < ARTICLES) {
        let words = ["sea", "wind", "boat", "net", "fish", "sail", "rope"];
        let text = (0..12).map(|place| words[usize::try_from((article >> place) % 7).unwrap()]);
        let text = text.collect::<Vec<_>>().join(" ");
        return Some(page(&format!(
            "article {text} {} <a href=/>home</a>",
            "x".repeat(usize::try_from(article).unwrap())
        )));
    }
    let month = number("/month/")?;
    let before = month.saturating_sub(1);
    let after = month.saturating_add(1);
    Some(page(&format!(
        "month {month} <a href=/month/{before}>-</a> <a href=/month/{after}>+</a>"
    )))
}

/// Fails if a crawl of an endless calendar does not end by itself, or loses a real page to the quarantine; or if a
/// pattern that is freed stays where it is.
#[tokio::test]
async fn endless_calendar_is_left_and_can_be_freed() {
    let (base, asked) = serve_by(Arc::new(site)).await;
    let directory = tempfile::tempdir().unwrap();
    let order = "quarantine = { after_pages = 20, trial_pages = 30 }\nscope.max_hops = 1000\nlimits.max_objects = 2000";
    let first = settings(directory.path(), std::slice::from_ref(&base), order);
    let (crawl, mut handle) = Crawl::new(first, Clock::system_clock(), Chance::system_chance());
    let outcome = crawl.run_crawl().await.unwrap();
    assert_eq!(outcome.end, CrawlEnd::Finished);
    let [(pattern, held)] = outcome.quarantined.as_slice() else {
        panic!("{:?}", outcome.quarantined);
    };
    assert!(pattern.contains("/month/"), "{pattern}");
    // People are notified while the crawl runs.
    let told = CrawlNotice::Quarantined(pattern.clone());
    assert_eq!(handle.notices.try_recv().unwrap(), told);
    assert_eq!(handle.progress.borrow().quarantined, 1);
    assert!(*held > 0);
    let paths: BTreeSet<String> = asked.lock().iter().cloned().collect();
    let articles = paths
        .iter()
        .filter(|path| path.starts_with("/article/"))
        .count();
    assert_eq!(articles, usize::try_from(ARTICLES).unwrap());
    let months = |paths: &BTreeSet<String>| {
        let months = paths.iter().filter(|path| path.starts_with("/month/"));
        months.count()
    };
    let before = months(&paths);
    assert!((50..100).contains(&before), "{before}");
    // A person frees the pattern: it is crawled on, until the limit that the person has set.
    let order = "quarantine = { after_pages = 20, trial_pages = 0 }\nscope.max_hops = 1000\nlimits.max_objects = 300";
    let settings = settings(directory.path(), std::slice::from_ref(&base), order);
    let (crawl, handle) = Crawl::new(settings, Clock::system_clock(), Chance::system_chance());
    let free = CrawlCommand::Free(vec![pattern.clone()]);
    handle.control.send(free).unwrap();
    let outcome = crawl.run_crawl().await.unwrap();
    assert_eq!(outcome.end, CrawlEnd::ObjectLimit);
    assert_eq!(outcome.quarantined, []);
    let paths: BTreeSet<String> = asked.lock().iter().cloned().collect();
    assert!(months(&paths) > before);
    // No page was asked for twice.
    assert_eq!(paths.len(), asked.lock().len());
}

/// Returns a calendar whose days each link to one URI besides that comes to nothing.
fn calendar(besides: &'static str) -> impl Fn(&str) -> Option<String> {
    move |path| match path {
        "/" => Some(page("<a href=/day/1>calendar</a>")),
        "/robots.txt" => Some(page("User-agent: *\nDisallow: /private/\n")),
        _ => {
            let day: u32 = path.strip_prefix("/day/")?.parse().ok()?;
            let next = day + 1;
            let besides = besides.replace('N', &day.to_string());
            Some(page(&format!(
                "day {day} <a href=/day/{next}>+</a> <a href={besides}>x</a>"
            )))
        }
    }
}

/// Fails if an endless calendar is crawled without an end because each of its days has a link that comes to nothing: it
/// is excluded, missing, or its host is dead.
#[tokio::test]
async fn links_that_come_to_nothing_are_no_fruit() {
    for besides in ["/private/N", "/gone/N", "http://127.0.0.1:1/dead/N"] {
        let (base, asked) = serve_by(Arc::new(calendar(besides))).await;
        let directory = tempfile::tempdir().unwrap();
        let order = "quarantine = { after_pages = 20, trial_pages = 20 }\nretry = { max_tries = 1, delay = \"1 s\" }\nscope.max_hops = 1000\n\
                     scope.accept = [\"http://(127.0.0.1:1)\"]\nlimits.max_objects = 1000";
        let settings = settings(directory.path(), std::slice::from_ref(&base), order);
        let outcome = crawl(settings).await;
        assert_eq!(outcome.end, CrawlEnd::Finished, "{besides}");
        assert_eq!(
            outcome.quarantined.len(),
            1,
            "{besides}: {:?}",
            outcome.quarantined
        );
        let days = asked
            .lock()
            .iter()
            .filter(|path| path.starts_with("/day/"))
            .count();
        assert!(days < 200, "{besides}: {days}");
    }
}

/// Fails if real pages are lost to the quarantine that differ from each other in numbers only: tables of rates, each of
/// which leads to the next one.
#[tokio::test]
async fn tables_of_numbers_are_fetched_to_their_end() {
    let site = |path: &str| {
        let day: u32 = if path == "/" {
            0
        } else {
            path.strip_prefix("/rates/")?.parse().ok()?
        };
        let rates = (1..20)
            .map(|currency| format!("<td>{}.{}", day * 7 % 991 + currency * 3, day * 13 % 89));
        let next = (day + 1).min(600);
        let rates: String = rates.collect();
        Some(page(&format!(
            "rates {rates} <a href=/rates/{next}>next</a>"
        )))
    };
    let (base, asked) = serve_by(Arc::new(site)).await;
    let directory = tempfile::tempdir().unwrap();
    let order = "scope.max_hops = 1000\nlimits.max_objects = 2000";
    let outcome = crawl(settings(directory.path(), &[base], order)).await;
    let tables = asked
        .lock()
        .iter()
        .filter(|path| path.starts_with("/rates/"))
        .count();
    assert_eq!(
        (outcome.end, tables),
        (CrawlEnd::Finished, 600),
        "{:?}",
        outcome.quarantined
    );
}

/// Fails if a host is crawled without an end that answers anything with one page of relative links, if its real pages are
/// lost, or if nobody is told.
#[tokio::test]
async fn host_that_answers_anything_is_left() {
    let site = |path: &str| {
        if let Some(article) = path
            .strip_prefix("/news/")
            .and_then(|rest| rest.parse::<u32>().ok())
        {
            let text = "abcdefgh".repeat(usize::try_from(article).unwrap());
            let next = (article + 1).min(100);
            return Some(page(&format!("{text} <a href=/news/{next}>next</a>")));
        }
        let links = [
            "about", "shop", "staff", "press", "jobs", "help", "map", "faq",
        ];
        let links = links.map(|link| format!("<a href={link}/>{link}</a> "));
        Some(page(&format!(
            "{}<img src=logo.png><a href=/news/1>news</a>",
            links.concat()
        )))
    };
    let (base, asked) = serve_by(Arc::new(site)).await;
    let directory = tempfile::tempdir().unwrap();
    let order = "quarantine = { after_pages = 200, trial_pages = 50 }\nscope.max_hops = 1000\nlimits.max_objects = 5000";
    let settings = settings(directory.path(), &[base], order);
    let (crawl, mut handle) = Crawl::new(settings, Clock::system_clock(), Chance::system_chance());
    let outcome = crawl.run_crawl().await.unwrap();
    let asked = asked.lock().clone();
    let news = asked.iter().filter(|path| path.starts_with("/news/"));
    assert_eq!(news.count(), 100);
    let asked = asked.len();
    assert_eq!(outcome.end, CrawlEnd::Finished, "{asked}");
    assert!(asked < 1500, "{asked}");
    let [(name, held)] = outcome.quarantined.as_slice() else {
        panic!("{:?}", outcome.quarantined);
    };
    assert!(
        name.contains(" same-words-") && *held > 100,
        "{name} {held}"
    );
    let told = handle.notices.try_recv().unwrap();
    assert!(
        matches!(&told, CrawlNotice::SameWords(_, told) if told == name),
        "{told:?}"
    );
}
