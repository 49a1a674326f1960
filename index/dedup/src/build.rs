//! Builds an index from metadata files, in bounded memory.
//!
//! Owns the order of the steps, each of which reads sorted lines and leaves lines to be sorted: [`metadata`] reads the
//! files; [`join`] joins the lines of a crawl log with those of the index of its job; [`chains`] follows duplicates to
//! their first captures; [`sections`] writes the file. Temporary files have no names and end with the process.

mod chains;
mod fact;
mod join;
mod line;
mod metadata;
mod sections;

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read, Seek as _, Write};
use std::path::{Path, PathBuf};

use archive_formats::cdx::{SortError, Sorter};
use thiserror::Error;

use crate::report::BuildReport;

/// The reason why no index was built.
#[derive(Debug, Error)]
pub enum DedupBuildError {
    /// The temporary files cannot be written or read.
    #[error("cannot use temporary files in {}: {source}", directory.display())]
    Temporary {
        /// The directory of the temporary files.
        directory: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The lines cannot be sorted.
    #[error(transparent)]
    Sort(#[from] SortError),
    /// The sink takes no more.
    #[error("cannot write the dedup index: {0}")]
    Output(io::Error),
}

/// The means of a builder.
#[derive(Clone, Copy, Debug)]
pub struct Workspace<'a> {
    /// The directory of the builder's temporary files, which may become as large as all logs together, a few times
    /// over.
    pub directory: &'a Path,
    /// About how many bytes of memory are used for sorting. Each of up to 64 runs that are merged has a buffer besides.
    pub memory: usize,
}

/// Builds an index from metadata files, each given with its name and opened when its turn comes, and writes it into
/// `sink`.
///
/// A file with the record `metadata://…/crawl/index/captures` has what is needed; of all others, the crawl log is
/// joined with the CDX records of its job. Damage, lines that cannot be read and duplicates that lead nowhere are in
/// the report, and the other captures in the index.
///
/// # Errors
///
/// [`DedupBuildError`] if temporary files or `sink` cannot be written: what the sink has then is not an index.
pub fn build_index<R: Read>(
    inputs: impl IntoIterator<Item = (String, R)>,
    workspace: Workspace<'_>,
    sink: &mut impl Write,
) -> Result<BuildReport, DedupBuildError> {
    let mut report = BuildReport::default();
    let mut collector = metadata::Collector::new(workspace.sorter());
    for (name, source) in inputs {
        collector.read_metadata(&name, source, &mut report)?;
    }
    let (facts, trusted, jobs) = collector.finish();
    let graph = join::join_lines(workspace.sorted(facts)?, &trusted, workspace, &mut report)?;
    let captures = chains::follow_chains(graph, workspace, &mut report)?;
    let content = sections::IndexContent {
        captures: workspace.sorted(captures)?,
        jobs,
    };
    sections::write_sections(content, workspace, sink, &mut report)?;
    Ok(report)
}

impl<'a> Workspace<'a> {
    /// Returns a sorter that leaves out repeated lines. At most four are in use at once.
    fn sorter(self) -> Sorter {
        Sorter::new(self.directory, self.memory / 4).dropping_duplicates()
    }

    /// Sorts lines into a temporary file.
    fn sorted(self, sorter: Sorter) -> Result<SortedLines<'a>, DedupBuildError> {
        let file = tempfile::tempfile_in(self.directory);
        let mut file = file.map_err(|source| self.io_error(source))?;
        let mut buffered = io::BufWriter::new(&mut file);
        let count = sorter.finish(&mut buffered)?;
        let flushed = buffered
            .into_inner()
            .map_err(io::IntoInnerError::into_error);
        flushed.map_err(|source| self.io_error(source))?;
        Ok(SortedLines {
            file,
            count,
            workspace: self,
        })
    }

    fn io_error(self, source: io::Error) -> DedupBuildError {
        DedupBuildError::Temporary {
            directory: self.directory.to_owned(),
            source,
        }
    }
}

/// Sorted lines in a temporary file.
#[derive(Debug)]
struct SortedLines<'a> {
    file: File,
    count: u64,
    workspace: Workspace<'a>,
}

impl SortedLines<'_> {
    /// Returns the lines from the first one.
    fn lines(
        &mut self,
    ) -> Result<impl Iterator<Item = Result<String, DedupBuildError>>, DedupBuildError> {
        let workspace = self.workspace;
        self.file
            .rewind()
            .map_err(|source| workspace.io_error(source))?;
        let lines = BufReader::new(&self.file).lines();
        Ok(lines.map(move |line| line.map_err(|source| workspace.io_error(source))))
    }
}
