//! The layout of one volume: the paths of everything on it, which `FORMAT.md` draws.
//!
//! # Errors
//!
//! The functions that look at the disk or write to it fail with a [`DiskError`].

mod beside;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use archive_durable::directory::EntryKind;
use archive_durable::volume::LABEL_NAME;
use archive_durable::{DiskError, FinalPaths, directory, replace};
use archive_model::file_name::MANIFEST_NAME;
use archive_model::{FileName, UploadId};

pub(crate) use beside::{MendPaths, is_mend_name, journal_file};

/// The number of directories over which the files of a volume are spread.
pub const FILE_DIRECTORIES: usize = 256;

/// The directories at the top of a volume.
const TOP: [&str; 4] = ["files", "meta", "incoming", "attic"];

fn is_file_directory(name: &str) -> bool {
    name.len() == 2
        && name
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The paths of one volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    root: PathBuf,
}

/// A directory of a volume, one of 256, by the first byte of BLAKE3(name).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileDirectory(u8);

impl FileDirectory {
    /// Returns the directory in which the file `name` belongs.
    pub fn for_name(name: &FileName) -> Self {
        let [first, ..] = *blake3::hash(name.as_str().as_bytes()).as_bytes();
        Self(first)
    }

    /// Returns all directories, in order.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..=u8::MAX).map(Self)
    }

    /// Reads the name of an archive file in this directory. Returns `None` if the name is not that of an archive file,
    /// or belongs in another directory: what lies here is not that file then.
    pub fn file_name(self, called: &OsStr) -> Option<FileName> {
        let name = FileName::new(called.to_str()?).ok()?;
        (Self::for_name(&name) == self).then_some(name)
    }

    /// Reads the name of an archive file that belongs in another directory than this one.
    pub fn stray_file_name(self, called: &OsStr) -> Option<FileName> {
        let name = FileName::new(called.to_str()?).ok()?;
        (Self::for_name(&name) != self).then_some(name)
    }

    fn name(self) -> String {
        format!("{:02x}", self.0)
    }
}

impl Layout {
    /// Returns the layout below the directory `root`.
    pub fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
        }
    }

    /// Returns the directory of the volume.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the directory in which uploads are received.
    pub fn incoming(&self) -> PathBuf {
        self.root.join("incoming")
    }

    /// Returns the directory of replaced and removed files and of leftovers.
    pub fn attic(&self) -> PathBuf {
        self.root.join("attic")
    }

    /// Returns the path of the archived files of one directory.
    pub fn files(&self, on: FileDirectory) -> PathBuf {
        self.root.join("files").join(on.name())
    }

    /// Returns the path of the sidecars and outboards of the files of one directory.
    pub fn meta(&self, on: FileDirectory) -> PathBuf {
        self.root.join("meta").join(on.name())
    }

    /// Returns the manifest of one directory.
    pub fn manifest(&self, on: FileDirectory) -> PathBuf {
        self.files(on).join(MANIFEST_NAME)
    }

    /// Returns the final names of one file.
    pub fn target_paths(&self, name: &FileName) -> FinalPaths {
        let place = FileDirectory::for_name(name);
        FinalPaths {
            file: self.files(place).join(name.as_str()),
            sidecar: self.meta(place).join(format!("{name}.json")),
            outboard: self.meta(place).join(format!("{name}.bao")),
        }
    }

    /// Returns the path at which the bytes of an upload are received.
    pub fn upload(&self, upload: &UploadId) -> PathBuf {
        self.incoming().join(upload.as_str())
    }

    /// Returns whether the directory holds nothing but, at most, empty directories of the layout.
    pub fn is_bare(&self) -> Result<bool, DiskError> {
        // The remains of a label that was not written to its end.
        let unfinished = replace::unfinished_path(&self.root.join(LABEL_NAME));
        let unfinished = unfinished.file_name().unwrap_or_default();
        let mut pending = vec![self.root.clone()];
        while let Some(path) = pending.pop() {
            for entry in directory::list_directory(&path)? {
                let name = entry.name.to_str().unwrap_or_default();
                let is_top = path == self.root;
                let is_ours = if is_top {
                    TOP.contains(&name)
                } else {
                    is_file_directory(name)
                };
                if is_ours && entry.kind == EntryKind::Directory {
                    pending.push(path.join(name));
                } else if !(is_top && (name == "lost+found" || name == unfinished)) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Makes every directory of the layout that is not there, durably, and returns these.
    pub fn make_directories(&self) -> Result<Vec<PathBuf>, DiskError> {
        let mut made = Vec::new();
        let mut ensure = |path: PathBuf| {
            if directory::entry_kind(&path)?.is_none() {
                directory::make_unsynced(&path)?;
                made.push(path);
            }
            Ok::<(), DiskError>(())
        };
        for top in TOP {
            ensure(self.root.join(top))?;
        }
        for dir in FileDirectory::all() {
            ensure(self.files(dir))?;
            ensure(self.meta(dir))?;
        }
        let parents: BTreeSet<&Path> = made.iter().filter_map(|path| path.parent()).collect();
        for parent in parents {
            directory::sync_directory(parent)?;
        }
        Ok(made)
    }

    /// Returns whether every directory is there that an act on a file may need.
    pub(crate) fn has_place(&self, name: &FileName) -> Result<bool, DiskError> {
        let dir = FileDirectory::for_name(name);
        for path in [
            self.files(dir),
            self.meta(dir),
            self.incoming(),
            self.attic(),
        ] {
            if directory::entry_kind(&path)?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Returns whether a regular file bears the name. A link is not followed.
pub(crate) fn is_file(path: &Path) -> Result<bool, DiskError> {
    let kind = directory::entry_kind(path)?;
    Ok(matches!(kind, Some(directory::EntryKind::File { .. })))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if the place of a file, its sidecar or its outboard changes, so that existing volumes cannot be read, or a
    /// hidden file or one in the wrong directory counts as an archive file.
    #[test]
    fn a_name_has_its_place() {
        let layout = Layout::new(Path::new("/v"));
        let name = FileName::new("a.warc.gz").unwrap();
        let dir = &blake3::hash(b"a.warc.gz").to_hex()[..2];
        let target = layout.target_paths(&name);
        assert_eq!(target.file, Path::new(&format!("/v/files/{dir}/a.warc.gz")));
        assert_eq!(
            target.sidecar,
            Path::new(&format!("/v/meta/{dir}/a.warc.gz.json"))
        );
        assert_eq!(
            target.outboard,
            Path::new(&format!("/v/meta/{dir}/a.warc.gz.bao"))
        );
        assert_eq!(FileDirectory::all().count(), FILE_DIRECTORIES);
        let directories =
            FileDirectory::all().filter(|dir| dir.file_name("a.warc.gz".as_ref()).is_some());
        assert_eq!(
            directories.collect::<Vec<_>>(),
            [FileDirectory::for_name(&name)]
        );
        assert!(FileDirectory::all().all(|dir| dir.file_name(".a".as_ref()).is_none()));
    }
}
