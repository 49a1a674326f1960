//! Tests of the whole: metadata files in, an index out, and answers from it.
//!
//! Owns the metadata files that the tests make.

mod chains;
mod damage;
mod golden;
mod lookup;
mod revisits;

use std::path::Path;

use archive_formats::digest::{Algorithm, DigestValue, digest_bytes};
use archive_formats::warc::{Builder, WarcType, WarcWriter};
use tempfile::{NamedTempFile, TempDir};

use crate::{BuildProblem, BuildReport, DedupIndex, Workspace, build_index};

const ID: &str = "urn:uuid:6f6e9f5e-0d2b-4a0b-8f6c-7a1b2c3d4e5f";

/// Returns the SHA-1 of a text, as a crawl log has it.
fn sha1(text: &str) -> DigestValue {
    digest_bytes(Algorithm::Sha1, text.as_bytes())
}

/// A metadata file of one job.
#[derive(Debug, Default)]
struct Metadata {
    job: u32,
    records: Vec<(String, String)>,
    /// Without block digests, as ARC files and some tools have it.
    has_no_digests: bool,
}

impl Metadata {
    fn job(job: u32) -> Self {
        Self {
            job,
            ..Self::default()
        }
    }

    fn record(mut self, path: &str, lines: &[String]) -> Self {
        let text = lines.iter().flat_map(|line| [line.as_str(), "\n"]);
        let text = text.collect();
        let uri = format!("metadata://example.org/crawl/{path}&jobid={}", self.job);
        self.records.push((uri, text));
        self
    }

    fn log(self, lines: &[String]) -> Self {
        self.record("logs/crawl.log?heritrixVersion=3.4.0&harvestid=1", lines)
    }

    fn cdx(self, lines: &[String]) -> Self {
        self.record("index/cdx?majorversion=2&minorversion=0&harvestid=1", lines)
    }

    fn captures(self, lines: &[String]) -> Self {
        self.record("index/captures?harvestid=1", lines)
    }

    fn name(&self) -> String {
        format!("{}-metadata-1.warc", self.job)
    }

    fn write<W: std::io::Write>(&self, mut writer: WarcWriter<W>) -> W {
        for (uri, text) in &self.records {
            let mut builder = Builder::new(WarcType::Resource, ID, "2026-01-02T04:00:00Z")
                .target_uri(uri)
                .content_type("text/plain");
            if !self.has_no_digests {
                builder = builder.with_field("WARC-Block-Digest", &sha1(text).to_string());
            }
            let length = text.len() as u64;
            let head = builder.render_head(length).unwrap();
            writer
                .write_record(&head, length, &mut text.as_bytes())
                .unwrap();
        }
        writer.into_inner()
    }

    fn plain(&self) -> (String, Vec<u8>) {
        (
            self.name(),
            self.write(WarcWriter::plain_writer(Vec::new())),
        )
    }

    fn gzip(&self) -> (String, Vec<u8>) {
        let name = format!("{}.gz", self.name());
        (name, self.write(WarcWriter::gzip_writer(Vec::new(), 6)))
    }
}

/// Returns a line of a crawl log of a response at a second of 2026-01-02, 03 o'clock.
fn log_line(url: &str, second: u32, payload: &str, annotations: &str) -> String {
    let minute = second / 60;
    let second = second % 60;
    format!(
        "2026-01-02T03:{minute:02}:{second:02}.900Z   200         12 {url} L - text/html #001 \
         2026010203{minute:02}{second:02}123+52 {} - {annotations}",
        sha1(payload)
    )
}

/// Returns a line of the CDX of NetarchiveSuite.
fn cdx_line(url: &str, second: u32, file: &str, offset: u64) -> String {
    let minute = second / 60;
    let second = second % 60;
    format!(
        "{url} 127.0.0.1 2026010203{minute:02}{second:02} text/html 99 {file} {offset} d41d8cd98f00b204e9800998ecf8427e"
    )
}

/// Returns the annotation of a duplicate.
fn duplicate(file: &str, offset: u64, second: u32) -> String {
    let minute = second / 60;
    let second = second % 60;
    format!("duplicate:\"{file},{offset},2026010203{minute:02}{second:02}000\",content-size:99")
}

/// An index that was built, with its directory.
struct BuiltIndex {
    _directory: TempDir,
    file: NamedTempFile,
    report: BuildReport,
}

impl BuiltIndex {
    fn new(inputs: &[(String, Vec<u8>)]) -> Self {
        Self::with_memory(inputs, 1 << 20)
    }

    fn with_memory(inputs: &[(String, Vec<u8>)], memory: usize) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut file = NamedTempFile::new_in(&directory).unwrap();
        let inputs = inputs.iter();
        let inputs = inputs.map(|(name, bytes)| (name.clone(), bytes.as_slice()));
        let workspace = Workspace {
            directory: directory.path(),
            memory,
        };
        let report = build_index(inputs, workspace, &mut file).unwrap();
        Self {
            _directory: directory,
            file,
            report,
        }
    }

    fn path(&self) -> &Path {
        self.file.path()
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.path()).unwrap()
    }

    fn index(&self) -> DedupIndex {
        let index = DedupIndex::open(self.path()).unwrap();
        index.verify_file().unwrap();
        index
    }

    /// Returns the place that a payload under a URL leads to.
    fn place(&self, url: &str, payload: &str) -> Option<(String, u64)> {
        let found = self.index().by_url_and_digest(url, &sha1(payload)).unwrap();
        found.map(|earlier| (earlier.file, earlier.offset))
    }

    /// Returns the problems, as they are said.
    fn problems(&self) -> Vec<String> {
        self.report
            .problems
            .iter()
            .map(BuildProblem::to_string)
            .collect()
    }

    fn assert_no_problem(&self) {
        assert_eq!(self.problems(), Vec::<String>::new());
    }
}
