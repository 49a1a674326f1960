//! The index of each archive file in the directory of a job, and what describes the file.

use std::io::Read;

use archive_durable::{AppendFile, directory, read_small, replace_file};
use harvest_crawler::archive_files::ClosedFile;
use harvest_reports::index::{ArchiveIndex, IndexLines, index_archive_file};

use super::{CrawledFile, JobDirectory, JobDirectoryError, open_file};

/// The longest description of a file.
const MAX_ENTRY: u64 = 64 << 10;

/// The bytes that are copied at a time.
const PIECE: usize = 256 << 10;

/// The outcome of indexing an archive file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IndexedFile {
    /// The file had an index, and was not read.
    Known,
    /// The file was read to the end of its last record, and has an index now.
    New,
    /// The file is damaged, first by this; it gets no index.
    Damaged(String),
}

impl JobDirectory {
    /// Indexes an archive file that was closed, from its first byte, and describes it. One that has an index keeps it,
    /// and one that is damaged is not described.
    ///
    /// # Errors
    ///
    /// [`JobDirectoryError::Index`], [`JobDirectoryError::Disk`].
    pub(crate) fn index_file(
        &self,
        closed: &ClosedFile,
        archive: impl Read,
    ) -> Result<IndexedFile, JobDirectoryError> {
        let entry = self.path_of("index").join(format!("{}.json", closed.name));
        if read_small(&entry, MAX_ENTRY)?.is_some() {
            return Ok(IndexedFile::Known);
        }
        let scratch = self.path_of("scratch");
        directory::make_unsynced(&scratch)?;
        let mut index = index_archive_file(archive, &closed.name, &scratch)?;
        if let Some(damage) = index.damage {
            return Ok(IndexedFile::Damaged(damage));
        }
        self.keep_lines(&closed.name, "cdx", &mut index.cdx)?;
        self.keep_lines(&closed.name, "cdxj", &mut index.captures)?;
        let description = serde_json::json!(CrawledFile {
            name: closed.name.clone(),
            size: closed.size,
            closed: closed.closed,
        });
        replace_file(&entry, description.to_string().as_bytes())?;
        Ok(IndexedFile::New)
    }

    /// Copies the lines of an index out of their temporary file.
    fn keep_lines(
        &self,
        name: &str,
        kind: &str,
        lines: &mut IndexLines,
    ) -> Result<(), JobDirectoryError> {
        let path = self.path_of("index").join(format!("{name}.{kind}"));
        let mut kept = AppendFile::open(&path)?;
        kept.cut(0)?;
        let mut piece = vec![0; PIECE];
        loop {
            let count = lines.lines.read(&mut piece);
            let count = count.map_err(|source| JobDirectoryError::Read {
                path: path.clone(),
                source,
            })?;
            match piece.get(..count) {
                None | Some([]) => break,
                Some(bytes) => kept.append(bytes)?,
            }
        }
        kept.sync()?;
        Ok(())
    }

    /// Returns the archive files that were indexed, in the order in which they were begun.
    ///
    /// # Errors
    ///
    /// [`JobDirectoryError::Entry`] if a description is damaged, [`JobDirectoryError::Disk`].
    pub fn indexed_files(&self) -> Result<Vec<CrawledFile>, JobDirectoryError> {
        let mut entries = Vec::new();
        for name in directory::list_names(&self.path_of("index"))? {
            let path = self.path_of("index").join(&name);
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let bytes = read_small(&path, MAX_ENTRY)?.unwrap_or_default();
            let entry = serde_json::from_slice(&bytes);
            let entry: CrawledFile =
                entry.map_err(|source| JobDirectoryError::Entry { path, source })?;
            entries.push(entry);
        }
        entries.sort_by_cached_key(|entry| self.file_order(&entry.name));
        Ok(entries)
    }

    /// Returns the index of an archive file, as it was kept.
    ///
    /// # Errors
    ///
    /// [`JobDirectoryError::Read`] if it cannot be opened.
    pub fn index_of(&self, name: &str) -> Result<ArchiveIndex, JobDirectoryError> {
        let lines = |kind: &str| -> Result<IndexLines, JobDirectoryError> {
            let lines = open_file(&self.path_of("index").join(format!("{name}.{kind}")))?;
            Ok(IndexLines { lines, count: 0 })
        };
        Ok(ArchiveIndex {
            file: name.to_owned(),
            cdx: lines("cdx")?,
            captures: lines("cdxj")?,
            problem_count: 0,
            problems: Vec::new(),
            damage: None,
        })
    }
}
