//! The maps of ARCHITECTURE.md, held to the code: the files and crates that they name are there.
//!
//! Not promised: that the steps of a walk come in this order.

use std::collections::BTreeSet;

use conformance::tree;

use crate::assert_none;

/// Returns the walks of `ARCHITECTURE.md`: each drawing as one line.
fn walks() -> Vec<String> {
    let text = tree::read("ARCHITECTURE.md").unwrap();
    let begin = text.find("## Walks").unwrap();
    let end = text.find("## Arrows").unwrap();
    let drawings = text[begin..end].split("```").skip(1).step_by(2);
    drawings
        .map(|walk| {
            let words = walk.strip_prefix("text").unwrap().split_whitespace();
            words.collect::<Vec<_>>().join(" ")
        })
        .collect()
}

/// Returns a name in a walk, without what stands around it.
fn name_in_walk(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != '_')
}

/// Fails if a walk names a file that is not there.
#[test]
fn walks_name_files_that_exist() {
    let files = tree::files().unwrap();
    let exists = |path: &str| files.iter().any(|file| file.path == path);
    let mut wrong = Vec::new();
    let mut steps = 0;
    for walk in walks() {
        let mut part = "";
        for word in walk.split(' ') {
            let name = name_in_walk(word);
            if name.contains('/') && exists(&format!("{name}/Cargo.toml")) {
                part = name;
            }
            let path = word.strip_suffix(':').unwrap_or_default();
            let is_path = |c: char| c.is_ascii_lowercase() || c == '_' || c == '/';
            if !path.is_empty() && path.chars().all(is_path) {
                let path = format!("{part}/src/{path}.rs");
                steps += 1;
                if !exists(&path) {
                    wrong.push(path);
                }
            }
        }
    }
    assert!(steps > 60, "only {steps} steps were found");
    assert_none(
        &wrong,
        "stand in a walk of ARCHITECTURE.md and do not exist: draw the walk as it goes now",
    );
}

/// The rows of the first column of a table of `ARCHITECTURE.md`, from its heading to the next one.
fn table(heading: &str) -> Vec<String> {
    let text = tree::read("ARCHITECTURE.md").unwrap();
    let (_, rest) = text.split_once(heading).unwrap();
    let section = rest.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| "));
    rows.map(str::to_owned).collect()
}

/// The code spans of a line of Markdown or of a comment.
fn spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Fails if a new crate is missing in the code map, or a crate that is gone still has a row.
#[test]
fn code_map_has_every_crate() {
    let files = tree::files().unwrap();
    let manifests = files
        .iter()
        .filter_map(|file| file.path.strip_suffix("/Cargo.toml"));
    // The fuzz targets have a row with `conformance`, the examples of components are programs of others.
    let crates: BTreeSet<&str> = manifests
        .filter(|path| path.split('/').count() <= 2)
        .filter(|path| *path != "conformance/fuzz")
        .collect();
    let rows = table("## Code map");
    let drawn: BTreeSet<&str> = rows
        .iter()
        .filter_map(|row| spans(row.split('|').nth(1)?).next())
        .collect();
    let missing: Vec<String> = crates
        .difference(&drawn)
        .map(|path| (*path).to_owned())
        .collect();
    assert_none(
        &missing,
        "give the crate a row in the code map of ARCHITECTURE.md: what it owns",
    );
    let gone: Vec<String> = drawn
        .difference(&crates)
        .map(|path| (*path).to_owned())
        .collect();
    assert_none(
        &gone,
        "take the row out of the code map of ARCHITECTURE.md: there is no such crate",
    );
}

/// Fails if the table of entry points leads to a file or folder that was moved.
#[test]
fn entry_points_exist() {
    let rows = table("## Entry points");
    let places = rows.iter().flat_map(|row| spans(row));
    let gone: Vec<String> = places
        .filter(|place| !tree::root().join(place).try_exists().unwrap())
        .map(str::to_owned)
        .collect();
    assert!(rows.len() > 20, "only {} rows were found", rows.len());
    assert_none(
        &gone,
        "stand among the entry points of ARCHITECTURE.md: name where it lies now",
    );
}
