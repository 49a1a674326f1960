//! Captures go out sorted, whole and in parts, and come in again as they were.

use std::io;

use archive_formats::cdx::{Capture, Format};
use tools_testing::Random;

use super::{add, capture, empty, everything, of_file};
use crate::{
    CaptureExport, CaptureExportError, CaptureIndex, ExportParts, ExportReport, ExportScope,
};

/// Parts in memory.
#[derive(Default)]
struct WrittenParts {
    begun: u64,
    parts: Vec<String>,
    /// The part that cannot be finished.
    failing: Option<u64>,
}

impl ExportParts for WrittenParts {
    type Part = Vec<u8>;

    fn begin(&mut self, number: u64) -> io::Result<Vec<u8>> {
        self.begun += 1;
        assert_eq!(number, self.begun);
        Ok(Vec::new())
    }

    fn finish(&mut self, part: Vec<u8>) -> io::Result<()> {
        if self.failing == Some(self.parts.len() as u64 + 1) {
            return Err(io::Error::other("disk full"));
        }
        self.parts.push(String::from_utf8(part).unwrap());
        Ok(())
    }
}

fn export(format: Format) -> CaptureExport {
    CaptureExport {
        format,
        scope: ExportScope::All,
        is_unique: false,
        part_size: None,
    }
}

#[track_caller]
fn written(captures: &CaptureIndex, export: &CaptureExport) -> (Vec<String>, ExportReport) {
    let directory = tempfile::tempdir().unwrap();
    let mut parts = WrittenParts::default();
    let report = captures
        .begin_export(export, directory.path(), &mut parts)
        .unwrap();
    assert_eq!(report.parts, parts.parts.len() as u64);
    let bytes: usize = parts.parts.iter().map(String::len).sum();
    assert_eq!(report.bytes, bytes as u64);
    (parts.parts, report)
}

const TIMES: [&str; 4] = [
    "20200101000000",
    "20200101000000000",
    "20200101000000001",
    "20200101000001",
];

/// Files with captures at equal places, and sets beside them.
fn filled() -> (crate::MemoryPlace, CaptureIndex) {
    let (memory, captures) = empty();
    let mut random = Random::new(4);
    for file in ["b.warc.gz", "a.warc.gz", "ø å.warc.gz"] {
        let random_capture = |number: u64| {
            let path = random.below(30);
            let mut capture = capture(
                &format!("http://a.dk/{path}/ü"),
                TIMES[random.index(TIMES.len())],
                // Later records come first in the file of an export that sorts by text.
                1_000_000 - number,
            );
            capture.redirect = (path == 3).then(|| "http://b.dk/ x".to_owned());
            capture
        };
        let all: Vec<_> = (0..300).map(random_capture).collect();
        add(&captures, file, &all);
    }
    let mut import = captures.begin_import("set").unwrap();
    for mut capture in of_file("c.warc.gz", 50) {
        capture.original_record = Some(archive_formats::cdx::OriginalRecord {
            length: Some(1),
            offset: Some(2),
            file: Some("d".to_owned()),
        });
        import.push_capture(&capture).unwrap();
    }
    import.complete_import().unwrap();
    add(&captures, "hidden", &of_file("hidden", 10));
    captures.withdraw_file("hidden").unwrap();
    (memory, captures)
}

/// Fails if an export is not sorted bytewise, lacks a capture, or has one that is withdrawn.
#[test]
fn exports_are_sorted_and_whole() {
    let (_memory, captures) = filled();
    let all = everything(&captures);
    assert_eq!(all.len(), 950);
    for format in [
        Format::Cdxj,
        Format::cdx9(),
        Format::cdx11(),
        Format::cdx14(),
        Format::netarchive_suite(false),
        Format::sniff_line(" CDX a b a m s k r M V g u").unwrap(),
        Format::sniff_line("\tCDX\tN\tb\ta").unwrap(),
        Format::sniff_line("~CDX~N~b~a").unwrap(),
    ] {
        let (parts, report) = written(&captures, &export(format.clone()));
        let [text] = parts.as_slice() else { panic!() };
        let mut lines: Vec<&str> = text.lines().collect();
        if let Some(header) = format.header() {
            assert_eq!(lines.remove(0), header);
        }
        let mut expected: Vec<String> = all.iter().map(|c| format.write_line(c)).collect();
        expected.sort();
        assert_eq!(lines, expected, "{format:?}");
        assert_eq!(report.lines, 950);
        let mut unique = export(format);
        unique.is_unique = true;
        expected.dedup();
        assert_eq!(written(&captures, &unique).1.lines, expected.len() as u64);
    }
}

/// Fails if a scope lets captures of another one in.
#[test]
fn scopes_are_kept_apart() {
    let (_memory, captures) = filled();
    let count = |scope| {
        let mut export = export(Format::Cdxj);
        export.scope = scope;
        written(&captures, &export).1.lines
    };
    assert_eq!(count(ExportScope::Archive), 900);
    assert_eq!(count(ExportScope::Set("set".to_owned())), 50);
    let mut nowhere = export(Format::Cdxj);
    nowhere.scope = ExportScope::Set("nowhere".to_owned());
    let directory = tempfile::tempdir().unwrap();
    let error = captures.begin_export(&nowhere, directory.path(), &mut WrittenParts::default());
    assert!(matches!(error, Err(CaptureExportError::NoSet(name)) if name == "nowhere"));
}

/// Fails if a part is too large, lacks its header, or a line is lost between two.
#[test]
fn parts_hold_their_size() {
    let (_memory, captures) = filled();
    for format in [
        Format::cdx11(),
        Format::Cdxj,
        Format::netarchive_suite(true),
    ] {
        let mut export = export(format.clone());
        let (whole, _) = written(&captures, &export);
        for size in [1, 500, 4096, 1 << 30] {
            export.part_size = Some(size);
            let (parts, report) = written(&captures, &export);
            let header = format
                .header()
                .map(|header| header + "\n")
                .unwrap_or_default();
            let mut text = header.clone();
            for part in &parts {
                let lines = part.strip_prefix(&header).unwrap();
                assert!(part.len() as u64 <= size || lines.lines().count() == 1);
                text.push_str(lines);
            }
            assert_eq!(text, whole[0], "{size}");
            assert_eq!(report.lines, 950);
        }
    }
    let (_memory, captures) = empty();
    let (parts, report) = written(&captures, &export(Format::cdx9()));
    assert_eq!((parts.len(), report.lines), (1, 0));
    assert_eq!(parts[0], " CDX N b a m s k r V g\n");
}

/// Fails if an export of an index that was built anew differs in one byte.
#[test]
fn order_of_files_does_not_show() {
    let texts: Vec<_> = [["a", "b", "c"], ["c", "a", "b"]]
        .into_iter()
        .map(|names| {
            let (_memory, captures) = empty();
            for name in names {
                add(&captures, name, &of_file(name, 100));
            }
            written(&captures, &export(Format::Cdxj)).0
        })
        .collect();
    assert_eq!(texts[0], texts[1]);
}

/// Fails if an export does not come in again as it went out.
#[test]
fn export_is_imported_as_it_was() {
    let (_memory, captures) = filled();
    let (parts, _) = written(&captures, &export(Format::Cdxj));
    let (_memory, other) = empty();
    let mut import = other.begin_import("again").unwrap();
    import.read_lines("export", parts[0].as_bytes()).unwrap();
    assert_eq!(import.complete_import().unwrap().damaged, 0);
    let by_line = |captures: &CaptureIndex| {
        let mut all: Vec<Capture> = everything(captures);
        all.sort_by_key(|capture| Format::Cdxj.write_line(capture));
        all
    };
    assert_eq!(by_line(&other), by_line(&captures));
    assert_eq!(written(&other, &export(Format::Cdxj)).0, parts);
}

/// Fails if an output that fails passes for a whole export.
#[test]
fn failing_output_stops_the_export() {
    let (_memory, captures) = filled();
    let directory = tempfile::tempdir().unwrap();
    let mut export = export(Format::Cdxj);
    export.part_size = Some(10_000);
    let mut parts = WrittenParts {
        failing: Some(3),
        ..WrittenParts::default()
    };
    let error = captures
        .begin_export(&export, directory.path(), &mut parts)
        .unwrap_err();
    assert_eq!(error.to_string(), "cannot write captures: disk full");
    assert_eq!(parts.parts.len(), 2);
}
