//! A file that is fetched, or the same bytes on stdout.
//!
//! Owns how a file gets its name: when it is whole, and never over another one unless that is asked for.
//!
//! # Errors
//!
//! Every function fails when the disk does, with the path and the reason; `is_stdout` also where JSON is asked for,
//! `create` and `open` where the name is taken.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Stdout, Write};
use std::path::{Path, PathBuf};

use archive_durable::{DiskError, directory};

use crate::exit::{Exit, Failure};
use crate::output::Output;

/// Returns whether `path` stands for stdout, which only one output can have.
pub fn is_stdout(path: &Path, output: &Output) -> Result<bool, Failure> {
    let is_stdout = path == Path::new("-");
    if is_stdout && output.is_json() {
        return Err(Failure::wrong_usage(
            "--json and -o - both need stdout; leave one of them out",
        ));
    }
    Ok(is_stdout)
}

/// The destination of bytes: stdout, or a file that gets its name when it is whole.
#[derive(Debug)]
pub enum Destination {
    /// Stdout.
    Stdout(BufWriter<Stdout>),
    /// A file.
    File(Partial),
}

impl Destination {
    /// Opens the destination; `-` is stdout. `replace`: a file of this name is replaced.
    pub fn open(path: &Path, replace: bool, output: &Output) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Ok(Self::Stdout(output.writer()));
        }
        Ok(Self::File(Partial::create(path, replace)?))
    }

    /// Writes the next bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match self {
            Self::Stdout(out) => out
                .write_all(bytes)
                .map_err(|error| Failure::output_failed(&error)),
            Self::File(partial) => partial.write(bytes),
        }
    }

    /// Ends the output, once all bytes have been written.
    pub fn finish(self) -> Result<(), Failure> {
        match self {
            Self::Stdout(mut out) => out.flush().map_err(|error| Failure::output_failed(&error)),
            Self::File(partial) => partial.keep(),
        }
    }
}

/// A file that is being written. Dropped before it is kept, it leaves nothing behind.
#[derive(Debug)]
pub struct Partial {
    file: File,
    beside: PathBuf,
    path: PathBuf,
    replace: bool,
    kept: bool,
}

impl Partial {
    /// Begins `PATH.partial`. `replace`: what bears the name, or is left of another attempt, goes.
    pub fn create(path: &Path, replace: bool) -> Result<Self, Failure> {
        let path =
            std::path::absolute(path).map_err(|error| Failure::unreadable_file(path, &error))?;
        if !replace && path.symlink_metadata().is_ok() {
            return Err(taken(&path));
        }
        let mut name = path.as_os_str().to_owned();
        name.push(".partial");
        let beside = PathBuf::from(name);
        if replace {
            directory::remove_name(&beside).map_err(|error| disk(&error))?;
        }
        let created = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&beside);
        let file = created.map_err(|error| {
            let shown = beside.display();
            if error.kind() == io::ErrorKind::AlreadyExists {
                return Failure::new(
                    Exit::Refused,
                    format!("{shown}: another command is writing it, or was killed; wait for it, or use --force"),
                );
            }
            if error.kind() == io::ErrorKind::NotFound {
                return Failure::wrong_usage(format!("{shown}: there is no such directory; make it, or correct -o"));
            }
            Failure::because_failed(format!("{shown}: {error}; choose another place with -o"))
        })?;
        Ok(Self {
            file,
            beside,
            path,
            replace,
            kept: false,
        })
    }

    /// Writes the next bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let written = self.file.write_all(bytes);
        written.map_err(|error| {
            Failure::because_failed(format!(
                "{}: {error}; choose another place with -o",
                self.path.display()
            ))
        })
    }

    /// Returns a second handle on the file, for code that writes to it by itself.
    pub fn writer(&self) -> Result<File, Failure> {
        self.file
            .try_clone()
            .map_err(|error| Failure::because_failed(format!("{}: {error}", self.path.display())))
    }

    /// Makes the file durable and gives it its name.
    pub fn keep(mut self) -> Result<(), Failure> {
        self.file
            .sync_all()
            .map_err(|error| disk(&DiskError::new("fsync", &self.beside, error)))?;
        if self.replace {
            #[expect(
                clippy::disallowed_methods,
                reason = "--force asks for it to be replaced"
            )]
            let moved = std::fs::rename(&self.beside, &self.path);
            moved.map_err(|error| disk(&DiskError::new("rename", &self.path, error)))?;
        } else {
            self.publish()?;
        }
        self.kept = true;
        self.path
            .parent()
            .map_or(Ok(()), directory::sync_directory)
            .map_err(|error| disk(&error))
    }

    /// Moves the name. File systems that cannot do so without replacing (NFS) can link.
    fn publish(&self) -> Result<(), Failure> {
        let from = &self.beside;
        let to = &self.path;
        let moved = match directory::move_new(from, to) {
            Err(error) if error.source.kind() == io::ErrorKind::InvalidInput => {
                std::fs::hard_link(from, to)
                    .map_err(|error| DiskError::new("linkat", to, error))
                    .and_then(|()| directory::remove_name(from))
            }
            other => other,
        };
        moved.map_err(|error| {
            if error.is_taken() {
                taken(to)
            } else {
                disk(&error)
            }
        })
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.kept {
            // What cannot be taken away is named by the next attempt.
            _ = directory::remove_name(&self.beside);
        }
    }
}

fn taken(path: &Path) -> Failure {
    let path = path.display();
    Failure::new(
        Exit::Refused,
        format!("{path}: is there already and was not touched; use --force, or another -o"),
    )
}

fn disk(error: &DiskError) -> Failure {
    Failure::because_failed(format!("{error}; choose another place with -o"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &tempfile::TempDir) -> Vec<String> {
        let entries = directory::list_directory(directory.path()).unwrap();
        let mut names: Vec<String> = entries
            .into_iter()
            .map(|entry| entry.name.into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Fails if half a file gets its final name, or if its `.partial` stays behind.
    #[test]
    fn saved_file_is_whole_or_absent() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        let mut partial = Partial::create(&path, false).unwrap();
        partial.write(b"half").unwrap();
        assert_eq!(names(&directory), ["a.partial"]);
        drop(partial);
        assert_eq!(names(&directory), [""; 0]);
        let mut partial = Partial::create(&path, false).unwrap();
        partial.write(b"whole").unwrap();
        partial.keep().unwrap();
        assert_eq!(names(&directory), ["a"]);
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
    }

    /// Fails if a file is replaced without `--force`, also one that somebody else created while the bytes were coming.
    #[test]
    fn existing_file_is_replaced_only_with_force() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        let write = |bytes: &[u8], replace: bool| {
            let mut partial = Partial::create(&path, replace)?;
            partial.write(bytes)?;
            partial.keep()
        };
        write(b"one", false).unwrap();
        let failure = write(b"two", false).unwrap_err();
        assert_eq!(failure.exit, Exit::Refused, "{failure}");
        assert_eq!(std::fs::read(&path).unwrap(), b"one");
        write(b"two", true).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        // Somebody was faster.
        std::fs::remove_file(&path).unwrap();
        let mut late = Partial::create(&path, false).unwrap();
        late.write(b"late").unwrap();
        File::create_new(&path)
            .unwrap()
            .write_all(b"first")
            .unwrap();
        assert_eq!(late.keep().unwrap_err().exit, Exit::Refused);
        assert_eq!(std::fs::read(&path).unwrap(), b"first");
        assert_eq!(names(&directory), ["a"]);
    }

    /// Fails if two commands write into one `.partial`, or if the refusal does not say which file is in the way.
    #[test]
    fn two_at_once_do_not_mix() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        let first = Partial::create(&path, false).unwrap();
        let failure = Partial::create(&path, false).unwrap_err();
        assert_eq!(failure.exit, Exit::Refused);
        assert!(failure.message.contains("a.partial"), "{failure}");
        first.keep().unwrap();
        let failure = Partial::create(&directory.path().join("no/a"), false).unwrap_err();
        assert_eq!(failure.exit, Exit::Usage);
    }
}
