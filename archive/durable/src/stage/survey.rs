//! The survey of a file without sidecar or outboard: it is hashed as it is on the medium, then given both.
//!
//! Owns the second half of the write path for bytes that did not come through a [`super::Stage`]. The file itself is
//! never moved nor written. Not promised: that no other process writes to it meanwhile; from [`SurveyedFile::publish_file`] on it
//! is read-only.
//!
//! # Errors
//!
//! Every function fails with a [`DiskError`] if a system call does.

use std::path::Path;

use archive_model::Root;
use archive_proof::{ReadAt, TreeBuilder};

use super::{FinalPaths, OutboardSink, Paths, PublishError, from_sink, link, remove_all};
use crate::call;
use crate::error::DiskError;
use crate::sidecar::OutboardRecord;
use crate::verify::UncachedFile;

/// The number of bytes that are read at a time.
const BLOCK: usize = 1024 * 1024;

/// The size and root of a file that was surveyed, with its outboard in `incoming/`.
#[derive(Debug)]
pub struct SurveyedFile {
    paths: Paths,
    size: u64,
    root: Root,
    outboard: OutboardSink,
}

impl SurveyedFile {
    /// Makes the bytes of `file` durable, reads them past the page cache, and writes their outboard into `incoming`.
    /// The remains of an earlier survey of the same `id` are removed.
    pub fn hash_file(incoming: &Path, id: &str, file: &Path) -> Result<Self, DiskError> {
        let paths = Paths::new(incoming, id);
        remove_all(&paths)?;
        call::sync_file(&call::open_for_reading(file)?, file)?;
        let data = UncachedFile::open(file)?;
        let mut tree = TreeBuilder::new(OutboardSink {
            path: paths.outboard.clone(),
            file: None,
            hasher: blake3::Hasher::new(),
        });
        let mut block = vec![0; BLOCK];
        let mut size = 0;
        loop {
            let read = data
                .read_at(size, &mut block)
                .map_err(|error| DiskError::new("read", file, error))?;
            let Some(bytes) = block.get(..read).filter(|bytes| !bytes.is_empty()) else {
                break;
            };
            tree.update(bytes).map_err(from_sink(&paths.outboard))?;
            size += read as u64;
        }
        let tree = tree.finish().map_err(from_sink(&paths.outboard))?;
        Ok(Self {
            paths,
            size,
            root: tree.root,
            outboard: tree.sink,
        })
    }

    /// Returns the size in bytes.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Returns the root of the bytes.
    pub const fn root(&self) -> Root {
        self.root
    }

    /// Returns the outboard that belongs to the file, or `None` for at most one group.
    pub fn outboard(&self) -> Option<OutboardRecord> {
        self.outboard.record()
    }

    /// Gives the file, which bears its final name already, a sidecar and an outboard. Refuses if the name of either is
    /// taken.
    pub fn publish_file(self, sidecar: &[u8], target: &FinalPaths) -> Result<(), PublishError> {
        let file = call::open_for_reading(&target.file)?;
        call::seal_mode(&file, &target.file)?;
        call::sync_file(&file, &target.file)?;
        let mut sidecar_file = call::create_file(&self.paths.sidecar)?;
        call::write_all(&mut sidecar_file, &self.paths.sidecar, sidecar)?;
        call::seal_mode(&sidecar_file, &self.paths.sidecar)?;
        call::sync_file(&sidecar_file, &self.paths.sidecar)?;
        let has_outboard = self.seal_outboard()?;
        target.file.parent().map_or(Ok(()), call::sync_directory)?;
        // The sidecar comes last: with it, the file is complete.
        if has_outboard {
            link(&self.paths.outboard, &target.outboard)?;
        }
        link(&self.paths.sidecar, &target.sidecar)?;
        target
            .sidecar
            .parent()
            .map_or(Ok(()), call::sync_directory)?;
        Ok(remove_all(&self.paths)?)
    }

    /// Puts only the outboard under `path`, durably. A file of one group has none.
    pub fn keep_outboard(self, path: &Path) -> Result<(), PublishError> {
        if self.seal_outboard()? {
            link(&self.paths.outboard, path)?;
            path.parent().map_or(Ok(()), call::sync_directory)?;
        }
        Ok(remove_all(&self.paths)?)
    }

    /// Discards the survey: the file stays as it was.
    pub fn discard(self) -> Result<(), DiskError> {
        remove_all(&self.paths)
    }

    fn seal_outboard(&self) -> Result<bool, DiskError> {
        let Some((outboard, _)) = &self.outboard.file else {
            return Ok(false);
        };
        call::seal_mode(outboard, &self.paths.outboard)?;
        call::sync_file(outboard, &self.paths.outboard)?;
        Ok(true)
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make and damage files")]
mod tests {
    use super::*;

    /// Fails if adopting a file changes or replaces the file, or the remains of a survey that a crash ended stop the
    /// next one.
    #[test]
    fn surveyed_file_gets_its_companions_and_stays_unchanged() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for size in [0, 1, 16_384, 16_385, 300_000] {
            let bytes = vec![9; size];
            let target = FinalPaths {
                file: at(&format!("f{size}")),
                sidecar: at(&format!("f{size}.json")),
                outboard: at(&format!("f{size}.bao")),
            };
            std::fs::write(&target.file, &bytes).unwrap();
            std::fs::create_dir_all(at("incoming")).unwrap();
            // An earlier survey that died has left this file.
            std::fs::write(at("incoming").join("a.bao"), "torn").unwrap();
            let survey = SurveyedFile::hash_file(&at("incoming"), "a", &target.file).unwrap();
            assert_eq!(survey.root().as_bytes(), blake3::hash(&bytes).as_bytes());
            assert_eq!(
                (survey.size(), survey.outboard().is_some()),
                (size as u64, size > 16_384)
            );
            survey.publish_file(b"{}", &target).unwrap();
            assert_eq!(std::fs::read(&target.file).unwrap(), bytes);
            assert_eq!(target.outboard.try_exists().unwrap(), size > 16_384);
            let again = SurveyedFile::hash_file(&at("incoming"), "a", &target.file).unwrap();
            assert!(matches!(
                again.publish_file(b"{}", &target),
                Err(PublishError::Taken(_))
            ));
            SurveyedFile::hash_file(&at("incoming"), "a", &target.file)
                .unwrap()
                .discard()
                .unwrap();
            assert_eq!(std::fs::read_dir(at("incoming")).unwrap().count(), 0);
        }
    }
}
