//! Components that were compiled before, on disk.
//!
//! Machine code is run as it lies there, and wasmtime believes what it reads: its cache has no sums. Owns a sum for
//! each of its files. A file that is not as it was written, or was never noted, is deleted before anything is compiled.
//! Nothing is synced, since a loss costs nothing but time: the file of a sum that a crash has lost or torn is deleted,
//! and its component is compiled again.
//!
//! Not promised: anything against a user who may write here; they can run what they like.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use blake3::Hash;
use parking_lot::Mutex;

/// The hashes of the files, by their path below the directory of the code.
type Sums = BTreeMap<String, Hash>;

/// The directory of what is compiled, and the sums beside it.
#[derive(Debug)]
pub(super) struct Cache {
    code: PathBuf,
    /// A line for each file, as `b3sum` writes them.
    sums: PathBuf,
    turn: Mutex<()>,
}

impl Cache {
    pub(super) fn new(root: &Path) -> Self {
        Self {
            code: root.join("code"),
            sums: root.join("sums"),
            turn: Mutex::new(()),
        }
    }

    /// Returns the directory in which wasmtime keeps compiled code.
    pub(super) fn code_path(&self) -> &Path {
        &self.code
    }

    /// Runs `compile` with a cache that has only files as they were written, and then notes the new files. One caller
    /// at a time.
    pub(super) fn with_lock<T>(&self, compile: impl FnOnce() -> T) -> io::Result<T> {
        let _turn = self.turn.lock();
        let mut known = self.clean()?;
        let compiled = compile();
        for (name, path) in files(&self.code)? {
            if let Entry::Vacant(new) = known.entry(name)
                && let Some(sum) = there(sum(&path))?
            {
                new.insert(sum);
            }
        }
        self.write(&known)?;
        Ok(compiled)
    }

    /// Deletes files that are not as they were written. Returns the sums of the others.
    fn clean(&self) -> io::Result<Sums> {
        let noted = self.read()?;
        let mut known = Sums::new();
        for (name, path) in files(&self.code)? {
            let Some(found) = there(sum(&path))? else {
                continue;
            };
            if noted.get(&name) == Some(&found) {
                known.insert(name, found);
            } else {
                there(fs::remove_file(&path))?;
            }
        }
        Ok(known)
    }

    /// Reads the noted sums. A line that cannot be read is passed over: its file is compiled again.
    fn read(&self) -> io::Result<Sums> {
        let bytes = there(fs::read(&self.sums))?.unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let lines = text.lines().filter_map(|line| {
            let (sum, name) = line.split_once("  ")?;
            Some((name.to_owned(), Hash::from_hex(sum).ok()?))
        });
        Ok(lines.collect())
    }

    fn write(&self, sums: &Sums) -> io::Result<()> {
        let root = self.sums.parent().unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(root)?;
        for (name, sum) in sums {
            writeln!(file, "{sum}  {name}")?;
        }
        file.persist(&self.sums)?;
        Ok(())
    }
}

fn sum(path: &Path) -> io::Result<Hash> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(path)?)?;
    Ok(hasher.finalize())
}

/// Returns `None` if a file is absent: a thread of wasmtime tidies up meanwhile.
fn there<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the files with code in them, whose names have no extension. Beside each, wasmtime notes how often it was
/// used, and both are written under other names first: such files are never run.
fn files(directory: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(next) = directories.pop() {
        let Some(entries) = there(fs::read_dir(&next))? else {
            continue;
        };
        for entry in entries {
            let entry = entry?;
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                directories.push(path);
            } else if path.extension().is_none() {
                let name = path.strip_prefix(directory).unwrap_or(&path);
                found.push((name.to_string_lossy().into_owned(), path));
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests damage files")]
mod tests {
    use super::*;

    /// Returns the files that a compiler finds in the cache.
    fn cached_names(cache: &Cache) -> Vec<String> {
        let seen = cache.with_lock(|| files(&cache.code).unwrap()).unwrap();
        let mut names: Vec<_> = seen.into_iter().map(|(name, _)| name).collect();
        names.sort();
        names
    }

    fn put(cache: &Cache, name: &str, bytes: &[u8]) {
        let path = cache.code.join("modules/wasmtime").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// Fails if compiled code that is damaged, cut off by a crash or put there by others would be run, or good code is
    /// not found after a restart.
    #[test]
    fn only_intact_entries_are_found_again() {
        let root = tempfile::tempdir().unwrap();
        let cache = Cache::new(root.path());
        assert!(cached_names(&cache).is_empty());
        cache
            .with_lock(|| {
                put(&cache, "one", b"code");
                put(&cache, "one.stats", b"used once");
                put(&cache, "one.wip-atomic-write-mod", b"co");
                put(&cache, "two", b"other code");
            })
            .unwrap();
        let both = ["modules/wasmtime/one", "modules/wasmtime/two"];
        assert_eq!(cached_names(&cache), both);
        assert_eq!(
            cached_names(&Cache::new(root.path())),
            both,
            "after a restart"
        );
        // A bit that flips, and a file that nobody noted: cut off by a crash, or put there by another.
        put(&cache, "two", b"other codf");
        put(&cache, "three", b"more");
        put(&cache, "one.stats", b"used twice");
        assert_eq!(cached_names(&cache), both[..1]);
        assert_eq!(cached_names(&cache), both[..1]);
        // Sums that cannot be read say nothing of any file.
        fs::write(&cache.sums, b"\xff\n  \n00  modules/wasmtime/one\n").unwrap();
        assert!(cached_names(&cache).is_empty());
    }
}
