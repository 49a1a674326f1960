//! Lines of the log, column by column.

use super::*;

fn line() -> ProgressLine {
    ProgressLine {
        time: "2008-06-02T16:59:07.9Z".parse().unwrap(),
        discovered: 250,
        queued: 15,
        downloaded: 236,
        documents_per_second: ProgressRate {
            current: Hundredths(125),
            average: Hundredths(393),
        },
        kilobytes_per_second: ProgressRate {
            current: Hundredths(28_699),
            average: Hundredths(15_600),
        },
        failures: 0,
        busy_threads: 2,
        memory_kilobytes: 15_825,
        heap_kilobytes: 34_304,
        congestion: Hundredths(100),
        max_depth: 15,
        average_depth: 15,
    }
}

/// Fails if a column ends elsewhere than in Heritrix.
#[test]
fn columns_end_where_heritrix_has_them() {
    let expected = "           timestamp  discovered      queued   downloaded       doc/s(avg)  KB/s(avg)   dl-failures   busy-thread   mem-use-KB  heap-size-KB   congestion   max-depth   avg-depth
2008-06-02T16:59:07Z         250          15          236       1.25(3.93)   286(156)             0             2        15825         34304            1          15          15";
    assert_eq!(format!("{}\n{}", progress_legend(), line()), expected);
    for (name, end) in COLUMNS {
        assert!(progress_legend()[..end].ends_with(name), "{name}");
    }
}

/// Fails if a value that is too wide runs into the one before it.
#[test]
fn wide_values_keep_their_blanks() {
    let wide = ProgressLine {
        discovered: u64::MAX,
        queued: u64::MAX,
        ..line()
    };
    let text = wide.to_string();
    let fields: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(fields.len(), 13, "{text}");
    assert_eq!(fields[1..3], [u64::MAX.to_string(), u64::MAX.to_string()]);
}

/// Fails if a note is not the text that readers of stop reasons look for.
#[test]
fn notes_have_heritrix_words() {
    let time = "2008-06-02T16:59:07Z".parse().unwrap();
    for (state, expected) in [
        (CrawlState::Running, "RUNNING - Running"),
        (CrawlState::Paused, "PAUSED - Paused"),
        (
            CrawlState::Ending(EndMessage::EndedByOperator),
            "ENDING - Finished - Ended by operator",
        ),
        (
            CrawlState::Ended(EndMessage::TimeLimit),
            "ENDED - Finished - Timelimit hit",
        ),
    ] {
        let note = StateNote { time, state };
        assert_eq!(
            note.to_string(),
            format!("2008-06-02T16:59:07Z CRAWL {expected}")
        );
    }
}

/// Fails if a cut or damaged end of a log passes for the end of the crawl.
#[test]
fn last_line_is_whole_or_unknown() {
    let long = [b"x\n".as_slice(), &vec![b'y'; LONGEST_LINE + 1], b"\n"].concat();
    for (log, expected) in [
        (b"".as_slice(), None),
        (b"one\ntwo\r\n\n  \n", Some("two")),
        (b"one\ntwo", None),
        (b"one\n\xff\n", None),
        (long.as_slice(), None),
    ] {
        assert_eq!(last_line(log).unwrap().as_deref(), expected);
    }
}
