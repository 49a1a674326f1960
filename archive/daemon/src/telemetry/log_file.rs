//! A log file that is put aside when it is large.
//!
//! Not promised: that a line of the log is still there after a power cut, or that two processes may share a file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The number of earlier files that are kept, as `.1` to `.4`; the oldest has the largest number.
const KEPT: u32 = 4;

/// A log file, to which is appended.
pub(super) struct LogFile {
    path: PathBuf,
    file: File,
    length: u64,
    largest: u64,
}

impl LogFile {
    /// Opens the file. It is put aside before it is longer than `largest` bytes.
    pub(super) fn open(path: &Path, largest: u64) -> io::Result<Self> {
        let file = open_to_append(path)?;
        Ok(Self {
            path: path.to_owned(),
            length: file.metadata()?.len(),
            file,
            largest,
        })
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the oldest file is to be replaced, and a log need not survive a power cut"
    )]
    fn put_aside(&mut self) -> io::Result<()> {
        for number in (1..KEPT).rev() {
            match fs::rename(self.numbered(number), self.numbered(number + 1)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                renamed => renamed?,
            }
        }
        fs::rename(&self.path, self.numbered(1))?;
        self.file = open_to_append(&self.path)?;
        Ok(())
    }

    fn numbered(&self, number: u32) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(format!(".{number}"));
        path.into()
    }
}

fn open_to_append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

impl Write for LogFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let added = line.len() as u64;
        if self.length > 0 && self.length + added > self.largest {
            // A file that cannot be put aside is a lesser evil than a log that ends; it is tried again at the next size.
            if let Err(error) = self.put_aside() {
                writeln!(self.file, "cannot put this log file aside: {error}")?;
            }
            self.length = 0;
        }
        self.file.write_all(line)?;
        self.length += added;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a log file grows without end, more earlier files are kept than is said, or the latest lines are lost.
    #[test]
    fn large_log_file_is_put_aside() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("part.log");
        for number in 0..12 {
            // Opened anew each time, as by a process that starts again.
            let mut log = LogFile::open(&path, 20).unwrap();
            writeln!(log, "line {number:04}").unwrap();
        }
        let read = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
        assert_eq!(read("part.log"), "line 0010\nline 0011\n");
        assert_eq!(read("part.log.1"), "line 0008\nline 0009\n");
        assert_eq!(read("part.log.4"), "line 0002\nline 0003\n");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 5);
    }

    /// Fails if a log ends because an earlier file cannot be renamed.
    #[test]
    fn log_goes_on_where_it_cannot_be_put_aside() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("part.log");
        fs::create_dir_all(directory.path().join("part.log.3/full")).unwrap();
        fs::create_dir_all(directory.path().join("part.log.4/full")).unwrap();
        let mut log = LogFile::open(&path, 20).unwrap();
        for number in 0..4 {
            writeln!(log, "line {number:04}").unwrap();
        }
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains("cannot put this log file aside"), "{text}");
        assert!(text.ends_with("line 0003\n"), "{text}");
    }
}
