//! TimeMaps with more captures than one page holds (RFC 7089, section 5): a client that follows the links gets every
//! Memento once.

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::support::chain::Chain;
use crate::support::curl::curl;
use crate::support::links::{Link, links, links_of, only};
use crate::support::made::{Response, warc};

/// The number of captures on one page.
const PAGE: usize = 5_000;

/// A URL whose last page has one capture.
const PAGED: (&str, usize) = ("http://paged.example/page?a=1&b=2", 2 * PAGE + 1);

/// A URL whose captures fill one page.
const FULL: (&str, usize) = ("http://full.example/", PAGE);

/// The media type of TimeMaps in the form of links.
const LINK_FORMAT: &str = "application/link-format";

/// The moment of a capture in the spellings that it has.
#[derive(Clone, Debug)]
struct Moment {
    /// The moment as a record has it.
    date: String,
    /// The moment as addresses have it.
    digits: String,
    /// The moment as RFC 1123 has it.
    datetime: String,
    body: String,
}

/// Returns the moments of the captures of a URL, in order: some hours apart, over years.
fn moments(count: usize) -> Vec<Moment> {
    let moment = |number: usize| {
        let seconds = 978_307_200 + i64::try_from(number).unwrap() * 20_003;
        let time = Timestamp::from_second(seconds).unwrap();
        let digits = time.strftime("%Y%m%d%H%M%S").to_string();
        Moment {
            date: time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            datetime: time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string(),
            body: format!("<p>captured at {digits}"),
            digits,
        }
    };
    (0..count).map(moment).collect()
}

/// Returns an archive with both URLs. Their records stand in another order than that of time.
fn stored() -> Chain {
    let chain = Chain::start(&[]);
    let all = [PAGED, FULL].map(|(url, count)| (url, moments(count)));
    let mut responses = Vec::new();
    for (url, moments) in &all {
        for number in 0..moments.len() {
            // The step has no divisor in common with the numbers of captures.
            let moment = &moments[number * 7_919 % moments.len()];
            responses.push(Response {
                url,
                date: &moment.date,
                fields: "Content-Type: text/html\r\n",
                body: moment.body.as_bytes(),
            });
        }
    }
    chain.store_bytes("paged.warc.gz", &warc(&responses));
    chain
}

/// A TimeMap as a client reads it.
struct TimeMap {
    address: String,
    links: Vec<Link>,
}

impl TimeMap {
    /// Fetches a TimeMap, and checks what RFC 7089 asks of each.
    #[track_caller]
    fn fetch(address: &str, url: &str, replay: &str) -> Self {
        let answer = curl(address, &[]).expect(200);
        let media = answer.field("Content-Type").unwrap_or_default();
        assert!(media.starts_with(LINK_FORMAT), "{address}: {media}");
        assert_eq!(answer.field("Memento-Datetime"), None, "{address}");
        let links = links(&answer.text());
        assert_eq!(only(&links, "original").address, url, "{address}");
        let gate = &only(&links, "timegate").address;
        assert_eq!(*gate, format!("{replay}/all/{url}"), "{address}");
        let own = only(&links, "self");
        assert_eq!(own.address, address);
        assert_eq!(own.parameter("type"), Some(LINK_FORMAT), "{address}");
        for link in &links {
            let kinds = ["original", "timegate", "self", "timemap", "memento"];
            let kinds = kinds.iter().filter(|kind| link.has(kind)).count();
            assert_eq!(kinds, 1, "{address}: {link:?} is not of one kind");
        }
        Self {
            address: address.to_owned(),
            links,
        }
    }

    /// Returns the Mementos, in the order of the TimeMap.
    fn mementos(&self) -> impl Iterator<Item = &Link> {
        self.links.iter().filter(|link| link.has("memento"))
    }

    /// Returns the links to other TimeMaps.
    fn others(&self) -> impl Iterator<Item = &Link> {
        let leads_on = |link: &&Link| link.has("timemap") || link.has("next");
        self.links.iter().filter(leads_on)
    }
}

/// Follows the links between TimeMaps from the first one to the end, each once.
#[track_caller]
fn walk(start: &str, url: &str, replay: &str) -> Vec<TimeMap> {
    let mut seen = BTreeSet::from([start.to_owned()]);
    let mut waiting = vec![start.to_owned()];
    let mut maps = Vec::new();
    while let Some(address) = waiting.pop() {
        let map = TimeMap::fetch(&address, url, replay);
        let mut found: Vec<String> = map
            .others()
            .map(|link| link.address.clone())
            .filter(|address| seen.insert(address.clone()))
            .collect();
        // The one that is named first is fetched first.
        found.reverse();
        waiting.extend(found);
        maps.push(map);
        assert!(maps.len() < 10, "more TimeMaps than pages");
    }
    maps
}

/// Checks that the Mementos of TimeMaps are the captures of a URL, each once and in order, with the first and the last
/// marked.
#[track_caller]
fn check_mementos(maps: &[TimeMap], url: &str, moments: &[Moment], replay: &str) {
    let found: Vec<&Link> = maps.iter().flat_map(TimeMap::mementos).collect();
    let address = |moment: &Moment| format!("{replay}/all/{}/{url}", moment.digits);
    for (at, (link, moment)) in found.iter().zip(moments).enumerate() {
        assert_eq!(link.address, address(moment), "Memento {at}");
        assert_eq!(link.parameter("datetime"), Some(&*moment.datetime), "{at}");
        let ends = (link.has("first"), link.has("last"));
        let expected = (at == 0, at + 1 == moments.len());
        assert_eq!(ends, expected, "first and last of Memento {at}: {link:?}");
    }
    assert_eq!(found.len(), moments.len(), "{url}");
}

/// Checks the answer at the address of a capture: its own date, those around it, and its content.
#[track_caller]
fn check_neighbours(link: &Link, at: usize, moments: &[Moment]) {
    let answer = curl(&link.address, &[]).expect(200);
    assert!(answer.text().contains(&moments[at].body), "{link:?}");
    let links = links_of(&answer);
    let datetime = |relation: &str| {
        let found: Vec<&Link> = links.iter().filter(|link| link.has(relation)).collect();
        assert!(found.len() < 2, "{relation} stands twice: {found:?}");
        found.first().and_then(|link| link.parameter("datetime"))
    };
    let expected = |at: Option<usize>| {
        let moment = at.and_then(|at| moments.get(at));
        moment.map(|moment| moment.datetime.as_str())
    };
    for (relation, other) in [
        ("first", Some(0)),
        ("prev", at.checked_sub(1)),
        ("next", Some(at + 1)),
        ("last", Some(moments.len() - 1)),
    ] {
        let found = datetime(relation);
        let expected = expected(other);
        assert_eq!(found, expected, "{relation} of Memento {at}");
    }
}

/// Returns the dates of the first and the last capture of a TimeMap, as a link has them.
fn span_of(link: &Link) -> [Option<&str>; 2] {
    ["from", "until"].map(|name| link.parameter(name))
}

/// Returns the dates of the first and the last of these captures.
fn ends_of(moments: &[Moment]) -> [Option<&str>; 2] {
    [moments.first(), moments.last()].map(|end| end.map(|moment| moment.datetime.as_str()))
}

/// Fails if a client that follows the links of a TimeMap misses a capture, gets one twice or out of order, or if a page
/// has other captures than its dates say.
#[test]
fn followed_pages_list_every_memento_once() {
    let chain = stored();
    let replay = chain.replay.as_str();
    let (url, count) = PAGED;
    let moments = moments(count);
    let gate = chain.get(&format!("/all/{url}")).expect(200);
    let start = only(&links_of(&gate), "timemap").address.clone();
    let maps = walk(&start, url, replay);
    check_mementos(&maps, url, &moments, replay);

    // The first one names the others, with the times of what is in them.
    let (index, pages) = maps.split_first().unwrap();
    assert_eq!(index.address, start);
    assert_eq!(index.mementos().count(), 0);
    assert_eq!(span_of(only(&index.links, "self")), ends_of(&moments));
    let named: Vec<&Link> = index.others().collect();
    let chunks: Vec<&[Moment]> = moments.chunks(PAGE).collect();
    assert_eq!((named.len(), pages.len()), (chunks.len(), chunks.len()));
    for ((link, page), chunk) in named.into_iter().zip(pages).zip(&chunks) {
        assert_eq!(link.address, page.address);
        assert_eq!(link.parameter("type"), Some(LINK_FORMAT), "{link:?}");
        assert_eq!(span_of(link), ends_of(chunk), "{link:?}");
        let own = only(&page.links, "self");
        assert_eq!(span_of(own), ends_of(chunk), "{}", page.address);
        assert_eq!(page.mementos().count(), chunk.len(), "{}", page.address);
    }
    let beyond = format!("/all/timemap/link/{}/{url}", chunks.len() + 1);
    chain.get(&beyond).expect(404);

    // The captures on both sides of the border of a page know of each other.
    let mementos: Vec<&Link> = maps.iter().flat_map(TimeMap::mementos).collect();
    for at in [0, PAGE - 1, PAGE, count - 1] {
        check_neighbours(mementos[at], at, &moments);
    }

    // The forms without pages have all of them.
    for form in ["json", "cdxj"] {
        let answer = chain.get(&format!("/all/timemap/{form}/{url}")).expect(200);
        let text = answer.text();
        let lines: Vec<&str> = text.lines().collect();
        for (at, (line, moment)) in lines.iter().zip(&moments).enumerate() {
            assert!(line.contains(&moment.digits), "{form}, line {at}: {line}");
        }
        assert_eq!(lines.len(), count, "{form}");
    }
    chain.archive.stop();
}

/// Fails if captures that fill one page are cut into several TimeMaps, or if one of them is left out.
#[test]
fn full_page_is_one_time_map() {
    let chain = stored();
    let replay = chain.replay.as_str();
    let (url, count) = FULL;
    let start = format!("{replay}/all/timemap/link/{url}");
    let maps = walk(&start, url, replay);
    assert_eq!(maps.len(), 1);
    check_mementos(&maps, url, &moments(count), replay);
    chain.archive.stop();
}
