//! Which files are meant by the paths on the command line, and under which names.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};

use archive_durable::directory::{self, EntryKind};
use archive_model::FileName;
use tools_terminal::exit::Failure;
use tools_terminal::list::file_name;

/// A path, and the file that it is, or the reason why it is not a file.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) path: PathBuf,
    pub(super) file: Result<SourceFile, Failure>,
}

/// A file to be stored.
#[derive(Debug, PartialEq)]
pub(super) struct SourceFile {
    pub(super) name: FileName,
    /// The size in bytes, when the file was found.
    pub(super) size: u64,
}

/// Finds all files; nothing that was named or lies in a named directory is left out.
pub(super) fn find_sources(paths: &[PathBuf], recursive: bool) -> Vec<Source> {
    let mut found = Vec::new();
    for path in paths {
        match std::fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() && recursive => walk(path, &mut found),
            Ok(metadata) if metadata.is_dir() => {
                let failure = Failure::wrong_usage(format!(
                    "{}: is a directory; add --recursive to store what is in it",
                    path.display()
                ));
                found.push(Source {
                    path: path.clone(),
                    file: Err(failure),
                });
            }
            Ok(metadata) => found.push(source(path.clone(), &metadata)),
            Err(error) => {
                let file = Err(Failure::unreadable_file(path, &error));
                found.push(Source {
                    path: path.clone(),
                    file,
                });
            }
        }
    }
    refuse_same_names(&mut found);
    found
}

fn source(path: PathBuf, metadata: &Metadata) -> Source {
    let file = if metadata.is_file() {
        named(&path, metadata.len())
    } else {
        Err(Failure::wrong_usage(format!(
            "{}: not a regular file; name one",
            path.display()
        )))
    };
    Source { path, file }
}

fn named(path: &Path, size: u64) -> Result<SourceFile, Failure> {
    let last = path.file_name().unwrap_or_default();
    let text = last.to_str().ok_or_else(|| {
        Failure::wrong_usage(format!(
            "{}: the name is not UTF-8; rename the file",
            path.display()
        ))
    })?;
    let name = file_name(text)
        .map_err(|failure| Failure::wrong_usage(format!("{}: {failure}", path.display())))?;
    Ok(SourceFile { name, size })
}

/// Adds everything in a directory, sorted; links are named, not followed.
fn walk(path: &Path, found: &mut Vec<Source>) {
    let mut entries = match directory::list_directory(path) {
        Ok(entries) => entries,
        Err(error) => {
            let failure = Failure::because_failed(format!("{error}; see that you may read it"));
            found.push(Source {
                path: path.to_owned(),
                file: Err(failure),
            });
            return;
        }
    };
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    for entry in entries {
        let path = path.join(&entry.name);
        match entry.kind {
            EntryKind::Directory => walk(&path, found),
            EntryKind::File { size, .. } => {
                let file = named(&path, size);
                found.push(Source { path, file });
            }
            EntryKind::Other => {
                let failure = Failure::wrong_usage(format!(
                    "{}: a link, or not a regular file; name the file that is meant",
                    path.display()
                ));
                found.push(Source {
                    path,
                    file: Err(failure),
                });
            }
        }
    }
}

/// Refuses files with the same name: a name can have one content, and only a person knows which file is meant.
fn refuse_same_names(found: &mut [Source]) {
    let mut count: BTreeMap<FileName, usize> = BTreeMap::new();
    for file in found.iter().filter_map(|source| source.file.as_ref().ok()) {
        *count.entry(file.name.clone()).or_default() += 1;
    }
    for source in found {
        if let Ok(file) = &source.file
            && count.get(&file.name).is_some_and(|count| *count > 1)
        {
            source.file = Err(Failure::wrong_usage(format!(
                "{}: another file on this command line has the name {} too; store one of them",
                source.path.display(),
                file.name
            )));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for directory in ["a", "a/deep", "b"] {
            std::fs::create_dir(root.path().join(directory)).unwrap();
        }
        for file in [
            "a/2.warc",
            "a/deep/1.warc",
            "a/-bad.warc",
            "b/2.warc",
            "b/3.warc",
        ] {
            std::fs::File::create_new(root.path().join(file))
                .unwrap()
                .set_len(5)
                .unwrap();
        }
        std::os::unix::fs::symlink("2.warc", root.path().join("a/link")).unwrap();
        root
    }

    /// Returns the name of each file, or the reason why it is refused.
    fn found(root: &tempfile::TempDir, paths: &[&str], recursive: bool) -> Vec<String> {
        let paths: Vec<PathBuf> = paths.iter().map(|path| root.path().join(path)).collect();
        let say = |source: Source| match source.file {
            Ok(file) => format!("{} {}", file.name, file.size),
            Err(failure) => failure
                .message
                .split("; ")
                .next()
                .unwrap_or_default()
                .rsplit(": ")
                .next()
                .unwrap()
                .to_owned(),
        };
        find_sources(&paths, recursive)
            .into_iter()
            .map(say)
            .collect()
    }

    /// Fails if a file in a directory is left out without a word: one with a name that the archive refuses, or a link.
    #[test]
    fn unusable_paths_are_reported_with_reason() {
        let root = tree();
        let all = found(&root, &["a"], true);
        assert_eq!(
            all,
            [
                "the name starts with '-'",
                "2.warc 5",
                "1.warc 5",
                "a link, or not a regular file"
            ]
        );
        assert_eq!(found(&root, &["a"], false), ["is a directory"]);
        assert_eq!(
            found(&root, &["a/link", "b/3.warc"], false),
            ["link 5", "3.warc 5"]
        );
        assert_eq!(found(&root, &["none"], true), ["there is no such file"]);
    }

    /// Fails if of two files with one name the first is stored, so that their order decides which of them the archive
    /// has.
    #[test]
    fn two_files_of_one_name_are_both_refused() {
        let root = tree();
        let both = found(&root, &["a/2.warc", "b"], true);
        let reason = "another file on this command line has the name 2.warc too";
        assert_eq!(both, [reason, reason, "3.warc 5"]);
    }
}
