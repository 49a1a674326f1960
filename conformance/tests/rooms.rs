//! The size of each crate, and the map of its rooms.
//!
//! A crate of more rooms than a reader remembers, or of a `lib.rs` that does not name them, cannot be entered by a
//! stranger. Tests do not count: neither files of tests, nor modules of them at the end of a file.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use conformance::tree::{self, File};

use crate::assert_none;

/// The most lines of a crate, without blank lines and comments.
const MOST_LINES: usize = 12_000;

/// The most files of a crate.
const MOST_FILES: usize = 80;

/// The most modules that a crate may have and not name in its head.
const FEW_MODULES: usize = 4;

/// The folders whose crates are tests themselves.
const TESTS: [&str; 2] = ["conformance/", "testing/"];

/// The size of a crate: its files, and their lines.
#[derive(Debug, Default, PartialEq, Eq)]
struct CrateSize {
    files: usize,
    lines: usize,
}

/// Returns the folder of the crate that a product file belongs to.
fn crate_of(path: &str) -> Option<&str> {
    let (folder, rest) = path.split_once("/src/")?;
    let is_test = ["tests.rs", "testing.rs"]
        .iter()
        .any(|end| rest.ends_with(end))
        || rest.contains("tests/");
    let is_product = Path::new(rest).extension() == Some(OsStr::new("rs")) && !is_test;
    let is_own = TESTS.iter().any(|tests| path.starts_with(tests));
    (is_product && !is_own).then_some(folder)
}

/// Counts the lines of a product file, up to the module of tests that ends it.
fn lines_of(text: &str) -> usize {
    let product = text.split("\n#[cfg(test)]\nmod ").next();
    let lines = product.unwrap_or_default().lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with("//"))
        .count()
}

/// Returns the modules of a crate that its head does not name, as `` `name` `` or as the first word of a line.
fn unnamed_modules(root: &File) -> Vec<String> {
    let head: Vec<&str> = root
        .text
        .lines()
        .filter_map(|line| line.strip_prefix("//!"))
        .collect();
    let is_named = |module: &str| {
        let forms = [
            format!("`{module}`"),
            format!("`mod@{module}`"),
            format!("(mod@{module})"),
        ];
        head.iter().any(|line| {
            forms.iter().any(|form| line.contains(form))
                || line.split_whitespace().next() == Some(module)
        })
    };
    let mut modules = Vec::new();
    let mut is_for_tests = false;
    for line in root.text.lines() {
        let declared = line.strip_suffix(';').and_then(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            match words.as_slice() {
                ["mod", name] | [_, "mod", name] => Some((*name).to_owned()),
                _ => None,
            }
        });
        modules.extend(declared.filter(|_| !is_for_tests));
        is_for_tests = line.starts_with("#[cfg(") && line.contains("test");
    }
    if modules.len() <= FEW_MODULES {
        return Vec::new();
    }
    modules.retain(|module| !is_named(module));
    modules
}

/// Fails if a file of tests counts, or a comment does.
#[test]
fn product_lines_are_counted() {
    assert_eq!(crate_of("archive/db/src/open/torn.rs"), Some("archive/db"));
    for other in [
        "archive/db/src/table/tests.rs",
        "archive/db/src/tests/open.rs",
        "archive/rpc/src/testing.rs",
        "archive/db/tests/damage.rs",
        "conformance/src/tree.rs",
        "viewer/web/src/page.html",
    ] {
        assert_eq!(crate_of(other), None, "{other}");
    }
    let text = "//! Head.\n\nuse a::b;\n/// Doc.\nfn c() {}\n\n#[cfg(test)]\nmod tests {\n}\n";
    assert_eq!(lines_of(text), 2);
}

/// Fails if a module is taken for named that is not, or the reverse.
#[test]
fn modules_without_a_name_are_found() {
    let text = "//! - `one`, [`mod@two`], [the third](mod@three);\n//! four   what it has\n//!\n\nmod one;\npub mod two;\n\
        pub(crate) mod three;\nmod four;\nmod five;\n#[cfg(any(test, feature = \"testing\"))]\npub mod six;\n";
    let root = File {
        path: "x/src/lib.rs".to_owned(),
        text: text.to_owned(),
    };
    assert_eq!(unnamed_modules(&root), ["five"]);
}

/// Fails if a crate, without its tests, has grown beyond 80 files or 12,000 lines: more than a reader can keep in mind.
#[test]
fn crates_are_small() {
    let mut sizes: BTreeMap<String, CrateSize> = BTreeMap::new();
    for file in tree::files().unwrap() {
        if let Some(folder) = crate_of(&file.path) {
            let size = sizes.entry(folder.to_owned()).or_default();
            size.files += 1;
            size.lines += lines_of(&file.text);
        }
    }
    assert!(sizes.contains_key("archive/repository"), "{sizes:?}");
    let large: Vec<String> = sizes
        .iter()
        .filter(|(_, size)| size.files > MOST_FILES || size.lines > MOST_LINES)
        .map(|(folder, size)| format!("{folder}: {} lines in {} files", size.lines, size.files))
        .collect();
    assert_none(
        &large,
        "a crate has at most 12,000 lines and 80 files: move what does not need the rest into a crate of its own",
    );
}

/// Fails if a module was added to a crate, and the list of rooms at the head of its `lib.rs` was forgotten.
#[test]
fn rooms_are_named_in_the_head() {
    let files = tree::files().unwrap().into_iter();
    let roots =
        files.filter(|file| file.path.ends_with("/src/lib.rs") && crate_of(&file.path).is_some());
    let mut missing = Vec::new();
    for root in roots {
        let unnamed = unnamed_modules(&root);
        missing.extend(
            unnamed
                .iter()
                .map(|module| format!("{}: {module}", root.path)),
        );
    }
    assert_none(
        &missing,
        "name each module where the head of lib.rs lists the rooms, with what it has",
    );
}
