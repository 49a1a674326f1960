//! Writes the file of an index: its first line, its sections, its last lines.
//!
//! Owns the order of writing. Each line of the section by URL leaves one of the section by digest, with its offset.

use std::collections::BTreeSet;
use std::io::{self, Write};

use archive_formats::cdx::Format;
use blake3::Hasher;

use super::{DedupBuildError, SortedLines, Workspace};
use crate::layout::{self, Footer, HEADER};
use crate::report::BuildReport;

/// The content of an index.
pub(super) struct IndexContent<'a> {
    /// The captures, sorted.
    pub(super) captures: SortedLines<'a>,
    /// The jobs that they are of.
    pub(super) jobs: BTreeSet<String>,
}

/// Writes an index.
///
/// # Errors
///
/// Those of the temporary files, and [`DedupBuildError::Output`].
pub(super) fn write_sections(
    content: IndexContent<'_>,
    workspace: Workspace<'_>,
    sink: &mut impl Write,
    report: &mut BuildReport,
) -> Result<(), DedupBuildError> {
    let IndexContent { mut captures, jobs } = content;
    let mut digests = workspace.sorter();
    let mut output = SealedOutput {
        sink,
        hasher: Hasher::new(),
        length: 0,
    };
    output.write(HEADER)?;
    let start = output.length;
    let mut urls = 0;
    for line in captures.lines()? {
        let line = line?;
        // What was written as CDXJ reads as CDXJ.
        let capture = Format::Cdxj.read_line(&line).ok();
        let capture =
            capture.and_then(|capture| Some((capture.digest?, capture.key, capture.timestamp)));
        let Some((digest, key, time)) = capture else {
            continue;
        };
        let prefix = layout::digest_prefix(&digest, &key);
        digests.push(format!("{prefix}{time} {:020}", output.length).as_bytes())?;
        output.write(&line)?;
        output.write("\n")?;
        urls += 1;
    }
    let middle = output.length;
    let mut digests = workspace.sorted(digests)?;
    for line in digests.lines()? {
        output.write(&line?)?;
        output.write("\n")?;
    }
    let last = output.length;
    for job in &jobs {
        output.write(&format!("{job}\n"))?;
    }
    let mut footer = Footer {
        by_url: start..middle,
        urls,
        by_digest: middle..last,
        digests: digests.count,
        jobs: last..output.length,
        job_count: jobs.len() as u64,
        seal: Hasher::new().finalize(),
    };
    output.write(&footer.sealed_line())?;
    footer.seal = output.hasher.finalize();
    let seal = footer.to_string();
    let seal = seal.strip_prefix(&footer.sealed_line()).unwrap_or_default();
    output.write(seal)?;
    output.sink.flush().map_err(DedupBuildError::Output)?;
    report.captures = urls;
    Ok(())
}

/// A sink, with the hash and the length of what went into it.
struct SealedOutput<'a, W> {
    sink: &'a mut W,
    hasher: Hasher,
    length: u64,
}

impl<W: Write> SealedOutput<'_, W> {
    fn write(&mut self, text: &str) -> Result<(), DedupBuildError> {
        let written: io::Result<()> = self.sink.write_all(text.as_bytes());
        written.map_err(DedupBuildError::Output)?;
        self.hasher.update(text.as_bytes());
        self.length += text.len() as u64;
        Ok(())
    }
}
