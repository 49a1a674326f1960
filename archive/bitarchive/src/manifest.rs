//! The manifests: one list for each directory, which `b3sum -c` can read in fifty years.
//!
//! A manifest is derived: a line is added when a file is stored, and the whole list is written again at start if it
//! does not agree with the sidecars. It decides nothing.
//!
//! # Errors
//!
//! Every function fails with a [`DiskError`] if a system call does.

use std::path::Path;

use archive_durable::{AppendFile, DiskError, read_state, replace_file};
use archive_model::{FileName, Root};

/// Adds the line of one file.
pub fn add_line(path: &Path, name: &FileName, root: Root) -> Result<(), DiskError> {
    AppendFile::open(path)?.append(line(name, root).as_bytes())
}

/// Removes the lines of one file.
pub fn remove_line(path: &Path, name: &FileName) -> Result<(), DiskError> {
    let Some(found) = read_state(path)? else {
        return Ok(());
    };
    let text = String::from_utf8_lossy(&found);
    let is_other = |line: &&str| {
        line.trim_end_matches('\n')
            .split_once("  ")
            .map(|(_, name)| name)
            != Some(name.as_str())
    };
    let rest: String = text.split_inclusive('\n').filter(is_other).collect();
    if rest.len() == text.len() {
        return Ok(());
    }
    replace_file(path, rest.as_bytes())
}

/// Writes the list again unless it has exactly these lines, in any order. Returns whether it was written.
pub fn set_lines<'a>(
    path: &Path,
    files: impl Iterator<Item = (&'a FileName, Root)>,
) -> Result<bool, DiskError> {
    let mut expected: Vec<String> = files.map(|(name, root)| line(name, root)).collect();
    expected.sort_unstable_by(|a, b| a.get(66..).cmp(&b.get(66..)));
    if says(path, &expected)? {
        return Ok(false);
    }
    replace_file(path, expected.concat().as_bytes())?;
    Ok(true)
}

fn says(path: &Path, expected: &[String]) -> Result<bool, DiskError> {
    let found = match read_state(path) {
        Ok(Some(found)) => found,
        Ok(None) => return Ok(expected.is_empty()),
        Err(error) if error.is_exhausted() => return Err(error),
        // The manifest cannot be read: the new one is written elsewhere on the disk.
        Err(error) => {
            tracing::warn!(%error, "a manifest cannot be read");
            return Ok(false);
        }
    };
    let Ok(text) = String::from_utf8(found) else {
        return Ok(false);
    };
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    lines.sort_unstable_by(|a, b| a.get(66..).cmp(&b.get(66..)));
    Ok(lines == expected)
}

fn line(name: &FileName, root: Root) -> String {
    format!("{root}  {name}\n")
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make and damage files")]
mod tests {
    use super::*;

    /// Fails if `b3sum -c` refuses a manifest, or one that a crash has cut stays as it is.
    #[test]
    fn b3sum_reads_manifest_and_cut_one_is_rewritten() {
        let directory = crate::testing::directory();
        let path = directory.path().join("manifest-blake3.txt");
        let files: Vec<(FileName, Root)> = ["b.warc", "a x.warc", "Måned.warc"]
            .into_iter()
            .map(|name| {
                std::fs::write(directory.path().join(name), name).unwrap();
                (
                    FileName::new(name).unwrap(),
                    Root::from_bytes(*blake3::hash(name.as_bytes()).as_bytes()),
                )
            })
            .collect();
        for (name, root) in &files {
            add_line(&path, name, *root).unwrap();
        }
        let all = || files.iter().map(|(name, root)| (name, *root));
        assert!(!set_lines(&path, all()).unwrap(), "any order will do");
        let text = std::fs::read(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 3]).unwrap();
        assert!(set_lines(&path, all()).unwrap());
        assert!(!set_lines(&path, all()).unwrap());
        add_line(&path, &FileName::new("a").unwrap(), files[0].1).unwrap();
        remove_line(&path, &FileName::new("a").unwrap()).unwrap();
        remove_line(&path, &FileName::new("x.warc").unwrap()).unwrap();
        assert!(!set_lines(&path, all()).unwrap(), "only whole names count");
        match std::process::Command::new("b3sum")
            .arg("-c")
            .arg(&path)
            .current_dir(directory.path())
            .output()
        {
            Ok(output) => assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stdout)
            ),
            Err(error) => {
                tools_testing::skipped(&format!(
                    "the manifest was not compared with b3sum: {error}"
                ));
            }
        }
    }
}
