//! The index of each archive file in the directory of a job, and what describes the file.

use std::io::{BufReader, Read};

use archive_durable::{AppendFile, HashedFile, UncachedFile, directory, read_small, replace_file};
use archive_model::Root;
use harvest_crawler::archive_files::ClosedFile;
use harvest_reports::index::{ArchiveIndex, IndexLines, index_archive_file};

use super::{CrawledFile, JobDirectory, JobDirectoryError, open_file};

/// The longest description of a file.
const MAX_ENTRY: u64 = 64 << 10;

/// The bytes that are read at a time.
const READ_SIZE: usize = 1 << 20;

/// The bytes that are copied at a time.
const PIECE: usize = 256 << 10;

/// The outcome of indexing an archive file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IndexedFile {
    /// The file is whole, and has an index. This is its root.
    Whole(Root),
    /// The file is damaged, first by this; it has no index.
    Damaged(String),
}

impl JobDirectory {
    /// Indexes an archive file that was closed, from its first byte, and describes it. One that has an index is compared
    /// with the root that it was closed with. A damaged one has no index.
    ///
    /// # Errors
    ///
    /// [`JobDirectoryError::Index`], [`JobDirectoryError::Disk`].
    pub(crate) fn index_file(&self, closed: &ClosedFile) -> Result<IndexedFile, JobDirectoryError> {
        let name = &closed.name;
        let path = self.path_of("index").join(format!("{name}.json"));
        if let Some(entry) = self.read_json::<CrawledFile>(&format!("index/{name}.json"))? {
            if UncachedFile::open(&closed.path)?.root()? == entry.root {
                return Ok(IndexedFile::Whole(entry.root));
            }
            directory::remove_name(&path)?;
            let damage = format!(
                "its bytes are others than those it was closed with ({})",
                entry.root
            );
            return Ok(IndexedFile::Damaged(damage));
        }
        let scratch = self.path_of("scratch");
        directory::make_unsynced(&scratch)?;
        let mut archive = HashedFile::open(&closed.path)?;
        let buffered = BufReader::with_capacity(READ_SIZE, &mut archive);
        let mut index = index_archive_file(buffered, name, &scratch)?;
        if let Some(damage) = index.damage {
            return Ok(IndexedFile::Damaged(damage));
        }
        let (size, root) = archive.finish()?;
        self.keep_lines(name, "cdx", &mut index.cdx)?;
        self.keep_lines(name, "cdxj", &mut index.captures)?;
        let description = serde_json::json!(CrawledFile {
            name: name.clone(),
            size,
            closed: closed.closed,
            root,
        });
        replace_file(&path, description.to_string().as_bytes())?;
        Ok(IndexedFile::Whole(root))
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
