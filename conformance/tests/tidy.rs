//! The manners of the tree that no compiler looks after.

use std::collections::BTreeSet;

use conformance::tree::{self, File};

use crate::assert_none;

/// The longest file that needs no excuse, in lines.
const LONGEST: usize = 450;

/// The widest comment, in columns.
const WIDEST: usize = 120;

/// Names that say nothing about what a file owns.
const RESERVED: [&str; 9] = [
    "common",
    "data",
    "handler",
    "helpers",
    "manager",
    "misc",
    "processor",
    "types",
    "util",
];

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

fn rust() -> impl Iterator<Item = File> {
    files().into_iter().filter(|file| file.is("rs"))
}

/// Returns whether `word` stands in `text` with nothing of a name beside it.
fn has_word(text: &str, word: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).unwrap_or_default().chars().next_back();
        let after = text
            .get(at + word.len()..)
            .unwrap_or_default()
            .chars()
            .next();
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
    let silent: Vec<_> = rust()
        .filter(|file| !file.text.starts_with("//! "))
        .map(|file| file.path)
        .collect();
    assert_none(
        &silent,
        "begin with `//! ` and what the file owns, and what it does not promise",
    );
}

/// Fails if a module was put into a `mod.rs`, a name that does not tell one module from another.
#[test]
fn modules_are_files_of_their_name() {
    let wrong: Vec<_> = rust()
        .filter(|file| file.path.ends_with("/mod.rs"))
        .map(|file| file.path)
        .collect();
    assert_none(
        &wrong,
        "use `name.rs` and `name/` in place of `name/mod.rs`",
    );
}

/// Fails if a file has grown beyond 450 lines without a reason to hold more than one idea.
#[test]
fn long_files_say_why() {
    let too_long = |file: &File| {
        file.text.lines().count() > LONGEST && !file.text.contains("over 450 lines because")
    };
    let wrong: Vec<_> = rust()
        .filter(too_long)
        .map(|file| format!("{}: {} lines", file.path, file.text.lines().count()))
        .collect();
    assert_none(
        &wrong,
        "make two files of it, one idea each; or say in it: over 450 lines because …",
    );
}

/// Fails if a comment is wider than 120 columns, so that it breaks in a review or beside another file. Rows of tables
/// and code in documentation are as wide as they must be.
#[test]
fn comments_fit_in_120_columns() {
    let mut wrong = Vec::new();
    for file in rust() {
        let mut is_code = false;
        for (number, line) in file.text.lines().enumerate() {
            let text = line
                .trim_start()
                .trim_start_matches("//!")
                .trim_start_matches("///");
            let is_comment = line.trim_start().starts_with("//");
            is_code = is_comment && (is_code ^ text.trim_start().starts_with("```"));
            let is_row = text.trim_start().starts_with('|');
            if is_comment && !is_code && !is_row && line.chars().count() > WIDEST {
                wrong.push(format!("{}:{}", file.path, number + 1));
            }
        }
    }
    assert_none(&wrong, "wrap the comment at 120 columns");
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

/// Returns whether generated types may be named in this file: where the wire meets the house.
pub(crate) fn is_door(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        // Tests in a folder of their own play the party on the other side of a door.
        ["proto" | "conformance", ..]
        | ["archive" | "harvest" | "index", "client", ..]
        | ["archive", "replicas", ..]
        // Replicas of a script, for tests.
        | ["archive", "stores", "src", "scripted.rs"]
        | [_, _, "tests", ..] => true,
        [_, _, "src", file] => *file == "rpc.rs",
        [_, _, "src", folder, ..] => *folder == "rpc",
        _ => false,
    }
}

/// Fails if code that decides works on messages of the wire, in which any field may hold nonsense, in place of types of
/// the model.
#[test]
fn the_wire_stops_at_the_door() {
    for (path, expected) in [
        ("proto/archive/src/convert.rs", true),
        ("archive/repository/src/rpc/ingest.rs", true),
        ("archive/monitor/src/rpc.rs", true),
        ("archive/client/src/access.rs", true),
        ("archive/monitor/src/nodes.rs", false),
        ("archive/monitor/tests/foreman.rs", true),
        ("archive/monitor/src/rpc_limits.rs", false),
        ("archive/replicas/src/admissions.rs", true),
        ("archive/jobs/src/rpc/run.rs", true),
        ("archive/stores/src/scripted.rs", true),
        ("archive/repository/src/restore.rs", false),
    ] {
        assert_eq!(is_door(path), expected, "{path}");
    }
    let files = files();
    // Others may have a module of that name: the crawler's records bytes.
    let speaks =
        |file: &&File| file.path.ends_with("/Cargo.toml") && file.text.contains("\nproto-");
    let speakers: Vec<String> = files
        .iter()
        .filter(speaks)
        .map(|file| file.path.trim_end_matches("Cargo.toml").to_owned())
        .collect();
    let paths = [concat!("wire", "::"), concat!("::", "wire")];
    let named = |line: &str| {
        !line.trim_start().starts_with("//")
            && has_word(line, "wire")
            && paths.iter().any(|path| line.contains(path))
    };
    let wrong: Vec<_> = files
        .iter()
        .filter(|file| {
            file.is("rs")
                && !is_door(&file.path)
                && speakers.iter().any(|at| file.path.starts_with(at))
        })
        .flat_map(|file| file.places_where(named))
        .collect();
    assert_none(
        &wrong,
        "decode in `rpc.rs`, a client or `proto/*/src/convert.rs`, and pass on what the model knows",
    );
}

/// Fails if a file or folder has a name that fits any code, `helpers` for example.
#[test]
fn names_say_what_is_in_a_file() {
    let mut wrong = BTreeSet::new();
    for file in rust() {
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
            .any(|(at, _)| !line.get(..at).unwrap_or_default().ends_with(inside))
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
