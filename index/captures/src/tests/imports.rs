//! Indexes of others come in as sets.

use archive_formats::cdx::{Capture, Format};
use tools_testing::{FailingReader, Random};

use super::{
    add, answer, answer_with_sources, capture, empty, everything, of_all, of_file, of_url, open,
    sorted,
};
use crate::{CaptureIndex, ImportError, ImportReport, MAX_LINE, MAX_NAMED};

fn import(captures: &CaptureIndex, set: &str, text: &str) -> ImportReport {
    let mut import = captures.begin_import(set).unwrap();
    import.read_lines("input", text.as_bytes()).unwrap();
    import.complete_import().unwrap()
}

fn lines(format: &Format, all: &[Capture]) -> String {
    let mut lines = format.header().into_iter().collect::<Vec<_>>();
    lines.extend(all.iter().map(|capture| format.write_line(capture)));
    lines.push(String::new());
    lines.join("\n")
}

fn sweep(captures: &CaptureIndex) -> u64 {
    let mut removed = 0;
    loop {
        let swept = captures.sweep_rows(u64::MAX).unwrap();
        removed += swept.removed;
        if swept.is_complete {
            return removed;
        }
    }
}

/// Fails if a form is not read, or a field of it is lost.
#[test]
fn every_form_is_imported() {
    let mut all = of_file("a.warc.gz", 20);
    for capture in &mut all {
        capture.digest = Some("3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ".to_owned());
        capture.length = Some(77);
    }
    let (_memory, captures) = empty();
    let wget = Format::sniff_line(" CDX a b a m s k r M V g u").unwrap();
    let tabbed = Format::sniff_line("\tCDX\tV\tg\tb\ta\tk\tm\ts\tS").unwrap();
    for (format, has_length) in [
        (Format::Cdxj, true),
        (Format::cdx9(), false),
        (Format::cdx11(), true),
        (Format::cdx14(), true),
        (wget, false),
        (tabbed, true),
    ] {
        let report = import(&captures, "set", &lines(&format, &all));
        assert_eq!((report.captures, report.damaged), (20, 0), "{format:?}");
        let mut expected = all.clone();
        for capture in &mut expected {
            capture.length = capture.length.filter(|_| has_length);
        }
        assert_eq!(everything(&captures), sorted(expected), "{format:?}");
    }
}

/// Fails if a damaged line stops an import, is not named, or takes others with it.
#[test]
fn damaged_lines_are_named_and_left_out() {
    let good = |n: u32| {
        format!(
            "dk,a)/{n} 20200101000000 {{\"url\": \"http://a.dk/{n}\", \"offset\": \"{n}\", \"filename\": \"f\"}}\n"
        )
    };
    let bad = "dk,a)/ 20201301000000 {\"url\": \"http://a.dk/\"}\nno line\ndk,a)/ 20200101000000 {\"url\"\n";
    let long = format!("x 20200101000000 {}\n", "y".repeat(MAX_LINE));
    let text = [
        good(1),
        bad.to_owned(),
        good(2),
        long,
        "\n".to_owned(),
        good(3),
    ]
    .concat();
    let (_memory, captures) = empty();
    let mut bytes = text.into_bytes();
    bytes.extend(b"\xff\xfe 20200101000000 {}\n");
    let mut import = captures.begin_import("set").unwrap();
    import.read_lines("one.cdxj", bytes.as_slice()).unwrap();
    import.read_lines("two.cdxj", good(4).as_bytes()).unwrap();
    let report = import.complete_import().unwrap();
    assert_eq!((report.captures, report.damaged), (4, 5));
    let numbers: Vec<_> = report
        .damaged_lines
        .iter()
        .map(|line| line.line.number)
        .collect();
    assert_eq!(numbers, [2, 3, 4, 6, 9]);
    let words = report.damaged_lines[0].to_string();
    for part in ["one.cdxj", "line 2", "13"] {
        assert!(words.contains(part), "{words}");
    }
    assert_eq!(everything(&captures).len(), 4);

    let text = [good(1), "no line\n".repeat(MAX_NAMED + 50), good(2)].concat();
    let report = self::import(&captures, "set", &text);
    assert_eq!(report.damaged, MAX_NAMED as u64 + 50);
    assert_eq!(
        (report.damaged_lines.len(), report.captures),
        (MAX_NAMED, 2)
    );
    assert_eq!(report.replaced, Some(4));
}

/// Fails if a set that is imported again leaves old captures, or touches other sets or files.
#[test]
fn set_is_replaced_by_its_name_only() {
    let (memory, captures) = empty();
    let named = |name: &str, count| of_file(name, count);
    add(&captures, "a", &named("a", 5));
    import(&captures, "x", &lines(&Format::Cdxj, &named("a", 7)));
    import(&captures, "y", &lines(&Format::Cdxj, &named("b", 3)));
    let report = import(&captures, "x", &lines(&Format::Cdxj, &named("c", 2)));
    assert_eq!(report.replaced, Some(7));
    let expected = sorted([named("a", 5), named("b", 3), named("c", 2)].concat());
    assert_eq!(sorted(everything(&captures)), expected);
    let sets: Vec<_> = captures.list_sets().unwrap().map(Result::unwrap).collect();
    let sets: Vec<_> = sets
        .iter()
        .map(|set| (set.name.as_str(), set.captures))
        .collect();
    assert_eq!(sets, [("x", 2), ("y", 3)]);
    let counts = captures.counts();
    assert_eq!(
        (counts.captures, counts.sets, counts.set_captures),
        (5, 2, 5)
    );
    add(&captures, "a", &[]);
    drop(captures);
    let captures = open(&memory);
    assert_eq!(
        sorted(everything(&captures)),
        expected[..]
            .iter()
            .filter(|c| c.file.as_deref() != Some("a"))
            .cloned()
            .collect::<Vec<_>>()
    );
    assert_eq!(sweep(&captures), 7 + 5);
    assert_eq!(captures.delete_set("y"), Ok(Some(3)));
    assert_eq!(captures.delete_set("y"), Ok(None));
    assert_eq!(everything(&captures), sorted(named("c", 2)));
    assert_eq!(sweep(&captures), 3);
    drop(captures);
    let captures = open(&memory);
    assert_eq!(everything(&captures), sorted(named("c", 2)));
    // The row that says what the database is, and those of keys, set, import, two files and a number.
    assert_eq!(captures.verify(), Ok(2 + 7));
}

/// Fails if an import that was cut off is seen, or stays.
#[test]
fn cut_off_import_is_invisible() {
    for count in [3, 30_000] {
        let (memory, captures) = empty();
        import(&captures, "x", &lines(&Format::Cdxj, &of_file("old", 4)));
        let mut cut_off = captures.begin_import("x").unwrap().in_small_files();
        for (number, mut capture) in of_file("", count).into_iter().enumerate() {
            capture.file = Some(format!("file {}", number % 100));
            cut_off.push_capture(&capture).unwrap();
        }
        assert_eq!(everything(&captures), sorted(of_file("old", 4)));
        assert_eq!(sweep(&captures), 0, "the import continues");
        drop((cut_off, captures));
        let captures = open(&memory);
        assert_eq!(everything(&captures), sorted(of_file("old", 4)));
        assert_eq!(sweep(&captures) > 0, count > 1000);
        assert_eq!(captures.verify(), Ok(4 + 6));
        import(&captures, "x", &lines(&Format::Cdxj, &of_file("new", 2)));
        assert_eq!(everything(&captures), sorted(of_file("new", 2)));
    }
}

/// Fails if an import that is written as files loses, repeats or mixes up captures: in the order of keys, nearly so,
/// and in none, from several inputs, beside other captures, and after the index is opened again.
#[test]
fn import_in_files_is_as_any_other() {
    let mut random = Random::new(3);
    for is_sorted in [true, false] {
        let mut inputs = Vec::new();
        for input in 0..3_u64 {
            let mut all = Vec::new();
            for number in 0..3000_u64 {
                let page = if is_sorted {
                    number / 3
                } else {
                    random.below(900)
                };
                let url = format!("http://a.dk/{page:05}");
                // Some stand twice, and lines of one key and time name files in any order.
                let mut capture = capture(&url, "20200101000000", number / 2 * 2);
                capture.status = Some(200 + u16::try_from(input).unwrap());
                let file = random.below(7);
                capture.file = (file > 0).then(|| format!("file {file}"));
                all.push(capture);
            }
            inputs.push(lines(&Format::Cdxj, &all));
        }
        let imported = |is_in_files: bool| {
            let (memory, captures) = empty();
            add(&captures, "a", &of_file("a", 50));
            let mut import = captures.begin_import("set").unwrap();
            if is_in_files {
                import = import.in_small_files();
            }
            for input in &inputs {
                import.read_lines("input", input.as_bytes()).unwrap();
            }
            let report = import.complete_import().unwrap();
            assert_eq!(report.captures, 9000);
            let query = of_all();
            let all = answer_with_sources(&captures, &query);
            drop(captures);
            let captures = open(&memory);
            assert_eq!(answer_with_sources(&captures, &query), all);
            assert_eq!(captures.delete_set("set"), Ok(Some(9000)));
            let swept = sweep(&captures);
            assert_eq!(everything(&captures), sorted(of_file("a", 50)));
            (all, swept)
        };
        assert_eq!(imported(true), imported(false), "sorted: {is_sorted}");
    }
}

/// Fails if a withdrawn file is seen in a set, also once the files were forgotten; or a file is hidden that never was
/// here.
#[test]
fn withdrawn_file_is_hidden_in_sets() {
    let (memory, captures) = empty();
    let foreign = of_file("foreign", 2);
    let all = sorted([of_file("a", 5), foreign.clone()].concat());
    import(&captures, "x", &lines(&Format::Cdxj, &all));
    assert_eq!(sorted(everything(&captures)), all);
    add(&captures, "a", &of_file("a", 5));
    captures.withdraw_file("a").unwrap();
    assert_eq!(everything(&captures), sorted(foreign.clone()));
    captures.forget_files().unwrap();
    let counts = captures.counts();
    assert_eq!((counts.withdrawn, counts.set_captures), (1, 7));
    drop(captures);
    let captures = open(&memory);
    assert_eq!(captures.counts(), counts);
    assert_eq!(everything(&captures), sorted(foreign));
    captures.reinstate_file("a").unwrap();
    assert_eq!(sorted(everything(&captures)), all);
}

/// Fails if lines without a place are taken for one, or a repeated place for two.
#[test]
fn lines_without_place_stay_apart() {
    let (_memory, captures) = empty();
    let line = |json: &str| format!("dk,a)/ 20200101000000 {{\"url\": \"http://a.dk/\"{json}}}\n");
    let placed = line(", \"offset\": \"5\", \"filename\": \"f\", \"status\": \"200\"");
    let text = [
        line(""),
        line(""),
        line(", \"offset\": \"5\""),
        line(", \"filename\": \"f\""),
        placed.clone(),
        placed,
    ];
    let report = import(&captures, "set", &text.concat());
    assert_eq!(report.captures, 6);
    let all = everything(&captures);
    let found: Vec<_> = all.iter().map(|c| (c.offset, c.file.as_deref())).collect();
    for place in [
        (None, None),
        (Some(5), None),
        (None, Some("f")),
        (Some(5), Some("f")),
    ] {
        let expected = if place == (None, None) { 2 } else { 1 };
        let count = found.iter().filter(|p| **p == place).count();
        assert_eq!(count, expected, "{place:?}");
    }
    assert_eq!(all.len(), 5);
}

/// Fails if the key of a foreign line is believed where its URL is known, or lost where it is not.
#[test]
fn foreign_keys_are_made_again() {
    let (_memory, captures) = empty();
    let text = "a.dk/ 20200101000000 {\"url\": \"http://www.A.dk/B/\"}\nonly,key)/é 20200101000000 {\"mime\": \"x/y\"}\n";
    let report = import(&captures, "set", text);
    assert_eq!((report.captures, report.without_url), (2, 1));
    let keys: Vec<_> = everything(&captures).into_iter().map(|c| c.key).collect();
    assert_eq!(keys, ["dk,a)/b", "only,key)/é"]);
    let found = answer(&captures, &of_url("http://a.dk/b"));
    assert_eq!(found.len(), 1);
}

/// Fails if an input that breaks off passes for a whole one.
#[test]
fn failing_input_stops_the_import() {
    let (_memory, captures) = empty();
    assert!(matches!(
        captures.begin_import(""),
        Err(ImportError::NoName)
    ));
    let mut import = captures.begin_import("set").unwrap();
    let error = import
        .read_lines(
            "tape",
            std::io::BufReader::new(FailingReader::new(b"", "broken")),
        )
        .unwrap_err();
    assert_eq!(error.to_string(), "cannot read tape: broken");
}
