//! The files of the source tree, as a fresh checkout has them.
//!
//! # Errors
//!
//! All functions fail if a file or folder of the tree cannot be read, or a name is not UTF-8; the error names it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Folders that are made by building and running, never checked in.
const MADE: [&str; 3] = ["target", ".git", "holdfast-data"];

/// Returns the root of the workspace.
pub fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// Returns the text of a file, by its path from the root.
pub fn read(path: &str) -> Result<String> {
    let path = root().join(path);
    fs::read_to_string(&path).with_context(|| format!("{}", path.display()))
}

/// A file of the source tree.
#[derive(Debug)]
pub struct File {
    /// The path of the file from the root, with `/` between the parts.
    pub path: String,
    /// The content of the file; bytes that are not UTF-8 are replaced.
    pub text: String,
}

impl File {
    /// Returns whether the name of the file has this extension.
    pub fn is(&self, kind: &str) -> bool {
        Path::new(&self.path)
            .extension()
            .is_some_and(|found| found == kind)
    }

    /// Returns the numbers, from 1, of the lines that `matches`.
    pub fn lines_where(&self, matches: impl Fn(&str) -> bool) -> Vec<usize> {
        self.text
            .lines()
            .zip(1..)
            .filter(|(line, _)| matches(line))
            .map(|(_, number)| number)
            .collect()
    }

    /// Returns the lines that `matches`, each as `path:line`, to click on.
    pub fn places_where(&self, matches: impl Fn(&str) -> bool) -> Vec<String> {
        self.lines_where(matches)
            .into_iter()
            .map(|number| format!("{}:{number}", self.path))
            .collect()
    }
}

/// Returns all files of the tree, sorted by path.
pub fn files() -> Result<Vec<File>> {
    let mut files = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder))? {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                if !MADE.iter().any(|made| entry.file_name() == *made) {
                    folders.push(path);
                }
            } else if entry.file_type()?.is_file() {
                let bytes = fs::read(entry.path())?;
                let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
                files.push(File {
                    path: parts.join("/"),
                    text: String::from_utf8_lossy(&bytes).into_owned(),
                });
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}
