//! Names that a person hands over: one by one, or as a list, which is a file of lines.
//!
//! # Errors
//!
//! A text that is no name; a list that cannot be read, or is longer than one of its kind may be: it is never read in
//! part.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use archive_model::FileName;

use crate::exit::Failure;
use crate::output::size_text;

/// The longest list of names that is read, in bytes.
const LONGEST_NAMES: u64 = 64 << 20;

/// Reads the name of an archive file.
pub fn file_name(text: &str) -> Result<FileName, Failure> {
    FileName::new(text).map_err(|error| {
        Failure::wrong_usage(format!(
            "{text:?} is not a name of an archive file: {error}; correct it"
        ))
    })
}

/// Reads a list of names. One that names nothing is refused: without names, everything would be meant.
pub fn read_names(path: &Path) -> Result<Vec<FileName>, Failure> {
    let text = read_list(path, LONGEST_NAMES)?;
    let names: Vec<FileName> = text
        .lines()
        .filter(|line| !line.is_empty())
        .map(file_name)
        .collect::<Result<_, _>>()?;
    if names.is_empty() {
        let path = path.display();
        return Err(Failure::wrong_usage(format!(
            "{path}: names no file; write one name a line, or leave --names out to mean all"
        )));
    }
    Ok(names)
}

/// Reads the whole text of a list of at most `longest` bytes.
pub fn read_list(path: &Path, longest: u64) -> Result<String, Failure> {
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(longest + 1).read_to_string(&mut text))
        .map_err(|error| Failure::unreadable_file(path, &error))?;
    if text.len() as u64 > longest {
        return Err(Failure::wrong_usage(format!(
            "{}: longer than {}, which is the most that is read; split the list",
            path.display(),
            size_text(longest)
        )));
    }
    Ok(text)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests write files")]
mod tests {
    use super::*;
    use crate::exit::Exit;

    /// Fails if a list that is one byte too long is read in part, or the longest one is refused.
    #[test]
    fn list_is_read_whole_or_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("names");
        std::fs::write(&path, "a\nb\n").unwrap();
        assert_eq!(read_list(&path, 4).unwrap(), "a\nb\n");
        let refused = read_list(&path, 3).unwrap_err();
        assert_eq!(refused.exit, Exit::Usage);
        assert!(
            refused.message.contains("split the list"),
            "{}",
            refused.message
        );
    }

    /// Fails if an empty list of names turns into a list of every file, or a bad name in it is passed over.
    #[test]
    fn empty_list_does_not_mean_all_files() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("names");
        std::fs::write(&path, "").unwrap();
        assert_eq!(read_names(&path).unwrap_err().exit, Exit::Usage);
        std::fs::write(&path, "a.warc\n\nMåned 1.warc\n").unwrap();
        assert_eq!(read_names(&path).unwrap().len(), 2);
        std::fs::write(&path, "a.warc\n../b\n").unwrap();
        assert_eq!(read_names(&path).unwrap_err().exit, Exit::Usage);
    }
}
