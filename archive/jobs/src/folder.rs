//! The directory of a job: `batch/<id>/` beside the admin data.
//!
//! Owns its names and what is removed when. Every file only grows, or is cut to a length that the table remembers.

use std::fs::File;
use std::io::{Read, Take};
use std::path::{Path, PathBuf};

use archive_durable::directory::{self, EntryKind};
use archive_durable::{AppendFile, DiskError, Severity};
use archive_model::JobId;

use super::table::Checkpoint;

/// One file of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobFile {
    /// What is run, where it is a component.
    Component,
    /// The output of all files, by name.
    Output,
    /// What failed.
    Errors,
    /// What was read.
    Manifest,
    /// What the reduce step made of the output.
    Result,
}

impl JobFile {
    const ALL: [Self; 5] = [
        Self::Component,
        Self::Output,
        Self::Errors,
        Self::Manifest,
        Self::Result,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Component => "component.wasm",
            Self::Output => "output",
            Self::Errors => "errors.jsonl",
            Self::Manifest => "manifest.jsonl",
            Self::Result => "result",
        }
    }
}

/// The directory of one job.
#[derive(Clone, Debug)]
pub struct JobFolder(PathBuf);

/// Why the files of a job cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The disk.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// Less is there than was synced: somebody took it away, or the disk did.
    #[error("{}: {found} bytes are there of {expected} that were written", .path.display())]
    Lost {
        /// The file.
        path: PathBuf,
        /// How many bytes it has.
        found: u64,
        /// How many were synced.
        expected: u64,
    },
}

impl FolderError {
    /// Whether there is no room.
    pub fn is_full(&self) -> bool {
        match self {
            Self::Disk(error) => error.severity() == Severity::NoSpace,
            Self::Lost { .. } => false,
        }
    }
}

/// The three files of a run, open at their ends.
#[derive(Debug)]
pub struct Files {
    pub output: AppendFile,
    pub errors: AppendFile,
    pub manifest: AppendFile,
}

impl JobFolder {
    /// That of a job, whether or not it is there. `batch` is the directory of all.
    pub fn of(batch: &Path, id: &JobId) -> Self {
        Self(batch.join(id.as_str()))
    }

    /// Makes it, empty: what an earlier submission left is removed.
    pub fn make(&self) -> Result<(), DiskError> {
        self.remove()?;
        directory::make_new(&self.0)
    }

    /// Makes the names in it durable.
    pub fn sync(&self) -> Result<(), DiskError> {
        directory::sync(&self.0)
    }

    /// Where sorting may put what does not fit into memory; made anew, empty.
    pub fn scratch(&self) -> Result<PathBuf, DiskError> {
        let path = self.0.join("scratch");
        remove_tree(&path)?;
        directory::make(&path)?;
        Ok(path)
    }

    /// Takes a file away; one that is gone already is fine.
    pub fn drop_file(&self, name: JobFile) -> Result<(), DiskError> {
        directory::remove_name(&self.path(name))
    }

    /// Takes the scratch away.
    pub fn drop_scratch(&self) -> Result<(), DiskError> {
        remove_tree(&self.0.join("scratch"))
    }

    /// Takes everything away; a directory that is gone already is fine.
    pub fn remove(&self) -> Result<(), DiskError> {
        remove_tree(&self.0)
    }

    /// Opens a file at its end, made empty if `anew`.
    pub fn append(&self, name: JobFile, length: u64) -> Result<AppendFile, FolderError> {
        let path = self.path(name);
        let found = self.size(name)?;
        if found < length {
            return Err(FolderError::Lost {
                path,
                found,
                expected: length,
            });
        }
        let mut file = AppendFile::open(&path)?;
        if found > length {
            file.cut(length)?;
        }
        Ok(file)
    }

    /// Opens the three files of a run as they were at the mark: what came after it is cut off.
    pub fn open(&self, checkpoint: &Checkpoint) -> Result<Files, FolderError> {
        let files = Files {
            output: self.append(JobFile::Output, checkpoint.output)?,
            errors: self.append(JobFile::Errors, checkpoint.errors)?,
            manifest: self.append(JobFile::Manifest, checkpoint.manifest)?,
        };
        self.sync()?;
        Ok(files)
    }

    /// Opens a file to read its first `length` bytes; all of them are there.
    pub fn read(&self, name: JobFile, length: u64) -> Result<Take<File>, FolderError> {
        let path = self.path(name);
        let found = self.size(name)?;
        if found < length {
            return Err(FolderError::Lost {
                path,
                found,
                expected: length,
            });
        }
        Ok(directory::open(&path)?.take(length))
    }

    /// How long a file is; 0 where there is none.
    fn size(&self, name: JobFile) -> Result<u64, DiskError> {
        Ok(match directory::kind(&self.path(name))? {
            Some(EntryKind::File { size, .. }) => size,
            Some(EntryKind::Directory | EntryKind::Other) | None => 0,
        })
    }

    /// How many bytes its files have together.
    pub fn bytes(&self) -> Result<u64, DiskError> {
        JobFile::ALL
            .iter()
            .try_fold(0_u64, |sum, name| Ok(sum.saturating_add(self.size(*name)?)))
    }

    fn path(&self, name: JobFile) -> PathBuf {
        self.0.join(name.as_str())
    }
}

impl Files {
    /// Makes all three durable.
    pub fn sync(&self) -> Result<(), DiskError> {
        self.output.sync()?;
        self.errors.sync()?;
        self.manifest.sync()
    }
}

/// Takes a directory away with all in it. What is no directory loses its name; a link is not followed.
pub(super) fn remove_tree(path: &Path) -> Result<(), DiskError> {
    match directory::kind(path)? {
        None => Ok(()),
        Some(EntryKind::File { .. } | EntryKind::Other) => directory::remove_name(path),
        Some(EntryKind::Directory) => {
            for name in directory::names(path)? {
                remove_tree(&path.join(name))?;
            }
            directory::remove_empty(path)
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests damage files")]
mod tests {
    use super::*;

    fn checkpoint(output: u64, errors: u64, manifest: u64) -> Checkpoint {
        Checkpoint {
            output,
            errors,
            manifest,
            ..Checkpoint::default()
        }
    }

    #[test]
    fn files_are_cut_to_the_mark_and_loss_is_never_filled() {
        let directory = tempfile::tempdir().unwrap();
        let folder = JobFolder::of(directory.path(), &JobId::new("j").unwrap());
        folder.make().unwrap();
        let mut files = folder.open(&Checkpoint::default()).unwrap();
        files.output.append(b"0123456789").unwrap();
        files.errors.append(b"e\n").unwrap();
        files.manifest.append(b"{}\n").unwrap();
        files.sync().unwrap();
        assert_eq!(folder.bytes().unwrap(), 15);
        drop(folder.open(&checkpoint(4, 0, 3)).unwrap());
        assert_eq!(folder.bytes().unwrap(), 7);
        let error = folder.open(&checkpoint(5, 0, 3)).unwrap_err();
        assert!(
            matches!(
                error,
                FolderError::Lost {
                    found: 4,
                    expected: 5,
                    ..
                }
            ),
            "{error}"
        );
        let mut text = String::new();
        folder
            .read(JobFile::Output, 3)
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, "012");
        assert!(folder.read(JobFile::Result, 1).is_err());
        assert!(folder.read(JobFile::Output, 5).is_err());
    }

    #[test]
    fn a_directory_goes_with_all_that_sorting_left_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let other = directory.path().join("other");
        std::fs::write(&other, b"kept").unwrap();
        let batch = directory.path().join("batch");
        std::fs::create_dir(&batch).unwrap();
        let folder = JobFolder::of(&batch, &JobId::new("j").unwrap());
        folder.make().unwrap();
        let scratch = folder.scratch().unwrap();
        std::fs::create_dir(scratch.join("deep")).unwrap();
        std::fs::write(scratch.join("deep/run-1"), b"x").unwrap();
        std::os::unix::fs::symlink(&other, scratch.join("link")).unwrap();
        folder.remove().unwrap();
        folder.remove().unwrap();
        assert_eq!(std::fs::read(&other).unwrap(), b"kept");
        assert_eq!(directory::names(&batch).unwrap().len(), 0);
    }
}
