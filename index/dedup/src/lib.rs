//! Earlier captures by URL and by payload digest, in an immutable sorted text file that is searched in place.
//!
//! Owns the file, its builder, and how earlier captures come out of the metadata files of crawls: ours, and those of
//! NetarchiveSuite since 2005 (which made Lucene indexes of them). Every line names the first capture of its content,
//! so that a revisit never refers to a revisit. Does not decide what is deduplicated, and publishes no file: the
//! builder writes into a sink.
//!
//! The rooms, in reading order: `layout` has the lines of the file, `index` looks them up with `search`, `build` makes
//! the file in four steps, and `report` names what it had to leave out.
//!
//! Memory is bounded at any number of captures. A file that is cut, changed, foreign or of a newer version is refused:
//! [`DedupIndex::open`] sees all but changed bytes, and [`DedupIndex::verify_file`] sees these.
//!
//! ```
//! use std::io::Write as _;
//!
//! use archive_formats::warc::{Builder, WarcType, WarcWriter};
//! use index_dedup::{DedupIndex, Workspace, build_index};
//!
//! let captures = br#"dk,a)/ 20260102030405 {"url": "http://a.dk/", "mime": "text/html", "status": "200", "digest": "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ", "offset": "4711", "filename": "1.warc.gz", "etag": "\"7\""}"#;
//! let uri = "metadata://example.org/crawl/index/captures?harvestid=1&jobid=1";
//! let record = Builder::new(WarcType::Resource, "urn:uuid:6f6e9f5e-0d2b-4a0b-8f6c-7a1b2c3d4e5f", "2026-01-02T04:00:00Z").target_uri(uri);
//! let length = u64::try_from(captures.len())?;
//! let mut metadata = WarcWriter::plain_writer(Vec::new());
//! metadata.write_record(&record.render_head(length)?, length, &mut &captures[..])?;
//!
//! let directory = tempfile::tempdir()?;
//! let mut file = tempfile::NamedTempFile::new_in(&directory)?;
//! let workspace = Workspace { directory: directory.path(), memory: 1 << 20 };
//! let inputs = [("1-metadata-1.warc".to_owned(), metadata.get_ref().as_slice())];
//! let report = build_index(inputs, workspace, &mut file)?;
//! file.flush()?;
//! assert_eq!((report.captures, report.problem_count), (1, 0));
//!
//! let index = DedupIndex::open(file.path())?;
//! index.verify_file()?;
//! let earlier = index.latest_by_url("http://a.dk/")?.ok_or("not found")?;
//! assert_eq!((earlier.offset, earlier.etag.as_deref()), (4711, Some("\"7\"")));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(missing_docs)]
#![doc = include_str!("../FORMAT.md")]

mod build;
mod index;
mod layout;
mod report;
mod search;

pub use build::{DedupBuildError, Workspace, build_index};
pub use index::{DedupError, DedupIndex, EarlierCapture};
pub use layout::MAX_LINE;
pub use report::{BuildProblem, BuildReport};

#[cfg(test)]
mod tests;
