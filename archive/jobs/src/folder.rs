//! The directory of a job: `batch/<id>/` beside the admin data.
//!
//! Owns the names of its files, and when they are removed. Every file only grows, or is cut to a length that the table
//! remembers.
//!
//! # Errors
//! Methods fail with a [`DiskError`] if the disk refuses; those that open a file at a length also with
//! [`FolderError::Lost`] if the file has fewer bytes.

use std::fs::File;
use std::io::{Read, Take};
use std::path::{Path, PathBuf};

use archive_durable::directory::{self, EntryKind};
use archive_durable::{AppendFile, DiskError, DiskSeverity};
use archive_model::JobId;

use super::table::Checkpoint;

/// A file of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobFile {
    /// The component to run.
    Component,
    /// The output of all files, by name.
    Output,
    /// The failures, one line for each.
    Errors,
    /// The files that were read, one line for each.
    Manifest,
    /// The result of the reduce step.
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

/// The reason why the files of a job cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A file has fewer bytes than were synced: somebody or the disk has lost them.
    #[error("{} is damaged: it has {found} of the {expected} bytes that were written", .path.display())]
    Lost {
        /// The file.
        path: PathBuf,
        /// The number of bytes that the file has.
        found: u64,
        /// The number of bytes that were synced.
        expected: u64,
    },
}

impl FolderError {
    /// Returns whether the disk has no room.
    pub fn is_full(&self) -> bool {
        match self {
            Self::Disk(error) => error.severity() == DiskSeverity::NoSpace,
            Self::Lost { .. } => false,
        }
    }
}

/// The three files of a run, open at their ends.
#[derive(Debug)]
pub struct RunFiles {
    pub output: AppendFile,
    pub errors: AppendFile,
    pub manifest: AppendFile,
}

impl JobFolder {
    /// Returns the directory of a job, whether or not it exists. `batch` is the directory of all jobs.
    pub fn new(batch: &Path, id: &JobId) -> Self {
        Self(batch.join(id.as_str()))
    }

    /// Creates the directory, empty: what an earlier submission left is removed.
    pub fn make_folder(&self) -> Result<(), DiskError> {
        self.remove_folder()?;
        directory::make_new(&self.0)
    }

    /// Makes the names in it durable.
    pub fn sync_folder(&self) -> Result<(), DiskError> {
        directory::sync_directory(&self.0)
    }

    /// Creates the directory for sorting what does not fit into memory, empty.
    pub fn scratch_folder(&self) -> Result<PathBuf, DiskError> {
        let path = self.0.join("scratch");
        remove_tree(&path)?;
        directory::make_directory(&path)?;
        Ok(path)
    }

    /// Removes a file, if it exists.
    pub fn drop_file(&self, name: JobFile) -> Result<(), DiskError> {
        directory::remove_name(&self.path(name))
    }

    /// Removes the directory for sorting.
    pub fn drop_scratch(&self) -> Result<(), DiskError> {
        remove_tree(&self.0.join("scratch"))
    }

    /// Removes the directory with all its files, if it exists.
    pub fn remove_folder(&self) -> Result<(), DiskError> {
        remove_tree(&self.0)
    }

    /// Opens a file to append to it, cut to `length` bytes.
    pub fn append_file(&self, name: JobFile, length: u64) -> Result<AppendFile, FolderError> {
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

    /// Opens the three files of a run as they were at the checkpoint: what came after it is cut off.
    pub fn open_files(&self, checkpoint: &Checkpoint) -> Result<RunFiles, FolderError> {
        let files = RunFiles {
            output: self.append_file(JobFile::Output, checkpoint.output)?,
            errors: self.append_file(JobFile::Errors, checkpoint.errors)?,
            manifest: self.append_file(JobFile::Manifest, checkpoint.manifest)?,
        };
        self.sync_folder()?;
        Ok(files)
    }

    /// Opens a file to read its first `length` bytes, which all exist.
    pub fn read_file(&self, name: JobFile, length: u64) -> Result<Take<File>, FolderError> {
        let path = self.path(name);
        let found = self.size(name)?;
        if found < length {
            return Err(FolderError::Lost {
                path,
                found,
                expected: length,
            });
        }
        Ok(directory::open_directory(&path)?.take(length))
    }

    /// Returns the length of a file, 0 if it does not exist.
    fn size(&self, name: JobFile) -> Result<u64, DiskError> {
        Ok(match directory::entry_kind(&self.path(name))? {
            Some(EntryKind::File { size, .. }) => size,
            Some(EntryKind::Directory | EntryKind::Other) | None => 0,
        })
    }

    /// Returns the size of all its files together, in bytes.
    pub fn count_bytes(&self) -> Result<u64, DiskError> {
        JobFile::ALL
            .iter()
            .try_fold(0_u64, |sum, name| Ok(sum.saturating_add(self.size(*name)?)))
    }

    fn path(&self, name: JobFile) -> PathBuf {
        self.0.join(name.as_str())
    }
}

impl RunFiles {
    /// Syncs all three files.
    pub fn sync(&self) -> Result<(), DiskError> {
        self.output.sync()?;
        self.errors.sync()?;
        self.manifest.sync()
    }
}

/// Removes a directory with all its contents. If `path` is not a directory, removes its name; a link is not followed.
pub(super) fn remove_tree(path: &Path) -> Result<(), DiskError> {
    match directory::entry_kind(path)? {
        None => Ok(()),
        Some(EntryKind::File { .. } | EntryKind::Other) => directory::remove_name(path),
        Some(EntryKind::Directory) => {
            for name in directory::list_names(path)? {
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

    /// Fails if bytes behind the checkpoint stay, or a file that has lost bytes is opened as if it were whole.
    #[test]
    fn files_are_cut_to_checkpoint_and_loss_refused() {
        let directory = tempfile::tempdir().unwrap();
        let folder = JobFolder::new(directory.path(), &JobId::new("j").unwrap());
        folder.make_folder().unwrap();
        let mut files = folder.open_files(&Checkpoint::default()).unwrap();
        files.output.append(b"0123456789").unwrap();
        files.errors.append(b"e\n").unwrap();
        files.manifest.append(b"{}\n").unwrap();
        files.sync().unwrap();
        assert_eq!(folder.count_bytes().unwrap(), 15);
        drop(folder.open_files(&checkpoint(4, 0, 3)).unwrap());
        assert_eq!(folder.count_bytes().unwrap(), 7);
        let error = folder.open_files(&checkpoint(5, 0, 3)).unwrap_err();
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
            .read_file(JobFile::Output, 3)
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, "012");
        assert!(folder.read_file(JobFile::Result, 1).is_err());
        assert!(folder.read_file(JobFile::Output, 5).is_err());
    }

    /// Fails if files of a sort survive the removal of a job, or a link in its directory leads it to other files.
    #[test]
    fn removed_directory_takes_nothing_outside() {
        let directory = tempfile::tempdir().unwrap();
        let other = directory.path().join("other");
        std::fs::write(&other, b"kept").unwrap();
        let batch = directory.path().join("batch");
        std::fs::create_dir(&batch).unwrap();
        let folder = JobFolder::new(&batch, &JobId::new("j").unwrap());
        folder.make_folder().unwrap();
        let scratch = folder.scratch_folder().unwrap();
        std::fs::create_dir(scratch.join("deep")).unwrap();
        std::fs::write(scratch.join("deep/run-1"), b"x").unwrap();
        std::os::unix::fs::symlink(&other, scratch.join("link")).unwrap();
        folder.remove_folder().unwrap();
        folder.remove_folder().unwrap();
        assert_eq!(std::fs::read(&other).unwrap(), b"kept");
        assert_eq!(directory::list_names(&batch).unwrap().len(), 0);
    }
}
