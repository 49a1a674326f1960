//! Metadata files and indexes that are damaged, foreign or from a liar.

use super::*;
use crate::DedupError;
use crate::layout::MAX_LINE;

const URL: &str = "http://a.dk/";

/// The offset of the first of [`metadata`]'s twenty records, each of which has one byte.
const FIRST_OFFSET: u64 = 12_340;

fn metadata() -> Metadata {
    let urls: Vec<String> = (0..20).map(|n| format!("http://a.dk/{n}")).collect();
    let logged = urls.iter().map(|url| log_line(url, 1, url, "-"));
    let indexed = urls.iter().zip(FIRST_OFFSET..);
    let indexed = indexed.map(|(url, offset)| cdx_line(url, 1, "f", offset));
    Metadata::job(1)
        .log(&logged.collect::<Vec<_>>())
        .cdx(&indexed.collect::<Vec<_>>())
}

fn opened(bytes: &[u8]) -> Result<DedupIndex, DedupError> {
    let mut file = NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut file, bytes).unwrap();
    DedupIndex::open(file.path())
}

/// Fails if metadata that is cut gives a place that it did not have, ends the build, or is not named.
#[test]
fn every_cut_of_metadata_gives_true_places() {
    // Of a compressed record that is cut, nothing shows whether it was changed as well.
    for ((name, bytes), expected) in [(metadata().plain(), 19), (metadata().gzip(), 0)] {
        let mut most = 0;
        for cut in (1..bytes.len()).step_by(7) {
            let built = BuiltIndex::new(&[(name.clone(), bytes[..cut].to_vec())]);
            assert_ne!(built.report.problem_count, 0, "{name} {cut}");
            let index = built.index();
            most = most.max(index.count_captures());
            for n in 0..20 {
                let url = format!("http://a.dk/{n}");
                let found = index.latest_by_url(&url).unwrap();
                assert!(
                    found.is_none_or(|found| found.offset == FIRST_OFFSET + n),
                    "{name} {cut}"
                );
            }
        }
        assert_eq!(most, expected, "{name}");
    }
}

/// Fails if a record whose bytes were changed gives places, compressed or not.
#[test]
fn changed_metadata_records_are_left_out() {
    let (name, mut bytes) = metadata().plain();
    let at = bytes.windows(5).position(|part| part == b"12345").unwrap();
    bytes[at] = b'9';
    let built = BuiltIndex::new(&[(name, bytes)]);
    assert_eq!(built.report.captures, 0);
    let [problem] = built.problems().try_into().unwrap();
    assert!(problem.contains("was changed, by its digest"), "{problem}");

    let undigested = Metadata {
        has_no_digests: true,
        ..metadata()
    };
    for (name, bytes) in [metadata().gzip(), undigested.gzip()] {
        for at in (20..bytes.len()).step_by(3) {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x10;
            let built = BuiltIndex::new(&[(name.clone(), bytes)]);
            let index = built.index();
            for n in 0..20 {
                let found = index.latest_by_url(&format!("http://a.dk/{n}")).unwrap();
                let is_right = found.is_none_or(|found| found.offset == FIRST_OFFSET + n);
                assert!(is_right, "{at}");
            }
        }
    }
}

/// Fails if one bad line takes others with it, or is not named with its number.
#[test]
fn bad_lines_are_named_and_others_read() {
    let long = format!("http://a.dk/{}", "x".repeat(MAX_LINE));
    let metadata = Metadata::job(1)
        .log(&[
            "no line of a log".to_owned(),
            log_line(URL, 1, "one", "-"),
            log_line(&long, 1, "one", "-"),
        ])
        .cdx(&[
            cdx_line(URL, 1, "f", 1),
            cdx_line(URL, 1, "f", 1).replace(" 1 d41d", " one d41d"),
        ]);
    let built = BuiltIndex::new(&[metadata.plain()]);
    assert_eq!(built.place(URL, "one"), Some(("f".to_owned(), 1)));
    let problems = built.problems();
    assert_eq!(problems.len(), 3, "{problems:?}");
    assert!(
        problems[0].contains("line 1 is left out: 5 fields"),
        "{problems:?}"
    );
    assert!(
        problems[1].contains("line 3 is left out: it is longer"),
        "{problems:?}"
    );
    assert!(
        problems[2].contains("line 2 is left out: offset"),
        "{problems:?}"
    );
}

/// Fails if a text from a metadata file steers a terminal, or fills the report.
#[test]
fn problems_are_short_and_without_control_characters() {
    let long = "x".repeat(10_000);
    let url = format!("http://a.dk/\u{1b}[2J{long}");
    let metadata = Metadata::job(1).log(&[
        log_line(&url, 2, "one", &duplicate("\u{1b}[2J", 1, 1)),
        format!("2026-01-02T03:00:00.900Z 200 2 http://a.dk/ - - text/html #001 \u{1b}[2J{long} -"),
    ]);
    let built = BuiltIndex::new(&[metadata.plain()]);
    let problems = built.problems();
    assert_eq!(problems.len(), 2, "{problems:?}");
    for problem in problems {
        assert!(problem.contains("\\u{1b}[2J"), "{problem}");
        assert!(!problem.contains(char::is_control), "{problem}");
        assert!(problem.len() < 1000, "{problem}");
    }
}

/// Fails if a line of an index becomes longer than its readers read.
#[test]
fn capture_with_too_long_line_is_named() {
    // Each `æ` of the URL has two bytes in the key and six in the JSON.
    let url = format!("http://a.dk/{}", "æ".repeat(10_000));
    let captured = format!(
        r#"x 20260102030001 {{"url": "{url}", "digest": "{}", "offset": "1", "filename": "f"}}"#,
        sha1("one")
    );
    let built = BuiltIndex::new(&[Metadata::job(1).captures(&[captured]).plain()]);
    assert_eq!(built.report.captures, 0);
    let [problem] = built.problems().try_into().unwrap();
    assert!(
        problem.contains("its line would be longer than 65536 bytes"),
        "{problem}"
    );
}

/// Fails if a file that is no metadata passes for one without captures.
#[test]
fn files_without_metadata_are_named() {
    let foreign = ("a.txt".to_owned(), b"hello\n".to_vec());
    let other = Metadata::job(1).record("reports/crawl-report.txt?harvestid=1", &["x".to_owned()]);
    let built = BuiltIndex::new(&[foreign, other.plain()]);
    let problems = built.problems().join("\n");
    assert!(problems.contains("a.txt: "), "{problems}");
    assert!(
        problems.contains("1-metadata-1.warc: holds no crawl log"),
        "{problems}"
    );
}

/// Fails if an index that is cut, or longer than it was, is opened.
#[test]
fn every_cut_of_index_is_refused() {
    let bytes = BuiltIndex::new(&[metadata().plain()]).text().into_bytes();
    for cut in 0..bytes.len() {
        let error = opened(&bytes[..cut]).unwrap_err();
        let message = error.to_string();
        assert!(
            matches!(error, DedupError::Damaged { .. }),
            "{cut}: {message}"
        );
        assert!(
            message.contains("build it again with `holdfast index dedup`"),
            "{message}"
        );
    }
    let longer = [bytes.as_slice(), b"x"].concat();
    assert!(matches!(opened(&longer), Err(DedupError::Damaged { .. })));
}

/// Fails if a changed byte is not noticed, makes a lookup panic, or lets it run without an end.
#[test]
fn every_flipped_byte_of_index_is_seen() {
    let bytes = BuiltIndex::new(&[metadata().plain()]).text().into_bytes();
    let whole = opened(&bytes).unwrap();
    whole.verify_file().unwrap();
    for at in 0..bytes.len() {
        for bit in [0x01, 0x80] {
            let mut changed = bytes.clone();
            changed[at] ^= bit;
            let Ok(index) = opened(&changed) else {
                continue;
            };
            assert!(
                matches!(index.verify_file(), Err(DedupError::Damaged { .. })),
                "{at}"
            );
            for url in ["http://a.dk/3", "http://a.dk/none"] {
                let digest = sha1(url);
                for found in [
                    index.latest_by_url(url),
                    index.by_url_and_digest(url, &digest),
                    index.by_digest(&digest),
                ] {
                    let is_damage = matches!(found, Err(DedupError::Damaged { .. }));
                    assert!(found.is_ok() || is_damage, "{at}");
                }
            }
        }
    }
}

/// Fails if a line of the section by digest that was changed leads to other content, or into a line.
#[test]
fn wrong_places_in_index_are_damage() {
    let text = BuiltIndex::new(&[metadata().plain()]).text();
    let digest = sha1("http://a.dk/3");
    let start = text.rfind(&digest.to_string()).unwrap();
    let line = text[start..].lines().next().unwrap();
    let (beginning, offset) = line.rsplit_once(' ').unwrap();
    let right: u64 = offset.parse().unwrap();
    let first_line = 18;
    for wrong in [first_line, right + 1, 3, 99_999] {
        let changed = text.replace(line, &format!("{beginning} {wrong:020}"));
        let index = opened(changed.as_bytes()).unwrap();
        let found = index.by_digest(&digest);
        assert!(
            matches!(found, Err(DedupError::Damaged { .. })),
            "{found:?}"
        );
    }
}

/// Fails if a foreign file or a newer version is taken for an index that is damaged.
#[test]
fn foreign_and_newer_files_are_distinguished() {
    let text = BuiltIndex::new(&[]).text();
    for (changed, words) in [
        (
            text.replace("dedup/1", "dedup/2"),
            "is a dedup index of version 2, and this build",
        ),
        (
            text.replace("dedup/1\n", "dedup/12\n"),
            "is a dedup index of version 12, and this build",
        ),
        (
            text.replace("!holdfast", "!holdfest"),
            "is not a dedup index",
        ),
        (
            "WARC/1.0\r\nWARC-Type: warcinfo\r\n".to_owned(),
            "is not a dedup index",
        ),
    ] {
        let message = opened(changed.as_bytes()).unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
    }
    let missing = DedupIndex::open(Path::new("/nowhere/x.dedup")).unwrap_err();
    assert!(matches!(missing, DedupError::Io { .. }));
}
