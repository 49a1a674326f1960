//! A list that a person hands over as a file of lines.
//!
//! # Errors
//!
//! A file that cannot be read, or is longer than a list of its kind may be: it is never read in part.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::exit::Failure;
use crate::output::size;

/// Reads the whole text of a list of at most `longest` bytes.
pub fn read(path: &Path, longest: u64) -> Result<String, Failure> {
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(longest + 1).read_to_string(&mut text))
        .map_err(|error| Failure::unreadable(path, &error))?;
    if text.len() as u64 > longest {
        return Err(Failure::usage(format!(
            "{}: longer than {}, which is the most that is read; split the list",
            path.display(),
            size(longest)
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
        assert_eq!(read(&path, 4).unwrap(), "a\nb\n");
        let refused = read(&path, 3).unwrap_err();
        assert_eq!(refused.exit, Exit::Usage);
        assert!(
            refused.message.contains("split the list"),
            "{}",
            refused.message
        );
    }
}
