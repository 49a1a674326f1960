//! The manners of the tree that no compiler looks after.

use std::collections::BTreeSet;

use conformance::tree::{self, File};

use crate::assert_none;

/// Names that say nothing about what a file owns.
const RESERVED: [&str; 4] = ["common", "helpers", "misc", "util"];

fn files() -> Vec<File> {
    let files = tree::files().unwrap();
    assert!(
        files
            .iter()
            .any(|file| file.path == "conformance/tests/tidy.rs"),
        "this file was not found"
    );
    files
}

/// Returns the Rust files of the tree.
pub(crate) fn sources() -> Vec<File> {
    let files = files().into_iter();
    files.filter(|file| file.is("rs")).collect()
}

/// Returns whether `word` stands in `text` with nothing of a name beside it.
fn has_word(text: &str, word: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(is_name) && !after.is_some_and(is_name)
    })
}

/// Fails if the search for words accuses `prefix` of containing `fix`, or does not see a word between brackets.
#[test]
fn words_are_told_from_parts_of_words() {
    for (text, expected) in [
        ("a fix", true),
        ("fix", true),
        ("(fix)", true),
        ("prefix", false),
        ("fixes fix_me", false),
    ] {
        assert_eq!(has_word(text, "fix"), expected, "{text}");
    }
}

/// Fails if a Rust file begins with code, so that a reader must find out alone what the file owns.
#[test]
fn every_file_says_first_what_it_owns() {
    let silent: Vec<_> = sources()
        .into_iter()
        .filter(|file| !file.text.starts_with("//! "))
        .map(|file| file.path)
        .collect();
    assert_none(
        &silent,
        "begin with `//! ` and what the file owns, and what it does not promise",
    );
}

/// Fails if a comment puts work off without the number of an issue, so that nobody is reminded of the work.
#[test]
fn postponed_work_names_its_issue() {
    let words = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("XX", "X"),
    ];
    let has_issue = |line: &str| {
        line.split('#')
            .skip(1)
            .any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let open = |line: &str| words.iter().any(|word| has_word(line, word)) && !has_issue(line);
    assert!(
        open(&format!("// {}: later", words[0])) && !open(&format!("// {} #12: later", words[0]))
    );
    // An archive that a test unpacks is no text.
    let wrong: Vec<_> = files()
        .iter()
        .filter(|file| !file.is("gz"))
        .flat_map(|file| file.places_where(open))
        .collect();
    assert_none(
        &wrong,
        "do it now, or open an issue and write its number (#12) on that line",
    );
}

/// Fails if a file or folder has a name that fits any code, `helpers` for example.
#[test]
fn names_say_what_is_in_a_file() {
    let mut wrong = BTreeSet::new();
    for file in sources() {
        let names = file.path.trim_end_matches(".rs").split('/');
        wrong.extend(
            names
                .filter(|name| RESERVED.contains(name))
                .map(|name| format!("{}: {name}", file.path)),
        );
    }
    assert_none(
        &Vec::from_iter(wrong),
        "name the file or folder after the noun it owns or the verb it performs",
    );
}

/// Fails if a path that only the author's machine has, or the host of a package registry, got into a file.
#[test]
fn no_file_names_the_machine_of_its_author() {
    // In two halves, so that this file does not accuse itself.
    let folders = [concat!("/ro", "ot/"), concat!("/wo", "rk/")];
    let hosts = [
        concat!("index.", "crates.io"),
        concat!("static.", "crates.io"),
        concat!("registry.", "npmjs.org"),
        concat!("files.", "pythonhosted.org"),
        concat!("proxy.", "golang.org"),
        concat!("jfrog", ".io"),
        concat!("artifact", "ory"),
    ];
    let begins_path = |line: &str, folder: &str| {
        let inside =
            |c: char| c.is_alphanumeric() || ['.', '_', '-', '/', '*', '>', '}'].contains(&c);
        line.match_indices(folder)
            .any(|(at, _)| !line[..at].ends_with(inside))
    };
    let points = |line: &str| {
        folders.iter().any(|folder| begins_path(line, folder))
            || hosts.iter().any(|host| line.contains(host))
    };
    assert!(
        points(&format!("see {}x", folders[0]))
            && !points(&format!("https://example.org{}x", folders[1]))
    );
    let wrong: Vec<_> = files()
        .iter()
        .flat_map(|file| file.places_where(points))
        .collect();
    assert_none(
        &wrong,
        "write a path from the root of the repository, and no name of a registry's host",
    );
}

/// Returns the name that a line declares after one of `keywords`.
pub(crate) fn declared<'a>(line: &'a str, keywords: &[&str]) -> Option<&'a str> {
    let code = line.split("//").next()?;
    let mut words = code.split_whitespace();
    words.find(|word| keywords.contains(word))?;
    let name = words.next()?;
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_');
    name.get(..end.unwrap_or(name.len()))
}

/// A test function.
struct Test<'a> {
    line: usize,
    name: &'a str,
    /// Whether the comment above the test has a sentence `Fails if`.
    says_mistake: bool,
}

fn tests(file: &File) -> Vec<Test<'_>> {
    let mut is_test = false;
    let mut says_mistake = false;
    let mut found = Vec::new();
    for (text, line) in file.text.lines().zip(1..) {
        let code = text.trim_start();
        if code.starts_with("#[test]") || code.starts_with("#[tokio::test") {
            is_test = true;
        } else if code.starts_with("///") {
            says_mistake |= code.contains("Fails if");
        } else if code.is_empty() {
            says_mistake = false;
        } else if let Some(name) = declared(code, &["fn"]) {
            found.extend(is_test.then_some(Test {
                line,
                name,
                says_mistake,
            }));
            (is_test, says_mistake) = (false, false);
        }
    }
    found
}

/// Returns the tests that do not say which mistake they find, as `path:line name`.
fn aimless_tests(file: &File) -> Vec<String> {
    let tests = tests(file).into_iter();
    let aimless = tests.filter(|test| !test.says_mistake);
    aimless
        .map(|test| format!("{}:{} {}", file.path, test.line, test.name))
        .collect()
}

/// Fails if a test needs no sentence, or the sentence of another function counts.
#[test]
fn aimless_tests_are_found() {
    let good = "/// Fails if a byte is lost.\n#[test]\n#[cfg(unix)]\nfn byte_is_kept() {}\n";
    let file = |text: String| File {
        path: "x.rs".to_owned(),
        text,
    };
    assert!(aimless_tests(&file(good.to_owned())).is_empty());
    let bare = "#[tokio::test]\nasync fn two_are_kept() {}\n";
    let found = aimless_tests(&file(format!("{good}\n{bare}\nfn helper() {{}}\n")));
    assert_eq!(found, ["x.rs:7 two_are_kept"]);
    let other = "/// Fails if the disk is full.\nstruct Full;\n\n";
    let found = aimless_tests(&file(format!("{other}{bare}")));
    assert_eq!(found, ["x.rs:5 two_are_kept"]);
}

/// Fails if a reader must guess what a test is for.
#[test]
fn tests_say_what_they_find() {
    // That file writes a workspace of its own, whose tests are to fail.
    let sources = sources();
    let read = |file: &&File| file.path != "conformance/tests/flaky.rs";
    let found: Vec<String> = sources
        .iter()
        .filter(read)
        .flat_map(aimless_tests)
        .collect();
    assert_none(
        &found,
        "write `/// Fails if …` above the test, with the mistake in the product that it finds",
    );
}
