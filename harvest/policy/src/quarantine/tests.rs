//! Tests of the quarantine on sites that are crawled breadth first, in memory.

use std::collections::{BTreeMap, HashSet, VecDeque};

use super::*;

/// A response: its text, and the links in it. `None` for 404.
type PageResponse = Option<(String, Vec<String>)>;

/// A finished crawl: how many pages of each pattern were fetched, and the quarantine.
struct Crawl {
    pages: BTreeMap<String, usize>,
    texts: HashSet<String>,
    quarantine: Quarantine,
    /// The names of words that were put under quarantine.
    same_words: Vec<String>,
}

impl Crawl {
    fn count(&self, pattern: &str) -> usize {
        *self.pages.get(&format!("a.dk{pattern}")).unwrap_or(&0)
    }

    fn held_patterns(&self) -> Vec<&str> {
        self.quarantine.held_patterns().collect()
    }
}

/// The most pages of a crawl: one that gets here is in a trap.
const ENDLESS: usize = 60_000;

/// Crawls a site from its home page until there is no URI left, without trials.
fn crawl(site: impl Fn(&Url) -> PageResponse) -> Crawl {
    crawl_with_trial(site, 0)
}

/// Crawls a site from its home page until there is no URI left.
fn crawl_with_trial(site: impl Fn(&Url) -> PageResponse, trial_pages: u32) -> Crawl {
    let home = Url::parse("http://a.dk/").unwrap();
    let mut crawl = Crawl {
        pages: BTreeMap::new(),
        texts: HashSet::new(),
        quarantine: Quarantine::new(QuarantineRules {
            after_pages: 200,
            trial_pages,
        }),
        same_words: Vec::new(),
    };
    let mut seen = HashSet::from([home.clone()]);
    let mut queue = VecDeque::from([home]);
    let mut held = VecDeque::new();
    let mut by_words: BTreeMap<Url, String> = BTreeMap::new();
    let mut fetched = 0;
    while fetched < ENDLESS {
        let next = queue.pop_front();
        let is_idle = next.is_none();
        let Some(url) = next.or_else(|| held.pop_front()) else {
            return crawl;
        };
        let pattern = crawl.quarantine.holding_pattern(&url).map(str::to_owned);
        let name = pattern.or_else(|| by_words.get(&url).cloned());
        let is_trial = name.is_some();
        if let Some(pattern) = name {
            if !is_idle {
                held.push_back(url);
                continue;
            }
            if crawl.quarantine.trial_pages_left(&pattern) == 0 {
                continue;
            }
            crawl.quarantine.charge_trial(&pattern, 1);
        }
        fetched += 1;
        let Some((text, links)) = site(&url) else {
            crawl.quarantine.note_failure(&url);
            continue;
        };
        *crawl.pages.entry(url_pattern(&url)).or_default() += 1;
        let links = links.iter().map(|link| url.join(link).unwrap());
        let new: Vec<Url> = links.filter(|link| seen.insert(link.clone())).collect();
        let content = if url.path().starts_with("/sitemap") {
            ResponseContent::Manifest
        } else {
            ResponseContent::Text(text_sketch(text.as_bytes(), &url))
        };
        if let Some(name) = crawl.quarantine.holding_words(&url, content) {
            by_words.extend(new.iter().map(|link| (link.clone(), name.to_owned())));
        }
        let finding = crawl
            .quarantine
            .note_response(&url, content, &new, is_trial);
        crawl.same_words.extend(finding.words);
        crawl.texts.insert(text);
        queue.extend(new);
    }
    panic!("the crawl does not end: {:?}", crawl.pages);
}

/// Returns a word of letters that no other number has.
fn word(number: u64) -> String {
    let digits = number.to_string();
    digits
        .bytes()
        .map(|digit| char::from(digit - b'0' + b'a'))
        .collect()
}

fn number(url: &Url, prefix: &str) -> Option<u64> {
    let rest = url.as_str().strip_prefix("http://a.dk/")?;
    rest.strip_prefix(prefix)?.parse().ok()
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "a site answers with it or with nothing"
)]
fn page(text: impl Into<String>, links: Vec<String>) -> PageResponse {
    Some((text.into(), links))
}

fn month(number: u64) -> String {
    format!("{} {}", word(100 + number % 12), 2000 + number / 12)
}

/// Fails if a calendar is crawled on and on, or a page beside it is lost.
#[test]
fn endless_calendar_is_held() {
    let crawl = crawl(|url| {
        if let Some(number) = number(url, "cal?month=") {
            let links = [number + 1, number.saturating_sub(1)].map(|n| format!("/cal?month={n}"));
            return page(
                month(number),
                [links.to_vec(), vec!["/".to_owned()]].concat(),
            );
        }
        match number(url, "article/") {
            Some(number) => page(word(number), vec!["/cal?month=24000".to_owned()]),
            None => page("home", (0..500).map(|n| format!("/article/{n}")).collect()),
        }
    });
    assert_eq!(crawl.held_patterns(), ["a.dk/cal?month"]);
    assert_eq!(crawl.count("/article/#"), 500);
    assert!(
        (200..250).contains(&crawl.count("/cal?month")),
        "{:?}",
        crawl.pages
    );
}

/// Fails if patterns of a trap that lead to each other keep each other alive.
#[test]
fn calendar_of_several_patterns_is_held() {
    let crawl = crawl(|url| {
        if let Some(number) = number(url, "month/") {
            let days = (1..=30).map(|day| format!("/day/{}", number * 30 + day));
            return page(
                month(number),
                days.chain([format!("/month/{}", number + 1)]).collect(),
            );
        }
        if let Some(day) = number(url, "day/") {
            let views = [
                "/add?day=",
                "/print?day=",
                "/export.ics?day=",
                "/private/",
                "/day/",
            ];
            let links = views.map(|view| format!("{view}{}", day + 1));
            return page(
                format!("nothing on {day} {}", month(day / 30)),
                links.to_vec(),
            );
        }
        match url.path() {
            "/add" => page("add an entry", vec![]),
            "/print" | "/export.ics" => page("nothing", vec![]),
            "/" => page("home", vec!["/month/24000".to_owned()]),
            _ => None,
        }
    });
    assert!(
        crawl.held_patterns().contains(&"a.dk/day/#"),
        "{:?}",
        crawl.held_patterns()
    );
    assert!(
        crawl.pages.values().sum::<usize>() < 4_000,
        "{:?}",
        crawl.pages
    );
}

/// Fails if a trap that makes up its words has no end.
#[test]
fn chain_of_made_up_text_is_held_later() {
    let crawl = crawl(|url| {
        let number = number(url, "x/").unwrap_or(0);
        page(word(number), vec![format!("/x/{}", number + 1)])
    });
    assert_eq!(crawl.held_patterns(), ["a.dk/x/#"]);
    // The home page vouches for the first one.
    assert_eq!(crawl.count("/x/#"), 4_001);
}

/// Fails if a session id in the path multiplies a site without an end, or a page of it is never fetched.
#[test]
fn session_id_in_path_is_held() {
    let crawl = crawl(|url| {
        let parts: Vec<&str> = url.path().split('/').skip(1).collect();
        let (session, name) = match parts.as_slice() {
            ["s", session, name] => (u64::from_str_radix(session, 16).ok()?, *name),
            _ => (0xa1b2_c3d4, "page-a"),
        };
        // Each response begins a session of its own.
        let next = (session.wrapping_mul(6_364_136_223_846_793_005) >> 20) | 0xa000_0000_0000;
        let links = (0..20).map(|n| format!("/s/{next:x}1/page-{}", word(n)));
        page(format!("{name} {session:x}1"), links.collect())
    });
    for number in 0..20 {
        let count = crawl.count(&format!("/s/*/page-{}", word(number)));
        assert!((1..300).contains(&count), "{:?}", crawl.pages);
    }
}

/// Fails if relative links that lead into themselves are followed on and on.
#[test]
fn growing_path_is_held() {
    let crawl = crawl(|url| {
        if url.path() == "/" {
            return page("home", vec!["/a/".to_owned(), "/real/".to_owned()]);
        }
        let text = format!("the page {}", url.path().split('/').nth(1).unwrap());
        page(text, ["a/", "b/", "c/"].map(str::to_owned).to_vec())
    });
    assert!(
        crawl.pages.values().sum::<usize>() < 5_000,
        "{:?}",
        crawl.pages
    );
    assert!(crawl.texts.contains("the page real"));
}

/// Fails if a large archive is taken for a trap: lists with articles that link to their neighbours, with images or
/// without.
#[test]
fn archive_with_pagination_survives() {
    for (has_images, per_list) in [(true, 10), (false, 10), (false, 100)] {
        let lists = 10_000 / per_list;
        let crawl = crawl(|url| {
            if let Some(number) = number(url, "article/") {
                let neighbours = [number.saturating_sub(1), (number + 1).min(9_999)];
                let mut links = neighbours.map(|n| format!("/article/{n}")).to_vec();
                if has_images {
                    links.push(format!("/image/{number}.jpg"));
                }
                return page(format!("about {}", word(number)), links);
            }
            let list = number(url, "list?page=").unwrap_or(0);
            if url.path().starts_with("/image/") {
                return page(format!("bytes{}", word(list)), vec![]);
            }
            let articles = list * per_list..(list + 1) * per_list;
            let titles: Vec<String> = articles.clone().map(word).collect();
            let links = articles.map(|n| format!("/article/{n}"));
            let more = [format!("/list?page={}", (list + 1).min(lists - 1))];
            page(titles.join(" "), links.chain(more).collect())
        });
        assert_eq!(crawl.held_patterns(), Vec::<&str>::new());
        assert_eq!(crawl.count("/article/#"), 10_000);
        assert!(crawl.count("/list?page") + 1 >= usize::try_from(lists).unwrap());
    }
}

/// Fails if a site of which all pages have one pattern is taken for a trap.
#[test]
fn site_of_one_pattern_survives() {
    let crawl = crawl(|url| {
        let number = number(url, "index.php?id=").unwrap_or(0);
        let below = (1..=4).map(|n| number * 4 + n).filter(|n| *n < 12_000);
        page(
            word(number),
            below.map(|n| format!("/index.php?id={n}")).collect(),
        )
    });
    assert_eq!(crawl.held_patterns(), Vec::<&str>::new());
    assert_eq!(crawl.count("/index.php?id"), 11_999);
}

/// Fails if pages with the same words are lost although a sitemap or a page with new content leads to them.
#[test]
fn pages_of_same_words_survive() {
    let shells = crawl(|url| match url.path() {
        "/" => page(
            "home",
            vec!["/sitemap1.xml".to_owned(), "/sitemap2.xml".to_owned()],
        ),
        "/sitemap1.xml" => page("", (0..2_000).map(|n| format!("/app/{n}")).collect()),
        "/sitemap2.xml" => page("", (2_000..4_000).map(|n| format!("/app/{n}")).collect()),
        _ => page("enable scripts", vec![]),
    });
    assert_eq!(shells.count("/app/#"), 4_000);
    let photos = crawl(|url| match number(url, "photo/") {
        Some(number) => page(
            "photo",
            vec![
                format!("/full/{number}.jpg"),
                format!("/photo/{}", (number + 1).min(2_999)),
            ],
        ),
        None if url.path() == "/" => page("home", vec!["/photo/0".to_owned()]),
        None => page(
            word(
                url.path()
                    .bytes()
                    .map(u64::from)
                    .fold(7, |sum, byte| sum * 31 % 1_000_003 + byte),
            ),
            vec![],
        ),
    });
    assert_eq!(photos.count("/photo/#"), 3_000);
}

/// Fails if a freed pattern is held back, or is put under quarantine again.
#[test]
fn freed_pattern_stays_free() {
    let mut quarantine = Quarantine::new(QuarantineRules {
        after_pages: 2,
        trial_pages: 0,
    });
    let url = |number: u32| Url::parse(&format!("http://a.dk/cal/{number}")).unwrap();
    let fetch = |quarantine: &mut Quarantine, number| {
        let finding = quarantine.note_response(
            &url(number),
            ResponseContent::Digest(1),
            &[url(number + 1)],
            false,
        );
        finding.pattern
    };
    assert_eq!(
        [1, 2].map(|number| fetch(&mut quarantine, number)),
        [None, None]
    );
    assert_eq!(fetch(&mut quarantine, 3).as_deref(), Some("a.dk/cal/#"));
    assert_eq!(quarantine.holding_pattern(&url(9)), Some("a.dk/cal/#"));
    assert!(quarantine.free_pattern("a.dk/cal/#") && !quarantine.free_pattern("a.dk/cal/#"));
    assert_eq!(quarantine.holding_pattern(&url(9)), None);
    assert!((4..100).all(|number| fetch(&mut quarantine, number).is_none()));
    assert_eq!(
        quarantine.freed_patterns().collect::<Vec<_>>(),
        ["a.dk/cal/#"]
    );
}

/// Fails if a crawl that is resumed has forgotten what was held, or one without quarantine holds something.
#[test]
fn quarantine_is_resumed_or_off() {
    let mut resumed = Quarantine::new(QuarantineRules {
        after_pages: 200,
        trial_pages: 0,
    });
    resumed.hold_pattern("a.dk/cal/#");
    let url = Url::parse("https://a.dk/cal/17").unwrap();
    assert_eq!(resumed.holding_pattern(&url), Some("a.dk/cal/#"));
    let mut off = Quarantine::new(QuarantineRules::default());
    assert!((0..10_000).all(|_| {
        off.note_response(&url, ResponseContent::Digest(1), [], false)
            .pattern
            .is_none()
    }));
}

/// Fails if daily tables that lead to each other, and differ in nothing but numbers, are lost; or a calendar has a trial
/// without an end.
#[test]
fn tables_of_numbers_are_kept_whole() {
    let tables = |url: &Url| {
        let day = number(url, "rates/").unwrap_or(0);
        let rates =
            (1..30).map(|currency| format!("{}.{}", day * 7 % 991 + currency * 3, day * 13 % 89));
        let next = [format!("/rates/{}", (day + 1).min(600))];
        page(rates.collect::<Vec<_>>().join(" "), next.to_vec())
    };
    let kept = crawl_with_trial(tables, 500);
    assert_eq!(kept.count("/rates/#"), 600);
    let calendar = |url: &Url| {
        let day = number(url, "day/").unwrap_or(0);
        page(
            format!("nothing at {}", day % 24),
            vec![format!("/day/{}", day + 1)],
        )
    };
    let held = crawl_with_trial(calendar, 500);
    assert_eq!(held.held_patterns(), ["a.dk/day/#"]);
    assert!(
        (650..750).contains(&held.count("/day/#")),
        "{:?}",
        held.pages
    );
}

/// Returns the search of a shop with six facets of five values, each of which a page adds, leaves out or changes.
fn facets(url: &Url) -> PageResponse {
    let chosen: BTreeMap<String, String> = url.query_pairs().into_owned().collect();
    let mut links: Vec<String> = (0..20).map(|item| format!("/item/{item}")).collect();
    for facet in ["color", "size", "brand", "price", "sort", "shape"] {
        for value in ["", "a", "b", "c", "d", "e"] {
            let mut other = chosen.clone();
            other.insert(facet.to_owned(), value.to_owned());
            other.retain(|_, value| !value.is_empty());
            let query: Vec<String> = other
                .iter()
                .map(|(key, value)| format!("{key}={value}"))
                .collect();
            links.push(format!("/search?{}", query.join("&")));
        }
    }
    page("items found", links)
}

/// Fails if each set of the keys of a search is a trap of its own, or the script behind it is lost for its real pages.
#[test]
fn facets_are_held_as_one() {
    let shop = crawl_with_trial(
        |url| match url.path() {
            "/search" => facets(url),
            "/" => page("home", vec!["/search?color=a".to_owned()]),
            path => page(format!("item {}", word(path.len() as u64)), vec![]),
        },
        500,
    );
    assert_eq!(shop.count("/item/#"), 20);
    let searches = shop.pages.values().sum::<usize>() - 21;
    println!("{searches} of 46,656 searches are asked for");
    assert!(searches < 1_500, "{:?}", shop.pages);
    // A calendar of the same script, which goes before.
    let mut quarantine = Quarantine::new(QuarantineRules {
        after_pages: 200,
        trial_pages: 0,
    });
    let mut note = |text: &str, url: &str, next: &str| {
        let [url, next] =
            [url, next].map(|query| Url::parse(&format!("http://a.dk/index.php?{query}")).unwrap());
        let content = ResponseContent::Text(text_sketch(text.as_bytes(), &url));
        quarantine
            .note_response(&url, content, &[next], false)
            .pattern
    };
    let days = (0..250).map(|day| {
        note(
            "nothing",
            &format!("day={day}&view=full"),
            &format!("day={}&view=full", day + 1),
        )
    });
    assert_eq!(days.flatten().count(), 1);
    for id in 0..3_000 {
        let held = note(
            &word(id),
            &format!("id={id}&view=full"),
            &format!("id={}&view=full", id + 1),
        );
        assert_eq!(held, None, "{id}");
    }
}

/// Fails if a host is crawled without an end that answers anything with one page of relative links, or is told for each
/// path; or if its real pages are lost.
#[test]
fn page_under_many_paths_is_left() {
    let crawl = crawl_with_trial(
        |url| {
            if let Some(number) = number(url, "news/") {
                return page(
                    word(number),
                    vec![format!("/news/{}", (number + 1).min(300))],
                );
            }
            let links = (b'a'..=b't').map(|letter| format!("{}/", char::from(letter)));
            let links = links.chain(["/news/1".to_owned()]).collect();
            page("sorry", links)
        },
        100,
    );
    assert_eq!(crawl.same_words.len(), 1, "{:?}", crawl.same_words);
    assert_eq!(crawl.count("/news/#"), 300);
    let pages: usize = crawl.pages.values().sum();
    assert!((400..2000).contains(&pages), "{pages}");
}

/// Fails if an album is cut: all its pages have the same words, in folders of many names, and an image each.
#[test]
fn albums_of_same_words_are_kept_whole() {
    let albums = 60;
    let images = 20;
    let crawl = crawl_with_trial(
        |url| {
            if url.path() == "/" {
                let albums = (0..albums).map(|album| format!("/{}/1.html", word(album)));
                return page("albums", albums.collect());
            }
            let (album, file) = url.path()[1..].split_once('/')?;
            let image = file.strip_suffix(".jpg");
            if image.is_some() {
                return page(
                    url.path().replace(|c: char| c.is_ascii_digit(), "x")
                        + &word(image?.parse().ok()?),
                    vec![],
                );
            }
            let number: u32 = file.strip_suffix(".html")?.parse().ok()?;
            let next = (number + 1).min(images);
            page(
                "index back next",
                vec![format!("/{album}/{number}.jpg"), format!("{next}.html")],
            )
        },
        100,
    );
    let pages: usize = crawl.pages.values().sum();
    let all = albums * u64::from(images) * 2 + 1;
    assert_eq!(pages as u64, all, "{:?}", crawl.held_patterns());
}

/// Fails if the name of common words is forgotten by the next process, or they pass for new there.
#[test]
fn common_words_stay_known() {
    let mut first = Quarantine::new(QuarantineRules {
        after_pages: 200,
        trial_pages: 10,
    });
    let sketch = |text: &str, url: &Url| ResponseContent::Text(text_sketch(text.as_bytes(), url));
    let page = |number: u64| Url::parse(&format!("http://a.dk/{}/x", word(number))).unwrap();
    let names = (0..100).filter_map(|number| {
        let url = page(number);
        first
            .note_response(&url, sketch("sorry", &url), [], false)
            .words
    });
    let names: Vec<String> = names.collect();
    let [name] = names.as_slice() else {
        panic!("{names:?}");
    };
    let mut next = Quarantine::new(first.settings);
    next.hold_pattern(name);
    let url = page(200);
    assert_eq!(
        next.holding_words(&url, sketch("sorry", &url)),
        Some(name.as_str())
    );
    assert_eq!(next.holding_words(&url, sketch("", &url)), None);
    assert_eq!(next.held_words(&url).collect::<Vec<_>>(), [name]);
    next.charge_trial(name, 10);
    next.note_response(&url, sketch("sorry", &url), &[page(201)], true);
    assert_eq!(next.trial_pages_left(name), 0);
    next.free_pattern(name);
    assert_eq!(next.holding_words(&url, sketch("sorry", &url)), None);
}
