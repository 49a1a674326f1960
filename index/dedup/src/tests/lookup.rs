//! Lookups, compared with a map that has everything in memory.

use std::collections::BTreeMap;

use tools_testing::Random;

use super::*;

/// The beginnings and the bytes of URLs that sort in ways that are easy to get wrong.
const HOSTS: [&str; 4] = [
    "http://a.dk/",
    "HTTP://a.dk/",
    "https://a.dk/",
    "http://a.dk",
];
const LETTERS: [&str; 16] = [
    "a",
    "b",
    "/",
    "!",
    "\"",
    "\\",
    "~",
    "%20",
    " ",
    "\t",
    "\u{7f}",
    "æ",
    "\u{2028}",
    "😀",
    "{",
    "é\u{301}",
];

fn url(random: &mut Random) -> String {
    let host = HOSTS[usize::try_from(random.below(4)).unwrap()].to_owned();
    let letters = (0..random.below(4)).map(|_| LETTERS[usize::try_from(random.below(16)).unwrap()]);
    letters.fold(host, |url, letter| url + letter)
}

/// Returns a line of our captures.
fn line(url: &str, second: u64, payload: &str, offset: u64) -> String {
    let url = url
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\t', "\\t");
    format!(
        r#"x {} {{"url": "{url}", "status": "200", "digest": "{}", "offset": "{offset}", "filename": "f"}}"#,
        20_260_102_030_000 + second,
        sha1(payload)
    )
}

/// Fails if a lookup finds another capture than a map does, or none, at any place of the file.
#[test]
fn lookups_agree_with_map() {
    for seed in 1..=20 {
        let mut random = Random::new(seed);
        let mut latest = BTreeMap::<String, (u64, u64)>::new();
        let mut first = BTreeMap::<(String, String), (u64, u64)>::new();
        let mut payloads = BTreeMap::<String, Vec<u64>>::new();
        let mut lines = Vec::new();
        for offset in 0..random.below(400) {
            let url = url(&mut random);
            let second = offset % 60;
            let payload = format!("{}", random.below(50));
            lines.push(line(&url, second, &payload, offset));
            // Two URLs that differ in an escape only are one key.
            let key = crate::layout::escape_key(&url);
            // Lines of one second are sorted by what else is in them.
            let newest = latest.entry(key.clone()).or_insert((second, offset));
            *newest = (*newest).max((second, offset));
            let oldest = first.entry((key, payload.clone()));
            let oldest = oldest.or_insert((second, offset));
            *oldest = (*oldest).min((second, offset));
            payloads.entry(payload).or_default().push(offset);
        }
        let built = BuiltIndex::new(&[Metadata::job(1).captures(&lines).gzip()]);
        built.assert_no_problem();
        let index = built.index();
        for (url, (second, _)) in &latest {
            let found = index.latest_by_url(url).unwrap().unwrap();
            assert_eq!(found.offset % 60, *second, "{seed} {url:?}");
            assert_eq!(crate::layout::escape_key(&found.uri), *url, "{seed}");
        }
        for ((url, payload), (second, _)) in &first {
            let found = index
                .by_url_and_digest(url, &sha1(payload))
                .unwrap()
                .unwrap();
            assert_eq!(found.offset % 60, *second, "{seed} {url:?}");
            assert_eq!(found.digest, sha1(payload));
        }
        for (payload, offsets) in &payloads {
            let found = index.by_digest(&sha1(payload)).unwrap().unwrap();
            assert!(offsets.contains(&found.offset), "{seed}");
        }
        for _ in 0..200 {
            let url = url(&mut random);
            let payload = format!("{}", random.below(60));
            let key = crate::layout::escape_key(&url);
            let found = index.latest_by_url(&url).unwrap();
            assert_eq!(found.is_some(), latest.contains_key(&key), "{seed} {url:?}");
            let found = index.by_url_and_digest(&url, &sha1(&payload)).unwrap();
            let is_there = first.contains_key(&(key, payload.clone()));
            assert_eq!(found.is_some(), is_there, "{seed} {url:?}");
            let found = index.by_digest(&sha1(&payload)).unwrap();
            assert_eq!(found.is_some(), payloads.contains_key(&payload));
        }
    }
}

/// Fails if lines that are much longer than what is read at first cannot be found between short ones.
#[test]
fn long_lines_are_found_between_short_ones() {
    let long = |n: usize| format!("http://a.dk/{n}{}", "/".repeat(n * 1500));
    let lines = (0..20).map(|n| line(&long(n), 1, "one", n as u64));
    let lines: Vec<String> = lines.collect();
    let built = BuiltIndex::new(&[Metadata::job(1).captures(&lines).plain()]);
    built.assert_no_problem();
    let index = built.index();
    for n in 0..20 {
        let found = index.latest_by_url(&long(n)).unwrap().unwrap();
        assert_eq!(found.offset, n as u64);
        let found = index.by_url_and_digest(&long(n), &sha1("one")).unwrap();
        assert_eq!(found.unwrap().offset, n as u64);
    }
}

/// Fails if lines beyond the memory are lost, repeated or out of order.
#[test]
fn small_memory_gives_same_file() {
    let urls: Vec<String> = (0..5000)
        .map(|n| format!("http://a.dk/{}", n * 7919 % 5000))
        .collect();
    let seconds = (0..).map(|n: u32| n % 3000);
    let logged = urls.iter().zip(seconds.clone());
    let logged = logged.map(|(url, second)| log_line(url, second, url, "-"));
    let indexed = urls.iter().zip(seconds);
    let indexed = indexed.map(|(url, second)| cdx_line(url, second, "f", second.into()));
    let first = Metadata::job(1)
        .log(&logged.collect::<Vec<_>>())
        .cdx(&indexed.collect::<Vec<_>>());
    let repeated = urls.iter().take(1000).zip(0_u32..).map(|(url, second)| {
        log_line(
            &format!("{url}?2"),
            second,
            url,
            &duplicate("f", second.into(), second),
        )
    });
    let second = Metadata::job(2).log(&repeated.collect::<Vec<_>>());
    let inputs = [first.gzip(), second.plain()];
    let large = BuiltIndex::new(&inputs);
    let small = BuiltIndex::with_memory(&inputs, 32 * 1024);
    assert_eq!(small.report, large.report);
    assert_eq!(small.text(), large.text());
}

/// Fails if one thread's search disturbs that of another.
#[test]
fn threads_ask_one_index() {
    let lines = (0..500).map(|n| line(&format!("http://a.dk/{n}"), 1, "one", n));
    let built = BuiltIndex::new(&[Metadata::job(1)
        .captures(&lines.collect::<Vec<_>>())
        .plain()]);
    let index = built.index();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for n in 0..500 {
                    let found = index.latest_by_url(&format!("http://a.dk/{n}"));
                    assert_eq!(found.unwrap().unwrap().offset, n);
                }
            });
        }
    });
}
