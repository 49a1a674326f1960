//! The language of the tree: the rules of naming and writing that a program can check.
//!
//! Banned phrases are refused in every text of the tree: code, pages, wire files, texts for people, manifests and shell
//! scripts. Python is left out, where a comparison with `None` is code that reads like one of them. All other rules
//! hold for Rust files. Not checked: a phrase that a line break divides, and whether a sentence is understood.

mod errors;

use conformance::tree::{self, File};

use crate::assert_none;

/// Phrases that a reader has to decode, each in two halves, so that this file does not accuse itself.
const BANNED: [&str; 6] = [
    concat!("for", " ever"),
    concat!("is", " none"),
    concat!("so", " many"),
    concat!("the same", " again"),
    concat!("who", "ever"),
    concat!("there is", " no more"),
];

/// The extensions of the texts that may not have a banned phrase.
const TEXTS: [&str; 12] = [
    "css", "ftl", "html", "js", "md", "proto", "rs", "sh", "toml", "wat", "wit", "yml",
];

/// The first line of a shell script without an extension.
const SHELL: &str = "#!/usr/bin/env bash";

/// Participles, pronouns and stage props: as the whole name of a type they do not say what the value holds. Those that
/// end in `ed` or `ing` are refused by these letters.
const EMPTY_NAMES: [&str; 29] = [
    "Aside", "Begun", "Brought", "Done", "Errand", "Eye", "Found", "Given", "Hands", "Held",
    "Herald", "Hurt", "It", "Kept", "Known", "Left", "Letter", "Mandate", "Mine", "Other", "Said",
    "Seen", "Stays", "Taken", "Them", "They", "Told", "Wish", "World",
];

/// Nouns that end as participles do.
const NOUNS: [&str; 13] = [
    "Anchoring",
    "Beginning",
    "Coding",
    "Deed",
    "Ending",
    "Feed",
    "Filing",
    "Finding",
    "Listing",
    "Sighting",
    "Spelling",
    "Standing",
    "Tuning",
];

/// The most words in the name of a test.
const LONGEST_TEST_NAME: usize = 8;

/// Openings of test names that have a relative clause in place of a noun.
const HEADLESS_TEST_NAMES: [&str; 4] = ["only_what_", "what_", "where_", concat!("who", "ever_")];

/// Openings of a doc comment that leave a sentence without its subject and verb.
const HEADLESS: [&str; 7] = [
    "What ",
    "Who ",
    "Whose ",
    "Of what ",
    "That which ",
    "How ",
    "Why ",
];

/// Pronouns that open a doc comment: a reader who has come straight here has met no noun that they could stand for.
const ORPHANS: [&str; 14] = [
    "Another", "It", "Its", "One", "Ones", "So", "That", "Their", "Them", "There", "These", "They",
    "This", "Those",
];

/// Returns the lines of `files` that break a rule, as `path:line`.
fn places(files: &[File], breaks: impl Fn(&str) -> bool) -> Vec<String> {
    files
        .iter()
        .flat_map(|file| file.places_where(&breaks))
        .collect()
}

fn is_text(file: &File) -> bool {
    TEXTS.iter().any(|kind| file.is(kind)) || file.text.lines().next() == Some(SHELL)
}

/// Returns the files that may not have a banned phrase.
fn texts() -> Vec<File> {
    let files = tree::files().unwrap().into_iter();
    let found: Vec<File> = files.filter(is_text).collect();
    for path in [".ci/run", "CHANGELOG.md", "archive/component/wit/batch.wit"] {
        let mut paths = found.iter().map(|file| &file.path);
        assert!(paths.any(|found| found == path), "{path} was not found");
    }
    found
}

/// Returns the Rust files of the tree.
fn sources() -> Vec<File> {
    let files = tree::files().unwrap().into_iter();
    let found: Vec<File> = files.filter(|file| file.is("rs")).collect();
    assert!(
        found.iter().any(|file| file.path.ends_with("language.rs")),
        "this file was not found"
    );
    found
}

fn has_banned_phrase(line: &str) -> bool {
    let line = line.to_lowercase();
    BANNED.iter().any(|phrase| has_words(&line, phrase))
}

/// Returns whether `phrase` stands in `line` as whole words, and not only within longer ones.
fn has_words(line: &str, phrase: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(phrase).any(|(start, phrase)| {
        let before = line.get(..start).unwrap_or_default();
        let behind = line.get(start + phrase.len()..).unwrap_or_default();
        !before.ends_with(is_word) && !behind.starts_with(is_word)
    })
}

fn has_headless_doc(line: &str) -> bool {
    let text = line.trim_start();
    let doc = text.strip_prefix("/// ").or(text.strip_prefix("//! "));
    doc.is_some_and(|doc| HEADLESS.iter().any(|opening| doc.starts_with(opening)))
}

/// Returns the doc comments whose first line begins with a pronoun, as `path:line text`.
fn orphaned_docs(file: &File) -> Vec<String> {
    let mut inside = false;
    let mut found = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        let doc = line.trim_start().strip_prefix("///");
        if let Some(opening) = doc.filter(|_| !inside) {
            let word = opening.trim_start();
            let end = word
                .find(|c: char| !c.is_alphanumeric())
                .unwrap_or(word.len());
            if word.get(..end).is_some_and(|word| ORPHANS.contains(&word)) {
                found.push(format!("{}:{number}{opening}", file.path));
            }
        }
        inside = doc.is_some();
    }
    found
}

/// Returns the name that a line declares after one of `keywords`.
fn declared<'a>(line: &'a str, keywords: &[&str]) -> Option<&'a str> {
    let code = line.split("//").next()?;
    let mut words = code.split_whitespace();
    words.find(|word| keywords.contains(word))?;
    let name = words.next()?;
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_');
    name.get(..end.unwrap_or(name.len()))
}

/// Returns whether a name is one word that ends as a participle, and is no noun.
fn is_participle(name: &str) -> bool {
    let is_one_word = name.chars().skip(1).all(|c| c.is_ascii_lowercase());
    let ends = name.ends_with("ed") || name.ends_with("ing");
    is_one_word && ends && !NOUNS.contains(&name)
}

fn has_empty_name(line: &str) -> bool {
    declared(line, &["struct", "enum", "trait", "type"])
        .is_some_and(|name| EMPTY_NAMES.contains(&name) || is_participle(name))
}

/// A test function.
struct Test<'a> {
    line: usize,
    name: &'a str,
    /// Whether the comment above the test has a sentence `Fails if`.
    says_mistake: bool,
}

fn tests(file: &File) -> Vec<Test<'_>> {
    let (mut is_test, mut says_mistake) = (false, false);
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

/// Returns the tests that `breaks` names, as `path:line name`.
fn tests_where(file: &File, breaks: impl Fn(&Test<'_>) -> bool) -> Vec<String> {
    let tests = tests(file).into_iter().filter(|test| breaks(test));
    tests
        .map(|test| format!("{}:{} {}", file.path, test.line, test.name))
        .collect()
}

/// Returns the names of tests with too many words, as `path:line name`.
fn long_test_names(file: &File) -> Vec<String> {
    tests_where(file, |test| {
        test.name.split('_').count() > LONGEST_TEST_NAME
    })
}

/// Returns the names of tests that begin with a relative clause, as `path:line name`.
fn headless_test_names(file: &File) -> Vec<String> {
    tests_where(file, |test| {
        HEADLESS_TEST_NAMES
            .iter()
            .any(|opening| test.name.starts_with(opening))
    })
}

/// Returns the tests that do not say which mistake they find, as `path:line name`.
fn aimless_tests(file: &File) -> Vec<String> {
    tests_where(file, |test| !test.says_mistake)
}

/// Fails if one of the rules for single lines lets its own example pass, or refuses a good line.
#[test]
fn line_rules_tell_bad_from_good() {
    let kept = BANNED.map(str::to_uppercase);
    for phrase in kept {
        assert!(has_banned_phrase(&format!("/// It {phrase}.")), "{phrase}");
    }
    for good in [
        "/// Returns all problems, permanently.",
        "/// Asks for every name.",
        concat!("fn who", "ever_asks()"),
    ] {
        assert!(!has_banned_phrase(good), "{good}");
    }
    assert!(has_headless_doc("    /// What was read."));
    assert!(has_headless_doc("/// How long a call may take."));
    assert!(!has_headless_doc("/// However long it takes, it ends."));
    assert!(!has_headless_doc("/// Whatever the reason, it fails."));
    assert!(has_empty_name(concat!("pub(crate) enum", " Told {")));
    assert!(has_empty_name(concat!("struct", " Left<T>(T);")));
    assert!(has_empty_name(concat!("pub struct", " Counted {")));
    assert!(!has_empty_name(concat!("struct", " Feed {")));
    assert!(!has_empty_name("struct LeftOver;"));
    assert!(!has_empty_name("// a type Told"));
}

/// Fails if a page, a manifest or a script is passed over, or Python and archived bytes are read as texts.
#[test]
fn texts_are_known_by_name_or_shebang() {
    let file = |path: &str, text: &str| File {
        path: path.to_owned(),
        text: text.to_owned(),
    };
    for path in ["x/README.md", "x/Cargo.toml", ".clippy.toml", "x/da.ftl"] {
        assert!(is_text(&file(path, "")), "{path}");
    }
    assert!(is_text(&file("tools/up", &format!("{SHELL}\nset -e\n"))));
    for path in ["x.py", "x.tar.gz", "Cargo.lock", "md"] {
        assert!(!is_text(&file(path, "if x:\n")), "{path}");
    }
}

/// Fails if a pronoun that opens a doc comment is not found, or one further on in it is.
#[test]
fn docs_that_open_with_pronouns_are_found() {
    let file = File {
        path: "x.rs".to_owned(),
        text: "/// Its bytes.\nbytes: u64,\n\n/// The file.\n/// It is closed.\nfile: File,\n    /// One's own.\n"
            .to_owned(),
    };
    assert_eq!(
        orphaned_docs(&file),
        ["x.rs:1 Its bytes.", "x.rs:7 One's own."]
    );
}

/// Fails if names are measured wrongly, or a helper is taken for a test.
#[test]
fn long_names_of_tests_are_found() {
    let nine = "one_two_three_four_five_six_seven_eight_nine";
    let eight = "one_two_three_four_five_six_seven_eight";
    let file = |text: String| File {
        path: "x.rs".to_owned(),
        text,
    };
    let found = long_test_names(&file(format!("#[test]\nfn {nine}() {{}}\n")));
    assert_eq!(found, [format!("x.rs:2 {nine}")]);
    let good = format!("#[tokio::test]\nasync fn {eight}() {{}}\nfn {nine}() {{}}\n");
    assert!(long_test_names(&file(good)).is_empty());
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

/// Fails if a line of any text has a phrase that a reader must decode, or a doc comment opens with a relative clause in
/// place of a subject.
#[test]
fn lines_use_plain_words() {
    assert_none(
        &places(&texts(), has_banned_phrase),
        "say it in plain engineering English: `permanently`, `all`, `every …`, `there are no …`",
    );
    assert_none(
        &places(&sources(), has_headless_doc),
        "begin with a verb in the third person, or with the noun itself",
    );
}

/// Fails if a doc comment opens with a pronoun, so that a reader has to look elsewhere for its noun.
#[test]
fn docs_name_their_subject() {
    let found: Vec<String> = sources().iter().flat_map(orphaned_docs).collect();
    assert_none(
        &found,
        "name the subject (the file, the copy, the node): a reader may have come straight to this line",
    );
}

/// Fails if a type is named with a participle or a pronoun alone, which does not say what a value of it holds.
#[test]
fn types_are_nouns() {
    assert_none(
        &places(&sources(), has_empty_name),
        "name the type for what the value holds: `FiledAnomaly`, `CopyState`, `ResumePoint`",
    );
}

/// Fails if a test is named with a sentence of more than eight words.
#[test]
fn test_names_are_short() {
    let found: Vec<String> = sources().iter().flat_map(long_test_names).collect();
    assert_none(&found, "subject, condition, result, in at most eight words");
}

/// Fails if the name of a test begins with a relative clause, and does not say which thing has the property.
#[test]
fn test_names_begin_with_no_relative_clause() {
    let file = File {
        path: "x.rs".to_owned(),
        text: "#[test]\nfn what_is_cut() {}\n#[test]\nfn whatwg_url_is_read() {}\nfn what_helps() {}\n"
            .to_owned(),
    };
    assert_eq!(headless_test_names(&file), ["x.rs:2 what_is_cut"]);
    let found: Vec<String> = sources().iter().flat_map(headless_test_names).collect();
    assert_none(
        &found,
        "name the thing that has the property: `cut_listing_is_refused`, not `what_is_cut_is_refused`",
    );
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
