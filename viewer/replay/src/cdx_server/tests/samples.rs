//! Sample files of the field, asked in all three dialects.

use std::path::{Path, PathBuf};

use archive_formats::cdx::CdxReader;
use archive_formats::surt::UrlKey;

use super::*;

/// Returns the folder with the sample files that other projects publish.
fn samples() -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let places = here.ancestors().map(|folder| folder.join("shared/data"));
    places.into_iter().find(|place| place.is_dir())
}

fn read(folder: &Path, name: &str) -> Vec<Capture> {
    let bytes = std::fs::read(folder.join(name)).unwrap();
    let mut all: Vec<Capture> = CdxReader::new(bytes.as_slice(), 1 << 20)
        .map(|capture| {
            let mut capture = capture.unwrap();
            // The files have keys of other rules, or none.
            if let Some(url) = &capture.original {
                capture.key = UrlKey::parse(url).to_string();
            }
            capture
        })
        .collect();
    all.sort_by(index_order);
    all
}

/// Fails if a dialect loses a capture of a real index, or finds it under another URL than its own.
#[test]
fn samples_are_found_in_all_dialects() {
    let Some(folder) = samples() else {
        tools_testing::skipped("no folder shared/data with sample files is above this one");
        return;
    };
    let name = "netarchivesuite_solrwayback/IAH-20080430204825-00000-blackbook.warc.gz.cdx";
    let all = read(&folder, name);
    assert_eq!(all.len(), 822);
    let html = all
        .iter()
        .filter(|c| c.key.starts_with("org,archive") && c.mime.as_deref() == Some("text/html"))
        .count();
    assert!(html > 0);
    for (dialect, query) in [
        (
            Dialect::Pywb,
            "url=*.archive.org&filter==mime:text/html&output=json",
        ),
        (
            Dialect::Wayback,
            "url=*.archive.org&filter=mimetype:text/html",
        ),
        (
            Dialect::OutbackCdx,
            "url=*.archive.org&filter=mimetype:text/html",
        ),
    ] {
        let answer = serve_over(&all, dialect, query).unwrap();
        assert_eq!(answer.lines().count(), html, "{dialect:?}");
    }
    for capture in &all {
        let Some(url) = &capture.original else {
            continue;
        };
        let escapes: Vec<String> = url.bytes().map(|b| format!("%{b:02X}")).collect();
        let url = escapes.concat();
        for dialect in [Dialect::Pywb, Dialect::Wayback, Dialect::OutbackCdx] {
            let query = format!("url={url}&matchType=exact&output=text&fl=offset");
            let answer = serve_over(&all, dialect, &query).unwrap();
            let offset = capture.offset.unwrap().to_string();
            assert!(
                answer.lines().any(|line| line == offset),
                "{dialect:?} {query}"
            );
        }
    }
}

/// Fails if fields that CDXJ of other makers has are lost, or walking by resume key is.
#[test]
fn cdxj_samples_keep_their_fields() {
    let Some(folder) = samples() else {
        tools_testing::skipped("no folder shared/data with sample files is above this one");
        return;
    };
    let all = read(&folder, "oduwsdl_ipwb/sample-1.cdxj");
    let query = "url=com&matchType=domain&output=json";
    let answer = serve_over(&all, Dialect::Pywb, query).unwrap();
    assert!(
        answer
            .lines()
            .all(|l| l.starts_with("{\"urlkey\": \"com,") && l.ends_with('}'))
    );
    let with_locator = all.iter().filter(|c| c.extra("locator").is_some());
    let locators = with_locator.filter(|c| c.key.starts_with("com,")).count();
    assert_eq!(answer.matches("\"locator\": ").count(), locators);
}
