//! Lines as they are found in damaged and hostile logs.

use super::*;

const GOOD: &str = "2021-07-05T15:20:39.378Z   200       1234 http://a.dk/ - - text/html #007 20210705152039301+52 - - -";

fn entries(log: &[u8]) -> Vec<LogEntry> {
    CrawlLogReader::new(log).map(Result::unwrap).collect()
}

/// Returns the reason of the only line, if it cannot be read.
fn reason(line: &[u8]) -> Option<String> {
    let log = [line, b"\n"].concat();
    match entries(&log).as_slice() {
        [LogEntry::Line(_)] => None,
        [LogEntry::Unreadable(line)] => Some(line.to_string()),
        other => panic!("{other:?}"),
    }
}

/// Fails if a cut last line is counted as if its numbers were whole.
#[test]
fn cut_last_line_is_unreadable() {
    let log = format!("{GOOD}\n{}", GOOD.replace(" - - -", " - - content-size:15"));
    let read = entries(log.as_bytes());
    assert_eq!(read[0], LogEntry::Line(GOOD.parse().unwrap()));
    assert_eq!(
        read[1..],
        [LogEntry::Unreadable(UnreadableLine {
            number: 2,
            offset: 101,
            reason: "the log ends within this line".to_owned(),
        })]
    );
}

/// Fails if a line without a limit fills the memory, or hides the lines after it.
#[test]
fn huge_line_is_named_and_passed() {
    let huge = "x".repeat(10 << 20);
    let log = format!("{huge}\n{GOOD}\n");
    let read = entries(log.as_bytes());
    assert!(
        matches!(&read[0], LogEntry::Unreadable(line) if line.reason == "longer than 1048576 bytes")
    );
    assert_eq!(read[1..], [LogEntry::Line(GOOD.parse().unwrap())]);
}

/// Fails if garbage is taken for a line, or a reason brings it into a report as lines of its own.
#[test]
fn garbage_is_named_in_one_line() {
    let long = format!(
        "2021-07-05T15:20:39.378Z {} 1 u - - t #1 - -",
        "9".repeat(5000)
    );
    for (line, expected) in [
        (b"".as_slice(), "0 fields"),
        (b"\xff\xfe", "byte 0 is not UTF-8"),
        (b"a b c", "3 fields"),
        (&GOOD.as_bytes()[..60], "fields, where"),
        (b"now 200 1 u - - t #1 - -", "field 1 (`now`) is no time"),
        (
            b"2021-07-05T15:20:39Z 2\x1b[31m00 1 u - - t #1 - -",
            "field 2 (`2 [31m00`)",
        ),
        (long.as_bytes(), "field 2 (`9999"),
    ] {
        let reason = reason(line).unwrap();
        assert!(reason.contains(expected), "{reason:?} {expected:?}");
        assert!(reason.starts_with("line 1 (byte 0): "), "{reason:?}");
        assert!(
            !reason.contains(char::is_control) && reason.len() < 300,
            "{reason:?}"
        );
    }
}

/// Fails if blanks between fields count as fields, or a blank within a field shifts the others unseen.
#[test]
fn blanks_separate_fields_and_nothing_else() {
    let spaced = format!("  \t{}  \r", GOOD.replace(' ', " \t "));
    assert_eq!(reason(spaced.as_bytes()), None);
    let shifted = GOOD.replace("http://a.dk/", "http://a.dk/x y");
    assert!(reason(shifted.as_bytes()).unwrap().contains("field 9"));
}

/// Fails if all unreadable lines of a large log are held, or only those that are named are counted.
#[test]
fn unreadable_lines_are_counted_and_few_named() {
    let mut lines = UnreadableLines::default();
    for number in 1..=1000 {
        lines.add(UnreadableLine {
            number,
            offset: 0,
            reason: String::new(),
        });
    }
    assert_eq!(
        (lines.count(), lines.named_lines().len()),
        (1000, MAX_NAMED)
    );
    assert_eq!(lines.named_lines()[99].number, 100);
}
