//! The map of the rooms of each crate: the head of its `lib.rs` names the modules.
//!
//! Modules of tests do not count.

use conformance::tree::{self, File};

use crate::assert_none;

/// The most modules that a crate may have and not name in its head.
const FEW_MODULES: usize = 4;

/// The folders whose crates are tests themselves.
const TESTS: [&str; 2] = ["conformance/", "tools/testing/"];

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

/// Fails if a module was added to a crate, and the list of rooms at the head of its `lib.rs` was forgotten.
#[test]
fn rooms_are_named_in_the_head() {
    let files = tree::files().unwrap().into_iter();
    let is_test = |file: &File| TESTS.iter().any(|tests| file.path.starts_with(tests));
    let roots = files.filter(|file| file.path.ends_with("/src/lib.rs") && !is_test(file));
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
