//! `index dedup`: metadata files in, an index out, and how that ends.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use archive_formats::digest::{Algorithm, digest_bytes};
use archive_formats::warc::{Builder, WarcType, WarcWriter};
use index_dedup::DedupIndex;

use crate::holdfast::{Ran, executable, run};

const URL: &str = "http://example.org/";

/// Returns the metadata file of a job with one capture, and a line that is no capture.
fn metadata(has_bad_line: bool) -> Vec<u8> {
    let digest = digest_bytes(Algorithm::Sha1, b"payload");
    let mut lines = format!(
        r#"org,example)/ 20260102030405 {{"url": "{URL}", "digest": "{digest}", "offset": "7", "filename": "1.warc.gz"}}"#
    );
    if has_bad_line {
        lines.push_str("\nbad");
    }
    let length = u64::try_from(lines.len()).expect("a length");
    let record = Builder::new(
        WarcType::Resource,
        "urn:uuid:00000000-0000-4000-8000-000000000001",
        "2026-11-21T19:14:09Z",
    )
    .target_uri("metadata://example.org/crawl/index/captures?harvestid=1&jobid=1");
    let head = record.render_head(length).expect("a header");
    let mut writer = WarcWriter::gzip_writer(Vec::new(), 6);
    writer
        .write_record(&head, length, &mut lines.as_bytes())
        .expect("written");
    writer.into_inner()
}

struct Directory(tempfile::TempDir);

impl Directory {
    fn new(has_bad_line: bool) -> Self {
        let directory = Self(tempfile::tempdir().expect("a directory"));
        directory.put("1-metadata-1.warc.gz", &metadata(has_bad_line));
        directory
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        let mut file = File::create_new(self.path(name)).expect("created");
        file.write_all(bytes).expect("written");
    }

    fn run(&self, words: &[&str]) -> Ran {
        let mut command = executable();
        run(command
            .args(["index", "dedup", "-o", "x.dedup"])
            .args(words)
            .current_dir(self.0.path()))
    }
}

fn assert_found(path: &Path) {
    let index = DedupIndex::open(path).expect("an index");
    index.verify_file().expect("whole");
    let found = index.latest_by_url(URL).expect("readable");
    assert_eq!(found.expect("a capture").offset, 7);
}

/// Fails if the command builds no index, or does not say what is in it.
#[test]
fn metadata_gives_index_and_summary() {
    let directory = Directory::new(false);
    let ran = directory.run(&["1-metadata-1.warc.gz"]).expect(0);
    assert!(
        ran.out
            .contains("1 captures, 0 duplicates resolved, 1 metadata files read"),
        "{ran:?}"
    );
    assert_found(&directory.path("x.dedup"));
    let forced = ["--force", "--json", "1-metadata-1.warc.gz"];
    let document = directory.run(&forced).expect(0).json();
    assert_eq!(document["captures"], 1);
    assert_eq!(document["exit"], "done");
}

/// Fails if a problem passes for success, or costs the captures that are good.
#[test]
fn problems_are_named_and_exit_is_one() {
    let directory = Directory::new(true);
    let ran = directory.run(&["1-metadata-1.warc.gz"]).expect(1);
    assert!(ran.err.contains("line 2 is left out"), "{ran:?}");
    assert_found(&directory.path("x.dedup"));
    let missing = ["--force", "none.warc", "1-metadata-1.warc.gz", "--json"];
    let ran = directory.run(&missing).expect(1);
    assert!(
        ran.err.contains("none.warc: there is no such file"),
        "{ran:?}"
    );
    assert_eq!(ran.json()["problem_count"], 1);
}

/// Fails if a file that bears the name is replaced without --force, or something is left behind.
#[test]
fn taken_name_is_refused_and_untouched() {
    let directory = Directory::new(false);
    directory.put("x.dedup", b"mine");
    let ran = directory.run(&["1-metadata-1.warc.gz"]).expect(5);
    assert!(ran.err.contains("x.dedup"), "{ran:?}");
    let bytes = std::fs::read(directory.path("x.dedup")).expect("read");
    assert_eq!(bytes, b"mine");
    assert!(
        !directory
            .path("x.dedup.partial")
            .try_exists()
            .expect("asked")
    );
}
